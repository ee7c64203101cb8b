//! What `restart`, `reload` and `status` say of a running supervisor, and of none.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use common::{
    EmulatorProcess, Place, Process, SOON, binary,
    numbers::{lines, numbers, send},
    until,
};
use serde_json::Value;

const QUICK: &str = "checkpoint: { interval: 100ms }";

/// Runs a verb to its end.
fn ask(state: &Path, arguments: &[&str]) -> Output {
    binary().args(arguments).env("QUEUEWARDEN_STATE", state).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn refused(output: &Output, code: i32, words: &[&str]) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} in {said}");
    }
}

#[test]
fn without_a_supervisor_every_verb_says_so_with_a_code_of_its_own() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let state = place.path("state");
    let verbs: [&[&str]; 4] = [&["restart", "q"], &["reload"], &["status"], &["status", "--json"]];
    for verb in verbs {
        refused(&ask(&state, verb), 66, &["there is no state directory", &state.display().to_string()]);
    }
    fs::create_dir(&state).unwrap();
    for verb in verbs {
        refused(&ask(&state, verb), 69, &["no supervisor is running on", &state.display().to_string()]);
    }
    // The lock file of one that has ended names a process, but nobody holds it.
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    supervisor.process.kill_9();
    assert!(fs::read_to_string(state.join("lock")).unwrap().contains("pid"));
    for verb in verbs {
        refused(&ask(&state, verb), 69, &["no supervisor is running on"]);
    }
}

#[test]
fn a_lock_that_names_a_process_which_does_not_hold_it_gets_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    // Held, but by this process; as if the holder were in another container. The named one must live on.
    let lock = fs::File::create(dir.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let mut stranger = Process(std::process::Command::new("sleep").arg("600").spawn().unwrap());
    fs::write(dir.path().join("lock"), format!("{{\"pid\":{},\"address\":\"127.0.0.1:9\"}}", stranger.pid())).unwrap();
    for verb in [&["restart", "q"][..], &["reload"], &["status"]] {
        refused(&ask(dir.path(), verb), 69, &["which cannot be seen from here", &stranger.pid().to_string()]);
    }
    assert!(stranger.0.try_wait().unwrap().is_none());
}

