//! Casts between numbers. Integers wrap and floats are clipped, as in Java; what a DECIMAL cannot hold is null.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::DataType;
use bigdecimal::BigDecimal;

use super::Cast;
use crate::{
    model::{LogicalType, number},
    query::{
        call::{Kernel, Out},
        types::{as_decimal, is_integer},
    },
};

pub(super) fn between(from: &LogicalType, to: &LogicalType) -> Cast {
    use LogicalType as T;
    match (from, to) {
        (from, T::Decimal(precision, scale)) => {
            let (precision, scale) = (*precision, *scale);
            match as_decimal(from) {
                Some((_, had)) if is_integer(from) => Cast::Sure(Kernel::Decimal(Arc::new(move |row| {
                    Ok(rescaled(row.long(0).into(), had, precision, scale))
                }))),
                Some((_, had)) => Cast::Sure(Kernel::Decimal(Arc::new(move |row| {
                    Ok(rescaled(row.decimal(0), had, precision, scale))
                }))),
                None => Cast::Unsure(Kernel::Decimal(Arc::new(move |row| {
                    float_to_decimal(row.double(0), precision, scale)
                }))),
            }
        }
        (T::Decimal(_, scale), to) => from_decimal(*scale, to),
        (T::Float | T::Double, T::TinyInt | T::SmallInt | T::Int) => {
            // Java narrows a float to an int first.
            Cast::Sure(Kernel::Long(Arc::new(|row| Ok(Some(i64::from(row.double(0) as i32))))))
        }
        (T::Float | T::Double, T::BigInt) => Cast::Sure(Kernel::Long(Arc::new(|row| Ok(Some(row.double(0) as i64))))),
        (T::Float | T::Double, _) => Cast::Sure(Kernel::Double(Arc::new(|row| Ok(Some(row.double(0)))))),
        (_, T::Float) => {
            // Straight to 32 bits, since rounding twice is another number.
            Cast::Sure(Kernel::Double(Arc::new(|row| Ok(Some(f64::from(row.long(0) as f32))))))
        }
        (_, T::Double) => Cast::Sure(Kernel::Double(Arc::new(|row| Ok(Some(row.long(0) as f64))))),
        (from, to) if as_decimal(from) < as_decimal(to) => {
            let data_type = to.to_arrow();
            Cast::Sure(Kernel::Column(Arc::new(move |args| widened(&args.column(0)?, &data_type))))
        }
        _ => Cast::Sure(Kernel::Long(Arc::new(|row| Ok(Some(row.long(0)))))),
    }
}

