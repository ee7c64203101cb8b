//! Calls that never answer, and threads that are blocked: noticed within a deadline, named, and the neighbours go on.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]
#![cfg(feature = "failpoints")]

mod common;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use common::{
    EmulatorProcess, Place, SOON, Supervisor, get,
    numbers::{bodies, lines, numbers, one_to, send},
    until,
};
use serde_json::Value;

const RESTART: &str = "restart: { max: 5, within: 60s, backoff: 100ms..200ms }";
/// For longer than any test takes.
const FOR_EVER: &str = "sleep(600000)";

/// An emulator, and pipelines on one thread that reads two queues; `bad` is the one that fail points act on.
struct Scene {
    emulator: EmulatorProcess,
    place: Place,
}

impl Scene {
    fn new(rest: &str) -> Self {
        let (emulator, place) = (EmulatorProcess::start(&[]), Place::new());
        for name in ["bad", "good"] {
            send(&emulator.endpoint, name, 2, &bodies(&one_to(40)));
            let definition = numbers(&emulator.endpoint, name, &place.path(&format!("{name}-out")), rest);
            place.define(name, &definition.replace("30s", "1s"));
        }
        Self { emulator, place }
    }

    fn command(&mut self, fail: &str, arguments: &[&str]) -> Command {
        let mut command = self.place.run_command();
        command.args(["--threads", "1"]).args(arguments);
        command.env("QUEUEWARDEN_FAIL_PIPELINE", "bad").env("FAILPOINTS", fail);
        command
    }

    fn run(&mut self, fail: &str, arguments: &[&str]) -> Supervisor {
        let command = self.command(fail, arguments);
        self.place.started(command)
    }

    fn is_empty(&self, queue: &str) {
        until(SOON, &format!("{queue} is empty"), || (self.emulator.left(queue) == 0).then_some(()));
    }

    fn assert_once(&self, name: &str) {
        let mut expected = one_to(40);
        expected.sort();
        assert_eq!(lines(&self.place.path(&format!("{name}-out"))), expected, "{name}");
    }
}

fn last_error(supervisor: &Supervisor, name: &str) -> Option<String> {
    supervisor.pipeline(name)?["last_error"].as_str().map(str::to_owned)
}

fn metric(supervisor: &Supervisor, name: &str) -> f64 {
    let (_, text) = get(&supervisor.address, "/metrics").expect("it answers");
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("no {name}"));
    line.rsplit(' ').next().expect("a value").parse().expect("a number")
}

/// A call of `bad` never answers; its neighbour goes on in its generation, and everything is written once.
fn noticed(operation: &str, passed: u32, actor: &str, within: Duration) {
    let mut scene = Scene::new(&format!("checkpoint: {{ interval: 100ms, timeout: 2s }}\n{RESTART}"));
    let before = if passed == 0 { String::new() } else { format!("{passed}*off->") };
    let fail = format!("hang.{}={before}1*return->off", operation.replace(' ', "-"));
    let begun = Instant::now();
    let mut supervisor = scene.run(&fail, &[]);
    let reason = until(within, &format!("{operation} is noticed"), || last_error(&supervisor, "bad"));
    assert!(reason.contains(operation), "{operation}: {reason}");
    assert!(reason.starts_with(&format!("{actor}: ")) || reason.starts_with("checkpointer: "), "{operation}: {reason}");
    println!("{operation}: {reason} (after {:?})", begun.elapsed());
    scene.is_empty("bad");
    scene.is_empty("good");
    let neighbour = supervisor.pipeline("good").expect("it answers");
    assert_eq!((&neighbour["generation"], &neighbour["state"]), (&Value::from(1), &Value::from("running")));
    assert_eq!(supervisor.pipeline("bad").expect("it answers")["restarts"], 1, "{operation}");
    assert_eq!(supervisor.stop(), 0, "{operation}");
    scene.assert_once("bad");
    scene.assert_once("good");
}

#[test]
fn a_write_a_prepare_or_a_commit_that_hangs_is_noticed_and_named() {
    noticed("write", 1, "sink-writer", SOON);
    noticed("prepare", 0, "sink-writer", SOON);
    noticed("commit", 0, "sink-writer", SOON);
}

