//! The state directory of a supervisor that does not run: looking at it, and changing it on request.
//!
//! Every change is one batch, flushed and synced as a checkpoint is. Everything here blocks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    dir::{OpenError, open_stopped},
    disk::{Change, Disk, DiskError, SledDisk},
    layout::{Delta, Record, epoch_of, owner, prefix},
    store::{Deltas, StoreError},
    worker::{Known, Loaded, caught, deltas, load, load_record, write},
};
use crate::model::{Epoch, Generation, PipelineName, SourceIdentity, Token, nearest};

/// An opened state directory that no supervisor uses. Holds the lock until it is dropped.
pub struct Stopped {
    dir: PathBuf,
    disk: SledDisk,
    /// Dropped after the database has been closed.
    _lock: File,
}

/// Everything stored of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it reads; `None` after a reset, until the pipeline starts again.
    pub source: Option<SourceIdentity>,
    /// Its last generation.
    pub generation: Generation,
    /// Its last recorded epoch.
    pub epoch: Epoch,
    /// The next position of each lane.
    pub positions: BTreeMap<String, u64>,
    /// What the last epoch prepared and is not known to be committed.
    pub tokens: Vec<Token>,
    /// How many message ids are kept.
    pub ids: usize,
    /// How many primary keys are kept, those included whose window is over and that were not taken away yet.
    pub keys: usize,
    /// How long processes that ran it have been up in all, in milliseconds.
    pub uptime_ms: u64,
    /// Whether it has finished for good.
    pub finished: bool,
    /// What the ids take.
    pub deltas: Deltas,
}

/// A pipeline in the list: its state, or what is wrong with it.
pub type Entry = (PipelineName, Result<Stored, StoppedError>);

/// What a reset has forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// What was known; `None` if it was damaged.
    pub stored: Option<Stored>,
    /// What the record of a damaged state named as prepared: discarded when the pipeline starts.
    pub tokens: Vec<Token>,
    /// Where generations go on counting.
    pub generation: Generation,
    /// Where epochs go on counting.
    pub epoch: Epoch,
}

/// Why a stopped state directory did not do what it was asked to. Nothing has been changed, unless said so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoppedError {
    /// There is no state of that name.
    #[error(
        "there is no state of a pipeline {name} in {}{}", dir.display(),
        nearest.as_ref().map_or_else(
            || "; `queuewarden state list` shows those there are".to_owned(),
            |name| format!("; did you mean `{name}`?")
        )
    )]
    Unknown {
        /// The name asked for.
        name: PipelineName,
        /// A name there is that resembles it.
        nearest: Option<String>,
        /// The directory.
        dir: PathBuf,
    },
    /// The state cannot be read.
    #[error(transparent)]
    Damaged(StoreError),
    /// Output is prepared whose commit is not known.
    #[error(
        "pipeline {name} has prepared output that is not known to be committed ({}); start the supervisor and stop it \
         again with SIGTERM, which commits it; or, if that output is gone for good, run `queuewarden state settle {name}`",
        named(tokens)
    )]
    Pending {
        /// Whose.
        name: PipelineName,
        /// What was prepared.
        tokens: Vec<Token>,
    },
    /// The new name has a state.
    #[error(
        "there is a state of a pipeline {name} already; `queuewarden state rename {name} OTHER` moves it out of the way"
    )]
    Taken {
        /// The new name.
        name: PipelineName,
    },
    /// The database as a whole cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A write, flush or sync failed. Whether the change was made will be seen at the next look.
    #[error("the state store failed: {0}")]
    Failed(String),
}

fn named(tokens: &[Token]) -> String {
    tokens.iter().map(|token| format!("{}: {}", token.sink, token.content)).collect::<Vec<_>>().join("; ")
}

