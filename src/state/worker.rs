//! The store's one thread: checks generations, applies everything that waits, flushes and syncs once, answers.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
};

use fail::fail_point;
use tokio::sync::{oneshot, watch};

use super::{
    disk::{Change, Disk, DiskError},
    key_log::{KeyLog, SeenKey},
    layout::{Chain, Delta, Record, delta_key, prefix, record_key, seal, split_key, unseal, write_parts},
    store::{Checkpoint, Command, Deltas, KeyChanges, Opened, Recorded, StoreError},
};
use crate::model::{Epoch, Fingerprint, LaneId, PipelineName, SourceIdentity};

/// What the thread knows of a pipeline that has been opened.
pub(super) struct Known {
    pub(super) record: Record,
    record_parts: u32,
    /// Each delta's epoch and number of parts: what a snapshot removes.
    deltas: Vec<(Epoch, u32)>,
    keys: KeyLog,
}

/// A pipeline's state, read.
pub(super) struct Loaded {
    pub(super) known: Known,
    pub(super) ids: Vec<(Fingerprint, u64)>,
    /// In the order in which they were recorded.
    pub(super) keys: Vec<SeenKey>,
}

/// An answer that waits for the sync.
enum Pending {
    Opened(oneshot::Sender<Result<Opened, StoreError>>, Box<Opened>),
    Recorded(oneshot::Sender<Result<Recorded, StoreError>>, Recorded),
}

/// Changes that are applied together.
#[derive(Default)]
struct Group {
    changes: Vec<Change>,
    answers: Vec<Pending>,
    /// A pipeline in here has changes that a scan would not see yet.
    touched: Vec<PipelineName>,
}

pub(super) struct Worker {
    disk: Box<dyn Disk>,
    known: BTreeMap<PipelineName, Known>,
    failure: watch::Sender<Option<Arc<str>>>,
}

impl Worker {
    pub(super) fn new(disk: Box<dyn Disk>, failure: watch::Sender<Option<Arc<str>>>) -> Self {
        Self { disk, known: BTreeMap::new(), failure }
    }

    /// Runs until it is closed or every handle is gone.
    pub(super) fn run(mut self, commands: &mpsc::Receiver<Command>) {
        while let Ok(first) = commands.recv() {
            let mut group = Group::default();
            let mut next = Some(first);
            while let Some(command) = next {
                match command {
                    Command::Close => {
                        self.commit(&mut group);
                        return;
                    }
                    Command::Open { pipeline, source, answer } => self.open(&mut group, pipeline, source, answer),
                    Command::Checkpoint { checkpoint, answer } => self.checkpoint(&mut group, *checkpoint, answer),
                }
                next = commands.try_recv().ok();
            }
            self.commit(&mut group);
        }
    }

    fn poison(&self) -> Option<StoreError> {
        self.failure.borrow().clone().map(StoreError::Poisoned)
    }

    fn open(
        &mut self,
        group: &mut Group,
        pipeline: PipelineName,
        source: SourceIdentity,
        answer: oneshot::Sender<Result<Opened, StoreError>>,
    ) {
        if group.touched.contains(&pipeline) {
            self.commit(group);
        }
        let opened = match self.poison() {
            Some(poison) => Err(poison),
            None => self.stage_open(group, &pipeline, source),
        };
        match opened {
            Ok(opened) => {
                group.answers.push(Pending::Opened(answer, Box::new(opened)));
                group.touched.push(pipeline);
            }
            Err(error) => reply(answer, Err(error)),
        }
    }

