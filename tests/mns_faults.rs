//! What a pipeline does about each thing that the emulator can be ordered to do wrong, and how it is ordered.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use common::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, Supervisor, get, until};
use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::{Outgoing, QueueSettings},
};
use serde_json::{Value, json};

/// A queue, and a pipeline that writes its numbers to files.
struct Rig {
    emulator: EmulatorProcess,
    place: Place,
}

impl Rig {
    /// `visibility` in seconds, `wait` as `pollingWaitTime`.
    fn new(visibility: u32, wait: &str) -> Self {
        let emulator = EmulatorProcess::start(&["--seed", "11"]);
        let place = Place::new();
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
  pollingWaitTime: {wait}
  schema: {{ n: INT }}
sink: {{ connector: filesystem, path: {}, format: json }}
checkpoint: {{ interval: 100ms }}
",
            emulator.endpoint,
            place.path("out").display()
        );
        place.define("q", &definition);
        let rig = Self { emulator, place };
        rig.client(async |client| {
            let settings = QueueSettings { visibility_seconds: Some(visibility), ..QueueSettings::default() };
            client.create_queue("q", &settings).await.unwrap();
        });
        rig
    }

    fn client<T>(&self, act: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let credentials =
            Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
        runtime.block_on(act(Client::new(&self.emulator.endpoint, credentials).unwrap()))
    }

    /// Sends the numbers of a range.
    fn send(&self, numbers: std::ops::Range<u32>) {
        self.client(async |client| {
            let bodies: Vec<_> =
                numbers.map(|n| Outgoing { body: format!("{{\"n\":{n}}}"), ..Outgoing::default() }).collect();
            for batch in bodies.chunks(16) {
                client.send("q", batch).await.unwrap();
            }
        });
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        ask(&self.emulator, method, path, body)
    }

    /// Sets the queue's switches; those that are not named are off.
    fn order(&self, switches: &Value) {
        let (status, answer) = self.ask("PUT", "/_emulator/queues/q/faults", &switches.to_string());
        assert_eq!(status, 200, "{answer}");
    }

    fn count(&self, what: &str) -> u64 {
        self.emulator.count("q", what)
    }

    /// Waits until the numbers of a range, each once, are all that has been written and the queue is empty.
    fn all_is_written(&self, numbers: std::ops::Range<u32>) {
        until(SOON * 2, "the queue is empty", || (self.emulator.left("q") == 0).then_some(()));
        assert_eq!(numbers_in(&self.place.path("out")), numbers.collect::<Vec<_>>());
    }
}

