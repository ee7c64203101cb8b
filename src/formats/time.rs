//! Dates and times, and timestamps in the two spellings of Flink.

use chrono::{Datelike, NaiveDate};

/// Days from 0000-12-31, from which chrono counts, to 1970-01-01.
const EPOCH_FROM_CE: i32 = 719_163;
const SECONDS_PER_DAY: i64 = 86_400;

/// How a timestamp is spelt, as in `json.timestamp-format.standard`; csv knows the first only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standard {
    /// `2020-12-30 12:13:14.123`; seconds are mandatory
    Sql,
    /// `2020-12-30T12:13[:14[.123]]`
    Iso,
}

/// The unit of a timestamp column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Microseconds
    Micros,
    /// Nanoseconds
    Nanos,
}

impl Unit {
    pub(super) const fn per_second(self) -> i64 {
        match self {
            Self::Micros => 1_000_000,
            Self::Nanos => 1_000_000_000,
        }
    }
}

/// A `yyyy-MM-dd`, in days since the epoch. Years begin at 0000: SQL's begin at 0001, but Flink's DATE and TIMESTAMP
/// are documented from 0000-01-01 on, and its `ISO_LOCAL_DATE` reads it.
pub(super) fn parse_date(text: &[u8]) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let year = two(*y1, *y2)? * 100 + two(*y3, *y4)?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, two(*m1, *m2)?, two(*d1, *d2)?)?;
    Some(date.num_days_from_ce() - EPOCH_FROM_CE)
}

/// The same with one or two digits for month and day, as `java.sql.Date` reads it. A day that its month does not
/// have, which Java turns into one of the next month, is none.
pub(super) fn parse_lenient_date(text: &str) -> Option<i32> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        let good = digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        good.then(|| part.parse::<u16>().ok()).flatten()
    };
    let (year, month, day) = (number(year, 4..=4)?, number(month, 1..=2)?, number(day, 1..=2)?);
    let date = NaiveDate::from_ymd_opt(i32::from(year), u32::from(month), u32::from(day))?;
    parts.next().is_none().then(|| date.num_days_from_ce() - EPOCH_FROM_CE)
}

/// A `HH:mm[:ss[.fraction]]`, in milliseconds since midnight; what is finer is cut off.
pub(super) fn parse_time_of_day(text: &[u8]) -> Option<i32> {
    let (seconds, nanos) = parse_clock(text, false)?;
    i32::try_from(seconds * 1000 + nanos / 1_000_000).ok()
}

/// A `HH:mm:ss[.fraction]`, in milliseconds since midnight; the fraction is dropped, as Flink does, and the end of
/// the day is midnight.
pub(super) fn parse_time(text: &[u8]) -> Option<i32> {
    let (seconds, _) = parse_clock(text, true)?;
    i32::try_from(seconds % 86_400 * 1000).ok()
}

/// A timestamp, in the unit since the epoch; digits finer than the unit are cut off. With `zoned`, a `Z` must be
/// at the end, else it must not. `None` too if the unit cannot hold it.
pub(super) fn parse_timestamp(text: &[u8], standard: Standard, zoned: bool, unit: Unit) -> Option<i64> {
    let text = if zoned { text.strip_suffix(b"Z")? } else { text };
    let (date, rest) = text.split_at_checked(10)?;
    let clock = match (standard, rest.split_first()?) {
        (Standard::Sql, (b' ', clock)) => parse_clock(clock, true)?,
        (Standard::Iso, (b'T' | b't', clock)) => parse_clock(clock, false)?,
        _ => return None,
    };
    let (seconds, nanos) = clock;
    let seconds = i64::from(parse_date(date)?) * SECONDS_PER_DAY + i64::from(seconds);
    let fraction = i64::from(nanos) / (1_000_000_000 / unit.per_second());
    // In 128 bits, for the earliest nanoseconds are representable only together with their fraction.
    let whole = i128::from(seconds) * i128::from(unit.per_second()) + i128::from(fraction);
    i64::try_from(whole).ok()
}

