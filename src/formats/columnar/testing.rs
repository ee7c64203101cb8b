//! What the tests of these formats have in common: rows of every type, and bodies that are broken in thousands of ways.

use arrow_array::RecordBatch;

use crate::{
    definition::Options,
    formats::{self, Decoder, Writer, flink_cases},
    model::{RowsBuilder, Schema},
};

/// Columns of every type.
pub(in crate::formats) const COLUMNS: [&str; 20] = [
    "b BOOLEAN",
    "i8 TINYINT",
    "i16 SMALLINT",
    "i32 INT NOT NULL",
    "i64 BIGINT",
    "f32 FLOAT",
    "f64 DOUBLE",
    "d9 DECIMAL(9, 2)",
    "d18 DECIMAL(18, 4)",
    "d38 DECIMAL(38, 10)",
    "c CHAR(3)",
    "s STRING",
    "x BYTES",
    "dt DATE",
    "tm TIME(3)",
    "ts3 TIMESTAMP(3)",
    "l ARRAY<INT>",
    "m MAP<STRING, BIGINT NOT NULL>",
    "r ROW<a INT, b ROW<c STRING, d ARRAY<DOUBLE>>>",
    "lr ARRAY<ROW<k STRING, v DECIMAL(20, 3)> NOT NULL>",
];

/// Rows of those columns as JSON, some with nulls, some with none.
pub(in crate::formats) fn rows_of_all_types(schema: &Schema) -> RecordBatch {
    let full = r#"{"b":true,"i8":-128,"i16":32767,"i32":7,"i64":-9007199254740993,"f32":1.5,"f64":-2.25e300,
        "d9":"-1234567.89","d18":"12345678901234.5678","d38":"1234567890123456789012345678.0123456789","c":"abc",
        "s":"Grüße 世界","x":"AAEC/w==","dt":"1582-10-15","tm":"23:59:59","ts3":"9999-12-31 23:59:59.999",
        "ts6":"0001-01-01 00:00:00.000001","z":"2026-11-30 12:00:00.123456Z","n":"2026-11-30 12:00:00.123456789",
        "l":[1,null,-3],"m":{"":-2,"k":1},"r":{"a":null,"b":{"c":"x","d":[0.5,null]}},
        "lr":[{"k":"a","v":"0.001"},{"k":null,"v":null}]}"#;
    let bodies = [
        full.to_owned(),
        r#"{"i32":-1}"#.to_owned(),
        r#"{"i32":0,"s":"","x":"","l":[],"m":{},"lr":[],"r":{"b":null},"dt":"1969-12-31","d9":0}"#.to_owned(),
        r#"{"i32":1,"r":{"a":3,"b":{"c":null,"d":[]}},"ts3":"1969-12-31 23:59:59.999","z":"1900-01-01 00:00:00Z"}"#
            .to_owned(),
    ];
    let mut decoder = formats::decoder("json", schema, &flink_cases::options("json", &[])).unwrap();
    let mut rows = RowsBuilder::new(schema);
    for round in 0..40 {
        for body in &bodies {
            decoder.decode(body.replace("\"i32\":7", &format!("\"i32\":{round}")).as_bytes(), &mut rows).unwrap();
        }
    }
    rows.finish().unwrap()
}

/// Columns as a definition has them, a line each.
pub(in crate::formats) fn declared(text: &str) -> Schema {
    let column = |line: &str| line.trim().replacen(": '", " ", 1).trim_end_matches('\'').to_owned();
    let columns: Vec<String> = text.lines().map(column).collect();
    flink_cases::schema(&columns.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The rows as a file of a format.
pub(in crate::formats) fn file(format: &str, schema: &Schema, options: &Options, batches: &[RecordBatch]) -> Vec<u8> {
    let Writer::Files(mut encoder) = formats::writer(format, schema, options).unwrap() else { panic!("lines") };
    let mut out = Vec::new();
    for batch in batches {
        assert_eq!(encoder.rows(batch, &mut out).unwrap(), []);
    }
    encoder.finish(&mut out).unwrap();
    out
}

/// Cuts, flips and overwrites bytes of a body: each is rows or an error, and in the second case nothing is appended. What
/// a library's panic would leave is the same.
pub(in crate::formats) fn break_it(decoder: &mut dyn Decoder, schema: &Schema, body: &[u8], times: usize) -> usize {
    let mut random = fastrand::Rng::with_seed(body.len() as u64);
    let mut errors = 0;
    let mut try_it = |broken: &[u8]| {
        errors += usize::from(flink_cases::decode_with(decoder, schema, broken).is_err());
    };
    for length in (0..body.len()).step_by((body.len() / 200).max(1)) {
        try_it(&body[..length]);
    }
    for _ in 0..times {
        let mut broken = body.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..broken.len());
            match random.u8(..4) {
                0 => broken[at] ^= 1 << random.u8(..8),
                1 => broken[at] = random.u8(..),
                2 => broken[at] = [0, 0x7f, 0x80, 0xff][random.usize(..4)],
                _ => {
                    let end = (at + random.usize(1..8)).min(broken.len());
                    broken[at..end].fill(0xff);
                }
            }
        }
        try_it(&broken);
    }
    errors
}
