//! CASE and its relatives.

use std::{ops::Range, sync::Arc};

use datafusion_physical_expr::{
    PhysicalExpr,
    expressions::{CaseExpr, IsNotNullExpr},
};
use sqlparser::ast::{BinaryOperator, CaseWhen, Expr};

use super::{Lower, Planned, Term};
use crate::{
    model::LogicalType,
    query::{
        QueryError, cast,
        types::{Kind, Type, common},
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
        let operand = operand.map(|operand| self.expression(operand)).transpose()?;
        let mut whens = Vec::new();
        for when in conditions {
            let condition = match &operand {
                None => self.condition(&when.condition)?,
                // Compared by Flink's rules: DataFusion's own form would not know them.
                Some(operand) => {
                    let value = self.expression(&when.condition)?;
                    self.compare(operand.clone(), value, &BinaryOperator::Eq, at.clone())?
                }
            };
            whens.push((condition, self.expression(&when.result)?));
        }
        let otherwise = otherwise.map(|otherwise| self.expression(otherwise)).transpose()?;
        choice(whens, otherwise, at)
    }

    /// `COALESCE` and `IFNULL`: the first that is not null.
    pub(super) fn coalesce(&self, args: Vec<Term>, at: Range<usize>) -> Planned {
        let nullable = args.iter().all(|arg| arg.ty.nullable);
        let logical = common_of(&args, &at)?;
        let mut args = as_one(args, &logical)?;
        let Some(last) = args.pop() else { return Err(QueryError::new(at, "there is nothing to choose from")) };
        let whens = args.into_iter().map(|arg| {
            let not_null: Arc<dyn PhysicalExpr> = Arc::new(IsNotNullExpr::new(Arc::clone(&arg.expr)));
            let ty = Type::new(LogicalType::Boolean, false);
            (Term::over(not_null, ty, arg.at.clone(), &[&arg]), arg)
        });
        Ok(choice(whens.collect(), Some(last), at)?.with_nullable(nullable))
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
        let mut args = as_one(args, &logical)?.into_iter();
        let Some(mut best) = args.next() else { return Err(QueryError::new(at, "there is nothing to choose from")) };
        let op = if greatest { BinaryOperator::GtEq } else { BinaryOperator::LtEq };
        for next in args {
            let better = self.compare(best.clone(), next.clone(), &op, at.clone())?;
            // A null on either side makes the comparison null, and then neither branch is taken.
            let not: Arc<dyn PhysicalExpr> =
                Arc::new(datafusion_physical_expr::expressions::NotExpr::new(Arc::clone(&better.expr)));
            let worse = Term::over(not, better.ty.clone(), at.clone(), &[&better]);
            best = choice(vec![(better, best), (worse, next)], None, at.clone())?;
        }
        Ok(best.with_nullable(nullable))
    }
}

/// Any type that holds the values of all; NULLs take it.
fn common_of(terms: &[Term], at: &Range<usize>) -> Result<LogicalType, QueryError> {
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
                let both = common(&so_far, &logical).ok_or_else(|| {
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
    let logical = common_of(&results, &at)?;
    let mut results = as_one(results, &logical)?;
    let otherwise = if otherwise.is_some() { results.pop() } else { None };
    let of: Vec<Term> =
        whens.iter().map(|(condition, _)| condition.clone()).chain(results.clone()).chain(otherwise.clone()).collect();
    let pairs = whens.iter().zip(results).map(|((condition, _), result)| (Arc::clone(&condition.expr), result.expr));
    let expr = CaseExpr::try_new(None, pairs.collect(), otherwise.map(|term| term.expr));
    let expr = expr.map_err(|error| QueryError::new(at.clone(), error.to_string()))?;
    Ok(Term::over(Arc::new(expr), Type::new(logical, nullable), at, &of.iter().collect::<Vec<_>>()))
}