/// `HH:mm[:ss[.f]]`: seconds since midnight and nanoseconds. Where SQL is meant, seconds are mandatory, and the end of
/// the day may be written as 24:00:00.
fn parse_clock(text: &[u8], sql: bool) -> Option<(u32, u32)> {
    let (hour, minute, rest) = match text {
        [h1, h2, b':', m1, m2, rest @ ..] => (two(*h1, *h2)?, two(*m1, *m2)?, rest),
        _ => return None,
    };
    let (second, nanos) = match rest {
        [] if !sql => (0, 0),
        [b':', s1, s2] => (two(*s1, *s2)?, 0),
        [b':', s1, s2, b'.', fraction @ ..] => (two(*s1, *s2)?, parse_fraction(fraction)?),
        _ => return None,
    };
    let in_day = hour < 24 && minute < 60 && second < 60;
    let end_of_day = sql && (hour, minute, second, nanos) == (24, 0, 0, 0);
    (in_day || end_of_day).then_some((hour * 3600 + minute * 60 + second, nanos))
}

/// Up to 9 digits after the point, in nanoseconds. None at all are enough for Java, and so here.
fn parse_fraction(digits: &[u8]) -> Option<u32> {
    if digits.len() > 9 {
        return None;
    }
    let mut nanos = 0;
    for place in 0..9 {
        let digit = digits.get(place).copied().unwrap_or(b'0');
        nanos = nanos * 10 + u32::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    Some(nanos)
}

fn two(tens: u8, units: u8) -> Option<u32> {
    (tens.is_ascii_digit() && units.is_ascii_digit()).then(|| u32::from(tens - b'0') * 10 + u32::from(units - b'0'))
}

/// Writes a date, given in days since the epoch. `None`, with nothing written, if it is outside the calendar.
/// Years of more than four digits get a sign, as `ISO_LOCAL_DATE` of Java writes them.
pub(super) fn write_date(days: i32, out: &mut Vec<u8>) -> Option<()> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_FROM_CE)?)?;
    match date.year() {
        year @ 0..=9999 => {
            // Two digits at a time fit.
            push_two(year as u32 / 100, out);
            push_two(year as u32 % 100, out);
        }
        year if year < 0 => out.extend_from_slice(format!("-{:04}", year.unsigned_abs()).as_bytes()),
        year => out.extend_from_slice(format!("+{year}").as_bytes()),
    }
    out.push(b'-');
    push_two(date.month(), out);
    out.push(b'-');
    push_two(date.day(), out);
    Some(())
}

/// Writes a time of day, given in milliseconds since midnight. `None` if it is not one.
pub(super) fn write_time(millis: i32, out: &mut Vec<u8>) -> Option<()> {
    let millis = u32::try_from(millis).ok().filter(|millis| *millis < 86_400_000)?;
    write_clock(millis / 1000, millis % 1000 * 1_000_000, out);
    Some(())
}

/// Writes a timestamp in the unit since the epoch. `None`, with nothing written, if it is outside the calendar.
pub(super) fn write_timestamp(
    value: i64,
    standard: Standard,
    zoned: bool,
    unit: Unit,
    out: &mut Vec<u8>,
) -> Option<()> {
    let seconds = value.div_euclid(unit.per_second());
    let fraction = value.rem_euclid(unit.per_second());
    write_date(i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).ok()?, out)?;
    out.push(if standard == Standard::Sql { b' ' } else { b'T' });
    // Both are below 2^31: a remainder of a day, and of a second in nanoseconds.
    let nanos = fraction * (1_000_000_000 / unit.per_second());
    write_clock(seconds.rem_euclid(SECONDS_PER_DAY) as u32, nanos as u32, out);
    if zoned {
        out.push(b'Z');
    }
    Some(())
}

/// `HH:mm:ss`, then the fraction without trailing zeros if there is one.
fn write_clock(seconds: u32, nanos: u32, out: &mut Vec<u8>) {
    push_two(seconds / 3600, out);
    out.push(b':');
    push_two(seconds / 60 % 60, out);
    out.push(b':');
    push_two(seconds % 60, out);
    if nanos == 0 {
        return;
    }
    out.push(b'.');
    let (mut rest, mut place) = (nanos, 100_000_000);
    while rest > 0 {
        out.push(b'0' + (rest / place) as u8);
        rest %= place;
        place /= 10;
    }
}

