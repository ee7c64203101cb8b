//! Functions of numbers.

use std::sync::{Arc, Mutex, PoisonError};

use sqlparser::ast::BinaryOperator;

use super::{
    Function, Given,
    Param::{Double, Long},
    function, longs,
};
use crate::{
    model::LogicalType as T,
    query::{
        QueryError,
        call::{Kernel, Out, Row},
        cast,
        lower::{Planned, Term, function::double, numeric::numeric},
        types::{Family, Type, is_integer},
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    function("ABS", 1..=1, abs),
    function("CEIL", 1..=1, |given| whole(given, true)),
    function("CEILING", 1..=1, |given| whole(given, true)),
    function("FLOOR", 1..=1, |given| whole(given, false)),
    function("ROUND", 1..=2, |given| rounded(given, true)),
    function("TRUNCATE", 1..=2, |given| rounded(given, false)),
    function("SIGN", 1..=1, sign),
    function("MOD", 2..=2, |given| {
        let at = given.at.clone();
        let (a, b) = given.two()?;
        numeric(a, b, &BinaryOperator::Modulo, at)
    }),
    function("POWER", 2..=2, |given| of_doubles(given, |row| java_pow(row.double(0), row.double(1)))),
    function("SQRT", 1..=1, |given| {
        of_doubles(given, |row| if row.double(0) == 0.0 { 0.0 } else { row.double(0).sqrt() })
    }),
    function("EXP", 1..=1, |given| of_doubles(given, |row| row.double(0).exp())),
    function("LN", 1..=1, |given| of_doubles(given, |row| row.double(0).ln())),
    function("LOG10", 1..=1, |given| of_doubles(given, |row| row.double(0).log10())),
    function("LOG2", 1..=1, |given| of_doubles(given, |row| row.double(0).ln() / 2_f64.ln())),
    function("LOG", 1..=2, |given| {
        of_doubles(
            given,
            |row| if row.len() == 1 { row.double(0).ln() } else { row.double(1).ln() / row.double(0).ln() },
        )
    }),
    function("SIN", 1..=1, |given| of_doubles(given, |row| row.double(0).sin())),
    function("COS", 1..=1, |given| of_doubles(given, |row| row.double(0).cos())),
    function("TAN", 1..=1, |given| of_doubles(given, |row| row.double(0).tan())),
    function("COT", 1..=1, |given| of_doubles(given, |row| 1.0 / row.double(0).tan())),
    function("ASIN", 1..=1, |given| of_doubles(given, |row| row.double(0).asin())),
    function("ACOS", 1..=1, |given| of_doubles(given, |row| row.double(0).acos())),
    function("ATAN", 1..=1, |given| of_doubles(given, |row| row.double(0).atan())),
    function("ATAN2", 2..=2, |given| of_doubles(given, |row| row.double(0).atan2(row.double(1)))),
    function("SINH", 1..=1, |given| of_doubles(given, |row| row.double(0).sinh())),
    function("COSH", 1..=1, |given| of_doubles(given, |row| row.double(0).cosh())),
    function("TANH", 1..=1, |given| of_doubles(given, |row| row.double(0).tanh())),
    function("DEGREES", 1..=1, |given| of_doubles(given, |row| row.double(0) * (180.0 / std::f64::consts::PI))),
    function("RADIANS", 1..=1, |given| of_doubles(given, |row| row.double(0) / 180.0 * std::f64::consts::PI)),
    function("PI", 0..=0, |given| Ok(double(std::f64::consts::PI, given.at))),
    function("E", 0..=0, |given| Ok(double(std::f64::consts::E, given.at))),
    function("RAND", 0..=1, |given| {
        let random = generator(&given, 0)?;
        let kernel =
            Kernel::Double(Arc::new(move |_| Ok(Some(random.lock().unwrap_or_else(PoisonError::into_inner).f64()))));
        Ok(volatile(Term::strict("RAND", Vec::new(), Type::new(T::Double, false), given.at, kernel)))
    }),
    function("RAND_INTEGER", 1..=2, |given| {
        let random = if given.args.len() == 2 { generator(&given, 0)? } else { Arc::default() };
        let mut given = given.with(&[Long])?;
        // Before it is made: a call of constants would be worked out once for all rows.
        given.args.iter_mut().for_each(|arg| arg.volatile = true);
        let made = given.strict(
            T::Int,
            longs(move |row| {
                let bound = row.long(row.len() - 1);
                if bound < 1 {
                    return Err(format!("a random integer below {bound} was asked for"));
                }
                Ok(Some(random.lock().unwrap_or_else(PoisonError::into_inner).i64(0..bound)))
            }),
        );
        Ok(made.may_fail())
    }),
];

/// As Java has it: of 1 and infinity there is no power.
fn java_pow(base: f64, exponent: f64) -> f64 {
    if (base.abs() == 1.0 && exponent.is_infinite()) || (base == 1.0 && exponent.is_nan()) {
        return f64::NAN;
    }
    base.powf(exponent)
}

fn volatile(term: Term) -> Term {
    Term { volatile: true, ..term }
}

/// With a constant seed the same numbers in every run of the process; not those of Java.
fn generator(given: &Given<'_>, seed: usize) -> Result<Arc<Mutex<fastrand::Rng>>, QueryError> {
    let Some(seed) = given.arg(seed) else { return Ok(Arc::default()) };
    let value = seed.constant_long().ok_or_else(|| seed.error("a seed is a constant").expected("an integer"))?;
    Ok(Arc::new(Mutex::new(fastrand::Rng::with_seed(value.cast_unsigned()))))
}

fn of_doubles(given: Given<'_>, run: impl Fn(&Row<'_>) -> f64 + Send + Sync + 'static) -> Planned {
    Ok(given.with(&[Double])?.strict(T::Double, Kernel::Double(Arc::new(move |row| Ok(Some(run(row)))))))
}

