//! The worked cases of the format, as traced through the code of Apache's connector; and what that is silent on.

use serde_json::{Value, json};

use super::{Decoder, Delimiters, Encoder, Encoding, LengthCheck, Settings, unfit};
use crate::formats::{
    Decoded, Encoder as _,
    flink_cases::{decode_with, schema, shown},
};

use LengthCheck::{Exception, None as Any, Pad, Skip};

const THREE: [&str; 3] = ["user_id BIGINT", "item_id BIGINT", "behavior STRING"];

fn settings(length_check: LengthCheck) -> Settings {
    let (fields, lines) = (Delimiters::parse(",").unwrap(), Delimiters::parse("\\n").unwrap());
    Settings { encoding: Encoding::find("UTF-8").unwrap(), fields, lines, length_check }
}

fn read_with(columns: &[&str], settings: Settings, body: &[u8]) -> Result<(Decoded, Value), String> {
    let schema = schema(columns);
    let mut decoder = Decoder::new(&schema, settings).unwrap();
    let (decoded, batch) = decode_with(&mut decoder, &schema, body)?;
    Ok((decoded, shown(&schema, &batch)))
}

fn read(columns: &[&str], check: LengthCheck, body: &str) -> Result<(Decoded, Value), String> {
    read_with(columns, settings(check), body.as_bytes())
}

fn counted(rows: u32, nulled_fields: u32, dropped: bool, unread: u32) -> Decoded {
    Decoded { rows, nulled_fields, dropped, unread }
}

#[test]
fn each_length_check_makes_of_each_body_what_apaches_connector_makes_of_it() {
    let same = |rows: Value| [Some(rows.clone()), Some(rows.clone()), Some(rows.clone()), Some(rows)];
    let buy = || Some(json!([[1, 2, "buy"]]));
    let second = || Some(json!([[3, 4, "pv"]]));
    let none = || Some(json!([]));
    for (body, expected) in [
        ("1,2,buy", same(json!([[1, 2, "buy"]]))),
        ("1,2,buy\n3,4,pv", same(json!([[1, 2, "buy"], [3, 4, "pv"]]))),
        ("1,2,buy\n\n3,4,pv\n", same(json!([[1, 2, "buy"], [3, 4, "pv"]]))),
        ("1,2", [none(), none(), Some(json!([[1, 2, null]])), None]),
        ("1,2,buy,x", [buy(), none(), buy(), None]),
        ("1,,buy", [none(), none(), none(), None]),
        ("a,2,buy\n3,4,pv", [second(), second(), second(), None]),
        ("1,2,buy\r\n", same(json!([[1, 2, "buy\r"]]))),
        ("1,2,", same(json!([[1, 2, ""]]))),
        ("", same(json!([]))),
    ] {
        for (check, expected) in [Any, Skip, Pad, Exception].into_iter().zip(expected) {
            let rows = read(&THREE, check, body).map(|(_, rows)| rows);
            assert_eq!(rows.ok(), expected, "{check:?} of {body:?}");
        }
    }
}

#[test]
fn what_is_skipped_left_out_or_null_is_counted() {
    for (check, body, expected) in [
        (Any, "1,2,buy", counted(1, 0, false, 0)),
        (Any, "1,2\n3,4,pv\n5", counted(1, 0, true, 1)),
        (Any, "1,2,buy,x,y\n3,4,pv,z", counted(2, 0, false, 3)),
        (Any, "1,2,buy,x\n1\n1", counted(1, 0, true, 2)),
        (Skip, "1,2,buy,x\n3,4,pv", counted(1, 0, true, 0)),
        (Pad, "1\n2,3", counted(2, 3, false, 0)),
        (Pad, "x\n2,3,pv,y", counted(1, 0, true, 1)),
        (Any, "\n\n", counted(0, 0, false, 0)),
    ] {
        assert_eq!(read(&THREE, check, body).unwrap().0, expected, "{check:?} of {body:?}");
    }
}

#[test]
fn null_for_a_column_that_is_not_null_skips_the_line() {
    let columns = ["a INT", "b INT NOT NULL", "c DECIMAL(3, 1)"];
    assert_eq!(read(&columns, Pad, "1\n1,2").unwrap(), (counted(1, 1, true, 0), json!([[1, 2, null]])));
    assert_eq!(read(&columns, Any, "1,2,345.6").unwrap(), (counted(1, 1, false, 0), json!([[1, 2, null]])));
    let strict = ["a INT", "c DECIMAL(3, 1) NOT NULL"];
    assert_eq!(read(&strict, Any, "1,345.6").unwrap(), (counted(0, 0, true, 0), json!([])));
}

