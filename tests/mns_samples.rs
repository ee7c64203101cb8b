//! Requests recorded from Alibaba's own SDKs, re-dated and re-signed, sent byte by byte to the emulator.
//!
//! Each must get the status and the elements of the recorded answer. Ids, handles and times differ, of course;
//! later requests are sent with those that the emulator gave out.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that is not as it should be")]

use std::{fs, path::Path, time::SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use md5::{Digest, Md5};
use queuewarden::{
    connectors::mns::signature,
    emulator::{AccessKey, Config, Emulator, start},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const ID: &str = "DummyAccessKeyId";
const SECRET: &str = "DummyAccessKeySecret";
/// Elements whose text differs from run to run.
const VOLATILE: [&str; 10] = [
    "MessageId",
    "ReceiptHandle",
    "EnqueueTime",
    "FirstDequeueTime",
    "NextVisibleTime",
    "CreateTime",
    "LastModifyTime",
    "RequestId",
    "HostId",
    "Location",
];

struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

struct Sample {
    name: String,
    request: Request,
    answer: Answer,
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// First line, headers, and the rest.
fn head(text: &str) -> (String, Vec<(String, String)>, String) {
    let (head, rest) = text.split_once("\n\n").expect("a blank line after the headers");
    let mut lines = head.lines();
    let first = lines.next().expect("a first line").to_owned();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').expect("name: value");
        (name.to_owned(), value.trim().to_owned())
    };
    (first, lines.map(pair).collect(), rest.to_owned())
}

fn body(headers: &[(String, String)], rest: &str) -> String {
    let length = header(headers, "content-length").map_or(0, |length| length.parse().expect("a number"));
    String::from_utf8(rest.as_bytes()[..length.min(rest.len())].to_vec()).expect("UTF-8")
}

/// The samples of one recording, in order.
fn samples(prefix: &str) -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mns-samples");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the folder of samples")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no samples of {prefix}");
    names.into_iter().map(|name| sample(&folder, name)).collect()
}

fn sample(folder: &Path, name: String) -> Sample {
    let text = fs::read_to_string(folder.join(&name)).expect("a sample").replace("\r\n", "\n");
    let (request, answer) = text.split_once("# RESPONSE (raw").expect("a response");
    let (first, headers, rest) = head(request.strip_prefix("# REQUEST (raw)\n").expect("a request"));
    let mut words = first.split(' ');
    let request = Request {
        method: words.next().expect("a method").to_owned(),
        target: words.next().expect("a target").to_owned(),
        body: body(&headers, &rest),
        headers,
    };
    let answer = answer.split_once('\n').expect("a line").1;
    let (first, headers, rest) = head(answer);
    let status = first.split(' ').nth(1).expect("a status").parse().expect("a number");
    let answer = Answer { status, body: body(&headers, &rest), headers };
    Sample { name, request, answer }
}

impl Request {
    /// Dates and signs it, and makes length and digest fit the body again.
    fn renew(&mut self, secret: &str, date: SystemTime) {
        let date = httpdate::fmt_http_date(date);
        let digest = STANDARD.encode(format!("{:x}", Md5::digest(&self.body)));
        for (name, value) in &mut self.headers {
            match name.to_ascii_lowercase().as_str() {
                "date" | "x-mns-date" => *value = date.clone(),
                "content-md5" => *value = digest.clone(),
                "content-length" => *value = self.body.len().to_string(),
                _ => {}
            }
        }
        let mut signed = HeaderMap::new();
        for (name, value) in &self.headers {
            signed.insert(HeaderName::try_from(name).expect("a name"), HeaderValue::try_from(value).expect("a value"));
        }
        let text = signature::string_to_sign(&self.method, &self.target, &signed);
        let authorization = signature::authorization(ID, secret, &text);
        for (name, value) in &mut self.headers {
            if name.eq_ignore_ascii_case("authorization") {
                value.clone_from(&authorization);
            }
        }
    }

    fn replace(&mut self, replacements: &[(String, String)]) {
        for (recorded, given) in replacements {
            self.target = self.target.replace(recorded, given);
            self.body = self.body.replace(recorded, given);
        }
    }
}

async fn connect(emulator: &Emulator) -> TcpStream {
    TcpStream::connect(emulator.addr()).await.expect("the emulator listens")
}

/// Sends a request and reads the answer; the connection stays usable.
async fn exchange(stream: &mut TcpStream, request: &Request) -> Answer {
    let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        bytes += &format!("{name}: {value}\r\n");
    }
    bytes += "\r\n";
    bytes += &request.body;
    stream.write_all(bytes.as_bytes()).await.expect("it is taken");
    read_answer(stream).await
}

async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.expect("an answer"));
    }
    let text = String::from_utf8(text).expect("UTF-8").replace("\r\n", "\n");
    let (first, headers, _) = head(&text);
    let length = header(&headers, "content-length").map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    let status = first.split(' ').nth(1).expect("a status").parse().expect("a number");
    Answer { status, headers, body: String::from_utf8(body).expect("UTF-8") }
}

/// The elements in order, with their texts where they have any, attributes left out.
fn elements(xml: &str) -> Vec<(String, String)> {
    let mut elements = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag");
        if !tag.starts_with(['/', '?']) {
            let name = tag.split(' ').next().expect("a name").to_owned();
            elements.push((name, text.trim().to_owned()));
        }
    }
    elements
}

