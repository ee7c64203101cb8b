use std::sync::{Arc, atomic::AtomicBool};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray};

use super::{
    super::fake::{Fake, busy},
    *,
};
use crate::{
    connectors::outstanding::Retries,
    definition::Options,
    formats,
    model::{Column, ColumnType, FaultKind, Mend, Schema},
};

fn column(name: &str, metadata: Option<&str>) -> Column {
    let ty = ColumnType::parse("STRING").unwrap();
    Column { name: name.to_owned(), ty, metadata: metadata.map(str::to_owned), is_virtual: false }
}

/// A sink of bodies, keys and tags.
fn sink(fake: &Arc<Fake>, times: u32) -> RocketmqSink {
    let schema = Schema { columns: vec![column("k", Some("keys")), column("body", None), column("t", Some("tags"))] };
    let body = Schema { columns: vec![column("body", None)] };
    let encoder = formats::encoder("raw", &body, &Options::default()).unwrap();
    let messages = Messages::new(&schema, encoder, Some("fallen-back".to_owned()));
    let topic = Topic::new("t".to_owned(), "ns:1".to_owned(), fake.connect(), Arc::new(AtomicBool::new(false)));
    let retries = Retries { times, pause: Duration::ZERO };
    let identity = SinkIdentity { connector: "rocketmq5".to_owned(), target: "ns:1/t".to_owned() };
    RocketmqSink::new(identity, messages, Sends::new(fake.connect(), Arc::new(topic), "g".into(), retries))
}

type Row<'a> = (Option<&'a str>, &'a str, Option<&'a str>);

fn rows(rows: &[Row<'_>]) -> RecordBatch {
    let array = |of: fn(&Row<'_>) -> Option<String>| Arc::new(rows.iter().map(of).collect::<StringArray>()) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable([
        ("k", array(|row| row.0.map(str::to_owned)), true),
        ("body", array(|row| Some(row.1.to_owned())), true),
        ("t", array(|row| row.2.map(str::to_owned)), true),
    ])
    .unwrap()
}

fn bodies(bodies: &[&str]) -> RecordBatch {
    rows(&bodies.iter().map(|body| (None, *body, None)).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_row_is_a_message_with_its_keys_and_its_tag_or_that_of_the_option() {
    let fake = Fake::with(&["a"], 1);
    let mut sink = sink(&fake, 0);
    let given = [(Some("k1 k2"), "1\n", Some("own")), (None, "2", None), (Some(""), "3", Some(""))];
    assert_eq!(sink.write(&rows(&given)).await.unwrap(), []);
    assert_eq!(sink.prepare(Epoch(1)).await.unwrap(), None);
    let held = fake.held();
    let stored = &held.logs.values().next().unwrap().messages;
    let of = |at: usize| (stored[at].body.as_str(), stored[at].keys.as_deref(), stored[at].tags.as_deref());
    assert_eq!(of(0), ("1\n", Some("k1 k2"), Some("own")));
    assert_eq!(of(1), ("2", None, Some("fallen-back")));
    assert_eq!(of(2), ("3", None, Some("fallen-back")));
    assert_eq!(held.sends.len(), 1, "one request");
}

#[tokio::test]
async fn batches_go_to_the_queues_in_turn() {
    let fake = Fake::with(&["a", "b"], 2);
    let mut sink = sink(&fake, 0);
    for number in 0..8 {
        sink.write(&bodies(&[&number.to_string()])).await.unwrap();
    }
    sink.prepare(Epoch(1)).await.unwrap();
    let held = fake.held();
    assert_eq!(held.logs.len(), 4);
    assert!(held.logs.values().all(|log| log.messages.len() == 2));
    assert_eq!(held.routes_asked, 1);
}

#[tokio::test]
async fn a_send_that_failed_is_tried_at_another_broker() {
    let fake = Fake::with(&["a", "b"], 4);
    let mut sink = sink(&fake, 1);
    fake.held().failures.push_back(busy());
    sink.write(&bodies(&["1"])).await.unwrap();
    let held = fake.held();
    assert_ne!(held.sends[0].0, held.sends[1].0);
    assert_eq!(held.routes_asked, 2, "the route is asked for again");
}

#[tokio::test]
async fn a_write_that_failed_and_is_called_again_sends_every_row_once() {
    let fake = Fake::with(&["a"], 4);
    let mut sink = sink(&fake, 0);
    // More than one request can hold.
    let large: Vec<String> = (0..8).map(|row| row.to_string().repeat(100 << 10)).collect();
    let rows = bodies(&large.iter().map(String::as_str).collect::<Vec<_>>());
    fake.held().failures.extend((0..7).map(|_| busy()));
    let mut failed = 0;
    while let Err(fault) = sink.write(&rows).await {
        assert_eq!(fault.mend, Mend::Retry);
        failed += 1;
        assert!(failed < 5, "what failed together is told together");
    }
    assert!(failed > 0);
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), large);
}

