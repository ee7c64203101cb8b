//! A local MNS: queues in memory, served over HTTP, strict about signatures, with faults to order.
//!
//! It answers as recordings of the live service do, down to the order of elements, and counts exactly where the
//! live service counts roughly. Nothing survives its end.

mod access;
mod control;
mod faults;
mod operations;
mod orders;
mod page;
mod queue;
mod receipt;
mod server;
mod statistics;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub use faults::{FaultFlag, Faults, SWITCHES, Switch, Value};
use queue::Queue;
use serde::Serialize;
pub use statistics::Statistics;
use tokio::{net::TcpListener, sync::Notify, sync::watch, task::JoinHandle};

use crate::connectors::mns::wire::QueueSettings;

/// What to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub mns: SocketAddr,
    /// The one access key that may sign. `None`: signatures are not looked at.
    pub credentials: Option<AccessKey>,
    /// Queues that are there from the beginning, with the service's default settings.
    pub queues: Vec<String>,
    /// Faults of every queue, later ones too.
    pub faults: Faults,
    /// Faults of single queues instead.
    pub queue_faults: BTreeMap<String, Faults>,
    /// Seed of what is random in faults.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mns: SocketAddr::from(([127, 0, 0, 1], 0)),
            credentials: None,
            queues: Vec::new(),
            faults: Faults::default(),
            queue_faults: BTreeMap::new(),
            seed: 1,
        }
    }
}

/// An access key. Its secret is never shown.
#[derive(Clone)]
pub struct AccessKey {
    /// The id.
    pub id: String,
    /// The secret.
    pub secret: String,
}

impl std::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A running emulator. Dropping it ends it, too, but does not wait.
#[derive(Debug)]
pub struct Emulator {
    addr: SocketAddr,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

/// What a queue holds and has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct QueueReport {
    /// Messages that can be received.
    pub active: u64,
    /// Messages received and not deleted, invisible for now.
    pub inactive: u64,
    /// Messages whose delay has not run out.
    pub delayed: u64,
    /// What has happened since the queue was made.
    #[serde(flatten)]
    pub statistics: Statistics,
}

/// Starts an emulator on the current tokio runtime. Fails if the address cannot be listened on.
pub async fn start(config: Config) -> io::Result<Emulator> {
    let listener = TcpListener::bind(config.mns).await?;
    let addr = listener.local_addr()?;
    let state = Arc::new(State {
        host: format!("http://{addr}"),
        credentials: config.credentials,
        clock: Clock::default(),
        queues: RwLock::default(),
        faults: Mutex::new((config.faults, config.queue_faults)),
        random: Mutex::new(fastrand::Rng::with_seed(config.seed)),
    });
    for name in &config.queues {
        state.create(name, &QueueSettings::default());
    }
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(server::serve(listener, Arc::clone(&state), stopped));
    Ok(Emulator { addr, state, stop, server: Some(server) })
}

impl Emulator {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The endpoint as a definition writes it.
    pub fn endpoint(&self) -> String {
        self.state.host.clone()
    }

    /// Closes every connection, waiting polls too, and waits until all is down.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Some(server) = self.server.take() {
            // A join error would be a panic, which the panic hook has already told of.
            let _ = server.await;
        }
    }

    /// Sets the switches: of one queue, which may come later, or of all that have none of their own.
    pub fn set_faults(&self, queue: Option<&str>, faults: Faults) {
        self.state.change_faults(queue, |all| *all = faults);
    }

    /// What every queue holds and has done.
    pub fn stats(&self) -> BTreeMap<String, QueueReport> {
        self.state.report()
    }

    /// Returns once at least `polls` receives wait on a queue. Tests use it to be sure of an order of events.
    pub async fn waits_for_polls(&self, queue: &str, polls: usize) {
        while self.state.find(queue).is_none_or(|cell| cell.polls.load(Ordering::SeqCst) < polls) {
            tokio::task::yield_now().await;
        }
    }

    /// Lets `by` pass on the queues' clock at once: visibility timeouts, delays and retentions run out. The clock
    /// that signatures are checked against is left alone.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.state.clock.offset_ms.fetch_add(by, Ordering::SeqCst);
        for cell in self.state.queues.read().unwrap_or_else(PoisonError::into_inner).values() {
            cell.changed.notify_waiters();
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// The queues' clock.
#[derive(Debug, Default)]
struct Clock {
    offset_ms: AtomicI64,
}

impl Clock {
    /// Epoch milliseconds.
    fn now_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX).saturating_add(self.offset_ms.load(Ordering::SeqCst))
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(u64::try_from(self.now_ms()).unwrap_or(0))
    }
}

/// A queue and what wakes the polls that wait on it.
#[derive(Debug)]
struct QueueCell {
    queue: Mutex<Queue>,
    changed: Notify,
    /// Receives that wait now.
    polls: AtomicUsize,
}

/// Everything connections share.
#[derive(Debug)]
struct State {
    host: String,
    credentials: Option<AccessKey>,
    clock: Clock,
    queues: RwLock<BTreeMap<String, Arc<QueueCell>>>,
    /// For all queues, and for single ones instead.
    faults: Mutex<(Faults, BTreeMap<String, Faults>)>,
    random: Mutex<fastrand::Rng>,
}

/// What a create found.
#[derive(Debug, PartialEq, Eq)]
enum Created {
    New,
    Same,
    Different,
}

impl State {
    fn find(&self, name: &str) -> Option<Arc<QueueCell>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn create(&self, name: &str, settings: &QueueSettings) -> Created {
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
        let queue = Mutex::new(Queue::new(settings, faults, seed, now));
        queues
            .insert(name.to_owned(), Arc::new(QueueCell { queue, changed: Notify::new(), polls: AtomicUsize::new(0) }));
        Created::New
    }

    /// The switches of a queue, or those for all that have none of their own.
    fn faults(&self, queue: Option<&str>) -> Faults {
        let all = lock(&self.faults);
        *queue.and_then(|queue| all.1.get(queue)).unwrap_or(&all.0)
    }

    /// Changes the switches of a queue, which from then on are its own, or of all that have none of their own.
    fn change_faults(&self, queue: Option<&str>, act: impl FnOnce(&mut Faults)) {
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
    fn forget_faults(&self, queue: &str) {
        let mut all = lock(&self.faults);
        all.1.remove(queue);
        self.put_in_force(&all);
    }

    fn put_in_force(&self, (for_all, own): &(Faults, BTreeMap<String, Faults>)) {
        for (name, cell) in self.queues.read().unwrap_or_else(PoisonError::into_inner).iter() {
            lock(&cell.queue).orders.faults = *own.get(name).unwrap_or(for_all);
        }
    }

    fn report(&self) -> BTreeMap<String, QueueReport> {
        let now = self.clock.now_ms();
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.iter().map(|(name, cell)| (name.clone(), lock(&cell.queue).report(now))).collect()
    }
}

/// No code panics while it holds one of these locks, so a poisoned one is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
