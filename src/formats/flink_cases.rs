//! Bodies whose results on real Flink are known: `tests/fixtures/flink-cases`, which `tests/flink/check_cases.py`
//! runs on Flink. What differs here stands in those files with its reason.

use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray};
use serde_json::{Value, json};

use super::{
    Decoded, TABLES, base64, csv, decoder, encoder, json, number,
    scalars::{Scalars, cast},
    time::{self, Standard},
};
use crate::{
    definition::Options,
    model::{Column, LogicalType, RowsBuilder, Schema},
};

fn try_schema(columns: &[&str]) -> Result<Schema, String> {
    let column = |declared: &&str| {
        let (name, ty) = declared.split_once(' ').unwrap();
        Column::parse(name, ty).map_err(|error| format!("{declared}: {error:?}"))
    };
    Ok(Schema { columns: columns.iter().map(column).collect::<Result<_, _>>()? })
}

/// Columns, each as in `a INT`.
pub(super) fn schema(columns: &[&str]) -> Schema {
    try_schema(columns).unwrap()
}

fn try_options(format: &str, given: &[(&str, &str)]) -> Result<Options, String> {
    let table = TABLES.iter().find(|tables| tables.name == format).unwrap().options;
    let mut options = Options::default();
    if let Some((name, _)) = given.iter().find(|(name, _)| table.find(name).is_none()) {
        return Err(format!("there is no option {name}"));
    }
    for spec in table.options {
        let given = given.iter().rev().find(|(name, _)| *name == spec.name).map(|(_, value)| *value);
        if let Some(text) = given.or(spec.default) {
            options.insert(spec, spec.kind.parse(text).map_err(|error| format!("{}: {error:?}", spec.name))?);
        }
    }
    Ok(options)
}

