//! Panics of every actor, in every kind of place: one pipeline starts over from its checkpoint, and its neighbour on
//! the same thread does not notice.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]
#![cfg(feature = "failpoints")]

mod common;

use std::{fs, path::Path};

use common::{
    EmulatorProcess, Place, SOON, Supervisor,
    numbers::{bodies, numbers, one_to, send},
    rows::{assert_each_once_and_in_order, definition},
    until,
};
use serde_json::Value;

const REST: &str = "checkpoint: { interval: 100ms }\nrestart: { max: 5, within: 60s, backoff: 100ms..200ms }";
/// The emulator hands on in the order in which it was sent, as long as one receive is under way at a time.
const ROUND: u32 = 100;

fn round(number: u32) -> Vec<String> {
    one_to(ROUND * (number + 1)).split_off((ROUND * number) as usize)
}

/// What was written, in the order in which it was: files by epoch, then lines.
fn in_order(out: &Path) -> Vec<String> {
    let mut files: Vec<(Vec<u64>, String)> = fs::read_dir(out)
        .expect("the folder")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned();
            let numbers = name.split('-').skip(2).map(|number| number.parse().expect("a number")).collect();
            (numbers, fs::read_to_string(path).expect("readable"))
        })
        .collect();
    files.sort();
    files.iter().flat_map(|(_, text)| text.lines().map(str::to_owned)).collect()
}

/// Each line is one JSON object; answers those that tell of a panic.
fn panics(supervisor: &Supervisor) -> Vec<Value> {
    let log = supervisor.log();
    let lines =
        log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}, in {log}")));
    lines.filter(|line| line["message"].as_str().is_some_and(|text| text.starts_with("panicked: "))).collect()
}

/// `bad` panics at a place, after it was passed some times; `good` shares its thread.
fn survives(at: &str, passed: u32, actor: &str) {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let (bad, good) = (place.path("bad-out"), place.path("good-out"));
    for (name, out) in [("bad", &bad), ("good", &good)] {
        send(&emulator.endpoint, name, 2, &bodies(&round(0)));
        place.define(name, &numbers(&emulator.endpoint, name, out, REST).replace("30s", "1s"));
    }
    let mut command = place.run_command();
    command.args(["--threads", "1"]).env("QUEUEWARDEN_FAIL_PIPELINE", "bad");
    let before = if passed == 0 { String::new() } else { format!("{passed}*off->") };
    command.env("FAILPOINTS", format!("{at}={before}1*panic(on purpose)->off"));
    let mut supervisor = place.started(command);
    let empty = || (emulator.left("bad") + emulator.left("good") == 0).then_some(());
    until(SOON, &format!("{at}: everything is deleted"), empty);
    for (number, name) in [(1, "bad"), (1, "good")] {
        send(&emulator.endpoint, name, 2, &bodies(&round(number)));
    }
    until(SOON, &format!("{at}: everything is deleted again"), empty);

    let status = supervisor.wait_for_state("bad", "running");
    let reason = status["last_error"].as_str().unwrap_or_default();
    assert!(reason.starts_with(&format!("{actor}: ")) && reason.contains("on purpose"), "{at}: {status}");
    assert_eq!(status["restarts"], 1, "{at}: {status}");
    let neighbour = supervisor.pipeline("good").expect("it answers");
    assert_eq!((&neighbour["generation"], &neighbour["state"]), (&Value::from(1), &Value::from("running")), "{at}");
    assert_eq!(neighbour["last_error"], Value::Null, "{at}");
    assert_eq!(supervisor.stop(), 0, "{at}");
    assert_eq!(in_order(&good), one_to(2 * ROUND), "{at}: the neighbour's order");
    let mut written = in_order(&bad);
    written.sort();
    let mut sent = one_to(2 * ROUND);
    sent.sort();
    assert_eq!(written, sent, "{at}: nothing is lost, and nothing twice");

    let told = panics(&supervisor);
    assert_eq!(told.len(), 1, "{at}: {told:?}");
    assert_eq!((&told[0]["pipeline"], &told[0]["actor"]), (&Value::from("bad"), &Value::from(actor)), "{told:?}");
    assert!(told[0]["location"].as_str().is_some_and(|place| place.contains(".rs:")), "{told:?}");
}

