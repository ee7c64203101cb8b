//! A checkpoint starts early at half of `checkpoint.max_unacknowledged`, time and again.

#![allow(clippy::expect_used, reason = "a test that cannot go on says so")]

mod common;

use common::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, traffic_definition, until};
use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::{Outgoing, QueueSettings},
};

const MESSAGES: u64 = 2_000;
const MOST: u64 = 64;

#[tokio::main(flavor = "current_thread")]
async fn fill(endpoint: &str, queue: &str) {
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    let client = Client::new(endpoint, credentials).expect("a client");
    client.create_queue(queue, &QueueSettings::default()).await.expect("a queue");
    for first in (0..MESSAGES).step_by(16) {
        let body = |n| Outgoing { body: format!("{{\"n\":{n},\"text\":\"x\"}}"), ..Outgoing::default() };
        let batch: Vec<_> = (first..first + 16).map(body).collect();
        client.send(queue, &batch).await.expect("sent");
    }
}

#[test]
fn a_full_queue_is_not_held_up_by_a_long_checkpoint_interval() {
    let emulator = EmulatorProcess::start(&[]);
    fill(&emulator.endpoint, "early");
    let mut place = Place::new();
    let rest = format!("checkpoint: {{ interval: 1h, max_unacknowledged: {MOST} }}");
    place.define("early", &traffic_definition(&emulator.endpoint, "early", &place.path("out"), &rest));
    let mut supervisor = place.run();
    // What is left is less than would start another one.
    until(SOON, "all but the rest is deleted", || (emulator.left("early") <= MOST / 2).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(emulator.left("early"), 0);
}
