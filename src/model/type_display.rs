//! Types as Flink writes them.

use std::fmt;

use super::{ColumnType, LogicalType};

/// The type in Flink SQL, with every length and precision.
impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::VarChar(None) => f.write_str("STRING"),
            Self::VarChar(Some(length)) => write!(f, "VARCHAR({length})"),
            Self::Binary(length) => write!(f, "BINARY({length})"),
            Self::VarBinary(None) => f.write_str("BYTES"),
            Self::VarBinary(Some(length)) => write!(f, "VARBINARY({length})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(precision) => write!(f, "TIME({precision})"),
            Self::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            Self::TimestampLtz(precision) => write!(f, "TIMESTAMP_LTZ({precision})"),
            Self::Array(element) => write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                for (number, field) in fields.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    write!(f, "{comma}`{}` {}", field.name.replace('`', "``"), field.ty)?;
                }
                f.write_str(">")
            }
        }
    }
}

/// The type in Flink SQL, with NOT NULL where it is.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.logical, if self.nullable { "" } else { " NOT NULL" })
    }
}
