//! One authenticated TCP connection, with any number of calls under way.
//!
//! A task of its own reads, writes and keeps the connection. When it ends, for whatever reason, every call that waits
//! fails at once. (The published SDK lets them wait out their time, and does not see that a connection is dead.)

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use super::Credentials;
use crate::{
    connectors::cmq::{
        signature::connection_text,
        wire::{Class, CmqProto, Command, class_of_answer, frame, proto::Auth, requests},
    },
    model::{Fault, FaultKind},
    telemetry::attributed_as_here,
};

/// After so long without a read or write the service is told that the connection is still wanted: as the Java client.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// Frames that wait to be written. A call whose frame finds no place waits for one, as long as for its answer.
const FRAMES: usize = 64;
/// What is read at once.
const READ: usize = 64 << 10;

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    frames: mpsc::Sender<Bytes>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Of the last request.
    seqno: i64,
    waiting: HashMap<i64, oneshot::Sender<CmqProto>>,
    /// Why there is no connection any more.
    broken: Option<Fault>,
    read: Instant,
    written: Instant,
}

/// A call that waits; it does not any more when this is dropped.
struct Waits<'a> {
    shared: &'a Shared,
    seqno: i64,
}

impl Connection {
    /// Connects and authenticates, each within `patience`. `instance`: what the client calls itself there.
    pub async fn open(
        address: &str,
        credentials: &Credentials,
        instance: &str,
        patience: Duration,
    ) -> Result<Self, Fault> {
        let connecting = timeout(patience, TcpStream::connect(address));
        let stream = connecting
            .await
            .map_err(|_| Fault::retry(FaultKind::Timeout, format!("{address} takes no connection in time")))?
            .map_err(|error| Fault::retry(FaultKind::Network, format!("cannot connect to {address}")).because(error))?;
        // Frames are whole; a failure only costs time.
        let _ = stream.set_nodelay(true);
        let ip = stream.local_addr().map_or_else(|_| "127.0.0.1".to_owned(), |local| local.ip().to_string());
        let (frames, waiting) = mpsc::channel(FRAMES);
        let shared = Arc::new(Shared::new(address));
        let task = tokio::spawn(attributed_as_here(run(Arc::clone(&shared), stream, waiting)));
        let connection = Self { shared, frames, task };
        connection.authenticate(credentials, format!("{ip}@{instance}"), patience).await?;
        Ok(connection)
    }

    async fn authenticate(
        &self,
        credentials: &Credentials,
        client_id: String,
        patience: Duration,
    ) -> Result<(), Fault> {
        const OPERATION: &str = "authenticate";
        let Credentials { secret_id, method, .. } = credentials;
        let signature = credentials.sign(&connection_text(&client_id, secret_id));
        let signature_method = method.name().to_owned();
        let auth = Auth { secret_id: secret_id.clone(), signature, client_id, signature_method };
        let answer = self.call(requests::authenticate(auth), patience).await.map_err(|fault| fault.of(OPERATION))?;
        match class_of_answer(answer.code(), answer.words()) {
            Class::Done | Class::AlreadyAuthenticated => Ok(()),
            _ => Err(answer.fault(OPERATION)),
        }
    }

    /// Where it is connected to.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Whether it can still be used.
    pub fn is_open(&self) -> bool {
        self.shared.state().broken.is_none()
    }

    /// Gives the connection up. Calls that wait fail with this.
    pub fn close(&self, why: Fault) {
        self.shared.broke(why);
        self.task.abort();
    }

