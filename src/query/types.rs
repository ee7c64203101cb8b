//! The types of expressions, and how Flink derives one from others.

use std::fmt;

use arrow_schema::DataType;

use crate::model::{ColumnType, LogicalType};

/// The most digits of a DECIMAL.
pub(super) const MOST_DIGITS: u8 = 38;

/// The type of an expression without its nullability. Beyond those of columns there is what only lives in
/// expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of the word NULL, which takes the type of its place.
    Null,
    /// An INTERVAL of years and months, held as months in an Int32.
    Months,
    /// An INTERVAL of days to seconds, held as milliseconds in an Int64.
    Millis,
    /// That of a column.
    Of(LogicalType),
}

/// The type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
}

impl From<&ColumnType> for Type {
    fn from(ty: &ColumnType) -> Self {
        Self { kind: Kind::Of(ty.logical.clone()), nullable: ty.nullable }
    }
}

impl Type {
    pub(super) const fn new(logical: LogicalType, nullable: bool) -> Self {
        Self { kind: Kind::Of(logical), nullable }
    }

    pub(super) const fn logical(&self) -> Option<&LogicalType> {
        match &self.kind {
            Kind::Of(logical) => Some(logical),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Months => f.write_str("INTERVAL YEAR TO MONTH"),
            Self::Millis => f.write_str("INTERVAL DAY TO SECOND"),
            Self::Of(logical) => logical.fmt(f),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind, if self.nullable { "" } else { " NOT NULL" })
    }
}

impl Kind {
    /// The Arrow type that holds it.
    pub(super) fn to_arrow(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Months => DataType::Int32,
            Self::Millis => DataType::Int64,
            Self::Of(logical) => logical.to_arrow(),
        }
    }
}

/// What types have in common, as far as the rules need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// BOOLEAN
    Boolean,
    /// All numbers
    Number,
    /// CHAR, VARCHAR, STRING
    Text,
    /// BINARY, VARBINARY, BYTES
    Bytes,
    /// DATE
    Date,
    /// TIME
    Time,
    /// TIMESTAMP and TIMESTAMP_LTZ
    Timestamp,
    /// ARRAY, MAP, ROW
    Nested,
}

pub(super) const fn family(logical: &LogicalType) -> Family {
    use LogicalType as T;
    match logical {
        T::Boolean => Family::Boolean,
        T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::Float | T::Double | T::Decimal(..) => Family::Number,
        T::Char(_) | T::VarChar(_) => Family::Text,
        T::Binary(_) | T::VarBinary(_) => Family::Bytes,
        T::Date => Family::Date,
        T::Time(_) => Family::Time,
        T::Timestamp(_) | T::TimestampLtz(_) => Family::Timestamp,
        T::Array(_) | T::Map(..) | T::Row(_) => Family::Nested,
    }
}

pub(super) const fn is_integer(logical: &LogicalType) -> bool {
    matches!(logical, LogicalType::TinyInt | LogicalType::SmallInt | LogicalType::Int | LogicalType::BigInt)
}