fn comparable(xml: &str) -> Vec<(String, String)> {
    let mut elements = elements(xml);
    for (name, text) in &mut elements {
        if VOLATILE.contains(&name.as_str()) {
            "*".clone_into(text);
        }
    }
    elements
}

async fn emulator() -> Emulator {
    let credentials = Some(AccessKey { id: ID.into(), secret: SECRET.into() });
    start(Config { credentials, ..Config::default() }).await.expect("it starts")
}

async fn replay(prefix: &str) {
    let emulator = emulator().await;
    let mut stream = connect(&emulator).await;
    let mut replacements: Vec<(String, String)> = Vec::new();
    for Sample { name, mut request, answer: recorded } in samples(prefix) {
        request.replace(&replacements);
        request.renew(SECRET, SystemTime::now());
        a_changed_byte_is_refused(&mut stream, &name, &request).await;
        let answer = exchange(&mut stream, &request).await;
        assert_eq!(answer.status, recorded.status, "{name}: {}", answer.body);
        // What a sample names in its request comes back in the answer, so it is compared, too.
        let expected: Vec<_> = comparable(&recorded.body);
        assert_eq!(comparable(&answer.body), expected, "{name}");
        for header_name in ["server", "content-type", "x-mns-version"] {
            assert_eq!(header(&answer.headers, header_name), header(&recorded.headers, header_name), "{name}");
        }
        for header_name in ["location", "x-mns-request-id", "date"] {
            let is_there = header(&answer.headers, header_name).is_some();
            assert_eq!(is_there, header(&recorded.headers, header_name).is_some(), "{name}: {header_name}");
        }
        let given = elements(&answer.body);
        for (recorded, given) in elements(&recorded.body).into_iter().zip(given) {
            if matches!(recorded.0.as_str(), "MessageId" | "ReceiptHandle") && recorded.1 != given.1 {
                replacements.insert(0, (recorded.1, given.1));
            }
        }
    }
    emulator.shutdown().await;
}

/// Changes the last byte of every signed header in turn.
async fn a_changed_byte_is_refused(stream: &mut TcpStream, name: &str, request: &Request) {
    for index in 0..request.headers.len() {
        let header_name = request.headers[index].0.to_ascii_lowercase();
        let is_signed = matches!(header_name.as_str(), "date" | "content-type" | "content-md5")
            || header_name.starts_with("x-mns-");
        if !is_signed {
            continue;
        }
        let mut headers = request.headers.clone();
        let last = headers[index].1.pop().expect("a value");
        headers[index].1.push(if last == 'x' { 'y' } else { 'x' });
        let changed = Request {
            method: request.method.clone(),
            target: request.target.clone(),
            headers,
            body: request.body.clone(),
        };
        let answer = exchange(stream, &changed).await;
        assert_eq!(answer.status, 403, "{name}: {header_name}: {}", answer.body);
        assert!(answer.body.contains("<Code>SignatureDoesNotMatch</Code>"), "{name}: {}", answer.body);
    }
}

#[tokio::test]
async fn every_request_of_the_python_sdk_gets_its_recorded_answer() {
    replay("python_").await;
}

#[tokio::test]
async fn every_request_with_a_session_token_gets_its_recorded_answer() {
    replay("python-sts_").await;
}

#[tokio::test]
async fn every_request_of_the_node_sdk_gets_its_recorded_answer() {
    replay("node_").await;
}

#[tokio::test]
async fn an_old_date_another_secret_and_another_key_are_told_apart() {
    let emulator = emulator().await;
    let mut stream = connect(&emulator).await;
    let mut request = samples("python_01").remove(0).request;
    let old = SystemTime::now() - std::time::Duration::from_secs(16 * 60);
    for (secret, date, status, code) in [
        (SECRET, old, 408, "TimeExpired"),
        ("other", SystemTime::now(), 403, "SignatureDoesNotMatch"),
        (SECRET, SystemTime::now(), 201, ""),
    ] {
        request.renew(secret, date);
        let answer = exchange(&mut stream, &request).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body.contains(code), "{}", answer.body);
    }
    for (value, status, code) in
        [("MNS Other:abc", 403, "InvalidAccessKeyId"), ("Basic abc", 400, "InvalidAuthorizationHeader")]
    {
        for header in &mut request.headers {
            if header.0.eq_ignore_ascii_case("authorization") {
                value.clone_into(&mut header.1);
            }
        }
        let answer = exchange(&mut stream, &request).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body.contains(code), "{}", answer.body);
    }
    request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    let answer = exchange(&mut stream, &request).await;
    assert!(answer.body.contains("MissingAuthorizationHeader"), "{}", answer.body);
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_body_is_asked_for_when_the_client_waits_for_that() {
    let emulator = emulator().await;
    let mut stream = connect(&emulator).await;
    let mut request = samples("python_01").remove(0).request;
    request.headers.push(("Expect".into(), "100-continue".into()));
    request.renew(SECRET, SystemTime::now());
    let body = std::mem::take(&mut request.body);
    let first = exchange(&mut stream, &request).await;
    assert_eq!(first.status, 100);
    stream.write_all(body.as_bytes()).await.expect("it is taken");
    assert_eq!(read_answer(&mut stream).await.status, 201);
    emulator.shutdown().await;
}