    /// Sends a request and waits for its answer, of any result.
    pub async fn call(&self, request: CmqProto, patience: Duration) -> Result<CmqProto, Fault> {
        let begun = Instant::now();
        let (waits, answer) = self.shared.register()?;
        let frame = frame::encode(&CmqProto { seqno: waits.seqno, ..request });
        let answered = async {
            self.frames.send(frame).await.ok()?;
            answer.await.ok()
        };
        match timeout(patience, answered).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                let why = self.shared.why_broken();
                // Its task may have ended without a word.
                self.close(why.clone());
                Err(why)
            }
            Err(_) => {
                let fault =
                    Fault::retry(FaultKind::Timeout, format!("no answer from {} within {patience:?}", self.address()));
                // Nothing at all has come in since: most likely nothing ever will, and nobody says so.
                if self.shared.state().read < begun {
                    self.close(fault.clone());
                }
                Err(fault)
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn new(address: &str) -> Self {
        let now = Instant::now();
        let state = State { seqno: 0, waiting: HashMap::new(), broken: None, read: now, written: now };
        Self { address: address.to_owned(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self) -> Result<(Waits<'_>, oneshot::Receiver<CmqProto>), Fault> {
        let mut state = self.state();
        if let Some(fault) = &state.broken {
            return Err(fault.clone());
        }
        state.seqno += 1;
        let seqno = state.seqno;
        let (answer, answered) = oneshot::channel();
        state.waiting.insert(seqno, answer);
        Ok((Waits { shared: self, seqno }, answered))
    }

    /// From now on no call waits; the first reason stays.
    fn broke(&self, why: Fault) {
        let mut state = self.state();
        state.waiting.clear();
        state.broken.get_or_insert(why);
    }

    fn why_broken(&self) -> Fault {
        let unknown = || Fault::retry(FaultKind::Network, format!("the connection to {} ended", self.address));
        self.state().broken.clone().unwrap_or_else(unknown)
    }

    /// Hands an answer to its call. One that nobody waits for any more is dropped, as are answers to heartbeats and what
    /// the service asks by itself about transactions, which are not used.
    fn answered(&self, answer: CmqProto) {
        let unasked = [Command::Heartbeat, Command::ConfirmTransaction, Command::QueryTransaction];
        if unasked.iter().any(|command| command.number() == answer.cmd) {
            return;
        }
        if let Some(call) = self.state().waiting.remove(&answer.seqno) {
            // It may have been given up just now.
            let _ = call.send(answer);
        }
    }

    fn heartbeat_at(&self) -> Instant {
        let state = self.state();
        state.read.max(state.written) + HEARTBEAT
    }

    fn heartbeat(&self) -> Bytes {
        let mut state = self.state();
        state.seqno += 1;
        frame::encode(&CmqProto { seqno: state.seqno, ..requests::heartbeat() })
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.shared.state().waiting.remove(&self.seqno);
    }
}

async fn run(shared: Arc<Shared>, stream: TcpStream, frames: mpsc::Receiver<Bytes>) {
    let (read, write) = stream.into_split();
    let why = tokio::select! {
        why = receive(&shared, read) => why,
        why = send(&shared, write, frames) => why,
    };
    shared.broke(why);
}

async fn receive(shared: &Shared, mut read: OwnedReadHalf) -> Fault {
    let address = &shared.address;
    let mut received = BytesMut::with_capacity(READ);
    loop {
        received.reserve(READ);
        match read.read_buf(&mut received).await {
            Ok(0) => return Fault::retry(FaultKind::Network, format!("{address} closed the connection")),
            Ok(_) => shared.state().read = Instant::now(),
            Err(error) => {
                return Fault::retry(FaultKind::Network, format!("the connection to {address} broke")).because(error);
            }
        }
        loop {
            match frame::decode(&mut received) {
                Ok(Some(answer)) => shared.answered(answer),
                Ok(None) => break,
                Err(error) => {
                    let fault = Fault::retry(FaultKind::Service, format!("{address} sent what is no frame"));
                    return fault.because(error);
                }
            }
        }
    }
}

async fn send(shared: &Shared, mut write: OwnedWriteHalf, mut frames: mpsc::Receiver<Bytes>) -> Fault {
    let address = &shared.address;
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => match frame {
                Some(frame) => frame,
                None => return Fault::retry(FaultKind::Network, format!("the connection to {address} was given up")),
            },
            () = sleep_until(shared.heartbeat_at()) => {
                if shared.heartbeat_at() > Instant::now() {
                    continue;
                }
                shared.heartbeat()
            }
        };
        if let Err(error) = write.write_all(&frame).await {
            return Fault::retry(FaultKind::Network, format!("the connection to {address} broke")).because(error);
        }
        shared.state().written = Instant::now();
    }
}
