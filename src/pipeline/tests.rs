//! Schedules of events that a generation must survive: scripted polls, deletes, extensions and sink calls.

mod dead_letters;
mod hangs;
pub(crate) mod harness;
mod keys;
mod lanes;
pub(crate) mod log;
mod moves;
mod positions;
#[cfg(feature = "sql")]
mod queries;
mod recording;
pub(crate) mod running;
pub(crate) mod service;

use std::time::Duration;

use harness::{Rig, Scripted, Setup, delivery, run, until, with_body};

use service::Service;

use super::Event;
use crate::{
    connector::Acknowledged,
    model::{CreditLimits, Fault, FaultKind, Receipt},
};

const QUICK: Duration = Duration::from_millis(10);

async fn all_deleted(rig: &Rig, count: usize) {
    until("every message is deleted", || rig.world.state().deleted.iter().flatten().count() >= count).await;
}

#[test]
fn what_was_received_is_written_committed_and_deleted_once_at_a_drain() {
    run(Setup::default(), async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1), delivery(2, 1)]);
        rig.world.deliver(vec![delivery(3, 1), delivery(2, 2)]);
        until("all is written", || rig.world.state().open.len() == 3).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [1, 2, 3]);
        let mut deleted = rig.world.state().deleted.concat();
        deleted.sort();
        assert_eq!(deleted, ["m1@1", "m2@2", "m3@1"], "with the newest receipts");
    });
}

#[test]
fn a_limit_that_one_poll_fills_does_not_wait_for_the_interval() {
    let setup = Setup { limit: 4, concurrency: 3, ..Setup::default() };
    run(setup, async |rig| {
        let running = rig.open().await;
        for pull in 0..20 {
            rig.world.deliver((0..4).map(|n| delivery(pull * 4 + n, 1)).collect());
        }
        all_deleted(rig, 80).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), (0..80).collect::<Vec<_>>());
    });
}

#[test]
fn a_limit_filled_by_duplicates_on_their_way_is_not_the_end_of_polling() {
    let setup = Setup { limit: 2, concurrency: 1, ..Setup::default() };
    run(setup, async |rig| {
        let running = rig.open().await;
        for n in 0..20 {
            rig.world.deliver(vec![delivery(n, 1), delivery(n, 2), delivery(n, 3)]);
        }
        all_deleted(rig, 20).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn a_drain_waits_for_an_extension_and_then_deletes_with_its_receipt() {
    let setup = Setup { visibility: Duration::from_secs(3600), ..Setup::default() };
    run(setup, async |rig| {
        let extended = delivery(1, 9).receipt;
        let (answer, scripted) = Scripted::gated(Ok(extended));
        rig.world.state().extensions.push_back(scripted);
        let mut running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        until("an extension is under way", || rig.world.state().extended == 1).await;
        running.controls.drain();
        until("the row is committed", || rig.world.committed() == [1]).await;
        // Time enough for a drain that does not wait to report its end.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(running.events.try_recv().is_err(), "it is not over yet");
        answer.send(()).unwrap();
        running.drain().await;
        assert_eq!(rig.world.state().deleted, [["m1@9"]]);
    });
}

#[test]
fn an_extension_that_found_nobody_is_tried_again_while_there_is_time() {
    let setup = Setup { visibility: Duration::from_secs(3600), ..Setup::default() };
    run(setup, async |rig| {
        let throttled = Err(Fault::retry(FaultKind::Throttled, "slow down"));
        let renewed = Receipt { invisible_for: Duration::from_secs(7200), ..delivery(1, 9).receipt.unwrap() };
        rig.world.state().extensions.extend([Scripted::now(throttled), Scripted::now(Ok(Some(renewed)))]);
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        until("it is extended", || rig.vitals.metrics.extended.get() == 1).await;
        running.drain().await;
        assert_eq!(rig.world.state().deleted, [["m1@9"]]);
        assert_eq!(rig.vitals.metrics.extend_failed.get(), 1);
    });
}

#[test]
fn a_delivery_during_its_delete_is_deleted_too_and_not_written_again() {
    run(Setup { interval: QUICK, ..Setup::default() }, async |rig| {
        let (answer, scripted) = Scripted::gated(Ok(vec![Acknowledged::Unknown]));
        rig.world.state().deletes.push_back(scripted);
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        all_deleted(rig, 1).await;
        rig.world.deliver(vec![delivery(1, 2)]);
        until("the second delivery is received", || rig.vitals.metrics.received.get() == 2).await;
        answer.send(()).unwrap();
        all_deleted(rig, 2).await;
        running.drain().await;
        assert_eq!(rig.world.state().deleted, [["m1@1"], ["m1@2"]]);
        assert_eq!(rig.world.committed(), [1]);
    });
}

#[test]
fn a_redelivery_after_a_given_up_delete_and_a_restart_is_recognised_and_its_delete_recorded() {
    run(Setup { interval: QUICK, ..Setup::default() }, async |rig| {
        let refused = Err(Fault::retry(FaultKind::Service, "no"));
        rig.world.state().deletes.push_back(Scripted::now(refused));
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        all_deleted(rig, 1).await;
        running.cut().await;
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 2)]);
        all_deleted(rig, 2).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [1]);
        // The id was let go, in the store and in memory.
        assert_eq!(rig.vitals.metrics.remembered.get(), 0);
        let running = rig.open().await;
        assert_eq!(rig.vitals.metrics.remembered.get(), 0);
        running.drain().await;
    });
}

