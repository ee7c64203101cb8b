//! Comparisons, and what is made of them.

use std::{cmp::Ordering, collections::HashSet, ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, BooleanArray, Datum, Scalar};
use arrow_buffer::i256;
use arrow_ord::{cmp, ord::make_comparator};
use arrow_schema::SortOptions;
use datafusion_common::ScalarValue;
use datafusion_physical_expr::expressions::NotExpr;
use sqlparser::ast::{BinaryOperator, Expr};

use super::{Lower, Planned, Term};
use crate::{
    model::LogicalType,
    query::{
        QueryError,
        call::{Args, Kernel},
        cast,
        logic::Logic,
        types::{Family, Kind, Type, as_decimal, common, is_integer},
    },
};

impl Lower<'_> {
    /// `a op b`.
    pub(super) fn compare(&self, a: Term, b: Term, op: &BinaryOperator, at: Range<usize>) -> Planned {
        let (a, b) = comparable(a, b, op, &at)?;
        let of_rows = matches!(a.logical(), Some(LogicalType::Row(_)));
        let nullable = a.ty.nullable || b.ty.nullable || of_rows;
        let kernel = comparison(&a, &b, op);
        Ok(Term::strict(op.to_string(), vec![a, b], Type::new(LogicalType::Boolean, nullable), at, kernel))
    }

    pub(super) fn distinct(&self, expression: &Expr, left: &Expr, right: &Expr, distinct: bool) -> Planned {
        let at = self.at(expression);
        let (a, b) = self.two(left, right)?;
        let (a, b) = comparable(a, b, &BinaryOperator::Eq, &at)?;
        let equal = self.compare(a.clone(), b.clone(), &BinaryOperator::Eq, at.clone())?;
        let kernel = Kernel::Bool(Arc::new(move |row| {
            let same = match (row.is_null(0), row.is_null(1)) {
                (false, false) => row.bool(2),
                (a, b) => a == b,
            };
            Ok(Some(same != distinct))
        }));
        let ty = Type::new(LogicalType::Boolean, false);
        Ok(Term::lenient("IS DISTINCT FROM", vec![a, b, equal], ty, at, kernel))
    }

    /// `IS [NOT] TRUE`, `FALSE` or, for none, `UNKNOWN`.
    pub(super) fn is(&self, expression: &Expr, inner: &Expr, wanted: Option<bool>, negated: bool) -> Planned {
        let term = self.condition(inner)?;
        let kernel = Kernel::Bool(Arc::new(move |row| {
            let value = (!row.is_null(0)).then(|| row.bool(0));
            Ok(Some((value == wanted) != negated))
        }));
        let ty = Type::new(LogicalType::Boolean, false);
        Ok(Term::lenient("IS", vec![term], ty, self.at(expression), kernel))
    }

    pub(super) fn between(&self, expression: &Expr, value: &Expr, low: &Expr, high: &Expr, negated: bool) -> Planned {
        let at = self.at(expression);
        let (value, (low, high)) = self.both(self.expression(value), self.two(low, high))?;
        let (from, to) = if negated {
            (BinaryOperator::Lt, BinaryOperator::Gt)
        } else {
            (BinaryOperator::GtEq, BinaryOperator::LtEq)
        };
        let parts =
            vec![self.compare(value.clone(), low, &from, at.clone())?, self.compare(value, high, &to, at.clone())?];
        Ok(all_of(!negated, &parts, at))
    }

    pub(super) fn in_list(&self, expression: &Expr, value: &Expr, list: &[Expr], negated: bool) -> Planned {
        let at = self.at(expression);
        let (value, items) = self.both(self.expression(value), self.each(list))?;
        let nullable = value.ty.nullable || items.iter().any(|item| item.ty.nullable);
        let found = match set(&value, &items) {
            Some(kernel) => {
                Term::strict("IN", vec![value], Type::new(LogicalType::Boolean, nullable), at.clone(), kernel)
            }
            None => {
                let compare = |item: Term| self.compare(value.clone(), item, &BinaryOperator::Eq, at.clone());
                let equal = items.into_iter().map(compare).collect::<Result<Vec<_>, _>>()?;
                all_of(false, &equal, at.clone())
            }
        };
        if !negated {
            return Ok(found);
        }
        let ty = found.ty.clone();
        Ok(Term::over(Arc::new(NotExpr::new(Arc::clone(&found.expr))), ty, at, &[&found]))
    }
}

