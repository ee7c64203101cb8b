use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, Schema as ArrowSchema};
use orc_rust::{ArrowReaderBuilder, projection::ProjectionMask};

use super::plain;
use crate::{
    formats::columnar::{Budget, Failure, FileDecoder, Target, batch_rows, mismatch, too_many},
    model::{LogicalType, RowsBuilder, Schema},
};

/// A decoder for the physical columns.
pub(in crate::formats) fn decoder(schema: &Schema) -> FileDecoder {
    FileDecoder::new(schema, read)
}

fn read(target: &Target, body: &[u8], rows: &mut RowsBuilder) -> Result<u32, String> {
    let wanted: Vec<&str> = target.fields().map(|field| field.name.as_str()).collect();
    let plain = plain::plain(body, &wanted)?;
    let builder = ArrowReaderBuilder::try_new(plain.file).map_err(|error| error.to_string())?;
    let mask = ProjectionMask::named_roots(builder.file_metadata().root_data_type(), &wanted);
    target.check_names(plain.names.iter().map(String::as_str))?;
    let builder = builder.with_projection(mask);
    let schema = Arc::new(ArrowSchema::new(fields(target, builder.schema().fields())?));
    let reader = builder.with_schema(schema).with_batch_size(batch_rows(plain.largest)).build();
    let (mut budget, mut count) = (Budget::new(), 0_usize);
    for batch in reader {
        let batch = batch.map_err(|error| error.to_string())?;
        target.append(&batch, count, rows, &mut budget)?;
        count += batch.num_rows();
    }
    if count != plain.rows {
        return Err(format!("the file has {count} rows, and its footer says {}", plain.rows));
    }
    u32::try_from(count).map_err(|_| too_many())
}

fn fields(target: &Target, file: &Fields) -> Result<Fields, String> {
    let field = |field: &FieldRef| {
        let of = target.fields().find(|wanted| wanted.name == *field.name());
        wanted(field, of.map(|of| &of.ty.logical)).map_err(|failure| failure.of_column(field.name()))
    };
    file.iter().map(field).collect()
}

/// A timestamp as the library hands it out whatever its year and its digits are: nanoseconds since 1970 as a decimal. As a
/// timestamp of Arrow it is refused, or becomes null, where it does not fit the unit.
const NANOSECONDS: DataType = DataType::Decimal128(38, 9);

/// How a field is to be read.
fn wanted(field: &FieldRef, logical: Option<&LogicalType>) -> Result<FieldRef, Failure> {
    use LogicalType as T;
    let data_type = match (field.data_type(), logical) {
        (DataType::Timestamp(..), Some(T::Timestamp(_) | T::TimestampLtz(_))) => NANOSECONDS,
        (found @ DataType::Decimal128(..), Some(logical @ (T::Timestamp(_) | T::TimestampLtz(_)))) => {
            return Err(mismatch(logical, found));
        }
        (DataType::List(item), Some(T::Array(element))) => DataType::List(wanted(item, Some(&element.logical))?),
        (DataType::Map(entries, ordered), Some(T::Map(key, value))) => {
            let DataType::Struct(parts) = entries.data_type() else { return Ok(Arc::clone(field)) };
            let parts = parts.iter().zip([key, value]).map(|(part, of)| wanted(part, Some(&of.logical)));
            let parts = DataType::Struct(parts.collect::<Result<_, _>>()?);
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(parts)), *ordered)
        }
        (DataType::Struct(parts), Some(T::Row(fields))) => {
            let find = |name: &str| fields.iter().find(|f| f.name == name).map(|f| &f.ty.logical);
            let part =
                |part: &FieldRef| wanted(part, find(part.name())).map_err(|failure| failure.in_field(part.name()));
            DataType::Struct(parts.iter().map(part).collect::<Result<_, _>>()?)
        }
        (other, _) => other.clone(),
    };
    Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
}
