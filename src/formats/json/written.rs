//! What rows are written as.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};

use super::{
    Decoder, Encoder,
    options::*,
    tests::{nullable, options, row, schema},
};
use crate::{
    definition::Options,
    formats::{Decoder as _, Encoder as _},
    model::{LogicalType as T, RowsBuilder, Schema},
};

const STRING: T = T::VarChar(None);

fn written(schema: &Schema, options: &Options, body: &str) -> String {
    let mut rows = RowsBuilder::new(schema);
    let lenient = Options::default();
    Decoder::new(schema, &lenient).unwrap().decode(body.as_bytes(), &mut rows).unwrap();
    let mut out = Vec::new();
    assert_eq!(Encoder::new(schema, options).unwrap().encode(&rows.finish().unwrap(), &mut out), []);
    String::from_utf8(out).unwrap()
}

#[test]
fn columns_are_written_in_schema_order_with_nulls_unless_left_out() {
    let inner = row(vec![("x", nullable(T::Int)), ("y", nullable(T::Int))]);
    let schema = schema(vec![("b", nullable(T::Double)), ("a", nullable(STRING)), ("r", nullable(inner))]);
    let body = r#"{"r":{"y":2},"b":100}"#;
    assert_eq!(written(&schema, &Options::default(), body), "{\"b\":100.0,\"a\":null,\"r\":{\"x\":null,\"y\":2}}\n");
    let without = options(&[(&IGNORE_NULL_FIELDS, "true")]);
    assert_eq!(written(&schema, &without, body), "{\"b\":100.0,\"r\":{\"y\":2}}\n");
    assert_eq!(written(&schema, &without, "{}"), "{}\n");
}

#[test]
fn decimals_have_an_exponent_unless_plain() {
    let schema = schema(vec![("d", nullable(T::Decimal(20, 9)))]);
    let plain = options(&[(&DECIMAL_AS_PLAIN_NUMBER, "true")]);
    for (body, exponent, plainly) in
        [("1.50", "1.5", "1.5"), ("0.000000027", "2.7E-8", "0.000000027"), ("100", "1E+2", "100")]
    {
        let body = format!("{{\"d\":{body}}}");
        assert_eq!(written(&schema, &Options::default(), &body), format!("{{\"d\":{exponent}}}\n"));
        assert_eq!(written(&schema, &plain, &body), format!("{{\"d\":{plainly}}}\n"));
    }
}

#[test]
fn a_date_outside_the_calendar_refuses_its_row_alone() {
    let schema = schema(vec![("t", nullable(T::Timestamp(6)))]);
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0, i64::MAX, 1]));
    let batch = RecordBatch::try_new(schema.to_arrow(), vec![times]).unwrap();
    let mut out = b"before".to_vec();
    let rejects = Encoder::new(&schema, &Options::default()).unwrap().encode(&batch, &mut out);
    assert_eq!(rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(), [1]);
    let expected = "before{\"t\":\"1970-01-01 00:00:00\"}\n{\"t\":\"1970-01-01 00:00:00.000001\"}\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_batch_of_another_shape_is_refused_row_by_row() {
    let declared = schema(vec![("n", nullable(T::Int))]);
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let other = schema(vec![("n", nullable(T::BigInt))]);
    let batch = RecordBatch::try_new(other.to_arrow(), vec![longs]).unwrap();
    let mut out = Vec::new();
    let rejects = Encoder::new(&declared, &Options::default()).unwrap().encode(&batch, &mut out);
    assert_eq!(rejects.len(), 2);
    assert_eq!(rejects[0].reason, "column n: Int64 where Int32 is expected");
    assert!(out.is_empty());
}

#[test]
fn sliced_batches_are_written_from_their_slice() {
    let inner = T::Array(Box::new(nullable(row(vec![("x", nullable(STRING))]))));
    let map = T::Map(Box::new(nullable(STRING)), Box::new(nullable(T::Int)));
    let schema = schema(vec![("a", nullable(inner)), ("m", nullable(map)), ("s", nullable(T::Boolean))]);
    let mut rows = RowsBuilder::new(&schema);
    let mut decoder = Decoder::new(&schema, &Options::default()).unwrap();
    let lines = [
        r#"{"a":[{"x":"1"}],"m":{"k":1},"s":true}"#,
        r#"{"a":[{"x":"2"},null,{"x":null}],"m":{"l":null,"k":2},"s":null}"#,
        r#"{"a":null,"m":{},"s":false}"#,
    ];
    for line in lines {
        decoder.decode(line.as_bytes(), &mut rows).unwrap();
    }
    let batch = rows.finish().unwrap().slice(1, 2);
    let mut out = Vec::new();
    Encoder::new(&schema, &Options::default()).unwrap().encode(&batch, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("{}\n{}\n", lines[1], lines[2]));
}
