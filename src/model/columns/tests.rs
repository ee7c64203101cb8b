use std::sync::Arc;

use arrow_array::{cast::AsArray, types::TimestampMicrosecondType, types::TimestampNanosecondType};
use arrow_schema::DataType;

use super::*;
use crate::model::{Column, ColumnType, Field, LogicalType as T};

fn nullable(logical: T) -> ColumnType {
    ColumnType { logical, nullable: true }
}

fn column(name: &str, logical: T) -> Column {
    Column { name: name.into(), ty: nullable(logical), metadata: None, is_virtual: false }
}

fn meta(name: &str, logical: T) -> Column {
    Column { metadata: Some(name.into()), ..column(name, logical) }
}

/// Every type, nested ones in each other.
fn all_types() -> Schema {
    let text = || T::VarChar(None);
    let inner = T::Row(vec![
        Field { name: "a".into(), ty: nullable(text()) },
        Field { name: "b".into(), ty: nullable(T::Array(Box::new(nullable(T::Int)))) },
    ]);
    let map = T::Map(Box::new(nullable(text())), Box::new(nullable(inner.clone())));
    Schema {
        columns: [
            T::Boolean,
            T::TinyInt,
            T::SmallInt,
            T::Int,
            T::BigInt,
            T::Float,
            T::Double,
            T::Decimal(20, 3),
            text(),
            T::VarBinary(None),
            T::Date,
            T::Time(0),
            T::Timestamp(3),
            T::TimestampLtz(9),
            T::Array(Box::new(nullable(map.clone()))),
            map,
            inner,
        ]
        .into_iter()
        .enumerate()
        .map(|(index, logical)| column(&format!("c{index}"), logical))
        .collect(),
    }
}

/// Appends a random value; with `stop`, a nested one may be left open, and says so.
fn fill(column: &mut ColumnBuilder, random: &mut fastrand::Rng, stop: bool) -> bool {
    if !stop && random.u8(..5) == 0 {
        column.append_null();
        return true;
    }
    let text: String = (0..random.usize(..6)).map(|_| random.alphanumeric()).collect();
    let scalar = match column.data_type() {
        DataType::Boolean => Scalar::Boolean(random.bool()),
        DataType::Int8 => Scalar::Int8(random.i8(..)),
        DataType::Int16 => Scalar::Int16(random.i16(..)),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Scalar::Int32(random.i32(..)),
        DataType::Int64 | DataType::Timestamp(..) => Scalar::Int64(random.i64(..)),
        DataType::Float32 => Scalar::Float32(random.f32()),
        DataType::Float64 => Scalar::Float64(random.f64()),
        DataType::Decimal128(..) => Scalar::Int128(random.i128(-1000..1000)),
        DataType::Utf8 => Scalar::Text(&text),
        DataType::Binary => Scalar::Bytes(text.as_bytes()),
        _ => return fill_nested(column, random, stop),
    };
    column.append(scalar).expect("a value of the column's type");
    true
}

fn fill_nested(column: &mut ColumnBuilder, random: &mut fastrand::Rng, stop: bool) -> bool {
    for _ in 0..random.usize(..4) {
        if let Some(items) = column.items_mut() {
            fill(items, random, stop);
        } else if let Some((keys, values)) = column.entries_mut() {
            keys.append(Scalar::Text("k")).unwrap();
            if stop && random.bool() {
                return false;
            }
            fill(values, random, stop);
        }
    }
    for field in column.fields_mut().unwrap_or(&mut []) {
        if stop && random.bool() {
            return false;
        }
        fill(field, random, stop);
    }
    if stop {
        return false;
    }
    column.close().expect("complete parts");
    true
}

#[test]
fn truncating_after_any_partial_row_leaves_exactly_the_earlier_rows() {
    let schema = all_types();
    let mut kept = RowsBuilder::new(&schema);
    let mut cut = RowsBuilder::new(&schema);
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        for row in 0..random.usize(..6) {
            // The same row goes to both; the second also gets part of another, which is cut off again.
            let row_seed = random.u64(..);
            let mut partial = fastrand::Rng::with_seed(row_seed ^ 1);
            let until = partial.usize(..=schema.columns.len());
            for column in &mut cut.columns_mut()[..until] {
                let last_is_open = partial.bool();
                if !fill(column, &mut partial, last_is_open) {
                    break;
                }
            }
            cut.truncate(row);
            assert_eq!(cut.rows(), row);
            for builder in [&mut kept, &mut cut] {
                let mut values = fastrand::Rng::with_seed(row_seed);
                for column in builder.columns_mut() {
                    fill(column, &mut values, false);
                }
            }
        }
        assert_eq!(kept.finish().unwrap(), cut.finish().unwrap(), "seed {seed}");
    }
}

#[test]
fn a_builder_begins_anew_after_a_batch_and_keeps_nulls_apart() {
    let schema = Schema { columns: vec![column("t", T::VarChar(None))] };
    let mut rows = RowsBuilder::new(&schema);
    for expected in [Some("first"), None] {
        match expected {
            Some(text) => rows.column_mut(0).unwrap().append(Scalar::Text(text)).unwrap(),
            None => rows.column_mut(0).unwrap().append_null(),
        }
        let batch = rows.finish().unwrap();
        let texts = batch.column(0).as_string::<i32>();
        assert_eq!(texts.iter().collect::<Vec<_>>(), [expected]);
    }
    assert_eq!(rows.finish().unwrap().num_rows(), 0);
}

