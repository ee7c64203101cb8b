//! What becomes of messages that can never be processed, over real processes: their neighbours are written and
//! deleted, and whatever is refused is counted, and kept where that is asked for.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use common::{
    EmulatorProcess, Place, SOON, get,
    letters::{letters, text_of, with_letters},
    numbers::{bodies, lines, numbers, one_to, send},
    until,
};

const QUICK: &str = "checkpoint: { interval: 100ms }";
const POSITIONS: usize = 16;

#[test]
fn poison_at_every_position_of_a_batch_harms_no_neighbour_under_fail_skip_and_dead_letter() {
    let emulator = EmulatorProcess::start(&[]);
    for on_error in ["fail", "skip", "dead_letter"] {
        let mut place = Place::new();
        let queue = |position: usize| format!("{}{position}", on_error.replace('_', "-"));
        for position in 0..POSITIONS {
            let mut all = one_to(15);
            all.insert(position, "{\"n\": poison}".to_owned());
            send(&emulator.endpoint, &queue(position), 60, &bodies(&all));
            let (out, letters) = (place.path(&format!("out{position}")), place.path(&format!("letters{position}")));
            let rest = match on_error {
                "dead_letter" => format!("{QUICK}\n{}", with_letters(&letters)),
                other => format!("{QUICK}\non_error: {other}"),
            };
            place.define(&queue(position), &numbers(&emulator.endpoint, &queue(position), &out, &rest));
        }
        let mut supervisor = place.run();
        let left = u64::from(on_error == "fail");
        let mut expected = one_to(15);
        expected.sort();
        for position in 0..POSITIONS {
            let queue = queue(position);
            until(SOON, "only what may be left is left", || (emulator.left(&queue) == left).then_some(()));
            let state = if on_error == "fail" { "failed" } else { "running" };
            let kept = u64::from(on_error == "dead_letter");
            let counted = ["received", "rows_written", "rejected", "rejects", "dead_letters", "deleted"];
            let expected_counts = [16, 15, 1, 1, kept, 16 - left];
            until(SOON, "the counts match", || {
                let counts = &supervisor.wait_for_state(&queue, state)["counts"];
                // The queue knows of a delete before it is answered.
                (counted.map(|what| counts[what].as_u64().unwrap()) == expected_counts).then_some(())
            });
            assert_eq!(lines(&place.path(&format!("out{position}"))), expected, "{queue}");
            let letters = letters(&place.path(&format!("letters{position}")));
            assert_eq!(letters.len() as u64, kept, "{queue}");
            for letter in letters {
                assert_eq!(text_of(&letter["body"]), "{\"n\": poison}");
                assert_eq!((&letter["row"], &letter["stage"]), (&serde_json::Value::Null, &"decode".into()));
                assert_eq!(letter["pipeline"], queue);
            }
        }
        let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
        let counted = format!("queuewarden_dead_letters_total{{pipeline=\"{}\"}}", queue(0));
        assert!(metrics.contains(&format!("{counted} {}", u8::from(on_error == "dead_letter"))), "{counted}");
        assert_eq!(supervisor.stop(), 0);
    }
}

#[test]
fn a_letter_says_what_was_received_from_where_when_and_why_it_was_refused() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let (out, folder) = (place.path("out"), place.path("letters"));
    // Neither is base64, and the second is no text that JSON could hold as it is.
    send(&emulator.endpoint, "q", 60, &["{\"n\":1}", "caf\u{e9} \"quoted\" \\ \u{1F980}"]);
    let definition = numbers(&emulator.endpoint, "q", &out, &format!("{QUICK}\n{}", with_letters(&folder)))
        .replace("  schema:", "  bodyEncoding: base64\n  schema:");
    place.define("q", &definition);
    let mut supervisor = place.run();
    until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    assert_eq!(supervisor.stop(), 0);
    let letters = letters(&folder);
    let found: Vec<String> = letters.iter().map(|letter| text_of(&letter["body"])).collect();
    assert_eq!(found, ["caf\u{e9} \"quoted\" \\ \u{1F980}", "{\"n\":1}"]);
    for letter in letters {
        assert_eq!(letter["stage"], "transport");
        assert!(letter["reason"].as_str().unwrap().contains("not base64"), "{letter}");
        assert!(letter["source"].as_str().unwrap().starts_with("mns 127.0.0.1:"), "{letter}");
        assert_eq!((&letter["lane"], &letter["position"]), (&"mns".into(), &serde_json::Value::Null));
        assert_eq!(letter["metadata"]["message-id"], letter["message_id"]);
        assert_eq!(letter["metadata"]["dequeue-count"], "1");
        let time = |text: &serde_json::Value| {
            let text = text.as_str().unwrap().replace(' ', "T");
            chrono::DateTime::parse_from_rfc3339(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        assert!(time(&letter["metadata"]["enqueue-time"]) <= time(&letter["rejected_at"]), "{letter}");
        assert_eq!(letter["generation"], 1);
    }
}

#[test]
fn dead_letters_may_go_to_any_sink() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    for sink in ["print", "blackhole"] {
        send(&emulator.endpoint, sink, 60, &["{\"n\":1}", "poison"]);
        let rest = format!("{QUICK}\non_error: dead_letter\ndead_letter: {{ connector: {sink} }}");
        place.define(sink, &numbers(&emulator.endpoint, sink, &place.path(&format!("out-{sink}")), &rest));
    }
    let mut supervisor = place.run();
    for sink in ["print", "blackhole"] {
        until(SOON, "the queue is empty", || (emulator.left(sink) == 0).then_some(()));
        assert_eq!(supervisor.pipeline(sink).unwrap()["counts"]["dead_letters"], 1);
        assert_eq!(lines(&place.path(&format!("out-{sink}"))), ["{\"n\":1}"]);
    }
    assert_eq!(supervisor.stop(), 0);
    let printed = std::fs::read_to_string(place.path("stdout")).unwrap();
    assert!(printed.contains("decode") && printed.contains("message-id="), "{printed}");
}

