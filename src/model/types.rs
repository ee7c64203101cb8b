//! The types of columns, as in a `CREATE TABLE` of Flink SQL, and what they are in Arrow.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit};

/// A type without its nullability. Lengths and precisions are those of the declaration, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogicalType {
    /// BOOLEAN
    Boolean,
    /// TINYINT, 8 bits
    TinyInt,
    /// SMALLINT, 16 bits
    SmallInt,
    /// INT or INTEGER, 32 bits
    Int,
    /// BIGINT, 64 bits
    BigInt,
    /// FLOAT, 32 bits
    Float,
    /// DOUBLE, 64 bits
    Double,
    /// DECIMAL(precision 1..=38, scale 0..=precision); default (10, 0)
    Decimal(u8, u8),
    /// CHAR(n); default 1. Formats do not pad or truncate.
    Char(u32),
    /// VARCHAR(n), or STRING without a length
    VarChar(Option<u32>),
    /// BINARY(n); default 1
    Binary(u32),
    /// VARBINARY(n), or BYTES without a length
    VarBinary(Option<u32>),
    /// DATE
    Date,
    /// TIME(precision 0..=9); default 0. Held in milliseconds, as Flink does.
    Time(u8),
    /// TIMESTAMP(precision 0..=9); default 6
    Timestamp(u8),
    /// TIMESTAMP_LTZ(precision 0..=9); default 6. An instant, shown in UTC.
    TimestampLtz(u8),
    /// ARRAY<T>
    Array(Box<ColumnType>),
    /// MAP<K, V>
    Map(Box<ColumnType>, Box<ColumnType>),
    /// ROW<name T, ...>
    Row(Vec<Field>),
}

/// A type and whether null is allowed (the default).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// The type.
    pub logical: LogicalType,
    /// Not declared NOT NULL.
    pub nullable: bool,
}

/// A field of a ROW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name, in exact case.
    pub name: String,
    /// Its type.
    pub ty: ColumnType,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, in exact case.
    pub name: String,
    /// Its type.
    pub ty: ColumnType,
    /// For `METADATA [FROM 'key']`: the key it is filled from. `None`: a physical column, read from the body.
    pub metadata: Option<String>,
    /// `VIRTUAL`: read, but not part of the schema of a sink.
    pub is_virtual: bool,
}

/// The columns of a table, in the order of their declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The columns.
    pub columns: Vec<Column>,
}

/// Why a type's text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct TypeError {
    /// Bytes from the beginning of the text.
    pub offset: usize,
    /// Length of what was found there, in bytes.
    pub length: usize,
    /// What stands there, quoted, or `the end`.
    pub found: String,
    /// What could stand there.
    pub expected: String,
    /// The nearest valid word, if one is near.
    pub nearest: Option<String>,
}

impl Schema {
    /// The schema of the batches that carry these columns, metadata columns included.
    ///
    /// Every column is nullable in Arrow: NOT NULL is checked by the decoder, per message, so that one bad row
    /// cannot fail a batch.
    pub fn to_arrow(&self) -> SchemaRef {
        let fields: Fields = self.columns.iter().map(|column| arrow_field(&column.name, &column.ty.logical)).collect();
        Arc::new(ArrowSchema::new(fields))
    }
}

impl LogicalType {
    /// The Arrow type that holds it.
    ///
    /// Timestamps are held in microseconds up to precision 6 and in nanoseconds above: the years 0001 to 9999 of
    /// SQL do not fit 64 bits of nanoseconds, so only a column that asks for more than six digits pays with range
    /// (1677 to 2262).
    pub fn to_arrow(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            // The scale is at most 38, so it fits.
            Self::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale as i8),
            Self::Char(_) | Self::VarChar(_) => DataType::Utf8,
            Self::Binary(_) | Self::VarBinary(_) => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time(_) => DataType::Time32(TimeUnit::Millisecond),
            Self::Timestamp(precision) => DataType::Timestamp(time_unit(*precision), None),
            Self::TimestampLtz(precision) => DataType::Timestamp(time_unit(*precision), Some("UTC".into())),
            Self::Array(element) => DataType::List(Arc::new(arrow_field("item", &element.logical))),
            Self::Map(key, value) => {
                let key = ArrowField::new("key", key.logical.to_arrow(), false);
                let entries = Fields::from(vec![key, arrow_field("value", &value.logical)]);
                let entries = ArrowField::new("entries", DataType::Struct(entries), false);
                DataType::Map(Arc::new(entries), false)
            }
            Self::Row(fields) => {
                DataType::Struct(fields.iter().map(|field| arrow_field(&field.name, &field.ty.logical)).collect())
            }
        }
    }
}

fn arrow_field(name: &str, logical: &LogicalType) -> ArrowField {
    ArrowField::new(name, logical.to_arrow(), true)
}

const fn time_unit(precision: u8) -> TimeUnit {
    if precision <= 6 { TimeUnit::Microsecond } else { TimeUnit::Nanosecond }
}
