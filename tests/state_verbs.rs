//! `queuewarden state`, and what happens to a supervisor whose state is harmed: over real processes and folders.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{fs, path::Path};

use common::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, binary, until};
use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::{Outgoing, QueueSettings},
};
use serde_json::Value;

/// Makes a queue whose messages come again after two seconds, and sends the numbers of a range.
fn send(endpoint: &str, queue: &str, numbers: std::ops::Range<u32>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let credentials =
            Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
        let client = Client::new(endpoint, credentials).unwrap();
        let settings = QueueSettings { visibility_seconds: Some(2), ..QueueSettings::default() };
        client.create_queue(queue, &settings).await.unwrap();
        let all: Vec<_> =
            numbers.map(|n| Outgoing { body: format!("{{\"n\": {n}}}"), ..Outgoing::default() }).collect();
        client.send(queue, &all).await.unwrap();
    });
}

fn definition(endpoint: &str, queue: &str, out: &Path) -> String {
    format!(
        "source:
  connector: mns
  endpoint: {endpoint}
  region: cn-hangzhou
  queueName: {queue}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  format: json
  batchSize: 16
  pollingWaitTime: 1s
  schema: {{ n: INT }}
sink: {{ connector: filesystem, path: {}, format: json }}
checkpoint: {{ interval: 100ms }}
",
        out.display()
    )
}

/// The names of the files in a folder, hidden ones left out.
fn files(out: &Path) -> Vec<String> {
    let entries = fs::read_dir(out).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> =
        entries.map(|name| name.into_string().unwrap()).filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// The numbers in those files.
fn rows(out: &Path) -> Vec<u64> {
    let mut rows: Vec<u64> = files(out)
        .iter()
        .flat_map(|name| fs::read_to_string(out.join(name)).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| serde_json::from_str::<Value>(&line).unwrap()["n"].as_u64().unwrap())
        .collect();
    rows.sort_unstable();
    rows
}

/// Runs `queuewarden state`; answers its exit code and everything it says.
fn state(place: &Place, arguments: &[&str]) -> (i32, String) {
    let output = binary().arg("state").args(arguments).env("QUEUEWARDEN_STATE", place.path("state")).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

fn shown(place: &Place, name: &str) -> Value {
    let (code, text) = state(place, &["show", name, "--json"]);
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Runs until nothing is left in the queue, and stops.
fn run_dry(place: &mut Place, emulator: &EmulatorProcess, queue: &str) {
    let mut supervisor = place.run();
    until(SOON, "the queue is empty", || (emulator.left(queue) == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
}

/// Runs until the process kills itself at a place between two steps of a checkpoint.
fn run_until_killed(place: &mut Place, at: &str) {
    let mut supervisor = place.run_with(&[("QUEUEWARDEN_KILL_AT", at)]);
    assert_eq!(supervisor.process.wait(SOON).code(), None, "killed");
}

#[test]
fn a_running_supervisors_state_is_not_touched_and_its_holder_is_named() {
    let mut place = Place::new();
    let mut supervisor = place.run();
    for arguments in [&["list"][..], &["show", "a"], &["reset", "a"], &["rename", "a", "b"], &["settle", "a"]] {
        let (code, text) = state(&place, arguments);
        assert_eq!(code, 75, "{text}");
        let (pid, address) = (supervisor.process.pid().to_string(), &supervisor.address);
        assert!(text.contains(&pid) && text.contains(address), "{text}");
    }
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(state(&place, &["list"]), (0, "no pipeline has a state yet\n".to_owned()));
}

#[test]
fn what_cannot_be_found_or_read_has_an_exit_code_and_a_reason() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let (code, text) = state(&place, &["list"]);
    assert_eq!(code, 66, "{text}");
    assert!(!place.path("state").exists(), "looking creates nothing");
    send(&emulator.endpoint, "q", 0..2);
    place.define("orders", &definition(&emulator.endpoint, "q", &place.path("out")));
    run_dry(&mut place, &emulator, "q");

    let (code, text) = state(&place, &["show", "order"]);
    assert!(code == 66 && text.contains("did you mean `orders`?"), "{code} {text}");
    let (code, text) = state(&place, &["rename", "orders", "-a b"]);
    assert!(code == 64, "{code} {text}");
    let (code, text) = state(&place, &["rename", "orders", "a/b"]);
    assert!(code == 64 && text.contains("1 to 100 letters"), "{code} {text}");
    let (code, text) = state(&place, &["list"]);
    assert!(code == 0 && text.contains("orders") && text.contains("GENERATION"), "{text}");
    let (_, text) = state(&place, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(listed, Value::Array(vec![shown(&place, "orders")]));
    assert_eq!(listed[0]["tokens"], Value::Array(Vec::new()), "a clean stop leaves nothing pending");

    let incarnation = place.path("state/incarnation");
    let good = fs::read(&incarnation).unwrap();
    fs::write(&incarnation, b"\xff\xfe\n").unwrap();
    let (code, text) = state(&place, &["list"]);
    assert!(code == 65 && text.contains("hexadecimal"), "{code} {text}");
    assert_eq!(place.run_command().status().unwrap().code(), Some(65));
    fs::write(&incarnation, good).unwrap();
    let db = place.path("state/store/db");
    fs::write(&db, vec![0x5a; fs::metadata(&db).unwrap().len() as usize]).unwrap();
    let (code, text) = state(&place, &["list"]);
    assert!(code == 65 && text.contains("move the directory aside"), "{code} {text}");
}

#[test]
fn a_reset_pipeline_reads_another_queue_and_no_name_of_a_file_comes_again() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "first", 0..5);
    send(&emulator.endpoint, "second", 5..10);
    place.define("a", &definition(&emulator.endpoint, "first", &out));
    run_dry(&mut place, &emulator, "first");
    let (before, known) = (files(&out), shown(&place, "a"));
    // Its reader takes the files away.
    for name in &before {
        fs::rename(out.join(name), place.path(name)).unwrap();
    }

    place.define("a", &definition(&emulator.endpoint, "second", &out));
    let mut supervisor = place.run();
    let failed = supervisor.wait_for_state("a", "failed");
    let reason = failed["last_error"].as_str().unwrap();
    assert!(reason.contains("state reset a`") && reason.contains("state rename a NEW`"), "{reason}");
    assert_eq!(supervisor.stop(), 0);

    let (code, text) = state(&place, &["reset", "a"]);
    assert!(code == 0 && text.contains("first") && text.contains("generation"), "{text}");
    let reset = shown(&place, "a");
    assert_eq!((&reset["generation"], &reset["epoch"]), (&known["generation"], &known["epoch"]));
    assert_eq!((&reset["source"], &reset["ids"]), (&Value::Null, &Value::from(0)));
    run_dry(&mut place, &emulator, "second");
    assert_eq!(rows(&out), [5, 6, 7, 8, 9]);
    assert!(files(&out).iter().all(|name| !before.contains(name)), "{before:?} {:?}", files(&out));
}

#[test]
fn a_renamed_pipeline_still_knows_what_it_has_written() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 0..5);
    place.define("old", &definition(&emulator.endpoint, "q", &out));
    // Committed, but not deleted.
    run_until_killed(&mut place, "checkpoint.before_acknowledge=1");
    let written = rows(&out);
    assert!(!written.is_empty());
    for arguments in [&["rename", "old", "new"][..], &["reset", "old"]] {
        let (code, text) = state(&place, arguments);
        assert!(code == 73 && text.contains("state settle old`"), "{code} {text}");
    }
    let (code, text) = state(&place, &["settle", "old"]);
    assert!(code == 0 && text.contains("was committed"), "{code} {text}");
    // Left by the crash; of an old name, which nothing looks at any more.
    let leftover = out.join(".queuewarden/old/open-0123456789abcdef-1-7.json");
    fs::write(&leftover, "half a r").unwrap();
    let (code, text) = state(&place, &["rename", "old", "new"]);
    assert!(code == 0 && text.contains(".queuewarden/old"), "{code} {text}");
    assert_eq!(state(&place, &["show", "old"]).0, 66);

    fs::rename(place.path("pipelines/old.yaml"), place.path("pipelines/new.yaml")).unwrap();
    run_dry(&mut place, &emulator, "q");
    assert_eq!(rows(&out), [0, 1, 2, 3, 4], "what came again was recognised");
    assert!(leftover.exists());
    assert_eq!(state(&place, &["rename", "new", "new"]).0, 73);
}

#[test]
fn output_that_is_gone_for_good_is_settled_and_its_messages_are_written_again() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 0..5);
    place.define("a", &definition(&emulator.endpoint, "q", &out));
    // Prepared and recorded, but not committed.
    run_until_killed(&mut place, "checkpoint.after_store=1");
    let (code, text) = state(&place, &["settle", "a"]);
    assert!(code == 73 && text.contains("is still there"), "{code} {text}");
    fs::remove_dir_all(&out).unwrap();

    let mut supervisor = place.run();
    let failed = supervisor.wait_for_state("a", "failed");
    assert!(failed["last_error"].as_str().unwrap().contains("`queuewarden state settle a`"), "{failed}");
    assert_eq!(supervisor.stop(), 0);

    let (code, text) = state(&place, &["settle", "a"]);
    assert!(code == 0 && text.contains("is gone, and given up") && text.contains("part-"), "{code} {text}");
    run_dry(&mut place, &emulator, "q");
    assert_eq!(rows(&out), [0, 1, 2, 3, 4]);
    assert_eq!(state(&place, &["settle", "a"]), (0, "a: nothing is pending\n".to_owned()));
}

