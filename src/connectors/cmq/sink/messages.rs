//! Rows to messages: one message a row.

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::{connector::RowReject, formats::Encoder};

/// The largest message that the TDMQ edition takes; of CMQ itself, and of a queue that says less, the service tells.
pub const LARGEST: usize = 1 << 20;

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub body: Bytes,
    /// The row it was made of.
    pub row: usize,
    /// The write that brought it.
    pub write: u64,
}

/// Makes messages of rows.
pub struct Messages {
    encoder: Box<dyn Encoder>,
}

impl Messages {
    /// `encoder`: for all of the sink's columns.
    pub fn new(encoder: Box<dyn Encoder>) -> Self {
        Self { encoder }
    }

    /// The messages of these rows, and the rows of which none can be made.
    pub fn of(&mut self, write: u64, rows: &RecordBatch) -> (Vec<Outgoing>, Vec<RowReject>) {
        let (mut encoded, mut ends) = (Vec::new(), Vec::with_capacity(rows.num_rows()));
        let mut rejects =
            self.encoder.encode_rows(rows, &mut encoded, &mut |row, encoded| ends.push((row, encoded.len())));
        let encoded = Bytes::from(encoded);
        let mut messages = Vec::with_capacity(ends.len());
        let mut start = 0;
        for (row, end) in ends {
            let body = encoded.slice(start..end);
            start = end;
            match body.len() {
                0 => rejects.push(RowReject { row, reason: "its message would be empty, which is none".to_owned() }),
                size if size > LARGEST => {
                    let reason = format!("its message would have {size} bytes; the service takes {LARGEST} at most");
                    rejects.push(RowReject { row, reason });
                }
                _ => messages.push(Outgoing { body, row, write }),
            }
        }
        (messages, rejects)
    }
}
