//! `NAME.test.yaml`: what a definition should make of given messages.
//!
//! ```yaml
//! cases:
//!   - name: an order becomes a row
//!     messages:
//!       - text: '{"id": 1, "amount": "2.50"}'
//!         metadata: { message-id: a }
//!     rows:
//!       - { id: 1, amount: 2.50 }
//! ```
//!
//! Read with the same care as a definition. What the values of columns mean depends on the schema, so they are kept
//! as they are written.

use std::path::{Path, PathBuf};

use super::{
    check::{Checked, Keys, Section, check_keys, check_table},
    diagnostics::{Diagnostic, Report},
    endpoint::word,
    loading::read_text,
    located::{self, Entry, Kind, Located, Node, Span, Value},
    options::{OptionKind, OptionSpec, OptionTable},
};

const KIND: Kind = Kind {
    one: "test",
    top: "a mapping with the key `cases`",
    split: "write every case into the list `cases` of the first",
};

const fn count(min: i64) -> OptionKind {
    OptionKind::Integer { min, max: u32::MAX as i64 }
}

static NAME: OptionSpec = OptionSpec::new("name", OptionKind::Text, "What the case is called.");
static GENERATE: OptionSpec = OptionSpec::new("generate", count(1), "Rows to take from a source that makes them up.");
static ERROR: OptionSpec = OptionSpec::new("error", OptionKind::Text, "A part of the fault the pipeline fails with.");
static IGNORED: OptionSpec = OptionSpec::new("ignored", count(0), "Messages without a row and without an error.");
static NULLED: OptionSpec = OptionSpec::new("nulled_fields", count(0), "Fields set to null.");
static UNREAD: OptionSpec = OptionSpec::new("unread", count(0), "Parts left unread.");
static CASE: OptionTable =
    OptionTable { name: "case", options: &[&NAME, &GENERATE, &ERROR, &IGNORED, &NULLED, &UNREAD] };
static MESSAGE: OptionSpec = OptionSpec::new("message", count(1), "Which one, from 1.").required();
static REASON: OptionSpec = OptionSpec::new("reason", OptionKind::Text, "A part of the reason.").required();
static REJECT: OptionTable = OptionTable { name: "reject", options: &[&MESSAGE, &REASON] };

/// A file of cases; what is wrong with it is in its report.
#[derive(Debug)]
pub struct TestFile {
    /// The cases that could be read.
    pub cases: Vec<Case>,
    /// What is wrong. The values are not secret, so all of the file may be shown.
    pub report: Report,
}

/// What goes in, and what should come out.
#[derive(Debug)]
pub struct Case {
    /// Its name, or its number.
    pub name: String,
    /// Where it begins.
    pub place: Span,
    /// What goes in.
    pub input: Input,
    /// The rows the sink should get, in order: columns and values.
    pub rows: Vec<Located<Vec<Entry>>>,
    /// The bodies and rows that should be refused, in the order of their messages.
    pub rejects: Vec<ExpectedReject>,
    /// A part of the fault that the pipeline should fail with.
    pub error: Option<Located<String>>,
    /// Messages that should make no row and no error.
    pub ignored: u64,
    /// Fields that should be set to null because they cannot be read.
    pub nulled_fields: u64,
    /// Parts that should be left unread.
    pub unread: u64,
}

/// What goes in.
#[derive(Debug)]
pub enum Input {
    /// Messages of a queue.
    Messages(Vec<TestMessage>, Span),
    /// So many rows of a source that makes them up.
    Generate(Located<u64>),
}

/// One message.
#[derive(Debug)]
pub struct TestMessage {
    /// Its body.
    pub body: Located<Content>,
    /// Values of metadata columns.
    pub metadata: Vec<Entry>,
}

/// A body.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// Written in the file.
    Text(String),
    /// Written in the file, in base64.
    Base64(String),
    /// In a file of its own, beside the test.
    File(PathBuf),
    /// Written in the file, as the service delivers it: in base64, or in the envelope of a topic.
    Received(String),
}

/// A body, or a row of one, that should be refused.
#[derive(Debug)]
pub struct ExpectedReject {
    /// Which message it is or is of, from 1.
    pub message: u64,
    /// A part of the reason.
    pub reason: String,
}

/// Reads a file of cases.
pub fn read_test(file: &Path) -> TestFile {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(diagnostic) => {
            let mut report = Report::new(file, "");
            report.push(*diagnostic);
            return TestFile { cases: Vec::new(), report };
        }
    };
    let mut report = Report::new(file, text.as_str());
    report.show(Span { start: 0, end: text.len(), line: 1, column: 1 });
    let cases = located::read(&text, KIND, &mut report).map(|root| cases(&root, &mut report));
    TestFile { cases: cases.unwrap_or_default(), report }
}

