//! Constants.

use datafusion_common::ScalarValue;
use sqlparser::ast::{DataType, Expr, Interval, TypedString, Value, ValueWithSpan};

use super::{Lower, Planned, Term};
use crate::{
    model::LogicalType,
    query::{
        QueryError, cast,
        types::{Kind, MOST_DIGITS},
    },
};

impl Lower<'_> {
    pub(super) fn value(&self, value: &ValueWithSpan) -> Planned {
        let at = self.at(value);
        let boolean =
            |value| Term::constant(ScalarValue::Boolean(Some(value)), Kind::Of(LogicalType::Boolean), at.clone());
        match &value.value {
            Value::Null => Ok(Term::null(at)),
            Value::Boolean(value) => Ok(boolean(*value)),
            Value::SingleQuotedString(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text) => Ok(Term::text(text, at)),
            Value::Number(text, false) => {
                let number = number(text).ok_or_else(|| QueryError::new(at.clone(), format!("{text} is no number")));
                number.map(|(value, logical)| Term::constant(value, Kind::Of(logical), at))
            }
            Value::HexStringLiteral(digits) => {
                let bytes = hex(digits).ok_or_else(|| {
                    QueryError::new(at.clone(), "these are no bytes").expected("an even number of hexadecimal digits")
                })?;
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).max(1);
                Ok(Term::constant(ScalarValue::Binary(Some(bytes)), Kind::Of(LogicalType::Binary(length)), at))
            }
            other => Err(QueryError::new(at, format!("{other} is not supported"))),
        }
    }

    /// `DATE '...'` and its like.
    pub(super) fn typed_text(&self, typed: &TypedString) -> Planned {
        let at = self.at(&typed.value);
        let text = typed.value.value.clone().into_string().unwrap_or_default();
        let wrong = |expected: &str| {
            let error = QueryError::new(at.clone(), format!("'{text}' is no {}", typed.data_type));
            error.expected(expected)
        };
        match &typed.data_type {
            DataType::Date => {
                let date = strict_date(&text).ok_or_else(|| wrong("'yyyy-MM-dd'"))?;
                Ok(Term::constant(ScalarValue::Date32(Some(date)), Kind::Of(LogicalType::Date), at))
            }
            DataType::Time(None, _) => {
                let complete = text.matches(':').count() == 2;
                let time = cast::parse_time(&text).filter(|_| complete).ok_or_else(|| wrong("'HH:mm:ss'"))?;
                Ok(Term::constant(ScalarValue::Time32Millisecond(Some(time)), Kind::Of(LogicalType::Time(0)), at))
            }
            DataType::Timestamp(None, _) => {
                let (date, _) = text.split_once(' ').ok_or_else(|| wrong("'yyyy-MM-dd HH:mm:ss'"))?;
                let moment = strict_date(date).and_then(|_| cast::read_timestamp(&text));
                let moment = moment.ok_or_else(|| wrong("'yyyy-MM-dd HH:mm:ss'"))?;
                let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                let precision = u8::try_from(digits).unwrap_or(9);
                let value = cast::timestamp(moment, precision).ok_or_else(|| wrong("a time from 1677 to 2262"))?;
                let value = match precision {
                    0..=6 => ScalarValue::TimestampMicrosecond(Some(value), None),
                    _ => ScalarValue::TimestampNanosecond(Some(value), None),
                };
                Ok(Term::constant(value, Kind::Of(LogicalType::Timestamp(precision)), at))
            }
            other => Err(QueryError::new(at, format!("there is no {other} '...' in Flink SQL"))),
        }
    }

    /// `INTERVAL '1' DAY` and its like.
    pub(super) fn interval(&self, interval: &Interval) -> Planned {
        let at = self.at(&*interval.value);
        let (negative, value) = match &*interval.value {
            Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr } => (true, &**expr),
            other => (false, other),
        };
        let text = match value {
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => text.trim(),
            _ => return Err(QueryError::new(at, "the value of an interval is a text").expected("INTERVAL '1' DAY")),
        };
        let unit = |field: &sqlparser::ast::DateTimeField| Unit::parse(&field.to_string());
        let first = interval.leading_field.as_ref().and_then(unit);
        let last = match &interval.last_field {
            Some(field) => unit(field),
            None => first,
        };
        let (Some(first), Some(last)) = (first, last) else {
            let error = QueryError::new(at, "this is no unit of an interval");
            return Err(error.expected("YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND"));
        };
        fitting(text, interval.leading_precision, interval.fractional_seconds_precision)
            .map_err(|message| QueryError::new(at.clone(), message).help("INTERVAL '100' DAY(3) has three digits"))?;
        let amount = amount(text, first, last).ok_or_else(|| {
            QueryError::new(at.clone(), format!("'{text}' is no interval of this unit")).expected(EXAMPLES)
        })?;
        let amount = if negative { -amount } else { amount };
        if first.is_months() {
            let months = i32::try_from(amount).map_err(|_| QueryError::new(at.clone(), "the interval is too long"))?;
            return Ok(Term::constant(ScalarValue::Int32(Some(months)), Kind::Months, at));
        }
        Ok(Term::constant(ScalarValue::Int64(Some(amount)), Kind::Millis, at))
    }
}

