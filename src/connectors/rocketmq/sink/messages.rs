//! Rows to messages: one message a row, as many messages a request as one may hold.

use std::ops::Range;

use arrow_array::{Array, RecordBatch, StringArray};
use bytes::Bytes;

use super::{
    super::client::{Outgoing, new_ids},
    sends::SendBatch,
};
use crate::{
    connector::RowReject,
    formats::Encoder,
    model::{Fault, FaultKind, Schema},
};

/// The body of one request: a quarter of what Java's documentation advises for a batch (1 MiB, where brokers take 4 by
/// default). More of them are under way at once, and larger ones are no faster.
const BATCH_BYTES: usize = 256 << 10;

/// Makes messages of rows.
pub struct Messages {
    encoder: Box<dyn Encoder>,
    /// The columns of the body.
    body: Vec<usize>,
    keys: Option<usize>,
    tags: Option<usize>,
    /// The tag of messages whose row has none.
    tag: Option<String>,
}

impl Messages {
    /// `schema`: the sink's; `encoder`: for its physical columns.
    pub fn new(schema: &Schema, encoder: Box<dyn Encoder>, tag: Option<String>) -> Self {
        let of = |key: &str| schema.columns.iter().position(|column| column.metadata.as_deref() == Some(key));
        let physical = schema.columns.iter().enumerate().filter(|(_, column)| column.metadata.is_none());
        Self { encoder, body: physical.map(|(at, _)| at).collect(), keys: of("keys"), tags: of("tags"), tag }
    }

    /// The messages of these rows, and the rows of which none can be made.
    pub fn of(&mut self, write: u64, rows: &RecordBatch) -> Result<(Vec<SendBatch>, Vec<RowReject>), Fault> {
        let bug = |error| Fault::restart(FaultKind::Bug, "the columns of the body are not there").because(error);
        let bodies = rows.project(&self.body).map_err(bug)?;
        let (keys, tags) = (texts(rows, self.keys)?, texts(rows, self.tags)?);
        let (mut encoded, mut ends) = (Vec::new(), Vec::with_capacity(rows.num_rows()));
        let mut rejects =
            self.encoder.encode_rows(&bodies, &mut encoded, &mut |row, encoded| ends.push((row, encoded.len())));
        let encoded = Bytes::from(encoded);
        let mut batches = Batches { write, batches: Vec::new(), bytes: BATCH_BYTES };
        let mut start = 0;
        for ((row, end), id) in ends.into_iter().zip(new_ids()) {
            let keys = keys.and_then(|keys| text(keys, row)).map(str::to_owned);
            let tags = tags.and_then(|tags| text(tags, row)).or(self.tag.as_deref()).map(str::to_owned);
            match message(&encoded, start..end, keys, tags, id) {
                Ok(message) => batches.push(row, message),
                Err(reason) => rejects.push(RowReject { row, reason }),
            }
            start = end;
        }
        Ok((batches.batches, rejects))
    }
}

struct Batches {
    write: u64,
    batches: Vec<SendBatch>,
    /// Of the last of them.
    bytes: usize,
}

impl Batches {
    fn push(&mut self, row: usize, message: Outgoing) {
        let size = message.size();
        match self.batches.last_mut() {
            Some(batch) if self.bytes + size <= BATCH_BYTES => {
                batch.messages.push(message);
                batch.rows.push(row);
                batch.largest = batch.largest.max(size);
                self.bytes += size;
            }
            _ => {
                let batch = SendBatch { messages: vec![message], rows: vec![row], write: self.write, largest: size };
                self.batches.push(batch);
                self.bytes = size;
            }
        }
    }
}

/// A message, or why there can be none.
fn message(
    encoded: &Bytes,
    body: Range<usize>,
    keys: Option<String>,
    tags: Option<String>,
    id: String,
) -> Result<Outgoing, String> {
    let message = Outgoing { body: encoded.slice(body), keys, tags, properties: Vec::new(), id: Some(id) };
    message.check().map_err(|fault| fault.to_string())?;
    Ok(message)
}

fn texts(rows: &RecordBatch, column: Option<usize>) -> Result<Option<&StringArray>, Fault> {
    let Some(at) = column else { return Ok(None) };
    let array = rows.columns().get(at).and_then(|column| column.as_any().downcast_ref());
    array.map(Some).ok_or_else(|| Fault::restart(FaultKind::Bug, "a metadata column that is no text"))
}

/// What a row has there; an empty text is as good as none.
fn text(values: &StringArray, row: usize) -> Option<&str> {
    (!values.is_null(row)).then(|| values.value(row)).filter(|text| !text.is_empty())
}
