//! Gives every expression its type by Flink's rules, and makes a physical expression of it.

pub(super) mod access;
pub(super) mod compare;
mod conditional;
pub(super) mod function;
pub(super) mod literal;
pub(super) mod numeric;
mod term;
pub(super) mod time;

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use datafusion_physical_expr::{
    PhysicalExpr,
    expressions::{IsNotNullExpr, IsNullExpr, NotExpr},
};
use sqlparser::ast::{BinaryOperator, CastKind, Expr, Ident, Spanned, UnaryOperator};

use super::{
    QueryError, cast,
    frame::SOURCE,
    logic::Logic,
    place::Places,
    types::{Kind, Type},
};
use crate::model::{ColumnType, LogicalType, Schema};

pub(super) use term::Term;

/// How deep an expression may be. Chains of AND, OR and other operators that are written one after another are as
/// deep as they are long, but for AND and OR, which are taken as a whole.
const MOST_DEPTH: usize = 150;

/// Plans expressions over the columns of a source.
pub(super) struct Lower<'a> {
    places: &'a Places<'a>,
    source: &'a Schema,
    alias: Option<&'a str>,
    depth: Cell<usize>,
    /// What is wrong beside the errors that are answered.
    more: RefCell<Vec<QueryError>>,
}

/// An expression, or why there is none.
pub(super) type Planned = Result<Term, QueryError>;

impl<'a> Lower<'a> {
    pub(super) const fn new(places: &'a Places<'a>, source: &'a Schema, alias: Option<&'a str>) -> Self {
        Self { places, source, alias, depth: Cell::new(0), more: RefCell::new(Vec::new()) }
    }

    /// What was found wrong beside the errors that were answered.
    pub(super) fn more(self) -> Vec<QueryError> {
        self.more.into_inner()
    }

