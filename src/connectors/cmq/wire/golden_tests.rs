//! Frames that Tencent's own Java SDK sent, and those a loopback server answered by the documentation.

use bytes::{Bytes, BytesMut};

use super::{CmqProto, frame, proto, requests};
use crate::connectors::cmq::signature::{SignMethod, connection_text, sign};

macro_rules! samples {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cmq-samples/tcp_", $name, ".txt")))),*]
    };
}

const SAMPLES: &[(&str, &str)] = samples![
    "hmacsha1_CMQ_TCP_AUTH",
    "hmacsha1_CMQ_TCP_BATCH_DELETE_MSG",
    "hmacsha1_CMQ_TCP_BATCH_PUBLISH_MSG",
    "hmacsha1_CMQ_TCP_BATCH_PULL_MSG",
    "hmacsha1_CMQ_TCP_BATCH_SEND_MSG",
    "hmacsha1_CMQ_TCP_DELETE_MSG",
    "hmacsha1_CMQ_TCP_HEARTBEAT",
    "hmacsha1_CMQ_TCP_PUBLISH_MSG",
    "hmacsha1_CMQ_TCP_PULL_MSG",
    "hmacsha1_CMQ_TCP_SEND_MSG",
    "hmacsha256_CMQ_TCP_AUTH",
    "resend_after_dropped_reply",
];

/// The frames of a sample, in order, requests and answers.
fn frames(name: &str) -> Vec<Bytes> {
    let (_, text) = SAMPLES.iter().find(|(known, _)| *known == name).expect("a sample");
    let hex = |line: &&str| line.starts_with("0000") && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.lines().filter(hex).map(bytes_of).collect()
}

fn bytes_of(line: &str) -> Bytes {
    let digit = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal");
    (0..line.len()).step_by(2).map(digit).collect()
}

fn decoded(frame: &Bytes) -> CmqProto {
    let mut received = BytesMut::from(&frame[..]);
    let message = frame::decode(&mut received).expect("readable").expect("complete");
    assert!(received.is_empty());
    message
}

#[test]
fn every_recorded_frame_is_read_and_written_again_byte_for_byte() {
    let mut count = 0;
    for (name, _) in SAMPLES {
        let frames = frames(name);
        assert!(!frames.is_empty(), "{name}");
        for frame in frames {
            assert_eq!(frame::encode(&decoded(&frame)), frame, "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 41);
}

#[test]
fn what_is_sent_is_what_the_java_client_sends() {
    let auth = |method: SignMethod| {
        let secret_id = "AKIDEXAMPLE0000000000000000000000000".to_owned();
        let client_id = format!("127.0.0.1@drv-{}", method.name());
        let text = connection_text(&client_id, &secret_id);
        let signature = sign(method, "exampleSecretKey0000000000000000", &text);
        requests::authenticate(proto::Auth { secret_id, signature, client_id, signature_method: method.name().into() })
    };
    let bodies = |bodies: &[&'static str]| bodies.iter().map(|body| Bytes::from_static(body.as_bytes())).collect();
    let (first, second, third) = (72_000_000_000_001_032, 72_000_000_000_001_033, 72_000_000_000_001_034);
    for (name, index, seqno, request) in [
        ("hmacsha1_CMQ_TCP_AUTH", 0, 2, auth(SignMethod::HmacSha1)),
        ("hmacsha256_CMQ_TCP_AUTH", 0, 2, auth(SignMethod::HmacSha256)),
        ("hmacsha1_CMQ_TCP_SEND_MSG", 0, 1, requests::send("tcpq", bodies(&["hello tcp 你好"]), 1)),
        ("hmacsha1_CMQ_TCP_BATCH_SEND_MSG", 0, 3, requests::send("tcpq", bodies(&["b1", "b2", "b3"]), 2)),
        ("hmacsha1_CMQ_TCP_BATCH_PULL_MSG", 0, 9, requests::batch_pull("tcpq", 16, 1)),
        ("hmacsha1_CMQ_TCP_BATCH_PULL_MSG", 2, 13, requests::batch_pull("tcpq", 16, 1)),
        ("hmacsha1_CMQ_TCP_DELETE_MSG", 0, 7, requests::delete("tcpq", &[72_000_000_000_001_031])),
        ("hmacsha1_CMQ_TCP_BATCH_DELETE_MSG", 0, 10, requests::delete("tcpq", &[first, 1])),
        ("hmacsha1_CMQ_TCP_BATCH_DELETE_MSG", 2, 11, requests::delete("tcpq", &[second, third])),
        ("hmacsha1_CMQ_TCP_HEARTBEAT", 0, 14, requests::heartbeat()),
        ("resend_after_dropped_reply", 2, 1, requests::send("tcpq", bodies(&["hello tcp 你好"]), 1)),
    ] {
        let sent = frame::encode(&CmqProto { seqno, ..request });
        assert_eq!(sent, frames(name)[index], "{name} {index}");
    }
}

#[test]
fn answers_say_what_the_recorded_texts_say() {
    let pulled = decoded(&frames("hmacsha1_CMQ_TCP_BATCH_PULL_MSG")[1]);
    let messages = pulled.batch_pull_rsp.expect("messages").msg_list;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1].msg_id, 72_000_000_000_001_026);
    assert_eq!(messages[1].receipt_handle, Some(72_000_000_000_001_033));
    assert_eq!(messages[1].msg_body.as_deref(), Some(&b"b2"[..]));
    assert_eq!(messages[1].next_visible_time, Some(1_796_004_214));
    let deleted = decoded(&frames("hmacsha1_CMQ_TCP_BATCH_DELETE_MSG")[1]);
    assert_eq!((deleted.result, deleted.del_result.len()), (Some(6010), 1));
    assert_eq!((deleted.del_result[0].receipt_handle, deleted.del_result[0].err_code), (1, 4430));
    assert_eq!(decoded(&frames("hmacsha1_CMQ_TCP_BATCH_PULL_MSG")[3]).result, Some(10_200));
    let sent = decoded(&frames("hmacsha1_CMQ_TCP_BATCH_SEND_MSG")[1]);
    assert_eq!(sent.msgids, [72_000_000_000_001_025, 72_000_000_000_001_026, 72_000_000_000_001_027]);
}