/// Options as a definition has them, defaults filled in.
pub(super) fn options(format: &str, given: &[(&str, &str)]) -> Options {
    try_options(format, given).unwrap()
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
        LogicalType::Map(_, value) => {
            let entries = cast::<MapArray>(array).unwrap().value(row);
            let keys = cast::<arrow_array::StringArray>(entries.column(0)).unwrap();
            let shown = |entry| (keys.value(entry).to_owned(), show(&value.logical, entries.column(1), entry));
            return Value::Object((0..entries.len()).map(shown).collect());
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

/// Decodes one body with a format of this name.
pub(super) fn decode(
    format: &str,
    schema: &Schema,
    options: &Options,
    body: &[u8],
) -> Result<(Decoded, RecordBatch), String> {
    decode_with(&mut *decoder(format, schema, options)?, schema, body)
}

/// Decodes one body between two rows of nulls, which must stay as they are.
pub(super) fn decode_with(
    decoder: &mut dyn super::Decoder,
    schema: &Schema,
    body: &[u8],
) -> Result<(Decoded, RecordBatch), String> {
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

/// The option that each mode sets to true.
const MODES: [(&str, Option<&str>); 3] =
    [("default", None), ("ignore", Some("ignore-parse-errors")), ("missing", Some("fail-on-missing-field"))];

/// One case of a file.
struct Case<'a> {
    format: &'a str,
    group: &'a Value,
    case: &'a Value,
}

impl Case<'_> {
    /// What the case says of a mode, or of what is `written`; `null` says that nothing is.
    fn flink(&self, key: &str) -> &Value {
        let default = if key == "written" { &Value::Null } else { &self.case["default"] };
        self.case.get(key).unwrap_or(default)
    }

    /// The same of this program.
    fn expected(&self, key: &str) -> &Value {
        let here = &self.case["here"];
        let default = if key == "written" { None } else { here.get("default") };
        here.get(key).or(self.case.get(key)).or(default).unwrap_or_else(|| self.flink(key))
    }

    /// The table in a mode, or why there can be none.
    fn table(&self, more: Option<&str>) -> Result<(Schema, Options), String> {
        let declared: Vec<&str> = self.group["schema"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        let schema = try_schema(&declared)?;
        let more = more.map(|name| format!("{}.{name}", self.format));
        let given = self.group["options"].as_object().into_iter().flatten();
        let given = given.map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
        let given: Vec<_> = given.chain(more.as_deref().map(|name| (name, "true"))).collect();
        let options = try_options(self.format, &given)?;
        let contradiction = match self.format {
            "json" => json::check(&options),
            "csv" => csv::options::check(&options).map(|(reason, _)| reason),
            _ => None,
        };
        decoder(self.format, &schema, &options)?;
        contradiction.map_or(Ok((schema, options)), Err)
    }

    /// Runs it in all modes; answers what differs from what is expected.
    fn run(&self) -> Vec<String> {
        if self.case.get("entries").is_some() {
            return Vec::new();
        }
        let (mut wrong, mut written) = (Vec::new(), None);
        for (mode, more) in MODES {
            let unknown = matches!((self.format, mode), ("raw", "ignore" | "missing") | ("csv", "missing"));
            if unknown || (self.case["nulls"] == true && mode != "default") {
                continue;
            }
            let (found, rows) = self.read(more, &mut wrong);
            if self.case["nulls"] != true && found != *self.expected(mode) {
                wrong.push(format!("{mode} {found}"));
            }
            written = written.or_else(|| rows.map(|(schema, batch)| self.write(&schema, &batch)));
        }
        let written = written.map_or(Value::Null, Value::from);
        if written != *self.expected("written") {
            wrong.push(format!("written {written}"));
        }
        wrong
    }

    /// What a body is read as.
    fn read(&self, more: Option<&str>, wrong: &mut Vec<String>) -> (Value, Option<(Schema, RecordBatch)>) {
        let Ok((schema, options)) = self.table(more) else { return (json!("refused"), None) };
        if self.case["nulls"] == true {
            let mut rows = RowsBuilder::new(&schema);
            rows.columns_mut().iter_mut().for_each(|column| column.append_null());
            return (Value::Null, Some((schema, rows.finish().unwrap())));
        }
        let body = body(self.case);
        match decode(self.format, &schema, &options, &body) {
            Err(_) => (json!("error"), None),
            Ok((decoded, batch)) => {
                self.check_counts(more, &body, decoded, wrong);
                if decoded.rows == 0 {
                    (json!("no row"), None)
                } else {
                    (shown(&schema, &batch), Some((schema, batch)))
                }
            }
        }
    }

    /// Nothing is dropped or made null without being counted.
    fn check_counts(&self, more: Option<&str>, body: &[u8], decoded: Decoded, wrong: &mut Vec<String>) {
        let here = &self.case["here"];
        let ignoring = more == Some("ignore-parse-errors");
        // An empty body of JSON is no row, and nothing is lost.
        let empty = self.format == "json" && body.is_empty();
        let dropped = if decoded.rows == 0 { !empty } else { ignoring && here["dropped"] == true };
        let unread = if ignoring { here["unread"].as_u64().unwrap_or(0) } else { 0 };
        let loses = *self.expected("default") == "error" && !dropped && unread == 0;
        let nulled = !ignoring || !loses || decoded.nulled_fields > 0;
        if (decoded.dropped, u64::from(decoded.unread), nulled) != (dropped, unread, true) {
            wrong.push(format!("counted {decoded:?}"));
        }
    }

    /// What a row is written as.
    fn write(&self, schema: &Schema, batch: &RecordBatch) -> String {
        let Ok((_, options)) = self.table(None) else { return "refused".into() };
        let mut out = Vec::new();
        let rejects = encoder(self.format, schema, &options).unwrap().encode(batch, &mut out);
        let line = out.strip_suffix(b"\n").unwrap_or(&out);
        match (rejects.is_empty(), self.format) {
            (false, _) => "error".to_owned(),
            (true, "raw") => line.iter().map(|byte| format!("{byte:02x}")).collect(),
            (true, _) => String::from_utf8(line.to_vec()).unwrap(),
        }
    }

    /// A difference has a reason, and is one.
    fn check_here(&self) -> Option<String> {
        let here = self.case.get("here")?.as_object().unwrap();
        if here.get("why").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Some("a difference without a reason".into());
        }
        let differs = |key: &&str| here.get(*key).is_some_and(|value| value != self.flink(key));
        let counted = here.contains_key("dropped") || here.contains_key("unread");
        let any = counted || ["default", "ignore", "missing", "written"].iter().any(differs);
        (!any).then(|| "no difference".into())
    }
}

/// The cases of a file, by group.
pub(super) fn groups(file: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(file).unwrap()["groups"].as_array().unwrap().clone()
}

fn check(format: &str, file: &str, least: usize) {
    let (mut cases, mut wrong) = (0, Vec::new());
    for group in groups(file) {
        for case in group["cases"].as_array().unwrap() {
            cases += 1;
            let run = Case { format, group: &group, case };
            let found = run.run().into_iter().chain(run.check_here());
            wrong.extend(found.map(|what| format!("{}: {case}: found {what}", group["name"])));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= least, "{cases} cases");
}

/// What json makes of each case.
pub(super) const JSON: &str = include_str!("../../tests/fixtures/flink-cases/json.json");

#[test]
fn json_reads_and_writes_as_flink_but_for_what_is_listed() {
    check("json", JSON, 361);
}

#[test]
fn csv_reads_and_writes_as_flink_but_for_what_is_listed() {
    check("csv", include_str!("../../tests/fixtures/flink-cases/csv.json"), 330);
}

#[test]
fn raw_reads_and_writes_as_flink_but_for_what_is_listed() {
    check("raw", include_str!("../../tests/fixtures/flink-cases/raw.json"), 68);
}