#[test]
fn an_opening_that_hangs_is_noticed_and_named() {
    noticed("recover", 0, "start", SOON);
    noticed("open", 0, "start", SOON);
    noticed("the state store", 0, "start", SOON);
}

#[test]
fn a_delete_or_a_record_that_hangs_is_noticed_and_named() {
    noticed("acknowledge", 0, "poller", SOON);
    noticed("the state store", 1, "checkpointer", SOON);
}

#[test]
fn a_poll_that_hangs_is_noticed_once_its_http_timeout_has_passed() {
    noticed("poll", 1, "poller", SOON);
}

#[test]
fn a_blocked_thread_is_given_up_and_its_pipelines_go_on_on_another() {
    let mut scene = Scene::new(&format!("checkpoint: {{ interval: 100ms }}\n{RESTART}"));
    let mut supervisor = scene.run(&format!("decoder.process=1*off->1*{FOR_EVER}->off"), &["--hang-deadline", "1"]);
    // Actors that cannot end are not waited for, or it would take ten seconds more.
    let bad = until(Duration::from_secs(9), "the hang is noticed", || last_error(&supervisor, "bad"));
    assert_eq!(bad, "decoder: blocked its thread for more than 1s");
    let good = until(SOON, "the neighbour says why it moved", || last_error(&supervisor, "good"));
    assert_eq!(good, "thread: its thread was blocked for more than 1s by pipeline bad (decoder)");
    for name in ["bad", "good"] {
        let run = || supervisor.pipeline(name).filter(|status| status["state"] == "running" && status["restarts"] == 1);
        until(Duration::from_secs(5), "it runs on another thread", run);
    }
    scene.is_empty("bad");
    scene.is_empty("good");
    for name in ["bad", "good"] {
        let status = supervisor.wait_for_state(name, "running");
        assert_eq!(status["restarts"], 1, "{status}");
    }
    assert_eq!(metric(&supervisor, "queuewarden_threads_hung"), 1.0);
    assert_eq!(metric(&supervisor, "queuewarden_threads_given_up_total"), 1.0);
    // The thread is blocked yet; nobody waits for it.
    let begun = Instant::now();
    assert_eq!(supervisor.stop(), 0);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    scene.assert_once("bad");
    scene.assert_once("good");
}

#[test]
fn a_thread_that_comes_back_ends_and_what_it_has_to_say_changes_nothing() {
    // It goes on where it was: prepares what nobody knows of any more, or commits once more what was committed.
    for at in ["sink.before_prepare", "sink.before_commit"] {
        let mut scene = Scene::new(&format!("checkpoint: {{ interval: 100ms }}\n{RESTART}"));
        let mut supervisor = scene.run(&format!("{at}=1*sleep(4000)->off"), &["--hang-deadline", "1"]);
        until(SOON, "it is given up", || (metric(&supervisor, "queuewarden_threads_hung") == 1.0).then_some(()));
        scene.is_empty("bad");
        scene.is_empty("good");
        until(SOON, "it has ended", || (metric(&supervisor, "queuewarden_threads_hung") == 0.0).then_some(()));
        assert!(supervisor.log().contains("came back"));
        for name in ["bad", "good"] {
            let status = supervisor.wait_for_state(name, "running");
            assert_eq!(status["restarts"], 1, "{status}");
        }
        assert_eq!(supervisor.stop(), 0);
        scene.assert_once("bad");
        scene.assert_once("good");
    }
}

#[test]
fn a_pipeline_that_hangs_every_time_is_failed_and_its_neighbour_spends_nothing() {
    let mut scene = Scene::new("checkpoint: { interval: 100ms }\nrestart: { max: 1, within: 1s, backoff: 10ms..20ms }");
    let mut supervisor = scene.run("decoder.process=sleep(1800)", &["--hang-deadline", "1"]);
    let status = supervisor.wait_for_state("bad", "failed");
    assert_eq!(
        (&status["restarts"], &status["last_error"]),
        (&Value::from(1), &Value::from("decoder: blocked its thread for more than 1s"))
    );
    let neighbour = supervisor.wait_for_state("good", "running");
    assert!(neighbour["restarts"].as_u64() >= Some(1), "more often than its own budget allows: {neighbour}");
    scene.is_empty("good");
    assert_eq!(supervisor.stop(), 0);
    scene.assert_once("good");
}

