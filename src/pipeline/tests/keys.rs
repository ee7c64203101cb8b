//! Primary keys: the first row of a key wins for as long as its window is, whenever a generation ends, and no row is
//! dropped for one that never comes.

use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use super::{
    all_deleted, hard,
    harness::{Rig, Scripted, Setup, delivery, run, until, with_body},
    live_through,
    service::Service,
};
use crate::{
    connector::Acknowledged,
    dedup::KeyColumns,
    definition::OnError,
    model::{Disposition, Epoch, Fingerprint, Mend},
    pipeline::Event,
    state::{Checkpoint, KeyChanges},
};

const QUICK: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(3600);

/// No checkpoint by itself; keys are remembered for longer than any test takes.
fn setup() -> Setup {
    Setup { window: Some(LONG), concurrency: 1, ..Setup::default() }
}

fn deleted(rig: &Rig) -> Vec<String> {
    let mut deleted = rig.world.state().deleted.concat();
    deleted.sort();
    deleted
}

fn dropped(rig: &Rig) -> u64 {
    rig.vitals.metrics.key_rows_dropped.get()
}

#[test]
fn the_first_row_of_a_key_wins_and_the_messages_of_the_others_are_deleted_with_their_checkpoint() {
    run(setup(), async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "7"), with_body(2, 1, "7"), with_body(3, 1, "8,7,9,8")]);
        rig.world.deliver(vec![with_body(4, 1, "9")]);
        until("all is received", || rig.vitals.metrics.received.get() == 4).await;
        until("the last is dropped", || dropped(rig) == 4).await;
        assert!(deleted(rig).is_empty(), "not before the checkpoint");
        running.drain().await;
        assert_eq!(rig.world.committed(), [7, 8, 9]);
        assert_eq!(deleted(rig), ["m1@1", "m2@1", "m3@1", "m4@1"]);
        let metrics = &rig.vitals.metrics;
        let messages = |disposition| metrics.message(disposition).get();
        assert_eq!((messages(Disposition::Rows), messages(Disposition::DuplicateKey)), (2, 2));
        assert_eq!(messages(Disposition::Duplicate), 0);
        assert_eq!((metrics.remembered_keys.get(), metrics.rows_written.get()), (3, 3));
    });
}

#[test]
fn an_epoch_of_dropped_rows_alone_is_a_checkpoint_and_its_messages_are_deleted() {
    run(Setup { interval: QUICK, ..setup() }, async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        all_deleted(rig, 1).await;
        rig.world.state().calls.clear();
        rig.world.deliver(vec![with_body(2, 1, "1")]);
        all_deleted(rig, 2).await;
        assert!(rig.world.state().calls.is_empty(), "the sink was asked for nothing");
        running.drain().await;
        assert_eq!(rig.world.committed(), [1]);
    });
}

#[test]
fn a_key_passes_again_once_its_window_is_over_which_a_duplicate_does_not_make_longer() {
    const WINDOW: Duration = Duration::from_millis(1500);
    run(Setup { window: Some(WINDOW), interval: QUICK, ..setup() }, async |rig| {
        let running = rig.open().await;
        let before = Instant::now();
        rig.world.deliver(vec![with_body(1, 1, "7")]);
        all_deleted(rig, 1).await;
        let after = Instant::now();
        // The last one well after the middle of the window: were it begun anew, it would not be over below.
        for n in 2..5 {
            until("time passes", || before.elapsed() >= WINDOW / 5 * (n - 1)).await;
            rig.world.deliver(vec![with_body(n.into(), 1, "7")]);
            all_deleted(rig, n as usize).await;
            assert!(before.elapsed() < WINDOW, "the machine is too slow for this test");
        }
        assert_eq!((rig.world.committed(), dropped(rig)), (vec![7], 3));
        until("the window is over", || after.elapsed() > WINDOW).await;
        rig.world.deliver(vec![with_body(5, 1, "7")]);
        all_deleted(rig, 5).await;
        running.drain().await;
        assert_eq!((rig.world.committed(), dropped(rig)), (vec![7, 7], 3));
    });
}

#[test]
fn a_row_whose_key_is_null_always_passes() {
    run(setup(), async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "null,5,null"), with_body(2, 1, "null,5")]);
        until("all is written", || rig.vitals.metrics.rows_written.get() == 4).await;
        running.drain().await;
        assert_eq!((rig.world.committed().len(), dropped(rig)), (4, 1));
        assert_eq!(rig.vitals.metrics.remembered_keys.get(), 1);
    });
}

#[test]
fn keys_whose_window_is_over_are_freed_also_while_nothing_comes() {
    run(Setup { window: Some(Duration::from_millis(300)), interval: QUICK, ..setup() }, async |rig| {
        let running = rig.open().await;
        for pull in 0..20 {
            rig.world.deliver((0..500).map(|n| delivery(pull * 500 + n, 1)).collect());
        }
        all_deleted(rig, 10_000).await;
        until("the window is empty", || rig.vitals.metrics.remembered_keys.get() == 0).await;
        running.drain().await;
    });
}