fn all_of(and: bool, conditions: &[Term], at: Range<usize>) -> Term {
    let nullable = conditions.iter().any(|one| one.ty.nullable);
    let parts = conditions.iter().map(|one| (Arc::clone(&one.expr), one.fails)).collect();
    let of: Vec<&Term> = conditions.iter().collect();
    Term::over(Logic::expr(and, parts), Type::new(LogicalType::Boolean, nullable), at, &of)
}

/// A set of constants of the type of the value; `None`: they are compared one by one.
fn set(value: &Term, items: &[Term]) -> Option<Kernel> {
    let null = items.iter().any(|item| item.value().is_some_and(ScalarValue::is_null));
    let constants = || items.iter().map(|item| item.value()).filter(|value| value.is_none_or(|value| !value.is_null()));
    let answer = move |found: bool| Ok(if found { Some(true) } else { (!null).then_some(false) });
    match value.logical()? {
        LogicalType::Char(_) | LogicalType::VarChar(_) => {
            let text = |value: Option<&ScalarValue>| match value? {
                ScalarValue::Utf8(Some(text)) => Some(text.clone()),
                _ => None,
            };
            let texts: HashSet<String> = constants().map(text).collect::<Option<_>>()?;
            Some(Kernel::Bool(Arc::new(move |row| answer(texts.contains(row.text(0))))))
        }
        logical if is_integer(logical) => {
            let whole = items.iter().filter(|item| !item.value().is_some_and(ScalarValue::is_null));
            let numbers: HashSet<i64> = whole.map(Term::constant_long).collect::<Option<_>>()?;
            // An interval is held as an integer too.
            if items.iter().any(|item| matches!(item.ty.kind, Kind::Months | Kind::Millis)) {
                return None;
            }
            Some(Kernel::Bool(Arc::new(move |row| answer(numbers.contains(&row.long(0))))))
        }
        _ => None,
    }
}

/// Both as of one type, as far as Flink compares them at all.
fn comparable(a: Term, b: Term, op: &BinaryOperator, at: &Range<usize>) -> Result<(Term, Term), QueryError> {
    let refused = |a: &Term, b: &Term| {
        let error = QueryError::new(at.clone(), format!("{} and {} cannot be compared", a.ty.kind, b.ty.kind));
        error.help("write CAST(... AS ...) around one of them")
    };
    let (left, right) = match (a.ty.kind.clone(), b.ty.kind.clone()) {
        (Kind::Null, Kind::Null) => {
            return Ok((a.typed_null(LogicalType::Boolean), b.typed_null(LogicalType::Boolean)));
        }
        (Kind::Null, Kind::Of(ty)) => return Ok((a.typed_null(ty), b)),
        (Kind::Of(ty), Kind::Null) => return Ok((a, b.typed_null(ty))),
        (Kind::Of(left), Kind::Of(right)) => (left, right),
        (left, right) if left == right => return Ok((a, b)),
        _ => return Err(refused(&a, &b)),
    };
    let (x, y) = (crate::query::types::family(&left), crate::query::types::family(&right));
    match (x, y) {
        (Family::Number, Family::Number) => numbers(a, b, &left, &right),
        (Family::Text, Family::Text) | (Family::Boolean, Family::Boolean) | (Family::Date, Family::Date) => Ok((a, b)),
        (Family::Bytes, Family::Bytes) | (Family::Time, Family::Time) => Ok((a, b)),
        (Family::Timestamp, Family::Timestamp) => {
            let ty = common(&left, &right).ok_or_else(|| refused(&a, &b))?;
            Ok((cast::implicit(a, &ty)?, cast::implicit(b, &ty)?))
        }
        // A text is read as the time it is compared with.
        (Family::Text, Family::Date | Family::Time | Family::Timestamp) => {
            Ok((cast::explicit(a, &right, false, at.clone())?, b))
        }
        (Family::Date | Family::Time | Family::Timestamp, Family::Text) => {
            let b = cast::explicit(b, &left, false, at.clone())?;
            Ok((a, b))
        }
        (Family::Nested, Family::Nested)
            if left == right && matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) =>
        {
            if matches!(left, LogicalType::Map(..)) { Err(refused(&a, &b)) } else { Ok((a, b)) }
        }
        _ => Err(refused(&a, &b)),
    }
}

/// Integers of one width, or floats of 64 bits; decimals are compared as they are.
fn numbers(a: Term, b: Term, left: &LogicalType, right: &LogicalType) -> Result<(Term, Term), QueryError> {
    use LogicalType as T;
    let is_float = |logical: &T| matches!(logical, T::Float | T::Double);
    if left == right {
        return Ok((a, b));
    }
    if is_float(left) || is_float(right) {
        let ty = if common(left, right) == Some(T::Float) { T::Float } else { T::Double };
        return Ok((cast::implicit(a, &ty)?, cast::implicit(b, &ty)?));
    }
    if is_integer(left) && is_integer(right) {
        let ty = common(left, right).unwrap_or(T::BigInt);
        return Ok((cast::implicit(a, &ty)?, cast::implicit(b, &ty)?));
    }
    let exact =
        |logical: &T| as_decimal(logical).map_or(T::Decimal(38, 0), |(precision, scale)| T::Decimal(precision, scale));
    Ok((cast::implicit(a, &exact(left))?, cast::implicit(b, &exact(right))?))
}