#[test]
fn a_pipeline_whose_thread_does_not_come_back_gets_one_more_and_no_third() {
    let mut scene = Scene::new(&format!("checkpoint: {{ interval: 100ms }}\n{RESTART}"));
    let mut supervisor = scene.run(&format!("decoder.process={FOR_EVER}"), &["--hang-deadline", "1"]);
    let status = supervisor.wait_for_state("bad", "failed");
    assert!(status["last_error"].as_str().unwrap().contains("has not come back"), "{status}");
    scene.is_empty("good");
    supervisor.wait_for_state("good", "running");
    assert_eq!(metric(&supervisor, "queuewarden_threads_hung"), 2.0);
    assert_eq!(supervisor.stop(), 0);
    scene.assert_once("good");
}

#[test]
fn two_pipelines_may_block_their_thread_one_after_the_other() {
    // After the first hang the one to blame pauses, so the other one comes next.
    let mut scene = Scene::new("checkpoint: { interval: 100ms }\nrestart: { backoff: 6s..7s }");
    let mut command = scene.command(&format!("decoder.process=2*{FOR_EVER}->off"), &["--hang-deadline", "1"]);
    command.env_remove("QUEUEWARDEN_FAIL_PIPELINE");
    let mut supervisor = scene.place.started(command);
    scene.is_empty("bad");
    scene.is_empty("good");
    assert_eq!(metric(&supervisor, "queuewarden_threads_hung"), 2.0);
    for name in ["bad", "good"] {
        let log = supervisor.log();
        assert!(log.contains(&format!("\"by\":\"pipeline {name} (decoder)\"")), "{log}");
    }
    assert_eq!(supervisor.stop(), 0);
    scene.assert_once("bad");
    scene.assert_once("good");
}

#[test]
fn past_the_cap_the_process_ends_with_its_own_code_and_names_the_pipeline() {
    let mut scene = Scene::new(&format!("checkpoint: {{ interval: 100ms }}\n{RESTART}"));
    let arguments = ["--hang-deadline", "1", "--hung-threads-max", "0"];
    let mut supervisor = scene.run(&format!("decoder.process=1*off->1*{FOR_EVER}->off"), &arguments);
    assert_eq!(supervisor.process.wait(SOON).code(), Some(70));
    assert!(supervisor.log().contains("blocked by: pipeline bad (decoder)"), "{}", supervisor.log());
    // The next start finds everything as a crash would leave it.
    let mut supervisor = scene.place.run();
    scene.is_empty("bad");
    scene.is_empty("good");
    assert_eq!(supervisor.stop(), 0);
    scene.assert_once("bad");
    scene.assert_once("good");
}

#[test]
fn a_process_that_was_stopped_for_longer_than_the_deadline_has_no_hung_thread() {
    let mut scene = Scene::new(&format!("checkpoint: {{ interval: 100ms, timeout: 2s }}\n{RESTART}"));
    let mut supervisor = scene.run("", &["--hang-deadline", "1"]);
    scene.is_empty("bad");
    for _ in 0..2 {
        supervisor.process.signal("STOP");
        std::thread::park_timeout(Duration::from_secs(3));
        supervisor.process.signal("CONT");
        until(SOON, "it answers", || supervisor.pipeline("good"));
    }
    scene.is_empty("good");
    let begun = Instant::now();
    // As long as a thread that had been silent for the time of the stop would take to be given up.
    until(SOON, "a deadline has passed", || (begun.elapsed() > Duration::from_secs(2)).then_some(()));
    assert_eq!(metric(&supervisor, "queuewarden_threads_given_up_total"), 0.0);
    for name in ["bad", "good"] {
        let status = supervisor.wait_for_state(name, "running");
        assert_eq!(status["restarts"], 0, "{status}");
    }
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_store_that_never_answers_does_not_keep_the_process_from_ending() {
    let mut scene = Scene::new("checkpoint: { interval: 100ms }");
    let fail = format!("store.after_apply=2*off->{FOR_EVER}");
    let mut supervisor = scene.run(&fail, &["--shutdown-deadline", "1"]);
    let written = |name: &str| Some(supervisor.pipeline(name)?["counts"]["rows_written"] == 40);
    until(SOON, "both wait for the store", || (written("bad")? && written("good")?).then_some(()));
    assert_eq!(supervisor.stop(), 124);
}
