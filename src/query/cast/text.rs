//! Casts from and to texts and bytes.

use std::{borrow::Cow, sync::Arc};

use super::{Cast, no_value, texts, time};
use crate::{
    model::{LogicalType, number as java},
    query::{
        call::{Kernel, Out, Row},
        functions::check_length,
    },
};

/// A text as BOOLEAN.
pub(in crate::query) fn parse_boolean(text: &str) -> Result<bool, String> {
    const TRUE: [&str; 5] = ["t", "true", "y", "yes", "1"];
    const FALSE: [&str; 5] = ["f", "false", "n", "no", "0"];
    let text_is = |word: &&str| text.trim_matches(' ').eq_ignore_ascii_case(word);
    if TRUE.iter().any(text_is) {
        Ok(true)
    } else if FALSE.iter().any(text_is) {
        Ok(false)
    } else {
        Err(no_value(text, "BOOLEAN"))
    }
}

/// A text as an integer: blanks around it and a fraction, which is cut off, are allowed.
pub(in crate::query) fn parse_integer(text: &str) -> Option<i64> {
    let trimmed = text.trim_matches(' ');
    let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, ""));
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(digits) || !all_digits(fraction) || (digits.is_empty() && fraction.is_empty()) {
        return None;
    }
    if digits.is_empty() { Some(0) } else { whole.parse().ok() }
}

pub(super) fn to_number(to: &LogicalType) -> Kernel {
    use LogicalType as T;
    let name = to.to_string();
    match to {
        T::Float | T::Double => {
            let float = *to == T::Float;
            Kernel::Double(Arc::new(move |row| {
                let text = row.text(0);
                let read = java::java_float(text).and_then(|text| match float {
                    true => text.parse::<f32>().ok().map(f64::from),
                    false => text.parse().ok(),
                });
                read.map(Some).ok_or_else(|| no_value(text, &name))
            }))
        }
        T::Decimal(precision, scale) => {
            let (precision, scale) = (*precision, *scale);
            Kernel::Decimal(Arc::new(move |row| {
                let text = row.text(0);
                match java::decimal(text.trim_matches(' '), precision, scale) {
                    java::Decimal::Value(value) => Ok(Some(value)),
                    _ => Err(no_value(text, &name)),
                }
            }))
        }
        _ => {
            let range = match to {
                T::TinyInt => i64::from(i8::MIN)..=i8::MAX.into(),
                T::SmallInt => i16::MIN.into()..=i16::MAX.into(),
                T::Int => i32::MIN.into()..=i32::MAX.into(),
                _ => i64::MIN..=i64::MAX,
            };
            Kernel::Long(Arc::new(move |row| {
                let text = row.text(0);
                let value = parse_integer(text).filter(|value| range.contains(value));
                value.map(Some).ok_or_else(|| no_value(text, &name))
            }))
        }
    }
}

/// At most so many characters, or exactly so many.
#[derive(Clone, Copy)]
pub(super) struct Length {
    most: Option<usize>,
    padded: bool,
}

impl Length {
    fn of(to: &LogicalType) -> Self {
        let most = match to {
            LogicalType::Char(length) | LogicalType::Binary(length) => Some(*length),
            LogicalType::VarChar(length) | LogicalType::VarBinary(length) => *length,
            _ => None,
        };
        let padded = matches!(to, LogicalType::Char(_) | LogicalType::Binary(_));
        Self { most: most.and_then(|most| usize::try_from(most).ok()), padded }
    }

    fn fit<'a>(&self, text: impl Into<Cow<'a, str>>) -> Out<Cow<'a, str>> {
        let text = text.into();
        let Some(most) = self.most else { return Ok(Some(text)) };
        if let Some((end, _)) = text.char_indices().nth(most) {
            return Ok(Some(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or(text)),
                Cow::Owned(mut text) => {
                    text.truncate(end);
                    Cow::Owned(text)
                }
            }));
        }
        let missing = if self.padded { most - text.chars().count() } else { 0 };
        if missing == 0 {
            return Ok(Some(text));
        }
        check_length(text.len().saturating_add(missing))?;
        let mut padded = text.into_owned();
        padded.extend(std::iter::repeat_n(' ', missing));
        Ok(Some(Cow::Owned(padded)))
    }

    fn fit_bytes<'a>(&self, bytes: &'a [u8]) -> Out<Cow<'a, [u8]>> {
        Ok(Some(match self.most {
            Some(most) if bytes.len() > most => Cow::Borrowed(bytes.get(..most).unwrap_or(bytes)),
            Some(most) if self.padded && bytes.len() < most => {
                check_length(most)?;
                let mut padded = bytes.to_vec();
                padded.resize(most, 0);
                Cow::Owned(padded)
            }
            _ => Cow::Borrowed(bytes),
        }))
    }
}

