//! A local MNS and CMQ: queues in memory, strict about signatures, with faults to order.
//!
//! MNS answers as recordings of the live service do, down to the order of elements, and counts exactly where the
//! live service counts roughly. CMQ, over HTTP and over TCP, answers as its documentation and its SDKs have it.
//! All services have the same queues: one that is made by either is there for both. Nothing survives its end.

mod cell;
mod cmq;
mod control;
mod faults;
mod log;
mod message;
mod mns;
mod orders;
mod page;
mod queue;
mod server;
mod state;
mod statistics;

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, sync::atomic::Ordering, time::Duration};

pub use faults::{FaultFlag, Faults, SWITCHES, Switch, Value};
use serde::Serialize;
use state::{State, lock};
pub use statistics::Statistics;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// What to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where MNS listens; port 0 takes a free one.
    pub mns: SocketAddr,
    /// Where CMQ listens for HTTP, its name server too; port 0 takes a free one. `None`: there is no CMQ.
    pub cmq: Option<SocketAddr>,
    /// Where CMQ listens for frames. `None`: on a free port of the address of [`Self::cmq`].
    pub cmq_tcp: Option<SocketAddr>,
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
    /// Whether to keep a record of every message that is sent, for as long as its queue is there.
    pub keep_log: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mns: SocketAddr::from(([127, 0, 0, 1], 0)),
            cmq: None,
            cmq_tcp: None,
            credentials: None,
            queues: Vec::new(),
            faults: Faults::default(),
            queue_faults: BTreeMap::new(),
            seed: 1,
            keep_log: false,
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
    mns: SocketAddr,
    cmq: Option<cmq::Addresses>,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<()>>,
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

/// Starts an emulator on the current tokio runtime. Fails if an address cannot be listened on.
pub async fn start(config: Config) -> io::Result<Emulator> {
    let listener = TcpListener::bind(config.mns).await?;
    let mns = listener.local_addr()?;
    let mut services = vec![("mns", format!("http://{mns}"))];
    let cmq = match config.cmq {
        Some(http) => Some(cmq::Listeners::bind(http, config.cmq_tcp).await?),
        None => None,
    };
    if let Some(cmq) = &cmq {
        services.push(("cmq", format!("http://{}", cmq.addresses.http)));
        services.push(("cmq tcp", cmq.addresses.tcp.to_string()));
    }
    let faults = (config.faults, config.queue_faults);
    let state = Arc::new(State::new(services, config.credentials, faults, config.seed, config.keep_log));
    for name in &config.queues {
        state.create(name, &message::Settings::default());
    }
    let (stop, stopped) = watch::channel(false);
    let mut servers = vec![tokio::spawn(mns::serve(listener, Arc::clone(&state), stopped.clone()))];
    let addresses = cmq.as_ref().map(|cmq| cmq.addresses);
    if let Some(cmq) = cmq {
        servers.extend(cmq.serve(&state, &stopped));
    }
    Ok(Emulator { mns, cmq: addresses, state, stop, servers })
}

impl Emulator {
    /// Where MNS listens.
    pub fn addr(&self) -> SocketAddr {
        self.mns
    }

    /// The endpoint of MNS as a definition writes it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.mns)
    }

    /// Where CMQ listens for HTTP, if it does.
    pub fn cmq_addr(&self) -> Option<SocketAddr> {
        self.cmq.map(|cmq| cmq.http)
    }

    /// Where CMQ listens for frames, if it does.
    pub fn cmq_tcp_addr(&self) -> Option<SocketAddr> {
        self.cmq.map(|cmq| cmq.tcp)
    }

    /// The name and the address of each service, such as `mns` and `http://127.0.0.1:9871`.
    pub fn services(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.state.services.iter().map(|(name, address)| (*name, address.as_str()))
    }

    /// Closes every connection, waiting polls too, and waits until all is down.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        for server in self.servers.drain(..) {
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
        self.state.clock.advance(by);
        for (_, cell) in self.state.cells() {
            cell.changed.notify_waiters();
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
