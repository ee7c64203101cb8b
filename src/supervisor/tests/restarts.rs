//! A restart that a person asks for, in each state.

use super::*;
use crate::{definition::RestartDefinition, model::Slot, pipeline::tests::harness::with_body};

const SLOT: Slot = Slot(1);
const AN_HOUR: Duration = Duration::from_secs(3600);

fn broken() -> Fault {
    Fault::restart(FaultKind::Service, "an answer nobody understands")
}

/// A pipeline that may be restarted `max` times, each after `pause`.
fn forgiving(rig: &Rig, max: u32, pause: Duration) -> Plan {
    let restart = RestartDefinition { max, within: AN_HOUR, backoff_min: pause, backoff_max: pause };
    Plan { restart, ..rig.plan() }
}

#[test]
fn what_runs_is_drained_and_the_next_generation_begins_at_once_and_is_counted() {
    run(Setup::default(), async |rig| {
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1), delivery(2, 1)]);
        until("all is written", || rig.world.state().open.len() == 2).await;
        supervision.handle.restart(SLOT);
        runs(&supervision, 2).await;
        assert_eq!(rig.world.committed(), [1, 2]);
        assert_eq!(rig.world.state().deleted.concat(), ["m1@1", "m2@1"]);
        assert_eq!(restarts(&supervision), 1);
        assert_eq!(status(&supervision).unwrap().last_error, None, "no fault");
        rig.world.deliver(vec![delivery(3, 1)]);
        until("the new one works", || !rig.world.state().open.is_empty()).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), [1, 2, 3]);
    });
}

#[test]
fn a_drain_that_is_held_up_is_cut_off_at_the_checkpoint_timeout() {
    run(Setup { timeout: Duration::from_millis(300), ..Setup::default() }, async |rig| {
        let (_never, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write hangs", || rig.world.state().gates["write"].is_empty()).await;
        supervision.handle.restart(SLOT);
        state(&supervision, State::Draining).await;
        // Once more is the same one.
        supervision.handle.restart(SLOT);
        runs(&supervision, 2).await;
        assert_eq!(restarts(&supervision), 1);
        rig.world.deliver(vec![delivery(1, 2)]);
        until("it is written", || !rig.world.state().open.is_empty()).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), [1]);
    });
}

#[test]
fn a_pipeline_in_backoff_does_not_wait_for_its_end() {
    run(Setup::default(), async |rig| {
        rig.world.poll(Scripted::now(Err(broken())));
        let supervision = supervise_all(rig, vec![forgiving(rig, 1, AN_HOUR)]);
        state(&supervision, State::Backoff).await;
        supervision.handle.restart(SLOT);
        runs(&supervision, 2).await;
        assert_eq!(restarts(&supervision), 1);
        // The budget of one is full again.
        rig.world.poll(Scripted::now(Err(broken())));
        state(&supervision, State::Backoff).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(status(&supervision).unwrap().state, State::Stopped);
    });
}

