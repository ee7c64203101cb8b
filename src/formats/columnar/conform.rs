//! Arrays of a file to columns of the schema: by name, in exact case; a column that the file lacks is null, one that
//! the schema lacks is ignored.

use std::ops::Range;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericListArray, OffsetSizeTrait, PrimitiveArray, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Date64Type, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
        UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, TimeUnit};

use super::{
    Budget,
    names::sql_name,
    values::{Failure, decimal, integer, nanoseconds, time_of_day, timestamp},
};
use crate::model::{ColumnBuilder, ColumnType, Field, LogicalType as T, RowsBuilder, Scalar, Schema, nearest};

const DAY_MS: i64 = 86_400_000;
/// What a value costs beside its bytes.
const VALUE_BYTES: usize = 8;

/// The physical columns of a schema, as a file fills them.
#[derive(Debug)]
pub(in crate::formats) struct Target {
    /// Each with its index in the builder.
    columns: Vec<(usize, Field)>,
}

impl Target {
    /// Those of a source's schema.
    pub(in crate::formats) fn new(schema: &Schema) -> Self {
        let physical = schema.columns.iter().enumerate().filter(|(_, column)| column.metadata.is_none());
        let field = |(index, column): (usize, &crate::model::Column)| {
            (index, Field { name: column.name.clone(), ty: column.ty.clone() })
        };
        Self { columns: physical.map(field).collect() }
    }

    /// The columns.
    pub(in crate::formats) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.columns.iter().map(|(_, field)| field)
    }

    /// The columns, each with its index in the builder, in this order.
    pub(in crate::formats) fn columns(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.columns.iter().map(|(index, field)| (*index, field))
    }

    /// How many rows the columns hold; they are all of one length.
    pub(in crate::formats) fn rows(&self, rows: &RowsBuilder) -> usize {
        let first = self.columns.first().and_then(|(index, _)| rows.columns().get(*index));
        first.map_or(0, ColumnBuilder::len)
    }

    /// Whether a file with columns of these names has all that must be there.
    pub(in crate::formats) fn check_names<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), String> {
        let lacking = self.fields().find(|field| !field.ty.nullable && !names.clone().any(|name| name == field.name));
        lacking.map_or(Ok(()), |field| Err(self::lacking(nearest(&field.name, names)).of_column(&field.name)))
    }

    /// Appends all rows of a batch, `before` which the body has others. On `Err` some may have been appended.
    pub(in crate::formats) fn append(
        &self,
        batch: &RecordBatch,
        before: usize,
        rows: &mut RowsBuilder,
        budget: &mut Budget,
    ) -> Result<(), String> {
        for (index, field) in &self.columns {
            let Some(column) = rows.column_mut(*index) else { continue };
            let held = column.len();
            let appended = match batch.column_by_name(&field.name) {
                Some(array) => append(column, &field.ty, array, 0..array.len(), budget),
                None => absent(column, &field.ty, batch.num_rows(), budget),
            };
            appended.map_err(|failure| failure.of_row(before + (column.len() - held), &field.name))?;
        }
        Ok(())
    }
}

/// Nulls for a column that the file lacks.
fn absent(column: &mut ColumnBuilder, ty: &ColumnType, rows: usize, budget: &mut Budget) -> Result<(), Failure> {
    if !ty.nullable {
        return Err(lacking(None));
    }
    budget.take(rows.saturating_mul(VALUE_BYTES))?;
    (0..rows).for_each(|_| column.append_null());
    Ok(())
}