#[test]
fn restart_restarts_twelve_of_twelve_once_each() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let names: Vec<String> = (1..=12).map(|n| format!("p{n:02}")).collect();
    for name in names.iter().map(String::as_str).chain(["bystander"]) {
        send(&emulator.endpoint, name, 30, &[]);
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(name), QUICK));
    }
    let mut supervisor = place.run();
    for name in &names {
        supervisor.wait_for_state(name, "running");
    }
    let mut arguments = vec!["restart"];
    arguments.extend(names.iter().map(String::as_str));
    let output = ask(&place.path("state"), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let said = said(&output);
    for name in &names {
        assert!(said.contains(&format!("{name}: generation 1 -> 2, running\n")), "{said}");
        let now = supervisor.pipeline(name).unwrap();
        assert_eq!((&now["generation"], &now["restarts"]), (&Value::from(2), &Value::from(1)), "{name}");
    }
    assert_eq!(supervisor.pipeline("bystander").unwrap()["generation"], 1);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn restart_tells_what_it_cannot_restart_and_why() {
    let emulator = EmulatorProcess::start(&["--queue", "orders"]);
    let mut place = Place::new();
    for name in ["orders", "absent"] {
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(name), QUICK));
    }
    place.define("bad", "source: { connector: mms }\n");
    let mut supervisor = place.run();
    supervisor.wait_for_state("orders", "running");
    supervisor.wait_for_state("absent", "failed");
    let state = place.path("state");
    refused(&ask(&state, &["restart", "ordres", "orders"]), 66, &["no pipeline `ordres`", "did you mean `orders`?"]);
    refused(&ask(&state, &["restart", "x"]), 66, &["it has absent, bad, orders"]);
    refused(&ask(&state, &["restart", "bad"]), 78, &["mend the definition", "bad.yaml:1:22: error"]);
    refused(&ask(&state, &["restart", "absent"]), 1, &["absent: restarted, but it is failed", "QueueNotExist"]);
    refused(&ask(&state, &["restart"]), 64, &["NAME"]);
    refused(&ask(&state, &["restart", "orders", "--deadline", "soon"]), 64, &["expected a duration such as"]);
    assert_eq!(supervisor.pipeline("orders").unwrap()["generation"], 1, "nothing was done where a part was refused");
    send(&emulator.endpoint, "absent", 30, &["{\"n\":1}"]);
    let output = ask(&state, &["restart", "absent"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    until(SOON, "it works", || (emulator.left("absent") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_restart_past_its_deadline_names_the_state() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}"]);
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), "checkpoint: { interval: 10min }"));
    let mut supervisor = place.run_with(&[("FAILPOINTS", "fs.before_rename=1*sleep(2500)->off")]);
    until(SOON, "written", || (supervisor.pipeline("q")?["counts"]["rows_written"] == 1).then_some(()));
    let state = place.path("state");
    refused(
        &ask(&state, &["restart", "q", "--deadline", "300ms"]),
        123,
        &["q: does not run again within 300ms", "draining"],
    );
    // One that waits longer does not make it two restarts, though it sends more than once.
    let output = ask(&state, &["restart", "q"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(supervisor.pipeline("q").unwrap()["restarts"], 1);
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(emulator.count("q", "delivered"), 1);
}

#[test]
fn status_is_a_line_per_pipeline_with_its_state_and_reason_and_json_is_the_interface() {
    let emulator = EmulatorProcess::start(&["--queue", "orders"]);
    let mut place = Place::new();
    for name in ["orders", "absent"] {
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(name), QUICK));
    }
    let mut supervisor = place.run();
    supervisor.wait_for_state("orders", "running");
    supervisor.wait_for_state("absent", "failed");
    let state = place.path("state");
    let output = ask(&state, &["status"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = said(&output);
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert_eq!(text.lines().count(), 3, "{text}");
    let words: Vec<_> = text.lines().next().unwrap().split_whitespace().collect();
    let columns = ["name", "slot", "state", "for", "generation", "restarts", "rows", "checkpoint", "reason"];
    assert_eq!(words, columns);
    assert!(line("absent").contains("failed") && line("absent").contains("QueueNotExist"), "{text}");
    assert!(line("orders").contains("running"), "{text}");
    let json: Value = serde_json::from_slice(&ask(&state, &["status", "--json"]).stdout).unwrap();
    assert_eq!((&json[0]["name"], &json[1]["state"]), (&Value::from("absent"), &Value::from("running")));
    // A reader that goes after a line is no error.
    let mut into_head = binary();
    into_head.args(["status", "--watch"]).env("QUEUEWARDEN_STATE", &state).stdout(Stdio::piped());
    let mut into_head = Process(into_head.spawn().unwrap());
    drop(into_head.0.stdout.take());
    assert_eq!(into_head.wait(SOON).code(), Some(0));
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_watch_goes_on_while_the_supervisor_is_restarted_and_does_not_keep_it_from_starting() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    let out = place.path("watched");
    let mut watch = binary();
    watch.args(["status", "--watch", "--state"]).arg(place.path("state")).stdout(fs::File::create(&out).unwrap());
    let _watch = Process(watch.spawn().unwrap());
    let shows = |what: &str| until(SOON, what, || fs::read_to_string(&out).unwrap().contains(what).then_some(()));
    shows("running");
    assert_eq!(supervisor.stop(), 0);
    shows("no supervisor is running on");
    let mut again = place.run();
    let before = fs::read_to_string(&out).unwrap().len();
    until(SOON, "it is shown again", || fs::read_to_string(&out).unwrap()[before..].contains("running ").then_some(()));
    assert_eq!(again.stop(), 0);
}

#[test]
fn an_address_of_every_interface_is_asked_over_loopback() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    let lock = place.path("state").join("lock");
    let (_, port) = supervisor.address.rsplit_once(':').unwrap();
    // The lock is on the file, not on what it says: as if `--listen 0.0.0.0:0` had been given.
    fs::write(&lock, format!("{{\"pid\":{},\"address\":\"0.0.0.0:{port}\",\"new\":1}}", supervisor.process.pid()))
        .unwrap();
    let output = ask(&place.path("state"), &["status"]);
    assert!(output.status.success() && said(&output).contains("running"), "{}", said(&output));
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn reload_waits_and_tells_what_was_done_and_a_broken_definition_is_78() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let define = |place: &Place, name: &str, rest: &str| {
        place.define(name, &numbers(&emulator.endpoint, name, &place.path(name), rest));
    };
    for name in ["changed", "gone", "same", "spoilt", "new"] {
        send(&emulator.endpoint, name, 30, &[]);
    }
    for name in ["changed", "gone", "same", "spoilt"] {
        define(&place, name, QUICK);
    }
    let mut supervisor = place.run();
    for name in ["changed", "gone", "same", "spoilt"] {
        supervisor.wait_for_state(name, "running");
    }
    let state = place.path("state");
    refused(&ask(&state, &["reload"]), 0, &["unchanged   4  changed, gone, same, spoilt"]);

    define(&place, "changed", "checkpoint: { interval: 200ms }");
    define(&place, "new", QUICK);
    fs::remove_file(place.path("pipelines/gone.yaml")).unwrap();
    place.define("spoilt", "name: spoilt\nsource: { connector: mms }\n");
    let output = ask(&state, &["reload"]);
    refused(&output, 78, &["spoilt: ", "spoilt.yaml:2:22: error", "broken      1\n"]);
    for line in ["added       1  new", "removed     1  gone", "changed     1  changed", "unchanged   1  same"] {
        assert!(said(&output).contains(line), "{line:?} in {}", said(&output));
    }
    supervisor.wait_for_state("new", "running");
    assert_eq!(supervisor.pipeline("spoilt").unwrap()["state"], "running", "it goes on as before");
    assert!(supervisor.pipeline("gone").is_none());

    fs::rename(place.path("pipelines"), place.path("elsewhere")).unwrap();
    refused(&ask(&state, &["reload"]), 66, &["nothing was changed"]);
    supervisor.wait_for_state("same", "running");
    assert_eq!(supervisor.stop(), 0);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_reload_of_a_supervisor_that_has_ended_is_not_waited_for_in_the_next_one() {
    let (emulator, mut place) = (EmulatorProcess::start(&[]), Place::new());
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}"]);
    let out = place.path("out");
    place.define("q", &numbers(&emulator.endpoint, "q", &out, "checkpoint: { interval: 10min }"));
    let mut supervisor = place.run_with(&[("FAILPOINTS", "fs.before_rename=sleep(600000)")]);
    until(SOON, "written", || (supervisor.pipeline("q")?["counts"]["rows_written"] == 1).then_some(()));
    place.define("q", &numbers(&emulator.endpoint, "q", &out, QUICK));
    let mut command = binary();
    command.args(["reload", "--state"]).arg(place.path("state")).stderr(Stdio::piped());
    let mut reload = Process(command.spawn().unwrap());
    supervisor.wait_for_state("q", "draining");
    // So that it does not see that there is none for a moment.
    reload.signal("STOP");
    supervisor.process.kill_9();
    let mut next = place.run();
    reload.signal("CONT");
    assert_eq!(reload.wait(SOON).code(), Some(69));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut reload.0.stderr.take().unwrap(), &mut said).unwrap();
    assert!(said.contains("ended before the reload was done"), "{said}");
    assert_eq!(next.stop(), 0);
}

