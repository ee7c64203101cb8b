//! What an operator relies on: failed, degraded, drained and restarted pipelines, over real processes and sockets.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{fs, time::Duration};

use common::{
    EmulatorProcess, Place, SOON, get,
    numbers::{bodies, client, lines, numbers, one_to, send},
    until,
};
use serde_json::Value;

const QUICK: &str = "checkpoint: { interval: 100ms }";

#[test]
fn a_poison_body_under_fail_stops_its_pipeline_and_its_neighbours_are_written_and_deleted() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    for position in [0, 7, 15] {
        let (queue, out) = (format!("q{position}"), place.path(&format!("out{position}")));
        let mut all = one_to(15);
        all.insert(position, "{\"n\": poison}".to_owned());
        send(&emulator.endpoint, &queue, 30, &bodies(&all));
        place.define(&queue, &numbers(&emulator.endpoint, &queue, &out, QUICK));
    }
    let mut supervisor = place.run();
    for position in [0, 7, 15] {
        let queue = format!("q{position}");
        let status = supervisor.wait_for_state(&queue, "failed");
        let reason = status["last_error"].as_str().unwrap();
        assert!(reason.contains("cannot be processed") && reason.contains("on_error: fail"), "{reason}");
        let mut expected = one_to(15);
        expected.sort();
        assert_eq!(lines(&place.path(&format!("out{position}"))), expected);
        assert_eq!(emulator.left(&queue), 1, "only the poison is left");
        assert_eq!(status["restarts"], 0, "poison is no loop");
    }
    let (code, text) = get(&supervisor.address, "/readyz").unwrap();
    assert_eq!(code, 503);
    assert!(text.contains("q7 is failed"), "{text}");
    assert_eq!(get(&supervisor.address, "/healthz").unwrap().0, 200);
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn a_queue_deleted_while_it_is_read_fails_its_pipeline_with_everything_received_written() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 30, &bodies(&one_to(40)));
    // The interval is far away: nothing is checkpointed when the queue goes.
    let definition = numbers(&emulator.endpoint, "q", &out, "checkpoint: { interval: 10min }").replace("30s", "1s");
    place.define("q", &definition);
    let mut supervisor = place.run();
    until(SOON, "all is written", || (supervisor.pipeline("q")?["counts"]["rows_written"] == 40).then_some(()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(client(&emulator.endpoint).delete_queue("q")).unwrap();
    let status = supervisor.wait_for_state("q", "failed");
    assert!(status["last_error"].as_str().unwrap().contains("QueueNotExist"), "{status}");
    assert_eq!(supervisor.stop(), 0);
    let mut expected = one_to(40);
    expected.sort();
    assert_eq!(lines(&out), expected);
}

#[test]
fn a_poison_body_under_skip_is_counted_and_deleted() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}", "poison", "{\"n\":2} {\"n\":3}", "{\"n\":2}"]);
    place.define("q", &numbers(&emulator.endpoint, "q", &out, &format!("{QUICK}\non_error: skip")));
    let mut supervisor = place.run();
    until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    let status = supervisor.pipeline("q").unwrap();
    assert_eq!((&status["counts"]["rejected"], &status["state"]), (&Value::from(2), &Value::from("running")));
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(lines(&out), ["{\"n\":1}", "{\"n\":2}"]);
}

#[test]
fn what_an_ignore_option_drops_is_counted() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 30, &["{\"n\":1}{\"n\":2}", "[]", "{\"n\":\"x\"}", ""]);
    let definition = numbers(&emulator.endpoint, "q", &out, QUICK);
    place.define("q", &definition.replace("schema:", "json.ignore-parse-errors: true\n  schema:"));
    let mut supervisor = place.run();
    until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    for counted in [
        "queuewarden_decode_unread_total{pipeline=\"q\"} 1",
        "queuewarden_decode_nulled_fields_total{pipeline=\"q\"} 1",
        "queuewarden_messages_total{disposition=\"ignored\",pipeline=\"q\"} 2",
    ] {
        assert!(metrics.contains(counted), "{counted}");
    }
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(lines(&out), ["{\"n\":1}", "{\"n\":null}"]);
}

