//! Delimiters, of which any one separates.

use memchr::{memchr, memchr2, memchr3};

use crate::definition::unescape;

/// A set of characters that each separate what is before them from what is after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delimiters(Vec<char>);

/// Why a text is no set of delimiters. Does not repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelimitersError {
    /// A `\u` without four digits of a character.
    Escape,
    /// An escape that is escaped itself, so that each of its characters would separate.
    Doubled,
    /// There is no character.
    Empty,
}

impl Delimiters {
    /// Reads them as Java does: escapes are resolved, and each character that is left is one.
    pub fn parse(text: &str) -> Result<Self, DelimitersError> {
        let resolved = unescape(text).ok_or(DelimitersError::Escape)?;
        // As the options' defaults are often printed: `\\u0001`, `\\n`.
        if resolved.starts_with('\\') && resolved.chars().nth(1).is_some_and(|c| c.is_ascii_alphanumeric()) {
            return Err(DelimitersError::Doubled);
        }
        if resolved.is_empty() { Err(DelimitersError::Empty) } else { Ok(Self(resolved.chars().collect())) }
    }

    /// A character that both have.
    pub fn common(&self, other: &Self) -> Option<char> {
        self.0.iter().copied().find(|delimiter| other.0.contains(delimiter))
    }

    /// The one that is written.
    pub(super) fn first(&self) -> char {
        self.0.first().copied().unwrap_or_default()
    }

    /// The pieces of a text, empty ones too; of an empty text one, which is empty.
    pub(super) fn split<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = Some(text);
        std::iter::from_fn(move || {
            let text = rest?;
            let (piece, behind) = self.cut(text);
            rest = behind;
            Some(piece)
        })
    }

    /// What is before the first delimiter, and what is behind it, if there is one.
    #[inline]
    fn cut<'a>(&self, text: &'a str) -> (&'a str, Option<&'a str>) {
        let bytes = text.as_bytes();
        let found = match self.0[..] {
            // One that is ASCII is one byte, and a part of no other character.
            [a] if a.is_ascii() => memchr(a as u8, bytes).map(|at| (at, 1)),
            [a, b] if a.is_ascii() && b.is_ascii() => memchr2(a as u8, b as u8, bytes).map(|at| (at, 1)),
            [a, b, c] if a.is_ascii() && b.is_ascii() && c.is_ascii() => {
                memchr3(a as u8, b as u8, c as u8, bytes).map(|at| (at, 1))
            }
            ref any => {
                let mut chars = text.char_indices();
                chars.find(|(_, c)| any.contains(c)).map(|(at, c)| (at, c.len_utf8()))
            }
        };
        match found {
            Some((at, length)) => (text.get(..at).unwrap_or(text), text.get(at + length..)),
            None => (text, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_any_of_its_characters_after_javas_escapes() {
        let split = |delimiters: &str, text: &str| {
            let delimiters = Delimiters::parse(delimiters).unwrap();
            delimiters.split(text).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(split("\\u0001", "a\u{1}b"), ["a", "b"]);
        assert_eq!(split("\\t", "a\tb\t"), ["a", "b", ""]);
        assert_eq!(split("\\1", "a\u{1}b"), ["a", "b"]);
        assert_eq!(split("||", "a|b||c"), ["a", "b", "", "c"], "a set, not a sequence");
        assert_eq!(split(",;", ",a;b"), ["", "a", "b"]);
        assert_eq!(split(",;|", "a|b;c,d"), ["a", "b", "c", "d"]);
        assert_eq!(split(",;|\\t", "a|b;c,d\te"), ["a", "b", "c", "d", "e"]);
        assert_eq!(split("、", "甲、乙"), ["甲", "乙"]);
        assert_eq!(split("\\\\", "a\\b"), ["a", "b"]);
        assert_eq!(split(",", ""), [""]);
    }

    #[test]
    fn a_text_that_means_something_else_than_it_looks_like_is_refused() {
        assert_eq!(Delimiters::parse("\\u00"), Err(DelimitersError::Escape));
        assert_eq!(Delimiters::parse("\\\\u0001"), Err(DelimitersError::Doubled));
        assert_eq!(Delimiters::parse("\\\\n"), Err(DelimitersError::Doubled));
        assert_eq!(Delimiters::parse(""), Err(DelimitersError::Empty));
    }
}
