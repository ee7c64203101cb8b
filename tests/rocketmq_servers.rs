//! The servers and official clients that the other tests of RocketMQ rely on do what these expect of them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{collections::BTreeMap, time::Instant};

use common::rocketmq::{Outgoing, Servers, five, four};
use serde_json::json;

fn awkward(count: u32) -> Vec<Outgoing> {
    (0..count)
        .map(|n| Outgoing {
            queue: n % 4,
            body: [format!("message {n} – 你好\n").into_bytes(), vec![0, 0xff, n as u8]].concat(),
            keys: n.is_multiple_of(2).then(|| format!("key-{n} other")),
            tags: n.is_multiple_of(3).then(|| format!("Tag{}", n % 5)),
            properties: BTreeMap::from([("region".to_owned(), format!("r{}", n % 7))]),
        })
        .collect()
}

fn what_java_writes_java_reads(servers: &Servers, topic: &str) {
    servers.create_topic(topic, 4);
    let sent = awkward(1000);
    servers.send(topic, &sent);
    let read = servers.read(topic);
    assert_eq!(read.len(), sent.len());
    for queue in 0..4 {
        let sent = sent.iter().filter(|message| message.queue == queue);
        let read = read.iter().filter(|message| message.queue == queue);
        for (offset, (sent, read)) in sent.zip(read).enumerate() {
            assert_eq!(read.offset, offset as i64);
            assert_eq!((&read.body, &read.keys, &read.tags), (&sent.body, &sent.keys, &sent.tags));
            assert_eq!(read.properties.get("region"), sent.properties.get("region"));
        }
    }
}

fn a_restart_keeps_messages(servers: &Servers, topic: &str) {
    servers.create_topic(topic, 2);
    let sent: Vec<_> =
        awkward(200).into_iter().map(|message| Outgoing { queue: message.queue % 2, ..message }).collect();
    servers.send(topic, &sent);
    let before = servers.read(topic);
    let begun = Instant::now();
    servers.restart_broker();
    println!("{:?}: the broker was away for {:.1?}", servers.generation, begun.elapsed());
    assert_eq!(servers.read(topic), before);
    servers.send(topic, &sent);
    assert_eq!(servers.offsets(topic), [(0, 200), (0, 200)]);
}

fn the_admin_tool_counts_lag(servers: &Servers, topic: &str) {
    servers.create_topic(topic, 3);
    let queues = [5, 7, 11];
    for (queue, count) in (0..).zip(queues) {
        let message = Outgoing { queue, body: b"x".to_vec(), ..Outgoing::default() };
        servers.send(topic, &vec![message; count]);
    }
    servers.create_group("lag-group");
    for (queue, read) in (0..).zip([5, 4, 0]) {
        servers.commit("lag-group", topic, queue, read);
    }
    assert_eq!(servers.lag("lag-group", topic), [0, 3, 11]);
    let table = servers.mqadmin(&["consumerProgress", "-g", "lag-group"]);
    assert!(table.contains("lag") && table.contains("Diff Total: 14"), "{table}");
}

fn a_topic_grows(servers: &Servers, topic: &str) {
    servers.create_topic(topic, 2);
    assert_eq!(servers.offsets(topic).len(), 2);
    servers.create_topic(topic, 5);
    assert_eq!(servers.offsets(topic).len(), 5);
}

#[test]
fn servers_of_5_keep_what_the_clients_write_and_count_lag() {
    let Some(servers) = five() else { return };
    what_java_writes_java_reads(servers, "written");
    what_the_python_client_writes_through_the_proxy_lies_in_the_broker(servers);
    a_topic_grows(servers, "grown");
    the_admin_tool_counts_lag(servers, "lag");
    a_restart_keeps_messages(servers, "kept");
}

#[test]
fn servers_of_4_keep_what_the_java_client_writes_and_count_lag() {
    let Some(servers) = four() else { return };
    what_java_writes_java_reads(servers, "written");
    a_topic_grows(servers, "grown");
    the_admin_tool_counts_lag(servers, "lag");
    a_restart_keeps_messages(servers, "kept");
}

fn what_the_python_client_writes_through_the_proxy_lies_in_the_broker(servers: &Servers) {
    servers.create_topic("proxied", 4);
    let sent: Vec<_> = awkward(300).into_iter().collect();
    servers.send_grpc("proxied", &sent);
    let mut read: Vec<_> = servers.read("proxied").into_iter().map(|message| (message.body, message.tags)).collect();
    let mut sent: Vec<_> = sent.into_iter().map(|message| (message.body, message.tags)).collect();
    read.sort();
    sent.sort();
    assert_eq!(read, sent);
}

#[test]
fn the_client_says_what_went_wrong() {
    let Some(servers) = five() else { return };
    let error = servers.try_ask(&json!({"do": "offsets", "topic": "missing"})).unwrap_err();
    assert!(error.contains("missing"), "{error}");
}
