//! The TCP protocol: a connection to one of the addresses that a name server gives.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::sync::Mutex;

use super::{
    ClientOptions, Credentials, DeleteFailure, Delivery, connection::Connection, faults::fault_of_answer,
    name_server::NameServers,
};
use crate::{
    connectors::cmq::wire::{Class, CmqProto, class_of_answer, codes, proto::PulledMessage, requests},
    model::{Fault, FaultKind, Mend},
};

/// Addresses that are tried before a call fails. The next call asks for a new route, and tries them in another order.
pub(super) const MOST_TRIED: u32 = 4;

/// A client of one queue over TCP.
#[derive(Debug)]
pub struct TcpClient {
    name_servers: NameServers,
    queue: String,
    credentials: Credentials,
    /// What this client calls itself. Every process and pipeline has another name.
    instance: String,
    timeout: Duration,
    current: Mutex<Current>,
    /// Of the last send, from 1.
    send: AtomicU64,
}

#[derive(Debug, Default)]
struct Current {
    /// All calls share it.
    connection: Option<Arc<Connection>>,
    /// As last told.
    route: Vec<String>,
    /// When connecting failed last, and why.
    failed: Option<(Instant, Fault)>,
}

impl TcpClient {
    pub fn new(options: &ClientOptions) -> Result<Self, Fault> {
        Ok(Self {
            name_servers: NameServers::new(options)?,
            queue: options.queue.clone(),
            credentials: options.credentials.clone(),
            instance: format!("queuewarden-{:08x}", fastrand::u32(..)),
            timeout: options.request_timeout,
            current: Mutex::default(),
            send: AtomicU64::new(0),
        })
    }

    pub async fn connect(&self) -> Result<(), Fault> {
        self.connection().await.map(|_| ())
    }

    pub async fn receive(&self, most: usize, wait_seconds: u32) -> Result<Vec<Delivery>, Fault> {
        const OPERATION: &str = "receive";
        let (most, seconds) =
            (i32::try_from(most).unwrap_or(i32::MAX), i32::try_from(wait_seconds).unwrap_or(i32::MAX));
        let request = requests::batch_pull(&self.queue, most, seconds);
        let answer = self.call(OPERATION, request, Duration::from_secs(wait_seconds.into())).await?;
        match answer.class() {
            Class::NoMessage => Ok(Vec::new()),
            Class::Done => {
                let messages = answer.batch_pull_rsp.map(|pulled| pulled.msg_list).unwrap_or_default();
                messages.into_iter().map(delivery).collect()
            }
            _ => Err(answer.fault(OPERATION)),
        }
    }

    pub async fn delete(&self, handles: &[&str]) -> Result<Vec<DeleteFailure>, Fault> {
        const OPERATION: &str = "delete";
        let numbers =
            handles.iter().map(|handle| handle.parse()).collect::<Result<Vec<u64>, _>>().map_err(|error| {
                Fault::never(FaultKind::Bug, "delete: a handle that is no number never came over TCP").because(error)
            })?;
        let answer = self.call(OPERATION, requests::delete(&self.queue, &numbers), Duration::ZERO).await?;
        let failures = answer.del_result.iter().map(|failure| DeleteFailure {
            handle: failure.receipt_handle.to_string(),
            code: failure.err_code,
            message: failure.err_msg.clone(),
        });
        match answer.class() {
            Class::Done => Ok(failures.collect()),
            Class::InvalidHandle => Ok(super::all_failed(handles, answer.code(), answer.words())),
            Class::DeletesFailed => super::named(handles, failures.collect(), OPERATION, answer.code(), answer.words()),
            _ => Err(answer.fault(OPERATION)),
        }
    }

    pub async fn send(&self, bodies: &[Bytes]) -> Result<(), Fault> {
        const OPERATION: &str = "send";
        let number = self.send.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = self.call(OPERATION, requests::send(&self.queue, bodies.to_vec(), number), Duration::ZERO).await?;
        if answer.class() == Class::Done { Ok(()) } else { Err(answer.fault(OPERATION)) }
    }

