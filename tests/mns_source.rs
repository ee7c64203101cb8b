//! The MNS source and client against the emulator, over TCP.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that is not as it should be")]

use std::{sync::Arc, time::Duration};

use queuewarden::{
    connector::{Acknowledged, OpenedQueue, QueueSource},
    connectors::mns::{
        MnsSource, TABLE,
        client::{Client, Credentials},
        wire::{Outgoing, QueueSettings},
    },
    definition::{OptionValue, Options},
    emulator::{AccessKey, Config, Emulator, Faults, start},
    model::{Body, FaultKind, Mend, Message, MetaValue, Receipt},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const QUEUE: &str = "q";

fn credentials() -> Credentials {
    Credentials { access_key_id: "id".into(), access_key_secret: "secret".into(), security_token: None }
}

async fn emulator(faults: Faults) -> Emulator {
    let credentials = Some(AccessKey { id: "id".into(), secret: "secret".into() });
    start(Config { credentials, queues: vec![QUEUE.into()], faults, ..Config::default() }).await.expect("it starts")
}

fn client(emulator: &Emulator) -> Client {
    Client::new(&emulator.endpoint(), credentials()).expect("a valid endpoint")
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.into())
}

fn options(endpoint: &str, changes: &[(&str, OptionValue)]) -> Options {
    let mut options = Options::default();
    let defaults = [
        ("endpoint", text(endpoint)),
        ("region", text("cn-hangzhou")),
        ("queueName", text(QUEUE)),
        ("accessKeyId", text("id")),
        ("accessKeySecret", text("secret")),
        ("batchSize", OptionValue::Integer(16)),
        ("pollingWaitTime", OptionValue::Duration(Duration::ZERO)),
        ("messageType", text("RAW")),
        ("deleteMaxRetries", OptionValue::Integer(3)),
        ("startTimeMs", OptionValue::Integer(-1)),
        ("receive.concurrency", OptionValue::Integer(1)),
        ("bodyEncoding", text("auto")),
        ("topicEnvelope", text("auto")),
        ("visibility.extension", OptionValue::Boolean(true)),
    ];
    for (name, value) in defaults.iter().chain(changes) {
        options.insert(TABLE.find(name).expect("an option"), value.clone());
    }
    options
}

async fn open(emulator: &Emulator, changes: &[(&str, OptionValue)]) -> OpenedQueue {
    let source = MnsSource::new(&options(&emulator.endpoint(), changes), "json").expect("valid options");
    source.open().await.expect("the queue is there")
}

async fn send(client: &Client, bodies: &[&str]) {
    let messages: Vec<_> = bodies.iter().map(|body| Outgoing { body: (*body).into(), ..Outgoing::default() }).collect();
    assert_eq!(client.send(QUEUE, &messages).await.expect("sent").len(), bodies.len());
}

fn receipt(message: &Message) -> Receipt {
    message.receipt.clone().expect("a receipt")
}

fn body(message: &Message) -> String {
    match &message.body {
        Body::Bytes(bytes) => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
        other => format!("{other:?}"),
    }
}

fn holds(emulator: &Emulator) -> (u64, u64, u64) {
    let report = &emulator.stats()[QUEUE];
    (report.active, report.inactive, report.delayed)
}

#[tokio::test]
async fn awkward_bodies_arrive_byte_for_byte_with_their_metadata_and_are_deleted() {
    let emulator = emulator(Faults::default()).await;
    let bodies = ["  {\"a\":\"<&>\"}\r\n\t", "", "世界 \u{1F600} ]]> \"'", "eyJhIjoxfQ=="];
    send(&client(&emulator), &bodies).await;
    let opened = open(&emulator, &[]).await;
    assert_eq!(opened.facts.visibility_timeout, Some(Duration::from_secs(30)));
    assert_eq!(opened.facts.retention, Some(Duration::from_secs(345_600)));
    let messages = opened.reader.poll().await.expect("a poll");
    let received: Vec<_> = messages.iter().map(body).collect();
    assert_eq!(received, [bodies[0], bodies[1], bodies[2], "{\"a\":1}"]);
    for message in &messages {
        let receipt = receipt(message);
        let MetaValue::Text(id) = &message.meta[0] else { panic!("{:?}", message.meta) };
        assert_eq!(*id, message.id);
        assert_eq!(
            message.meta[3..],
            [MetaValue::Millis(receipt.next_visible_ms), MetaValue::Integer(1), MetaValue::Integer(8)]
        );
        // The answer's date is cut to whole seconds, and may be of the second after the receive.
        assert!((29..=30).contains(&receipt.invisible_for.as_secs()), "{receipt:?}");
    }
    let receipts: Vec<_> = messages.iter().map(receipt).collect();
    let outcomes = opened.acknowledger.acknowledge(&receipts).await.expect("a delete");
    assert_eq!(outcomes, vec![Acknowledged::Deleted; 4]);
    assert_eq!(holds(&emulator), (0, 0, 0));
    assert!(opened.reader.poll().await.expect("an empty poll").is_empty());
}

