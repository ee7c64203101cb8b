//! Bodies whose results on real Flink are known: `tests/fixtures/flink-cases`, which `tests/flink/check_cases.py`
//! runs on Flink. What differs here stands in those files with its reason.

use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use serde_json::{Value, json};

use super::{
    Decoded, TABLES, base64, decoder, encoder, number,
    scalars::{Scalars, cast},
    time::{self, Standard},
};
use crate::{
    definition::Options,
    model::{Column, LogicalType, RowsBuilder, Schema},
};

/// `a INT` as a column.
pub(super) fn column(declared: &str) -> Column {
    let (name, ty) = declared.split_once(' ').unwrap();
    Column::parse(name, ty).unwrap()
}

pub(super) fn schema(columns: &[&str]) -> Schema {
    Schema { columns: columns.iter().map(|declared| column(declared)).collect() }
}

/// Options as a definition has them, defaults filled in.
pub(super) fn options(format: &str, given: &[(&str, &str)]) -> Options {
    let table = TABLES.iter().find(|tables| tables.name == format).unwrap().options;
    let mut options = Options::default();
    for spec in table.options {
        let given = given.iter().rev().find(|(name, _)| *name == spec.name).map(|(_, value)| *value);
        if let Some(text) = given.or(spec.default) {
            options.insert(spec, spec.kind.parse(text).unwrap());
        }
    }
    for (name, _) in given {
        assert!(table.find(name).is_some(), "{name}");
    }
    options
}

/// A value as the files write it: numbers that are not whole as texts, times and bytes as texts.
pub(super) fn show(logical: &LogicalType, array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match logical {
        LogicalType::Array(element) => {
            let items = cast::<ListArray>(array).unwrap().value(row);
            return (0..items.len()).map(|item| show(&element.logical, &items, item)).collect();
        }
        LogicalType::Row(fields) => {
            let columns = cast::<StructArray>(array).unwrap().columns();
            return fields.iter().zip(columns).map(|(field, array)| show(&field.ty.logical, array, row)).collect();
        }
        _ => {}
    }
    let mut text = Vec::new();
    match Scalars::new(logical, array).unwrap() {
        Scalars::Boolean(values) => return values.value(row).into(),
        Scalars::Int8(values) => return values[row].into(),
        Scalars::Int16(values) => return values[row].into(),
        Scalars::Int32(values) => return values[row].into(),
        Scalars::Int64(values) => return values[row].into(),
        Scalars::Text(values) => return values.value(row).into(),
        Scalars::Float32(values) => number::write_f32(values[row], &mut text),
        Scalars::Float64(values) => number::write_f64(values[row], &mut text),
        Scalars::Decimal { values, scale } => number::write_decimal(values[row], scale, true, &mut text),
        Scalars::Bytes(values) => base64::encode(values.value(row), &mut text).unwrap(),
        Scalars::Date(values) => time::write_date(values[row], &mut text).unwrap(),
        Scalars::Time(values) => time::write_time(values[row], &mut text).unwrap(),
        Scalars::Timestamp { values, zoned, unit } => {
            time::write_timestamp(values[row], Standard::Sql, zoned, unit, &mut text).unwrap();
        }
    }
    String::from_utf8(text).unwrap().trim_matches('"').into()
}

/// Decodes one body between two rows of nulls, which must stay as they are.
pub(super) fn decode(
    format: &str,
    schema: &Schema,
    options: &Options,
    body: &[u8],
) -> Result<(Decoded, RecordBatch), String> {
    let mut decoder = decoder(format, schema, options)?;
    let mut rows = RowsBuilder::new(schema);
    let nulls = |rows: &mut RowsBuilder| rows.columns_mut().iter_mut().for_each(|column| column.append_null());
    nulls(&mut rows);
    let decoded = decoder.decode(body, &mut rows);
    nulls(&mut rows);
    let batch = rows.finish().unwrap();
    let kept = decoded.as_ref().map_or(0, |decoded| decoded.rows) as usize;
    assert_eq!(batch.num_rows(), kept + 2, "{}", String::from_utf8_lossy(body));
    decoded.map(|decoded| (decoded, batch.slice(1, kept)))
}

