//! What Flink has no word on, and what was decided where it loses something.

use serde_json::{Value, json};

use super::{Encoder, check, options::*};
use crate::{
    definition::{OptionSpec, Options},
    formats::{
        Decoded, decoder, encoder,
        flink_cases::{decode, options, schema, shown},
    },
    model::RowsBuilder,
};

const LINES: (&str, &str) = ("csv.line-delimiter", "\\n");
const IGNORE: (&str, &str) = ("csv.ignore-parse-errors", "true");
const COLUMNS: [&str; 3] = ["a INT", "b STRING", "c DOUBLE"];

fn read(columns: &[&str], given: &[(&str, &str)], body: &str) -> Result<(Decoded, Value), String> {
    let schema = schema(columns);
    let (decoded, batch) = decode("csv", &schema, &options("csv", given), body.as_bytes())?;
    Ok((decoded, shown(&schema, &batch)))
}

fn rows(columns: &[&str], given: &[(&str, &str)], body: &str) -> Value {
    read(columns, given, body).map_or_else(|error| panic!("{body:?}: {error}"), |(_, rows)| rows)
}

#[test]
fn a_row_that_is_refused_is_told_by_its_number_where_a_body_has_several() {
    let body = "1,\"x\ny\",2\n\n2,z,3\nz,z,4";
    let of_several = read(&COLUMNS, &[LINES], body).unwrap_err();
    assert!(of_several.starts_with("row 3: column a: "), "{of_several}");
    let of_one = read(&COLUMNS, &[], "z,z,4").unwrap_err();
    assert!(of_one.starts_with("column a: "), "{of_one}");
}

#[test]
fn a_line_delimiter_splits_a_body_into_rows_outside_quotes() {
    let expected = json!([[1, "x\ny", "2.0"], [2, "z", "3.0"]]);
    for (body, given) in [
        ("1,\"x\ny\",2\n2,z,3", "\\n"),
        ("1,\"x\ny\",2\r\n2,z,3\r\n", "\n"),
        ("1,\"x\ny\",2\r2,z,3\n", "\\r"),
        ("\n1,\"x\ny\",2\n\n\n2,z,3\n\n", "\\n"),
        ("1,\"x\ny\",2|2,z,3", "|"),
        ("1,\"x\ny\",2|2,z,3|", "|"),
        ("1,\"x\ny\",2\u{e9}2,z,3\u{e9}", "\u{e9}"),
    ] {
        assert_eq!(rows(&COLUMNS, &[("csv.line-delimiter", given)], body), expected, "{body:?}");
    }
    assert_eq!(rows(&COLUMNS, &[("csv.line-delimiter", "|")], "1,x\ry,2"), json!([[1, "x\ry", "2.0"]]));
}

#[test]
fn an_empty_line_is_a_row_only_where_there_is_one_column() {
    assert_eq!(rows(&["s STRING"], &[LINES], "a\n\nb\n"), json!([["a"], [""], ["b"]]));
    assert_eq!(rows(&["s STRING"], &[LINES], "a\r\nb\r\n"), json!([["a"], ["b"]]));
    assert_eq!(rows(&["s STRING"], &[LINES], "\n"), json!([[""]]));
    for body in ["", "\n", "\r\n\n"] {
        assert!(read(&COLUMNS, &[LINES], body).unwrap_err().contains("no row"), "{body:?}");
        let (decoded, _) = read(&COLUMNS, &[LINES, IGNORE], body).unwrap();
        assert_eq!(decoded, Decoded { dropped: true, ..Decoded::default() }, "{body:?}");
    }
}

#[test]
fn one_bad_row_of_many_fails_the_message_or_is_dropped_alone_and_counted() {
    let good = json!([[1, "x", "2.0"], [4, "z", "5.0"]]);
    for (bad, reason) in [
        ("2,y,3,4", "4 fields where 3"),
        ("2,\"y\"y,3", "after a closing quote, found 'y' at byte"),
        ("2,y,3,,", "5 fields where 3"),
    ] {
        let body = format!("1,x,2\n{bad}\n4,z,5\n");
        let told = read(&COLUMNS, &[LINES], &body).unwrap_err();
        assert!(told.contains(reason), "{told}");
        let (decoded, found) = read(&COLUMNS, &[LINES, IGNORE], &body).unwrap();
        assert_eq!(decoded, Decoded { rows: 2, dropped: true, ..Decoded::default() }, "{bad}");
        assert_eq!(found, good, "{bad}");
        let twice = format!("1,x,2\n{bad}\n{bad}\n4,z,5\n{bad}");
        let (decoded, found) = read(&COLUMNS, &[LINES, IGNORE], &twice).unwrap();
        assert_eq!(decoded, Decoded { rows: 2, dropped: true, unread: 2, ..Decoded::default() }, "{bad}");
        assert_eq!(found, good, "{bad}");
    }
    // An open quote takes the rest of the body with it.
    let (decoded, found) = read(&COLUMNS, &[LINES, IGNORE], "1,x,2\n2,\"y,3\n4,z,5\n").unwrap();
    assert_eq!((decoded.rows, decoded.dropped), (1, true));
    assert_eq!(found, json!([[1, "x", "2.0"]]));
}

