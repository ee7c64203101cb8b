//! Dead letters in files.

use std::{collections::BTreeSet, fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::numbers::lines;

/// What a definition says to have dead letters in a folder.
pub fn with_letters(folder: &Path) -> String {
    let folder = folder.display();
    format!("on_error: dead_letter\ndead_letter: {{ connector: filesystem, path: {folder}, format: json }}\n")
}

/// The letters in the files of a folder, by their bodies.
pub fn letters(folder: &Path) -> Vec<Value> {
    let mut letters: Vec<Value> = lines(folder).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    letters.sort_by_key(|letter| text_of(&letter["body"]));
    letters
}

/// A body as a text.
pub fn text_of(body: &Value) -> String {
    String::from_utf8(STANDARD.decode(body.as_str().unwrap()).unwrap()).unwrap()
}

/// Names of the files in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = files.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Where a process may be killed, in the order in which a checkpoint passes them.
pub const PLACES: [&str; 13] = [
    "poller.polled",
    "letters.write",
    "sink.before_prepare",
    "sink.after_prepare",
    "letters.before_prepare",
    "letters.after_prepare",
    "checkpoint.before_store",
    "store.after_sync",
    "checkpoint.after_store",
    "sink.before_commit",
    "letters.before_commit",
    "sink.after_commit",
    "poller.acknowledge",
];

/// There are so many in the list, and no two are the same.
pub fn once_each(list: &[String], count: usize, what: &str) {
    let different: BTreeSet<_> = list.iter().collect();
    assert_eq!((list.len(), different.len()), (count, count), "{what}");
}
