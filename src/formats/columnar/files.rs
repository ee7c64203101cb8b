//! Bodies that are one complete file, which a library reads.

use super::Target;
use crate::{
    formats::{Decoded, Decoder},
    model::{RowsBuilder, Schema},
    telemetry::caught,
};

/// Appends all rows of a file; answers how many they are. On `Err` some may have been appended.
type Read = fn(&Target, &[u8], &mut RowsBuilder) -> Result<u32, String>;

/// Reads a body as one complete file: its rows in their order, columns by name.
#[derive(Debug)]
pub(in crate::formats) struct FileDecoder {
    target: Target,
    read: Read,
}

impl FileDecoder {
    /// A decoder for the physical columns; every one can be read from a file.
    pub(in crate::formats) fn new(schema: &Schema, read: Read) -> Self {
        Self { target: Target::new(schema), read }
    }
}

impl Decoder for FileDecoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let before = self.target.rows(rows);
        // The libraries say of most broken files what is wrong with them, and panic at some.
        let read = caught(|| (self.read)(&self.target, body, rows))
            .unwrap_or_else(|panic| Err(format!("the file is broken: {panic}")));
        match read {
            Ok(rows) => Ok(Decoded { rows, ..Decoded::default() }),
            Err(why) => {
                rows.truncate(before);
                Err(why)
            }
        }
    }
}
