//! Functions of times. The time zone of the session is UTC.

use std::{borrow::Cow, sync::Arc};

use chrono::{DateTime, Datelike, NaiveDateTime, TimeZone};

use super::{
    Function, Given,
    Param::{Double, Long, Text},
    STRING,
    date_format::{DateFormat, Reader},
    function, longs,
    pattern::Kept,
    texts,
};
use crate::{
    model::LogicalType as T,
    query::{
        QueryError,
        call::{Kernel, Row},
        cast,
        lower::{
            Planned, Term,
            function::now,
            time::{Held, OUT_OF_RANGE, is_timestamp, part},
        },
        types::{Family, is_integer},
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    function("YEAR", 1..=1, |given| part_of(given, "YEAR")),
    function("QUARTER", 1..=1, |given| part_of(given, "QUARTER")),
    function("MONTH", 1..=1, |given| part_of(given, "MONTH")),
    function("WEEK", 1..=1, |given| part_of(given, "WEEK")),
    function("DAYOFYEAR", 1..=1, |given| part_of(given, "DOY")),
    function("DAYOFMONTH", 1..=1, |given| part_of(given, "DAY")),
    function("DAYOFWEEK", 1..=1, |given| part_of(given, "DOW")),
    function("HOUR", 1..=1, |given| part_of(given, "HOUR")),
    function("MINUTE", 1..=1, |given| part_of(given, "MINUTE")),
    function("SECOND", 1..=1, |given| part_of(given, "SECOND")),
    function("CURRENT_TIMESTAMP", 0..=0, instant),
    function("NOW", 0..=0, instant),
    function("CURRENT_ROW_TIMESTAMP", 0..=0, instant),
    function("PROCTIME", 0..=0, instant),
    function("LOCALTIMESTAMP", 0..=0, |given| {
        Ok(now("LOCALTIMESTAMP", T::Timestamp(3), given.at, |millis| millis * 1000))
    }),
    function("CURRENT_DATE", 0..=0, |given| {
        Ok(now("CURRENT_DATE", T::Date, given.at, |millis| millis.div_euclid(cast::MILLIS_PER_DAY)))
    }),
    function("CURRENT_TIME", 0..=0, time_of_day),
    function("LOCALTIME", 0..=0, time_of_day),
    function("DATE_FORMAT", 2..=2, date_format),
    function("TO_DATE", 1..=2, to_date),
    function("TO_TIMESTAMP", 1..=2, to_timestamp),
    function("TO_TIMESTAMP_LTZ", 2..=2, to_instant),
    function("FROM_UNIXTIME", 1..=2, from_unixtime),
    function("UNIX_TIMESTAMP", 0..=2, unix_timestamp),
    function("CONVERT_TZ", 3..=3, convert_zone),
];

fn part_of(given: Given<'_>, name: &str) -> Planned {
    let at = given.at.clone();
    part(name, given.only()?, at)
}

fn instant(given: Given<'_>) -> Planned {
    Ok(now("CURRENT_TIMESTAMP", T::TimestampLtz(3), given.at, |millis| millis * 1000))
}

fn time_of_day(given: Given<'_>) -> Planned {
    Ok(now("CURRENT_TIME", T::Time(0), given.at, |millis| millis.rem_euclid(cast::MILLIS_PER_DAY) / 1000 * 1000))
}

/// A format that is known, or one for each row.
enum Format {
    Constant(DateFormat),
    OfRow(Kept<DateFormat>, usize),
}

impl Format {
    fn of(given: &Given<'_>, index: usize, otherwise: &str) -> Result<Self, QueryError> {
        let format = |text: &str, arg: Option<&Term>| {
            DateFormat::new(text).map(Self::Constant).map_err(|error| match arg {
                Some(arg) => arg.error(error),
                None => QueryError::new(given.at.clone(), error),
            })
        };
        match given.arg(index) {
            None => format(otherwise, None),
            Some(arg) => match arg.constant_text() {
                Some(text) => format(text, Some(arg)),
                None => Ok(Self::OfRow(Kept::new(DateFormat::new), index)),
            },
        }
    }

    const fn fails(&self) -> bool {
        matches!(self, Self::OfRow(..))
    }

    fn with<T>(&self, row: &Row<'_>, run: impl Fn(&DateFormat) -> T) -> Result<T, String> {
        match self {
            Self::Constant(format) => Ok(run(format)),
            Self::OfRow(kept, index) => kept.of(row.text(*index)).map(|format| run(&format)),
        }
    }
}

fn failing(term: Term, fails: bool) -> Term {
    if fails { term.may_fail() } else { term }
}

fn date_format(given: Given<'_>) -> Planned {
    let time = given.arg(0);
    let held = time.filter(|time| is_timestamp(time)).and_then(Held::of);
    let (format, from_text) = (Format::of(&given, 1, "")?, given.family(0) == Some(Family::Text));
    let Some(arg) = time.filter(|_| held.is_some() || from_text) else {
        let what = given.arg(0).map_or_else(String::new, |arg| arg.ty.kind.to_string());
        let error = QueryError::new(given.at, format!("DATE_FORMAT is given {what}"));
        return Err(error
            .expected("TIMESTAMP, TIMESTAMP_LTZ or a text")
            .help("CAST(date AS TIMESTAMP(0)) makes one of a date"));
    };
    let usual = DateFormat::new(USUAL).map_err(|error| arg.error(error))?;
    let kernel = texts(move |row| {
        let moment = match held {
            Some(held) => Some(held.read(row.long(0)).ok_or(OUT_OF_RANGE)?),
            // A text without a time of day is none to Flink here.
            None => usual.read(row.text(0), Reader::Lenient),
        };
        let Some(moment) = moment else { return Ok(None) };
        format.with(row, |format| Some(Cow::Owned(format.write(moment))))
    });
    Ok(given.strict_nullable(STRING, kernel).may_fail())
}

fn to_date(given: Given<'_>) -> Planned {
    let given = given.with(&[Text])?;
    if given.args.len() == 1 {
        return Ok(given.strict_nullable(T::Date, Kernel::Int(Arc::new(|row| Ok(cast::parse_date(row.text(0)))))));
    }
    let format = Format::of(&given, 1, "")?;
    let fails = format.fails();
    let kernel = Kernel::Int(Arc::new(move |row| {
        let read = format.with(row, |format| format.read(row.text(0), Reader::Lenient))?;
        Ok(read.map(|moment| cast::days(moment.date())))
    }));
    Ok(failing(given.strict_nullable(T::Date, kernel), fails))
}

/// Reads by the format, and what is not of it as `yyyy-M-d[ H:m:s[.f]]`, which Flink does too.
fn to_timestamp(given: Given<'_>) -> Planned {
    let given = given.with(&[Text])?;
    let format = Format::of(&given, 1, "yyyy-MM-dd HH:mm:ss")?;
    let fails = format.fails();
    let kernel = longs(move |row| {
        let text = row.text(0);
        let read = format.with(row, |format| format.read(text, Reader::Exact))?;
        let moment = read.or_else(|| cast::read_timestamp(text));
        Ok(moment.and_then(|moment| cast::timestamp(moment, 3)))
    });
    Ok(failing(given.strict_nullable(T::Timestamp(3), kernel), fails))
}

/// Milliseconds within the years that SQL has.
fn within_years(millis: i64) -> Option<i64> {
    DateTime::from_timestamp_millis(millis).filter(|moment| (0..=9999).contains(&moment.year())).map(|_| millis)
}

/// `TO_TIMESTAMP_LTZ(number, 0)` of seconds, `3` of milliseconds.
fn to_instant(given: Given<'_>) -> Planned {
    let unit = match given.arg(1).map(Term::constant_long) {
        Some(Some(0)) => 1000,
        Some(Some(3)) => 1,
        _ => {
            let error = QueryError::new(given.at, "the precision of TO_TIMESTAMP_LTZ is not known");
            return Err(error.expected("0 for seconds or 3 for milliseconds"));
        }
    };
    let ty = T::TimestampLtz(3);
    if given.arg(0).and_then(Term::logical).is_some_and(is_integer) {
        let kernel =
            longs(move |row| Ok(row.long(0).checked_mul(unit).and_then(within_years).map(|millis| millis * 1000)));
        return Ok(given.strict_nullable(ty, kernel));
    }
    let given = given.with(&[Double, Long])?;
    let kernel = longs(move |row| {
        let millis = row.double(0) * unit as f64;
        Ok(within_years(millis as i64).filter(|_| millis.is_finite()).map(|millis| millis * 1000))
    });
    Ok(given.strict_nullable(ty, kernel))
}

const USUAL: &str = "yyyy-MM-dd HH:mm:ss";

fn from_unixtime(given: Given<'_>) -> Planned {
    let given = given.with(&[Long, Text])?;
    let format = Format::of(&given, 1, USUAL)?;
    let kernel = texts(move |row| {
        let Some(moment) = DateTime::from_timestamp(row.long(0), 0) else { return Err(OUT_OF_RANGE.into()) };
        format.with(row, |format| Some(Cow::Owned(format.write(moment.naive_utc()))))
    });
    Ok(given.strict_nullable(STRING, kernel).may_fail())
}

/// Seconds since the epoch, of now or of a text. What is no time is the least BIGINT, as in Flink.
fn unix_timestamp(given: Given<'_>) -> Planned {
    if given.args.is_empty() {
        return Ok(now("UNIX_TIMESTAMP", T::BigInt, given.at, |millis| millis.div_euclid(1000)));
    }
    let given = given.with(&[Text])?;
    let format = Format::of(&given, 1, USUAL)?;
    let fails = format.fails();
    let kernel = longs(move |row| {
        let read = format.with(row, |format| format.read(row.text(0), Reader::Lenient))?;
        Ok(Some(read.map_or(i64::MIN, |moment| moment.and_utc().timestamp())))
    });
    Ok(failing(given.strict(T::BigInt, kernel), fails))
}

/// A zone by its name, such as `Asia/Shanghai`.
fn zone(name: &str) -> Result<chrono_tz::Tz, String> {
    name.parse().map_err(|_| format!("'{name}' is no time zone: expected a name such as UTC or Asia/Shanghai"))
}

/// `CONVERT_TZ(text, from, to)`
fn convert_zone(given: Given<'_>) -> Planned {
    let given = given.with(&[Text])?;
    for arg in given.args.iter().skip(1) {
        if let Some(name) = arg.constant_text() {
            zone(name).map_err(|error| arg.error(error))?;
        }
    }
    let format = DateFormat::new(USUAL).map_err(|error| QueryError::new(given.at.clone(), error))?;
    let kernel = texts(move |row| {
        let (from, to) = (zone(row.text(1))?, zone(row.text(2))?);
        let Some(local) = format.read(row.text(0), Reader::Lenient) else { return Ok(None) };
        // An hour that there is twice is the second one, as Java's Calendar has it; one that there is not is an hour
        // later.
        let instant = from.from_local_datetime(&local).latest().or_else(|| {
            let later: NaiveDateTime = local.checked_add_signed(chrono::Duration::hours(1))?;
            from.from_local_datetime(&later).earliest()
        });
        Ok(instant.map(|instant| Cow::Owned(format.write(instant.with_timezone(&to).naive_local()))))
    });
    Ok(given.strict_nullable(STRING, kernel).may_fail())
}
