//! The handle to the store's thread, and what is said over it.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::sync::{oneshot, watch};

use crate::model::{
    Epoch, Fault, FaultKind, Fingerprint, Generation, LaneId, Mend, PipelineName, SourceIdentity, Token,
};

/// A handle to the store. Cheap to clone; works from any thread and any runtime.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) failure: watch::Receiver<Option<Arc<str>>>,
}

/// What a pipeline's last generation left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// The number of the generation that begins. Durable.
    pub generation: Generation,
    /// The last recorded epoch; 0 if there is none. The next checkpoint's is the one after it.
    pub epoch: Epoch,
    /// The next position of each lane.
    pub positions: BTreeMap<LaneId, u64>,
    /// The tokens of the last recorded epoch. Whether they were committed is not known: to be recovered (which
    /// commits again, idempotently) before anything else is done.
    pub tokens: Vec<Token>,
    /// Ids disposed of and not known to be deleted, each with the uptime stamp, in milliseconds, of the checkpoint
    /// that added it. In no order.
    pub ids: Vec<(Fingerprint, u64)>,
    /// The pipeline's uptime, in milliseconds, at its last checkpoint: stamps go on counting from here.
    pub uptime_ms: u64,
    /// Primary keys, each with when it was first seen, in milliseconds of the key clock, in the order in which they were
    /// recorded. There may be some whose window is over, and one twice that passed again after that.
    pub keys: Vec<(Fingerprint, u64)>,
    /// What the key clock said at the last checkpoint with keys; 0: there was none.
    pub key_clock_ms: u64,
    /// Whether the pipeline has finished for good.
    pub finished: bool,
    /// What the stored ids take.
    pub deltas: Deltas,
}

/// Everything one epoch makes durable.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Whose.
    pub pipeline: PipelineName,
    /// The generation that asks; a stale one is refused.
    pub generation: Generation,
    /// Must be the one after the last recorded.
    pub epoch: Epoch,
    /// Next positions; a lane that is not named keeps the position it has.
    pub positions: BTreeMap<LaneId, u64>,
    /// Lanes whose position is forgotten: someone else reads them now.
    pub forgotten: Vec<LaneId>,
    /// Tokens of *this* epoch. They take the place of the last epoch's, which have been committed by now: a Seal
    /// waits for the commit before it.
    pub tokens: Vec<Token>,
    /// Ids disposed of in this epoch, stamped with `uptime_ms`.
    pub added: Vec<Fingerprint>,
    /// Ids confirmed deleted, or expired, since the last checkpoint. An id in both lists stays.
    pub removed: Vec<Fingerprint>,
    /// All ids there are once this checkpoint is recorded, `added` included, each with its stamp. It takes the place
    /// of every delta so far; `added` and `removed` are not looked at. See [`Deltas::snapshot_due`].
    pub snapshot: Option<Vec<(Fingerprint, u64)>>,
    /// What becomes of primary keys. `None`: the pipeline has none, and what is stored of an earlier one is removed.
    pub keys: Option<KeyChanges>,
    /// The pipeline's uptime in milliseconds: how long processes that ran it have been up in all.
    pub uptime_ms: u64,
    /// Whether the pipeline has finished for good: every lane has ended and nothing is left to do.
    pub finished: bool,
}

/// What a checkpoint makes durable of primary keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// The keys of this epoch's rows, each with when it was first seen, in milliseconds of the key clock.
    pub added: Vec<(Fingerprint, u64)>,
    /// What the key clock says: not less than anything in `added`.
    pub clock_ms: u64,
    /// How long a key is remembered. Those first seen as long ago as that, or longer, may go.
    pub window: Duration,
}

/// The answer to a checkpoint: it is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The epoch recorded.
    pub epoch: Epoch,
    /// What the stored ids take now.
    pub deltas: Deltas,
}

/// How much is stored to remember a pipeline's ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deltas {
    /// Deltas (and snapshots) in the chain.
    pub count: u64,
    /// Entries in all of them, removals and what they removed included.
    pub ids: u64,
}

impl Deltas {
    /// Whether the next checkpoint should bring a snapshot, with `live` ids in memory.
    ///
    /// The chain may hold twice the entries that live, so that the disk is bounded by them, plus what fits a page
    /// of the database or two. It may be as many deltas long as makes one snapshot (24 bytes an id) cost each of
    /// them about 1.5 KiB, less than the record it is written with.
    pub fn snapshot_due(&self, live: usize) -> bool {
        let live = live as u64;
        self.ids > 2 * live + 4096 || self.count > 256 + live / 64
    }
}