    /// Both, or the first error; the second is told beside it.
    fn both<A, B>(&self, a: Result<A, QueryError>, b: Result<B, QueryError>) -> Result<(A, B), QueryError> {
        match (a, b) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (Err(first), Err(second)) => {
                self.more.borrow_mut().push(second);
                Err(first)
            }
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        }
    }

    fn two(&self, a: &Expr, b: &Expr) -> Result<(Term, Term), QueryError> {
        self.both(self.expression(a), self.expression(b))
    }

    /// All of them, or the first error; the others are told beside it.
    fn all(&self, all: impl Iterator<Item = Planned>) -> Result<Vec<Term>, QueryError> {
        let mut terms = Ok(Vec::new());
        for one in all {
            terms = self.both(terms, one).map(|(mut terms, term)| {
                terms.push(term);
                terms
            });
        }
        terms
    }

    fn each<'e>(&self, all: impl IntoIterator<Item = &'e Expr>) -> Result<Vec<Term>, QueryError> {
        self.all(all.into_iter().map(|one| self.expression(one)))
    }

    /// What the source is called here.
    fn table(&self) -> &str {
        self.alias.unwrap_or(SOURCE)
    }

    fn at(&self, node: &impl Spanned) -> std::ops::Range<usize> {
        self.places.range(node.span())
    }

    fn refuse<T>(&self, node: &impl Spanned, message: impl Into<String>) -> Result<T, QueryError> {
        Err(QueryError::new(self.at(node), message))
    }

    /// A column of the output: of a type that a column can have.
    pub(super) fn output(&self, expression: &Expr) -> Planned {
        let term = self.expression(expression)?;
        match term.ty.kind {
            Kind::Of(_) => Ok(term),
            Kind::Null => Err(term.error("NULL has no type").expected("CAST(NULL AS type)")),
            Kind::Months | Kind::Millis => {
                let error = term.error(format!("a column cannot be {}", term.ty.kind));
                Err(error.help("an interval can be added to a time; TIMESTAMPDIFF makes a number of a difference"))
            }
        }
    }

    /// The name a column gets without AS.
    pub(super) fn name(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Identifier(ident) => Some(ident.value.clone()),
            Expr::CompoundIdentifier(idents) => idents.last().map(|ident| ident.value.clone()),
            Expr::Nested(inner) => self.name(inner),
            _ => None,
        }
    }

    /// Any expression.
    pub(super) fn expression(&self, expression: &Expr) -> Planned {
        let depth = self.depth.get();
        if depth >= MOST_DEPTH {
            return self.refuse(expression, format!("the expression is more than {MOST_DEPTH} operators deep"));
        }
        self.depth.set(depth + 1);
        let planned = self.any(expression);
        self.depth.set(depth);
        let term = planned?;
        if term.size > term::MOST_SIZE {
            let message = format!("the query is too large: this consists of more than {} expressions", term::MOST_SIZE);
            return self.refuse(expression, message);
        }
        Ok(term)
    }

    fn any(&self, expression: &Expr) -> Planned {
        match expression {
            Expr::Nested(inner) => self.expression(inner),
            Expr::Identifier(ident) => self.identifier(ident),
            Expr::CompoundIdentifier(idents) => self.compound(expression, idents),
            Expr::CompoundFieldAccess { root, access_chain } => self.access(expression, root, access_chain),
            Expr::Value(value) => self.value(value),
            Expr::TypedString(text) => self.typed_text(text),
            Expr::UnaryOp { op, expr } => self.unary(expression, *op, expr),
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => self.logic(expression),
            Expr::BinaryOp { left, op, right } => self.binary(expression, left, op, right),
            Expr::IsNull(inner) => self.is_null(expression, inner, true),
            Expr::IsNotNull(inner) => self.is_null(expression, inner, false),
            Expr::IsTrue(inner) => self.is(expression, inner, Some(true), false),
            Expr::IsNotTrue(inner) => self.is(expression, inner, Some(true), true),
            Expr::IsFalse(inner) => self.is(expression, inner, Some(false), false),
            Expr::IsNotFalse(inner) => self.is(expression, inner, Some(false), true),
            Expr::IsUnknown(inner) => self.is(expression, inner, None, false),
            Expr::IsNotUnknown(inner) => self.is(expression, inner, None, true),
            Expr::IsDistinctFrom(left, right) => self.distinct(expression, left, right, true),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(expression, left, right, false),
            Expr::InList { expr, list, negated } => self.in_list(expression, expr, list, *negated),
            Expr::Between { expr, negated, low, high } => self.between(expression, expr, low, high, *negated),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expression, expr, pattern, escape_char.as_ref(), *negated)
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar(expression, expr, pattern, escape_char.as_ref(), *negated)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(expression, operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Cast { kind, expr, data_type, array: false, format: None } => {
                self.cast(expression, kind, expr, data_type)
            }
            Expr::Function(function) => self.function(expression, function),
            Expr::Extract { field, expr, .. } => self.extract(expression, field, expr),
            Expr::Ceil { expr, field } => self.ceil_floor(expression, expr, field, true),
            Expr::Floor { expr, field } => self.ceil_floor(expression, expr, field, false),
            Expr::Position { expr, r#in } => self.call(expression, "POSITION", &[expr, r#in]),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let given = [Some(expr), substring_from.as_ref(), substring_for.as_ref()];
                let given: Vec<&Expr> = given.into_iter().flatten().map(|one| &**one).collect();
                self.call(expression, "SUBSTRING", &given)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                self.trim(expression, trim_where.as_ref(), trim_what.as_deref(), expr)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let given = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                let given: Vec<&Expr> = given.into_iter().flatten().map(|one| &**one).collect();
                self.call(expression, "OVERLAY", &given)
            }
            Expr::Interval(interval) => self.interval(interval),
            other => Err(self.unsupported(other)),
        }
    }

    fn unsupported(&self, expression: &Expr) -> QueryError {
        let word = match expression {
            Expr::RLike { regexp: true, .. } => self.places.words(&["REGEXP"]),
            Expr::RLike { .. } => self.places.words(&["RLIKE"]),
            _ => None,
        };
        let at = word.unwrap_or_else(|| self.at(expression));
        QueryError::new(at, format!("{} is not supported", construct(expression)))
    }

    fn unary(&self, expression: &Expr, op: UnaryOperator, inner: &Expr) -> Planned {
        match op {
            UnaryOperator::Not => {
                let term = self.condition(inner)?;
                let (ty, at) = (term.ty.clone(), self.at(expression));
                Ok(Term::over(Arc::new(NotExpr::new(Arc::clone(&term.expr))), ty, at, &[&term]))
            }
            UnaryOperator::Plus | UnaryOperator::Minus => self.sign(expression, op == UnaryOperator::Minus, inner),
            other => self.refuse(expression, format!("there is no operator {other} in Flink SQL")),
        }
    }

    fn binary(&self, expression: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> Planned {
        use BinaryOperator as Op;
        match op {
            Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo => {
                self.arithmetic(expression, left, op, right)
            }
            Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq => {
                let (a, b) = self.two(left, right)?;
                self.compare(a, b, op, self.at(expression))
            }
            Op::StringConcat => self.concatenate(expression, left, right),
            other => self.refuse(expression, format!("there is no operator {other} in Flink SQL")),
        }
    }

    /// An expression that is BOOLEAN.
    fn condition(&self, expression: &Expr) -> Planned {
        let term = self.expression(expression)?;
        match &term.ty.kind {
            Kind::Of(LogicalType::Boolean) => Ok(term),
            Kind::Null => Ok(term.typed_null(LogicalType::Boolean)),
            kind => Err(term.error(format!("a condition is {kind}")).expected("BOOLEAN")),
        }
    }

    /// A whole chain of ANDs or of ORs.
    fn logic(&self, expression: &Expr) -> Planned {
        let Expr::BinaryOp { op, .. } = expression else { return self.refuse(expression, "this is no condition") };
        let (mut parts, mut open) = (Vec::new(), vec![expression]);
        while let Some(next) = open.pop() {
            match next {
                Expr::BinaryOp { left, op: same, right } if same == op => open.extend([&**right, &**left]),
                other => parts.push(other),
            }
        }
        let conditions = self.all(parts.into_iter().map(|one| self.condition(one)))?;
        let nullable = conditions.iter().any(|one| one.ty.nullable);
        let parts = conditions.iter().map(|one| (Arc::clone(&one.expr), one.fails)).collect();
        let logic = Logic::expr(*op == BinaryOperator::And, parts);
        let of: Vec<&Term> = conditions.iter().collect();
        Ok(Term::over(logic, Type::new(LogicalType::Boolean, nullable), self.at(expression), &of))
    }

    fn is_null(&self, expression: &Expr, inner: &Expr, null: bool) -> Planned {
        let term = self.expression(inner)?;
        let arg = Arc::clone(&term.expr);
        let expr: Arc<dyn PhysicalExpr> =
            if null { Arc::new(IsNullExpr::new(arg)) } else { Arc::new(IsNotNullExpr::new(arg)) };
        Ok(Term::over(expr, Type::new(LogicalType::Boolean, false), self.at(expression), &[&term]))
    }

    fn cast(&self, expression: &Expr, kind: &CastKind, inner: &Expr, data_type: &sqlparser::ast::DataType) -> Planned {
        let attempt = match kind {
            CastKind::Cast => false,
            CastKind::TryCast => true,
            CastKind::DoubleColon => return self.refuse(expression, ":: is not of Flink SQL, write CAST(... AS ...)"),
            CastKind::SafeCast => return self.refuse(expression, "SAFE_CAST is not of Flink SQL, write TRY_CAST"),
        };
        let term = self.expression(inner)?;
        let at = self.at(expression);
        let text = data_type.to_string();
        let target = ColumnType::parse(&text).map_err(|error| {
            // Told already, and where it stands.
            let told = self.places.bad_types().first().cloned();
            told.unwrap_or_else(|| QueryError::new(at.clone(), format!("{text} is no type")).expected(error.expected))
        })?;
        cast::explicit(term, &target.logical, attempt, at)
    }

    fn identifier(&self, ident: &Ident) -> Planned {
        if let Some(term) = self.column(ident) {
            return Ok(term);
        }
        let at = self.places.range(ident.span);
        if ident.quote_style.is_none() {
            if ident.value.eq_ignore_ascii_case("UNKNOWN") {
                return Ok(Term::null(at).typed_null(LogicalType::Boolean));
            }
            if let Some(term) = self.bare_function(ident) {
                return Ok(term);
            }
        }
        Err(self.no_column(ident))
    }

    /// A column by its exact name.
    fn column(&self, ident: &Ident) -> Option<Term> {
        let index = self.source.columns.iter().position(|column| column.name == ident.value)?;
        Some(Term::column(index, self.source.columns.get(index)?, self.places.range(ident.span)))
    }

    fn no_column(&self, ident: &Ident) -> QueryError {
        let names = || self.source.columns.iter().map(|column| column.name.as_str());
        let error = QueryError::new(self.places.range(ident.span), format!("there is no column `{}`", ident.value));
        let error = error.nearest(crate::model::nearest(&ident.value, names()));
        let all: Vec<&str> = names().take(20).collect();
        let more = if self.source.columns.len() > all.len() { ", ..." } else { "" };
        error.expected(format!("a column of the source: {}{more}", all.join(", ")))
    }
}

/// The name of a construct that is not supported.
fn construct(expression: &Expr) -> String {
    match expression {
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => "a subquery".into(),
        Expr::Exists { .. } => "EXISTS".into(),
        Expr::ILike { .. } => "ILIKE".into(),
        Expr::RLike { .. } => "RLIKE, which in Flink is REGEXP(text, pattern),".into(),
        Expr::Like { .. } => "LIKE ANY".into(),
        Expr::AtTimeZone { .. } => "AT TIME ZONE".into(),
        Expr::Tuple(_) => "a row of values".into(),
        Expr::Array(_) => "ARRAY[...]".into(),
        Expr::Collate { .. } => "COLLATE".into(),
        Expr::Lambda(_) => "a lambda".into(),
        Expr::Trim { .. } => "this form of TRIM".into(),
        Expr::Convert { .. } => "CONVERT".into(),
        Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => "grouping".into(),
        _ => "this".into(),
    }
}
