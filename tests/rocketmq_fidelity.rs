//! What the official clients wrote is in the files once and as it was, though the process is killed three times and the
//! broker once: against the real broker of 5.x, its proxy, and the real broker of 4.9.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use common::{
    Place, Supervisor,
    rocketmq::{Outgoing, Reading, Received, Servers, five, four, row, rows},
    until,
};
use serde_json::Value;

const MESSAGES: u32 = 100_000;
const QUEUES: u32 = 8;
/// Python sends one by one, so that all would take too long; the rest is by Java.
const BY_PYTHON: u32 = 20_000;
const GROUP: &str = "fidelity";
const LONG: Duration = Duration::from_secs(420);

const AWKWARD: [&str; 14] = [
    "plain",
    " blanks around ",
    "quotes \" ' ` and \\ backslashes \\\\",
    "markup <b>&amp;</b> ]]> <![CDATA[ <!-- -->",
    "line\nfeeds\r\nand\ttabs",
    "controls \0 \u{1} \u{2} \u{1f} \u{7f} \u{85} \u{2028} \u{2029}",
    "null",
    "dGhpcyBsb29rcyBsaWtlIGJhc2U2NA==",
    "你好，世界 – žluťoučký kůň – עברית – 🦀👩‍👩‍👧‍👦",
    "combining e\u{301}, zero\u{200b}width, bom \u{feff}",
    "{\"json\": [\"in\", \"json\"]}",
    "a,b;c|d\u{1}e",
    "+I[not, a, row]",
    "%20 + percent %FF",
];

/// Two of them would have each other's broker restarted, and the machine has no more to give anyway.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn message(n: u32) -> Outgoing {
    let mut body = format!("{} #{n}", AWKWARD[n as usize % AWKWARD.len()]);
    if n.is_multiple_of(1000) {
        body += &"x".repeat(9000);
    }
    Outgoing {
        queue: n % QUEUES,
        body: body.into_bytes(),
        keys: n.is_multiple_of(3).then(|| format!("key-{n} other-{}", n % 10)),
        tags: n.is_multiple_of(2).then(|| format!("tag-{}", n % 5)),
        properties: BTreeMap::from([("region".to_owned(), format!("r {} –", n % 7))]),
    }
}

fn written(supervisor: &Supervisor) -> u64 {
    supervisor.pipeline("p").and_then(|status| status["counts"]["rows_written"].as_u64()).unwrap_or(0)
}

/// Waits until this process has written so many rows; how long that took is shown.
fn writes(supervisor: &Supervisor, more: u64) {
    let (begun, before) = (Instant::now(), written(supervisor));
    until(LONG, "rows are written", || (written(supervisor) >= before + more).then_some(()));
    println!("{more} rows in {:.1?}", begun.elapsed());
}

/// Reads all of the topic with three kills and one restart of the broker.
fn run(servers: &Servers, place: &mut Place, topic: &str) {
    let step = u64::from(MESSAGES) / 8;
    for _ in 0..2 {
        let mut supervisor = place.run();
        writes(&supervisor, step);
        supervisor.process.kill_9();
    }
    let mut supervisor = place.run();
    writes(&supervisor, step);
    let begun = Instant::now();
    servers.restart_broker();
    println!("the broker was away for {:.1?}", begun.elapsed());
    writes(&supervisor, step);
    supervisor.process.kill_9();
    let mut supervisor = place.run();
    let at_end = || servers.lag(GROUP, topic) == [0; QUEUES as usize];
    until(LONG, "the group is at the end", || at_end().then_some(()));
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
}

/// Of what lies in the broker, each message is in the files once, with all that it carries.
fn assert_each_is_written_once(place: &Place, stored: &[Received]) {
    let mut found: BTreeMap<(u64, u64), Value> = BTreeMap::new();
    let mut twice = Vec::new();
    let mut ids = BTreeSet::new();
    for mut row in rows(&place.path("out")) {
        let id = row["msg-id"].take();
        assert!(ids.insert(id.as_str().expect("an id").to_owned()), "{id} is another message's too");
        let lies = (row["queue-id"].as_u64().expect("a queue"), row["queue-offset"].as_u64().expect("an offset"));
        if found.insert(lies, row).is_some() {
            twice.push(lies);
        }
    }
    let mut missing = Vec::new();
    for message in stored {
        match found.get(&(u64::from(message.queue), message.offset as u64)) {
            Some(found) => assert_eq!(*found, row(message, &["region"])),
            None => missing.push((message.queue, message.offset)),
        }
    }
    assert!(missing.is_empty(), "{} are missing: {:?}", missing.len(), &missing[..missing.len().min(20)]);
    assert!(twice.is_empty(), "{} are there twice: {:?}", twice.len(), &twice[..twice.len().min(20)]);
    assert_eq!(found.len(), stored.len());
}

fn sorted<'a>(bodies: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let mut bodies: Vec<_> = bodies.collect();
    bodies.sort_unstable();
    bodies
}

/// `sent` lies in the topic, and nothing else.
fn fidelity(servers: &Servers, topic: &str, endpoint: String, sent: &[Outgoing]) {
    let stored = servers.read(topic);
    assert!(sorted(stored.iter().map(|one| &*one.body)) == sorted(sent.iter().map(|one| &*one.body)), "all is stored");
    let mut place = Place::new();
    let reading = Reading { endpoint, ..Reading::new(servers, topic, GROUP, &[]) };
    place.define("p", &reading.definition(&place.path("out")));
    run(servers, &mut place, topic);
    assert_each_is_written_once(&place, &stored);
}

/// Sends all, the first by Python through the proxy.
fn send(servers: &Servers, topic: &str, by_python: u32) -> Vec<Outgoing> {
    let sent: Vec<_> = (0..MESSAGES).map(message).collect();
    servers.create_topic(topic, QUEUES);
    let (python, java) = sent.split_at(by_python as usize);
    for (client, messages) in [("Python", python), ("Java", java)] {
        let begun = Instant::now();
        match (messages, client) {
            ([], _) => continue,
            (_, "Python") => servers.send_grpc(topic, messages),
            _ => servers.send(topic, messages),
        }
        println!("{} sent by {client} in {:.1?}", messages.len(), begun.elapsed());
    }
    sent
}

#[test]
fn what_java_wrote_to_a_broker_of_5_is_in_the_files_once_with_three_kills_and_a_restart_of_the_broker() {
    let _turn = one_at_a_time();
    let Some(servers) = five() else { return };
    let sent = send(servers, "direct", 0);
    fidelity(servers, "direct", servers.name_server(), &sent);
}

#[test]
fn what_java_wrote_to_a_broker_of_4_is_in_the_files_once_with_three_kills_and_a_restart_of_the_broker() {
    let _turn = one_at_a_time();
    let Some(servers) = four() else { return };
    let sent = send(servers, "direct", 0);
    fidelity(servers, "direct", servers.name_server(), &sent);
}

#[test]
fn what_python_wrote_through_a_proxy_is_in_the_files_once_through_the_proxy_with_three_kills_and_a_restart_of_the_broker()
 {
    let _turn = one_at_a_time();
    let Some(servers) = five() else { return };
    let sent = send(servers, "proxied", BY_PYTHON);
    fidelity(servers, "proxied", servers.proxy(), &sent);
}
