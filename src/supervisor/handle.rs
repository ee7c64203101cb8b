//! What the rest of the program may ask of the supervisor, without knowing an actor.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use super::State;
use crate::{
    model::{Disposition, Slot},
    telemetry::{LaneProgressed, Metrics, Vitals},
};

/// Reads the state of all pipelines.
#[derive(Clone)]
pub struct Handle {
    /// Everything counted.
    pub metrics: Arc<Metrics>,
    board: Board,
    requests: mpsc::UnboundedSender<Request>,
}

/// What the supervisor may be asked to do, by a signal or by whoever holds a [`Handle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, actix::Message)]
#[rtype(result = "()")]
pub(super) enum Request {
    /// Restart the pipeline of a slot: drain with a deadline, then cut off; its budget is full again.
    Restart(Slot),
    /// Restart every pipeline that is Failed.
    RestartFailed,
    /// Read the definitions again.
    Reload,
}

/// What a reload did, by pipeline name. With an `error` it did nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReloadReport {
    /// Counts the reloads of this process; the first is 1.
    pub number: u64,
    /// When the definitions began to be read, RFC 3339 in UTC; what was written before is in it.
    pub began: String,
    /// When it was done, RFC 3339 in UTC.
    pub at: String,
    /// New ones, started.
    pub added: Vec<String>,
    /// Gone ones, drained.
    pub removed: Vec<String>,
    /// Changed ones, drained and started anew.
    pub changed: Vec<String>,
    /// Left alone, also those that are Failed: what mends those is a restart, or another definition.
    pub unchanged: Vec<String>,
    /// Broken ones, each with why. One that ran with an earlier definition goes on with that.
    pub broken: BTreeMap<String, String>,
    /// Why nothing was changed: the definitions could not be listed.
    pub error: Option<String>,
}

/// What the pipelines and the supervisor last said of themselves.
#[derive(Clone, Default)]
pub(super) struct Board(Arc<Said>);

#[derive(Default)]
struct Said {
    entries: Mutex<BTreeMap<Slot, Entry>>,
    reload: Mutex<Option<ReloadReport>>,
    /// Whether there is a pipeline, and every one is Finished.
    finished: watch::Sender<bool>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub name: String,
    pub file: String,
    pub source: Option<String>,
    pub sink: Option<String>,
    pub state: State,
    pub since: SystemTime,
    pub generation: Option<u64>,
    pub restarts: u64,
    pub last_error: Option<String>,
    pub definition_error: Option<String>,
    pub vitals: Arc<Vitals>,
}

impl Board {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Slot, Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reload(&self) -> MutexGuard<'_, Option<ReloadReport>> {
        self.0.reload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn publish(&self, slot: Slot, entry: Entry) {
        self.change(|entries| entries.insert(slot, entry));
    }

    pub fn remove(&self, slot: Slot) {
        self.change(|entries| entries.remove(&slot));
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Slot, Entry>) -> Option<Entry>) {
        let mut entries = self.entries();
        change(&mut entries);
        let finished = !entries.is_empty() && entries.values().all(|entry| entry.state == State::Finished);
        self.0.finished.send_if_modified(|before| std::mem::replace(before, finished) != finished);
    }

    pub fn reloaded(&self, report: ReloadReport) {
        *self.reload() = Some(report);
    }

    pub fn failed(&self) -> Vec<Slot> {
        let entries = self.entries();
        entries.iter().filter(|(_, entry)| entry.state == State::Failed).map(|(slot, _)| *slot).collect()
    }

    pub async fn all_finished(&self) {
        let mut finished = self.0.finished.subscribe();
        // The sender is held here: never closed.
        let _all = finished.wait_for(|finished| *finished).await;
    }
}

impl Handle {
    pub(super) fn new(metrics: Arc<Metrics>, board: Board) -> (Self, mpsc::UnboundedReceiver<Request>) {
        let (requests, received) = mpsc::unbounded_channel();
        (Self { metrics, board, requests }, received)
    }

    /// Asks for the restart of one pipeline. An unknown slot is logged and counted.
    pub fn restart(&self, slot: Slot) {
        self.ask(Request::Restart(slot));
    }

    /// Asks for the restart of every Failed pipeline.
    pub fn restart_failed(&self) {
        self.ask(Request::RestartFailed);
    }

    /// Asks for a reload of the definitions; [`Self::last_reload`] tells when it is done. Requests that come while
    /// one is under way are one more reload after it.
    pub fn reload(&self) {
        self.ask(Request::Reload);
    }

    /// The last reload that is done.
    pub fn last_reload(&self) -> Option<ReloadReport> {
        self.board.reload().clone()
    }

    fn ask(&self, request: Request) {
        // A supervisor that has stopped restarts nothing.
        let _stopped = self.requests.send(request);
    }