/// Why the store did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A newer generation has been opened, or this one never was. Whoever gets this must stop.
    #[error("generation {generation} of pipeline {pipeline} is over; the store knows generation {current}")]
    Fenced {
        /// Whose.
        pipeline: PipelineName,
        /// The generation that asked.
        generation: Generation,
        /// The newest one (0: none has been opened since the process began).
        current: Generation,
    },
    /// An epoch was skipped or sent twice: a bug.
    #[error("checkpoint {epoch} of pipeline {pipeline} does not follow checkpoint {last}")]
    NotNext {
        /// Whose.
        pipeline: PipelineName,
        /// The epoch that was to be recorded.
        epoch: Epoch,
        /// The last one recorded.
        last: Epoch,
    },
    /// The stored state belongs to a pipeline of the same name that read something else.
    #[error(
        "the state of pipeline {pipeline} belongs to source {stored}, but its definition reads {defined}; stop the \
         supervisor, then keep that state under another name with `queuewarden state rename {pipeline} NEW`, or \
         forget it with `queuewarden state reset {pipeline}`; or give the pipeline another name"
    )]
    OtherSource {
        /// Whose.
        pipeline: PipelineName,
        /// What the state belongs to.
        stored: SourceIdentity,
        /// What the definition reads.
        defined: SourceIdentity,
    },
    /// The pipeline's state cannot be read. Nothing has been changed.
    #[error(
        "the state of pipeline {pipeline} is damaged ({reason}); without it, messages that were written but not yet \
         deleted are written again; to accept that, stop the supervisor and run `queuewarden state reset {pipeline}`"
    )]
    Damaged {
        /// Whose.
        pipeline: PipelineName,
        /// What is wrong with it.
        reason: String,
    },
    /// A write, flush or sync failed, now or earlier. Nothing the store says can be believed any more: the process
    /// must end.
    #[error("the state store failed: {0}")]
    Poisoned(Arc<str>),
    /// The store has been closed.
    #[error("the state store is closed")]
    Closed,
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let mend = match error {
            StoreError::Fenced { .. } | StoreError::NotNext { .. } | StoreError::Closed => Mend::Restart,
            StoreError::OtherSource { .. } | StoreError::Damaged { .. } | StoreError::Poisoned(_) => Mend::Never,
        };
        Self::new(FaultKind::Store, mend, error.to_string())
    }
}

/// What the store's thread is asked.
#[derive(Debug)]
pub(super) enum Command {
    Open { pipeline: PipelineName, source: SourceIdentity, answer: oneshot::Sender<Result<Opened, StoreError>> },
    Checkpoint { checkpoint: Box<Checkpoint>, answer: oneshot::Sender<Result<Recorded, StoreError>> },
    Close,
}

impl Store {
    /// Begins a generation: its number is durable before this answers, and from then on every earlier generation
    /// of the pipeline is refused. A pipeline the store does not know begins with generation 1 and nothing else.
    ///
    /// # Errors
    /// [`StoreError::OtherSource`], [`StoreError::Damaged`], [`StoreError::Poisoned`], [`StoreError::Closed`]
    pub async fn open_generation(
        &self,
        pipeline: &PipelineName,
        source: &SourceIdentity,
    ) -> Result<Opened, StoreError> {
        let (pipeline, source) = (pipeline.clone(), source.clone());
        self.ask(|answer| Command::Open { pipeline, source, answer }).await
    }

    /// Records a checkpoint, whole or not at all. On the disk when this answers. Should the caller go away before
    /// the answer, the checkpoint may be recorded all the same.
    ///
    /// # Errors
    /// [`StoreError::Fenced`], [`StoreError::NotNext`], [`StoreError::Poisoned`], [`StoreError::Closed`]
    pub async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Recorded, StoreError> {
        let checkpoint = Box::new(checkpoint);
        self.ask(|answer| Command::Checkpoint { checkpoint, answer }).await
    }

    /// Waits for the store to fail, and answers why. The process must end then. Never answers otherwise.
    pub async fn failed(&self) -> Arc<str> {
        let mut failure = self.failure.clone();
        let reason = failure.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.commands.send(command(answer));
        match sent {
            Ok(()) => answered.await.unwrap_or_else(|_| Err(self.gone())),
            Err(_) => Err(self.gone()),
        }
    }

    /// Why there is no one to answer.
    fn gone(&self) -> StoreError {
        self.failure.borrow().clone().map_or(StoreError::Closed, StoreError::Poisoned)
    }
}
