//! What stands for a plan in a build without SQL.

use arrow_array::RecordBatch;

use super::{QueryError, Selected};
use crate::model::{Fault, Schema};

/// A plan that cannot be made.
#[derive(Debug, Clone)]
pub(super) enum Plan {}

impl Plan {
    pub(super) fn new(text: &str, _: &Schema) -> Result<Self, Vec<QueryError>> {
        let message = "this build has no SQL: it was built without the feature `sql`";
        let error = QueryError::new(0..text.len(), message);
        Err(vec![error.help("build it with `--features sql`, which the default features contain")])
    }

    pub(super) fn line_comments(_: &str) -> Vec<std::ops::Range<usize>> {
        Vec::new()
    }

    pub(super) fn schema(&self) -> &Schema {
        match *self {}
    }

    pub(super) fn run(&self, _: &RecordBatch) -> Result<Selected, Fault> {
        match *self {}
    }
}
