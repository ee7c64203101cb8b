//! Requests recorded from Tencent's own SDKs, sent to the emulator: each gets the recorded answer.
//!
//! No request is older than the service cares for, so they are sent byte for byte, their signatures included. Only
//! handles have to be those that the emulator gave out; a request with one is signed anew.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use bytes::BytesMut;
use common::cmq::{Frames, Http, ID, Request, SECRET};
use queuewarden::{
    connectors::cmq::wire::{CmqProto, frame},
    emulator::{AccessKey, Config, Emulator, start},
};
use serde_json::Value;

async fn emulator(queues: &[&str]) -> Emulator {
    let credentials = Some(AccessKey { id: ID.into(), secret: SECRET.into() });
    let queues = queues.iter().map(|name| (*name).to_owned()).collect();
    let cmq = Some(([127, 0, 0, 1], 0).into());
    start(Config { cmq, credentials, queues, ..Config::default() }).await.expect("it starts")
}

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cmq-samples").join(name);
    fs::read_to_string(path).expect("a sample")
}

/// The recorded requests of a file, as they were sent, and their answers.
fn recorded(name: &str) -> Vec<(String, Value)> {
    let text = text(name);
    let blocks = text.split("--- request\n").skip(1);
    let recorded: Vec<_> = blocks
        .map(|block| {
            let (request, rest) = block.split_once("--- string to sign").expect("a request");
            let (head, body) = request.trim_end().split_once("\n\n").unwrap_or((request.trim_end(), ""));
            let answer = rest.split_once("HTTP/1.1 200 OK\n").expect("an answer").1.lines().next().expect("JSON");
            let request = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
            (request, serde_json::from_str(answer).expect("JSON"))
        })
        .collect();
    assert!(!recorded.is_empty(), "{name}");
    recorded
}

fn request(raw: &str) -> Request {
    let (head, body) = raw.split_once("\r\n\r\n").expect("a head");
    let target = head.split(' ').nth(1).expect("a target");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).expect("a host");
    let method = if head.starts_with("GET") { "GET" } else { "POST" };
    let form = if method == "GET" { query } else { body };
    Request {
        method,
        host: host.to_owned(),
        path: path.to_owned(),
        parameters: url::form_urlencoded::parse(form.as_bytes()).into_owned().collect(),
    }
}

/// A recording's answer without what differs from run to run; the names are all still there.
fn comparable(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), comparable_field(name, value))).collect()
        }
        Value::Array(values) => values.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

fn comparable_field(name: &str, value: &Value) -> Value {
    let is_volatile = name.ends_with("Time") || matches!(name, "requestId" | "msgId" | "receiptHandle" | "queueId");
    if is_volatile { Value::from(if value.is_string() { "text" } else { "number" }) } else { comparable(value) }
}

/// What each recorded handle is here.
#[derive(Default)]
struct Handles(BTreeMap<String, String>);

impl Handles {
    fn learn(&mut self, recorded: &Value, here: &Value) {
        if let (Some(recorded), Some(here)) = (recorded["receiptHandle"].as_str(), here["receiptHandle"].as_str()) {
            self.0.insert(recorded.to_owned(), here.to_owned());
        }
        let messages = |answer: &Value| answer["msgInfoList"].as_array().cloned().unwrap_or_default();
        for (recorded, here) in messages(recorded).iter().zip(messages(here)) {
            self.learn(recorded, &here);
        }
    }

    /// Whether there was one.
    fn replace(&self, request: &mut Request) -> bool {
        let mut any = false;
        for (name, value) in &mut request.parameters {
            if let Some(here) = self.0.get(value).filter(|_| name.starts_with("receiptHandle")) {
                value.clone_from(here);
                any = true;
            }
        }
        any
    }
}

/// The recorded requests, in an order in which they make sense.
const SESSION: [(&str, usize); 18] = [
    ("CreateQueue", 0),
    ("SendMessage", 0),
    ("ReceiveMessage", 0),
    ("DeleteMessage", 0),
    ("DeleteMessage", 1),
    ("BatchSendMessage", 0),
    ("BatchReceiveMessage", 0),
    ("BatchDeleteMessage", 0),
    ("BatchDeleteMessage", 1),
    ("BatchReceiveMessage", 1),
    ("ReceiveMessage", 1),
    ("ReceiveMessage", 2),
    ("GetQueueAttributes", 0),
    ("ListQueue", 0),
    ("SendMessage", 1),
    ("PublishMessage", 0),
    ("BatchPublishMessage", 0),
    ("DeleteQueue", 0),
];

