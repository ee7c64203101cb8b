use std::{mem, sync::Arc};

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray,
    StructArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, TimestampMicrosecondType, TimestampNanosecondType,
    },
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};

/// Why a value could not be appended. The column is as long as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// The value is not of the column's type: a bug of whoever appends.
    #[error("a value of another type than the column's")]
    WrongType,
    /// A nested value was closed while its parts had not the right lengths: a bug of whoever appends.
    #[error("a nested value that is not complete")]
    Incomplete,
    /// The texts, bytes or elements of one batch would not fit 31 bits of offset.
    #[error("more than 2 GiB of values in one batch")]
    Full,
}

/// A value that is not nested, in the form in which Arrow holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// BOOLEAN
    Boolean(bool),
    /// TINYINT
    Int8(i8),
    /// SMALLINT
    Int16(i16),
    /// INT; DATE in days since the epoch; TIME in milliseconds since midnight
    Int32(i32),
    /// BIGINT; TIMESTAMP and TIMESTAMP_LTZ in the column's unit since the epoch
    Int64(i64),
    /// FLOAT
    Float32(f32),
    /// DOUBLE
    Float64(f64),
    /// DECIMAL, the unscaled value
    Int128(i128),
    /// CHAR, VARCHAR, STRING
    Text(&'a str),
    /// BINARY, VARBINARY, BYTES
    Bytes(&'a [u8]),
}

/// Builds one column, or one level of a nested one.
#[derive(Debug)]
pub struct ColumnBuilder {
    data_type: DataType,
    /// Complete values; `nulls` knows too, but not as fast.
    length: usize,
    nulls: NullBufferBuilder,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Boolean(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Int128(Vec<i128>),
    Text {
        offsets: Vec<i32>,
        data: Vec<u8>,
    },
    Bytes {
        offsets: Vec<i32>,
        data: Vec<u8>,
    },
    List {
        offsets: Vec<i32>,
        items: Box<ColumnBuilder>,
    },
    Map {
        offsets: Vec<i32>,
        entries: Box<[ColumnBuilder; 2]>,
    },
    Struct(Vec<ColumnBuilder>),
    /// A type that no column has.
    Unsupported,
}

impl ColumnBuilder {
    /// An empty column of one of the types that [`crate::model::LogicalType::to_arrow`] answers; others can only
    /// be filled with nulls and fail in [`ColumnBuilder::finish`].
    pub fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            length: 0,
            nulls: NullBufferBuilder::new(0),
            values: Values::new(data_type),
        }
    }

    /// Complete values.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is no complete value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The Arrow type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Appends a value that is not nested.
    #[inline]
    pub fn append(&mut self, value: Scalar<'_>) -> Result<(), ColumnError> {
        match (&mut self.values, value) {
            (Values::Boolean(values), Scalar::Boolean(value)) => values.append(value),
            (Values::Int8(values), Scalar::Int8(value)) => values.push(value),
            (Values::Int16(values), Scalar::Int16(value)) => values.push(value),
            (Values::Int32(values), Scalar::Int32(value)) => values.push(value),
            (Values::Int64(values), Scalar::Int64(value)) => values.push(value),
            (Values::Float32(values), Scalar::Float32(value)) => values.push(value),
            (Values::Float64(values), Scalar::Float64(value)) => values.push(value),
            (Values::Int128(values), Scalar::Int128(value)) => values.push(value),
            (Values::Text { offsets, data }, Scalar::Text(value)) => push_bytes(offsets, data, value.as_bytes())?,
            (Values::Bytes { offsets, data }, Scalar::Bytes(value)) => push_bytes(offsets, data, value)?,
            _ => return Err(ColumnError::WrongType),
        }
        self.nulls.append_non_null();
        self.length += 1;
        Ok(())
    }

    /// Appends a null; to a struct, in every field too.
    pub fn append_null(&mut self) {
        match &mut self.values {
            Values::Boolean(values) => values.append(false),
            Values::Int8(values) => values.push(0),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) => values.push(0),
            Values::Int64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Int128(values) => values.push(0),
            Values::Text { offsets, .. }
            | Values::Bytes { offsets, .. }
            | Values::List { offsets, .. }
            | Values::Map { offsets, .. } => offsets.push(offsets.last().copied().unwrap_or(0)),
            Values::Struct(fields) => fields.iter_mut().for_each(Self::append_null),
            Values::Unsupported => {}
        }
        self.nulls.append_null();
        self.length += 1;
    }

    /// The elements of a list column: append those of one list, then [`ColumnBuilder::close`] it.
    pub fn items_mut(&mut self) -> Option<&mut Self> {
        match &mut self.values {
            Values::List { items, .. } => Some(items),
            _ => None,
        }
    }

    /// The keys and values of a map column: append those of one map, then [`ColumnBuilder::close`] it.
    pub fn entries_mut(&mut self) -> Option<(&mut Self, &mut Self)> {
        match &mut self.values {
            Values::Map { entries, .. } => {
                let [keys, values] = entries.as_mut();
                Some((keys, values))
            }
            _ => None,
        }
    }

    /// The fields of a struct column: append one value to each, then [`ColumnBuilder::close`] it.
    pub fn fields_mut(&mut self) -> Option<&mut [Self]> {
        match &mut self.values {
            Values::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// Ends a list, map or struct whose parts have been appended.
    pub fn close(&mut self) -> Result<(), ColumnError> {
        let next = self.len() + 1;
        match &mut self.values {
            Values::List { offsets, items } => offsets.push(offset(items.len())?),
            Values::Map { offsets, entries } => {
                let [keys, values] = entries.as_ref();
                if keys.len() != values.len() {
                    return Err(ColumnError::Incomplete);
                }
                offsets.push(offset(keys.len())?);
            }
            Values::Struct(fields) => {
                if fields.iter().any(|field| field.len() != next) {
                    return Err(ColumnError::Incomplete);
                }
            }
            _ => return Err(ColumnError::WrongType),
        }
        self.nulls.append_non_null();
        self.length += 1;
        Ok(())
    }

    /// Cuts the column back to its first `length` values, if it has more, and in any case takes away the parts of
    /// a nested value that was not closed.
    pub fn truncate(&mut self, length: usize) {
        let length = length.min(self.len());
        self.nulls.truncate(length);
        self.length = length;
        match &mut self.values {
            Values::Boolean(values) => values.truncate(length),
            Values::Int8(values) => values.truncate(length),
            Values::Int16(values) => values.truncate(length),
            Values::Int32(values) => values.truncate(length),
            Values::Int64(values) => values.truncate(length),
            Values::Float32(values) => values.truncate(length),
            Values::Float64(values) => values.truncate(length),
            Values::Int128(values) => values.truncate(length),
            Values::Text { offsets, data } | Values::Bytes { offsets, data } => {
                data.truncate(truncate_offsets(offsets, length));
            }
            Values::List { offsets, items } => items.truncate(truncate_offsets(offsets, length)),
            Values::Map { offsets, entries } => {
                let end = truncate_offsets(offsets, length);
                entries.iter_mut().for_each(|part| part.truncate(end));
            }
            Values::Struct(fields) => fields.iter_mut().for_each(|field| field.truncate(length)),
            Values::Unsupported => {}
        }
    }

    /// Hands the values over as an Arrow array and begins anew, with room for as many.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let length = mem::take(&mut self.length);
        let nulls = self.nulls.finish();
        Ok(match (&mut self.values, &self.data_type) {
            (Values::Boolean(values), _) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            (Values::Int8(values), _) => primitive::<Int8Type>(values, nulls, &DataType::Int8)?,
            (Values::Int16(values), _) => primitive::<Int16Type>(values, nulls, &DataType::Int16)?,
            (Values::Int32(values), DataType::Date32) => primitive::<Date32Type>(values, nulls, &DataType::Date32)?,
            (Values::Int32(values), to @ DataType::Time32(_)) => primitive::<Time32MillisecondType>(values, nulls, to)?,
            (Values::Int32(values), to) => primitive::<Int32Type>(values, nulls, to)?,
            (Values::Int64(values), to @ DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
                primitive::<TimestampNanosecondType>(values, nulls, to)?
            }
            (Values::Int64(values), to @ DataType::Timestamp(..)) => {
                primitive::<TimestampMicrosecondType>(values, nulls, to)?
            }
            (Values::Int64(values), to) => primitive::<Int64Type>(values, nulls, to)?,
            (Values::Float32(values), to) => primitive::<Float32Type>(values, nulls, to)?,
            (Values::Float64(values), to) => primitive::<Float64Type>(values, nulls, to)?,
            (Values::Int128(values), to) => primitive::<Decimal128Type>(values, nulls, to)?,
            (Values::Text { offsets, data }, _) => {
                Arc::new(StringArray::try_new(take_offsets(offsets), take(data).into(), nulls)?)
            }
            (Values::Bytes { offsets, data }, _) => {
                Arc::new(BinaryArray::try_new(take_offsets(offsets), take(data).into(), nulls)?)
            }
            (Values::List { offsets, items }, DataType::List(item)) => {
                Arc::new(ListArray::try_new(item.clone(), take_offsets(offsets), items.finish()?, nulls)?)
            }
            (Values::Map { offsets, entries }, DataType::Map(field, ordered)) => {
                let arrays = entries.iter_mut().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                let DataType::Struct(parts) = field.data_type() else {
                    return Err(unsupported(&self.data_type));
                };
                let entries = StructArray::try_new(parts.clone(), arrays, None)?;
                Arc::new(MapArray::try_new(field.clone(), take_offsets(offsets), entries, nulls, *ordered)?)
            }
            (Values::Struct(fields), DataType::Struct(parts)) => {
                let arrays = fields.iter_mut().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(parts.clone(), arrays, nulls, length)?)
            }
            _ => return Err(unsupported(&self.data_type)),
        })
    }
}