#[test]
fn while_a_generation_is_being_opened() {
    survives("start.numbered", 0, "start");
}

#[test]
fn of_the_poller_in_a_call_in_what_follows_it_and_in_a_handler() {
    survives("poller.poll", 2, "poller");
    survives("poller.polled", 2, "poller");
    survives("poller.acknowledge", 1, "poller");
}

/// As [`survives`], where the rows come from a lane with a position.
fn survives_of_a_lane(at: &str, passed: u32, actor: &str, says: &str) {
    const ROWS: u64 = 4_000;
    let mut place = Place::new();
    let (bad, good) = (place.path("bad-out"), place.path("good-out"));
    place.define("bad", &definition(ROWS, 4_000, &bad).replace("interval: 50ms", "interval: 100ms"));
    place.define("good", &definition(ROWS, 4_000, &good));
    let mut command = place.run_command();
    command.args(["--threads", "1"]).env("QUEUEWARDEN_FAIL_PIPELINE", "bad");
    let before = if passed == 0 { String::new() } else { format!("{passed}*off->") };
    command.env("FAILPOINTS", format!("{at}={before}1*panic(on purpose)->off"));
    let mut supervisor = place.started(command);
    let status = supervisor.wait_for_state("bad", "finished");
    let reason = status["last_error"].as_str().unwrap_or_default();
    assert_eq!(reason, format!("{actor}: {says} panicked: on purpose"), "{at}");
    assert_eq!(status["restarts"], 1, "{at}: {status}");
    let neighbour = supervisor.wait_for_state("good", "finished");
    assert_eq!((&neighbour["generation"], &neighbour["last_error"]), (&Value::from(1), &Value::Null), "{at}");
    assert_eq!(supervisor.stop(), 0, "{at}");
    assert_each_once_and_in_order(&bad, ROWS);
    assert_each_once_and_in_order(&good, ROWS);

    let told = panics(&supervisor);
    assert_eq!(told.len(), 1, "{at}: {told:?}");
    assert_eq!((&told[0]["pipeline"], &told[0]["actor"]), (&Value::from("bad"), &Value::from(actor)), "{told:?}");
    if actor == "reader" {
        assert_eq!(told[0]["lane"], "rows", "{told:?}");
    }
}

#[test]
fn of_a_reader_in_a_call_and_in_what_follows_it_with_its_lane() {
    survives_of_a_lane("reader.poll", 2, "reader", "reader of lane rows");
    survives_of_a_lane("reader.polled", 2, "reader", "reader of lane rows");
}

#[test]
fn of_the_enumerator_with_a_lane_begun_that_is_not_recorded() {
    survives_of_a_lane("enumerator.begun", 0, "enumerator", "enumerator");
}

#[test]
fn of_the_decoder_in_a_handler() {
    survives("decoder.process", 2, "decoder");
}

#[test]
fn of_the_dedup_keeper_in_a_handler() {
    survives("dedup.rows", 2, "dedup-keeper");
}

#[test]
fn of_the_sink_writer_in_a_handler_and_in_a_call() {
    survives("sink.rows", 2, "sink-writer");
    survives("sink.write", 2, "sink-writer");
    survives("sink.before_prepare", 1, "sink-writer");
    survives("sink.after_commit", 1, "sink-writer");
}

#[test]
fn of_the_sink_writer_in_blocking_work() {
    survives("fs.before_prepare", 1, "sink-writer");
    survives("fs.before_rename", 0, "sink-writer");
}

#[test]
fn of_the_checkpointer_in_a_handler_and_in_a_call() {
    survives("checkpoint.before_acknowledge", 1, "checkpointer");
    survives("checkpoint.before_store", 1, "checkpointer");
    survives("checkpoint.after_store", 0, "checkpointer");
}

#[test]
fn of_what_supervises_a_pipeline_the_process_ends_with_its_own_code_and_names_the_pipeline() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), REST));
    let mut supervisor = place.run_with(&[("FAILPOINTS", "supervisor.report=1*off->panic(on purpose)")]);
    assert_eq!(supervisor.process.wait(SOON).code(), Some(70));
    let log = supervisor.log();
    assert!(log.contains("the supervision of pipeline q panicked: on purpose"), "{log}");
    assert_eq!(panics(&supervisor).len(), 1, "{log}");
}
