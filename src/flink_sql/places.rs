//! From bytes of a script to lines and columns.

use std::ops::Range;

use crate::definition::Span;

/// How many characters lie between two marks at most, so that a script of one line costs no more than one of many.
const APART: u32 = 256;

/// A text, and where in it some characters stand.
pub(super) struct Places<'a> {
    text: &'a str,
    /// Every beginning of a line, and characters in between.
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    byte: usize,
    /// Counted from 1.
    line: u32,
    /// In characters, counted from 1.
    column: u32,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut here = Mark { byte: 0, line: 1, column: 1 };
        let mut marks = vec![here];
        for (at, c) in text.char_indices() {
            here.byte = at + c.len_utf8();
            (here.line, here.column) = if c == '\n' { (here.line + 1, 1) } else { (here.line, here.column + 1) };
            if here.column % APART == 1 {
                marks.push(here);
            }
        }
        Self { text, marks }
    }

    /// The place of these bytes.
    pub(super) fn span(&self, bytes: Range<usize>) -> Span {
        let index = self.marks.partition_point(|mark| mark.byte <= bytes.start);
        let mark = index.checked_sub(1).and_then(|index| self.marks.get(index)).copied().unwrap_or_default();
        let after = self.text.get(mark.byte..bytes.start).unwrap_or_default().chars().count();
        // At most as far as from one mark to the next.
        Span { start: bytes.start, end: bytes.end, line: mark.line, column: mark.column + after as u32 }
    }

    /// The byte of a line and column, both counted from 1, the column in characters.
    pub(super) fn byte(&self, line: u64, column: u64) -> usize {
        let index = self.marks.partition_point(|mark| (u64::from(mark.line), u64::from(mark.column)) <= (line, column));
        let Some(mark) = index.checked_sub(1).and_then(|index| self.marks.get(index)) else { return 0 };
        if u64::from(mark.line) < line {
            return self.text.len();
        }
        let rest = self.text.get(mark.byte..).unwrap_or_default();
        let after = usize::try_from(column.saturating_sub(u64::from(mark.column))).unwrap_or(usize::MAX);
        rest.char_indices().nth(after).map_or(self.text.len(), |(at, _)| mark.byte + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_its_line_and_column_however_long_the_line_is() {
        let text = format!("{}\n\n{}\r\nend", "\u{6d88}a".repeat(700), "x".repeat(3000));
        let places = Places::new(&text);
        let (mut line, mut column) = (1, 1);
        for (at, c) in text.char_indices() {
            let span = places.span(at..at + 1);
            assert_eq!((span.line, span.column), (line, column), "{at}");
            assert_eq!(places.byte(line.into(), column.into()), at);
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        assert_eq!(places.byte(99, 1), text.len());
    }
}
