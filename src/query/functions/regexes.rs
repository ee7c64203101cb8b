//! Regular expressions as Java reads them, as far as Rust has the same: what it has not is refused. They take time in
//! proportion to the text, whatever the pattern is, so that no message can hold up a pipeline.

use std::{borrow::Cow, sync::Arc};

use regex::Regex;

use super::{
    Function, Given,
    Param::{Long, Text},
    STRING, bools, function,
    pattern::{Kept, NO_LINE_END, compiled},
    strings::check,
    texts,
};
use crate::{
    model::LogicalType,
    query::{
        call::Row,
        lower::{Planned, Term},
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    function("REGEXP", 2..=2, |given| {
        let given = given.with(&[Text])?;
        let regex = Pattern::of(&given, 1)?;
        let fails = regex.fails();
        // Flink finds nothing with an empty pattern.
        let kernel = bools(move |row| Ok(Some(!row.text(1).is_empty() && regex.get(row, 1)?.is_match(row.text(0)))));
        Ok(failing(given.strict(LogicalType::Boolean, kernel), fails))
    }),
    function("REGEXP_EXTRACT", 2..=3, extract),
    function("REGEXP_REPLACE", 3..=3, |given| {
        let given = given.with(&[Text])?;
        let regex = Pattern::of(&given, 1)?;
        let fails = regex.fails();
        let kernel = texts(move |row| {
            // The replacement is put as it is: $1 is no group.
            let regex = regex.get(row, 1)?;
            let (text, put) = (row.text(0), row.text(2).len());
            check(text.len().saturating_add(regex.find_iter(text).count().saturating_mul(put)))?;
            Ok(Some(Cow::Owned(regex.replace_all(row.text(0), regex::NoExpand(row.text(2))).into_owned())))
        });
        Ok(failing(given.strict(STRING, kernel), fails))
    }),
];

fn failing(term: Term, fails: bool) -> Term {
    if fails { term.may_fail() } else { term }
}

fn extract(given: Given<'_>) -> Planned {
    let given = given.with(&[Text, Text, Long])?;
    let regex = Pattern::of(&given, 1)?;
    let fails = regex.fails();
    let kernel = texts(move |row| {
        let group = if row.len() > 2 { row.long(2) } else { 0 };
        let (regex, text) = (regex.get(row, 1)?, row.text(0));
        let found = usize::try_from(group).ok().and_then(|group| regex.captures(text)?.get(group));
        Ok(found.and_then(|found| text.get(found.range())).map(Cow::Borrowed))
    });
    Ok(failing(given.strict_nullable(STRING, kernel), fails))
}

/// A pattern that is known, or one for each row.
enum Pattern {
    Constant(Arc<Regex>),
    OfRow(Kept<Regex>),
}

impl Pattern {
    fn of(given: &Given<'_>, index: usize) -> Result<Self, crate::query::QueryError> {
        let arg = given.arg(index);
        match arg.and_then(|arg| Some((arg, arg.constant_text()?))) {
            Some((arg, text)) => java(text).map(|regex| Self::Constant(Arc::new(regex))).map_err(|error| {
                arg.error(format!("'{text}' is no pattern here: {error}"))
                    .help("patterns are those of Java without lookaround and backreferences")
            }),
            None => Ok(Self::OfRow(Kept::new(|text| {
                java(text).map_err(|error| format!("'{text}' is no pattern here: {error}"))
            }))),
        }
    }

    const fn fails(&self) -> bool {
        matches!(self, Self::OfRow(_))
    }

    fn get(&self, row: &Row<'_>, index: usize) -> Result<Arc<Regex>, String> {
        match self {
            Self::Constant(regex) => Ok(Arc::clone(regex)),
            Self::OfRow(kept) => kept.of(row.text(index)),
        }
    }
}

/// A pattern of Java as one of Rust: `\d`, `\s` and `\w` know ASCII only, and `.` no end of a line. So does `\b` as of
/// Java 19; before, its words have letters and digits of all alphabets, and a text may be cut differently there.
fn java(pattern: &str) -> Result<Regex, String> {
    let mut made = String::with_capacity(pattern.len() + 16);
    let mut characters = pattern.chars().peekable();
    let mut classes = 0_usize;
    let foreign = pattern.chars().any(|character| !character.is_ascii() && character.is_alphabetic());
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let Some(next) = characters.next() else { return Err("it ends with a backslash".into()) };
                match next {
                    'd' => made.push_str("[0-9]"),
                    'D' => made.push_str("[^0-9]"),
                    'w' => made.push_str("[A-Za-z0-9_]"),
                    'W' => made.push_str("[^A-Za-z0-9_]"),
                    's' => made.push_str(r"[ \t\n\x0B\f\r]"),
                    'S' => made.push_str(r"[^ \t\n\x0B\f\r]"),
                    'b' | 'B' if classes == 0 => made.push_str(&format!(r"(?-u:\{next})")),
                    '1'..='9' => return Err("backreferences are not supported".into()),
                    'Q' => {
                        let mut quoted = String::new();
                        while let Some(one) = characters.next() {
                            if one == '\\' && characters.peek() == Some(&'E') {
                                characters.next();
                                break;
                            }
                            quoted.push(one);
                        }
                        made.push_str(&regex::escape(&quoted));
                    }
                    'u' => {
                        let digits: String = characters.by_ref().take(4).collect();
                        made.push_str(&format!(r"\x{{{digits}}}"));
                    }
                    // Its name in braces is no quantifier.
                    'p' | 'P' => {
                        made.extend(['\\', next]);
                        if characters.peek() == Some(&'{') {
                            made.extend(characters.by_ref().take_while(|one| *one != '}'));
                            made.push('}');
                        }
                    }
                    other => made.extend(['\\', other]),
                }
            }
            '[' => {
                classes += 1;
                made.push('[');
                if classes > 1 && characters.peek() == Some(&':') {
                    // Java has no [:alpha:]: this is a class with a colon.
                    characters.next();
                    made.push_str(r"\:");
                }
                if characters.peek() == Some(&'^') {
                    made.extend(characters.next());
                }
            }
            ']' => {
                classes = classes.saturating_sub(1);
                made.push(']');
            }
            // Rust takes these for differences of classes, Java for themselves.
            '~' | '-' if classes > 0 && characters.peek() == Some(&character) => made.extend(['\\', character]),
            '(' if classes == 0 && characters.peek() == Some(&'?') => {
                made.push('(');
                let flags = characters.clone().skip(1).take_while(char::is_ascii_alphabetic);
                let has = |wanted: char| flags.clone().any(|flag| flag == wanted);
                if has('U') {
                    return Err("the flag U is not supported".into());
                }
                if has('i') && !has('u') && foreign {
                    return Err("the flag i is supported for letters of ASCII only".into());
                }
            }
            '.' if classes == 0 => made.push_str(NO_LINE_END),
            '*' | '+' | '?' | '}' if classes == 0 && characters.peek() == Some(&'+') => {
                return Err("possessive quantifiers are not supported".into());
            }
            other => made.push(other),
        }
    }
    compiled(&made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_java() {
        let found = |pattern: &str, text: &str| java(pattern).unwrap().is_match(text);
        assert!(found(r"^\w+$", "abc_1"));
        assert!(!found(r"\w", "é"), "\\w is ASCII");
        assert!(!found(r"\d", "٣"), "\\d is ASCII");
        assert!(found(r"[\d.]+", "1.5"));
        assert!(!found("a.c", "a\rc"));
        assert!(found(r"\Qa.c\E", "a.c"));
        assert!(!found(r"\Qa.c\E", "abc"));
        assert!(found(r"\bfoo\b", "a foo b"));
        assert!(found(r"[[a-z]&&[^b]]", "a"));
    }

    #[test]
    fn signs_that_rust_alone_reads_in_its_own_way_are_those_of_java() {
        let found = |pattern: &str, text: &str| java(pattern).unwrap().is_match(text);
        assert!(found(r"^\p{L}+$", "été"));
        assert!(found(r"^\p{Lu}\p{Ll}*$", "Été"));
        assert!(found("^[a~~b]+$", "a~b"));
        assert!(found("^[a--b]+$", "a-b"));
        assert!(found("^[x[:a]]+$", "x:a"));
        assert!(found("(?i)abc", "ABC"));
        assert!(java("(?i)é").is_err());
        assert!(java(r"(?U)\w").is_err());
    }

    #[test]
    fn what_rust_has_not_is_refused() {
        for pattern in [r"(?=a)", r"(a)\1", "a++", "(", r"(?<!a)b", "\\"] {
            assert!(java(pattern).is_err(), "{pattern}");
        }
    }
}
