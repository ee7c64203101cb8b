//! The checkpointer: runs the five steps of a checkpoint, one checkpoint at a time.
//!
//! | step | who | what |
//! |---|---|---|
//! | 1 | checkpointer -> sink-writer | Seal |
//! | 2 | sink-writer | `prepare`: what was written is durable, or staged durably |
//! | 3 | checkpointer | one store batch, flushed and synced |
//! | 4 | sink-writer | `commit`, idempotent |
//! | 5 | poller or enumerator | acknowledge, or commit positions; outcomes are recorded in a later step 3 |

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{fut::wrap_future, prelude::*};
use tracing::{Instrument, Span};

use super::{
    dedup_keeper::DedupKeeper,
    intake::Intake,
    messages::*,
    report::{Event, Reporter},
    retry::within,
    sink_writer::SinkWriter,
    sinks,
};
use crate::{
    dedup::KeyClock,
    model::{Epoch, Fault, FaultKind, Fingerprint, FingerprintMap, Generation, LaneId, PipelineName, Token},
    state::{Checkpoint, KeyChanges, Opened, Recorded as StoreRecorded, Store},
    telemetry::{Vitals, fail_point},
};

pub const NAME: &str = "checkpointer";

/// See the module.
pub struct Checkpointer {
    pub pipeline: PipelineName,
    pub generation: Generation,
    pub store: Store,
    /// `checkpoint.interval`
    pub interval: Duration,
    /// `checkpoint.timeout`: time without progress.
    pub timeout: Duration,
    /// The pipeline's up time when this generation began, in milliseconds, and the moment it began.
    pub uptime: (u64, Instant),
    /// Where the source has a primary key: the clock of its window, and how long that is.
    pub keys: Option<(KeyClock, Duration)>,
    pub sink: Addr<SinkWriter>,
    pub dedup: Addr<DedupKeeper>,
    pub intake: Intake,
    pub reporter: Reporter,
    pub vitals: Arc<Vitals>,
    pub span: Span,
    pub work: Work,
}

/// Where the current checkpoint stands.
pub struct Work {
    /// Number of the last durable epoch.
    pub last: Epoch,
    step: Step,
    progress: Instant,
    /// Rows and dead letters that had been written when that was last looked at.
    rows: u64,
    begun: Instant,
    /// Another one is wanted as soon as this one is through.
    again: bool,
    /// Deletes confirmed, and ids expired, that the store still knows.
    confirmed: Vec<Fingerprint>,
    /// Lanes whose position is to be forgotten.
    forgotten: Vec<LaneId>,
    /// The record in the store names tokens. They have been committed by the time a checkpoint is through.
    tokens_stored: bool,
    /// Deletes recorded, of which the dedup-keeper may not have heard: Forget goes in band, behind everything handed
    /// on. A snapshot must not bring them back.
    unforgotten: FingerprintMap<()>,
    /// Ids in the store.
    live: usize,
    /// Whether the store should be given a snapshot instead of one more delta.
    snapshot_due: bool,
    /// What the epoch being committed holds.
    pending: Pending,
    ending: Ending,
    /// The source is at its end: once the last acknowledgement is answered, there is nothing left to do, ever.
    finished: bool,
}

/// What is in the store, and told once the epoch is committed.
#[derive(Default)]
struct Pending {
    disposed: Vec<Fingerprint>,
    stamp_ms: u64,
    positions: BTreeMap<LaneId, u64>,
    /// Deletes that need not be remembered any more.
    removed: Vec<Fingerprint>,
    forgotten: Vec<LaneId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Sealing,
    Storing,
    Committing,
}

impl Step {
    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "nothing",
            Self::Sealing => "the writes before it, and prepare",
            Self::Storing => "the state store",
            Self::Committing => "commit",
        }
    }
}

/// A drain: the last rows, then the last acknowledgements, then their record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    No,
    LastRows,
    LastAcknowledgements,
    LastRecord,
    Done,
}

impl Work {
    /// Goes on from what the store knows.
    pub fn new(stored: &Opened) -> Self {
        let now = Instant::now();
        Self {
            last: stored.epoch,
            // The sink has recovered them before this generation began.
            tokens_stored: !stored.tokens.is_empty(),
            live: stored.ids.len(),
            step: Step::Idle,
            progress: now,
            rows: 0,
            begun: now,
            again: false,
            confirmed: Vec::new(),
            forgotten: Vec::new(),
            unforgotten: FingerprintMap::default(),
            snapshot_due: stored.deltas.snapshot_due(stored.ids.len()),
            pending: Pending::default(),
            ending: Ending::No,
            finished: false,
        }
    }
}

impl Checkpointer {
    fn begin(&mut self) {
        if self.work.step != Step::Idle {
            self.work.again = true;
            return;
        }
        self.work.again = false;
        self.work.begun = Instant::now();
        self.enter(Step::Sealing);
        self.sink.do_send(Seal(self.work.last.next()));
    }

    fn enter(&mut self, step: Step) {
        self.work.step = step;
        self.work.progress = Instant::now();
    }

