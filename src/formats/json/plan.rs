//! What a schema means to the decoder, worked out once.

use std::{cell::Cell, collections::HashMap};

use super::time::Unit;
use crate::model::{ColumnType, LogicalType, Schema};

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
    Time,
    Timestamp {
        zoned: bool,
        unit: Unit,
    },
    Array(Box<Node>),
    /// The keys are texts.
    Map(Box<Node>),
    Row(RowPlan),
}

/// How an object is read into columns.
#[derive(Debug)]
pub(super) struct RowPlan {
    pub(super) fields: Vec<FieldPlan>,
    by_name: HashMap<String, usize>,
    /// The field that was found last at the beginning, and behind each field.
    next: Vec<Cell<usize>>,
}

#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) name: String,
    /// Index of the column in its builder: physical columns need not be next to each other.
    pub(super) column: usize,
    pub(super) node: Node,
}

impl RowPlan {
    /// The plan of a table's physical columns. The error names a column that JSON cannot hold.
    pub(super) fn of_schema(schema: &Schema) -> Result<Self, String> {
        let physical = schema.columns.iter().enumerate().filter(|(_, column)| column.metadata.is_none());
        Self::new(physical.map(|(index, column)| (index, column.name.as_str(), &column.ty)))
    }

    fn new<'a>(fields: impl Iterator<Item = (usize, &'a str, &'a ColumnType)>) -> Result<Self, String> {
        let fields = fields
            .map(|(column, name, ty)| {
                let node = Node::new(ty).map_err(|why| format!("{name}: {why}"))?;
                Ok(FieldPlan { name: name.to_owned(), column, node })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let by_name = fields.iter().enumerate().map(|(index, field)| (field.name.clone(), index)).collect();
        let next = (0..=fields.len()).map(Cell::new).collect();
        Ok(Self { fields, by_name, next })
    }

    /// Which field a name is that stands behind another field, or at the beginning. A producer writes its fields in one
    /// order, so the one is tried first that stood there before.
    pub(super) fn find(&self, name: &str, behind: Option<usize>) -> Option<usize> {
        let next = self.next.get(behind.map_or(0, |field| field + 1))?;
        match self.fields.get(next.get()) {
            Some(field) if field.name == name => Some(next.get()),
            _ => self.by_name.get(name).copied().inspect(|found| next.set(*found)),
        }
    }
}

impl Node {
    fn new(ty: &ColumnType) -> Result<Self, String> {
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
            LogicalType::Time(_) => Kind::Time,
            LogicalType::Timestamp(precision) => Kind::Timestamp { zoned: false, unit: unit(*precision) },
            LogicalType::TimestampLtz(precision) => Kind::Timestamp { zoned: true, unit: unit(*precision) },
            LogicalType::Array(element) => Kind::Array(Box::new(Self::new(element)?)),
            LogicalType::Map(key, value) => {
                super::check_map_key(key)?;
                Kind::Map(Box::new(Self::new(value)?))
            }
            LogicalType::Row(fields) => Kind::Row(RowPlan::new(
                fields.iter().enumerate().map(|(index, field)| (index, field.name.as_str(), &field.ty)),
            )?),
        };
        Ok(Self { kind, nullable: ty.nullable, expected: expected(&ty.logical) })
    }
}

/// The type and, where it is not plain, how it is written.
fn expected(logical: &LogicalType) -> String {
    match logical {
        LogicalType::Boolean => "BOOLEAN".into(),
        LogicalType::TinyInt => "TINYINT".into(),
        LogicalType::SmallInt => "SMALLINT".into(),
        LogicalType::Int => "INT".into(),
        LogicalType::BigInt => "BIGINT".into(),
        LogicalType::Float => "FLOAT".into(),
        LogicalType::Double => "DOUBLE".into(),
        LogicalType::Decimal(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        LogicalType::Char(_) | LogicalType::VarChar(_) => "STRING".into(),
        LogicalType::Binary(_) | LogicalType::VarBinary(_) => "BYTES as base64".into(),
        LogicalType::Date => "DATE as yyyy-MM-dd".into(),
        LogicalType::Time(_) => "TIME as HH:mm:ss".into(),
        LogicalType::Timestamp(precision) => format!("TIMESTAMP({precision})"),
        LogicalType::TimestampLtz(precision) => format!("TIMESTAMP_LTZ({precision})"),
        LogicalType::Array(_) => "ARRAY".into(),
        LogicalType::Map(..) => "MAP".into(),
        LogicalType::Row(_) => "ROW".into(),
    }
}
