//! Casts as Flink makes them: what a text may look like, what is cut, what wraps and what fails. Flink's own rules are
//! in its `CastRule`s; the cases of `tests/fixtures/flink-cases/sql.json` hold them here.

mod number;
mod text;
mod time;

use std::{borrow::Cow, ops::Range, sync::Arc};

pub(super) use number::{divided, rescaled, rescaled_wide};
pub(super) use time::{MILLIS_PER_DAY, date, date_time, days, parse_date, parse_time, read_timestamp, timestamp};

use super::{
    QueryError,
    call::{Kernel, Out, Row},
    lower::Term,
    types::{Family, Kind, Type, family},
};
use crate::model::LogicalType;

/// A reason why a text is no value of a type. Texts may be long, so only their beginning is shown.
pub(super) fn no_value(text: &str, of: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("'{}...' is no {of}", text.get(..end).unwrap_or_default()),
        None => format!("'{text}' is no {of}"),
    }
}

/// `CAST(term AS to)`, or `TRY_CAST`, whose failures are null.
pub(super) fn explicit(term: Term, to: &LogicalType, attempt: bool, at: Range<usize>) -> Result<Term, QueryError> {
    let from = match &term.ty.kind {
        Kind::Null => return Ok(Term { at, ..term.typed_null(to.clone()) }),
        Kind::Of(from) => from.clone(),
        kind => return Err(QueryError::new(at, format!("{kind} cannot be cast to {to}"))),
    };
    if from == *to {
        let nullable = term.ty.nullable || attempt;
        return Ok(Term { at, ..term }.with_nullable(nullable));
    }
    let Some(cast) = kernel(&from, to) else {
        let error = QueryError::new(at, format!("{from} cannot be cast to {to}"));
        return Err(match (family(&from), family(to)) {
            (Family::Number, Family::Timestamp) => {
                error.help("write TO_TIMESTAMP_LTZ(number, 0) for seconds, 3 for milliseconds")
            }
            (Family::Timestamp, Family::Number) => error.help("write UNIX_TIMESTAMP(CAST(timestamp AS STRING))"),
            _ => error,
        });
    };
    let nullable = term.ty.nullable || attempt;
    let (kernel, fails) = match cast {
        Cast::Sure(kernel) => (kernel, false),
        Cast::Unsure(kernel) if attempt => (tried(kernel), false),
        Cast::Unsure(kernel) => (kernel, true),
        Cast::Same => {
            return Ok(Term { ty: Type::new(to.clone(), nullable), at, ..term });
        }
    };
    let name: Cow<'static, str> = format!("{}CAST_{to}", if attempt { "TRY_" } else { "" }).into();
    let made = Term::strict(name, vec![term], Type::new(to.clone(), nullable), at, kernel);
    Ok(if fails { made.may_fail() } else { made })
}

/// The same value as one of a type that holds it, as the common type of several does.
pub(super) fn implicit(term: Term, to: &LogicalType) -> Result<Term, QueryError> {
    let (at, was) = (term.at.clone(), term.logical().cloned());
    let same_text = was.as_ref().is_some_and(|was| family(was) == Family::Text && family(to) == Family::Text);
    if same_text {
        // Lengths are not looked at: the common one is the longest.
        return Ok(Term { ty: Type::new(to.clone(), term.ty.nullable), ..term });
    }
    explicit(term, to, false, at)
}

/// How a value becomes one of another type.
pub(super) enum Cast {
    /// It is held in the same way.
    Same,
    /// It always works, though a number that is too large for a DECIMAL becomes null.
    Sure(Kernel),
    /// There are values for which it fails.
    Unsure(Kernel),
}

/// Failures become null.
fn tried(kernel: Kernel) -> Kernel {
    fn quiet<T>(out: Out<T>) -> Out<T> {
        Ok(out.unwrap_or(None))
    }
    match kernel {
        Kernel::Bool(run) => Kernel::Bool(Arc::new(move |row| quiet(run(row)))),
        Kernel::Int(run) => Kernel::Int(Arc::new(move |row| quiet(run(row)))),
        Kernel::Long(run) => Kernel::Long(Arc::new(move |row| quiet(run(row)))),
        Kernel::Double(run) => Kernel::Double(Arc::new(move |row| quiet(run(row)))),
        Kernel::Decimal(run) => Kernel::Decimal(Arc::new(move |row| quiet(run(row)))),
        other => other,
    }
}

fn kernel(from: &LogicalType, to: &LogicalType) -> Option<Cast> {
    use Family as F;
    Some(match (family(from), family(to)) {
        (F::Nested, _) | (_, F::Nested) => return None,
        (F::Text, F::Text) => text::fitted(to)?,
        (F::Text, F::Bytes) => text::to_bytes(to),
        (F::Bytes, F::Text) => text::from_bytes(to),
        (F::Bytes, F::Bytes) => text::bytes_fitted(to),
        (F::Text, F::Boolean) => Cast::Unsure(Kernel::Bool(Arc::new(|row| text::parse_boolean(row.text(0)).map(Some)))),
        (F::Text, F::Number) => Cast::Unsure(text::to_number(to)),
        (F::Text, F::Date | F::Time | F::Timestamp) => Cast::Unsure(time::from_text(to)),
        (F::Boolean | F::Number | F::Date | F::Time | F::Timestamp, F::Text) => Cast::Sure(text::from_any(from, to)?),
        (F::Boolean, F::Number) => Cast::Sure(number::from_boolean(to)),
        (F::Number, F::Boolean) => Cast::Sure(number::to_boolean(from)),
        (F::Number, F::Number) => number::between(from, to),
        (F::Date | F::Time | F::Timestamp, F::Date | F::Time | F::Timestamp) => time::between(from, to)?,
        _ => return None,
    })
}

/// A kernel of texts.
fn texts(run: impl for<'a> Fn(&Row<'a>) -> Out<Cow<'a, str>> + Send + Sync + 'static) -> Kernel {
    Kernel::Text(Arc::new(run))
}
