//! Files of pyarrow and fastavro as bodies of messages, and files that are written, read by them again.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{fs, path::Path, process::Command};

use base64_simd::STANDARD;
use common::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, Supervisor, rows, until};
use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::Outgoing,
};
use serde_json::{Value, json};

/// Runs `tests/sdk/columnar.py` and reads its one line of JSON.
fn python(arguments: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/sdk/venv/bin/python");
    assert!(python.exists(), "pyarrow and fastavro are not installed: run `make sdk`");
    let output = Command::new(python).arg(root.join("tests/sdk/columnar.py")).args(arguments).output();
    let output = output.expect("python runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {out}\n{error}");
    serde_json::from_str(out.trim()).unwrap_or(Value::Null)
}

/// The bodies of a format, in the order of their names.
fn bodies(made: &Path, format: &str) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(made.join(format)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = folder.filter(|file| file.extension().is_some_and(|ending| ending == "body")).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn send(emulator: &EmulatorProcess, queue: &str, bodies: &[Vec<u8>]) {
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(&emulator.endpoint, credentials).expect("an endpoint");
        for body in bodies {
            let message = Outgoing { body: STANDARD.encode_to_string(body), ..Outgoing::default() };
            client.send(queue, &[message]).await.expect("sent");
        }
    });
}

fn definition(emulator: &EmulatorProcess, queue: &str, format: &str, schema: &str, sink: &str) -> String {
    format!(
        "source:
  connector: mns
  endpoint: {}
  region: cn-hangzhou
  queueName: {queue}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  format: {format}
  batchSize: 16
  pollingWaitTime: 1s
  schema:
{schema}
sink:
{sink}
checkpoint: {{ interval: 200ms }}
",
        emulator.endpoint
    )
}

fn drain(emulator: &EmulatorProcess, queue: &str, supervisor: &mut Supervisor) {
    until(SOON, "the queue is empty", || {
        let pipeline = supervisor.pipeline(queue)?;
        assert_ne!(pipeline["state"], "failed", "{pipeline}\n{}", supervisor.log());
        (emulator.left(queue) == 0).then_some(())
    });
    assert_eq!(supervisor.stop(), 0);
}

fn json_sink(out: &Path) -> String {
    format!(
        "  connector: filesystem\n  path: {}\n  format: json\n  json.encode.decimal-as-plain-number: true",
        out.display()
    )
}

#[test]
fn bodies_of_pyarrow_and_fastavro_are_the_rows_they_are_in_python() {
    let mut place = Place::new();
    let made = place.path("made");
    python(&["make", made.to_str().unwrap()]);
    let formats = [
        ("parquet", "parquet"),
        ("times", "parquet"),
        ("orc", "orc"),
        ("avro", "avro\n  avro.timestamp_mapping.legacy: false"),
    ];
    let queues: Vec<_> = formats.iter().flat_map(|(format, _)| ["--queue", format]).collect();
    let emulator = EmulatorProcess::start(&queues);
    for (format, options) in formats {
        let schema = fs::read_to_string(made.join(format).join("schema.yaml")).unwrap();
        let sink = json_sink(&place.path(&format!("out-{format}")));
        place.define(format, &definition(&emulator, format, options, schema.trim_end(), &sink));
        send(&emulator, format, &bodies(&made, format));
    }
    let mut supervisor = place.run();
    for (format, _) in formats {
        until(SOON, "the queue is empty", || {
            let pipeline = supervisor.pipeline(format)?;
            assert_ne!(pipeline["state"], "failed", "{pipeline}\n{}", supervisor.log());
            (emulator.left(format) == 0).then_some(())
        });
    }
    assert_eq!(supervisor.stop(), 0);
    for (format, count) in [("parquet", 153), ("times", 36), ("orc", 90), ("avro", 104)] {
        let out = place.path(&format!("out-{format}"));
        assert_eq!(python(&["compare", format, out.to_str().unwrap()]), json!({ "rows": count }), "{format}");
    }
}

