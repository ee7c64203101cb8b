//! JSON of about 1 KiB, every field typed: bodies to rows and back to lines, against `serde_json::Value` from
//! bytes and back. `float_roundtrip` is on for both. The ratio of throughputs must be at least 1.3.
//!
//! Run with `cargo bench --bench json`.

mod measure;

use std::{error::Error, hint::black_box};

use measure::{RUNS, machine, print, rates, summary};
use queuewarden::{
    definition::Options,
    formats::{self, Decoder, Encoder},
    model::{Column, ColumnType, Field, LogicalType as T, RowsBuilder, Schema},
};

/// Different bodies, so that branches are not learnt by heart.
const BODIES: usize = 256;
/// Rows per batch, as the pipeline makes them.
const BATCH: usize = 128;
const TARGET: f64 = 1.3;

fn nullable(logical: T) -> ColumnType {
    ColumnType { logical, nullable: true }
}

fn field(name: &str, logical: T) -> Field {
    Field { name: name.into(), ty: nullable(logical) }
}

fn schema() -> Schema {
    let text = || T::VarChar(None);
    let address = T::Row(vec![
        field("country", text()),
        field("city", text()),
        field("zip", T::Int),
        field("lat", T::Double),
        field("lon", T::Double),
    ]);
    let item = T::Row(vec![field("sku", text()), field("quantity", T::Int), field("price", T::Decimal(10, 2))]);
    let columns = [
        ("eventId", text()),
        ("eventName", text()),
        ("region", text()),
        ("userId", T::BigInt),
        ("sessionId", text()),
        ("eventTime", T::Timestamp(3)),
        ("receivedAt", T::TimestampLtz(3)),
        ("day", T::Date),
        ("amount", T::Decimal(18, 4)),
        ("currency", T::Char(3)),
        ("score", T::Double),
        ("weight", T::Float),
        ("attempt", T::Int),
        ("shard", T::SmallInt),
        ("flag", T::TinyInt),
        ("active", T::Boolean),
        ("objectKey", text()),
        ("objectSize", T::BigInt),
        ("etag", text()),
        ("clientIp", text()),
        ("userAgent", text()),
        ("note", text()),
        ("address", address),
        ("items", T::Array(Box::new(nullable(item)))),
        ("tags", T::Array(Box::new(nullable(text())))),
        ("labels", T::Map(Box::new(nullable(text())), Box::new(nullable(text())))),
    ];
    let column = |(name, logical): (&str, T)| Column {
        name: name.into(),
        ty: nullable(logical),
        metadata: None,
        is_virtual: false,
    };
    Schema { columns: columns.into_iter().map(column).collect() }
}