#[tokio::test]
async fn a_partly_failed_delete_tells_each_receipt_its_own_outcome() {
    let emulator = emulator(Faults::default()).await;
    send(&client(&emulator), &["1", "2"]).await;
    let opened = open(&emulator, &[]).await;
    let mut receipts: Vec<_> = opened.reader.poll().await.expect("a poll").iter().map(receipt).collect();
    let malformed = Receipt { handle: "nonsense".into(), ..receipts[0].clone() };
    opened.acknowledger.acknowledge(&receipts[..1]).await.expect("a delete");
    receipts.insert(1, malformed);
    let outcomes = opened.acknowledger.acknowledge(&receipts).await.expect("a delete");
    assert_eq!(outcomes[0], Acknowledged::Unknown);
    assert!(matches!(&outcomes[1], Acknowledged::Refused(why) if why.contains("ReceiptHandleError")));
    assert_eq!(outcomes[2], Acknowledged::Deleted);
}

#[tokio::test]
async fn an_extension_answers_the_receipt_that_replaces_the_old_one() {
    let emulator = emulator(Faults::default()).await;
    send(&client(&emulator), &["1"]).await;
    let opened = open(&emulator, &[]).await;
    let old = receipt(&opened.reader.poll().await.expect("a poll")[0]);
    let extend = |receipt: Receipt| {
        let acknowledger = Arc::clone(&opened.acknowledger);
        async move { acknowledger.extend(&receipt, Duration::from_secs(90)).await.expect("a call") }
    };
    let new = extend(old.clone()).await.expect("still known");
    assert!(new.is_newer_than(&old));
    assert_eq!(new.invisible_for, Duration::from_secs(90));
    assert!(extend(old.clone()).await.is_none());
    emulator.advance(Duration::from_secs(60));
    let outcomes = opened.acknowledger.acknowledge(&[old, new]).await.expect("a delete");
    assert_eq!(outcomes, [Acknowledged::Unknown, Acknowledged::Deleted]);
}

#[tokio::test]
async fn a_waiting_poll_wakes_on_arrival_and_on_a_visibility_timeout() {
    let emulator = emulator(Faults::default()).await;
    let client = client(&emulator);
    let opened = open(&emulator, &[("pollingWaitTime", OptionValue::Duration(Duration::from_secs(30)))]).await;
    let poll = || {
        let reader = Arc::clone(&opened.reader);
        tokio::spawn(async move { reader.poll().await.expect("a poll") })
    };
    let waiting = poll();
    send(&client, &["1"]).await;
    let first = waiting.await.expect("no panic");
    assert_eq!(first.len(), 1);
    let waiting = poll();
    emulator.advance(Duration::from_secs(31));
    let second = waiting.await.expect("no panic");
    assert_eq!(second[0].id, first[0].id);
    assert!(receipt(&second[0]).is_newer_than(&receipt(&first[0])));
}

#[tokio::test]
async fn messages_sent_before_the_start_time_are_filtered_and_still_have_a_receipt() {
    let emulator = emulator(Faults::default()).await;
    send(&client(&emulator), &["{}"]).await;
    let opened = open(&emulator, &[("startTimeMs", OptionValue::Integer(i64::MAX))]).await;
    let messages = opened.reader.poll().await.expect("a poll");
    assert!(matches!(messages[0].body, Body::Filtered("startTimeMs")));
    assert!(messages[0].receipt.is_some());
}