#[test]
fn a_process_whose_state_directory_is_removed_ends_before_it_deletes_a_message() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    send(&emulator.endpoint, "q", 0..1);
    place.define("a", &definition(&emulator.endpoint, "q", &place.path("out")));
    let mut supervisor = place.run();
    until(SOON, "the first message is deleted", || (emulator.left("q") == 0).then_some(()));
    fs::remove_dir_all(place.path("state")).unwrap();
    send(&emulator.endpoint, "q", 1..4);
    assert_eq!(supervisor.process.wait(SOON).code(), Some(74));
    assert!(supervisor.log().contains("was removed, moved or replaced while it was in use"), "{}", supervisor.log());
    assert_eq!(emulator.left("q"), 3);
}

#[test]
fn a_rename_that_is_killed_has_happened_as_a_whole_or_not_at_all() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    send(&emulator.endpoint, "q", 0..5);
    place.define("a", &definition(&emulator.endpoint, "q", &place.path("out")));
    run_dry(&mut place, &emulator, "q");
    let mut expected = shown(&place, "a");
    let (mut old, mut new) = ("a", "b");
    for at in ["store.before_apply", "store.after_apply", "store.after_flush", "store.after_sync"] {
        let mut command = binary();
        command.args(["state", "rename", old, new, "--state"]).arg(place.path("state")).env("QUEUEWARDEN_KILL_AT", at);
        assert_eq!(command.status().unwrap().code(), None, "killed at {at}");
        let (_, text) = state(&place, &["list", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&text).unwrap();
        if listed.len() == 1 && listed[0]["name"] == new {
            std::mem::swap(&mut old, &mut new);
            expected["name"] = old.into();
        }
        assert_eq!(listed, [expected.clone()], "{at}");
    }
}