#[test]
fn physical_columns_may_be_ahead_of_metadata_columns() {
    let schema = Schema { columns: vec![meta("id", T::VarChar(None)), column("n", T::Int)] };
    let mut rows = RowsBuilder::new(&schema);
    for n in 0..2 {
        rows.column_mut(1).unwrap().append(Scalar::Int32(n)).unwrap();
        assert_eq!(rows.rows(), n as usize);
        rows.append_meta(0, &MetaValue::Text(Arc::from("m"))).unwrap();
    }
    rows.column_mut(1).unwrap().append(Scalar::Int32(9)).unwrap();
    rows.truncate(rows.rows());
    assert_eq!(rows.finish().unwrap().num_rows(), 2);
    rows.column_mut(1).unwrap().append(Scalar::Int32(9)).unwrap();
    assert!(rows.finish().unwrap_err().to_string().contains("column n has 1 rows"));
}

#[test]
fn metadata_values_are_cast_to_their_columns() {
    let types = [T::Timestamp(3), T::TimestampLtz(9), T::BigInt, T::VarChar(None), T::Int, T::VarChar(None)];
    let columns = types.into_iter().enumerate().map(|(index, ty)| meta(&format!("c{index}"), ty)).collect();
    let mut rows = RowsBuilder::new(&Schema { columns });
    for column in 0..4 {
        rows.append_meta(column, &MetaValue::Millis(1_500)).unwrap();
    }
    rows.append_meta(4, &MetaValue::Integer(-7)).unwrap();
    rows.append_meta(5, &MetaValue::Integer(8)).unwrap();
    let batch = rows.finish().unwrap();
    assert_eq!(batch.column(0).as_primitive::<TimestampMicrosecondType>().value(0), 1_500_000);
    assert_eq!(batch.column(1).as_primitive::<TimestampNanosecondType>().value(0), 1_500_000_000);
    assert_eq!(batch.column(2).as_primitive::<arrow_array::types::Int64Type>().value(0), 1_500);
    assert_eq!(batch.column(3).as_string::<i32>().value(0), "1970-01-01 00:00:01.500");
    assert_eq!(batch.column(4).as_primitive::<arrow_array::types::Int32Type>().value(0), -7);
    assert_eq!(batch.column(5).as_string::<i32>().value(0), "8");
}

#[test]
fn a_map_of_metadata_is_a_row_of_a_map_column() {
    let text = || Box::new(nullable(T::VarChar(None)));
    let mut rows = RowsBuilder::new(&Schema { columns: vec![meta("m", T::Map(text(), text())), meta("n", T::Int)] });
    let map = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        MetaValue::Map(Arc::new(pairs.collect()))
    };
    for pairs in [&[("b", "2"), ("a", "1")][..], &[], &[("c", "")]] {
        rows.append_meta(0, &map(pairs)).unwrap();
        rows.append_meta(1, &MetaValue::Integer(1)).unwrap();
    }
    assert!(rows.append_meta(1, &map(&[])).unwrap_err().contains("a map cannot be held as"));
    let batch = rows.finish().unwrap();
    let column = batch.column(0).as_map();
    let lengths: Vec<_> = (0..3).map(|row| column.value_length(row)).collect();
    assert_eq!(lengths, [2, 0, 1]);
    assert_eq!(column.keys().as_string::<i32>().value(0), "a", "in order");
}

#[test]
fn a_metadata_value_that_does_not_fit_is_refused_and_appends_nothing() {
    let mut strict = meta("s", T::VarChar(None));
    strict.ty.nullable = false;
    let columns = vec![meta("n", T::TimestampLtz(9)), meta("i", T::Int), strict];
    let mut rows = RowsBuilder::new(&Schema { columns });
    assert!(rows.append_meta(0, &MetaValue::Millis(i64::MAX)).unwrap_err().starts_with("column n: "));
    assert!(rows.append_meta(1, &MetaValue::Integer(1 << 40)).unwrap_err().contains("out of range for INT"));
    assert!(rows.append_meta(1, &MetaValue::Text(Arc::from("x"))).is_err());
    assert!(rows.append_meta(2, &MetaValue::Null).unwrap_err().contains("NOT NULL"));
    assert!(rows.append_meta(3, &MetaValue::Null).is_err());
    assert_eq!(rows.finish().unwrap().num_rows(), 0);
}

#[test]
fn what_is_not_of_the_type_or_not_complete_is_an_error() {
    let mut rows = RowsBuilder::new(&all_types());
    let columns = rows.columns_mut();
    assert_eq!(columns[0].append(Scalar::Int32(1)), Err(ColumnError::WrongType));
    assert_eq!(columns[0].close(), Err(ColumnError::WrongType));
    let (keys, _) = columns[15].entries_mut().unwrap();
    keys.append(Scalar::Text("k")).unwrap();
    assert_eq!(columns[15].close(), Err(ColumnError::Incomplete));
    assert_eq!(columns[16].close(), Err(ColumnError::Incomplete));
    rows.truncate(0);
    assert_eq!(rows.finish().unwrap().num_rows(), 0);
}
