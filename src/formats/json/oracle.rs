//! Random rows and documents: what is written reads back the same, and what is read agrees with a slow reader that
//! goes through `serde_json::Value`.

use std::{fmt::Write as _, str::FromStr};

use base64::Engine;
use bigdecimal::{BigDecimal, RoundingMode};
use chrono::NaiveDateTime;
use serde_json::{Map, Value, json};

use super::{
    Decoder, Encoder,
    options::*,
    tests::{nullable, options, row, schema},
};
use crate::{
    definition::Options,
    formats::{Decoder as _, Encoder as _},
    model::{ColumnBuilder, ColumnType, LogicalType as T, RowsBuilder, Scalar, Schema},
};

const STRING: T = T::VarChar(None);

fn all_types() -> Schema {
    let inner = row(vec![
        ("a", nullable(T::BigInt)),
        ("b", nullable(T::Array(Box::new(nullable(STRING))))),
        ("c", nullable(T::Double)),
    ]);
    let map = T::Map(Box::new(nullable(STRING)), Box::new(nullable(inner.clone())));
    schema(vec![
        ("boolean", nullable(T::Boolean)),
        ("tiny", nullable(T::TinyInt)),
        ("small", nullable(T::SmallInt)),
        ("int", nullable(T::Int)),
        ("big", nullable(T::BigInt)),
        ("float", nullable(T::Float)),
        ("double", nullable(T::Double)),
        ("decimal", nullable(T::Decimal(20, 4))),
        ("wide", nullable(T::Decimal(38, 0))),
        ("text \"é\"", nullable(STRING)),
        ("bytes", nullable(T::VarBinary(None))),
        ("date", nullable(T::Date)),
        ("time", nullable(T::Time(0))),
        ("timestamp", nullable(T::Timestamp(6))),
        ("instant", nullable(T::TimestampLtz(9))),
        ("array", nullable(T::Array(Box::new(nullable(map.clone()))))),
        ("map", nullable(map)),
        ("row", nullable(inner)),
    ])
}

fn random_text(random: &mut fastrand::Rng) -> String {
    (0..random.usize(..8))
        .map(|_| match random.u8(..8) {
            0 => char::from(random.u8(..0x20)),
            1 => random.choice(['"', '\\', '/', '\u{7f}', 'é', '😀', '\u{2028}']).unwrap(),
            _ => random.alphanumeric(),
        })
        .collect()
}

/// Appends a random value that the column's type can hold and JSON can carry.
fn fill(ty: &T, column: &mut ColumnBuilder, random: &mut fastrand::Rng) {
    if random.u8(..6) == 0 {
        return column.append_null();
    }
    let text = random_text(random);
    let scalar = match ty {
        T::Boolean => Scalar::Boolean(random.bool()),
        T::TinyInt => Scalar::Int8(random.i8(..)),
        T::SmallInt => Scalar::Int16(random.i16(..)),
        T::Int => Scalar::Int32(random.i32(..)),
        T::BigInt => Scalar::Int64(random.i64(..)),
        T::Float => Scalar::Float32(Some(f32::from_bits(random.u32(..))).filter(|x| !x.is_nan()).unwrap_or(f32::NAN)),
        T::Double => Scalar::Float64(Some(f64::from_bits(random.u64(..))).filter(|x| !x.is_nan()).unwrap_or(f64::NAN)),
        T::Decimal(precision, _) => {
            let limit = 10_i128.pow(random.u32(1..=u32::from(*precision)));
            Scalar::Int128(random.i128(-limit + 1..limit))
        }
        T::VarChar(_) => Scalar::Text(&text),
        T::VarBinary(_) => Scalar::Bytes(text.as_bytes()),
        T::Date => Scalar::Int32(random.i32(-719_162..2_932_897)),
        T::Time(_) => Scalar::Int32(random.i32(0..86_400) * 1000),
        T::Timestamp(_) => Scalar::Int64(random.i64(-62_135_596_800_000_000..253_402_300_800_000_000)),
        T::TimestampLtz(_) => Scalar::Int64(random.i64(..)),
        _ => {
            fill_parts(ty, column, random);
            return column.close().unwrap();
        }
    };
    column.append(scalar).unwrap();
}

