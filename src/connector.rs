//! The contract between a connector and the pipeline that runs it.
//!
//! A connector author writes what talks to the service and nothing else: no retry loop, no metric, no actor.
//! Faults say whether trying again can mend them ([`crate::model::Mend`]); the pipeline does the rest.

use std::{sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use async_trait::async_trait;

pub use crate::model::RowReject;
use crate::model::{Epoch, Fault, Generation, LaneId, Message, Receipt, SinkIdentity, SourceIdentity, Token};

/// A place messages come from. Made anew for every generation: no client or connection is shared between two.
#[async_trait]
pub trait Source: Send + Sync {
    /// What is read, without credentials.
    fn identity(&self) -> SourceIdentity;

    /// Connects, checks that the queue is there, and learns what it can of it. `resume`: the position the last
    /// checkpoint recorded for the lane, which beats whatever option says where to begin.
    async fn open(&self, lane: &LaneId, resume: Option<u64>) -> Result<Opened, Fault>;

    /// The lanes there are now. A queue service has one.
    async fn lanes(&self) -> Result<Vec<LaneId>, Fault>;

    /// After how long these calls report a timeout by themselves; see [`Reader::patience`].
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// An opened lane.
pub struct Opened {
    /// Receives.
    pub reader: Arc<dyn Reader>,
    /// Acknowledges.
    pub acknowledger: Arc<dyn Acknowledger>,
    /// How many polls (and how many acknowledge calls) may be under way at once; at least 1, and 1 where the lane has
    /// positions: concurrent answers have no order.
    pub concurrency: usize,
    /// Where reading begins, on a lane whose position resumes; `None` on one that has none.
    pub position: Option<u64>,
    /// What the service says of the queue.
    pub facts: QueueFacts,
}

/// What is known of a queue. `None`: the service did not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// How long a received message stays invisible to others.
    pub visibility_timeout: Option<Duration>,
    /// How long an undeleted message is kept at all.
    pub retention: Option<Duration>,
}

/// Receives messages of one lane.
#[async_trait]
pub trait Reader: Send + Sync {
    /// Receives what there is, waiting as long as the connector's options say. Empty is normal. Several calls
    /// may be under way at once; only a drain drops one unfinished.
    async fn poll(&self) -> Result<Polled, Fault>;

    /// How long a poll may take by itself, because it waits for messages and has a timeout of its own. One that takes
    /// longer by more than `checkpoint.timeout` hangs.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a poll brought.
#[derive(Debug, Default)]
pub struct Polled {
    /// The messages, in the order of the lane.
    pub messages: Vec<Message>,
    /// The position of what comes after them: at every poll of a lane whose position resumes, moved or not, and never
    /// less than the one before; at no poll of another. May move without a message.
    pub position: Option<u64>,
    /// Nothing comes after them, now or ever: the lane is bounded and at its end. It is not polled again.
    pub end: bool,
}

/// From a lane without positions or an end.
impl From<Vec<Message>> for Polled {
    fn from(messages: Vec<Message>) -> Self {
        Self { messages, position: None, end: false }
    }
}

/// Acknowledges messages of one lane.
#[async_trait]
pub trait Acknowledger: Send + Sync {
    /// Most receipts per [`Acknowledger::acknowledge`].
    fn most(&self) -> usize;

    /// How often a call that failed with [`crate::model::Mend::Retry`] is tried again before its failure is
    /// counted and the message left to come back.
    fn retries(&self) -> u32;

    /// Acknowledges (deletes) deliveries. The answer has one outcome per receipt, in order; `Err` is a failure
    /// of the call as a whole, after which any of them may or may not have been deleted.
    async fn acknowledge(&self, receipts: &[Receipt]) -> Result<Vec<Acknowledged>, Fault>;

    /// Whether [`Acknowledger::extend`] does anything.
    fn extends(&self) -> bool;

    /// Makes a delivery stay invisible for `timeout` from now (whole seconds); answers the receipt that
    /// replaces the given one, or `None` if the service no longer knows it (it will be delivered again).
    async fn extend(&self, receipt: &Receipt, timeout: Duration) -> Result<Option<Receipt>, Fault>;

    /// After how long these calls report a timeout by themselves; see [`Reader::patience`].
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// What became of one receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acknowledged {
    /// Deleted, and the service said so.
    Deleted,
    /// The receipt is expired, superseded or already used. Not a confirmation: the message may come back.
    Unknown,
    /// Refused, with the service's code and words.
    Refused(String),
}

/// A place rows go to. Calls come one at a time.
#[async_trait]
pub trait Sink: Send {
    /// Where it writes.
    fn identity(&self) -> SinkIdentity;

    /// Called before the first write of a generation, again only after a fault that a retry can mend: commits the
    /// tokens of this sink that a crash left uncommitted (idempotently) and discards what is staged and named by
    /// none of them.
    async fn recover(&mut self, tokens: &[Token]) -> Result<(), Fault>;

    /// Takes rows. Rows that can never be written are answered, not failed on. A sink may return with a bounded
    /// number of sends outstanding; `prepare` waits for all of them.
    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault>;

    /// Makes what was written since the last prepare durable, or stages it durably. The token commits it; `None`
    /// if nothing needs a commit.
    async fn prepare(&mut self, epoch: Epoch) -> Result<Option<Token>, Fault>;

    /// Makes a prepared epoch visible. Idempotent.
    async fn commit(&mut self, token: &Token) -> Result<(), Fault>;
}

/// What has become of output that was prepared, seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is still there and can be committed; where it is.
    Waiting(String),
    /// It has been committed.
    Committed,
    /// Neither: what it was prepared in is gone, or nothing here can commit it.
    Gone,
}

/// Who a sink's generation is: part of every name it gives to something outside.
#[derive(Debug, Clone)]
pub struct SinkContext {
    /// The pipeline.
    pub pipeline: crate::model::PipelineName,
    /// A random text written when the state store was created; 16 lower-case hex digits.
    pub incarnation: String,
    /// The generation that writes.
    pub generation: Generation,
}
