//! A YAML document with the place of every key and value, and scalars as they were written.
//!
//! Serde-based readers give up at the first error, drop the place of most values and let the last of two equal keys
//! win. Here the parser's events are turned into a tree that keeps all of that, so that every mistake in a file can
//! be told at once. Anchors, aliases and tags are refused: a definition has no use for them, and without them its
//! size is a bound on the work it causes.

use std::{fmt, ops::Range};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as YamlSpan};

use super::diagnostics::{Diagnostic, Report};

/// Deepest nesting that is read; a definition needs four.
const DEEPEST: usize = 32;

/// A stretch of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Line of the first byte, counted from 1.
    pub line: u32,
    /// Column of the first byte, in characters, counted from 1.
    pub column: u32,
}

impl Span {
    /// As a range of bytes.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Something and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The thing.
    pub value: T,
    /// Its place.
    pub span: Span,
}

impl<T> Located<T> {
    /// Joins a thing and its place.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// Another thing at the same place.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Located<U> {
        Located { value: change(self.value), span: self.span }
    }
}

/// A value of a document.
pub type Node = Located<Value>;

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing, `~` or `null`, not quoted.
    Null,
    /// Text, a number or a boolean, as written.
    Scalar(Scalar),
    /// A value that could not be read and has been reported; it counts as given.
    Broken,
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in the order of the file; no key twice.
    Mapping(Vec<Entry>),
}

/// A scalar. Its text may be a secret, so it is not part of what `{:?}` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Scalar {
    /// The text, with quotes and escapes resolved.
    pub text: String,
    /// Whether its value came out of a secrets directory, so that it is shown nowhere.
    pub secret: bool,
    /// Whether something was put in the place of a `${...}`, so that the text no longer stands in the file.
    pub substituted: bool,
    /// Whether nobody knows its value yet and any would do; see `Environment::with_unknowns`.
    pub unknown: bool,
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar")
    }
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Located<String>,
    /// The value.
    pub value: Node,
}

impl Value {
    /// What it is, for a message.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Null | Self::Broken => "nothing",
            Self::Scalar(_) => "a single value",
            Self::Sequence(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

/// What kind of file is read, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// What it holds one of.
    pub one: &'static str,
    /// What its top level is.
    pub top: &'static str,
    /// What to do if it holds two.
    pub split: &'static str,
}

/// A pipeline's definition.
pub(super) const DEFINITION: Kind = Kind {
    one: "definition",
    top: "a mapping with the keys `source` and `sink`",
    split: "give each pipeline a file of its own",
};

/// Reads one document whose top level is a mapping. Mistakes go to `report`; what could be read nevertheless is
/// answered, so that they do not hide others.
pub(super) fn read(text: &str, kind: Kind, report: &mut Report) -> Option<Node> {
    let mut reading = Reading { places: Places::new(text), kind, stack: Vec::new(), root: None, documents: 0 };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                if !reading.take(event, span, report) {
                    break;
                }
            }
            Err(error) => {
                let span = reading.places.at(*error.marker());
                report.push(unreadable(text, span, error.info()));
                // What follows is lost, so "missing" would be said of things that are there.
                return None;
            }
        }
    }
    let root = reading.root;
    match &root {
        None if report.has_errors() => {}
        None => report.push(Diagnostic::error(format!("the file holds no {}", kind.one)).expected(kind.top)),
        Some(node) if !matches!(node.value, Value::Mapping(_)) => {
            report.push(
                Diagnostic::error(format!("found {} at the top level", node.value.describe()))
                    .at(node.span)
                    .expected(kind.top),
            );
            return None;
        }
        Some(_) => {}
    }
    root
}

