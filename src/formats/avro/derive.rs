//! The schema of Avro that Flink derives from the columns of a table. Branches, names and logical types are as its
//! `AvroSchemaConverter` has them: a nullable type is a union whose first branch is null, and a record is named after
//! the way to it.

use serde_json::{Value, json};

use crate::model::{ColumnType, Field, LogicalType as T};

/// The name of the outermost record, and the namespace of all.
const RECORD: &str = "record";
pub(super) const NAMESPACE: &str = "org.apache.flink.avro.generated";

/// A column that Avro cannot hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// The column.
    pub(super) column: String,
    /// Why.
    pub(super) why: String,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "column {}: {}", self.column, self.why)
    }
}

/// The schema of a record with these columns.
pub(super) fn schema<'a>(columns: impl Iterator<Item = &'a Field>, legacy: bool) -> Result<Value, Unfit> {
    let mut fields = Vec::new();
    for column in columns {
        let derived = field(&column.name, &column.ty, RECORD, legacy);
        fields.push(derived.map_err(|why| Unfit { column: column.name.clone(), why })?);
    }
    Ok(json!({ "type": "record", "name": RECORD, "namespace": NAMESPACE, "fields": fields }))
}

fn field(name: &str, ty: &ColumnType, record: &str, legacy: bool) -> Result<Value, String> {
    if !is_name(name) {
        return Err(format!("`{name}` is no name in Avro, which has letters of ASCII, digits and `_` only"));
    }
    let derived = typed(ty, &format!("{record}_{name}"), legacy)?;
    Ok(match ty.nullable {
        true => json!({ "name": name, "type": derived, "default": null }),
        false => json!({ "name": name, "type": derived }),
    })
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn typed(ty: &ColumnType, record: &str, legacy: bool) -> Result<Value, String> {
    let plain = logical(&ty.logical, record, legacy)?;
    Ok(if ty.nullable { json!(["null", plain]) } else { plain })
}

fn logical(ty: &T, record: &str, legacy: bool) -> Result<Value, String> {
    let annotated = |of: &str, logical: &str| Ok(json!({ "type": of, "logicalType": logical }));
    Ok(match ty {
        T::Boolean => json!("boolean"),
        T::TinyInt | T::SmallInt | T::Int => json!("int"),
        T::BigInt => json!("long"),
        T::Float => json!("float"),
        T::Double => json!("double"),
        T::Char(_) | T::VarChar(_) => json!("string"),
        T::Binary(_) | T::VarBinary(_) => json!("bytes"),
        T::Decimal(precision, scale) => {
            json!({ "type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale })
        }
        T::Date => return annotated("int", "date"),
        T::Time(0..=3) => return annotated("int", "time-millis"),
        T::Time(_) => return Err(format!("format avro has TIME(0) to TIME(3), not {ty}")),
        T::Timestamp(0..=3) if legacy => return annotated("long", "timestamp-millis"),
        T::Timestamp(_) if legacy => {
            return Err(format!(
                "format avro has TIMESTAMP(0) to TIMESTAMP(3), not {ty}, unless avro.timestamp_mapping.legacy is false"
            ));
        }
        T::TimestampLtz(_) if legacy => {
            return Err(format!("format avro has no {ty} unless avro.timestamp_mapping.legacy is false"));
        }
        T::Timestamp(0..=3) => return annotated("long", "local-timestamp-millis"),
        T::Timestamp(4..=6) => return annotated("long", "local-timestamp-micros"),
        T::TimestampLtz(0..=3) => return annotated("long", "timestamp-millis"),
        T::TimestampLtz(4..=6) => return annotated("long", "timestamp-micros"),
        T::Timestamp(_) | T::TimestampLtz(_) => return Err(format!("format avro has up to six digits, not {ty}")),
        T::Array(element) => json!({ "type": "array", "items": typed(element, record, legacy)? }),
        T::Map(key, value) => match &key.logical {
            T::Char(_) | T::VarChar(_) => json!({ "type": "map", "values": typed(value, record, legacy)? }),
            other => return Err(format!("format avro has maps with keys of text, not {other}")),
        },
        T::Row(parts) => {
            let fields = parts.iter().map(|part| field(&part.name, &part.ty, record, legacy));
            let fields = fields.collect::<Result<Vec<_>, _>>()?;
            json!({ "type": "record", "name": record, "fields": fields })
        }
    })
}
