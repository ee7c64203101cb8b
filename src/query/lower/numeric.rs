//! Arithmetic. Integers wrap, a DECIMAL that is too large is null, and a division by zero fails but for floats.

use std::sync::Arc;

use arrow_buffer::i256;
use sqlparser::ast::{BinaryOperator, Expr, Value, ValueWithSpan};

use super::{Lower, Planned, Term, literal::number};
use crate::{
    model::LogicalType,
    query::{
        QueryError,
        call::{Kernel, Row},
        cast,
        types::{Family, Kind, MOST_DIGITS, Type, adjusted, as_decimal, common, is_integer},
    },
};

/// Why an integer cannot be divided.
const BY_ZERO: &str = "a division by zero";

impl Lower<'_> {
    pub(super) fn sign(&self, expression: &Expr, minus: bool, inner: &Expr) -> Planned {
        let at = self.at(expression);
        // A sign belongs to the number that follows: -2147483648 is an INT.
        if let (true, Expr::Value(ValueWithSpan { value: Value::Number(digits, false), .. })) = (minus, inner)
            && let Some((value, logical)) = number(&format!("-{digits}"))
        {
            return Ok(Term::constant(value, Kind::Of(logical), at));
        }
        let term = self.expression(inner)?;
        let kernel = match &term.ty.kind {
            Kind::Months => Kernel::Int(Arc::new(|row| Ok(Some(row.int(0).wrapping_neg())))),
            Kind::Millis => Kernel::Long(Arc::new(|row| Ok(Some(row.long(0).wrapping_neg())))),
            Kind::Of(LogicalType::Decimal(..)) => Kernel::Decimal(Arc::new(|row| Ok(Some(-row.decimal(0))))),
            Kind::Of(LogicalType::Float | LogicalType::Double) => {
                Kernel::Double(Arc::new(|row| Ok(Some(-row.double(0)))))
            }
            Kind::Of(logical) if is_integer(logical) => {
                Kernel::Long(Arc::new(|row| Ok(Some(row.long(0).wrapping_neg()))))
            }
            kind => {
                let error = QueryError::new(at, format!("{kind} has no sign"));
                return Err(error.expected("a number or an interval"));
            }
        };
        if !minus {
            return Ok(Term { at, ..term });
        }
        let ty = term.ty.clone();
        Ok(Term::strict("-", vec![term], ty, at, kernel))
    }

    pub(super) fn arithmetic(&self, expression: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> Planned {
        let (a, b) = self.two(left, right)?;
        let at = self.at(expression);
        for term in [&a, &b] {
            if term.is_null() {
                return Err(term.error("NULL has no type here").expected("CAST(NULL AS type)"));
            }
        }
        let numbers = a.family() == Some(Family::Number) && b.family() == Some(Family::Number);
        if numbers { numeric(a, b, op, at) } else { self.moment_arithmetic(a, b, op, at) }
    }
}

/// `a op b` of two numbers.
pub(in crate::query) fn numeric(a: Term, b: Term, op: &BinaryOperator, at: std::ops::Range<usize>) -> Planned {
    use BinaryOperator as Op;
    use LogicalType as T;
    let (Some(left), Some(right)) = (a.logical().cloned(), b.logical().cloned()) else {
        return Err(QueryError::new(at, "these are no numbers"));
    };
    let nullable = a.ty.nullable || b.ty.nullable;
    let is_float = |logical: &T| matches!(logical, T::Float | T::Double);
    if is_float(&left) || is_float(&right) {
        if *op == Op::Modulo {
            let error = QueryError::new(at, format!("there is no % of {left} and {right}"));
            return Err(error.expected("integers or DECIMALs"));
        }
        let ty = float_type(&left, &right);
        let (a, b) = (cast::implicit(a, &T::Double)?, cast::implicit(b, &T::Double)?);
        return Ok(Term::strict(
            op.to_string(),
            vec![a, b],
            Type::new(ty.clone(), nullable),
            at,
            float_kernel(op, ty == T::Float),
        ));
    }
    let exact = |logical: &T| as_decimal(logical).unwrap_or((MOST_DIGITS, 0));
    if is_integer(&left) && is_integer(&right) {
        // A rest is less than what it is divided by, whose type it has.
        let ty = if *op == Op::Modulo { right } else { common(&left, &right).unwrap_or(T::BigInt) };
        let divides = matches!(op, Op::Divide | Op::Modulo);
        let zero = b.constant_long().is_none_or(|value| value == 0);
        let made = Term::strict(op.to_string(), vec![a, b], Type::new(ty, nullable), at, integer_kernel(op));
        return Ok(if divides && zero { made.may_fail() } else { made });
    }
    let (x, y) = (exact(&left), exact(&right));
    let ty = decimal_type(op, x, y);
    let T::Decimal(precision, scale) = ty else { return Err(QueryError::new(at, "this is no DECIMAL")) };
    let (a, b) = (cast::implicit(a, &T::Decimal(x.0, x.1))?, cast::implicit(b, &T::Decimal(y.0, y.1))?);
    let made = Term::strict(
        op.to_string(),
        vec![a, b],
        Type::new(ty, nullable),
        at,
        decimal_kernel(op, x.1, y.1, precision, scale),
    );
    Ok(if matches!(op, Op::Divide | Op::Modulo) { made.may_fail() } else { made })
}

/// Of FLOAT and DOUBLE the first one decides, which is how Calcite finds the type of both.
fn float_type(left: &LogicalType, right: &LogicalType) -> LogicalType {
    use LogicalType as T;
    match (left, right) {
        (T::Float, T::Double) => T::Float,
        (T::Double, T::Float) => T::Double,
        _ => common(left, right).unwrap_or(T::Double),
    }
}