fn ask(emulator: &EmulatorProcess, method: &str, path: &str, body: &str) -> (u16, Value) {
    let (status, _, text) = raw(emulator, method, path, body);
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Status, headers in lower case, body.
fn raw(emulator: &EmulatorProcess, method: &str, path: &str, body: &str) -> (u16, String, String) {
    let address = emulator.endpoint.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
}

fn numbers_in(out: &Path) -> Vec<u32> {
    let files =
        fs::read_dir(out).into_iter().flatten().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut numbers: Vec<u32> = files
        .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| u32::try_from(serde_json::from_str::<Value>(&line).unwrap()["n"].as_u64().unwrap()).unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until the pipeline is Degraded for a reason with these words, counted as trouble of this kind; answers the
/// reason.
fn degraded(supervisor: &Supervisor, kind: &str, words: &str) -> String {
    let reason = until(SOON, &format!("it is degraded: {words}"), || {
        let status = supervisor.pipeline("q")?;
        let trouble = status["troubles"].as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
        (status["state"] == "degraded" && trouble.contains(words)).then_some(trouble)
    });
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    let label = format!("kind=\"{kind}\"");
    assert!(metrics.lines().any(|line| line.contains("retries_total{") && line.contains(&label)), "{kind}: {metrics}");
    reason
}

/// Orders a refusal of every request while the pipeline waits for messages: it is Degraded and says why, does not
/// ask in a busy loop, and goes on by itself once the switch is off.
fn refused_and_mended(switches: &Value, kind: &str, words: &str, counted: &str) -> String {
    let mut rig = Rig::new(30, "1s");
    let mut supervisor = rig.place.run();
    supervisor.wait_for_state("q", "running");
    rig.order(switches);
    let begun = Instant::now();
    let reason = degraded(&supervisor, kind, words);
    until(SOON, "it is tried again", || (rig.count(counted) >= 2).then_some(()));
    // The first pause is half a second at least and the next ones are longer.
    let most = 2 + begun.elapsed().as_millis() / 500;
    assert!(u128::from(rig.count(counted)) <= most, "{} requests in {:?}", rig.count(counted), begun.elapsed());
    let (status, _) = rig.ask("DELETE", "/_emulator/queues/q/faults", "");
    assert_eq!(status, 200);
    rig.send(0..20);
    rig.all_is_written(0..20);
    let status = supervisor.wait_for_state("q", "running");
    assert_eq!((&status["restarts"], &status["troubles"]), (&json!(0), &json!([])));
    assert_eq!(supervisor.stop(), 0);
    reason
}

#[test]
fn throttling_degrades_and_passes() {
    refused_and_mended(&json!({"throttle": 1}), "throttled", "QpsLimitExceeded", "throttled");
}

#[test]
fn a_503_without_xml_degrades_and_passes() {
    let words = "503 Service Unavailable without an MNS error";
    let reason = refused_and_mended(&json!({"unavailable": 1}), "service", words, "unavailable");
    assert!(!reason.contains('<'), "the page is not repeated: {reason}");
}

/// The number before ` s ahead of` or ` s behind`.
fn seconds_off(reason: &str, side: &str) -> u64 {
    let (before, _) = reason.split_once(side).unwrap_or_else(|| panic!("{side} in {reason}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_clock_that_is_refused_is_named_with_how_far_it_is_off() {
    let switches = json!({"clock-offset-ms": -3_600_000});
    let reason = refused_and_mended(&switches, "clock", "TimeExpired", "time_expired");
    let off = seconds_off(&reason, " s ahead of the service's");
    assert!((3_600..3_630).contains(&off), "{reason}");
}

#[test]
fn a_server_whose_clock_is_off_is_named_with_how_far() {
    let reason = refused_and_mended(&json!({"clock-skew": 1}), "clock", "TimeExpired", "time_expired");
    let off = seconds_off(&reason, " s behind the service's");
    assert!((1_170..=1_200).contains(&off), "{reason}");
}

#[test]
fn a_clock_ten_minutes_off_disturbs_nothing() {
    let mut rig = Rig::new(30, "1s");
    rig.order(&json!({"clock-offset-ms": 600_000}));
    rig.send(0..40);
    let mut supervisor = rig.place.run();
    rig.all_is_written(0..40);
    let counts = supervisor.wait_for_state("q", "running")["counts"].clone();
    assert_eq!((rig.count("delivered"), rig.count("deleted")), (40, 40), "{counts}");
    assert!(!supervisor.log().contains("will be tried again"), "{}", supervisor.log());
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn polls_that_are_answered_empty_at_once_are_no_busy_loop_and_messages_still_come() {
    let mut rig = Rig::new(30, "30s");
    rig.order(&json!({"empty-at-once": 1}));
    let mut supervisor = rig.place.run();
    let begun = Instant::now();
    until(SOON, "it polls on", || (rig.count("empties_at_once") >= 8).then_some(()));
    let (polls, took) = (rig.count("empties_at_once"), begun.elapsed());
    // Pauses of 0.1, 0.2, 0.4 and 0.8 seconds, then of one second each.
    let least = Duration::from_secs(polls.saturating_sub(6));
    assert!(took >= least, "{polls} polls in {took:?}");
    rig.send(0..20);
    rig.all_is_written(0..20);
    assert_eq!(supervisor.pipeline("q").unwrap()["state"], "running");
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn an_instant_empty_and_a_throttle_have_the_elements_of_the_recorded_errors() {
    let emulator = EmulatorProcess::start_open(&["--queue", "q", "--queue", "t", "--fault", "q:empty-at-once=1"]);
    let (status, _) = ask(&emulator, "POST", "/_emulator/queues/t/faults", "throttle=1");
    assert_eq!(status, 200);
    let sample = "python_05_GET_queues-demo-queue-messages-numOfMessages-waitseconds_404.txt";
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mns-samples").join(sample);
    let recorded = fs::read_to_string(sample).unwrap();
    let recorded = &recorded[recorded.find("<Error").expect("an error in the sample")..];
    let begun = Instant::now();
    let (status, head, empty) = raw(&emulator, "GET", "/queues/q/messages?numOfMessages=16&waitseconds=30", "");
    assert!(begun.elapsed() < Duration::from_secs(15), "it waited");
    assert_eq!(status, 404);
    assert!(head.contains("content-type: text/xml;charset=utf-8") && head.contains("x-mns-request-id: "), "{head}");
    for element in ["Code", "Message"] {
        assert_eq!(element_of(&empty, element), element_of(recorded, element));
    }
    assert_eq!(names(&empty), names(recorded));
    let (status, _, throttled) = raw(&emulator, "GET", "/queues/t/messages?numOfMessages=16", "");
    assert_eq!((status, element_of(&throttled, "Code")), (400, "QpsLimitExceeded"));
    assert_eq!(names(&throttled), names(recorded));
}

fn element_of<'a>(xml: &'a str, name: &str) -> &'a str {
    let (_, rest) = xml.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{name} in {xml}"));
    rest.split_once('<').unwrap().0
}

/// The elements of a document, in order.
fn names(xml: &str) -> Vec<&str> {
    let tags = xml.split('<').skip(1).filter(|tag| !tag.starts_with(['?', '/']));
    tags.map(|tag| tag.split([' ', '>']).next().unwrap()).collect()
}

#[test]
fn fewer_messages_than_asked_for_are_all_written_in_the_end() {
    let mut rig = Rig::new(30, "1s");
    rig.order(&json!({"fewer-than-asked": 1}));
    rig.send(0..200);
    let mut supervisor = rig.place.run();
    rig.all_is_written(0..200);
    assert!(rig.count("short_receives") >= 10);
    assert_eq!((rig.count("delivered"), supervisor.stop()), (200, 0));
}

#[test]
fn messages_made_invisible_for_an_answer_that_never_came_are_written_when_they_come_back() {
    let mut rig = Rig::new(2, "1s");
    rig.send(0..40);
    rig.order(&json!({"lost-receive-reply": 1}));
    let mut supervisor = rig.place.run();
    degraded(&supervisor, "network", "receive: the connection broke");
    assert_eq!(numbers_in(&rig.place.path("out")), [0_u32; 0]);
    rig.order(&json!({}));
    rig.all_is_written(0..40);
    assert!(rig.count("redelivered_after_timeout") >= 16);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn slow_answers_are_waited_for_and_an_answer_that_takes_too_long_degrades() {
    let mut rig = Rig::new(30, "0s");
    rig.order(&json!({"delay-ms": 250}));
    rig.send(0..40);
    let mut supervisor = rig.place.run();
    rig.all_is_written(0..40);
    assert!(!supervisor.log().contains("will be tried again"), "{}", supervisor.log());
    rig.order(&json!({"delay-ms": 40_000}));
    degraded(&supervisor, "timeout", "no answer in time");
    rig.order(&json!({}));
    rig.send(40..60);
    rig.all_is_written(0..60);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn with_every_switch_on_at_random_and_a_kill_every_message_is_written_once() {
    let mut rig = Rig::new(3, "1s");
    rig.send(0..600);
    rig.order(&json!({
        "duplicate-same-receive": 0.1, "duplicate-in-flight": 0.1, "duplicate-before-delete": 0.1,
        "duplicate-during-delete": 0.1, "lost-receive-reply": 0.05, "lost-delete-reply": 0.1, "error-on-receive": 0.05,
        "error-on-delete": 0.05, "throttle": 0.05, "unavailable": 0.05, "clock-skew": 0.01, "empty-at-once": 0.3,
        "fewer-than-asked": 0.3, "clock-offset-ms": -90_000, "delay-ms": 5,
    }));
    let mut supervisor = rig.place.run();
    until(SOON, "a third is deleted", || (rig.count("deleted") >= 200).then_some(()));
    supervisor.process.kill_9();
    let mut supervisor = rig.place.run();
    until(SOON * 3, "the queue is empty", || (rig.emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    rig.all_is_written(0..600);
}

/// Statuses of requests in a row, half of which are throttled.
fn throttled(seed: &str) -> Vec<u16> {
    let emulator = EmulatorProcess::start_open(&["--queue", "q", "--fault", "throttle=0.5", "--seed", seed]);
    (0..40).map(|_| raw(&emulator, "GET", "/queues/q", "").0).collect()
}

#[test]
fn one_seed_gives_one_sequence_of_faults() {
    let first = throttled("5");
    assert_eq!(first, throttled("5"));
    assert_ne!(first, throttled("6"));
    assert!(first.contains(&200) && first.contains(&400), "{first:?}");
}

#[test]
fn switches_are_set_seen_and_taken_back_while_it_runs() {
    let emulator = EmulatorProcess::start_open(&["--queue", "a", "--queue", "b", "--fault", "a:throttle=0.5"]);
    let (a, b) = ("/_emulator/queues/a/faults", "/_emulator/queues/b/faults");
    let shown = |path: &str| {
        let (status, shown) = ask(&emulator, "GET", path, "");
        assert_eq!(status, 200);
        (shown["throttle"].as_f64().unwrap(), shown["delay-ms"].as_i64().unwrap())
    };
    assert_eq!((shown(a), shown(b)), ((0.5, 0), (0.0, 0)));
    assert_eq!(ask(&emulator, "POST", a, "delay-ms=7").0, 200);
    assert_eq!(shown(a), (0.5, 7), "POST leaves the others");
    assert_eq!(ask(&emulator, "PUT", a, r#"{"delay-ms": 3}"#).0, 200);
    assert_eq!(shown(a), (0.0, 3), "PUT turns the others off");
    assert_eq!(ask(&emulator, "PUT", "/_emulator/faults", "throttle=0.25").0, 200);
    assert_eq!((shown(a), shown(b)), ((0.0, 3), (0.25, 0)), "a has its own");
    assert_eq!(ask(&emulator, "DELETE", a, "").0, 200);
    assert_eq!(shown(a), (0.25, 0), "a has those for all again");
}

#[test]
fn a_wrong_order_sets_nothing_and_is_told_what_was_meant() {
    let emulator = EmulatorProcess::start_open(&["--queue", "orders"]);
    let faults = "/_emulator/queues/orders/faults";
    for (path, body, status, told) in [
        (faults, r#"{"delay-ms": 5, "throtle": 1}"#, 400, "did you mean `throttle`?"),
        (faults, r#"{"delay-ms": 5, "throttle": 1.01}"#, 400, "`throttle` takes a probability from 0 to 1, not `1.01`"),
        (faults, "delay-ms=5&clock-offset-ms=1s", 400, "whole milliseconds from -2592000000 to 2592000000"),
        (faults, "", 400, "expected switches"),
        ("/_emulator/queues/order/faults", "delay-ms=5", 404, "did you mean `orders`?"),
        ("/_emulator/fault", "delay-ms=5", 404, "/_emulator/queues/NAME/faults"),
        ("/_emulator/", "delay-ms=5", 405, "read only"),
    ] {
        let (answered, answer) = ask(&emulator, "PUT", path, body);
        assert_eq!(answered, status, "{path} {body}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(told), "{path} {body}: {answer}");
    }
    assert_eq!(ask(&emulator, "GET", faults, "").1["delay-ms"], 0);
}

#[test]
fn the_page_shows_queues_counts_and_switches_in_force_without_a_script() {
    let emulator = EmulatorProcess::start_open(&["--queue", "orders", "--fault", "orders:delay-ms=1"]);
    assert_eq!(ask(&emulator, "POST", "/_emulator/queues/orders/faults", "throttle=1").0, 200);
    assert_eq!(raw(&emulator, "GET", "/queues/orders", "").0, 400);
    let address = emulator.endpoint.strip_prefix("http://").unwrap();
    let (status, page) = get(address, "/_emulator/").unwrap();
    assert_eq!(status, 200);
    for part in ["<td>orders", "throttle=1, delay-ms=1", "throttled 1", "http-equiv=\"refresh\""] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("<script"));
}
