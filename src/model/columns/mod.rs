//! Builders of columns that can be cut back to a row: a body that fails half-way leaves nothing behind.
//!
//! Arrow's own builders only grow. These hold the same buffers, can be truncated at any time, and hand the
//! buffers over to Arrow without copying them.

mod column;
mod meta;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use column::{ColumnBuilder, ColumnError, Scalar};

use super::{Fault, FaultKind, MetaValue, Schema};

/// Builds the rows of a schema, one [`RecordBatch`] after another.
///
/// Physical columns are filled by a decoder, metadata columns after it; until then the former are ahead, and a
/// row counts as complete only when every column has it.
#[derive(Debug)]
pub struct RowsBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    declared: Vec<Declared>,
}

/// What must be known of a column besides its Arrow type.
#[derive(Debug)]
struct Declared {
    name: String,
    nullable: bool,
}

impl RowsBuilder {
    /// An empty builder with one column for each of the schema, metadata columns included.
    pub fn new(schema: &Schema) -> Self {
        let arrow = schema.to_arrow();
        let columns = arrow.fields().iter().map(|field| ColumnBuilder::new(field.data_type())).collect();
        let declared = schema
            .columns
            .iter()
            .map(|column| Declared { name: column.name.clone(), nullable: column.ty.nullable })
            .collect();
        Self { schema: arrow, columns, declared }
    }

    /// The schema of the batches that come out.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Complete rows: those that every column has. 0 for a schema without columns.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(ColumnBuilder::len).min().unwrap_or(0)
    }

    /// The columns, in the order of the schema.
    pub fn columns(&self) -> &[ColumnBuilder] {
        &self.columns
    }

    /// The columns to fill, in the order of the schema; a slice, so that a decoder can hold several at once.
    pub fn columns_mut(&mut self) -> &mut [ColumnBuilder] {
        &mut self.columns
    }

    /// One column; `None` if there is no such.
    pub fn column_mut(&mut self, index: usize) -> Option<&mut ColumnBuilder> {
        self.columns.get_mut(index)
    }

    /// Cuts every column that is longer back to `rows` values, and takes away what a value that was never
    /// finished left in nested columns.
    pub fn truncate(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.truncate(rows);
        }
    }

    /// Appends one value to a metadata column, cast to the column's type: `Millis` to a timestamp in the column's
    /// unit, to a BIGINT, or as text; `Integer` to any integer it fits, or as text; `Text` to a STRING; `Map` to a
    /// `MAP<STRING, STRING>`.
    ///
    /// The error names the column and says why the value does not fit it; then nothing has been appended.
    pub fn append_meta(&mut self, column: usize, value: &MetaValue) -> Result<(), String> {
        let (Some(builder), Some(declared)) = (self.columns.get_mut(column), self.declared.get(column)) else {
            return Err(format!("there is no column {column}"));
        };
        if *value == MetaValue::Null && !declared.nullable {
            return Err(format!("column {}: null where the schema says NOT NULL", declared.name));
        }
        meta::append(builder, value).map_err(|why| format!("column {}: {why}", declared.name))
    }

    /// Hands the rows over as a batch and begins anew. Buffers are moved, not copied.
    ///
    /// Fails, with nothing but a bug as its cause, if the columns have not the same length; the rows are gone then.
    pub fn finish(&mut self) -> Result<RecordBatch, Fault> {
        let rows = self.rows();
        let ahead = self.columns.iter().zip(&self.declared).find(|(column, _)| column.len() != rows);
        let uneven = ahead.map(|(column, declared)| {
            format!("column {} has {} rows where others have {rows}", declared.name, column.len())
        });
        let arrays = self.columns.iter_mut().map(ColumnBuilder::finish).collect::<Result<Vec<_>, _>>();
        if let Some(uneven) = uneven {
            return Err(Fault::restart(FaultKind::Bug, uneven));
        }
        arrays
            .and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays))
            .map_err(|error| Fault::restart(FaultKind::Bug, "decoded columns do not make a batch").because(error))
    }
}

#[cfg(test)]
mod tests;