#[test]
fn an_exception_names_line_and_column_and_leaves_nothing_of_the_message() {
    for (body, reason) in [
        ("1,2,buy\nx,4,pv", "line 2: column user_id: expected BIGINT, found \"x\""),
        ("1,2,buy\n\n3,4", "line 3: 2 fields where 3 are expected"),
        ("1,2,buy,x", "line 1: 4 fields where 3 are expected"),
    ] {
        assert_eq!(read(&THREE, Exception, body).unwrap_err(), reason);
    }
}

#[test]
fn a_line_of_the_only_column_is_its_value_whatever_it_holds() {
    for check in [Any, Skip, Pad, Exception] {
        let both = (counted(2, 0, false, 0), json!([["a,b"], ["c"]]));
        assert_eq!(read(&["line STRING"], check, "a,b\nc\n").unwrap(), both);
    }
    assert_eq!(read(&["n INT"], Any, "1\nx\n3").unwrap(), (counted(2, 0, true, 0), json!([[1], [3]])));
}

#[test]
fn the_only_column_of_bytes_is_the_body_as_it_is() {
    for declared in ["b VARBINARY", "b BYTES", "b BINARY(3)"] {
        for (body, base64) in [(&b"\x01,\n\xff\0"[..], "ASwK/wA="), (b"", "")] {
            let whole = (counted(1, 0, false, 0), json!([[base64]]));
            assert_eq!(read_with(&[declared], settings(Exception), body).unwrap(), whole);
        }
    }
}

/// What a field is as a type; `None`: it is none.
fn value(declared: &str, field: &str) -> Option<Value> {
    let rows = read(&[&format!("v {declared}")], Any, field).unwrap().1;
    rows.get(0).map(|row| row[0].clone())
}

#[test]
fn fields_are_read_as_java_reads_them_and_not_trimmed() {
    for (declared, field, expected) in [
        ("STRING", " a ", json!(" a ")),
        ("VARCHAR(1)", "ab", json!("ab")),
        ("BOOLEAN", "TRUE", json!(true)),
        ("BOOLEAN", "False", json!(false)),
        ("BOOLEAN", "1", json!(true)),
        ("BOOLEAN", "0", json!(false)),
        ("TINYINT", "-128", json!(-128)),
        ("INT", "+7", json!(7)),
        ("DOUBLE", "1.5e3", json!("1500.0")),
        ("FLOAT", "NaN", json!("NaN")),
        ("DECIMAL(5, 2)", "1.005", json!("1.01")),
        ("DATE", "2026-1-2", json!("2026-01-02")),
        ("TIME(3)", "3723004", json!("01:02:03.004")),
        ("TIME", "3723004", json!("01:02:03")),
        ("TIMESTAMP(3)", "2026-11-30 12:00:00.5", json!("2026-11-30 12:00:00.5")),
        ("TIMESTAMP(3)", "1500", json!("1970-01-01 00:00:01.5")),
        ("TIMESTAMP(9)", "-1", json!("1969-12-31 23:59:59.999")),
        ("TIMESTAMP_LTZ(3)", "2026-11-30 12:00:00Z", json!("2026-11-30 12:00:00Z")),
        ("TIMESTAMP_LTZ(3)", "0", json!("1970-01-01 00:00:00Z")),
    ] {
        assert_eq!(value(declared, field), Some(expected), "{declared} of {field:?}");
    }
    for (declared, field) in [
        ("BOOLEAN", "yes"),
        ("BOOLEAN", " true"),
        ("INT", " 1"),
        ("INT", "1.0"),
        ("INT", "3000000000"),
        ("TINYINT", "128"),
        ("DOUBLE", "x"),
        ("DECIMAL(5, 2)", " 1"),
        ("DATE", "30.11.2026"),
        ("TIME", "12:00:00"),
        ("TIME", "86400000"),
        ("TIMESTAMP(3)", "2026-11-30"),
        ("TIMESTAMP_LTZ(3)", "2026-11-30 12:00:00"),
        ("TIMESTAMP(9)", "9223372036854775807"),
    ] {
        assert_eq!(value(declared, field), None, "{declared} of {field:?}");
    }
}

