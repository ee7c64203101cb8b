//! The SQL of a pipeline: one `SELECT ... FROM source [WHERE ...]` that runs over each batch of rows, with Flink's
//! meaning. A query is planned once, against the declared columns of the source.
//!
//! sqlparser reads the text, [`frame`] refuses what rows alone cannot answer, [`lower`] gives every expression its
//! type by Flink's rules and makes a physical expression of DataFusion of it. DataFusion's own planner and functions
//! are not used: its types of results, casts, arithmetic and texts are those of Postgres, not of Flink.

#[cfg(not(feature = "sql"))]
mod absent;
#[cfg(feature = "sql")]
mod call;
#[cfg(feature = "sql")]
mod cast;
#[cfg(feature = "sql")]
mod clock;
#[cfg(feature = "sql")]
pub mod dialect;
#[cfg(feature = "sql")]
#[cfg(test)]
mod error_tests;
#[cfg(feature = "sql")]
mod first_of;
#[cfg(feature = "sql")]
mod frame;
#[cfg(feature = "sql")]
mod functions;
#[cfg(feature = "sql")]
mod logic;
#[cfg(feature = "sql")]
mod lower;
#[cfg(feature = "sql")]
mod place;
#[cfg(feature = "sql")]
mod plan;
#[cfg(feature = "sql")]
mod syntax;
#[cfg(feature = "sql")]
#[cfg(test)]
mod tests;
#[cfg(feature = "sql")]
mod types;
#[cfg(feature = "sql")]
#[cfg(test)]
mod value_tests;

use std::ops::Range;

use arrow_array::RecordBatch;

use crate::model::{Fault, RowReject, Schema};

#[cfg(not(feature = "sql"))]
use absent::Plan;
#[cfg(feature = "sql")]
use plan::Plan;

/// A planned query.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    plan: Plan,
}

/// Why a query cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// What is wrong, naming the construct, column or function.
    pub message: String,
    /// Where, in bytes of the query's text.
    pub at: Range<usize>,
    /// What could stand there.
    pub expected: Option<String>,
    /// The nearest valid name, if one is near.
    pub nearest: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
}

/// What a query makes of a batch.
#[derive(Debug)]
pub struct Selected {
    /// The rows of the output, in the order of the input.
    pub rows: RecordBatch,
    /// Of each of them the row of the input that it was made of.
    pub from: Vec<usize>,
    /// Rows of the input that failed, each alone; the numbers are those of the input.
    pub rejects: Vec<RowReject>,
}

impl QueryError {
    pub(crate) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), at, expected: None, nearest: None, help: None }
    }

    #[cfg(feature = "sql")]
    fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }

    #[cfg(feature = "sql")]
    fn nearest(self, nearest: Option<&str>) -> Self {
        Self { nearest: nearest.map(str::to_owned), ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// Where comments of a query stand that go to the ends of their lines.
pub(crate) fn line_comments(text: &str) -> Vec<Range<usize>> {
    Plan::line_comments(text)
}

impl Query {
    /// Plans a query against the columns of the source.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn plan(text: &str, source: &Schema) -> Result<Self, Vec<QueryError>> {
        Ok(Self { text: text.to_owned(), plan: Plan::new(text, source)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns of the output, all of them physical.
    pub fn schema(&self) -> &Schema {
        self.plan.schema()
    }

    /// Runs it over a batch, whose columns are those it was planned against.
    ///
    /// # Errors
    /// Only a bug; what is wrong with a row is answered with the others.
    pub fn run(&self, rows: &RecordBatch) -> Result<Selected, Fault> {
        self.plan.run(rows)
    }
}
