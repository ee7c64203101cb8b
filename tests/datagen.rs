//! Rows that are made up, from the binary to files: each once and in order, whoever is killed; and an end.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    fs,
    time::{Duration, Instant},
};

use common::{
    Place, Process, SOON, Supervisor,
    rows::{assert_each_once_and_in_order, definition, rows},
    until,
};
use serde_json::Value;

/// Runs until every pipeline is finished.
fn finish(place: &mut Place) {
    let mut command = place.run_command();
    command.arg("--exit-when-finished");
    let mut process = Process(command.spawn().expect("it starts"));
    assert_eq!(process.wait(SOON * 2).code(), Some(0));
}

#[test]
fn each_row_is_written_once_and_in_order_however_often_and_whenever_the_process_is_killed() {
    const ROWS: u64 = 60_000;
    let mut place = Place::new();
    let (out, undisturbed) = (place.path("out"), place.path("undisturbed"));
    place.define("p", &definition(ROWS, 10_000, &out));
    let mut random = fastrand::Rng::with_seed(11);
    let mut ends = 0;
    for round in 0..8 {
        let before = rows(&out).len();
        let mut supervisor = place.run();
        let goes_on = |now: usize| now > before || now as u64 == ROWS;
        until(SOON, "it goes on", || goes_on(rows(&out).len()).then_some(()));
        std::thread::park_timeout(Duration::from_millis(random.u64(0..120)));
        if round % 4 == 3 {
            assert_eq!(supervisor.stop(), 0);
        } else {
            supervisor.process.kill_9();
        }
        ends += u64::from((rows(&out).len() as u64) < ROWS);
    }
    assert!(ends >= 4, "it was ended {ends} times before its end");
    finish(&mut place);
    let written = assert_each_once_and_in_order(&out, ROWS);
    // The rows are those that would have come without any of it.
    fs::remove_file(place.path("pipelines").join("p.yaml")).unwrap();
    place.define("q", &definition(ROWS, 1_000_000, &undisturbed));
    finish(&mut place);
    let again = assert_each_once_and_in_order(&undisturbed, ROWS);
    assert!(written.iter().zip(&again).all(|(one, other)| one["text"] == other["text"]));
}

#[test]
fn a_pipeline_at_its_end_is_finished_and_stays_so() {
    let mut place = Place::new();
    let out = place.path("out");
    place.define("p", &definition(1_000, 100_000, &out));
    let mut supervisor = place.run();
    let status = supervisor.wait_for_state("p", "finished");
    assert_each_once_and_in_order(&out, 1_000);
    assert_eq!(status["last_error"], Value::Null);
    assert_eq!(common::get(&supervisor.address, "/readyz").expect("an answer").0, 200);
    assert_eq!(supervisor.stop(), 0);
    // Also with more rows to be had: that it is over has been recorded.
    place.define("p", &definition(2_000, 100_000, &out));
    finish(&mut place);
    assert_each_once_and_in_order(&out, 1_000);
}

#[test]
fn a_poll_that_waits_a_second_for_its_row_does_not_hang() {
    let mut place = Place::new();
    let out = place.path("out");
    let text = definition(3, 1, &out);
    place.define("p", &text.replace("interval: 50ms", "interval: 50ms, timeout: 100ms"));
    let mut supervisor = place.run();
    let status = supervisor.wait_for_state("p", "finished");
    assert_eq!((&status["generation"], &status["restarts"]), (&1.into(), &0.into()), "{}", supervisor.log());
    assert_each_once_and_in_order(&out, 3);
    assert_eq!(supervisor.stop(), 0);
}

fn written(supervisor: &Supervisor, name: &str) -> u64 {
    supervisor.pipeline(name).and_then(|status| status["counts"]["rows_written"].as_u64()).unwrap_or(0)
}

#[test]
fn a_source_without_end_as_fast_as_it_goes_neither_grows_nor_starves_its_neighbour() {
    let mut place = Place::new();
    let out = place.path("out");
    place.define(
        "fast",
        "source: { connector: datagen, rows-per-second: 1000000000, schema: { a: BIGINT, b: DOUBLE } }\n\
         sink: { connector: blackhole }\ncheckpoint: { interval: 50ms, max_unacknowledged: 1 }\n",
    );
    place.define("slow", &definition(200, 100, &out));
    let mut command = place.run_command();
    command.args(["--threads", "1"]);
    let mut supervisor = place.started(command);
    let begun = Instant::now();
    supervisor.wait_for_state("slow", "finished");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(15), "the neighbour took {took:?} for two seconds' work");
    assert_each_once_and_in_order(&out, 200);
    println!("{} rows in {took:?}", written(&supervisor, "fast"));
    assert!(written(&supervisor, "fast") > 100_000, "far more than one checkpoint's worth of messages");
    let status = supervisor.wait_for_state("fast", "running");
    assert_eq!((&status["counts"]["unacknowledged"], &status["counts"]["deleted"]), (&0.into(), &0.into()));
    let metrics = common::get(&supervisor.address, "/metrics").expect("metrics").1;
    let remembered = "queuewarden_dedup_remembered_ids{pipeline=\"fast\"} 0";
    assert!(metrics.contains(remembered), "it remembers ids");
    assert_eq!(supervisor.stop(), 0);
}