fn body(random: &mut fastrand::Rng) -> String {
    let hex = |random: &mut fastrand::Rng, digits: usize| -> String { (0..digits).map(|_| random.digit(16)).collect() };
    let note = if random.u8(..4) == 0 { r#""Zusätze: \"vor 9 Uhr\"\nabgeben""# } else { "null" };
    format!(
        concat!(
            r#"{{"eventId":"{}","eventName":"ObjectCreated:PutObject","region":"cn-hangzhou","userId":{},"#,
            r#""sessionId":"{}","eventTime":"2026-11-{:02} {:02}:{:02}:{:02}.{:03}","#,
            r#""receivedAt":"2026-11-{:02} 08:{:02}:07.5Z","day":"2026-11-{:02}","amount":{}.{:02},"currency":"EUR","#,
            r#""score":{},"weight":{},"attempt":{},"shard":{},"flag":{},"active":{},"#,
            r#""objectKey":"orders/2026/11/{}/part-{:05}.json","objectSize":{},"etag":"{}","clientIp":"10.{}.{}.7","#,
            r#""userAgent":"aliyun-sdk-python/2.18.4(Linux/5.10.134-16.al8.x86_64/x86_64;3.11.4)"#,
            r#" queue-producer/1.4.2 (batch; retry=3; gzip=off)","note":{},"#,
            r#""address":{{"country":"DE","city":"München","zip":{},"lat":{},"lon":{}}},"#,
            r#""items":[{{"sku":"A-{}","quantity":{},"price":{}.5}},{{"sku":"B-{}","quantity":{},"price":{}.25}}],"#,
            r#""tags":["new","priority","eu-west"],"labels":{{"team":"billing","stage":"prod","owner":"{}"}}}}"#,
        ),
        hex(random, 32),
        random.i64(..1_000_000_000_000).abs(),
        hex(random, 24),
        random.u8(1..=30),
        random.u8(..24),
        random.u8(..60),
        random.u8(..60),
        random.u16(..1000),
        random.u8(1..=30),
        random.u8(..60),
        random.u8(1..=30),
        random.u32(..100_000),
        random.u8(..100),
        random.f64() * 1000.0,
        random.f32(),
        random.u8(..10),
        random.i16(..),
        random.i8(..),
        random.bool(),
        hex(random, 8),
        random.u16(..),
        random.u32(..),
        hex(random, 32),
        random.u8(..),
        random.u8(..),
        note,
        random.u32(10_000..99_999),
        random.f64() * 90.0,
        random.f64() * 180.0,
        random.u32(..9999),
        random.u8(..20),
        random.u16(..500),
        random.u32(..9999),
        random.u8(..20),
        random.u16(..500),
        hex(random, 8),
    )
}

fn decode(decoder: &mut dyn Decoder, bodies: &[&str], rows: &mut RowsBuilder) -> Result<(), Box<dyn Error>> {
    for body in bodies {
        decoder.decode(body.as_bytes(), rows)?;
    }
    Ok(())
}

fn typed(
    decoder: &mut dyn Decoder,
    encoder: &mut dyn Encoder,
    batches: &[Vec<&str>],
    rows: &mut RowsBuilder,
    out: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    for batch in batches {
        decode(decoder, batch, rows)?;
        let batch = rows.finish()?;
        out.clear();
        let rejects = encoder.encode(&batch, out);
        if !rejects.is_empty() {
            return Err(format!("{rejects:?}").into());
        }
        black_box(&out);
    }
    Ok(())
}

fn untyped(bodies: &[String], out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    for body in bodies {
        let value: serde_json::Value = serde_json::from_slice(body.as_bytes())?;
        out.clear();
        serde_json::to_writer(&mut *out, &value)?;
        black_box(&out);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(1);
    let bodies: Vec<String> = (0..BODIES).map(|_| body(&mut random)).collect();
    let batches: Vec<Vec<&str>> =
        bodies.chunks(BATCH).map(|batch| batch.iter().map(String::as_str).collect()).collect();
    let schema = schema();
    let mut decoder = formats::decoder("json", &schema, &Options::default())?;
    let mut encoder = formats::encoder("json", &schema, &Options::default())?;
    let mut rows = RowsBuilder::new(&schema);
    let mut out = Vec::new();

    println!("machine: {}", machine());
    let bytes: usize = bodies.iter().map(String::len).sum();
    println!(
        "{BODIES} bodies of {} bytes on average, {} columns, batches of {BATCH}",
        bytes / BODIES,
        schema.columns.len()
    );

    let (mut ours, mut theirs, mut decoding, mut ratios) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut other_rows = RowsBuilder::new(&schema);
    let mut other_decoder = formats::decoder("json", &schema, &Options::default())?;
    let mut other_out = Vec::new();
    for _ in 0..RUNS {
        let run = rates(
            BODIES,
            &mut [
                &mut || untyped(&bodies, &mut other_out),
                &mut || typed(&mut *decoder, &mut *encoder, &batches, &mut rows, &mut out),
                &mut || {
                    for batch in &batches {
                        decode(&mut *other_decoder, batch, &mut other_rows)?;
                        black_box(other_rows.finish()?);
                    }
                    Ok(())
                },
            ],
        )?;
        let [untyped, typed, decode] = run[..] else { return Err("three rates".into()) };
        theirs.push(untyped);
        ours.push(typed);
        decoding.push(decode);
        ratios.push(typed / untyped);
    }
    let ratio = summary(ratios);
    print("serde_json::Value round trip", &summary(theirs));
    print("decode + encode", &summary(ours));
    print("decode alone", &summary(decoding));
    println!(
        "ratio {:.2} (least {:.2}, most {:.2}; median of {RUNS} runs; at least {TARGET} is asked)",
        ratio.median, ratio.least, ratio.most
    );
    if ratio.median < TARGET { Err(format!("{:.2} is below {TARGET}", ratio.median).into()) } else { Ok(()) }
}
