use std::{collections::HashSet, ops::Range, time::Duration};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, TimestampMicrosecondType, TimestampNanosecondType,
    },
};

use tokio::time::Instant;

use super::{DatagenSource, GeneratingDecoder, decoder::body, fields, source::Pace};
use crate::{
    connector::{LogReader, LogSource, Polled, Start},
    connectors::REGISTRY,
    definition::{Endpoint, Environment, Style, load_text},
    formats::Decoder,
    model::{LaneId, RowsBuilder},
};

/// `options`: lines of the source, each with two blanks before it.
fn endpoint(schema: &str, options: &str) -> Endpoint {
    let text = format!("source:\n  connector: datagen\n{options}  schema:\n{schema}sink: {{ connector: blackhole }}\n");
    let loaded = load_text("p.yaml".as_ref(), &text, &REGISTRY, &Environment::new(|_| None, None));
    let told = loaded.report.render(Style::Plain);
    loaded.definition.unwrap_or_else(|| panic!("{text}\n{told}")).source
}

fn rows(endpoint: &Endpoint, range: Range<u64>) -> RecordBatch {
    let mut rows = RowsBuilder::new(&endpoint.schema);
    let mut decoder = GeneratingDecoder::new(endpoint);
    let decoded = decoder.decode(&body(&range), &mut rows).unwrap();
    assert_eq!(u64::from(decoded.rows), range.end - range.start);
    rows.finish().unwrap()
}

const EVERYTHING: &str = "    a: BOOLEAN\n    b: TINYINT\n    c: SMALLINT\n    d: INT\n    e: BIGINT\n    f: FLOAT\n    \
    g: DOUBLE\n    h: DECIMAL(38, 10)\n    i: CHAR(3)\n    j: VARCHAR(5)\n    k: STRING\n    l: BINARY(3)\n    m: VARBINARY(4)\n    \
    n: BYTES\n    o: DATE\n    p: TIME(3)\n    q: TIMESTAMP(3)\n    r: TIMESTAMP_LTZ(9)\n    s: ARRAY<INT>\n    \
    t: MAP<STRING, DOUBLE>\n    u: ROW<x INT, y ARRAY<STRING>>\n    v: DECIMAL(10, 2) NOT NULL\n";

#[test]
fn a_row_is_a_function_of_the_seed_and_its_number_alone() {
    let one = endpoint(EVERYTHING, "  fields.q.max-past: 1d\n");
    let together = rows(&one, 0..1000);
    assert_eq!(together, rows(&one, 0..1000));
    for from in [0, 1, 17, 999] {
        assert_eq!(rows(&one, from..from + 1), together.slice(from as usize, 1), "row {from}");
    }
    let other = endpoint(EVERYTHING, "  fields.q.max-past: 1d\n  seed: 1\n");
    assert_ne!(rows(&other, 0..1000), together);
    assert!(together.columns().iter().all(|column| column.null_count() == 0));
}

#[test]
fn random_numbers_lie_within_their_bounds_and_reach_them() {
    let schema = "    a: TINYINT\n    b: SMALLINT\n    c: INT\n    d: BIGINT\n    e: FLOAT\n    f: DOUBLE\n    g: DECIMAL(4, 2)\n";
    let mut options = String::new();
    for column in ["a", "b", "c", "d", "e", "f", "g"] {
        options += &format!("  fields.{column}.min: -2\n  fields.{column}.max: 1\n");
    }
    let batch = rows(&endpoint(schema, &options), 0..1000);
    let column = |n: usize| batch.column(n);
    let all: HashSet<i64> = HashSet::from([-2, -1, 0, 1]);
    let found = |values: &mut dyn Iterator<Item = i64>| assert_eq!(values.collect::<HashSet<_>>(), all);
    found(&mut column(0).as_primitive::<Int8Type>().values().iter().map(|n| i64::from(*n)));
    found(&mut column(1).as_primitive::<Int16Type>().values().iter().map(|n| i64::from(*n)));
    found(&mut column(2).as_primitive::<Int32Type>().values().iter().map(|n| i64::from(*n)));
    found(&mut column(3).as_primitive::<Int64Type>().values().iter().copied());
    let floats = column(4).as_primitive::<Float32Type>().values();
    assert!(floats.iter().all(|n| (-2.0..=1.0).contains(n)) && floats.iter().any(|n| *n < -1.9));
    let doubles = column(5).as_primitive::<Float64Type>().values();
    assert!(doubles.iter().all(|n| (-2.0..=1.0).contains(n)) && doubles.iter().any(|n| *n > 0.9));
    let decimals = column(6).as_primitive::<Decimal128Type>().values();
    assert!(decimals.iter().all(|n| (-200..=100).contains(n)) && decimals.iter().any(|n| *n > 90));
}

