//! Functions of texts. Characters are code points, as Flink counts them, and places are counted from 1.

use std::borrow::Cow;

use super::{
    Function, Given, Param,
    Param::{Bytes, Long, Text},
    STRING, bools, function, longs, texts,
};
use crate::{
    model::LogicalType,
    query::{
        call::{Kernel, Out, Row},
        lower::{Planned, Term},
        types::Family,
    },
};

/// A text longer than this is not made: what repeats and pads would make any size of few rows.
const LONGEST: usize = 16 * 1024 * 1024;

pub(super) const FUNCTIONS: &[Function] = &[
    function("UPPER", 1..=1, |given| mapped(given, |row| Ok(Some(row.text(0).to_uppercase().into())))),
    function("LOWER", 1..=1, |given| mapped(given, |row| Ok(Some(row.text(0).to_lowercase().into())))),
    function("INITCAP", 1..=1, |given| {
        Ok(given.with(&[Text])?.strict(STRING, texts(|row| Ok(Some(initcap(row.text(0)).into())))))
    }),
    function("TRIM", 1..=2, |given| trim(given, true, true)),
    function("LTRIM", 1..=2, |given| trim(given, true, false)),
    function("RTRIM", 1..=2, |given| trim(given, false, true)),
    function("SUBSTRING", 2..=3, substring),
    function("SUBSTR", 2..=3, substring),
    function("CHAR_LENGTH", 1..=1, length),
    function("CHARACTER_LENGTH", 1..=1, length),
    function("POSITION", 2..=2, |given| {
        Ok(given.with(&[Text])?.strict(LogicalType::Int, longs(|row| Ok(Some(place(row.text(0), row.text(1), 1, 1))))))
    }),
    function("LOCATE", 2..=3, |given| {
        let given = given.with(&[Text, Text, Long])?;
        Ok(given.strict(
            LogicalType::Int,
            longs(|row| {
                let from = if row.len() > 2 { row.long(2) } else { 1 };
                Ok(Some(place(row.text(0), row.text(1), from, 1)))
            }),
        ))
    }),
    function("INSTR", 2..=4, instr),
    function("REPLACE", 3..=3, |given| Ok(given.with(&[Text])?.strict(STRING, texts(replaced)))),
    function("OVERLAY", 3..=4, overlay),
    function("||", 2..=2, concatenated),
    function("CONCAT", 1..=usize::MAX, |given| Ok(given.with(&[Text])?.strict(STRING, texts(joined)))),
    function("CONCAT_WS", 1..=usize::MAX, concat_ws),
    function("LPAD", 3..=3, |given| padded(given, true)),
    function("RPAD", 3..=3, |given| padded(given, false)),
    function("REVERSE", 1..=1, |given| {
        Ok(given
            .with(&[Text])?
            .strict_nullable(STRING, texts(|row| Ok(Some(row.text(0).chars().rev().collect::<String>().into())))))
    }),
    function("REPEAT", 2..=2, |given| {
        Ok(given.with(&[Text, Long])?.strict(
            STRING,
            texts(|row| {
                let times = usize::try_from(row.long(1)).unwrap_or(0);
                check(row.text(0).len().saturating_mul(times))?;
                Ok(Some(row.text(0).repeat(times).into()))
            }),
        ))
    }),
    function("LEFT", 2..=2, |given| {
        Ok(given
            .with(&[Text, Long])?
            .strict_nullable(STRING, texts(|row| Ok(Some(first(row.text(0), row.long(1)).into())))))
    }),
    function("RIGHT", 2..=2, |given| {
        Ok(given.with(&[Text, Long])?.strict_nullable(
            STRING,
            texts(|row| {
                let count = i64::try_from(row.text(0).chars().count()).unwrap_or(i64::MAX);
                Ok(Some(behind(row.text(0), count - row.long(1).max(0)).into()))
            }),
        ))
    }),
    function("ASCII", 1..=1, |given| {
        // The first byte, with its sign as Java has it.
        let byte = |row: &Row<'_>| row.text(0).bytes().next().map_or(0, |byte| i64::from(byte as i8));
        Ok(given.with(&[Text])?.strict(LogicalType::Int, longs(move |row| Ok(Some(byte(row))))))
    }),
    function("CHR", 1..=1, |given| {
        let chr = |code: i64| match code {
            ..0 => String::new(),
            code => char::from((code % 256) as u8).to_string(),
        };
        Ok(given.with(&[Long])?.strict_nullable(STRING, texts(move |row| Ok(Some(chr(row.long(0)).into())))))
    }),
    function("SPLIT_INDEX", 3..=3, split_index),
    function("IS_ALPHA", 1..=1, |given| is(given, |text| !text.is_empty() && text.chars().all(char::is_alphabetic))),
    function("IS_DIGIT", 1..=1, |given| is(given, |text| !text.is_empty() && text.chars().all(char::is_numeric))),
    function("IS_DECIMAL", 1..=1, |given| {
        is(given, |text| crate::model::number::java_float(text).is_some_and(|text| text.parse::<f64>().is_ok()))
    }),
    function("DECODE", 2..=2, |given| {
        let decode: Kernel = texts(|row| decoded(row.bytes(0), row.text(1)));
        Ok(given.with(&[Bytes, Text])?.strict_nullable(STRING, decode).may_fail())
    }),
    function("ENCODE", 2..=2, |given| {
        let encode = Kernel::Bytes(std::sync::Arc::new(|row| {
            encoded(row.text(0), row.text(1)).map(|bytes| bytes.map(Cow::Owned))
        }));
        Ok(given.with(&[Text])?.strict_nullable(LogicalType::VarBinary(None), encode).may_fail())
    }),
    function("UUID", 0..=0, |given| {
        let mut term = given.strict(LogicalType::Char(36), texts(|_| Ok(Some(uuid().into()))));
        term.volatile = true;
        Ok(term)
    }),
];

