//! Values in Avro's JSON form: as `avro.encoding: json` has them in messages. A value that may be null stands in an object
//! with the name of its type, and bytes are a text of the characters U+0000 to U+00FF.

use serde_json::{Map, Value};

use super::{
    binary::{Raw, scalar},
    plan::{Plan, Record, Wire},
};
use crate::{
    formats::columnar::Failure,
    model::{ColumnBuilder, ColumnType, Field, LogicalType, Scalar},
};

/// Reads a body of one record. Answers whether something follows it.
pub(super) fn record(record: &Record, columns: Vec<(&Field, &mut ColumnBuilder)>, body: &[u8]) -> Result<bool, String> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(Value::Object(object))) => object,
        Some(Ok(_)) => return Err("the body is JSON, but no object".into()),
        Some(Err(error)) => return Err(format!("the body is no JSON: {error}")),
        None => return Err("the body is empty".into()),
    };
    record_into(record, columns, &value).map_err(|(name, failure)| failure.of_column(&name))?;
    let rest = body.get(values.byte_offset()..).unwrap_or_default();
    Ok(rest.iter().any(|byte| !byte.is_ascii_whitespace()))
}

fn record_into(
    record: &Record,
    mut columns: Vec<(&Field, &mut ColumnBuilder)>,
    object: &Map<String, Value>,
) -> Result<(), (String, Failure)> {
    for field in &record.fields {
        let Some((index, plan)) = &field.to else { continue };
        let Some((of, column)) = columns.get_mut(*index) else { continue };
        let value = object.get(&field.name).ok_or_else(|| (field.name.clone(), Failure::new("the body lacks it")))?;
        read(plan, &of.ty, column, value).map_err(|failure| (field.name.clone(), failure))?;
    }
    Ok(())
}

fn read(plan: &Plan, ty: &ColumnType, column: &mut ColumnBuilder, value: &Value) -> Result<(), Failure> {
    let expected = |what: &str| Failure::new(format!("expected {what}"));
    match (plan, value) {
        (Plan::Null, Value::Null) if ty.nullable => column.append_null(),
        (Plan::Null, _) => return Err(if ty.nullable { expected("null") } else { Failure::null() }),
        (Plan::Union(branches), _) => {
            let (name, value) = match value {
                Value::Null => ("null", value),
                Value::Object(object) if object.len() == 1 => {
                    object.iter().next().map_or(("", value), |(name, value)| (name.as_str(), value))
                }
                _ => return Err(expected("null, or an object with the name of the type")),
            };
            let branch = branches.iter().find(|(known, _)| known == name);
            let names = || branches.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let (_, plan) = branch.ok_or_else(|| expected(&format!("one of {}", names())))?;
            return read(plan.as_ref().map_err(|why| Failure::new(why.clone()))?, ty, column, value);
        }
        (Plan::Scalar(wire, convert), _) => {
            let bytes;
            let raw = match (wire, value) {
                (Wire::Boolean, Value::Bool(value)) => Raw::Boolean(*value),
                (Wire::Int | Wire::Long, Value::Number(number)) => {
                    Raw::Integer(number.as_i64().ok_or_else(|| expected("a whole number of 64 bits"))?)
                }
                (Wire::Float, _) => Raw::Float(float(value).ok_or_else(|| expected("a number"))? as f32),
                (Wire::Double, _) => Raw::Double(float(value).ok_or_else(|| expected("a number"))?),
                (Wire::String | Wire::Enum(_), Value::String(text)) => Raw::Text(text),
                (Wire::Bytes | Wire::Fixed(_), Value::String(text)) => {
                    let latin: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
                    bytes = latin.ok_or_else(|| expected("characters from U+0000 to U+00FF"))?;
                    Raw::Bytes(&bytes)
                }
                _ => return Err(expected(&ty.logical.to_string())),
            };
            column.append(scalar(&raw, *convert, &ty.logical)?).map_err(|error| error.to_string())?;
        }
        (Plan::Array(items), Value::Array(values)) => {
            let LogicalType::Array(element) = &ty.logical else { return Err(expected("an array")) };
            let builder = column.items_mut().ok_or_else(|| expected("an array"))?;
            for (index, value) in values.iter().enumerate() {
                read(items, element, builder, value).map_err(|failure| failure.in_element(index))?;
            }
            column.close().map_err(|error| error.to_string())?;
        }
        (Plan::Map(values), Value::Object(object)) => {
            let LogicalType::Map(_, of) = &ty.logical else { return Err(expected("a map")) };
            let (keys, builder) = column.entries_mut().ok_or_else(|| expected("a map"))?;
            for (index, (key, value)) in object.iter().enumerate() {
                keys.append(Scalar::Text(key)).map_err(|error| error.to_string())?;
                read(values, of, builder, value).map_err(|failure| failure.in_element(index))?;
            }
            column.close().map_err(|error| error.to_string())?;
        }
        (Plan::Record(record), Value::Object(object)) => {
            let LogicalType::Row(fields) = &ty.logical else { return Err(expected("a record")) };
            let builders = column.fields_mut().ok_or_else(|| expected("a record"))?;
            record_into(record, fields.iter().zip(builders).collect(), object)
                .map_err(|(name, failure)| failure.in_field(&name))?;
            column.close().map_err(|error| error.to_string())?;
        }
        (Plan::Array(_) | Plan::Map(_) | Plan::Record(_), _) => return Err(expected(&ty.logical.to_string())),
    }
    Ok(())
}

/// A number, or one of the three texts that stand for what is none.
fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" | "INF" => Some(f64::INFINITY),
            "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}