    fn store(&mut self, sealed: SealedEpoch, ctx: &mut Context<Self>) {
        self.enter(Step::Storing);
        let SealedEpoch { epoch, tokens, disposed, positions, keys } = sealed;
        let removed = std::mem::take(&mut self.work.confirmed);
        let forgotten = std::mem::take(&mut self.work.forgotten);
        let snapshot = std::mem::take(&mut self.work.snapshot_due);
        let (store, dedup, stamp) = (self.store.clone(), self.dedup.clone(), self.uptime_ms());
        let mut checkpoint = Checkpoint {
            pipeline: self.pipeline.clone(),
            generation: self.generation,
            epoch,
            positions: positions.clone(),
            forgotten: forgotten.clone(),
            tokens: tokens.clone(),
            added: disposed.clone(),
            removed: removed.clone(),
            snapshot: None,
            keys: self.keys.map(|(clock, window)| KeyChanges { added: keys, clock_ms: clock.now_ms(), window }),
            uptime_ms: stamp,
            finished: self.is_finishing(),
        };
        let pending = Pending { disposed, stamp_ms: stamp, positions, removed, forgotten };
        let timeout = self.timeout;
        let mut unforgotten = std::mem::take(&mut self.work.unforgotten);
        let run = async move {
            fail_point!("checkpoint.before_store");
            if snapshot {
                checkpoint.snapshot = Some(live_ids(&dedup, &checkpoint, &mut unforgotten).await?);
            }
            let stored = async { store.checkpoint(checkpoint).await.map_err(Fault::from) };
            let recorded = within(timeout, &"the state store".into(), stored).await?;
            fail_point!("checkpoint.after_store");
            Ok((recorded, unforgotten))
        };
        ctx.spawn(wrap_future(run.instrument(self.span.clone())).map(move |result, checkpointer: &mut Self, ctx| {
            match result {
                Ok((recorded, unforgotten)) => {
                    checkpointer.work.unforgotten = unforgotten;
                    checkpointer.stored(tokens, pending, &recorded);
                }
                Err(fault) => checkpointer.fail(fault, ctx),
            }
        }));
    }

    fn stored(&mut self, tokens: Vec<Token>, mut pending: Pending, recorded: &StoreRecorded) {
        self.work.last = recorded.epoch;
        self.work.tokens_stored = !tokens.is_empty();
        self.work.live = (self.work.live + pending.disposed.len()).saturating_sub(pending.removed.len());
        self.work.snapshot_due = recorded.deltas.snapshot_due(self.work.live);
        self.work.unforgotten.extend(pending.removed.iter().map(|id| (*id, ())));
        for id in &pending.disposed {
            // It came once more, so it had been forgotten.
            self.work.unforgotten.remove(id);
        }
        let removed = std::mem::take(&mut pending.removed);
        if !removed.is_empty() {
            self.intake.recorded(removed);
        }
        self.enter(Step::Committing);
        self.work.pending = pending;
        self.commit(tokens);
    }

    fn commit(&mut self, tokens: Vec<Token>) {
        if tokens.is_empty() {
            self.committed();
        } else {
            self.sink.do_send(Commit(tokens));
        }
    }

    fn committed(&mut self) {
        fail_point!("checkpoint.before_acknowledge");
        self.vitals.checkpointed(self.work.last, self.work.begun.elapsed().as_secs_f64());
        let Pending { disposed, stamp_ms, positions, forgotten, .. } = std::mem::take(&mut self.work.pending);
        self.span.in_scope(|| {
            tracing::debug!(epoch = self.work.last.0, messages = disposed.len(), lanes = positions.len(), "checkpoint");
        });
        // Settled before the acknowledgement: a redelivery from now on is one of something checkpointed.
        self.dedup.do_send(Settled { ids: disposed.clone(), stamp_ms });
        self.intake.checkpointed(disposed, positions, forgotten);
        self.finish();
    }

    /// The checkpoint is through, or there was nothing to do.
    fn finish(&mut self) {
        self.enter(Step::Idle);
        if self.work.again {
            return self.begin();
        }
        match self.work.ending {
            Ending::No | Ending::LastAcknowledgements | Ending::Done => {}
            Ending::LastRows => {
                self.work.ending = Ending::LastAcknowledgements;
                self.intake.await_acknowledged();
            }
            Ending::LastRecord => {
                self.work.ending = Ending::Done;
                self.reporter.event(if self.work.finished { Event::Finished } else { Event::Drained });
            }
        }
    }

    /// Whether there is something to record beside what an epoch holds.
    fn has_to_record(&self) -> bool {
        !self.work.confirmed.is_empty() || !self.work.forgotten.is_empty()
    }

    /// Whether a record made now says that the pipeline has finished for good.
    fn is_finishing(&self) -> bool {
        self.work.finished && self.work.ending == Ending::LastRecord
    }

    /// Whether this is the last record of a drain, and the store still names tokens.
    fn closes(&self) -> bool {
        self.work.ending == Ending::LastRecord && self.work.tokens_stored
    }

