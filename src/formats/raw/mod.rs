//! A body as the value of the one column, as Flink's `raw` format.

pub mod options;
#[cfg(test)]
mod tests;

use arrow_array::RecordBatch;

use super::{
    charset::{self, Charset},
    scalars::Scalars,
};
use crate::{
    definition::{At, Diagnostic, Endpoint, FormatTables, Options, unescape},
    formats::{self, Decoded},
    model::{Column, LogicalType, RowReject, RowsBuilder, Scalar, Schema, nearest},
};
pub use options::TABLE;
use options::{CHARSET, ENDIANNESS, LINE_DELIMITER};

/// The format's line in the table.
pub static TABLES: FormatTables =
    FormatTables { name: "raw", options: &TABLE, check_source: refused, check_sink: refused };

fn refused(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let Some(format) = &endpoint.format else { return Vec::new() };
    // Metadata is beside the body, also that of a message that is written.
    let of_format = |column: &&Column| column.metadata.is_none();
    let Err(unfit) = Plan::new(endpoint.schema.columns.iter().filter(of_format), &format.options) else {
        return Vec::new();
    };
    let part = match &unfit.part {
        Part::Schema => At::Schema,
        Part::Type(column) => At::Type(column),
        Part::Option(option) => At::Option(option),
    };
    vec![Diagnostic::error(unfit.reason).at(endpoint.at(part)).nearest(unfit.nearest)]
}

/// What a schema and options mean to the format, worked out once.
#[derive(Debug)]
struct Plan {
    column: String,
    logical: LogicalType,
    charset: Charset,
    little_endian: bool,
    line_delimiter: Option<String>,
}

/// Why the format cannot be what a definition says.
#[derive(Debug)]
struct Unfit {
    reason: String,
    part: Part,
    nearest: Option<&'static str>,
}

#[derive(Debug)]
enum Part {
    Schema,
    Type(String),
    Option(&'static crate::definition::OptionSpec),
}

impl Plan {
    fn new<'a>(columns: impl Iterator<Item = &'a Column>, options: &Options) -> Result<Self, Unfit> {
        let unfit = |part, reason: String| Unfit { reason, part, nearest: None };
        let columns: Vec<_> = columns.collect();
        let [column] = columns[..] else {
            let reason = format!("format raw has exactly one column, not {}", columns.len());
            return Err(unfit(Part::Schema, reason));
        };
        let logical = column.ty.logical.clone();
        let text = matches!(logical, LogicalType::Char(_) | LogicalType::VarChar(_));
        if !text && width(&logical).is_none() && !matches!(logical, LogicalType::Binary(_) | LogicalType::VarBinary(_))
        {
            let reason = format!("column {}: format raw has no {logical}", column.name);
            return Err(unfit(Part::Type(column.name.clone()), reason));
        }
        let name = options.opt_text(&CHARSET).unwrap_or("UTF-8");
        let Some(charset) = Charset::find(name) else {
            let reason = format!("there is no charset `{name}`");
            return Err(Unfit { reason, part: Part::Option(&CHARSET), nearest: nearest(name, charset::NAMES) });
        };
        let line_delimiter = match options.opt_text(&LINE_DELIMITER).map(|written| (written, unescape(written))) {
            Some(_) if !text => {
                let reason = format!("{} needs a column of text, not {logical}", LINE_DELIMITER.name);
                return Err(unfit(Part::Option(&LINE_DELIMITER), reason));
            }
            Some((written, None)) => {
                return Err(unfit(Part::Option(&LINE_DELIMITER), format!("`{written}` has a broken escape")));
            }
            Some((_, delimiter)) => delimiter,
            None => None,
        };
        let little_endian = options.opt_text(&ENDIANNESS) == Some("little-endian");
        Ok(Self { column: column.name.clone(), logical, charset, little_endian, line_delimiter })
    }
}

/// How many bytes a value of a type is; `None` where it may be any number, and for types that raw does not have.
fn width(logical: &LogicalType) -> Option<usize> {
    match logical {
        LogicalType::Boolean | LogicalType::TinyInt => Some(1),
        LogicalType::SmallInt => Some(2),
        LogicalType::Int | LogicalType::Float => Some(4),
        LogicalType::BigInt | LogicalType::Double => Some(8),
        _ => None,
    }
}

/// Reads a body as one value, or as several texts with `raw.line-delimiter`. An empty body is an empty text; of any
/// other type but BYTES it has the wrong size, which is an error.
#[derive(Debug)]
pub struct Decoder {
    plan: Plan,
    /// Index of the column in its builder.
    column: usize,
}

