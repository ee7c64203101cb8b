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
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.push_str(&format!("# {text}\n"));
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
        let values = values.iter().map(|value| scalar(&escaped(value))).collect();
        self.push(1, key, Value::Sequence(values), (place, place), false);
    }

    fn push(&mut self, depth: usize, key: &str, value: Value, (key_place, value_place): (Span, Span), refers: bool) {
        let start = self.text.len();
        let holds = value != Value::Null;
        let entry: Mapping = [(Value::String(key.to_owned()), value)].into_iter().collect();
        // Writing texts and numbers to memory has no way to fail.
        let written = serde_yaml::to_string(&entry).unwrap_or_else(|error| format!("# {error}\n"));
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

/// A value of a script, whose references stay references. `Err`: a stretch that looks like one and is none.
pub(super) fn with_references(text: &str) -> Result<String, String> {
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
            Some((name, _)) => return Err(format!("${{{name}}}")),
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
        assert_eq!(with_references("a${b-c}"), Err("${b-c}".to_owned()));
    }
}