#[test]
fn by_default_numbers_are_of_the_whole_type_and_fractions_are_not_negative() {
    let batch = rows(&endpoint("    a: BIGINT\n    b: DOUBLE\n    c: DECIMAL(38, 0)\n", ""), 0..1000);
    let integers = batch.column(0).as_primitive::<Int64Type>().values();
    assert!(integers.iter().any(|n| *n < i64::MIN / 2) && integers.iter().any(|n| *n > i64::MAX / 2));
    let doubles = batch.column(1).as_primitive::<Float64Type>().values();
    assert!(doubles.iter().all(|n| n.is_finite() && *n >= 0.0) && doubles.iter().any(|n| *n > f64::MAX / 2.0));
    let most = 10_i128.pow(38) - 1;
    let decimals = batch.column(2).as_primitive::<Decimal128Type>().values();
    assert!(decimals.iter().all(|n| (0..=most).contains(n)) && decimals.iter().any(|n| *n > most / 2));
}

#[test]
fn texts_are_hex_digits_of_the_length_asked_for() {
    let schema =
        "    a: STRING\n    b: VARCHAR(7)\n    c: CHAR(2)\n    d: STRING\n    e: STRING\n    f: STRING NOT NULL\n";
    let options = "  fields.d.length: 20\n  fields.e.length: 4\n  fields.e.var-len: true\n  fields.f.length: 0\n";
    let batch = rows(&endpoint(schema, options), 0..300);
    let lengths = |n: usize| -> HashSet<usize> {
        let texts = batch.column(n).as_string::<i32>();
        assert!(texts.iter().flatten().all(|text| text.bytes().all(|c| b"0123456789abcdef".contains(&c))));
        texts.iter().flatten().map(str::len).collect()
    };
    assert_eq!([0, 1, 2, 3, 5].map(lengths), [100, 7, 2, 20, 0].map(|length| HashSet::from([length])));
    assert_eq!(lengths(4), HashSet::from([1, 2, 3, 4]));
    assert!(batch.column(0).as_string::<i32>().iter().collect::<HashSet<_>>().len() == 300);
}

#[test]
fn the_share_of_nulls_is_the_one_asked_for() {
    let schema = "    a: INT\n    b: INT\n    c: ARRAY<INT>\n    d: ROW<x INT>\n";
    let options =
        "  fields.a.null-rate: 0.25\n  fields.b.null-rate: 1\n  fields.c.null-rate: 0.5\n  fields.d.x.null-rate: 1\n";
    let batch = rows(&endpoint(schema, options), 0..10_000);
    let nulls = |n: usize| batch.column(n).null_count();
    assert!((2_300..2_700).contains(&nulls(0)), "{}", nulls(0));
    assert_eq!(nulls(1), 10_000);
    assert!((4_700..5_300).contains(&nulls(2)), "{}", nulls(2));
    assert_eq!((nulls(3), batch.column(3).as_struct().column(0).null_count()), (0, 10_000));
}

#[test]
fn sequences_count_from_start_with_the_number_of_the_row_and_bound_the_source() {
    let schema = "    a: TINYINT\n    b: BIGINT\n    c: DOUBLE\n    d: DECIMAL(5, 2)\n    e: STRING\n    f: BYTES\n";
    let mut options = String::new();
    for (column, start, end) in
        [("a", -3, 100), ("b", 5, 1000), ("c", 0, 1000), ("d", -9, 999), ("e", 8, 500), ("f", 1, 500)]
    {
        options += &format!(
            "  fields.{column}.kind: sequence\n  fields.{column}.start: {start}\n  fields.{column}.end: {end}\n"
        );
    }
    let endpoint = endpoint(schema, &options);
    assert_eq!(fields::read(&endpoint).0.rows, Some(104), "the shortest one");
    let batch = rows(&endpoint, 2..4);
    assert_eq!(batch.column(0).as_primitive::<Int8Type>().values(), &[-1, 0]);
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &[7, 8]);
    assert_eq!(batch.column(2).as_primitive::<Float64Type>().values(), &[2.0, 3.0]);
    assert_eq!(batch.column(3).as_primitive::<Decimal128Type>().values(), &[-700, -600]);
    assert_eq!(batch.column(4).as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["10", "11"]);
    assert_eq!(batch.column(5).as_binary::<i32>().value(0), 3_u64.to_be_bytes());
}

