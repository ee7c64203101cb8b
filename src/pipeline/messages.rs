//! The messages between the actors of one generation.

use std::{collections::BTreeMap, ops::Range};

use actix::prelude::*;

use crate::model::{Batch, Credit, Epoch, Fingerprint, LaneId, Message as SourceMessage, Token};

/// In band, poller or reader -> decoder: what one poll brought, in the order in which it was handed on.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Pulled {
    pub lane: LaneId,
    /// The stretch of the lane it covers.
    pub range: Range<u64>,
    /// Without a receipt there is no redelivery, so nothing to be recognised by.
    pub messages: Vec<(Option<Fingerprint>, SourceMessage)>,
    pub credit: Credit,
}

/// In band, decoder -> dedup-keeper -> sink-writer.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Rows(pub Batch);

/// In band, poller -> decoder -> dedup-keeper: these ids were deleted, every poll that could still bring one of them
/// has passed, and that is recorded. They need not be remembered.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Forget(pub Vec<Fingerprint>);

/// In band, poller or reader -> decoder -> dedup-keeper -> sink-writer: the lane ends here.
#[derive(Message)]
#[rtype(result = "()")]
pub struct End {
    pub lane: LaneId,
    /// Another process waits to read it on.
    pub leaves: bool,
}

/// Supervisor -> poller or enumerator: receive no more, hand on what was received, then end.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Drain;

/// Enumerator -> sink-writer: these lanes are read from these positions on. All of them join one epoch.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Begin {
    pub lanes: Vec<(LaneId, u64)>,
    /// The positions are in the store.
    pub stored: bool,
}

/// Enumerator -> reader: read no more, hand on what was received, then end.
#[derive(Message)]
#[rtype(result = "()")]
pub struct EndLane {
    /// See [`End::leaves`].
    pub leaves: bool,
}

/// Reader -> enumerator: everything of the lane up to this position is handed on, and the reader ends.
#[derive(Message)]
#[rtype(result = "()")]
pub struct LaneEnded {
    pub lane: LaneId,
    pub position: u64,
    /// The lane is at its end; otherwise its reader was told to stop.
    pub finished: bool,
}

/// Enumerator -> sink-writer: no lane begins any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Closed {
    /// Every lane is at its end.
    pub finished: bool,
}

/// Checkpointer -> enumerator, step 5: the store holds these positions, and none of these lanes any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Checkpointed {
    pub positions: BTreeMap<LaneId, u64>,
    pub forgotten: Vec<LaneId>,
}

/// Enumerator -> checkpointer: the next record is to forget the positions of these lanes.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ForgetLanes(pub Vec<LaneId>);

/// Poller, enumerator or sink-writer -> checkpointer: do not wait for the interval. Half of `max_unacknowledged` is used,
/// or someone waits for where a lane begins or ends to be recorded.
#[derive(Message)]
#[rtype(result = "()")]
pub struct CheckpointSoon;

/// Sink-writer -> checkpointer: every lane has ended and everything is written.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AllEnded {
    /// The source is at its end, on every lane.
    pub finished: bool,
}

/// Checkpointer -> sink-writer, step 1: close the epoch.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Seal(pub Epoch);

/// Sink-writer -> checkpointer, step 2: the epoch's rows are durable, or staged durably.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Sealed {
    /// None if nothing was written and nothing disposed of since the last one.
    pub epoch: Option<SealedEpoch>,
}

/// What an epoch holds.
pub struct SealedEpoch {
    pub epoch: Epoch,
    pub tokens: Vec<Token>,
    /// Every message disposed of: written, filtered, skipped, dead-lettered.
    pub disposed: Vec<Fingerprint>,
    /// Where lanes with positions are read on after a restart.
    pub positions: BTreeMap<LaneId, u64>,
    /// The primary keys of its rows, each with when it was first seen.
    pub keys: Vec<(Fingerprint, u64)>,
}

impl SealedEpoch {
    /// One of which nothing is to be recorded but what the checkpointer knows itself.
    pub fn empty(epoch: Epoch) -> Self {
        Self { epoch, tokens: Vec::new(), disposed: Vec::new(), positions: BTreeMap::new(), keys: Vec::new() }
    }
}

/// Checkpointer -> sink-writer, step 4: the tokens are in the store.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Commit(pub Vec<Token>);

/// Sink-writer -> checkpointer: step 4 is done.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Committed;

/// Checkpointer -> poller, step 5: these messages are checkpointed; delete them with their newest receipt.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Acknowledge(pub Vec<Fingerprint>);

/// Checkpointer -> poller or enumerator: there was nothing to checkpoint, so no acknowledgement follows.
#[derive(Message)]
#[rtype(result = "()")]
pub struct NothingSealed;

/// Poller -> checkpointer: the service confirmed these deletes, and every poll begun before that has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Confirmed(pub Vec<Fingerprint>);

/// Checkpointer -> poller: these confirmed deletes are in the store.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Recorded(pub Vec<Fingerprint>);

/// Checkpointer -> dedup-keeper: these messages are checkpointed; `stamp_ms` is the pipeline's up time.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Settled {
    pub ids: Vec<Fingerprint>,
    pub stamp_ms: u64,
}

/// Dedup-keeper -> checkpointer: redeliveries of messages already checkpointed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Redelivered(pub Vec<Fingerprint>);

/// Dedup-keeper -> checkpointer: these ids are past the queue's retention; the store need not know them any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Expired(pub Vec<Fingerprint>);

/// Checkpointer -> dedup-keeper: every id that is settled and not forgotten, with its stamp.
#[derive(Message)]
#[rtype(result = "Vec<(Fingerprint, u64)>")]
pub struct Live;

/// Checkpointer -> poller or enumerator: tell me when every acknowledgement asked for has been answered.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AwaitAcknowledged;

/// Poller or enumerator -> checkpointer: the answer.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AllAcknowledged;
