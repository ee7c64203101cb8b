//! What all services share: the queues, by name, the clock, and who may use them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{AccessKey, Faults, QueueReport, cell::QueueCell, message::Settings, queue::Queue};

/// The queues' clock.
#[derive(Debug, Default)]
pub(super) struct Clock {
    offset_ms: AtomicI64,
}

impl Clock {
    /// Lets so much pass at once.
    pub(super) fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.offset_ms.fetch_add(by, Ordering::SeqCst);
    }

    /// Epoch milliseconds.
    pub(super) fn now_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX).saturating_add(self.offset_ms.load(Ordering::SeqCst))
    }

    pub(super) fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(u64::try_from(self.now_ms()).unwrap_or(0))
    }
}

/// Everything connections share.
#[derive(Debug)]
pub(super) struct State {
    /// Where each service is, as the page shows it.
    pub services: Vec<(&'static str, String)>,
    pub credentials: Option<AccessKey>,
    pub clock: Clock,
    /// Whether every queue keeps a record of its messages.
    pub keeps_logs: bool,
    pub queues: RwLock<BTreeMap<String, Arc<QueueCell>>>,
    /// For all queues, and for single ones instead.
    pub faults: Mutex<(Faults, BTreeMap<String, Faults>)>,
    pub random: Mutex<fastrand::Rng>,
}

/// What a create found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Created {
    New,
    Same,
    Different,
}

impl State {
    pub(super) fn new(
        services: Vec<(&'static str, String)>,
        credentials: Option<AccessKey>,
        faults: (Faults, BTreeMap<String, Faults>),
        seed: u64,
        keeps_logs: bool,
    ) -> Self {
        Self {
            services,
            credentials,
            clock: Clock::default(),
            keeps_logs,
            queues: RwLock::default(),
            faults: Mutex::new(faults),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<QueueCell>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn create(&self, name: &str, settings: &Settings) -> Created {
        let now = self.clock.now_ms();
        let faults = {
            let faults = lock(&self.faults);
            *faults.1.get(name).unwrap_or(&faults.0)
        };
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = queues.get(name) {
            let same = lock(&cell.queue).has_settings(settings);
            return if same { Created::Same } else { Created::Different };
        }
        let seed = lock(&self.random).u64(..);
        let mut queue = Queue::new(settings, faults, seed, now);
        if self.keeps_logs {
            queue.keep_log();
        }
        queues.insert(name.to_owned(), Arc::new(QueueCell::new(queue)));
        Created::New
    }

    /// Removes a queue and tells everyone who waits on it. Whether there was one.
    pub(super) fn remove(&self, name: &str) -> bool {
        let removed = self.queues.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some(cell) = &removed {
            cell.close();
        }
        removed.is_some()
    }

    /// All queues, by name.
    pub(super) fn cells(&self) -> Vec<(String, Arc<QueueCell>)> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.iter().map(|(name, cell)| (name.clone(), Arc::clone(cell))).collect()
    }

    /// The switches of a queue, or those for all that have none of their own.
    pub(super) fn faults(&self, queue: Option<&str>) -> Faults {
        let all = lock(&self.faults);
        *queue.and_then(|queue| all.1.get(queue)).unwrap_or(&all.0)
    }

    /// Changes the switches of a queue, which from then on are its own, or of all that have none of their own.
    pub(super) fn change_faults(&self, queue: Option<&str>, act: impl FnOnce(&mut Faults)) {
        let mut all = lock(&self.faults);
        match queue {
            Some(queue) => {
                let for_all = all.0;
                act(all.1.entry(queue.to_owned()).or_insert(for_all));
            }
            None => act(&mut all.0),
        }
        self.put_in_force(&all);
    }

    /// From now on a queue has the switches for all.
    pub(super) fn forget_faults(&self, queue: &str) {
        let mut all = lock(&self.faults);
        all.1.remove(queue);
        self.put_in_force(&all);
    }

    fn put_in_force(&self, (for_all, own): &(Faults, BTreeMap<String, Faults>)) {
        for (name, cell) in self.queues.read().unwrap_or_else(PoisonError::into_inner).iter() {
            lock(&cell.queue).orders.faults = *own.get(name).unwrap_or(for_all);
        }
    }

    pub(super) fn report(&self) -> BTreeMap<String, QueueReport> {
        let now = self.clock.now_ms();
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.iter().map(|(name, cell)| (name.clone(), lock(&cell.queue).report(now))).collect()
    }
}

/// No code panics while it holds one of these locks, so a poisoned one is still whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