impl Values {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBufferBuilder::new(0)),
            DataType::Int8 => Self::Int8(Vec::new()),
            DataType::Int16 => Self::Int16(Vec::new()),
            DataType::Int32 | DataType::Date32 | DataType::Time32(TimeUnit::Millisecond) => Self::Int32(Vec::new()),
            DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) => {
                Self::Int64(Vec::new())
            }
            DataType::Float32 => Self::Float32(Vec::new()),
            DataType::Float64 => Self::Float64(Vec::new()),
            DataType::Decimal128(..) => Self::Int128(Vec::new()),
            DataType::Utf8 => Self::Text { offsets: vec![0], data: Vec::new() },
            DataType::Binary => Self::Bytes { offsets: vec![0], data: Vec::new() },
            DataType::List(item) => {
                Self::List { offsets: vec![0], items: Box::new(ColumnBuilder::new(item.data_type())) }
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(parts) if parts.len() == 2 => {
                    let part = |index: usize| ColumnBuilder::new(parts[index].data_type());
                    Self::Map { offsets: vec![0], entries: Box::new([part(0), part(1)]) }
                }
                _ => Self::Unsupported,
            },
            DataType::Struct(fields) => {
                Self::Struct(fields.iter().map(|field| ColumnBuilder::new(field.data_type())).collect())
            }
            _ => Self::Unsupported,
        }
    }
}

