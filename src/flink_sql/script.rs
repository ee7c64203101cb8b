//! A script as tokens, each with its place, and a cursor that reads them.
//!
//! `sqlparser` cuts the tokens; its parser is not used, for it knows neither METADATA nor ROW<> nor statement sets, and
//! where it stops it cannot say what stands there. The texts of types go to the parser that reads those of definitions,
//! those of queries to the planner.

use std::ops::Range;

use sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::places::Places;
use crate::{
    definition::{Diagnostic, Report, Span},
    query::dialect::FlinkDialect,
};

/// A token and the bytes it stands at.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub token: Token,
    pub at: Range<usize>,
}

impl Piece {
    /// Whether it is this keyword, in any case and not quoted.
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    }

    /// The name it is, quoted or not.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.token {
            Token::Word(Word { value, .. }) => Some(value),
            _ => None,
        }
    }
}

/// A script, cut.
pub(super) struct Script<'a> {
    /// The script without comments; every byte stands where it stood.
    pub clean: String,
    pub pieces: Vec<Piece>,
    pub places: Places<'a>,
}

impl<'a> Script<'a> {
    /// Cuts a script. `None`: it cannot be, which has been reported.
    pub(super) fn read(text: &'a str, report: &mut Report) -> Option<Self> {
        let places = Places::new(text);
        let clean = super::repair::repair(text, &places, report)?;
        let pieces = match pieces(&clean) {
            Ok(pieces) => pieces,
            Err((message, at)) => {
                let end = clean.get(at..).and_then(|rest| rest.chars().next()).map_or(at, |c| at + c.len_utf8());
                report.push(Diagnostic::error(format!("this is not SQL: {message}")).at(places.span(at..end)));
                return None;
            }
        };
        if let Some(text) = pieces.windows(2).find_map(ends_in_a_word) {
            // Everything behind it is the wrong way round: what was a text is none, and may be a secret.
            let error = Diagnostic::error("a `'` is missing: a text that begins here ends right before a word");
            report.push(error.at(places.span(text..text + 1)).expected("`'` at both ends of each text"));
            return None;
        }
        Some(Self { clean, pieces, places })
    }

    /// What stands at these bytes, without comments.
    pub(super) fn text(&self, bytes: Range<usize>) -> &str {
        self.clean.get(bytes).unwrap_or_default()
    }

    /// Whether what stands at this byte is inside of a piece, such as a line break in a text.
    pub(super) fn is_inside(&self, at: usize) -> bool {
        let index = self.pieces.partition_point(|piece| piece.at.end <= at);
        self.pieces.get(index).is_some_and(|piece| piece.at.start <= at)
    }

    /// The statements, as ranges of pieces, without their semicolons; none is empty.
    pub(super) fn statements(&self) -> Vec<Range<usize>> {
        let ends = self.pieces.iter().enumerate().filter(|(_, piece)| piece.token == Token::SemiColon);
        let ends: Vec<usize> = ends.map(|(index, _)| index).chain([self.pieces.len()]).collect();
        let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
        let ranges = starts.zip(ends.iter().copied()).map(|(start, end)| start..end);
        ranges.filter(|range| !range.is_empty()).flat_map(|range| self.cut_at_beginnings(range)).collect()
    }

    /// Cuts a CREATE or INSERT where another statement begins in it, whose semicolon is missing.
    fn cut_at_beginnings(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut cursor = self.cursor(range.clone());
        if !cursor.takes(&["EXECUTE", "STATEMENT", "SET", "BEGIN"]) && !cursor.takes(&["BEGIN", "STATEMENT", "SET"]) {
            cursor.takes(&["EXECUTE"]);
        }
        if !cursor.is(&["CREATE"]) && !cursor.is(&["INSERT"]) {
            return vec![range];
        }
        let mut starts = vec![range.start];
        cursor.next += 1;
        while cursor.peek().is_some() {
            if cursor.begins_statement() {
                starts.push(cursor.next);
            }
            cursor.next += 1;
        }
        let ends = starts.iter().skip(1).copied().chain([range.end]);
        starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Whether the semicolon is missing that a statement should have before it.
    pub(super) fn lacks_semicolon(&self, statement: &Range<usize>) -> bool {
        let before = statement.start.checked_sub(1).and_then(|before| self.pieces.get(before));
        before.is_some_and(|piece| piece.token != Token::SemiColon)
    }

    /// A cursor over these pieces.
    pub(super) fn cursor(&self, pieces: Range<usize>) -> Cursor<'_> {
        Cursor { script: self, next: pieces.start, end: pieces.end }
    }
}

/// Where a text begins that ends right before a word, as nobody writes it and as it is where a quote is missing.
fn ends_in_a_word(pair: &[Piece]) -> Option<usize> {
    match pair {
        [text, word] if is_text(&text.token) && text.at.end == word.at.start => {
            matches!(word.token, Token::Word(_) | Token::Number(..)).then_some(text.at.start)
        }
        _ => None,
    }
}

