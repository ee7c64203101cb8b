//! Messages that reach a queue through a topic, and notifications of several events, from the queue to files.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD};
use common::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, Supervisor, get, until};
use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::{Outgoing, escape},
};
use serde_json::{Value, json};

fn send(emulator: &EmulatorProcess, bodies: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    let client = Client::new(&emulator.endpoint, credentials).unwrap();
    let outgoing: Vec<_> = bodies.iter().map(|body| Outgoing { body: body.clone(), ..Outgoing::default() }).collect();
    runtime.block_on(client.send("q", &outgoing)).unwrap();
}

/// A running pipeline of the queue `q` into files; `rest` is of the source.
fn run(emulator: &EmulatorProcess, rest: &str) -> (Place, Supervisor) {
    let mut place = Place::new();
    let definition = format!(
        "source:
  connector: mns
  endpoint: {}
  region: cn-hangzhou
  queueName: q
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  format: json
  batchSize: 16
{rest}
sink: {{ connector: filesystem, path: {}, format: json }}
checkpoint: {{ interval: 100ms }}
on_error: skip
",
        emulator.endpoint,
        place.path("out").display()
    );
    place.define("q", &definition);
    let supervisor = place.run();
    (place, supervisor)
}

/// The rows in the order of their text, once the queue is empty.
fn rows(emulator: &EmulatorProcess, place: &Place) -> Vec<Value> {
    until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    let files =
        fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut lines: Vec<String> = files
        .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.sort();
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn metric(supervisor: &Supervisor, name: &str) -> String {
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {metrics}"));
    line.rsplit(' ').next().unwrap().to_owned()
}

/// In the order of fields of a recorded push.
fn json_envelope(message: &str) -> String {
    json!({
        "TopicOwner": "1000", "Message": message, "Subscriber": "1000", "PublishTime": "1768465800000",
        "SubscriptionName": "to-queue", "MessageMD5": "0C", "TopicName": "t", "MessageId": "0F",
    })
    .to_string()
}

fn xml_envelope(message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Notification xmlns=\"http://mns.aliyuncs.com/doc/v1/\">\
         <TopicOwner>1000</TopicOwner><TopicName>t</TopicName><Subscriber>1000</Subscriber>\
         <SubscriptionName>to-queue</SubscriptionName><MessageId>0F</MessageId><Message>{}</Message>\
         <MessageMD5>0C</MessageMD5><PublishTime>1768465800000</PublishTime></Notification>",
        escape(message)
    )
}

#[test]
fn messages_of_a_topic_are_rows_in_whatever_form_the_subscription_delivers_them() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let published = |n: u32| format!("{{\"n\":{n},\"text\":\"<&>\"}}");
    send(
        &emulator,
        &[
            published(1),
            STANDARD.encode(published(2)),
            json_envelope(&published(3)),
            json_envelope(&STANDARD.encode(published(4))),
            xml_envelope(&published(5)),
            xml_envelope(&STANDARD.encode(published(6))),
            // Not an envelope, though it has a text of that name.
            json!({"n": 7, "text": "<&>", "Message": published(8), "SubscriptionName": "s"}).to_string(),
        ],
    );
    let (place, mut supervisor) = run(&emulator, "  schema: { n: INT, text: STRING }");
    let expected: Vec<_> = (1..=7).map(|n| json!({"n": n, "text": "<&>"})).collect();
    assert_eq!(rows(&emulator, &place), expected);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_body_that_is_not_the_named_envelope_is_an_error_of_its_message_alone() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    send(&emulator, &[xml_envelope("{\"n\":1}"), "{\"n\":2}".to_owned(), json_envelope("{\"n\":3}")]);
    let (place, mut supervisor) = run(&emulator, "  topicEnvelope: xml\n  schema: { n: INT }");
    assert_eq!(rows(&emulator, &place), [json!({"n": 1})]);
    assert!(supervisor.log().contains("topicEnvelope: xml"), "{}", supervisor.log());
    assert_eq!(supervisor.stop(), 0);
}

fn notification(keys: &[&str]) -> String {
    let event = |key: &&str| json!({"eventName": "ObjectCreated:PutObject", "oss": {"object": {"key": key}}});
    json!({ "events": keys.iter().map(event).collect::<Vec<_>>() }).to_string()
}

const OSS: &str = "  messageType: OSS\n  schema: { ossObjectKey: STRING, priority: INT METADATA }";

#[test]
fn of_several_events_the_first_is_a_row_and_the_others_are_counted_unless_all_are_asked_for() {
    for (option, keys, unread) in [("first", vec!["a", "d"], "2"), ("all", vec!["a", "b", "c", "d"], "0")] {
        let emulator = EmulatorProcess::start(&["--queue", "q"]);
        let one = STANDARD.encode(notification(&["d"]));
        send(&emulator, &[xml_envelope(&STANDARD.encode(notification(&["a", "b", "c"]))), one]);
        let (place, mut supervisor) = run(&emulator, &format!("{OSS}\n  oss.events: {option}"));
        let expected: Vec<_> = keys.iter().map(|key| json!({"ossObjectKey": key, "priority": 8})).collect();
        assert_eq!(rows(&emulator, &place), expected, "{option}");
        assert_eq!(metric(&supervisor, "queuewarden_decode_unread_total"), unread, "{option}");
        assert_eq!((emulator.count("q", "deleted"), supervisor.stop()), (2, 0));
    }
}
