//! What becomes of pipelines when they are stopped or fail at awkward moments.

mod lanes;
mod reloads;
mod restarts;

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::{Hangs, Load, Member, PipelineStatus, Settings, State, Stopped, Supervision, start};
use crate::{
    connectors::Plan,
    model::{Fault, FaultKind},
    pipeline::tests::harness::{Rig, Scripted, Setup, delivery, run, until},
    telemetry::Metrics,
};

fn supervise(rig: &Rig) -> Supervision {
    supervise_all(rig, vec![rig.plan()])
}

fn supervise_all(rig: &Rig, plans: Vec<Plan>) -> Supervision {
    let members = plans.into_iter().map(member).collect();
    start(members, settings(rig, Arc::new(|| Err("nothing is reloaded here".to_owned()))))
}

fn member(plan: Plan) -> Member {
    Member { name: plan.name.clone(), file: format!("{}.yaml", plan.name), plan: Ok(plan) }
}

fn settings(rig: &Rig, load: Load) -> Settings {
    Settings {
        load,
        threads: 1,
        hangs: Hangs::default(),
        shutdown_deadline: Duration::from_secs(10),
        store: rig.state_dir.store(),
        incarnation: rig.state_dir.incarnation().to_owned(),
        metrics: Arc::new(Metrics::new().unwrap()),
    }
}

fn status(supervision: &Supervision) -> Option<PipelineStatus> {
    supervision.handle.pipelines().pop()
}

async fn state(supervision: &Supervision, state: State) {
    until(state.name(), || status(supervision).is_some_and(|status| status.state == state)).await;
}

/// Running, as this generation.
async fn runs(supervision: &Supervision, generation: u64) {
    let is_so = |status: PipelineStatus| (status.state, status.generation) == (State::Running, Some(generation));
    until("it runs", || status(supervision).is_some_and(is_so)).await;
}

fn restarts(supervision: &Supervision) -> u64 {
    status(supervision).unwrap().restarts
}

#[test]
fn a_stop_may_take_as_long_as_the_shutdown_deadline_says_whatever_the_checkpoint_timeout() {
    // Two retries take a second and a half at least; a slow disk alone must not take the timeout.
    run(Setup { timeout: Duration::from_millis(1400), ..Setup::default() }, async |rig| {
        let full = || Fault::retry(FaultKind::Sink, "the disk is full");
        rig.world.state().faults.entry("write").or_default().extend([full(), full()]);
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1)]);
        state(&supervision, State::Degraded).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), [1]);
        assert_eq!(rig.world.state().deleted, [["m1@1"]]);
        assert_eq!(status(&supervision).map(|status| status.state), Some(State::Stopped));
    });
}

#[test]
fn a_stop_while_a_generation_is_being_opened_waits_for_nothing() {
    run(Setup::default(), async |rig| {
        let (_never, gate) = oneshot::channel();
        rig.world.state().gates.entry("recover").or_default().push_back(gate);
        let supervision = supervise(rig);
        until("the sink is being recovered", || rig.world.state().gates["recover"].is_empty()).await;
        let stopped = tokio::time::timeout(Duration::from_secs(5), supervision.stop()).await;
        assert_eq!(stopped, Ok(Stopped::Drained));
        assert_eq!(status(&supervision).map(|status| status.state), Some(State::Stopped));
    });
}

#[test]
fn a_fault_that_ends_an_actor_is_told_as_that_fault_and_not_as_an_actor_that_ended_by_itself() {
    for _ in 0..20 {
        run(Setup::default(), async |rig| {
            let gone = Fault::never(FaultKind::Missing, "the queue is gone");
            rig.world.poll(Scripted::now(Err(gone)));
            let supervision = supervise(rig);
            state(&supervision, State::Failed).await;
            let reason = status(&supervision).and_then(|status| status.last_error);
            assert_eq!(reason.as_deref(), Some("poller: the queue is gone"));
            assert_eq!(supervision.stop().await, Stopped::Drained);
            assert_eq!(status(&supervision).map(|status| status.state), Some(State::Failed));
        });
    }
}

#[test]
fn a_sink_that_panics_when_it_is_dropped_hides_no_fault_and_keeps_no_generation_from_beginning() {
    run(Setup { restarts: 1, ..Setup::default() }, async |rig| {
        let broken = Fault::restart(FaultKind::Sink, "the sink is broken");
        rig.world.state().faults.entry("write").or_default().push_back(broken);
        rig.world.state().panics_when_dropped = true;
        let supervision = supervise(rig);
        rig.world.deliver(vec![delivery(1, 1)]);
        runs(&supervision, 2).await;
        assert!(!rig.world.state().panics_when_dropped);
        let reason = status(&supervision).and_then(|status| status.last_error);
        assert_eq!(reason.as_deref(), Some("sink-writer: the sink is broken"));
        rig.world.deliver(vec![delivery(1, 2)]);
        until("it is written", || rig.world.state().open.contains(&1)).await;
        assert_eq!(supervision.stop().await, Stopped::Drained);
        assert_eq!(rig.world.committed(), [1]);
    });
}
