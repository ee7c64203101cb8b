//! What the emulator's CMQ does over both of its protocols, and what can be ordered to go wrong there.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use common::{
    EmulatorProcess,
    cmq::{Frames, Http, ID, Request, SECRET, auth},
    get,
};
use queuewarden::{
    connectors::cmq::wire::{CmqProto, proto::PulledMessage, requests},
    emulator::{AccessKey, Config, Emulator, Faults, Statistics, start},
};
use serde_json::Value;

const QUEUE: (&str, &str) = ("queueName", "q");

async fn emulator() -> Emulator {
    let credentials = Some(AccessKey { id: ID.into(), secret: SECRET.into() });
    let cmq = Some(([127, 0, 0, 1], 0).into());
    let queues = vec!["q".to_owned(), "other".to_owned()];
    start(Config { cmq, credentials, queues, ..Config::default() }).await.expect("it starts")
}

async fn http(emulator: &Emulator) -> Http {
    Http::connect(emulator.cmq_addr().expect("it serves CMQ")).await
}

async fn frames(emulator: &Emulator) -> Frames {
    Frames::open(emulator.cmq_tcp_addr().expect("it serves CMQ")).await
}

fn send(queue: &str) -> CmqProto {
    requests::send(queue, vec![Bytes::from_static(b"body")], 1)
}

fn pull(wait_seconds: i32) -> CmqProto {
    requests::batch_pull("q", 16, wait_seconds)
}

fn pulled(answer: CmqProto) -> Vec<PulledMessage> {
    answer.batch_pull_rsp.map(|batch| batch.msg_list).unwrap_or_default()
}

fn statistics(emulator: &Emulator) -> Statistics {
    emulator.stats()["q"].statistics.clone()
}

/// Whether a posted call gets no answer but the end of its connection.
async fn is_cut(emulator: &Emulator, action: &str) -> bool {
    let addr = emulator.cmq_addr().expect("it serves CMQ");
    let mut request = Request::post(addr, action, &[QUEUE, ("msgBody", "body")]);
    request.sign(SECRET);
    Http::connect(addr).await.raw(&request.write()).await.is_none()
}

#[tokio::test]
async fn a_pull_that_waits_holds_up_no_other_call_on_its_connection() {
    let emulator = emulator().await;
    let mut frames = frames(&emulator).await;
    let waiting = frames.send(pull(30)).await;
    emulator.waits_for_polls("q", 1).await;
    assert_eq!(frames.call(send("other")).await.result, Some(0));
    let sent = frames.send(send("q")).await;
    let answers = [frames.receive().await.expect("one"), frames.receive().await.expect("the other")];
    let of = |seqno| answers.iter().find(|answer| answer.seqno == seqno).expect("answered").clone();
    let message = pulled(of(waiting)).remove(0);
    assert_eq!((vec![message.msg_id], message.msg_body), (of(sent).msgids, Some(Bytes::from_static(b"body"))));
    emulator.shutdown().await;
}

