use super::{container::write_bytes, container::write_long, *};
use crate::{
    definition::Options,
    formats::{
        self,
        columnar::testing::{COLUMNS, break_it, file, rows_of_all_types},
        flink_cases::{decode, decode_with, options, schema, shown},
    },
    model::Schema,
};

fn each(schema: &Schema, options: &Options, rows: &arrow_array::RecordBatch) -> Vec<Vec<u8>> {
    let mut encoder = formats::encoder("avro", schema, options).unwrap();
    let mut bodies = Vec::new();
    let rejects = encoder.encode_rows(rows, &mut Vec::new(), &mut |_, out| bodies.push(std::mem::take(out)));
    assert_eq!(rejects, []);
    bodies
}

#[test]
fn what_is_written_is_read_back_in_both_forms_and_with_both_mappings() {
    let later = ["ts6 TIMESTAMP(6)", "z TIMESTAMP_LTZ(6)", "z3 TIMESTAMP_LTZ(3)"];
    for (columns, legacy) in [(COLUMNS.to_vec(), "true"), ([&COLUMNS[..], &later].concat(), "false")] {
        let schema = schema(&columns);
        let rows = rows_of_all_types(&schema);
        for encoding in ["binary", "json"] {
            let options = options("avro", &[("avro.timestamp_mapping.legacy", legacy), ("avro.encoding", encoding)]);
            for (row, body) in each(&schema, &options, &rows).iter().enumerate() {
                let (decoded, read) = decode("avro", &schema, &options, body).unwrap();
                assert_eq!((decoded.rows, decoded.unread), (1, 0));
                assert_eq!(read, rows.slice(row, 1), "{}", String::from_utf8_lossy(body));
            }
        }
    }
}

#[test]
fn files_are_read_back_with_every_codec_by_columns_in_any_order() {
    let written = schema(&COLUMNS);
    let rows = rows_of_all_types(&written);
    let read = schema(&["lr ARRAY<ROW<v DECIMAL(20, 3), k STRING> NOT NULL>", "none INT", "s STRING", "i32 BIGINT"]);
    for codec in ["null", "deflate", "snappy", "bzip2", "xz", "zstandard"] {
        let options = options("avro", &[("avro.codec", codec)]);
        let body = file("avro", &written, &options, &[rows.slice(0, 50), rows.slice(50, rows.num_rows() - 50)]);
        let (decoded, all) = decode("avro", &written, &options, &body).unwrap();
        assert_eq!((decoded.rows as usize, all), (rows.num_rows(), rows.clone()), "{codec}");
        let (_, some) = decode("avro", &read, &options, &body).unwrap();
        assert_eq!(some.column(2), rows.column(11));
    }
}

#[test]
fn what_follows_a_value_is_counted_and_what_is_missing_refused() {
    let schema = schema(&["a INT NOT NULL", "s STRING"]);
    let options = options("avro", &[]);
    let told = |body: &[u8]| decode("avro", &schema, &options, body).map(|(decoded, _)| (decoded.rows, decoded.unread));
    assert_eq!(told(&[2, 2, 2, b'x']), Ok((1, 0)));
    assert_eq!(told(&[2, 0, 9]), Ok((1, 1)));
    assert_eq!(told(&[2]), Err("column s: the body is cut off".into()));
    assert_eq!(told(&[2, 2, 200, 1, b'x']), Err("column s: the body is cut off".into()));
    assert_eq!(told(&[2, 4]), Err("column s: there is no branch 2 of the union".into()));
    assert_eq!(told(&[2, 2, 1]), Err("column s: a length below zero".into()));
    assert_eq!(told(&[2, 2, 2, 0xff]), Err("column s: bytes that are no UTF-8".into()));
    assert!(told(&[0xff; 20]).unwrap_err().contains("column a: a number of more than 64 bits"));
    assert_eq!(told(&[0x80, 0x80, 0x80, 0x80, 0x40, 0]).unwrap_err(), "column a: 8589934592 is no int of 32 bits");
}

