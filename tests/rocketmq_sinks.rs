//! What the sinks write is what the official client reads: bodies, keys and tags.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::collections::BTreeMap;

use common::{
    Place, SOON,
    rocketmq::{Outgoing, Received, Servers, five, four},
    until,
};

const COUNT: u32 = 2_000;

/// Rows of the connector's page, in its own format.
fn behaviors(with_keys: bool) -> Vec<Outgoing> {
    let behaviors = ["buy", "cart", "fav", "购买 – 🦀"];
    (0..COUNT)
        .map(|n| Outgoing {
            queue: n % 4,
            body: format!("{n}\u{1}{}\u{1}{}", 7 * u64::from(n), behaviors[n as usize % 4]).into_bytes(),
            keys: (with_keys && n % 3 != 0).then(|| format!("user-{n} item-{}", n % 9)),
            tags: (with_keys && n % 2 != 0).then(|| format!("tag{}", n % 5)),
            properties: BTreeMap::new(),
        })
        .collect()
}

/// What is compared, in an order of its own: which queue a row goes to is the sink's affair.
type Compared = (Vec<u8>, Option<String>, Option<String>);

fn sent(messages: &[Outgoing]) -> Vec<Compared> {
    sorted(messages.iter().map(|one| (one.body.clone(), one.keys.clone(), one.tags.clone())))
}

fn read(messages: &[Received]) -> Vec<Compared> {
    sorted(messages.iter().map(|one| (one.body.clone(), one.keys.clone(), one.tags.clone())))
}

fn sorted(messages: impl Iterator<Item = Compared>) -> Vec<Compared> {
    let mut messages: Vec<_> = messages.collect();
    messages.sort();
    messages
}

/// Runs the definition until the topic holds as many messages as were sent, and a moment more that would show others.
fn run(servers: &Servers, topic: &str, definition: &str) -> Vec<Received> {
    let mut place = Place::new();
    place.define("p", definition);
    let mut supervisor = place.run();
    let held = || servers.offsets(topic).iter().map(|(first, next)| next - first).sum::<i64>();
    until(SOON, "all is sent on", || {
        assert_ne!(supervisor.pipeline("p")?["state"], "failed", "{}", supervisor.log());
        (held() >= i64::from(COUNT)).then_some(())
    });
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
    servers.read(topic)
}

/// The pipeline of section 19 of the connectors' page.
fn from_rocketmq_to_rocketmq(servers: &Servers, endpoint: &str, name: &str) {
    let connector = servers.connector();
    let (from, to) = (format!("{name}-from"), format!("{name}-to"));
    servers.create_topic(&from, 4);
    servers.create_topic(&to, 8);
    let messages = behaviors(false);
    servers.send(&from, &messages);
    let definition = format!(
        "source:
  connector: {connector}
  rocketmq.client.endpoints: {endpoint}
  rocketmq.source.topic: {from}
  rocketmq.source.group: {name}-group
  rocketmq.source.startup.scan.mode: earliest
  rocketmq.client.accessKey: YourAccessKey
  rocketmq.client.secretKey: YourSecretKey
  schema:
    user_id: BIGINT
    item_id: BIGINT
    behavior: STRING
sink:
  connector: {connector}
  rocketmq.sink.topic: {to}
  rocketmq.client.endpoints: {endpoint}
  rocketmq.client.accessKey: YourAccessKey
  rocketmq.client.secretKey: YourSecretKey
"
    );
    let read_back = run(servers, &to, &definition);
    assert_eq!(read(&read_back), sent(&messages));
    let mut used: Vec<_> = read_back.iter().map(|one| one.queue).collect();
    used.dedup();
    assert!(used.len() > 1, "rows go to several queues: {used:?}");
}

/// A sink with columns for keys and tags.
fn with_keys_and_tags(servers: &Servers, name: &str, sink: &str) {
    let (connector, endpoint) = (servers.connector(), servers.name_server());
    let (from, to) = (format!("{name}-from"), format!("{name}-to"));
    servers.create_topic(&from, 4);
    servers.create_topic(&to, 4);
    let messages = behaviors(true);
    servers.send(&from, &messages);
    let sink = sink.replace("TOPIC", &to).replace("ENDPOINT", &endpoint).replace("CONNECTOR", connector);
    let definition = format!(
        "source:
  connector: {connector}
  rocketmq.client.endpoints: {endpoint}
  rocketmq.source.topic: {from}
  rocketmq.source.group: {name}-group
  rocketmq.source.startup.scan.mode: earliest
  schema:
    user_id: BIGINT
    item_id: BIGINT
    behavior: STRING
    keys: STRING METADATA
    tags: STRING METADATA
{sink}  schema:
    user_id: BIGINT
    item_id: BIGINT
    behavior: STRING
    keys: STRING METADATA
    tags: STRING METADATA
"
    );
    assert_eq!(read(&run(servers, &to, &definition)), sent(&messages));
}

const ROCKETMQ: &str = "sink:
  connector: CONNECTOR
  rocketmq.sink.topic: TOPIC
  rocketmq.client.endpoints: ENDPOINT
";

const MQ: &str = "sink:
  connector: mq
  endpoint: ENDPOINT
  accessId: YourAccessId
  accessKey: YourAccessSecret
  topic: TOPIC
  producerGroup: YourGroupName
  encoding: utf-8
  retryTimes: 5
  sleepTimeMs: 500
";

#[test]
fn rows_from_5_to_5_are_read_by_java_as_they_were_written() {
    let Some(servers) = five() else { return };
    from_rocketmq_to_rocketmq(servers, &servers.name_server(), "direct");
}

#[test]
fn rows_through_a_proxy_are_read_by_java_as_they_were_written() {
    let Some(servers) = five() else { return };
    from_rocketmq_to_rocketmq(servers, &servers.proxy(), "proxied");
}

#[test]
fn rows_from_4_to_4_are_read_by_java_as_they_were_written() {
    let Some(servers) = four() else { return };
    from_rocketmq_to_rocketmq(servers, &servers.name_server(), "direct");
}

#[test]
fn keys_and_tags_written_to_5_are_read_by_java() {
    let Some(servers) = five() else { return };
    with_keys_and_tags(servers, "keyed", ROCKETMQ);
    with_keys_and_tags(servers, "keyed-mq", MQ);
}

#[test]
fn keys_and_tags_written_to_4_are_read_by_java() {
    let Some(servers) = four() else { return };
    with_keys_and_tags(servers, "keyed", ROCKETMQ);
    with_keys_and_tags(servers, "keyed-mq", MQ);
}