fn fill_parts(ty: &T, column: &mut ColumnBuilder, random: &mut fastrand::Rng) {
    match ty {
        T::Array(element) => {
            let items = column.items_mut().unwrap();
            (0..random.usize(..4)).for_each(|_| fill(&element.logical, items, random));
        }
        T::Map(_, value) => {
            let (keys, values) = column.entries_mut().unwrap();
            for entry in 0..random.usize(..20) {
                keys.append(Scalar::Text(&format!("{}{entry}", random_text(random)))).unwrap();
                fill(&value.logical, values, random);
            }
        }
        T::Row(fields) => {
            for (field, column) in fields.iter().zip(column.fields_mut().unwrap()) {
                fill(&field.ty.logical, column, random);
            }
        }
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let schema = all_types();
    let mut random = fastrand::Rng::with_seed(11);
    let mut built = RowsBuilder::new(&schema);
    let mut read = RowsBuilder::new(&schema);
    for round in 0..100 {
        for _ in 0..random.usize(1..20) {
            for (column, builder) in schema.columns.iter().zip(built.columns_mut()) {
                fill(&column.ty.logical, builder, &mut random);
            }
        }
        let mut values = Vec::new();
        values.extend(random.bool().then_some((&DECIMAL_AS_PLAIN_NUMBER, "true")));
        values.extend(random.bool().then_some((&IGNORE_NULL_FIELDS, "true")));
        values.extend(random.bool().then_some((&TIMESTAMP_FORMAT, "ISO-8601")));
        let options = options(&values);
        let batch = built.finish().unwrap();
        let mut out = Vec::new();
        assert_eq!(Encoder::new(&schema, &options).unwrap().encode(&batch, &mut out), []);
        let mut decoder = Decoder::new(&schema, &options).unwrap();
        for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            decoder.decode(line, &mut read).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(line)));
        }
        assert_eq!(read.finish().unwrap(), batch, "round {round}");
    }
}

/// What a value is written as once it has been read, worked out the slow way.
fn oracle(ty: &ColumnType, value: Option<&Value>) -> Value {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Value::Null };
    let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let moment = |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap();
    let fraction = |moment: NaiveDateTime, digits: usize| {
        let nanos = moment.and_utc().timestamp_subsec_nanos();
        let fraction = format!("{nanos:09}");
        let fraction = fraction[..digits].trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", moment.format("%Y-%m-%d %H:%M:%S"))
    };
    match &ty.logical {
        T::Boolean => json!(text().eq_ignore_ascii_case("true")),
        T::TinyInt | T::SmallInt => json!(i64::from_str(text().trim()).unwrap()),
        T::Int | T::BigInt => match value.as_f64().filter(|_| !value.is_i64()) {
            Some(float) => json!(float.trunc() as i64),
            None => json!(i64::from_str(text().trim()).unwrap()),
        },
        T::Float => json!(f32::from_str(text().trim()).unwrap()),
        T::Double => json!(f64::from_str(text().trim()).unwrap()),
        T::Decimal(_, scale) => {
            let rounded = BigDecimal::from_str(&text()).unwrap();
            let rounded = rounded.with_scale_round(i64::from(*scale), RoundingMode::HalfUp);
            json!(rounded.to_string().parse::<f64>().unwrap())
        }
        T::VarChar(_) => json!(text()),
        T::VarBinary(_) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text()).unwrap();
            json!(base64::engine::general_purpose::STANDARD.encode(bytes))
        }
        T::Date => json!(text()),
        T::Time(_) => json!(text().split('.').next().unwrap()),
        T::Timestamp(_) => json!(fraction(moment(&text()), 6)),
        T::TimestampLtz(_) => json!(fraction(moment(text().strip_suffix('Z').unwrap()), 9) + "Z"),
        T::Array(element) => value.as_array().unwrap().iter().map(|item| oracle(element, Some(item))).collect(),
        T::Map(_, inner) => {
            let entries = value.as_object().unwrap().iter();
            Value::Object(entries.map(|(key, value)| (key.clone(), oracle(inner, Some(value)))).collect())
        }
        T::Row(fields) => {
            let get = |name: &str| value.as_object().unwrap().get(name);
            Value::Object(fields.iter().map(|f| (f.name.clone(), oracle(&f.ty, get(&f.name)))).collect())
        }
        other => unreachable!("{other:?}"),
    }
}