fn unreadable(text: &str, span: Span, info: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("this is not YAML: {info}")).at(span);
    let line = text.lines().nth(span.line.saturating_sub(1) as usize).unwrap_or_default();
    if line.contains("${") && line.contains('{') {
        diagnostic.help("inside `{ ... }` and `[ ... ]` a value with `${...}` needs quotes: \"${NAME}\"")
    } else if line.trim_start().contains(['*', '&', '@', '`', '%', '!']) {
        diagnostic.help("a value that begins with one of * & ! @ ` % needs quotes")
    } else {
        diagnostic
    }
}

/// Turns the parser's markers, which count characters, into byte positions.
struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, line_starts }
    }

    fn byte(&self, marker: Marker) -> usize {
        let Some(start) = self.line_starts.get(marker.line().saturating_sub(1)) else { return self.text.len() };
        let rest = self.text.get(*start..).unwrap_or_default();
        rest.char_indices().nth(marker.col()).map_or(self.text.len(), |(at, _)| start + at)
    }

    fn at(&self, marker: Marker) -> Span {
        let start = self.byte(marker);
        Span { start, end: start, line: number(marker.line()), column: number(marker.col() + 1) }
    }

    /// The span without what trails it: block scalars end at the next key.
    fn span(&self, span: YamlSpan) -> Span {
        let mut found = self.at(span.start);
        let end = self.byte(span.end).max(found.start);
        let inner = self.text.get(found.start..end).unwrap_or_default();
        found.end = found.start + inner.trim_end().len();
        found
    }
}

fn number(from: usize) -> u32 {
    u32::try_from(from).unwrap_or(u32::MAX)
}

/// A collection that is not closed yet.
enum Open {
    Sequence(Span, Vec<Node>),
    Mapping { span: Span, entries: Vec<Entry>, key: Option<Located<String>>, expects_value: bool },
}

struct Reading<'a> {
    places: Places<'a>,
    kind: Kind,
    stack: Vec<Open>,
    root: Option<Node>,
    documents: u32,
}

impl Reading<'_> {
    /// Takes one event; answers whether to go on.
    fn take(&mut self, event: Event<'_>, yaml_span: YamlSpan, report: &mut Report) -> bool {
        let span = self.places.span(yaml_span);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    report.push(
                        Diagnostic::error("found a second document")
                            .at(span)
                            .expected(format!("one {} per file", self.kind.one))
                            .help(self.kind.split),
                    );
                    return false;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_extras(span, anchor, tag.is_some(), report);
                let null = style == ScalarStyle::Plain && is_null(&text);
                let scalar = Scalar { text: text.into_owned(), secret: false, substituted: false, unknown: false };
                let text = scalar.text.clone();
                let value = if null { Value::Null } else { Value::Scalar(scalar) };
                self.place(span, text, value, report);
            }
            Event::Alias(_) => {
                refuse_extras(span, 1, false, report);
                self.place(span, String::new(), Value::Broken, report);
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_extras(span, anchor, tag.is_some(), report);
                return self.open(Open::Sequence(span, Vec::new()), span, report);
            }
            Event::MappingStart(anchor, tag) => {
                refuse_extras(span, anchor, tag.is_some(), report);
                let open = Open::Mapping { span, entries: Vec::new(), key: None, expects_value: false };
                return self.open(open, span, report);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span, report),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        true
    }

    fn open(&mut self, open: Open, span: Span, report: &mut Report) -> bool {
        if self.stack.len() >= DEEPEST {
            report.push(Diagnostic::error(format!("nested deeper than {DEEPEST} levels")).at(span));
            self.root = None;
            return false;
        }
        self.stack.push(open);
        true
    }

    fn close(&mut self, end: Span, report: &mut Report) {
        let node = match self.stack.pop() {
            Some(Open::Sequence(span, items)) => Located::new(Value::Sequence(items), until(span, end)),
            Some(Open::Mapping { span, entries, .. }) => Located::new(Value::Mapping(entries), until(span, end)),
            None => return,
        };
        self.add(node, report);
    }

    /// Takes a scalar: a key where one is due, else a value.
    fn place(&mut self, span: Span, text: String, value: Value, report: &mut Report) {
        if let Some(Open::Mapping { key, expects_value: expects_value @ false, .. }) = self.stack.last_mut() {
            report.show(span);
            *key = Some(Located::new(text, span));
            *expects_value = true;
        } else {
            self.add(Located::new(value, span), report);
        }
    }

    fn add(&mut self, node: Node, report: &mut Report) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence(_, items)) => items.push(node),
            Some(Open::Mapping { expects_value: expects_value @ false, .. }) => {
                report.push(
                    Diagnostic::error(format!("found {} as a key", node.value.describe()))
                        .at(node.span)
                        .expected("a name"),
                );
                *expects_value = true;
            }
            Some(Open::Mapping { entries, key, expects_value, .. }) => {
                *expects_value = false;
                let Some(key) = key.take() else { return };
                if let Some(first) = entries.iter().find(|entry| entry.key.value == key.value) {
                    report.push(
                        Diagnostic::error(format!("the key `{}` is given twice", key.value))
                            .at(key.span)
                            .help(format!("it is first given in line {}; keep one", first.key.span.line)),
                    );
                } else {
                    // An empty value is marked where the next thing stands, which helps nobody.
                    let mut node = node;
                    if node.value == Value::Null && !is_null_word(report.written(node.span)) {
                        node.span = key.span;
                    }
                    entries.push(Entry { key, value: node });
                }
            }
        }
    }
}

