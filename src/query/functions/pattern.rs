//! LIKE and SIMILAR TO. A constant pattern is read once, while the query is planned.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use regex::{Regex, RegexBuilder};

use super::{Param, bools, fit};
use crate::{
    model::LogicalType,
    query::{
        QueryError,
        call::Row,
        lower::{Planned, Term},
        types::Type,
    },
};

/// The most memory of a compiled pattern, in bytes.
const MOST_MEMORY: usize = 4 * 1024 * 1024;

/// What a character of Java's `.` is not; `_` is that `.`.
pub(super) const NO_LINE_END: &str = r"[^\n\r\x{85}\x{2028}\x{2029}]";

pub(super) fn compiled(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(MOST_MEMORY).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too large".to_owned(),
        other => {
            // The last line of it says what is wrong, those before it show where.
            let text = other.to_string();
            text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    })
}

/// Something made of a text that is mostly the same from row to row.
pub(super) struct Kept<T> {
    last: Mutex<Option<(String, Arc<T>)>>,
    make: fn(&str) -> Result<T, String>,
}

impl<T> Kept<T> {
    pub(super) const fn new(make: fn(&str) -> Result<T, String>) -> Self {
        Self { last: Mutex::new(None), make }
    }

    pub(super) fn of(&self, text: &str) -> Result<Arc<T>, String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, made)) = &*last
            && known == text
        {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new((self.make)(text)?);
        *last = Some((text.to_owned(), Arc::clone(&made)));
        Ok(made)
    }
}

/// A pattern that is ready.
#[derive(Debug)]
enum Matcher {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    Regex(Regex),
}

impl Matcher {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(whole) => text == whole,
            Self::Prefix(start) => text.starts_with(start),
            Self::Suffix(end) => text.ends_with(end),
            Self::Contains(part) => text.contains(part),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// A part of a LIKE pattern.
#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Any,
    One,
}

fn parts(pattern: &str, escape: Option<char>) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut characters = pattern.chars();
    let literal = |parts: &mut Vec<Part>, character: char| match parts.last_mut() {
        Some(Part::Text(text)) => text.push(character),
        _ => parts.push(Part::Text(character.into())),
    };
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                Some(next @ ('%' | '_')) => literal(&mut parts, next),
                Some(next) if Some(next) == escape => literal(&mut parts, next),
                _ => return Err(format!("behind the escape character {character} only %, _ or {character} may stand")),
            }
            continue;
        }
        match character {
            '%' if parts.last() == Some(&Part::Any) => {}
            '%' => parts.push(Part::Any),
            '_' => parts.push(Part::One),
            other => literal(&mut parts, other),
        }
    }
    Ok(parts)
}

fn matcher(pattern: &str, escape: Option<char>) -> Result<Matcher, String> {
    let parts = parts(pattern, escape)?;
    Ok(match &parts[..] {
        [] => Matcher::Exact(String::new()),
        [Part::Any] => Matcher::Prefix(String::new()),
        [Part::Text(text)] => Matcher::Exact(text.clone()),
        [Part::Text(text), Part::Any] => Matcher::Prefix(text.clone()),
        [Part::Any, Part::Text(text)] => Matcher::Suffix(text.clone()),
        [Part::Any, Part::Text(text), Part::Any] => Matcher::Contains(text.clone()),
        parts => {
            let part = |part: &Part| match part {
                Part::Text(text) => regex::escape(text),
                Part::Any => "(?s:.*)".to_owned(),
                Part::One => NO_LINE_END.to_owned(),
            };
            let regex: String = parts.iter().map(part).collect();
            Matcher::Regex(compiled(&format!(r"\A{regex}\z"))?)
        }
    })
}

fn both_texts(text: Term, pattern: Term, name: &str) -> Result<(Term, Term), QueryError> {
    Ok((fit(text, Param::Text, name)?, fit(pattern, Param::Text, name)?))
}