/// The type of the first argument, which is a number.
fn number(given: &Given<'_>) -> Result<T, QueryError> {
    let Some(arg) = given.arg(0) else { return Err(QueryError::new(given.at.clone(), "an argument is missing")) };
    match (arg.family(), arg.logical()) {
        (Some(Family::Number), Some(logical)) => Ok(logical.clone()),
        _ => {
            let error = arg.error(format!("{} is given {}", given.name, arg.ty.kind)).expected("a number");
            Err(error.help("write CAST(... AS ...) around it"))
        }
    }
}

fn abs(given: Given<'_>) -> Planned {
    let ty = number(&given)?;
    let kernel = match &ty {
        T::Float | T::Double => Kernel::Double(Arc::new(|row| Ok(Some(row.double(0).abs())))),
        T::Decimal(..) => Kernel::Decimal(Arc::new(|row| Ok(Some(row.decimal(0).abs())))),
        _ => longs(|row| Ok(Some(row.long(0).wrapping_abs()))),
    };
    Ok(given.strict(ty, kernel))
}

fn sign(given: Given<'_>) -> Planned {
    let ty = number(&given)?;
    let kernel = match &ty {
        T::Float | T::Double => Kernel::Double(Arc::new(|row| {
            let value = row.double(0);
            Ok(Some(if value == 0.0 || value.is_nan() { value } else { value.signum() }))
        })),
        T::Decimal(_, scale) => {
            let unit = 10_i128.pow(u32::from(*scale));
            Kernel::Decimal(Arc::new(move |row| Ok(Some(row.decimal(0).signum() * unit))))
        }
        _ => longs(|row| Ok(Some(row.long(0).signum()))),
    };
    Ok(given.strict(ty, kernel))
}

fn whole(given: Given<'_>, up: bool) -> Planned {
    let ty = number(&given)?;
    match ty {
        T::Float | T::Double => {
            let run = move |row: &Row<'_>| -> Out<f64> {
                Ok(Some(if up { row.double(0).ceil() } else { row.double(0).floor() }))
            };
            Ok(given.strict(ty, Kernel::Double(Arc::new(run))))
        }
        T::Decimal(precision, scale) => {
            let unit = 10_i128.pow(scale.into());
            let run = move |row: &Row<'_>| -> Out<i128> {
                let (whole, rest) = (row.decimal(0).div_euclid(unit), row.decimal(0).rem_euclid(unit));
                let made = if up && rest > 0 { whole + 1 } else { whole };
                Ok(cast::rescaled(made, 0, precision, 0))
            };
            Ok(given.strict(T::Decimal(precision, 0), Kernel::Decimal(Arc::new(run))))
        }
        _ => given.only(),
    }
}

