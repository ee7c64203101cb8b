//! A reload of real processes by SIGHUP: what each kind of change does, and that nothing holds it up for ever.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{fs, path::PathBuf, time::Duration};

use common::{
    EmulatorProcess, Place, SOON, Supervisor, get,
    numbers::{bodies, lines, numbers, one_to, send},
    until,
};
use serde_json::{Value, json};

/// No checkpoint but the one of a drain.
const FAR: &str = "checkpoint: { interval: 10min }";

fn last_reload(supervisor: &Supervisor) -> Option<Value> {
    serde_json::from_str(&get(&supervisor.address, "/api/reload")?.1).ok()
}

/// Sends SIGHUP and waits for the reload of this number.
fn reload(supervisor: &Supervisor, number: u64) -> Value {
    supervisor.process.signal("HUP");
    until(SOON, "the reload is done", || last_reload(supervisor).filter(|report| report["number"] == number))
}

fn written(supervisor: &Supervisor, name: &str, rows: u64) {
    until(SOON, &format!("{name} has written {rows} rows"), || {
        (supervisor.pipeline(name)?["counts"]["rows_written"] == rows).then_some(())
    });
}

fn all_to(n: u32) -> Vec<String> {
    let mut all = one_to(n);
    all.sort();
    all
}

/// Of a reload or a pipeline.
fn part<'a>(value: &'a Value, keys: &[&str]) -> Vec<&'a Value> {
    keys.iter().map(|key| &value[*key]).collect()
}

#[test]
fn new_gone_changed_unchanged_and_broken_files_are_each_done_as_they_should() {
    let emulator = EmulatorProcess::start(&["--queue", "new"]);
    let mut place = Place::new();
    let out = |name: &str, place: &Place| -> PathBuf { place.path(&format!("out-{name}")) };
    for name in ["broken", "changed", "gone", "same"] {
        send(&emulator.endpoint, name, 30, &bodies(&one_to(40)));
        place.define(name, &numbers(&emulator.endpoint, name, &out(name, &place), FAR));
    }
    let mut supervisor = place.run();
    assert_eq!(last_reload(&supervisor), Some(Value::Null));
    for name in ["broken", "changed", "gone", "same"] {
        written(&supervisor, name, 40);
    }

    place.define("broken", "source: { connector: mms }\n");
    place.define("changed", &numbers(&emulator.endpoint, "changed", &out("moved", &place), FAR));
    place.define("new", &numbers(&emulator.endpoint, "new", &out("new", &place), FAR));
    fs::remove_file(place.path("pipelines/gone.yaml")).unwrap();
    let report = reload(&supervisor, 1);
    assert_eq!(
        part(&report, &["added", "removed", "changed", "unchanged", "error"]),
        [&json!(["new"]), &json!(["gone"]), &json!(["changed"]), &json!(["same"]), &Value::Null]
    );
    let reason = report["broken"]["broken"].as_str().unwrap();
    assert!(reason.contains("broken.yaml:1:22: error"), "{reason}");

    // What is gone or changed was drained, to where it was to go.
    for name in ["changed", "gone"] {
        assert_eq!((lines(&out(name, &place)), emulator.left(name)), (all_to(40), 0), "{name}");
    }
    // The others were not.
    for name in ["broken", "same"] {
        let status = supervisor.pipeline(name).unwrap();
        assert_eq!(part(&status, &["state", "generation", "restarts"]), [&json!("running"), &json!(1), &json!(0)]);
        assert_eq!(lines(&out(name, &place)), [""; 0]);
    }
    assert_eq!(supervisor.pipeline("broken").unwrap()["definition_error"], reason);
    for (name, slot, generation) in [("changed", 2, 2), ("new", 5, 1)] {
        let status = supervisor.wait_for_state(name, "running");
        assert_eq!(part(&status, &["slot", "generation"]), [&json!(slot), &json!(generation)], "{status}");
    }
    until(SOON, "the gone one is shown no more", || supervisor.pipeline("gone").is_none().then_some(()));
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    assert!(!metrics.contains("pipeline=\"gone\""));
    assert!(metrics.contains("queuewarden_reloads_total{result=\"broken\"} 1"), "{metrics}");

    // What is mended goes on; what was changed, and what is new, works.
    send(&emulator.endpoint, "changed", 30, &bodies(&one_to(3)));
    send(&emulator.endpoint, "new", 30, &bodies(&one_to(2)));
    place.define("broken", &numbers(&emulator.endpoint, "broken", &out("broken", &place), FAR));
    let report = reload(&supervisor, 2);
    assert_eq!(part(&report, &["unchanged", "broken"]), [&json!(["broken", "changed", "new", "same"]), &json!({})]);
    assert_eq!(supervisor.pipeline("broken").unwrap()["definition_error"], Value::Null);
    written(&supervisor, "changed", 43);
    written(&supervisor, "new", 2);
    assert_eq!(supervisor.stop(), 0);
    for (name, rows) in [("broken", 40), ("changed", 40), ("gone", 40), ("same", 40), ("moved", 3), ("new", 2)] {
        assert_eq!(lines(&out(name, &place)), all_to(rows), "{name}");
    }
}