pub(in crate::query) fn check(bytes: usize) -> Result<(), String> {
    if bytes > LONGEST {
        Err(format!("a text of {bytes} bytes would be made, and {LONGEST} are the most"))
    } else {
        Ok(())
    }
}

fn bounded<'a>(text: String) -> Out<Cow<'a, str>> {
    check(text.len())?;
    Ok(Some(text.into()))
}

/// Of the type of its argument.
fn mapped(given: Given<'_>, run: impl for<'a> Fn(&Row<'a>) -> Out<Cow<'a, str>> + Send + Sync + 'static) -> Planned {
    let given = given.with(&[Text])?;
    let logical = given.arg(0).and_then(Term::logical).cloned().unwrap_or(STRING);
    Ok(given.strict(logical, texts(run)))
}

/// A text as long as its first argument at most.
fn no_longer(given: &Given<'_>) -> LogicalType {
    match given.arg(0).and_then(Term::logical) {
        Some(LogicalType::Char(length)) => LogicalType::VarChar(Some(*length)),
        Some(other) => other.clone(),
        None => STRING,
    }
}

fn initcap(text: &str) -> String {
    // Only letters and digits of ASCII belong to a word, as in Flink.
    let mut within = false;
    let mut made = String::with_capacity(text.len());
    for character in text.chars() {
        if within {
            made.extend(character.to_lowercase());
        } else {
            made.extend(character.to_uppercase());
        }
        within = character.is_ascii_alphanumeric();
    }
    made
}

fn trim(given: Given<'_>, start: bool, end: bool) -> Planned {
    let given = given.with(&[Text])?;
    let logical = no_longer(&given);
    Ok(given.strict(
        logical,
        texts(move |row| {
            let what = if row.len() > 1 { row.text(1) } else { " " };
            let is = |character: char| what.contains(character);
            let text = if start { row.text(0).trim_start_matches(is) } else { row.text(0) };
            Ok(Some(if end { text.trim_end_matches(is) } else { text }.into()))
        }),
    ))
}

/// The first characters.
fn first(text: &str, count: i64) -> &str {
    let count = usize::try_from(count).unwrap_or(0);
    text.char_indices().nth(count).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// What is behind the first characters.
fn behind(text: &str, count: i64) -> &str {
    let count = usize::try_from(count).unwrap_or(0);
    text.char_indices().nth(count).and_then(|(start, _)| text.get(start..)).unwrap_or("")
}

/// From a place on, which is counted from the end if it is negative, so many characters.
fn substring(given: Given<'_>) -> Planned {
    let given = given.with(&[Text, Long, Long])?;
    let logical = no_longer(&given);
    Ok(given.strict_nullable(
        logical,
        texts(|row| {
            let (text, from) = (row.text(0), row.long(1));
            let count = if row.len() > 2 { row.long(2) } else { i64::MAX };
            if count < 0 {
                return Ok(None);
            }
            let start = match from {
                1.. => from - 1,
                0 => 0,
                _ => i64::try_from(text.chars().count()).unwrap_or(i64::MAX).saturating_add(from),
            };
            if start < 0 {
                // It would begin before the text; then it ends before it too, or not: Flink answers nothing at all.
                return Ok(Some("".into()));
            }
            Ok(Some(first(behind(text, start), count).into()))
        }),
    ))
}

fn length(given: Given<'_>) -> Planned {
    let count = |text: &str| i64::try_from(text.chars().count()).ok();
    Ok(given.with(&[Text])?.strict(LogicalType::Int, longs(move |row| Ok(count(row.text(0))))))
}

/// Where a text is found the nth time, from a place on; 0: it is not.
fn place(wanted: &str, text: &str, from: i64, nth: i64) -> i64 {
    if nth < 1 {
        return 0;
    }
    let from = from.max(1);
    let mut at = from;
    let mut rest = behind(text, from - 1);
    if rest.is_empty() && !(wanted.is_empty() && from == 1) {
        return 0;
    }
    let mut left = nth;
    loop {
        let Some(found) = rest.find(wanted) else { return 0 };
        at += i64::try_from(rest.get(..found).unwrap_or_default().chars().count()).unwrap_or(0);
        left -= 1;
        if left == 0 {
            return at;
        }
        at += 1;
        rest = behind(rest.get(found..).unwrap_or_default(), 1);
        if rest.is_empty() {
            return 0;
        }
    }
}

/// `INSTR(text, wanted[, from[, nth]])`
fn instr(given: Given<'_>) -> Planned {
    let given = given.with(&[Text, Text, Long, Long])?;
    Ok(given.strict(
        LogicalType::Int,
        longs(|row| {
            let (from, nth) =
                (if row.len() > 2 { row.long(2) } else { 1 }, if row.len() > 3 { row.long(3) } else { 1 });
            Ok(Some(match from {
                0 => 0,
                ..0 => place_from_end(row.text(1), row.text(0), from, nth),
                1.. => place(row.text(1), row.text(0), from, nth),
            }))
        }),
    ))
}

/// Where a text is found the nth time backwards, from a place that is counted from the end; 0: it is not. That Flink
/// does so is known of single letters; the rest is inferred from Calcite's `SqlFunctions.position`.
fn place_from_end(wanted: &str, text: &str, from: i64, nth: i64) -> i64 {
    let count = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let head = first(text, count(text).saturating_add(from).saturating_add(1));
    let nth = usize::try_from(nth).ok().and_then(|nth| nth.checked_sub(1));
    let found = nth.and_then(|nth| head.rmatch_indices(wanted).nth(nth));
    found.map_or(0, |(start, _)| count(head.get(..start).unwrap_or_default()) + 1)
}

fn overlay(given: Given<'_>) -> Planned {
    let given = given.with(&[Text, Text, Long, Long])?;
    Ok(given.strict(
        STRING,
        texts(|row| {
            let (text, put, from) = (row.text(0), row.text(1), row.long(2));
            let long = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let count = if row.len() > 3 { row.long(3) } else { long(put) };
            if from < 1 || from > long(text) {
                return Ok(Some(text.into()));
            }
            // A length that is none takes everything.
            let rest = if count < 1 { "" } else { behind(text, (from - 1).saturating_add(count)) };
            bounded(format!("{}{put}{rest}", first(text, from - 1)))
        }),
    ))
}

fn replaced<'a>(row: &Row<'a>) -> Out<Cow<'a, str>> {
    let (text, wanted, put) = (row.text(0), row.text(1), row.text(2));
    if put.len() > wanted.len() {
        let more = text.matches(wanted).count().saturating_mul(put.len() - wanted.len());
        check(text.len().saturating_add(more))?;
    }
    Ok(Some(text.replace(wanted, put).into()))
}