async fn replay(prefix: &str) {
    // As the server of the recording had it.
    let emulator = emulator(&["tcpq", "q1"]).await;
    let mut http = Http::connect(emulator.cmq_addr().expect("it serves CMQ")).await;
    let mut handles = Handles::default();
    for (action, index) in SESSION {
        let at = format!("{prefix}_{action} {index}");
        let (raw, mut expected) = recorded(&format!("{prefix}_{action}.txt")).remove(index);
        let mut parsed = request(&raw);
        let mut changed = parsed.clone();
        changed.parameters.iter_mut().find(|(name, _)| name == "Nonce").expect("signed").1.push('0');
        let refused = http.exchange(&changed).await;
        assert_eq!(
            (&refused["code"], &refused["message"]),
            (&4100.into(), &"(10030)authentication failed".into()),
            "{at}"
        );
        let answer = if handles.replace(&mut parsed) {
            parsed.sign(SECRET);
            http.exchange(&parsed).await
        } else {
            let (status, body) = http.raw(&raw).await.expect("an answer");
            assert_eq!(status, 200, "{at}");
            serde_json::from_str(&body).expect("JSON")
        };
        handles.learn(&expected, &answer);
        if action.contains("Publish") {
            // There are no topics here, which is said as an endpoint of queues says it.
            assert_eq!(answer["message"], format!("(10430)action name {action} is not existed"), "{at}");
            continue;
        }
        if expected["code"] == 4100 {
            // The SDK signs no value that begins with `@` when it posts. That server took such a send for forged.
            expected = recorded(&format!("{prefix}_{action}.txt")).remove(0).1;
        }
        let mut answer = comparable(&answer);
        // As that very SDK reads it, beside the name that its server had answered.
        answer.as_object_mut().expect("an object").remove("rewindmsgNum");
        let mut expected = comparable(&expected);
        if action == "ListQueue" {
            for answer in [&mut answer, &mut expected] {
                answer["queueList"].as_array_mut().expect("a list").sort_by_key(|queue| queue["queueName"].to_string());
            }
        }
        assert_eq!(answer, expected, "{at}");
    }
    emulator.shutdown().await;
}

#[tokio::test]
async fn every_request_of_the_python_sdk_that_is_posted_gets_its_recorded_answer() {
    replay("http_post_hmacsha1").await;
}

#[tokio::test]
async fn every_request_of_the_python_sdk_that_is_a_get_gets_its_recorded_answer() {
    replay("http_get_hmacsha256").await;
}

#[tokio::test]
async fn the_java_sdk_is_told_the_route_of_a_queue_and_that_there_are_no_topics() {
    let emulator = emulator(&["tcpq"]).await;
    let mut http = Http::connect(emulator.cmq_addr().expect("it serves CMQ")).await;
    for method in ["hmacsha1", "hmacsha256"] {
        for (raw, mut expected) in recorded(&format!("tcp_{method}_nameserver_QueryQueueRoute.txt")) {
            let (_, body) = http.raw(&raw).await.expect("an answer");
            let answer: Value = serde_json::from_str(&body).expect("JSON");
            expected["addr"] = vec![emulator.cmq_tcp_addr().expect("it does").to_string()].into();
            assert_eq!(comparable(&answer), comparable(&expected));
        }
        for (raw, _) in recorded(&format!("tcp_{method}_nameserver_QueryTopicRoute.txt")) {
            let (_, body) = http.raw(&raw).await.expect("an answer");
            assert!(body.contains("(10430)action name QueryTopicRoute is not existed"), "{body}");
        }
    }
    emulator.shutdown().await;
}

/// The recorded frames of a file by turns: requests, and their answers unless they have none.
fn frames(name: &str) -> Vec<CmqProto> {
    let text = text(name);
    let hex = |line: &&str| line.starts_with("0000") && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.lines()
        .filter(hex)
        .map(|line| {
            let digit = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal");
            let mut bytes: BytesMut = (0..line.len()).step_by(2).map(digit).collect::<Vec<_>>().as_slice().into();
            frame::decode(&mut bytes).expect("readable").expect("complete")
        })
        .collect()
}

