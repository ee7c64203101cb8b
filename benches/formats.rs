//! `csv` and `raw`: bodies to rows and back to lines, on one core.
//!
//! - `csv` against the csv crate, which reads each row into text fields and writes them again, in two ways: one
//!   reader for all rows, and one for each message, as messages come.
//! - `raw` against a copy of the bytes.
//! - `avro`, one value a message, and `parquet`, a file of 64 rows a message, with the rows of `csv`.
//!
//! Run with `cargo bench --bench formats`.

mod measure;

use std::{error::Error, hint::black_box};

use measure::{RUNS, machine, print, rates, summary};
use queuewarden::{
    definition::Options,
    formats::{self, Decoder, Encoder, Writer},
    model::{Column, RowsBuilder, Schema},
};

/// Different bodies, so that branches are not learnt by heart.
const BODIES: usize = 256;
/// Rows per batch, as the pipeline makes them.
const BATCH: usize = 128;

fn schema(columns: &[(&str, &str)]) -> Result<Schema, Box<dyn Error>> {
    let columns = columns.iter().map(|(name, ty)| Column::parse(name, ty));
    Ok(Schema { columns: columns.collect::<Result<_, _>>()? })
}

const COLUMNS: [(&str, &str); 14] = [
    ("eventId", "STRING"),
    ("eventName", "STRING"),
    ("userId", "BIGINT"),
    ("eventTime", "TIMESTAMP(3)"),
    ("day", "DATE"),
    ("amount", "DECIMAL(18, 4)"),
    ("currency", "CHAR(3)"),
    ("score", "DOUBLE"),
    ("attempt", "INT"),
    ("active", "BOOLEAN"),
    ("objectKey", "STRING"),
    ("objectSize", "BIGINT"),
    ("tags", "ARRAY<STRING>"),
    ("note", "STRING"),
];

/// A row of about 250 bytes.
fn row(random: &mut fastrand::Rng) -> String {
    let hex = |random: &mut fastrand::Rng, digits: usize| -> String { (0..digits).map(|_| random.digit(16)).collect() };
    let note = if random.u8(..4) == 0 { "\"Zusätze: \"\"vor 9 Uhr\"\", abgeben\"" } else { "" };
    format!(
        "{},ObjectCreated:PutObject,{},2026-11-{:02} {:02}:{:02}:{:02}.{:03},2026-11-{:02},{}.{:02},EUR,{},{},{},orders/2026/11/{}/part-{:05}.json,{},new;priority;eu-west,{note}",
        hex(random, 32),
        random.i64(..1_000_000_000_000).abs(),
        random.u8(1..=30),
        random.u8(..24),
        random.u8(..60),
        random.u8(..60),
        random.u16(..1000),
        random.u8(1..=30),
        random.u32(..100_000),
        random.u8(..100),
        random.f64() * 1000.0,
        random.u8(..10),
        random.bool(),
        hex(random, 8),
        random.u16(..),
        random.u32(..),
    )
}

/// A format with what it fills.
struct Ours {
    decoder: Box<dyn Decoder>,
    encoder: Box<dyn Encoder>,
    rows: RowsBuilder,
    out: Vec<u8>,
}

impl Ours {
    fn new(format: &str, schema: &Schema) -> Result<Self, Box<dyn Error>> {
        let options = Options::default();
        Ok(Self {
            decoder: formats::decoder(format, schema, &options)?,
            encoder: formats::encoder(format, schema, &options)?,
            rows: RowsBuilder::new(schema),
            out: Vec::new(),
        })
    }

    fn decode(&mut self, batch: &[String]) -> Result<arrow_array::RecordBatch, Box<dyn Error>> {
        for body in batch {
            self.decoder.decode(body.as_bytes(), &mut self.rows)?;
        }
        Ok(self.rows.finish()?)
    }

    fn round_trip(&mut self, bodies: &[String]) -> Result<(), Box<dyn Error>> {
        for batch in bodies.chunks(BATCH) {
            let batch = self.decode(batch)?;
            self.out.clear();
            let rejects = self.encoder.encode(&batch, &mut self.out);
            if !rejects.is_empty() {
                return Err(format!("{rejects:?}").into());
            }
            black_box(&self.out);
        }
        Ok(())
    }
}

/// The same rows in messages of Avro, and as files.
struct Columnar {
    avro: Ours,
    parquet: Box<dyn Decoder>,
    rows: RowsBuilder,
    values: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
}

/// Rows of a file.
const FILE: usize = 64;

impl Columnar {
    fn new(schema: &Schema, bodies: &[String]) -> Result<Self, Box<dyn Error>> {
        let options = Options::default();
        let (mut csv, mut avro) = (Ours::new("csv", schema)?, Ours::new("avro", schema)?);
        let (mut values, mut files) = (Vec::new(), Vec::new());
        for batch in bodies.chunks(FILE) {
            let batch = csv.decode(batch)?;
            avro.encoder.encode_rows(&batch, &mut Vec::new(), &mut |_, out| values.push(std::mem::take(out)));
            let Writer::Files(mut writer) = formats::writer("parquet", schema, &options)? else { continue };
            let mut file = Vec::new();
            writer.rows(&batch, &mut file)?;
            writer.finish(&mut file)?;
            files.push(file);
        }
        let parquet = formats::decoder("parquet", schema, &options)?;
        Ok(Self { avro, parquet, rows: RowsBuilder::new(schema), values, files })
    }

