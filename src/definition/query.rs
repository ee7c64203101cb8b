//! The `query` of a definition.

use std::ops::Range;

use super::{
    check::Section,
    diagnostics::{Diagnostic, Report},
    located::{Scalar, Span, Value},
};
use crate::{
    model::Schema,
    query::{Query, QueryError, line_comments},
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
            let told = Diagnostic::error(format!("`{QUERY}` holds {what}")).at(span);
            report.push(match other {
                Value::Scalar(_) => told.help("a query is shown in logs and exports; secrets belong into options"),
                _ => told.expected(EXPECTED),
            });
            return ReadQuery::Unknown;
        }
    };
    report.show(span);
    if let Some(error) = swallowed(&scalar.text, report.written(span)) {
        let at = place(scalar, span, &error, report);
        report.push(Diagnostic::error(error.message).at(at).help(error.help.unwrap_or_default()));
        return ReadQuery::Unknown;
    }
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

/// A comment that goes to the end of its line, in lines that YAML folds into one: all that follows would be a part of it.
fn swallowed(text: &str, written: &str) -> Option<QueryError> {
    // Quotes, escapes and blanks may be written otherwise than they read, and of a variable only the name is written.
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let literal = |text: &str| plain(text.split("${").next().unwrap_or_default());
    let lines: Vec<&str> = written.lines().collect();
    let goes_on = |comment: &str, line: usize| {
        let begun = lines.get(line).copied().unwrap_or_default();
        let next = lines.iter().skip(line + 1).map(|next| literal(next)).find(|next| !next.is_empty());
        let behind = |(at, _)| comment.strip_prefix(&literal(begun.get(at..).unwrap_or_default()));
        next.is_some_and(|next| begun.match_indices("--").filter_map(behind).any(|rest| rest.contains(&next)))
    };
    let is_swallowed = |at: &Range<usize>| {
        let comment = plain(text.get(at.clone()).unwrap_or_default());
        (0..lines.len()).any(|line| goes_on(&comment, line))
    };
    let at = line_comments(text).into_iter().find(is_swallowed)?.start;
    let error = QueryError::new(at..at + "--".len(), "lines that follow are a part of this comment");
    Some(error.help("these lines are folded into one: write the query behind `|`, or the comment as /* ... */"))
}

/// Where in the file the piece of the query stands that an error is about. Where what was put in for a variable, or
/// folded lines, are in the way, the first place it can be seen at, else the whole query.
fn place(scalar: &Scalar, span: Span, error: &QueryError, report: &Report) -> Span {
    let text = scalar.text.as_str();
    let start = error.at.start.min(text.len());
    let piece = text.get(start..error.at.end.max(start)).unwrap_or_default();
    in_block(text, span, start, piece, report.written(span)).unwrap_or_else(|| report.within(span, start, piece))
}

/// In a literal block (`|`): there the lines of the text stand one below the other, each behind some indentation but the
/// first, at which the span begins. Empty lines before it are part of the text.
fn in_block(text: &str, span: Span, start: usize, piece: &str, written: &str) -> Option<Span> {
    let blank = text.len() - text.trim_start_matches('\n').len();
    let before = text.get(blank..start)?;
    let number = before.matches('\n').count();
    let in_line = before.rsplit('\n').next().unwrap_or_default();
    let mut at = 0;
    for (line, (shown, meant)) in written.split('\n').zip(text.get(blank..)?.split('\n')).enumerate() {
        let indentation = shown.strip_suffix('\r').unwrap_or(shown).strip_suffix(meant)?.len();
        if line == number {
            let at = at + indentation + in_line.len();
            let column = u32::try_from(indentation + in_line.chars().count()).ok()?.saturating_add(1);
            return Some(Span {
                start: span.start + at,
                end: span.start + at + piece.lines().next().unwrap_or_default().len(),
                line: span.line.saturating_add(u32::try_from(number).ok()?),
                column: if number == 0 { span.column + column - 1 } else { column },
            });
        }
        at += shown.len() + 1;
    }
    None
}
