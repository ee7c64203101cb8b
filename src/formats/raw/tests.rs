//! What Flink 1.20 has no word on.

use serde_json::{Value, json};

use crate::formats::charset::{Charset, NAMES};
use crate::{
    definition::Options,
    formats::{
        decoder, encoder,
        flink_cases::{decode, options, schema, shown},
    },
};

fn read(given: &[(&str, &str)], body: &[u8]) -> Value {
    let schema = schema(&["s STRING"]);
    let (decoded, batch) = decode("raw", &schema, &options("raw", given), body).unwrap();
    assert_eq!(decoded.rows as usize, batch.num_rows());
    shown(&schema, &batch)
}

#[test]
fn a_line_delimiter_splits_a_text_into_rows() {
    for (delimiter, body, expected) in [
        ("\\n", "a\nb", json!([["a"], ["b"]])),
        ("\\n", "a\nb\n", json!([["a"], ["b"]])),
        ("\\n", "\n\n", json!([[""], [""]])),
        ("\\n", "", json!([[""]])),
        ("\\r\\n", "a\nb\r\nc", json!([["a\nb"], ["c"]])),
        ("\\u0001", "a\u{1}b", json!([["a"], ["b"]])),
        ("||", "a||b|c||", json!([["a"], ["b|c"]])),
    ] {
        assert_eq!(read(&[("raw.line-delimiter", delimiter)], body.as_bytes()), expected, "{body:?}");
    }
    let utf16: Vec<u8> = "中\n文".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let given = [("raw.charset", "utf-16be"), ("raw.line-delimiter", "\\n")];
    assert_eq!(read(&given, &utf16), json!([["中"], ["文"]]));
}

fn written(columns: &[&str], given: &[(&str, &str)], body: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (schema, options) = (schema(columns), options("raw", given));
    let (_, batch) = decode("raw", &schema, &options, body).unwrap();
    let mut out = Vec::new();
    let rejects = encoder("raw", &schema, &options).unwrap().encode(&batch, &mut out);
    (out, rejects.into_iter().map(|reject| reject.reason).collect())
}

#[test]
fn each_value_is_followed_by_a_line_feed_or_the_delimiter() {
    assert_eq!(written(&["s STRING"], &[], b"a\nb").0, b"a\nb\n");
    assert_eq!(written(&["n INT"], &[], b"\0\0\x01\0").0, b"\0\0\x01\0\n");
    assert_eq!(written(&["s STRING"], &[("raw.line-delimiter", "\\r\\n")], b"a\r\nb").0, b"a\r\nb\r\n");
    let utf16 = [("raw.charset", "UTF-16LE"), ("raw.line-delimiter", ";")];
    assert_eq!(written(&["s STRING"], &utf16, b"a\0;\0b\0").0, b"a\0;\0b\0;\0");
}

#[test]
fn null_and_what_the_charset_lacks_refuse_their_row_alone() {
    let lines = [("raw.line-delimiter", "\\n")];
    let (schema, utf8) = (schema(&["s STRING"]), options("raw", &lines));
    let (_, batch) = decode("raw", &schema, &utf8, "a\n中\né\n".as_bytes()).unwrap();
    for (charset, expected, refused) in [
        ("US-ASCII", &b"a\n"[..], vec![1, 2]),
        ("ISO-8859-1", b"a\n\xe9\n", vec![1]),
        ("GBK", b"a\n\xd6\xd0\n\xa8\xa6\n", vec![]),
    ] {
        let mut out = Vec::new();
        let options = options("raw", &[("raw.charset", charset)]);
        let rejects = encoder("raw", &schema, &options).unwrap().encode(&batch, &mut out);
        assert_eq!(rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(), refused, "{charset}");
        assert_eq!(out, expected, "{charset}");
    }
    let mut rows = crate::model::RowsBuilder::new(&schema);
    rows.columns_mut()[0].append_null();
    let mut out = Vec::new();
    let rejects = encoder("raw", &schema, &utf8).unwrap().encode(&rows.finish().unwrap(), &mut out);
    assert_eq!(rejects[0].reason, "column s: null has no raw form");
    assert!(out.is_empty());
}

#[test]
fn a_text_that_holds_the_delimiter_is_refused() {
    let schema = schema(&["s STRING"]);
    let (_, batch) = decode("raw", &schema, &Options::default(), b"a\nb").unwrap();
    let options = options("raw", &[("raw.line-delimiter", "\\n")]);
    let rejects = encoder("raw", &schema, &options).unwrap().encode(&batch, &mut Vec::new());
    assert_eq!(rejects[0].reason, "column s: it holds raw.line-delimiter");
}

#[test]
fn every_charset_that_is_suggested_exists_and_reads_back_what_it_writes() {
    for name in NAMES {
        let charset = Charset::find(name).unwrap_or_else(|| panic!("{name}"));
        let mut bytes = Vec::new();
        charset.encode("Aa1 -", &mut bytes).unwrap();
        assert_eq!(charset.decode(&bytes), "Aa1 -", "{name}");
    }
    for name in ["nope", "replacement", "x-user-defined", "l1", "ucs-2", ""] {
        assert!(Charset::find(name).is_none(), "{name}");
    }
}

#[test]
fn what_raw_cannot_do_is_told_with_its_reason() {
    for (columns, given, reason) in [
        (&["a INT", "b INT"][..], &[][..], "format raw has exactly one column, not 2"),
        (&["d DATE"], &[], "column d: format raw has no DATE"),
        (&["s STRING"], &[("raw.charset", "UFT-8")], "there is no charset `UFT-8`"),
        (&["n INT"], &[("raw.line-delimiter", ";")], "raw.line-delimiter needs a column of text, not INT"),
        (&["s STRING"], &[("raw.line-delimiter", "\\u00")], "`\\u00` has a broken escape"),
    ] {
        let (schema, options) = (schema(columns), options("raw", given));
        assert_eq!(decoder("raw", &schema, &options).err().unwrap(), reason);
        assert_eq!(encoder("raw", &schema, &options).err().unwrap(), reason);
    }
}

#[test]
fn the_wrong_size_names_the_right_one() {
    let told = decode("raw", &schema(&["n BIGINT"]), &Options::default(), b"1").unwrap_err();
    assert_eq!(told, "column n: expected BIGINT as 8 bytes, found 1");
}
