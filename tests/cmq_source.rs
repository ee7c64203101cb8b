//! What a pipeline that reads a queue of CMQ does about each thing that goes wrong, over either protocol.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use common::{
    SOON,
    cmq_pipelines::{Rig, TRANSPORTS, in_trouble, metric, numbers_in, runs_well},
    until,
};

const QUICKLY: &str = "checkpoint: { interval: 100ms }";

/// Orders something while the pipeline waits for messages: it tells of it, and goes on by itself when it is over.
fn disturbed_and_mended(transport: &'static str, switches: &str, kind: &str, words: &str) {
    let mut rig = Rig::new(transport);
    rig.create_with_visibility("q", 30);
    rig.define_to_files("  request-timeout: 1s\n", QUICKLY);
    let mut supervisor = rig.place.run();
    supervisor.wait_for_state("q", "running");
    rig.emulator.order("q", switches);
    in_trouble(&supervisor, kind, words);
    supervisor.wait_for_state("q", "degraded");
    rig.emulator.order("q", "delay-ms=0");
    rig.send("q", 0..40);
    rig.all_is_in_files(0..40);
    runs_well(&supervisor);
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
}

#[test]
fn throttling_degrades_and_passes() {
    for transport in TRANSPORTS {
        disturbed_and_mended(transport, "throttle=1", "throttled", "4420");
    }
}

#[test]
fn a_connection_that_is_cut_during_a_pull_degrades_and_passes() {
    disturbed_and_mended("tcp", "cut-connection=1", "network", "closed the connection");
    disturbed_and_mended("http", "cut-connection=1", "network", "the connection broke");
}

#[test]
fn a_connection_that_is_not_authenticated_any_more_degrades_and_passes() {
    disturbed_and_mended("tcp", "not-authenticated=1", "network", "as authenticated any more");
    disturbed_and_mended("http", "not-authenticated=1", "credentials", "4100");
}

#[test]
fn an_answer_that_never_comes_degrades_and_passes() {
    disturbed_and_mended("tcp", "no-reply=1", "timeout", "no answer from");
    disturbed_and_mended("http", "no-reply=1", "timeout", "no answer in time");
}

#[test]
fn a_service_that_fails_degrades_and_passes() {
    for transport in TRANSPORTS {
        disturbed_and_mended(transport, "error-on-receive=1", "service", "6000");
    }
}

