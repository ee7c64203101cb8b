//! Speed of a query: bodies of JSON to rows, a filter and a projection, and back to lines, against the same in code over
//! `serde_json::Value`; and what a query costs that selects everything.

mod measure;

use std::{error::Error, hint::black_box};

use measure::{RUNS, machine, print, rates, summary};
use queuewarden::{
    definition::Options,
    formats::{self, Decoder, Encoder},
    model::{Column, RowsBuilder, Schema},
    query::Query,
};
use serde_json::{Map, Value, json};

/// Bodies handled in a round; all batch sizes divide it.
const BODIES: usize = 1_024;
/// Least ratio to `serde_json::Value`.
const TARGET: f64 = 1.3;
/// The most that `SELECT * FROM source` may cost, in percent.
const MOST_COST: f64 = 3.0;

const SQL: &str = "SELECT eventName, UPPER(region) AS region, bucket || '/' || objectName AS path,
  objectSize / 1024 AS kilobytes,
  CASE WHEN objectSize > 1000000 THEN 'large' WHEN objectSize > 50000 THEN 'medium' ELSE 'small' END AS class,
  COALESCE(requester, 'nobody') AS requester, eventTime
FROM source WHERE eventName LIKE 'ObjectCreated:%' AND objectSize > 1000";

const COLUMNS: [(&str, &str); 11] = [
    ("eventName", "STRING"),
    ("eventTime", "TIMESTAMP(3)"),
    ("region", "STRING"),
    ("bucket", "STRING"),
    ("objectName", "STRING"),
    ("objectSize", "BIGINT"),
    ("etag", "STRING"),
    ("requester", "STRING"),
    ("clientIp", "STRING"),
    ("attempt", "INT"),
    ("flag", "BOOLEAN"),
];

fn schema() -> Result<Schema, Box<dyn Error>> {
    let column = |(name, ty): (&str, &str)| Column::parse(name, ty).map_err(|error| format!("{name}: {error}").into());
    Ok(Schema { columns: COLUMNS.into_iter().map(column).collect::<Result<_, Box<dyn Error>>>()? })
}

/// Three of four are of objects that were created.
fn body(random: &mut fastrand::Rng) -> String {
    let names = [
        "ObjectCreated:PutObject",
        "ObjectCreated:PostObject",
        "ObjectCreated:CopyObject",
        "ObjectRemoved:DeleteObject",
    ];
    json!({
        "eventName": names[random.usize(..4)],
        "eventTime": format!("2026-11-{:02} 13:{:02}:{:02}.678", random.u8(1..31), random.u8(..60), random.u8(..60)),
        "region": "cn-hangzhou",
        "bucket": format!("bucket-{}", random.u8(..10)),
        "objectName": format!("orders/2026/11/part-{:05}.json", random.u32(..100_000)),
        "objectSize": random.u32(..2_000_000),
        "etag": format!("{:032X}", random.u128(..)),
        "requester": if random.bool() { Value::Null } else { format!("user-{}", random.u16(..)).into() },
        "clientIp": format!("10.0.{}.7", random.u8(..)),
        "attempt": random.u8(..5),
        "flag": random.bool(),
    })
    .to_string()
}

fn typed(
    decoder: &mut dyn Decoder,
    query: Option<&Query>,
    encoder: &mut dyn Encoder,
    batches: &[Vec<&str>],
    rows: &mut RowsBuilder,
    out: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    for batch in batches {
        for body in batch {
            decoder.decode(body.as_bytes(), rows)?;
        }
        let mut batch = rows.finish()?;
        if let Some(query) = query {
            let selected = query.run(&batch)?;
            if !selected.rejects.is_empty() {
                return Err(format!("{:?}", selected.rejects).into());
            }
            batch = selected.rows;
        }
        out.clear();
        let rejects = encoder.encode(&batch, out);
        if !rejects.is_empty() {
            return Err(format!("{rejects:?}").into());
        }
        black_box(&out);
    }
    Ok(())
}

