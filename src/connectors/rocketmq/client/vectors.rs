//! Bytes recorded from brokers of 4.9.7 and 5.3.3, and made by 5.3.3's Java classes (`MessageDecoder.encode` and
//! `encodeMessages`), in `vectors/`.

use bytes::Bytes;

use super::{batch, message::decode_all, properties, route, types::*};
use crate::model::{Body, FaultKind, Mend};

fn unhex(text: &str) -> Bytes {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn decoded(text: &str) -> Vec<PulledMessage> {
    decode_all(unhex(text)).expect("readable")
}

fn text(message: &PulledMessage) -> String {
    match &message.body {
        Body::Bytes(body) => String::from_utf8(body.to_vec()).expect("UTF-8"),
        other => format!("{other:?}"),
    }
}

/// One message, a batch of two, and one that the client compressed.
#[test]
fn answers_of_both_generations_are_read() {
    for (recorded, ids) in [
        (include_str!("vectors/pull-4.9.7.hex"), ["D156A0000", "D15DD0001", "D15DD0002", "D15E20003"]),
        (include_str!("vectors/pull-5.3.3.hex"), ["802B40000", "802FD0001", "802FD0002", "803010004"]),
    ] {
        let messages = decoded(recorded);
        let bodies: Vec<_> = messages.iter().map(text).collect();
        assert_eq!(bodies, ["héllo", "batch0", "batch1", &"z".repeat(200)]);
        let found: Vec<_> = messages.iter().map(|message| &message.id[message.id.len() - 9..]).collect();
        assert_eq!(messages.iter().map(|message| message.queue_offset).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(found.len(), ids.len());
        let tags: Vec<_> = messages.iter().map(PulledMessage::tags).collect();
        assert_eq!(tags, [Some("TagA"), Some("TagB"), Some("TagB"), None]);
        let keys: Vec<_> = messages.iter().map(PulledMessage::keys).collect();
        assert_eq!(keys, [Some("k1 k2"), Some("b0"), Some("b1"), None]);
        assert_eq!(messages[0].properties.get("color"), Some("red"));
        for message in &messages {
            assert!(message.born_ms > 1_700_000_000_000 && message.stored_ms >= message.born_ms, "{message:?}");
        }
    }
}

#[test]
fn messages_of_one_batch_have_an_id_each_though_the_broker_appends_that_of_the_batch() {
    let messages = decoded(include_str!("vectors/pull-5.3.3.hex"));
    let names = messages[1].properties.iter().filter(|(name, _)| *name == properties::UNIQ_KEY).count();
    assert_eq!(names, 1);
    assert_ne!(messages[1].id, messages[2].id);
    assert!(messages[1].id.ends_with("802FD0001") && messages[2].id.ends_with("802FD0002"), "{messages:?}");
}

#[test]
fn every_compression_and_both_kinds_of_addresses_are_read() {
    for (encoded, id) in [
        (include_str!("vectors/plain.hex"), "0A00000100002A9F0000000000001267"),
        (include_str!("vectors/zlib.hex"), "0A00000100002A9F0000000000001267"),
        (include_str!("vectors/lz4-ipv6.hex"), "FE80000000000000000000000000000100002A9F0000000000001267"),
        (include_str!("vectors/zstd-ipv6.hex"), "FE80000000000000000000000000000100002A9F0000000000001267"),
    ] {
        let messages = decoded(encoded);
        let [message] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(text(message), "a body that is compressed, compressed, compressed");
        // No sender's id: the place in the log, as the Java client's createMessageId.
        assert_eq!((&*message.id, message.queue_offset, message.tags()), (id, 42, Some("T")));
        assert_eq!((message.born_ms, message.stored_ms), (1_700_000_000_123, 1_700_000_000_456));
    }
}

#[test]
fn a_body_is_a_slice_of_the_answer() {
    let answer = unhex(include_str!("vectors/plain.hex"));
    let messages = decode_all(answer.clone()).expect("readable");
    let body = messages[0].body.bytes();
    let range = answer.as_ptr_range();
    assert!(range.contains(&body.as_ptr()));
}

#[test]
fn an_answer_that_is_cut_off_anywhere_is_a_fault_and_no_message_is_dropped() {
    let whole = unhex(include_str!("vectors/pull-4.9.7.hex"));
    let boundaries: Vec<usize> = whole_sizes(&whole);
    for end in 0..whole.len() {
        let read = decode_all(whole.slice(..end));
        match boundaries.iter().position(|boundary| *boundary == end) {
            Some(count) => assert_eq!(read.expect("whole messages").len(), count, "{end}"),
            None => assert_eq!(read.expect_err("cut off").mend, Mend::Retry, "{end}"),
        }
    }
}

fn whole_sizes(answer: &Bytes) -> Vec<usize> {
    let mut ends = vec![0];
    let mut at = 0;
    while at < answer.len() {
        at += u32::from_be_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]) as usize;
        ends.push(at);
    }
    ends
}

