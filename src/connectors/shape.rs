//! Rows in the columns of the sink.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Decimal128Array, ListArray, MapArray, RecordBatch, StructArray,
    cast::AsArray,
    types::{Decimal128Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampNanosecondType},
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};

use crate::model::{
    ColumnType, Fault, FaultKind, LogicalType, Schema,
    number::{decimal_of_double, decimal_to_double, decimal_to_float},
};

/// The sink's columns: those of the source or of the query by position, under the sink's names and of its types.
///
/// A value goes into a column of another type as Flink inserts it: digits behind the point, and of a second, are cut to
/// what the column has (of a DECIMAL they are rounded half up), and what has more digits before the point than a
/// DECIMAL has is null.
#[derive(Debug, Clone)]
pub struct RowShape {
    schema: SchemaRef,
    /// For each column its type, if what comes is of another.
    into: Arc<[Option<LogicalType>]>,
}

/// Rows as the sink takes them.
#[derive(Debug)]
pub struct Shaped {
    /// The rows.
    pub rows: RecordBatch,
    /// How many values are null because they have too many digits for their column.
    pub nulled: usize,
}

impl RowShape {
    /// `sink` has as many columns as `selected`, each of a type that the other's is inserted into.
    pub fn new(selected: &Schema, sink: &Schema) -> Self {
        let pairs = selected.columns.iter().zip(&sink.columns);
        let into = pairs.map(|(from, to)| (from.ty.logical != to.ty.logical).then(|| to.ty.logical.clone()));
        Self { schema: sink.to_arrow(), into: into.collect() }
    }

    /// The rows as the sink takes them. Columns whose type is the same are not copied.
    ///
    /// # Errors
    /// Only a bug.
    pub fn apply(&self, rows: &RecordBatch) -> Result<Shaped, Fault> {
        let bug = |error| Fault::never(FaultKind::Bug, "rows do not fit the sink's columns").because(error);
        let mut nulled = 0;
        let columns = rows.columns().iter().zip(self.into.iter()).map(|(column, into)| match into {
            None => Ok(Arc::clone(column)),
            Some(into) => insert(column, into, &mut nulled).map_err(bug),
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Shaped { rows: RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(bug)?, nulled })
    }
}

fn insert(values: &ArrayRef, into: &LogicalType, nulled: &mut usize) -> Result<ArrayRef, ArrowError> {
    let target = into.to_arrow();
    let nested = |values: &ArrayRef, into: &ColumnType, nulled: &mut usize| insert(values, &into.logical, nulled);
    match (into, &target) {
        (LogicalType::Row(fields), DataType::Struct(targets)) => {
            let values = values.as_struct_opt().ok_or_else(|| unlike(values, &target))?;
            let columns = values.columns().iter().zip(fields).map(|(column, field)| nested(column, &field.ty, nulled));
            let columns = columns.collect::<Result<_, _>>()?;
            Ok(Arc::new(StructArray::try_new(targets.clone(), columns, values.nulls().cloned())?))
        }
        (LogicalType::Array(element), DataType::List(field)) => {
            let values = values.as_list_opt::<i32>().ok_or_else(|| unlike(values, &target))?;
            let elements = nested(values.values(), element, nulled)?;
            let offsets = values.offsets().clone();
            Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, elements, values.nulls().cloned())?))
        }
        (LogicalType::Map(key, value), DataType::Map(field, _)) => {
            let DataType::Struct(fields) = field.data_type() else { return Err(unlike(values, &target)) };
            let values = values.as_map_opt().ok_or_else(|| unlike(values, &target))?;
            let columns = vec![nested(values.keys(), key, nulled)?, nested(values.values(), value, nulled)?];
            let entries = StructArray::try_new(fields.clone(), columns, None)?;
            let offsets = values.offsets().clone();
            Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, values.nulls().cloned(), false)?))
        }
        _ => {
            let inserted = match number(values, into) {
                Some(inserted) => inserted,
                None => cast(&cut(values, into), &target)?,
            };
            *nulled += inserted.null_count().saturating_sub(values.null_count());
            Ok(inserted)
        }
    }
}

