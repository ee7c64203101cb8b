//! Casts between times and from texts. The year of a text has four digits.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use super::{Cast, no_value};
use crate::{
    model::LogicalType,
    query::call::{Kernel, Out, Row},
};

/// Days from 0000-12-31, from which chrono counts, to 1970-01-01.
const EPOCH_FROM_CE: i32 = 719_163;
pub(in crate::query) const MILLIS_PER_DAY: i64 = 86_400_000;

/// Of a timestamp of that precision.
pub(in crate::query) const fn per_second(precision: u8) -> i64 {
    if precision <= 6 { 1_000_000 } else { 1_000_000_000 }
}

/// Days since the epoch as a date; `None`: out of range.
pub(in crate::query) fn date(days: i32) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_FROM_CE)?)
}

/// A date as days since the epoch.
pub(in crate::query) fn days(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - EPOCH_FROM_CE
}

/// A timestamp as date and time of day; `None`: out of range.
pub(in crate::query) fn date_time(value: i64, precision: u8) -> Option<NaiveDateTime> {
    let unit = per_second(precision);
    let nanos = u32::try_from(value.rem_euclid(unit) * (1_000_000_000 / unit)).ok()?;
    DateTime::from_timestamp(value.div_euclid(unit), nanos).map(|instant| instant.naive_utc())
}

/// Date and time of day as a timestamp, what is finer than its precision cut off; `None`: out of range.
pub(in crate::query) fn timestamp(moment: NaiveDateTime, precision: u8) -> Option<i64> {
    let unit = per_second(precision);
    let instant = moment.and_utc();
    let step = 10_i64.pow(9 - u32::from(precision.min(9)));
    let nanos = i64::from(instant.timestamp_subsec_nanos()) / step * step;
    instant.timestamp().checked_mul(unit)?.checked_add(nanos / (1_000_000_000 / unit))
}

/// A timestamp of another precision; what is finer is cut off. `None`: out of range.
pub(in crate::query) fn rescale(value: i64, from: u8, to: u8) -> Option<i64> {
    let (had, unit) = (per_second(from), per_second(to));
    let moved = if unit >= had { value.checked_mul(unit / had)? } else { value.div_euclid(had / unit) };
    if to >= from {
        return Some(moved);
    }
    let step = unit / 10_i64.pow(u32::from(to));
    Some(moved.div_euclid(step) * step)
}

/// A date as Flink reads it: `2024-1-2`, and also `2024-1`, `2024` and what has a blank and anything behind it.
pub(in crate::query) fn parse_date(text: &str) -> Option<i32> {
    let text = match text.find(' ') {
        Some(end) if end > 0 => text.get(..end)?,
        _ => text,
    };
    let number = |part: &str| -> Option<u32> {
        let part = part.trim_matches(' ');
        let digits = !part.is_empty() && part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    };
    let mut parts = text.splitn(3, '-');
    let year = number(parts.next()?).filter(|year| *year <= 9999)?;
    let month = parts.next().map_or(Some(1), number)?;
    let day = parts.next().map_or(Some(1), number)?;
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day).map(days)
}

/// `HH:mm[:ss[.fraction]]` with one or two digits each, in milliseconds; what is finer is cut off.
pub(in crate::query) fn parse_time(text: &str) -> Option<i32> {
    let time = read_time(text, false)?;
    i32::try_from(i64::from(time.num_seconds_from_midnight()) * 1000 + i64::from(time.nanosecond() / 1_000_000)).ok()
}

