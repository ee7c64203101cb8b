use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch,
    cast::AsArray,
    types::{TimestampMicrosecondType, TimestampNanosecondType},
};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use arrow_select::filter::filter_record_batch;
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
        let (rows, rejects) = without_last_second(rows)?;
        let rows = rows.with_schema(Arc::clone(&self.schema)).map_err(|error| error.to_string())?;
        self.held += rows.get_array_memory_size();
        self.rows.push(rows);
        Ok(rejects)
    }

    fn pending(&self) -> u64 {
        if self.held >= self.stripe_size { u64::MAX } else { self.held as u64 }
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut file = Vec::new();
        let builder =
            ArrowWriterBuilder::new(&mut file, Arc::clone(&self.schema)).with_stripe_byte_size(self.stripe_size);
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

/// The rows without those that ORC cannot hold: it writes the second before 1970 as that after it, so a fraction of it
/// would come back as another.
fn without_last_second(rows: &RecordBatch) -> Result<(RecordBatch, Vec<RowReject>), String> {
    let mut rejects = Vec::new();
    for (array, field) in rows.columns().iter().zip(rows.schema_ref().fields()) {
        let Some(values) = timestamps(array) else { continue };
        let per_second = if matches!(array.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _)) {
            1_000_000_000
        } else {
            1_000_000
        };
        let lost = |value: i64| value < 0 && value > -per_second && value.rem_euclid(per_second) * 1000 >= per_second;
        for (row, _) in values.iter().enumerate().filter(|(row, value)| !array.is_null(*row) && lost(**value)) {
            let reason = format!("column {}: ORC has no fractions of the last second of 1969", field.name());
            rejects.push(RowReject { row, reason });
        }
    }
    if rejects.is_empty() {
        return Ok((rows.clone(), rejects));
    }
    rejects.sort_by_key(|reject| reject.row);
    rejects.dedup_by_key(|reject| reject.row);
    let mut keep = vec![true; rows.num_rows()];
    for reject in &rejects {
        keep.get_mut(reject.row).into_iter().for_each(|kept| *kept = false);
    }
    let kept = filter_record_batch(rows, &BooleanArray::from(keep)).map_err(|error| error.to_string())?;
    Ok((kept, rejects))
}

fn timestamps(array: &ArrayRef) -> Option<&[i64]> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Some(array.as_primitive::<TimestampMicrosecondType>().values())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(array.as_primitive::<TimestampNanosecondType>().values()),
        _ => None,
    }
}