fn joined<'a>(row: &Row<'a>) -> Out<Cow<'a, str>> {
    if row.len() == 1 {
        return Ok(Some(row.text(0).into()));
    }
    let length = (0..row.len()).map(|index| row.text(index).len()).sum();
    check(length)?;
    let mut made = String::with_capacity(length);
    (0..row.len()).for_each(|index| made.push_str(row.text(index)));
    Ok(Some(made.into()))
}

/// `a || b`, as long as both.
fn concatenated(given: Given<'_>) -> Planned {
    for arg in &given.args {
        if arg.is_null() {
            return Err(arg.error("NULL has no type here").expected("CAST(NULL AS STRING)"));
        }
    }
    if given.family(0) == Some(Family::Bytes) {
        let given = given.with(&[Bytes])?;
        let join = Kernel::Bytes(std::sync::Arc::new(|row| {
            check(row.bytes(0).len().saturating_add(row.bytes(1).len()))?;
            Ok(Some(Cow::Owned([row.bytes(0), row.bytes(1)].concat())))
        }));
        return Ok(given.strict(LogicalType::VarBinary(None), join));
    }
    let given = given.with(&[Text])?;
    let length = |index: usize| match given.arg(index).and_then(Term::logical) {
        Some(LogicalType::Char(length)) => Some(*length),
        Some(LogicalType::VarChar(length)) => *length,
        _ => None,
    };
    let both = length(0).zip(length(1)).and_then(|(a, b)| a.checked_add(b)).filter(|both| *both < 2_147_483_647);
    let fixed = |index: usize| matches!(given.arg(index).and_then(Term::logical), Some(LogicalType::Char(_)));
    let logical = match both {
        Some(both) if fixed(0) && fixed(1) => LogicalType::Char(both),
        both => LogicalType::VarChar(both),
    };
    Ok(given.strict(logical, texts(joined)))
}

