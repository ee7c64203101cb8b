//! From bytes of a script to lines and columns.

use std::ops::Range;

use crate::definition::Span;

/// A text, and where its lines begin.
pub(super) struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, line_starts }
    }

    /// The place of these bytes.
    pub(super) fn span(&self, bytes: Range<usize>) -> Span {
        let line = self.line_starts.partition_point(|start| *start <= bytes.start);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let before = self.text.get(start..bytes.start).unwrap_or_default().chars().count();
        // A script is far smaller than what 32 bits can count.
        Span { start: bytes.start, end: bytes.end, line: line as u32, column: before as u32 + 1 }
    }

    /// The byte of a line and column, both counted from 1, the column in characters.
    pub(super) fn byte(&self, line: u64, column: u64) -> usize {
        let index = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.line_starts.get(index(line)).copied() else { return self.text.len() };
        let rest = self.text.get(start..).unwrap_or_default();
        rest.char_indices().nth(index(column)).map_or(self.text.len(), |(at, _)| start + at)
    }
}
