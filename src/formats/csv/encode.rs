//! Rows to lines.

use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;

use super::{
    options::{self, ARRAY_ELEMENT_DELIMITER, LINE_DELIMITER, NULL_LITERAL, SCIENTIFIC_DECIMALS},
    plan,
    quoting::Quoting,
};
use crate::{
    definition::Options,
    formats::{
        self,
        scalars::{Scalars, cast},
    },
    model::{LogicalType, RowReject, Schema},
};

/// Writes rows as lines of CSV, columns in the order of the schema, without a header.
///
/// The batch's columns are matched by position and must have the schema's types. A row is refused when a date is
/// outside the calendar, when an element of an ARRAY or ROW holds the delimiter of elements, and when a value needs
/// quotes where there are none; Flink writes the latter two in a way that reads back as something else.
#[derive(Debug)]
pub struct Encoder {
    columns: Vec<(String, LogicalType)>,
    settings: Settings,
    /// A value in the making.
    value: Vec<u8>,
}

#[derive(Debug)]
struct Settings {
    quoting: Quoting,
    element_delimiter: char,
    null_literal: String,
    plain_decimals: bool,
    line_end: String,
}

impl Encoder {
    /// An encoder for all columns of the schema. The error says which column CSV cannot hold, or which options
    /// contradict each other.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        if let Some((contradiction, _)) = options::check(options) {
            return Err(contradiction);
        }
        if let Some(unfit) = plan::unfit(schema.columns.iter()) {
            return Err(unfit.to_string());
        }
        let quoting = Quoting::new(options);
        let null_literal = options.opt_text(&NULL_LITERAL).unwrap_or("").to_owned();
        if quoting.must(&null_literal) {
            return Err(format!(
                "{} holds a delimiter, quote or line end and could not be read back",
                NULL_LITERAL.name
            ));
        }
        let settings = Settings {
            quoting,
            element_delimiter: options.opt_character(&ARRAY_ELEMENT_DELIMITER).unwrap_or(';'),
            null_literal,
            plain_decimals: !options.opt_boolean(&SCIENTIFIC_DECIMALS).unwrap_or(true),
            line_end: options.opt_character(&LINE_DELIMITER).unwrap_or('\n').to_string(),
        };
        let columns = schema.columns.iter().map(|column| (column.name.clone(), column.ty.logical.clone())).collect();
        Ok(Self { columns, settings, value: Vec::new() })
    }

    /// The batch's columns as what they are written as.
    fn open<'a>(&'a self, rows: &'a RecordBatch) -> Result<Vec<ColumnWriter<'a>>, String> {
        if rows.num_columns() != self.columns.len() {
            return Err(format!("{} columns where the schema has {}", rows.num_columns(), self.columns.len()));
        }
        let pairs = self.columns.iter().zip(rows.columns());
        pairs
            .map(|((name, logical), array)| {
                let wrong = || format!("column {name}: {} where {} is expected", array.data_type(), logical.to_arrow());
                ColumnWriter::new(logical, array).ok_or_else(wrong)
            })
            .collect()
    }
}

impl formats::Encoder for Encoder {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let mut value = std::mem::take(&mut self.value);
        let columns = match self.open(rows) {
            Ok(columns) => columns,
            Err(reason) => {
                return (0..rows.num_rows()).map(|row| RowReject { row, reason: reason.clone() }).collect();
            }
        };
        let mut rejects = Vec::new();
        for row in 0..rows.num_rows() {
            let start = out.len();
            let encoded = columns.iter().enumerate().try_for_each(|(index, column)| {
                if index > 0 {
                    out.extend_from_slice(self.settings.quoting.delimiter());
                }
                write_field(column, row, &self.settings, &mut value, out).map_err(|why| {
                    let name = self.columns.get(index).map_or("", |(name, _)| name);
                    format!("column {name}: {why}")
                })
            });
            match encoded {
                Ok(()) => written(row, out),
                Err(reason) => {
                    out.truncate(start);
                    rejects.push(RowReject { row, reason });
                }
            }
        }
        drop(columns);
        self.value = value;
        rejects
    }

    fn line_end(&self) -> &[u8] {
        self.settings.line_end.as_bytes()
    }

    fn extension(&self) -> &'static str {
        "csv"
    }
}