fn float_kernel(op: &BinaryOperator, single: bool) -> Kernel {
    use BinaryOperator as Op;
    let round = move |value: f64| Ok(Some(if single { f64::from(value as f32) } else { value }));
    // What two floats make in 64 bits and is rounded to 32 is what they make in 32 bits.
    match op {
        Op::Plus => Kernel::Double(Arc::new(move |row| round(row.double(0) + row.double(1)))),
        Op::Minus => Kernel::Double(Arc::new(move |row| round(row.double(0) - row.double(1)))),
        Op::Multiply => Kernel::Double(Arc::new(move |row| round(row.double(0) * row.double(1)))),
        _ => Kernel::Double(Arc::new(move |row| round(row.double(0) / row.double(1)))),
    }
}

/// In 64 bits, of which the narrower type keeps its own: that is how they wrap.
fn integer_kernel(op: &BinaryOperator) -> Kernel {
    use BinaryOperator as Op;
    match op {
        Op::Plus => Kernel::Long(Arc::new(|row| Ok(Some(row.long(0).wrapping_add(row.long(1)))))),
        Op::Minus => Kernel::Long(Arc::new(|row| Ok(Some(row.long(0).wrapping_sub(row.long(1)))))),
        Op::Multiply => Kernel::Long(Arc::new(|row| Ok(Some(row.long(0).wrapping_mul(row.long(1)))))),
        Op::Divide => Kernel::Long(Arc::new(|row| match row.long(1) {
            0 => Err(BY_ZERO.into()),
            by => Ok(Some(row.long(0).wrapping_div(by))),
        })),
        _ => Kernel::Long(Arc::new(|row| match row.long(1) {
            0 => Err(BY_ZERO.into()),
            by => Ok(Some(row.long(0).wrapping_rem(by))),
        })),
    }
}

/// By Flink's `LogicalTypeMerging`.
pub(in crate::query) fn decimal_type(op: &BinaryOperator, x: (u8, u8), y: (u8, u8)) -> LogicalType {
    use BinaryOperator as Op;
    let ((p1, s1), (p2, s2)) = ((u16::from(x.0), u16::from(x.1)), (u16::from(y.0), u16::from(y.1)));
    match op {
        Op::Plus | Op::Minus => {
            let scale = s1.max(s2);
            adjusted((p1 - s1).max(p2 - s2) + scale + 1, scale)
        }
        Op::Multiply => adjusted(p1 + p2 + 1, s1 + s2),
        Op::Divide => {
            let scale = (s1 + p2 + 1).max(6);
            adjusted(p1 - s1 + s2 + scale, scale)
        }
        _ => {
            let scale = s1.max(s2);
            adjusted((p1 - s1).min(p2 - s2) + scale, scale)
        }
    }
}

fn decimal_kernel(op: &BinaryOperator, s1: u8, s2: u8, precision: u8, scale: u8) -> Kernel {
    use BinaryOperator as Op;
    let wide = move |row: &Row<'_>| {
        let exact = s1.max(s2);
        let up = |value: i128, from: u8| {
            i256::from_i128(value).checked_mul(i256::from_i128(10_i128.pow((exact - from).into())))
        };
        (up(row.decimal(0), s1), up(row.decimal(1), s2), exact)
    };
    match op {
        Op::Plus | Op::Minus => {
            let plus = *op == Op::Plus;
            Kernel::Decimal(Arc::new(move |row| {
                let (a, b, exact) = wide(row);
                let sum = a.zip(b).and_then(|(a, b)| if plus { a.checked_add(b) } else { a.checked_sub(b) });
                Ok(sum.and_then(|sum| cast::rescaled_wide(sum, exact, precision, scale)))
            }))
        }
        Op::Multiply => Kernel::Decimal(Arc::new(move |row| {
            let product = i256::from_i128(row.decimal(0)).checked_mul(i256::from_i128(row.decimal(1)));
            Ok(product.and_then(|product| cast::rescaled_wide(product, s1 + s2, precision, scale)))
        })),
        Op::Divide => Kernel::Decimal(Arc::new(move |row| match row.decimal(1) {
            0 => Err(BY_ZERO.into()),
            by => Ok(cast::divided((row.decimal(0), s1), (by, s2), precision, scale)),
        })),
        _ => Kernel::Decimal(Arc::new(move |row| {
            if row.decimal(1) == 0 {
                return Err(BY_ZERO.into());
            }
            let (a, b, exact) = wide(row);
            let rest = a.zip(b).and_then(|(a, b)| a.checked_rem(b));
            Ok(rest.and_then(|rest| cast::rescaled_wide(rest, exact, precision, scale)))
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_the_digits_that_flink_gives_them() {
        use BinaryOperator as Op;
        let ty = |op, x, y| decimal_type(&op, x, y).to_string();
        assert_eq!(ty(Op::Plus, (10, 2), (10, 0)), "DECIMAL(13, 2)");
        assert_eq!(ty(Op::Multiply, (10, 2), (5, 0)), "DECIMAL(16, 2)");
        assert_eq!(ty(Op::Divide, (10, 2), (5, 0)), "DECIMAL(16, 8)");
        assert_eq!(ty(Op::Divide, (38, 10), (38, 10)), "DECIMAL(38, 6)");
        assert_eq!(ty(Op::Plus, (38, 10), (38, 10)), "DECIMAL(38, 9)");
        assert_eq!(ty(Op::Modulo, (10, 2), (10, 0)), "DECIMAL(10, 2)");
    }
}