#[test]
fn a_key_that_is_recorded_is_known_after_a_restart_and_its_clock_goes_on() {
    run(Setup { interval: QUICK, ..setup() }, async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "7")]);
        all_deleted(rig, 1).await;
        running.cut().await;
        let running = rig.open().await;
        assert_eq!(rig.vitals.metrics.remembered_keys.get(), 1);
        rig.world.deliver(vec![with_body(2, 1, "7"), with_body(3, 1, "8")]);
        all_deleted(rig, 3).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [7, 8]);
        assert_eq!(dropped(rig), 1);
    });
}

#[test]
fn a_key_whose_epoch_was_not_recorded_passes_again_after_a_restart() {
    run(setup(), async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "7"), with_body(2, 1, "7")]);
        until("it is written", || rig.world.state().open == [7]).await;
        until("the other is dropped", || dropped(rig) == 1).await;
        running.cut().await;
        let running = rig.open().await;
        assert_eq!(rig.vitals.metrics.remembered_keys.get(), 0);
        // In another order: now the other message is the first.
        rig.world.deliver(vec![with_body(2, 2, "7")]);
        rig.world.deliver(vec![with_body(1, 2, "7")]);
        until("one is dropped", || dropped(rig) == 2).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [7]);
        assert_eq!(deleted(rig), ["m1@2", "m2@2"]);
    });
}

/// Ends a generation while a call of the sink, or the delete, is held up; then the messages come again.
async fn cut_at(rig: &Rig, call: &'static str) {
    let (_never, gate) = oneshot::channel();
    if call == "delete" {
        let answer = Ok(vec![Acknowledged::Deleted; 2]);
        rig.world.state().deletes.push_back(Scripted { gate: Some(gate), answer });
    } else {
        rig.world.state().gates.entry(call).or_default().push_back(gate);
    }
    let running = rig.open().await;
    rig.world.deliver(vec![with_body(1, 1, "7"), with_body(2, 1, "7,8")]);
    until("the call is held up", || match call {
        "delete" => !rig.world.state().deleted.is_empty(),
        call => rig.world.state().gates[call].is_empty(),
    })
    .await;
    running.cut().await;
    rig.world.state().gates.clear();
    rig.world.state().deletes.clear();
    let before = rig.world.state().deleted.concat().len();
    let running = rig.open().await;
    rig.world.deliver(vec![with_body(3, 1, "7"), with_body(2, 2, "7,8"), with_body(1, 2, "7")]);
    all_deleted(rig, before + 3).await;
    running.drain().await;
}

#[test]
fn wherever_a_generation_ends_each_key_is_committed_once_and_every_message_deleted() {
    for call in ["write", "prepare", "commit", "delete"] {
        run(Setup { interval: QUICK, ..setup() }, async |rig| {
            cut_at(rig, call).await;
            assert_eq!(rig.world.committed(), [7, 8], "{call}");
            let deleted = deleted(rig);
            assert!(["m1@2", "m2@2", "m3@1"].iter().all(|last| deleted.iter().any(|d| d == last)), "{call}");
        });
    }
}

#[test]
fn whatever_the_service_does_and_whenever_a_generation_ends_each_key_is_committed_once() {
    for seed in 0..8 {
        run(Setup { window: Some(LONG), ..hard(seed) }, async |rig| {
            // Four messages a key.
            live_through(rig, seed, Service::of_bodies(seed, 600, 150)).await;
            assert_eq!(rig.world.committed(), (0..150).collect::<Vec<_>>(), "seed {seed}");
        });
    }
}

#[test]
fn under_fail_no_message_is_deleted_whose_row_was_dropped_for_one_that_was_refused() {
    run(Setup { on_error: OnError::Fail, interval: QUICK, ..setup() }, async |rig| {
        rig.world.state().refused.push(7);
        let (go_on, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        let mut running = rig.open().await;
        // The first holds up the others, so that they are behind it in the sink-writer.
        rig.world.deliver(vec![with_body(1, 1, "7")]);
        rig.world.deliver(vec![with_body(2, 1, "7"), with_body(3, 1, "8")]);
        until("the other is dropped", || dropped(rig) == 1).await;
        go_on.send(()).unwrap();
        let Event::Fault { fault, .. } = running.event().await else { panic!("something else") };
        assert!(fault.mend == Mend::Never && fault.to_string().contains("m1"), "{fault}");
        running.cut().await;
        assert_eq!((rig.world.committed(), deleted(rig)), (vec![], vec![]));
        // Once the cause is gone the other row may be the first.
        rig.world.state().refused.clear();
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(2, 2, "7"), with_body(3, 2, "8"), with_body(1, 2, "7")]);
        all_deleted(rig, 3).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [7, 8]);
    });
}