#[test]
fn comments_stand_between_rows_too() {
    let given = [LINES, ("csv.allow-comments", "true")];
    assert_eq!(rows(&["a INT", "b STRING"], &given, "#,\"\n1,x\n #y\n\n2,#z\n#"), json!([[1, "x"], [2, "#z"]]));
}

#[test]
fn what_cannot_be_null_takes_what_encloses_it_with_it() {
    let columns = ["a INT NOT NULL", "r ROW<x INT NOT NULL, y STRING>", "l ARRAY<INT NOT NULL>"];
    let null = [("csv.null-literal", "N")];
    for (body, reason) in [
        ("N,1;k,1", "column a: null where the schema says NOT NULL"),
        ("1,N;k,1", "column r.x: null where the schema says NOT NULL"),
        ("1,1;k,1;N", "column l[1]: null where the schema says NOT NULL"),
        ("1,q;k,1", "column r.x: expected INT, found \"q\""),
        ("q,1;k,1", "column a: expected INT, found \"q\""),
    ] {
        assert_eq!(read(&columns, &null, body).unwrap_err(), reason, "{body}");
    }
    let ignoring = [("csv.null-literal", "N"), IGNORE];
    for body in ["N,1;k,1", "q,1;k,1"] {
        let (decoded, _) = read(&columns, &ignoring, body).unwrap();
        assert_eq!(decoded, Decoded { dropped: true, ..Decoded::default() }, "{body}");
    }
    for (body, expected, nulled) in [
        ("1,N;k,1", json!([[1, null, [1]]]), 1),
        ("1,1;k,1;N", json!([[1, [1, "k"], null]]), 1),
        ("1,q,1;q", json!([[1, null, null]]), 2),
        ("1", json!([[1, null, null]]), 2),
        ("1,N,N", json!([[1, null, null]]), 0),
    ] {
        let (decoded, found) = read(&columns, &ignoring, body).unwrap();
        assert_eq!((found, decoded.nulled_fields), (expected, nulled), "{body}");
    }
}

#[test]
fn fields_made_null_are_counted() {
    for (given, body, nulled) in
        [(&[IGNORE][..], "q,x,q", 2), (&[IGNORE], "1", 2), (&[], "1,x,2", 0), (&[IGNORE, LINES], "q,x,2\n1,x,q\n1", 4)]
    {
        assert_eq!(read(&COLUMNS, given, body).unwrap().0.nulled_fields, nulled, "{body}");
    }
    let (decoded, found) = read(&["d DECIMAL(3, 1)"], &[], "1000").unwrap();
    assert_eq!((decoded.nulled_fields, found), (1, json!([[null]])));
}

#[test]
fn physical_columns_need_not_be_next_to_each_other() {
    let mut schema = schema(&["a INT", "m STRING METADATA FROM 'k'", "b STRING"]);
    let mut rows = RowsBuilder::new(&schema);
    let mut decoder = decoder("csv", &schema, &options("csv", &[LINES, IGNORE])).unwrap();
    assert_eq!(decoder.decode(b"1,x\n2,y,z\n3,w", &mut rows).unwrap().rows, 2);
    rows.column_mut(1).unwrap().append_null();
    rows.column_mut(1).unwrap().append_null();
    let batch = rows.finish().unwrap();
    schema.columns[1].metadata = None;
    assert_eq!(shown(&schema, &batch), json!([[1, null, "x"], [3, null, "w"]]));
}

#[test]
fn the_reason_names_the_place_and_repeats_no_whole_body() {
    for (body, reason) in [
        ("1,x", "2 fields where 3 are expected"),
        ("1,x,y", "column c: expected DOUBLE, found \"y\""),
        ("1,\"x,2", "the quote that opens at byte 2 is not closed"),
        (
            "1,x,2\n2,y,3",
            "more follows after the first row, at byte 6; a message holds one row, or several with csv.line-delimiter",
        ),
        ("", "no row in the body"),
    ] {
        assert_eq!(read(&COLUMNS, &[], body).unwrap_err(), reason);
    }
    assert!(read(&COLUMNS, &[], &"x".repeat(10_000).replace('x', "x,")).unwrap_err().len() < 100);
    assert!(read(&COLUMNS, &[], &format!("{},x,2", "x".repeat(10_000))).unwrap_err().len() < 100);
}