/// A recorded answer without what differs from run to run. The words that an answer has before its own in brackets are
/// in some of the recordings, and not in others.
fn comparable_frame(mut answer: CmqProto) -> CmqProto {
    answer.request_id = answer.request_id.map(|_| 0);
    answer.error = answer.error.map(|error| error.split_once(')').map_or(error.clone(), |(_, words)| words.to_owned()));
    answer.msgids.iter_mut().for_each(|id| *id = 0);
    let batch = answer.batch_pull_rsp.iter_mut().flat_map(|batch| &mut batch.msg_list);
    for message in batch.chain(&mut answer.pull_rsp) {
        message.msg_id = 0;
        message.receipt_handle = message.receipt_handle.map(|_| 0);
        for time in [&mut message.enqueue_time, &mut message.next_visible_time, &mut message.first_dequeue_time] {
            *time = time.map(|_| 0);
        }
    }
    for failed in &mut answer.del_result {
        failed.receipt_handle = 0;
    }
    answer
}

/// The handles of an answer.
fn handles(answer: &CmqProto) -> Vec<u64> {
    let batch = answer.batch_pull_rsp.iter().flat_map(|batch| &batch.msg_list);
    batch.chain(&answer.pull_rsp).filter_map(|message| message.receipt_handle).collect()
}

#[tokio::test]
async fn every_frame_of_the_java_sdk_gets_its_recorded_answer() {
    let emulator = emulator(&["tcpq"]).await;
    let mut connection = Frames::connect(emulator.cmq_tcp_addr().expect("it serves CMQ")).await;
    let mut here: BTreeMap<u64, u64> = BTreeMap::new();
    let session = [
        ("AUTH", 0),
        ("SEND_MSG", 0),
        ("PULL_MSG", 0),
        ("DELETE_MSG", 0),
        ("DELETE_MSG", 1),
        ("BATCH_SEND_MSG", 0),
        ("BATCH_PULL_MSG", 0),
        ("BATCH_DELETE_MSG", 0),
        ("BATCH_DELETE_MSG", 1),
        ("PULL_MSG", 1),
        ("BATCH_PULL_MSG", 1),
        ("HEARTBEAT", 0),
        ("SEND_MSG", 1),
    ];
    for (command, index) in session {
        let mut frames = frames(&format!("tcp_hmacsha1_CMQ_TCP_{command}.txt"));
        if command == "HEARTBEAT" {
            // It has no answer: the next frame that comes is the one after it.
            connection.write(&frame::encode(&frames[index])).await;
            continue;
        }
        let expected = frames.remove(2 * index + 1);
        let mut request = frames.remove(2 * index);
        if let Some(delete) = &mut request.tcp_delete_msg {
            delete.receipt_handle = here[&delete.receipt_handle];
        }
        for handle in request.tcp_batch_delete_msg.iter_mut().flat_map(|delete| &mut delete.receipt_handle_list) {
            *handle = here.get(handle).copied().unwrap_or(*handle);
        }
        connection.write(&frame::encode(&request)).await;
        let answer = connection.receive().await.expect("an answer");
        here.extend(handles(&expected).into_iter().zip(handles(&answer)));
        assert_eq!(comparable_frame(answer), comparable_frame(expected), "{command} {index}");
    }
    let topics = frames("tcp_hmacsha1_CMQ_TCP_PUBLISH_MSG.txt").remove(0);
    connection.write(&frame::encode(&topics)).await;
    assert_eq!(connection.receive().await.expect("an answer").result, Some(4000));
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_connection_that_has_not_authenticated_itself_is_told_so_and_may_still_do_so_once() {
    let emulator = emulator(&["tcpq"]).await;
    let addr = emulator.cmq_tcp_addr().expect("it serves CMQ");
    let send = frames("tcp_hmacsha1_CMQ_TCP_SEND_MSG.txt").remove(0);
    let auth = frames("tcp_hmacsha256_CMQ_TCP_AUTH.txt").remove(0);
    let mut connection = Frames::connect(addr).await;
    assert_eq!(connection.call(send.clone()).await.result, Some(306));
    let mut forged = auth.clone();
    forged.tcp_auth.as_mut().expect("it is one").client_id.push('x');
    assert_eq!(connection.call(forged).await.result, Some(4100));
    assert_eq!(connection.call(send.clone()).await.result, Some(306));
    assert_eq!(connection.call(auth.clone()).await.result, Some(0));
    assert_eq!(connection.call(auth).await.result, Some(307));
    assert_eq!(connection.call(send).await.result, Some(0));
    assert_eq!(emulator.stats()["tcpq"].statistics.sent, 1);
    emulator.shutdown().await;
}