fn cases(root: &Node, report: &mut Report) -> Vec<Case> {
    let Value::Mapping(entries) = &root.value else { return Vec::new() };
    let begin = entries.first().map_or(root.span, |entry| entry.key.span);
    let top = Section { name: "the test", key: Some(begin), entries };
    let meant = check_keys(top, &keys(&["cases"], &[]), report);
    let Some(list) = top.get("cases") else {
        if meant.is_empty() {
            report.push(Diagnostic::error("`cases` is missing").at(begin).expected("`cases:` with a list of cases"));
        }
        return Vec::new();
    };
    let list = sequence(list, "a list of cases", report);
    list.iter().enumerate().filter_map(|(at, node)| case(at + 1, node, report)).collect()
}

fn keys<'a>(words: &'a [&'static str], tables: &'a [&'static OptionTable]) -> Keys<'a> {
    Keys { words, tables, columns: None, elsewhere: &|_| None }
}

/// The items of a list; anything else is told.
fn sequence<'a>(entry: &'a Entry, expected: &str, report: &mut Report) -> &'a [Node] {
    match &entry.value.value {
        Value::Sequence(items) => items,
        Value::Broken => &[],
        other => {
            let message = format!("`{}` holds {}", entry.key.value, other.describe());
            report.push(Diagnostic::error(message).at(entry.value.span).expected(expected));
            &[]
        }
    }
}

/// The entries of a mapping; anything else is told.
fn mapping<'a>(node: &'a Node, what: &str, expected: &str, report: &mut Report) -> Option<&'a [Entry]> {
    match &node.value {
        Value::Mapping(entries) => Some(entries),
        Value::Broken => None,
        other => {
            let message = format!("{what} is {}", other.describe());
            report.push(Diagnostic::error(message).at(node.span).expected(expected));
            None
        }
    }
}

/// A mapping of options and words, checked.
fn section<'a>(
    node: &'a Node,
    name: &'a str,
    words: &[&'static str],
    table: &'static OptionTable,
    report: &mut Report,
) -> Option<(Section<'a>, Checked)> {
    let entries = mapping(node, name, "a mapping", report)?;
    let section = Section { name, key: Some(entries.first().map_or(node.span, |entry| entry.key.span)), entries };
    let meant = check_keys(section, &keys(words, &[table]), report);
    let checked = check_table(table, section, &meant, report);
    Some((section, checked))
}

fn case(number: usize, node: &Node, report: &mut Report) -> Option<Case> {
    let name = format!("case {number}");
    let (section, own) = section(node, &name, &["messages", "rows", "rejects"], &CASE, report)?;
    let place = section.key.unwrap_or(node.span);
    let counted = |spec| own.options.opt_integer(spec).and_then(|count| u64::try_from(count).ok());
    let place_of = |spec: &OptionSpec| own.places.get(spec.name).copied();
    let generate = counted(&GENERATE).zip(place_of(&GENERATE)).map(|(count, span)| Located::new(count, span));
    let messages = section.get("messages");
    let input = match (messages, generate) {
        (Some(entry), None) => Input::Messages(read_messages(entry, report), entry.key.span),
        (None, Some(count)) => Input::Generate(count),
        (messages, _) => {
            let message = match messages {
                Some(_) => format!("`{name}` has both `messages` and `generate`"),
                None => format!("`{name}` has nothing that goes in"),
            };
            let expected = "`messages:`, or `generate:` where the source makes rows up";
            report.push(Diagnostic::error(message).at(place).expected(expected));
            return None;
        }
    };
    let of = |key: &str| section.get(key);
    let rows = of("rows").map(|entry| read_rows(entry, report)).unwrap_or_default();
    let rejects = of("rejects").map(|entry| read_rejects(entry, report)).unwrap_or_default();
    let error = own.options.opt_text(&ERROR).map(str::to_owned).zip(place_of(&ERROR));
    Some(Case {
        name: own.options.opt_text(&NAME).map_or(name.clone(), str::to_owned),
        place,
        input,
        rows,
        rejects,
        error: error.map(|(text, span)| Located::new(text, span)),
        ignored: counted(&IGNORED).unwrap_or(0),
        nulled_fields: counted(&NULLED).unwrap_or(0),
        unread: counted(&UNREAD).unwrap_or(0),
    })
}

fn read_messages(entry: &Entry, report: &mut Report) -> Vec<TestMessage> {
    let list = sequence(entry, "a list of messages, such as `- text: ...`", report);
    list.iter().enumerate().filter_map(|(at, node)| read_message(at + 1, node, report)).collect()
}

