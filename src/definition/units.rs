//! Values as Flink writes them in a `WITH (...)` clause: durations, sizes, booleans, integers, characters.
//!
//! Every function answers what was expected when it refuses; none repeats the text, which may be a secret.

use std::{fmt, time::Duration};

use bigdecimal::BigDecimal;

/// Why a text is not a value: what was expected in its place.
pub type Expected = &'static str;

const DURATION: Expected =
    "a duration such as `10s`, `500 ms` or `2min` (units d, h, min, s, ms, us, ns; a bare number is milliseconds)";
const SIZE: Expected =
    "a size such as `128mb` or `1 gb` (units b, kb, mb, gb, tb, in steps of 1024; a bare number is bytes)";
const CHARACTER: Expected = "exactly one character (`\\t`, `\\n` and `\\u0001` are understood)";
const BACKOFF: Expected = "a range of durations such as `1s..60s`, the shorter first";

/// A duration: digits, blanks, a unit in any case. Without a unit it is milliseconds. Neither fractions nor signs.
pub fn parse_duration(text: &str) -> Result<Duration, Expected> {
    let (number, unit) = number_and_unit(text).ok_or(DURATION)?;
    let nanos: u64 = match unit.as_str() {
        "d" | "day" | "days" => 86_400_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "m" | "min" | "minute" | "minutes" => 60_000_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        // Both code points that print as a micro sign, and the letter people type for it.
        "\u{b5}s" | "\u{3bc}s" | "us" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        _ => return Err(DURATION),
    };
    number.checked_mul(nanos).map(Duration::from_nanos).ok_or("a duration of less than 584 years")
}

/// A size in bytes: digits, blanks, a unit in any case. Without a unit it is bytes. Units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, Expected> {
    let (number, unit) = number_and_unit(text).ok_or(SIZE)?;
    let shift = match unit.as_str() {
        "" | "b" | "bytes" => 0,
        "k" | "kb" | "kibibytes" => 10,
        "m" | "mb" | "mebibytes" => 20,
        "g" | "gb" | "gibibytes" => 30,
        "t" | "tb" | "tebibytes" => 40,
        _ => return Err(SIZE),
    };
    number.checked_mul(1 << shift).ok_or("a size of less than 16 exbibytes")
}

fn number_and_unit(text: &str) -> Option<(u64, String)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit.trim().to_lowercase()))
}

/// How many in how long; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many; at least 1.
    pub count: u32,
    /// In how long.
    pub per: Per,
}

/// The time that a [`Rate`] counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// `s`
    Second,
    /// `min`
    Minute,
    /// `h`
    Hour,
}

impl Rate {
    /// So many in a second, above zero.
    pub fn per_second(self) -> f64 {
        let seconds = match self.per {
            Per::Second => 1.0,
            Per::Minute => 60.0,
            Per::Hour => 3600.0,
        };
        f64::from(self.count) / seconds
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = match self.per {
            Per::Second => "s",
            Per::Minute => "min",
            Per::Hour => "h",
        };
        write!(f, "{}/{per}", self.count)
    }
}

/// A rate: digits, a slash and a unit of time, with or without blanks.
pub fn parse_rate(text: &str) -> Result<Rate, Expected> {
    const RATE: Expected = "a rate such as `500/s`, `30000/min` or `1/h`";
    let (count, per) = text.split_once('/').ok_or(RATE)?;
    let per = match per.trim().to_lowercase().as_str() {
        "s" | "sec" | "second" => Per::Second,
        "m" | "min" | "minute" => Per::Minute,
        "h" | "hour" => Per::Hour,
        _ => return Err(RATE),
    };
    let count = count.trim();
    let digits = count.bytes().all(|byte| byte.is_ascii_digit());
    let count = count.parse().ok().filter(|count| digits && *count > 0).ok_or(RATE)?;
    Ok(Rate { count, per })
}

/// `true` or `false`, in any case. Nothing else: `yes` and `1` are refused, as by Flink.
pub fn parse_boolean(text: &str) -> Result<bool, Expected> {
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err("`true` or `false`")
    }
}

/// A decimal integer with an optional sign. Neither blanks nor `0x` nor `.0`.
pub fn parse_integer(text: &str) -> Result<i64, Expected> {
    text.parse().map_err(|_| "an integer such as `16`")
}

/// A decimal number: an optional sign, digits, a fraction, an exponent of at most three digits.
pub fn parse_number(text: &str) -> Result<BigDecimal, Expected> {
    const NUMBER: Expected = "a number such as `10` or `-1.5`";
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // A larger exponent is a number of so many digits, written out as soon as anyone calculates with it.
    if digits(whole) && digits(fraction) && digits(exponent) && exponent.len() <= 3 {
        text.parse().map_err(|_| NUMBER)
    } else {
        Err(NUMBER)
    }
}

/// One character, after Java's escapes have been resolved.
pub fn parse_character(text: &str) -> Result<char, Expected> {
    let resolved = unescape(text).ok_or(CHARACTER)?;
    let mut chars = resolved.chars();
    match (chars.next(), chars.next()) {
        // A character outside the basic plane is two of Java's, so Flink refuses it.
        (Some(one), None) if one.len_utf16() == 1 => Ok(one),
        _ => Err(CHARACTER),
    }
}