/// A DECIMAL of a DOUBLE or FLOAT and the other way round, as a query's CAST makes it; `None`: it is none of these.
fn number(values: &ArrayRef, into: &LogicalType) -> Option<ArrayRef> {
    let decimals = |each: &mut dyn Iterator<Item = Option<f64>>, precision: u8, scale: u8| -> ArrayRef {
        let made = each.map(|value| value.and_then(|value| decimal_of_double(value, precision, scale)));
        Arc::new(made.collect::<Decimal128Array>().with_data_type(into.to_arrow()))
    };
    Some(match (values.data_type(), into) {
        (DataType::Float64, LogicalType::Decimal(precision, scale)) => {
            decimals(&mut values.as_primitive::<Float64Type>().iter(), *precision, *scale)
        }
        (DataType::Float32, LogicalType::Decimal(precision, scale)) => {
            let values = values.as_primitive::<Float32Type>().iter();
            decimals(&mut values.map(|value| value.map(f64::from)), *precision, *scale)
        }
        (DataType::Decimal128(_, scale), LogicalType::Double) => {
            let scale = u8::try_from(*scale).ok()?;
            let values = values.as_primitive::<Decimal128Type>();
            Arc::new(values.unary::<_, Float64Type>(|value| decimal_to_double(value, scale)))
        }
        (DataType::Decimal128(_, scale), LogicalType::Float) => {
            let scale = u8::try_from(*scale).ok()?;
            let values = values.as_primitive::<Decimal128Type>();
            Arc::new(values.unary::<_, Float32Type>(|value| decimal_to_float(value, scale)))
        }
        _ => return None,
    })
}

