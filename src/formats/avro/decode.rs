use serde_json::Value;

use super::{
    binary::{self, Cursor},
    container::{Header, MAGIC},
    derive,
    nodes::Nodes,
    options::{ENCODING, LEGACY_TIMESTAMPS},
    plan::{self, Record},
    text,
};
use crate::{
    definition::Options,
    formats::{
        self, Decoded,
        columnar::{Budget, MOST_VALUES, Target, too_many},
    },
    model::{ColumnBuilder, Field, RowsBuilder, Schema},
};

/// A schema and how its records are read.
#[derive(Debug)]
struct Reading {
    nodes: Nodes,
    record: Record,
}

impl Reading {
    fn new(schema: &Value, target: &Target) -> Result<Self, String> {
        let nodes = Nodes::parse(schema)?;
        let record = plan::rows(&nodes, target)?;
        Ok(Self { nodes, record })
    }
}

/// Reads a body as one value of the schema that Flink derives from the columns, or as a container file with a schema
/// of its own: all its records, columns by name.
///
/// A body is a file if it begins with a file's header. A value could begin with the same bytes only where the first
/// columns are NOT NULL, and then has no such header.
#[derive(Debug)]
pub struct Decoder {
    target: Target,
    json: bool,
    derived: Reading,
    /// That of the last file: those of one queue have the same schema for a long time.
    last: Option<(Vec<u8>, Reading)>,
}

impl Decoder {
    /// A decoder for the physical columns.
    ///
    /// # Errors
    /// A column that Avro cannot hold.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        let target = Target::new(schema);
        let legacy = options.opt_boolean(&LEGACY_TIMESTAMPS).unwrap_or(true);
        let derived = derive::schema(target.fields(), legacy).map_err(|unfit| unfit.to_string())?;
        let derived = Reading::new(&derived, &target)?;
        Ok(Self { json: options.opt_text(&ENCODING) == Some("json"), derived, target, last: None })
    }

    fn read(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        if body.starts_with(MAGIC) {
            let mut from = Cursor::new(body);
            if let Some(header) = Header::read(&mut from) {
                let left = from.left();
                return self.read_file(&header, &body[body.len() - left..], rows);
            }
        }
        let columns = columns(&self.target, rows);
        let unread = if self.json {
            text::record(&self.derived.record, columns, body)?
        } else {
            let mut from = Cursor::new(body);
            let read = binary::record_into(&self.derived.nodes, &self.derived.record, columns, &mut from);
            // A value takes all of it, where it begins like a file by chance.
            if body.starts_with(MAGIC) && (read.is_err() || from.left() > 0) {
                return Err("the header of the container file is broken".into());
            }
            read.map_err(|(name, failure)| failure.of_column(&name))?;
            from.left() > 0
        };
        // Flink leaves unread what follows.
        Ok(Decoded { rows: 1, unread: u32::from(unread), ..Decoded::default() })
    }

    fn read_file(&mut self, header: &Header<'_>, blocks: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let codec = header.codec()?;
        if self.last.as_ref().is_none_or(|(schema, _)| schema != header.schema) {
            let schema = serde_json::from_slice(header.schema);
            let schema: Value = schema.map_err(|_| "the schema of the file is no JSON".to_owned())?;
            self.last = Some((header.schema.to_vec(), Reading::new(&schema, &self.target)?));
        }
        let Some((_, reading)) = &self.last else { return Err("the file has no schema".into()) };
        let (mut budget, mut count) = (Budget::new(), 0_usize);
        let (mut from, mut values) = (Cursor::new(blocks), Cursor::new(&[]));
        while from.left() > 0 {
            let told = |failure: formats::columnar::Failure| failure.of_branch();
            let records = from.long().map_err(told)?;
            let records = usize::try_from(records).map_err(|_| "a block holds less than no record".to_owned())?;
            let before = count;
            count = before.checked_add(records).filter(|count| *count <= MOST_VALUES).ok_or_else(too_many)?;
            let block = codec.decompress(from.bytes().map_err(told)?, &mut budget)?;
            values = {
                let mut values = values.over(&block);
                for row in before..count {
                    let read =
                        binary::record_into(&reading.nodes, &reading.record, columns(&self.target, rows), &mut values);
                    read.map_err(|(name, failure)| failure.of_row(row, &name))?;
                }
                if values.left() > 0 {
                    return Err("a block is longer than its records".into());
                }
                values.over(&[])
            };
            if from.take(header.sync.len()).map_err(told)? != header.sync {
                return Err("a block does not end where it should".into());
            }
        }
        Ok(Decoded { rows: u32::try_from(count).map_err(|_| too_many())?, ..Decoded::default() })
    }
}

/// The columns to fill, each with what it is.
fn columns<'a>(target: &'a Target, rows: &'a mut RowsBuilder) -> Vec<(&'a Field, &'a mut ColumnBuilder)> {
    let wanted: Vec<_> = target.columns().collect();
    let builders = rows.columns_mut().iter_mut().enumerate();
    let mut wanted = wanted.into_iter().peekable();
    // Both are in the order of the schema.
    builders
        .filter_map(|(index, builder)| {
            let (_, field) = wanted.next_if(|(of, _)| *of == index)?;
            Some((field, builder))
        })
        .collect()
}

impl formats::Decoder for Decoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let before = self.target.rows(rows);
        self.read(body, rows).inspect_err(|_| rows.truncate(before))
    }
}
