//! Formats from a queue to files, through the whole program.

#![allow(clippy::expect_used, reason = "a test that cannot go on says so")]

mod common;

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use common::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, get, until};
use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::{Outgoing, QueueSettings},
};

#[tokio::main(flavor = "current_thread")]
async fn send(emulator: &EmulatorProcess, queue: &str, bodies: &[&[u8]]) {
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    let client = Client::new(&emulator.endpoint, credentials).expect("a client");
    client.create_queue(queue, &QueueSettings::default()).await.expect("a queue");
    for body in bodies {
        let message = Outgoing { body: STANDARD.encode(body), ..Outgoing::default() };
        client.send(queue, &[message]).await.expect("sent");
    }
}

fn definition(emulator: &EmulatorProcess, queue: &str, source: &str, sink: &str, out: &Path) -> String {
    format!(
        "source:
  connector: mns
  endpoint: {}
  region: cn-hangzhou
  queueName: {queue}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  batchSize: 16
  pollingWaitTime: 1s
{source}
sink:
  connector: filesystem
  path: {}
{sink}
checkpoint: {{ interval: 100ms }}
on_error: skip
",
        emulator.endpoint,
        out.display()
    )
}

/// What the files of a folder hold, in the order of their names' lengths and names; all must have this extension.
fn written(out: &Path, extension: &str) -> Vec<u8> {
    let entries = fs::read_dir(out).expect("the output is there").map(|entry| entry.expect("readable").path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    files
        .iter()
        .flat_map(|path| {
            assert_eq!(path.extension().and_then(|found| found.to_str()), Some(extension), "{}", path.display());
            fs::read(path).expect("readable")
        })
        .collect()
}

/// Runs a pipeline until its queue is empty; answers what it has written, and its metrics.
fn run(bodies: &[&[u8]], source: &str, sink: &str, extension: &str) -> (Vec<u8>, String) {
    let emulator = EmulatorProcess::start(&[]);
    send(&emulator, "q", bodies);
    let mut place = Place::new();
    let out = place.path("out");
    place.define("p", &definition(&emulator, "q", source, sink, &out));
    let mut supervisor = place.run();
    supervisor.wait_for_state("p", "running");
    until(SOON, "the queue is empty", || (emulator.left("q") == 0).then_some(()));
    let (_, metrics) = get(&supervisor.address, "/metrics").expect("metrics");
    assert_eq!(supervisor.stop(), 0);
    (written(&out, extension), metrics)
}

fn assert_counted(metrics: &str, name: &str, count: u64) {
    let line = metrics.lines().find(|line| line.starts_with(&format!("queuewarden_{name}{{")));
    assert!(line.is_some_and(|line| line.ends_with(&format!(" {count}"))), "{name}: {line:?}");
}

const SCHEMA: &str =
    "  schema:\n    id: INT NOT NULL\n    text: STRING\n    amount: DECIMAL(10, 2)\n    tags: ARRAY<STRING>";

#[test]
fn csv_of_many_rows_a_message_becomes_csv_and_a_bad_message_is_skipped_and_counted() {
    let source = format!("  format: csv\n  csv.line-delimiter: '\\n'\n{SCHEMA}");
    let bodies: [&[u8]; 4] =
        [b"1,\"a,\nb\",1.50,x;y\r\n2,plain,,\r\n", b"3,c,100,", b"4,d,0.5,x\nbad,e,1,x\n", "5,世界,7,x".as_bytes()];
    let ignoring = format!("{source}\n  csv.null-literal: ''\n  csv.ignore-parse-errors: true");
    let (out, metrics) = run(&bodies, &ignoring, "  format: csv\n  csv.null-literal: 'NULL'", "csv");
    let lines = "1,\"a,\nb\",1.5,x;y\n2,plain,NULL,NULL\n3,c,\"1E+2\",NULL\n4,d,0.5,x\n5,世界,7,x\n";
    assert_eq!(String::from_utf8_lossy(&out), lines);
    assert_counted(&metrics, "decode_unread_total", 1);

    let strict = format!("{source}\n  csv.null-literal: ''");
    let (out, metrics) = run(&bodies, &strict, "  format: json", "json");
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 4, "{}", String::from_utf8_lossy(&out));
    assert_counted(&metrics, "rejects_total", 1);
}

#[test]
fn raw_bytes_of_a_queue_become_lines_of_a_file() {
    let source = "  format: raw\n  bodyEncoding: base64\n  raw.charset: GBK\n  schema:\n    line: STRING";
    let (out, _) = run(&[b"\xd6\xd0", b"a,b"], source, "  format: raw", "raw");
    assert_eq!(String::from_utf8_lossy(&out), "中\na,b\n");
}
