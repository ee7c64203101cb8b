use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use url::{Url, form_urlencoded};

use super::{
    fake::{Address, Reply, answer, http, name_server, nobody, options},
    *,
};
use crate::{
    connectors::cmq::{
        signature::{SignMethod, connection_text, text_to_sign, verify},
        wire::{CmqProto, Command},
    },
    model::Mend,
};

/// A client by one name server that knows these addresses.
async fn client(addresses: &[&Address]) -> Client {
    let addresses: Vec<_> = addresses.iter().map(|address| address.at).collect();
    Client::new(&options(vec![name_server(&addresses).await], Transport::Tcp)).unwrap()
}

fn ok(request: &CmqProto) -> Reply {
    Reply::Answers(vec![answer(request, 0)])
}

fn bodies(bodies: &[&'static str]) -> Vec<Bytes> {
    bodies.iter().map(|body| Bytes::from_static(body.as_bytes())).collect()
}

async fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_connection_authenticates_itself_first_and_is_shared_by_all_calls() {
    let address = Address::new(ok).await;
    let client = client(&[&address]).await;
    let one = bodies(&["a"]);
    join_all((0..8).map(|_| client.send(&one))).await.into_iter().collect::<Result<Vec<()>, _>>().unwrap();
    let seen = address.seen();
    assert!(seen.iter().all(|(connection, _)| *connection == 0));
    let auth = seen[0].1.tcp_auth.as_ref().expect("first of all");
    assert!(auth.client_id.starts_with("127.0.0.1@"), "{}", auth.client_id);
    let text = connection_text(&auth.client_id, "AKID1");
    assert!(verify(SignMethod::HmacSha1, "T0PS3CRET", &text, &auth.signature));
    assert_eq!(seen.len(), 9);
    let mut numbers: Vec<_> = seen.iter().filter_map(|(_, request)| request.request_id).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order_and_what_nobody_asked_for_is_left_out() {
    let mut held: Vec<CmqProto> = Vec::new();
    let address = Address::new(move |request| {
        held.push(request.clone());
        if held.len() < 3 {
            return Reply::Silence;
        }
        let mut answers = vec![
            CmqProto { cmd: Command::QueryTransaction.number(), ..answer(&held[0], 0) },
            CmqProto { seqno: 99, ..answer(&held[0], 0) },
        ];
        // The result tells which call it is of.
        let result = |request: &CmqProto| i32::try_from(request.request_id.unwrap()).unwrap() + 10_900;
        answers.extend(held.iter().rev().map(|request| answer(request, result(request))));
        Reply::Answers(answers)
    })
    .await;
    let client = client(&[&address]).await;
    let one = bodies(&["a"]);
    let told = join_all((0..3).map(|_| client.send(&one))).await;
    let told: Vec<_> = told.into_iter().map(|told| told.unwrap_err().to_string()).collect();
    assert_eq!(told, [10_901, 10_902, 10_903].map(|code| format!("send: the service answers {code}")));
}

#[tokio::test]
async fn a_connection_that_breaks_fails_every_call_at_once_and_the_next_call_makes_another() {
    let mut calls = 0;
    let address = Address::new(move |request| {
        calls += 1;
        match calls {
            1..=3 => Reply::Silence,
            4 => Reply::Close,
            _ => ok(request),
        }
    })
    .await;
    let client = client(&[&address]).await;
    let (one, begun) = (bodies(&["a"]), Instant::now());
    for told in join_all((0..4).map(|_| client.send(&one))).await {
        let fault = told.unwrap_err();
        assert_eq!((fault.kind, fault.mend), (FaultKind::Network, Mend::Retry));
        assert!(fault.to_string().contains("closed the connection"), "{fault}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "long before the timeout");
    client.send(&one).await.unwrap();
    assert_eq!(address.seen().last().unwrap().0, 1);
}

#[tokio::test]
async fn a_connection_on_which_nothing_comes_in_is_given_up_and_one_that_lives_is_kept() {
    let address = Address::new(|request| match request.tcp_delete_msg.as_ref().map(|delete| delete.receipt_handle) {
        Some(1) => Reply::Silence,
        _ => ok(request),
    })
    .await;
    let server = name_server(&[address.at]).await;
    let options =
        ClientOptions { request_timeout: Duration::from_millis(300), ..options(vec![server], Transport::Tcp) };
    let client = Client::new(&options).unwrap();
    // Others are answered meanwhile.
    let others = async {
        for _ in 0..8 {
            client.delete(&["2"]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (lost, ()) = futures_util::join!(client.delete(&["1"]), others);
    assert_eq!(lost.unwrap_err().kind, FaultKind::Timeout);
    assert!(address.seen().iter().all(|(connection, _)| *connection == 0));
    let fault = client.delete(&["1"]).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Timeout, Mend::Retry));
    client.delete(&["2"]).await.unwrap();
    assert_eq!(address.seen().last().unwrap().0, 1);
}

#[tokio::test]
async fn a_connection_that_is_not_authenticated_any_more_is_closed_and_the_next_one_authenticates_itself() {
    for result in [306, 10_031] {
        let mut calls = 0;
        let address = Address::new(move |request| {
            calls += 1;
            Reply::Answers(vec![answer(request, if calls == 1 { result } else { 0 })])
        })
        .await;
        let client = client(&[&address]).await;
        let fault = client.send(&bodies(&["a"])).await.unwrap_err();
        assert_eq!((fault.kind, fault.mend), (FaultKind::Network, Mend::Retry), "{fault}");
        client.send(&bodies(&["a"])).await.unwrap();
        assert_eq!(address.count(Command::Auth), 2);
        assert_eq!(address.seen().last().unwrap().0, 1);
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_by_heartbeats() {
    let address = Address::new(ok).await;
    let client = client(&[&address]).await;
    let begun = Instant::now();
    client.send(&bodies(&["a"])).await.unwrap();
    until(|| address.count(Command::Heartbeat) > 0).await;
    assert!(begun.elapsed() >= Duration::from_secs(3));
}

#[tokio::test]
async fn name_servers_and_addresses_that_are_down_are_passed_over() {
    let address = Address::new(ok).await;
    let down = Url::parse(&format!("http://{}/v2/index.php", nobody().await)).unwrap();
    let refusing = http(|_| (200, r#"{"code":4440,"message":"(10100)no queue"}"#.to_owned())).await;
    let broken = http(|_| (502, "<html>".to_owned())).await;
    let good = name_server(&[nobody().await, address.at, nobody().await]).await;
    // Whichever is asked first.
    for _ in 0..8 {
        let hosts = vec![down.clone(), refusing.clone(), broken.clone(), good.clone()];
        let client = Client::new(&options(hosts, Transport::Tcp)).unwrap();
        client.send(&bodies(&["a"])).await.unwrap();
    }
    let told = async |hosts: Vec<Url>| {
        let client = Client::new(&options(hosts, Transport::Tcp)).unwrap();
        let fault = client.attributes().await.unwrap_err();
        (fault.kind, fault.mend)
    };
    assert_eq!(told(vec![refusing.clone()]).await, (FaultKind::Missing, Mend::Never));
    // What cannot be asked may know the queue.
    for hosts in [vec![down.clone(), refusing.clone()], vec![refusing, broken]] {
        assert_eq!(told(hosts).await.1, Mend::Retry);
    }
    assert_eq!(told(vec![down]).await, (FaultKind::Network, Mend::Retry));
    let nowhere = name_server(&[nobody().await]).await;
    assert_eq!(told(vec![nowhere]).await, (FaultKind::Network, Mend::Retry));
}

#[tokio::test]
async fn the_last_route_is_used_while_no_name_server_answers() {
    let mut calls = 0;
    let address = Address::new(move |request| {
        calls += 1;
        if calls == 1 { Reply::Close } else { ok(request) }
    })
    .await;
    let (mut asked, route) = (0, format!(r#"{{"code":0,"addr":["{}"]}}"#, address.at));
    let server = http(move |_| {
        asked += 1;
        if asked == 1 { (200, route.clone()) } else { (500, String::new()) }
    })
    .await;
    let client = Client::new(&options(vec![server], Transport::Tcp)).unwrap();
    client.send(&bodies(&["a"])).await.unwrap_err();
    client.send(&bodies(&["a"])).await.unwrap();
    assert_eq!(address.count(Command::Auth), 2);
}

#[tokio::test]
async fn an_empty_pull_is_no_error_in_either_family() {
    let mut results = vec![7000, 10_200];
    let address =
        Address::new(move |request| Reply::Answers(vec![answer(request, results.pop().unwrap_or_default())])).await;
    let client = client(&[&address]).await;
    for _ in 0..3 {
        assert_eq!(client.receive(16, 2).await.unwrap(), []);
    }
    let pull = address.seen()[1].1.tcp_batch_pull_msg.clone().expect("a batch pull");
    assert_eq!((pull.num_msg, pull.poll_wait_seconds, pull.visible_timeout), (16, Some(2), None));
}

#[tokio::test]
async fn deletes_over_tcp_tell_which_of_them_failed() {
    let address = Address::new(|request| {
        let failure = crate::connectors::cmq::wire::proto::DeleteResult {
            receipt_handle: 2,
            err_code: 4430,
            err_msg: "(10260)receipt handle is invalid".to_owned(),
        };
        let answer = match (&request.tcp_delete_msg, &request.tcp_batch_delete_msg) {
            (Some(delete), _) if delete.receipt_handle == 9 => answer(request, 10_260),
            (Some(_), _) => answer(request, 0),
            (_, Some(batch)) if batch.receipt_handle_list.contains(&7) => answer(request, 6020),
            _ => CmqProto { del_result: vec![failure], ..answer(request, 6010) },
        };
        Reply::Answers(vec![answer])
    })
    .await;
    let client = client(&[&address]).await;
    assert_eq!(client.delete(&["1"]).await.unwrap(), []);
    let failed = async |handles: &[&str]| {
        let failures = client.delete(handles).await.unwrap();
        failures.into_iter().map(|failure| (failure.handle, failure.code)).collect::<Vec<_>>()
    };
    assert_eq!(failed(&["9"]).await, [("9".to_owned(), 10_260)]);
    assert_eq!(failed(&["1", "2"]).await, [("2".to_owned(), 4430)]);
    let fault = client.delete(&["1", "7"]).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry));
}

/// The parameters of a form whose signature is right.
fn checked(form: &str, host: &str) -> Vec<(String, String)> {
    let parameters: Vec<(String, String)> = form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    let pairs: Vec<_> = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let text = text_to_sign("POST", host, "/v2/index.php", &pairs);
    let signature = pairs.iter().find(|(key, _)| *key == "Signature").expect("a signature").1;
    assert!(verify(SignMethod::HmacSha1, "T0PS3CRET", &text, signature));
    parameters.into_iter().filter(|(key, _)| !["Nonce", "Timestamp", "Signature"].contains(&key.as_str())).collect()
}

#[tokio::test]
async fn http_requests_are_signed_forms_and_bodies_come_through_as_they_are() {
    let (forms, seen) = std::sync::mpsc::channel();
    let url = http(move |form| {
        forms.send(form.to_owned()).unwrap();
        let answer = match form {
            form if form.contains("BatchReceive") => {
                r#"{"code":0,"message":"","requestId":"1","clientRequestId":0,"msgInfoList":[{"msgId":"a-1",
                "msgBody":"{\"名\":\" & = + %\"}","receiptHandle":"h:1#%","enqueueTime":1796004152,
                "firstDequeueTime":1796004153,"nextVisibleTime":1796004183,"dequeueCount":2}]}"#
            }
            _ => r#"{"code":0,"message":"","requestId":"1"}"#,
        };
        (200, answer.to_owned())
    })
    .await;
    let host = format!("127.0.0.1:{}", url.port().unwrap());
    let client = Client::new(&options(vec![url], Transport::Http)).unwrap();
    let body = "{\"名\":\" & = + %\", \"a_b\": \"@\"}";
    client.send(&bodies(&["@ & = + %"])).await.unwrap();
    client.send(&bodies(&["1", body])).await.unwrap();
    let [received] = client.receive(16, 3).await.unwrap().try_into().unwrap();
    assert_eq!((received.id.as_str(), received.handle.as_str()), ("a-1", "h:1#%"));
    assert_eq!(received.body, "{\"名\":\" & = + %\"}");
    assert_eq!((received.next_visible_ms, received.dequeue_count), (1_796_004_183_000, 2));
    let sent: Vec<_> = seen.try_iter().map(|form| checked(&form, &host)).collect();
    let value = |at: usize, key: &str| {
        sent[at].iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    assert_eq!((value(0, "Action"), value(0, "msgBody")), ("SendMessage", "@ & = + %"));
    assert_eq!((value(1, "msgBody.1"), value(1, "msgBody.2")), ("1", body));
    assert_eq!((value(2, "numOfMsg"), value(2, "pollingWaitSeconds")), ("16", "3"));
    assert!(sent.iter().all(|pairs| pairs.contains(&("queueName".to_owned(), "q".to_owned()))));
}

#[tokio::test]
async fn http_answers_that_are_none_are_faults_of_the_service_and_its_codes_are_understood() {
    let answers = [
        (502, "<html>"),
        (429, ""),
        (200, "not JSON"),
        (200, r#"{"message":"no code"}"#),
        (200, r#"{"code":4420,"message":"(10250)qps"}"#),
        (200, r#"{"code":4000,"message":"(10100)queue is not existed"}"#),
        (200, r#"{"code":4100,"message":"(10030)authentication failed"}"#),
        (200, r#"{"code":7000,"message":"(10200)no message"}"#),
    ];
    let mut next = answers.into_iter();
    let url = http(move |_| next.next().map(|(status, text)| (status, text.to_owned())).unwrap()).await;
    let client = Client::new(&options(vec![url], Transport::Http)).unwrap();
    for expected in [
        (FaultKind::Service, Mend::Retry),
        (FaultKind::Throttled, Mend::Retry),
        (FaultKind::Service, Mend::Retry),
        (FaultKind::Service, Mend::Retry),
        (FaultKind::Throttled, Mend::Retry),
        (FaultKind::Missing, Mend::Never),
        (FaultKind::Credentials, Mend::Retry),
    ] {
        let fault = client.receive(1, 0).await.unwrap_err();
        assert_eq!((fault.kind, fault.mend), expected, "{fault}");
        assert!(!fault.to_string().contains("T0PS3CRET"));
    }
    assert_eq!(client.receive(1, 0).await.unwrap(), []);
}

#[tokio::test]
async fn deletes_over_http_tell_which_of_them_failed() {
    let answers = [
        r#"{"code":6010,"message":"(10150)","errorList":[{"code":4430,"message":"(10260)","receiptHandle":"b"}]}"#,
        r#"{"code":4430,"message":"(10260)receipt handle is invalid"}"#,
        r#"{"code":0}"#,
        r#"{"code":6020,"message":"(10290)all"}"#,
    ];
    let mut next = answers.into_iter();
    let url = http(move |_| (200, next.next().unwrap().to_owned())).await;
    let client = Client::new(&options(vec![url], Transport::Http)).unwrap();
    assert_eq!(client.delete(&["a", "b"]).await.unwrap()[0].handle, "b");
    assert_eq!(client.delete(&["a"]).await.unwrap()[0].code, 4430);
    assert_eq!(client.delete(&["a", "b"]).await.unwrap(), []);
    assert!(client.delete(&["a", "b"]).await.is_err());
}

#[test]
fn where_every_delete_failed_those_that_the_answer_does_not_name_failed_too() {
    let named = |code| {
        let failure = super::DeleteFailure { handle: "b".to_owned(), code: 4430, message: String::new() };
        let failures = super::named(&["a", "b"], vec![failure], "delete", code, "all").unwrap();
        failures.into_iter().map(|failure| (failure.handle, failure.code)).collect::<Vec<_>>()
    };
    assert_eq!(named(6010), [("b".to_owned(), 4430)]);
    assert_eq!(named(6020), [("b".to_owned(), 4430), ("a".to_owned(), 6020)]);
    assert_eq!(named(10_290).len(), 2);
}