/// A string literal with some characters escaped that need not be.
fn literal(text: &str, random: &mut fastrand::Rng) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        if character < ' ' || "\"\\".contains(character) || random.u8(..6) == 0 {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| write!(out, "\\u{unit:04x}").unwrap());
        } else {
            out.push(character);
        }
    }
    out + "\""
}

fn blank(random: &mut fastrand::Rng) -> &'static str {
    random.choice(["", "", "", " ", "\n\t", "\r\n "]).unwrap()
}

/// A random JSON value that the type accepts, in one of the spellings it accepts.
fn document(ty: &T, random: &mut fastrand::Rng) -> String {
    if random.u8(..8) == 0 {
        return "null".into();
    }
    let number = match ty {
        T::Boolean => return random.choice(["true", "false", "\"True\"", "\"no\"", "1", "0.5"]).unwrap().into(),
        T::TinyInt => random.i8(..).to_string(),
        T::SmallInt => random.i16(..).to_string(),
        T::Int | T::BigInt if random.bool() => return format!("{}.{}", random.i32(-99_999..99_999), random.u8(..)),
        T::Int => random.i32(..).to_string(),
        T::BigInt => random.i64(..).to_string(),
        T::Float | T::Double | T::Decimal(..) => {
            format!("{}.{}e{}", random.i32(-9_999..9_999), random.u16(..), random.i8(-6..6))
        }
        T::VarChar(_) if random.u8(..4) == 0 => random.choice(["true", "17", "-1.25", "[1,null]"]).unwrap().into(),
        T::VarChar(_) => return literal(&random_text(random), random),
        T::VarBinary(_) => {
            let bytes = random_text(random);
            return literal(&base64::engine::general_purpose::STANDARD.encode(bytes), random);
        }
        T::Date => {
            return literal(
                &format!("{:04}-{:02}-{:02}", random.u16(1..9999), random.u8(1..=12), random.u8(1..=28)),
                random,
            );
        }
        T::Time(_) => {
            return literal(
                &format!("{:02}:{:02}:{:02}.25", random.u8(..24), random.u8(..60), random.u8(..60)),
                random,
            );
        }
        T::Timestamp(_) => {
            return format!("\"{:04}-02-03 04:05:06.{}\"", random.u16(1..9999), random.u32(..999_999_999));
        }
        T::TimestampLtz(_) => return format!("\"{:04}-12-31 23:59:59.{}Z\"", random.u16(1700..2200), random.u16(..)),
        T::Array(element) => {
            let items: Vec<_> = (0..random.usize(..4)).map(|_| document(&element.logical, random)).collect();
            return format!("[{}{}]", blank(random), items.join(&format!("{},", blank(random))));
        }
        T::Map(_, value) => {
            let few = random.choice([3, 30]).unwrap();
            let entries = (0..random.usize(..few)).map(|_| {
                let key = random.u8(..20).to_string();
                (literal(&key, random), document(&value.logical, random))
            });
            return object(entries.collect(), random);
        }
        T::Row(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| (f.name.as_str(), &f.ty)).collect();
            return record(&fields, random);
        }
        other => unreachable!("{other:?}"),
    };
    if matches!(ty, T::VarChar(_)) || random.bool() { number } else { format!("\"{number}\"") }
}

