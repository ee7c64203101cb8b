//! Reads dead letters from the files of a `filesystem` sink with `format: json`. Everything here blocks.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::Deserialize;

use crate::{
    definition::MetadataKey,
    model::{MetaValue, Stage},
};

/// The ending of the files that are read.
const EXTENSION: &str = "json";
/// Most mistakes that are told at once.
const MOST_TOLD: usize = 20;

/// What is needed of a dead letter to send it again. What else is in the line is for people.
#[derive(Debug, Deserialize)]
pub(super) struct Letter {
    pub id: String,
    #[serde(deserialize_with = "base64")]
    pub body: Bytes,
    #[serde(default)]
    pub row: Option<u32>,
    #[serde(deserialize_with = "stage")]
    pub stage: Stage,
    pub pipeline: String,
    pub metadata: BTreeMap<String, String>,
}

fn base64<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    let body = STANDARD.decode(text).map_err(|error| serde::de::Error::custom(format!("body: {error}")))?;
    Ok(Bytes::from(body))
}

fn stage<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Stage, D::Error> {
    let text = String::deserialize(deserializer)?;
    let found = Stage::ALL.into_iter().find(|stage| stage.label() == text);
    found.ok_or_else(|| serde::de::Error::custom("stage: expected `transport`, `decode` or `sink`"))
}

impl Letter {
    /// The metadata of the message, in the order of `keys`; null where the letter has none.
    ///
    /// # Errors
    /// A value that is not of its key's type.
    pub fn meta(&self, keys: &[MetadataKey]) -> Result<Vec<MetaValue>, String> {
        let value = |key: &MetadataKey| {
            let Some(text) = self.metadata.get(key.name) else { return Ok(MetaValue::Null) };
            MetaValue::of_text(&key.logical(), text)
                .ok_or_else(|| format!("metadata `{}`: expected a value of {}", key.name, key.logical()))
        };
        keys.iter().map(value).collect()
    }
}

/// The files to read, and what was left out and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In the order in which they are read: that of their numbers, where their names differ in numbers.
    pub files: Vec<PathBuf>,
    /// Neither hidden nor read.
    pub left_out: Vec<(PathBuf, &'static str)>,
}

/// Finds the files of dead letters: the paths that are files, and what is directly in those that are folders.
///
/// # Errors
/// Something is not there, or cannot be read.
pub fn find(paths: &[PathBuf]) -> Result<Found, String> {
    let mut found = Found::default();
    for path in paths {
        let refuse = |error: io::Error| format!("{}: {error}", path.display());
        let meta = fs::metadata(path).map_err(refuse)?;
        if meta.is_file() {
            found.files.push(path.clone());
            continue;
        }
        if !meta.is_dir() {
            return Err(format!("{}: neither a file nor a folder", path.display()));
        }
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(path).map_err(refuse)? {
            inside.push(entry.map_err(refuse)?.path());
        }
        // What is hidden is not complete.
        inside.retain(|path| !path.file_name().unwrap_or_default().as_encoded_bytes().starts_with(b"."));
        inside.sort_by_cached_key(|path| by_numbers(path));
        for path in inside {
            let meta = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if meta.is_dir() {
                found.left_out.push((path, "it is a folder"));
            } else if !meta.is_file() {
                // A pipe would be waited for without end.
                found.left_out.push((path, "it is neither a file nor a folder"));
            } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
                found.files.push(path);
            } else {
                found.left_out.push((path, "its name does not end with .json"));
            }
        }
    }
    Ok(found)
}

/// A name in its words, numbers as numbers.
fn by_numbers(path: &Path) -> Vec<(u64, String)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(['-', '.']).map(|word| (word.parse().unwrap_or(0), word.to_owned())).collect()
}

/// What is in files of dead letters.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many there are.
    pub letters: u64,
    /// How many of each pipeline.
    pub pipelines: BTreeMap<String, u64>,
}

/// Reads everything once, before anything is done with any of it.
///
/// # Errors
/// Every line that is no dead letter, as `file:line: why`, up to a bound; or the file that cannot be read.
pub fn check(files: &[PathBuf], keys: &[MetadataKey]) -> Result<Summary, Vec<String>> {
    let (mut summary, mut wrong) = (Summary::default(), Vec::new());
    for letter in Letters::new(files) {
        match letter.and_then(|(place, letter)| match letter.meta(keys) {
            Ok(_) => Ok(letter),
            Err(why) => Err(Mistake { place, why, ends: false }),
        }) {
            Ok(letter) => {
                summary.letters += 1;
                *summary.pipelines.entry(letter.pipeline).or_default() += 1;
            }
            Err(mistake) => {
                wrong.push(format!("{}: {}", mistake.place, mistake.why));
                if mistake.ends || wrong.len() == MOST_TOLD {
                    break;
                }
            }
        }
    }
    if wrong.is_empty() { Ok(summary) } else { Err(wrong) }
}

