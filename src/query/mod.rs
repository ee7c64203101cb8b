//! The SQL of a pipeline: one `SELECT ... FROM source [WHERE ...]` that runs over each batch of rows, with Flink's
//! meaning. A query is planned once, against the declared columns of the source.

#[cfg(feature = "sql")]
pub mod dialect;

use std::ops::Range;

use arrow_array::RecordBatch;

use crate::model::{Fault, RowReject, Schema};

/// A planned query.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    schema: Schema,
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

impl Query {
    /// Plans a query against the columns of the source.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn plan(text: &str, source: &Schema) -> Result<Self, Vec<QueryError>> {
        Ok(Self { text: text.to_owned(), schema: source.clone() })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns of the output, all of them physical.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Runs it over a batch, whose columns are those it was planned against.
    ///
    /// # Errors
    /// Only a bug; what is wrong with a row is answered with the others.
    pub fn run(&self, rows: &RecordBatch) -> Result<Selected, Fault> {
        let from = (0..rows.num_rows()).collect();
        Ok(Selected { rows: rows.clone(), from, rejects: Vec::new() })
    }
}