pub(super) fn fitted(to: &LogicalType) -> Option<Cast> {
    let length = Length::of(to);
    if length.most.is_none() {
        return Some(Cast::Same);
    }
    Some(Cast::Sure(texts(move |row| length.fit(row.text(0)))))
}

pub(super) fn to_bytes(to: &LogicalType) -> Cast {
    let length = Length::of(to);
    Cast::Sure(Kernel::Bytes(Arc::new(move |row| length.fit_bytes(row.text(0).as_bytes()))))
}

pub(super) fn from_bytes(to: &LogicalType) -> Cast {
    let length = Length::of(to);
    // What is no UTF-8 is replaced, as Flink's String does.
    Cast::Sure(texts(move |row| length.fit(String::from_utf8_lossy(row.bytes(0)))))
}

pub(super) fn bytes_fitted(to: &LogicalType) -> Cast {
    let length = Length::of(to);
    if length.most.is_none() {
        return Cast::Same;
    }
    Cast::Sure(Kernel::Bytes(Arc::new(move |row| length.fit_bytes(row.bytes(0)))))
}

/// Anything that is not nested as a text.
pub(super) fn from_any(from: &LogicalType, to: &LogicalType) -> Option<Kernel> {
    let length = Length::of(to);
    let write = writer(from)?;
    Some(texts(move |row| {
        let mut text = Vec::new();
        write(row, &mut text).ok_or("a time is out of range")?;
        length.fit(String::from_utf8_lossy(&text).into_owned())
    }))
}

/// Writes the first argument of a row.
type Write = Box<dyn Fn(&Row<'_>, &mut Vec<u8>) -> Option<()> + Send + Sync>;

fn writer(from: &LogicalType) -> Option<Write> {
    use LogicalType as T;
    Some(match from {
        T::Boolean => Box::new(|row, out| {
            out.extend_from_slice(if row.bool(0) { b"TRUE" } else { b"FALSE" });
            Some(())
        }),
        T::TinyInt | T::SmallInt | T::Int | T::BigInt => Box::new(|row, out| {
            out.extend_from_slice(itoa::Buffer::new().format(row.long(0)).as_bytes());
            Some(())
        }),
        T::Float => Box::new(|row, out| {
            java::write_f32(row.float(0), out);
            unquote(out);
            Some(())
        }),
        T::Double => Box::new(|row, out| {
            java::write_f64(row.double(0), out);
            unquote(out);
            Some(())
        }),
        T::Decimal(_, scale) => {
            let scale = *scale;
            Box::new(move |row, out| {
                out.extend_from_slice(plain_decimal(row.decimal(0), scale).as_bytes());
                Some(())
            })
        }
        T::Date => Box::new(|row, out| time::write_date(row.int(0), out)),
        T::Time(precision) => {
            let precision = *precision;
            Box::new(move |row, out| time::write_time(row.int(0), precision, out))
        }
        T::Timestamp(precision) | T::TimestampLtz(precision) => {
            let precision = *precision;
            Box::new(move |row, out| time::write_timestamp(row.long(0), precision, out))
        }
        _ => return None,
    })
}

/// The words of numbers that are not finite come in the quotes of JSON.
fn unquote(out: &mut Vec<u8>) {
    out.retain(|byte| *byte != b'"');
}

/// With as many digits behind the point as the scale says.
pub(in crate::query) fn plain_decimal(value: i128, scale: u8) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
    let sign = if value < 0 { "-" } else { "" };
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_may_have_blanks_and_a_fraction_but_nothing_else() {
        for (text, value) in [
            (" -3 ", Some(-3)),
            ("1.7", Some(1)),
            ("-0.005", Some(0)),
            ("+5", Some(5)),
            (".5", Some(0)),
            ("", None),
            (".", None),
            ("1e3", None),
            ("0x10", None),
            ("1.x", None),
            ("--1", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(parse_integer(text), value, "{text}");
        }
    }

    #[test]
    fn decimals_have_the_digits_of_their_scale() {
        assert_eq!(plain_decimal(0, 2), "0.00");
        assert_eq!(plain_decimal(-5, 2), "-0.05");
        assert_eq!(plain_decimal(1234, 2), "12.34");
        assert_eq!(plain_decimal(-7, 0), "-7");
    }
}
