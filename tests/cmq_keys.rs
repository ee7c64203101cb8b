//! From Tencent's own SDK to files, with a primary key: whoever is killed, the first row of each key within its window
//! is written once, no other is, and every message is deleted.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    collections::BTreeMap,
    io::Write,
    ops::Range,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use common::{
    EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, cmq_pipelines::Rig, cmq_pipelines::metric, get, numbers::lines,
    until,
};
use serde_json::{Value, json};

/// Runs `tests/sdk/cmq_traffic.py`, which uses Tencent's Python SDK, and reads its one line of JSON.
fn sdk(arguments: &[&str], input: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/sdk/venv/bin/python");
    assert!(python.exists(), "Tencent's Python SDK is not installed: run `make sdk`");
    let mut child = Command::new(python)
        .arg(root.join("tests/sdk/cmq_traffic.py"))
        .args(arguments)
        .env("MNS_ACCESS_KEY_ID", KEY_ID)
        .env("MNS_ACCESS_KEY_SECRET", KEY_SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    serde_json::from_str(out.trim()).unwrap_or(Value::Null)
}

/// An emulator that keeps a record, a queue `q` in it, and a pipeline that reads it by `id`.
fn rig(visibility_seconds: u32, faults: &[&str], window: &str, rest: &str) -> Rig {
    let switches: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", fault]).collect();
    let emulator = EmulatorProcess::start(&[&["--cmq", "127.0.0.1:0", "--keep-log"], &switches[..]].concat());
    sdk(&["create", &emulator.cmq, "q", &visibility_seconds.to_string()], "");
    let rig = Rig { emulator, place: Place::new(), transport: "tcp" };
    let definition = format!(
        "source:\n{}  polling-wait-timeout: 1s\n  key-alive-timeout: {window}\n  primaryKey: [id]
  schema: {{ id: INT, n: INT }}\nsink: {{ connector: filesystem, path: {}, format: json }}\n{rest}\n",
        rig.queue("q"),
        rig.place.path("out").display()
    );
    rig.place.define("q", &definition);
    rig
}

/// Messages, each with a key and a number of its own.
fn send(rig: &Rig, sent: &mut u32, keys: impl IntoIterator<Item = u32>) {
    let mut bodies = String::new();
    for id in keys {
        bodies += &format!("{{\"id\":{id},\"n\":{sent}}}\n");
        *sent += 1;
    }
    sdk(&["send", &rig.emulator.cmq, "q"], &bodies);
}

fn row(text: &str) -> (u32, u32) {
    let row: Value = serde_json::from_str(text).expect("JSON");
    let number = |name: &str| u32::try_from(row[name].as_u64().expect("a number")).unwrap();
    (number("id"), number("n"))
}

/// The rows that were written: of each key the numbers.
fn written(rig: &Rig) -> BTreeMap<u32, Vec<u32>> {
    let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (id, n) in lines(&rig.place.path("out")).iter().map(|line| row(line)) {
        rows.entry(id).or_default().push(n);
    }
    rows.values_mut().for_each(|numbers| numbers.sort_unstable());
    rows
}

/// What the emulator knows of a message that was deleted.
#[derive(Debug, Clone, Copy)]
struct Sent {
    n: u32,
    /// Epoch milliseconds. The supervisor has decoded its row, for the last time, at some moment between these two.
    delivered_ms: i64,
    deleted_ms: i64,
    deliveries: u64,
}

/// The messages of each key, in the order in which they were first delivered.
fn log(rig: &Rig) -> BTreeMap<u32, Vec<Sent>> {
    let address = rig.emulator.cmq.strip_prefix("http://").expect("a URL");
    let (_, log) = get(address, "/_emulator/queues/q/log").expect("a log");
    let log: Vec<Value> = serde_json::from_str(&log).expect("JSON");
    let mut sent: BTreeMap<u32, Vec<Sent>> = BTreeMap::new();
    for entry in &log {
        let (id, n) = row(entry["body"].as_str().expect("a body"));
        let at = |what: &str| entry[what].as_i64().unwrap_or_else(|| panic!("not yet: {what} of {entry}"));
        let deliveries = entry["deliveries"].as_u64().expect("a number");
        let (delivered_ms, deleted_ms) = (at("first_delivered_ms"), at("deleted_ms"));
        sent.entry(id).or_default().push(Sent { n, delivered_ms, deleted_ms, deliveries });
    }
    // By the log in the order of sending.
    sent.values_mut().for_each(|sent| sent.sort_by_key(|sent| sent.delivered_ms));
    sent
}

/// Which messages of a key fall into one window, from when they were delivered and deleted. The row that began the
/// window was seen at some moment between the first delivery and the first delete in it, so another is inside it if it
/// was deleted before the earliest end, and outside if it came after the latest. What is in between is left out of this
/// test by the times at which it sends: far below the window apart, or above.
fn windows(sent: &[Sent], window: Duration) -> Vec<Vec<Sent>> {
    let window_ms = i64::try_from(window.as_millis()).unwrap();
    let mut windows: Vec<Vec<Sent>> = Vec::new();
    for sent in sent {
        let Some(last) = windows.last_mut() else {
            windows.push(vec![*sent]);
            continue;
        };
        let begin = last.iter().map(|sent| sent.delivered_ms).min().unwrap();
        let begun = last.iter().map(|sent| sent.deleted_ms).min().unwrap();
        if sent.deleted_ms < begin + window_ms {
            last.push(*sent);
        } else if sent.delivered_ms >= begun + window_ms {
            windows.push(vec![*sent]);
        } else {
            panic!("neither inside nor outside, the machine was too slow: {sent:?} of a window of {last:?}");
        }
    }
    windows
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

fn empty(rig: &Rig) {
    until(SOON * 3, "the queue is empty", || (rig.emulator.left("q") == 0).then_some(()));
}

#[test]
fn of_ten_thousand_messages_with_repeated_keys_each_key_is_written_once_a_window_across_twenty_kills() {
    /// What belongs together is sent within some seconds, what does not after this and more.
    const WINDOW: Duration = Duration::from_secs(45);
    const KILLS: u32 = 20;
    const EACH: u32 = 125;
    let faults = ["duplicate-in-flight=0.1", "duplicate-before-delete=0.1", "lost-delete-reply=0.05"];
    let mut rig = rig(3, &faults, "45s", "checkpoint: { interval: 300ms }");
    let keys_of = |kill: u32| -> Range<u32> { kill * EACH..(kill + 1) * EACH };
    let (mut sent, mut on_its_way) = (0, 0);
    for kill in 0..KILLS {
        let mut supervisor = rig.place.run();
        let enough = u64::from(sent + EACH);
        // New keys, each twice; and those of the round before once more, which the process before this one has seen.
        let before = (0..kill).map(keys_of).next_back().unwrap_or_default();
        let keys = keys_of(kill).chain(before).chain(keys_of(kill));
        // The kill comes while they are being sent: a queue that is empty again before anyone looks has nothing on its
        // way. If that happens all the same, the kill counts as one that proves nothing.
        let flying = std::thread::scope(|scope| {
            let sending = scope.spawn(|| send(&rig, &mut sent, keys));
            until(SOON, "some is deleted, and some is on its way", || {
                let all_sent = sending.is_finished();
                let report = rig.emulator.queue("q");
                let [inactive, deleted] = ["inactive", "deleted"].map(|what| report[what].as_u64().unwrap_or(0));
                let gone = all_sent && rig.emulator.left("q") == 0;
                (gone || inactive > 0 && deleted >= enough).then_some(inactive)
            })
        });
        on_its_way += u32::from(flying > 0);
        supervisor.process.kill_9();
        println!("kill {kill}: {flying} messages in flight");
    }
    assert!(on_its_way >= KILLS / 2, "only {on_its_way} kills had messages on their way");
    let mut supervisor = rig.place.run();
    send(&rig, &mut sent, keys_of(KILLS - 1));
    empty(&rig);
    assert!(metric(&supervisor, "dedup_key_rows_dropped_total") > 0);
    supervisor.process.kill_9();
    // Down until every window is over.
    let over = log(&rig).values().flatten().map(|sent| sent.deleted_ms).max().unwrap() + 1000;
    let over = over + i64::try_from(WINDOW.as_millis()).unwrap();
    until(WINDOW * 2, "every window is over", || (now_ms() > over).then_some(()));
    let mut supervisor = rig.place.run();
    send(&rig, &mut sent, 0..KILLS * EACH);
    empty(&rig);
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(sdk(&["counts", &rig.emulator.cmq, "q"], ""), json!({"active": 0, "inactive": 0, "delayed": 0}));
    assert_eq!(sent, 10_000);

    let (mut written, mut first) = (written(&rig), 0);
    for (id, sent) in log(&rig) {
        let mut rows = written.remove(&id).unwrap_or_default();
        let expected = windows(&sent, WINDOW);
        assert_eq!((rows.len(), expected.len()), (2, 2), "key {id}: {rows:?} of {expected:?}");
        for window in expected {
            // Of what was delivered again it is not known which delivery was recorded.
            let told = window.iter().all(|sent| sent.deliveries == 1);
            let of_window = |n: &u32| window.iter().take(if told { 1 } else { window.len() }).any(|sent| sent.n == *n);
            let at = rows.iter().position(of_window);
            rows.remove(at.unwrap_or_else(|| panic!("key {id}: {rows:?}, none of them of {window:?}")));
            first += u32::from(told && window.len() > 1);
        }
    }
    assert!(written.is_empty(), "rows of no message: {written:?}");
    println!("in {first} windows of several messages it was known which was the first");
    assert!(first > KILLS * EACH / 10, "{first}");
}

/// In the order in which a checkpoint passes them.
#[cfg(feature = "failpoints")]
const PLACES: [&str; 14] = [
    "dedup.rows",
    "sink.write",
    "sink.before_prepare",
    "fs.after_prepare",
    "sink.after_prepare",
    "checkpoint.before_store",
    "store.before_apply",
    "store.after_apply",
    "store.after_sync",
    "checkpoint.after_store",
    "fs.before_rename",
    "fs.after_renames",
    "checkpoint.before_acknowledge",
    "poller.acknowledge",
];

#[test]
#[cfg(feature = "failpoints")]
fn killed_at_every_place_of_a_checkpoint_each_key_is_written_once() {
    const EACH: u32 = 20;
    let mut rig = rig(1, &["duplicate-in-flight=0.1"], "1h", "checkpoint: { interval: 200ms }");
    let (mut sent, mut keys) = (0, 0);
    for (round, at) in (1..=2).flat_map(|times| PLACES.iter().map(move |at| (times, *at))) {
        // New ones, and one of each round before, which is known.
        let again = (0..keys).step_by(EACH as usize);
        send(&rig, &mut sent, (keys..keys + EACH).chain(again).chain(keys..keys + EACH));
        keys += EACH;
        let mut command = rig.place.run_command();
        command.env("QUEUEWARDEN_KILL_AT", format!("{at}={round}"));
        let mut process = common::Process(command.spawn().expect("it starts"));
        let status = until(SOON, &format!("it is killed at {at}"), || {
            let status = process.0.try_wait().expect("it can be waited for");
            // Where all was acknowledged before the place was reached often enough, more rows are needed.
            if status.is_none() && rig.emulator.left("q") == 0 {
                send(&rig, &mut sent, keys..keys + EACH);
                keys += EACH;
            }
            status
        });
        assert_eq!(status.code(), None, "{at}: it ended by a signal");
    }
    let mut supervisor = rig.place.run();
    send(&rig, &mut sent, 0..keys);
    empty(&rig);
    assert_eq!(supervisor.stop(), 0);
    let written = written(&rig);
    assert_eq!(written.keys().copied().collect::<Vec<_>>(), (0..keys).collect::<Vec<_>>());
    let twice: Vec<_> = written.iter().filter(|(_, rows)| rows.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