    async fn call(&self, operation: &'static str, request: CmqProto, wait: Duration) -> Result<CmqProto, Fault> {
        let connection = self.connection().await.map_err(|fault| fault.of(operation))?;
        let answer = connection.call(request, self.timeout + wait).await.map_err(|fault| fault.of(operation))?;
        if answer.class() == Class::NotAuthenticated {
            // The next call connects and authenticates anew.
            let message = format!("{} does not know the connection as authenticated any more", connection.address());
            let fault = Fault::retry(FaultKind::Network, message);
            connection.close(fault.clone());
            return Err(fault.of(operation));
        }
        Ok(answer)
    }

    /// The connection, or a new one if it is broken. Whoever comes meanwhile waits for it, and has its fault if it fails:
    /// each in turn would take a multiple of its time, which is no trouble any more but a hang.
    async fn connection(&self) -> Result<Arc<Connection>, Fault> {
        let wanted = Instant::now();
        let mut current = self.current.lock().await;
        if let Some(connection) = current.connection.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Arc::clone(connection));
        }
        if let Some((_, fault)) = current.failed.as_ref().filter(|(failed, _)| *failed >= wanted) {
            return Err(fault.clone());
        }
        let connected = self.reconnect(&mut current).await;
        current.failed = connected.as_ref().err().map(|fault| (Instant::now(), fault.clone()));
        connected
    }

    async fn reconnect(&self, current: &mut Current) -> Result<Arc<Connection>, Fault> {
        let left = current.connection.take().map(|connection| connection.address().to_owned());
        match self.name_servers.route(&self.queue).await {
            Ok(route) => current.route = route,
            // What a name server says now may not be the last word; the addresses themselves are.
            Err(fault) if !current.route.is_empty() => {
                tracing::warn!(error = %fault, "no route now; the last one is tried");
            }
            Err(fault) => return Err(fault),
        }
        fastrand::shuffle(&mut current.route);
        // The one that was lost comes last.
        current.route.sort_by_key(|address| Some(address) == left.as_ref());
        let connection = Arc::new(self.connect_to_any(&current.route).await?);
        current.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }

    async fn connect_to_any(&self, route: &[String]) -> Result<Connection, Fault> {
        let mut failed = None;
        for address in route.iter().take(MOST_TRIED as usize) {
            match Connection::open(address, &self.credentials, &self.instance, self.timeout).await {
                Ok(connection) => return Ok(connection),
                Err(fault) if fault.mend == Mend::Never => return Err(fault),
                Err(fault) => {
                    if route.len() > 1 {
                        tracing::warn!(address, error = %fault, "an address is passed over");
                    }
                    failed.get_or_insert(fault);
                }
            }
        }
        Err(failed.unwrap_or_else(|| Fault::retry(FaultKind::Service, "the route has no address")))
    }
}

impl CmqProto {
    /// The result of an answer.
    pub(super) fn code(&self) -> i32 {
        self.result.unwrap_or(codes::OK)
    }

    /// The words to it.
    pub(super) fn words(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    fn class(&self) -> Class {
        class_of_answer(self.code(), self.words())
    }

    pub(super) fn fault(&self, operation: &'static str) -> Fault {
        let request = self.request_id.map(|id| id.to_string()).unwrap_or_default();
        fault_of_answer(operation, self.code(), self.words(), &request)
    }
}

fn delivery(message: PulledMessage) -> Result<Delivery, Fault> {
    let missing =
        |what| Fault::retry(FaultKind::Service, format!("receive: unreadable answer: a message without {what}"));
    let millis = |seconds: Option<i64>| seconds.map(|seconds| seconds.saturating_mul(1000));
    Ok(Delivery {
        id: message.msg_id.to_string(),
        handle: message.receipt_handle.ok_or_else(|| missing("receipt_handle"))?.to_string(),
        body: message.msg_body.unwrap_or_default(),
        enqueue_ms: millis(message.enqueue_time).unwrap_or_default(),
        first_dequeue_ms: millis(message.first_dequeue_time).unwrap_or_default(),
        next_visible_ms: millis(message.next_visible_time).ok_or_else(|| missing("next_visible_time"))?,
        dequeue_count: super::count(message.dequeue_count.unwrap_or_default()),
    })
}