/// Numbers from 1 on, and then the end.
fn bounded(rows: u32, out: &Path) -> String {
    format!(
        "source:
  connector: datagen
  number-of-rows: {rows}
  fields.n.kind: sequence
  fields.n.start: 1
  fields.n.end: {rows}
  schema: {{ n: INT }}
sink: {{ connector: filesystem, path: {}, format: json }}
{QUICK}
",
        out.display()
    )
}

#[test]
fn a_run_of_bounded_pipelines_ends_with_0_when_all_are_finished_if_it_is_asked_to() {
    let mut place = Place::new();
    for (name, rows) in [("a", 20), ("b", 3000)] {
        place.define(name, &bounded(rows, &place.path(name)));
    }
    for _ in ["the first run", "another, which finds that they have finished"] {
        let mut command = place.run_command();
        command.arg("--exit-when-finished");
        assert_eq!(Process(command.spawn().unwrap()).wait(SOON).code(), Some(0));
        assert_eq!((lines(&place.path("a")).len(), lines(&place.path("b")).len()), (20, 3000));
    }
}

#[test]
fn a_run_that_is_asked_to_end_when_finished_goes_on_while_one_pipeline_is_not() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("bounded", &bounded(20, &place.path("bounded")));
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let mut supervisor = place.run_with(&[("QUEUEWARDEN_EXIT_WHEN_FINISHED", "true")]);
    supervisor.wait_for_state("bounded", "finished");
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}"]);
    until(SOON, "the other one works on", || (emulator.left("q") == 0).then_some(()));
    // A finished one can be restarted, and finishes again.
    let output = ask(&place.path("state"), &["restart", "bounded"]);
    refused(&output, 0, &["bounded: generation 1 -> 2, finished"]);
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(lines(&place.path("bounded")).len(), 20);
}

/// A stderr that nobody reads any more.
fn closed() -> std::io::PipeWriter {
    let (_gone, writer) = std::io::pipe().unwrap();
    writer
}

#[test]
fn a_closed_stderr_changes_no_exit_code_and_keeps_no_pipeline_from_running() {
    let mut place = Place::new();
    place.define("broken", "source: nothing");
    let checked = binary().arg("check").arg(place.path("pipelines")).stderr(closed()).status().unwrap();
    assert_eq!(checked.code(), Some(78));
    let refused = binary().args(["status", "--state", "/nowhere"]).stderr(closed()).status().unwrap();
    assert!(refused.code().is_some_and(|code| code != 101 && code != 0), "{refused}");
    place.define("made", "source: { connector: datagen, schema: { n: INT } }\nsink: { connector: blackhole }");
    let mut command = place.run_command();
    let mut supervisor = Process(command.stderr(closed()).spawn().unwrap());
    let runs = || {
        let status = binary().args(["status", "--json", "--state"]).arg(place.path("state")).output().unwrap();
        let all: serde_json::Value = serde_json::from_slice(&status.stdout).ok()?;
        all.as_array()?.iter().any(|one| one["name"] == "made" && one["state"] == "running").then_some(())
    };
    until(SOON, "the pipeline runs", runs);
    supervisor.signal("TERM");
    assert_eq!(supervisor.wait(SOON).code(), Some(0));
}
