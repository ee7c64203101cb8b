//! From queue to queue of CMQ, over either protocol: what is in the one comes into the other, whatever goes wrong.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{collections::BTreeMap, ops::Range};

use common::{
    SOON,
    cmq_pipelines::{Rig, TRANSPORTS, in_trouble, runs_well},
    until,
};
use queuewarden::connectors::mns::wire::QueueSettings;

const QUICKLY: &str = "checkpoint: { interval: 100ms }";
/// Far behind the end of a test.
const NEVER: &str = "checkpoint: { interval: 1h }";

fn rig(transport: &'static str, more: &str, rest: &str) -> Rig {
    let rig = Rig::new(transport);
    rig.create_with_visibility("from", 30);
    rig.create_with_visibility("to", 30);
    rig.define_to_queue(more, rest);
    rig
}

fn each_once(numbers: Range<u32>) -> BTreeMap<u32, u32> {
    numbers.map(|number| (number, 1)).collect()
}

fn holds(rig: &Rig, count: u64) {
    until(SOON, "all is sent on", || (rig.emulator.left("to") >= count).then_some(()));
}

#[test]
fn every_row_comes_into_the_other_queue_once_with_and_without_waiting_for_full_batches() {
    for transport in TRANSPORTS {
        for max_block in ["0s", "100ms"] {
            let mut rig = rig(transport, &format!("  max-block-timeout: {max_block}\n"), QUICKLY);
            rig.send("from", 0..1000);
            let mut supervisor = rig.place.run();
            until(SOON, "all is read", || (rig.emulator.left("from") == 0).then_some(()));
            assert_eq!(rig.take("to"), each_once(0..1000), "{transport} {max_block}");
            runs_well(&supervisor);
            assert_eq!(supervisor.stop(), 0);
        }
    }
}

#[test]
fn rows_are_sent_without_another_row_or_checkpoint_at_once_or_when_their_batch_has_waited() {
    for transport in TRANSPORTS {
        for max_block in ["0s", "100ms"] {
            let mut rig = rig(transport, &format!("  max-block-timeout: {max_block}\n"), NEVER);
            let mut supervisor = rig.place.run();
            supervisor.wait_for_state("q", "running");
            rig.send("from", 0..3);
            holds(&rig, 3);
            assert_eq!(rig.emulator.left("from"), 3, "no checkpoint was needed");
            // The drain is a checkpoint.
            assert_eq!(supervisor.stop(), 0);
            assert_eq!(rig.emulator.left("from"), 0);
            assert_eq!(rig.take("to"), each_once(0..3));
        }
    }
}

#[test]
fn a_part_filled_batch_waits_as_long_as_it_may_and_a_drain_does_not_wait_for_it() {
    let mut rig = rig("tcp", "  max-block-timeout: 1h\n", NEVER);
    let mut supervisor = rig.place.run();
    supervisor.wait_for_state("q", "running");
    rig.send("from", 0..20);
    holds(&rig, 16);
    until(SOON, "all is received", || (supervisor.pipeline("q")?["counts"]["received"].as_u64()? == 20).then_some(()));
    assert_eq!(rig.emulator.left("to"), 16);
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(rig.take("to"), each_once(0..20));
}

/// Orders something of the queue that is written to, when so many rows have been: the pipeline tells of it, goes on by
/// itself when it is over, and has sent every row once.
fn disturbed_and_mended(transport: &'static str, before: u32, switches: &str, kind: &str, words: &str) {
    let mut rig = rig(transport, "  retry-times: 1\n  request-timeout: 1s\n", QUICKLY);
    let mut supervisor = rig.place.run();
    supervisor.wait_for_state("q", "running");
    rig.send("from", 0..before);
    holds(&rig, before.into());
    rig.emulator.order("to", switches);
    rig.send("from", before..100);
    in_trouble(&supervisor, kind, words);
    supervisor.wait_for_state("q", "degraded");
    rig.emulator.order("to", "delay-ms=0");
    until(SOON * 2, "all is read", || (rig.emulator.left("from") == 0).then_some(()));
    assert_eq!(rig.take("to"), each_once(0..100), "{transport} {switches}");
    runs_well(&supervisor);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn throttling_degrades_and_passes() {
    for transport in TRANSPORTS {
        disturbed_and_mended(transport, 10, "throttle=1", "throttled", "send: the service answers 4420");
    }
}

#[test]
fn a_service_that_takes_nothing_degrades_and_passes() {
    for transport in TRANSPORTS {
        disturbed_and_mended(transport, 10, "error-on-send=1", "service", "send: the service answers 6000");
    }
}

#[test]
fn a_connection_that_is_cut_before_anything_is_sent_degrades_and_passes() {
    disturbed_and_mended("tcp", 10, "cut-connection=1", "network", "closed the connection");
    disturbed_and_mended("http", 10, "cut-connection=1", "network", "the connection broke");
}

#[test]
fn a_name_server_that_is_down_degrades_and_passes() {
    disturbed_and_mended("tcp", 0, "name-server-down=1", "network", "ask the name server");
}

#[test]
fn with_lost_answers_and_a_kill_every_row_comes_into_the_other_queue_at_least_once() {
    for transport in TRANSPORTS {
        let mut rig = rig(transport, "  max-block-timeout: 20ms\n  request-timeout: 2s\n", QUICKLY);
        rig.send("from", 0..600);
        rig.emulator.order(
            "to",
            "lost-send-reply=0.1&error-on-send=0.1&throttle=0.1&cut-connection=0.05&no-reply=0.01&name-server-down=0.1\
             &dead-route=0.3&delay-ms=3",
        );
        let mut supervisor = rig.place.run();
        until(SOON * 2, "a third is read", || (rig.count("from", "deleted") >= 200).then_some(()));
        supervisor.process.kill_9();
        let mut supervisor = rig.place.run();
        until(SOON * 3, "all is read", || (rig.emulator.left("from") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0, "{transport}: {}", supervisor.log());
        rig.emulator.order("to", "delay-ms=0");
        let taken = rig.take("to");
        assert!(taken.keys().copied().eq(0..600), "{transport}: {taken:?}");
        assert!(rig.count("to", "lost_send_replies") > 0);
    }
}

#[test]
fn a_row_whose_message_is_too_large_for_the_queue_is_a_case_for_on_error_and_its_neighbours_are_sent() {
    for transport in TRANSPORTS {
        let mut rig = Rig::new(transport);
        rig.create_with_visibility("from", 30);
        rig.create("to", QueueSettings { maximum_message_size: Some(2048), ..QueueSettings::default() });
        let definition = format!(
            "source:\n{}  polling-wait-timeout: 1s\n  schema: {{ n: INT, text: STRING }}\nsink:\n{}{QUICKLY}\non_error: skip\n",
            rig.queue("from"),
            rig.queue("to")
        );
        rig.place.define("q", &definition);
        rig.send_texts("from", &[(0, 10), (1, 3000), (2, 1500), (3, 5000), (4, 10)]);
        let mut supervisor = rig.place.run();
        until(SOON, "all is read", || (rig.emulator.left("from") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0);
        assert!(rig.take("to").keys().copied().eq([0, 2, 4]));
        assert_eq!(supervisor.log().matches("skipped what was refused").count(), 2, "{}", supervisor.log());
    }
}
