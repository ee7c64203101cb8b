//! Formats turn bodies into rows and rows into bytes. One file (or folder) per format.

use arrow_array::RecordBatch;

use crate::model::{RowReject, RowsBuilder};

/// Fills rows from bodies, one message at a time: a body that does not decode never harms its neighbours.
pub trait Decoder: Send {
    /// Appends the rows of one body to the physical columns. On `Err` (the reason, which names the column and
    /// never repeats a whole body) nothing has been appended.
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String>;
}

/// What became of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Rows appended.
    pub rows: u32,
    /// Fields set to null because an `ignore-parse-errors` option says so; counted.
    pub nulled_fields: u32,
    /// Whether an `ignore-parse-errors` option dropped the body, or a part of it, whole; counted.
    pub dropped: bool,
    /// Things after the first that Flink's meaning of an option leaves unread (such as further events); counted.
    pub unread: u32,
}

/// Writes rows as bytes.
pub trait Encoder: Send {
    /// Appends every row, each followed by a newline where the format has lines. Rows that the format refuses
    /// are left out whole and answered.
    fn encode(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Vec<RowReject>;

    /// The usual ending of a file's name, without the dot.
    fn extension(&self) -> &'static str;
}