struct ColumnWriter<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Scalars(Scalars<'a>),
    Array { offsets: &'a [i32], items: Box<ColumnWriter<'a>> },
    Row(Vec<ColumnWriter<'a>>),
}

impl<'a> ColumnWriter<'a> {
    /// `None` if the array is not of the type.
    fn new(logical: &LogicalType, array: &'a ArrayRef) -> Option<Self> {
        let values = match logical {
            LogicalType::Array(element) => {
                let list = cast::<ListArray>(array)?;
                let items = Box::new(Self::new(&element.logical, list.values())?);
                Values::Array { offsets: list.value_offsets(), items }
            }
            LogicalType::Row(fields) => {
                let row = cast::<StructArray>(array).filter(|row| row.num_columns() == fields.len())?;
                let pairs = fields.iter().zip(row.columns());
                Values::Row(pairs.map(|(field, array)| Self::new(&field.ty.logical, array)).collect::<Option<_>>()?)
            }
            scalar => Values::Scalars(Scalars::new(scalar, array)?),
        };
        Some(Self { nulls: array.nulls(), values })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }
}

/// Writes one field. `row` is below the length of every array: it counts rows of the batch, or comes from offsets
/// that Arrow has checked.
fn write_field(
    column: &ColumnWriter<'_>,
    row: usize,
    settings: &Settings,
    value: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if column.is_null(row) {
        out.extend_from_slice(settings.null_literal.as_bytes());
        return Ok(());
    }
    value.clear();
    match &column.values {
        // These are never quoted, whatever they hold.
        Values::Scalars(
            number @ (Scalars::Boolean(_)
            | Scalars::Int8(_)
            | Scalars::Int16(_)
            | Scalars::Int32(_)
            | Scalars::Int64(_)
            | Scalars::Float32(_)
            | Scalars::Float64(_)),
        ) => return number.write_text(row, settings.plain_decimals, out),
        Values::Scalars(Scalars::Text(texts)) => return settings.quoting.write(texts.value(row), out),
        Values::Scalars(scalars) => scalars.write_text(row, settings.plain_decimals, value)?,
        Values::Array { offsets, items } => {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            for (at, item) in range.enumerate() {
                write_part(at, items, item, settings, value)?;
            }
        }
        Values::Row(fields) => {
            for (at, field) in fields.iter().enumerate() {
                write_part(at, field, row, settings, value)?;
            }
        }
    }
    let text = std::str::from_utf8(value).map_err(|error| error.to_string())?;
    settings.quoting.write(text, out)
}

/// Writes an element of an ARRAY or a field of a ROW behind those before it.
fn write_part(
    at: usize,
    column: &ColumnWriter<'_>,
    row: usize,
    settings: &Settings,
    value: &mut Vec<u8>,
) -> Result<(), String> {
    let delimiter = settings.element_delimiter;
    if at > 0 {
        value.extend_from_slice(delimiter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    if column.is_null(row) {
        value.extend_from_slice(settings.null_literal.as_bytes());
        return Ok(());
    }
    let start = value.len();
    match &column.values {
        Values::Scalars(scalars) => scalars.write_text(row, settings.plain_decimals, value)?,
        Values::Array { .. } | Values::Row(_) => return Err("nested too deep for csv".into()),
    }
    let written = value.get(start..).and_then(|part| std::str::from_utf8(part).ok()).unwrap_or("");
    if written.contains(delimiter) {
        return Err(format!("a value in it holds {delimiter:?} ({})", ARRAY_ELEMENT_DELIMITER.name));
    }
    Ok(())
}