/// Times without the digits of a second that their new type does not have.
fn cut(values: &ArrayRef, into: &LogicalType) -> ArrayRef {
    let (LogicalType::Timestamp(digits) | LogicalType::TimestampLtz(digits)) = into else { return Arc::clone(values) };
    let step = |of_unit: u32| 10_i64.pow(of_unit.saturating_sub(u32::from(*digits)));
    let down = |step: i64| move |value: i64| value - value.rem_euclid(step);
    match values.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) if *digits < 6 => {
            let times = values.as_primitive::<TimestampMicrosecondType>().unary(down(step(6)));
            Arc::new(arrow_array::TimestampMicrosecondArray::with_timezone_opt(times, zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if *digits < 9 => {
            let times = values.as_primitive::<TimestampNanosecondType>().unary(down(step(9)));
            Arc::new(arrow_array::TimestampNanosecondArray::with_timezone_opt(times, zone.clone()))
        }
        _ => Arc::clone(values),
    }
}

fn unlike(values: &ArrayRef, target: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("{} is not {target}", values.data_type()))
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;

    use super::*;
    use crate::{
        definition::Options,
        formats::{self, json},
        model::{Column, RowsBuilder},
    };

    fn schema(name: &str, ty: &str) -> Schema {
        let ty = ColumnType::parse(ty).unwrap();
        Schema { columns: vec![Column { name: name.to_owned(), ty, metadata: None, is_virtual: false }] }
    }

    fn defaults() -> Options {
        let mut options = Options::default();
        for spec in json::TABLES.options.options {
            if let Some(default) = spec.default {
                options.insert(spec, spec.kind.parse(default).unwrap());
            }
        }
        options
    }

    fn inserted(from: &str, to: &str, value: &str) -> (String, usize) {
        let (from, to) = (schema("a", from), schema("b", to));
        let mut rows = RowsBuilder::new(&from);
        let mut decoder = formats::decoder("json", &from, &defaults()).unwrap();
        decoder.decode(format!("{{\"a\":{value}}}").as_bytes(), &mut rows).unwrap();
        let shaped = RowShape::new(&from, &to).apply(&rows.finish().unwrap()).unwrap();
        let mut out = Vec::new();
        assert!(formats::encoder("json", &to, &defaults()).unwrap().encode(&shaped.rows, &mut out).is_empty());
        (String::from_utf8(out).unwrap().trim().to_owned(), shaped.nulled)
    }

    #[test]
    fn values_go_into_columns_of_other_types_as_flink_inserts_them() {
        for (from, to, value, expected) in [
            ("INT", "BIGINT", "7", "7"),
            ("BIGINT", "DECIMAL(5, 2)", "123", "123"),
            ("DECIMAL(10, 3)", "DECIMAL(10, 2)", "1.005", "1.01"),
            ("DECIMAL(10, 3)", "DECIMAL(10, 2)", "-1.005", "-1.01"),
            ("DOUBLE", "DECIMAL(10, 2)", "2.5", "2.5"),
            ("DOUBLE", "DECIMAL(10, 2)", "0.145", "0.15"),
            ("DOUBLE", "DECIMAL(10, 2)", "1.005", "1.01"),
            ("DECIMAL(10, 2)", "DOUBLE", "2.5", "2.5"),
            ("DECIMAL(30, 10)", "DOUBLE", "12345678901234567.89", "1.2345678901234568E16"),
            ("DECIMAL(10, 2)", "FLOAT", "0.1", "0.1"),
            ("STRING", "VARCHAR(2)", "\"abc\"", "\"abc\""),
            ("TIMESTAMP(6)", "TIMESTAMP(3)", "\"2026-01-02 03:04:05.123999\"", "\"2026-01-02 03:04:05.123\""),
            ("TIMESTAMP(6)", "TIMESTAMP(0)", "\"1969-12-31 23:59:59.5\"", "\"1969-12-31 23:59:59\""),
            ("TIMESTAMP(9)", "TIMESTAMP(3)", "\"2026-01-02 03:04:05.123999999\"", "\"2026-01-02 03:04:05.123\""),
            ("TIMESTAMP(3)", "DATE", "\"1969-12-31 23:00:00\"", "\"1969-12-31\""),
            ("TIMESTAMP(3)", "TIME", "\"1969-12-31 23:00:01\"", "\"23:00:01\""),
            ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "\"2026-01-02 03:04:05\"", "\"2026-01-02 03:04:05Z\""),
            ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3)", "\"2026-01-02 03:04:05Z\"", "\"2026-01-02 03:04:05\""),
            ("ARRAY<INT>", "ARRAY<BIGINT>", "[1,null,2]", "[1,null,2]"),
            ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", "{\"k\":1}", "{\"k\":1}"),
            ("ROW<a INT, b INT>", "ROW<b BIGINT, a INT>", "{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}"),
        ] {
            assert_eq!(inserted(from, to, value), (format!("{{\"b\":{expected}}}"), 0), "{from} -> {to}");
        }
    }

    #[test]
    fn what_does_not_fit_is_null_and_counted() {
        for (from, to, value) in [
            ("BIGINT", "DECIMAL(5, 2)", "1000"),
            ("DECIMAL(10, 3)", "DECIMAL(4, 3)", "12"),
            ("DOUBLE", "DECIMAL(4, 0)", "1e30"),
            ("DOUBLE", "DECIMAL(4, 0)", "\"NaN\""),
        ] {
            assert_eq!(inserted(from, to, value), ("{\"b\":null}".to_owned(), 1), "{from} -> {to}");
        }
    }

    #[test]
    fn columns_of_one_type_are_not_copied() {
        let (from, to) = (schema("a", "STRING"), schema("b", "STRING"));
        let rows: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["x"]));
        let rows = RecordBatch::try_new(from.to_arrow(), vec![rows]).unwrap();
        let shaped = RowShape::new(&from, &to).apply(&rows).unwrap();
        assert_eq!(shaped.rows.schema().field(0).name(), "b");
        assert!(Arc::ptr_eq(shaped.rows.column(0), rows.column(0)));
    }
}
