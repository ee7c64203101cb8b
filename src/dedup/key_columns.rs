//! From the rows of a batch to the fingerprints of their primary keys.

use arrow_array::{Array, BinaryArray, BooleanArray, RecordBatch, StringArray, cast::AsArray};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use xxhash_rust::xxh3::xxh3_128;

use crate::model::{Fault, FaultKind, Fingerprint, Schema, SourceIdentity};

/// The columns that a primary key is made of.
///
/// A fingerprint covers that it is one of a key, the source, the names and types of the columns, and the values, each
/// with its length before it. So after a change of the key's columns no key of before is taken for one of now. Floats
/// are compared by their bits.
#[derive(Debug, Clone)]
pub struct KeyColumns {
    columns: Vec<usize>,
    /// Stands for everything but the values.
    head: Fingerprint,
}

/// The values of one column.
enum Values<'a> {
    Fixed(Buffer, usize),
    Boolean(&'a BooleanArray),
    Text(&'a StringArray),
    Binary(&'a BinaryArray),
}

impl Values<'_> {
    fn append(&self, row: usize, to: &mut Vec<u8>) {
        let mut part = |bytes: &[u8]| {
            to.extend((bytes.len() as u64).to_le_bytes());
            to.extend(bytes);
        };
        match self {
            Self::Fixed(bytes, width) => part(bytes.get(row * width..(row + 1) * width).unwrap_or_default()),
            Self::Boolean(values) => part(&[values.value(row).into()]),
            Self::Text(values) => part(values.value(row).as_bytes()),
            Self::Binary(values) => part(values.value(row)),
        }
    }
}

impl KeyColumns {
    /// Those of a source's schema at these indices, in this order.
    pub fn new(source: &SourceIdentity, schema: &Schema, columns: &[usize]) -> Self {
        let declared: Vec<(&str, String)> = columns
            .iter()
            .filter_map(|column| schema.columns.get(*column))
            .map(|column| (column.name.as_str(), column.ty.logical.to_string()))
            .collect();
        let of_columns = declared.iter().flat_map(|(name, ty)| [*name, ty.as_str()]);
        let head = Fingerprint::of_parts(["key", source.0.as_str()].into_iter().chain(of_columns));
        Self { columns: columns.to_vec(), head }
    }

    /// Of each row the fingerprint of its key; `None`: one of the key's columns is null there.
    ///
    /// # Errors
    /// Only a bug: a column that is not there, or is nested.
    pub fn fingerprints(&self, rows: &RecordBatch) -> Result<Vec<Option<Fingerprint>>, Fault> {
        let arrays: Vec<&dyn Array> =
            self.columns.iter().filter_map(|column| rows.columns().get(*column)).map(AsRef::as_ref).collect();
        if arrays.len() < self.columns.len() {
            return Err(Fault::restart(FaultKind::Bug, "a row without a column of its primary key"));
        }
        let values = arrays.iter().map(|array| values(*array)).collect::<Result<Vec<_>, _>>()?;
        let mut bytes = Vec::new();
        let fingerprint = |row| {
            if arrays.iter().any(|array| array.is_null(row)) {
                return None;
            }
            bytes.clear();
            bytes.extend(self.head.0.to_le_bytes());
            values.iter().for_each(|values| values.append(row, &mut bytes));
            Some(Fingerprint(xxh3_128(&bytes)))
        };
        Ok((0..rows.num_rows()).map(fingerprint).collect())
    }
}

fn values(array: &dyn Array) -> Result<Values<'_>, Fault> {
    Ok(match array.data_type() {
        DataType::Boolean => Values::Boolean(array.as_boolean()),
        DataType::Utf8 => Values::Text(array.as_string()),
        DataType::Binary => Values::Binary(array.as_binary()),
        other => {
            let data = array.to_data();
            let (Some(width), [buffer]) = (other.primitive_width(), data.buffers()) else {
                return Err(Fault::restart(FaultKind::Bug, format!("a column of the type {other} in a primary key")));
            };
            Values::Fixed(buffer.slice(data.offset() * width), width)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use arrow_array::{ArrayRef, Decimal128Array, Int64Array, TimestampMicrosecondArray};

    use super::*;
    use crate::model::{Column, ColumnType};

    fn schema(columns: &[(&str, &str)]) -> Schema {
        let column = |(name, ty): &(&str, &str)| Column {
            name: (*name).to_owned(),
            ty: ColumnType::parse(ty).unwrap(),
            metadata: None,
            is_virtual: false,
        };
        Schema { columns: columns.iter().map(column).collect() }
    }

    fn of(columns: &[(&str, &str)], key: &[usize], arrays: Vec<ArrayRef>) -> Vec<Option<Fingerprint>> {
        of_source("queue a", columns, key, arrays)
    }

    fn of_source(
        source: &str,
        columns: &[(&str, &str)],
        key: &[usize],
        arrays: Vec<ArrayRef>,
    ) -> Vec<Option<Fingerprint>> {
        let schema = schema(columns);
        let rows = RecordBatch::try_new(schema.to_arrow(), arrays).unwrap();
        KeyColumns::new(&SourceIdentity(source.to_owned()), &schema, key).fingerprints(&rows).unwrap()
    }

    fn numbers(numbers: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(numbers.to_vec()))
    }

    fn texts(texts: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    #[test]
    fn equal_values_are_one_key_and_different_ones_are_not() {
        let found = of(&[("n", "BIGINT")], &[0], vec![numbers(&[Some(1), Some(2), Some(1), Some(1 << 40)])]);
        assert_eq!(found[0], found[2]);
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), 3);
    }

    #[test]
    fn a_null_in_any_column_of_the_key_is_no_key_and_one_beside_it_does_not_matter() {
        let columns = [("a", "BIGINT"), ("b", "BIGINT"), ("c", "BIGINT")];
        let arrays = vec![numbers(&[Some(1), None, Some(1)]), numbers(&[None, Some(1), Some(1)]), numbers(&[None; 3])];
        let found = of(&columns, &[0, 1], arrays);
        assert!(found[0].is_none() && found[1].is_none() && found[2].is_some(), "{found:?}");
    }

    #[test]
    fn where_one_value_ends_and_the_next_begins_is_part_of_the_key() {
        let found =
            of(&[("a", "STRING"), ("b", "STRING")], &[0, 1], vec![texts(&["ab", "a", ""]), texts(&["c", "bc", "abc"])]);
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), 3);
    }

    #[test]
    fn the_source_the_names_the_types_and_the_order_of_the_columns_are_part_of_the_key() {
        let one = |source, columns: &[(&str, &str)], key: &[usize], n| {
            of_source(source, columns, key, vec![numbers(&[Some(1)]), numbers(&[Some(n)])])[0]
        };
        let (a, b) = (("a", "BIGINT"), ("b", "BIGINT"));
        let all = [
            one("queue", &[a, b], &[0], 1),
            one("queue 2", &[a, b], &[0], 1),
            one("queue", &[("c", "BIGINT"), b], &[0], 1),
            one("queue", &[a, b], &[0, 1], 1),
            one("queue", &[a, b], &[1, 0], 1),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert_eq!(one("queue", &[a, b], &[0], 1), one("queue", &[a, b], &[0], 2), "a column beside the key");
        let typed = |ty| {
            let array = TimestampMicrosecondArray::from(vec![7]);
            of(&[("t", ty)], &[0], vec![Arc::new(array)])[0]
        };
        assert_ne!(typed("TIMESTAMP(3)"), typed("TIMESTAMP(6)"));
        let not_null = of(&[("a", "BIGINT NOT NULL")], &[0], vec![numbers(&[Some(1)])]);
        assert_eq!(not_null, of(&[a], &[0], vec![numbers(&[Some(1)])]), "NOT NULL changes no value");
    }

    #[test]
    fn every_type_that_is_not_nested_makes_keys_and_a_slice_of_rows_makes_the_same() {
        let decimals = Decimal128Array::from(vec![5, 6, 7]).with_precision_and_scale(10, 2).unwrap();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![true, false, true])),
            Arc::new(decimals),
            Arc::new(BinaryArray::from(vec![&b"x"[..], b"", b"y"])),
            numbers(&[Some(-1), Some(0), Some(1)]),
            texts(&["", "a", "b"]),
        ];
        let schema =
            schema(&[("a", "BOOLEAN"), ("b", "DECIMAL(10, 2)"), ("c", "BYTES"), ("d", "BIGINT"), ("e", "STRING")]);
        let rows = RecordBatch::try_new(schema.to_arrow(), arrays).unwrap();
        for key in (0..5).map(|column| vec![column]).chain([vec![0, 1, 2, 3, 4]]) {
            let columns = KeyColumns::new(&SourceIdentity("q".to_owned()), &schema, &key);
            let whole = columns.fingerprints(&rows).unwrap();
            assert_eq!(columns.fingerprints(&rows.slice(1, 2)).unwrap(), whole[1..], "{key:?}");
            let distinct = whole.iter().flatten().collect::<HashSet<_>>().len();
            assert_eq!(distinct, if key == [0] { 2 } else { 3 }, "{key:?}");
        }
    }
}
