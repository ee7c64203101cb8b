//! Rows to lines.

use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::NullBuffer;

use super::{
    base64, check_map_key, number,
    options::{DECIMAL_AS_PLAIN_NUMBER, IGNORE_NULL_FIELDS, MAP_NULL_KEY_LITERAL, MAP_NULL_KEY_MODE},
    scalars::{Scalars, cast},
    standard, text,
    time::{self, Standard},
};
use crate::{
    definition::Options,
    formats,
    model::RowReject,
    model::{LogicalType, Schema},
};

/// Writes rows as JSON objects, one a line, columns in the order of the schema.
///
/// The batch's columns are matched by position and must have the schema's types. A row is refused when a date is
/// outside the calendar or, with `json.map-null-key.mode` FAIL, when a map has a null key. The fraction of a TIME
/// is written, where Flink drops it, if there is one.
#[derive(Debug)]
pub struct Encoder {
    columns: Vec<(String, LogicalType)>,
    settings: Settings,
}

#[derive(Debug)]
struct Settings {
    standard: Standard,
    plain_decimals: bool,
    ignore_nulls: bool,
    null_key: NullKey,
}

/// `json.map-null-key.mode`
#[derive(Debug)]
enum NullKey {
    Fail,
    Drop,
    Literal(String),
}

impl Encoder {
    /// An encoder for all columns of the schema. The error says which column JSON cannot hold.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        for column in &schema.columns {
            check_type(&column.ty.logical).map_err(|why| format!("{}: {why}", column.name))?;
        }
        let null_key = match options.opt_text(&MAP_NULL_KEY_MODE) {
            Some("DROP") => NullKey::Drop,
            Some("LITERAL") => NullKey::Literal(options.opt_text(&MAP_NULL_KEY_LITERAL).unwrap_or("null").to_owned()),
            _ => NullKey::Fail,
        };
        let settings = Settings {
            standard: standard(options),
            plain_decimals: options.opt_boolean(&DECIMAL_AS_PLAIN_NUMBER).unwrap_or(false),
            ignore_nulls: options.opt_boolean(&IGNORE_NULL_FIELDS).unwrap_or(false),
            null_key,
        };
        let columns = schema.columns.iter().map(|column| (column.name.clone(), column.ty.logical.clone())).collect();
        Ok(Self { columns, settings })
    }

    /// The batch's columns as what they are written as.
    fn open<'a>(&'a self, rows: &'a RecordBatch) -> Result<Vec<FieldWriter<'a>>, String> {
        if rows.num_columns() != self.columns.len() {
            return Err(format!("{} columns where the schema has {}", rows.num_columns(), self.columns.len()));
        }
        let pairs = self.columns.iter().zip(rows.columns());
        pairs.map(|((name, logical), array)| FieldWriter::new(name, logical, array)).collect()
    }
}

fn check_type(logical: &LogicalType) -> Result<(), String> {
    match logical {
        LogicalType::Array(element) => check_type(&element.logical),
        LogicalType::Map(key, value) => check_map_key(key).and_then(|()| check_type(&value.logical)),
        LogicalType::Row(fields) => fields.iter().try_for_each(|field| check_type(&field.ty.logical)),
        _ => Ok(()),
    }
}

impl formats::Encoder for Encoder {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let fields = match self.open(rows) {
            Ok(fields) => fields,
            Err(reason) => {
                return (0..rows.num_rows()).map(|row| RowReject { row, reason: reason.clone() }).collect();
            }
        };
        let mut rejects = Vec::new();
        for row in 0..rows.num_rows() {
            let start = out.len();
            match write_object(&fields, row, &self.settings, out) {
                Ok(()) => written(row, out),
                Err(reason) => {
                    out.truncate(start);
                    rejects.push(RowReject { row, reason });
                }
            }
        }
        rejects
    }

    fn line_end(&self) -> &[u8] {
        b"\n"
    }

    fn extension(&self) -> &'static str {
        "json"
    }
}

struct FieldWriter<'a> {
    name: &'a str,
    /// `"name":`
    key: Vec<u8>,
    column: ColumnWriter<'a>,
}

