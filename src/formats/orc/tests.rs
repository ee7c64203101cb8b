use super::*;
use crate::{
    definition::Options,
    formats::{
        columnar::testing::{COLUMNS, break_it, file, rows_of_all_types},
        flink_cases::{decode, decode_with, options, schema},
    },
};

fn columns() -> Vec<&'static str> {
    let written = |column: &&str| !["d9 ", "d18", "d38", "tm ", "l A", "m M", "r R", "lr "].contains(&&column[..3.min(column.len())]);
    COLUMNS.into_iter().filter(written).chain(["ts6 TIMESTAMP(6)", "z TIMESTAMP_LTZ(6)"]).collect()
}

#[test]
fn what_is_written_is_read_back_with_every_codec() {
    let schema = schema(&columns());
    let rows = rows_of_all_types(&schema);
    for codec in ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"] {
        let options = options("orc", &[("orc.compress", codec)]);
        let body = file("orc", &schema, &options, &[rows.slice(0, 50), rows.slice(50, rows.num_rows() - 50)]);
        let (decoded, read) = decode("orc", &schema, &options, &body).unwrap();
        assert_eq!(decoded.rows as usize, rows.num_rows());
        assert_eq!(read, rows, "{codec}");
    }
}

#[test]
fn a_broken_file_is_an_error_of_its_own_and_never_more() {
    let schema = schema(&columns());
    let rows = rows_of_all_types(&schema);
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
    let told = |body: &[u8]| {
        decode_with(&mut Decoder::new(&schema, &Options::default()).unwrap(), &schema, body).unwrap_err()
    };
    assert_eq!(told(b"{\"a\":1}"), "the body is no ORC file: it does not begin with ORC");
    assert_eq!(told(b""), "the body is no ORC file: it does not begin with ORC");
    assert!(told(b"ORC").contains("broken"));
    assert!(told(b"ORC\xff").contains("broken"));
}
