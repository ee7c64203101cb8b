//! Killed at every named place between two steps of a checkpoint, and of a rename: nothing lost, nothing twice.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]
#![cfg(feature = "failpoints")]

mod common;

use common::{
    EmulatorProcess, Place, Process, SOON, assert_exactly_once,
    rows::{assert_each_once_and_in_order, definition, rows},
    traffic, traffic_definition, until,
};

/// In the order in which a checkpoint passes them.
const PLACES: [&str; 18] = [
    "poller.polled",
    "decoder.process",
    "dedup.rows",
    "sink.write",
    "sink.before_prepare",
    "fs.before_prepare",
    "fs.after_prepare",
    "sink.after_prepare",
    "checkpoint.before_store",
    "store.before_apply",
    "store.after_apply",
    "store.after_flush",
    "store.after_sync",
    "checkpoint.after_store",
    "fs.before_rename",
    "fs.after_renames",
    "checkpoint.before_acknowledge",
    "poller.acknowledge",
];

/// Places that are passed only where one checkpoint has several files.
const PLACES_OF_SEVERAL_FILES: [&str; 4] =
    ["fs.between_prepares", "fs.after_prepare", "fs.between_renames", "fs.after_renames"];

#[test]
fn killed_at_every_place_of_a_checkpoint_nothing_is_lost_and_nothing_repeated() {
    killed_at(&PLACES, "checkpoint: { interval: 200ms }");
}

#[test]
fn killed_between_the_files_of_one_checkpoint_nothing_is_lost_and_nothing_repeated() {
    killed_at(&PLACES_OF_SEVERAL_FILES, "  sink.rolling-policy.file-size: 1kb\ncheckpoint: { interval: 200ms }");
}

/// In the order in which rows pass them that come from a lane with a position.
const PLACES_OF_A_LANE: [&str; 7] = [
    "enumerator.begun",
    "reader.poll",
    "reader.polled",
    "sink.after_prepare",
    "checkpoint.before_store",
    "checkpoint.after_store",
    "checkpoint.before_acknowledge",
];

#[test]
fn killed_at_every_place_that_rows_of_a_lane_pass_none_is_lost_and_none_repeated() {
    const ROWS: u64 = 40_000;
    let mut place = Place::new();
    let out = place.path("out");
    place.define("p", &definition(ROWS, 20_000, &out));
    let mut killed = 0;
    for (times, at) in (1..=2).flat_map(|times| PLACES_OF_A_LANE.iter().map(move |at| (times, *at))) {
        let mut command = place.run_command();
        command.arg("--exit-when-finished").env("QUEUEWARDEN_KILL_AT", format!("{at}={times}"));
        let status = Process(command.spawn().expect("it starts")).wait(SOON * 2);
        // A lane begins once; where that was recorded it does not begin again.
        killed += u32::from(status.code().is_none());
        if times == 1 && rows(&out).len() < ROWS as usize {
            assert_eq!(status.code(), None, "{at}: it ended by a signal");
        }
    }
    assert!(killed >= 7, "killed {killed} times");
    let mut command = place.run_command();
    let status = Process(command.arg("--exit-when-finished").spawn().expect("it starts")).wait(SOON * 2);
    assert_eq!(status.code(), Some(0));
    assert_each_once_and_in_order(&out, ROWS);
}

/// Kills at each place, the first and the second time it is reached. `rest`: the end of the sink's section, and what
/// comes after it.
fn killed_at(places: &[&str], rest: &str) {
    let emulator = EmulatorProcess::start(&["--fault", "duplicate-in-flight=0.1"]);
    let mut place = Place::new();
    let out = place.path("out");
    traffic(&["create", &emulator.endpoint, "q", "2"]);
    place.define("q", &traffic_definition(&emulator.endpoint, "q", &out, rest));
    let mut sent = 0;
    let mut send = |count: u64| {
        traffic(&["send", &emulator.endpoint, "q", &sent.to_string(), &count.to_string()]);
        sent += count;
        sent
    };
    let mut total = 0;
    for (round, at) in (1..=2).flat_map(|times| places.iter().map(move |at| (times, *at))) {
        // The first time a place is reached nothing is checkpointed yet; the second time something is.
        total = send(40);
        let mut command = place.run_command();
        command.env("QUEUEWARDEN_KILL_AT", format!("{at}={round}"));
        let mut process = Process(command.spawn().expect("it starts"));
        let status = until(SOON, &format!("it is killed at {at}"), || {
            let status = process.0.try_wait().expect("it can be waited for");
            // Where all was acknowledged before the place was reached often enough, more rows are needed.
            if status.is_none() && emulator.left("q") == 0 {
                total = send(20);
            }
            status
        });
        assert_eq!(status.code(), None, "{at}: it ended by a signal");
        let report = emulator.queue("q");
        println!(
            "killed at {at}, time {round}: {} messages in flight, {} waiting",
            report["inactive"], report["active"]
        );
        if at == "checkpoint.after_store" || at == "fs.after_prepare" {
            // Down for longer than any window: everything in flight has become visible again.
            until(SOON, "every delivery ran out", || (emulator.count("q", "inactive") == 0).then_some(()));
        }
    }
    let mut supervisor = place.run();
    until(SOON * 2, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    assert_exactly_once(&out, total);
}