#[tokio::test]
async fn a_body_that_is_not_base64_is_broken_alone() {
    let emulator = emulator(Faults::default()).await;
    send(&client(&emulator), &["e30=", "{}"]).await;
    let opened = open(&emulator, &[("bodyEncoding", text("base64"))]).await;
    let messages = opened.reader.poll().await.expect("a poll");
    assert_eq!(body(&messages[0]), "{}");
    assert!(matches!(messages[1].body, Body::Broken { .. }));
}

#[tokio::test]
async fn wrong_keys_and_a_missing_queue_need_a_person() {
    let emulator = emulator(Faults::default()).await;
    for (name, value, kind, mend) in [
        ("queueName", "other", FaultKind::Missing, Mend::Never),
        ("accessKeyId", "other", FaultKind::Credentials, Mend::Never),
        ("accessKeySecret", "other", FaultKind::Credentials, Mend::Retry),
    ] {
        let source =
            MnsSource::new(&options(&emulator.endpoint(), &[(name, text(value))]), "json").expect("valid options");
        let fault = source.open().await.err().expect("a fault");
        assert_eq!((fault.kind, fault.mend), (kind, mend), "{fault}");
    }
}

#[tokio::test]
async fn ordered_failures_can_be_mended_by_trying_again() {
    let faults = Faults { error_on_receive: 1.0, error_on_delete: 1.0, ..Faults::default() };
    let emulator = emulator(faults).await;
    send(&client(&emulator), &["1"]).await;
    let opened = open(&emulator, &[]).await;
    let fault = opened.reader.poll().await.expect_err("a 500");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry));
    emulator.set_faults(None, Faults { error_on_delete: 1.0, ..Faults::default() });
    let receipts = [receipt(&opened.reader.poll().await.expect("a poll")[0])];
    let fault = opened.acknowledger.acknowledge(&receipts).await.expect_err("a 500");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry));
    emulator.set_faults(Some(QUEUE), Faults { lost_delete_reply: 1.0, ..Faults::default() });
    let fault = opened.acknowledger.acknowledge(&receipts).await.expect_err("no answer");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Network, Mend::Retry));
    assert_eq!(holds(&emulator), (0, 0, 0));
    emulator.set_faults(Some(QUEUE), Faults::default());
    let outcomes = opened.acknowledger.acknowledge(&receipts).await.expect("a delete");
    assert_eq!(outcomes, [Acknowledged::Unknown]);
    let statistics = &emulator.stats()[QUEUE].statistics;
    assert_eq!((statistics.errors_on_receive, statistics.errors_on_delete, statistics.lost_delete_replies), (1, 1, 1));
}

#[tokio::test]
async fn an_answer_without_xml_can_be_mended_by_trying_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = vec![0; 4096];
        let _ = stream.read(&mut request).await.expect("a request");
        let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy";
        stream.write_all(answer.as_bytes()).await.expect("it is taken");
    });
    let client = Client::new(&endpoint, credentials()).expect("valid");
    let fault = client.receive(QUEUE, 1, 0).await.expect_err("a 503");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry));
    server.await.expect("no panic");
    let fault = client.receive(QUEUE, 1, 0).await.expect_err("nobody listens");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Network, Mend::Retry));
}

#[tokio::test]
async fn a_queue_is_made_once_and_shutdown_does_not_wait_for_polls() {
    let emulator = emulator(Faults::default()).await;
    let client = client(&emulator);
    let settings = QueueSettings { visibility_seconds: Some(5), ..QueueSettings::default() };
    assert!(client.create_queue("made", &settings).await.expect("created"));
    assert!(!client.create_queue("made", &settings).await.expect("there already"));
    assert!(client.create_queue("made", &QueueSettings::default()).await.is_err());
    let attributes = client.queue_attributes("made").await.expect("attributes");
    assert_eq!(attributes.settings.visibility_seconds, Some(5));
    let poll = tokio::spawn(async move { client.receive("made", 16, 30).await });
    tokio::time::timeout(Duration::from_secs(2), emulator.shutdown()).await.expect("promptly");
    assert!(poll.await.expect("no panic").is_err());
}

