//! What the client sends, and what it makes of answers and broken connections: against a server of a few lines.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::model::{FaultKind, Mend};

/// A request as it came.
struct Seen {
    code: i64,
    fields: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// What the server does with a request.
enum Reply {
    Answer(i32, &'static str, Value, Vec<u8>),
    /// It never answers.
    Silence,
    /// It closes the connection.
    Close,
}

/// Answers every request on every connection by `reply`, and hands over what it saw.
fn serve(reply: impl Fn(&Seen) -> Reply + Send + Sync + Clone + 'static) -> (SocketAddr, Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, seen) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (sender, reply) = (sender.clone(), reply.clone());
            std::thread::spawn(move || {
                let mut stream = stream;
                while let Some((opaque, request)) = receive(&mut stream) {
                    let reply = reply(&request);
                    if sender.send(request).is_err() {
                        return;
                    }
                    match reply {
                        Reply::Answer(code, remark, fields, body) => {
                            answer(&mut stream, opaque, code, remark, fields, &body)
                        }
                        Reply::Silence => {}
                        Reply::Close => return,
                    }
                }
            });
        }
    });
    (address, seen)
}

fn receive(stream: &mut TcpStream) -> Option<(Value, Seen)> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut frame).ok()?;
    let header = (u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) & 0x00ff_ffff) as usize;
    let head: Value = serde_json::from_slice(&frame[4..4 + header]).expect("JSON");
    let fields = serde_json::from_value(head["extFields"].clone()).unwrap_or_default();
    let seen = Seen { code: head["code"].as_i64().expect("a code"), fields, body: frame[4 + header..].to_vec() };
    Some((head["opaque"].clone(), seen))
}

fn answer(stream: &mut TcpStream, opaque: Value, code: i32, remark: &str, fields: Value, body: &[u8]) {
    let head = json!({ "code": code, "flag": 1, "language": "JAVA", "version": 401, "opaque": opaque, "remark": remark,
        "extFields": fields, "serializeTypeCurrentRPC": "JSON" });
    let head = head.to_string();
    let mut frame = ((4 + head.len() + body.len()) as u32).to_be_bytes().to_vec();
    frame.extend((head.len() as u32).to_be_bytes());
    frame.extend(head.as_bytes());
    frame.extend(body);
    // The client may be gone.
    let _ = stream.write_all(&frame);
}

fn options(address: SocketAddr) -> ClientOptions {
    ClientOptions {
        endpoints: vec![address.to_string()],
        namespace: None,
        credentials: None,
        channel: Channel::Local,
        tls: false,
        request_timeout: Duration::from_secs(5),
    }
}

fn queue(address: SocketAddr) -> Queue {
    Queue {
        cluster: "C".into(),
        topic: "T".into(),
        broker: "broker-a".into(),
        id: 3,
        address: address.to_string().into(),
    }
}

fn poll(wait: Duration) -> Pull<'static> {
    Pull { group: "G", offset: 7, most: 32, wait, filter: &Filter::All }
}

fn offset(value: &str) -> Reply {
    Reply::Answer(0, "", json!({ "offset": value }), Vec::new())
}

fn found(body: &str) -> Reply {
    let digits: Vec<u32> = body.chars().filter_map(|c| c.to_digit(16)).collect();
    let body = digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    Reply::Answer(0, "FOUND", json!({ "nextBeginOffset": "4", "minOffset": "0", "maxOffset": "9" }), body)
}

async fn fault_of(code: i32, remark: &'static str) -> crate::model::Fault {
    let (address, _seen) = serve(move |_| Reply::Answer(code, remark, json!({}), Vec::new()));
    let client = Client::new(&options(address)).expect("valid");
    client.pull(&queue(address), &poll(Duration::ZERO)).await.expect_err("a fault")
}