    fn stage_open(
        &mut self,
        group: &mut Group,
        pipeline: &PipelineName,
        source: SourceIdentity,
    ) -> Result<Opened, StoreError> {
        let damaged = |reason| StoreError::Damaged { pipeline: pipeline.clone(), reason };
        let Loaded { mut known, ids, keys } = caught(|| load(self.disk.as_ref(), pipeline))
            .map_err(|error| damaged(error.to_string()))?
            .unwrap_or_else(|| Loaded { known: Known::new(Record::default()), ids: Vec::new(), keys: Vec::new() });
        // Without a checkpoint there is nothing of another source: a queue's name that was mistyped does not stick.
        let empty = known.record.epoch == Epoch::default();
        if let Some(stored) = known.record.source.replace(source.clone()).filter(|stored| *stored != source && !empty) {
            return Err(StoreError::OtherSource { pipeline: pipeline.clone(), stored, defined: source });
        }
        known.record.generation.0 += 1;
        known.write_record(pipeline, &mut group.changes).map_err(|error| damaged(error.to_string()))?;
        let record = &known.record;
        let opened = Opened {
            generation: record.generation,
            epoch: record.epoch,
            positions: record.positions.iter().map(|(lane, at)| (LaneId(lane.as_str().into()), *at)).collect(),
            tokens: record.tokens.clone(),
            ids,
            uptime_ms: record.uptime_ms,
            keys,
            key_clock_ms: record.key_clock_ms,
            finished: record.finished,
            deltas: deltas(&record.chain),
        };
        self.known.insert(pipeline.clone(), known);
        Ok(opened)
    }

    fn checkpoint(
        &mut self,
        group: &mut Group,
        checkpoint: Checkpoint,
        answer: oneshot::Sender<Result<Recorded, StoreError>>,
    ) {
        let pipeline = checkpoint.pipeline.clone();
        let staged = match self.poison() {
            Some(poison) => Err(poison),
            None => self.stage_checkpoint(&mut group.changes, checkpoint),
        };
        match staged {
            Ok(recorded) => {
                group.answers.push(Pending::Recorded(answer, recorded));
                group.touched.push(pipeline);
            }
            Err(error) => reply(answer, Err(error)),
        }
    }

    fn stage_checkpoint(&mut self, changes: &mut Vec<Change>, checkpoint: Checkpoint) -> Result<Recorded, StoreError> {
        let Checkpoint { pipeline, generation, epoch, positions, forgotten, tokens, .. } = checkpoint;
        let known = self.known.get_mut(&pipeline);
        let current = known.as_ref().map(|known| known.record.generation).unwrap_or_default();
        let Some(known) = known.filter(|known| known.record.generation == generation) else {
            return Err(StoreError::Fenced { pipeline, generation, current });
        };
        let last = known.record.epoch;
        if epoch != last.next() {
            return Err(StoreError::NotNext { pipeline, epoch, last });
        }
        let delta = match checkpoint.snapshot {
            Some(ids) => {
                for (epoch, parts) in known.deltas.drain(..) {
                    write_parts(&delta_key(&pipeline, epoch), &[], parts, changes);
                }
                known.record.chain = Chain::default();
                Delta::Snapshot(ids)
            }
            None => {
                Delta::Change { stamp_ms: checkpoint.uptime_ms, added: checkpoint.added, removed: checkpoint.removed }
            }
        };
        known.write_delta(&pipeline, epoch, &delta, changes);
        known.write_keys(&pipeline, checkpoint.keys, changes);
        let record = &mut known.record;
        record.epoch = epoch;
        record.positions.extend(positions.into_iter().map(|(lane, at)| (lane.0.to_string(), at)));
        for lane in &forgotten {
            record.positions.remove(&*lane.0);
        }
        record.tokens = tokens;
        record.uptime_ms = checkpoint.uptime_ms;
        record.finished = checkpoint.finished;
        let recorded = Recorded { epoch, deltas: deltas(&record.chain) };
        if let Err(error) = known.write_record(&pipeline, changes) {
            // Cannot happen; but the delta is among the changes by now and must not be applied without its record.
            let reason: Arc<str> = error.to_string().into();
            self.failure.send_replace(Some(Arc::clone(&reason)));
            return Err(StoreError::Poisoned(reason));
        }
        Ok(recorded)
    }