/// The rows of a batch as the files write them.
pub(super) fn shown(schema: &Schema, batch: &RecordBatch) -> Value {
    let pairs = || schema.columns.iter().zip(batch.columns());
    let row = |row| pairs().map(|(column, array)| show(&column.ty.logical, array, row)).collect::<Value>();
    (0..batch.num_rows()).map(row).collect()
}

fn body(case: &Value) -> Vec<u8> {
    match (case["hex"].as_str(), case["body"].as_str()) {
        (Some(hex), _) => {
            let digits: Vec<u8> = hex.bytes().filter(|digit| *digit != b' ').collect();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            digits.chunks(2).map(byte).collect()
        }
        (None, body) => body.unwrap().into(),
    }
}

/// Runs one case in one mode; what differs is answered.
fn run(format: &str, group: &Value, case: &Value, ignore: bool) -> Option<String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let declared = texts(&group["schema"]);
    let schema = schema(&declared.iter().map(String::as_str).collect::<Vec<_>>());
    let mut given: Vec<(&str, &str)> = Vec::new();
    if let Some(options) = group["options"].as_object() {
        given.extend(options.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())));
    }
    if ignore {
        given.push(("csv.ignore-parse-errors", "true"));
    }
    let options = options(format, &given);
    let expected = |key: &str| case["here"].get(key).or(case.get(key));
    let wanted = expected(if ignore { "ignore" } else { "default" }).or(expected("default")).unwrap();
    let decoded = decode(format, &schema, &options, &body(case));
    let found = match &decoded {
        Ok((Decoded { rows: 0, .. }, _)) => json!("no row"),
        Ok((_, batch)) => shown(&schema, batch),
        Err(_) => json!("error"),
    };
    if found != *wanted {
        return Some(format!("{found} where {wanted} is expected ({decoded:?})"));
    }
    let (decoded, batch) = decoded.ok()?;
    let dropped = decoded.rows == 0 || (ignore && case["here"]["dropped"] == true);
    let unread = if ignore { case["here"]["unread"].as_u64().unwrap_or(0) } else { 0 };
    if (decoded.dropped, u64::from(decoded.unread)) != (dropped, unread) {
        return Some(format!("{decoded:?} counted"));
    }
    let first_mode = !ignore || expected("default").unwrap() == "error";
    let wanted = expected("written").filter(|wanted| first_mode && wanted.is_string() && decoded.rows > 0)?;
    let mut out = Vec::new();
    let rejects = encoder(format, &schema, &options).unwrap().encode(&batch, &mut out);
    let line = out.strip_suffix(b"\n").unwrap_or(&out);
    let found = match (rejects.is_empty(), format) {
        (false, _) => "error".to_owned(),
        (true, "raw") => line.iter().map(|byte| format!("{byte:02x}")).collect(),
        (true, _) => String::from_utf8(line.to_vec()).unwrap(),
    };
    (found != wanted.as_str().unwrap()).then(|| format!("{found:?} is written where {wanted} is expected"))
}

fn check(format: &str, file: &str, least: usize) {
    let file: Value = serde_json::from_str(file).unwrap();
    let (mut cases, mut wrong) = (0, Vec::new());
    for group in file["groups"].as_array().unwrap() {
        for case in group["cases"].as_array().unwrap() {
            cases += 1;
            let differs =
                [false, true].map(|ignore| (format == "csv" || !ignore).then(|| run(format, group, case, ignore)));
            let why = case["here"].get("why").is_none_or(|why| why.as_str().is_some_and(|why| !why.is_empty()));
            assert!(why, "{case} differs for no reason");
            let name = &group["name"];
            wrong.extend(differs.into_iter().flatten().flatten().map(|what| format!("{name}: {case}: {what}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= least, "{cases} cases");
}

#[test]
fn csv_reads_and_writes_as_flink_but_for_what_is_listed() {
    check("csv", include_str!("../../tests/fixtures/flink-cases/csv.json"), 302);
}

#[test]
fn raw_reads_and_writes_as_flink_but_for_what_is_listed() {
    check("raw", include_str!("../../tests/fixtures/flink-cases/raw.json"), 60);
}
