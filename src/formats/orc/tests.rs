use super::*;
use crate::{
    definition::Options,
    formats::{
        columnar::testing::{break_it, declared},
        flink_cases::{decode, decode_with, schema},
    },
    model::Schema,
};

/// Nine rows of every type that pyarrow has, each file another way; `tests/sdk/columnar.py` made them.
const FILES: [&[u8]; 5] = [
    include_bytes!("../../../tests/fixtures/columnar/none.orc"),
    include_bytes!("../../../tests/fixtures/columnar/snappy.orc"),
    include_bytes!("../../../tests/fixtures/columnar/lz4.orc"),
    include_bytes!("../../../tests/fixtures/columnar/dictionary-zstd.orc"),
    include_bytes!("../../../tests/fixtures/columnar/version-0.11-zlib.orc"),
];

fn all_columns() -> Schema {
    declared(include_str!("../../../tests/fixtures/columnar/orc.yaml"))
}

#[test]
fn files_of_every_kind_are_the_same_rows_but_for_their_numbers() {
    let schema = all_columns();
    let read = |file: &[u8]| decode("orc", &schema, &Options::default(), file).unwrap().1;
    let first = read(FILES[0]);
    assert_eq!(first.num_rows(), 9);
    for file in FILES {
        let rows = read(file);
        for (at, column) in rows.columns().iter().enumerate().skip(1) {
            assert_eq!(column, first.column(at), "{}", schema.columns[at].name);
        }
    }
}

#[test]
fn columns_go_by_name_and_those_that_are_missing_are_null_or_refused() {
    let wanted = schema(&["r ROW<z INT, b ROW<c STRING>>", "I8 TINYINT", "ts_us DATE"]);
    let told = |schema: &Schema| decode("orc", schema, &Options::default(), FILES[0]).unwrap_err();
    assert_eq!(told(&wanted), "column ts_us: the file has TIMESTAMP(9) here, which is no DATE");
    let refused = "column I8: the file lacks it, and the schema says NOT NULL; did you mean `i8`, which it has?";
    assert_eq!(told(&schema(&["I8 TINYINT NOT NULL"])), refused);
    assert_eq!(
        told(&schema(&["d38 TIMESTAMP(3)"])),
        "column d38: the file has DECIMAL(38, 10) here, which is no TIMESTAMP(3)"
    );
    assert_eq!(told(&schema(&["i64 TINYINT"])), "row 1: column i64: 9223372036854775807 is out of range for TINYINT");
    assert!(told(&schema(&["i8 TINYINT NOT NULL"])).contains("null where the schema says NOT NULL"));
}

#[test]
fn a_broken_file_is_an_error_of_its_own_and_never_more() {
    let schema = all_columns();
    for file in FILES {
        let mut decoder = decoder(&schema);
        let errors = break_it(&mut decoder, &schema, file, 1000);
        assert!(errors > 300, "{errors}");
    }
}

#[test]
fn what_is_no_file_is_told_as_what_it_is() {
    let schema = schema(&["a INT", "t TIMESTAMP(9)"]);
    let told = |body: &[u8]| decode_with(&mut decoder(&schema), &schema, body).unwrap_err();
    assert_eq!(told(b"{\"a\":1}"), "the body is no ORC file: it does not begin with ORC");
    assert_eq!(told(b""), "the body is no ORC file: it does not begin with ORC");
    assert!(told(b"ORC").contains("broken"));
    assert!(told(b"ORC\xff").contains("broken"));
    // The fraction of a second before 1970 that pyarrow writes is a number below zero, which no one else reads.
    let before = told(include_bytes!("../../../tests/fixtures/columnar/before-1970.orc"));
    assert!(before.contains("broken fractions of a second"), "{before}");
}

