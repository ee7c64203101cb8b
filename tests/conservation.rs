//! Whatever the service does, and however often the process is killed: a row is in the sink once, or in the dead
//! letters once, or its message is still in the queue.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use common::{
    EmulatorProcess, Place, SOON,
    letters::{letters, text_of, with_letters},
    numbers::{bodies, lines, numbers, send},
    until,
};

const MESSAGES: u32 = 20_000;
/// One in so many cannot be decoded.
const POISON: u32 = 97;
const LONG: Duration = Duration::from_secs(420);

/// Every switch there is, but for the two that make the client wait for minutes: a clock so far off that all is
/// refused, and an answer later than its timeout.
const FAULTS: [&str; 15] = [
    "duplicate-same-receive=0.05",
    "duplicate-in-flight=0.05",
    "duplicate-before-delete=0.05",
    "duplicate-during-delete=0.05",
    "lost-receive-reply=0.02",
    "lost-delete-reply=0.03",
    "error-on-receive=0.02",
    "error-on-delete=0.02",
    "throttle=0.02",
    "unavailable=0.02",
    "clock-skew=0.001",
    "empty-at-once=0.1",
    "fewer-than-asked=0.3",
    "clock-offset-ms=-90000",
    "delay-ms=2",
];

fn body(n: u32) -> String {
    if n.is_multiple_of(POISON) { format!("{{\"n\": poison-{n}}}") } else { format!("{{\"n\":{n}}}") }
}

/// How often each body is in the sink or in the dead letters.
fn found(place: &Place) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let letters = letters(&place.path("letters"));
    let refused = letters.iter().map(|letter| text_of(&letter["body"]));
    for body in lines(&place.path("out")).into_iter().chain(refused) {
        *found.entry(body).or_default() += 1;
    }
    found
}

#[test]
fn with_every_fault_at_random_and_three_kills_every_row_is_written_or_a_letter_once_or_still_queued() {
    let emulator = EmulatorProcess::start(&["--seed", "4711"]);
    let sent: Vec<String> = (1..=MESSAGES).map(body).collect();
    send(&emulator.endpoint, "q", 10, &bodies(&sent));
    emulator.order("q", &FAULTS.join("&"));
    let mut place = Place::new();
    let rest = format!("checkpoint: {{ interval: 200ms }}\n{}", with_letters(&place.path("letters")));
    let definition = numbers(&emulator.endpoint, "q", &place.path("out"), &rest)
        .replace("pollingWaitTime: 30s", "pollingWaitTime: 1s\n  receive.concurrency: 8");
    place.define("q", &definition);

    let begun = Instant::now();
    for kill in 1..=3 {
        let mut supervisor = place.run();
        let enough = u64::from(MESSAGES) * kill / 5;
        until(LONG, "some more is deleted", || (emulator.count("q", "deleted") >= enough).then_some(()));
        let status = supervisor.pipeline("q").unwrap();
        supervisor.process.kill_9();
        println!("killed with {} unacknowledged, at {:.0?}", status["counts"]["unacknowledged"], begun.elapsed());
    }
    // Stopped in the middle: what is neither written nor a letter must still be there.
    let mut supervisor = place.run();
    let enough = u64::from(MESSAGES) * 4 / 5;
    until(LONG, "some more is deleted", || (emulator.count("q", "deleted") >= enough).then_some(()));
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
    let (half_way, left) = (found(&place), emulator.left("q"));
    let missing = sent.len() - half_way.len();
    println!("stopped with {} written or letters, {left} in the queue, at {:.0?}", half_way.len(), begun.elapsed());
    assert!(missing > 0 && missing as u64 <= left, "{missing} are missing, {left} are in the queue");
    assert_eq!(half_way.values().max(), Some(&1), "nothing twice");

    let mut supervisor = place.run();
    until(LONG, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    println!("all of it at {:.0?}", begun.elapsed());
    let found = found(&place);
    let twice: Vec<_> = found.iter().filter(|(_, times)| **times != 1).collect();
    let lost: Vec<_> = sent.iter().filter(|body| !found.contains_key(*body)).collect();
    assert!(twice.is_empty() && lost.is_empty() && found.len() == sent.len(), "twice {twice:?}, lost {lost:?}");
    assert_eq!(letters(&place.path("letters")).len() as u32, MESSAGES / POISON);
    // Each switch that was on did something, or this shows less than it says.
    let stats = emulator.queue("q");
    let silent: Vec<_> = stats.as_object().unwrap().iter().filter(|(_, count)| count.as_u64() == Some(0)).collect();
    println!("never: {silent:?}\nof: {stats}");
    assert!(supervisor.process.wait(SOON).success());
}
