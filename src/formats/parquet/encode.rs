use std::{mem, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, RecordBatchOptions, UInt64Array,
    cast::AsArray,
    make_array,
    types::{TimestampMicrosecondType, TimestampNanosecondType},
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef, TimeUnit};
use arrow_select::{concat::concat_batches, take::take_record_batch};
use parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions},
    basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel},
    file::properties::WriterProperties,
};

use super::options::{BLOCK_SIZE, COMPRESSION, DICTIONARY, DICTIONARY_PAGE_SIZE, PAGE_SIZE, TIME_UNIT};
use crate::{
    definition::Options,
    formats,
    model::{RowReject, Schema},
};

/// Writes files, with every column as one that may be null.
pub struct FileEncoder {
    schema: SchemaRef,
    properties: WriterProperties,
    /// Units of the file's timestamps.
    per_second: i64,
    open: Option<ArrowWriter<Vec<u8>>>,
}

impl FileEncoder {
    /// An encoder for all columns.
    ///
    /// # Errors
    /// What Parquet cannot do with the columns.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        let (unit, per_second) = match options.opt_text(&TIME_UNIT) {
            Some("millis") => (TimeUnit::Millisecond, 1000),
            Some("nanos") => (TimeUnit::Nanosecond, 1_000_000_000),
            _ => (TimeUnit::Microsecond, 1_000_000),
        };
        let schema = schema.to_arrow();
        let fields = schema.fields().iter().map(|field| written(field, unit));
        let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
        let this = Self { schema, properties: properties(options), per_second, open: None };
        this.begin().map(|_| ())?;
        Ok(this)
    }

    fn begin(&self) -> Result<ArrowWriter<Vec<u8>>, String> {
        // How Arrow held the values is nothing that a reader needs.
        let options = ArrowWriterOptions::new().with_properties(self.properties.clone()).with_skip_arrow_metadata(true);
        ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&self.schema), options)
            .map_err(|error| error.to_string())
    }

    /// The rows with their timestamps in the file's unit, and those that have none in it.
    fn shaped(&self, rows: &RecordBatch) -> Result<(RecordBatch, Vec<RowReject>), String> {
        if let Ok(batch) = self.cast(rows) {
            return Ok((batch, Vec::new()));
        }
        let (mut batches, mut rejects) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            // A copy: a slice of lists has the elements of all of them.
            let at = UInt64Array::from(vec![row as u64]);
            let alone = take_record_batch(rows, &at).map_err(|error| error.to_string())?;
            match self.cast(&alone) {
                Ok(batch) => batches.push(batch),
                Err(reason) => rejects.push(RowReject { row, reason }),
            }
        }
        let kept = concat_batches(&self.schema, &batches);
        Ok((kept.map_err(|error| error.to_string())?, rejects))
    }

    fn cast(&self, rows: &RecordBatch) -> Result<RecordBatch, String> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let column = |(array, field): (&ArrayRef, &Arc<ArrowField>)| {
            if array.data_type() == field.data_type() {
                return Ok(Arc::clone(array));
            }
            let cast = floored(array, self.per_second)
                .and_then(|floored| cast_with_options(&floored, field.data_type(), &strict));
            // The error would repeat the value.
            cast.map_err(|_| format!("column {}: a timestamp is out of range for {}", field.name(), TIME_UNIT.name))
        };
        let columns = rows.columns().iter().zip(self.schema.fields()).map(column).collect::<Result<_, _>>()?;
        let count = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &count).map_err(|error| error.to_string())
    }
}

/// Timestamps without what is finer than the file's unit, cut off towards the past as everywhere here; the cast that
/// follows would cut towards 1970.
fn floored(array: &ArrayRef, per_second: i64) -> Result<ArrayRef, ArrowError> {
    fn cut<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef, step: i64) -> ArrayRef {
        let cut = |value: i64| value.checked_sub(value.rem_euclid(step)).unwrap_or(value);
        let values: PrimitiveArray<T> = array.as_primitive::<T>().unary(cut);
        Arc::new(values.with_data_type(array.data_type().clone()))
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) if per_second < 1_000_000 => {
            Ok(cut::<TimestampMicrosecondType>(array, 1_000_000 / per_second))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) if per_second < 1_000_000_000 => {
            Ok(cut::<TimestampNanosecondType>(array, 1_000_000_000 / per_second))
        }
        DataType::List(_) | DataType::Map(..) | DataType::Struct(_) => {
            let data = array.to_data();
            let children = data
                .child_data()
                .iter()
                .map(|child| Ok(floored(&make_array(child.clone()), per_second)?.to_data()))
                .collect::<Result<Vec<_>, ArrowError>>()?;
            Ok(make_array(data.into_builder().child_data(children).build()?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn properties(options: &Options) -> WriterProperties {
    let compression = match options.opt_text(&COMPRESSION) {
        Some("UNCOMPRESSED") => Compression::UNCOMPRESSED,
        Some("GZIP") => Compression::GZIP(GzipLevel::default()),
        Some("BROTLI") => Compression::BROTLI(BrotliLevel::default()),
        Some("ZSTD") => Compression::ZSTD(ZstdLevel::default()),
        Some("LZ4_RAW") => Compression::LZ4_RAW,
        _ => Compression::SNAPPY,
    };
    let size = |option, default: usize| {
        options.opt_size(option).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0).unwrap_or(default)
    };
    WriterProperties::builder()
        .set_compression(compression)
        .set_created_by(concat!("queuewarden ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_enabled(options.opt_boolean(&DICTIONARY).unwrap_or(true))
        .set_dictionary_page_size_limit(size(&DICTIONARY_PAGE_SIZE, 1 << 20))
        .set_data_page_size_limit(size(&PAGE_SIZE, 1 << 20))
        .set_max_row_group_bytes(Some(size(&BLOCK_SIZE, 16 << 20)))
        // The names of elements and entries that the specification has.
        .set_coerce_types(true)
        .build()
}

/// A field as it stands in the file.
fn written(field: &ArrowField, unit: TimeUnit) -> ArrowField {
    let inner = |field: &Arc<ArrowField>| Arc::new(written(field, unit));
    let data_type = match field.data_type() {
        DataType::Timestamp(_, zone) => DataType::Timestamp(unit, zone.clone()),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Map(entries, ordered) => DataType::Map(inner(entries), *ordered),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

impl formats::FileEncoder for FileEncoder {
    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<Vec<RowReject>, String> {
        let (rows, rejects) = self.shaped(rows)?;
        if rows.num_rows() == 0 {
            // A file begins with its first row.
            return Ok(rejects);
        }
        let mut writer = match self.open.take() {
            Some(writer) => writer,
            None => self.begin()?,
        };
        writer.write(&rows).map_err(|error| error.to_string())?;
        out.append(writer.inner_mut());
        self.open = Some(writer);
        Ok(rejects)
    }

    fn pending(&self) -> u64 {
        self.open.as_ref().map_or(0, |writer| writer.in_progress_size() as u64)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let Some(mut writer) = self.open.take() else { return Ok(()) };
        writer.finish().map_err(|error| error.to_string())?;
        out.append(&mut mem::take(writer.inner_mut()));
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "parquet"
    }
}
