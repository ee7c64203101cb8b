//! Parts of times, and arithmetic with them. Far from the years of SQL a result may be out of range, which fails.

use std::{ops::Range, sync::Arc};

use chrono::{Datelike, Duration, Months, NaiveDate, NaiveDateTime, Timelike};
use datafusion_common::ScalarValue;
use sqlparser::ast::{BinaryOperator, CeilFloorKind, DateTimeField, Expr, Value};

use super::{Lower, Planned, Term, literal::Unit};
use crate::{
    model::LogicalType,
    query::{
        QueryError,
        call::{Kernel, Row},
        cast,
        types::{Family, Kind, Type, family, is_integer},
    },
};

pub(in crate::query) const OUT_OF_RANGE: &str = "a time is out of range";

/// How a time is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum Held {
    Date,
    Time,
    /// With its precision
    Timestamp(u8),
}

impl Held {
    pub(in crate::query) fn of(term: &Term) -> Option<Self> {
        match term.logical()? {
            LogicalType::Date => Some(Self::Date),
            LogicalType::Time(_) => Some(Self::Time),
            LogicalType::Timestamp(precision) | LogicalType::TimestampLtz(precision) => {
                Some(Self::Timestamp(*precision))
            }
            _ => None,
        }
    }

    /// The value as date and time; a time of day is one of 1970-01-01.
    pub(in crate::query) fn read(self, value: i64) -> Option<NaiveDateTime> {
        match self {
            Self::Date => cast::date(i32::try_from(value).ok()?)?.and_hms_opt(0, 0, 0),
            Self::Time => cast::date_time(value.checked_mul(1000)?, 6),
            Self::Timestamp(precision) => cast::date_time(value, precision),
        }
    }

    pub(in crate::query) fn write(self, moment: NaiveDateTime) -> Option<i64> {
        match self {
            Self::Date => Some(cast::days(moment.date()).into()),
            Self::Time => {
                let time = moment.time();
                Some(i64::from(time.num_seconds_from_midnight()) * 1000 + i64::from(time.nanosecond() / 1_000_000))
            }
            Self::Timestamp(precision) => cast::timestamp(moment, precision),
        }
    }

    /// A kernel that makes a time of the same type of the first argument.
    fn kernel(self, run: impl Fn(NaiveDateTime, &Row<'_>) -> Option<NaiveDateTime> + Send + Sync + 'static) -> Kernel {
        let make = move |row: &Row<'_>| {
            let made = self.read(row.long(0)).and_then(|moment| run(moment, row)).and_then(|made| self.write(made));
            made.ok_or_else(|| OUT_OF_RANGE.to_owned())
        };
        match self {
            Self::Timestamp(_) => Kernel::Long(Arc::new(move |row| make(row).map(Some))),
            _ => Kernel::Int(Arc::new(move |row| Ok(i32::try_from(make(row)?).ok()))),
        }
    }
}

/// A date and time with months added; a day that the month does not have is its last one.
fn plus_months(moment: NaiveDateTime, months: i64) -> Option<NaiveDateTime> {
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months >= 0 { moment.checked_add_months(by) } else { moment.checked_sub_months(by) }
}

fn plus_millis(moment: NaiveDateTime, millis: i64) -> Option<NaiveDateTime> {
    moment.checked_add_signed(Duration::try_milliseconds(millis)?)
}

