//! CASE and its relatives.

use std::{cmp::Ordering, ops::Range, sync::Arc};

use datafusion_physical_expr::expressions::CaseExpr;
use sqlparser::ast::{BinaryOperator, CaseWhen, Expr};

use super::{Lower, Planned, Term};
use crate::{
    model::LogicalType,
    query::{
        QueryError,
        call::{Kernel, Row},
        cast,
        first_of::FirstOf,
        types::{Family, Kind, Type, common, family},
    },
};

impl Lower<'_> {
    pub(super) fn case(
        &self,
        expression: &Expr,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Planned {
        let at = self.at(expression);
        let operand = operand.map(|operand| self.expression(operand));
        let condition = |condition: &Expr| match &operand {
            None => self.condition(condition),
            // Compared by Flink's rules: DataFusion's own form would not know them.
            Some(Ok(operand)) => {
                let value = self.expression(condition)?;
                self.compare(operand.clone(), value, &BinaryOperator::Eq, at.clone())
            }
            Some(Err(_)) => self.expression(condition),
        };
        let tests = self.all(conditions.iter().map(|when| condition(&when.condition)));
        let results = self.each(conditions.iter().map(|when| &when.result));
        let otherwise = otherwise.map(|otherwise| self.expression(otherwise)).transpose();
        let rest = self.both(tests, self.both(results, otherwise));
        let operand = operand.map_or(Ok(()), |operand| operand.map(|_| ()));
        let ((), (tests, (results, otherwise))) = self.both(operand, rest)?;
        choice(tests.into_iter().zip(results).collect(), otherwise, at)
    }

    /// `COALESCE` and `IFNULL`: the first that is not null.
    pub(super) fn coalesce(&self, args: Vec<Term>, at: Range<usize>) -> Planned {
        let nullable = args.iter().all(|arg| arg.ty.nullable);
        let logical = common_of(&args, &at)?;
        let args = as_one(args, &logical)?;
        if args.is_empty() {
            return Err(QueryError::new(at, "there is nothing to choose from"));
        }
        let expr = FirstOf::expr(args.iter().map(|arg| Arc::clone(&arg.expr)).collect(), logical.to_arrow());
        Ok(Term::over(expr, Type::new(logical, nullable), at, &args.iter().collect::<Vec<_>>()))
    }

    /// `NULLIF(a, b)`: null if they are equal, else `a`.
    pub(super) fn null_if(&self, a: Term, b: Term, at: Range<usize>) -> Planned {
        let equal = self.compare(a.clone(), b, &BinaryOperator::Eq, at.clone())?;
        Ok(choice(vec![(equal, Term::null(at.clone()))], Some(a), at)?.with_nullable(true))
    }

    /// `IF(condition, a, b)`.
    pub(super) fn if_else(&self, condition: Term, a: Term, b: Term, at: Range<usize>) -> Planned {
        let nullable = condition.ty.nullable || a.ty.nullable || b.ty.nullable;
        Ok(choice(vec![(condition, a)], Some(b), at)?.with_nullable(nullable))
    }

    /// `GREATEST` and `LEAST`, which are null if any argument is.
    pub(super) fn extreme(&self, args: Vec<Term>, greatest: bool, at: Range<usize>) -> Planned {
        let nullable = args.iter().any(|arg| arg.ty.nullable);
        let logical = common_of(&args, &at)?;
        let args = as_one(args, &logical)?;
        let op = if greatest { BinaryOperator::GtEq } else { BinaryOperator::LtEq };
        let Some(first) = args.first() else { return Err(QueryError::new(at, "there is nothing to choose from")) };
        // What cannot be compared is refused here, in the words of comparisons.
        self.compare(first.clone(), first.clone(), &op, at.clone())?;
        let kernel = extreme_kernel(&logical, greatest);
        let name = if greatest { "GREATEST" } else { "LEAST" };
        Ok(Term::strict(name, args, Type::new(logical, nullable), at, kernel))
    }
}