/// Cuts a text that has no comments. The error holds the byte it is at.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, (String, usize)> {
    let places = Places::new(text);
    let tokens = Tokenizer::new(&FlinkDialect, text)
        .tokenize_with_location()
        .map_err(|error| (error.message, places.byte(error.location.line, error.location.column)))?;
    let mut walk = Walk { characters: text.char_indices(), line: 1, column: 1, end: text.len() };
    let mut pieces = Vec::with_capacity(tokens.len() / 2);
    for token in tokens {
        let start = walk.to(token.span.start.line, token.span.start.column);
        let end = walk.to(token.span.end.line, token.span.end.column);
        if !matches!(token.token, Token::Whitespace(_) | Token::EOF) {
            pieces.push(Piece { token: token.token, at: start..end });
        }
    }
    Ok(pieces)
}

/// Follows the tokenizer's lines and columns through a text, in one pass.
struct Walk<'a> {
    characters: std::str::CharIndices<'a>,
    line: u64,
    column: u64,
    end: usize,
}

impl Walk<'_> {
    fn to(&mut self, line: u64, column: u64) -> usize {
        while (self.line, self.column) < (line, column) {
            match self.characters.next() {
                Some((_, '\n')) => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => return self.end,
            }
        }
        self.characters.offset()
    }
}

/// A name of one or several parts, such as `catalog.database.table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub parts: Vec<String>,
    pub at: Range<usize>,
}

impl Path {
    /// Its last part.
    pub(super) fn last(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    /// Whether one names the other, perhaps with catalog and database left out.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.parts.ends_with(&other.parts) || other.parts.ends_with(&self.parts)
    }
}

/// An error where something cannot be read.
pub(super) type Read<T> = Result<T, Box<Diagnostic>>;

/// Reads the pieces of a statement.
#[derive(Clone)]
pub(super) struct Cursor<'s> {
    pub script: &'s Script<'s>,
    /// The piece that is read next.
    pub next: usize,
    /// One past the last.
    pub end: usize,
}

