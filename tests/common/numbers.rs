//! Queues of numbers, and pipelines that write them to files.

use std::{fs, path::Path};

use queuewarden::connectors::mns::{
    client::{Client, Credentials},
    wire::{Outgoing, QueueSettings},
};

use super::{KEY_ID, KEY_SECRET};

pub fn client(endpoint: &str) -> Client {
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    Client::new(endpoint, credentials).unwrap()
}

/// Makes a queue and sends bodies as they are.
pub fn send(endpoint: &str, queue: &str, visibility: u32, bodies: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client(endpoint);
        let settings = QueueSettings { visibility_seconds: Some(visibility), ..QueueSettings::default() };
        client.create_queue(queue, &settings).await.unwrap();
        let outgoing: Vec<_> =
            bodies.iter().map(|body| Outgoing { body: (*body).to_owned(), ..Outgoing::default() }).collect();
        for batch in outgoing.chunks(16) {
            client.send(queue, batch).await.unwrap();
        }
    });
}

/// A pipeline of numbers into files; `rest` may change anything below the sink.
pub fn numbers(endpoint: &str, queue: &str, out: &Path, rest: &str) -> String {
    format!(
        "source:
  connector: mns
  endpoint: {endpoint}
  region: cn-hangzhou
  queueName: {queue}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  format: json
  batchSize: 16
  pollingWaitTime: 30s
  schema: {{ n: INT }}
sink: {{ connector: filesystem, path: {}, format: json }}
{rest}
",
        out.display()
    )
}

pub fn lines(out: &Path) -> Vec<String> {
    let mut lines: Vec<String> = fs::read_dir(out)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.sort();
    lines
}

pub fn one_to(n: u32) -> Vec<String> {
    (1..=n).map(|n| format!("{{\"n\":{n}}}")).collect()
}

pub fn bodies(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}
