//! What a format cannot do with its options or columns is told at the option or the column's type.

use crate::told;

/// What is told of a definition with this format, these options (a line each) and these columns at the source, and
/// `json` or the same at the sink.
fn told_of(format: &str, options: &[&str], columns: &[&str], both: bool) -> Vec<String> {
    let indented = |lines: &[&str], by: &str| lines.iter().map(|line| format!("{by}{line}\n")).collect::<String>();
    let options = indented(options, "  ");
    let sink = if both { format!("  format: {format}\n{options}") } else { "  format: json\n".to_owned() };
    told(&format!(
        "source:\n  connector: mns\n  endpoint: http://127.0.0.1:9871\n  region: r\n  queueName: q\n  accessKeyId: i\n  \
         accessKeySecret: s\n  format: {format}\n{options}  schema:\n{}sink:\n  connector: filesystem\n  path: out\n{sink}",
        indented(columns, "    ")
    ))
}

#[test]
fn options_of_csv_are_understood_as_flink_understands_them() {
    let options = [
        "csv.field-delimiter: '\\t'",
        "csv.line-delimiter: \"\\n\"",
        "csv.quote-character: \"'\"",
        "csv.allow-comments: TRUE",
        "csv.ignore-parse-errors: false",
        "csv.array-element-delimiter: '\\u0001'",
        "csv.escape-character: '\\'",
        "csv.null-literal: ''",
        "csv.write-bigdecimal-in-scientific-notation: false",
    ];
    assert_eq!(
        told_of("csv", &options, &["a: INT", "b: 'ARRAY<ROW<x INT>>'"], true).len(),
        2,
        "only the type is wrong"
    );
    assert_eq!(told_of("csv", &options, &["a: INT", "b: 'ROW<x INT, y DATE>'"], true), [""; 0]);
    let without = ["csv.disable-quote-character: true", "csv.field-delimiter: '\\u0001'"];
    assert_eq!(told_of("csv", &without, &["a: INT"], true), [""; 0]);
}

#[test]
fn options_of_csv_that_contradict_each_other_are_told_at_one_of_them() {
    assert_eq!(
        told_of("csv", &["csv.disable-quote-character: true", "csv.quote-character: '|'"], &["a: INT"], false),
        ["10:24: error: csv.quote-character cannot be given while csv.disable-quote-character is true"]
    );
    assert_eq!(
        told_of("csv", &["csv.field-delimiter: '\"'"], &["a: INT"], false),
        ["9:24: error: csv.field-delimiter and csv.quote-character are the same character"]
    );
    assert_eq!(
        told_of("csv", &["csv.field-delimiter: '||'"], &["a: INT"], false),
        ["9:24: error: `csv.field-delimiter` is `||`; expected exactly one character (`\\t`, `\\n` and `\\u0001` are \
          understood)"]
    );
}

#[test]
fn columns_that_a_format_cannot_hold_are_told_at_their_types() {
    assert_eq!(
        told_of("csv", &[], &["a: INT", "m: 'MAP<STRING, INT>'"], false),
        ["11:8: error: column m: format csv has no MAP"]
    );
    assert_eq!(
        told_of("csv", &[], &["a: INT", "t: TIME(6)"], false),
        ["11:8: error: column t: format csv has TIME(0) to TIME(3), not TIME(6)"]
    );
    assert_eq!(told_of("raw", &[], &["d: DATE"], false), ["10:8: error: column d: format raw has no DATE"]);
    assert_eq!(
        told_of("raw", &[], &["a: INT", "b: INT"], false),
        ["9:3: error: format raw has exactly one column, not 2"]
    );
    // Metadata does not come from the body.
    assert_eq!(told_of("raw", &[], &["a: STRING", "message-id: STRING METADATA"], false), [""; 0]);
    // But it is written.
    let both = told_of("raw", &[], &["a: STRING", "message-id: STRING METADATA"], true);
    assert_eq!(both, ["12:1: error: format raw has exactly one column, not 2"]);
}

#[test]
fn options_of_raw_are_told_where_they_stand() {
    assert_eq!(
        told_of("raw", &["raw.charset: UFT-8"], &["a: STRING"], false),
        ["9:16: error: there is no charset `UFT-8`; did you mean `UTF-8`?"]
    );
    assert_eq!(
        told_of("raw", &["raw.line-delimiter: ';'"], &["a: BYTES"], false),
        ["9:23: error: raw.line-delimiter needs a column of text, not BYTES"]
    );
    assert_eq!(told_of("raw", &["raw.charset: gbk", "raw.endianness: Little-Endian"], &["a: STRING"], false), [""; 0]);
}

#[test]
fn options_go_with_their_own_format() {
    let told = told_of("csv", &["json.ignore-parse-errors: true"], &["a: INT"], false);
    assert_eq!(told.len(), 1);
    assert!(told[0].ends_with("`json.ignore-parse-errors` goes with `format: json`"), "{told:?}");
    let told = told_of("csv", &["csv.field-delimeter: ';'"], &["a: INT"], false);
    assert!(told[0].ends_with("did you mean `csv.field-delimiter`?"), "{told:?}");
}
