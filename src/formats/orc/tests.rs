use super::*;
use crate::{
    definition::Options,
    formats::{
        columnar::testing::{COLUMNS, break_it, file, rows_of_all_types},
        flink_cases::{decode, decode_with, options, schema},
    },
};

fn columns() -> Vec<&'static str> {
    let written = |column: &&str| {
        !["d9 ", "d18", "d38", "tm ", "l A", "m M", "r R", "lr "].contains(&&column[..3.min(column.len())])
    };
    COLUMNS.into_iter().filter(written).chain(["ts6 TIMESTAMP(6)", "z TIMESTAMP_LTZ(6)"]).collect()
}

#[test]
fn what_is_written_is_read_back_with_every_codec() {
    let schema = schema(&columns());
    let rows = rows(&schema);
    for codec in ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"] {
        let options = options("orc", &[("orc.compress", codec)]);
        let body = file("orc", &schema, &options, &[rows.slice(0, 50), rows.slice(50, rows.num_rows() - 50)]);
        let (decoded, read) = decode("orc", &schema, &options, &body).unwrap();
        assert_eq!(decoded.rows as usize, rows.num_rows());
        assert_eq!(read, rows, "{codec}");
    }
}

/// The rows that ORC can hold.
fn rows(schema: &crate::model::Schema) -> arrow_array::RecordBatch {
    let all = rows_of_all_types(schema);
    let fraction_before_1970 = |row: &usize| row % 4 == 3;
    let kept: Vec<u64> = (0..all.num_rows()).filter(|row| !fraction_before_1970(row)).map(|row| row as u64).collect();
    arrow_select::take::take_record_batch(&all, &arrow_array::UInt64Array::from(kept)).unwrap()
}

#[test]
fn a_fraction_of_the_last_second_of_1969_is_refused_alone() {
    let schema = schema(&columns());
    let all = rows_of_all_types(&schema);
    let crate::formats::Writer::Files(mut encoder) =
        crate::formats::writer("orc", &schema, &options("orc", &[])).unwrap()
    else {
        panic!("lines")
    };
    let mut out = Vec::new();
    let rejects = encoder.rows(&all, &mut out).unwrap();
    assert_eq!(rejects.len(), all.num_rows() / 4);
    assert_eq!(
        (rejects[0].row, &*rejects[0].reason),
        (3, "column ts3: ORC has no fractions of the last second of 1969")
    );
    encoder.finish(&mut out).unwrap();
    assert_eq!(decode("orc", &schema, &Options::default(), &out).unwrap().1, rows(&schema));
}

#[test]
fn a_broken_file_is_an_error_of_its_own_and_never_more() {
    let schema = schema(&columns());
    let rows = rows(&schema);
    for codec in ["NONE", "SNAPPY", "ZLIB", "ZSTD", "LZ4"] {
        let options = options("orc", &[("orc.compress", codec)]);
        let body = file("orc", &schema, &options, &[rows.clone()]);
        let mut decoder = Decoder::new(&schema, &Options::default()).unwrap();
        let errors = break_it(&mut decoder, &schema, &body, 3000);
        assert!(errors > 500, "{errors}");
    }
}

#[test]
fn what_is_no_file_is_told_as_what_it_is() {
    let schema = schema(&["a INT"]);
    let told =
        |body: &[u8]| decode_with(&mut Decoder::new(&schema, &Options::default()).unwrap(), &schema, body).unwrap_err();
    assert_eq!(told(b"{\"a\":1}"), "the body is no ORC file: it does not begin with ORC");
    assert_eq!(told(b""), "the body is no ORC file: it does not begin with ORC");
    assert!(told(b"ORC").contains("broken"));
    assert!(told(b"ORC\xff").contains("broken"));
}