impl<'s> Cursor<'s> {
    /// The piece so many after the next one.
    pub(super) fn ahead(&self, by: usize) -> Option<&'s Piece> {
        self.script.pieces.get(self.next + by..self.end)?.first()
    }

    pub(super) fn peek(&self) -> Option<&'s Piece> {
        self.ahead(0)
    }

    pub(super) fn take(&mut self) -> Option<&'s Piece> {
        let piece = self.peek()?;
        self.next += 1;
        Some(piece)
    }

    /// Whether the next pieces are these keywords.
    pub(super) fn is(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(by, word)| self.ahead(by).is_some_and(|piece| piece.is(word)))
    }

    /// Whether what is next begins a statement wherever it stands, as these words are no names.
    fn begins_statement(&self) -> bool {
        let followed = |words: &[&str]| self.ahead(1).is_some_and(|next| words.iter().any(|word| next.is(word)));
        let sets = || {
            self.ahead(1).is_some_and(|next| is_text(&next.token))
                || self.ahead(2).is_some_and(|next| matches!(next.token, Token::Eq | Token::Period | Token::Minus))
        };
        (self.is(&["CREATE"]) && followed(&["TABLE", "TEMPORARY", "VIEW"]))
            || (self.is(&["INSERT"]) && followed(&["INTO", "OVERWRITE"]))
            || (self.is(&["SET"]) && sets())
    }

    /// Takes these keywords, if they are next.
    pub(super) fn takes(&mut self, words: &[&str]) -> bool {
        let found = self.is(words);
        self.next += if found { words.len() } else { 0 };
        found
    }

    /// Takes this token, if it is next.
    pub(super) fn takes_token(&mut self, token: &Token) -> bool {
        let found = self.peek().is_some_and(|piece| piece.token == *token);
        self.next += usize::from(found);
        found
    }

    /// Where the next piece stands; where there is none, the end of the last one.
    pub(super) fn bytes(&self) -> Range<usize> {
        match self.peek() {
            Some(piece) => piece.at.clone(),
            None => {
                let before = self.end.checked_sub(1).and_then(|last| self.script.pieces.get(last));
                let end = before.map_or(0, |piece| piece.at.end);
                end..end
            }
        }
    }

    /// The same as a place.
    pub(super) fn here(&self) -> Span {
        self.script.places.span(self.bytes())
    }

    /// The bytes from the piece `first` to the one that was taken last.
    pub(super) fn since(&self, first: usize) -> Range<usize> {
        let start = self.script.pieces.get(first).map_or(0, |piece| piece.at.start);
        let last = self.next.checked_sub(1).filter(|last| *last >= first);
        let end = last.and_then(|last| self.script.pieces.get(last)).map_or(start, |piece| piece.at.end);
        start..end
    }

    /// Says that the next piece is not what it should be.
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> Box<Diagnostic> {
        let found = match self.peek() {
            // It may be a secret.
            Some(piece) if is_text(&piece.token) => "a text".to_owned(),
            Some(piece) => format!("`{}`", visible(self.script.text(piece.at.clone()).trim_matches('`'))),
            None => "the end of the statement".to_owned(),
        };
        Box::new(Diagnostic::error(format!("found {found}")).at(self.here()).expected(expected))
    }

    /// The same where what stands there may be a secret, or a part of one: only what is no value is repeated.
    pub(super) fn unexpected_value(&self, expected: impl Into<String>) -> Box<Diagnostic> {
        match self.peek().map(|piece| &piece.token) {
            None => self.unexpected(expected),
            Some(token) if is_text(token) || is_mark(token) => self.unexpected(expected),
            Some(_) => Box::new(Diagnostic::error("found a value without `'`").at(self.here()).expected(expected)),
        }
    }

    pub(super) fn token(&mut self, token: &Token) -> Read<()> {
        if self.takes_token(token) { Ok(()) } else { Err(self.unexpected(format!("`{token}`"))) }
    }

    pub(super) fn words(&mut self, words: &[&str]) -> Read<()> {
        if self.takes(words) { Ok(()) } else { Err(self.unexpected(words.join(" "))) }
    }

    /// One name.
    pub(super) fn name(&mut self, expected: &str) -> Read<&'s Piece> {
        match self.peek().filter(|piece| piece.name().is_some_and(|name| !name.is_empty())) {
            Some(piece) => {
                self.next += 1;
                Ok(piece)
            }
            None => Err(self.unexpected(expected)),
        }
    }

    /// A name of one or several parts.
    pub(super) fn path(&mut self, expected: &str) -> Read<Path> {
        let first = self.next;
        let mut parts = Vec::new();
        loop {
            parts.push(self.name(expected)?.name().unwrap_or_default().to_owned());
            if !self.takes_token(&Token::Period) {
                return Ok(Path { parts, at: self.since(first) });
            }
        }
    }

    /// A text in quotes.
    pub(super) fn string(&mut self, expected: &str) -> Read<String> {
        let found = match self.peek().map(|piece| &piece.token) {
            Some(Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text)) => text.clone(),
            _ => return Err(self.unexpected(expected)),
        };
        self.next += 1;
        Ok(found)
    }

    /// Leaves out everything up to the comma or closing parenthesis that ends the element, which is not taken.
    pub(super) fn skip_element(&mut self) {
        let mut depth = Depth::default();
        while let Some(piece) = self.peek() {
            if depth.is_zero() && matches!(piece.token, Token::Comma | Token::RParen) {
                return;
            }
            depth.pass(&piece.token);
            self.next += 1;
        }
    }

    /// Leaves out a parenthesis with all it holds; the opening one is next.
    pub(super) fn skip_parenthesis(&mut self) {
        let mut depth = Depth::default();
        while let Some(piece) = self.take() {
            depth.pass(&piece.token);
            if depth.is_zero() {
                return;
            }
        }
    }
}

/// A text with code points in the place of what nobody sees.
fn visible(text: &str) -> String {
    let unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown = |c: char| if unseen(c) { format!("U+{:04X}", u32::from(c)) } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Whether every parenthesis of a statement is closed.
pub(super) fn is_whole(pieces: &[Piece]) -> bool {
    let mut depth = Depth::default();
    pieces.iter().for_each(|piece| depth.pass_expression(&piece.token));
    depth.is_zero()
}

/// Whether a key is one as anybody writes it. What else stands there may hold a secret, for its quote or equals sign may
/// be missing.
pub(super) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Whether it is a text as Flink writes one.
pub(super) const fn is_text(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::UnicodeStringLiteral(_))
}

/// Whether it can be no part of a value.
pub(super) const fn is_mark(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Comma | Token::LParen | Token::RParen)
}

/// How deep in parentheses and brackets something is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Depth {
    round: u32,
    angle: u32,
    square: u32,
}

impl Depth {
    pub(super) const fn is_zero(self) -> bool {
        self.round == 0 && self.angle == 0 && self.square == 0
    }

    pub(super) fn pass(&mut self, token: &Token) {
        match token {
            Token::LParen => self.round += 1,
            Token::RParen => self.round = self.round.saturating_sub(1),
            Token::Lt => self.angle += 1,
            Token::Gt => self.angle = self.angle.saturating_sub(1),
            Token::ShiftRight => self.angle = self.angle.saturating_sub(2),
            Token::LBracket => self.square += 1,
            Token::RBracket => self.square = self.square.saturating_sub(1),
            _ => {}
        }
    }

    /// The same for expressions, where an angle bracket compares.
    pub(super) fn pass_expression(&mut self, token: &Token) {
        if matches!(token, Token::LParen | Token::RParen | Token::LBracket | Token::RBracket) {
            self.pass(token);
        }
    }
}
