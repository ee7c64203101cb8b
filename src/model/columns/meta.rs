//! Metadata values cast to the types of their columns.

use std::collections::BTreeMap;

use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, Utc};

use super::column::{ColumnBuilder, ColumnError, Scalar};
use crate::model::MetaValue;

/// Appends a value to a column; the error says why it does not fit.
pub(super) fn append(builder: &mut ColumnBuilder, value: &MetaValue) -> Result<(), String> {
    let text;
    let scalar = match (value, builder.data_type()) {
        (MetaValue::Null, _) => {
            builder.append_null();
            return Ok(());
        }
        (MetaValue::Text(value), DataType::Utf8) => Scalar::Text(value),
        (MetaValue::Integer(value) | MetaValue::Millis(value), DataType::Int64) => Scalar::Int64(*value),
        (MetaValue::Integer(value), DataType::Int32) => Scalar::Int32(narrow(*value, "INT")?),
        (MetaValue::Integer(value), DataType::Int16) => Scalar::Int16(narrow(*value, "SMALLINT")?),
        (MetaValue::Integer(value), DataType::Int8) => Scalar::Int8(narrow(*value, "TINYINT")?),
        (MetaValue::Integer(value), DataType::Utf8) => {
            text = value.to_string();
            Scalar::Text(&text)
        }
        (MetaValue::Millis(value), DataType::Timestamp(unit, _)) => {
            let factor = if *unit == TimeUnit::Nanosecond { 1_000_000 } else { 1_000 };
            let scaled = value.checked_mul(factor);
            Scalar::Int64(scaled.ok_or_else(|| format!("{value} ms do not fit a timestamp of this precision"))?)
        }
        (MetaValue::Millis(value), DataType::Utf8) => {
            text = DateTime::<Utc>::from_timestamp_millis(*value)
                .ok_or_else(|| format!("{value} ms are outside the calendar"))?
                .format("%Y-%m-%d %H:%M:%S%.3f")
                .to_string();
            Scalar::Text(&text)
        }
        (MetaValue::Map(map), DataType::Map(..)) => return append_map(builder, map),
        (value, data_type) => return Err(format!("{} cannot be held as {data_type}", kind(value))),
    };
    builder.append(scalar).map_err(|error| error.to_string())
}

fn append_map(builder: &mut ColumnBuilder, map: &BTreeMap<String, String>) -> Result<(), String> {
    let before = builder.len();
    let mut append = || {
        let (keys, values) = builder.entries_mut().ok_or(ColumnError::WrongType)?;
        for (key, value) in map {
            keys.append(Scalar::Text(key))?;
            values.append(Scalar::Text(value))?;
        }
        builder.close()
    };
    append().map_err(|error: ColumnError| {
        builder.truncate(before);
        error.to_string()
    })
}

fn narrow<T: TryFrom<i64>>(value: i64, name: &str) -> Result<T, String> {
    T::try_from(value).map_err(|_| format!("{value} is out of range for {name}"))
}

fn kind(value: &MetaValue) -> &'static str {
    match value {
        MetaValue::Text(_) => "a text",
        MetaValue::Integer(_) => "an integer",
        MetaValue::Millis(_) => "a time",
        MetaValue::Map(_) => "a map",
        MetaValue::Null => "null",
    }
}