#[test]
fn a_stop_in_the_middle_of_a_long_poll_takes_less_than_a_second_and_leaves_nothing_to_redeliver() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 30, &bodies(&one_to(40)));
    // The interval is far away: what the stop finds is not checkpointed yet.
    place.define("q", &numbers(&emulator.endpoint, "q", &out, "checkpoint: { interval: 10min }"));
    let mut supervisor = place.run();
    until(SOON, "all is written", || (supervisor.pipeline("q")?["counts"]["rows_written"] == 40).then_some(()));
    let begun = std::time::Instant::now();
    assert_eq!(supervisor.stop(), 0);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(emulator.left("q"), 0);
    assert_eq!(lines(&out).len(), 40);
}

#[test]
fn one_broken_definition_is_failed_and_the_others_run() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "good", 30, &["{\"n\":1}"]);
    place.define("good", &numbers(&emulator.endpoint, "good", &out, QUICK));
    place.define("bad", "source: { connector: mms }\n");
    let mut supervisor = place.run();
    until(SOON, "the good one works", || (emulator.left("good") == 0).then_some(()));
    let bad = supervisor.pipeline("bad").unwrap();
    assert_eq!(bad["state"], "failed");
    assert!(bad["last_error"].as_str().unwrap().contains("bad.yaml:1:22: error"), "{bad}");
    assert_eq!(supervisor.stop(), 0);

    let mut strict = place.run_command();
    strict.arg("--strict");
    assert_eq!(strict.status().unwrap().code(), Some(78));
}

#[test]
fn a_missing_queue_and_a_wrong_secret_fail_at_once_or_degrade_with_the_reason() {
    let emulator = EmulatorProcess::start(&["--queue", "there"]);
    let mut place = Place::new();
    place.define("missing", &numbers(&emulator.endpoint, "nowhere", &place.path("a"), QUICK));
    let wrong = numbers(&emulator.endpoint, "there", &place.path("b"), QUICK)
        .replace("${MNS_ACCESS_KEY_SECRET}", "not-the-secret-at-all");
    place.define("wrong", &wrong);
    let mut supervisor = place.run();
    let missing = supervisor.wait_for_state("missing", "failed");
    assert!(missing["last_error"].as_str().unwrap().contains("QueueNotExist"), "{missing}");
    let wrong = until(SOON, "the refused signature is told", || {
        supervisor.pipeline("wrong").filter(|status| status["troubles"][0].is_string())
    });
    assert!(wrong["troubles"][0].as_str().unwrap().contains("SignatureDoesNotMatch"), "{wrong}");
    assert!(!supervisor.log().contains("not-the-secret-at-all"));
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn errors_of_the_service_degrade_a_pipeline_and_lose_nothing() {
    let emulator = EmulatorProcess::start(&[
        "--fault",
        "error-on-receive=0.3",
        "--fault",
        "error-on-delete=0.3",
        "--fault",
        "lost-delete-reply=0.2",
        "--fault",
        "duplicate-during-delete=0.2",
    ]);
    let mut place = Place::new();
    let out = place.path("out");
    let mut total = 200;
    send(&emulator.endpoint, "q", 4, &bodies(&one_to(total)));
    place.define("q", &numbers(&emulator.endpoint, "q", &out, QUICK).replace("30s", "1s"));
    let mut supervisor = place.run();
    until(SOON * 2, "the queue is empty, after each kind of error", || {
        if emulator.left("q") > 0 {
            return None;
        }
        let seen = emulator.count("q", "errors_on_receive") > 0 && emulator.count("q", "errors_on_delete") > 0;
        if !seen {
            send(&emulator.endpoint, "q", 4, &bodies(&one_to(total + 20)[total as usize..]));
            total += 20;
        }
        seen.then_some(())
    });
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    assert!(
        metrics.contains("queuewarden_retries_total{kind=\"service\",operation=\"poll\",pipeline=\"q\"}"),
        "{metrics}"
    );
    assert_eq!(supervisor.stop(), 0);
    let mut expected = one_to(total);
    expected.sort();
    assert_eq!(lines(&out), expected);
}

#[test]
fn a_second_supervisor_on_the_same_state_is_refused_and_told_of_the_first() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let mut first = place.run();
    let output = place.run_command().stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(75));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&first.process.pid().to_string()) && text.contains(&first.address), "{text}");
    assert_eq!(first.stop(), 0);
}