#[test]
fn fields_that_lie_about_their_size_are_a_fault() {
    let plain = unhex(include_str!("vectors/plain.hex"));
    // The size, the magic, the offset, the body's size, the topic's, the properties'.
    for (at, byte) in [(0, 0x7f), (0, 0x80), (4, 0), (20, 0x80), (84, 0x7f), (84, 0xff), (137, 0xff), (143, 0xff)] {
        let mut broken = plain.to_vec();
        assert_ne!(broken[at], byte, "{at}");
        broken[at] = byte;
        let fault = decode_all(broken.into()).expect_err("broken");
        assert_eq!(fault.kind, FaultKind::Service, "{at}: {fault}");
    }
}

#[test]
fn a_body_that_is_not_compressed_as_it_says_is_broken_and_its_neighbours_are_not() {
    let mut both = unhex(include_str!("vectors/zlib.hex")).to_vec();
    let first = both.len();
    both.extend_from_slice(&unhex(include_str!("vectors/plain.hex")));
    both[88 + 6] ^= 0x55;
    assert!(first > 94);
    let messages = decode_all(both.into()).expect("readable");
    match &messages[0].body {
        Body::Broken { reason, received } => assert!(reason.contains("zlib") && received.len() == 36, "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(&messages[1].body, Body::Bytes(_)));
}

#[test]
fn a_batch_that_stands_as_one_message_is_taken_apart() {
    let inner = unhex(include_str!("vectors/batch.hex"));
    let mut whole = unhex(include_str!("vectors/plain.hex")).to_vec();
    let old = 49;
    whole.splice(84..88 + old, (inner.len() as u32).to_be_bytes().into_iter().chain(inner.iter().copied()));
    let size = whole.len() as u32;
    whole[..4].copy_from_slice(&size.to_be_bytes());
    whole[39] = 0xc0;
    let messages = decode_all(whole.clone().into()).expect("readable");
    let found: Vec<_> = messages.iter().map(|m| (m.queue_offset, text(m), m.id.to_string(), m.tags())).collect();
    assert_eq!(found, [(42, "body é".into(), "ID1".into(), Some("TagA")), (43, "".into(), "ID2".into(), None)]);
    assert_eq!(messages[1].stored_ms, 1_700_000_000_456);
    // Cut off within the inner batch.
    whole[88 + 16] = 0x7f;
    assert!(decode_all(whole.into()).is_err());
}

#[test]
fn batches_are_encoded_as_the_java_client_does() {
    let first = Outgoing {
        body: Bytes::from_static("body é".as_bytes()),
        keys: Some("k1 k2".into()),
        tags: Some("TagA".into()),
        properties: vec![("color".into(), "red".into())],
        id: None,
    };
    let messages = [(&first, "ID1"), (&Outgoing::default(), "ID2")];
    let encoded: Vec<_> =
        messages.iter().map(|(message, id)| properties::encode(message, id, None).expect("valid")).collect();
    let pairs = messages.iter().zip(&encoded).map(|((message, _), properties)| (*message, properties.as_str()));
    assert_eq!(batch::encode(pairs, 0), unhex(include_str!("vectors/batch.hex")));
}

#[test]
fn the_size_of_a_message_is_what_it_takes_in_a_batch() {
    let message = Outgoing {
        body: Bytes::from_static(b"body"),
        keys: Some("k".into()),
        tags: Some("t".into()),
        properties: vec![("color".into(), "red".into())],
        id: None,
    };
    let properties = batch::with_ids(std::slice::from_ref(&message), None).expect("valid");
    let pairs = std::iter::once((&message, properties[0].as_str()));
    assert_eq!(batch::encode(pairs, 0).len(), message.size());
}

const ROUTE_5_3_3: &str = r#"{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:20911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1}]}"#;
const ROUTE_4_9_7: &str = r#"{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:20911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1}]}"#;
/// What the same server answers a client that does not ask for standard JSON.
const ROUTE_UNQUOTED: &str = r#"{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:20911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1}]}"#;
/// By the sources of 4.7.1.
const ROUTE_4_7_1: &str = r#"{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:20911",1:"127.0.0.1:20921"},"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":1,"topicSynFlag":0,"writeQueueNums":1}]}"#;

#[test]
fn routes_of_every_generation_are_read() {
    for body in [ROUTE_5_3_3, ROUTE_4_9_7, ROUTE_UNQUOTED, ROUTE_4_7_1] {
        let route = route::parse("t", body.as_bytes()).expect(body);
        let queue = Queue {
            cluster: "DefaultCluster".into(),
            topic: "t".into(),
            broker: "broker-a".into(),
            id: 0,
            address: "127.0.0.1:20911".into(),
        };
        assert_eq!(route, Route { queues: vec![queue.clone()], writable: vec![queue] }, "{body}");
    }
}

#[test]
fn a_route_lists_what_may_be_read_and_written_where() {
    // "b" has a slave only, "c" no address, "d" may only be read.
    let body = r#"{"brokerDatas":[
        {"brokerAddrs":{"0":"a:1"},"brokerName":"a","cluster":"C"},
        {"brokerAddrs":{"2":"b2:1","1":"b1:1"},"brokerName":"b","cluster":"C"},
        {"brokerAddrs":{},"brokerName":"c","cluster":"C"},
        {"brokerAddrs":{"0":"d:1"},"brokerName":"d","cluster":"C"}],"queueDatas":[
        {"brokerName":"d","perm":4,"readQueueNums":1,"writeQueueNums":1},
        {"brokerName":"a","perm":6,"readQueueNums":2,"writeQueueNums":1},
        {"brokerName":"b","perm":6,"readQueueNums":1,"writeQueueNums":1},
        {"brokerName":"c","perm":6,"readQueueNums":1,"writeQueueNums":1},
        {"brokerName":"gone","perm":6,"readQueueNums":1,"writeQueueNums":1}]}"#;
    let route = route::parse("t", body.as_bytes()).expect("readable");
    let shown = |queues: &[Queue]| -> Vec<String> {
        queues.iter().map(|queue| format!("{} {} {}", queue.broker, queue.id, queue.address)).collect()
    };
    assert_eq!(shown(&route.queues), ["a 0 a:1", "a 1 a:1", "b 0 b1:1", "d 0 d:1"]);
    assert_eq!(shown(&route.writable), ["a 0 a:1"]);
}

#[test]
fn a_route_that_cannot_be_understood_is_a_fault() {
    let fault = route::parse("t", b"{\"brokerDatas\":[").expect_err("cut off");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry));
    let body = r#"{"brokerDatas":[],"queueDatas":[],"topicQueueMappingByBroker":{"a":{"x":1}}}"#;
    let fault = route::parse("t", body.as_bytes()).expect_err("static");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Rejected, Mend::Never));
    assert_eq!(route::parse("t", b"{}").expect("empty"), Route::default());
}
