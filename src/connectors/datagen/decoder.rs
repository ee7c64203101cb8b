//! From the number of a row to the row.

use std::ops::Range;

use bytes::Bytes;
use fastrand::Rng;

use super::{
    fields::{self, Fields},
    generate::Row,
};
use crate::{
    definition::Endpoint,
    formats::{Decoded, Decoder},
    model::RowsBuilder,
};

/// The body that stands for a stretch of rows.
pub fn body(rows: &Range<u64>) -> Bytes {
    Bytes::from([rows.start.to_le_bytes(), rows.end.to_le_bytes()].concat())
}

fn read_body(body: &[u8]) -> Option<Range<u64>> {
    let (from, to) = body.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*from)..u64::from_le_bytes(to.try_into().ok()?))
}

/// Makes the rows that a body stands for.
#[derive(Debug)]
pub struct GeneratingDecoder {
    fields: Fields,
    text: Vec<u8>,
}

impl GeneratingDecoder {
    /// For a checked source of this connector.
    pub fn new(endpoint: &Endpoint) -> Self {
        Self { fields: fields::read(endpoint).0, text: Vec::new() }
    }
}

impl Decoder for GeneratingDecoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let stretch = read_body(body).ok_or("a body that stands for no rows")?;
        let count = u32::try_from(stretch.end.saturating_sub(stretch.start)).map_err(|error| error.to_string())?;
        for index in stretch {
            let row = Row { index, time_ms: self.fields.time_ms(index) };
            let mut chance = Rng::with_seed(mixed(self.fields.seed, index));
            for (generator, column) in self.fields.columns.iter().zip(rows.columns_mut()) {
                generator.append(row, &mut chance, column, &mut self.text).map_err(|error| error.to_string())?;
            }
        }
        Ok(Decoded { rows: count, ..Decoded::default() })
    }
}

/// One number of two, such that neighbours have nothing in common: the finalizer of SplitMix64.
fn mixed(seed: u64, index: u64) -> u64 {
    let mut z = seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
