//! A reload while things happen, and the end of bounded pipelines.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

use actix::prelude::*;

use super::*;
use crate::{
    definition::{Digest, RestartDefinition},
    model::{Generation, PipelineName, Slot},
    pipeline::{
        Event, Report,
        tests::{harness::World, service::Service},
    },
    supervisor::{
        ReloadReport,
        handle::{Board, Handle},
        pipeline::{Makings, Pipeline, PipelineStopped},
        pool::Pool,
    },
    telemetry::Vitals,
};

/// What the next reloads read; after these they fail.
type Next = Arc<Mutex<VecDeque<Vec<Member>>>>;

fn supervised(rig: &Rig, members: Vec<Member>) -> (Supervision, Next) {
    let next = Next::default();
    let read = Arc::clone(&next);
    let load: Load = Arc::new(move || read.lock().unwrap().pop_front().ok_or_else(|| "the folder is gone".to_owned()));
    (start(members, settings(rig, load)), next)
}

fn version(plan: Plan, text: &str) -> Member {
    member(Plan { definition: Digest::of(text), ..plan })
}

async fn reloaded(supervision: &Supervision, number: u64) -> ReloadReport {
    let last = || supervision.handle.last_reload().filter(|report| report.number >= number);
    until("the reload is done", || last().is_some()).await;
    last().unwrap()
}

async fn pipeline_runs(supervision: &Supervision, name: &str, generation: u64) {
    until(&format!("{name} runs"), || {
        let all = supervision.handle.pipelines();
        all.iter().any(|p| p.name == name && p.state == State::Running && p.generation == Some(generation))
    })
    .await;
}

fn names(supervision: &Supervision) -> Vec<(u32, String)> {
    supervision.handle.pipelines().into_iter().map(|p| (p.slot.0, p.name)).collect()
}

#[test]
fn a_sink_that_never_answers_holds_a_reload_up_until_the_checkpoint_timeout_and_no_longer() {
    run(Setup { timeout: Duration::from_millis(300), ..Setup::default() }, async |rig| {
        let (_never, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let (supervision, next) = supervised(rig, vec![version(rig.plan(), "v1")]);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write hangs", || rig.world.state().gates["write"].is_empty()).await;
        next.lock().unwrap().push_back(vec![version(rig.plan(), "v2")]);
        supervision.handle.reload();
        assert_eq!(reloaded(&supervision, 1).await.changed, ["p"]);
        pipeline_runs(&supervision, "p", 2).await;
        rig.world.deliver(vec![delivery(1, 2)]);
        until("it is written", || !rig.world.state().open.is_empty()).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), [1]);
    });
}