fn comparison(a: &Term, b: &Term, op: &BinaryOperator) -> Kernel {
    let op = op.clone();
    match (a.logical(), b.logical()) {
        (Some(LogicalType::Decimal(_, s1)), Some(LogicalType::Decimal(_, s2))) => {
            let (s1, s2) = (*s1, *s2);
            Kernel::Bool(Arc::new(move |row| {
                Ok(Some(holds(&op, Some(decimals(row.decimal(0), s1, row.decimal(1), s2)))))
            }))
        }
        // Not as Arrow does it, which tells the zeros apart and takes NaN for equal to itself.
        (Some(LogicalType::Float | LogicalType::Double), _) => {
            Kernel::Bool(Arc::new(move |row| Ok(Some(holds(&op, row.double(0).partial_cmp(&row.double(1)))))))
        }
        (Some(LogicalType::Array(_) | LogicalType::Row(_)), _) => {
            Kernel::Column(Arc::new(move |args| nested(args, &op)))
        }
        _ => Kernel::Column(Arc::new(move |args| column(args, &op))),
    }
}

/// Whether an order is what the operator asks for; there is none of NaN.
pub(in crate::query) fn holds(op: &BinaryOperator, order: Option<Ordering>) -> bool {
    use BinaryOperator as Op;
    match op {
        Op::Eq => order == Some(Ordering::Equal),
        Op::NotEq => order != Some(Ordering::Equal),
        Op::Lt => order == Some(Ordering::Less),
        Op::LtEq => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Op::Gt => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn decimals(a: i128, s1: u8, b: i128, s2: u8) -> Ordering {
    if s1 == s2 {
        return a.cmp(&b);
    }
    let up = |value: i128, by: u8| i256::from_i128(value).wrapping_mul(i256::from_i128(10_i128.pow(by.into())));
    // 38 digits more are 76, which fit.
    up(a, s2.saturating_sub(s1)).cmp(&up(b, s1.saturating_sub(s2)))
}

fn datum(args: &Args, index: usize) -> Result<Box<dyn Datum>, String> {
    let (array, constant) = args.given(index)?;
    let array: ArrayRef = Arc::clone(array);
    Ok(if constant { Box::new(Scalar::new(array)) } else { Box::new(array) })
}

fn column(args: &Args, op: &BinaryOperator) -> Result<ArrayRef, String> {
    use BinaryOperator as Op;
    let both = args.given(0)?.1 && args.given(1)?.1;
    let (a, b): (Box<dyn Datum>, Box<dyn Datum>) =
        if both { (Box::new(args.column(0)?), Box::new(args.column(1)?)) } else { (datum(args, 0)?, datum(args, 1)?) };
    let made = match op {
        Op::Eq => cmp::eq(&*a, &*b),
        Op::NotEq => cmp::neq(&*a, &*b),
        Op::Lt => cmp::lt(&*a, &*b),
        Op::LtEq => cmp::lt_eq(&*a, &*b),
        Op::Gt => cmp::gt(&*a, &*b),
        _ => cmp::gt_eq(&*a, &*b),
    };
    made.map(|made| Arc::new(made) as ArrayRef).map_err(|error| error.to_string())
}

/// Arrays and rows: equal if all within is, nulls too.
fn nested(args: &Args, op: &BinaryOperator) -> Result<ArrayRef, String> {
    let (a, b) = (args.column(0)?, args.column(1)?);
    let compare = make_comparator(&a, &b, SortOptions::default()).map_err(|error| error.to_string())?;
    let row = |row| (a.is_valid(row) && b.is_valid(row)).then(|| holds(op, Some(compare(row, row))));
    Ok(Arc::new((0..args.rows).map(row).collect::<BooleanArray>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_scales_are_compared_exactly() {
        assert_eq!(decimals(15, 1, 150, 2), Ordering::Equal);
        assert_eq!(decimals(15, 1, 151, 2), Ordering::Less);
        assert_eq!(decimals(i128::MAX, 0, 1, 38), Ordering::Greater);
        assert_eq!(decimals(-i128::MAX, 0, 1, 38), Ordering::Less);
    }
}