#[test]
fn a_clean_stop_leaves_no_token_that_looks_pending() {
    run(Setup { interval: QUICK, ..Setup::default() }, async |rig| {
        let plan = rig.plan();
        let stored = async || rig.state_dir.store().open_generation(&plan.name, &plan.source_identity).await.unwrap();
        // Neither delete is confirmed, so that nothing but the tokens is left to be recorded.
        for _ in 0..2 {
            rig.world.state().deletes.push_back(Scripted::now(Ok(vec![Acknowledged::Unknown])));
        }
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        all_deleted(rig, 1).await;
        running.drain().await;
        assert_eq!(stored().await.tokens, []);

        let running = rig.open().await;
        rig.world.deliver(vec![delivery(2, 1)]);
        all_deleted(rig, 2).await;
        running.cut().await;
        assert_eq!(stored().await.tokens.len(), 1, "after a cut it is not known to be committed");
        // Which a start that finds nothing to do has seen to.
        rig.open().await.drain().await;
        assert_eq!(stored().await.tokens, []);
    });
}

#[test]
fn a_copy_that_a_poll_begun_before_the_delete_brings_late_is_recognised() {
    run(Setup { interval: QUICK, ..Setup::default() }, async |rig| {
        let (answer, late) = Scripted::gated(Ok(vec![delivery(1, 2)]));
        rig.world.poll(late);
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        all_deleted(rig, 1).await;
        let epoch = rig.vitals.last_checkpoint();
        // Other messages come, go and are checkpointed meanwhile.
        for n in 2..6 {
            rig.world.deliver(vec![delivery(n, 1)]);
            all_deleted(rig, n as usize).await;
        }
        assert_ne!(rig.vitals.last_checkpoint(), epoch);
        answer.send(()).unwrap();
        until("the late copy is deleted", || rig.world.state().deleted.concat().contains(&"m1@2".to_owned())).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [1, 2, 3, 4, 5]);
    });
}

#[test]
fn what_waits_for_a_credit_is_written_before_a_drain_ends() {
    let setup = Setup { credits: CreditLimits { batches: 1, bytes: 1 << 20 }, concurrency: 3, ..Setup::default() };
    run(setup, async |rig| {
        let (go_on, gate) = tokio::sync::oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let running = rig.open().await;
        for n in 0..3 {
            rig.world.deliver(vec![delivery(n, 1)]);
        }
        until("all is received", || rig.vitals.metrics.received.get() == 3).await;
        running.controls.drain();
        go_on.send(()).unwrap();
        running.drain().await;
        assert_eq!(rig.world.committed(), [0, 1, 2]);
        assert_eq!(rig.world.state().deleted.concat().len(), 3);
    });
}

#[test]
fn poison_is_told_once_and_its_neighbours_are_finished_while_it_stays() {
    run(Setup::default(), async |rig| {
        let mut running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1), with_body(2, 1, "x"), with_body(2, 2, "x"), delivery(3, 1)]);
        let Event::Hopeless { fault, .. } = running.event().await else { panic!("something else") };
        assert!(fault.to_string().contains("m2"), "{fault}");
        running.drain().await;
        assert_eq!(rig.world.committed(), [1, 3]);
        assert_eq!(rig.world.state().deleted.concat(), ["m1@1", "m3@1"]);
    });
}

