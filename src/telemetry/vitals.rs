//! What one pipeline's actors report of themselves, for `/api/pipelines`. Written by actors, read by anyone.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::PipelineMetrics;
use crate::model::{Epoch, Fault};

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
    troubles: BTreeMap<&'static str, String>,
    checkpointed: Option<Checkpointed>,
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
    pub fn trouble(&self, operation: &'static str, fault: &Fault) {
        self.metrics.retry(operation, fault.kind);
        self.inner().troubles.insert(operation, fault.to_string());
    }

    /// The operation works again. Answers whether it was in trouble.
    pub fn mended(&self, operation: &'static str) -> bool {
        self.inner().troubles.remove(operation).is_some()
    }

    /// Whether one of these operations is in trouble.
    pub fn is_retrying(&self, operations: &[&str]) -> bool {
        self.inner().troubles.keys().any(|operation| operations.contains(operation))
    }

    /// A generation ends: its troubles end with it.
    pub fn clear_troubles(&self) {
        self.inner().troubles.clear();
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