/// That an interval has no more digits than Calcite takes: two of its first unit, six of a fraction, unless it says how
/// many.
fn fitting(text: &str, leading: Option<u64>, fraction: Option<u64>) -> Result<(), String> {
    let count = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count() as u64;
    let (leading, fraction) = (leading.unwrap_or(2), fraction.unwrap_or(6));
    if count(text.trim_start_matches(['-', '+'])) > leading {
        return Err(format!("the first number of '{text}' has more than {leading} digits"));
    }
    if text.split_once('.').is_some_and(|(_, digits)| count(digits) > fraction) {
        return Err(format!("the fraction of '{text}' has more than {fraction} digits"));
    }
    Ok(())
}

const EXAMPLES: &str = "such as '1' DAY, '1-2' YEAR TO MONTH, '1 02:03:04.5' DAY TO SECOND";

/// A unit of intervals, from the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::query) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
}

impl Unit {
    /// In any case, also with an s at its end.
    pub(in crate::query) fn parse(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        Some(match upper.strip_suffix('S').unwrap_or(&upper) {
            "YEAR" | "SQL_TSI_YEAR" => Self::Year,
            "QUARTER" | "SQL_TSI_QUARTER" => Self::Quarter,
            "MONTH" | "SQL_TSI_MONTH" => Self::Month,
            "WEEK" | "SQL_TSI_WEEK" => Self::Week,
            "DAY" | "SQL_TSI_DAY" => Self::Day,
            "HOUR" | "SQL_TSI_HOUR" => Self::Hour,
            "MINUTE" | "SQL_TSI_MINUTE" => Self::Minute,
            "SECOND" | "SQL_TSI_SECOND" => Self::Second,
            _ => return None,
        })
    }

    pub(in crate::query) const fn is_months(self) -> bool {
        matches!(self, Self::Year | Self::Quarter | Self::Month)
    }

    /// Its length in months, or in milliseconds.
    pub(in crate::query) const fn length(self) -> i64 {
        match self {
            Self::Year => 12,
            Self::Quarter => 3,
            Self::Month => 1,
            Self::Week => 7 * cast::MILLIS_PER_DAY,
            Self::Day => cast::MILLIS_PER_DAY,
            Self::Hour => 3_600_000,
            Self::Minute => 60_000,
            Self::Second => 1000,
        }
    }
}

