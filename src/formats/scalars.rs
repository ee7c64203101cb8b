//! What encoders read values from: the arrays of a batch as the plain values they hold.

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, Time32MillisecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};

use super::{
    base64, number,
    time::{self, Standard, Unit},
};
use crate::model::LogicalType;

/// The values of a column that is not nested; where a row is null, whatever stands there.
pub(super) enum Scalars<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal { values: &'a [i128], scale: i8 },
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Date(&'a [i32]),
    Time(&'a [i32]),
    Timestamp { values: &'a [i64], zoned: bool, unit: Unit },
}

impl<'a> Scalars<'a> {
    /// `None` if the array is not of the type, or the type is nested.
    pub(super) fn new(logical: &LogicalType, array: &'a ArrayRef) -> Option<Self> {
        let zoned = matches!(logical, LogicalType::TimestampLtz(_));
        match logical {
            LogicalType::Boolean => cast(array).map(Self::Boolean),
            LogicalType::TinyInt => cast::<Int8Array>(array).map(|array| Self::Int8(array.values())),
            LogicalType::SmallInt => cast::<Int16Array>(array).map(|array| Self::Int16(array.values())),
            LogicalType::Int => cast::<Int32Array>(array).map(|array| Self::Int32(array.values())),
            LogicalType::BigInt => cast::<Int64Array>(array).map(|array| Self::Int64(array.values())),
            LogicalType::Float => cast::<Float32Array>(array).map(|array| Self::Float32(array.values())),
            LogicalType::Double => cast::<Float64Array>(array).map(|array| Self::Float64(array.values())),
            LogicalType::Decimal(..) => cast::<Decimal128Array>(array)
                .map(|array| Self::Decimal { values: array.values(), scale: array.scale() }),
            LogicalType::Char(_) | LogicalType::VarChar(_) => cast(array).map(Self::Text),
            LogicalType::Binary(_) | LogicalType::VarBinary(_) => cast(array).map(Self::Bytes),
            LogicalType::Date => cast::<Date32Array>(array).map(|array| Self::Date(array.values())),
            LogicalType::Time(_) => cast::<Time32MillisecondArray>(array).map(|array| Self::Time(array.values())),
            LogicalType::Timestamp(_) | LogicalType::TimestampLtz(_) => {
                let micros = cast::<TimestampMicrosecondArray>(array).map(|array| (array.values(), Unit::Micros));
                let nanos = || cast::<TimestampNanosecondArray>(array).map(|array| (array.values(), Unit::Nanos));
                micros.or_else(nanos).map(|(values, unit)| Self::Timestamp { values, zoned, unit })
            }
            LogicalType::Array(_) | LogicalType::Map(..) | LogicalType::Row(_) => None,
        }
    }

    /// Writes the value of a row, which is not null, as its bare text: bytes as base64, timestamps as SQL spells them,
    /// decimals without an exponent if `plain_decimals`. The error says why it has none.
    pub(super) fn write_text(&self, row: usize, plain_decimals: bool, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Boolean(values) => out.extend_from_slice(if values.value(row) { b"true" } else { b"false" }),
            Self::Int8(values) => write_integer(values[row], out),
            Self::Int16(values) => write_integer(values[row], out),
            Self::Int32(values) => write_integer(values[row], out),
            Self::Int64(values) => write_integer(values[row], out),
            Self::Float32(values) if values[row].is_finite() => number::write_f32(values[row], out),
            Self::Float32(values) => out.extend_from_slice(non_finite(f64::from(values[row]))),
            Self::Float64(values) if values[row].is_finite() => number::write_f64(values[row], out),
            Self::Float64(values) => out.extend_from_slice(non_finite(values[row])),
            Self::Decimal { values, scale } => number::write_decimal(values[row], *scale, plain_decimals, out),
            Self::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Self::Bytes(values) => base64::encode(values.value(row), out)?,
            Self::Date(values) => time::write_date(values[row], out)
                .ok_or_else(|| format!("{} days since the epoch are outside the calendar", values[row]))?,
            Self::Time(values) => {
                time::write_time(values[row], out)
                    .ok_or_else(|| format!("{} ms are not a time of day", values[row]))?;
            }
            Self::Timestamp { values, zoned, unit } => {
                time::write_timestamp(values[row], Standard::Sql, *zoned, *unit, out)
                    .ok_or_else(|| format!("timestamp {} is outside the calendar", values[row]))?;
            }
        }
        Ok(())
    }
}

/// The array as one of its kind; `None` if it is of another.
pub(super) fn cast<T: 'static>(array: &ArrayRef) -> Option<&T> {
    array.as_any().downcast_ref::<T>()
}

fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// What is no number, or too large for one, as Java writes it.
fn non_finite(value: f64) -> &'static [u8] {
    if value.is_nan() {
        b"NaN"
    } else if value > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    }
}
