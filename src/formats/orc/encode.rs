use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use orc_rust::{ArrowWriterBuilder, compression::CompressionType};

use super::{
    options::{COMPRESS, STRIPE_SIZE},
    unfit,
};
use crate::{
    definition::Options,
    formats,
    model::{RowReject, Schema},
};

/// Writes files of one stripe each. The library's writer cannot go from thread to thread as a sink does, so rows are kept
/// and written at once when the file ends, which it does at the size of a stripe at the latest.
pub struct FileEncoder {
    schema: SchemaRef,
    compression: Option<CompressionType>,
    stripe_size: usize,
    rows: Vec<RecordBatch>,
    /// Bytes of memory that they take.
    held: usize,
}

impl FileEncoder {
    /// An encoder for all columns.
    ///
    /// # Errors
    /// A column of a type that is not written.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        if let Some((_, why)) = unfit(schema) {
            return Err(why);
        }
        let compression = match options.opt_text(&COMPRESS) {
            Some("NONE") => None,
            Some("SNAPPY") => Some(CompressionType::Snappy),
            Some("LZ4") => Some(CompressionType::Lz4),
            Some("ZSTD") => Some(CompressionType::Zstd),
            _ => Some(CompressionType::Zlib),
        };
        let stripe_size = options.opt_size(&STRIPE_SIZE).and_then(|size| usize::try_from(size).ok());
        let (schema, stripe_size) = (schema.to_arrow(), stripe_size.unwrap_or(16 << 20));
        Ok(Self { schema, compression, stripe_size, rows: Vec::new(), held: 0 })
    }
}

impl formats::FileEncoder for FileEncoder {
    fn rows(&mut self, rows: &RecordBatch, _: &mut Vec<u8>) -> Result<Vec<RowReject>, String> {
        let rows = rows.clone().with_schema(Arc::clone(&self.schema)).map_err(|error| error.to_string())?;
        self.held += rows.get_array_memory_size();
        self.rows.push(rows);
        Ok(Vec::new())
    }

    fn pending(&self) -> u64 {
        if self.held >= self.stripe_size { u64::MAX } else { self.held as u64 }
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut file = Vec::new();
        let builder = ArrowWriterBuilder::new(&mut file, Arc::clone(&self.schema))
            .with_stripe_byte_size(self.stripe_size);
        let builder = match self.compression {
            Some(compression) => builder.with_compression(compression),
            None => builder,
        };
        let mut writer = builder.try_build().map_err(|error| error.to_string())?;
        for rows in self.rows.drain(..) {
            writer.write(&rows).map_err(|error| error.to_string())?;
        }
        writer.close().map_err(|error| error.to_string())?;
        out.append(&mut file);
        self.held = 0;
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "orc"
    }
}