#[test]
fn a_queue_that_goes_to_another_pipeline_is_read_by_it_only_when_the_first_is_at_rest() {
    run(Setup::default(), async |rig| {
        let (open, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let (supervision, next) = supervised(rig, vec![version(rig.plan(), "v1")]);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write waits", || rig.world.state().gates["write"].is_empty()).await;
        next.lock().unwrap().push_back(vec![version(rig.plan_of("other", &rig.world), "v1")]);
        supervision.handle.reload();
        state(&supervision, State::Draining).await;
        assert_eq!(names(&supervision), [(1, "p".to_owned())]);
        open.send(()).unwrap();
        let report = reloaded(&supervision, 1).await;
        assert_eq!((report.removed, report.added), (vec!["p".to_owned()], vec!["other".to_owned()]));
        pipeline_runs(&supervision, "other", 1).await;
        assert_eq!(rig.world.committed(), [1], "the first had finished");
        until("the first is shown no more", || names(&supervision) == [(2, "other".to_owned())]).await;
        let text = String::from_utf8(supervision.handle.metrics.render().unwrap()).unwrap();
        assert!(!text.contains("pipeline=\"p\"") && text.contains("pipeline=\"other\""), "{text}");
        assert!(text.contains("queuewarden_reloads_total{result=\"done\"} 1"), "{text}");
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn what_is_unchanged_or_broken_is_left_alone_and_what_is_mended_starts() {
    run(Setup::default(), async |rig| {
        let worlds: Vec<Arc<World>> = (0..3).map(|_| Arc::default()).collect();
        let plan = |n: usize| rig.plan_of(["same", "broken", "mended"][n], &worlds[n]);
        let broken = |n: usize| Member { plan: Err("not valid".to_owned()), ..member(plan(n)) };
        let (supervision, next) = supervised(rig, vec![version(plan(0), "v1"), version(plan(1), "v1"), broken(2)]);
        for name in ["same", "broken"] {
            pipeline_runs(&supervision, name, 1).await;
        }
        next.lock().unwrap().push_back(vec![version(plan(0), "v1"), broken(1), version(plan(2), "v1")]);
        supervision.handle.reload();
        let report = reloaded(&supervision, 1).await;
        assert_eq!((report.unchanged, report.changed), (vec!["same".to_owned()], vec!["mended".to_owned()]));
        assert_eq!(report.broken.into_iter().collect::<Vec<_>>(), [("broken".to_owned(), "not valid".to_owned())]);
        for name in ["same", "broken", "mended"] {
            pipeline_runs(&supervision, name, 1).await;
        }
        let errors = || supervision.handle.pipelines().into_iter().map(|p| p.definition_error).collect::<Vec<_>>();
        until("the error is shown", || errors() == [None, Some("not valid".to_owned()), None]).await;

        // Back to what it was: nothing to do, and nothing wrong any more.
        next.lock().unwrap().push_back((0..3).map(|n| version(plan(n), "v1")).collect());
        supervision.handle.reload();
        assert_eq!(reloaded(&supervision, 2).await.unchanged.len(), 3);
        until("no error is shown", || errors() == [None, None, None]).await;
        pipeline_runs(&supervision, "broken", 1).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn definitions_that_cannot_be_listed_change_nothing() {
    run(Setup::default(), async |rig| {
        let (supervision, _none) = supervised(rig, vec![version(rig.plan(), "v1")]);
        pipeline_runs(&supervision, "p", 1).await;
        supervision.handle.reload();
        let report = reloaded(&supervision, 1).await;
        assert_eq!(report.error.as_deref(), Some("the folder is gone"));
        assert_eq!(status(&supervision).map(|p| (p.state, p.generation)), Some((State::Running, Some(1))));
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn a_panic_while_definitions_are_read_fails_that_reload_and_the_next_one_works() {
    run(Setup::default(), async |rig| {
        let panicked = AtomicBool::new(false);
        let load: Load = Arc::new(move || {
            assert!(panicked.swap(true, Ordering::SeqCst), "on purpose");
            Err("read".to_owned())
        });
        let supervision = start(vec![member(rig.plan())], settings(rig, load));
        supervision.handle.reload();
        let error = reloaded(&supervision, 1).await.error;
        assert_eq!(error.as_deref(), Some("reading the definitions panicked: on purpose"));
        supervision.handle.reload();
        assert_eq!(reloaded(&supervision, 2).await.error.as_deref(), Some("read"));
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn requests_during_a_reload_are_one_more_after_it_and_a_stop_takes_both_away() {
    run(Setup::default(), async |rig| {
        let (allow, allowed) = mpsc::channel();
        let allowed = Mutex::new(allowed);
        let load: Load = Arc::new(move || {
            allowed.lock().unwrap().recv().map_err(|gone| gone.to_string())?;
            Err("read".to_owned())
        });
        let supervision = start(vec![member(rig.plan())], settings(rig, load));
        for _ in 0..4 {
            supervision.handle.reload();
        }
        (0..3).for_each(|_| allow.send(()).unwrap());
        reloaded(&supervision, 2).await;
        supervision.handle.reload();
        assert_eq!(reloaded(&supervision, 3).await.number, 3, "four requests were two reloads");
        supervision.handle.reload();
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(supervision.handle.last_reload().unwrap().number, 3);
        drop(allow);
    });
}

#[test]
fn a_stop_in_the_middle_of_a_reload_starts_nothing_and_drains_all() {
    run(Setup::default(), async |rig| {
        let (open, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let (supervision, next) = supervised(rig, vec![version(rig.plan(), "v1")]);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write waits", || rig.world.state().gates["write"].is_empty()).await;
        let new = rig.plan_of("new", &Arc::default());
        next.lock().unwrap().push_back(vec![version(rig.plan(), "v2"), member(new)]);
        supervision.handle.reload();
        state(&supervision, State::Draining).await;
        let handle = supervision.handle.clone();
        let stopped = actix::spawn(async move { supervision.stop().await });
        tokio::task::yield_now().await;
        open.send(()).unwrap();
        assert_eq!(stopped.await.unwrap(), Stopped::Drained);
        let all: Vec<_> = handle.pipelines().into_iter().map(|p| (p.name, p.state, p.generation)).collect();
        assert_eq!(all, [("p".to_owned(), State::Stopped, Some(1))]);
        assert_eq!((rig.world.committed(), handle.last_reload()), (vec![1], None));
    });
}

struct Nobody;

impl Actor for Nobody {
    type Context = Context<Self>;
}

impl Handler<PipelineStopped> for Nobody {
    type Result = ();

    fn handle(&mut self, _: PipelineStopped, _: &mut Self::Context) {}
}

#[test]
fn a_bounded_source_at_its_end_is_finished_and_all_are_when_the_last_one_is() {
    run(Setup::default(), async |rig| {
        let board = Board::default();
        let pool = Pool::new(1);
        let metrics = settings(rig, Arc::new(|| Ok(Vec::new()))).metrics;
        let pipeline = |slot: u32| {
            let name = PipelineName::new(&format!("p{slot}")).unwrap();
            let plan = rig.plan_of(name.as_str(), &Arc::default());
            Pipeline::new(Makings {
                slot: Slot(slot),
                plan: Arc::new(plan),
                file: String::new(),
                store: rig.state_dir.store(),
                incarnation: String::new(),
                vitals: Arc::new(Vitals::new(metrics.pipeline(&name))),
                pool: pool.clone(),
                board: board.clone(),
                stopped: Nobody.start().recipient(),
            })
            .start()
        };
        let both = [pipeline(1), pipeline(2)];
        let (handle, _requests) = Handle::new(Arc::clone(&metrics), board.clone());
        let states = || handle.pipelines().iter().map(|p| p.state).collect::<Vec<_>>();
        until("both run", || states() == [State::Running, State::Running]).await;
        let finished = actix::spawn(async move { board.all_finished().await });
        let finish = |slot: u32| Report { slot: Slot(slot), attempt: 1, event: Event::Finished };
        both[0].do_send(finish(1));
        until("the first is", || states() == [State::Finished, State::Running]).await;
        assert!(!finished.is_finished());
        both[1].do_send(finish(2));
        until("both are", || states() == [State::Finished, State::Finished]).await;
        finished.await.unwrap();
        assert_eq!(handle.pipelines()[0].last_error, None);

        both[0].do_send(crate::supervisor::pipeline::Restart);
        until("it is opened again", || handle.pipelines()[0].generation == Some(Generation(2).0)).await;
    });
}

/// Asks for anything at any moment until every message is deleted.
async fn storm(rig: &Rig, seed: u64, messages: i64) {
    let mut random = fastrand::Rng::with_seed(seed);
    rig.world.state().service = Some(Service::new(seed, messages));
    let restart = RestartDefinition {
        max: 3,
        within: Duration::from_secs(3600),
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
    };
    let plan = |text: &str| Plan { restart, ..Plan { definition: Digest::of(text), ..rig.plan() } };
    let (supervision, next) = supervised(rig, vec![member(plan("v0"))]);
    let left = || rig.world.state().service.as_ref().map_or(0, |service| service.alive.len());
    let begun = std::time::Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "seed {seed}: {:?}", status(&supervision));
        tokio::time::sleep(Duration::from_millis(random.u64(0..40))).await;
        let slot = status(&supervision).map_or(Slot(1), |status| status.slot);
        match random.u8(0..10) {
            0..4 => supervision.handle.restart(slot),
            4..6 => supervision.handle.restart_failed(),
            6 => {
                let call = ["write", "prepare", "commit", "recover"][random.usize(0..4)];
                let (never, gate) = oneshot::channel();
                std::mem::forget(never);
                rig.world.state().gates.entry(call).or_default().push_back(gate);
            }
            what => {
                let members = match what {
                    7 => vec![],
                    8 => vec![Member { plan: Err("not valid".to_owned()), ..member(plan("")) }],
                    _ => vec![member(plan(&format!("v{}", random.u8(0..2))))],
                };
                // The last one is there again.
                next.lock().unwrap().extend([members, vec![member(plan("v0"))]]);
                supervision.handle.reload();
                supervision.handle.reload();
            }
        }
    }
    supervision.stop().await;
    let states: Vec<State> = supervision.handle.pipelines().iter().map(|pipeline| pipeline.state).collect();
    assert!(states.iter().all(|state| matches!(state, State::Stopped | State::Failed)), "seed {seed}: {states:?}");
    {
        let mut state = rig.world.state();
        state.service = None;
        state.gates.clear();
    }
    rig.open().await.drain().await;
    assert_eq!(rig.world.committed(), (0..messages).collect::<Vec<_>>(), "seed {seed}");
}

#[test]
fn whatever_is_asked_and_whenever_no_transition_is_illegal_and_each_row_is_committed_once() {
    for seed in 0..4 {
        let setup = Setup {
            interval: Duration::from_millis(10),
            timeout: Duration::from_millis(150),
            limit: 64,
            concurrency: 3,
            ..Setup::default()
        };
        run(setup, async |rig| storm(rig, seed, 300).await);
    }
}