#[test]
fn a_value_that_is_refused_is_told_with_its_row_of_the_body() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, RecordBatch};
    let values = (1..=3000).map(|row| Some(if row == 2222 { 300 } else { 1 }).filter(|_| row != 2500));
    let values: ArrayRef = Arc::new(Int32Array::from_iter(values));
    let batch = RecordBatch::try_from_iter([("i", values)]).unwrap();
    let mut body = Vec::new();
    let mut writer = orc_rust::ArrowWriterBuilder::new(&mut body, batch.schema()).try_build().unwrap();
    writer.write(&batch.slice(0, 1100)).unwrap();
    writer.flush_stripe().unwrap();
    writer.write(&batch.slice(1100, 1900)).unwrap();
    writer.close().unwrap();
    let told = |column| decode("orc", &schema(&[column]), &Options::default(), &body).unwrap_err();
    assert_eq!(told("i TINYINT"), "row 2222: column i: 300 is out of range for TINYINT");
    assert_eq!(told("i INT NOT NULL"), "row 2500: column i: null where the schema says NOT NULL");
    assert_eq!(told("i STRING"), "column i: the file has INT here, which is no STRING");
}

/// A file whose parts are as `change` leaves them.
fn changed(change: impl Fn(&mut orc_rust::proto::Footer, &mut orc_rust::proto::PostScript)) -> Vec<u8> {
    changed_with(change, |_| {})
}

/// The same with `of_stripe` of the footer of its one stripe.
fn changed_with(
    change: impl Fn(&mut orc_rust::proto::Footer, &mut orc_rust::proto::PostScript),
    of_stripe: impl Fn(&mut orc_rust::proto::StripeFooter),
) -> Vec<u8> {
    use orc_rust::proto::{Footer, PostScript, StripeFooter};
    use prost_orc::Message;
    let body = FILES[0];
    let (length, rest) = body.split_last().unwrap();
    let (rest, tail) = rest.split_at(rest.len() - usize::from(*length));
    let mut tail = PostScript::decode(tail).unwrap();
    let (rest, footer) = rest.split_at(rest.len() - tail.footer_length() as usize);
    let mut footer = Footer::decode(footer).unwrap();
    let stripe = footer.stripes.last_mut().unwrap();
    let at = (stripe.offset() + stripe.index_length() + stripe.data_length()) as usize;
    let mut inner = StripeFooter::decode(&rest[at..at + stripe.footer_length() as usize]).unwrap();
    of_stripe(&mut inner);
    let inner = inner.encode_to_vec();
    stripe.footer_length = Some(inner.len() as u64);
    // What stood between the stripe and the footer says nothing that is asked for.
    let rest = [&rest[..at], &inner].concat();
    tail.metadata_length = Some(0);
    change(&mut footer, &mut tail);
    let footer = footer.encode_to_vec();
    tail.footer_length.get_or_insert(footer.len() as u64);
    let tail = tail.encode_to_vec();
    [&rest[..], &footer, &tail, &[u8::try_from(tail.len()).unwrap()]].concat()
}

#[test]
fn a_lie_about_types_sizes_or_rows_ends_before_it_costs_anything() {
    let schema = all_columns();
    let told = |body: &[u8]| decode("orc", &schema, &Options::default(), body).unwrap_err();
    let circle = changed(|footer, tail| {
        tail.footer_length = None;
        footer.types.last_mut().unwrap().subtypes.push(0);
    });
    assert_eq!(told(&circle), "the types of the file's columns are broken");
    let rows = changed(|footer, tail| {
        tail.footer_length = None;
        footer.stripes[0].number_of_rows = Some(u64::MAX);
    });
    assert!(told(&rows).contains("more than 4194304 rows"));
    let far = changed(|_, tail| tail.footer_length = Some(u64::MAX));
    assert!(told(&far).contains("its parts are not where it says"));
    let stripe = changed(|footer, tail| {
        tail.footer_length = None;
        footer.stripes[0].data_length = Some(u64::MAX - 5);
    });
    assert!(told(&stripe).contains("its parts are not where it says"));
}