#[test]
fn tens_of_thousands_of_redeliveries_after_a_restart_are_deleted_and_forgotten() {
    const COUNT: i64 = 20_000;
    let setup = Setup { interval: Duration::from_millis(50), limit: 1_000, concurrency: 4, ..Setup::default() };
    run(setup, async |rig| {
        let running = rig.open().await;
        let pulls: Vec<Vec<i64>> = (0..COUNT).collect::<Vec<_>>().chunks(16).map(<[i64]>::to_vec).collect();
        let lost = || Scripted::now(Err(Fault::retry(FaultKind::Timeout, "no reply")));
        rig.world.state().deletes.extend((0..COUNT).map(|_| lost()));
        for pull in &pulls {
            rig.world.deliver(pull.iter().map(|n| delivery(*n, 1)).collect());
        }
        all_deleted(rig, COUNT as usize).await;
        running.drain().await;
        assert_eq!(rig.vitals.metrics.remembered.get(), COUNT);
        rig.world.state().deletes.clear();
        let running = rig.open().await;
        for pull in &pulls {
            rig.world.deliver(pull.iter().map(|n| delivery(*n, 2)).collect());
        }
        all_deleted(rig, 2 * COUNT as usize).await;
        running.drain().await;
        let running = rig.open().await;
        assert_eq!(rig.vitals.metrics.remembered.get(), 0);
        running.drain().await;
        assert_eq!(rig.world.committed(), (0..COUNT).collect::<Vec<_>>());
    });
}

/// Cuts generations off, or drains them, at moments of chance until the service has nothing left.
async fn live_through(rig: &Rig, seed: u64, service: Service) {
    let mut random = fastrand::Rng::with_seed(seed);
    rig.world.state().service = Some(service);
    let left = || rig.world.state().service.as_ref().map_or(0, |service| service.alive.len());
    let begun = std::time::Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "seed {seed}: {} messages are left", left());
        let Ok(mut running) = rig.try_open().await else { continue };
        let life = Duration::from_millis(random.u64(0..150));
        let ended = tokio::time::timeout(life, running.event()).await.is_ok();
        if !ended && random.bool() {
            running.controls.drain();
            let _drained_or_failed = running.event().await;
        }
        running.cut().await;
    }
    rig.world.state().service = None;
    let running = rig.open().await;
    running.drain().await;
}

fn hard(seed: u64) -> Setup {
    Setup {
        interval: [QUICK, Duration::from_millis(40)][seed as usize % 2],
        limit: [16, 400][seed as usize / 2 % 2],
        concurrency: 4,
        visibility: [Duration::from_millis(1), Duration::from_secs(120)][seed as usize / 4 % 2],
        credits: CreditLimits { batches: 3, bytes: 1 << 20 },
        ..Setup::default()
    }
}

#[test]
fn whatever_the_service_does_and_whenever_a_generation_ends_each_row_is_committed_once() {
    for seed in 0..8 {
        run(hard(seed), async |rig| {
            live_through(rig, seed, Service::new(seed, 600)).await;
            assert_eq!(rig.world.committed(), (0..600).collect::<Vec<_>>(), "seed {seed}");
        });
    }
}

#[test]
fn a_sink_that_cannot_recover_yet_is_waited_for() {
    run(Setup::default(), async |rig| {
        let full = Fault::retry(FaultKind::Sink, "the disk is full");
        rig.world.state().faults.entry("recover").or_default().push_back(full);
        rig.open().await.drain().await;
    });
}

#[test]
fn trouble_of_the_sink_is_not_a_hang_and_neither_is_what_follows_it() {
    let setup = Setup { interval: Duration::from_millis(200), timeout: Duration::from_millis(300), ..Setup::default() };
    run(setup, async |rig| {
        // Retried for longer than the timeout; then a second write, for which the seal waits too, takes a while.
        let full = Fault::retry(FaultKind::Sink, "the disk is full");
        rig.world.state().faults.entry("write").or_default().push_back(full);
        let mut running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the write is retried", || !rig.vitals.troubles().is_empty()).await;
        let (go_on, gate) = tokio::sync::oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let (second, gate) = tokio::sync::oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        rig.world.deliver(vec![delivery(2, 1)]);
        until("the retry is under way", || rig.world.state().gates["write"].len() == 1).await;
        go_on.send(()).unwrap();
        until("the second write is under way", || rig.world.state().gates["write"].is_empty()).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        second.send(()).unwrap();
        all_deleted(rig, 2).await;
        assert!(running.events.try_recv().is_ok_and(|event| matches!(event, Event::HealthChanged)));
        running.drain().await;
    });
}

#[test]
fn a_sink_that_hangs_is_noticed_also_while_polls_fail() {
    let setup = Setup { interval: QUICK, timeout: Duration::from_millis(300), concurrency: 2, ..Setup::default() };
    run(setup, async |rig| {
        let (_never, gate) = tokio::sync::oneshot::channel();
        rig.world.state().gates.entry("commit").or_default().push_back(gate);
        let mut running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        until("the commit hangs", || rig.world.state().gates["commit"].is_empty()).await;
        for _ in 0..20 {
            rig.world.poll(Scripted::now(Err(Fault::retry(FaultKind::Network, "cannot connect"))));
        }
        let Event::Fault { fault, .. } = running.event().await else { panic!("something else") };
        assert_eq!(fault.kind, FaultKind::Hung);
        running.cut().await;
    });
}