/// Texts that are null are left out.
fn concat_ws(given: Given<'_>) -> Planned {
    let given = given.with(&[Text])?;
    let nullable = given.nullable();
    let ty = crate::query::types::Type::new(STRING, nullable);
    Ok(Term::lenient(
        "CONCAT_WS",
        given.args,
        ty,
        given.at,
        texts(|row| {
            if row.is_null(0) {
                return Ok(None);
            }
            let parts: Vec<&str> =
                (1..row.len()).filter(|index| !row.is_null(*index)).map(|index| row.text(index)).collect();
            let between = row.text(0).len().saturating_mul(parts.len().saturating_sub(1));
            check(parts.iter().fold(between, |sum, part| sum.saturating_add(part.len())))?;
            Ok(Some(parts.join(row.text(0)).into()))
        }),
    ))
}

fn padded(given: Given<'_>, left: bool) -> Planned {
    let given = given.with(&[Text, Long, Text])?;
    Ok(given.strict(
        STRING,
        texts(move |row| {
            let (text, pad) = (row.text(0), row.text(2));
            let Ok(wanted) = usize::try_from(row.long(1)) else { return Ok(None) };
            check(wanted)?;
            if pad.is_empty() {
                return Ok(None);
            }
            let count = text.chars().count();
            if count >= wanted {
                return Ok(Some(first(text, row.long(1)).into()));
            }
            let filler: String = pad.chars().cycle().take(wanted - count).collect();
            Ok(Some(if left { format!("{filler}{text}") } else { format!("{text}{filler}") }.into()))
        }),
    ))
}