    /// Every pipeline, by slot.
    pub fn pipelines(&self) -> Vec<PipelineStatus> {
        let entries = self.board.entries().clone();
        entries.into_iter().map(|(slot, entry)| PipelineStatus::of(slot, entry)).collect()
    }
}

/// One pipeline, as `/api/pipelines` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct PipelineStatus {
    /// Its name.
    pub name: String,
    /// Its slot.
    pub slot: Slot,
    /// Its state.
    pub state: State,
    /// When it entered the state, RFC 3339 in UTC.
    pub since: String,
    /// The number of its current or last generation.
    pub generation: Option<u64>,
    /// Restarts since the process began.
    pub restarts: u64,
    /// The last fault that ended a generation, or why the definition is not valid.
    pub last_error: Option<String>,
    /// Why its definition, as the last reload found it, is not valid. If it runs, it goes on with the one before.
    pub definition_error: Option<String>,
    /// What is being retried now.
    pub troubles: Vec<String>,
    /// The lanes that are read now, of a source that has positions.
    pub lanes: Vec<LaneStatus>,
    /// The positions the last checkpoint holds, by lane, of a source that has positions.
    pub positions: BTreeMap<String, u64>,
    /// Whether polling waits because of the source's `rate`.
    pub rate_limited: bool,
    /// The last durable checkpoint of this process.
    pub last_checkpoint: Option<CheckpointStatus>,
    /// What was counted since the process began.
    pub counts: Counts,
    /// The definition.
    pub file: String,
    /// What it reads.
    pub source: Option<String>,
    /// Where it writes.
    pub sink: Option<String>,
}

/// See [`PipelineStatus::lanes`].
#[derive(Debug, Clone, Serialize)]
pub struct LaneStatus {
    /// Which.
    pub lane: String,
    /// The position of what is read next.
    pub position: u64,
    /// How many messages of the lane are behind it; `None`: the service has not said.
    pub behind: Option<u64>,
}

impl From<LaneProgressed> for LaneStatus {
    fn from(LaneProgressed { lane, position, behind }: LaneProgressed) -> Self {
        Self { lane: lane.to_string(), position, behind }
    }
}

/// See [`PipelineStatus::last_checkpoint`].
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointStatus {
    /// Its number.
    pub epoch: u64,
    /// When, RFC 3339 in UTC.
    pub at: String,
}

/// See [`PipelineStatus::counts`].
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "named as the metrics they are read from")]
pub struct Counts {
    pub received: u64,
    pub duplicates: u64,
    pub duplicate_keys: u64,
    pub filtered: u64,
    pub ignored: u64,
    pub rejected: u64,
    pub rejects: u64,
    pub dead_letters: u64,
    pub rows_written: u64,
    pub deleted: u64,
    pub failed_deletes: u64,
    pub unacknowledged: i64,
    pub checkpoints: u64,
}

impl PipelineStatus {
    fn of(slot: Slot, entry: Entry) -> Self {
        let metrics = &entry.vitals.metrics;
        Self {
            slot,
            since: rfc3339(entry.since),
            last_checkpoint: entry
                .vitals
                .last_checkpoint()
                .map(|last| CheckpointStatus { epoch: last.epoch.0, at: rfc3339(last.at) }),
            troubles: entry.vitals.troubles(),
            lanes: entry.vitals.lanes().into_iter().map(LaneStatus::from).collect(),
            positions: entry.vitals.positions().into_iter().map(|(lane, at)| (lane.to_string(), at)).collect(),
            rate_limited: metrics.rate_limited.get() > 0,
            counts: Counts {
                received: metrics.received.get(),
                duplicates: metrics.message(Disposition::Duplicate).get(),
                duplicate_keys: metrics.message(Disposition::DuplicateKey).get(),
                filtered: metrics.message(Disposition::Filtered).get(),
                ignored: metrics.message(Disposition::Ignored).get(),
                rejected: metrics.message(Disposition::Rejected).get(),
                rejects: metrics.rejects.get(),
                dead_letters: metrics.dead_letters.get(),
                rows_written: metrics.rows_written.get(),
                deleted: metrics.deleted.get(),
                failed_deletes: metrics.delete_failed.get(),
                unacknowledged: metrics.unacknowledged.get(),
                checkpoints: metrics.checkpoints.get(),
            },
            name: entry.name,
            state: entry.state,
            generation: entry.generation,
            restarts: entry.restarts,
            last_error: entry.last_error,
            definition_error: entry.definition_error,
            file: entry.file,
            source: entry.source,
            sink: entry.sink,
        }
    }
}

pub(super) fn rfc3339(at: SystemTime) -> String {
    DateTime::<Utc>::from(at).to_rfc3339_opts(SecondsFormat::Millis, true)
}