impl Stopped {
    /// Takes the lock and opens the database. Creates nothing.
    ///
    /// # Errors
    /// [`OpenError::Missing`], and as [`super::StateDir::open`].
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let (dir, disk, lock) = open_stopped(dir)?;
        Ok(Self { dir, disk, _lock: lock })
    }

    /// Every pipeline that has a state, by name.
    ///
    /// # Errors
    /// [`StoppedError::Unreadable`]
    pub fn list(&self) -> Result<Vec<Entry>, StoppedError> {
        Ok(self.names()?.into_iter().map(|name| (name.clone(), self.show(&name))).collect())
    }

    /// The state of one pipeline.
    ///
    /// # Errors
    /// [`StoppedError::Unknown`], [`StoppedError::Damaged`], [`StoppedError::Unreadable`]
    pub fn show(&self, name: &PipelineName) -> Result<Stored, StoppedError> {
        self.load(name).map(stored)
    }

    /// Forgets everything of a pipeline but where its generations and epochs stand: they are part of the names of
    /// files that may still be there, or anywhere their readers have moved them to. Works on a damaged state too.
    ///
    /// # Errors
    /// [`StoppedError::Unknown`], [`StoppedError::Pending`] (not if the state is damaged: then nothing else can settle
    /// it, and since its ids are forgotten with it, messages that are not deleted are written again),
    /// [`StoppedError::Unreadable`], [`StoppedError::Failed`]
    pub fn reset(&mut self, name: &PipelineName) -> Result<Forgotten, StoppedError> {
        let (stored, tokens, generation, epoch) = match self.show(name) {
            Ok(stored) if !stored.tokens.is_empty() => {
                return Err(StoppedError::Pending { name: name.clone(), tokens: stored.tokens });
            }
            Ok(stored) => (Some(stored.clone()), Vec::new(), stored.generation, stored.epoch),
            Err(StoppedError::Damaged(_)) => {
                let (tokens, generation, epoch) = match caught(|| load_record(&self.disk, name)).ok().flatten() {
                    Some(record) => (record.tokens, record.generation, record.epoch),
                    None => (Vec::new(), beyond(), self.last_delta(name)?),
                };
                (None, tokens, generation, epoch)
            }
            Err(error) => return Err(error),
        };
        let mut changes: Vec<Change> = self.entries(name)?.into_keys().map(|key| Change { key, value: None }).collect();
        let record_left = Record { generation, epoch, ..Record::default() };
        Known::new(record_left).write_record(name, &mut changes).map_err(|error| failed(&error.into()))?;
        self.write(changes)?;
        Ok(Forgotten { stored, tokens, generation, epoch })
    }

    /// Gives the state of `old` to a pipeline `new`, whole or not at all.
    ///
    /// # Errors
    /// [`StoppedError::Unknown`], [`StoppedError::Damaged`], [`StoppedError::Taken`], [`StoppedError::Pending`] (what
    /// is prepared lies in a folder of the old name), [`StoppedError::Unreadable`], [`StoppedError::Failed`]
    pub fn rename(&mut self, old: &PipelineName, new: &PipelineName) -> Result<(), StoppedError> {
        let known = self.load(old)?.known;
        if !self.entries(new)?.is_empty() {
            return Err(StoppedError::Taken { name: new.clone() });
        }
        if !known.record.tokens.is_empty() {
            return Err(StoppedError::Pending { name: old.clone(), tokens: known.record.tokens });
        }
        let (before, after) = (prefix(old).len(), prefix(new));
        let mut changes = Vec::new();
        for (key, value) in self.entries(old)? {
            let moved = after.iter().chain(key.get(before..).unwrap_or_default()).copied().collect();
            changes.push(Change { key: moved, value: Some(value) });
            changes.push(Change { key, value: None });
        }
        self.write(changes)
    }

    /// Gives up what the last epoch prepared: nothing will commit it. With `again`, the ids and the primary keys of that
    /// epoch are forgotten too, so that those of its messages which are not deleted yet are written again. Answers how
    /// many ids that were. Nothing is done if nothing is pending.
    ///
    /// # Errors
    /// [`StoppedError::Unknown`], [`StoppedError::Damaged`], [`StoppedError::Unreadable`], [`StoppedError::Failed`]
    pub fn settle(&mut self, name: &PipelineName, again: bool) -> Result<usize, StoppedError> {
        let Loaded { mut known, ids, keys } = self.load(name)?;
        if known.record.tokens.is_empty() {
            return Ok(0);
        }
        // Every id that the last epoch added has its stamp, in a delta and in a snapshot.
        let stamp_ms = known.record.uptime_ms;
        let last = ids.into_iter().filter(|(_, stamp)| again && *stamp == stamp_ms).map(|(id, _)| id);
        let delta = Delta::Change { stamp_ms, added: Vec::new(), removed: last.collect() };
        known.record.tokens.clear();
        known.record.epoch = known.record.epoch.next();
        let mut changes = Vec::new();
        let epoch = known.record.epoch;
        known.write_delta(name, epoch, &delta, &mut changes);
        if again {
            // Those that the last epoch added are the last ones.
            let added = usize::try_from(known.record.keys_added).unwrap_or(usize::MAX);
            let kept = keys.len().saturating_sub(added);
            known.rewrite_keys(name, keys.get(..kept).unwrap_or_default(), &mut changes);
        }
        known.write_record(name, &mut changes).map_err(|error| failed(&error.into()))?;
        self.write(changes)?;
        Ok(delta.ids())
    }

    fn load(&self, name: &PipelineName) -> Result<Loaded, StoppedError> {
        match caught(|| load(&self.disk, name)) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let names = self.names()?;
                let nearest = nearest(name.as_str(), names.iter().map(PipelineName::as_str)).map(str::to_owned);
                Err(StoppedError::Unknown { name: name.clone(), nearest, dir: self.dir.clone() })
            }
            Err(error) => {
                let (pipeline, reason) = (name.clone(), error.to_string());
                Err(StoppedError::Damaged(StoreError::Damaged { pipeline, reason }))
            }
        }
    }

    fn names(&self) -> Result<BTreeSet<PipelineName>, StoppedError> {
        let mut names = BTreeSet::new();
        let scanned = caught(|| {
            self.disk.scan(b"p", &mut |key, _| {
                names.insert(owner(key).ok_or("a key of an unknown kind")?);
                Ok(())
            })
        });
        scanned.map_err(|error| self.unreadable(&error)).map(|()| names)
    }

    /// Every entry of a pipeline.
    fn entries(&self, name: &PipelineName) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, StoppedError> {
        let mut entries = BTreeMap::new();
        let scanned = caught(|| {
            self.disk.scan(&prefix(name), &mut |key, value| {
                entries.insert(key.to_vec(), value.to_vec());
                Ok(())
            })
        });
        scanned.map_err(|error| self.unreadable(&error)).map(|()| entries)
    }

    /// The last epoch that there is a trace of, where the record that counted them is lost.
    fn last_delta(&self, name: &PipelineName) -> Result<Epoch, StoppedError> {
        let entries = self.entries(name)?;
        let epochs = entries.keys().filter_map(|key| epoch_of(key.get(prefix(name).len()..)?));
        Ok(epochs.max().unwrap_or_default())
    }

    fn unreadable(&self, error: &DiskError) -> StoppedError {
        let error = OpenError::Unreadable { dir: self.dir.clone(), reason: error.to_string() };
        StoppedError::Unreadable(error.to_string())
    }

    fn write(&mut self, changes: Vec<Change>) -> Result<(), StoppedError> {
        caught(|| write(&mut self.disk, changes)).map_err(|error| failed(&error))
    }
}

/// A generation that no file is of, where the record that counted them is lost: no pipeline has been started as many
/// times as there were seconds since 1970.
fn beyond() -> Generation {
    Generation(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs())
}

fn failed(error: &DiskError) -> StoppedError {
    StoppedError::Failed(error.to_string())
}

fn stored(Loaded { known, ids, keys }: Loaded) -> Stored {
    let (record, keys) = (known.record, keys.len());
    let deltas = deltas(&record.chain);
    let Record { source, generation, epoch, positions, tokens, uptime_ms, finished, .. } = record;
    Stored { source, generation, epoch, positions, tokens, ids: ids.len(), keys, uptime_ms, finished, deltas }
}