fn until(mut span: Span, end: Span) -> Span {
    span.end = span.end.max(end.end);
    span
}

/// What the core schema of YAML reads as null; a definition means "not given" by it.
fn is_null(text: &str) -> bool {
    text.is_empty() || is_null_word(text)
}

fn is_null_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= "null".len() && matches!(serde_yaml::from_str(text), Ok(serde_yaml::Value::Null))
}

fn refuse_extras(span: Span, anchor: usize, tag: bool, report: &mut Report) {
    if anchor != 0 {
        report.push(
            Diagnostic::error("found an anchor or alias (`&name`, `*name`)").at(span).expected("the value written out"),
        );
    }
    if tag {
        report.push(Diagnostic::error("found a tag (`!name`)").at(span).expected("the plain value"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (Option<Node>, Vec<String>) {
        let mut report = Report::new("a.yaml", text);
        let node = read(text, DEFINITION, &mut report);
        let told = report.render(crate::definition::Style::Line).lines().map(str::to_owned).collect();
        (node, told)
    }

    fn entries(node: &Node) -> &[Entry] {
        match &node.value {
            Value::Mapping(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_key_and_value_knows_its_place_also_after_wide_characters() {
        let (node, told) = read_all("é: ü\nsource:\n  a: \"x\" # c\n  b: {c: 'd'}\n");
        assert_eq!(told, [""; 0]);
        let node = node.unwrap();
        let [first, source] = entries(&node) else { panic!() };
        assert_eq!((first.value.span.line, first.value.span.column), (1, 4));
        assert_eq!((first.value.span.start, first.value.span.end), (4, 6));
        let [a, b] = entries(&source.value) else { panic!() };
        assert_eq!((a.key.span.line, a.key.span.column), (3, 3));
        assert_eq!((a.value.span.line, a.value.span.column), (3, 6));
        assert_eq!(entries(&b.value)[0].value.span.column, 10);
    }

    #[test]
    fn scalars_are_kept_as_written_and_only_plain_nulls_are_null() {
        let (node, _) = read_all("a: 010\nb: yes\nc: ~\nd:\ne: 'null'\nf: NULL\ng: ''\nh: 1.50\n");
        let node = node.unwrap();
        let texts: Vec<_> = entries(&node)
            .iter()
            .map(|entry| match &entry.value.value {
                Value::Scalar(scalar) => scalar.text.as_str(),
                Value::Null => "(null)",
                other => other.describe(),
            })
            .collect();
        assert_eq!(texts, ["010", "yes", "(null)", "(null)", "null", "(null)", "", "1.50"]);
    }

    #[test]
    fn an_empty_value_is_placed_at_its_key() {
        let (node, _) = read_all("a:\n\nb: {c , d: 1}\ne: ~\n");
        let node = node.unwrap();
        let [a, b, e] = entries(&node) else { panic!() };
        assert_eq!((a.value.span, entries(&b.value)[0].value.span.column), (a.key.span, 5));
        assert_eq!(e.value.span.column, 4);
    }

    #[test]
    fn every_duplicate_key_is_told_and_the_first_is_kept() {
        let (node, told) = read_all("a: 1\na: 2\nb: {c: 1, c: 2}\na: [3]\n");
        assert_eq!(
            told,
            [
                "a.yaml:2:1: error: the key `a` is given twice; it is first given in line 1; keep one",
                "a.yaml:3:11: error: the key `c` is given twice; it is first given in line 3; keep one",
                "a.yaml:4:1: error: the key `a` is given twice; it is first given in line 1; keep one",
            ]
        );
        let node = node.unwrap();
        assert!(matches!(&entries(&node)[0].value.value, Value::Scalar(scalar) if scalar.text == "1"));
    }

    #[test]
    fn a_second_document_is_told() {
        let (_, told) = read_all("a: 1\n---\nb: 2\n");
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("a.yaml:2:1: error: found a second document"), "{told:?}");
        assert_eq!(read_all("---\na: 1\n...\n").1, [""; 0]);
    }

    #[test]
    fn anchors_aliases_and_tags_are_told() {
        let (_, told) = read_all("a: &x 1\nb: *x\nc: !!str 1\n? [d]\n: 1\n");
        let places: Vec<_> = told.iter().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["a.yaml:1:7", "a.yaml:2:4", "a.yaml:3:10", "a.yaml:4:3"]);
    }

    #[test]
    fn what_is_no_mapping_is_told() {
        for (text, place) in
            [("", "a.yaml: "), ("# nothing\n", "a.yaml: "), ("- a\n", "a.yaml:1:1"), ("a", "a.yaml:1:1")]
        {
            let (_, told) = read_all(text);
            assert_eq!(told.len(), 1, "{text}: {told:?}");
            assert!(told[0].starts_with(place), "{told:?}");
        }
    }

    #[test]
    fn broken_yaml_has_a_place_and_a_hint() {
        let (node, told) = read_all("a: 1\nb: {c: ${X}}\n");
        assert!(node.is_none());
        assert!(told[0].starts_with("a.yaml:2:9: error: this is not YAML"), "{told:?}");
        assert!(told[0].contains("needs quotes"), "{told:?}");
    }

    #[test]
    fn depth_is_bounded() {
        let (_, told) = read_all(&"- ".repeat(100));
        assert!(told[0].contains("nested deeper"), "{told:?}");
        for opening in ["[", "{a: ", "- ", "? "] {
            let (node, told) = read_all(&opening.repeat(100_000));
            assert!(node.is_none() && told.len() == 1, "{opening}");
        }
    }

    #[test]
    fn the_tree_agrees_with_serde_yaml() {
        fn plain(node: &Node) -> serde_yaml::Value {
            match &node.value {
                Value::Null | Value::Broken => serde_yaml::Value::Null,
                Value::Scalar(scalar) => serde_yaml::Value::String(scalar.text.clone()),
                Value::Sequence(items) => items.iter().map(plain).collect(),
                Value::Mapping(entries) => serde_yaml::Value::Mapping(
                    entries.iter().map(|e| (e.key.value.clone().into(), plain(&e.value))).collect(),
                ),
            }
        }
        let text =
            "a: 'it''s'\nb: \"x\\ty\"\nc: |\n  one\n  two\nd: >\n  one\n  two\ne: [p, {q: r}]\nf: ~\ng: a\n  b\n";
        let (node, _) = read_all(text);
        assert_eq!(plain(&node.unwrap()), serde_yaml::from_str::<serde_yaml::Value>(text).unwrap());
    }
}