#[test]
fn a_type_that_is_in_two_others_is_refused_before_it_multiplies() {
    let twice = changed(|footer, tail| {
        tail.footer_length = None;
        // The root is a record of as many names as columns.
        let last = *footer.types[0].subtypes.last().unwrap();
        footer.types[0].subtypes.push(last);
        footer.types[0].field_names.push("again".into());
    });
    let told = decode("orc", &all_columns(), &Options::default(), &twice).unwrap_err();
    assert_eq!(told, "the types of the file's columns are broken");
}

#[test]
fn dictionaries_of_many_columns_take_room_together() {
    let of_entries = |entries| {
        changed_with(
            |_, tail| tail.footer_length = None,
            move |stripe| stripe.columns.iter_mut().for_each(|column| column.dictionary_size = entries),
        )
    };
    let read = |columns: &Schema, body: &[u8]| decode("orc", columns, &Options::default(), body);
    let (all, one) = (all_columns(), schema(&["i64 BIGINT"]));
    assert!(read(&all, &of_entries(None)).is_ok());
    let many = of_entries(Some(1 << 20));
    assert_eq!(read(&all, &many).unwrap_err(), "the body holds more than 64 MiB once it is decoded");
    assert!(read(&one, &many).is_ok(), "those of columns that nobody wants are not read");
    let more = read(&one, &of_entries(Some((4 << 20) + 1))).unwrap_err();
    assert!(more.contains("more than 4194304 rows or elements"), "{more}");
}

#[test]
fn elements_of_lists_take_room_before_they_are_made() {
    use orc_rust::proto::{self, column_encoding, stream, r#type};
    use prost_orc::Message;
    let typed = |kind: r#type::Kind, names: &[&str], subtypes: &[u32]| proto::Type {
        kind: Some(kind.into()),
        field_names: names.iter().map(|name| (*name).to_owned()).collect(),
        subtypes: subtypes.to_vec(),
        ..proto::Type::default()
    };
    let types = vec![
        typed(r#type::Kind::Struct, &["l"], &[1]),
        typed(r#type::Kind::List, &[], &[2]),
        typed(r#type::Kind::Struct, &["a", "b"], &[3, 4]),
        typed(r#type::Kind::Int, &[], &[]),
        typed(r#type::Kind::Int, &[], &[]),
    ];
    // One list of 4,000,000 records of two numbers, of which there is none.
    let lengths = [0xff, 0x80, 0x92, 0xf4, 0x01];
    let stripe = proto::StripeFooter {
        streams: vec![proto::Stream {
            kind: Some(stream::Kind::Length.into()),
            column: Some(1),
            length: Some(lengths.len() as u64),
        }],
        columns: vec![
            proto::ColumnEncoding {
                kind: Some(column_encoding::Kind::Direct.into()),
                ..proto::ColumnEncoding::default()
            };
            types.len()
        ],
        ..proto::StripeFooter::default()
    };
    let stripe = stripe.encode_to_vec();
    let footer = proto::Footer {
        types,
        stripes: vec![proto::StripeInformation {
            offset: Some(3),
            index_length: Some(0),
            data_length: Some(lengths.len() as u64),
            footer_length: Some(stripe.len() as u64),
            number_of_rows: Some(1),
            ..proto::StripeInformation::default()
        }],
        number_of_rows: Some(1),
        ..proto::Footer::default()
    };
    let footer = footer.encode_to_vec();
    let tail = proto::PostScript { footer_length: Some(footer.len() as u64), ..proto::PostScript::default() };
    let tail = tail.encode_to_vec();
    let body = [b"ORC", &lengths[..], &stripe, &footer, &tail, &[u8::try_from(tail.len()).unwrap()]].concat();
    let told = decode("orc", &schema(&["l ARRAY<ROW<a INT>>"]), &Options::default(), &body).unwrap_err();
    assert_eq!(told, "the body holds more than 64 MiB once it is decoded");
}