/// `ROUND(number[, digits])` half up (away from zero), and `TRUNCATE` toward zero.
fn rounded(given: Given<'_>, half_up: bool) -> Planned {
    let ty = number(&given)?;
    let digits = given.arg(1).map(|digits| digits.constant_long());
    if let Some(arg) = given.arg(1)
        && !arg.logical().is_some_and(is_integer)
    {
        return Err(arg.error(format!("digits are {}", arg.ty.kind)).expected("an integer"));
    }
    match ty {
        T::Float | T::Double => {
            let single = ty == T::Float;
            let run = move |row: &Row<'_>| -> Out<f64> {
                let digits = if row.len() > 1 { row.long(1) } else { 0 };
                Ok(Some(round_double(row.double(0), digits, half_up, single)))
            };
            Ok(given.strict(ty, Kernel::Double(Arc::new(run))))
        }
        T::Decimal(precision, scale) => {
            let Some(digits) = digits.unwrap_or(Some(0)) else {
                let error = QueryError::new(given.at, format!("the digits that a {ty} is rounded to are no constant"));
                return Err(error.help("they decide its type"));
            };
            let made = round_type(precision, scale, digits);
            let T::Decimal(wide, to) = made else { return Err(QueryError::new(given.at, "this is no DECIMAL")) };
            let run = move |row: &Row<'_>| -> Out<i128> {
                let value = round_digits(row.decimal(0), i64::from(scale).saturating_sub(digits), half_up);
                // Rounded within its own scale first, so what follows loses nothing.
                Ok(value.and_then(|value| cast::rescaled(value, scale, wide, to)))
            };
            Ok(given.strict(made, Kernel::Decimal(Arc::new(run))))
        }
        _ => Ok(given.strict(
            ty,
            longs(move |row| {
                let digits = if row.len() > 1 { row.long(1) } else { 0 };
                let value = round_digits(row.long(0).into(), digits.saturating_neg(), half_up).unwrap_or(0);
                Ok(Some(value as i64))
            }),
        )),
    }
}

/// By Flink's `LogicalTypeMerging.findRoundDecimalType`.
fn round_type(precision: u8, scale: u8, digits: i64) -> T {
    match u8::try_from(digits) {
        Ok(digits) if digits >= scale => T::Decimal(precision, scale),
        Ok(digits) => T::Decimal(1 + precision - scale + digits, digits),
        Err(_) if digits > 0 => T::Decimal(precision, scale),
        Err(_) => T::Decimal((1 + precision - scale).min(38), 0),
    }
}

/// Without its last digits, which become zeros; `None` if it does not fit.
fn round_digits(value: i128, last: i64, half_up: bool) -> Option<i128> {
    if last <= 0 {
        return Some(value);
    }
    let Some(unit) = u32::try_from(last).ok().and_then(|last| 10_i128.checked_pow(last)) else { return Some(0) };
    let (kept, rest) = (value / unit, value % unit);
    let up = half_up && rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
    (kept + if up { value.signum() } else { 0 }).checked_mul(unit)
}

/// Through the shortest digits of the number, as `BigDecimal.valueOf` does.
fn round_double(value: f64, digits: i64, half_up: bool, single: bool) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return if value == 0.0 { 0.0 } else { value };
    }
    let text = match single {
        true => ryu::Buffer::new().format_finite(value as f32).to_owned(),
        false => ryu::Buffer::new().format_finite(value).to_owned(),
    };
    let Ok(number) = text.parse::<bigdecimal::BigDecimal>() else { return value };
    if digits >= number.fractional_digit_count() {
        return value;
    }
    if digits < -400 {
        return 0.0;
    }
    let mode = if half_up { bigdecimal::RoundingMode::HalfUp } else { bigdecimal::RoundingMode::Down };
    number.with_scale_round(digits, mode).to_string().parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_up_and_truncating_is_toward_zero() {
        assert_eq!(round_digits(1235, 1, true), Some(1240));
        assert_eq!(round_digits(-1235, 1, true), Some(-1240));
        assert_eq!(round_digits(-1239, 1, false), Some(-1230));
        assert_eq!(round_digits(17, 5, true), Some(0));
        assert_eq!(round_digits(17, 50, true), Some(0));
        assert_eq!(round_double(2.25, 1, true, false), 2.3);
        assert_eq!(round_double(-2.75, 1, false, false), -2.7);
        assert_eq!(round_double(1e300, 1, true, false), 1e300);
        assert_eq!(round_double(15.0, -1, true, false), 20.0);
        assert_eq!(round_type(10, 2, 1).to_string(), "DECIMAL(10, 1)");
        assert_eq!(round_type(10, 2, -1).to_string(), "DECIMAL(9, 0)");
    }
}
