//! A definition as it is written, and where in the script each of its lines comes from.

use std::ops::Range;

use serde_yaml::{Mapping, Value};

use crate::definition::{Span, is_reference};

/// A definition that grows.
#[derive(Debug, Default)]
pub(super) struct Yaml {
    pub text: String,
    origins: Vec<Origin>,
}

/// Where some lines come from.
#[derive(Debug)]
struct Origin {
    lines: Range<usize>,
    /// Where in the definition the value begins.
    value_at: usize,
    key: Span,
    value: Span,
    /// Whether the value refers to a variable, so that nobody knows it yet.
    refers: bool,
}

/// Where something of a definition comes from.
pub(super) struct Found {
    pub place: Span,
    /// Whether it is a value that is not known yet.
    pub unknown: bool,
}

impl Yaml {
    /// A comment of one line.
    pub(super) fn comment(&mut self, text: &str) {
        self.text.push_str(&format!("# {}\n", in_one_line(text)));
    }

    /// A key that holds what follows it.
    pub(super) fn section(&mut self, depth: usize, key: &str, place: Span) {
        self.push(depth, key, Value::Null, (place, place), false);
    }

    /// A key and a text.
    pub(super) fn entry(&mut self, depth: usize, key: &str, value: &str, places: (Span, Span)) {
        self.push(depth, key, scalar(value), places, refers(value));
    }

    /// A key and texts.
    pub(super) fn list(&mut self, key: &str, values: &[&str], place: Span) {
        let values = values.iter().map(|value| Value::String(escaped(value))).collect();
        self.push(1, key, Value::Sequence(values), (place, place), false);
    }

    fn push(&mut self, depth: usize, key: &str, value: Value, (key_place, value_place): (Span, Span), refers: bool) {
        let start = self.text.len();
        let holds = value != Value::Null;
        let entry: Mapping = [(Value::String(key.to_owned()), value)].into_iter().collect();
        let written = written(&entry);
        let written = if holds { written } else { written.replacen(" null\n", "\n", 1) };
        let indent = "  ".repeat(depth);
        for line in written.split_inclusive('\n') {
            self.text.push_str(if line.trim().is_empty() { "" } else { &indent });
            self.text.push_str(line);
        }
        let key_length = key.len().min(written.len());
        self.origins.push(Origin {
            lines: start..self.text.len(),
            value_at: start + indent.len() + key_length,
            key: key_place,
            value: value_place,
            refers,
        });
    }

    /// Where in the script a place of the definition comes from.
    pub(super) fn origin(&self, at: usize) -> Option<Found> {
        let origin = self.origins.iter().find(|origin| origin.lines.contains(&at))?;
        let in_value = at >= origin.value_at;
        Some(Found { place: if in_value { origin.value } else { origin.key }, unknown: in_value && origin.refers })
    }
}

/// Characters that end a line for some readers of YAML: `serde_yaml` writes them as they are and indents what follows,
/// which changes the text.
pub(super) const fn ends_line(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A text for a comment of one line.
pub(super) fn in_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || ends_line(c) { ' ' } else { c }).collect()
}

fn written(entry: &Mapping) -> String {
    // Writing texts and numbers to memory has no way to fail.
    let text = serde_yaml::to_string(entry).unwrap_or_else(|error| format!("# {error}\n"));
    if !text.contains(ends_line) {
        return text;
    }
    let one = |value: &Value| match (serde_yaml::to_string(value).unwrap_or_default().trim_end(), value) {
        (written, Value::String(text)) if written.contains(|c| c == '\n' || ends_line(c)) => quoted(text),
        (written, _) => written.to_owned(),
    };
    let pair = |(key, value): (&Value, &Value)| match value {
        Value::Sequence(values) => {
            let values: String = values.iter().map(|value| format!("- {}\n", one(value))).collect();
            format!("{}:\n{values}", one(key))
        }
        value => format!("{}: {}\n", one(key), one(value)),
    };
    entry.iter().map(pair).collect()
}

/// A text in double quotes, in one line.
fn quoted(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            c if c.is_control() || ends_line(c) => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

/// A number or a boolean where the text is just how one is written, for a person's eyes; else a text.
fn scalar(text: &str) -> Value {
    let parsed =
        serde_yaml::from_str::<Value>(text).ok().filter(|value| matches!(value, Value::Number(_) | Value::Bool(_)));
    let same = |value: &Value| serde_yaml::to_string(value).is_ok_and(|written| written.trim_end() == text);
    parsed.filter(same).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A text in which a dollar sign is just that.
pub(super) fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

/// A value of a script, whose references stay references. `Err`: a stretch looks like one and is none.
pub(super) fn with_references(text: &str) -> Result<String, ()> {
    let (mut written, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        written.push_str(before);
        let reference = from.strip_prefix("${").and_then(|inner| inner.split_once('}'));
        match reference {
            Some((name, after)) if is_reference(name) => {
                written.push_str(&format!("${{{name}}}"));
                rest = after;
            }
            Some(_) => return Err(()),
            None => {
                written.push_str("$$");
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    Ok(written + rest)
}

/// Whether a value of a definition has a reference in it.
fn refers(value: &str) -> bool {
    value.replace("$$", "").contains("${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_and_other_dollar_signs_are_escaped() {
        for (text, expected) in [
            ("${secret_values.ak_id}", "${secret_values.ak_id}"),
            ("x${A}y${B:-c}", "x${A}y${B:-c}"),
            ("5$", "5$$"),
            ("$$", "$$$$"),
            ("${A", "$${A"),
            ("<yourTopic>", "<yourTopic>"),
        ] {
            assert_eq!(with_references(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(with_references("a${b-c}"), Err(()));
    }

    #[test]
    fn what_ends_a_line_for_some_readers_is_written_with_escapes() {
        let place = Span::default();
        for odd in ['\u{85}', '\u{2028}', '\u{2029}'] {
            let texts = [format!("a{odd}b"), format!("{odd}"), format!("x: \"{odd}\\\n  y{odd}{odd} # z")];
            let mut yaml = Yaml::default();
            yaml.comment(&format!("a{odd}evil: b"));
            yaml.section(0, "top", place);
            for (number, text) in texts.iter().enumerate() {
                yaml.entry(1, &format!("{number}{text}"), text, (place, place));
                yaml.section(1, &format!("s{number}{text}"), place);
            }
            yaml.list("list", &["a", &texts[2]], place);
            assert!(!yaml.text.contains(ends_line), "{}", yaml.text);
            let read: Value = serde_yaml::from_str(&yaml.text).unwrap();
            for (number, text) in texts.iter().enumerate() {
                assert_eq!(read["top"][format!("{number}{text}")].as_str(), Some(text.as_str()), "{}", yaml.text);
                assert!(read["top"][format!("s{number}{text}")].is_null(), "{}", yaml.text);
            }
            assert_eq!(read["top"]["list"][1].as_str(), Some(texts[2].as_str()), "{}", yaml.text);
            let node = crate::definition::written(&yaml.text).unwrap();
            let shown = format!("{node:?}");
            assert!(!shown.contains("evil"), "{shown}");
        }
    }
}