/// The greatest or least of arguments of one type.
fn extreme_kernel(logical: &LogicalType, greatest: bool) -> Kernel {
    let wanted = if greatest { Ordering::Less } else { Ordering::Greater };
    match family(logical) {
        Family::Text => Kernel::Text(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.text(index)).into())))),
        Family::Bytes => {
            Kernel::Bytes(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.bytes(index)).into()))))
        }
        Family::Boolean => Kernel::Bool(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.bool(index)))))),
        Family::Date | Family::Time => {
            Kernel::Int(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.int(index))))))
        }
        Family::Number => match logical {
            LogicalType::Decimal(..) => {
                Kernel::Decimal(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.decimal(index))))))
            }
            LogicalType::Float | LogicalType::Double => {
                Kernel::Double(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.double(index))))))
            }
            _ => Kernel::Long(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.long(index)))))),
        },
        Family::Timestamp | Family::Nested => {
            Kernel::Long(Arc::new(move |row| Ok(Some(best(row, wanted, |index| row.long(index))))))
        }
    }
}

/// Of equal ones the first. `worse` is the order of one that is replaced to the next one; there is none of NaN, which
/// is replaced and replaces.
fn best<T: PartialOrd>(row: &Row<'_>, worse: Ordering, value: impl Fn(usize) -> T) -> T {
    (1..row.len()).map(&value).fold(value(0), |best, next| match best.partial_cmp(&next) {
        Some(order) if order != worse => best,
        _ => next,
    })
}

/// Any type that holds the values of all; NULLs take it.
fn common_of(terms: &[Term], at: &Range<usize>) -> Result<LogicalType, QueryError> {
    common_by(terms, at, common)
}

/// The type of CASE: as `common`, but the first of TIMESTAMP and TIMESTAMP_LTZ decides, as in Calcite.
fn common_of_case(a: &LogicalType, b: &LogicalType) -> Option<LogicalType> {
    match (a, b) {
        (LogicalType::Timestamp(a), LogicalType::TimestampLtz(b)) => Some(LogicalType::Timestamp(*a.max(b))),
        _ => common(a, b),
    }
}

fn common_by(
    terms: &[Term],
    at: &Range<usize>,
    both: fn(&LogicalType, &LogicalType) -> Option<LogicalType>,
) -> Result<LogicalType, QueryError> {
    let mut found: Option<(LogicalType, &Term)> = None;
    for term in terms {
        let logical = match &term.ty.kind {
            Kind::Null => continue,
            Kind::Of(logical) => logical.clone(),
            kind => return Err(term.error(format!("{kind} is not supported here"))),
        };
        found = Some(match found {
            None => (logical, term),
            Some((so_far, first)) => {
                let both = both(&so_far, &logical).ok_or_else(|| {
                    let error = term.error(format!("{so_far} and {logical} have no common type"));
                    error.help("write CAST(... AS ...) around one of them")
                })?;
                (both, first)
            }
        });
    }
    let untyped = || QueryError::new(at.clone(), "NULL has no type").expected("CAST(NULL AS type)");
    found.map(|(logical, _)| logical).ok_or_else(untyped)
}

fn as_one(terms: Vec<Term>, logical: &LogicalType) -> Result<Vec<Term>, QueryError> {
    terms.into_iter().map(|term| cast::implicit(term, logical)).collect()
}

/// The result of the first condition that is true.
pub(super) fn choice(whens: Vec<(Term, Term)>, otherwise: Option<Term>, at: Range<usize>) -> Planned {
    let results: Vec<Term> = whens.iter().map(|(_, result)| result.clone()).chain(otherwise.clone()).collect();
    let nullable = otherwise.is_none() || results.iter().any(|result| result.ty.nullable);
    let logical = common_by(&results, &at, common_of_case)?;
    let mut results = as_one(results, &logical)?;
    let otherwise = if otherwise.is_some() { results.pop() } else { None };
    let of: Vec<Term> =
        whens.iter().map(|(condition, _)| condition.clone()).chain(results.clone()).chain(otherwise.clone()).collect();
    let pairs = whens.iter().zip(results).map(|((condition, _), result)| (Arc::clone(&condition.expr), result.expr));
    let expr = CaseExpr::try_new(None, pairs.collect(), otherwise.map(|term| term.expr));
    let expr = expr.map_err(|error| QueryError::new(at.clone(), error.to_string()))?;
    Ok(Term::over(Arc::new(expr), Type::new(logical, nullable), at, &of.iter().collect::<Vec<_>>()))
}