    /// Makes the group durable and answers it; or poisons the store.
    fn commit(&mut self, group: &mut Group) {
        let Group { changes, answers, .. } = std::mem::take(group);
        if answers.is_empty() {
            return;
        }
        let written = match self.poison() {
            Some(_) => Ok(()),
            None => caught(|| write(self.disk.as_mut(), changes)),
        };
        if let Err(error) = written {
            tracing::error!("the state store failed: {error}");
            self.failure.send_replace(Some(error.to_string().into()));
        }
        let poison = self.poison();
        for pending in answers {
            match pending {
                Pending::Opened(answer, opened) => reply(answer, poison.clone().map_or(Ok(*opened), Err)),
                Pending::Recorded(answer, recorded) => reply(answer, poison.clone().map_or(Ok(recorded), Err)),
            }
        }
    }
}

/// Runs what asks the database, which may panic on a broken file.
pub(super) fn caught<T>(ask: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    catch_unwind(AssertUnwindSafe(ask))
        .unwrap_or_else(|panic| Err(format!("the database panicked: {}", words(panic.as_ref())).into()))
}

/// Only once all of this has returned is there a checkpoint.
pub(super) fn write(disk: &mut dyn Disk, changes: Vec<Change>) -> Result<(), DiskError> {
    fail_point!("store.before_apply");
    disk.apply(changes)?;
    fail_point!("store.after_apply");
    disk.flush()?;
    fail_point!("store.after_flush");
    disk.sync()?;
    fail_point!("store.after_sync");
    Ok(())
}

/// An asker that has gone away needs no answer.
fn reply<T>(answer: oneshot::Sender<T>, with: T) {
    drop(answer.send(with));
}

pub(super) fn deltas(chain: &Chain) -> Deltas {
    Deltas { count: chain.count, ids: chain.ids }
}

/// What a panic said.
pub(super) fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

impl Known {
    /// A state of which nothing is stored yet.
    pub(super) fn new(record: Record) -> Self {
        Self { record, record_parts: 0, deltas: Vec::new(), keys: KeyLog::default() }
    }

    /// Writes one more delta; it belongs to the record once that is written.
    pub(super) fn write_delta(
        &mut self,
        pipeline: &PipelineName,
        epoch: Epoch,
        delta: &Delta,
        changes: &mut Vec<Change>,
    ) {
        if delta.ids() > 0 {
            let (sealed, checksum) = seal(&delta.encode());
            let parts = write_parts(&delta_key(pipeline, epoch), &sealed, 0, changes);
            self.deltas.push((epoch, parts));
            self.record.chain.add(delta.ids(), checksum);
        }
    }

    /// Removes the keys whose window is over, and adds those of an epoch; they belong to the record once that is written.
    fn write_keys(&mut self, pipeline: &PipelineName, keys: Option<KeyChanges>, changes: &mut Vec<Change>) {
        self.record.keys_added = 0;
        match keys {
            Some(KeyChanges { added, clock_ms, window }) => {
                let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
                self.keys.expire(pipeline, clock_ms, window_ms, changes);
                self.keys.append(pipeline, &added, changes);
                self.record.keys_added = added.len() as u64;
                self.record.key_clock_ms = clock_ms;
            }
            None => self.keys.clear(pipeline, changes),
        }
        self.record.keys = self.keys.pages();
    }

    /// Writes `keys` in the place of all there are, likewise.
    pub(super) fn rewrite_keys(&mut self, pipeline: &PipelineName, keys: &[SeenKey], changes: &mut Vec<Change>) {
        self.keys.clear(pipeline, changes);
        self.keys.append(pipeline, keys, changes);
        self.record.keys_added = 0;
        self.record.keys = self.keys.pages();
    }

    /// Writes the record over the one that is stored.
    pub(super) fn write_record(
        &mut self,
        pipeline: &PipelineName,
        changes: &mut Vec<Change>,
    ) -> Result<(), serde_json::Error> {
        let (sealed, _) = seal(&serde_json::to_vec(&self.record)?);
        self.record_parts = write_parts(&record_key(pipeline), &sealed, self.record_parts, changes);
        Ok(())
    }
}