/// Why a file without a column is refused; `meant` is what it may be called there.
pub(in crate::formats) fn lacking(meant: Option<&str>) -> Failure {
    let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`, which it has?"));
    Failure::of_all(format!("the file lacks it, and the schema says NOT NULL{meant}"))
}

fn null(column: &mut ColumnBuilder, ty: &ColumnType) -> Result<(), Failure> {
    if !ty.nullable {
        return Err(Failure::null());
    }
    column.append_null();
    Ok(())
}

/// Why a file is refused that has something else in a column.
pub(in crate::formats) fn mismatch(logical: &T, found: &DataType) -> Failure {
    Failure::of_all(format!("the file has {} here, which is no {logical}", sql_name(found)))
}

/// Appends a range of an array.
fn append(
    column: &mut ColumnBuilder,
    ty: &ColumnType,
    array: &ArrayRef,
    rows: Range<usize>,
    budget: &mut Budget,
) -> Result<(), Failure> {
    let mut to = To { column, ty, array, rows, budget };
    if *array.data_type() == DataType::Null {
        let rows = to.rows.clone();
        return if ty.nullable { absent(to.column, ty, rows.len(), to.budget) } else { Err(Failure::null()) };
    }
    match &ty.logical {
        T::Boolean => match array.as_boolean_opt() {
            Some(values) => to.each(|row| Ok(Scalar::Boolean(values.value(row)))),
            None => Err(mismatch(&ty.logical, array.data_type())),
        },
        T::TinyInt | T::SmallInt | T::Int | T::BigInt => to.integers(),
        T::Float | T::Double => to.floats(),
        T::Decimal(precision, scale) => to.decimals(*precision, *scale),
        T::Char(_) | T::VarChar(_) => to.texts(),
        T::Binary(_) | T::VarBinary(_) => to.bytes(),
        T::Date => to.dates(),
        T::Time(_) => to.times(),
        T::Timestamp(_) | T::TimestampLtz(_) => to.timestamps(),
        T::Array(element) => match array.data_type() {
            DataType::List(_) => to.lists::<i32>(array.as_list(), element),
            DataType::LargeList(_) => to.lists::<i64>(array.as_list(), element),
            found => Err(mismatch(&ty.logical, found)),
        },
        T::Map(key, value) => to.maps(key, value),
        T::Row(fields) => to.structs(fields),
    }
}

/// What is appended to what.
struct To<'a> {
    column: &'a mut ColumnBuilder,
    ty: &'a ColumnType,
    array: &'a ArrayRef,
    rows: Range<usize>,
    budget: &'a mut Budget,
}

impl<'a> To<'a> {
    fn each<'v>(&mut self, value: impl Fn(usize) -> Result<Scalar<'v>, String>) -> Result<(), Failure> {
        self.budget.take(self.rows.len().saturating_mul(VALUE_BYTES))?;
        for row in self.rows.clone() {
            if self.array.is_null(row) {
                null(self.column, self.ty)?;
                continue;
            }
            let value = value(row)?;
            match value {
                Scalar::Text(text) => self.budget.take(text.len())?,
                Scalar::Bytes(bytes) => self.budget.take(bytes.len())?,
                _ => {}
            }
            self.column.append(value).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn primitive<P: ArrowPrimitiveType>(
        &mut self,
        value: impl Fn(P::Native) -> Result<Scalar<'static>, String>,
    ) -> Result<(), Failure> {
        let values: &'a PrimitiveArray<P> = self.array.as_primitive();
        self.each(|row| value(values.value(row)))
    }

    fn mismatch(&self) -> Failure {
        mismatch(&self.ty.logical, self.array.data_type())
    }

    fn integers(&mut self) -> Result<(), Failure> {
        let logical = &self.ty.logical;
        match self.array.data_type() {
            DataType::Int8 => self.primitive::<Int8Type>(|value| integer(value.into(), logical)),
            DataType::Int16 => self.primitive::<Int16Type>(|value| integer(value.into(), logical)),
            DataType::Int32 => self.primitive::<Int32Type>(|value| integer(value.into(), logical)),
            DataType::Int64 => self.primitive::<Int64Type>(|value| integer(value.into(), logical)),
            DataType::UInt8 => self.primitive::<UInt8Type>(|value| integer(value.into(), logical)),
            DataType::UInt16 => self.primitive::<UInt16Type>(|value| integer(value.into(), logical)),
            DataType::UInt32 => self.primitive::<UInt32Type>(|value| integer(value.into(), logical)),
            DataType::UInt64 => self.primitive::<UInt64Type>(|value| integer(value.into(), logical)),
            _ => Err(self.mismatch()),
        }
    }

    /// Widened, never narrowed: a DOUBLE has no FLOAT.
    fn floats(&mut self) -> Result<(), Failure> {
        match (&self.ty.logical, self.array.data_type()) {
            (T::Float, DataType::Float16) => self.primitive::<Float16Type>(|value| Ok(Scalar::Float32(value.into()))),
            (T::Float, DataType::Float32) => self.primitive::<Float32Type>(|value| Ok(Scalar::Float32(value))),
            (T::Double, DataType::Float16) => self.primitive::<Float16Type>(|value| Ok(Scalar::Float64(value.into()))),
            (T::Double, DataType::Float32) => self.primitive::<Float32Type>(|value| Ok(Scalar::Float64(value.into()))),
            (T::Double, DataType::Float64) => self.primitive::<Float64Type>(|value| Ok(Scalar::Float64(value))),
            _ => Err(self.mismatch()),
        }
    }

    fn decimals(&mut self, precision: u8, scale: u8) -> Result<(), Failure> {
        match self.array.data_type() {
            DataType::Decimal128(_, from) => {
                let from = i32::from(*from);
                self.primitive::<Decimal128Type>(|value| decimal(value, from, precision, scale))
            }
            DataType::Decimal256(..) => Err(Failure::of_all("the file has a decimal of more than 38 digits here")),
            _ => self.integers(),
        }
    }

    fn texts(&mut self) -> Result<(), Failure> {
        let array = self.array;
        match array.data_type() {
            DataType::Utf8 => self.each(|row| Ok(Scalar::Text(array.as_string::<i32>().value(row)))),
            DataType::LargeUtf8 => self.each(|row| Ok(Scalar::Text(array.as_string::<i64>().value(row)))),
            DataType::Utf8View => self.each(|row| Ok(Scalar::Text(array.as_string_view().value(row)))),
            // Old writers, and some of today, do not say of a text that it is one.
            DataType::Binary => self.each(|row| text(array.as_binary::<i32>().value(row))),
            DataType::LargeBinary => self.each(|row| text(array.as_binary::<i64>().value(row))),
            DataType::BinaryView => self.each(|row| text(array.as_binary_view().value(row))),
            _ => Err(self.mismatch()),
        }
    }

    fn bytes(&mut self) -> Result<(), Failure> {
        let array = self.array;
        match array.data_type() {
            DataType::Binary => self.each(|row| Ok(Scalar::Bytes(array.as_binary::<i32>().value(row)))),
            DataType::LargeBinary => self.each(|row| Ok(Scalar::Bytes(array.as_binary::<i64>().value(row)))),
            DataType::BinaryView => self.each(|row| Ok(Scalar::Bytes(array.as_binary_view().value(row)))),
            DataType::FixedSizeBinary(_) => self.each(|row| Ok(Scalar::Bytes(array.as_fixed_size_binary().value(row)))),
            DataType::Utf8 => self.each(|row| Ok(Scalar::Bytes(array.as_string::<i32>().value(row).as_bytes()))),
            DataType::Utf8View => self.each(|row| Ok(Scalar::Bytes(array.as_string_view().value(row).as_bytes()))),
            _ => Err(self.mismatch()),
        }
    }

    fn dates(&mut self) -> Result<(), Failure> {
        match self.array.data_type() {
            DataType::Date32 => self.primitive::<Date32Type>(|value| Ok(Scalar::Int32(value))),
            DataType::Date64 => self.primitive::<Date64Type>(|value| {
                i32::try_from(value.div_euclid(DAY_MS)).map(Scalar::Int32).map_err(|_| "a date out of range".to_owned())
            }),
            _ => Err(self.mismatch()),
        }
    }

    fn times(&mut self) -> Result<(), Failure> {
        match self.array.data_type() {
            DataType::Time32(TimeUnit::Second) => self.primitive::<Time32SecondType>(|v| time_of_day(v.into(), 1)),
            DataType::Time32(_) => self.primitive::<Time32MillisecondType>(|v| time_of_day(v.into(), 1000)),
            DataType::Time64(TimeUnit::Microsecond) => {
                self.primitive::<Time64MicrosecondType>(|v| time_of_day(v, 1_000_000))
            }
            DataType::Time64(_) => self.primitive::<Time64NanosecondType>(|v| time_of_day(v, 1_000_000_000)),
            _ => Err(self.mismatch()),
        }
    }

    /// With a zone or without: the zone of a file says how to show an instant, and here that is UTC for both types.
    fn timestamps(&mut self) -> Result<(), Failure> {
        let logical = &self.ty.logical;
        match self.array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                self.primitive::<TimestampSecondType>(|value| timestamp(value, 1, logical))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                self.primitive::<TimestampMillisecondType>(|value| timestamp(value, 1000, logical))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.primitive::<TimestampMicrosecondType>(|value| timestamp(value, 1_000_000, logical))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                self.primitive::<TimestampNanosecondType>(|value| timestamp(value, 1_000_000_000, logical))
            }
            // Nanoseconds of any year; see the decoder of ORC.
            DataType::Decimal128(38, 9) => self.primitive::<Decimal128Type>(|value| nanoseconds(value, logical)),
            _ => Err(self.mismatch()),
        }
    }

    fn lists<O: OffsetSizeTrait>(&mut self, lists: &GenericListArray<O>, element: &ColumnType) -> Result<(), Failure> {
        self.budget.take(self.rows.len().saturating_mul(VALUE_BYTES))?;
        let offsets = lists.value_offsets();
        for row in self.rows.clone() {
            if self.array.is_null(row) {
                null(self.column, self.ty)?;
                continue;
            }
            let range = range(offsets, row);
            let items = self.column.items_mut().ok_or_else(|| Failure::new("no list"))?;
            append_elements(items, element, lists.values(), range, self.budget)?;
            self.column.close().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn maps(&mut self, key: &ColumnType, value: &ColumnType) -> Result<(), Failure> {
        let Some(maps) = self.array.as_map_opt() else { return Err(self.mismatch()) };
        self.budget.take(self.rows.len().saturating_mul(VALUE_BYTES))?;
        // A key is never null, whatever the schema says of its type.
        let key = ColumnType { logical: key.logical.clone(), nullable: false };
        for row in self.rows.clone() {
            if self.array.is_null(row) {
                null(self.column, self.ty)?;
                continue;
            }
            let range = range(maps.value_offsets(), row);
            let (keys, values) = self.column.entries_mut().ok_or_else(|| Failure::new("no map"))?;
            append_elements(keys, &key, maps.keys(), range.clone(), self.budget)?;
            append_elements(values, value, maps.values(), range, self.budget)?;
            self.column.close().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn structs(&mut self, fields: &[Field]) -> Result<(), Failure> {
        let Some(structs) = self.array.as_struct_opt() else { return Err(self.mismatch()) };
        self.budget.take(self.rows.len().saturating_mul(VALUE_BYTES))?;
        for row in self.rows.clone() {
            if self.array.is_null(row) {
                null(self.column, self.ty)?;
                continue;
            }
            let builders = self.column.fields_mut().ok_or_else(|| Failure::new("no row"))?;
            for (builder, field) in builders.iter_mut().zip(fields) {
                let appended = match structs.column_by_name(&field.name) {
                    Some(array) => append(builder, &field.ty, array, row..row + 1, self.budget),
                    None => absent(builder, &field.ty, 1, self.budget),
                };
                appended.map_err(|failure| failure.in_field(&field.name))?;
            }
            self.column.close().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// The elements of one list; the number of the one that fails is how many were appended before it.
fn append_elements(
    items: &mut ColumnBuilder,
    ty: &ColumnType,
    array: &ArrayRef,
    range: Range<usize>,
    budget: &mut Budget,
) -> Result<(), Failure> {
    let before = items.len();
    let appended = append(items, ty, array, range, budget);
    appended.map_err(|failure| failure.in_element(items.len().saturating_sub(before)))
}

/// Offsets are in order and not negative: the array was validated when it was made.
fn range<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> Range<usize> {
    let at = |row: usize| offsets.get(row).map_or(0, |offset| offset.as_usize());
    at(row)..at(row + 1)
}

fn text(bytes: &[u8]) -> Result<Scalar<'_>, String> {
    simdutf8::basic::from_utf8(bytes).map(Scalar::Text).map_err(|_| "bytes that are no UTF-8".to_owned())
}