/// An object with some fields missing, some given twice, some unknown, in any order.
fn record(fields: &[(&str, &ColumnType)], random: &mut fastrand::Rng) -> String {
    let mut entries = Vec::new();
    for (name, ty) in fields {
        for _ in 0..random.choice([0, 1, 1, 1, 1, 2]).unwrap() {
            entries.push((literal(name, random), document(&ty.logical, random)));
        }
    }
    if random.bool() {
        entries.push((literal("unknown", random), "{\"int\":[{\"row\":1e999}]}".into()));
    }
    if random.bool() {
        random.shuffle(&mut entries);
    }
    object(entries, random)
}

fn object(entries: Vec<(String, String)>, random: &mut fastrand::Rng) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(key, value)| format!("{}{key}{}:{value}{}", blank(random), blank(random), blank(random)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn what_is_read_agrees_with_a_slow_reader() {
    let schema = all_types();
    let fields: Vec<_> = schema.columns.iter().map(|column| (column.name.as_str(), &column.ty)).collect();
    let plain = options(&[(&DECIMAL_AS_PLAIN_NUMBER, "true")]);
    let mut encoder = Encoder::new(&schema, &plain).unwrap();
    let mut decoder = Decoder::new(&schema, &Options::default()).unwrap();
    let mut rows = RowsBuilder::new(&schema);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..1_000 {
        let body = record(&fields, &mut random);
        decoder.decode(body.as_bytes(), &mut rows).unwrap_or_else(|why| panic!("{why}: {body}"));
        let mut out = Vec::new();
        encoder.encode(&rows.finish().unwrap(), &mut out);
        let found: Value = serde_json::from_slice(&out).unwrap();
        // The number that is out of range for the slow reader is in a field that nobody reads.
        let value: Map<String, Value> = serde_json::from_str(&body.replace("1e999", "1")).unwrap();
        let expected: Map<_, _> =
            fields.iter().map(|(name, ty)| ((*name).to_owned(), oracle(ty, value.get(*name)))).collect();
        for (name, expected) in expected {
            // The shortest digits of a FLOAT are not the digits of the DOUBLE it equals.
            let float = |value: &Value| value.as_f64().map(|value| value as f32);
            let equal = same(&found[&name], &expected) || name == "float" && float(&found[&name]) == float(&expected);
            assert!(equal, "{name}: {} is not {expected} in {body}", found[&name]);
        }
    }
}

/// Equality with numbers compared by value: `1E+2`, `100` and `100.0` are the same.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(key, value)| right.get(key).is_some_and(|r| same(value, r)))
        }
        _ => left == right,
    }
}

#[test]
fn broken_documents_leave_nothing_behind_and_never_pass() {
    let schema = all_types();
    let fields: Vec<_> = schema.columns.iter().map(|column| (column.name.as_str(), &column.ty)).collect();
    let mut strict = Decoder::new(&schema, &Options::default()).unwrap();
    let mut ignoring = Decoder::new(&schema, &options(&[(&IGNORE_PARSE_ERRORS, "true")])).unwrap();
    let mut rows = RowsBuilder::new(&schema);
    let mut random = fastrand::Rng::with_seed(9);
    let mut refused = 0;
    for _ in 0..4_000 {
        let mut body = record(&fields, &mut random).into_bytes();
        let at = random.usize(..body.len());
        match random.u8(..4) {
            0 => body.truncate(at),
            1 => drop(body.remove(at)),
            2 => body.insert(at, random.choice(*b"{}[]\",:\\0a.-").unwrap()),
            _ => body[at] = random.u8(..),
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok() && std::str::from_utf8(&body).is_ok();
        // Control characters in strings are accepted on purpose.
        let json = json || super::text::escape_controls(&text).is_some();
        let before = rows.rows();
        match strict.decode(&body, &mut rows) {
            Ok(decoded) => assert!(json || decoded.rows == 0, "{text}"),
            Err(_) => {
                refused += 1;
                assert_eq!(rows.rows(), before, "{text}");
            }
        }
        ignoring.decode(&body, &mut rows).expect("errors are ignored");
        if rows.rows() > 100 {
            rows.finish().expect("columns of one length");
        }
    }
    assert!(refused > 1_000, "{refused}");
}