impl Lower<'_> {
    /// Arithmetic of which at least one side is no number.
    pub(super) fn moment_arithmetic(&self, a: Term, b: Term, op: &BinaryOperator, at: Range<usize>) -> Planned {
        use BinaryOperator as Op;
        let minus = *op == Op::Minus;
        let interval = |term: &Term| matches!(term.ty.kind, Kind::Months | Kind::Millis);
        match op {
            Op::Plus | Op::Minus if Held::of(&a).is_some() && interval(&b) => moved(a, b, minus, at),
            Op::Plus if interval(&a) && Held::of(&b).is_some() => moved(b, a, false, at),
            Op::Plus | Op::Minus if interval(&a) && a.ty.kind == b.ty.kind => {
                let nullable = a.ty.nullable || b.ty.nullable;
                let ty = Type { kind: a.ty.kind.clone(), nullable };
                let sign = if minus { -1 } else { 1 };
                let kernel =
                    interval_kernel(&ty.kind, move |row| row.long(0).checked_add(row.long(1).checked_mul(sign)?));
                Ok(Term::strict(op.to_string(), vec![a, b], ty, at, kernel).may_fail())
            }
            Op::Multiply if interval(&a) && b.logical().is_some_and(is_integer) => times(a, b, at),
            Op::Multiply if interval(&b) && a.logical().is_some_and(is_integer) => times(b, a, at),
            _ => {
                let message = format!("there is no {op} of {} and {}", a.ty.kind, b.ty.kind);
                let times = |term: &Term| Held::of(term).is_some();
                let error = QueryError::new(at, message);
                Err(match (a.family(), b.family()) {
                    _ if times(&a) && times(&b) => {
                        error.help("TIMESTAMPDIFF(unit, from, to) makes a number of a difference")
                    }
                    (Some(Family::Text), _) | (_, Some(Family::Text)) if *op == Op::Plus => {
                        error.help("texts are joined with ||")
                    }
                    _ if times(&a) || times(&b) => error.expected("INTERVAL '1' DAY, or the like"),
                    _ => error.help("write CAST(... AS ...) around what is no number"),
                })
            }
        }
    }

    pub(super) fn extract(&self, expression: &Expr, field: &DateTimeField, inner: &Expr) -> Planned {
        let term = self.expression(inner)?;
        part(&field.to_string().to_ascii_uppercase(), term, self.at(expression))
    }

    pub(super) fn ceil_floor(&self, expression: &Expr, inner: &Expr, kind: &CeilFloorKind, ceil: bool) -> Planned {
        let term = self.expression(inner)?;
        let at = self.at(expression);
        let name = if ceil { "CEIL" } else { "FLOOR" };
        match kind {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => self.built(name, vec![term], at),
            CeilFloorKind::DateTimeField(field) => rounded(term, &field.to_string(), ceil, at),
            CeilFloorKind::Scale(scale) => match scale.value {
                Value::Number(..) => {
                    Err(QueryError::new(at, format!("{name} takes one argument")).help("ROUND takes digits"))
                }
                _ => Err(QueryError::new(at, format!("{name} takes one argument"))),
            },
        }
    }
}

