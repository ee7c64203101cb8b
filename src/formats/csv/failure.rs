//! Why a row was refused, in words for the operator.

use super::plan::Node;
use crate::{formats::reason::excerpt, model::ColumnError};

/// Why a row was refused. Put into words only when it is shown: under `csv.ignore-parse-errors` most never are.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    pub(super) cause: Cause<'a>,
    column: &'a str,
    /// Inside the column.
    step: Option<Step<'a>>,
}

#[derive(Debug)]
pub(super) enum Cause<'a> {
    /// A value that is not of the type.
    Mismatch {
        node: &'a Node,
        found: &'a str,
    },
    Null,
    /// Too many or too few fields, in the row or in a ROW.
    Length {
        expected: usize,
        found: usize,
    },
    Column(ColumnError),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Index(usize),
    Field(&'a str),
}

impl<'a> Failure<'a> {
    pub(super) fn new(cause: Cause<'a>) -> Self {
        Self { cause, column: "", step: None }
    }

    pub(super) fn in_column(self, column: &'a str) -> Self {
        Self { column, ..self }
    }

    pub(super) fn at(self, step: Step<'a>) -> Self {
        Self { step: Some(step), ..self }
    }

    /// Whether ignoring it leaves a readable row: not so when there is no room for one.
    pub(super) fn can_be_ignored(&self) -> bool {
        !matches!(self.cause, Cause::Column(_))
    }

    pub(super) fn reason(&self) -> String {
        let what = match &self.cause {
            Cause::Mismatch { node, found } => format!("expected {}, found {:?}", node.expected, excerpt(found)),
            Cause::Null => "null where the schema says NOT NULL".into(),
            Cause::Length { expected, found } => format!("{found} fields where {expected} are expected"),
            Cause::Column(error) => error.to_string(),
        };
        match (self.column, self.step) {
            ("", _) => what,
            (column, None) => format!("column {column}: {what}"),
            (column, Some(Step::Index(index))) => format!("column {column}[{index}]: {what}"),
            (column, Some(Step::Field(field))) => format!("column {column}.{field}: {what}"),
        }
    }
}

impl From<ColumnError> for Failure<'_> {
    fn from(error: ColumnError) -> Self {
        Self::new(Cause::Column(error))
    }
}
