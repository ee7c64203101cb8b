//! What the characters of a body mean.

use super::options::{
    ALLOW_COMMENTS, DISABLE_QUOTE_CHARACTER, ESCAPE_CHARACTER, FIELD_DELIMITER, LINE_DELIMITER, QUOTE_CHARACTER,
};
use crate::definition::Options;

/// A character that has a meaning, as it stands in UTF-8.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) character: char,
    bytes: [u8; 4],
    length: usize,
}

impl Mark {
    fn new(character: char) -> Self {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Self { character, bytes, length }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Where the mark that begins at a byte ends; `None` if none begins there.
    #[inline]
    pub(super) fn end(&self, body: &[u8], at: usize) -> Option<usize> {
        body.get(at..)?.starts_with(self.as_bytes()).then_some(at + self.length)
    }
}

/// What ends a row outside quotes.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowEnd {
    /// LF, CR or CRLF
    Line,
    Mark(Mark),
}

/// The meaning of characters.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) delimiter: Mark,
    pub(super) quote: Option<Mark>,
    pub(super) escape: Option<Mark>,
    pub(super) row_end: RowEnd,
    pub(super) comments: bool,
    /// First bytes of what has a meaning outside quotes.
    pub(super) special: [bool; 256],
    /// First bytes of what has a meaning inside quotes.
    pub(super) special_in_quotes: [bool; 256],
}

impl Dialect {
    pub(super) fn new(options: &Options) -> Self {
        let quoting = !options.opt_boolean(&DISABLE_QUOTE_CHARACTER).unwrap_or(false);
        let quote = quoting.then(|| Mark::new(options.opt_character(&QUOTE_CHARACTER).unwrap_or('"')));
        let delimiter = Mark::new(options.opt_character(&FIELD_DELIMITER).unwrap_or(','));
        let escape = options.opt_character(&ESCAPE_CHARACTER).map(Mark::new);
        let row_end = match options.opt_character(&LINE_DELIMITER) {
            None | Some('\n' | '\r') => RowEnd::Line,
            Some(other) => RowEnd::Mark(Mark::new(other)),
        };
        let firsts = |marks: &[Option<Mark>]| {
            let mut table = [false; 256];
            let bytes = marks.iter().flatten().filter_map(|mark| mark.as_bytes().first());
            bytes.for_each(|byte| table[usize::from(*byte)] = true);
            table
        };
        let ends = match row_end {
            RowEnd::Line => [Some(Mark::new('\n')), Some(Mark::new('\r'))],
            RowEnd::Mark(mark) => [Some(mark), None],
        };
        Self {
            delimiter,
            quote,
            escape,
            row_end,
            comments: options.opt_boolean(&ALLOW_COMMENTS).unwrap_or(false),
            special: firsts(&[Some(delimiter), escape, ends[0], ends[1]]),
            special_in_quotes: firsts(&[quote, escape]),
        }
    }

    /// Where the row end that begins at a byte ends; `None` if none begins there.
    #[inline]
    pub(super) fn row_end(&self, body: &[u8], at: usize) -> Option<usize> {
        match &self.row_end {
            RowEnd::Mark(mark) => mark.end(body, at),
            RowEnd::Line => match body.get(at)? {
                b'\n' => Some(at + 1),
                b'\r' if body.get(at + 1) == Some(&b'\n') => Some(at + 2),
                b'\r' => Some(at + 1),
                _ => None,
            },
        }
    }

    /// Where the row that holds a byte ends, its line end included, as if there were no quotes.
    pub(super) fn skip_row(&self, body: &[u8], from: usize) -> usize {
        (from..body.len()).find_map(|at| self.row_end(body, at)).unwrap_or(body.len())
    }

    /// Where comments, and empty lines between them, end; the same place if comments are not allowed.
    ///
    /// Jackson also takes the blanks off that stand before the first field of a row, if comments are allowed. They
    /// are part of the field here, as they are without that option.
    pub(super) fn skip_comments(&self, body: &[u8], mut from: usize) -> usize {
        if !self.comments {
            return from;
        }
        loop {
            let rest = body.get(from..).unwrap_or(&[]);
            let text = from + rest.iter().take_while(|byte| **byte == b' ').count();
            match body.get(text) {
                Some(b'#') => from = self.skip_row(body, text),
                Some(_) => match self.row_end(body, text) {
                    Some(next) => from = next,
                    None => return from,
                },
                None => return body.len(),
            }
        }
    }

    /// Where the line ends that begin at a byte end.
    pub(super) fn skip_empty_lines(&self, body: &[u8], mut from: usize) -> usize {
        while let Some(next) = self.row_end(body, from) {
            from = next;
        }
        from
    }
}