#[tokio::test]
async fn only_the_newest_handle_deletes_and_only_in_time_over_either_protocol() {
    let emulator = emulator().await;
    let (mut frames, mut http) = (frames(&emulator).await, http(&emulator).await);
    assert_eq!(frames.call(send("q")).await.result, Some(0));
    let first = pulled(frames.call(pull(0)).await).remove(0);
    assert_eq!(first.next_visible_time.unwrap() - first.first_dequeue_time.unwrap(), 30);
    assert_eq!(frames.call(pull(0)).await.result, Some(10_200));
    emulator.advance(Duration::from_secs(30));
    let expired = first.receipt_handle.unwrap();
    assert_eq!(frames.call(requests::delete("q", &[expired])).await.result, Some(4430));
    let second = http.call("ReceiveMessage", &[QUEUE]).await;
    assert_eq!((&second["msgId"], &second["dequeueCount"]), (&first.msg_id.to_string().into(), &2.into()));
    let old = http.call("DeleteMessage", &[QUEUE, ("receiptHandle", &expired.to_string())]).await;
    assert_eq!(old["message"], "(10260)receipt handle is invalid");
    let newest = second["receiptHandle"].as_str().unwrap().parse().expect("digits");
    assert_eq!(frames.call(requests::delete("q", &[newest])).await.result, Some(0));
    assert_eq!(emulator.stats()["q"].inactive, 0);
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_handle_of_an_emulator_that_has_ended_deletes_nothing_and_ids_do_not_come_again() {
    let mut ids = Vec::new();
    let mut handles: Vec<u64> = Vec::new();
    for _ in 0..3 {
        let emulator = emulator().await;
        let mut frames = frames(&emulator).await;
        ids.extend(frames.call(send("q")).await.msgids);
        let message = pulled(frames.call(pull(0)).await).remove(0);
        for old in &handles {
            assert_eq!(frames.call(requests::delete("q", &[*old])).await.result, Some(4430));
        }
        handles.extend(message.receipt_handle);
        emulator.shutdown().await;
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn a_pull_may_say_for_how_long_its_messages_are_invisible() {
    let emulator = emulator().await;
    let mut frames = frames(&emulator).await;
    frames.call(send("q")).await;
    let mut short = pull(0);
    short.tcp_batch_pull_msg.as_mut().unwrap().visible_timeout = Some(5);
    assert_eq!(pulled(frames.call(short).await).len(), 1);
    emulator.advance(Duration::from_secs(5));
    assert_eq!(pulled(frames.call(pull(0)).await).len(), 1);
    emulator.shutdown().await;
}

#[tokio::test]
async fn whoever_waits_on_a_queue_is_told_when_it_is_deleted_and_its_name_is_free_later() {
    let emulator = emulator().await;
    let (mut frames, mut http) = (frames(&emulator).await, http(&emulator).await);
    frames.send(pull(30)).await;
    emulator.waits_for_polls("q", 1).await;
    assert_eq!(http.call("DeleteQueue", &[QUEUE]).await["code"], 0);
    assert_eq!(frames.receive().await.expect("an answer").result, Some(4440));
    assert_eq!(frames.call(send("q")).await.result, Some(4440));
    assert_eq!(http.call("CreateQueue", &[QUEUE]).await["code"], 6040);
    emulator.advance(Duration::from_secs(30));
    assert_eq!(http.call("CreateQueue", &[QUEUE]).await["code"], 0);
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_request_is_echoed_by_its_number_and_its_signature_covers_where_it_is_sent() {
    let emulator = emulator().await;
    let mut http = http(&emulator).await;
    let addr = emulator.cmq_addr().unwrap();
    let mut request = Request::post(addr, "GetQueueAttributes", &[QUEUE, ("clientRequestId", "77"), ("x_y", "é +&=")]);
    request.sign(SECRET);
    let answer = http.exchange(&request).await;
    assert_eq!((&answer["code"], &answer["clientRequestId"]), (&0.into(), &77.into()));
    // The path is signed as it is asked for.
    for path in ["/", "//v2/index.php"] {
        request.path = path.to_owned();
        assert_eq!(http.exchange(&request).await["code"], 4100, "{path}");
        request.sign(SECRET);
        assert_eq!(http.exchange(&request).await["code"], 0, "{path}");
    }
    request.host = "127.0.0.1".to_owned();
    assert_eq!(http.exchange(&request).await["code"], 4100);
    assert_eq!(http.raw(&format!("GET /other HTTP/1.1\r\nHost: {addr}\r\n\r\n")).await.expect("an answer").0, 404);
    emulator.shutdown().await;
}

#[tokio::test]
async fn what_is_refused_by_order_is_refused_with_the_codes_of_the_service() {
    let emulator = emulator().await;
    let (mut frames, mut http) = (frames(&emulator).await, http(&emulator).await);
    let body = ("msgBody", "body");
    emulator.set_faults(None, Faults { throttle: 1.0, ..Faults::default() });
    assert_eq!(frames.call(pull(0)).await.result, Some(4420));
    assert_eq!(http.call("ReceiveMessage", &[QUEUE]).await["message"], "(10250)qps throttling");
    emulator.set_faults(None, Faults { error_on_send: 1.0, ..Faults::default() });
    assert_eq!(frames.call(send("q")).await.result, Some(6000));
    assert_eq!(http.call("SendMessage", &[QUEUE, body]).await["code"], 6000);
    emulator.set_faults(None, Faults { not_authenticated: 1.0, ..Faults::default() });
    assert_eq!(frames.call(send("q")).await.result, Some(306));
    assert_eq!(http.call("SendMessage", &[QUEUE, body]).await["message"], "(10030)authentication failed");
    emulator.set_faults(None, Faults::default());
    assert_eq!(frames.call(send("q")).await.result, Some(306), "the connection has to log in again");
    assert_eq!(frames.call(auth(SECRET)).await.result, Some(0));
    emulator.set_faults(None, Faults { unavailable: 1.0, ..Faults::default() });
    assert_eq!(frames.call(send("q")).await.result, Some(0), "there is no proxy before TCP");
    let mut request = Request::post(emulator.cmq_addr().unwrap(), "QueryQueueRoute", &[QUEUE]);
    request.sign(SECRET);
    let (status, page) = http.raw(&request.write()).await.expect("a page");
    assert!(status == 503 && page.contains("<html>"), "{status} {page}");
    let done = statistics(&emulator);
    assert_eq!(
        (done.sent, done.throttled, done.errors_on_send, done.not_authenticated, done.unavailable),
        (1, 2, 2, 2, 1)
    );
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_send_whose_reply_is_lost_is_done_and_its_connection_closed() {
    let emulator = emulator().await;
    let mut frames = frames(&emulator).await;
    emulator.set_faults(None, Faults { lost_send_reply: 1.0, ..Faults::default() });
    frames.send(send("q")).await;
    assert_eq!(frames.receive().await, None);
    assert!(is_cut(&emulator, "SendMessage").await);
    let done = statistics(&emulator);
    assert_eq!((done.sent, done.lost_send_replies), (2, 2));
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_request_without_a_reply_is_done_and_its_connection_stays() {
    let emulator = emulator().await;
    let mut frames = frames(&emulator).await;
    emulator.set_faults(None, Faults { no_reply: 1.0, ..Faults::default() });
    frames.send(send("q")).await;
    // Not answered either, but told in turn: the first is done by then.
    frames.send(send("missing")).await;
    assert_eq!(frames.receive().await.expect("of what is no queue").result, Some(4440));
    emulator.set_faults(None, Faults::default());
    let answer = frames.call(pull(0)).await;
    assert_eq!(pulled(answer).len(), 1);
    assert_eq!(statistics(&emulator).unanswered, 1);
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_cut_connection_takes_everything_on_it_along_and_nothing_is_done() {
    let emulator = emulator().await;
    let mut frames = frames(&emulator).await;
    frames.send(pull(30)).await;
    emulator.waits_for_polls("q", 1).await;
    emulator.set_faults(None, Faults { cut_connection: 1.0, ..Faults::default() });
    frames.send(send("q")).await;
    assert_eq!(frames.receive().await, None);
    assert!(is_cut(&emulator, "SendMessage").await);
    let done = statistics(&emulator);
    assert_eq!((done.sent, done.delivered, done.connections_cut), (0, 0, 2));
    // The pull that was cut takes nothing any more.
    emulator.set_faults(None, Faults::default());
    let mut frames = self::frames(&emulator).await;
    frames.call(send("q")).await;
    assert_eq!(pulled(frames.call(pull(0)).await).len(), 1);
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_name_server_can_be_down_and_can_tell_of_an_address_where_nobody_listens() {
    let emulator = emulator().await;
    let mut http = http(&emulator).await;
    let tcp = emulator.cmq_tcp_addr().unwrap();
    assert_eq!(http.call("QueryQueueRoute", &[QUEUE]).await["addr"], Value::from(vec![tcp.to_string()]));
    emulator.set_faults(None, Faults { dead_route: 1.0, ..Faults::default() });
    let route = http.call("QueryQueueRoute", &[QUEUE]).await;
    assert_eq!((route["addr"].as_array().unwrap().len(), &route["addr"][1]), (2, &tcp.to_string().into()));
    let dead: SocketAddr = route["addr"][0].as_str().unwrap().parse().expect("an address");
    let refused = tokio::net::TcpStream::connect(dead).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    emulator.set_faults(None, Faults { name_server_down: 1.0, ..Faults::default() });
    assert!(is_cut(&emulator, "QueryQueueRoute").await);
    assert!(!is_cut(&emulator, "GetQueueAttributes").await, "it is the name server that is down");
    assert_eq!(http.call("QueryQueueRoute", &[("queueName", "missing")]).await["code"], 4440);
    let done = statistics(&emulator);
    assert_eq!((done.dead_routes, done.name_server_downs), (1, 1));
    emulator.shutdown().await;
}

#[test]
fn a_process_tells_where_each_service_is_and_what_became_of_each_message() {
    let emulator = EmulatorProcess::start_open(&["--cmq", "127.0.0.1:0", "--queue", "q", "--keep-log"]);
    let address = emulator.cmq.strip_prefix("http://").expect("a URL").to_owned();
    assert!(emulator.cmq_tcp.parse::<SocketAddr>().is_ok(), "{}", emulator.cmq_tcp);
    let ask = |query: &str| -> Value {
        let (status, body) = get(&address, &format!("/v2/index.php?queueName=q&{query}")).expect("an answer");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    };
    let sent = [ask("Action=SendMessage&msgBody=first"), ask("Action=SendMessage&msgBody=second")];
    let received = ask("Action=ReceiveMessage");
    let handle = received["receiptHandle"].as_str().expect("a handle");
    assert_eq!(ask(&format!("Action=DeleteMessage&receiptHandle={handle}"))["code"], 0);
    let log: Value = serde_json::from_str(&get(&address, "/_emulator/queues/q/log").expect("a log").1).expect("JSON");
    for (entry, (sent, body)) in log.as_array().unwrap().iter().zip(sent.iter().zip(["first", "second"])) {
        assert_eq!((&entry["cmq_id"], &entry["body"]), (&sent["msgId"], &body.into()));
    }
    let times = |index: usize| ["sent_ms", "first_delivered_ms", "deleted_ms"].map(|time| log[index][time].as_i64());
    let [sent, delivered, deleted] = times(0).map(|time| time.expect("it happened"));
    assert!(sent <= delivered && delivered <= deleted && log[0]["deliveries"] == 1, "{log}");
    assert_eq!(times(1)[1..], [None, None]);
    let (status, page) = get(&address, "/_emulator/").expect("a page");
    assert!(status == 200 && page.contains(&format!("cmq tcp at {}", emulator.cmq_tcp)), "{page}");
    assert_eq!(emulator.count("q", "deleted"), 1, "MNS has the same queues");
}

#[test]
fn without_being_asked_to_it_keeps_no_record_and_serves_no_cmq() {
    let emulator = EmulatorProcess::start_open(&["--queue", "q"]);
    let (status, why) =
        get(emulator.endpoint.trim_start_matches("http://"), "/_emulator/queues/q/log").expect("an answer");
    assert!(status == 404 && why.contains("--keep-log"), "{why}");
    let (_, page) = get(emulator.endpoint.trim_start_matches("http://"), "/_emulator/").expect("a page");
    assert!(!page.contains("cmq"), "{page}");
}