struct ColumnWriter<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Scalars(Scalars<'a>),
    Array { offsets: &'a [i32], items: Box<ColumnWriter<'a>> },
    Map { offsets: &'a [i32], keys: &'a StringArray, values: Box<ColumnWriter<'a>> },
    Row(Vec<FieldWriter<'a>>),
}

impl<'a> FieldWriter<'a> {
    fn new(name: &'a str, logical: &'a LogicalType, array: &'a ArrayRef) -> Result<Self, String> {
        let mut key = Vec::with_capacity(name.len() + 3);
        text::write_string(name, &mut key);
        key.push(b':');
        let column = ColumnWriter::new(logical, array).map_err(|why| format!("column {name}: {why}"))?;
        Ok(Self { name, key, column })
    }
}

impl<'a> ColumnWriter<'a> {
    fn new(logical: &'a LogicalType, array: &'a ArrayRef) -> Result<Self, String> {
        let values = Values::new(logical, array)?;
        let values = values.ok_or_else(|| format!("{} where {} is expected", array.data_type(), logical.to_arrow()))?;
        Ok(Self { nulls: array.nulls(), values })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }
}

impl<'a> Values<'a> {
    /// `None` if the array is not of the type.
    fn new(logical: &'a LogicalType, array: &'a ArrayRef) -> Result<Option<Self>, String> {
        Ok(match logical {
            LogicalType::Array(element) => match cast::<ListArray>(array) {
                Some(list) => {
                    let items = Box::new(ColumnWriter::new(&element.logical, list.values())?);
                    Some(Self::Array { offsets: list.value_offsets(), items })
                }
                None => None,
            },
            LogicalType::Map(_, value) => match cast::<MapArray>(array).map(|map| (map, cast(map.keys()))) {
                Some((map, Some(keys))) => {
                    let values = Box::new(ColumnWriter::new(&value.logical, map.values())?);
                    Some(Self::Map { offsets: map.value_offsets(), keys, values })
                }
                _ => None,
            },
            LogicalType::Row(fields) => match cast::<StructArray>(array) {
                Some(row) if row.num_columns() == fields.len() => {
                    let pairs = fields.iter().zip(row.columns());
                    let writers = pairs.map(|(field, array)| FieldWriter::new(&field.name, &field.ty.logical, array));
                    Some(Self::Row(writers.collect::<Result<_, _>>()?))
                }
                _ => None,
            },
            scalar => Scalars::new(scalar, array).map(Self::Scalars),
        })
    }
}

/// Writes an object; the error names the column.
fn write_object(fields: &[FieldWriter<'_>], row: usize, settings: &Settings, out: &mut Vec<u8>) -> Result<(), String> {
    out.push(b'{');
    let mut first = true;
    for field in fields {
        let null = field.column.is_null(row);
        if null && settings.ignore_nulls {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(&field.key);
        if null {
            out.extend_from_slice(b"null");
        } else {
            write_value(&field.column.values, row, settings, out)
                .map_err(|why| format!("column {}: {why}", field.name))?;
        }
    }
    out.push(b'}');
    Ok(())
}

fn write_slot(column: &ColumnWriter<'_>, row: usize, settings: &Settings, out: &mut Vec<u8>) -> Result<(), String> {
    if column.is_null(row) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    write_value(&column.values, row, settings, out)
}

/// Writes a value that is not null. `row` is below the length of every array: it counts rows of the batch, or comes
/// from offsets that Arrow has checked.
fn write_value(values: &Values<'_>, row: usize, settings: &Settings, out: &mut Vec<u8>) -> Result<(), String> {
    match values {
        Values::Scalars(scalars) => write_scalar(scalars, row, settings, out)?,
        Values::Array { offsets, items } => {
            out.push(b'[');
            for (at, item) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_slot(items, item, settings, out)?;
            }
            out.push(b']');
        }
        Values::Map { offsets, keys, values } => {
            let entries = offsets[row] as usize..offsets[row + 1] as usize;
            write_map(keys, values, entries, settings, out)?;
        }
        Values::Row(fields) => write_object(fields, row, settings, out)?,
    }
    Ok(())
}

/// Writes a value that is not null and not nested; `row` as for [`write_value`].
fn write_scalar(scalars: &Scalars<'_>, row: usize, settings: &Settings, out: &mut Vec<u8>) -> Result<(), String> {
    match scalars {
        Scalars::Boolean(values) => out.extend_from_slice(if values.value(row) { b"true" } else { b"false" }),
        Scalars::Int8(values) => write_integer(values[row], out),
        Scalars::Int16(values) => write_integer(values[row], out),
        Scalars::Int32(values) => write_integer(values[row], out),
        Scalars::Int64(values) => write_integer(values[row], out),
        Scalars::Float32(values) => number::write_f32(values[row], out),
        Scalars::Float64(values) => number::write_f64(values[row], out),
        Scalars::Decimal { values, scale } => number::write_decimal(values[row], *scale, settings.plain_decimals, out),
        Scalars::Text(values) => text::write_string(values.value(row), out),
        Scalars::Bytes(values) => write_bytes(values.value(row), out)?,
        Scalars::Date(values) => quoted(out, |out| time::write_date(values[row], out))
            .ok_or_else(|| format!("{} days since the epoch are outside the calendar", values[row]))?,
        Scalars::Time(values) => quoted(out, |out| time::write_time(values[row], out))
            .ok_or_else(|| format!("{} ms are not a time of day", values[row]))?,
        Scalars::Timestamp { values, zoned, unit } => {
            quoted(out, |out| time::write_timestamp(values[row], settings.standard, *zoned, *unit, out))
                .ok_or_else(|| format!("timestamp {} is outside the calendar", values[row]))?;
        }
    }
    Ok(())
}

fn write_map(
    keys: &StringArray,
    values: &ColumnWriter<'_>,
    entries: std::ops::Range<usize>,
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.push(b'{');
    let mut first = true;
    for entry in entries {
        let key = match (keys.is_null(entry), &settings.null_key) {
            (false, _) => keys.value(entry),
            (true, NullKey::Literal(literal)) => literal,
            (true, NullKey::Drop) => continue,
            (true, NullKey::Fail) => return Err(format!("a null key in a MAP ({} is FAIL)", MAP_NULL_KEY_MODE.name)),
        };
        if !first {
            out.push(b',');
        }
        first = false;
        text::write_string(key, out);
        out.push(b':');
        write_slot(values, entry, settings, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.push(b'"');
    base64::encode(bytes, out)?;
    out.push(b'"');
    Ok(())
}

fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
    out.push(b'"');
    write(out)?;
    out.push(b'"');
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int32Array;

    use super::*;
    use crate::formats::flink_cases::{JSON, groups, options, schema};

    /// Through the map's parts, since Arrow makes no map with a null key.
    #[test]
    fn a_null_map_key_is_treated_as_flink_does() {
        let mut modes = 0;
        for group in groups(JSON) {
            let Some(entries) = group["cases"][0]["entries"].as_array() else { continue };
            modes += 1;
            let keys: StringArray = entries.iter().map(|entry| entry[0].as_str()).collect();
            let values = entries.iter().map(|entry| i32::try_from(entry[1].as_i64().unwrap()).unwrap());
            let values: ArrayRef = Arc::new(values.collect::<Int32Array>());
            let values = ColumnWriter::new(&LogicalType::Int, &values).unwrap();
            let given = group["options"].as_object().into_iter().flatten();
            let given: Vec<_> = given.map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
            let encoder = Encoder::new(&schema(&["m MAP<STRING, INT>"]), &options("json", &given)).unwrap();
            let mut out = b"{\"m\":".to_vec();
            let expected = group["cases"][0]["written"].as_str().unwrap();
            match write_map(&keys, &values, 0..entries.len(), &encoder.settings, &mut out) {
                Ok(()) => assert_eq!(String::from_utf8(out).unwrap() + "}", expected),
                Err(reason) => {
                    assert_eq!(reason, "a null key in a MAP (json.map-null-key.mode is FAIL)");
                    assert_eq!(expected, "error");
                }
            }
        }
        assert!(modes >= 5, "{modes}");
    }
}
