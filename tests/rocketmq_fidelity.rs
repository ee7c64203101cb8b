//! What the official clients wrote is in the files once and as it was, though the process is killed three times and the
//! broker once: against the real broker of 5.x, its proxy, and the real broker of 4.9.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use common::{
    Place, Supervisor,
    numbers::lines,
    rocketmq::{Outgoing, Received, Servers, five, four},
    until,
};
use serde_json::{Value, json};

const MESSAGES: u32 = 100_000;
const QUEUES: u32 = 8;
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

fn definition(connector: &str, endpoint: &str, place: &Place) -> String {
    format!(
        "source:
  connector: {connector}
  rocketmq.client.endpoints: {endpoint}
  rocketmq.client.channel: LOCAL
  rocketmq.source.topic: fidelity
  rocketmq.source.group: fidelity-{connector}
  rocketmq.source.startup.scan.mode: earliest
  format: raw
  schema:
    body: STRING
    queue-id: INT METADATA VIRTUAL
    queue-offset: BIGINT METADATA VIRTUAL
    msg-id: STRING METADATA VIRTUAL
    keys: STRING METADATA VIRTUAL
    tags: STRING METADATA VIRTUAL
    properties: MAP<STRING, STRING> METADATA VIRTUAL
sink: {{ connector: filesystem, format: json, path: {} }}
checkpoint: {{ interval: 200ms }}
",
        place.path("out").display()
    )
}

/// The row that a message stands for.
fn row(message: &Received) -> Value {
    json!({
        "body": message.text(),
        "queue-id": message.queue,
        "queue-offset": message.offset,
        "msg-id": message.id,
        "keys": message.keys.as_deref().unwrap_or_default(),
        "tags": message.tags.as_deref().unwrap_or_default(),
        "properties": {"region": message.properties["region"]},
    })
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
fn run(servers: &Servers, place: &mut Place, group: &str) {
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
    until(LONG, "the group is at the end", || (servers.lag(group, "fidelity") == [0; QUEUES as usize]).then_some(()));
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
}

/// Of what lies in the broker, each message is in the files once, with all that it carries.
fn assert_each_is_written_once(place: &Place, stored: &[Received]) {
    let mut found: BTreeMap<(u64, u64), Value> = BTreeMap::new();
    let mut twice = Vec::new();
    for line in lines(&place.path("out")) {
        let row: Value = serde_json::from_str(&line).expect("JSON");
        let lies = (row["queue-id"].as_u64().expect("a queue"), row["queue-offset"].as_u64().expect("an offset"));
        if found.insert(lies, row).is_some() {
            twice.push(lies);
        }
    }
    let mut missing = Vec::new();
    for message in stored {
        match found.get(&(u64::from(message.queue), message.offset as u64)) {
            Some(found) => assert_eq!(*found, row(message)),
            None => missing.push((message.queue, message.offset)),
        }
    }
    let some = |list: &[_]| list.len().min(20);
    assert!(missing.is_empty(), "{} are missing: {:?}", missing.len(), &missing[..some(&[(); 0]).max(missing.len().min(20))]);
    assert!(twice.is_empty(), "{} are there twice: {:?}", twice.len(), &twice[..twice.len().min(20)]);
    assert_eq!(found.len(), stored.len());
}

fn bodies<'a>(bodies: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let mut bodies: Vec<_> = bodies.collect();
    bodies.sort_unstable();
    bodies
}

fn fidelity(servers: &Servers, connector: &str, endpoint: &str, sent: &[Outgoing]) {
    let stored = servers.read("fidelity");
    assert_eq!(bodies(stored.iter().map(|one| &*one.body)), bodies(sent.iter().map(|one| &*one.body)));
    let mut place = Place::new();
    place.define("p", &definition(connector, endpoint, &place));
    run(servers, &mut place, &format!("fidelity-{connector}"));
    assert_each_is_written_once(&place, &stored);
}

fn by_java(servers: &Servers, connector: &str) {
    let sent: Vec<_> = (0..MESSAGES).map(message).collect();
    servers.create_topic("fidelity", QUEUES);
    servers.send("fidelity", &sent);
    fidelity(servers, connector, &servers.name_server(), &sent);
}

#[test]
fn what_lies_in_a_broker_of_5_is_written_once_with_three_kills_and_a_restart_of_the_broker() {
    let _turn = one_at_a_time();
    let Some(servers) = five() else { return };
    by_java(servers, "rocketmq5");
}

#[test]
fn what_lies_in_a_broker_of_4_is_written_once_with_three_kills_and_a_restart_of_the_broker() {
    let _turn = one_at_a_time();
    let Some(servers) = four() else { return };
    by_java(servers, "rocketmq4");
}
