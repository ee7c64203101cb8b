//! A batch of rows and everything it stands for. Positions ride with the rows.

use std::{ops::Range, sync::Arc};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;

use super::{Credit, Fault, FaultKind, Fingerprint, LaneId, Original, Stage};

/// Rows on their way from a decoder to the sink-writer, with the messages they came from.
///
/// A batch whose rows were all filtered, deduplicated or rejected still travels: its messages must be disposed of.
/// All rows of one message are in one batch.
#[derive(Debug)]
pub struct Batch {
    /// The lane it came from.
    pub lane: LaneId,
    /// The stretch of the lane it covers: pulls counted from 0 (MNS, CMQ), or positions, of which the end is where the
    /// lane is read on after a restart once the batch is checkpointed. The sink-writer fails the generation if a batch
    /// does not begin where the one before it ended.
    pub range: Range<u64>,
    /// The rows that go to the sink.
    pub rows: RecordBatch,
    /// For each row the message it came from.
    pub origin: Vec<Origin>,
    /// Bodies and rows that were refused for good.
    pub rejects: Vec<Reject>,
    /// The primary keys of those rows, where the source has one and none of its columns is null. They join the window
    /// of the checkpoint that the rows join.
    pub keys: Vec<RowKey>,
    /// Every message the batch stands for.
    pub messages: Vec<BatchMessage>,
    /// One for each message, where dead letters are asked for; else empty. The credits count their bytes.
    pub originals: Vec<Original>,
    /// Given back when the batch is dropped, which is when its write has returned.
    pub credits: Vec<Credit>,
}

impl Batch {
    /// Takes out every row that is not to stay.
    ///
    /// # Errors
    /// Only a bug.
    pub fn retain(&mut self, stays: impl Fn(Origin) -> bool) -> Result<(), Fault> {
        let mask: Vec<bool> = self.origin.iter().map(|origin| stays(*origin)).collect();
        self.retain_rows(mask)
    }

    /// Takes out every row that is not to stay; `mask` says of each whether it does.
    ///
    /// # Errors
    /// Only a bug.
    pub fn retain_rows(&mut self, mask: Vec<bool>) -> Result<(), Fault> {
        let mask = BooleanArray::from(mask);
        self.rows = filter_record_batch(&self.rows, &mask)
            .map_err(|error| Fault::restart(FaultKind::Bug, "rows could not be filtered").because(error))?;
        let mut stays = mask.values().iter();
        self.origin.retain(|_| stays.next().unwrap_or(false));
        Ok(())
    }
}

/// Where a row came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Index into [`Batch::messages`].
    pub message: u32,
    /// Number of the row within its message, from 0.
    pub row: u32,
}

/// The primary key of a row that goes to the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// Index into [`Batch::messages`].
    pub message: u32,
    /// Stands for the key.
    pub key: Fingerprint,
    /// When it was first seen, in milliseconds of the key clock.
    pub first_seen_ms: u64,
}

/// A message a batch stands for.
#[derive(Debug, Clone)]
pub struct BatchMessage {
    /// The service's id of it.
    pub id: Arc<str>,
    /// What the dedup-keeper knows it by; `None`: it came without a receipt, so it is never delivered again.
    pub fingerprint: Option<Fingerprint>,
    /// What became of it so far.
    pub disposition: Disposition,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Its rows are in the batch.
    Rows,
    /// Left out by an option of the source, or each of its rows by the query.
    Filtered,
    /// Without a row: dropped whole by a `*.ignore-parse-errors` option of its format, or an empty body.
    Ignored,
    /// Already seen: its rows were taken out.
    Duplicate,
    /// Another message, but each of its rows has a primary key that was seen shortly before: they were taken out.
    DuplicateKey,
    /// Refused, wholly or in part: see [`Batch::rejects`].
    Rejected,
}

impl Disposition {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 6] =
        [Self::Rows, Self::Filtered, Self::Ignored, Self::Duplicate, Self::DuplicateKey, Self::Rejected];

    /// The value of the metric label `disposition`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Filtered => "filtered",
            Self::Ignored => "ignored",
            Self::Duplicate => "duplicate",
            Self::DuplicateKey => "duplicate_key",
            Self::Rejected => "rejected",
        }
    }
}

/// A body that does not decode, or a row that can never be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Index into [`Batch::messages`].
    pub message: u32,
    /// The row within the message, or none if the body as a whole was refused.
    pub row: Option<u32>,
    /// Who refused it.
    pub stage: Stage,
    /// Why, in words for the operator; names the column, never repeats a whole body.
    pub reason: String,
}

/// A row that a sink refuses for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowReject {
    /// Index into the batch written.
    pub row: usize,
    /// Why.
    pub reason: String,
}