#[test]
fn times_go_on_with_the_rows_and_reach_back_as_far_as_asked() {
    let schema = "    a: DATE\n    b: TIME(3)\n    c: TIMESTAMP(3)\n    d: TIMESTAMP_LTZ(9)\n    e: TIMESTAMP(6)\n";
    let options = "  base-time-ms: 86399000\n  rows-per-second: 2\n  fields.e.max-past: 10s\n";
    let batch = rows(&endpoint(schema, options), 0..1000);
    assert_eq!(&batch.column(0).as_primitive::<Date32Type>().values()[..3], &[0, 0, 1]);
    assert_eq!(&batch.column(1).as_primitive::<Time32MillisecondType>().values()[..3], &[86_399_000, 86_399_500, 0]);
    let times = batch.column(2).as_primitive::<TimestampMicrosecondType>().values();
    assert_eq!(&times[..3], &[86_399_000_000, 86_399_500_000, 86_400_000_000]);
    assert_eq!(batch.column(3).as_primitive::<TimestampNanosecondType>().value(1), 86_399_500_000_000);
    let past = batch.column(4).as_primitive::<TimestampMicrosecondType>().values();
    let back: Vec<_> = times.iter().zip(past).map(|(time, past)| time - past).collect();
    assert!(back.iter().all(|back| (0..=10_000_000).contains(back)) && back.iter().any(|back| *back > 9_000_000));
}

#[test]
fn collections_have_three_elements_or_as_many_as_asked_for_and_a_map_no_key_twice() {
    let schema = "    a: ARRAY<STRING>\n    b: ARRAY<INT>\n    c: MAP<STRING, INT>\n    d: MAP<CHAR(1), INT>\n";
    let options = "  fields.a.element.length: 5\n  fields.b.length: 7\n  fields.b.element.max: 9\n  fields.b.element.min: 9\n  fields.d.length: 16\n";
    let batch = rows(&endpoint(schema, options), 0..100);
    assert!((0..100).all(|row| batch.column(0).as_list::<i32>().value_length(row) == 3));
    assert!(batch.column(0).as_list::<i32>().values().as_string::<i32>().iter().flatten().all(|text| text.len() == 5));
    assert!((0..100).all(|row| batch.column(1).as_list::<i32>().value_length(row) == 7));
    assert!(batch.column(1).as_list::<i32>().values().as_primitive::<Int32Type>().values().iter().all(|n| *n == 9));
    assert!((0..100).all(|row| batch.column(2).as_map().value_length(row) == 3));
    for row in 0..100 {
        let entries = batch.column(3).as_map().value(row);
        let keys = entries.column(0).as_string::<i32>();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    }
}

async fn poll(source: &DatagenSource, start: Start) -> (Polled, std::sync::Arc<dyn LogReader>) {
    let opened = source.open(&LaneId("rows".into()), start).await.unwrap();
    assert_eq!(opened.position, if let Start::Resume(position) = start { position } else { 0 });
    (opened.reader.poll().await.unwrap(), opened.reader)
}

#[test]
fn rows_are_due_evenly_none_before_its_time_and_what_was_held_up_for_long_is_not_made_up_for() {
    let since = Instant::now();
    let mut pace = Pace { next: 7, rate: 50, from: 7, since };
    assert_eq!(pace.when(1), since + Duration::from_millis(20));
    assert_eq!(pace.take(since + Duration::from_micros(19_999), 256), 7..7);
    assert_eq!(pace.take(since + Duration::from_millis(20), 256), 7..8);
    assert_eq!(pace.take(since + Duration::from_millis(100), 2), 8..10);
    assert_eq!(pace.when(5), since + Duration::from_millis(160));
    // Half a second late is made up for, a minute is not.
    assert_eq!(pace.take(since + Duration::from_millis(600), 256), 10..37);
    let late = since + Duration::from_secs(60);
    assert_eq!(pace.take(late, 20), 37..57);
    assert_eq!(pace.take(late, 256), 57..87);
    assert_eq!(pace.take(late + Duration::from_secs(1), 256), 87..137);
}

#[tokio::test]
async fn a_bounded_source_ends_with_its_last_row_wherever_it_was_resumed() {
    let source = |rows: u64| {
        DatagenSource::new(
            &endpoint("    a: INT\n", &format!("  rows-per-second: 1000000000\n  number-of-rows: {rows}\n")),
            256,
        )
    };
    let (polled, reader) = poll(&source(300), Start::Resume(40)).await;
    assert_eq!((polled.position, polled.end, &*polled.messages[0].id), (296, false, "40..296"));
    let polled = reader.poll().await.unwrap();
    assert_eq!((polled.position, polled.end, polled.messages.len()), (300, true, 1));
    let (polled, _) = poll(&source(300), Start::Resume(300)).await;
    assert_eq!((polled.position, polled.end, polled.messages.len()), (300, true, 0));
    let (polled, _) = poll(&source(200), Start::Resume(300)).await;
    assert_eq!((polled.position, polled.end, polled.messages.len()), (300, true, 0));
}

#[tokio::test]
async fn rows_that_are_large_are_pulled_a_few_at_a_time() {
    let endpoint = endpoint("    a: STRING\n", "  fields.a.length: 500000\n  rows-per-second: 1000000\n");
    let (polled, _) = poll(&DatagenSource::new(&endpoint, 256), Start::First).await;
    assert_eq!(polled.position, 2);
}
