//! Bodies to rows.

use simdutf8::compat::from_utf8;

use super::{
    check,
    object::read_object,
    options::{FAIL_ON_MISSING_FIELD, IGNORE_PARSE_ERRORS},
    plan::RowPlan,
    reason::excerpt,
    standard, text,
    value::{Context, Scratch, Settings},
};
use crate::{
    definition::Options,
    formats::{self, Decoded},
    model::{RowsBuilder, Schema},
};

/// Reads a body that is one JSON object into one row.
///
/// - An empty body makes no row and is no error (a tombstone). A byte order mark is skipped. Anything that is not
///   UTF-8 is an error; Jackson would also read UTF-16.
/// - Control characters that stand unescaped in a string are accepted, as Flink does.
/// - What follows the object, which Flink leaves unread, is an error; under `json.ignore-parse-errors` the first
///   object's row is kept and [`Decoded::dropped`] says that something was not.
/// - A null for a NOT NULL column is an error; under `json.ignore-parse-errors` the row is dropped. An inner one
///   takes the enclosing value with it.
/// - [`Decoded::nulled_fields`] counts decimals that are too large too, which are null in every mode.
#[derive(Debug)]
pub struct Decoder {
    plan: RowPlan,
    settings: Settings,
    scratch: Scratch,
}

/// Why a body makes no row.
struct Refused {
    reason: String,
    /// It is the body's own fault, so `json.ignore-parse-errors` covers it.
    ignorable: bool,
    /// It is not JSON, as far as the strict reader knows.
    syntax: bool,
}

/// How often each value is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Once.
    Direct,
    /// Twice, which also reads strings with half a surrogate pair.
    Careful,
    /// The same, in a copy whose control characters are escaped: positions would mislead.
    Escaped,
}

impl Decoder {
    /// A decoder for a table's physical columns. The error says which column JSON cannot hold, or which options
    /// contradict each other.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        if let Some(contradiction) = check(options) {
            return Err(contradiction);
        }
        let settings = Settings {
            fail_on_missing: options.opt_boolean(&FAIL_ON_MISSING_FIELD).unwrap_or(false),
            ignore_errors: options.opt_boolean(&IGNORE_PARSE_ERRORS).unwrap_or(false),
            standard: standard(options),
        };
        Ok(Self { plan: RowPlan::of_schema(schema)?, settings, scratch: Scratch::default() })
    }

    /// Reads a body that is not empty.
    fn row(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, Refused> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let body = from_utf8(body).map_err(|error| Refused::body(format!("not UTF-8: {error}")))?;
        let start = body.trim_start_matches([' ', '\t', '\n', '\r']);
        if !start.starts_with('{') {
            return Err(Refused::body(not_an_object(start)));
        }
        let base = self.plan.fields.first().and_then(|field| rows.columns().get(field.column));
        // Without a physical column nothing is appended, so there is nothing to cut back.
        let base = base.map_or(usize::MAX, |column| column.len());
        match self.attempt(body, Reading::Direct, rows, base) {
            Err(refused) if refused.syntax => match text::escape_controls(body) {
                Some(escaped) => self.attempt(&escaped, Reading::Escaped, rows, base),
                None if body.contains("\\u") => self.attempt(body, Reading::Careful, rows, base),
                None => Err(refused),
            },
            result => result,
        }
    }

    /// Reads a document; on failure nothing is left of it.
    fn attempt(
        &mut self,
        document: &str,
        reading: Reading,
        rows: &mut RowsBuilder,
        base: usize,
    ) -> Result<Decoded, Refused> {
        let mut context = Context { settings: self.settings, nulled: 0, failure: None, scratch: &mut self.scratch };
        let mut de = serde_json::Deserializer::from_str(document);
        let known = if reading == Reading::Direct { document } else { "" };
        let result = read_object(known, &self.plan, rows.columns_mut(), base, &mut context, &mut de);
        let read = Decoded { rows: 1, nulled_fields: context.nulled, ..Decoded::default() };
        let refused = match result.map(|()| de.end()) {
            Ok(Ok(())) => return Ok(read),
            Ok(Err(_)) if self.settings.ignore_errors => return Ok(Decoded { dropped: true, ..read }),
            Ok(Err(error)) => Refused::body(followed(&error)),
            Err(failure) => Refused {
                reason: failure.reason(if reading == Reading::Escaped { "" } else { document }),
                ignorable: failure.is_syntax() || failure.can_be_ignored(),
                syntax: failure.is_syntax(),
            },
        };
        rows.truncate(base);
        Err(refused)
    }
}

impl Refused {
    fn body(reason: String) -> Self {
        Self { reason, ignorable: true, syntax: false }
    }
}

impl formats::Decoder for Decoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        if body.is_empty() {
            return Ok(Decoded::default());
        }
        match self.row(body, rows) {
            Err(refused) if self.settings.ignore_errors && refused.ignorable => {
                Ok(Decoded { rows: 0, dropped: true, ..Decoded::default() })
            }
            result => result.map_err(|refused| refused.reason),
        }
    }
}

fn not_an_object(start: &str) -> String {
    match start.as_bytes().first() {
        None => "not JSON: nothing but blanks".into(),
        Some(b'[') => format!("expected a JSON object, found an array: {}", excerpt(start)),
        Some(_) => format!("expected a JSON object, found {}", excerpt(start)),
    }
}

fn followed(error: &serde_json::Error) -> String {
    format!(
        "more follows after the JSON object, at line {} column {}; a message holds one object",
        error.line(),
        error.column()
    )
}
