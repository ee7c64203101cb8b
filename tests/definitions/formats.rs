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

/// What is told of files of a format with these options and columns, read as JSON.
#[cfg(feature = "columnar")]
fn told_of_files(format: &str, options: &[&str], columns: &[&str]) -> Vec<String> {
    let indented = |lines: &[&str], by: &str| lines.iter().map(|line| format!("{by}{line}\n")).collect::<String>();
    told(&format!(
        "source:\n  connector: mns\n  endpoint: http://127.0.0.1:9871\n  region: r\n  queueName: q\n  accessKeyId: i\n  \
         accessKeySecret: s\n  format: json\n  schema:\n{}sink:\n  connector: filesystem\n  path: out\n  format: {format}\n{}",
        indented(columns, "    "),
        indented(options, "  ")
    ))
}

#[cfg(feature = "columnar")]
#[test]
fn every_type_may_be_a_column_of_a_file() {
    let every = ["a: TIMESTAMP(9)", "b: TIMESTAMP_LTZ(9)", "c: TIME(9)", "d: 'ARRAY<ROW<x DECIMAL(38, 38)>>'"];
    for format in ["parquet", "orc"] {
        assert_eq!(told_of(format, &[], &every, false), [""; 0]);
    }
}

#[cfg(feature = "columnar")]
#[test]
fn options_of_avro_are_those_of_flink_and_its_columns_those_that_flink_derives_a_schema_for() {
    let options = ["avro.encoding: JSON", "avro.codec: zstandard", "avro.timestamp_mapping.legacy: false"];
    assert_eq!(told_of("avro", &options, &["a: TIMESTAMP(6)", "b: TIMESTAMP_LTZ(3)"], true), [""; 0]);
    assert_eq!(
        told_of("avro", &[], &["a: TIMESTAMP", "b: STRING"], false),
        ["10:8: error: column a: format avro has TIMESTAMP(0) to TIMESTAMP(3), not TIMESTAMP(6), unless \
          avro.timestamp_mapping.legacy is false"]
    );
    assert_eq!(
        told_of("avro", &[], &["a: 'ARRAY<TIMESTAMP_LTZ(3)>'"], false),
        ["10:8: error: column a: format avro has no TIMESTAMP_LTZ(3) unless avro.timestamp_mapping.legacy is false"]
    );
    assert_eq!(
        told_of("avro", &["avro.timestamp_mapping.legacy: false"], &["a: TIMESTAMP(9)"], false),
        ["11:8: error: column a: format avro has up to six digits, not TIMESTAMP(9)"]
    );
    assert_eq!(
        told_of("avro", &[], &["user-id: INT"], false),
        ["10:14: error: column user-id: `user-id` is no name in Avro, which has letters of ASCII, digits and `_` only"]
    );
    assert_eq!(
        told_of("avro", &[], &["m: 'MAP<INT, INT>'"], false)[0],
        "10:8: error: column m: format avro has maps with keys of text, not INT"
    );
    let told = told_of("avro", &["avro.codec: gzip"], &["a: INT"], true);
    assert!(told[0].contains("`avro.codec` is `gzip`; expected `null`, `deflate`"), "{told:?}");
}

#[cfg(feature = "columnar")]
#[test]
fn options_of_parquet_are_those_that_can_be_kept() {
    let options = [
        "parquet.compression: zstd",
        "parquet.block.size: 4mb",
        "parquet.page.size: 64kb",
        "parquet.enable.dictionary: false",
        "parquet.dictionary.page.size: 64kb",
        "parquet.write.int64.timestamp: true",
        "parquet.timestamp.time.unit: nanos",
        "parquet.utc-timezone: true",
    ];
    assert_eq!(told_of_files("parquet", &options, &["a: INT", "m: 'MAP<STRING, TIMESTAMP(3)>'"]), [""; 0]);
    assert_eq!(
        told_of_files("parquet", &["parquet.write.int64.timestamp: false", "parquet.block.size: 0"], &["a: INT"]),
        [
            "15:34: error: `parquet.write.int64.timestamp`: INT96 is read, but not written; expected true",
            "16:23: error: `parquet.block.size` is 0: it could hold nothing; expected a size above 0, such as `1mb`"
        ]
    );
    let told = told_of_files("parquet", &["parquet.bloom.filter.enabled: true"], &["a: INT"]);
    assert!(told[0].starts_with("15:3: error: "), "{told:?}");
    let told = told_of_files("parquet", &["parquet.compression: LZO"], &["a: INT"]);
    assert!(told[0].contains("expected `UNCOMPRESSED`, `SNAPPY`"), "{told:?}");
}

#[cfg(feature = "columnar")]
#[test]
fn a_format_that_only_reads_or_only_makes_files_is_refused_elsewhere() {
    let files = told_of_files("orc", &[], &["a: INT"]);
    assert!(files[0].starts_with("14:11: error: `filesystem` does not go with the format `orc`"), "{files:?}");
    let rocketmq = |format: &str| {
        told(&format!(
            "source:\n  connector: datagen\n  schema:\n    a: INT\nsink:\n  connector: rocketmq5\n  \
             rocketmq.client.endpoints: 127.0.0.1:8081\n  rocketmq.sink.topic: t\n  format: {format}\n"
        ))
    };
    assert_eq!(rocketmq("avro"), [""; 0]);
    assert!(rocketmq("parquet")[0].contains("`rocketmq5` does not go with the format `parquet`"));
}

#[cfg(not(feature = "columnar"))]
#[test]
fn a_build_without_them_knows_their_names_and_says_why_they_are_refused() {
    for format in ["avro", "parquet", "orc"] {
        let expected = format!("this build has no {format}: it was built without the feature `columnar`");
        let told = told_of(format, &[], &["a: INT"], false);
        assert_eq!(told, [format!("8:11: error: {expected}")]);
    }
}
