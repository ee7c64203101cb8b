//! From the text of a body to the fields of its rows.
//!
//! The dialect is that of Jackson, which Flink reads CSV with, and csv-core cannot be told it: there an open quote
//! at the end and characters after a closing quote are no errors, an escape means something in quotes only and
//! `\n` stands for `n`, empty lines vanish, and a delimiter is a single byte.

use std::ops::Range;

use super::dialect::{Dialect, Mark};

/// The fields of one row. Kept from row to row, for its buffers.
#[derive(Debug, Default)]
pub(super) struct Record {
    fields: Vec<Piece>,
    /// Fields that do not stand in the body as they are.
    copies: String,
}

#[derive(Debug)]
enum Piece {
    Body(Range<usize>),
    Copy(Range<usize>),
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the row that was read from this body.
    #[inline]
    pub(super) fn get<'a>(&'a self, body: &'a str, index: usize) -> Option<&'a str> {
        match self.fields.get(index)? {
            Piece::Body(range) => body.get(range.clone()),
            Piece::Copy(range) => self.copies.get(range.clone()),
        }
    }

    fn clear(&mut self) {
        self.fields.clear();
        self.copies.clear();
    }
}

/// Why a row cannot be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) reason: String,
    /// From where on what follows may be another row.
    pub(super) at: usize,
}

/// What follows a field.
enum Next {
    Field(usize),
    Row(usize),
}

/// A field in the making: what stands in the body from `from` on is not copied yet.
struct Copying {
    /// Where its copy begins, once there is one.
    begin: Option<usize>,
    from: usize,
}

impl Copying {
    /// Adds the body up to `to` and goes on at `from`.
    fn take(&mut self, body: &str, to: usize, from: usize, copies: &mut String) {
        self.begin.get_or_insert(copies.len());
        copies.push_str(body.get(self.from..to).unwrap_or(""));
        self.from = from;
    }

    fn finish(mut self, body: &str, to: usize, record: &mut Record) {
        let piece = match self.begin {
            None => Piece::Body(self.from..to),
            Some(begin) => {
                self.take(body, to, to, &mut record.copies);
                Piece::Copy(begin..record.copies.len())
            }
        };
        record.fields.push(piece);
    }
}

impl Dialect {
    /// Reads the row that begins at a byte; answers where the next one would begin.
    pub(super) fn read(&self, body: &str, mut at: usize, record: &mut Record) -> Result<usize, Broken> {
        record.clear();
        loop {
            let open = self.quote.and_then(|quote| Some((quote, quote.end(body.as_bytes(), at)?)));
            let next = match open {
                Some((quote, inside)) => self.quoted(quote, body, inside, record)?,
                None => self.plain(body, at, record)?,
            };
            match next {
                Next::Field(next) => at = next,
                Next::Row(next) => return Ok(next),
            }
        }
    }

    fn plain(&self, body: &str, start: usize, record: &mut Record) -> Result<Next, Broken> {
        let bytes = body.as_bytes();
        let mut field = Copying { begin: None, from: start };
        let mut at = start;
        loop {
            at = next_of(&self.special, bytes, at);
            let next = if at == bytes.len() {
                Next::Row(at)
            } else if let Some(next) = self.delimiter.end(bytes, at) {
                Next::Field(next)
            } else if let Some(next) = self.row_end(bytes, at) {
                Next::Row(next)
            } else if let Some(after) = self.escape.and_then(|escape| escape.end(bytes, at)) {
                at = unescape(body, at, after, &mut field, &mut record.copies)?;
                continue;
            } else {
                // The first byte of a mark, and then something else.
                at += 1;
                continue;
            };
            field.finish(body, at, record);
            return Ok(next);
        }
    }

    fn quoted(&self, quote: Mark, body: &str, start: usize, record: &mut Record) -> Result<Next, Broken> {
        let bytes = body.as_bytes();
        let mut field = Copying { begin: None, from: start };
        let mut at = start;
        loop {
            at = next_of(&self.special_in_quotes, bytes, at);
            if at == bytes.len() {
                let opened = start - quote.as_bytes().len();
                let reason = format!("the quote that opens at byte {opened} is not closed");
                return Err(Broken { reason, at });
            }
            if let Some(after) = quote.end(bytes, at) {
                let Some(doubled) = quote.end(bytes, after) else {
                    field.finish(body, at, record);
                    return self.after_quotes(body, after);
                };
                field.take(body, after, doubled, &mut record.copies);
                at = doubled;
            } else if let Some(after) = self.escape.and_then(|escape| escape.end(bytes, at)) {
                at = unescape(body, at, after, &mut field, &mut record.copies)?;
            } else {
                at += 1;
            }
        }
    }

    /// Blanks and control characters may stand between a closing quote and the delimiter.
    fn after_quotes(&self, body: &str, mut at: usize) -> Result<Next, Broken> {
        let bytes = body.as_bytes();
        while let Some(byte) = bytes.get(at) {
            if let Some(next) = self.delimiter.end(bytes, at) {
                return Ok(Next::Field(next));
            }
            if let Some(next) = self.row_end(bytes, at) {
                return Ok(Next::Row(next));
            }
            if *byte > b' ' {
                let found = body.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                let reason = format!(
                    "expected a delimiter or the end of the row after a closing quote, found {found:?} at byte {at}"
                );
                return Err(Broken { reason, at });
            }
            at += 1;
        }
        Ok(Next::Row(at))
    }
}

/// The first byte from `at` on that may have a meaning, or the end.
#[inline]
fn next_of(special: &[bool; 256], bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    at + rest.iter().position(|byte| special[usize::from(*byte)]).unwrap_or(rest.len())
}

/// Adds the character whose escape stands at `at` and ends at `after`; answers where the body goes on.
fn unescape(body: &str, at: usize, after: usize, field: &mut Copying, copies: &mut String) -> Result<usize, Broken> {
    let Some(escaped) = body.get(after..).and_then(|rest| rest.chars().next()) else {
        return Err(Broken { reason: "the body ends after an escape character".into(), at: body.len() });
    };
    let next = after + escaped.len_utf8();
    field.take(body, at, next, copies);
    copies.push(match escaped {
        '0' => '\0',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        other => other,
    });
    Ok(next)
}
