//! What Flink has no word on, reasons above all, and what was decided where it loses something.

use super::{Decoder, Encoder, options::*};
use crate::{
    definition::{OptionSpec, OptionValue, Options},
    formats::{
        Decoded, Decoder as _, Encoder as _,
        flink_cases::{self, JSON, groups},
    },
    model::{Column, ColumnType, Field, LogicalType as T, RowsBuilder, Schema},
};

pub(super) fn nullable(logical: T) -> ColumnType {
    ColumnType { logical, nullable: true }
}

pub(super) fn not_null(logical: T) -> ColumnType {
    ColumnType { logical, nullable: false }
}

pub(super) fn schema(columns: Vec<(&str, ColumnType)>) -> Schema {
    let column = |(name, ty): (&str, ColumnType)| Column { name: name.into(), ty, metadata: None, is_virtual: false };
    Schema { columns: columns.into_iter().map(column).collect() }
}

pub(super) fn row(fields: Vec<(&str, ColumnType)>) -> T {
    T::Row(fields.into_iter().map(|(name, ty)| Field { name: name.into(), ty }).collect())
}

pub(super) fn options(values: &[(&'static OptionSpec, &str)]) -> Options {
    let mut options = Options::default();
    for (spec, value) in values {
        let value = match *value {
            "true" => OptionValue::Boolean(true),
            text => OptionValue::Text(text.into()),
        };
        options.insert(spec, value);
    }
    options
}

const STRING: T = T::VarChar(None);

fn default_mode() -> Options {
    Options::default()
}

fn ignoring() -> Options {
    options(&[(&IGNORE_PARSE_ERRORS, "true")])
}

fn failing_on_missing() -> Options {
    options(&[(&FAIL_ON_MISSING_FIELD, "true")])
}

/// Decodes one body between two good ones, which must stay as they are, and writes its rows.
fn decode(schema: &Schema, options: &Options, body: &[u8]) -> Result<(Decoded, String), String> {
    let mut decoder = Decoder::new(schema, options).expect("a schema that JSON can hold");
    let mut lenient = Decoder::new(schema, &Options::default()).expect("a schema that JSON can hold");
    let mut rows = RowsBuilder::new(schema);
    let nullable = schema.columns.iter().all(|column| column.ty.nullable);
    let around = u32::from(nullable);
    if nullable {
        lenient.decode(b"{}", &mut rows).expect("an empty object");
    }
    let result = decoder.decode(body, &mut rows);
    if nullable {
        lenient.decode(b"{}", &mut rows).expect("an empty object");
    }
    let batch = rows.finish().expect("columns of one length");
    let expected = result.as_ref().map_or(0, |decoded| decoded.rows) + 2 * around;
    assert_eq!(batch.num_rows(), expected as usize, "{}", String::from_utf8_lossy(body));
    let mut out = Vec::new();
    let iso: Vec<_> = options.opt_text(&TIMESTAMP_FORMAT).map(|text| (&TIMESTAMP_FORMAT, text)).into_iter().collect();
    let mut encoder = Encoder::new(schema, &self::options(&iso)).expect("a schema that JSON can hold");
    assert_eq!(
        encoder.encode(&batch.slice(around as usize, result.as_ref().map_or(0, |d| d.rows) as usize), &mut out),
        []
    );
    result.map(|decoded| (decoded, String::from_utf8(out).expect("JSON is UTF-8")))
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_column_type_and_place() {
    let mut told = 0;
    for group in groups(JSON) {
        let columns: Vec<&str> = group["schema"].as_array().unwrap().iter().filter_map(|text| text.as_str()).collect();
        let &[value, "last INT"] = columns.as_slice() else { continue };
        if value.contains(['<', '>']) || !group["options"].is_null() {
            continue;
        }
        let schema = flink_cases::schema(&columns);
        for case in group["cases"].as_array().unwrap() {
            let body = case["body"].as_str().unwrap();
            let Err(reason) = decode(&schema, &default_mode(), body.as_bytes()) else { continue };
            let (decoded, text) = decode(&schema, &ignoring(), body.as_bytes()).unwrap();
            if decoded.rows == 0 {
                assert!(reason.starts_with("not JSON: "), "{body}: {reason}");
                continue;
            }
            told += 1;
            assert!(reason.starts_with("column v: expected "), "{body}: {reason}");
            assert!(reason.ends_with(" at byte 5"), "{body}: {reason}");
            assert_eq!(text, "{\"v\":null,\"last\":1}\n", "{body}");
            assert_eq!(decoded, Decoded { rows: 1, nulled_fields: 1, ..Decoded::default() });
        }
    }
    assert!(told >= 80, "{told}");
}

#[test]
fn a_bad_value_inside_a_nested_one_is_alone_null_when_ignoring() {
    let inner = row(vec![("a", nullable(T::Int)), ("b", nullable(T::Array(Box::new(nullable(T::Int)))))]);
    let map = T::Map(Box::new(nullable(STRING)), Box::new(nullable(inner.clone())));
    let schema = schema(vec![("m", nullable(map)), ("r", nullable(inner))]);
    let body = br#"{"m":{"k":{"a":"x","b":[1,"y",3]},"l":7},"r":{"a":2,"b":{}}}"#;
    let (decoded, text) = decode(&schema, &ignoring(), body).unwrap();
    assert_eq!(text, "{\"m\":{\"k\":{\"a\":null,\"b\":[1,null,3]},\"l\":null},\"r\":{\"a\":2,\"b\":null}}\n");
    assert_eq!(decoded.nulled_fields, 4);
    let reason = decode(&schema, &default_mode(), br#"{"m":{"k":{"b":[1,"y",3]}}}"#).unwrap_err();
    assert_eq!(reason, r#"column m['k'].b[1]: expected INT, found "y" at byte 18"#);
    let reason = decode(&schema, &failing_on_missing(), br#"{"m":null,"r":{"a":1}}"#).unwrap_err();
    assert!(reason.starts_with("column r.b: the field is missing"), "{reason}");
}

#[test]
fn null_in_a_not_null_column_is_told() {
    let inner = row(vec![("a", not_null(T::Int))]);
    let strict = schema(vec![("id", not_null(T::Int)), ("r", nullable(inner))]);
    for body in [r#"{"id":null}"#, "{}"] {
        let reason = decode(&strict, &default_mode(), body.as_bytes()).unwrap_err();
        assert_eq!(reason, "column id: null where the schema says NOT NULL");
        let (decoded, _) = decode(&strict, &ignoring(), body.as_bytes()).unwrap();
        assert_eq!(decoded, Decoded { dropped: true, ..Decoded::default() });
    }
    assert!(decode(&strict, &default_mode(), br#"{"id":1,"r":{}}"#).unwrap_err().starts_with("column r.a: null"));
}

#[test]
fn reasons_say_where_and_never_repeat_a_whole_body() {
    let schema = schema(vec![("id", nullable(T::Int)), ("name", nullable(STRING))]);
    let long = format!(r#"{{"name":"k","id":"{}"}}"#, "é\\n".repeat(500));
    let reason = decode(&schema, &default_mode(), long.as_bytes()).unwrap_err();
    assert!(
        reason.starts_with("column id: expected INT, found \"é\\né") && reason.ends_with("... at byte 17"),
        "{reason}"
    );
    assert!(reason.chars().count() < 100, "{reason}");
    let reason = decode(&schema, &default_mode(), br#"{"id":1,}"#).unwrap_err();
    assert!(reason.starts_with("not JSON: ") && reason.ends_with("at line 1 column 9"), "{reason}");
    let reason = decode(&schema, &default_mode(), br#"{"id":1} {"id":2}"#).unwrap_err();
    assert!(reason.contains("column 10"), "{reason}");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let schema = schema(vec![("id", nullable(T::Int)), ("name", nullable(STRING))]);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let (_, text) = decode(&schema, &default_mode(), format!(r#"{{"id":1,"x":{deep}}}"#).as_bytes()).unwrap();
    assert_eq!(text, "{\"id\":1,\"name\":null}\n");
    let (_, text) = decode(&schema, &default_mode(), format!(r#"{{"name":{deep}}}"#).as_bytes()).unwrap();
    assert!(text.contains(&deep));
}

#[test]
fn half_a_surrogate_pair_is_a_replacement_character() {
    let schema = schema(vec![("id", nullable(T::Int)), ("name", nullable(STRING))]);
    for options in [default_mode(), ignoring()] {
        let (_, text) = decode(&schema, &options, br#"{"id":1,"name":"\ud800x","other":"\ud800"}"#).unwrap();
        assert_eq!(text, "{\"id\":1,\"name\":\"\u{fffd}x\"}\n");
    }
}

#[test]
fn metadata_columns_are_left_to_others() {
    let mut schema = schema(vec![("id", nullable(T::Int)), ("name", nullable(STRING))]);
    schema.columns[0].metadata = Some("message-id".into());
    let mut rows = RowsBuilder::new(&schema);
    let mut decoder = Decoder::new(&schema, &default_mode()).unwrap();
    for _ in 0..2 {
        decoder.decode(br#"{"id":"ignored","name":"a"}"#, &mut rows).unwrap();
        rows.append_meta(0, &crate::model::MetaValue::Integer(5)).unwrap();
    }
    assert!(decoder.decode(b"[]", &mut rows).is_err());
    assert_eq!(rows.finish().unwrap().num_rows(), 2);
}

#[test]
fn contradicting_options_and_impossible_types_are_refused() {
    let both = options(&[(&FAIL_ON_MISSING_FIELD, "true"), (&IGNORE_PARSE_ERRORS, "true")]);
    assert!(super::check(&both).unwrap().contains("json.ignore-parse-errors"));
    assert_eq!(super::check(&ignoring()), None);
    let map = T::Map(Box::new(not_null(T::Int)), Box::new(nullable(T::Int)));
    let schema = schema(vec![("m", nullable(T::Array(Box::new(nullable(map)))))]);
    assert!(Decoder::new(&schema, &default_mode()).unwrap_err().starts_with("m: the keys of a MAP"));
    assert!(Encoder::new(&schema, &default_mode()).is_err());
}