#[tokio::test]
async fn one_batch_wakes_as_many_polls_as_it_has_messages_for() {
    let emulator = emulator(Faults::default()).await;
    let client = client(&emulator);
    let polls: Vec<_> = (0..4)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.receive(QUEUE, 1, 30).await.expect("a poll").messages })
        })
        .collect();
    send(&client, &["1", "2", "3", "4"]).await;
    let mut bodies = Vec::new();
    for poll in polls {
        bodies.extend(poll.await.expect("no panic").into_iter().map(|message| message.body));
    }
    bodies.sort();
    assert_eq!(bodies, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_poll_that_waits_on_a_deleted_queue_is_told() {
    let emulator = emulator(Faults::default()).await;
    let client = client(&emulator);
    let poll = tokio::spawn({
        let client = client.clone();
        async move { client.receive(QUEUE, 1, 30).await }
    });
    client.delete_queue(QUEUE).await.expect("deleted");
    let fault = poll.await.expect("no panic").expect_err("no queue");
    assert_eq!(fault.kind, FaultKind::Missing);
}

#[tokio::test]
async fn duplicates_of_every_kind_are_counted_and_leave_nothing_behind() {
    let faults = Faults {
        duplicate_same_receive: 0.3,
        duplicate_in_flight: 0.3,
        duplicate_before_delete: 0.3,
        ..Faults::default()
    };
    let emulator = emulator(faults).await;
    let client = client(&emulator);
    for _ in 0..20 {
        send(&client, &["x"; 16]).await;
    }
    let opened = open(&emulator, &[]).await;
    let mut newest = std::collections::HashMap::<Arc<str>, Receipt>::new();
    while holds(&emulator) != (0, 0, 0) {
        let messages = opened.reader.poll().await.expect("a poll");
        let is_last = messages.is_empty();
        for message in messages {
            let receipt = receipt(&message);
            if newest.get(&message.id).is_none_or(|known| receipt.is_newer_than(known)) {
                newest.insert(message.id, receipt);
            }
        }
        if is_last || newest.len() > 100 {
            let receipts: Vec<_> = newest.drain().map(|(_, receipt)| receipt).collect();
            for receipts in receipts.chunks(opened.acknowledger.most()) {
                opened.acknowledger.acknowledge(receipts).await.expect("a delete");
            }
        }
    }
    let text = stats_over_http(&emulator).await;
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report[QUEUE]["deleted"], 320);
    for kind in ["duplicates_same_receive", "duplicates_in_flight", "duplicates_before_delete"] {
        assert!(report[QUEUE][kind].as_u64().expect("a number") > 30, "{kind}: {text}");
    }
}

#[tokio::test]
async fn a_poll_begun_before_a_confirmed_delete_may_answer_with_the_deleted_message() {
    let emulator = emulator(Faults { duplicate_during_delete: 1.0, ..Faults::default() }).await;
    let client = client(&emulator);
    let opened = open(&emulator, &[("pollingWaitTime", OptionValue::Duration(Duration::from_secs(30)))]).await;
    send(&client, &["1", "2"]).await;
    let first = opened.reader.poll().await.expect("a poll");
    assert_eq!(first.len(), 2);
    let reader = Arc::clone(&opened.reader);
    let poll = tokio::spawn(async move { reader.poll().await.expect("a poll") });
    emulator.waits_for_polls(QUEUE, 1).await;
    let receipts: Vec<_> = first.iter().map(receipt).collect();
    let outcomes = opened.acknowledger.acknowledge(&receipts).await.expect("a delete");
    assert_eq!(outcomes, [Acknowledged::Deleted, Acknowledged::Deleted]);
    let second = poll.await.expect("no panic");
    assert_eq!((second.len(), &second[0].id), (1, &first[0].id));
    let outcomes = opened.acknowledger.acknowledge(&[receipt(&second[0])]).await.expect("a delete");
    assert_eq!(outcomes, [Acknowledged::Unknown]);
    assert_eq!(holds(&emulator), (0, 0, 0));
    assert_eq!(emulator.stats()[QUEUE].statistics.duplicates_during_delete, 1);
}

/// They need no signature.
async fn stats_over_http(emulator: &Emulator) -> String {
    let mut stream = tokio::net::TcpStream::connect(emulator.addr()).await.expect("it listens");
    let request = "GET /_emulator/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}
