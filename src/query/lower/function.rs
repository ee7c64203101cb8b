//! Calls of functions.

use std::{ops::Range, sync::Arc};

use datafusion_common::ScalarValue;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, TrimWhereField, Value, ValueWithSpan,
};

use super::{Lower, Planned, Term, literal::Unit, time};
use crate::{
    model::{LogicalType, nearest},
    query::{
        QueryError,
        call::Kernel,
        functions::{self, Given},
        types::{Family, Kind, Type},
    },
};

impl Lower<'_> {
    pub(super) fn function(&self, expression: &Expr, function: &Function) -> Planned {
        let at = self.at(expression);
        let name = match &function.name.0[..] {
            [one] => one.as_ident().map(|ident| ident.value.to_uppercase()).unwrap_or_default(),
            _ => return self.refuse(expression, format!("there is no function {}", function.name)),
        };
        if function.over.is_some() {
            return Err(QueryError::new(at, format!("{name} OVER is not supported")).help(NO_WINDOWS));
        }
        if let Some(what) = functions::beyond_rows(&name) {
            return Err(QueryError::new(at, format!("{name} is {what}, which is not supported")).help(NO_WINDOWS));
        }
        if function.filter.is_some() || !function.within_group.is_empty() || function.null_treatment.is_some() {
            return Err(QueryError::new(at, format!("{name} is no aggregate: only arguments may stand here")));
        }
        let given = self.arguments(function, &name, &at)?;
        if let ("TIMESTAMPADD" | "TIMESTAMPDIFF", [unit, first, second]) = (&*name, &given[..]) {
            let unit = self.unit(unit)?;
            let (first, second) = self.two(first, second)?;
            return match &*name {
                "TIMESTAMPADD" => time::add(unit, first, second, at),
                _ => time::difference(unit, first, second, at),
            };
        }
        let valid = functions::check_call(&name, given.len(), &at);
        // Whatever was meant, a unit of time is no column.
        let is_unit = |arg: &&Expr| matches!(arg, Expr::Identifier(name) if Unit::parse(&name.value).is_some());
        let units = usize::from(valid.is_err() && given.first().is_some_and(is_unit));
        let ((), args) = self.both(valid, self.each(given.into_iter().skip(units)))?;
        self.built(&name, args, at)
    }

    fn arguments<'e>(
        &self,
        function: &'e Function,
        name: &str,
        at: &Range<usize>,
    ) -> Result<Vec<&'e Expr>, QueryError> {
        let list = match &function.args {
            FunctionArguments::None => return Ok(Vec::new()),
            FunctionArguments::Subquery(_) => {
                return Err(QueryError::new(at.clone(), "a subquery is not supported"));
            }
            FunctionArguments::List(list) => list,
        };
        if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
            return Err(QueryError::new(at.clone(), format!("only arguments may stand within {name}(...)")));
        }
        let plain = |arg: &'e FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression),
            _ => Err(QueryError::new(at.clone(), format!("{name} takes expressions only"))),
        };
        list.args.iter().map(plain).collect()
    }

    fn unit(&self, expression: &Expr) -> Result<Unit, QueryError> {
        let name = match expression {
            Expr::Identifier(ident) => ident.value.clone(),
            other => other.to_string(),
        };
        Unit::parse(&name).ok_or_else(|| {
            let error = QueryError::new(self.at(expression), format!("{name} is no unit of time"));
            let units = ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"];
            error.nearest(nearest(&name, units)).expected(units.join(", "))
        })
    }

    /// A function that has a syntax of its own.
    pub(super) fn call(&self, expression: &Expr, name: &str, given: &[&Expr]) -> Planned {
        let args = self.each(given.iter().copied())?;
        self.built(name, args, self.at(expression))
    }

    /// A function by its name, in capitals.
    pub(super) fn built(&self, name: &str, args: Vec<Term>, at: Range<usize>) -> Planned {
        match (name, args.len()) {
            ("COALESCE", 1..) | ("IFNULL", 2) => return self.coalesce(args, at),
            ("GREATEST", 1..) => return self.extreme(args, true, at),
            ("LEAST", 1..) => return self.extreme(args, false, at),
            _ => {}
        }
        let three: Result<[Term; 3], Vec<Term>> = args.try_into();
        let args = match (name, three) {
            ("IF", Ok([condition, a, b])) => {
                if condition.family() != Some(Family::Boolean) {
                    return Err(condition.error(format!("a condition is {}", condition.ty.kind)).expected("BOOLEAN"));
                }
                return self.if_else(condition, a, b, at);
            }
            (_, Ok(three)) => Vec::from(three),
            (_, Err(args)) => args,
        };
        let two: Result<[Term; 2], Vec<Term>> = args.try_into();
        let args = match (name, two) {
            ("NULLIF", Ok([a, b])) => return self.null_if(a, b, at),
            (_, Ok(two)) => Vec::from(two),
            (_, Err(args)) => args,
        };
        functions::build(Given { name, args, at })
    }

    /// A function that is written without parentheses.
    pub(super) fn bare_function(&self, ident: &Ident) -> Option<Term> {
        let name = ident.value.to_uppercase();
        matches!(&*name, "PI" | "E")
            .then(|| self.built(&name, Vec::new(), self.places.range(ident.span)).ok())
            .flatten()
    }

    pub(super) fn trim(
        &self,
        expression: &Expr,
        place: Option<&TrimWhereField>,
        what: Option<&Expr>,
        text: &Expr,
    ) -> Planned {
        let name = match place {
            None | Some(TrimWhereField::Both) => "TRIM",
            Some(TrimWhereField::Leading) => "LTRIM",
            Some(TrimWhereField::Trailing) => "RTRIM",
        };
        let given: Vec<&Expr> = std::iter::once(text).chain(what).collect();
        self.call(expression, name, &given)
    }

    pub(super) fn concatenate(&self, expression: &Expr, left: &Expr, right: &Expr) -> Planned {
        self.call(expression, "||", &[left, right])
    }

    pub(super) fn like(
        &self,
        expression: &Expr,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
        negated: bool,
    ) -> Planned {
        let ((text, pattern), escape) = self.both(self.two(text, pattern), self.escape(escape))?;
        functions::like(text, pattern, escape, negated, self.at(expression))
    }

    pub(super) fn similar(
        &self,
        expression: &Expr,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
        negated: bool,
    ) -> Planned {
        let ((text, pattern), escape) = self.both(self.two(text, pattern), self.escape(escape))?;
        functions::similar(text, pattern, escape, negated, self.at(expression))
    }

    /// One character.
    fn escape(&self, escape: Option<&ValueWithSpan>) -> Result<Option<char>, QueryError> {
        let Some(value) = escape else { return Ok(None) };
        if let Value::SingleQuotedString(text) | Value::UnicodeStringLiteral(text) = &value.value {
            let mut characters = text.chars();
            // Flink's planner refuses a backslash, which escapes where nothing is said.
            if let (Some(one), None) = (characters.next(), characters.next())
                && one != '\\'
            {
                return Ok(Some(one));
            }
        }
        Err(QueryError::new(self.at(value), "this is no escape character")
            .expected("one character in quotes, and no backslash"))
    }
}

const NO_WINDOWS: &str = "a query sees the rows of a batch one by one, and keeps nothing between batches";

/// The time of the batch, as a type.
pub(in crate::query) fn now(name: &'static str, logical: LogicalType, at: Range<usize>, read: fn(i64) -> i64) -> Term {
    let kernel = match logical {
        LogicalType::Date | LogicalType::Time(_) => {
            Kernel::Int(Arc::new(move |_| Ok(i32::try_from(read(crate::query::clock::now())).ok())))
        }
        _ => Kernel::Long(Arc::new(move |_| Ok(Some(read(crate::query::clock::now()))))),
    };
    let mut term = Term::strict(name, Vec::new(), Type::new(logical, false), at, kernel);
    term.volatile = true;
    term
}

/// A constant number.
pub(in crate::query) fn double(value: f64, at: Range<usize>) -> Term {
    Term::constant(ScalarValue::Float64(Some(value)), Kind::Of(LogicalType::Double), at)
}
