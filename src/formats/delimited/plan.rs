//! What a schema means to the format, worked out once.

use std::fmt;

use crate::{
    formats::time::Unit,
    model::{Column, LogicalType, Schema},
};

/// What bodies are.
#[derive(Debug)]
pub(super) enum Plan {
    /// The value of the one column, which is at this index.
    Bytes(usize),
    /// Lines with a field for each of these.
    Lines(Vec<ColumnPlan>),
}

/// A physical column.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub(super) name: String,
    /// Index of the column in its builder.
    pub(super) index: usize,
    pub(super) nullable: bool,
    pub(super) kind: Kind,
    /// For the operator, as in `expected INT`.
    pub(super) expected: String,
}

/// How a field is read.
#[derive(Debug)]
pub(super) enum Kind {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Text,
    Date,
    /// In milliseconds, cut to steps of this many.
    Time {
        step: i32,
    },
    Timestamp {
        zoned: bool,
        unit: Unit,
    },
}

/// A column that the format cannot hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfit {
    /// Its name.
    pub column: String,
    reason: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.reason)
    }
}

/// The first physical column that the format cannot hold.
pub fn unfit(schema: &Schema) -> Option<Unfit> {
    Plan::new(schema).err()
}

impl Plan {
    pub(super) fn new(schema: &Schema) -> Result<Self, Unfit> {
        let is_bytes =
            |column: &Column| matches!(column.ty.logical, LogicalType::Binary(_) | LogicalType::VarBinary(_));
        let physical: Vec<_> =
            schema.columns.iter().enumerate().filter(|(_, column)| column.metadata.is_none()).collect();
        if let [(index, column)] = physical[..]
            && is_bytes(column)
        {
            return Ok(Self::Bytes(index));
        }
        let plan = |(index, column): (usize, &Column)| {
            let unfit = |reason| Unfit { column: column.name.clone(), reason };
            let logical = &column.ty.logical;
            if is_bytes(column) {
                let reason = format!("{logical} is a whole body, which no other column can be a part of");
                return Err(unfit(reason));
            }
            let kind = kind(logical).ok_or_else(|| unfit(format!("format delimited has no {logical}")))?;
            let (name, expected) = (column.name.clone(), expected(logical));
            Ok(ColumnPlan { name, index, nullable: column.ty.nullable, kind, expected })
        };
        physical.into_iter().map(plan).collect::<Result<_, _>>().map(Self::Lines)
    }
}

fn kind(logical: &LogicalType) -> Option<Kind> {
    let unit = |precision: u8| if precision <= 6 { Unit::Micros } else { Unit::Nanos };
    Some(match logical {
        LogicalType::Boolean => Kind::Boolean,
        LogicalType::TinyInt => Kind::TinyInt,
        LogicalType::SmallInt => Kind::SmallInt,
        LogicalType::Int => Kind::Int,
        LogicalType::BigInt => Kind::BigInt,
        LogicalType::Float => Kind::Float,
        LogicalType::Double => Kind::Double,
        LogicalType::Decimal(precision, scale) => Kind::Decimal { precision: *precision, scale: *scale },
        LogicalType::Char(_) | LogicalType::VarChar(_) => Kind::Text,
        LogicalType::Date => Kind::Date,
        LogicalType::Time(precision @ 0..=3) => Kind::Time { step: 10_i32.pow(3 - u32::from(*precision)) },
        LogicalType::Timestamp(precision) => Kind::Timestamp { zoned: false, unit: unit(*precision) },
        LogicalType::TimestampLtz(precision) => Kind::Timestamp { zoned: true, unit: unit(*precision) },
        LogicalType::Time(_)
        | LogicalType::Binary(_)
        | LogicalType::VarBinary(_)
        | LogicalType::Array(_)
        | LogicalType::Map(..)
        | LogicalType::Row(_) => return None,
    })
}

/// The type and, where it is not plain, how it is written.
fn expected(logical: &LogicalType) -> String {
    let form = match logical {
        LogicalType::Date => " as yyyy-MM-dd",
        LogicalType::Time(_) => " in milliseconds since midnight",
        LogicalType::Timestamp(_) => " as yyyy-MM-dd HH:mm:ss[.fraction] or milliseconds",
        LogicalType::TimestampLtz(_) => " as yyyy-MM-dd HH:mm:ss[.fraction]Z or milliseconds",
        _ => "",
    };
    format!("{logical}{form}")
}
