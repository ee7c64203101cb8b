//! What each signal does to a supervisor, over real processes, and that one which comes early is not missed.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::ExitStatusExt},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use common::{
    EmulatorProcess, Place, Process, SOON, Supervisor, binary, get,
    numbers::{bodies, client, lines, numbers, one_to, send},
    until,
};
use serde_json::Value;

const QUICK: &str = "checkpoint: { interval: 100ms }";
/// Whatever is read stays without a checkpoint until there is a drain.
const FAR: &str = "checkpoint: { interval: 10min }";

fn generation(supervisor: &Supervisor, name: &str) -> u64 {
    supervisor.pipeline(name).unwrap()["generation"].as_u64().unwrap_or(0)
}

fn written(supervisor: &Supervisor, name: &str) -> Option<u64> {
    supervisor.pipeline(name)?["counts"]["rows_written"].as_u64()
}

fn runs_as(supervisor: &Supervisor, name: &str, generation: u64) -> Value {
    until(SOON, &format!("{name} runs as generation {generation}"), || {
        supervisor.pipeline(name).filter(|now| now["generation"] == generation && now["state"] == "running")
    })
}

/// A metric, 0 if it has not been counted.
fn metric(supervisor: &Supervisor, series: &str) -> u64 {
    let (_, text) = get(&supervisor.address, "/metrics").expect("it answers");
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// All that was written, by number.
fn all_of(out: &Path, count: u32) {
    let mut expected = one_to(count);
    expected.sort();
    assert_eq!(lines(out), expected);
}

#[test]
fn a_restart_signal_with_rows_in_flight_restarts_one_pipeline_and_nothing_comes_twice() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    for name in ["a", "b", "c"] {
        send(&emulator.endpoint, name, 30, &bodies(&one_to(40)));
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(&format!("out-{name}")), FAR));
    }
    let mut supervisor = place.run();
    for name in ["a", "b", "c"] {
        until(SOON, "all is written", || (written(&supervisor, name)? == 40).then_some(()));
        assert_eq!(emulator.left(name), 40, "nothing is acknowledged before a checkpoint");
    }
    assert_eq!(supervisor.pipeline("b").unwrap()["slot"], 2);
    supervisor.process.signal_with("RTMIN+1", 2);
    let b = runs_as(&supervisor, "b", 2);
    assert_eq!((&b["restarts"], &b["last_error"]), (&Value::from(1), &Value::Null));
    assert_eq!(emulator.left("b"), 0, "what was in flight is acknowledged before the new generation");
    send(&emulator.endpoint, "b", 30, &bodies(&one_to(60)[40..]));
    until(SOON, "the new generation works", || (written(&supervisor, "b")? == 60).then_some(()));
    for name in ["a", "c"] {
        assert_eq!((generation(&supervisor, name), emulator.left(name)), (1, 40), "{name} goes on undisturbed");
    }
    assert_eq!(supervisor.stop(), 0);
    for (name, count) in [("a", 40), ("b", 60), ("c", 40)] {
        all_of(&place.path(&format!("out-{name}")), count);
        assert_eq!(emulator.count(name, "delivered"), u64::from(count), "{name}: each once");
    }
}

#[test]
fn restarts_while_messages_flow_lose_and_repeat_nothing() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    // What a cancelled poll took along comes back after a second.
    send(&emulator.endpoint, "q", 1, &bodies(&one_to(1)));
    place.define("q", &numbers(&emulator.endpoint, "q", &out, QUICK).replace("30s", "1s"));
    let mut supervisor = place.run();
    for round in 0..8usize {
        send(&emulator.endpoint, "q", 1, &bodies(&one_to(801)[1 + round * 100..101 + round * 100]));
        let before = generation(&supervisor, "q");
        supervisor.process.signal_with(if round % 2 == 0 { "RTMIN+1" } else { "USR1" }, 1);
        until(SOON, "it is restarted", || (generation(&supervisor, "q") > before).then_some(()));
    }
    until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    all_of(&out, 801);
}

/// Twelve pipelines on empty queues.
fn twelve(emulator: &EmulatorProcess, place: &Place) -> Vec<String> {
    let names: Vec<String> = (1..=12).map(|n| format!("p{n:02}")).collect();
    for name in &names {
        send(&emulator.endpoint, name, 30, &[]);
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(name), QUICK));
    }
    names
}