#[test]
fn a_row_that_is_skipped_or_a_letter_has_been_seen_all_the_same() {
    for on_error in [OnError::Skip, OnError::DeadLetter] {
        run(Setup { on_error, interval: QUICK, ..setup() }, async |rig| {
            rig.world.state().refused.push(7);
            let running = rig.open().await;
            rig.world.deliver(vec![with_body(1, 1, "7")]);
            all_deleted(rig, 1).await;
            rig.world.state().refused.clear();
            rig.world.deliver(vec![with_body(2, 1, "7"), with_body(3, 1, "x")]);
            all_deleted(rig, 3).await;
            running.drain().await;
            assert_eq!(rig.world.committed(), Vec::<i64>::new());
            let letters = rig.world.state().post.committed.len();
            let kept = if on_error == OnError::DeadLetter { 2 } else { 0 };
            assert_eq!((letters, dropped(rig)), (kept, 1), "the refused row and the body, not what was dropped");
        });
    }
}

#[test]
fn without_a_primary_key_any_more_rows_pass_and_the_keys_are_given_up() {
    run(Setup { interval: QUICK, ..setup() }, async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "7")]);
        all_deleted(rig, 1).await;
        running.drain().await;
        let mut plan = rig.plan();
        let (name, source) = (plan.name.clone(), plan.source_identity.clone());
        plan.primary_key = None;
        let running = rig.try_open_with(plan).await.unwrap();
        rig.world.deliver(vec![with_body(2, 1, "7")]);
        all_deleted(rig, 2).await;
        running.drain().await;
        assert_eq!((rig.world.committed(), dropped(rig)), (vec![7, 7], 0));
        assert_eq!(rig.vitals.metrics.remembered_keys.get(), 0);
        assert!(rig.state_dir.store().open_generation(&name, &source).await.unwrap().keys.is_empty());
    });
}

fn wall_ms() -> u64 {
    u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

/// Records that the key 7 was first seen so long before the key clock said `clock_ms`, in a generation that is over.
async fn seen_before(rig: &Rig, ago: Duration, clock_ms: u64) {
    let plan = rig.plan();
    let schema = &plan.schema;
    let mut rows = crate::model::RowsBuilder::new(schema);
    rows.column_mut(0).unwrap().append(crate::model::Scalar::Int64(7)).unwrap();
    let columns = KeyColumns::new(&plan.source_identity, schema, &[0]);
    let key: Fingerprint = columns.fingerprints(&rows.finish().unwrap()).unwrap()[0].unwrap();
    let first_seen_ms = clock_ms - u64::try_from(ago.as_millis()).unwrap();
    let store = rig.state_dir.store();
    let opened = store.open_generation(&plan.name, &plan.source_identity).await.unwrap();
    let checkpoint = Checkpoint {
        pipeline: plan.name.clone(),
        generation: opened.generation,
        epoch: Epoch(1),
        positions: Default::default(),
        forgotten: Vec::new(),
        tokens: Vec::new(),
        added: Vec::new(),
        removed: Vec::new(),
        snapshot: None,
        keys: Some(KeyChanges { added: vec![(key, first_seen_ms)], clock_ms, window: LONG }),
        uptime_ms: 0,
        finished: false,
    };
    store.checkpoint(checkpoint).await.unwrap();
}

/// Whether a row of the key passes now.
async fn passes(rig: &Rig) -> bool {
    let running = rig.open().await;
    rig.world.deliver(vec![with_body(1, 1, "7")]);
    until("it is looked at", || dropped(rig) + rig.vitals.metrics.rows_written.get() == 1).await;
    running.drain().await;
    dropped(rig) == 0
}

#[test]
fn the_time_for_which_no_process_ran_is_part_of_the_window() {
    let minute = Duration::from_secs(60);
    for (down, expected) in [(LONG / 2, false), (LONG, true)] {
        run(setup(), async |rig| {
            let clock_ms = wall_ms() - u64::try_from(down.as_millis()).unwrap();
            seen_before(rig, minute, clock_ms).await;
            assert_eq!(passes(rig).await, expected, "down for {down:?}");
        });
    }
}

#[test]
fn a_wall_clock_that_went_back_meanwhile_makes_no_window_longer_than_it_was() {
    let ahead_ms = 10 * u64::try_from(LONG.as_millis()).unwrap();
    for (ago, expected) in [(LONG / 2, false), (LONG, true)] {
        run(setup(), async |rig| {
            seen_before(rig, ago, wall_ms() + ahead_ms).await;
            assert_eq!(passes(rig).await, expected, "seen {ago:?} before");
            let plan = rig.plan();
            let opened = rig.state_dir.store().open_generation(&plan.name, &plan.source_identity).await.unwrap();
            assert!(opened.key_clock_ms >= wall_ms() + ahead_ms - 60_000, "the clock does not go back");
        });
    }
}