#[test]
fn a_store_that_cannot_be_read_is_refused_with_its_own_code_and_the_folder_named() {
    let emulator = EmulatorProcess::start(&["--queue", "q"]);
    let mut place = Place::new();
    place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
    let mut supervisor = place.run();
    supervisor.wait_for_state("q", "running");
    assert_eq!(supervisor.stop(), 0);
    fs::write(place.path("state/store/db"), vec![0xA5u8; 1 << 20]).unwrap();
    let output = place.run_command().stderr(std::process::Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(65), "{text}");
    assert!(text.contains(&place.path("state").display().to_string()), "{text}");
}

#[test]
fn deliveries_are_extended_while_a_checkpoint_is_far_away() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 3, &["{\"n\":1}", "{\"n\":2}"]);
    place.define("q", &numbers(&emulator.endpoint, "q", &out, "checkpoint: { interval: 10min }").replace("30s", "1s"));
    let mut supervisor = place.run();
    until(SOON, "both were extended twice", || {
        let (_, metrics) = get(&supervisor.address, "/metrics")?;
        let line = metrics.lines().find(|line| line.starts_with("queuewarden_source_visibility_extensions_total"))?;
        (line.rsplit(' ').next()?.parse::<f64>().ok()? >= 4.0).then_some(())
    });
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(emulator.count("q", "redelivered_after_timeout"), 0);
    assert_eq!((emulator.left("q"), lines(&out).len()), (0, 2));
}

#[test]
fn oss_notifications_become_typed_rows_and_old_messages_are_left_out() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    let event = r#"{"events":[{"eventName":"ObjectCreated:PutObject","eventTime":"2026-01-15T08:30:00.120Z","oss":{"bucket":{"name":"b"},"object":{"key":"照片/1.jpg","size":42}}},{"eventName":"second"}]}"#;
    send(&emulator.endpoint, "q", 30, &[event]);
    let definition = numbers(&emulator.endpoint, "q", &out, QUICK)
        .replace("schema: { n: INT }", "messageType: OSS\n  schema: { eventName: STRING, ossObjectKey: STRING, ossObjectSize: BIGINT, eventTime: TIMESTAMP(3) }");
    place.define("oss", &definition);
    send(&emulator.endpoint, "old", 30, &["{\"n\":1}"]);
    let old = numbers(&emulator.endpoint, "old", &place.path("old"), QUICK)
        .replace("schema:", "startTimeMs: 4102444800000\n  schema:");
    place.define("old", &old);
    let mut supervisor = place.run();
    until(SOON, "both queues are empty", || (emulator.left("q") + emulator.left("old") == 0).then_some(()));
    assert_eq!(supervisor.pipeline("old").unwrap()["counts"]["filtered"], 1);
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    assert!(metrics.contains("queuewarden_decode_unread_total{pipeline=\"oss\"} 1"), "the second event is counted");
    assert_eq!(supervisor.stop(), 0);
    let expected = r#"{"eventName":"ObjectCreated:PutObject","ossObjectKey":"照片/1.jpg","ossObjectSize":42,"eventTime":"2026-01-15 08:30:00.12"}"#;
    assert_eq!(lines(&out), [expected]);
    assert_eq!(lines(&place.path("old")), [""; 0]);
}

#[cfg(feature = "failpoints")]
mod failures {
    use super::*;

    fn generation(supervisor: &common::Supervisor, name: &str) -> u64 {
        supervisor.pipeline(name).unwrap()["generation"].as_u64().unwrap()
    }

    #[test]
    fn a_panic_restarts_its_pipeline_from_the_checkpoint_and_writes_nothing_twice() {
        for (at, times) in [("poller.polled", 2), ("decoder.process", 2), ("dedup.rows", 2), ("sink.write", 2)] {
            let emulator = EmulatorProcess::start(&[]);
            let mut place = Place::new();
            let out = place.path("out");
            send(&emulator.endpoint, "q", 2, &bodies(&one_to(100)));
            let rest = format!("{QUICK}\nrestart: {{ max: 5, within: 60s, backoff: 100ms..200ms }}");
            place.define("q", &numbers(&emulator.endpoint, "q", &out, &rest).replace("30s", "1s"));
            let mut supervisor =
                place.run_with(&[("FAILPOINTS", &format!("{at}={times}*off->1*panic(on purpose)->off"))]);
            until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
            assert_eq!(generation(&supervisor, "q"), 2, "{at}");
            let status = supervisor.pipeline("q").unwrap();
            assert!(status["last_error"].as_str().unwrap().contains("on purpose"), "{at}: {status}");
            assert_eq!(supervisor.stop(), 0);
            let mut expected = one_to(100);
            expected.sort();
            assert_eq!(lines(&out), expected, "{at}");
        }
    }

