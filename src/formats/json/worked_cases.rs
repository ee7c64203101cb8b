//! Bodies whose results on real Flink are known, and what was decided where Flink loses something.

use super::{Decoder, Encoder, options::*};
use crate::{
    definition::{OptionSpec, OptionValue, Options},
    formats::{Decoded, Decoder as _, Encoder as _},
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

/// What is expected of a body: `Row` as the two columns are written, or `Part` where a row is kept and the drop of
/// the rest counted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Want {
    Row(&'static str),
    Part(&'static str),
    NoRow,
    Dropped,
    Error,
}
use Want::{Dropped, Error, NoRow, Part, Row};

fn outcome(schema: &Schema, options: &Options, body: &[u8]) -> (Option<(Decoded, String)>, String) {
    match decode(schema, options, body) {
        Ok((decoded, text)) => (Some((decoded, text)), String::new()),
        Err(reason) => (None, reason),
    }
}

fn check_want(schema: &Schema, options: &Options, body: &[u8], want: Want, mode: &str) {
    let body_text = String::from_utf8_lossy(body).into_owned();
    let (found, reason) = outcome(schema, options, body);
    let found = found.map(|(decoded, text)| (decoded.rows, decoded.dropped, text.trim_end().to_owned()));
    let expected = match want {
        Row(text) => Some((1, false, text.to_owned())),
        Part(text) => Some((1, true, text.to_owned())),
        NoRow => Some((0, false, String::new())),
        Dropped => Some((0, true, String::new())),
        Error => None,
    };
    assert_eq!(found, expected, "{body_text} in mode {mode}: {reason}");
    assert_eq!(reason.is_empty(), want != Error);
}

const A1: Want = Row(r#"{"id":1,"name":"a"}"#);
const NULLS: Want = Row(r#"{"id":null,"name":null}"#);
const NULL_K: Want = Row(r#"{"id":null,"name":"k"}"#);
const ONE: &str = r#"{"id":1,"name":null}"#;

/// body, default, ignore-parse-errors, fail-on-missing-field
const CASES: &[(&str, Want, Want, Want)] = &[
    (r#"{"id":1,"name":"a"}"#, A1, A1, A1),
    (
        r#"{"id":"2","name":7}"#,
        Row(r#"{"id":2,"name":"7"}"#),
        Row(r#"{"id":2,"name":"7"}"#),
        Row(r#"{"id":2,"name":"7"}"#),
    ),
    (r#"{"name":"x","extra":{"a":1}}"#, Row(r#"{"id":null,"name":"x"}"#), Row(r#"{"id":null,"name":"x"}"#), Error),
    (r#"{"ID":1}"#, NULLS, NULLS, Error),
    ("{}", NULLS, NULLS, Error),
    (r#"{"id":null,"name":null}"#, NULLS, NULLS, NULLS),
    (r#"{"id":1,"id":2}"#, Row(r#"{"id":2,"name":null}"#), Row(r#"{"id":2,"name":null}"#), Error),
    (r#"{"name":"k","id":1,"name":"a"}"#, A1, A1, A1),
    (r#"{"id":"abc","name":"k"}"#, Error, NULL_K, Error),
    (r#"{"id":3000000000,"name":"z"}"#, Error, Row(r#"{"id":null,"name":"z"}"#), Error),
    (r#"{"id":""}"#, Error, NULLS, Error),
    (r#"{"id":true}"#, Error, NULLS, Error),
    (r#"{"id":{"x":1},"name":"k"}"#, Error, NULL_K, Error),
    (r#"{"id":[1],"name":"k"}"#, Error, NULL_K, Error),
    (r#"[{"id":1},{"id":2}]"#, Error, Dropped, Error),
    // Flink leaves the rest unread without a word.
    (r#"{"id":1}{"id":2}"#, Error, Part(ONE), Error),
    ("{\"id\":1}\n{\"id\":2}", Error, Part(ONE), Error),
    (r#"{"id":1} xx"#, Error, Part(ONE), Error),
    ("{\"id\":1,\"name\":\"a\"} \r\n\t", A1, A1, A1),
    ("", NoRow, NoRow, NoRow),
    ("  \n", Error, Dropped, Error),
    ("null", Error, Dropped, Error),
    ("123", Error, Dropped, Error),
    ("not json", Error, Dropped, Error),
    (r#"{"id":1"#, Error, Dropped, Error),
    ("{'id':1}", Error, Dropped, Error),
    (r#"{"id":01}"#, Error, Dropped, Error),
    (r#"{"id":NaN}"#, Error, Dropped, Error),
    (r#"{"id":2,,}"#, Error, Dropped, Error),
    (r#"{"id":"abc","name":"k""#, Error, Dropped, Error),
    (
        "{\"id\":1,\"name\":\"a\nb\u{1}\"}",
        Row("{\"id\":1,\"name\":\"a\\nb\\u0001\"}"),
        Row("{\"id\":1,\"name\":\"a\\nb\\u0001\"}"),
        Row("{\"id\":1,\"name\":\"a\\nb\\u0001\"}"),
    ),
    ("\u{feff}{\"id\":1,\"name\":\"a\"}", A1, A1, A1),
];

#[test]
fn bodies_have_flinks_results_in_all_three_modes() {
    let schema = schema(vec![("id", nullable(T::Int)), ("name", nullable(STRING))]);
    for (body, default, ignore, fail_on_missing) in CASES {
        check_want(&schema, &default_mode(), body.as_bytes(), *default, "default");
        check_want(&schema, &ignoring(), body.as_bytes(), *ignore, "ignore-parse-errors");
        check_want(&schema, &failing_on_missing(), body.as_bytes(), *fail_on_missing, "fail-on-missing-field");
    }
    for bytes in [&b"{\"id\":1,\"name\":\"\xff\"}"[..], b"\xff\xfe{\0}\0"] {
        check_want(&schema, &default_mode(), bytes, Error, "default");
        check_want(&schema, &ignoring(), bytes, Dropped, "ignore-parse-errors");
    }
}

type Pairs = Vec<(&'static str, &'static str)>;

/// type, values it accepts with what they are written as, values it rejects
fn type_table() -> Vec<(T, Pairs, Vec<&'static str>)> {
    let micros = "\"2024-02-09 10:11:12\"";
    vec![
        (
            T::Boolean,
            vec![
                ("true", "true"),
                ("false", "false"),
                (r#""TRUE""#, "true"),
                (r#""yes""#, "false"),
                ("1", "false"),
                ("0", "false"),
                (r#""""#, "false"),
                ("null", "null"),
            ],
            vec!["{}", "[]"],
        ),
        (
            T::TinyInt,
            vec![("-128", "-128"), (r#"" 7 ""#, "7"), (r#""+7""#, "7")],
            vec!["128", "1.5", "1e1", "true", r#""""#],
        ),
        (T::SmallInt, vec![("32767", "32767"), (r#""-5""#, "-5")], vec!["32768", "1.5", r#""abc""#]),
        (
            T::Int,
            vec![("1.7", "1"), ("-1.9", "-1"), ("112.9", "112"), (r#"" 3 ""#, "3"), ("-2147483648", "-2147483648")],
            vec![r#""""#, r#""abc""#, "true", "2147483648", r#""1.7""#, "[]", "{}", "1e400"],
        ),
        (
            T::BigInt,
            vec![("1e3", "1000"), ("9223372036854775807", "9223372036854775807"), (r#"" 3 ""#, "3")],
            vec!["9223372036854775808", r#""""#, "false", "1e19"],
        ),
        (
            T::Float,
            vec![
                ("1.1", "1.1"),
                ("1e400", r#""Infinity""#),
                (r#""1.5""#, "1.5"),
                (r#""NaN""#, r#""NaN""#),
                ("3", "3.0"),
            ],
            vec![r#""abc""#, r#""inf""#, "true", r#""""#],
        ),
        (
            T::Double,
            vec![
                ("100", "100.0"),
                ("0.1", "0.1"),
                (r#""-Infinity""#, r#""-Infinity""#),
                (r#"" 2.5 ""#, "2.5"),
                ("123456789012345680000", "1.2345678901234568E20"),
            ],
            vec![r#""nan""#, "{}", "false"],
        ),
        (
            T::Decimal(10, 2),
            vec![
                ("1.005", "1.01"),
                (r#""1.015""#, "1.02"),
                ("1.50", "1.5"),
                ("123456789.5", "null"),
                ("12345678901234567890123456789012345678901234567890", "null"),
                ("-1e-3", "0"),
            ],
            vec![r#""abc""#, "true", r#""""#, "[1]"],
        ),
        (
            T::Decimal(38, 18),
            vec![("12345678901234567890.123456789012345678", "12345678901234567890.123456789012345678")],
            vec![],
        ),
        (
            STRING,
            vec![
                (r#""a""#, r#""a""#),
                ("1.50", r#""1.50""#),
                ("1e2", r#""1e2""#),
                ("true", r#""true""#),
                (r#"{ "b" : 1.50, "a" : [ null ] }"#, r#""{\"b\":1.50,\"a\":[null]}""#),
                ("[1, 2]", r#""[1,2]""#),
                (r#""caf\u00e9\n""#, r#""café\n""#),
            ],
            vec![],
        ),
        (T::Char(1), vec![(r#""abc""#, r#""abc""#)], vec![]),
        (
            T::VarBinary(None),
            vec![(r#""AAE=""#, r#""AAE=""#), (r#""""#, r#""""#), (r#""AAEC\r\nAAE=""#, r#""AAECAAE=""#)],
            vec![r#""AAE""#, r#""AA\r\nE=""#, r#""?""#, "1", "true", "[]"],
        ),
        (
            T::Date,
            vec![(r#""2024-02-09""#, r#""2024-02-09""#)],
            vec![r#""2024-2-9""#, "19000", r#""2023-02-29""#, r#""""#],
        ),
        (
            T::Time(0),
            vec![(r#""12:34:56""#, r#""12:34:56""#), (r#""12:34:56.789""#, r#""12:34:56""#)],
            vec![r#""12:34""#, "1", r#""24:00:00""#],
        ),
        (
            T::Timestamp(3),
            vec![
                (micros, micros),
                (r#""2024-02-09 10:11:12.5""#, r#""2024-02-09 10:11:12.5""#),
                (r#""2024-02-09 10:11:12.123456789""#, r#""2024-02-09 10:11:12.123456""#),
            ],
            vec![
                r#""2024-02-09T10:11:12""#,
                r#""2024-02-09 10:11""#,
                r#""2024-02-09""#,
                "1700000000000",
                r#""2024-02-09 10:11:12Z""#,
            ],
        ),
        (
            T::Timestamp(9),
            vec![(r#""2024-02-09 10:11:12.123456789""#, r#""2024-02-09 10:11:12.123456789""#)],
            vec![r#""1600-01-01 00:00:00""#],
        ),
        (
            T::TimestampLtz(3),
            vec![(r#""2024-02-09 10:11:12.5Z""#, r#""2024-02-09 10:11:12.5Z""#)],
            vec![r#""2024-02-09 10:11:12""#, r#""2024-02-09 10:11:12+08:00""#, "1700000000"],
        ),
        (
            T::Array(Box::new(nullable(T::Int))),
            vec![("[1, null,\"3\"]", "[1,null,3]"), ("[]", "[]")],
            vec!["{}", "1", r#""[1]""#],
        ),
        (
            T::Map(Box::new(not_null(STRING)), Box::new(nullable(T::Int))),
            vec![(r#"{"a":1,"b":null,"a":3}"#, r#"{"a":3,"b":null}"#), ("{}", "{}")],
            vec!["[]", "1"],
        ),
        (
            row(vec![("a", nullable(T::Int)), ("b", nullable(STRING))]),
            vec![(r#"{"b":"x","c":1}"#, r#"{"a":null,"b":"x"}"#), ("{}", r#"{"a":null,"b":null}"#)],
            vec!["[]", "1", r#""x""#, "true", "1e400"],
        ),
    ]
}

#[test]
fn each_type_accepts_and_rejects_what_flink_does() {
    for (logical, accepted, rejected) in type_table() {
        let schema = schema(vec![("v", nullable(logical.clone())), ("last", nullable(T::Int))]);
        for (value, written) in accepted {
            let body = format!(r#"{{"v": {value} ,"last":1}}"#);
            let expected = format!("{{\"v\":{written},\"last\":1}}\n");
            for options in [default_mode(), ignoring()] {
                let (_, text) =
                    decode(&schema, &options, body.as_bytes()).unwrap_or_else(|why| panic!("{body}: {why}"));
                assert_eq!(text, expected, "{value} as {logical:?}");
            }
        }
        for value in rejected {
            let body = format!(r#"{{"v":{value},"last":1}}"#);
            let reason = decode(&schema, &default_mode(), body.as_bytes()).expect_err(&body);
            assert!(reason.starts_with("column v: expected "), "{reason}");
            assert!(reason.ends_with(" at byte 5"), "{reason}");
            let (decoded, text) = decode(&schema, &ignoring(), body.as_bytes()).expect("ignored");
            assert_eq!(text, "{\"v\":null,\"last\":1}\n", "{value} as {logical:?}");
            assert_eq!(decoded, Decoded { rows: 1, nulled_fields: 1, ..Decoded::default() });
        }
    }
}

#[test]
fn iso_timestamps_are_read_and_written_with_a_t() {
    let schema = schema(vec![("t", nullable(T::Timestamp(3))), ("z", nullable(T::TimestampLtz(3)))]);
    let iso = options(&[(&TIMESTAMP_FORMAT, "ISO-8601")]);
    let (_, text) = decode(&schema, &iso, br#"{"t":"2024-02-09T10:11","z":"2024-02-09T10:11:12.50Z"}"#).unwrap();
    assert_eq!(text, "{\"t\":\"2024-02-09T10:11:00\",\"z\":\"2024-02-09T10:11:12.5Z\"}\n");
    assert!(decode(&schema, &iso, br#"{"t":"2024-02-09 10:11:12"}"#).is_err());
    assert!(decode(&schema, &iso, br#"{"t":"2017-04-21T12:46:37.000Z"}"#).is_err());
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
fn null_in_a_not_null_column_is_an_error_and_drops_the_row_when_ignoring() {
    let inner = row(vec![("a", not_null(T::Int))]);
    let strict = schema(vec![("id", not_null(T::Int)), ("r", nullable(inner))]);
    for body in [r#"{"id":null}"#, "{}"] {
        let reason = decode(&strict, &default_mode(), body.as_bytes()).unwrap_err();
        assert_eq!(reason, "column id: null where the schema says NOT NULL");
        check_want(&strict, &ignoring(), body.as_bytes(), Dropped, "ignore-parse-errors");
    }
    check_want(&strict, &ignoring(), br#"{"id":"x"}"#, Dropped, "ignore-parse-errors");
    let enclosing = Row(r#"{"id":1,"r":null}"#);
    check_want(&strict, &ignoring(), br#"{"id":1,"r":{"a":"x"}}"#, enclosing, "ignore-parse-errors");
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
    assert_eq!(text.trim_end(), ONE);
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
