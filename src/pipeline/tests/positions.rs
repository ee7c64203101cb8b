//! Lanes whose position resumes: it is recorded with the rows before it, and nothing is acknowledged.

use std::{ops::Range, time::Duration};

use super::{
    harness::{Rig, Scripted, Setup, run, until, with_body},
    running::Running,
};
use crate::{
    connector::{Polled, Start},
    definition::OnError,
    model::{FaultKind, Mend, Message},
    pipeline::Event,
};

const SETUP: fn() -> Setup = || Setup { positions: true, concurrency: 1, limit: 2, ..Setup::default() };
const QUICK: Duration = Duration::from_millis(10);

/// Row `n`, or a body that is none.
fn row(n: u64, body: &str) -> Message {
    Message { receipt: None, ..with_body(n as i64, 0, body) }
}

/// The rows of a stretch of the lane, one message each.
fn stretch(range: Range<u64>) -> Polled {
    let messages = range.clone().map(|n| row(n, &n.to_string())).collect();
    Polled { messages, position: range.end, behind: None, end: false }
}

fn deliver(rig: &Rig, polled: Polled) {
    rig.world.push(Scripted::now(Ok(polled)));
}

fn rows(range: Range<i64>) -> Vec<i64> {
    range.collect()
}

/// In the order in which they were written.
fn committed(rig: &Rig) -> Vec<i64> {
    rig.world.state().committed.clone()
}

async fn all_committed(rig: &Rig, count: usize) {
    until("the rows are committed", || rig.world.state().committed.len() >= count).await;
}

async fn opened_at(rig: &Rig) -> Start {
    let before = rig.world.state().opened.len();
    let running = rig.open().await;
    until("the lane is opened", || rig.world.state().opened.len() > before).await;
    running.drain().await;
    *rig.world.state().opened.last().unwrap()
}

#[test]
fn a_restart_reads_on_behind_what_was_checkpointed_and_nothing_is_remembered_or_acknowledged() {
    run(SETUP(), async |rig| {
        let running = rig.open().await;
        deliver(rig, stretch(0..3));
        deliver(rig, stretch(3..50));
        until("all is written", || rig.world.state().open.len() == 50).await;
        running.drain().await;
        assert_eq!(committed(rig), rows(0..50));
        let metrics = &rig.vitals.metrics;
        assert_eq!((metrics.remembered.get(), metrics.unacknowledged.get()), (0, 0));
        let running = rig.open().await;
        deliver(rig, stretch(50..53));
        until("more is written", || rig.world.state().open.len() == 3).await;
        // Not checkpointed: read again.
        running.cut().await;
        assert_eq!(opened_at(rig).await, Start::Resume(50));
        assert_eq!(rig.world.state().opened, [Start::First, Start::Resume(50), Start::Resume(50)]);
        assert!(rig.world.state().deleted.is_empty());
        assert_eq!(committed(rig), rows(0..50));
    });
}

#[test]
fn a_position_is_recorded_that_moved_without_a_message_or_past_one_that_was_skipped() {
    run(Setup { on_error: OnError::Skip, ..SETUP() }, async |rig| {
        let running = rig.open().await;
        deliver(rig, Polled { messages: Vec::new(), position: 9, behind: None, end: false });
        until("it is received", || rig.vitals.metrics.polls.get() == 1).await;
        running.drain().await;
        assert_eq!(opened_at(rig).await, Start::Resume(9));
        let running = rig.open().await;
        rig.world.state().refused.push(10);
        deliver(rig, Polled { messages: vec![row(9, "x"), row(10, "10")], position: 11, behind: None, end: false });
        until("they are rejected", || rig.vitals.metrics.rejects.get() == 2).await;
        running.drain().await;
        assert_eq!(opened_at(rig).await, Start::Resume(11));
        assert!(committed(rig).is_empty());
    });
}