fn read_time(text: &str, seconds: bool) -> Option<NaiveTime> {
    let number = |part: &str| -> Option<u32> {
        let good = matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
        good.then(|| part.parse().ok()).flatten()
    };
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let Some(rest) = parts.next() else {
        return if seconds { None } else { NaiveTime::from_hms_opt(hour, minute, 0) };
    };
    let (second, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    NaiveTime::from_hms_nano_opt(hour, minute, number(second)?, nanos)
}

/// `yyyy-M-d[ H:m:s[.fraction]]`. A day that its month does not have is the last one of it, as Java resolves it.
pub(in crate::query) fn read_timestamp(text: &str) -> Option<NaiveDateTime> {
    let (day, time) = match text.split_once(' ') {
        Some((day, time)) => (day, read_time(time, true)?),
        None => (text, NaiveTime::MIN),
    };
    let number = |part: &str, most: usize| -> Option<u32> {
        let good = (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        good.then(|| part.parse().ok()).flatten()
    };
    let mut parts = day.splitn(3, '-');
    let year = parts.next().filter(|year| year.len() == 4).and_then(|year| number(year, 4))?;
    let (month, day) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if !(1..=31).contains(&day) || year == 0 {
        return None;
    }
    let year = i32::try_from(year).ok()?;
    let date = (28..=day.max(28)).rev().find_map(|last| NaiveDate::from_ymd_opt(year, month, day.min(last)))?;
    Some(date.and_time(time))
}

/// A text as a timestamp of that precision, what is finer cut off.
pub(in crate::query) fn parse_timestamp(text: &str, precision: u8) -> Option<i64> {
    timestamp(read_timestamp(text)?, precision)
}

pub(super) fn from_text(to: &LogicalType) -> Kernel {
    let name = to.to_string();
    match to {
        LogicalType::Date => Kernel::Int(Arc::new(move |row| {
            let text = row.text(0);
            parse_date(text).map(Some).ok_or_else(|| no_value(text, &name))
        })),
        LogicalType::Time(_) => Kernel::Int(Arc::new(move |row| {
            let text = row.text(0);
            parse_time(text).map(Some).ok_or_else(|| no_value(text, &name))
        })),
        LogicalType::Timestamp(precision) | LogicalType::TimestampLtz(precision) => {
            let precision = *precision;
            Kernel::Long(Arc::new(move |row| {
                let text = row.text(0);
                parse_timestamp(text, precision).map(Some).ok_or_else(|| no_value(text, &name))
            }))
        }
        _ => Kernel::Int(Arc::new(|_| Ok(None))),
    }
}

pub(super) fn between(from: &LogicalType, to: &LogicalType) -> Option<Cast> {
    use LogicalType as T;
    const RANGE: &str = "a time is out of range";
    /// A kernel that fails only far out of the years of SQL.
    fn long(run: impl Fn(&Row<'_>) -> Option<i64> + Send + Sync + 'static) -> Cast {
        Cast::Unsure(Kernel::Long(Arc::new(move |row| -> Out<i64> { run(row).map(Some).ok_or_else(|| RANGE.into()) })))
    }
    fn int(run: impl Fn(&Row<'_>) -> Option<i32> + Send + Sync + 'static) -> Cast {
        Cast::Unsure(Kernel::Int(Arc::new(move |row| -> Out<i32> { run(row).map(Some).ok_or_else(|| RANGE.into()) })))
    }
    Some(match (from, to) {
        (T::Time(_), T::Time(_)) => Cast::Same,
        (T::Date, T::Timestamp(to) | T::TimestampLtz(to)) => {
            let unit = per_second(*to) * 86_400;
            long(move |row| row.long(0).checked_mul(unit))
        }
        (T::Time(_), T::Timestamp(to) | T::TimestampLtz(to)) => {
            let unit = per_second(*to) / 1000;
            long(move |row| row.long(0).checked_mul(unit))
        }
        (T::Timestamp(from), T::Timestamp(to)) | (T::TimestampLtz(from), T::TimestampLtz(to))
            if from <= to && per_second(*from) == per_second(*to) =>
        {
            Cast::Same
        }
        (T::Timestamp(from) | T::TimestampLtz(from), T::Timestamp(to) | T::TimestampLtz(to)) => {
            let (from, to) = (*from, *to);
            long(move |row| rescale(row.long(0), from, to))
        }
        (T::Timestamp(from) | T::TimestampLtz(from), T::Date) => {
            let unit = per_second(*from) * 86_400;
            int(move |row| i32::try_from(row.long(0).div_euclid(unit)).ok())
        }
        (T::Timestamp(from) | T::TimestampLtz(from), T::Time(_)) => {
            let unit = per_second(*from);
            int(move |row| i32::try_from(row.long(0).rem_euclid(unit * 86_400) / (unit / 1000)).ok())
        }
        _ => return None,
    })
}

pub(super) fn write_date(value: i32, out: &mut Vec<u8>) -> Option<()> {
    let date = date(value)?;
    out.extend_from_slice(format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()).as_bytes());
    Some(())
}

fn write_fraction(nanos: u32, precision: u8, out: &mut Vec<u8>) {
    if precision > 0 {
        let digits = format!("{nanos:09}");
        out.push(b'.');
        out.extend_from_slice(digits.as_bytes().get(..usize::from(precision)).unwrap_or(digits.as_bytes()));
    }
}

pub(super) fn write_time(millis: i32, precision: u8, out: &mut Vec<u8>) -> Option<()> {
    let seconds = u32::try_from(millis / 1000).ok()?;
    let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, 0)?;
    out.extend_from_slice(format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second()).as_bytes());
    write_fraction(u32::try_from(millis % 1000).ok()? * 1_000_000, precision, out);
    Some(())
}

/// With as many digits behind the second as the precision says.
pub(in crate::query) fn write_timestamp(value: i64, precision: u8, out: &mut Vec<u8>) -> Option<()> {
    let moment = date_time(value, precision)?;
    write_date(days(moment.date()), out)?;
    out.extend_from_slice(format!(" {:02}:{:02}:{:02}", moment.hour(), moment.minute(), moment.second()).as_bytes());
    write_fraction(moment.nanosecond(), precision, out);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_leniently_and_timestamps_are_not() {
        let day = |text: &str| parse_date(text).and_then(date).map(|date| date.to_string());
        assert_eq!(day("2024-1-2").as_deref(), Some("2024-01-02"));
        assert_eq!(day("2024-02-29 anything").as_deref(), Some("2024-02-29"));
        assert_eq!(day("2024").as_deref(), Some("2024-01-01"));
        for wrong in ["2023-02-29", "2024-13-01", "12:34:56", "", "2024-01-02T00:00:00", "-1-1-1"] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
        let moment = |text: &str| read_timestamp(text).map(|moment| moment.to_string());
        assert_eq!(moment("2024-1-2 3:4:5").as_deref(), Some("2024-01-02 03:04:05"));
        assert_eq!(moment("2023-02-31").as_deref(), Some("2023-02-28 00:00:00"));
        assert_eq!(moment("2024-01-02 03:04:05.5").as_deref(), Some("2024-01-02 03:04:05.500"));
        for wrong in ["2024-01-02T00:00:00", "2024-01-02 03:04", "24-01-02", "2024-01-32", "2024-01-02 03:04:05Z"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_coarser_timestamp_is_cut_downwards() {
        assert_eq!(rescale(-1, 6, 3), Some(-1000));
        assert_eq!(rescale(1_999_999, 6, 0), Some(1_000_000));
        assert_eq!(rescale(1_999, 9, 6), Some(1));
        assert_eq!(rescale(i64::MAX, 6, 9), None);
    }
}