fn read_message(number: usize, node: &Node, report: &mut Report) -> Option<TestMessage> {
    const BODIES: [&str; 4] = ["text", "base64", "file", "received"];
    static NONE: OptionTable = OptionTable { name: "message", options: &[] };
    let name = format!("message {number}");
    let (section, _) = section(node, &name, &["text", "base64", "file", "received", "metadata"], &NONE, report)?;
    let given: Vec<_> = section.entries.iter().filter(|entry| BODIES.contains(&entry.key.value.as_str())).collect();
    let metadata = match section.get("metadata") {
        Some(entry) => mapping(&entry.value, "`metadata`", "a mapping of metadata keys", report)?.to_vec(),
        None => Vec::new(),
    };
    let [body] = given[..] else {
        let message = format!("`{name}` has {} bodies", given.len());
        let place = section.key.unwrap_or(node.span);
        report.push(Diagnostic::error(message).at(place).expected("one of `text`, `base64`, `file` and `received`"));
        return None;
    };
    let text = word(body, "a body", report)?;
    let body = text.map(|text| match body.key.value.as_str() {
        "text" => Content::Text(text),
        "base64" => Content::Base64(text),
        "received" => Content::Received(text),
        _ => Content::File(PathBuf::from(text)),
    });
    Some(TestMessage { body, metadata })
}

fn read_rows(entry: &Entry, report: &mut Report) -> Vec<Located<Vec<Entry>>> {
    let list = sequence(entry, "a list of rows, such as `- { id: 1 }`", report);
    let row = |(at, node): (usize, &Node)| {
        let entries = mapping(node, &format!("row {}", at + 1), "a mapping of columns", report)?;
        Some(Located::new(entries.to_vec(), node.span))
    };
    list.iter().enumerate().filter_map(row).collect()
}

fn read_rejects(entry: &Entry, report: &mut Report) -> Vec<ExpectedReject> {
    let list = sequence(entry, "a list such as `- { message: 1, reason: part of it }`", report);
    let refusal = |(at, node): (usize, &Node)| {
        let name = format!("reject {}", at + 1);
        let (_, checked) = section(node, &name, &[], &REJECT, report)?;
        let message = checked.options.opt_integer(&MESSAGE).and_then(|number| u64::try_from(number).ok())?;
        Some(ExpectedReject { message, reason: checked.options.opt_text(&REASON)?.to_owned() })
    };
    list.iter().enumerate().filter_map(refusal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Style;

    fn read(text: &str) -> TestFile {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.test.yaml");
        std::fs::write(&file, text).unwrap();
        read_test(&file)
    }

    fn told(text: &str) -> Vec<String> {
        let lines = read(text).report.render(Style::Line);
        lines.lines().map(|line| line.split_once("a.test.yaml:").unwrap().1.trim_start().to_owned()).collect()
    }

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let file = read(
            "cases:\n  - name: one\n    messages: [{text: ''}, {base64: AA==}, {file: b/c.json, metadata: {a: 1}}]\n    \
             rows: [{id: 1}, {}]\n    rejects: [{message: 2, reason: why}]\n    ignored: 1\n  - generate: 3\n",
        );
        assert_eq!(file.report.render(Style::Line), "");
        let [one, two] = &file.cases[..] else { panic!("{file:?}") };
        let Input::Messages(messages, _) = &one.input else { panic!() };
        let bodies: Vec<_> = messages.iter().map(|message| &message.body.value).collect();
        let expected = [Content::Text(String::new()), Content::Base64("AA==".into()), Content::File("b/c.json".into())];
        assert_eq!(bodies, expected.iter().collect::<Vec<_>>());
        assert_eq!((one.name.as_str(), one.rows.len(), one.ignored), ("one", 2, 1));
        assert_eq!((one.rejects[0].message, one.rejects[0].reason.as_str()), (2, "why"));
        assert_eq!(two.name, "case 2");
    }

    #[test]
    fn every_mistake_is_told_at_its_place_with_the_nearest_name() {
        let all = told(
            "cases:\n  - nam: a\n    generate: 1\n  - rows: []\n  - messages: [{txt: x}]\n  - messages: [{text: x, file: y}]\n  \
             - generate: 0\n  - generate: 1\n    rows: {id: 1}\n    rejects: [{message: 0, reason: x}, {message: 1}]\n",
        );
        let expected = [
            "2:5: error: `case 1` has no option `nam`; did you mean `name`?",
            "4:5: error: `case 2` has nothing that goes in; expected `messages:`, or `generate:` where the source makes \
             rows up",
            "5:17: error: `message 1` has 0 bodies; expected one of `text`, `base64`, `file` and `received`",
            "5:17: error: `message 1` has no option `txt`; did you mean `text`?",
            "6:17: error: `message 1` has 2 bodies; expected one of `text`, `base64`, `file` and `received`",
        ];
        for line in expected {
            assert!(all.contains(&line.to_owned()), "{line}\n{all:#?}");
        }
        for part in ["`generate` is `0`", "`rows` holds a mapping", "`message` is `0`", "`reason` is missing"] {
            assert!(all.iter().any(|line| line.contains(part)), "{part}\n{all:#?}");
        }
        assert_eq!(told("case: []\n")[0], "1:1: error: `the test` has no option `case`; did you mean `cases`?");
        assert_eq!(told("")[0], "error: the file holds no test; expected a mapping with the key `cases`");
    }
}