/// Rows 0 to 2 are checkpointed; then comes `poisoned`.
async fn poison(rig: &Rig, poisoned: Polled) {
    let running = rig.open().await;
    deliver(rig, stretch(0..3));
    until("all is written", || rig.world.state().open.len() == 3).await;
    running.drain().await;
    let mut running = rig.open().await;
    deliver(rig, stretch(3..5));
    until("it is written", || rig.world.state().open.len() == 2).await;
    deliver(rig, poisoned);
    deliver(rig, stretch(8..9));
    let Event::Fault { fault, .. } = running.event().await else { panic!("something else") };
    assert_eq!((fault.kind, fault.mend), (FaultKind::Poison, Mend::Never));
    assert!(fault.to_string().contains("m6"), "{fault}");
    running.cut().await;
    assert_eq!(opened_at(rig).await, Start::Resume(3));
    assert_eq!(committed(rig), rows(0..3));
}

#[test]
fn a_body_that_does_not_decode_discards_the_open_epoch_for_the_position_may_not_pass_it() {
    run(SETUP(), async |rig| {
        let messages = vec![row(5, "5"), row(6, "x"), row(7, "7")];
        poison(rig, Polled { messages, position: 8, behind: None, end: false }).await;
    });
}

#[test]
fn a_row_that_the_sink_refuses_discards_the_open_epoch_too() {
    run(SETUP(), async |rig| {
        rig.world.state().refused.push(6);
        poison(rig, stretch(5..8)).await;
    });
}

#[test]
fn a_lane_that_goes_back_ends_the_generation() {
    run(SETUP(), async |rig| {
        let mut running = rig.open().await;
        deliver(rig, stretch(0..3));
        deliver(rig, Polled { position: 1, ..stretch(3..4) });
        let Event::Fault { fault, .. } = running.event().await else { panic!("something else") };
        assert_eq!(fault.kind, FaultKind::Bug);
        running.cut().await;
    });
}

async fn finishes(mut running: Running) {
    assert!(matches!(running.event().await, Event::Finished));
    running.cut().await;
}

#[test]
fn at_the_end_of_its_source_a_pipeline_is_finished_for_good() {
    run(SETUP(), async |rig| {
        let running = rig.open().await;
        deliver(rig, stretch(0..3));
        deliver(rig, Polled { end: true, ..stretch(3..5) });
        finishes(running).await;
        assert_eq!(committed(rig), rows(0..5));
        let asked = || {
            let state = rig.world.state();
            (state.polled, state.opened.len())
        };
        let before = asked();
        let mut events = rig.start();
        assert!(matches!(events.next().await, Event::Numbered(_)));
        assert!(matches!(events.next().await, Event::Finished));
        assert_eq!(asked(), before);
    });
}

#[test]
fn a_source_may_end_with_nothing() {
    run(SETUP(), async |rig| {
        let running = rig.open().await;
        deliver(rig, Polled { end: true, ..stretch(0..0) });
        finishes(running).await;
    });
}

#[test]
fn a_bounded_source_that_is_drained_before_its_end_is_not_finished() {
    run(SETUP(), async |rig| {
        let running = rig.open().await;
        deliver(rig, stretch(0..3));
        until("all is written", || rig.world.state().open.len() == 3).await;
        running.drain().await;
        let running = rig.open().await;
        deliver(rig, Polled { end: true, ..stretch(3..4) });
        finishes(running).await;
        assert_eq!(committed(rig), rows(0..4));
    });
}

const ROWS: u64 = 2_000;

fn rows_from(position: u64) -> Polled {
    let next = (position + 1 + position % 9).min(ROWS);
    Polled { end: next == ROWS, ..stretch(position..next) }
}

#[test]
fn whenever_a_generation_ends_each_row_is_committed_once_and_in_order() {
    run(Setup { interval: QUICK, ..SETUP() }, async |rig| {
        rig.world.state().rows_from = Some(rows_from);
        let mut random = fastrand::Rng::with_seed(7);
        let mut cuts = 0;
        // It may have finished in the moment before it was cut off.
        while let Some(mut running) = rig.open_unless_finished().await {
            let life = Duration::from_millis(random.u64(0..120));
            let mut ended = tokio::time::timeout(life, running.event()).await.ok();
            if ended.is_none() && random.bool() {
                running.controls.drain();
                ended = Some(running.event().await);
            }
            running.cut().await;
            match ended {
                Some(Event::Finished) => break,
                Some(Event::Drained) | None => cuts += 1,
                Some(_) => panic!("something else"),
            }
        }
        assert!(cuts > 3, "{cuts} generations");
        all_committed(rig, ROWS as usize).await;
        assert_eq!(committed(rig), rows(0..ROWS as i64));
    });
}