#[test]
fn of_twelve_restart_signals_at_once_as_many_restart_their_pipeline_as_arrived_and_none_another() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let names = twelve(&emulator, &place);
    let mut supervisor = place.run();
    names.iter().for_each(|name| drop(supervisor.wait_for_state(name, "running")));
    let pid = supervisor.process.pid().to_string();
    let slots: Vec<String> = (1..=12).map(|slot| slot.to_string()).collect();
    let kills: Vec<_> = slots
        .iter()
        .map(|slot| Command::new("/bin/kill").args(["-s", "RTMIN+1", "-q", slot, &pid]).spawn().unwrap())
        .collect();
    for mut kill in kills {
        assert!(kill.wait().unwrap().success());
    }
    // Signals of one number keep their order: once a later one has been seen, all before it have.
    const UNKNOWN: &str = "queuewarden_restart_requests_unknown_total";
    until(SOON, "a later signal is seen", || {
        supervisor.process.signal_with("RTMIN+1", 1000);
        (metric(&supervisor, UNKNOWN) > 0).then_some(())
    });
    const RESTARTS: &str = "queuewarden_signals_total{asks=\"restart\",signal=\"RTMIN+1\"}";
    let (arrived, generations) = until(SOON, "all that arrived is done, and all run", || {
        let arrived = metric(&supervisor, RESTARTS).checked_sub(metric(&supervisor, UNKNOWN))?;
        let all: Vec<_> = names.iter().filter_map(|name| supervisor.pipeline(name)).collect();
        let run = all.iter().all(|one| one["state"] == "running");
        let generations: Vec<u64> = all.iter().filter_map(|one| one["generation"].as_u64()).collect();
        (run && generations.iter().sum::<u64>() == 12 + arrived).then_some((arrived, generations))
    });
    assert!((1..=12).contains(&arrived), "{arrived}");
    assert!(generations.iter().all(|generation| *generation <= 2), "none twice: {generations:?}");
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_plain_usr1_restarts_what_is_failed_and_nothing_else() {
    let emulator = EmulatorProcess::start(&["--queue", "there"]);
    let mut place = Place::new();
    for name in ["there", "absent"] {
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(name), QUICK));
    }
    let mut supervisor = place.run();
    supervisor.wait_for_state("there", "running");
    let failed = supervisor.wait_for_state("absent", "failed");
    assert!(failed["last_error"].as_str().unwrap().contains("QueueNotExist"), "{failed}");
    send(&emulator.endpoint, "absent", 30, &["{\"n\":1}"]);
    supervisor.process.signal("USR1");
    supervisor.wait_for_state("absent", "running");
    until(SOON, "it works", || (emulator.left("absent") == 0).then_some(()));
    assert_eq!(generation(&supervisor, "there"), 1);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_signal_that_names_no_pipeline_is_logged_and_counted_and_restarts_nothing() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    let counted = |series: &str| metric(&supervisor, &format!("queuewarden_signals_total{{{series}}}"));
    supervisor.process.signal("RTMIN+1");
    until(SOON, "counted", || (counted("asks=\"nothing\",signal=\"RTMIN+1\"") == 1).then_some(()));
    supervisor.process.signal_with("RTMIN+1", 0);
    until(SOON, "counted", || (counted("asks=\"nothing\",signal=\"RTMIN+1\"") == 2).then_some(()));
    supervisor.process.signal_with("USR1", 0);
    until(SOON, "counted", || (counted("asks=\"nothing\",signal=\"USR1\"") == 1).then_some(()));
    supervisor.process.signal_with("RTMIN+1", 2);
    until(SOON, "counted", || (metric(&supervisor, "queuewarden_restart_requests_unknown_total") == 1).then_some(()));
    supervisor.process.signal("USR1");
    until(SOON, "counted", || (counted("asks=\"restart_failed\",signal=\"USR1\"") == 1).then_some(()));
    let now = supervisor.pipeline("q").unwrap();
    assert_eq!((&now["generation"], &now["state"]), (&Value::from(1), &Value::from("running")));
    assert!(supervisor.log().contains("names no slot"), "{}", supervisor.log());
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn sigterm_in_a_long_poll_with_rows_in_flight_ends_within_a_second_of_the_flush_and_nothing_is_redelivered() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    // A message that was not acknowledged would be back within the test.
    send(&emulator.endpoint, "q", 2, &bodies(&one_to(40)));
    place.define("q", &numbers(&emulator.endpoint, "q", &out, FAR));
    let mut supervisor = place.run();
    until(SOON, "all is written", || (written(&supervisor, "q")? == 40).then_some(()));
    assert_eq!(emulator.count("q", "deleted"), 0, "in flight");
    assert_eq!(supervisor.stop(), 0);
    let ended = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    // A rename is what makes a file visible, and sets this time.
    let flushed = files.map(|path| fs::metadata(path).unwrap()).map(|file| (file.ctime(), file.ctime_nsec())).max();
    let (seconds, nanos) = flushed.expect("a file");
    let flushed = Duration::new(seconds.try_into().unwrap(), nanos.try_into().unwrap());
    assert!(ended.saturating_sub(flushed) < Duration::from_secs(1), "{:?}", ended.saturating_sub(flushed));
    assert_eq!((emulator.left("q"), emulator.count("q", "deleted")), (0, 40));

    send(&emulator.endpoint, "q", 2, &["{\"n\":41}"]);
    let mut next = place.run();
    until(SOON, "the next one works", || (written(&next, "q")? == 1).then_some(()));
    let counts = next.pipeline("q").unwrap()["counts"].clone();
    assert_eq!((&counts["received"], &counts["duplicates"]), (&Value::from(1), &Value::from(0)));
    assert_eq!(next.stop(), 0);
    assert_eq!((emulator.count("q", "delivered"), emulator.count("q", "redelivered_after_timeout")), (41, 0));
    all_of(&out, 41);
}

