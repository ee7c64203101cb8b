//! Which types of columns go into which without a cast that somebody wrote.

use super::LogicalType;

/// Whether an INSERT INTO puts a value of `from` into a column of `to` by itself, as Flink 1.20 does: see
/// `tests/flink/check_inserts.py`.
pub fn inserts(from: &LogicalType, to: &LogicalType) -> bool {
    use LogicalType as T;
    match (from, to) {
        (T::Decimal(..), T::Float | T::Double | T::Decimal(..)) => true,
        (T::Float | T::Double, T::Decimal(..)) | (T::Float, T::Double) => true,
        (integer, T::Float | T::Double | T::Decimal(..)) if digits(integer).is_some() => true,
        (T::Char(_), T::Char(_) | T::VarChar(_)) | (T::VarChar(_), T::VarChar(_)) => true,
        (T::Binary(_), T::Binary(_) | T::VarBinary(_)) | (T::VarBinary(_), T::VarBinary(_)) => true,
        (T::Timestamp(_), T::Date | T::Time(_) | T::Timestamp(_) | T::TimestampLtz(_)) => true,
        (T::TimestampLtz(_), T::Timestamp(_) | T::TimestampLtz(_)) | (T::Time(_), T::Time(_)) => true,
        (T::Array(from), T::Array(to)) => inserts(&from.logical, &to.logical),
        (T::Map(key, value), T::Map(to_key, to_value)) => {
            inserts(&key.logical, &to_key.logical) && inserts(&value.logical, &to_value.logical)
        }
        // By position, whatever they are called.
        (T::Row(from), T::Row(to)) => {
            from.len() == to.len() && from.iter().zip(to).all(|(from, to)| inserts(&from.ty.logical, &to.ty.logical))
        }
        (from, to) => from == to || digits(from).zip(digits(to)).is_some_and(|(from, to)| from <= to),
    }
}

/// Whether a value of `from` may become NULL in a column of `to` that it is inserted into, because it has more digits
/// before the point than fit there, or is a time that nanoseconds in 64 bits cannot hold.
pub fn may_overflow(from: &LogicalType, to: &LogicalType) -> bool {
    use LogicalType as T;
    match (from, to) {
        (T::Decimal(p, s), T::Decimal(to_p, to_s)) => p.saturating_sub(*s) > to_p.saturating_sub(*to_s),
        (T::Float | T::Double, T::Decimal(..)) => true,
        // Nanoseconds in 64 bits reach from 1677 to 2262.
        (T::Timestamp(from) | T::TimestampLtz(from), T::Timestamp(to) | T::TimestampLtz(to)) => *from <= 6 && *to > 6,
        (integer, T::Decimal(p, s)) => digits(integer).is_some_and(|digits| digits > p.saturating_sub(*s)),
        (T::Array(from), T::Array(to)) => may_overflow(&from.logical, &to.logical),
        (T::Map(key, value), T::Map(to_key, to_value)) => {
            may_overflow(&key.logical, &to_key.logical) || may_overflow(&value.logical, &to_value.logical)
        }
        (T::Row(from), T::Row(to)) => {
            from.iter().zip(to).any(|(from, to)| may_overflow(&from.ty.logical, &to.ty.logical))
        }
        _ => false,
    }
}

/// Decimal digits before the point that an integer type needs; `None`: it is none.
const fn digits(integer: &LogicalType) -> Option<u8> {
    match integer {
        LogicalType::TinyInt => Some(3),
        LogicalType::SmallInt => Some(5),
        LogicalType::Int => Some(10),
        LogicalType::BigInt => Some(19),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ColumnType;

    fn ty(text: &str) -> LogicalType {
        ColumnType::parse(text).unwrap().logical
    }

    #[test]
    fn what_is_inserted_without_a_cast_is_what_flink_inserts() {
        let said = include_str!("../../tests/fixtures/flink-cases/inserts.tsv");
        let lines: Vec<_> = said.lines().map(|line| line.split_once('\t').unwrap()).collect();
        assert!(lines.len() >= 40);
        for (from, into) in &lines {
            for (to, _) in &lines {
                let flink = into.split(';').any(|other| other == *to);
                assert_eq!(inserts(&ty(from), &ty(to)), flink, "{from} -> {to}");
            }
        }
    }

    #[test]
    fn only_what_may_have_too_many_digits_may_become_null() {
        for (from, to, may) in [
            ("INT", "DECIMAL(10)", false),
            ("INT", "DECIMAL(10, 1)", true),
            ("DECIMAL(10, 2)", "DECIMAL(11, 3)", false),
            ("DECIMAL(10, 2)", "DECIMAL(10, 3)", true),
            ("DECIMAL(10, 2)", "DECIMAL(9, 1)", false),
            ("DOUBLE", "DECIMAL(38, 2)", true),
            ("DECIMAL(10, 2)", "DOUBLE", false),
            ("TIMESTAMP(6)", "DATE", false),
            ("ROW<a DECIMAL(5, 0)>", "ROW<a DECIMAL(4, 0)>", true),
        ] {
            assert_eq!(may_overflow(&ty(from), &ty(to)), may, "{from} -> {to}");
        }
    }
}
