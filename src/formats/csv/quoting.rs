//! When a written value is quoted, and how.

use super::{
    dialect::{Dialect, RowEnd},
    options::{DISABLE_QUOTE_CHARACTER, LINE_DELIMITER},
};
use crate::definition::Options;

/// Jackson quotes everything that is longer than this, in UTF-16 units.
const MOST_UNQUOTED: usize = 24;

/// Jackson's quoting. Its check is loose: a value is quoted for every character up to the highest of delimiter,
/// quote and line end, so that with `,` a blank and `+` are quoted too, and with `|` nearly everything.
#[derive(Debug)]
pub(super) struct Quoting {
    dialect: Dialect,
    /// Characters below it are quoted.
    safe: char,
    /// The same by byte; of a character outside ASCII, any byte.
    quoted: [bool; 256],
}

impl Quoting {
    pub(super) fn new(options: &Options) -> Self {
        let dialect = Dialect::new(options);
        let line_end = options.opt_character(&LINE_DELIMITER).unwrap_or('\n');
        let quote = dialect.quote.map_or('\0', |quote| quote.character);
        let highest = dialect.delimiter.character.max(quote).max(line_end);
        let safe = char::from_u32(u32::from(highest) + 1).unwrap_or(char::MAX);
        let escape = dialect.escape.map(|escape| escape.character);
        let mut quoted = [false; 256];
        for (byte, quoted) in (0_u8..=0xff).zip(&mut quoted) {
            let character = char::from(byte);
            // From here on a byte is a part of a character, which may be below the highest.
            let part = byte >= 0x80 && (safe > '\u{80}' || escape.is_some_and(|escape| escape > '\u{7f}'));
            *quoted = part || character < safe.min('\u{80}') || character == '\\' || Some(character) == escape;
        }
        Self { dialect, safe, quoted }
    }

    pub(super) fn delimiter(&self) -> &[u8] {
        self.dialect.delimiter.as_bytes()
    }

    /// Writes a value, quoted if Jackson would. The error says what in it needs quotes that there are not.
    pub(super) fn write(&self, value: &str, out: &mut Vec<u8>) -> Result<(), String> {
        let Some(quote) = self.dialect.quote else {
            if self.must(value) {
                return Err(format!(
                    "it holds a delimiter, line end or escape and would need quotes ({} is true)",
                    DISABLE_QUOTE_CHARACTER.name
                ));
            }
            out.extend_from_slice(value.as_bytes());
            return Ok(());
        };
        if !self.needed(value) {
            out.extend_from_slice(value.as_bytes());
            return Ok(());
        }
        let escape = self.dialect.escape;
        out.extend_from_slice(quote.as_bytes());
        let mut rest = value;
        let doubled =
            |character: char| character == quote.character || escape.is_some_and(|e| e.character == character);
        while let Some(at) = rest.find(doubled) {
            let length = rest.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            let (plain, after) = rest.split_at_checked(at + length).unwrap_or((rest, ""));
            out.extend_from_slice(plain.as_bytes());
            out.extend_from_slice(plain.get(at..).unwrap_or("").as_bytes());
            rest = after;
        }
        out.extend_from_slice(rest.as_bytes());
        out.extend_from_slice(quote.as_bytes());
        Ok(())
    }

    /// Whether Jackson quotes a value.
    fn needed(&self, value: &str) -> bool {
        // A unit of UTF-16 is one to three bytes of UTF-8.
        let long = value.len() > MOST_UNQUOTED
            && (value.len() > 3 * MOST_UNQUOTED || value.encode_utf16().count() > MOST_UNQUOTED);
        self.is_comment(value)
            || long
            || (value.bytes().any(|byte| self.quoted[usize::from(byte)]) && self.holds_quoted(value))
    }

    /// Whether a value would read back as a comment, at the beginning of a row. Jackson quotes it only if it is below
    /// the highest of the marks too.
    fn is_comment(&self, value: &str) -> bool {
        self.dialect.comments && value.trim_start_matches(' ').starts_with('#')
    }

    fn holds_quoted(&self, value: &str) -> bool {
        let escape = self.dialect.escape.map(|escape| escape.character);
        value.chars().any(|character| character < self.safe || character == '\\' || Some(character) == escape)
    }

    /// Whether a value reads back as another one if it is not quoted.
    pub(super) fn must(&self, value: &str) -> bool {
        let dialect = &self.dialect;
        let quote = dialect.quote.filter(|quote| value.starts_with(quote.character));
        let mut marks = [Some(dialect.delimiter), dialect.escape, quote].into_iter().flatten();
        let ends = |value: &str| match dialect.row_end {
            RowEnd::Line => value.contains(['\n', '\r']),
            RowEnd::Mark(mark) => value.contains(mark.character),
        };
        self.is_comment(value) || ends(value) || marks.any(|mark| value.contains(mark.character))
    }
}