/// Reads a pipeline's state; `None` if there is none. Refuses whatever does not fit together.
pub(super) fn load(disk: &dyn Disk, pipeline: &PipelineName) -> Result<Option<Loaded>, DiskError> {
    let prefix = prefix(pipeline);
    let mut loading = Loading::default();
    disk.scan(&prefix, &mut |key, value| {
        let rest = key.get(prefix.len()..).unwrap_or_default();
        let (which, part) = split_key(rest).ok_or("a key of an unknown kind")?;
        if which != loading.which {
            loading.finish()?;
            loading.which = which.to_vec();
        }
        if part != loading.parts {
            return Err("a part of a value is missing".into());
        }
        loading.parts += 1;
        loading.sealed.extend(value);
        Ok(())
    })?;
    loading.finish()?;
    match loading.record {
        Some((record, _)) if record.chain != loading.chain => Err("some of its message ids are missing".into()),
        Some((record, _)) if record.keys != loading.key_log.pages() => {
            Err("some of its primary keys are missing".into())
        }
        Some((record, record_parts)) => {
            let known = Known { record, record_parts, deltas: loading.deltas, keys: loading.key_log };
            Ok(Some(Loaded { known, ids: loading.ids.into_iter().collect(), keys: loading.keys }))
        }
        None if loading.deltas.is_empty() && loading.keys.is_empty() => Ok(None),
        None => Err("its record is missing".into()),
    }
}

/// Reads the record alone, of a state that does not fit together.
pub(super) fn load_record(disk: &dyn Disk, pipeline: &PipelineName) -> Result<Option<Record>, DiskError> {
    let mut sealed = Vec::new();
    disk.scan(&record_key(pipeline), &mut |_, value| {
        sealed.extend(value);
        Ok(())
    })?;
    unseal(&sealed).map(|(body, _)| Ok(serde_json::from_slice(body)?)).transpose()
}

/// A state that is being read: the value whose parts are coming in, and what has been read before it.
#[derive(Default)]
struct Loading {
    which: Vec<u8>,
    parts: u32,
    sealed: Vec<u8>,
    record: Option<(Record, u32)>,
    deltas: Vec<(Epoch, u32)>,
    chain: Chain,
    ids: HashMap<Fingerprint, u64>,
    key_log: KeyLog,
    keys: Vec<SeenKey>,
}

impl Loading {
    /// Takes in the value whose parts have all been read.
    fn finish(&mut self) -> Result<(), DiskError> {
        let sealed = std::mem::take(&mut self.sealed);
        let parts = std::mem::take(&mut self.parts);
        match self.which.split_first() {
            Some((b'd', epoch)) => {
                let epoch = Epoch(u64::from_be_bytes(epoch.try_into()?));
                let (body, checksum) = unseal(&sealed).ok_or("the checksum of a delta is wrong")?;
                let delta = Delta::decode(body).ok_or("a delta cannot be read")?;
                self.chain.add(delta.ids(), checksum);
                self.deltas.push((epoch, parts));
                self.replay(delta);
            }
            Some((b'k', page)) => {
                let page = u64::from_be_bytes(page.try_into()?);
                let keys = self.key_log.load(page, &sealed).ok_or("a page of primary keys cannot be read")?;
                self.keys.extend_from_slice(keys);
            }
            Some(_) => {
                let (body, _) = unseal(&sealed).ok_or("the checksum of its record is wrong")?;
                self.record = Some((serde_json::from_slice(body)?, parts));
            }
            None => {}
        }
        Ok(())
    }

    fn replay(&mut self, delta: Delta) {
        match delta {
            Delta::Snapshot(ids) => self.ids = ids.into_iter().collect(),
            Delta::Change { stamp_ms, added, removed } => {
                for id in &removed {
                    self.ids.remove(id);
                }
                for id in added {
                    // The first stamp is the one that counts: it is when the id was disposed of.
                    if let Entry::Vacant(vacant) = self.ids.entry(id) {
                        vacant.insert(stamp_ms);
                    }
                }
            }
        }
    }
}
