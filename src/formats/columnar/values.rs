//! Values of files as values of columns. Where the column is finer than the file nothing is lost; where it is coarser,
//! fractions of a second are cut off and decimals are rounded half up, as everywhere here; what does not fit is an
//! error.

use std::fmt;

use arrow_schema::{DataType, TimeUnit};

use crate::model::{LogicalType, Scalar};

const DAY_MS: i64 = 86_400_000;

/// Why a value cannot be had, and where in its column it stands.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::formats) struct Failure {
    path: String,
    why: String,
    /// Whether it is no fault of a single value, so that no row is to blame.
    of_all: bool,
}

impl Failure {
    /// Of the value itself.
    pub(in crate::formats) fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into(), of_all: false }
    }

    /// Of all values of the column, or of the body as a whole.
    pub(in crate::formats) fn of_all(why: impl Into<String>) -> Self {
        Self { of_all: true, ..Self::new(why) }
    }

    /// A null that the schema forbids.
    pub(in crate::formats) fn null() -> Self {
        Self::new("null where the schema says NOT NULL")
    }

    /// Of the element `index` of what encloses the value.
    pub(in crate::formats) fn in_element(mut self, index: usize) -> Self {
        self.path.insert_str(0, &format!("[{index}]"));
        self
    }

    /// Of a field of what encloses the value.
    pub(in crate::formats) fn in_field(mut self, name: &str) -> Self {
        self.path.insert_str(0, &format!(".{name}"));
        self
    }

    /// The reason without a column.
    pub(in crate::formats) fn of_branch(&self) -> String {
        if self.path.is_empty() { self.why.clone() } else { format!("at {}: {}", self.path, self.why) }
    }

    /// The whole reason, where a body is one row.
    pub(in crate::formats) fn of_column(&self, name: &str) -> String {
        format!("column {name}{}: {}", self.path, self.why)
    }

    /// The whole reason, where a body has many rows; `before` of them stand before that of the value.
    pub(in crate::formats) fn of_row(&self, before: usize, name: &str) -> String {
        let reason = self.of_column(name);
        if self.of_all { reason } else { format!("row {}: {reason}", before + 1) }
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::new(why)
    }
}

fn out_of_range(value: impl fmt::Display, logical: &LogicalType) -> String {
    format!("{value} is out of range for {logical}")
}

/// A whole number for a column of an integer type; DECIMAL takes whole numbers too.
pub(in crate::formats) fn integer(value: i128, logical: &LogicalType) -> Result<Scalar<'static>, String> {
    let refused = || out_of_range(value, logical);
    Ok(match logical {
        LogicalType::TinyInt => Scalar::Int8(i8::try_from(value).map_err(|_| refused())?),
        LogicalType::SmallInt => Scalar::Int16(i16::try_from(value).map_err(|_| refused())?),
        LogicalType::Int => Scalar::Int32(i32::try_from(value).map_err(|_| refused())?),
        LogicalType::BigInt => Scalar::Int64(i64::try_from(value).map_err(|_| refused())?),
        LogicalType::Decimal(precision, scale) => decimal(value, 0, *precision, *scale)?,
        _ => return Err(format!("{logical} is no whole number")),
    })
}

/// An unscaled decimal of one scale as DECIMAL(precision, scale), rounded half up (away from zero, as Java's HALF_UP).
pub(in crate::formats) fn decimal(
    value: i128,
    from_scale: i32,
    precision: u8,
    scale: u8,
) -> Result<Scalar<'static>, String> {
    let by = i32::from(scale) - from_scale;
    let power = 10_i128.checked_pow(by.unsigned_abs());
    let scaled = match (by >= 0, power) {
        (true, Some(power)) => value.checked_mul(power),
        // Any value but zero is far too large then.
        (true, None) => (value == 0).then_some(0),
        (false, Some(power)) => {
            let (whole, rest) = (value / power, value % power);
            let up = rest.unsigned_abs() >= power.unsigned_abs().div_ceil(2);
            Some(if up { whole + rest.signum() } else { whole })
        }
        (false, None) => Some(0),
    };
    let limit = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    scaled
        .filter(|scaled| scaled.unsigned_abs() < limit.unsigned_abs())
        .map(Scalar::Int128)
        .ok_or_else(|| format!("a decimal is out of range for DECIMAL({precision}, {scale})"))
}