#[tokio::test]
async fn requests_carry_namespace_and_the_brokers_name_which_a_proxy_wants() {
    let (address, seen) = serve(|request| match request.code {
        11 => found(include_str!("vectors/pull-4.9.7.hex")),
        105 => Reply::Answer(17, "no such topic", json!({}), Vec::new()),
        _ => offset("5"),
    });
    let client = Client::new(&ClientOptions { namespace: Some("ns".into()), ..options(address) }).expect("valid");
    let queue = queue(address);
    assert_eq!(client.route("T").await.expect("answered"), None);
    assert_eq!(client.min_offset(&queue).await.expect("answered"), 5);
    assert_eq!(client.group_offset(&queue, "G").await.expect("answered"), Some(5));
    client.commit_offset(&queue, "G", 6).await.expect("answered");
    let tags = Filter::Tags(vec!["TagA".into(), "TagC".into()]);
    let pull = Pull { filter: &tags, ..poll(Duration::from_secs(2)) };
    let pulled = client.pull(&queue, &pull).await.expect("answered");
    // A broker compares hashes of tags, so others may come too; the reader counts them.
    assert_eq!(pulled.messages.iter().filter(|message| message.tags() == Some("TagA")).count(), 1);
    assert_eq!((pulled.status, pulled.next, pulled.min, pulled.max), (PullStatus::Found, 4, 0, 9));

    let mut requests: Vec<Seen> = seen.try_iter().collect();
    let codes: Vec<_> = requests.iter().map(|request| request.code).collect();
    assert_eq!(codes, [105, 31, 14, 105, 34, 35, 15, 11]);
    let group: Vec<Seen> = requests.drain(3..6).collect();
    assert_eq!((&*group[0].fields["topic"], &*group[2].fields["consumerGroup"]), ("%RETRY%ns%G", "ns%G"));
    let beat: Value = serde_json::from_slice(&group[1].body).expect("JSON");
    assert_eq!(
        (&beat["clientID"], &beat["consumerDataSet"][0]["groupName"]),
        (&json!(group[2].fields["clientID"]), &json!("ns%G"))
    );
    assert!(requests.iter().all(|request| request.fields["topic"] == "ns%T"));
    assert!(
        requests[1..].iter().all(|request| request.fields["bname"] == "broker-a" && request.fields["queueId"] == "3")
    );
    let pull = &requests[4].fields;
    for (name, value) in [
        ("consumerGroup", "ns%G"),
        ("queueOffset", "7"),
        ("maxMsgNums", "32"),
        ("sysFlag", "6"),
        ("suspendTimeoutMillis", "2000"),
        ("subscription", "TagA||TagC"),
        ("expressionType", "TAG"),
    ] {
        assert_eq!(pull[name], value, "{name}");
    }
    assert_eq!((&*requests[2].fields["setZeroIfNotFound"], &*requests[3].fields["commitOffset"]), ("false", "6"));
}

#[tokio::test]
async fn messages_are_sent_alone_or_as_a_batch() {
    let (address, seen) = serve(|_| Reply::Answer(0, "", json!({ "queueOffset": "41", "msgId": "X" }), Vec::new()));
    let client = Client::new(&options(address)).expect("valid");
    let message = |body: &'static str| Outgoing {
        body: Bytes::from_static(body.as_bytes()),
        keys: Some("k1 k2".into()),
        tags: Some("TagA".into()),
        properties: Vec::new(),
        id: Some(format!("ID-{body}")),
    };
    for messages in [vec![message("one")], vec![message("two"), message("")], vec![message("")]] {
        client.send(&queue(address), "P", &messages).await.expect("sent");
    }
    let requests: Vec<Seen> = seen.try_iter().collect();
    let codes: Vec<_> = requests.iter().map(|request| (request.code, &*request.fields["m"])).collect();
    // A broker of 5.3.3 cannot take an empty body that is not in a batch.
    assert_eq!(codes, [(310, "false"), (320, "true"), (320, "true")]);
    assert_eq!(requests[0].body, b"one");
    assert_eq!(requests[0].fields["i"], "KEYS\u{1}k1 k2\u{2}TAGS\u{1}TagA\u{2}UNIQ_KEY\u{1}ID-one\u{2}");
    for (name, value) in [("a", "P"), ("b", "T"), ("e", "3"), ("f", "0"), ("n", "broker-a")] {
        assert_eq!(requests[0].fields[name], value, "{name}");
    }
    let id = b"UNIQ_KEY\x01ID-two\x02";
    assert!(requests[1].body.windows(id.len()).any(|window| window == id));
}

#[tokio::test]
async fn requests_are_signed_as_the_java_client_signs_them() {
    for (channel, expected) in [(Channel::Local, None), (Channel::Cloud, None), (Channel::Aliyun, Some("ALIYUN"))] {
        let (address, seen) = serve(|_| Reply::Answer(0, "", json!({ "queueOffset": "41" }), Vec::new()));
        let credentials = Credentials { access_key: "my-access-key".into(), secret_key: "my-secret-key".into() };
        assert!(!format!("{credentials:?}").contains("secret-key"));
        let client = ClientOptions { credentials: Some(credentials), channel, ..options(address) };
        let client = Client::new(&client).expect("valid");
        let message = Outgoing { body: Bytes::from_static("é".as_bytes()), ..Outgoing::default() };
        client.send(&queue(address), "P", &[message]).await.expect("sent");
        let request = seen.try_recv().expect("seen");
        assert_eq!(request.fields["AccessKey"], "my-access-key");
        assert_eq!(request.fields.get("OnsChannel").map(String::as_str), expected);
        let signature = java_signature(&request.fields, &request.body);
        assert_eq!(request.fields["Signature"], signature);
    }
}