fn unsupported(data_type: &DataType) -> ArrowError {
    ArrowError::NotYetImplemented(format!("a column of {data_type}"))
}

fn offset(length: usize) -> Result<i32, ColumnError> {
    i32::try_from(length).map_err(|_| ColumnError::Full)
}

#[inline]
fn push_bytes(offsets: &mut Vec<i32>, data: &mut Vec<u8>, value: &[u8]) -> Result<(), ColumnError> {
    let end = offset(data.len() + value.len())?;
    data.extend_from_slice(value);
    offsets.push(end);
    Ok(())
}

/// Cuts offsets back to `length` values; answers where the last of them ends.
fn truncate_offsets(offsets: &mut Vec<i32>, length: usize) -> usize {
    offsets.truncate(length + 1);
    // Offsets come from lengths, so they are not negative.
    offsets.last().map_or(0, |end| *end as usize)
}

/// Takes the values and leaves room for as many: batches of one pipeline are much alike.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    mem::replace(values, room)
}

fn take_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let taken = take(offsets);
    offsets.push(0);
    OffsetBuffer::new(ScalarBuffer::from(taken))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
    to: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let length = values.len();
    let values = ScalarBuffer::new(Buffer::from_vec(take(values)), 0, length);
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls)?.with_data_type(to.clone())))
}