#[test]
fn a_folder_that_cannot_be_read_or_is_empty_changes_nothing() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), FAR));
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    fs::rename(place.path("pipelines"), place.path("elsewhere")).unwrap();
    let report = reload(&supervisor, 1);
    assert!(report["error"].as_str().unwrap().contains("No such file"), "{report}");
    fs::create_dir(place.path("pipelines")).unwrap();
    let report = reload(&supervisor, 2);
    assert!(report["error"].as_str().unwrap().contains("no .yaml"), "{report}");
    fs::remove_dir(place.path("pipelines")).unwrap();
    fs::write(place.path("pipelines"), "").unwrap();
    let report = reload(&supervisor, 3);
    assert!(report["error"].as_str().unwrap().contains("not a folder"), "{report}");
    let status = supervisor.pipeline("q").unwrap();
    assert_eq!(part(&status, &["state", "generation"]), [&json!("running"), &json!(1)]);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_secret_that_has_another_value_is_a_change_and_is_not_told() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    let secrets = place.path("secrets");
    fs::create_dir(&secrets).unwrap();
    fs::write(secrets.join("key"), "wrong-and-never-shown").unwrap();
    let definition = numbers(&emulator.endpoint, "q", &place.path("out"), FAR);
    place.define("q", &definition.replace("${MNS_ACCESS_KEY_SECRET}", "${secret_values.key}"));
    let mut command = place.run_command();
    command.arg("--secrets-dir").arg(&secrets);
    let mut supervisor = place.started(command);
    until(SOON, "it is refused", || supervisor.pipeline("q").filter(|status| status["troubles"][0].is_string()));
    let (code, text) = get(&supervisor.address, "/readyz").unwrap();
    assert_eq!(code, 503);
    assert!(text.starts_with("q is starting: open: ") && text.contains("SignatureDoesNotMatch"), "{text}");
    assert_eq!(reload(&supervisor, 1)["unchanged"], json!(["q"]));
    fs::write(secrets.join("key"), common::KEY_SECRET).unwrap();
    assert_eq!(reload(&supervisor, 2)["changed"], json!(["q"]));
    supervisor.wait_for_state("q", "running");
    assert_eq!(supervisor.stop(), 0);
    for secret in ["wrong-and-never-shown", common::KEY_SECRET] {
        assert!(!supervisor.log().contains(secret));
    }
}

#[test]
fn a_finished_pipeline_that_is_restarted_or_changed_is_finished_again_and_writes_nothing_more() {
    let mut place = Place::new();
    let out = place.path("out");
    let definition = |interval: &str| {
        format!(
            "source:
  connector: datagen
  number-of-rows: 20
  fields.n.kind: sequence
  fields.n.start: 1
  fields.n.end: 20
  schema: {{ n: INT }}
sink: {{ connector: filesystem, path: {}, format: json }}
checkpoint: {{ interval: {interval} }}
",
            out.display()
        )
    };
    place.define("bounded", &definition("10min"));
    let mut supervisor = place.run();
    let first = supervisor.wait_for_state("bounded", "finished");
    assert_eq!(part(&first, &["generation", "last_error"]), [&json!(1), &Value::Null]);
    let again = |generation: u64| {
        until(SOON, "it is finished again", || {
            supervisor.pipeline("bounded").filter(|now| now["state"] == "finished" && now["generation"] == generation)
        })
    };
    supervisor.process.signal_with("RTMIN+1", 1);
    again(2);
    place.define("bounded", &definition("5min"));
    assert_eq!(reload(&supervisor, 1)["changed"], json!(["bounded"]));
    again(3);
    assert_eq!(get(&supervisor.address, "/readyz").unwrap().0, 200);
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(lines(&out), all_to(20));
}