    fn watch(&mut self, ctx: &mut Context<Self>) {
        // A sink that reports retries is Degraded, not hung, and has the whole time once it works again; so has a seal
        // that waits behind writes which go on. What troubles the source says nothing of either.
        let rows = self.vitals.metrics.rows_written.get() + self.vitals.metrics.dead_letters.get();
        if rows != self.work.rows || self.vitals.is_retrying(&sinks::OPERATIONS) {
            self.work.rows = rows;
            self.work.progress = Instant::now();
        }
        let waiting = self.work.progress.elapsed();
        if self.work.step != Step::Idle && waiting > self.timeout {
            let text = format!(
                "a checkpoint made no progress for {waiting:.0?} (checkpoint.timeout {:?}), waiting for {}",
                self.timeout,
                self.work.step.name()
            );
            self.fail(Fault::restart(FaultKind::Hung, text), ctx);
        }
    }

    fn uptime_ms(&self) -> u64 {
        self.uptime.0 + u64::try_from(self.uptime.1.elapsed().as_millis()).unwrap_or(u64::MAX >> 1)
    }

    fn fail(&mut self, fault: Fault, ctx: &mut Context<Self>) {
        self.reporter.fault(NAME, fault);
        ctx.stop();
    }
}

/// All ids the store should know after this checkpoint: what the dedup-keeper holds as settled, less the deletes
/// that are recorded or that this checkpoint records, plus what it adds. Leaves in `unforgotten` what is still held.
async fn live_ids(
    dedup: &Addr<DedupKeeper>,
    checkpoint: &Checkpoint,
    unforgotten: &mut FingerprintMap<()>,
) -> Result<Vec<(Fingerprint, u64)>, Fault> {
    let mut ids = dedup
        .send(Live)
        .await
        .map_err(|error| Fault::restart(FaultKind::Bug, "the dedup-keeper did not answer").because(error))?;
    let removed: FingerprintMap<()> = checkpoint.removed.iter().map(|id| (*id, ())).collect();
    let mut held = FingerprintMap::default();
    ids.retain(|(id, _)| {
        if unforgotten.contains_key(id) {
            held.insert(*id, ());
        }
        !unforgotten.contains_key(id) && !removed.contains_key(id)
    });
    *unforgotten = held;
    ids.extend(checkpoint.added.iter().map(|id| (*id, checkpoint.uptime_ms)));
    Ok(ids)
}

impl Actor for Checkpointer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.interval, |checkpointer, _| checkpointer.begin());
        let watch = (self.timeout / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let mut last = Instant::now();
        ctx.run_interval(watch, move |checkpointer, ctx| {
            // A process that was stopped is late itself: that is nobody's hang.
            checkpointer.work.progress += last.elapsed().saturating_sub(watch * 2);
            last = Instant::now();
            checkpointer.watch(ctx);
        });
    }
}

impl Handler<Sealed> for Checkpointer {
    type Result = ();

    fn handle(&mut self, Sealed { epoch }: Sealed, ctx: &mut Self::Context) {
        match epoch {
            Some(sealed) => self.store(sealed, ctx),
            // Confirmed deletes alone are worth a record, or the ids would be remembered for ever; so are lanes that have
            // left; and so is the end, or what a clean stop leaves behind would look like output that may not be
            // committed.
            None if self.has_to_record() || self.is_finishing() || self.closes() => {
                let epoch = self.work.last.next();
                self.store(SealedEpoch::empty(epoch), ctx);
            }
            None => {
                self.intake.nothing_sealed();
                self.finish();
            }
        }
    }
}

impl Handler<Committed> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: Committed, _: &mut Self::Context) {
        self.committed();
    }
}

impl Handler<Confirmed> for Checkpointer {
    type Result = ();

    fn handle(&mut self, Confirmed(ids): Confirmed, _: &mut Self::Context) {
        self.work.confirmed.extend(ids);
    }
}

impl Handler<Expired> for Checkpointer {
    type Result = ();

    fn handle(&mut self, Expired(ids): Expired, _: &mut Self::Context) {
        self.work.confirmed.extend(ids);
    }
}

impl Handler<Redelivered> for Checkpointer {
    type Result = ();

    fn handle(&mut self, Redelivered(ids): Redelivered, _: &mut Self::Context) {
        self.intake.redelivered(ids);
    }
}

impl Handler<ForgetLanes> for Checkpointer {
    type Result = ();

    fn handle(&mut self, ForgetLanes(lanes): ForgetLanes, _: &mut Self::Context) {
        self.work.forgotten.extend(lanes);
    }
}

impl Handler<CheckpointSoon> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: CheckpointSoon, _: &mut Self::Context) {
        self.begin();
    }
}

impl Handler<AllEnded> for Checkpointer {
    type Result = ();

    fn handle(&mut self, AllEnded { finished }: AllEnded, _: &mut Self::Context) {
        self.work.finished = finished;
        self.work.ending = Ending::LastRows;
        self.begin();
    }
}

impl Handler<AllAcknowledged> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: AllAcknowledged, _: &mut Self::Context) {
        self.work.ending = Ending::LastRecord;
        self.begin();
    }
}
