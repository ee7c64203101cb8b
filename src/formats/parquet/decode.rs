use std::sync::Arc;

use bytes::Bytes;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
        },
        parquet_to_arrow_schema,
    },
    basic::Type as PhysicalType,
    file::metadata::ParquetMetaData,
    schema::types::SchemaDescriptor,
};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema, TimeUnit};

use super::{look, pages};
use crate::{
    formats::columnar::{Budget, Failure, FileDecoder, MOST_VALUES, Target, batch_rows, mismatch, too_many},
    model::{LogicalType, RowsBuilder, Schema},
};

/// A decoder for the physical columns.
pub(in crate::formats) fn decoder(schema: &Schema) -> FileDecoder {
    FileDecoder::new(schema, read)
}

fn read(target: &Target, body: &[u8], rows: &mut RowsBuilder) -> Result<u32, String> {
    let metadata = look::footer(body)?;
    let mut count = 0_usize;
    for group in metadata.row_groups() {
        count = usize::try_from(group.num_rows()).ok().and_then(|rows| count.checked_add(rows)).ok_or_else(too_many)?;
    }
    if count > MOST_VALUES {
        return Err(too_many());
    }
    let descriptor = metadata.file_metadata().schema_descr_ptr();
    target.check_names(descriptor.root_schema().get_fields().iter().map(|root| root.name()))?;
    let mask = mask(target, &descriptor);
    let (fields, int96) = fields(target, &descriptor)?;
    let body = Bytes::copy_from_slice(body);
    let largest = look_at_pages(&body, &metadata, &mask, &int96)?;
    let mut budget = Budget::new();
    let read = batches(body, metadata, fields, mask, batch_rows(largest))?;
    let mut appended = 0;
    for batch in read {
        let batch = batch.map_err(|error| error.to_string())?;
        if appended + batch.num_rows() > count {
            return Err("the file has more rows than its footer says".into());
        }
        target.append(&batch, appended, rows, &mut budget)?;
        appended += batch.num_rows();
    }
    if appended != count {
        return Err(format!("the file has {appended} rows, and its footer says {count}"));
    }
    u32::try_from(count).map_err(|_| too_many())
}

/// Checks the pages that will be read; answers the size of the largest. Once decompressed they do not live as long as the
/// rows, so what they take is not taken from these.
fn look_at_pages(
    body: &Bytes,
    metadata: &ParquetMetaData,
    mask: &ProjectionMask,
    int96: &[(usize, LogicalType)],
) -> Result<usize, String> {
    let (mut budget, mut room) = (Budget::new(), Budget::new());
    let shared = Arc::new(body.clone());
    let (mut largest, mut before) = (0, 0);
    for group in metadata.row_groups() {
        for (leaf, column) in group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf)) {
            if leaf >= metadata.file_metadata().schema_descr().num_columns() {
                return Err("the footer is broken: more columns than the schema has".into());
            }
            let pages = look::pages(body, column, &mut budget, &mut room)?;
            largest = largest.max(pages.largest);
            if pages.delta {
                pages::check_delta(&shared, group, leaf)?;
            }
            if let Some((_, logical)) = int96.iter().find(|(at, _)| *at == leaf) {
                pages::check_int96(&shared, group, leaf, before, logical)?;
            }
        }
        before += usize::try_from(group.num_rows()).map_err(|_| too_many())?;
    }
    Ok(largest)
}

/// The columns that the schema has, with all that is nested in them.
fn mask(target: &Target, descriptor: &SchemaDescriptor) -> ProjectionMask {
    let roots = descriptor.root_schema().get_fields().iter().enumerate();
    let wanted = roots.filter(|(_, root)| target.fields().any(|field| field.name == root.name()));
    ProjectionMask::roots(descriptor, wanted.map(|(index, _)| index).collect::<Vec<_>>())
}

/// The columns as they are to be read, and those of INT96 among the leaves that become timestamps.
fn fields(target: &Target, descriptor: &SchemaDescriptor) -> Result<(Fields, Vec<(usize, LogicalType)>), String> {
    // Without the schema that writers of Arrow put into files beside Parquet's own: it says how the values once were held
    // in memory, such as in dictionaries, and nothing of what they are.
    let schema = parquet_to_arrow_schema(descriptor, None).map_err(|error| error.to_string())?;
    let mut leaves = Leaves { descriptor, at: 0, int96: Vec::new() };
    let field = |field: &FieldRef| {
        let of = target.fields().find(|wanted| wanted.name == *field.name());
        wanted(field, of.map(|of| &of.ty.logical), &mut leaves).map_err(|failure| failure.of_column(field.name()))
    };
    let fields = schema.fields().iter().map(field).collect::<Result<_, _>>()?;
    Ok((fields, leaves.int96))
}