/// A file by hand.
fn container(schema: &str, codec: &str, blocks: &[(i64, &[u8])]) -> Vec<u8> {
    let mut body = container::MAGIC.to_vec();
    write_long(2, &mut body);
    for part in ["avro.schema", schema, "avro.codec", codec] {
        write_bytes(part.as_bytes(), &mut body);
    }
    write_long(0, &mut body);
    body.extend([7; 16]);
    for (records, bytes) in blocks {
        write_long(*records, &mut body);
        write_bytes(bytes, &mut body);
        body.extend([7; 16]);
    }
    body
}

#[test]
fn a_file_whose_header_is_broken_is_not_taken_for_a_value() {
    let schema = schema(&["a INT NOT NULL", "b INT NOT NULL"]);
    let options = options("avro", &[]);
    let told = |body: &[u8]| decode("avro", &schema, &options, body).map(|(decoded, _)| decoded.rows);
    let whole = container(&record(r#"{"name":"a","type":"int"},{"name":"b","type":"int"}"#), "null", &[(1, &[2, 4])]);
    assert_eq!(told(&whole), Ok(1));
    for length in [4, 5, 8, 20, 60] {
        assert_eq!(told(&whole[..length]), Err("the header of the container file is broken".into()), "{length}");
    }
    let mut flipped = whole.clone();
    flipped[4] = 0xff;
    assert_eq!(told(&flipped), Err("the header of the container file is broken".into()));
}

fn record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#)
}

#[test]
fn a_files_own_schema_is_resolved_by_name() {
    let fields = r#"{"name":"skip","type":{"type":"map","values":{"type":"array","items":"r"}}},
        {"name":"e","type":{"type":"enum","name":"n.e","symbols":["A","B"]}},
        {"name":"u","type":["string","null","long"]},
        {"name":"f","type":["null",{"type":"fixed","name":"f","size":2}]},
        {"name":"d","type":{"type":"fixed","name":"d","size":3,"logicalType":"decimal","precision":5,"scale":1}},
        {"name":"t","type":{"type":"long","logicalType":"timestamp-nanos"}},
        {"name":"x","type":"int"}"#;
    // skip: {"k": []}, e: B, u: null, f: [1, 2], d: -1.5, t: 1999 ns, x: 5
    let value = [2, 2, b'k', 0, 0, 2, 2, 2, 1, 2, 0xff, 0xff, 0xf1, 0x9e, 0x1f, 10];
    let body = container(&record(fields), "null", &[(1, &value), (2, &[value, value].concat())]);
    let columns =
        ["x DOUBLE", "d DECIMAL(9, 3)", "t TIMESTAMP(6)", "f BYTES", "u STRING", "e STRING NOT NULL", "gone DATE"];
    let schema = schema(&columns);
    let later = options("avro", &[("avro.timestamp_mapping.legacy", "false")]);
    let (decoded, rows) = decode("avro", &schema, &later, &body).unwrap();
    assert_eq!(decoded.rows, 3);
    let shown = formats::flink_cases::shown(&schema, &rows);
    assert_eq!(shown[2].to_string(), r#"["5.0","-1.5","1970-01-01 00:00:00.000001","AQI=",null,"B",null]"#);

    let told =
        |columns: &[&str], body: &[u8]| decode("avro", &super::tests::schema(columns), &Options::default(), body);
    let refused = |columns: &[&str]| told(columns, &body).unwrap_err();
    assert_eq!(refused(&["x STRING"]), "column x: the file has int here, which is no STRING");
    assert_eq!(refused(&["u DATE"]), "column u: the file has a union of string, null, long here, which is no DATE");
    assert_eq!(
        refused(&["X INT NOT NULL"]),
        "column X: the file lacks it, and the schema says NOT NULL; did you mean \
                                              `x`, which it has?"
    );
    assert_eq!(refused(&["u STRING NOT NULL"]), "row 1: column u: null where the schema says NOT NULL");
    // The branch that is met is no STRING.
    let mut long = value;
    long[6] = 4;
    let body = container(&record(fields), "null", &[(1, &[&long[..7], &[8], &long[7..]].concat())]);
    assert_eq!(told(&["u STRING"], &body).unwrap_err(), "row 1: column u: the file has long here, which is no STRING");
}

#[test]
fn a_lie_about_counts_sizes_or_nesting_ends_before_it_costs_anything() {
    let wide = schema(&["a INT"]);
    let told = |fields: &str, codec: &str, records: i64, block: &[u8]| {
        decode("avro", &wide, &Options::default(), &container(&record(fields), codec, &[(records, block)])).unwrap_err()
    };
    let many = "the body holds more than 4194304 rows or elements of one column";
    let nulls = r#"{"name":"n","type":{"type":"array","items":"null"}}"#;
    let mut endless = Vec::new();
    write_long(i64::MAX, &mut endless);
    assert!(told(nulls, "null", 1, &endless).ends_with(many));
    assert!(told(r#"{"name":"n","type":"null"}"#, "null", i64::MAX, &[]).ends_with(many));
    let own = r#"{"name":"n","type":["null","r"]}"#;
    assert!(told(own, "null", 1, &[2; 100_000]).ends_with("nested more than 64 levels deep"));
    let deep = format!("{}\"null\"{}", "{\"type\":\"array\",\"items\":".repeat(90), "}".repeat(90));
    assert!(told(&format!(r#"{{"name":"n","type":{deep}}}"#), "null", 1, &[]).contains("nested more than 64"));
    let large = vec![0; 80 << 20];
    for (codec, bomb) in [
        ("zstandard", zstd::encode_all(&large[..], 3).unwrap()),
        ("deflate", {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, &large).unwrap();
            encoder.finish().unwrap()
        }),
    ] {
        assert!(bomb.len() < 1 << 20);
        assert_eq!(told(own, codec, 1, &bomb), "the body holds more than 64 MiB once it is decoded");
    }
    let twice = r#"{"name":"a","type":"int"},{"name":"a","type":"int"}"#;
    assert_eq!(told(twice, "null", 1, &[2, 2]), "the schema has two fields of one name");
    assert!(told(own, "lzma9", 1, &[]).contains("is none of null, deflate"));
}

#[test]
fn a_broken_body_is_an_error_of_its_own_and_never_more() {
    let schema = schema(&COLUMNS);
    let rows = rows_of_all_types(&schema);
    let mut decoder = Decoder::new(&schema, &Options::default()).unwrap();
    let bodies = each(&schema, &Options::default(), &rows);
    assert!(break_it(&mut decoder, &schema, &bodies[0], 10_000) > 500);
    for codec in ["null", "deflate", "snappy", "bzip2", "xz", "zstandard"] {
        let body = file("avro", &schema, &options("avro", &[("avro.codec", codec)]), &[rows.slice(0, 20)]);
        let errors = break_it(&mut decoder, &schema, &body, 800);
        assert!(errors > 300, "{codec}: {errors}");
        assert!(decode_with(&mut decoder, &schema, &body).is_ok(), "the next one is read");
    }
}

/// What Flink makes of columns, rows and bodies stands in `tests/fixtures/flink-avro`; `tests/flink/check_avro.py` runs
/// it. Here the same, but for what a case says of itself.
#[test]
fn columns_rows_and_bodies_are_what_flink_makes_of_them() {
    let document: serde_json::Value =
        serde_json::from_str(include_str!("../../../tests/fixtures/flink-avro/cases.json")).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for case in list(&document["cases"]) {
        let (name, flink) = (&case["name"], &case["flink"]);
        let columns: Vec<String> = list(&case["columns"]).iter().map(text).collect();
        let schema = schema(&columns.iter().map(String::as_str).collect::<Vec<_>>());
        let legacy = case["legacy"].as_bool().unwrap_or(true);
        let fields: Vec<_> = crate::formats::columnar::Target::new(&schema).fields().cloned().collect();
        let derived = derive::schema(fields.iter(), legacy).unwrap_or_else(|_| "refused".into());
        let mut compare = |what: &str, here: String, flink: &serde_json::Value| {
            seen += 1;
            let flink = flink.as_str().map_or_else(|| flink.to_string(), str::to_owned);
            let flink = case["here"][what].as_str().unwrap_or(&flink).to_owned();
            if here != flink {
                wrong.push(format!("{name}, {what}: here {here}, Flink {flink}"));
            }
        };
        compare("schema", derived.as_str().map_or_else(|| derived.to_string(), str::to_owned), &flink["schema"]);
        if derived == "refused" {
            continue;
        }
        let with = |encoding: &str| {
            let legacy = legacy.to_string();
            options("avro", &[("avro.timestamp_mapping.legacy", legacy.as_str()), ("avro.encoding", encoding)])
        };
        for (number, (row, written)) in list(&case["rows"]).iter().zip(list(&flink["written"])).enumerate() {
            let (_, batch) = decode("json", &schema, &options("json", &[]), row.to_string().as_bytes()).unwrap();
            let hex = |body: &[u8]| body.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let binary = each(&schema, &with("binary"), &batch);
            compare(&format!("row {number} binary"), hex(&binary[0]), &written["binary"]);
            let json = each(&schema, &with("json"), &batch);
            let parsed = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
            compare(
                &format!("row {number} json"),
                parsed(&json[0]).to_string(),
                &parsed(text(&written["json"]).as_bytes()),
            );
            // Read back, the one is the other.
            let read =
                |encoding, body: &[u8]| shown(&schema, &decode("avro", &schema, &with(encoding), body).unwrap().1);
            compare(
                &format!("row {number} read back"),
                read("json", &json[0]).to_string(),
                &read("binary", &binary[0]),
            );
        }
        for (body, read) in list(&case["bodies"]).iter().zip(list(&flink["read"])) {
            let hex = text(body);
            let bytes: Vec<u8> =
                (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
            let here = match decode("avro", &schema, &with("binary"), &bytes) {
                Err(_) => "error".to_owned(),
                Ok((_, batch)) => {
                    let mut encoder = formats::encoder("json", &schema, &options("json", &[])).unwrap();
                    let mut line = Vec::new();
                    encoder.encode_rows(&batch, &mut line, &mut |_, _| {});
                    serde_json::from_slice::<serde_json::Value>(&line).unwrap().to_string()
                }
            };
            compare(&format!("body {hex}"), here, &read);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 40, "{seen}");
}

#[test]
fn values_of_no_byte_cost_what_they_take_in_memory_or_time() {
    let told = |columns: &[&str], fields: &str, records: i64, block: &[u8]| {
        let body = container(&record(fields), "null", &[(records, block)]);
        decode("avro", &schema(columns), &Options::default(), &body).map(|(decoded, _)| decoded.rows)
    };
    let large = Err("the body holds more than 64 MiB once it is decoded".to_owned());
    let end = |result: Result<u32, String>| result.map_err(|why| why.rsplit(": ").next().unwrap_or("").to_owned());
    let null = r#"{"name":"n","type":"null"}"#;
    // Three columns of eight bytes: 96 MiB of four million rows.
    assert_eq!(end(told(&["n INT", "a INT", "b INT"], null, 4 << 20, &[])), large);
    let nulls: Vec<_> = ["n", "a", "b"].iter().map(|name| null.replace("\"n\"", &format!("\"{name}\""))).collect();
    assert_eq!(end(told(&["n INT", "a INT", "b INT"], &nulls.join(","), 4 << 20, &[])), large);
    assert_eq!(told(&["n INT", "a INT", "b INT"], null, 1000, &[]), Ok(1000));
    // Twenty fields that nobody wants: more than 16 million of two million rows.
    let many: Vec<_> = (0..20).map(|at| format!(r#"{{"name":"s{at}","type":"null"}}"#)).collect();
    let skipped = told(&["n INT"], &many.join(","), 2 << 20, &[]).unwrap_err();
    assert!(skipped.ends_with("more than 16777216 values that no column is filled with"), "{skipped}");
}

#[test]
fn a_schema_that_multiplies_its_types_is_refused() {
    let told = |columns: &[&str], fields: &str| {
        let body = container(&record(fields), "null", &[(0, &[])]);
        decode("avro", &schema(columns), &Options::default(), &body).map(|(decoded, _)| decoded.rows)
    };
    let twice = told(&["u ROW<u INT>"], r#"{"name":"u","type":["null","r","r"]}"#);
    assert_eq!(twice, Err("the schema has a union with r twice".into()));
    // Each array is a type of its own, and all are of the same record: 40 to the power of 5.
    let arrays = vec![r#"{"type":"array","items":"r"}"#; 40].join(",");
    let fields = format!(r#"{{"name":"u","type":["null",{arrays}]}}"#);
    let mut column = "ARRAY<ROW<u INT>>".to_owned();
    for _ in 0..5 {
        column = format!("ARRAY<ROW<u {column}>>");
    }
    let told = told(&[&format!("u {column}")], &fields);
    assert_eq!(told, Err("the schema of the file refers to its own types so often that it is too large".into()));
}

#[test]
fn a_decimal_whose_scale_is_no_number_means_no_decimal() {
    for (scale, read) in [("", true), (r#","scale":1"#, true), (r#","scale":-1"#, false), (r#","scale":"1""#, false)] {
        let fields =
            format!(r#"{{"name":"d","type":{{"type":"bytes","logicalType":"decimal","precision":5{scale}}}}}"#);
        let body = container(&record(&fields), "null", &[(1, &[2, 5])]);
        let decoded = decode("avro", &schema(&["d DECIMAL(9, 3)"]), &Options::default(), &body);
        assert_eq!(decoded.is_ok(), read, "{scale}");
    }
}

#[test]
fn a_file_of_which_no_row_was_kept_is_not_begun() {
    let schema = schema(&["a INT"]);
    let rows = crate::model::RowsBuilder::new(&schema).finish().unwrap();
    for format in ["avro", "parquet"] {
        let formats::Writer::Files(mut encoder) = formats::writer(format, &schema, &Options::default()).unwrap() else {
            panic!("lines")
        };
        let mut out = Vec::new();
        encoder.rows(&rows, &mut out).unwrap();
        encoder.finish(&mut out).unwrap();
        assert!(out.is_empty(), "{format}");
    }
}

#[test]
fn a_value_of_a_file_that_is_refused_is_told_with_its_row_of_the_body() {
    let fields = r#"{"name":"a","type":["null","int"]}"#;
    // 1, 2; null; 3, 300, and a union's branch that there is not.
    let blocks: [(i64, &[u8]); 3] = [(2, &[2, 2, 2, 4]), (1, &[0]), (3, &[2, 6, 2, 0xd8, 4, 8])];
    let told = |column, blocks: &[(i64, &[u8])]| {
        let body = container(&record(fields), "null", blocks);
        decode("avro", &schema(&[column]), &Options::default(), &body).unwrap_err()
    };
    assert_eq!(told("a INT", &blocks), "row 6: column a: there is no branch 4 of the union");
    assert_eq!(told("a TINYINT", &blocks), "row 5: column a: 300 is out of range for TINYINT");
    assert_eq!(told("a INT NOT NULL", &blocks), "row 3: column a: null where the schema says NOT NULL");
    assert_eq!(told("a INT", &[(2, &[2, 2, 2])]), "row 2: column a: the body is cut off");
    assert_eq!(told("a DATE", &blocks), "column a: the file has a union of null, int here, which is no DATE");
}

#[test]
fn blocks_are_of_one_budget_and_end_with_their_records_and_the_mark_of_the_file() {
    let told = |body: &[u8]| decode("avro", &schema(&["a INT"]), &Options::default(), body).map(|(read, _)| read.rows);
    // 40 MiB that no column is filled with.
    let mut large = Vec::new();
    write_bytes(&vec![0; 40 << 20], &mut large);
    let fields = record(r#"{"name":"n","type":"bytes"}"#);
    for (codec, block) in [("null", large.clone()), ("zstandard", zstd::encode_all(&large[..], 1).unwrap())] {
        assert_eq!(told(&container(&fields, codec, &[(1, &block)])), Ok(1));
        let twice = told(&container(&fields, codec, &[(1, &block), (1, &block)]));
        assert_eq!(twice, Err("the body holds more than 64 MiB once it is decoded".into()), "{codec}");
    }
    let fields = record(r#"{"name":"a","type":"int"}"#);
    let file = |records, block: &[u8]| container(&fields, "null", &[(records, block)]);
    assert_eq!(told(&file(2, &[2, 4])), Ok(2));
    assert_eq!(told(&file(1, &[2, 4])), Err("a block is longer than its records".into()));
    assert_eq!(told(&file(-1, &[])), Err("a block holds less than no record".into()));
    let mut other = file(2, &[2, 4]);
    *other.last_mut().unwrap() = 8;
    assert_eq!(told(&other), Err("a block does not end where it should".into()));
}