fn contradiction(given: &[(&str, &str)]) -> Option<(String, &'static OptionSpec)> {
    check(&options("csv", given))
}

#[test]
fn options_that_contradict_each_other_are_told_apart() {
    for (given, reason, place) in [
        (
            &[("csv.disable-quote-character", "true"), ("csv.quote-character", "'")][..],
            "csv.quote-character cannot be given while csv.disable-quote-character is true",
            &QUOTE_CHARACTER,
        ),
        (
            &[("csv.field-delimiter", "\"")],
            "csv.field-delimiter and csv.quote-character are the same character",
            &FIELD_DELIMITER,
        ),
        (
            &[("csv.quote-character", "|"), ("csv.field-delimiter", "|")],
            "csv.field-delimiter and csv.quote-character are the same character",
            &QUOTE_CHARACTER,
        ),
        (
            &[("csv.escape-character", ",")],
            "csv.field-delimiter and csv.escape-character are the same character",
            &ESCAPE_CHARACTER,
        ),
        (
            &[("csv.line-delimiter", ",")],
            "csv.field-delimiter and csv.line-delimiter are the same character",
            &LINE_DELIMITER,
        ),
        (&[("csv.field-delimiter", "\\n")], "csv.field-delimiter cannot be a line end", &FIELD_DELIMITER),
    ] {
        let (told, option) = contradiction(given).unwrap();
        assert_eq!((told.as_str(), option.name), (reason, place.name));
    }
    for given in [
        &[][..],
        &[("csv.disable-quote-character", "true"), ("csv.field-delimiter", "\"")],
        &[("csv.array-element-delimiter", ",")],
        &[("csv.line-delimiter", "\\r")],
    ] {
        assert!(contradiction(given).is_none(), "{given:?}");
    }
    assert!(Encoder::new(&schema(&["a INT"]), &options("csv", &[("csv.null-literal", "a,b")])).is_err());
}

#[test]
fn columns_that_csv_cannot_hold_are_named() {
    for (ty, reason) in [
        ("MAP<STRING, INT>", "column v: format csv has no MAP"),
        ("ARRAY<MAP<STRING, INT>>", "column v: format csv has no MAP"),
        ("ARRAY<ARRAY<INT>>", "column v: format csv has only simple types inside ARRAY and ROW, not ARRAY<INT>"),
        ("TIME(6)", "column v: format csv has TIME(0) to TIME(3), not TIME(6)"),
    ] {
        let schema = schema(&[&format!("v {ty}")]);
        let told = decoder("csv", &schema, &Options::default()).err().unwrap();
        assert_eq!(told, reason);
        assert_eq!(encoder("csv", &schema, &Options::default()).err().unwrap(), reason);
    }
}

/// What a body, read with the same options, is written as; or why its rows are refused.
fn written(columns: &[&str], given: &[(&str, &str)], body: &str) -> Result<String, String> {
    let (schema, options) = (schema(columns), options("csv", given));
    let (_, batch) = decode("csv", &schema, &options, body.as_bytes())?;
    let mut out = b"before|".to_vec();
    let rejects = encoder("csv", &schema, &options).unwrap().encode(&batch, &mut out);
    match rejects.first() {
        Some(reject) => Err(reject.reason.clone()),
        None => Ok(String::from_utf8(out.split_off("before|".len())).unwrap()),
    }
}

#[test]
fn each_row_is_followed_by_the_line_delimiter() {
    assert_eq!(written(&["a INT", "b STRING"], &[LINES], "1,x\r\n2,y").unwrap(), "1,x\n2,y\n");
    assert_eq!(written(&["a INT", "b STRING"], &[("csv.line-delimiter", "|")], "1,x|2,y").unwrap(), "1,\"x\"|2,\"y\"|");
}

