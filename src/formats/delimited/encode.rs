//! Rows to bodies.

use arrow_array::{Array, ArrayRef, RecordBatch};

use super::{
    Settings,
    plan::{Plan, Unfit},
};
use crate::{
    formats::{self, scalars::Scalars},
    model::{LogicalType, RowReject, Schema},
};

/// Writes a row as a line, its values joined by the first of the delimiters; with a single column of
/// BYTES, its value as it is.
///
/// Null is the empty text. Nothing is quoted or escaped, so a value that holds a delimiter does not read back as it was.
/// Values are written as they are read: TIME in milliseconds. A row is refused when the charset lacks a character, when
/// a time is outside the calendar, and when the one BYTES is null.
#[derive(Debug)]
pub struct Encoder {
    columns: Vec<(String, LogicalType)>,
    is_bytes: bool,
    settings: Settings,
    delimiter: String,
    /// A line in the making.
    line: Vec<u8>,
}

impl Encoder {
    /// An encoder for the physical columns of a schema.
    pub fn new(schema: &Schema, settings: Settings) -> Result<Self, Unfit> {
        let is_bytes = matches!(Plan::new(schema)?, Plan::Bytes(_));
        let physical = schema.columns.iter().filter(|column| column.metadata.is_none());
        let columns = physical.map(|column| (column.name.clone(), column.ty.logical.clone())).collect();
        let delimiter = settings.fields.first().to_string();
        Ok(Self { columns, is_bytes, settings, delimiter, line: Vec::new() })
    }

    /// The batch's columns as what they are written as.
    fn open<'a>(&self, rows: &'a RecordBatch) -> Result<Vec<(&'a ArrayRef, Scalars<'a>)>, String> {
        if rows.num_columns() != self.columns.len() {
            return Err(format!("{} columns where the schema has {}", rows.num_columns(), self.columns.len()));
        }
        let open = |((name, logical), array): (&(String, LogicalType), &'a ArrayRef)| {
            let wrong = || format!("column {name}: {} where {} is expected", array.data_type(), logical.to_arrow());
            Ok((array, Scalars::new(logical, array).ok_or_else(wrong)?))
        };
        self.columns.iter().zip(rows.columns()).map(open).collect()
    }

    /// Writes one row. On failure, part of it may be left in `out`.
    fn row(
        &self,
        columns: &[(&ArrayRef, Scalars<'_>)],
        row: usize,
        line: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if self.is_bytes {
            return match columns {
                [(array, Scalars::Bytes(bytes))] if !array.is_null(row) => {
                    out.extend_from_slice(bytes.value(row));
                    Ok(())
                }
                _ => Err("null is no body".into()),
            };
        }
        line.clear();
        for (index, (array, scalars)) in columns.iter().enumerate() {
            if index > 0 {
                line.extend_from_slice(self.delimiter.as_bytes());
            }
            if !array.is_null(row) {
                let name = self.columns.get(index).map_or("", |(name, _)| name);
                write_field(scalars, row, line).map_err(|why| format!("column {name}: {why}"))?;
            }
        }
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        self.settings.encoding.0.encode(text, out).map_err(|missing| format!("the charset lacks {missing:?}"))
    }
}

fn write_field(scalars: &Scalars<'_>, row: usize, line: &mut Vec<u8>) -> Result<(), String> {
    match scalars {
        Scalars::Time(millis) => {
            line.extend_from_slice(itoa::Buffer::new().format(millis[row]).as_bytes());
            Ok(())
        }
        other => other.write_text(row, true, line),
    }
}

impl formats::Encoder for Encoder {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let columns = match self.open(rows) {
            Ok(columns) => columns,
            Err(reason) => {
                return (0..rows.num_rows()).map(|row| RowReject { row, reason: reason.clone() }).collect();
            }
        };
        let mut line = std::mem::take(&mut self.line);
        let mut rejects = Vec::new();
        for row in 0..rows.num_rows() {
            let start = out.len();
            match self.row(&columns, row, &mut line, out) {
                Ok(()) => written(row, out),
                Err(reason) => {
                    out.truncate(start);
                    rejects.push(RowReject { row, reason });
                }
            }
        }
        self.line = line;
        rejects
    }

    fn line_end(&self) -> &[u8] {
        b"\n"
    }

    fn extension(&self) -> &'static str {
        "txt"
    }
}