/// A part between separators, counted from 0. Empty parts count, but an empty text has none.
fn split_index(given: Given<'_>) -> Planned {
    let by_code = given.family(1) == Some(Family::Number);
    let params: &[Param] = if by_code { &[Text, Long, Long] } else { &[Text, Text, Long] };
    let given = given.with(params)?;
    Ok(given.strict_nullable(
        STRING,
        texts(move |row| {
            let (text, Ok(index)) = (row.text(0), usize::try_from(row.long(2))) else { return Ok(None) };
            if text.is_empty() {
                return Ok(None);
            }
            if by_code {
                let code = u32::try_from(row.long(1)).ok().and_then(char::from_u32);
                return Ok(code.and_then(|code| text.split(code).nth(index)).map(Cow::Borrowed));
            }
            match row.text(1) {
                "" => Ok((index == 0).then_some(text.into())),
                separator => Ok(text.split(separator).nth(index).map(Cow::Borrowed)),
            }
        }),
    ))
}

fn is(given: Given<'_>, test: fn(&str) -> bool) -> Planned {
    let ty = crate::query::types::Type::new(LogicalType::Boolean, false);
    let given = given.with(&[Text])?;
    let kernel = bools(move |row| Ok(Some(!row.is_null(0) && test(row.text(0)))));
    Ok(Term::lenient(given.name.to_owned(), given.args, ty, given.at, kernel))
}

/// The character sets that every Java has.
const CHARSETS: &str = "US-ASCII, ISO-8859-1, UTF-8, UTF-16BE, UTF-16LE or UTF-16";

fn decoded<'a>(bytes: &'a [u8], charset: &str) -> Out<Cow<'a, str>> {
    let wide = |bytes: &[u8], big: bool| {
        let unit = |pair: &[u8]| match pair {
            [a, b] if big => u16::from_be_bytes([*a, *b]),
            [a, b] => u16::from_le_bytes([*a, *b]),
            _ => 0xfffd,
        };
        let units: Vec<u16> = bytes.chunks(2).map(unit).collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    Ok(Some(match charset.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => String::from_utf8_lossy(bytes),
        "US-ASCII" | "ASCII" => {
            let character = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { char::REPLACEMENT_CHARACTER };
            bytes.iter().map(character).collect::<String>().into()
        }
        "ISO-8859-1" => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
        "UTF-16BE" => wide(bytes, true),
        "UTF-16LE" => wide(bytes, false),
        "UTF-16" => match bytes {
            [0xff, 0xfe, rest @ ..] => wide(rest, false),
            [0xfe, 0xff, rest @ ..] | rest => wide(rest, true),
        },
        _ => return Err(format!("'{charset}' is no character set: expected {CHARSETS}")),
    }))
}

fn encoded(text: &str, charset: &str) -> Out<Vec<u8>> {
    let narrow = |most: u32| {
        text.chars()
            .map(move |one| u8::try_from(u32::from(one)).ok().filter(|_| u32::from(one) <= most).unwrap_or(b'?'))
    };
    Ok(Some(match charset.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => text.into(),
        "US-ASCII" | "ASCII" => narrow(0x7f).collect(),
        "ISO-8859-1" => narrow(0xff).collect(),
        "UTF-16BE" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "UTF-16LE" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        // Java writes a mark before a text, and nothing for none.
        "UTF-16" if text.is_empty() => Vec::new(),
        "UTF-16" => [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect(),
        _ => return Err(format!("'{charset}' is no character set: expected {CHARSETS}")),
    }))
}

/// A random one, of version 4.
fn uuid() -> String {
    let bits = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{bits:032x}");
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default().to_owned();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_characters_from_1() {
        assert_eq!(place("o", "Hello World", 1, 1), 5);
        assert_eq!(place("o", "Hello World", 1, 2), 8);
        assert_eq!(place("o", "Hello World", 6, 1), 8);
        assert_eq!(place("😀", "é 😀", 1, 1), 3);
        assert_eq!(place("", "", 1, 1), 1);
        assert_eq!(place("x", "Hello", 1, 1), 0);
        assert_eq!(place("o", "Hello", -2, 1), 5);
    }

    #[test]
    fn a_uuid_is_one_of_version_4() {
        let one = uuid();
        assert_eq!((one.len(), one.as_bytes()[14], one.matches('-').count()), (36, b'4', 4));
        assert!(b"89ab".contains(&one.as_bytes()[19]), "{one}");
        assert_ne!(one, uuid());
    }
}
