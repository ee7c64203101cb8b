//! Rows that are made up, and the files they are written to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// A pipeline of made up rows, numbered from 0, into files.
pub fn definition(rows: u64, rate: u64, out: &Path) -> String {
    format!(
        "source:
  connector: datagen
  rows-per-second: {rate}
  number-of-rows: {rows}
  fields.n.kind: sequence
  fields.n.start: 0
  fields.n.end: 9223372036854775807
  fields.text.length: 12
  schema: {{ n: BIGINT, text: STRING, at: TIMESTAMP(3) }}
sink: {{ connector: filesystem, format: json, path: {} }}
checkpoint: {{ interval: 50ms }}
",
        out.display()
    )
}

/// Generation, epoch and part of a file.
fn number_of(file: &Path) -> Vec<u64> {
    let stem = file.file_stem().expect("a name").to_string_lossy();
    stem.split('-').skip(2).map(|number| number.parse().expect("a number")).collect()
}

/// The rows in the order in which they became visible.
pub fn rows(out: &Path) -> Vec<Value> {
    let Ok(folder) = fs::read_dir(out) else { return Vec::new() };
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort_by_key(|file| number_of(file));
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

/// Of so many rows each is there, once and in its place.
pub fn assert_each_once_and_in_order(out: &Path, count: u64) -> Vec<Value> {
    let rows = rows(out);
    let wrong = rows.iter().zip(0..).find(|(row, n): &(&Value, u64)| row["n"] != *n);
    assert!(wrong.is_none(), "{wrong:?} is not where it should be");
    assert_eq!(rows.len() as u64, count);
    rows
}