fn batches(
    body: Bytes,
    metadata: ParquetMetaData,
    fields: Fields,
    mask: ProjectionMask,
    batch_rows: usize,
) -> Result<ParquetRecordBatchReader, String> {
    let told = |error: parquet::errors::ParquetError| error.to_string();
    let options =
        ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_schema(Arc::new(ArrowSchema::new(fields)));
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options).map_err(told)?;
    ParquetRecordBatchReaderBuilder::new_with_metadata(body, metadata)
        .with_projection(mask)
        .with_batch_size(batch_rows)
        .build()
        .map_err(told)
}

/// The leaves of the schema, one after the other.
struct Leaves<'a> {
    descriptor: &'a SchemaDescriptor,
    /// The next.
    at: usize,
    /// Those of INT96 that become timestamps, and of which type.
    int96: Vec<(usize, LogicalType)>,
}

/// How a field is to be read. Texts and bytes as views into their pages: a value that stands a million times in a column
/// stands once in its dictionary. INT96 in the unit of its column: in nanoseconds, which it is read in otherwise, only
/// the years 1677 to 2262 would fit.
fn wanted(field: &FieldRef, logical: Option<&LogicalType>, leaves: &mut Leaves<'_>) -> Result<FieldRef, Failure> {
    let data_type = match field.data_type() {
        DataType::List(item) => {
            let logical = match logical {
                Some(LogicalType::Array(element)) => Some(&element.logical),
                _ => None,
            };
            DataType::List(wanted(item, logical, leaves)?)
        }
        DataType::Map(entries, ordered) => {
            let DataType::Struct(parts) = entries.data_type() else { return Ok(Arc::clone(field)) };
            let (key, value) = match logical {
                Some(LogicalType::Map(key, value)) => (Some(&key.logical), Some(&value.logical)),
                _ => (None, None),
            };
            let logicals = [key, value].into_iter().chain(std::iter::repeat(None));
            let parts = parts.iter().zip(logicals).map(|(part, logical)| wanted(part, logical, leaves));
            let parts = DataType::Struct(parts.collect::<Result<_, _>>()?);
            DataType::Map(Arc::new(Field::clone(entries).with_data_type(parts)), *ordered)
        }
        DataType::Struct(parts) => {
            let find = |name: &str| match logical {
                Some(LogicalType::Row(fields)) => fields.iter().find(|f| f.name == name).map(|f| &f.ty.logical),
                _ => None,
            };
            let part = |part: &FieldRef| {
                wanted(part, find(part.name()), leaves).map_err(|failure| failure.in_field(part.name()))
            };
            DataType::Struct(parts.iter().map(part).collect::<Result<_, _>>()?)
        }
        scalar => leaf(scalar, logical, leaves)?,
    };
    Ok(Arc::new(Field::clone(field).with_data_type(data_type)))
}

fn leaf(found: &DataType, logical: Option<&LogicalType>, leaves: &mut Leaves<'_>) -> Result<DataType, Failure> {
    let (at, descriptor) = (leaves.at, leaves.descriptor);
    leaves.at += 1;
    let int96 = at < descriptor.num_columns() && descriptor.column(at).physical_type() == PhysicalType::INT96;
    let timestamp = logical.filter(|of| matches!(of, LogicalType::Timestamp(_) | LogicalType::TimestampLtz(_)));
    Ok(match (found, timestamp) {
        (DataType::Utf8, _) => DataType::Utf8View,
        (DataType::Binary, _) => DataType::BinaryView,
        // Nanoseconds of ORC come as such decimals, but these are numbers.
        (DataType::Decimal128(..), Some(logical)) => {
            return Err(mismatch(logical, found));
        }
        (other, Some(logical)) if int96 => {
            leaves.int96.push((at, logical.clone()));
            match logical.to_arrow() {
                DataType::Timestamp(TimeUnit::Microsecond, _) => DataType::Timestamp(TimeUnit::Microsecond, None),
                _ => other.clone(),
            }
        }
        (other, _) => other.clone(),
    })
}