#[test]
fn files_that_are_written_are_the_same_rows_to_pyarrow_and_fastavro() {
    let mut place = Place::new();
    let made = place.path("made");
    python(&["make", made.to_str().unwrap()]);
    let schema = fs::read_to_string(made.join("parquet/schema.yaml")).unwrap();
    // What each format holds.
    let lines = |without: &[&str]| {
        let kept = schema.lines().filter(|line| !without.iter().any(|part| line.contains(part)));
        kept.collect::<Vec<_>>().join("\n")
    };
    let sinks = [
        ("parquet", "snappy", lines(&["TIMESTAMP(9)"]), ""),
        ("parquet", "zstd", lines(&["TIMESTAMP(9)"]), "  parquet.compression: ZSTD\n  parquet.block.size: 4kb"),
        ("avro", "snappy", lines(&["TIMESTAMP(9)"]), "  avro.timestamp_mapping.legacy: false"),
        ("avro", "xz", lines(&["TIMESTAMP(9)"]), "  avro.timestamp_mapping.legacy: false\n  avro.codec: xz"),
    ];
    let names: Vec<_> = sinks.iter().map(|(format, codec, ..)| format!("{format}-{codec}")).collect();
    let queues: Vec<_> = names.iter().flat_map(|name| ["--queue", name]).collect();
    let emulator = EmulatorProcess::start(&queues);
    let bodies = bodies(&made, "parquet");
    for (name, (format, _, schema, options)) in names.iter().zip(&sinks) {
        let out = place.path(name);
        let sink = format!("  connector: filesystem\n  path: {}\n  format: {format}\n{options}", out.display());
        place.define(name, &definition(&emulator, name, "parquet", schema, &sink));
        send(&emulator, name, &bodies);
    }
    let mut supervisor = place.run();
    for name in &names {
        until(SOON, "the queue is empty", || {
            let pipeline = supervisor.pipeline(name)?;
            assert_ne!(pipeline["state"], "failed", "{pipeline}\n{}", supervisor.log());
            (emulator.left(name) == 0).then_some(())
        });
    }
    assert_eq!(supervisor.stop(), 0);
    for (name, (format, _, schema, _)) in names.iter().zip(&sinks) {
        let columns: Vec<_> = schema.lines().filter_map(|line| line.trim().split(':').next()).collect();
        let read = python(&["files", format, place.path(name).to_str().unwrap(), &columns.join(",")]);
        assert_eq!(read, json!({ "rows": 153 }), "{name}");
    }
}

#[test]
fn a_broken_body_is_a_message_that_is_refused_alone() {
    let mut place = Place::new();
    let made = place.path("made");
    python(&["make", made.to_str().unwrap()]);
    for format in ["parquet", "orc", "avro"] {
        let emulator = EmulatorProcess::start(&["--queue", format]);
        let schema = fs::read_to_string(made.join(format).join("schema.yaml")).unwrap();
        let out = place.path(&format!("out-{format}"));
        let options = if format == "avro" { "avro\n  avro.timestamp_mapping.legacy: false" } else { format };
        let text = definition(&emulator, format, options, schema.trim_end(), &json_sink(&out));
        place.define(format, &format!("{text}on_error: skip\n"));
        let good = bodies(&made, format);
        let mut sent = Vec::new();
        for body in &good {
            let (mut cut, mut flipped) = (body.clone(), body.clone());
            cut.truncate(body.len() - 5);
            let from = flipped.len() / 2;
            flipped[from..].iter_mut().for_each(|byte| *byte ^= 0x5a);
            sent.extend([body.clone(), cut, flipped]);
        }
        send(&emulator, format, &sent);
        let mut supervisor = place.run();
        drain(&emulator, format, &mut supervisor);
        let log = place.log();
        assert!(!log.contains("panicked"), "{log}");
        let count = python(&["among", format, out.to_str().unwrap()])["rows"].as_u64();
        assert!(count > Some(80), "{format}: {count:?}");
        fs::remove_file(place.path("pipelines").join(format!("{format}.yaml"))).unwrap();
    }
}

#[test]
fn rows_in_parquet_files_are_there_once_whenever_the_process_is_killed() {
    const ROWS: u64 = 12_000;
    let mut place = Place::new();
    let out = place.path("out");
    let text = rows::definition(ROWS, 3000, &out).replace(
        "format: json",
        "format: parquet, parquet.block.size: 8kb, parquet.page.size: 1kb, sink.rolling-policy.file-size: 20kb",
    );
    place.define("p", &text);
    for kill in 0..8 {
        let mut supervisor = place.run();
        let files = || fs::read_dir(&out).map_or(0, |folder| folder.count());
        let before = files();
        until(SOON, "more files", || (files() > before + kill % 3).then_some(()));
        supervisor.process.kill_9();
    }
    let mut supervisor = place.run();
    supervisor.wait_for_state("p", "finished");
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(python(&["numbers", out.to_str().unwrap(), &ROWS.to_string()]), json!({ "rows": ROWS }));
}