    fn decode_avro(&mut self) -> Result<(), Box<dyn Error>> {
        for batch in self.values.chunks(BATCH) {
            for value in batch {
                self.avro.decoder.decode(value, &mut self.avro.rows)?;
            }
            black_box(self.avro.rows.finish()?);
        }
        Ok(())
    }

    fn decode_parquet(&mut self) -> Result<(), Box<dyn Error>> {
        for file in &self.files {
            self.parquet.decode(file, &mut self.rows)?;
            black_box(self.rows.finish()?);
        }
        Ok(())
    }
}

/// The csv crate with one reader for all rows.
fn one_reader(joined: &[u8], out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    out.clear();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(joined);
    let mut writer = csv::Writer::from_writer(out);
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record)? {
        writer.write_record(&record)?;
    }
    writer.flush()?;
    black_box(writer.get_ref());
    Ok(())
}

/// The csv crate with a reader for each message.
fn reader_each(bodies: &[String], out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    out.clear();
    let mut writer = csv::Writer::from_writer(out);
    let mut record = csv::StringRecord::new();
    for body in bodies {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(body.as_bytes());
        while reader.read_record(&mut record)? {
            writer.write_record(&record)?;
        }
    }
    writer.flush()?;
    black_box(writer.get_ref());
    Ok(())
}

fn copy(bodies: &[String], out: &mut Vec<u8>) {
    for batch in bodies.chunks(BATCH) {
        out.clear();
        for body in batch {
            out.extend_from_slice(body.as_bytes());
            out.push(b'\n');
        }
        black_box(&out);
    }
}

fn print_ratio(what: &str, ratios: Vec<f64>) {
    let ratio = summary(ratios);
    println!("{what}: {:.2} (least {:.2}, most {:.2}; median of {RUNS} runs)", ratio.median, ratio.least, ratio.most);
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(1);
    let bodies: Vec<String> = (0..BODIES).map(|_| row(&mut random)).collect();
    let joined = bodies.join("\n");
    println!("machine: {}", machine());
    println!(
        "{BODIES} bodies of {} bytes on average, {} columns for csv and one for raw, batches of {BATCH}",
        joined.len() / BODIES,
        COLUMNS.len()
    );

    let typed = schema(&COLUMNS)?;
    let (mut csv, mut csv_decode) = (Ours::new("csv", &typed)?, Ours::new("csv", &typed)?);
    let mut raw = Ours::new("raw", &schema(&[("line", "STRING")])?)?;
    let (mut one, mut each, mut copied) = (Vec::new(), Vec::new(), Vec::new());
    let mut measured: [Vec<f64>; 6] = Default::default();
    for _ in 0..RUNS {
        let run = rates(
            BODIES,
            &mut [
                &mut || csv.round_trip(&bodies),
                &mut || {
                    bodies
                        .chunks(BATCH)
                        .try_for_each(|batch| csv_decode.decode(batch).map(|rows| drop(black_box(rows))))
                },
                &mut || one_reader(joined.as_bytes(), &mut one),
                &mut || reader_each(&bodies, &mut each),
                &mut || raw.round_trip(&bodies),
                &mut || {
                    copy(&bodies, &mut copied);
                    Ok(())
                },
            ],
        )?;
        measured.iter_mut().zip(run).for_each(|(all, one)| all.push(one));
    }
    let mut columnar = Columnar::new(&typed, &bodies)?;
    let mut files: [Vec<f64>; 2] = Default::default();
    for _ in 0..RUNS {
        // Both decode the same rows; neither can borrow while the other does.
        let avro = rates(BODIES, &mut [&mut || columnar.decode_avro()])?;
        let parquet = rates(BODIES, &mut [&mut || columnar.decode_parquet()])?;
        files.iter_mut().zip([avro, parquet]).for_each(|(all, one)| all.extend(one));
    }
    let names = [
        "csv, decode + encode",
        "csv, decode alone",
        "csv crate, one reader",
        "csv crate, a reader each",
        "raw, decode + encode",
        "copy",
    ];
    for (name, rates) in names.iter().zip(&measured) {
        print(name, &summary(rates.clone()));
    }
    for (name, rates) in ["avro, decode alone", "parquet, decode alone, a row"].iter().zip(&files) {
        print(name, &summary(rates.clone()));
    }
    let [csv, decoded, one, each, raw, copied] = &measured;
    let ratios = |ours: &[f64], theirs: &[f64]| ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    print_ratio("csv against the csv crate with one reader, which types nothing", ratios(csv, one));
    print_ratio("csv against the csv crate with a reader for each message", ratios(csv, each));
    print_ratio("csv against a copy", ratios(csv, copied));
    print_ratio("raw against a copy", ratios(raw, copied));
    let [avro, parquet] = &files;
    print_ratio("avro against csv, decode alone", ratios(avro, decoded));
    print_ratio("parquet against csv, decode alone", ratios(parquet, decoded));
    Ok(())
}
