//! Formats turn bodies into rows and rows into bytes. One file (or folder) per format, and one entry in the table.

pub mod avro;
mod base64;
mod charset;
#[cfg(feature = "columnar")]
mod columnar;
pub mod csv;
pub mod delimited;
#[cfg(test)]
mod flink_cases;
pub mod json;
pub mod orc;
pub mod parquet;
#[cfg(feature = "sql")]
#[cfg(test)]
mod query_cases;
pub mod raw;
mod reason;
mod scalars;
mod time;

use arrow_array::RecordBatch;

use crate::{
    definition::{FormatTables, Options},
    model::{RowReject, RowsBuilder, Schema, number},
};

/// Fills rows from bodies, one message at a time: a body that does not decode never harms its neighbours.
pub trait Decoder: Send {
    /// Appends the rows of one body to the physical columns, which are all of one length before and after. On
    /// `Err` (the reason, which names the column and never repeats a whole body) nothing has been appended.
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String>;
}

/// What became of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Rows appended.
    pub rows: u32,
    /// Fields that had a value and were set to null, because an `ignore-parse-errors` option says so or because a
    /// DECIMAL is too large for its type; counted.
    pub nulled_fields: u32,
    /// Whether an `ignore-parse-errors` option dropped the body, or a part of it, whole; counted.
    pub dropped: bool,
    /// Things after the first that Flink's meaning of an option leaves unread (such as further events), and rows
    /// dropped beyond the one that `dropped` stands for; counted.
    pub unread: u32,
}

/// Writes rows as bytes.
pub trait Encoder: Send {
    /// Appends every row and calls `written` after each, with its number, so that the caller can end it. Rows that the
    /// format refuses are left out whole and answered.
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject>;

    /// What ends each row where rows stand one after another, as in a file.
    fn line_end(&self) -> &[u8];

    /// Appends every row, each with [`Encoder::line_end`]; else as [`Encoder::encode_rows`].
    fn encode(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Vec<RowReject> {
        let line_end = self.line_end().to_vec();
        self.encode_rows(rows, out, &mut |_, out| out.extend_from_slice(&line_end))
    }

    /// The usual ending of a file's name, without the dot.
    fn extension(&self) -> &'static str;
}

/// Writes rows as files of a format that has a beginning and an end, one file after another. Every error is a bug, of a
/// library or of ours; after one it is not used again.
pub trait FileEncoder: Send {
    /// Appends rows to the open file, and begins one if none is open. Bytes that are ready go to `out`; the others are
    /// held until there are enough of them, or the file ends. Rows that the format refuses are left out whole and
    /// answered.
    ///
    /// # Errors
    /// See above.
    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<Vec<RowReject>, String>;

    /// About how many bytes of the open file are not handed out yet.
    fn pending(&self) -> u64;

    /// Ends the open file, if one is: the rest of its bytes go to `out`.
    ///
    /// # Errors
    /// See above.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String>;

    /// The usual ending of a file's name, without the dot.
    fn extension(&self) -> &'static str;
}

/// What writes the files of a sink.
pub enum Writer {
    /// Row after row; a file may end after any of them.
    Lines(Box<dyn Encoder>),
    /// Files that are whole only when they are ended.
    Files(Box<dyn FileEncoder>),
}

impl Writer {
    /// The usual ending of a file's name, without the dot.
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Lines(encoder) => encoder.extension(),
            Self::Files(encoder) => encoder.extension(),
        }
    }
}

/// Makes a decoder or encoder; the error says what the format cannot do with schema or options.
type Make<T> = fn(&Schema, &Options) -> Result<Box<T>, String>;

/// One line of the table of formats.
struct Format {
    name: &'static str,
    decoder: Make<dyn Decoder>,
    /// Of messages, and of files that are lines.
    encoder: Make<dyn Encoder>,
    /// Of files that are more than lines.
    files: Option<Make<dyn FileEncoder>>,
}

/// What a format is that this build lacks.
#[cfg(not(feature = "columnar"))]
const fn absent(name: &'static str) -> Format {
    Format {
        name,
        decoder: |_, _| Err(NOT_BUILT.into()),
        encoder: |_, _| Err(NOT_BUILT.into()),
        files: Some(|_, _| Err(NOT_BUILT.into())),
    }
}

#[cfg(not(feature = "columnar"))]
const NOT_BUILT: &str = "this build has no such format: it was built without the feature `columnar`";

/// The diagnostic of a format that this build lacks.
#[cfg_attr(feature = "columnar", expect(dead_code, reason = "called only where they are lacking"))]
fn not_built(endpoint: &crate::definition::Endpoint, name: &str) -> Vec<crate::definition::Diagnostic> {
    let message = format!("this build has no {name}: it was built without the feature `columnar`");
    vec![crate::definition::Diagnostic::error(message).at(endpoint.at(crate::definition::At::Format))]
}