fn push_two(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

#[cfg(test)]
mod tests {
    use super::{Standard::*, Unit::*, *};

    #[test]
    fn dates_and_times_are_strict() {
        assert_eq!(parse_date(b"1970-01-02"), Some(1));
        assert_eq!(parse_date(b"2024-02-29"), Some(19_782));
        for wrong in ["2024-2-9", "2023-02-29", "20240209", "2024-02-09 ", "2024/02/09", "", "20240"] {
            assert_eq!(parse_date(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(parse_time(b"12:34:56"), Some(45_296_000));
        assert_eq!(parse_time(b"12:34:56.789"), Some(45_296_000), "the fraction is dropped");
        for wrong in ["12:34", "24:00:01", "12:60:00", "12:34:60", "1:2:3", "12:34:56.a", "12:34:56.1234567890"] {
            assert_eq!(parse_time(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_end_of_a_day_is_the_beginning_of_the_next() {
        assert_eq!(parse_time(b"24:00:00"), Some(0));
        assert_eq!(parse_time_of_day(b"24:00:00"), None);
        let read = |text: &str, standard| parse_timestamp(text.as_bytes(), standard, false, Micros);
        assert_eq!(read("1970-01-01 24:00:00.0", Sql), Some(86_400_000_000));
        assert_eq!(read("1970-01-01 24:00:00.1", Sql), None);
        assert_eq!(read("1970-01-01T24:00:00", Iso), None);
    }

    #[test]
    fn timestamps_are_read_in_the_chosen_spelling_only() {
        let read = |text: &str, standard, zoned| parse_timestamp(text.as_bytes(), standard, zoned, Micros);
        assert_eq!(read("1970-01-01 00:00:01.5", Sql, false), Some(1_500_000));
        assert_eq!(read("1970-01-01T00:00:01.123456789", Iso, false), Some(1_123_456), "cut to the unit");
        assert_eq!(read("1970-01-01T00:01", Iso, false), Some(60_000_000));
        assert_eq!(read("1970-01-01 00:00:01Z", Sql, true), Some(1_000_000));
        assert_eq!(read("1969-12-31 23:59:59.9", Sql, false), Some(-100_000));
        assert_eq!(read("0001-01-01 00:00:00", Sql, false), Some(-62_135_596_800_000_000));
        for wrong in
            ["1970-01-01T00:00:01", "1970-01-01 00:01", "1970-01-01", "1970-01-01 00:00:01Z", "0", "é970-01-01"]
        {
            assert_eq!(read(wrong, Sql, false), None, "{wrong}");
        }
        for wrong in ["1970-01-01 00:00:01", "1970-01-01 00:00:01+08:00", "1970-01-01T00:00:01Z"] {
            assert_eq!(read(wrong, Sql, true), None, "{wrong}");
        }
        assert_eq!(parse_timestamp(b"2262-04-11 23:47:16.854775807", Sql, false, Nanos), Some(i64::MAX));
        assert_eq!(parse_timestamp(b"2262-04-11 23:47:16.854775808", Sql, false, Nanos), None);
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..10_000 {
            let micros = random.i64(-62_135_596_800_000_000..253_402_300_800_000_000);
            let nanos = random.i64(..);
            for (value, unit) in [(micros, Micros), (nanos, Nanos)] {
                let (standard, zoned) = (if random.bool() { Sql } else { Iso }, random.bool());
                let mut out = Vec::new();
                write_timestamp(value, standard, zoned, unit, &mut out).unwrap();
                let text = String::from_utf8_lossy(&out);
                assert_eq!(parse_timestamp(&out, standard, zoned, unit), Some(value), "{text}");
            }
        }
    }

    #[test]
    fn fractions_are_written_without_trailing_zeros_and_far_years_with_a_sign() {
        let written = |value, zoned| {
            let mut out = Vec::new();
            write_timestamp(value, Sql, zoned, Micros, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(written(0, false).unwrap(), "1970-01-01 00:00:00");
        assert_eq!(written(120_000, true).unwrap(), "1970-01-01 00:00:00.12Z");
        assert_eq!(written(253_402_300_800_000_000, false).unwrap(), "+10000-01-01 00:00:00");
        assert_eq!(written(-62_198_755_200_000_000, false).unwrap(), "-0001-01-01 00:00:00");
        assert_eq!(written(i64::MAX, false), None);
    }
}
