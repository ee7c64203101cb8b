//! What one pipeline's actors report of themselves, for `/api/pipelines`. Written by actors, read by anyone.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use prometheus::IntGauge;

use super::PipelineMetrics;
use crate::model::{Epoch, Fault, LaneId};

/// A call that may be tried again; of which lane, where a source has several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operation {
    /// Such as `poll`; a value of the metric label `operation`.
    pub name: &'static str,
    /// `None`: not of one lane.
    pub lane: Option<LaneId>,
}

impl From<&'static str> for Operation {
    fn from(name: &'static str) -> Self {
        Self { name, lane: None }
    }
}

impl Operation {
    /// Of one lane of several.
    pub fn of(name: &'static str, lane: &LaneId) -> Self {
        Self { name, lane: Some(lane.clone()) }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lane {
            Some(lane) => write!(f, "{} of lane {lane}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// The last checkpoint that became durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpointed {
    /// Its number.
    pub epoch: Epoch,
    /// When.
    pub at: SystemTime,
}

/// Metrics of a pipeline and what else a status shows.
pub struct Vitals {
    /// Counters and gauges.
    pub metrics: PipelineMetrics,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    troubles: BTreeMap<Operation, String>,
    checkpointed: Option<Checkpointed>,
    lanes: BTreeMap<LaneId, LaneVitals>,
    positions: BTreeMap<LaneId, u64>,
}

/// How far a lane is read. Written by its reader without a lock.
#[derive(Clone)]
pub struct LaneVitals(Arc<LaneProgress>);

struct LaneProgress {
    position: AtomicU64,
    lag: OnceLock<IntGauge>,
    metrics: PipelineMetrics,
    lane: LaneId,
}

/// How far a lane was read when someone looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneProgressed {
    /// Which.
    pub lane: LaneId,
    /// The position of what is read next.
    pub position: u64,
    /// How many messages of the lane are behind it; `None`: the service has not said.
    pub behind: Option<u64>,
}

impl LaneVitals {
    /// Everything before `position` has been handed on; so many messages are known to be `behind` it.
    pub fn read(&self, position: u64, behind: Option<u64>) {
        self.0.position.store(position, Ordering::Relaxed);
        if let Some(behind) = behind {
            let lag = self.0.lag.get_or_init(|| self.0.metrics.lane_lag(&self.0.lane));
            lag.set(i64::try_from(behind).unwrap_or(i64::MAX));
        }
    }

    fn progressed(&self) -> LaneProgressed {
        LaneProgressed {
            lane: self.0.lane.clone(),
            position: self.0.position.load(Ordering::Relaxed),
            behind: self.0.lag.get().and_then(|lag| u64::try_from(lag.get()).ok()),
        }
    }
}

impl Vitals {
    /// Nothing reported yet.
    pub fn new(metrics: PipelineMetrics) -> Self {
        Self { metrics, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Plain data: whoever panicked while holding the lock left nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation (such as `poll`) fails and is being tried again: the pipeline is Degraded, and says why.
    pub fn trouble(&self, operation: &Operation, fault: &Fault) {
        self.metrics.retry(operation.name, fault.kind);
        self.inner().troubles.insert(operation.clone(), fault.to_string());
    }

    /// The operation works again, or nobody tries it any more. Answers whether it was in trouble.
    pub fn mended(&self, operation: &Operation) -> bool {
        self.inner().troubles.remove(operation).is_some()
    }

    /// Whether the operation is in trouble.
    pub fn is_in_trouble(&self, operation: &Operation) -> bool {
        self.inner().troubles.contains_key(operation)
    }

    /// Whether one of these operations is in trouble.
    pub fn is_retrying(&self, operations: &[&str]) -> bool {
        self.inner().troubles.keys().any(|operation| operations.contains(&operation.name))
    }

    /// A generation ends, and with it its troubles, its lanes, and what it waited for.
    pub fn generation_ended(&self) {
        let lanes = {
            let mut inner = self.inner();
            inner.troubles.clear();
            std::mem::take(&mut inner.lanes)
        };
        for lane in lanes.keys() {
            self.metrics.lane_gone(lane);
        }
        self.metrics.lanes.set(0);
        self.metrics.unacknowledged.set(0);
        self.metrics.rate_limited.set(0);
    }

    /// A lane is read from now on, from this position.
    pub fn lane(&self, lane: &LaneId, position: u64) -> LaneVitals {
        let progress = LaneProgress {
            position: AtomicU64::new(position),
            lag: OnceLock::new(),
            metrics: self.metrics.clone(),
            lane: lane.clone(),
        };
        let vitals = LaneVitals(Arc::new(progress));
        let mut inner = self.inner();
        inner.lanes.insert(lane.clone(), vitals.clone());
        self.metrics.lanes.set(i64::try_from(inner.lanes.len()).unwrap_or(i64::MAX));
        vitals
    }

    /// A lane is not read any more.
    pub fn lane_gone(&self, lane: &LaneId) {
        let mut inner = self.inner();
        inner.lanes.remove(lane);
        self.metrics.lanes.set(i64::try_from(inner.lanes.len()).unwrap_or(i64::MAX));
        self.metrics.lane_gone(lane);
    }

    /// The lanes that are read now.
    pub fn lanes(&self) -> Vec<LaneProgressed> {
        self.inner().lanes.values().map(LaneVitals::progressed).collect()
    }

    /// The store holds these positions.
    pub fn stored(&self, positions: BTreeMap<LaneId, u64>) {
        self.inner().positions = positions;
    }

    /// The positions the store holds, also while no generation runs.
    pub fn positions(&self) -> BTreeMap<LaneId, u64> {
        self.inner().positions.clone()
    }

    /// What is being retried now, as `operation: reason`.
    pub fn troubles(&self) -> Vec<String> {
        self.inner().troubles.iter().map(|(operation, reason)| format!("{operation}: {reason}")).collect()
    }

    /// Records a durable checkpoint.
    pub fn checkpointed(&self, epoch: Epoch, seconds: f64) {
        let at = SystemTime::now();
        self.metrics.checkpoints.inc();
        self.metrics.checkpoint_seconds.observe(seconds);
        self.metrics.epoch.set(i64::try_from(epoch.0).unwrap_or(i64::MAX));
        let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.metrics.checkpoint_time.set(i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX));
        self.inner().checkpointed = Some(Checkpointed { epoch, at });
    }

    /// The last durable checkpoint of this process.
    pub fn last_checkpoint(&self) -> Option<Checkpointed> {
        self.inner().checkpointed
    }
}
