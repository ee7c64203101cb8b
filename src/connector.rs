//! The contract between a connector and the pipeline that runs it.
//!
//! A connector author writes what talks to the service and nothing else: no retry loop, no metric, no actor.
//! Faults say whether trying again can mend them ([`crate::model::Mend`]); the pipeline does the rest.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use async_trait::async_trait;

pub use crate::model::RowReject;
use crate::model::{Epoch, Fault, Generation, LaneId, Message, Receipt, SinkIdentity, SourceIdentity, Token};

/// What a pipeline reads. Made anew for every generation: no client or connection is shared between two.
#[derive(Clone)]
pub enum Source {
    /// Messages come back until they are acknowledged one by one. Read by one poller, in one lane.
    Queue(Arc<dyn QueueSource>),
    /// Messages lie in order and stay; a position says how far each lane is read. One reader a lane.
    Log(Arc<dyn LogSource>),
}

impl Source {
    /// What is read, without credentials.
    pub fn identity(&self) -> SourceIdentity {
        match self {
            Self::Queue(source) => source.identity(),
            Self::Log(source) => source.identity(),
        }
    }
}

/// A queue whose messages come back until they are acknowledged.
#[async_trait]
pub trait QueueSource: Send + Sync {
    /// What is read, without credentials.
    fn identity(&self) -> SourceIdentity;

    /// Connects, checks that the queue is there, and learns what it can of it.
    async fn open(&self) -> Result<OpenedQueue, Fault>;

    /// After how long these calls report a timeout by themselves; see [`QueueReader::patience`].
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// An opened queue.
pub struct OpenedQueue {
    /// What dead letters call the lane their messages came from.
    pub lane: LaneId,
    /// Receives.
    pub reader: Arc<dyn QueueReader>,
    /// Acknowledges.
    pub acknowledger: Arc<dyn Acknowledger>,
    /// How many polls (and how many acknowledge calls) may be under way at once; at least 1.
    pub concurrency: usize,
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

/// Receives messages of a queue.
#[async_trait]
pub trait QueueReader: Send + Sync {
    /// Receives what there is, waiting as long as the connector's options say; each message with its receipt. Empty is
    /// normal. Several calls may be under way at once; only a drain drops one unfinished.
    async fn poll(&self) -> Result<Vec<Message>, Fault>;

    /// How long a poll may take by itself, because it waits for messages and has a timeout of its own. One that takes
    /// longer by more than `checkpoint.timeout` hangs.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// Lanes whose messages lie in order and stay, each read from a position on.
#[async_trait]
pub trait LogSource: Send + Sync {
    /// What is read, without credentials.
    fn identity(&self) -> SourceIdentity;

    /// The lanes there are now. `known`: the position of each lane that the state holds for this pipeline. One that is
    /// known and whose service is away for a while (its route has vanished) is simply not listed: it keeps its position,
    /// and its reader if it has one.
    async fn lanes(&self, known: &BTreeMap<LaneId, u64>) -> Result<Lanes, Fault>;

    /// How often [`LogSource::lanes`] is asked again. `None`: what the first answer lists is all there is, so it must be
    /// complete; a known lane that is away for a while is a fault then.
    ///
    /// A source is at its end, and its pipeline finished for good, once each of its lanes has said that it is at its end
    /// (and there is one). While it is asked again for lanes, none that is known may be away then.
    fn discovery_interval(&self) -> Option<Duration> {
        None
    }

    /// Connects a lane and resolves where it starts. Calls for several lanes may be under way at once.
    async fn open(&self, lane: &LaneId, start: Start) -> Result<OpenedLane, Fault>;

    /// Tells the service how far lanes are read, after a checkpoint that holds these positions; one call at a time. A
    /// failure is retried a few times, counted, and then left to the next checkpoint. It is for display, and for starts
    /// without state: what is read on after a restart is what the state says.
    async fn commit(&self, positions: &BTreeMap<LaneId, u64>) -> Result<(), Fault> {
        let _nothing_is_told = positions;
        Ok(())
    }

    /// Whether [`LogSource::commit`] tells anybody anything.
    fn commits(&self) -> bool {
        true
    }

    /// The first and the next position of each of these lanes now, as the service says. A lane it does not know is not
    /// in the answer.
    async fn ends(&self, lanes: &[LaneId]) -> Result<BTreeMap<LaneId, Range<u64>>, Fault> {
        let _nobody_to_ask = lanes;
        Ok(BTreeMap::new())
    }

    /// After how long these calls report a timeout by themselves; see [`QueueReader::patience`].
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// The lanes of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lanes {
    /// To be read here, each with where it starts if it is not being read yet.
    pub owned: Vec<(LaneId, Start)>,
    /// There, but read by another process: positions held for them are forgotten.
    pub others: Vec<LaneId>,
}

/// Where a lane starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At this position, which the state holds; it beats every option.
    Resume(u64),
    /// As the options say: nothing of it, nor of what it belongs to, has ever been read by this pipeline.
    First,
    /// New in what is being read already: at what the service has recorded for the reader, else at its beginning.
    Added,
}

/// An opened lane.
pub struct OpenedLane {
    /// Reads it.
    pub reader: Arc<dyn LogReader>,
    /// Where reading begins.
    pub position: u64,
}

/// Reads one lane.
#[async_trait]
pub trait LogReader: Send + Sync {
    /// Reads what comes next, waiting as the service does. Empty is normal. One call at a time; dropped unfinished only
    /// by a drain or at the end of the generation.
    async fn poll(&self) -> Result<Polled, Fault>;

    /// As [`QueueReader::patience`].
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a poll of a lane brought.
#[derive(Debug, Default)]
pub struct Polled {
    /// The messages, in the order of the lane, without receipts.
    pub messages: Vec<Message>,
    /// The position of what comes after them; never less than before. May move without a message.
    pub position: u64,
    /// How many messages of the lane are behind `position`, as far as the service said with this answer.
    pub behind: Option<u64>,
    /// Nothing comes after them, now or ever: the lane is bounded and at its end. It is not polled again.
    pub end: bool,
}

/// Acknowledges messages of a queue.
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

    /// After how long these calls report a timeout by themselves; see [`QueueReader::patience`].
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
