//! Messages in files, as `tests/rocketmq/Messages.java` has them: a line of JSON each, the body in base64.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// A message to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    pub queue: u32,
    pub body: Vec<u8>,
    pub keys: Option<String>,
    pub tags: Option<String>,
    pub properties: BTreeMap<String, String>,
}

/// A message as the official client read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub queue: u32,
    pub offset: i64,
    pub id: String,
    pub body: Vec<u8>,
    pub keys: Option<String>,
    pub tags: Option<String>,
    /// The broker's own too.
    pub properties: BTreeMap<String, String>,
    /// Milliseconds.
    pub born: i64,
    pub stored: i64,
}

impl Received {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

pub fn write(home: &Path, messages: &[Outgoing]) -> NamedTempFile {
    let file = NamedTempFile::new_in(home).expect("a file");
    let mut out = BufWriter::new(File::create(file.path()).expect("a file"));
    for message in messages {
        let line = json!({
            "queue": message.queue,
            "body": STANDARD.encode(&message.body),
            "keys": message.keys,
            "tags": message.tags,
            "properties": message.properties,
        });
        writeln!(out, "{line}").expect("written");
    }
    out.flush().expect("written");
    file
}

pub fn read(path: &Path) -> Vec<Received> {
    fs::read_to_string(path).expect("a file").lines().map(received).collect()
}

fn received(line: &str) -> Received {
    let line: Value = serde_json::from_str(line).expect("JSON");
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let number = |name: &str| line[name].as_i64().expect("a number");
    Received {
        queue: number("queue") as u32,
        offset: number("offset"),
        id: text("id").expect("an id"),
        body: STANDARD.decode(line["body"].as_str().expect("a body")).expect("base64"),
        keys: text("keys"),
        tags: text("tags"),
        properties: serde_json::from_value(line["properties"].clone()).expect("texts"),
        born: number("born"),
        stored: number("stored"),
    }
}