/// The values of all fields in the order of their names, then the body, by the secret of these tests.
fn java_signature(fields: &BTreeMap<String, String>, body: &[u8]) -> String {
    use hmac::{Hmac, Mac};
    let mut mac = Hmac::<sha1::Sha1>::new_from_slice(b"my-secret-key").expect("any size");
    for (_, value) in fields.iter().filter(|(name, _)| *name != "Signature") {
        mac.update(value.as_bytes());
    }
    mac.update(body);
    base64_simd::STANDARD.encode_to_string(mac.finalize().into_bytes())
}

/// What 5.3.3's `AclClientRPCHook` signs.
#[test]
fn the_signature_that_is_expected_here_is_that_of_the_java_client() {
    let fields = [("topic", "Té"), ("queueId", "3"), ("a", "x"), ("AccessKey", "my-access-key")];
    let mut fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(java_signature(&fields, b"payload"), "RjCsM6W1OJ8BNe0Ila4rvN7xcrY=");
    fields.insert("OnsChannel".into(), "ALIYUN".into());
    assert_eq!(java_signature(&fields, b""), "lvkUiY6hUWWVPasV3BzTtYZAzQI=");
}

#[test]
fn blank_credentials_are_refused() {
    for (access_key, secret_key) in [("", "s"), ("a", " ")] {
        let credentials = Some(Credentials { access_key: access_key.into(), secret_key: secret_key.into() });
        let options = ClientOptions { credentials, ..options(SocketAddr::from(([127, 0, 0, 1], 1))) };
        assert_eq!(Client::new(&options).err().expect("refused").kind, FaultKind::Definition);
    }
}

#[tokio::test]
async fn an_answer_is_a_fault_with_the_servers_remark_that_says_who_can_mend_it() {
    for (code, remark, kind, mend) in [
        (1, "org.apache.rocketmq.acl.common.AclException: Check signature failed", FaultKind::Credentials, Mend::Never),
        (1, "The broker does not support consumer to filter message by SQL92", FaultKind::Rejected, Mend::Never),
        (1, "something else", FaultKind::Service, Mend::Retry),
        (2, "[TIMEOUT_CLEAN_QUEUE]broker busy", FaultKind::Throttled, Mend::Retry),
        (13, "the message is illegal", FaultKind::Poison, Mend::Never),
        (13, "TopicMessageType validate failed, the expected type is FIFO", FaultKind::Rejected, Mend::Never),
        (14, "service not available now", FaultKind::Service, Mend::Retry),
        (16, "No accessKey is configured", FaultKind::Credentials, Mend::Never),
        (16, "the broker[127.0.0.1] pulling message is forbidden", FaultKind::Service, Mend::Retry),
        (16, "subscription group no permission, G", FaultKind::Service, Mend::Retry),
        (16, "the topic[T] pulling message is forbidden", FaultKind::Service, Mend::Retry),
        (17, "topic[T] not exist", FaultKind::Missing, Mend::Retry),
        (23, "parse the consumer's subscription failed", FaultKind::Rejected, Mend::Never),
        (26, "subscription group [G] does not exist", FaultKind::Missing, Mend::Never),
        (29, "request queueId[99] is illegal", FaultKind::Missing, Mend::Retry),
        (215, "slow down", FaultKind::Throttled, Mend::Retry),
        (4711, "new in a later version", FaultKind::Service, Mend::Retry),
    ] {
        let fault = fault_of(code, remark).await;
        assert_eq!((fault.kind, fault.mend), (kind, mend), "{code}: {fault}");
        assert!(fault.to_string().contains(remark) && fault.to_string().contains(&code.to_string()), "{fault}");
    }
}

#[tokio::test]
async fn a_send_that_is_not_wholly_stored_is_a_fault() {
    for code in [10, 11, 12] {
        let reply = move |_: &Seen| Reply::Answer(code, "", json!({ "queueOffset": "41" }), Vec::new());
        let (address, _seen) = serve(reply);
        let client = Client::new(&options(address)).expect("valid");
        let message = Outgoing { body: Bytes::from_static(b"x"), ..Outgoing::default() };
        let fault = client.send(&queue(address), "P", &[message]).await.expect_err("a fault");
        assert_eq!((fault.kind, fault.mend), (FaultKind::Service, Mend::Retry), "{fault}");
    }
}