/// The same by hand.
fn untyped(bodies: &[String], out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    for body in bodies {
        let value: Value = serde_json::from_slice(body.as_bytes())?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let (Some(name), Some(size)) = (text("eventName"), value.get("objectSize").and_then(Value::as_i64)) else {
            continue;
        };
        if !name.starts_with("ObjectCreated:") || size <= 1000 {
            continue;
        }
        let class = if size > 1_000_000 {
            "large"
        } else if size > 50_000 {
            "medium"
        } else {
            "small"
        };
        let path = text("bucket").zip(text("objectName")).map(|(bucket, object)| format!("{bucket}/{object}"));
        let mut made = Map::new();
        made.insert("eventName".into(), name.into());
        made.insert("region".into(), text("region").map(str::to_uppercase).into());
        made.insert("path".into(), path.into());
        made.insert("kilobytes".into(), (size / 1024).into());
        made.insert("class".into(), class.into());
        made.insert("requester".into(), text("requester").unwrap_or("nobody").into());
        made.insert("eventTime".into(), value.get("eventTime").cloned().unwrap_or_default());
        out.clear();
        serde_json::to_writer(&mut *out, &Value::Object(made))?;
        out.push(b'\n');
        black_box(&out);
    }
    Ok(())
}

fn planned(text: &str, schema: &Schema) -> Result<Query, Box<dyn Error>> {
    Query::plan(text, schema).map_err(|errors| format!("{errors:?}").into())
}

/// Rates of `serde_json::Value`, of the query, of no query and of one that selects everything.
struct Found {
    ratio: f64,
    cost: f64,
}

fn measure(bodies: &[String], size: usize, schema: &Schema) -> Result<Found, Box<dyn Error>> {
    let batches: Vec<Vec<&str>> = bodies.chunks(size).map(|batch| batch.iter().map(String::as_str).collect()).collect();
    let (query, all) = (planned(SQL, schema)?, planned("SELECT * FROM source", schema)?);
    let options = Options::default();
    let decoder = || formats::decoder("json", schema, &options);
    let (mut of_query, mut of_none, mut of_all) = (decoder()?, decoder()?, decoder()?);
    let mut encoder = formats::encoder("json", query.schema(), &options)?;
    let (mut plain, mut same) =
        (formats::encoder("json", schema, &options)?, formats::encoder("json", schema, &options)?);
    let mut rows = [(); 3].map(|()| RowsBuilder::new(schema));
    let mut outs = [(); 4].map(|()| Vec::new());
    let (mut by_hand, mut by_query, mut ratios, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let [rows_query, rows_none, rows_all] = &mut rows;
        let [out_hand, out_query, out_none, out_all] = &mut outs;
        let run = rates(
            BODIES,
            &mut [
                &mut || untyped(bodies, out_hand),
                &mut || typed(&mut *of_query, Some(&query), &mut *encoder, &batches, rows_query, out_query),
                &mut || typed(&mut *of_none, None, &mut *plain, &batches, rows_none, out_none),
                &mut || typed(&mut *of_all, Some(&all), &mut *same, &batches, rows_all, out_all),
            ],
        )?;
        let [hand, query, none, all] = run[..] else { return Err("four rates".into()) };
        by_hand.push(hand);
        by_query.push(query);
        ratios.push(query / hand);
        costs.push(100.0 * (none / all - 1.0));
    }
    let (ratio, cost) = (summary(ratios), summary(costs));
    println!("batches of {size}");
    print("serde_json::Value", &summary(by_hand));
    print("decode + query + encode", &summary(by_query));
    println!(
        "ratio {:.2} (least {:.2}, most {:.2}; median of {RUNS} runs; at least {TARGET} is asked)",
        ratio.median, ratio.least, ratio.most
    );
    println!(
        "SELECT * costs {:.2} % (least {:.2}, most {:.2}; below {MOST_COST} is asked)",
        cost.median, cost.least, cost.most
    );
    Ok(Found { ratio: ratio.median, cost: cost.median })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(1);
    let bodies: Vec<String> = (0..BODIES).map(|_| body(&mut random)).collect();
    let schema = schema()?;
    println!("machine: {}", machine());
    let bytes: usize = bodies.iter().map(String::len).sum();
    println!("{BODIES} bodies of {} bytes on average, {} columns", bytes / BODIES, schema.columns.len());
    let mut missed = Vec::new();
    for size in [64, 256] {
        let found = measure(&bodies, size, &schema)?;
        if found.ratio < TARGET {
            missed.push(format!("{:.2} at {size} is below {TARGET}", found.ratio));
        }
        if found.cost >= MOST_COST {
            missed.push(format!("{:.2} % at {size} is not below {MOST_COST}", found.cost));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join(", ").into()) }
}