/// An exact number as precision and scale.
pub(super) const fn as_decimal(logical: &LogicalType) -> Option<(u8, u8)> {
    match logical {
        LogicalType::TinyInt => Some((3, 0)),
        LogicalType::SmallInt => Some((5, 0)),
        LogicalType::Int => Some((10, 0)),
        LogicalType::BigInt => Some((19, 0)),
        LogicalType::Decimal(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// A decimal that may have become too long: digits before the point are kept first, then up to six behind it.
pub(super) const fn adjusted(precision: u16, scale: u16) -> LogicalType {
    const MOST: u16 = MOST_DIGITS as u16;
    if precision <= MOST {
        return LogicalType::Decimal(precision as u8, scale as u8);
    }
    let whole = precision - scale;
    let least = if scale < 6 { scale } else { 6 };
    let left = MOST.saturating_sub(whole);
    LogicalType::Decimal(MOST_DIGITS, if left > least { left as u8 } else { least as u8 })
}

/// The type that holds all values of both: of CASE, COALESCE, IN, comparisons.
pub(super) fn common(a: &LogicalType, b: &LogicalType) -> Option<LogicalType> {
    use LogicalType as T;
    if a == b {
        return Some(a.clone());
    }
    let longest = |a: &Option<u32>, b: &Option<u32>| Some((*a)?.max((*b)?));
    Some(match (a, b) {
        (T::Double, b) | (b, T::Double) if family(b) == Family::Number => T::Double,
        (T::Float, T::Decimal(..)) | (T::Decimal(..), T::Float) => T::Double,
        (T::Float, b) | (b, T::Float) if family(b) == Family::Number => T::Float,
        (a, b) if is_integer(a) && is_integer(b) => {
            let wider = as_decimal(a)? > as_decimal(b)?;
            if wider { a.clone() } else { b.clone() }
        }
        (a, b) if as_decimal(a).is_some() && as_decimal(b).is_some() => {
            let ((p1, s1), (p2, s2)) = (as_decimal(a)?, as_decimal(b)?);
            // Digits before the point are kept.
            let whole = (p1 - s1).max(p2 - s2);
            let scale = s1.max(s2).min(MOST_DIGITS - whole);
            T::Decimal(whole + scale, scale)
        }
        (T::Char(a), T::Char(b)) => T::VarChar(Some(*a.max(b))),
        (T::Char(a), T::VarChar(b)) | (T::VarChar(b), T::Char(a)) => T::VarChar(longest(&Some(*a), b)),
        (T::VarChar(a), T::VarChar(b)) => T::VarChar(longest(a, b)),
        (T::Binary(a), T::Binary(b)) => T::VarBinary(Some(*a.max(b))),
        (T::Binary(a), T::VarBinary(b)) | (T::VarBinary(b), T::Binary(a)) => T::VarBinary(longest(&Some(*a), b)),
        (T::VarBinary(a), T::VarBinary(b)) => T::VarBinary(longest(a, b)),
        (T::Time(a), T::Time(b)) => T::Time(*a.max(b)),
        (T::Timestamp(a), T::Timestamp(b)) => T::Timestamp(*a.max(b)),
        (T::TimestampLtz(a), T::TimestampLtz(b)) => T::TimestampLtz(*a.max(b)),
        (T::Timestamp(a), T::TimestampLtz(b)) | (T::TimestampLtz(b), T::Timestamp(a)) => T::TimestampLtz(*a.max(b)),
        (T::Array(a), T::Array(b)) => {
            let logical = common(&a.logical, &b.logical)?;
            T::Array(Box::new(ColumnType { logical, nullable: a.nullable || b.nullable }))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> LogicalType {
        ColumnType::parse(text).unwrap().logical
    }

    #[test]
    fn the_common_type_holds_the_values_of_both() {
        for (a, b, both) in [
            ("INT", "BIGINT", Some("BIGINT")),
            ("INT", "DECIMAL(2, 1)", Some("DECIMAL(11, 1)")),
            ("DECIMAL(38, 0)", "DECIMAL(38, 10)", Some("DECIMAL(38, 0)")),
            ("DECIMAL(30, 0)", "DECIMAL(20, 10)", Some("DECIMAL(38, 8)")),
            ("FLOAT", "INT", Some("FLOAT")),
            ("FLOAT", "DECIMAL(2, 1)", Some("DOUBLE")),
            ("CHAR(1)", "CHAR(3)", Some("VARCHAR(3)")),
            ("CHAR(3)", "CHAR(3)", Some("CHAR(3)")),
            ("CHAR(3)", "STRING", Some("STRING")),
            ("TIMESTAMP(0)", "TIMESTAMP(3)", Some("TIMESTAMP(3)")),
            ("DATE", "TIMESTAMP(3)", None),
            ("INT", "STRING", None),
            ("BOOLEAN", "INT", None),
        ] {
            assert_eq!(common(&parse(a), &parse(b)), both.map(parse), "{a} and {b}");
            assert_eq!(common(&parse(b), &parse(a)), both.map(parse), "{b} and {a}");
        }
    }

    #[test]
    fn a_decimal_that_is_too_long_loses_digits_behind_its_point() {
        assert_eq!(adjusted(20, 4), LogicalType::Decimal(20, 4));
        assert_eq!(adjusted(77, 20), LogicalType::Decimal(38, 6));
        assert_eq!(adjusted(45, 12), LogicalType::Decimal(38, 6));
        assert_eq!(adjusted(40, 12), LogicalType::Decimal(38, 10));
    }
}
