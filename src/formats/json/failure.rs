//! Why a body was refused, in words for the operator.

use super::{plan::Node, reason::excerpt, text::literal_length};
use crate::model::ColumnError;

/// Why a value, or the body as a whole, was refused. Put into words only when it is shown: under
/// `json.ignore-parse-errors` most never are.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    cause: Cause<'a>,
    /// From the innermost step outwards.
    path: Vec<Step<'a>>,
}

#[derive(Debug)]
enum Cause<'a> {
    /// A value that is not of the type; its text as it stands in the body.
    Mismatch {
        node: &'a Node,
        found: &'a str,
    },
    Null,
    Missing,
    /// Not JSON.
    Syntax(serde_json::Error),
    Column(ColumnError),
}

#[derive(Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(String),
}

impl<'a> Failure<'a> {
    /// `found` begins with the value that was found.
    pub(super) fn mismatch(node: &'a Node, found: &'a str) -> Self {
        let literal = found.starts_with('"').then(|| found.get(..literal_length(found))).flatten();
        let found = literal.unwrap_or(found);
        Self::new(Cause::Mismatch { node, found })
    }

    pub(super) fn null() -> Self {
        Self::new(Cause::Null)
    }

    pub(super) fn missing() -> Self {
        Self::new(Cause::Missing)
    }

    pub(super) fn syntax(error: serde_json::Error) -> Self {
        Self::new(Cause::Syntax(error))
    }

    fn new(cause: Cause<'a>) -> Self {
        Self { cause, path: Vec::new() }
    }

    pub(super) fn in_field(mut self, name: &'a str) -> Self {
        self.path.push(Step::Field(name));
        self
    }

    pub(super) fn at_index(mut self, index: usize) -> Self {
        self.path.push(Step::Index(index));
        self
    }

    pub(super) fn at_key(mut self, key: &str) -> Self {
        self.path.push(Step::Key(excerpt(key)));
        self
    }

    /// Whether the body is not JSON at all.
    pub(super) fn is_syntax(&self) -> bool {
        matches!(self.cause, Cause::Syntax(_))
    }

    /// Whether ignoring it leaves a readable row: not so when there is no room for one.
    pub(super) fn can_be_ignored(&self) -> bool {
        matches!(self.cause, Cause::Mismatch { .. } | Cause::Null | Cause::Missing)
    }

    /// The reason. Positions are given in `body`, if that is where the found values stand.
    pub(super) fn reason(&self, body: &str) -> String {
        let what = match &self.cause {
            Cause::Mismatch { node, found } => {
                let place = position(body, found).map(|at| format!(" at byte {at}")).unwrap_or_default();
                format!("expected {}, found {}{place}", node.expected, excerpt(found))
            }
            Cause::Null => "null where the schema says NOT NULL".into(),
            Cause::Missing => "the field is missing (json.fail-on-missing-field)".into(),
            Cause::Syntax(error) => return format!("not JSON: {error}"),
            Cause::Column(error) => error.to_string(),
        };
        if self.path.is_empty() { what } else { format!("column {}: {what}", self.path_text()) }
    }

    fn path_text(&self) -> String {
        let mut text = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => text.push_str(&format!(".{name}")),
                Step::Index(index) => text.push_str(&format!("[{index}]")),
                Step::Key(key) => text.push_str(&format!("['{key}']")),
            }
        }
        text
    }
}

impl From<ColumnError> for Failure<'_> {
    fn from(error: ColumnError) -> Self {
        Self::new(Cause::Column(error))
    }
}

/// Where a part stands in the whole it was borrowed from, in bytes; `None` if it was not.
pub(super) fn position(whole: &str, part: &str) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (at + part.len() <= whole.len()).then_some(at)
}
