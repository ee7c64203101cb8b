use orc_rust::{ArrowReaderBuilder, TimestampPrecision, projection::ProjectionMask};

use super::plain;
use crate::{
    definition::Options,
    formats::{
        self, Decoded,
        columnar::{Budget, Target, batch_rows, too_many},
    },
    model::{ColumnType, LogicalType, RowsBuilder, Schema},
    telemetry::caught,
};

/// Reads a body as one complete file: its rows in their order, columns by name.
#[derive(Debug)]
pub struct Decoder {
    target: Target,
    precision: TimestampPrecision,
}

impl Decoder {
    /// A decoder for the physical columns.
    ///
    /// # Errors
    /// None: every column can be read from a file.
    pub fn new(schema: &Schema, _: &Options) -> Result<Self, String> {
        let target = Target::new(schema);
        // In nanoseconds only the years 1677 to 2262 would fit.
        let fine = target.fields().any(|field| has_nanoseconds(&field.ty));
        let precision = if fine { TimestampPrecision::Nanosecond } else { TimestampPrecision::Microsecond };
        Ok(Self { target, precision })
    }

    fn read(&self, body: &[u8], rows: &mut RowsBuilder) -> Result<u32, String> {
        let wanted: Vec<&str> = self.target.fields().map(|field| field.name.as_str()).collect();
        let plain = plain::plain(body, &wanted)?;
        let builder = ArrowReaderBuilder::try_new(plain.file).map_err(|error| error.to_string())?;
        let mask = ProjectionMask::named_roots(builder.file_metadata().root_data_type(), &wanted);
        let reader = builder
            .with_projection(mask)
            .with_timestamp_precision(self.precision)
            .with_batch_size(batch_rows(plain.largest))
            .build();
        let (mut budget, mut count) = (Budget::new(), 0_usize);
        for batch in reader {
            let batch = batch.map_err(|error| error.to_string())?;
            count += batch.num_rows();
            self.target.append(&batch, rows, &mut budget)?;
        }
        if count != plain.rows {
            return Err(format!("the file has {count} rows, and its footer says {}", plain.rows));
        }
        u32::try_from(count).map_err(|_| too_many())
    }
}

fn has_nanoseconds(ty: &ColumnType) -> bool {
    match &ty.logical {
        LogicalType::Timestamp(precision) | LogicalType::TimestampLtz(precision) => *precision > 6,
        LogicalType::Array(element) => has_nanoseconds(element),
        LogicalType::Map(key, value) => has_nanoseconds(key) || has_nanoseconds(value),
        LogicalType::Row(fields) => fields.iter().any(|field| has_nanoseconds(&field.ty)),
        _ => false,
    }
}

impl formats::Decoder for Decoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let before = self.target.rows(rows);
        // The library panics at much that is broken.
        let read = caught(|| self.read(body, rows)).unwrap_or_else(|panic| Err(format!("the file is broken: {panic}")));
        match read {
            Ok(rows) => Ok(Decoded { rows, ..Decoded::default() }),
            Err(why) => {
                rows.truncate(before);
                Err(why)
            }
        }
    }
}