fn interval_kernel(kind: &Kind, run: impl Fn(&Row<'_>) -> Option<i64> + Send + Sync + 'static) -> Kernel {
    const TOO_LONG: &str = "an interval is too long";
    match kind {
        Kind::Months => Kernel::Int(Arc::new(move |row| {
            let months = run(row).and_then(|months| i32::try_from(months).ok());
            months.map(Some).ok_or_else(|| TOO_LONG.into())
        })),
        _ => Kernel::Long(Arc::new(move |row| run(row).map(Some).ok_or_else(|| TOO_LONG.into()))),
    }
}

fn times(interval: Term, by: Term, at: Range<usize>) -> Planned {
    let ty = Type { kind: interval.ty.kind.clone(), nullable: interval.ty.nullable || by.ty.nullable };
    let kernel = interval_kernel(&ty.kind, |row| row.long(0).checked_mul(row.long(1)));
    Ok(Term::strict("*", vec![interval, by], ty, at, kernel).may_fail())
}

/// A time with an interval added or taken away. A date keeps whole days only, a time of day goes round the clock.
fn moved(time: Term, interval: Term, minus: bool, at: Range<usize>) -> Planned {
    let Some(held) = Held::of(&time) else { return Err(time.error("this is no time")) };
    let nullable = time.ty.nullable || interval.ty.nullable;
    let ty = Type { kind: time.ty.kind.clone(), nullable };
    let sign = if minus { -1 } else { 1 };
    let months = interval.ty.kind == Kind::Months;
    if months && held == Held::Time {
        return Err(QueryError::new(at, "a TIME has no months").expected("an interval of DAY, HOUR, MINUTE or SECOND"));
    }
    let kernel = held.kernel(move |moment, row| {
        let by = row.long(1).checked_mul(sign)?;
        if months { plus_months(moment, by) } else { plus_millis(moment, by) }
    });
    Ok(Term::strict(if minus { "-" } else { "+" }, vec![time, interval], ty, at, kernel).may_fail())
}

/// `TIMESTAMPADD(unit, count, time)`.
pub(in crate::query) fn add(unit: Unit, count: Term, time: Term, at: Range<usize>) -> Planned {
    if !count.logical().is_some_and(is_integer) {
        return Err(count.error(format!("{} is no count", count.ty.kind)).expected("an integer"));
    }
    let length = Term::constant(ScalarValue::Int64(Some(unit.length())), Kind::Of(LogicalType::BigInt), at.clone());
    let nullable = count.ty.nullable;
    let kind = if unit.is_months() { Kind::Months } else { Kind::Millis };
    let kernel = interval_kernel(&kind, |row| row.long(0).checked_mul(row.long(1)));
    let interval = Term::strict("*", vec![count, length], Type { kind, nullable }, at.clone(), kernel).may_fail();
    // Within a day a date becomes a timestamp.
    let time = match time.logical() {
        Some(LogicalType::Date) if unit > Unit::Day => {
            cast::explicit(time, &LogicalType::Timestamp(6), false, at.clone())?
        }
        _ => time,
    };
    if Held::of(&time).is_none() {
        return Err(time.error(format!("{} is no time", time.ty.kind)));
    }
    moved(time, interval, false, at)
}

/// Whole months from one moment to another, as Calcite's `DateTimeUtils.subtractMonths`: those of the dates, and one
/// less if they end at the date of the second, which is earlier in its day. Also backwards.
fn months_between(from: NaiveDateTime, to: NaiveDateTime) -> Option<i64> {
    let day = |moment: NaiveDateTime| moment.date().and_time(chrono::NaiveTime::MIN);
    let (first, last) = (day(from), day(to));
    let forward = |from: NaiveDateTime, to: NaiveDateTime| {
        let months = i64::from(to.year() - from.year()) * 12 + i64::from(to.month()) - i64::from(from.month());
        let past = plus_months(from, months)? > to;
        Some(if past { months - 1 } else { months })
    };
    let months = if last < first { -forward(last, first)? } else { forward(first, last)? };
    let ends_there = plus_months(first, months)? == last;
    Some(if ends_there && to.time() < from.time() { months - 1 } else { months })
}

/// `TIMESTAMPDIFF(unit, from, to)`: whole units, cut toward zero.
pub(in crate::query) fn difference(unit: Unit, from: Term, to: Term, at: Range<usize>) -> Planned {
    let (Some(first), Some(last)) = (Held::of(&from), Held::of(&to)) else {
        let wrong = if Held::of(&from).is_none() { &from } else { &to };
        return Err(wrong.error(format!("{} is no time", wrong.ty.kind)));
    };
    let ty = Type::new(LogicalType::Int, from.ty.nullable || to.ty.nullable);
    let kernel = Kernel::Long(Arc::new(move |row| {
        let moments = first.read(row.long(0)).zip(last.read(row.long(1)));
        let (from, to) = moments.ok_or(OUT_OF_RANGE)?;
        if unit.is_months() {
            return Ok(months_between(from, to).map(|months| months / unit.length()));
        }
        let millis = |moment: NaiveDateTime| moment.and_utc().timestamp_millis();
        Ok(Some((millis(to) - millis(from)) / unit.length()))
    }));
    Ok(Term::strict("TIMESTAMPDIFF", vec![from, to], ty, at, kernel).may_fail())
}

/// The names of parts of a time.
pub(in crate::query) const PARTS: [&str; 17] = [
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
    "NANOSECOND",
    "DOW",
    "ISODOW",
    "DOY",
    "ISOYEAR",
    "EPOCH",
    "DECADE",
];

/// `EXTRACT(part FROM time)`, and `YEAR(time)` and its like.
pub(in crate::query) fn part(name: &str, time: Term, at: Range<usize>) -> Planned {
    let Some(held) = Held::of(&time) else {
        let error = time.error(format!("{} has no {name}", time.ty.kind));
        return Err(error
            .expected("DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ")
            .help("CAST(text AS TIMESTAMP(3)) makes one of a text"));
    };
    let read = reader(name).ok_or_else(|| {
        let known = PARTS.into_iter().chain(["CENTURY", "MILLENNIUM"]);
        let error = QueryError::new(at.clone(), format!("there is no part {name} of a time"));
        error.nearest(crate::model::nearest(name, known)).expected(PARTS.join(", "))
    })?;
    let of_day = matches!(name, "HOUR" | "MINUTE" | "SECOND" | "MILLISECOND" | "MICROSECOND" | "NANOSECOND");
    if held == Held::Time && !of_day {
        return Err(QueryError::new(at, format!("a TIME has no {name}")));
    }
    let ty = Type::new(LogicalType::BigInt, time.ty.nullable);
    let kernel = Kernel::Long(Arc::new(move |row| {
        held.read(row.long(0)).map(|moment| Some(read(moment))).ok_or_else(|| OUT_OF_RANGE.to_owned())
    }));
    Ok(Term::strict(name.to_owned(), vec![time], ty, at, kernel).may_fail())
}

fn reader(name: &str) -> Option<fn(NaiveDateTime) -> i64> {
    Some(match name {
        "YEAR" => |moment| moment.year().into(),
        "QUARTER" => |moment| i64::from((moment.month() - 1) / 3 + 1),
        "MONTH" => |moment| moment.month().into(),
        "WEEK" => |moment| moment.iso_week().week().into(),
        "DAY" => |moment| moment.day().into(),
        "HOUR" => |moment| moment.hour().into(),
        "MINUTE" => |moment| moment.minute().into(),
        "SECOND" => |moment| moment.second().into(),
        "MILLISECOND" => |moment| i64::from(moment.nanosecond() / 1_000_000),
        "MICROSECOND" => |moment| i64::from(moment.nanosecond() / 1000),
        "NANOSECOND" => |moment| moment.nanosecond().into(),
        "DOW" => |moment| moment.weekday().number_from_sunday().into(),
        "ISODOW" => |moment| moment.weekday().number_from_monday().into(),
        "DOY" => |moment| moment.ordinal().into(),
        "ISOYEAR" => |moment| moment.iso_week().year().into(),
        "EPOCH" => |moment| moment.and_utc().timestamp(),
        "DECADE" => |moment| i64::from(moment.year().div_euclid(10)),
        "CENTURY" => |moment| i64::from((moment.year() - 1).div_euclid(100) + 1),
        "MILLENNIUM" => |moment| i64::from((moment.year() - 1).div_euclid(1000) + 1),
        _ => return None,
    })
}

/// `FLOOR(time TO unit)` and `CEIL`.
fn rounded(time: Term, unit: &str, ceil: bool, at: Range<usize>) -> Planned {
    let unit = Unit::parse(unit).ok_or_else(|| {
        QueryError::new(at.clone(), format!("a time is not rounded to {unit}"))
            .expected("YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND")
    })?;
    let Some(held) = Held::of(&time) else {
        return Err(time.error(format!("{} is no time", time.ty.kind)));
    };
    if held == Held::Time && unit <= Unit::Day {
        return Err(QueryError::new(at, "a TIME is rounded within its day only").expected("HOUR, MINUTE or SECOND"));
    }
    let ty = time.ty.clone();
    let kernel = held.kernel(move |moment, _| {
        let start = floor(moment, unit)?;
        if !ceil || start == moment {
            return Some(start);
        }
        if unit.is_months() { plus_months(start, unit.length()) } else { plus_millis(start, unit.length()) }
    });
    Ok(Term::strict(if ceil { "CEIL" } else { "FLOOR" }, vec![time], ty, at, kernel).may_fail())
}

fn floor(moment: NaiveDateTime, unit: Unit) -> Option<NaiveDateTime> {
    let date = moment.date();
    let day = match unit {
        Unit::Year => NaiveDate::from_ymd_opt(date.year(), 1, 1)?,
        Unit::Quarter => NaiveDate::from_ymd_opt(date.year(), (date.month() - 1) / 3 * 3 + 1, 1)?,
        Unit::Month => date.with_day(1)?,
        // Weeks begin on Sunday here, as in Flink, though WEEK is the number by ISO.
        Unit::Week => date.checked_sub_signed(Duration::days(date.weekday().num_days_from_sunday().into()))?,
        _ => date,
    };
    let (hour, minute, second) = (moment.hour(), moment.minute(), moment.second());
    match unit {
        Unit::Hour => day.and_hms_opt(hour, 0, 0),
        Unit::Minute => day.and_hms_opt(hour, minute, 0),
        Unit::Second => day.and_hms_opt(hour, minute, second),
        _ => day.and_hms_opt(0, 0, 0),
    }
}

/// Whether a term is a TIMESTAMP or TIMESTAMP_LTZ.
pub(in crate::query) fn is_timestamp(term: &Term) -> bool {
    term.logical().is_some_and(|logical| family(logical) == Family::Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> NaiveDateTime {
        cast::read_timestamp(text).unwrap()
    }

    #[test]
    fn months_are_counted_whole() {
        let between = |from, to| months_between(moment(from), moment(to)).unwrap();
        assert_eq!(between("2024-01-15", "2026-11-30"), 34);
        assert_eq!(between("2024-01-15", "2024-02-14"), 0);
        assert_eq!(between("2024-01-31", "2024-02-29"), 1);
        assert_eq!(between("2024-01-15 00:00:01", "2024-02-15 00:00:00"), 0);
        assert_eq!(between("2024-02-15", "2024-01-15"), -1);
    }

    #[test]
    fn times_are_rounded_to_the_beginning_of_a_unit() {
        let at = moment("2026-11-30 13:14:15.5");
        for (unit, start) in [
            (Unit::Year, "2026-01-01"),
            (Unit::Quarter, "2026-10-01"),
            (Unit::Week, "2026-11-29"),
            (Unit::Day, "2026-11-30"),
            (Unit::Minute, "2026-11-30 13:14:00"),
            (Unit::Second, "2026-11-30 13:14:15"),
        ] {
            assert_eq!(floor(at, unit), Some(moment(start)), "{unit:?}");
        }
    }
}
