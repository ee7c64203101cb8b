//! Calls that never answer: each ends its generation after its deadline, and is named.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{
    harness::{Rig, Scripted, Setup, delivery, run, until},
    running::Running,
};
use crate::{
    model::{Fault, FaultKind},
    pipeline::Event,
};

/// Not so short that a slow disk, which the store waits for, would be told instead.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Only what is named here is given time to hang; and no checkpoint runs by itself.
const SETUP: fn() -> Setup = || Setup { timeout: TIMEOUT, ..Setup::default() };

async fn told(mut running: Running, actor: &str, operation: &str) {
    let event = running.event().await;
    let Event::Fault { actor: to_blame, fault } = event else { panic!("something else than a fault") };
    is_named(&fault, operation);
    assert_eq!(to_blame, actor);
    running.cut().await;
}

fn is_named(fault: &Fault, operation: &str) {
    assert_eq!(fault.kind, FaultKind::Hung, "{fault}");
    assert!(fault.to_string().starts_with(&format!("{operation} hangs: no answer within ")), "{fault}");
}

/// Holds up the next call of this name for as long as the answer lives.
fn hold(rig: &Rig, call: &'static str) -> oneshot::Sender<()> {
    let (never, gate) = oneshot::channel();
    rig.world.state().gates.entry(call).or_default().push_back(gate);
    never
}

#[test]
fn a_poll_that_hangs_is_told_once_it_takes_longer_than_polls_wait() {
    let setup = Setup { patience: Duration::from_millis(300), ..SETUP() };
    run(setup, async |rig| {
        let (answer, scripted) = Scripted::gated(Ok(Vec::new()));
        rig.world.poll(scripted);
        let running = rig.open().await;
        told(running, "poller", "poll").await;
        drop(answer);
    });
}

#[test]
fn a_write_that_hangs_is_told_however_far_away_the_next_checkpoint_is() {
    run(SETUP(), async |rig| {
        let _never = hold(rig, "write");
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        told(running, "sink-writer", "write").await;
    });
}

#[test]
fn a_prepare_or_commit_that_hangs_is_told() {
    for call in ["prepare", "commit"] {
        run(Setup { interval: Duration::from_millis(10), ..SETUP() }, async |rig| {
            let _never = hold(rig, call);
            let mut running = rig.open().await;
            rig.world.deliver(vec![delivery(1, 1)]);
            let Event::Fault { fault, .. } = running.event().await else { panic!("something else than a fault") };
            // By the call itself, or by the checkpoint that makes no progress for as long.
            assert!(fault.kind == FaultKind::Hung && fault.to_string().contains(call), "{fault}");
            running.cut().await;
        });
    }
}

#[test]
fn a_delete_that_hangs_is_told_and_not_counted_as_given_up() {
    run(Setup { interval: Duration::from_millis(10), ..SETUP() }, async |rig| {
        let (never, scripted) = Scripted::gated(Ok(Vec::new()));
        rig.world.state().deletes.push_back(scripted);
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        told(running, "poller", "acknowledge").await;
        assert_eq!(rig.vitals.metrics.delete_failed.get(), 0);
        drop(never);
    });
}

#[test]
fn an_extension_that_hangs_is_told() {
    run(Setup { visibility: Duration::from_secs(3600), ..SETUP() }, async |rig| {
        let (never, scripted) = Scripted::gated(Ok(None));
        rig.world.state().extensions.push_back(scripted);
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        told(running, "poller", "extend").await;
        drop(never);
    });
}

#[test]
fn an_opening_that_hangs_is_told() {
    for call in ["recover", "open"] {
        run(SETUP(), async |rig| {
            let _never = hold(rig, call);
            let fault = rig.try_open().await.err().expect("it does not open");
            is_named(&fault, call);
        });
    }
}

#[test]
fn a_call_that_fails_and_is_tried_again_has_the_whole_deadline_each_time() {
    run(SETUP(), async |rig| {
        let full = || Fault::retry(FaultKind::Sink, "the disk is full");
        rig.world.state().faults.entry("write").or_default().extend([full(), full()]);
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        // The pauses before the second and the third try are longer than the deadline.
        until("it is written", || rig.world.state().open == [1]).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [1]);
    });
}