impl Decoder {
    /// A decoder for the one physical column. The error says what raw cannot do with schema or options.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        let physical = || schema.columns.iter().filter(|column| column.metadata.is_none());
        let plan = Plan::new(physical(), options).map_err(|unfit| unfit.reason)?;
        let column = schema.columns.iter().position(|column| column.metadata.is_none()).unwrap_or(0);
        Ok(Self { plan, column })
    }

    fn number(&self, body: &[u8]) -> Option<Scalar<'static>> {
        let mut bytes = [0; 8];
        let width = width(&self.plan.logical).filter(|width| *width == body.len())?;
        // The lowest byte first.
        for (to, from) in bytes.iter_mut().zip(0..width) {
            *to = *body.get(if self.plan.little_endian { from } else { width - 1 - from })?;
        }
        let value = u64::from_le_bytes(bytes);
        // The casts take the low bytes, which are all there are.
        Some(match self.plan.logical {
            LogicalType::Boolean => Scalar::Boolean(value != 0),
            LogicalType::TinyInt => Scalar::Int8(value as i8),
            LogicalType::SmallInt => Scalar::Int16(value as i16),
            LogicalType::Int => Scalar::Int32(value as i32),
            LogicalType::BigInt => Scalar::Int64(value as i64),
            LogicalType::Float => Scalar::Float32(f32::from_bits(value as u32)),
            LogicalType::Double => Scalar::Float64(f64::from_bits(value)),
            _ => return None,
        })
    }

    fn append(&self, body: &[u8], rows: &mut RowsBuilder) -> Result<u32, String> {
        let Some(column) = rows.column_mut(self.column) else { return Ok(0) };
        let mut append = |scalar| column.append(scalar).map_err(|error| error.to_string());
        match &self.plan.logical {
            LogicalType::Binary(_) | LogicalType::VarBinary(_) => append(Scalar::Bytes(body))?,
            LogicalType::Char(_) | LogicalType::VarChar(_) => {
                let text = self.plan.charset.decode(body);
                let Some(delimiter) = &self.plan.line_delimiter else {
                    return append(Scalar::Text(&text)).map(|()| 1);
                };
                let text = text.strip_suffix(delimiter.as_str()).unwrap_or(&text);
                let mut count = 0;
                for line in text.split(delimiter.as_str()) {
                    append(Scalar::Text(line))?;
                    count += 1;
                }
                return Ok(count);
            }
            number => append(self.number(body).ok_or_else(|| {
                let (found, expected) = (body.len(), width(number).unwrap_or(0));
                format!("expected {number} as {expected} bytes, found {found}")
            })?)?,
        }
        Ok(1)
    }
}

impl formats::Decoder for Decoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let before = rows.columns().get(self.column).map_or(0, |column| column.len());
        match self.append(body, rows) {
            Ok(rows) => Ok(Decoded { rows, ..Decoded::default() }),
            Err(why) => {
                rows.truncate(before);
                Err(format!("column {}: {why}", self.plan.column))
            }
        }
    }
}

/// Writes the value of the one column and a line end, as Flink's filesystem sink does whatever the type is.
///
/// A row is refused when it is null, which Flink fails at, when the charset lacks a character, for which Flink writes
/// `?`, and when the value holds `raw.line-delimiter`.
#[derive(Debug)]
pub struct Encoder {
    plan: Plan,
    line_end: Vec<u8>,
}

impl Encoder {
    /// An encoder for the only column of the schema. The error says what raw cannot do with schema or options.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        let plan = Plan::new(schema.columns.iter(), options).map_err(|unfit| unfit.reason)?;
        // Flink writes the line feed itself, outside the charset, and a delimiter in it.
        let mut line_end = Vec::new();
        match &plan.line_delimiter {
            None => line_end.push(b'\n'),
            Some(delimiter) => plan
                .charset
                .encode(delimiter, &mut line_end)
                .map_err(|missing| format!("{} holds {missing:?}, which the charset lacks", LINE_DELIMITER.name))?,
        }
        Ok(Self { plan, line_end })
    }

    fn write(&self, values: &Scalars<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        match values {
            Scalars::Text(texts) => {
                let text = texts.value(row);
                if self.plan.line_delimiter.as_ref().is_some_and(|delimiter| text.contains(delimiter.as_str())) {
                    return Err(format!("it holds {}", LINE_DELIMITER.name));
                }
                let lacks = |missing| format!("the charset ({}) lacks {missing:?}", CHARSET.name);
                self.plan.charset.encode(text, out).map_err(lacks)?;
            }
            Scalars::Bytes(bytes) => out.extend_from_slice(bytes.value(row)),
            Scalars::Boolean(values) => out.push(u8::from(values.value(row))),
            Scalars::Int8(values) => out.extend_from_slice(&values[row].to_be_bytes()),
            Scalars::Int16(values) => self.number(values[row].to_be_bytes(), out),
            Scalars::Int32(values) => self.number(values[row].to_be_bytes(), out),
            Scalars::Int64(values) => self.number(values[row].to_be_bytes(), out),
            Scalars::Float32(values) => self.number(values[row].to_be_bytes(), out),
            Scalars::Float64(values) => self.number(values[row].to_be_bytes(), out),
            Scalars::Decimal { .. } | Scalars::Date(_) | Scalars::Time(_) | Scalars::Timestamp { .. } => {
                return Err("a type that raw does not have".into());
            }
        }
        Ok(())
    }

    fn number<const N: usize>(&self, mut big_endian: [u8; N], out: &mut Vec<u8>) {
        if self.plan.little_endian {
            big_endian.reverse();
        }
        out.extend_from_slice(&big_endian);
    }
}

impl formats::Encoder for Encoder {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let array = rows.columns().first().filter(|_| rows.num_columns() == 1);
        let values = array.and_then(|array| Some((array, Scalars::new(&self.plan.logical, array)?)));
        let Some((array, values)) = values else {
            let reason = format!("column {}: a single column of {} is expected", self.plan.column, self.plan.logical);
            return (0..rows.num_rows()).map(|row| RowReject { row, reason: reason.clone() }).collect();
        };
        let mut rejects = Vec::new();
        for row in 0..rows.num_rows() {
            let start = out.len();
            let encoded = match array.is_null(row) {
                true => Err("null has no raw form".to_owned()),
                false => self.write(&values, row, out),
            };
            match encoded {
                Ok(()) => written(row, out),
                Err(why) => {
                    out.truncate(start);
                    rejects.push(RowReject { row, reason: format!("column {}: {why}", self.plan.column) });
                }
            }
        }
        rejects
    }

    fn line_end(&self) -> &[u8] {
        &self.line_end
    }

    fn extension(&self) -> &'static str {
        "raw"
    }
}
