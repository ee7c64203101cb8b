//! Bodies to rows.

use simdutf8::compat::from_utf8;

use super::{
    dialect::Dialect,
    failure::{Cause, Failure},
    options::{self, LINE_DELIMITER},
    plan::{self, ColumnPlan},
    record::Record,
    value::Values,
};
use crate::{
    definition::Options,
    formats::{self, Decoded, number},
    model::{RowsBuilder, Schema},
};

/// Reads a body that is one row of CSV, or any number of them with `csv.line-delimiter`.
///
/// - A body must be UTF-8. A byte order mark is skipped. A body without a row, as an empty one, is an error.
/// - What follows the first row, which Flink leaves unread, is an error without `csv.line-delimiter`, unless it is
///   nothing but line ends and comments. Under `csv.ignore-parse-errors` the first row is kept and
///   [`Decoded::dropped`] says that something was not.
/// - One field more than there are columns, if it is blank, is a delimiter at the end of the row, and no error.
/// - A null for a NOT NULL column is an error; under `csv.ignore-parse-errors` the row is dropped.
/// - [`Decoded::nulled_fields`] counts decimals that are too large too, which are null in every mode, and fields
///   that a row lacks. Of several rows dropped, [`Decoded::unread`] counts those after the first.
#[derive(Debug)]
pub struct Decoder {
    columns: Vec<ColumnPlan>,
    dialect: Dialect,
    values: Values,
    many: bool,
    record: Record,
}

impl Decoder {
    /// A decoder for a table's physical columns. The error says which column CSV cannot hold, or which options
    /// contradict each other.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        if let Some((contradiction, _)) = options::check(options) {
            return Err(contradiction);
        }
        Ok(Self {
            columns: plan::columns(schema).map_err(|unfit| unfit.to_string())?,
            dialect: Dialect::new(options),
            values: Values::new(options),
            many: options.has(&LINE_DELIMITER),
            record: Record::default(),
        })
    }

    /// Reads a whole body. On failure, rows may be left.
    fn body(&mut self, body: &str, rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let mut decoded = Decoded::default();
        let mut dropped = 0;
        let mut at = self.dialect.skip_comments(body.as_bytes(), 0);
        while at < body.len() {
            if self.many
                && self.columns.len() > 1
                && let Some(next) = self.dialect.row_end(body.as_bytes(), at)
            {
                at = self.dialect.skip_comments(body.as_bytes(), next);
                continue;
            }
            let (next, kept) = self.next_row(body, at, rows).map_err(|reason| match self.many {
                true => format!("row {}: {reason}", decoded.rows + dropped + 1),
                false => reason,
            })?;
            at = self.dialect.skip_comments(body.as_bytes(), next);
            match kept {
                Some(nulled) => {
                    decoded.rows += 1;
                    decoded.nulled_fields += nulled;
                }
                None => dropped += 1,
            }
            if !self.many {
                dropped += self.rest(body, at)?;
                at = body.len();
            }
        }
        if decoded.rows == 0 && dropped == 0 {
            self.ignorable("no row in the body".into())?;
            dropped = 1;
        }
        decoded.unread = dropped.saturating_sub(1) + std::mem::take(&mut self.values.left_out);
        Ok(Decoded { dropped: dropped > 0, ..decoded })
    }

    /// Reads the row at a byte: where the next begins, and how many fields are null because they cannot be read;
    /// `None` if the row is dropped.
    fn next_row(&mut self, body: &str, at: usize, rows: &mut RowsBuilder) -> Result<(usize, Option<u32>), String> {
        let next = match self.dialect.read(body, at, &mut self.record) {
            Ok(next) => next,
            Err(broken) => {
                self.ignorable(broken.reason)?;
                return Ok((self.dialect.skip_row(body.as_bytes(), broken.at), None));
            }
        };
        let before = self.length(rows);
        let left_out = self.values.left_out;
        self.values.nulled = 0;
        match fill(&self.columns, &self.record, body, &mut self.values, rows) {
            Ok(()) => Ok((next, Some(self.values.nulled))),
            Err(failure) if self.values.ignore_errors && failure.can_be_ignored() => {
                self.values.left_out = left_out;
                rows.truncate(before);
                Ok((next, None))
            }
            Err(failure) => Err(failure.reason()),
        }
    }

    /// How many things follow the only row of a body.
    fn rest(&self, body: &str, at: usize) -> Result<u32, String> {
        let rest = self.dialect.skip_empty_lines(body.as_bytes(), at);
        if rest == body.len() {
            return Ok(0);
        }
        let reason = format!(
            "more follows after the first row, at byte {at}; a message holds one row, or several with {}",
            LINE_DELIMITER.name
        );
        self.ignorable(reason).map(|()| 1)
    }

    /// An error, unless errors are ignored.
    fn ignorable(&self, reason: String) -> Result<(), String> {
        if self.values.ignore_errors { Ok(()) } else { Err(reason) }
    }

    /// How long every physical column is.
    fn length(&self, rows: &RowsBuilder) -> usize {
        // Without a physical column nothing is appended, so there is nothing to cut back.
        let first = self.columns.first().and_then(|column| rows.columns().get(column.column));
        first.map_or(usize::MAX, |column| column.len())
    }
}

/// Appends one row. On failure, part of it may be left.
fn fill<'a>(
    columns: &'a [ColumnPlan],
    record: &'a Record,
    body: &'a str,
    values: &mut Values,
    rows: &mut RowsBuilder,
) -> Result<(), Failure<'a>> {
    let blank_at_end = |index| record.get(body, index).is_some_and(|field| number::trim(field).is_empty());
    let (expected, found) = (columns.len(), record.len());
    let too_many = found > expected && !(found == expected + 1 && blank_at_end(expected));
    if too_many || (found < expected && !values.ignore_errors) {
        return Err(Failure::new(Cause::Length { expected, found }));
    }
    for (index, plan) in columns.iter().enumerate() {
        let Some(column) = rows.column_mut(plan.column) else { continue };
        let result = match record.get(body, index) {
            Some(field) => values.slot(&plan.node, field, column),
            None => values.missing(&plan.node, column),
        };
        result.map_err(|failure| failure.in_column(&plan.name))?;
    }
    Ok(())
}

impl formats::Decoder for Decoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let base = self.length(rows);
        self.values.left_out = 0;
        let text = from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body));
        let result = match text {
            // By this Jackson tells it, and reads it. As UTF-8 it would be a text full of NUL.
            Ok(_) if body.iter().take(2).any(|byte| *byte == 0) => self
                .ignorable("not UTF-8: UTF-16, or NUL at its beginning".into())
                .map(|()| Decoded { dropped: true, ..Decoded::default() }),
            Ok(text) => self.body(text, rows),
            Err(error) => {
                self.ignorable(format!("not UTF-8: {error}")).map(|()| Decoded { dropped: true, ..Decoded::default() })
            }
        };
        result.inspect_err(|_| rows.truncate(base))
    }
}