/// Waits until a process would act on a signal itself; busily, for it is a matter of microseconds.
fn catches(process: &mut Process, signal: u32) {
    let status = format!("/proc/{}/status", process.pid());
    let begun = std::time::Instant::now();
    loop {
        let text = fs::read_to_string(&status).expect("it runs");
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        if u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1 {
            return;
        }
        assert!(begun.elapsed() < SOON && process.0.try_wait().unwrap().is_none(), "it never catches it");
    }
}

#[test]
fn sigterm_in_the_first_moments_of_run_is_a_clean_end() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    for round in 0..5 {
        let mut place = Place::new();
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
        let mut process = Process(place.run_command().spawn().unwrap());
        let (number, name) = if round % 2 == 0 { (15, "TERM") } else { (2, "INT") };
        catches(&mut process, number);
        process.signal(name);
        assert_eq!(process.wait(SOON).code(), Some(0), "{}", fs::read_to_string(place.path("log-1")).unwrap());
    }
}

#[test]
fn sigterm_before_there_is_a_second_thread_is_a_clean_end() {
    let strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
    assert!(strace.is_ok(), "strace is not installed: run `make sdk`, or `apt-get install strace`");
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let run = place.run_command();
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-o"])
        .arg(place.path("trace"))
        .args(["-e", "trace=rt_sigaction,clone,clone3", "-e", "inject=clone,clone3:signal=SIGTERM:when=1"])
        .arg(run.get_program())
        .args(run.get_args())
        .envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut traced = Process(traced.spawn().unwrap());
    let status = traced.wait(SOON);
    let trace = fs::read_to_string(place.path("trace")).unwrap();
    assert_eq!(status.code(), Some(0), "{trace}");
    let at = |what: &str| trace.find(what).unwrap_or_else(|| panic!("no {what} in {trace}"));
    assert!(at("rt_sigaction(SIGTERM") < at("clone") && at("clone") < at("--- SIGTERM"), "{trace}");
}

#[test]
fn a_signal_ends_the_other_verbs_as_it_ends_any_program() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("watched");
    let mut watch = binary();
    watch.args(["status", "--watch", "--state"]).arg(dir.path()).stdout(fs::File::create(&out).unwrap());
    let mut watch = Process(watch.spawn().unwrap());
    until(SOON, "it watches", || fs::read_to_string(&out).unwrap().contains("no supervisor").then_some(()));
    watch.signal("TERM");
    assert_eq!(watch.wait(SOON).signal(), Some(15));

    let mut emulator = EmulatorProcess::start(&[]);
    emulator.process.signal("USR1");
    assert_eq!(emulator.process.wait(SOON).signal(), Some(10));
    let mut emulator = EmulatorProcess::start(&[]);
    emulator.process.signal("TERM");
    assert_eq!(emulator.process.wait(SOON).code(), Some(0));
}

#[test]
fn a_signal_that_the_starter_wants_ignored_does_not_end_another_verb() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("watched");
    let mut watch = Command::new("/bin/sh");
    let script = "trap '' USR1; exec \"$0\" status --watch --state \"$1\"";
    watch.args(["-c", script, env!("CARGO_BIN_EXE_queuewarden")]).arg(dir.path());
    let mut watch = Process(watch.stdout(fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap());
    until(SOON, "it watches", || fs::read_to_string(&out).unwrap().contains("no supervisor").then_some(()));
    watch.signal("USR1");
    let shown = fs::read_to_string(&out).unwrap().len();
    until(SOON, "it still watches", || (fs::read_to_string(&out).unwrap().len() > shown + 100).then_some(()));
    watch.signal("TERM");
    assert_eq!(watch.wait(SOON).signal(), Some(15));
}

#[cfg(feature = "failpoints")]
#[test]
fn a_second_sigterm_cuts_off_what_is_unfinished() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}"]);
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), FAR));
    let mut supervisor = place.run_with(&[("FAILPOINTS", "fs.before_rename=sleep(600000)")]);
    until(SOON, "it is written", || (written(&supervisor, "q")? == 1).then_some(()));
    supervisor.process.signal("TERM");
    supervisor.wait_for_state("q", "draining");
    supervisor.process.signal("TERM");
    assert_eq!(supervisor.process.wait(Duration::from_secs(25)).code(), Some(124));
    assert_eq!(emulator.left("q"), 1, "it is read again");
}

#[test]
fn a_queue_that_is_deleted_and_made_again_is_read_after_a_restart_signal() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    let out = place.path("out");
    place.define("q", &numbers(&emulator.endpoint, "q", &out, QUICK));
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(client(&emulator.endpoint).delete_queue("q")).unwrap();
    supervisor.wait_for_state("q", "failed");
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}"]);
    supervisor.process.signal_with("RTMIN+1", 1);
    until(SOON, "it works", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    all_of(&out, 1);
}