fn widened(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, String> {
    cast(array, data_type).map_err(|error| error.to_string())
}

fn from_decimal(scale: u8, to: &LogicalType) -> Cast {
    use LogicalType as T;
    match to {
        T::Float => Cast::Sure(Kernel::Double(Arc::new(move |row| {
            Ok(Some(f64::from(number::decimal_to_float(row.decimal(0), scale))))
        }))),
        T::Double => {
            Cast::Sure(Kernel::Double(Arc::new(move |row| Ok(Some(number::decimal_to_double(row.decimal(0), scale))))))
        }
        _ => Cast::Sure(Kernel::Long(Arc::new(move |row| {
            Ok(Some(10_i128.checked_pow(scale.into()).map_or(0, |unit| (row.decimal(0) / unit) as i64)))
        }))),
    }
}

/// Through the shortest digits of the number, as `BigDecimal.valueOf` of Java does.
fn float_to_decimal(value: f64, precision: u8, scale: u8) -> Out<i128> {
    if !value.is_finite() {
        return Err(format!("{value} is no DECIMAL"));
    }
    Ok(number::decimal_of_double(value, precision, scale))
}

pub(super) fn from_boolean(to: &LogicalType) -> Kernel {
    match to {
        LogicalType::Decimal(precision, scale) => {
            let (precision, scale) = (*precision, *scale);
            Kernel::Decimal(Arc::new(move |row| Ok(rescaled(row.bool(0).into(), 0, precision, scale))))
        }
        LogicalType::Float | LogicalType::Double => {
            Kernel::Double(Arc::new(|row| Ok(Some(if row.bool(0) { 1.0 } else { 0.0 }))))
        }
        _ => Kernel::Long(Arc::new(|row| Ok(Some(row.bool(0).into())))),
    }
}

pub(super) fn to_boolean(from: &LogicalType) -> Kernel {
    match from {
        LogicalType::Decimal(..) => Kernel::Bool(Arc::new(|row| Ok(Some(row.decimal(0) != 0)))),
        LogicalType::Float | LogicalType::Double => Kernel::Bool(Arc::new(|row| Ok(Some(row.double(0) != 0.0)))),
        _ => Kernel::Bool(Arc::new(|row| Ok(Some(row.long(0) != 0)))),
    }
}

/// An unscaled value of another scale, rounded half up (away from zero); `None` where the precision is too small.
pub(in crate::query) fn rescaled(value: i128, from: u8, precision: u8, to: u8) -> Option<i128> {
    let moved = if to >= from {
        value.checked_mul(10_i128.checked_pow((to - from).into())?)?
    } else {
        let unit = 10_i128.checked_pow((from - to).into())?;
        let (whole, rest) = (value / unit, value % unit);
        let up = rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
        whole + if up { value.signum() } else { 0 }
    };
    fits(moved, precision).then_some(moved)
}

fn fits(value: i128, precision: u8) -> bool {
    10_u128.checked_pow(precision.into()).is_none_or(|limit| value.unsigned_abs() < limit)
}

/// A wide unscaled value rounded half up to a scale; `None` where the precision is too small.
pub(in crate::query) fn rescaled_wide(value: i256, from: u8, precision: u8, to: u8) -> Option<i128> {
    let ten = i256::from_i128(10);
    let moved = if to >= from {
        value.checked_mul(ten.checked_pow((to - from).into())?)?
    } else {
        let unit = ten.checked_pow((from - to).into())?;
        let whole = value.checked_div(unit)?;
        let rest = value.checked_rem(unit)?.wrapping_abs();
        let up = rest.checked_mul(i256::from_i128(2))? >= unit;
        let step = if value.is_negative() { i256::MINUS_ONE } else { i256::ONE };
        if up { whole.checked_add(step)? } else { whole }
    };
    moved.to_i128().filter(|value| fits(*value, precision))
}

/// `a / b`, rounded half up to a scale; `None` where the precision is too small. `b` is not zero.
pub(in crate::query) fn divided(a: (i128, u8), b: (i128, u8), precision: u8, scale: u8) -> Option<i128> {
    let big = |(value, scale): (i128, u8)| BigDecimal::new(value.into(), i64::from(scale));
    let shift = i32::from(scale) - i32::from(a.1) + i32::from(b.1);
    let short = u32::try_from(shift).ok().and_then(|shift| a.0.checked_mul(10_i128.checked_pow(shift)?));
    if let Some(numerator) = short {
        let (whole, rest) = (numerator.checked_div(b.0)?, numerator.checked_rem(b.0)?);
        let up = rest.unsigned_abs() >= b.0.unsigned_abs().div_ceil(2);
        let step = if (numerator < 0) == (b.0 < 0) { 1 } else { -1 };
        let value = if up { whole.checked_add(step)? } else { whole };
        return fits(value, precision).then_some(value);
    }
    // Seldom: so many digits that it takes numbers of any length.
    let quotient = big(a) / big(b);
    let rounded = quotient.with_scale_round(scale.into(), bigdecimal::RoundingMode::HalfUp);
    let (value, _) = rounded.into_bigint_and_exponent();
    i128::try_from(value).ok().filter(|value| fits(*value, precision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rounded_half_up_and_what_does_not_fit_is_none() {
        assert_eq!(rescaled(1235, 2, 10, 1), Some(124));
        assert_eq!(rescaled(-1235, 2, 10, 1), Some(-124));
        assert_eq!(rescaled(1234, 2, 10, 1), Some(123));
        assert_eq!(rescaled(15, 1, 1, 0), Some(2));
        assert_eq!(rescaled(99, 0, 2, 1), None);
        assert_eq!(rescaled(i128::MAX, 0, 38, 30), None);
        assert_eq!(rescaled_wide(i256::from_i128(-125), 2, 38, 1), Some(-13));
        assert_eq!(divided((1, 0), (30, 1), 17, 6), Some(333_333));
        assert_eq!(divided((-2, 0), (3, 0), 10, 2), Some(-67));
        assert_eq!(divided((10_i128.pow(37), 0), (3, 0), 38, 10), None);
        assert_eq!(
            divided((10_i128.pow(37), 10), (3, 0), 38, 10),
            Some(3_333_333_333_333_333_333_333_333_333_333_333_333)
        );
    }
}