#[test]
fn what_would_read_back_as_something_else_refuses_its_row_alone() {
    let given = [LINES, ("csv.disable-quote-character", "true"), ("csv.escape-character", "\\")];
    let body = "1,a\n2,a\\,b\n3,a\\nb\n4,a\\\\b\n5,b";
    let (schema, options) = (schema(&["n INT", "s STRING"]), options("csv", &given));
    let (_, batch) = decode("csv", &schema, &options, body.as_bytes()).unwrap();
    let mut out = Vec::new();
    let rejects = encoder("csv", &schema, &options).unwrap().encode(&batch, &mut out);
    assert_eq!(rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(rejects[0].reason.starts_with("column s: it holds a delimiter, line end or escape"), "{rejects:?}");
    assert_eq!(String::from_utf8(out).unwrap(), "1,a\n5,b\n");
}

#[test]
fn an_element_that_holds_the_delimiter_of_elements_refuses_its_row() {
    let schema = schema(&["l ARRAY<STRING>"]);
    let slashes = options("csv", &[("csv.array-element-delimiter", "/")]);
    let (_, batch) = decode("csv", &schema, &slashes, b"a;b/c").unwrap();
    let told = encoder("csv", &schema, &Options::default()).unwrap().encode(&batch, &mut Vec::new());
    assert_eq!(told[0].reason, "column l: a value in it holds ';' (csv.array-element-delimiter)");
}

#[test]
fn a_batch_of_another_shape_is_refused_row_by_row() {
    let (_, batch) = decode("csv", &schema(&["n BIGINT"]), &options("csv", &[LINES]), b"1\n2").unwrap();
    let mut out = Vec::new();
    let rejects = encoder("csv", &schema(&["n INT"]), &Options::default()).unwrap().encode(&batch, &mut out);
    assert_eq!(rejects.len(), 2);
    assert_eq!(rejects[0].reason, "column n: Int64 where Int32 is expected");
    assert!(out.is_empty());
}

#[test]
fn what_is_written_reads_back_the_same() {
    let alphabet: Vec<char> = "ab ,;|\"'\\#\n\r\t0nN.é世😀\u{1}".chars().collect();
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..3000 {
        let pick = |random: &mut fastrand::Rng, choices: &[&'static str]| choices[random.usize(..choices.len())];
        let mut given = vec![LINES, ("csv.field-delimiter", pick(&mut random, &[",", "|", "\\t", "é"]))];
        given.push(("csv.quote-character", pick(&mut random, &["\"", "'", "世"])));
        given.extend(random.bool().then_some(("csv.escape-character", "\\")));
        given.extend(random.bool().then_some(("csv.null-literal", "nil")));
        let columns = ["n INT", "s STRING", "l ARRAY<STRING>", "e BYTES", "t TIMESTAMP(3)"];
        let (schema, options) = (schema(&columns), options("csv", &given));
        let text: String = (0..random.usize(..30)).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
        let element = text.replace(';', "");
        let mut builder = RowsBuilder::new(&schema);
        fill(&mut builder, random.i32(..), &text, &element);
        let batch = builder.finish().unwrap();
        let mut out = Vec::new();
        assert_eq!(encoder("csv", &schema, &options).unwrap().encode(&batch, &mut out), []);
        let (_, again) = decode("csv", &schema, &options, &out)
            .unwrap_or_else(|error| panic!("{given:?}: {:?}: {error}", String::from_utf8_lossy(&out)));
        assert_eq!(shown(&schema, &again), shown(&schema, &batch), "{given:?}: {:?}", String::from_utf8_lossy(&out));
    }
}

fn fill(rows: &mut RowsBuilder, number: i32, text: &str, element: &str) {
    use crate::model::Scalar;
    let [n, s, l, e, t] = rows.columns_mut() else { panic!("five columns") };
    n.append(Scalar::Int32(number)).unwrap();
    s.append(Scalar::Text(text)).unwrap();
    for element in ["x", element] {
        l.items_mut().unwrap().append(Scalar::Text(element)).unwrap();
    }
    l.close().unwrap();
    e.append(Scalar::Bytes(text.as_bytes())).unwrap();
    t.append(Scalar::Int64(i64::from(number) * 1000)).unwrap();
}

#[test]
fn no_body_panics_or_leaves_half_a_row() {
    let alphabet: Vec<char> = "1,;\"\\#\n\r |xé世N".chars().collect();
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..20_000 {
        let body: String = (0..random.usize(..24)).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
        let mut given = Vec::new();
        given.extend(random.bool().then_some(LINES));
        given.extend(random.bool().then_some(IGNORE));
        given.extend(random.bool().then_some(("csv.escape-character", "\\")));
        given.extend(random.bool().then_some(("csv.allow-comments", "true")));
        given.extend(random.bool().then_some(("csv.null-literal", "N")));
        given.extend(random.bool().then_some(("csv.field-delimiter", "é")));
        let columns = ["b STRING", "a INT NOT NULL", "r ROW<x INT, y STRING NOT NULL>", "l ARRAY<INT>"];
        // `decode` looks that nothing is left.
        let found = read(&columns[..random.usize(1..=4)], &given, &body);
        if given.contains(&IGNORE) {
            let (decoded, _) = found.unwrap_or_else(|error| panic!("{body:?}: {error}"));
            assert!(decoded.rows > 0 || decoded.dropped, "{body:?}: silently nothing");
        }
    }
}
