//! What a schema means to the format, worked out once.

use std::fmt;

use crate::{
    formats::time::Unit,
    model::{Column, ColumnType, LogicalType, Schema},
};

/// How values of one type are read.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// For the operator, as in `expected INT`.
    pub(super) expected: String,
}

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
    Bytes,
    Date,
    /// In milliseconds, cut to steps of this many.
    Time {
        step: i32,
    },
    Timestamp {
        zoned: bool,
        unit: Unit,
    },
    Array(Box<Node>),
    /// Names and types.
    Row(Vec<(String, Node)>),
}

/// A physical column.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub(super) name: String,
    /// Index of the column in its builder: physical columns need not be next to each other.
    pub(super) column: usize,
    pub(super) node: Node,
}

/// A column that CSV cannot hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) column: String,
    reason: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.reason)
    }
}

/// The first of some columns that CSV cannot hold.
pub(super) fn unfit<'a>(mut columns: impl Iterator<Item = &'a Column>) -> Option<Unfit> {
    columns.find_map(|column| {
        let reason = Node::new(&column.ty, true).err()?;
        Some(Unfit { column: column.name.clone(), reason })
    })
}

/// The plan of a table's physical columns, in the order of the fields of a row.
pub(super) fn columns(schema: &Schema) -> Result<Vec<ColumnPlan>, Unfit> {
    let physical = schema.columns.iter().enumerate().filter(|(_, column)| column.metadata.is_none());
    physical
        .map(|(index, column)| match Node::new(&column.ty, true) {
            Ok(node) => Ok(ColumnPlan { name: column.name.clone(), column: index, node }),
            Err(reason) => Err(Unfit { column: column.name.clone(), reason }),
        })
        .collect()
}

impl Node {
    /// `outermost`: not inside an ARRAY or ROW. The error says what CSV cannot hold.
    pub(super) fn new(ty: &ColumnType, outermost: bool) -> Result<Self, String> {
        let unit = |precision: u8| if precision <= 6 { Unit::Micros } else { Unit::Nanos };
        let kind = match &ty.logical {
            LogicalType::Boolean => Kind::Boolean,
            LogicalType::TinyInt => Kind::TinyInt,
            LogicalType::SmallInt => Kind::SmallInt,
            LogicalType::Int => Kind::Int,
            LogicalType::BigInt => Kind::BigInt,
            LogicalType::Float => Kind::Float,
            LogicalType::Double => Kind::Double,
            LogicalType::Decimal(precision, scale) => Kind::Decimal { precision: *precision, scale: *scale },
            LogicalType::Char(_) | LogicalType::VarChar(_) => Kind::Text,
            LogicalType::Binary(_) | LogicalType::VarBinary(_) => Kind::Bytes,
            LogicalType::Date => Kind::Date,
            LogicalType::Time(precision @ 0..=3) => Kind::Time { step: 10_i32.pow(3 - u32::from(*precision)) },
            LogicalType::Time(precision) => {
                return Err(format!("format csv has TIME(0) to TIME(3), not TIME({precision})"));
            }
            LogicalType::Timestamp(precision) => Kind::Timestamp { zoned: false, unit: unit(*precision) },
            LogicalType::TimestampLtz(precision) => Kind::Timestamp { zoned: true, unit: unit(*precision) },
            LogicalType::Map(..) => return Err("format csv has no MAP".into()),
            nested if !outermost => {
                return Err(format!("format csv has only simple types inside ARRAY and ROW, not {nested}"));
            }
            LogicalType::Array(element) => Kind::Array(Box::new(Self::new(element, false)?)),
            LogicalType::Row(fields) => {
                let fields = fields.iter().map(|field| Ok((field.name.clone(), Self::new(&field.ty, false)?)));
                Kind::Row(fields.collect::<Result<_, String>>()?)
            }
        };
        Ok(Self { kind, nullable: ty.nullable, expected: expected(&ty.logical) })
    }
}

/// The type and, where it is not plain, how it is written.
fn expected(logical: &LogicalType) -> String {
    let form = match logical {
        LogicalType::Binary(_) | LogicalType::VarBinary(_) => " as base64",
        LogicalType::Date => " as yyyy-MM-dd",
        LogicalType::Time(_) => " as HH:mm[:ss[.fraction]]",
        LogicalType::Timestamp(_) => " as yyyy-MM-dd HH:mm:ss[.fraction]",
        LogicalType::TimestampLtz(_) => " as yyyy-MM-dd HH:mm:ss[.fraction]Z",
        _ => "",
    };
    format!("{logical}{form}")
}
