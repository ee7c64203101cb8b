//! Builders of columns that can be cut back to a row: a body that fails half-way leaves nothing behind.

/// Builds one column.
#[derive(Debug)]
pub struct ColumnBuilder;

/// Builds the rows of a schema.
#[derive(Debug)]
pub struct RowsBuilder;
