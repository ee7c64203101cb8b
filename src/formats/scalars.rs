//! What encoders read values from: the arrays of a batch as the plain values they hold.

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, Time32MillisecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};

use super::time::Unit;
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
}

/// The array as one of its kind; `None` if it is of another.
pub(super) fn cast<T: 'static>(array: &ArrayRef) -> Option<&T> {
    array.as_any().downcast_ref::<T>()
}
