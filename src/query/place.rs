//! Where things stand in the text of a query.

use std::ops::Range;

use sqlparser::{
    ast::Ident,
    tokenizer::{Location, Span, Token, TokenWithSpan},
};

use super::QueryError;
use crate::model::ColumnType;

/// The text of a query and where its lines begin.
#[derive(Debug)]
pub(super) struct Places<'a> {
    text: &'a str,
    /// Whether each character is a byte.
    ascii: bool,
    lines: Vec<usize>,
    tokens: Vec<TokenWithSpan>,
    bad_types: Vec<QueryError>,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self {
            text,
            ascii: text.is_ascii(),
            lines: std::iter::once(0).chain(after).collect(),
            tokens: Vec::new(),
            bad_types: Vec::new(),
        }
    }

    /// Keeps the tokens, blanks left out, so that a keyword can be found.
    pub(super) fn set_tokens(&mut self, tokens: &[TokenWithSpan]) {
        self.tokens = tokens.iter().filter(|one| !matches!(one.token, Token::Whitespace(_))).cloned().collect();
        self.bad_types = self.types().into_iter().filter_map(|at| self.bad_type(at)).collect();
    }

    /// The types in CASTs that are none. sqlparser says of no type where it stands.
    pub(super) fn bad_types(&self) -> &[QueryError] {
        &self.bad_types
    }

    /// The tokens of the types that something is cast to.
    fn types(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        // Of each open parenthesis: none, or of a CAST, and at which token its type begins.
        let mut open: Vec<Option<Option<usize>>> = Vec::new();
        let mut before: Option<&TokenWithSpan> = None;
        for (index, one) in self.tokens.iter().enumerate() {
            match (&one.token, open.last_mut()) {
                (Token::LParen, _) => {
                    let is_cast = |token| is_word(token, "CAST") || is_word(token, "TRY_CAST");
                    open.push(before.filter(|before| is_cast(&before.token)).map(|_| None));
                }
                (Token::RParen, _) => {
                    if let Some(Some(Some(start))) = open.pop() {
                        found.push(start..index);
                    }
                }
                (token, Some(Some(start @ None))) if is_word(token, "AS") => *start = Some(index + 1),
                _ => {}
            }
            before = Some(one);
        }
        found
    }

    /// What Flink has, and sqlparser cannot read.
    pub(super) fn constructs(&self) -> Vec<QueryError> {
        fn refused(pair: &[TokenWithSpan]) -> Option<(Span, &'static str)> {
            match pair {
                [map, open] if is_word(&map.token, "MAP") && open.token == Token::LBracket => {
                    Some((map.span, "MAP[...]"))
                }
                [word, second] if is_word(&word.token, "BETWEEN") && is_word(&second.token, "SYMMETRIC") => {
                    Some((second.span, "BETWEEN SYMMETRIC"))
                }
                _ => None,
            }
        }
        let found = self.tokens.windows(2).filter_map(refused);
        found.map(|(at, what)| QueryError::new(self.range(at), format!("{what} is not supported"))).collect()
    }

    /// The last CASE that no END follows.
    pub(super) fn open_case(&self) -> Option<Range<usize>> {
        let mut open = Vec::new();
        for one in &self.tokens {
            if is_word(&one.token, "CASE") {
                open.push(one.span);
            } else if is_word(&one.token, "END") {
                open.pop();
            }
        }
        open.pop().map(|span| self.range(span))
    }

    /// Where a text stands that was taken for a name; sqlparser does not say.
    pub(super) fn of_text(&self, name: &Ident) -> Range<usize> {
        let is = |one: &TokenWithSpan| matches!(&one.token, Token::SingleQuotedString(text) if *text == name.value);
        let names =
            |before: &Token| matches!(before, Token::Word(_) | Token::Number(..) | Token::RParen | Token::RBracket);
        if self.offset(name.span.start).is_some() {
            return self.range(name.span);
        }
        let found =
            self.tokens.windows(2).find(|pair| matches!(pair, [before, one] if names(&before.token) && is(one)));
        found.and_then(|pair| pair.last()).map_or_else(|| self.whole(), |one| self.range(one.span))
    }

    fn bad_type(&self, tokens: Range<usize>) -> Option<QueryError> {
        let Some(places) = self.tokens.get(tokens.clone()).filter(|tokens| !tokens.is_empty()) else {
            let at = self.tokens.get(tokens.end).map_or_else(|| self.whole(), |one| self.range(one.span));
            return Some(QueryError::new(at, "a type is missing"));
        };
        let places: Vec<_> = places.iter().map(|one| self.range(one.span)).collect();
        let at = places.first()?.start..places.last()?.end;
        // Comments are no part of it.
        let mut text = String::with_capacity(at.len());
        for place in places {
            text.extend(std::iter::repeat_n(' ', place.start.saturating_sub(at.start + text.len())));
            text.push_str(self.text.get(place)?);
        }
        let error = ColumnType::parse(&text).err()?;
        let start = at.start + error.offset;
        let what = format!("{text} is no type");
        let told = QueryError::new(start..start + error.length, what).expected(error.expected);
        Some(told.nearest(error.nearest.as_deref()))
    }

    /// Bytes from the beginning. sqlparser counts lines and columns from 1, columns in characters; 0 is nowhere.
    pub(super) fn offset(&self, location: Location) -> Option<usize> {
        let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let column = usize::try_from(location.column).ok()?.checked_sub(1)?;
        let start = *self.lines.get(line)?;
        let rest = self.text.get(start..)?;
        let column = if self.ascii {
            column.min(rest.len())
        } else {
            rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
        };
        Some(start + column)
    }

    /// The bytes of a span; of an empty one the whole text.
    pub(super) fn range(&self, span: Span) -> Range<usize> {
        match (self.offset(span.start), self.offset(span.end)) {
            (Some(start), Some(end)) if start <= end => start..end,
            _ => self.whole(),
        }
    }

    /// The text without the blanks around it.
    pub(super) fn whole(&self) -> Range<usize> {
        let start = self.text.len() - self.text.trim_start().len();
        start..self.text.trim_end().len().max(start)
    }

    /// The last place outside of parentheses where these words stand, one after another.
    pub(super) fn words(&self, words: &[&str]) -> Option<Range<usize>> {
        let mut depth = 0_usize;
        let mut found = None;
        for (at, one) in self.tokens.iter().enumerate() {
            match one.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            let run = self.tokens.get(at..at + words.len());
            let is = |run: &[TokenWithSpan]| run.iter().zip(words).all(|(one, word)| is_word(&one.token, word));
            if let (0, Some(run)) = (depth, run.filter(|run| is(run))) {
                found = run.last().map(|last| self.range(one.span.union(&last.span)));
            }
        }
        found
    }

    /// The words, not quoted, among the token that begins there, the one before it and the one behind it.
    pub(super) fn words_around(&self, start: usize) -> impl Iterator<Item = &str> {
        let behind = self.tokens.partition_point(|one| self.offset(one.span.start).is_some_and(|at| at <= start));
        let at = [behind.checked_sub(1), behind.checked_sub(2), Some(behind)];
        at.into_iter().filter_map(|index| match &self.tokens.get(index?)?.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.as_str()),
            _ => None,
        })
    }

    /// The bytes of the token before the one that begins there, if it is this word.
    pub(super) fn word_before(&self, start: usize, word: &str) -> Option<Range<usize>> {
        let behind = self.tokens.iter().position(|one| self.offset(one.span.start) == Some(start))?;
        let one = self.tokens.get(behind.checked_sub(1)?)?;
        is_word(&one.token, word).then(|| self.range(one.span))
    }

    /// The bytes of the token that begins there.
    pub(super) fn token_at(&self, start: usize) -> Range<usize> {
        let token = self.tokens.iter().find(|one| self.offset(one.span.start) == Some(start));
        token.map_or(start..start, |one| self.range(one.span))
    }

    /// What stands there.
    pub(super) fn text(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }
}

fn is_word(token: &Token, word: &str) -> bool {
    match token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        Token::Comma => word == ",",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::query::dialect::FlinkDialect;

    #[test]
    fn places_are_bytes_also_behind_lines_and_wide_characters() {
        let text = "SELECT 'é',\n  a FROM source\nGROUP  BY a";
        let mut places = Places::new(text);
        places.set_tokens(&Tokenizer::new(&FlinkDialect, text).tokenize_with_location().unwrap());
        assert_eq!(places.text(&places.words(&["group", "by"]).unwrap()), "GROUP  BY");
        assert_eq!(places.words(&["HAVING"]), None);
        let a = places.range(Span::new(Location::new(2, 3), Location::new(2, 4)));
        assert_eq!(places.text(&a), "a");
        assert_eq!(places.range(Span::empty()), 0..text.len());
    }
}