#[tokio::test]
async fn a_message_that_fits_no_frame_is_refused_before_it_is_sent() {
    let (address, seen) = serve(|_| Reply::Silence);
    let client = Client::new(&options(address)).expect("valid");
    let message = Outgoing { body: vec![0; 17 << 20].into(), ..Outgoing::default() };
    let fault = client.send(&queue(address), "P", &[message]).await.expect_err("a fault");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Poison, Mend::Never), "{fault}");
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn a_predicate_is_checked_once_since_a_pull_with_a_broken_one_is_answered_with_everything() {
    let (address, seen) = serve(|request| match request.code {
        46 if request.body.windows(6).any(|window| window == b"broken") => {
            Reply::Answer(23, "Encountered \"broken\"", json!({}), Vec::new())
        }
        46 => Reply::Answer(0, "", json!({}), Vec::new()),
        _ if request.fields["subscription"].contains("1 = 2") && request.fields["subscription"].contains("a > 1") => {
            found("")
        }
        _ => found(include_str!("vectors/pull-4.9.7.hex")),
    });
    let client = Client::new(&options(address)).expect("valid");
    let (broken, unread, whole) =
        (Filter::Sql("broken".into()), Filter::Sql("b > ".into()), Filter::Sql("a > 1".into()));
    let pull = |filter| Pull { filter, ..poll(Duration::ZERO) };
    for (filter, codes) in [(&broken, vec![46]), (&unread, vec![46, 11, 11])] {
        let fault = client.pull(&queue(address), &pull(filter)).await.expect_err("refused");
        assert_eq!((fault.kind, fault.mend), (FaultKind::Rejected, Mend::Never), "{fault}");
        assert_eq!(seen.try_iter().map(|request| request.code).collect::<Vec<_>>(), codes);
    }
    assert_eq!(client.pull(&queue(address), &pull(&whole)).await.expect("answered").messages.len(), 4);
    assert_eq!(client.pull(&queue(address), &pull(&whole)).await.expect("answered").messages.len(), 4);
    assert_eq!(seen.try_iter().map(|request| request.code).collect::<Vec<_>>(), [46, 11, 11, 11]);
}

#[tokio::test]
async fn a_commit_for_a_group_that_the_broker_does_not_know_makes_it_by_a_pull() {
    let known = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (address, seen) = serve(move |request| {
        use std::sync::atomic::Ordering::SeqCst;
        match request.code {
            11 => {
                known.store(true, SeqCst);
                found("")
            }
            105 => Reply::Answer(17, "no such topic", json!({}), Vec::new()),
            _ if known.load(SeqCst) => Reply::Answer(0, "", json!({}), Vec::new()),
            _ => Reply::Answer(26, "Group G not exist!", json!({}), Vec::new()),
        }
    });
    let client = Client::new(&options(address)).expect("valid");
    client.commit_offset(&queue(address), "G", 5).await.expect("committed");
    client.commit_offset(&queue(address), "G", 6).await.expect("committed");
    // 105 to 35: that the broker's tools list the group, which is seen to once.
    assert_eq!(seen.try_iter().map(|request| request.code).collect::<Vec<_>>(), [105, 34, 35, 15, 11, 15, 15]);
}

#[tokio::test]
async fn who_may_read_but_not_ask_for_offsets_finds_the_ends_and_a_time_by_pulls() {
    let (address, _seen) = serve(|request| match request.code {
        // The message at every offset was stored at 1700000000456.
        11 => found(include_str!("vectors/plain.hex")),
        _ => Reply::Answer(16, "User:u has no permission to access Topic:T", json!({}), Vec::new()),
    });
    let client = Client::new(&options(address)).expect("valid");
    assert_eq!(client.max_offset(&queue(address)).await.expect_err("no right").kind, FaultKind::Credentials);
    assert_eq!(client.ends(&queue(address), "G").await.expect("answered"), 0..9);
    for (time, expected) in [(1_700_000_000_456, 0), (1_700_000_000_457, 9)] {
        assert_eq!(client.offset_at(&queue(address), "G", time).await.expect("found"), expected);
    }
}

#[tokio::test]
async fn a_time_is_found_whatever_a_broker_answers_for_it() {
    // Offsets 0 to 99, stored at 10, 10, 20, 20, 30, 30, ...
    for hint in [0, 41, 42, 43, 44, 99, 100, 4711] {
        let (address, _seen) = serve(move |request| {
            let number = |name: &str| request.fields[name].parse::<u64>().expect("a number");
            match request.code {
                11 => stored_at(10 * (number("queueOffset") / 2 + 1)),
                30 => offset("100"),
                31 => offset("0"),
                _ => offset(&hint.to_string()),
            }
        });
        let client = Client::new(&options(address)).expect("valid");
        for (time, expected) in [(0, 0), (10, 0), (11, 2), (219, 42), (220, 42), (221, 44), (500, 98), (501, 100)] {
            let found = client.offset_at(&queue(address), "G", time).await.expect("found");
            assert_eq!(found, expected, "{time} with {hint}");
        }
    }
}