#[test]
fn a_budget_that_is_used_up_is_full_again_once_the_cause_is_gone_and_someone_restarts() {
    run(Setup::default(), async |rig| {
        let plan = forgiving(rig, 2, Duration::from_millis(1));
        rig.world.state().faults.entry("recover").or_default().extend((0..3).map(|_| broken()));
        let supervision = supervise_all(rig, vec![plan]);
        state(&supervision, State::Failed).await;
        assert_eq!((restarts(&supervision), rig.world.state().faults["recover"].len()), (2, 0));
        supervision.handle.restart_failed();
        runs(&supervision, 4).await;
        rig.world.state().faults.entry("recover").or_default().extend((0..2).map(|_| broken()));
        rig.world.poll(Scripted::now(Err(broken())));
        state(&supervision, State::Failed).await;
        assert_eq!(restarts(&supervision), 5, "two by the budget, one asked for, two by the budget");
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn an_opening_that_hangs_is_begun_again() {
    run(Setup::default(), async |rig| {
        let (_never, gate) = oneshot::channel();
        rig.world.state().gates.entry("recover").or_default().push_back(gate);
        let supervision = supervise(rig);
        until("the sink is being recovered", || rig.world.state().gates["recover"].is_empty()).await;
        assert_eq!(status(&supervision).unwrap().state, State::Starting);
        supervision.handle.restart(SLOT);
        runs(&supervision, 2).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn many_at_once_leave_one_generation_that_runs() {
    run(Setup::default(), async |rig| {
        let supervision = supervise(rig);
        for _ in 0..20 {
            supervision.handle.restart(SLOT);
            tokio::task::yield_now().await;
        }
        state(&supervision, State::Running).await;
        rig.world.deliver(vec![delivery(1, 1)]);
        until("it is written", || !rig.world.state().open.is_empty()).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), [1]);
    });
}

#[test]
fn a_pipeline_that_is_being_stopped_is_not_restarted() {
    run(Setup::default(), async |rig| {
        let (open, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write waits", || rig.world.state().gates["write"].is_empty()).await;
        let handle = supervision.handle.clone();
        let stopped = actix::spawn(async move { supervision.stop().await });
        until("it drains", || handle.pipelines()[0].state == State::Draining).await;
        handle.restart(SLOT);
        open.send(()).unwrap();
        assert_eq!(stopped.await.unwrap(), Stopped::Drained);
        let status = handle.pipelines().pop().unwrap();
        assert_eq!((status.state, status.generation, status.restarts), (State::Stopped, Some(1), 0));
    });
}

#[test]
fn a_drain_that_would_end_in_failed_ends_in_a_new_generation() {
    run(Setup::default(), async |rig| {
        let (open, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write waits", || rig.world.state().gates["write"].is_empty()).await;
        rig.world.poll(Scripted::now(Err(Fault::never(FaultKind::Missing, "the queue is gone"))));
        state(&supervision, State::Draining).await;
        supervision.handle.restart(SLOT);
        open.send(()).unwrap();
        runs(&supervision, 2).await;
        assert_eq!(rig.world.committed(), [1]);
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}

#[test]
fn a_poison_message_that_a_stop_comes_upon_is_named_when_all_is_at_rest() {
    run(Setup::default(), async |rig| {
        let (open, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write waits", || rig.world.state().gates["write"].is_empty()).await;
        rig.world.deliver(vec![with_body(2, 1, "poison")]);
        until("it is polled", || status(&supervision).is_some_and(|status| status.counts.received == 2)).await;
        let handle = supervision.handle.clone();
        let stopped = actix::spawn(async move { supervision.stop().await });
        until("it drains", || handle.pipelines()[0].state == State::Draining).await;
        open.send(()).unwrap();
        assert_eq!(stopped.await.unwrap(), Stopped::Drained);
        let status = handle.pipelines().pop().unwrap();
        assert_eq!(status.state, State::Stopped);
        assert!(status.last_error.as_deref().is_some_and(|reason| reason.contains("m2")), "{status:?}");
    });
}

#[test]
fn a_slot_that_no_pipeline_has_is_counted_and_a_broken_definition_is_not_started() {
    run(Setup::default(), async |rig| {
        let broken = Member { plan: Err("`mms` is no connector".to_owned()), ..member(rig.plan()) };
        let settings = settings(rig, Arc::new(|| Err("nothing".to_owned())));
        let metrics = Arc::clone(&settings.metrics);
        let supervision = start(vec![broken], settings);
        state(&supervision, State::Failed).await;
        supervision.handle.restart(SLOT);
        supervision.handle.restart_failed();
        supervision.handle.restart(Slot(7));
        let counted = || String::from_utf8(metrics.render().unwrap()).unwrap();
        until("it is counted", || counted().contains("queuewarden_restart_requests_unknown_total 1")).await;
        assert_eq!(status(&supervision).unwrap().state, State::Failed);
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
}