#[test]
fn a_rate_is_kept_and_told() {
    let emulator = EmulatorProcess::start(&[]);
    let mut place = Place::new();
    let out = place.path("out");
    send(&emulator.endpoint, "q", 60, &bodies(&one_to(64)));
    let definition = numbers(&emulator.endpoint, "q", &out, QUICK).replace("  schema:", "  rate: 16/h\n  schema:");
    place.define("q", &definition);
    let mut supervisor = place.run();
    let status = until(SOON, "it waits", || supervisor.pipeline("q").filter(|status| status["rate_limited"] == true));
    assert_eq!((&status["counts"]["received"], &status["state"]), (&16.into(), &"running".into()));
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    for counted in ["source_rate_limited{pipeline=\"q\"} 1", "source_rate_waits_total{pipeline=\"q\"} 1"] {
        assert!(metrics.contains(&format!("queuewarden_{counted}")), "{counted}");
    }
    let begun = std::time::Instant::now();
    assert_eq!(supervisor.stop(), 0);
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "a stop does not wait for the rate");
    assert_eq!((lines(&out).len(), emulator.left("q")), (16, 48));
}

#[cfg(feature = "failpoints")]
mod killed {
    use super::*;
    use common::{
        Process,
        letters::{PLACES, once_each},
    };

    #[test]
    fn killed_at_every_place_rows_and_letters_are_each_written_once() {
        let emulator = EmulatorProcess::start(&["--fault", "duplicate-in-flight=0.1"]);
        let mut place = Place::new();
        let (out, folder) = (place.path("out"), place.path("letters"));
        let definition = numbers(&emulator.endpoint, "q", &out, &format!("{QUICK}\n{}", with_letters(&folder)));
        place.define("q", &definition.replace("30s", "1s"));
        let (mut good, mut bad) = (0, 0);
        for round in 1..=2 {
            for at in PLACES {
                let sent: Vec<String> = (0..20)
                    .map(
                        |n| if n % 5 == 0 { format!("bad {}", bad + n / 5) } else { format!("{{\"n\":{}}}", good + n) },
                    )
                    .collect();
                (good, bad) = (good + 20, bad + 4);
                send(&emulator.endpoint, "q", 2, &bodies(&sent));
                let mut command = place.run_command();
                command.env("QUEUEWARDEN_KILL_AT", format!("{at}={round}"));
                let mut process = Process(command.spawn().expect("it starts"));
                let status = until(SOON, &format!("it is killed at {at}"), || {
                    let status = process.0.try_wait().expect("it can be waited for");
                    // Where all was acknowledged before the place was reached often enough, more is needed.
                    if status.is_none() && emulator.left("q") == 0 {
                        send(&emulator.endpoint, "q", 2, &[&format!("bad {bad}"), &format!("{{\"n\":{good}}}")]);
                        (good, bad) = (good + 1, bad + 1);
                    }
                    status
                });
                assert_eq!(status.code(), None, "{at}: it ended by a signal");
            }
        }
        let mut supervisor = place.run();
        until(SOON * 2, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
        assert_eq!(supervisor.stop(), 0);
        let letters: Vec<String> = letters(&folder).iter().map(|letter| text_of(&letter["body"])).collect();
        once_each(&letters, bad, "letters");
        let rows = lines(&out);
        once_each(&rows, rows.len(), "rows");
        let rounds = 2 * PLACES.len();
        let more = good - 20 * rounds;
        assert_eq!(rows.len(), 16 * rounds + more);
    }
}