fn stored_at(time: u64) -> Reply {
    let Reply::Answer(code, remark, fields, mut body) = found(include_str!("vectors/plain.hex")) else { panic!() };
    body[56..64].copy_from_slice(&time.to_be_bytes());
    Reply::Answer(code, remark, fields, body)
}

#[tokio::test]
async fn the_next_endpoint_is_asked_when_one_does_not_answer_and_the_one_that_did_is_asked_first() {
    let (address, seen) = serve(|_| Reply::Answer(17, "", json!({}), Vec::new()));
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let endpoints = vec![gone.to_string(), address.to_string()];
    let client = Client::new(&ClientOptions { endpoints, ..options(address) }).expect("valid");
    for _ in 0..8 {
        assert_eq!(client.route("T").await.expect("answered"), None);
    }
    assert_eq!(seen.try_iter().count(), 8);
    let client = Client::new(&options(gone)).expect("valid");
    let fault = client.route("T").await.expect_err("nobody there");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Network, Mend::Retry));
    assert!(fault.to_string().contains(&gone.to_string()) && fault.to_string().contains("refused"), "{fault}");
}

#[tokio::test]
async fn a_call_whose_connection_breaks_does_not_wait_for_its_timeout() {
    // One call is answered, so that there is a connection; the next one has it closed under it.
    let (address, _seen) = serve(|request| if request.code == 11 { Reply::Close } else { offset("5") });
    let client = Client::new(&options(address)).expect("valid");
    assert_eq!(client.max_offset(&queue(address)).await.expect("answered"), 5);
    let began = Instant::now();
    let fault = client.pull(&queue(address), &poll(Duration::from_secs(60))).await.expect_err("broke");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Network, Mend::Retry), "{fault}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(client.max_offset(&queue(address)).await.expect("connected again"), 5);
}

#[tokio::test]
async fn a_server_that_was_away_for_long_is_reached_as_soon_as_it_is_back() {
    let away = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let client = Client::new(&options(away)).expect("valid");
    for _ in 0..12 {
        // More than the five failures after which the crate refuses to connect for half a minute.
        client.max_offset(&queue(away)).await.expect_err("nobody there");
    }
    let listener = TcpListener::bind(away).expect("still free");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            while let Some((opaque, _)) = receive(&mut stream) {
                answer(&mut stream, opaque, 0, "", json!({ "offset": "5" }), &[]);
            }
        }
    });
    assert_eq!(client.max_offset(&queue(away)).await.expect("back"), 5);
}

#[tokio::test]
async fn a_call_that_is_not_answered_ends_with_its_timeout() {
    let (address, _seen) = serve(|_| Reply::Silence);
    let options = ClientOptions { request_timeout: Duration::from_millis(300), ..options(address) };
    let client = Client::new(&options).expect("valid");
    let fault = client.max_offset(&queue(address)).await.expect_err("no answer");
    assert_eq!((fault.kind, fault.mend), (FaultKind::Timeout, Mend::Retry), "{fault}");
    assert!(fault.to_string().contains("300 ms"), "{fault}");
}

#[test]
fn nothing_is_left_of_a_client_that_is_dropped_and_it_has_no_thread_of_its_own() {
    let (address, seen) = serve(|request| if request.code == 11 { Reply::Silence } else { offset("5") });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let client = Client::new(&options(address)).expect("valid");
        assert_eq!(client.max_offset(&queue(address)).await.expect("answered"), 5);
        assert!(tasks() > 0);
        // A pull that is given up while it waits.
        let (queue, pull) = (queue(address), poll(Duration::from_secs(60)));
        tokio::select! {
            _ = client.pull(&queue, &pull) => panic!("it does not answer"),
            () = async { while !seen.try_iter().any(|request| request.code == 11) { tokio::task::yield_now().await } } => {}
        }
        drop(client);
        let deadline = Instant::now() + Duration::from_secs(20);
        while tasks() > 0 && Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks(), 0);
    });
    let own: Vec<String> =
        threads().into_iter().filter(|name| name.contains("rocketmq") || name.contains("client")).collect();
    assert!(own.is_empty(), "{own:?}");
}

/// Names of the process's threads. (Those of tests have the names of the tests.)
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.starts_with("connectors::"))
        .collect()
}
