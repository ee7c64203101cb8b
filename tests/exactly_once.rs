//! From Alibaba's own SDK to files: every row once, whatever is delivered twice and whoever is killed.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use common::{EmulatorProcess, Place, SOON, assert_exactly_once, traffic, traffic_definition, until};
use serde_json::json;

const DUPLICATES: [&str; 6] = [
    "--fault",
    "duplicate-same-receive=0.1",
    "--fault",
    "duplicate-in-flight=0.1",
    "--fault",
    "duplicate-before-delete=0.1",
];

fn empty(endpoint: &str, queue: &str) {
    let counts = traffic(&["counts", endpoint, queue]);
    assert_eq!(counts, json!({"active": 0, "inactive": 0, "delayed": 0}), "what the SDK says is left");
}

#[test]
fn ten_thousand_awkward_messages_with_duplicates_of_each_kind_are_written_once_and_deleted() {
    const COUNT: u64 = 10_000;
    let emulator = EmulatorProcess::start(&DUPLICATES);
    let mut place = Place::new();
    let out = place.path("out");
    traffic(&["create", &emulator.endpoint, "q", "30"]);
    traffic(&["send", &emulator.endpoint, "q", "0", &COUNT.to_string()]);
    place.define("q", &traffic_definition(&emulator.endpoint, "q", &out, "checkpoint: { interval: 500ms }"));
    let mut supervisor = place.run();
    until(SOON * 3, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    assert_exactly_once(&out, COUNT);
    empty(&emulator.endpoint, "q");
    let report = emulator.queue("q");
    println!("{report}");
    for kind in ["duplicates_same_receive", "duplicates_in_flight", "duplicates_before_delete"] {
        assert!(report[kind].as_u64() >= Some(500), "{kind}: {report}");
    }
    assert!(!supervisor.log().contains(common::KEY_SECRET), "a secret in the log");
}

#[test]
fn twenty_kills_in_the_middle_of_traffic_lose_nothing_and_repeat_nothing() {
    const KILLS: u64 = 20;
    const EACH: u64 = 100;
    let emulator = EmulatorProcess::start(&[&DUPLICATES[..], &["--fault", "lost-delete-reply=0.05"]].concat());
    let mut place = Place::new();
    let out = place.path("out");
    traffic(&["create", &emulator.endpoint, "q", "3"]);
    place.define("q", &traffic_definition(&emulator.endpoint, "q", &out, "checkpoint: { interval: 300ms }"));
    for kill in 0..KILLS {
        let mut supervisor = place.run();
        supervisor.wait_for_state("q", "running");
        let before = emulator.count("q", "delivered");
        let (first, each) = ((kill * EACH).to_string(), EACH.to_string());
        let flying = std::thread::scope(|scope| {
            let sending = scope.spawn(|| traffic(&["send", &emulator.endpoint, "q", &first, &each]));
            let flying = until(SOON, "new traffic is received and unacknowledged", || {
                let report = emulator.queue("q");
                let inactive = report["inactive"].as_u64().filter(|inactive| *inactive > 0)?;
                (report["delivered"].as_u64() > Some(before)).then_some(inactive)
            });
            supervisor.process.kill_9();
            sending.join().expect("everything is sent");
            flying
        });
        println!("kill {kill}: {flying} messages in flight");
    }
    let mut supervisor = place.run();
    until(SOON * 2, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    assert_exactly_once(&out, KILLS * EACH);
    empty(&emulator.endpoint, "q");
}