/// Resolves Java's escapes: `\b \t \n \f \r \" \' \\`, `\uXXXX` and octal `\0` to `\377`; any other escaped character
/// stands for itself. `None` if a `\u` is not followed by four hex digits, or names half a character.
pub fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            None => '\\',
            Some('b') => '\u{8}',
            Some('t') => '\t',
            Some('n') => '\n',
            Some('f') => '\u{c}',
            Some('r') => '\r',
            Some('u') => {
                // Java allows the `u` to be repeated.
                while chars.next_if_eq(&'u').is_some() {}
                let digits: String = chars.by_ref().take(4).collect();
                let hex = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                char::from_u32(u32::from_str_radix(&digits, 16).ok().filter(|_| hex)?)?
            }
            Some(first) if first.is_digit(8) => {
                let mut value = first.to_digit(8)?;
                let most = if first <= '3' { 2 } else { 1 };
                for _ in 0..most {
                    let Some(digit) = chars.peek().and_then(|next| next.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    chars.next();
                }
                char::from_u32(value)?
            }
            Some(other) => other,
        });
    }
    Some(out)
}

/// Two durations joined by `..`, the shorter first; both above zero.
pub fn parse_backoff(text: &str) -> Result<(Duration, Duration), Expected> {
    let (least, most) = text.split_once("..").ok_or(BACKOFF)?;
    let (least, most) = (parse_duration(least).map_err(|_| BACKOFF)?, parse_duration(most).map_err(|_| BACKOFF)?);
    if least.is_zero() || least > most { Err(BACKOFF) } else { Ok((least, most)) }
}

/// A duration in the largest unit that shows it exactly.
pub fn show_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [(86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s")];
    let small = [(1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    if nanos == 0 {
        return "0s".to_owned();
    }
    units
        .into_iter()
        .chain(small)
        .find(|(unit, _)| nanos.is_multiple_of(*unit))
        .map_or_else(String::new, |(unit, name)| format!("{}{name}", nanos / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_above_zero_and_a_unit() {
        for (text, shown, second) in [
            ("500/s", "500/s", 500.0),
            (" 30000 / min", "30000/min", 500.0),
            ("1/h", "1/h", 1.0 / 3600.0),
            ("2/Hour", "2/h", 2.0 / 3600.0),
        ] {
            let rate = parse_rate(text).unwrap();
            assert_eq!((rate.to_string().as_str(), rate.per_second()), (shown, second));
        }
        for text in ["", "500", "/s", "0/s", "-1/s", "+1/s", "1.5/s", "1/d", "1/", "1/s/s", "99999999999/s", "x/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_flink_reads_them() {
        let seconds = Duration::from_secs;
        for text in ["10s", "10 s", "10S", "10 seconds", "10sec", " 10\ts "] {
            assert_eq!(parse_duration(text), Ok(seconds(10)), "{text}");
        }
        assert_eq!(parse_duration("30sec"), Ok(seconds(30)));
        assert_eq!(parse_duration("10"), Ok(Duration::from_millis(10)));
        assert_eq!(parse_duration("5m"), Ok(seconds(300)));
        assert_eq!(parse_duration("5min"), Ok(seconds(300)));
        assert_eq!(parse_duration("1d"), Ok(seconds(86_400)));
        assert_eq!(parse_duration("2 Hours"), Ok(seconds(7_200)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("7µs"), Ok(Duration::from_micros(7)));
        assert_eq!(parse_duration("7 micros"), Ok(Duration::from_micros(7)));
        assert_eq!(parse_duration("7ns"), Ok(Duration::from_nanos(7)));
        for text in ["1.5s", "-1s", "", "s", "10 parsecs", "10s 5s", "99999999999999999999s", "99999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("128mb"), Ok(128 << 20));
        assert_eq!(parse_size("1 GB"), Ok(1 << 30));
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("1 kibibytes"), Ok(1024));
        for text in ["", "mb", "1.5mb", "-1", "1 potato", "99999999999tb"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn booleans_are_only_true_and_false() {
        assert_eq!(parse_boolean("TRUE"), Ok(true));
        assert_eq!(parse_boolean("False"), Ok(false));
        for text in ["yes", "1", "on", "", "true "] {
            assert!(parse_boolean(text).is_err(), "{text}");
        }
    }

    #[test]
    fn integers_are_plain_decimals() {
        assert_eq!(parse_integer("16"), Ok(16));
        assert_eq!(parse_integer("-1"), Ok(-1));
        for text in ["", " 1", "0x10", "1.0", "1e3", "9223372036854775808", "1_000"] {
            assert!(parse_integer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_decimal_and_exact() {
        for (text, plain) in [("16", "16"), ("-1.50", "-1.50"), ("2e3", "2000"), ("+1.5E-2", "0.015")] {
            assert_eq!(parse_number(text).unwrap().to_plain_string(), plain);
        }
        for text in ["", " 1", "0x10", "1.", ".5", "1e", "1e9999", "NaN", "1_000", "--1"] {
            assert!(parse_number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn characters_may_be_escaped_and_must_be_one() {
        assert_eq!(parse_character(","), Ok(','));
        assert_eq!(parse_character("\\t"), Ok('\t'));
        assert_eq!(parse_character("\\u0001"), Ok('\u{1}'));
        assert_eq!(parse_character("\\1"), Ok('\u{1}'));
        assert_eq!(parse_character("\\\\"), Ok('\\'));
        assert_eq!(parse_character("\\"), Ok('\\'));
        for text in ["", "||", "\\u00", "\\ud83d", "\u{1f600}", "\\u+041"] {
            assert!(parse_character(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_backoff_is_a_range_with_the_shorter_first() {
        assert_eq!(parse_backoff("1s..60s"), Ok((Duration::from_secs(1), Duration::from_secs(60))));
        assert_eq!(parse_backoff("1s .. 1s"), Ok((Duration::from_secs(1), Duration::from_secs(1))));
        for text in ["1s", "60s..1s", "0s..1s", "1s..", "..", "1s-60s"] {
            assert!(parse_backoff(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_is_shown_in_the_largest_exact_unit() {
        for text in ["30s", "500ms", "2min", "1d", "36h", "0s", "1us"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
    }
}