/// Months or milliseconds.
fn amount(text: &str, first: Unit, last: Unit) -> Option<i64> {
    let (sign, text) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => (-1, rest),
        Some(rest) => (1, rest),
        None => (1, text),
    };
    let number = |part: &str| -> Option<i64> {
        let digits = (1..=12).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    };
    let seconds = |part: &str| -> Option<i64> {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        let millis = if fraction.is_empty() { 0 } else { number(fraction.get(..fraction.len().min(9))?)? };
        let millis = millis * 1000 / 10_i64.pow(u32::try_from(fraction.len().min(9)).ok()?);
        number(whole)?.checked_mul(1000)?.checked_add(millis)
    };
    let total = if first == last {
        if first == Unit::Second { seconds(text)? } else { number(text)?.checked_mul(first.length())? }
    } else if (first, last) == (Unit::Year, Unit::Month) {
        let (years, months) = text.split_once('-')?;
        number(years)?.checked_mul(12)?.checked_add(number(months).filter(|months| *months < 12)?)?
    } else {
        if first < Unit::Day || last <= first || last.is_months() {
            return None;
        }
        let units = [Unit::Day, Unit::Hour, Unit::Minute, Unit::Second];
        let wanted = units.into_iter().filter(|unit| (first..=last).contains(unit));
        let mut parts = text.split([' ', ':']);
        let mut total = 0_i64;
        for unit in wanted {
            let part = parts.next()?;
            let length =
                if unit == Unit::Second { seconds(part)? } else { number(part)?.checked_mul(unit.length())? };
            total = total.checked_add(length)?;
        }
        if parts.next().is_some() {
            return None;
        }
        total
    };
    Some(sign * total)
}

fn strict_date(text: &str) -> Option<i32> {
    let shape = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    (text.len() == 10 && text.bytes().enumerate().all(shape)).then(|| cast::parse_date(text)).flatten()
}

/// The least integer type, a DECIMAL if there is a point, a DOUBLE if there is an exponent.
pub(super) fn number(text: &str) -> Option<(ScalarValue, LogicalType)> {
    if text.contains(['e', 'E']) {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
        return Some((ScalarValue::Float64(Some(value)), LogicalType::Double));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.is_empty() {
        let text = whole;
        if let Ok(value) = text.parse::<i32>() {
            return Some((ScalarValue::Int32(Some(value)), LogicalType::Int));
        }
        if let Ok(value) = text.parse::<i64>() {
            return Some((ScalarValue::Int64(Some(value)), LogicalType::BigInt));
        }
    }
    // Every digit that is written counts, as in Calcite.
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let precision = u8::try_from(whole.len() + fraction.len()).ok().filter(|digits| *digits <= MOST_DIGITS)?;
    let scale = u8::try_from(fraction.len()).ok()?;
    let value = format!("{sign}{whole}{fraction}").parse::<i128>().ok()?;
    let scaled = ScalarValue::Decimal128(Some(value), precision, i8::try_from(scale).ok()?);
    Some((scaled, LogicalType::Decimal(precision, scale)))
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(high)? * 16 + digit(low)?) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_by_their_units() {
        use Unit::{Day, Hour, Minute, Month, Second, Week, Year};
        for (text, first, last, value) in [
            ("1", Day, Day, Some(86_400_000)),
            ("-2", Week, Week, Some(-14 * 86_400_000)),
            ("1-2", Year, Month, Some(14)),
            ("1 02:03:04.005", Day, Second, Some(93_784_005)),
            ("1:30", Hour, Minute, Some(5_400_000)),
            ("1.5", Second, Second, Some(1500)),
            ("1.5", Day, Day, None),
            ("1-12", Year, Month, None),
            ("1:30", Minute, Hour, None),
            ("1:2:3", Hour, Minute, None),
            ("", Day, Day, None),
        ] {
            assert_eq!(amount(text, first, last), value, "{text}");
        }
    }

    #[test]
    fn an_interval_has_no_more_digits_than_it_says() {
        assert!(fitting("99", None, None).is_ok());
        assert!(fitting("100", None, None).is_err());
        assert!(fitting("-100", Some(3), None).is_ok());
        assert!(fitting("1 02:03:04.123456", None, None).is_ok());
        assert!(fitting("1.1234567", None, None).is_err());
    }

    #[test]
    fn numbers_have_the_type_of_what_is_written() {
        let ty = |text: &str| number(text).map(|(_, ty)| ty.to_string());
        assert_eq!(ty("2147483648").as_deref(), Some("BIGINT"));
        assert_eq!(ty("0.1").as_deref(), Some("DECIMAL(2, 1)"));
        assert_eq!(ty(".5").as_deref(), Some("DECIMAL(1, 1)"));
        assert_eq!(ty("9223372036854775808").as_deref(), Some("DECIMAL(19, 0)"));
        assert_eq!(ty("1e2").as_deref(), Some("DOUBLE"));
        assert_eq!(ty("1e400"), None);
        assert_eq!(ty(&"9".repeat(39)), None);
    }
}