#[tokio::test]
async fn what_is_being_sent_when_a_write_returns_is_waited_for_by_prepare_and_not_lost_by_a_failure() {
    let fake = Fake::with(&["a"], 1);
    let mut sink = sink(&fake, 0);
    sink.write(&bodies(&["longest"])).await.unwrap();
    fake.sends.forget_permits(usize::MAX >> 3);
    // Not longer than one that was taken: nothing to wait for.
    sink.write(&bodies(&["shorter"])).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), sink.prepare(Epoch(1))).await.is_err());
    fake.held().failures.push_back(busy());
    fake.sends.add_permits(1);
    assert_eq!(sink.prepare(Epoch(1)).await.unwrap_err().mend, Mend::Retry);
    fake.sends.add_permits(9);
    assert_eq!(fake.bodies(), ["longest"]);
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), ["longest", "shorter"]);
}

#[tokio::test]
async fn a_failure_of_an_earlier_write_does_not_repeat_the_rows_of_the_next() {
    let fake = Fake::with(&["a"], 1);
    let mut sink = sink(&fake, 0);
    sink.write(&bodies(&["longest"])).await.unwrap();
    fake.held().failures.push_back(busy());
    sink.write(&bodies(&["2"])).await.unwrap();
    let third = bodies(&["3"]);
    // Whether the failure is known by now or at the end, no row is sent twice.
    let _ = sink.write(&third).await.or(Ok::<_, Fault>(Vec::new()));
    if sink.open.is_some() {
        sink.write(&third).await.unwrap();
    }
    while sink.prepare(Epoch(1)).await.is_err() {}
    assert_eq!(fake.bodies(), ["2", "3", "longest"]);
}

#[tokio::test]
async fn rows_that_the_broker_refuses_as_too_large_are_answered_and_their_neighbours_written() {
    let fake = Fake::with(&["a", "b"], 2);
    let mut sink = sink(&fake, 3);
    fake.held().limit = Some(10);
    let refused = sink.write(&bodies(&["1", "2", "much too large", "4", "also too large"])).await.unwrap();
    assert_eq!(refused.iter().map(|reject| reject.row).collect::<Vec<_>>(), [2, 4]);
    assert!(refused[0].reason.contains("the broker takes no such message"), "{}", refused[0].reason);
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), ["1", "2", "4"]);
}

#[tokio::test]
async fn a_row_that_can_be_no_message_is_answered_without_asking() {
    let fake = Fake::with(&["a"], 1);
    let mut sink = sink(&fake, 0);
    let long = "k".repeat(40_000);
    let given =
        [(None, "", None), (Some("a\u{1}b"), "x", None), (Some(long.as_str()), "x", None), (None, "good", None)];
    let refused = sink.write(&rows(&given)).await.unwrap();
    let reasons: Vec<_> = refused.iter().map(|reject| (reject.row, reject.reason.as_str())).collect();
    assert!(reasons[0].1.contains("separates") && reasons[1].1.contains("its properties take 40"), "{reasons:?}");
    assert_eq!(reasons.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 2]);
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), ["", "good"]);
}

#[tokio::test]
async fn a_limit_that_shrinks_is_met_by_a_new_generation() {
    let fake = Fake::with(&["a"], 1);
    let mut first = sink(&fake, 0);
    first.write(&bodies(&["as large as it gets"])).await.unwrap();
    fake.held().limit = Some(5);
    first.write(&bodies(&["as large as it is"])).await.unwrap();
    let fault = first.prepare(Epoch(1)).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Sink, Mend::Restart));
    assert_eq!(sink(&fake, 0).write(&bodies(&["as large as it is"])).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_named() {
    let fake = Fake::with(&[], 0);
    let fault = sink(&fake, 0).write(&bodies(&["1"])).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Missing, Mend::Retry));
    assert!(fault.to_string().contains("topic t") && fault.to_string().contains("ns:1"), "{fault}");
}