/// A time of day in milliseconds; what is finer is cut off.
pub(in crate::formats) fn time_of_day(value: i64, per_second: i64) -> Result<Scalar<'static>, String> {
    let ms = match per_second {
        1 => value.checked_mul(1000),
        _ => Some(value.div_euclid(per_second / 1000)),
    };
    let ms = ms.filter(|ms| (0..DAY_MS).contains(ms)).and_then(|ms| i32::try_from(ms).ok());
    ms.map(Scalar::Int32).ok_or_else(|| "a time that is outside of the day".to_owned())
}

/// A timestamp in the unit of its column; what is finer is cut off, towards the past.
pub(in crate::formats) fn timestamp(
    value: i64,
    per_second: i64,
    logical: &LogicalType,
) -> Result<Scalar<'static>, String> {
    let to = match logical.to_arrow() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000_000,
        _ => 1_000_000,
    };
    let converted =
        if to >= per_second { value.checked_mul(to / per_second) } else { Some(value.div_euclid(per_second / to)) };
    converted.map(Scalar::Int64).ok_or_else(|| format!("a timestamp is out of range for {logical}"))
}

/// The same of nanoseconds in 128 bits.
pub(in crate::formats) fn nanoseconds(value: i128, logical: &LogicalType) -> Result<Scalar<'static>, String> {
    match i64::try_from(value) {
        Ok(value) => timestamp(value, 1_000_000_000, logical),
        Err(_) => match i64::try_from(value.div_euclid(1000)) {
            Ok(micros) => timestamp(micros, 1_000_000, logical),
            Err(_) => Err(format!("a timestamp is out of range for {logical}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rescaled_rounded_half_up_and_refused_when_too_large() {
        assert_eq!(decimal(1015, 3, 5, 2), Ok(Scalar::Int128(102)));
        assert_eq!(decimal(-1015, 3, 5, 2), Ok(Scalar::Int128(-102)));
        assert_eq!(decimal(1014, 3, 5, 2), Ok(Scalar::Int128(101)));
        assert_eq!(decimal(7, 0, 5, 2), Ok(Scalar::Int128(700)));
        assert_eq!(decimal(-99_999, 2, 5, 2), Ok(Scalar::Int128(-99_999)));
        assert!(decimal(100_000, 2, 5, 2).is_err());
        assert!(decimal(999_995, 3, 5, 2).is_err(), "rounding makes it too large");
        assert!(decimal(i128::MAX, 0, 38, 38).is_err());
        assert_eq!(decimal(5, 300, 5, 2), Ok(Scalar::Int128(0)));
        assert!(decimal(5, -300, 5, 2).is_err());
    }

    #[test]
    fn times_are_cut_towards_the_past_and_refused_outside_of_their_range() {
        let micros = LogicalType::Timestamp(3);
        assert_eq!(timestamp(-1, 1_000_000_000, &micros), Ok(Scalar::Int64(-1)));
        assert_eq!(timestamp(1, 1, &micros), Ok(Scalar::Int64(1_000_000)));
        assert!(timestamp(i64::MAX, 1000, &micros).unwrap_err().contains("out of range for TIMESTAMP(3)"));
        assert_eq!(timestamp(1, 1_000_000, &LogicalType::TimestampLtz(9)), Ok(Scalar::Int64(1000)));
        assert_eq!(time_of_day(86_399_999_999, 1_000_000), Ok(Scalar::Int32(86_399_999)));
        assert!(time_of_day(86_400, 1).is_err());
        assert!(time_of_day(-1, 1_000_000_000).is_err());
        assert!(time_of_day(i64::MAX, 1).is_err());
    }

    #[test]
    fn whole_numbers_that_do_not_fit_are_refused_with_their_type() {
        assert_eq!(integer(-128, &LogicalType::TinyInt), Ok(Scalar::Int8(-128)));
        assert_eq!(integer(200, &LogicalType::TinyInt).unwrap_err(), "200 is out of range for TINYINT");
        assert!(integer(i128::from(u64::MAX), &LogicalType::BigInt).is_err());
        assert_eq!(integer(12, &LogicalType::Decimal(4, 2)), Ok(Scalar::Int128(1200)));
    }
}
