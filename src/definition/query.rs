//! The `query` of a definition.

use super::{
    check::Section,
    diagnostics::{Diagnostic, Report},
    located::{Scalar, Span, Value},
};
use crate::{
    model::Schema,
    query::{Query, QueryError},
};

/// The key that holds it.
pub(super) const QUERY: &str = "query";

const EXPECTED: &str = "`SELECT ... FROM source`, with or without a `WHERE`";

/// What is at the key.
#[derive(Debug, Default)]
pub(super) enum ReadQuery {
    /// Nothing: rows go to the sink as they are decoded.
    #[default]
    Absent,
    /// One that is planned.
    Planned(Query),
    /// One that is wrong, which has been reported, or that cannot be judged without the columns of the source.
    Unknown,
}

/// Reads the query of a definition whose source has these columns, if they are valid.
pub(super) fn read_query(top: Section<'_>, source: Option<&Schema>, report: &mut Report) -> ReadQuery {
    let Some(entry) = top.get(QUERY) else { return ReadQuery::Absent };
    let span = entry.value.span;
    let scalar = match &entry.value.value {
        Value::Broken => return ReadQuery::Unknown,
        Value::Scalar(scalar) if !scalar.secret => scalar,
        other => {
            let what = match other {
                Value::Scalar(_) => "a secret",
                other => other.describe(),
            };
            report.push(Diagnostic::error(format!("`{QUERY}` holds {what}")).at(span).expected(EXPECTED));
            return ReadQuery::Unknown;
        }
    };
    report.show(span);
    let Some(source) = source else { return ReadQuery::Unknown };
    match Query::plan(&scalar.text, source) {
        Ok(query) => ReadQuery::Planned(query),
        Err(errors) => {
            for error in errors {
                let at = place(scalar, span, &error, report);
                let QueryError { message, expected, nearest, help, .. } = error;
                let mut diagnostic = Diagnostic::error(message).at(at).nearest(nearest);
                if let Some(expected) = expected {
                    diagnostic = diagnostic.expected(expected);
                }
                if let Some(help) = help {
                    diagnostic = diagnostic.help(help);
                }
                report.push(diagnostic);
            }
            ReadQuery::Unknown
        }
    }
}

/// Where in the file the piece of the query stands that an error is about; the whole query where what was put in for a
/// variable, or folded lines, are in the way.
fn place(scalar: &Scalar, span: Span, error: &QueryError, report: &Report) -> Span {
    let start = error.at.start.min(scalar.text.len());
    let piece = scalar.text.get(start..error.at.end.max(start)).unwrap_or_default();
    let Some(before) = scalar.text.get(..start) else { return span };
    let (lines, line_start) = (before.matches('\n').count(), before.rfind('\n').map_or(0, |at| at + 1));
    let line = scalar.text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let written = report.written(span);
    // The text of a literal block (`|`) stands in the file line by line, each behind the same indentation.
    let mut offset = written.find('\n').map_or(0, |at| at + 1);
    for _ in 0..lines {
        offset += written.get(offset..).and_then(|rest| rest.find('\n')).map_or(written.len(), |at| at + 1);
    }
    let indented = written.get(offset..).and_then(|rest| rest.lines().next()).filter(|_| written.starts_with('|'));
    match indented.and_then(|indented| indented.find(line)).filter(|_| !line.is_empty() && !scalar.substituted) {
        Some(indentation) => {
            let in_line = before.get(line_start..).unwrap_or_default();
            let first = piece.lines().next().unwrap_or_default();
            let at = offset + indentation + in_line.len();
            Span {
                start: span.start + at,
                end: span.start + at + first.len(),
                line: span.line + 1 + u32::try_from(lines).unwrap_or(u32::MAX),
                column: u32::try_from(indentation + in_line.chars().count()).unwrap_or(u32::MAX).saturating_add(1),
            }
        }
        None => report.within(span, start, piece),
    }
}