/// `text [NOT] LIKE pattern [ESCAPE escape]`. Without ESCAPE nothing escapes: a backslash is one.
pub(in crate::query) fn like(
    text: Term,
    pattern: Term,
    escape: Option<char>,
    negated: bool,
    at: Range<usize>,
) -> Planned {
    let (text, pattern) = both_texts(text, pattern, "LIKE")?;
    let ty = Type::new(LogicalType::Boolean, text.ty.nullable || pattern.ty.nullable);
    let name = if negated { "NOT LIKE" } else { "LIKE" };
    if let Some(constant) = pattern.constant_text() {
        let matcher = matcher(constant, escape).map_err(|error| pattern.error(error))?;
        let kernel = bools(move |row| Ok(Some(matcher.matches(row.text(0)) != negated)));
        return Ok(Term::strict(name, vec![text, pattern], ty, at, kernel));
    }
    let last: Mutex<Option<(String, Arc<Matcher>)>> = Mutex::new(None);
    let kernel = bools(move |row: &Row<'_>| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|(pattern, _)| pattern == row.text(1)).map(|(_, matcher)| Arc::clone(matcher));
        let matcher = match known {
            Some(matcher) => matcher,
            None => {
                let made = Arc::new(matcher(row.text(1), escape)?);
                *last = Some((row.text(1).to_owned(), Arc::clone(&made)));
                made
            }
        };
        Ok(Some(matcher.matches(row.text(0)) != negated))
    });
    let made = Term::strict(name, vec![text, pattern], ty, at, kernel);
    // Only a wrong escape, or a pattern that is too large, fails.
    Ok(made.may_fail())
}

/// A pattern of SIMILAR TO as a regular expression.
fn similar_regex(pattern: &str, escape: Option<char>) -> Result<Regex, String> {
    let mut regex = String::from(r"\A(?:");
    let mut characters = pattern.chars();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            let next = characters.next().ok_or("nothing stands behind the escape character")?;
            regex.push_str(&regex::escape(next.encode_utf8(&mut [0; 4])));
            continue;
        }
        match character {
            '[' | ']' => {
                in_class = character == '[';
                regex.push(character);
            }
            '^' | '-' if in_class => regex.push(character),
            '%' if !in_class => regex.push_str("(?s:.*)"),
            '_' if !in_class => regex.push_str(NO_LINE_END),
            // Flink hands these on to Java: any character, and the start of the text.
            '.' if !in_class => regex.push_str(NO_LINE_END),
            '^' | '|' | '*' | '+' | '?' | '(' | ')' | '{' | '}' if !in_class => regex.push(character),
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push_str(r")\z");
    compiled(&regex)
}

/// `text [NOT] SIMILAR TO pattern [ESCAPE escape]`; the pattern is a constant.
pub(in crate::query) fn similar(
    text: Term,
    pattern: Term,
    escape: Option<char>,
    negated: bool,
    at: Range<usize>,
) -> Planned {
    let (text, pattern) = both_texts(text, pattern, "SIMILAR TO")?;
    let ty = Type::new(LogicalType::Boolean, text.ty.nullable || pattern.ty.nullable);
    let Some(constant) = pattern.constant_text() else {
        return Err(pattern.error("the pattern of SIMILAR TO is not a constant"));
    };
    let regex = similar_regex(constant, escape).map_err(|error| pattern.error(error))?;
    let kernel = bools(move |row| Ok(Some(regex.is_match(row.text(0)) != negated)));
    Ok(Term::strict("SIMILAR TO", vec![text, pattern], ty, at, kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_patterns_need_no_regular_expression() {
        let kind = |pattern| matcher(pattern, Some('!')).unwrap();
        assert!(matches!(kind("a!%b"), Matcher::Exact(text) if text == "a%b"));
        assert!(matches!(kind("a%%"), Matcher::Prefix(text) if text == "a"));
        assert!(matches!(kind("%a"), Matcher::Suffix(_)));
        assert!(matches!(kind("%a%"), Matcher::Contains(_)));
        assert!(matches!(kind("a%b"), Matcher::Regex(_)));
        assert!(matcher("a!", Some('!')).is_err());
        assert!(matcher("a!b", Some('!')).is_err());
    }

    #[test]
    fn similar_to_takes_the_signs_of_both_worlds() {
        let matches = |pattern, text| similar_regex(pattern, None).unwrap().is_match(text);
        assert!(matches("H(e|a)llo%", "Hallo Welt"));
        assert!(matches("[0-9]{2}", "42"));
        assert!(matches("H.llo%", "Héllo Wörld"));
        assert!(!matches("a^b", "a^b"));
        assert!(!matches("a_c", "a\nc"));
    }
}
