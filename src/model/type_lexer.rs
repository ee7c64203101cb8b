//! Cuts the text of a type into words, numbers, quoted names, texts and symbols.

use super::TypeError;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a bare name.
    Word,
    /// A name in backticks, which are doubled inside.
    Quoted(String),
    /// A text in single quotes, which are doubled inside.
    Text(String),
    /// Decimal digits.
    Number,
    /// One of `<>(),`.
    Symbol(char),
}

/// A token and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    /// As written.
    pub(super) text: &'a str,
    /// Bytes from the beginning of the text.
    pub(super) offset: usize,
}

impl Token<'_> {
    /// Whether it is this keyword, in any case.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }
}

/// Cuts `text` into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, TypeError> {
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some(first) = text.get(offset..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(offset..).unwrap_or_default();
        let while_is = |test: fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let (kind, length) = match first {
            c if c.is_whitespace() => {
                offset += c.len_utf8();
                continue;
            }
            '<' | '>' | '(' | ')' | ',' => (TokenKind::Symbol(first), 1),
            '0'..='9' => (TokenKind::Number, while_is(|c| c.is_ascii_digit())),
            c if c.is_alphabetic() || c == '_' => {
                (TokenKind::Word, while_is(|c| c.is_alphanumeric() || c == '_' || c == '$'))
            }
            '`' | '\'' => {
                let Some((value, length)) = quoted(rest, first) else {
                    return Err(refuse(rest, offset, rest.len(), "a closing quote"));
                };
                (if first == '`' { TokenKind::Quoted(value) } else { TokenKind::Text(value) }, length)
            }
            other => return Err(refuse(rest, offset, other.len_utf8(), "a type, a name or one of `< > ( ) ,`")),
        };
        found.push(Token { kind, text: rest.get(..length).unwrap_or_default(), offset });
        offset += length;
    }
    Ok(found)
}

fn refuse(rest: &str, offset: usize, length: usize, expected: &str) -> TypeError {
    let found = rest.get(..length).unwrap_or_default();
    TypeError { offset, length, found: format!("`{found}`"), expected: expected.to_owned(), nearest: None }
}

/// The content of a quoted stretch at the beginning of `rest`, and its length with quotes.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            value.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            value.push(quote);
        } else {
            return Some((value, at + 1));
        }
    }
    None
}