    #[test]
    fn a_pipeline_that_keeps_failing_uses_up_its_budget_and_is_failed() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        let out = place.path("out");
        send(&emulator.endpoint, "q", 1, &["{\"n\":1}"]);
        let rest = format!("{QUICK}\nrestart: {{ max: 2, within: 60s, backoff: 10ms..20ms }}");
        place.define("q", &numbers(&emulator.endpoint, "q", &out, &rest));
        let mut supervisor = place.run_with(&[("FAILPOINTS", "dedup.rows=panic(always)")]);
        let status = supervisor.wait_for_state("q", "failed");
        assert_eq!(status["restarts"], 2, "{status}");
        assert_eq!(supervisor.stop(), 0);
    }

    #[test]
    fn output_promised_to_an_old_folder_is_committed_there_after_the_definition_changed() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        send(&emulator.endpoint, "q", 1, &["{\"n\":1}", "{\"n\":2}"]);
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("old"), QUICK));
        let mut command = place.run_command();
        command.env("QUEUEWARDEN_KILL_AT", "checkpoint.after_store=1");
        let mut process = common::Process(command.spawn().unwrap());
        assert_eq!(process.wait(SOON).code(), None, "killed between the store and the commit");
        assert_eq!(lines(&place.path("old")), [""; 0], "nothing is visible yet");
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("new"), QUICK));
        let mut supervisor = place.run();
        until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0);
        assert_eq!(lines(&place.path("old")), ["{\"n\":1}", "{\"n\":2}"]);
        assert_eq!(lines(&place.path("new")), [""; 0]);
    }

    #[test]
    fn a_store_that_fails_ends_the_process_with_its_own_code() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        send(&emulator.endpoint, "q", 1, &["{\"n\":1}"]);
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), QUICK));
        let mut supervisor = place.run_with(&[("FAILPOINTS", "store.after_apply=1*off->panic(the disk)")]);
        assert_eq!(supervisor.process.wait(SOON).code(), Some(74));
        assert_eq!(emulator.left("q"), 1, "nothing was deleted");
    }

    #[test]
    fn a_commit_that_hangs_is_noticed_after_the_checkpoint_timeout() {
        let emulator = EmulatorProcess::start(&[]);
        let mut place = Place::new();
        send(&emulator.endpoint, "q", 2, &["{\"n\":1}"]);
        let rest = "checkpoint: { interval: 100ms, timeout: 500ms }\nrestart: { backoff: 10ms..20ms }";
        place.define("q", &numbers(&emulator.endpoint, "q", &place.path("out"), rest).replace("30s", "1s"));
        let mut supervisor = place.run_with(&[("FAILPOINTS", "fs.before_rename=1*sleep(3000)->off")]);
        until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
        let status = supervisor.pipeline("q").unwrap();
        assert!(status["last_error"].as_str().unwrap().contains("commit"), "{status}");
        assert!(generation(&supervisor, "q") >= 2);
        assert_eq!(supervisor.stop(), 0);
        assert_eq!(lines(&place.path("out")), ["{\"n\":1}"]);
    }
}

#[test]
fn memory_that_is_asked_for_and_not_used_is_not_made_real_by_huge_pages() {
    let mut place = Place::new();
    place.define("d", "source: { connector: datagen, schema: { n: BIGINT } }\nsink: { connector: blackhole }\n");
    let mut supervisor = place.run();
    let status = fs::read_to_string(format!("/proc/{}/status", supervisor.process.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("THP_enabled:")).expect("Linux 5.0 or newer");
    assert_eq!(line.split_whitespace().last(), Some("0"));
    assert_eq!(supervisor.stop(), 0);
}