#[test]
fn bodies_are_of_the_charset_and_broken_ones_are_read_as_java_reads_them() {
    let gbk = Settings { encoding: Encoding::find("gbk").unwrap(), ..settings(Any) };
    assert_eq!(read_with(&["s STRING"], gbk, b"\xd6\xd0").unwrap().1, json!([["中"]]));
    assert_eq!(read_with(&["s STRING"], settings(Any), b"a\xff").unwrap().1, json!([["a\u{fffd}"]]));
    assert_eq!(Encoding::find("UTF8-").err(), Some(Some("UTF-8")));
}

/// The bodies that are written for what is read from a body, and why a row was refused.
fn written(columns: &[&str], settings: Settings, body: &[u8]) -> (Vec<Vec<u8>>, Vec<String>) {
    let schema = schema(columns);
    let mut decoder = Decoder::new(&schema, settings.clone()).unwrap();
    let (_, batch) = decode_with(&mut decoder, &schema, body).unwrap();
    let (mut bodies, mut out) = (Vec::new(), Vec::new());
    let mut encoder = Encoder::new(&schema, settings).unwrap();
    let rejects = encoder.encode_rows(&batch, &mut out, &mut |_, out| bodies.push(std::mem::take(out)));
    (bodies, rejects.into_iter().map(|reject| reject.reason).collect())
}

#[test]
fn what_is_written_reads_back_the_same() {
    let columns = [
        "a BOOLEAN",
        "b TINYINT",
        "c BIGINT",
        "d FLOAT",
        "e DOUBLE",
        "f DECIMAL(10, 2)",
        "g STRING",
        "h DATE",
        "i TIME(3)",
        "j TIMESTAMP(3)",
        "k TIMESTAMP_LTZ(9)",
    ];
    let line = "true,-1,9,1.5,1.0E10,12.5,x \"y\",2026-11-30,3723004,2026-11-30 12:00:00.5,2026-11-30 12:00:00Z";
    assert_eq!(written(&columns, settings(Exception), line.as_bytes()), (vec![line.into()], vec![]));
    assert_eq!(written(&["b BYTES"], settings(Any), b"\xff,\n"), (vec![b"\xff,\n".to_vec()], vec![]));
}

#[test]
fn null_is_the_empty_text_and_nothing_is_escaped() {
    assert_eq!(written(&THREE, settings(Pad), b"1\n,2").0, [b"1,,"]);
    assert_eq!(written(&["s STRING"], settings(Any), b"a,b").0, [b"a,b"]);
    let sets = Settings { fields: Delimiters::parse("|,").unwrap(), ..settings(Any) };
    assert_eq!(written(&["a STRING", "b STRING"], sets, b"x,y").0, [b"x|y"], "the first of a set");
}

#[test]
fn what_the_charset_lacks_and_a_body_that_is_null_refuse_their_row_alone() {
    let ascii = || Settings { encoding: Encoding::find("US-ASCII").unwrap(), ..settings(Any) };
    let schema = schema(&["s STRING"]);
    let mut decoder = Decoder::new(&schema, settings(Any)).unwrap();
    let (_, batch) = decode_with(&mut decoder, &schema, "a\né\nb".as_bytes()).unwrap();
    let mut out = Vec::new();
    let rejects = Encoder::new(&schema, ascii()).unwrap().encode(&batch, &mut out);
    assert_eq!((out.as_slice(), rejects.len(), rejects[0].row), (&b"a\nb\n"[..], 1, 1));
    assert!(rejects[0].reason.contains("lacks 'é'"), "{}", rejects[0].reason);

    let bytes = crate::formats::flink_cases::schema(&["b BYTES"]);
    let mut rows = crate::model::RowsBuilder::new(&bytes);
    rows.column_mut(0).unwrap().append_null();
    let rejects = Encoder::new(&bytes, settings(Any)).unwrap().encode(&rows.finish().unwrap(), &mut Vec::new());
    assert_eq!(rejects[0].reason, "null is no body");
}

#[test]
fn a_column_that_a_line_cannot_hold_is_told() {
    for (columns, reason) in [
        (&["a INT", "b VARBINARY"][..], "column b: BYTES is a whole body, which no other column can be a part of"),
        (&["a ARRAY<INT>"], "column a: format delimited has no ARRAY<INT>"),
        (&["a INT", "m MAP<STRING, STRING>"], "column m: format delimited has no MAP<STRING, STRING>"),
        (&["t TIME(6)"], "column t: format delimited has no TIME(6)"),
    ] {
        assert_eq!(unfit(&schema(columns)).unwrap().to_string(), reason);
    }
    let beside = ["b VARBINARY", "keys STRING METADATA", "properties MAP<STRING, STRING> METADATA"];
    assert_eq!(unfit(&schema(&beside)), None);
}