#[cfg(feature = "failpoints")]
mod failures {
    use super::*;

    #[test]
    fn output_that_waits_for_its_commit_goes_to_the_folder_it_was_promised_to() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        send(&emulator.endpoint, "q", 2, &bodies(&one_to(5)));
        // After the panic there is time to change the folder.
        let rest = "checkpoint: { interval: 100ms }\nrestart: { backoff: 10min..10min }";
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("old"), rest));
        let mut supervisor = place.run_with(&[("FAILPOINTS", "sink.before_commit=1*panic(on purpose)->off")]);
        supervisor.wait_for_state("q", "backoff");
        assert_eq!(lines(&place.path("old")), [""; 0], "a token is pending");
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("new"), rest));
        assert_eq!(reload(&supervisor, 1)["changed"], json!(["q"]));
        let status = supervisor.wait_for_state("q", "running");
        assert_eq!(status["generation"], 2);
        assert_eq!(lines(&place.path("old")), all_to(5));
        until(SOON, "the redelivered ones are deleted", || (emulator.left("q") == 0).then_some(()));
        send(&emulator.endpoint, "q", 2, &["{\"n\":6}"]);
        until(SOON, "the next one goes to the new folder", || (lines(&place.path("new")).len() == 1).then_some(()));
        assert_eq!(supervisor.stop(), 0);
        assert_eq!((lines(&place.path("old")), lines(&place.path("new"))), (all_to(5), vec!["{\"n\":6}".to_owned()]));
    }

    #[test]
    fn a_sink_that_never_answers_is_cut_off_at_its_deadline_and_loses_and_repeats_nothing() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        for name in ["hangs", "same"] {
            send(&emulator.endpoint, name, 2, &bodies(&one_to(5)));
        }
        let rest = "checkpoint: { interval: 100ms, timeout: 3s }";
        place.define("hangs", &numbers(&emulator.endpoint, "hangs", &place.path("old"), rest));
        // Only the first rename of the process hangs; the neighbour has nothing to rename until it stops.
        place.define("same", &numbers(&emulator.endpoint, "same", &place.path("same"), FAR));
        let mut supervisor = place.run_with(&[("FAILPOINTS", "fs.before_rename=1*sleep(600000)->off")]);
        written(&supervisor, "same", 5);
        until(SOON, "the file is prepared", || {
            let staged = fs::read_dir(place.path("old/.queuewarden/hangs")).ok()?;
            staged.flatten().any(|file| file.file_name().to_string_lossy().starts_with("part-")).then_some(())
        });
        place.define("hangs", &numbers(&emulator.endpoint, "hangs", &place.path("new"), rest));
        let begun = std::time::Instant::now();
        assert_eq!(reload(&supervisor, 1)["changed"], json!(["hangs"]));
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
        assert_eq!(supervisor.wait_for_state("hangs", "running")["generation"], 2);
        until(SOON, "the queue is empty", || (emulator.left("hangs") == 0).then_some(()));
        assert_eq!(supervisor.pipeline("same").unwrap()["generation"], 1);
        assert_eq!(supervisor.stop(), 0);
        assert_eq!((lines(&place.path("old")), lines(&place.path("new"))), (all_to(5), vec![]));
        assert_eq!(lines(&place.path("same")), all_to(5));
    }

    #[test]
    fn a_budget_that_is_used_up_is_full_again_for_a_restart_signal_once_the_cause_is_gone() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        send(&emulator.endpoint, "q", 1, &bodies(&one_to(5)));
        let rest = "checkpoint: { interval: 100ms }\nrestart: { max: 2, within: 1h, backoff: 10ms..20ms }";
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), rest));
        let mut supervisor = place.run_with(&[("FAILPOINTS", "dedup.rows=3*panic(on purpose)->off")]);
        let status = supervisor.wait_for_state("q", "failed");
        assert_eq!(status["restarts"], 2, "{status}");
        supervisor.process.signal_with("RTMIN+1", 1);
        let status = supervisor.wait_for_state("q", "running");
        assert_eq!(part(&status, &["restarts", "generation"]), [&json!(3), &json!(4)]);
        until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0);
        assert_eq!(lines(&place.path("out")), all_to(5));
    }
}