#[test]
fn a_name_server_that_is_down_is_waited_for_and_needed_for_new_connections_only() {
    let mut rig = Rig::new("tcp");
    rig.create_with_visibility("q", 30);
    rig.define_to_files("", QUICKLY);
    rig.emulator.order("q", "name-server-down=1");
    let mut supervisor = rig.place.run();
    in_trouble(&supervisor, "network", "ask the name server");
    rig.emulator.order("q", "delay-ms=0");
    rig.send("q", 0..20);
    rig.all_is_in_files(0..20);
    runs_well(&supervisor);
    // The last route is used while it is down.
    rig.emulator.order("q", "name-server-down=1&cut-connection=0.5");
    until(SOON, "connections are cut", || (rig.count("q", "connections_cut") >= 3).then_some(()));
    rig.emulator.order("q", "name-server-down=1");
    rig.send("q", 20..40);
    rig.all_is_in_files(0..40);
    runs_well(&supervisor);
    assert!(supervisor.log().contains("no route now; the last one is tried"), "{}", supervisor.log());
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn an_address_that_is_down_is_passed_over() {
    let mut rig = Rig::new("tcp");
    rig.create_with_visibility("q", 30);
    rig.define_to_files("", QUICKLY);
    rig.send("q", 0..100);
    rig.emulator.order("q", "dead-route=1&cut-connection=0.3");
    let mut supervisor = rig.place.run();
    // Which address is tried first is chance.
    until(SOON, "the dead address was tried", || supervisor.log().contains("an address is passed over").then_some(()));
    rig.emulator.order("q", "dead-route=1");
    rig.all_is_in_files(0..100);
    runs_well(&supervisor);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn handles_that_expire_before_the_checkpoint_are_replaced_by_newer_ones_and_the_pipeline_warns_once() {
    for transport in TRANSPORTS {
        let mut rig = Rig::new(transport);
        rig.create_with_visibility("q", 1);
        rig.define_to_files("", "checkpoint: { interval: 2500ms }");
        rig.send("q", 0..60);
        let mut supervisor = rig.place.run();
        rig.all_is_in_files(0..60);
        assert!(rig.count("q", "redelivered_after_timeout") > 0);
        let warning = "visibility timeout should be longer than the checkpoint interval";
        assert_eq!(supervisor.log().matches(warning).count(), 1, "{transport}: {}", supervisor.log());
        runs_well(&supervisor);
        assert_eq!(supervisor.stop(), 0);
    }
}

#[test]
fn a_delete_whose_handle_has_just_expired_is_counted_and_the_message_deleted_by_its_next_delivery() {
    for transport in TRANSPORTS {
        let mut rig = Rig::new(transport);
        rig.create_with_visibility("q", 30);
        rig.define_to_files("", QUICKLY);
        rig.emulator.order("q", "duplicate-before-delete=1");
        rig.send("q", 0..40);
        let mut supervisor = rig.place.run();
        rig.all_is_in_files(0..40);
        assert_eq!(metric(&supervisor, "source_delete_unknown_total"), 40, "{transport}");
        assert_eq!(rig.count("q", "unknown_handles"), 40);
        runs_well(&supervisor);
        assert!(!supervisor.log().contains("visibility timeout should be longer"));
        assert_eq!(supervisor.stop(), 0);
    }
}

#[test]
fn with_everything_going_wrong_at_random_and_a_kill_every_message_is_written_once() {
    for transport in TRANSPORTS {
        let mut rig = Rig::new(transport);
        rig.create_with_visibility("q", 3);
        rig.define_to_files("  request-timeout: 2s\n  receive.concurrency: 3\n", QUICKLY);
        rig.send("q", 0..600);
        rig.emulator.order(
            "q",
            "duplicate-same-receive=0.1&duplicate-in-flight=0.1&duplicate-before-delete=0.1&duplicate-during-delete=0.1\
             &lost-receive-reply=0.05&lost-delete-reply=0.1&error-on-receive=0.05&error-on-delete=0.05&throttle=0.05\
             &cut-connection=0.03&no-reply=0.01&name-server-down=0.1&dead-route=0.3&empty-at-once=0.3\
             &fewer-than-asked=0.3&delay-ms=5",
        );
        let mut supervisor = rig.place.run();
        until(SOON * 2, "a third is deleted", || (rig.count("q", "deleted") >= 200).then_some(()));
        supervisor.process.kill_9();
        let mut supervisor = rig.place.run();
        until(SOON * 3, "the queue is empty", || (rig.emulator.left("q") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0, "{transport}: {}", supervisor.log());
        assert_eq!(numbers_in(&rig.place.path("out")), (0..600).collect::<Vec<_>>(), "{transport}");
    }
}

#[test]
fn a_queue_or_key_that_is_not_there_makes_the_pipeline_failed_at_once() {
    for transport in TRANSPORTS {
        let mut rig = Rig::new(transport);
        rig.define_to_files("", QUICKLY);
        let mut supervisor = rig.place.run();
        let status = supervisor.wait_for_state("q", "failed");
        assert!(status["last_error"].to_string().contains("4440"), "{status}");
        supervisor.stop();
        rig.create_with_visibility("q", 30);
        let definition = rig.queue("q").replace("${MNS_ACCESS_KEY_ID}", "AKIDnobody");
        let rest = "  schema: { n: INT }\nsink: { connector: blackhole }\n";
        rig.place.define("q", &format!("source:\n{definition}{rest}"));
        let mut supervisor = rig.place.run();
        let status = supervisor.wait_for_state("q", "failed");
        assert!(status["last_error"].to_string().contains("check secret-id"), "{status}");
        supervisor.stop();
    }
}
