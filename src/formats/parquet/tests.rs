use arrow_array::Array;

use super::*;
use crate::{
    definition::Options,
    formats::{
        self,
        columnar::testing::{COLUMNS, break_it, declared, file, rows_of_all_types},
        flink_cases::{decode, decode_with, options, schema},
    },
};

fn columns() -> Vec<&'static str> {
    COLUMNS.into_iter().chain(["ts6 TIMESTAMP(6)", "z TIMESTAMP_LTZ(6)"]).collect()
}

#[test]
fn what_is_written_is_read_back_with_every_codec_in_several_row_groups() {
    let schema = schema(&columns());
    let rows = rows_of_all_types(&schema);
    for codec in ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW"] {
        for dictionary in ["true", "false"] {
            let options = options(
                "parquet",
                &[
                    ("parquet.compression", codec),
                    ("parquet.block.size", "8kb"),
                    ("parquet.enable.dictionary", dictionary),
                ],
            );
            let body = file("parquet", &schema, &options, &[rows.slice(0, 50), rows.slice(50, rows.num_rows() - 50)]);
            let (decoded, read) = decode("parquet", &schema, &options, &body).unwrap();
            assert_eq!(decoded.rows as usize, rows.num_rows());
            assert_eq!(read, rows, "{codec}");
        }
    }
}

