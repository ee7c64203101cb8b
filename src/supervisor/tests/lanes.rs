//! Readers come and go while a generation runs; the supervisor awaits each.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{Stopped, state, status, supervise_all};
use crate::{
    model::Slot,
    pipeline::tests::{
        harness::{Rig, Setup, World, delivery, run, until},
        log::{Log, rows},
    },
    supervisor::{PipelineStatus, State, Supervision},
};

fn of(supervision: &Supervision, name: &str) -> PipelineStatus {
    supervision.handle.pipelines().into_iter().find(|status| status.name == name).unwrap()
}

const QUICK: fn() -> Setup = || Setup { interval: Duration::from_millis(10), restarts: 1, ..Setup::default() };

fn committed(rig: &Rig, count: usize) -> impl FnMut() -> bool {
    move || rig.world.committed().len() == count
}

#[test]
fn a_panic_of_one_reader_names_its_lane_and_the_neighbour_on_its_thread_goes_on() {
    run(QUICK(), async |rig| {
        let log = Log::new(3, 0);
        let neighbours: Arc<World> = Arc::default();
        let supervision = supervise_all(rig, vec![log.plan(rig), rig.plan_of("good", &neighbours)]);
        until("all lanes are read", || (0..3).all(|number| log.polls(number) > 0)).await;
        // The poll after the one that is under way.
        log.with(1, |lane| lane.panics = true);
        (0..3).for_each(|number| log.send(number, 20));
        neighbours.deliver(vec![delivery(1, 1)]);
        until("all is committed", committed(rig, 180)).await;
        let bad = of(&supervision, "p");
        assert_eq!(bad.last_error.as_deref(), Some("reader: reader of lane lane-1 panicked: the reader panics"));
        assert_eq!((bad.restarts, bad.generation), (1, Some(2)));
        until("the neighbour has written", || neighbours.committed() == [1]).await;
        let good = of(&supervision, "good");
        assert_eq!((good.state, good.generation, good.last_error), (State::Running, Some(1), None));
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), (0..3).flat_map(|number| rows(number, 0..20)).collect::<Vec<_>>());
    });
}

#[test]
fn a_reader_whose_lane_has_ended_is_no_actor_that_ended_by_itself() {
    run(QUICK(), async |rig| {
        let log = Log::new(2, 0);
        log.state().discovery = Some(Duration::from_millis(10));
        let supervision = supervise_all(rig, vec![log.plan(rig)]);
        until("all lanes are read", || (0..2).all(|number| log.polls(number) > 0)).await;
        let lanes = || status(&supervision).map_or(0, |status| status.lanes.len());
        assert_eq!(lanes(), 2);
        log.move_away(1, true);
        until("one is left", || lanes() == 1).await;
        log.move_away(1, false);
        until("it is read again", || lanes() == 2).await;
        log.send(1, 3);
        until("all is committed", committed(rig, 9)).await;
        log.with(0, |lane| lane.bounded = true);
        until("one has ended", || lanes() == 1).await;
        let running = status(&supervision).unwrap();
        assert_eq!((running.state, running.generation, running.last_error), (State::Running, Some(1), None));
        let read = &running.lanes[0];
        assert_eq!((read.lane.as_str(), read.position, read.behind), ("lane-1", 3, Some(0)));
        log.with(1, |lane| lane.bounded = true);
        state(&supervision, State::Finished).await;
        assert_eq!((lanes(), supervision.stop().await), (0, Stopped::Drained));
        assert_eq!(log.with(1, |lane| lane.committed), Some(3));
    });
}

#[test]
fn readers_that_are_started_while_a_stop_is_asked_for_end_with_the_others() {
    const LANES: u64 = 1_000;
    run(QUICK(), async |rig| {
        let log = Log::new(LANES, 0);
        let supervision = supervise_all(rig, vec![log.plan(rig)]);
        let lanes = || status(&supervision).map_or(0, |status| status.lanes.len() as u64);
        until("all lanes are read", || lanes() == LANES).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);

        let supervision = supervise_all(rig, vec![log.plan(rig)]);
        let lanes = || status(&supervision).map_or(0, |status| status.lanes.len() as u64);
        // Not asked for more slowly than they are started.
        let begun = Instant::now();
        while lanes() == 0 && begun.elapsed() < Duration::from_secs(10) {
            tokio::task::yield_now().await;
        }
        let stopped = tokio::time::timeout(Duration::from_secs(10), supervision.stop()).await;
        assert_eq!(stopped, Ok(Stopped::Drained));
    });
}

#[test]
fn a_pipeline_runs_once_its_first_lane_is_read_and_can_be_restarted_and_stopped_before() {
    run(QUICK(), async |rig| {
        let log = &Log::new(2, 0);
        let hold = |number| {
            let (let_go, gate) = oneshot::channel();
            log.with(number, |lane| lane.open_gates.push_back(gate));
            let_go
        };
        let asked = |number| until("it is being opened", move || log.with(number, |lane| lane.open_gates.is_empty()));
        // The other lane waits for it, for both have never been read.
        let _held = hold(0);
        let supervision = supervise_all(rig, vec![log.plan(rig)]);
        asked(0).await;
        assert_eq!(status(&supervision).unwrap().state, State::Starting);
        let let_go = hold(0);
        supervision.handle.restart(Slot(1));
        asked(0).await;
        let second = || status(&supervision).filter(|status| status.generation == Some(2));
        until("it is numbered", || second().is_some()).await;
        assert_eq!(second().map(|status| (status.state, status.restarts)), Some((State::Starting, 1)));
        let_go.send(()).unwrap();
        state(&supervision, State::Running).await;
        (0..2).for_each(|number| log.send(number, 1));
        until("all is committed", committed(rig, 6)).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);

        let _held = [hold(0), hold(1)];
        let supervision = supervise_all(rig, vec![log.plan(rig)]);
        asked(0).await;
        asked(1).await;
        assert_eq!(status(&supervision).unwrap().state, State::Starting);
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn a_pipeline_without_a_lane_of_its_own_runs() {
    run(QUICK(), async |rig| {
        let log = Log::new(1, 1);
        log.move_away(0, true);
        let supervision = supervise_all(rig, vec![log.plan(rig)]);
        state(&supervision, State::Running).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}
