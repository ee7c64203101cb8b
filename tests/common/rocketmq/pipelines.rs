//! Pipelines from a topic into files: a row a message, with all that the source says of it.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use super::{
    super::{Place, binary, numbers::lines},
    BROKER, CLUSTER, Generation, Received, Servers,
};

/// A pipeline of a topic; the name of its folder is that of the pipeline.
pub struct Reading<'a> {
    pub connector: &'a str,
    pub endpoint: String,
    pub topic: &'a str,
    pub group: &'a str,
    /// Further options of the source, a line each.
    pub options: &'a [&'a str],
}

impl<'a> Reading<'a> {
    /// From the beginning through the name server, unless the options say otherwise.
    pub fn new(servers: &Servers, topic: &'a str, group: &'a str, options: &'a [&'a str]) -> Self {
        Self { connector: servers.connector(), endpoint: servers.name_server(), topic, group, options }
    }

    pub fn definition(&self, out: &Path) -> String {
        let Self { connector, endpoint, topic, group, options } = self;
        let start = if options.iter().any(|option| option.starts_with("rocketmq.source.startup")) {
            String::new()
        } else {
            "  rocketmq.source.startup.scan.mode: earliest\n".to_owned()
        };
        let options: String = options.iter().map(|option| format!("  {option}\n")).collect();
        format!(
            "source:
  connector: {connector}
  rocketmq.client.endpoints: {endpoint}
  rocketmq.client.channel: LOCAL
  rocketmq.source.topic: {topic}
  rocketmq.source.group: {group}
{start}{options}  format: raw
  schema:
    body: STRING
    queue-id: INT METADATA VIRTUAL
    queue-offset: BIGINT METADATA VIRTUAL
    msg-id: STRING METADATA VIRTUAL
    keys: STRING METADATA VIRTUAL
    tags: STRING METADATA VIRTUAL
    properties: MAP<STRING, STRING> METADATA VIRTUAL
sink:
  connector: filesystem
  format: json
  path: {}
  schema:
    body: STRING
    queue-id: INT
    queue-offset: BIGINT
    msg-id: STRING
    keys: STRING
    tags: STRING
    properties: MAP<STRING, STRING>
checkpoint: {{ interval: 200ms }}
",
            out.display()
        )
    }
}

impl Servers {
    /// The connector for this generation.
    pub const fn connector(&self) -> &'static str {
        match self.generation {
            Generation::Four => "rocketmq4",
            Generation::Five => "rocketmq5",
        }
    }
}

/// The row that a message stands for, of its properties these. Its id is null: of a message that was sent in a batch
/// to 5.x the Java client shows the id of the whole batch.
pub fn row(message: &Received, properties: &[&str]) -> Value {
    let properties: BTreeMap<_, _> =
        properties.iter().filter_map(|name| Some((name, message.properties.get(*name)?))).collect();
    json!({
        "body": message.text(),
        "queue-id": message.queue,
        "queue-offset": message.offset,
        "msg-id": null,
        "keys": message.keys.as_deref().unwrap_or_default(),
        "tags": message.tags.as_deref().unwrap_or_default(),
        "properties": properties,
    })
}

/// The rows in a pipeline's folder.
pub fn rows(out: &Path) -> Vec<Value> {
    lines(out).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The bodies in a pipeline's folder, sorted.
pub fn bodies(out: &Path) -> Vec<String> {
    let mut bodies: Vec<_> = rows(out).iter().map(|row| row["body"].as_str().expect("a body").to_owned()).collect();
    bodies.sort();
    bodies
}

/// Positions in the state of a place where nobody runs, by queue.
pub fn positions(place: &Place, pipeline: &str, topic: &str) -> BTreeMap<u32, i64> {
    let shown =
        binary().args(["state", "show", pipeline, "--json"]).env("QUEUEWARDEN_STATE", place.path("state")).output();
    let shown = shown.expect("it runs");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let positions = shown["positions"].as_object().expect("positions");
    let queue = |lane: &str| lane.strip_prefix(&format!("{CLUSTER}/{topic}/{BROKER}/"))?.parse().ok();
    positions.iter().filter_map(|(lane, position)| Some((queue(lane)?, position.as_i64()?))).collect()
}