#[test]
fn timestamps_are_written_in_the_unit_asked_for_and_those_it_lacks_are_refused_alone() {
    let schema = schema(&["i INT", "t TIMESTAMP(6)", "l ARRAY<TIMESTAMP(3)>"]);
    let mut rows = crate::model::RowsBuilder::new(&schema);
    let mut json = formats::decoder("json", &schema, &options("json", &[])).unwrap();
    for body in [
        r#"{"i":1,"t":"2026-01-01 00:00:00.123456"}"#,
        r#"{"i":2,"t":"0001-01-01 00:00:00"}"#,
        r#"{"i":3,"l":["2026-01-01 00:00:00.123"]}"#,
        r#"{"i":4,"l":["9999-01-01 00:00:00"]}"#,
    ] {
        json.decode(body.as_bytes(), &mut rows).unwrap();
    }
    let rows = rows.finish().unwrap();
    let written = |unit| {
        let options = options("parquet", &[("parquet.timestamp.time.unit", unit)]);
        let formats::Writer::Files(mut encoder) = formats::writer("parquet", &schema, &options).unwrap() else {
            panic!("lines")
        };
        let mut out = Vec::new();
        let rejects = encoder.rows(&rows, &mut out).unwrap();
        encoder.finish(&mut out).unwrap();
        (rejects, decode("parquet", &schema, &options, &out).unwrap().1)
    };
    let (rejects, read) = written("nanos");
    assert_eq!(rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(rejects[0].reason, "column t: a timestamp is out of range for parquet.timestamp.time.unit");
    assert_eq!(
        read,
        arrow_select::concat::concat_batches(&rows.schema(), [&rows.slice(0, 1), &rows.slice(2, 1)]).unwrap()
    );
    let (rejects, read) = written("millis");
    assert_eq!(rejects, []);
    assert_ne!(read, rows, "what is finer is cut off");
    assert_eq!(read.column(2), rows.column(2));
}

#[test]
fn columns_go_by_name_and_those_that_are_missing_are_null_or_refused() {
    let written = schema(&["a INT", "text STRING", "r ROW<x INT, y STRING>"]);
    let rows = rows_of_all_types(&written);
    let body = file("parquet", &written, &options("parquet", &[]), std::slice::from_ref(&rows));
    let wanted = schema(&["r ROW<y STRING, z INT>", "none DATE", "Text STRING"]);
    let (_, read) = decode("parquet", &wanted, &Options::default(), &body).unwrap();
    assert_eq!(read.num_rows(), rows.num_rows());
    assert_eq!(read.column(1).null_count(), rows.num_rows());
    assert_eq!(read.column(2).null_count(), rows.num_rows(), "names are in exact case");
    let refused = |columns: &[&str]| decode("parquet", &schema(columns), &Options::default(), &body).unwrap_err();
    assert_eq!(
        refused(&["Text STRING NOT NULL"]),
        "column Text: the file lacks it, and the schema says NOT NULL; did you mean `text`, which it has?"
    );
    assert_eq!(refused(&["a INT NOT NULL"]), "row 1: column a: null where the schema says NOT NULL");
    assert_eq!(refused(&["text INT"]), "column text: the file has STRING here, which is no INT");
    assert_eq!(refused(&["r ROW<x STRING>"]), "column r.x: the file has INT here, which is no STRING");
}

#[test]
fn a_broken_file_is_an_error_of_its_own_and_never_more() {
    let schema = schema(&columns());
    let rows = rows_of_all_types(&schema);
    for codec in ["UNCOMPRESSED", "SNAPPY", "ZSTD"] {
        let options = options("parquet", &[("parquet.compression", codec), ("parquet.block.size", "8kb")]);
        let body = file("parquet", &schema, &options, std::slice::from_ref(&rows));
        let errors = break_it(&mut decoder(&schema), &schema, &body, 1000);
        assert!(errors > 300, "{errors}");
    }
}

/// Files of pyarrow, in what our own writer does not write; `tests/sdk/columnar.py` made them.
#[test]
fn what_others_write_is_read_and_broken_it_is_an_error_of_its_own() {
    let schema = declared(include_str!("../../../tests/fixtures/columnar/parquet.yaml"));
    let files: [&[u8]; 3] = [
        include_bytes!("../../../tests/fixtures/columnar/delta.parquet"),
        include_bytes!("../../../tests/fixtures/columnar/version-2-zstd.parquet"),
        include_bytes!("../../../tests/fixtures/columnar/int96.parquet"),
    ];
    let read = |file: &[u8]| decode("parquet", &schema, &Options::default(), file).unwrap().1;
    let first = read(files[0]);
    assert_eq!(first.num_rows(), 9);
    for file in files {
        let rows = read(file);
        for (at, column) in rows.columns().iter().enumerate().skip(1) {
            assert_eq!(column, first.column(at), "{}", schema.columns[at].name);
        }
        let errors = break_it(&mut decoder(&schema), &schema, file, 1000);
        assert!(errors > 200, "{errors}");
    }
}

/// A file with other bytes somewhere in its footer, whose length is set right.
fn with_footer(body: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let (rest, length) = body[..body.len() - 4].split_last_chunk::<4>().unwrap();
    let (data, footer) = rest.split_at(rest.len() - u32::from_le_bytes(*length) as usize);
    let at = footer.windows(from.len()).position(|window| window == from).unwrap();
    let footer = [&footer[..at], to, &footer[at + from.len()..]].concat();
    [data, &footer, &u32::try_from(footer.len()).unwrap().to_le_bytes(), b"PAR1"].concat()
}

/// A file with other bytes, as many, where some stand first.
fn with_page(body: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = body.windows(from.len()).position(|window| window == from).unwrap();
    [&body[..at], to, &body[at + from.len()..]].concat()
}

#[test]
fn a_lie_about_sizes_or_counts_ends_before_it_costs_anything() {
    let schema = schema(&["s STRING"]);
    let mut rows = crate::model::RowsBuilder::new(&schema);
    let large = "x".repeat(30 << 20);
    for _ in 0..3 {
        rows.column_mut(0).unwrap().append(crate::model::Scalar::Text(&large)).unwrap();
    }
    let rows = rows.finish().unwrap();
    for dictionary in ["true", "false"] {
        let options = options(
            "parquet",
            &[
                ("parquet.compression", "ZSTD"),
                ("parquet.enable.dictionary", dictionary),
                ("parquet.dictionary.page.size", "64mb"),
            ],
        );
        let body = file("parquet", &schema, &options, std::slice::from_ref(&rows));
        assert!(body.len() < 64 << 10, "{}", body.len());
        let told = decode_with(&mut decoder(&schema), &schema, &body).unwrap_err();
        assert!(told.contains("more than 64 MiB"), "{dictionary}: {told}");
    }
    let schema = self::schema(&["i32 INT NOT NULL"]);
    let plain = options("parquet", &[("parquet.compression", "UNCOMPRESSED"), ("parquet.enable.dictionary", "false")]);
    let body = file("parquet", &schema, &plain, &[rows_of_all_types(&schema)]);
    let told = |body: &[u8]| decode_with(&mut decoder(&schema), &schema, body).unwrap_err();
    // 160 values in a page, said to be 16,777,215.
    let values = with_page(&body, &[0x2c, 0x15, 0xc0, 0x02], &[0x2c, 0x15, 0xfe, 0xff]);
    assert!(!told(&values).is_empty());
    // 4 bytes for each value, said to be 2,147,483,647; nulls have room too.
    let schema = self::schema(&["fx BYTES"]);
    let body: &[u8] = include_bytes!("../../../tests/fixtures/columnar/int96.parquet");
    let told = |body: &[u8]| decode_with(&mut decoder(&schema), &schema, body).unwrap_err();
    let fixed = with_footer(body, &[0x15, 0x0e, 0x15, 0x08], &[0x15, 0x0e, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(told(&fixed), "the body holds more than 64 MiB once it is decoded");
}

#[test]
fn what_is_no_file_is_told_as_what_it_is() {
    let schema = schema(&["a INT"]);
    let told = |body: &[u8]| decode_with(&mut decoder(&schema), &schema, body).unwrap_err();
    assert_eq!(told(b"{\"a\":1}"), "the body is no parquet file: it does not begin with PAR1");
    assert_eq!(told(b""), "the body is no parquet file: it does not begin with PAR1");
    assert!(told(b"PAR1").contains("cut off"));
    assert!(told(b"PAR1\xff\xff\xff\x7fPAR1").contains("cut off"));
    assert!(told(b"PAR1\x04\0\0\0PAR1").contains("cut off"), "a footer that is the file's beginning");
    let mut last = file("parquet", &schema, &options("parquet", &[]), &[rows_of_all_types(&self::schema(&["a INT"]))]);
    *last.last_mut().unwrap() = b'2';
    assert!(told(&last).contains("cut off"));
    assert!(told(b"PAR1xxxxxxxxPARE").contains("encrypted"));
}

#[test]
fn what_is_finer_than_the_files_unit_is_cut_off_towards_the_past() {
    let schema =
        schema(&["t TIMESTAMP(6)", "n TIMESTAMP(9)", "r ROW<l ARRAY<TIMESTAMP(6)>, m MAP<STRING, TIMESTAMP(9)>>"]);
    let mut rows = crate::model::RowsBuilder::new(&schema);
    let mut json = formats::decoder("json", &schema, &options("json", &[])).unwrap();
    let body = r#"{"t":"1969-12-31 23:59:59.998001","n":"1969-12-31 23:59:59.998000001",
        "r":{"l":["1969-12-31 23:59:59.998001",null],"m":{"k":"1969-12-31 23:59:59.998000001"}}}"#;
    json.decode(body.as_bytes(), &mut rows).unwrap();
    let rows = rows.finish().unwrap();
    for (unit, fraction, count) in [("millis", "998", 4), ("micros", "998001", 2)] {
        let options = options("parquet", &[("parquet.timestamp.time.unit", unit)]);
        let body = file("parquet", &schema, &options, std::slice::from_ref(&rows));
        let read = decode("parquet", &schema, &options, &body).unwrap().1;
        let shown = crate::formats::flink_cases::shown(&schema, &read).to_string();
        assert_eq!(shown.matches(&format!("59.{fraction}\"")).count(), count, "{unit}: {shown}");
        assert_eq!(shown.matches("59.998").count(), 4, "{unit}: {shown}");
        let nanoseconds = read.column(1).to_data().buffers()[0].typed_data::<i64>()[0];
        assert_eq!(nanoseconds, -2_000_000, "{unit}");
    }
}

#[test]
fn a_decimal_is_no_timestamp_whatever_its_scale() {
    let written = schema(&["d DECIMAL(38, 9)", "l ARRAY<DECIMAL(38, 9)>", "r ROW<d DECIMAL(38, 9)>"]);
    let mut json = formats::decoder("json", &written, &options("json", &[])).unwrap();
    let mut builder = crate::model::RowsBuilder::new(&written);
    json.decode(br#"{"d":1,"l":[1]}"#, &mut builder).unwrap();
    let body = file("parquet", &written, &Options::default(), &[builder.finish().unwrap()]);
    let told = |column| decode("parquet", &schema(&[column]), &Options::default(), &body).unwrap_err();
    assert_eq!(told("d TIMESTAMP(3)"), "column d: the file has DECIMAL(38, 9) here, which is no TIMESTAMP(3)");
    let inner = "the file has DECIMAL(38, 9) here, which is no TIMESTAMP_LTZ(3)";
    assert_eq!(told("l ARRAY<TIMESTAMP_LTZ(3)>"), format!("column l: {inner}"));
    assert_eq!(told("r ROW<d TIMESTAMP_LTZ(3)>"), format!("column r.d: {inner}"));
}

#[test]
fn a_page_or_a_schema_that_lies_is_refused_before_the_library_sees_it() {
    let schema = schema(&["i INT", "l ARRAY<STRING>"]);
    let footer = |body: &[u8], from: &[u8], to: &[u8]| look::footer(&with_footer(body, from, to)).err();
    let plain = options("parquet", &[("parquet.compression", "UNCOMPRESSED")]);
    let body = file("parquet", &schema, &plain, &[crate::formats::columnar::testing::rows_of_all_types(&schema)]);
    // The root: field 4 is its name, field 5 that it has 2 children.
    let root = b"arrow_schema\x15\x04\x00";
    for children in [0x02, 0x06, 0x03, 0x7e] {
        let mut lie = *root;
        lie[13] = children;
        assert_eq!(footer(&body, root, &lie).as_deref(), Some("the footer is broken"), "{children}");
    }
    // The number of its children as a list.
    assert_eq!(footer(&body, root, b"arrow_schema\x19\x05\x00").as_deref(), Some("the footer is broken"));
    for codec in ["GZIP", "BROTLI"] {
        let options = options("parquet", &[("parquet.compression", codec), ("parquet.enable.dictionary", "false")]);
        let body = file("parquet", &self::schema(&["i INT NOT NULL"]), &options, &[numbers(1000)]);
        let page = look::footer(&body).unwrap().row_group(0).column(0).data_page_offset() as usize;
        // The header of the one page: its type, and then its size, here said to be one byte less.
        assert_eq!(body[page..page + 3], [0x15, 0, 0x15]);
        let mut lie = body.clone();
        lie[page + 3] -= 2;
        let told = decode("parquet", &self::schema(&["i INT"]), &Options::default(), &lie).unwrap_err();
        assert!(told.starts_with("column i: a page is of another size"), "{told}");
    }
}

/// Rows with numbers that do not compress away.
fn numbers(count: i32) -> arrow_array::RecordBatch {
    let mut rows = crate::model::RowsBuilder::new(&schema(&["i INT NOT NULL"]));
    for number in 0..count {
        rows.column_mut(0).unwrap().append(crate::model::Scalar::Int32(number.wrapping_mul(77_777))).unwrap();
    }
    rows.finish().unwrap()
}

#[test]
fn pages_behind_the_number_of_values_are_looked_at_and_room_is_of_all_of_them() {
    let options =
        options("parquet", &[("parquet.compression", "UNCOMPRESSED"), ("parquet.enable.dictionary", "false")]);
    let body = file("parquet", &self::schema(&["i INT NOT NULL"]), &options, &[numbers(1000)]);
    let metadata = look::footer(&body).unwrap();
    let column = metadata.row_group(0).column(0);
    let begin = column.data_page_offset() as usize;
    let page = &body[begin..begin + column.compressed_size() as usize];
    let twice = [&body[..begin], page, page].concat();
    let longer = column.clone().into_builder().set_total_compressed_size(2 * page.len() as i64).build().unwrap();
    let taken = |body: &[u8], column| {
        let (mut budget, mut room) = (crate::formats::columnar::Budget::new(), crate::formats::columnar::Budget::new());
        let before = room.left();
        look::pages(body, column, &mut budget, &mut room).unwrap();
        before - room.left()
    };
    assert_eq!((taken(&body, column), taken(&twice, &longer)), (8000, 16_000));
}

#[test]
fn timestamps_of_int96_that_the_column_does_not_hold_are_refused() {
    use parquet::{
        data_type::{Int96, Int96Type},
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };
    let body = |day: u32| {
        let schema = parse_message_type("message m { optional int96 t; }").unwrap();
        let properties = WriterProperties::builder().build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema.into(), properties.into()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let mut value = Int96::new();
        value.set_data(1001, 0, day);
        column.typed::<Int96Type>().write_batch(&[value], Some(&[1]), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.into_inner().unwrap()
    };
    let read = |day, column: &str| {
        let schema = schema(&[column]);
        let read = decode("parquet", &schema, &Options::default(), &body(day));
        read.map(|(_, rows)| crate::formats::flink_cases::shown(&schema, &rows).to_string())
    };
    assert_eq!(read(2_440_588, "t TIMESTAMP(9)").unwrap(), r#"[["1970-01-01 00:00:00.000001001"]]"#);
    assert_eq!(read(2_640_588, "t TIMESTAMP(6)").unwrap(), r#"[["2517-08-01 00:00:00.000001"]]"#);
    let refused = |day, ty: &str| {
        let told = read(day, &format!("t {ty}")).unwrap_err();
        assert_eq!(told, format!("row 1: column t: a timestamp is out of range for {ty}"));
    };
    refused(2_640_588, "TIMESTAMP(9)");
    refused(i32::MAX as u32, "TIMESTAMP(6)");
    refused(i32::MIN as u32, "TIMESTAMP_LTZ(9)");
}

#[test]
fn a_value_that_is_refused_is_told_with_its_row_of_the_body() {
    let written = schema(&["i INT", "l ARRAY<INT>", "r ROW<x INT>"]);
    let mut json = formats::decoder("json", &written, &options("json", &[])).unwrap();
    let mut rows = crate::model::RowsBuilder::new(&written);
    // More than are read at once, in row groups of any size.
    for row in 1..=3000 {
        let body = match row {
            2222 => r#"{"i":300,"l":[1],"r":{"x":1}}"#,
            2500 => r#"{"i":1,"l":[1,2,300],"r":{"x":1}}"#,
            2800 => r#"{"i":1,"l":[1],"r":{"x":null}}"#,
            _ => r#"{"i":1,"l":[1],"r":{"x":1}}"#,
        };
        json.decode(body.as_bytes(), &mut rows).unwrap();
    }
    let options = options("parquet", &[("parquet.block.size", "8kb")]);
    let rows = rows.finish().unwrap();
    let body = file("parquet", &written, &options, &[rows.slice(0, 1100), rows.slice(1100, 1900)]);
    let told = |column| decode("parquet", &schema(&[column]), &options, &body).unwrap_err();
    assert_eq!(told("i TINYINT"), "row 2222: column i: 300 is out of range for TINYINT");
    assert_eq!(told("l ARRAY<TINYINT>"), "row 2500: column l[2]: 300 is out of range for TINYINT");
    assert_eq!(told("r ROW<x INT NOT NULL>"), "row 2800: column r.x: null where the schema says NOT NULL");
    // No row is to blame.
    assert_eq!(told("i STRING"), "column i: the file has INT here, which is no STRING");
    assert_eq!(told("l ARRAY<STRING>"), "column l[0]: the file has INT here, which is no STRING");
}