static FORMATS: &[Format] = &[
    Format {
        name: "json",
        decoder: |schema, options| Ok(Box::new(json::Decoder::new(schema, options)?)),
        encoder: |schema, options| Ok(Box::new(json::Encoder::new(schema, options)?)),
        files: None,
    },
    Format {
        name: "csv",
        decoder: |schema, options| Ok(Box::new(csv::Decoder::new(schema, options)?)),
        encoder: |schema, options| Ok(Box::new(csv::Encoder::new(schema, options)?)),
        files: None,
    },
    Format {
        name: "raw",
        decoder: |schema, options| Ok(Box::new(raw::Decoder::new(schema, options)?)),
        encoder: |schema, options| Ok(Box::new(raw::Encoder::new(schema, options)?)),
        files: None,
    },
    #[cfg(feature = "columnar")]
    Format {
        name: "avro",
        decoder: |schema, options| Ok(Box::new(avro::Decoder::new(schema, options)?)),
        encoder: |schema, options| Ok(Box::new(avro::Encoder::new(schema, options)?)),
        files: Some(|schema, options| Ok(Box::new(avro::FileEncoder::new(schema, options)?))),
    },
    #[cfg(feature = "columnar")]
    Format {
        name: "parquet",
        decoder: |schema, _| Ok(Box::new(parquet::decoder(schema))),
        encoder: |_, _| Err("parquet is a format of files, and messages are written one by one".into()),
        files: Some(|schema, options| Ok(Box::new(parquet::FileEncoder::new(schema, options)?))),
    },
    #[cfg(feature = "columnar")]
    Format {
        name: "orc",
        decoder: |schema, _| Ok(Box::new(orc::decoder(schema))),
        encoder: |_, _| Err("orc is read, and not written".into()),
        files: None,
    },
    #[cfg(not(feature = "columnar"))]
    absent("avro"),
    #[cfg(not(feature = "columnar"))]
    absent("parquet"),
    #[cfg(not(feature = "columnar"))]
    absent("orc"),
];

/// The names of the formats that go with any connector, as an option `format` takes them.
pub const NAMES: &[&str] = &["json", "csv", "raw", "avro", "parquet", "orc"];

/// The names of those that files are written in.
pub const WRITTEN: &[&str] = &["json", "csv", "raw", "avro", "parquet"];

/// What a definition may say of each format. `delimited` is set by options of its connectors, which make it themselves.
pub const TABLES: &[&FormatTables] =
    &[&json::TABLES, &csv::TABLES, &raw::TABLES, &avro::TABLES, &parquet::TABLES, &orc::TABLES, &delimited::TABLES];

fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

fn unknown(name: &str) -> String {
    format!("there is no format {name}; there are: {}", NAMES.join(", "))
}

/// A decoder for a table's physical columns. The error says what the format cannot do with schema or options.
pub fn decoder(name: &str, schema: &Schema, options: &Options) -> Result<Box<dyn Decoder>, String> {
    (find(name).ok_or_else(|| unknown(name))?.decoder)(schema, options)
}

/// An encoder for all columns of a schema. The error says what the format cannot do with schema or options.
pub fn encoder(name: &str, schema: &Schema, options: &Options) -> Result<Box<dyn Encoder>, String> {
    (find(name).ok_or_else(|| unknown(name))?.encoder)(schema, options)
}

/// What writes files with all columns of a schema. The error says what the format cannot do with schema or options.
pub fn writer(name: &str, schema: &Schema, options: &Options) -> Result<Writer, String> {
    let format = find(name).ok_or_else(|| unknown(name))?;
    match format.files {
        Some(files) => files(schema, options).map(Writer::Files),
        None => (format.encoder)(schema, options).map(Writer::Lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "columnar")]
    #[test]
    fn a_part_of_a_batch_is_written_as_it_is_in_the_whole() {
        use super::columnar::testing::{COLUMNS, rows_of_all_types};
        for (format, columns) in [("json", &COLUMNS[..]), ("avro", &COLUMNS[..]), ("csv", &COLUMNS[..17])] {
            let schema = flink_cases::schema(columns);
            let rows = rows_of_all_types(&schema);
            let written = |rows: &arrow_array::RecordBatch| {
                let (mut encoder, mut all) = (encoder(format, &schema, &Options::default()).unwrap(), Vec::new());
                let refused = encoder.encode_rows(rows, &mut Vec::new(), &mut |_, out| all.push(std::mem::take(out)));
                assert_eq!(refused, [], "{format}");
                all
            };
            let parts = [(0, 5), (5, 1), (6, 70), (76, rows.num_rows() - 76)];
            let in_parts: Vec<_> = parts.iter().flat_map(|(at, count)| written(&rows.slice(*at, *count))).collect();
            assert_eq!(in_parts, written(&rows), "{format}");
        }
    }

    #[test]
    fn the_names_are_those_of_the_table() {
        assert!(FORMATS.iter().map(|format| format.name).eq(NAMES.iter().copied()));
        let names = NAMES.iter().copied().chain(["delimited"]);
        assert!(TABLES.iter().map(|tables| tables.name).eq(names));
        let schema = Schema { columns: Vec::new() };
        assert!(decoder("xml", &schema, &Options::default()).err().unwrap().contains("json"));
    }

    #[test]
    fn a_formats_options_carry_its_name_as_a_prefix() {
        for format in TABLES {
            for option in format.options.options {
                assert!(option.name.starts_with(&format!("{}.", format.name)), "{}", option.name);
            }
        }
    }
}