/// A line that is no dead letter, or a file that cannot be read.
#[derive(Debug)]
pub(super) struct Mistake {
    pub place: String,
    pub why: String,
    /// Nothing more can be read.
    ends: bool,
}

/// The letters of files, one after the other, each with its place.
pub(super) struct Letters {
    waiting: VecDeque<PathBuf>,
    open: Option<(PathBuf, BufReader<File>, u64)>,
    line: Vec<u8>,
}

impl Letters {
    pub fn new(files: &[PathBuf]) -> Self {
        Self { waiting: files.iter().cloned().collect(), open: None, line: Vec::new() }
    }

    /// The next line that is not empty; `None` at the end of the last file.
    fn advance(&mut self) -> io::Result<Option<String>> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.waiting.front() else { return Ok(None) };
                let file = BufReader::new(File::open(path)?);
                self.open = self.waiting.pop_front().map(|path| (path, file, 0));
            }
            let Some((path, file, number)) = &mut self.open else { return Ok(None) };
            self.line.clear();
            if file.read_until(b'\n', &mut self.line)? == 0 {
                self.open = None;
                continue;
            }
            *number += 1;
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(format!("{}:{number}", path.display())));
            }
        }
    }
}

impl Iterator for Letters {
    type Item = Result<(String, Letter), Mistake>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(None) => None,
            Ok(Some(place)) => Some(match serde_json::from_slice(&self.line) {
                Ok(letter) => Ok((place, letter)),
                Err(error) => {
                    // The line is the file's, not the one that the parser counts.
                    let why = error.to_string();
                    let why = why.split(" at line 1 ").next().unwrap_or_default();
                    Err(Mistake { place, why: format!("not a dead letter: {why}"), ends: false })
                }
            }),
            Err(error) => {
                let open = self.open.as_ref().map(|(path, ..)| path).or(self.waiting.front());
                let place = open.map_or_else(String::new, |path| path.display().to_string());
                self.open = None;
                self.waiting.clear();
                Some(Err(Mistake { place, why: error.to_string(), ends: true }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connectors::mns, model::PipelineName};

    const GOOD: &str = r#"{"id":"a","body":"eA==","row":2,"stage":"sink","reason":"r","pipeline":"p","metadata":{"priority":"8","enqueue-time":"2026-11-30T05:33:54.278Z"}}"#;

    #[test]
    fn every_line_that_is_no_letter_is_told_with_its_place_before_anything_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("part-1.json");
        let lines = [
            GOOD,
            "",
            "{\"n\":1}",
            "x",
            &GOOD.replace("eA==", "e"),
            &GOOD.replace("\"sink\"", "\"elsewhere\""),
            &GOOD.replace("\"8\"", "\"high\""),
            &GOOD.replace("\"row\":2,", ""),
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let wrong = check(std::slice::from_ref(&file), mns::METADATA).unwrap_err();
        let told: Vec<_> = wrong.iter().map(|told| told.strip_prefix(&*file.display().to_string()).unwrap()).collect();
        assert_eq!(told.len(), 5, "{told:?}");
        for (told, (line, part)) in told.iter().zip([
            (3, "missing field `id`"),
            (4, "expected value"),
            (5, "body: "),
            (6, "stage: expected `transport`"),
            (7, "metadata `priority`: expected a value of INT"),
        ]) {
            assert!(told.starts_with(&format!(":{line}: ")) && told.contains(part), "{told}");
        }
        fs::write(&file, format!("{GOOD}\n{GOOD}")).unwrap();
        let summary = check(&[file], mns::METADATA).unwrap();
        assert_eq!(summary, Summary { letters: 2, pipelines: BTreeMap::from([("p".to_owned(), 2)]) });
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_its_numbers_and_what_is_left_out_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["part-x-2-1-0.json", "part-x-10-1-0.json", "part-x-2-10-0.json", "notes.txt", ".hidden.json"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at(".queuewarden")).unwrap();
        fs::create_dir(at("sub.json")).unwrap();
        let found = find(&[dir.path().to_owned()]).unwrap();
        assert_eq!(found.files, ["part-x-2-1-0.json", "part-x-2-10-0.json", "part-x-10-1-0.json"].map(at));
        let left_out: Vec<_> = found.left_out.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(left_out, ["notes.txt", "sub.json"].map(at));
        assert_eq!(find(&[at("notes.txt")]).unwrap().files, [at("notes.txt")], "a file that is named is read");
        assert!(find(&[at("nowhere")]).unwrap_err().contains("nowhere"));
        assert_eq!(check(&[], mns::METADATA).unwrap(), Summary::default());
    }

    #[test]
    fn names_of_files_are_never_those_of_the_pipeline_itself() {
        let name = |name| PipelineName::new(name).unwrap();
        let one = super::super::incarnation("0123456789abcdef", &name("a.replay"));
        assert!(one.len() == 16 && one.bytes().all(|b| b.is_ascii_hexdigit()) && one != "0123456789abcdef");
        assert_ne!(one, super::super::incarnation("0123456789abcdef", &name("b.replay")));
    }
}
