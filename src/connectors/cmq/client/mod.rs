//! A client of one queue, over either protocol.
//!
//! It never tries again by itself: its faults say whether trying again can help. Only to find a name server and an
//! address that answer, it asks one after the other.

mod connection;
#[cfg(test)]
mod fake;
mod faults;
mod http;
mod name_server;
mod options;
mod signed;
mod tcp;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub use self::options::{ClientOptions, Credentials, Transport};
use self::{http::HttpClient, tcp::TcpClient};
use super::wire::{codes, json::QueueAttributes};
use crate::model::{Fault, FaultKind};

/// A message that was received. Times are milliseconds since the epoch by the service's clock, which tells whole
/// seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The same at every delivery.
    pub id: String,
    /// What deletes this delivery.
    pub handle: String,
    /// The body.
    pub body: Bytes,
    /// When it was sent.
    pub enqueue_ms: i64,
    /// When it was delivered first; 0 where the service does not say.
    pub first_dequeue_ms: i64,
    /// When it will be delivered again.
    pub next_visible_ms: i64,
    /// How often it has been delivered; at least 1.
    pub dequeue_count: u32,
}

/// A delivery that was not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteFailure {
    /// The delivery.
    pub handle: String,
    /// Why, as [`super::wire::class_of_answer`] reads it.
    pub code: i32,
    /// Words to it.
    pub message: String,
}

/// A client of one queue. Cheap to clone; clones share connections. Calls may be under way at the same time.
#[derive(Debug, Clone)]
pub enum Client {
    /// Over TCP.
    Tcp(Arc<TcpClient>),
    /// Over HTTP.
    Http(Arc<HttpClient>),
}

impl Client {
    /// A client that connects at its first call.
    ///
    /// # Errors
    /// If the HTTP side cannot be set up.
    pub fn new(options: &ClientOptions) -> Result<Self, Fault> {
        Ok(match options.transport {
            Transport::Tcp => Self::Tcp(Arc::new(TcpClient::new(options)?)),
            Transport::Http => Self::Http(Arc::new(HttpClient::new(options)?)),
        })
    }

    /// Connects and asks for the queue's attributes. `None`: TCP has no such request.
    ///
    /// # Errors
    /// As the service answers; over TCP, if there is no route to the queue or none of its addresses takes us.
    pub async fn attributes(&self) -> Result<Option<QueueAttributes>, Fault> {
        match self {
            Self::Tcp(client) => client.connect().await.map(|()| None),
            Self::Http(client) => client.attributes().await.map(Some),
        }
    }

    /// Receives up to `most` (1 to 16) messages, waiting up to `wait_seconds` (0 to 30) for the first. An empty queue
    /// is an empty answer.
    ///
    /// # Errors
    /// As the service answers, or because it does not.
    pub async fn receive(&self, most: usize, wait_seconds: u32) -> Result<Vec<Delivery>, Fault> {
        match self {
            Self::Tcp(client) => client.receive(most, wait_seconds).await,
            Self::Http(client) => client.receive(most, wait_seconds).await,
        }
    }

    /// Deletes up to 16 deliveries; answers those that were *not* deleted.
    ///
    /// # Errors
    /// As the service answers, or because it does not: any of them may have been deleted then.
    pub async fn delete(&self, handles: &[&str]) -> Result<Vec<DeleteFailure>, Fault> {
        match self {
            Self::Tcp(client) => client.delete(handles).await,
            Self::Http(client) => client.delete(handles).await,
        }
    }

    /// Sends 1 to 16 bodies, each not empty.
    ///
    /// # Errors
    /// As the service answers, or because it does not: any of them may have been sent then. What is too large for the
    /// service, a body or all of them together, is [`crate::model::FaultKind::Poison`].
    pub async fn send(&self, bodies: &[Bytes]) -> Result<(), Fault> {
        match self {
            Self::Tcp(client) => client.send(bodies).await,
            Self::Http(client) => client.send(bodies).await,
        }
    }
}

/// A delete that failed as a whole because of its handles: none of them is confirmed.
fn all_failed(handles: &[&str], code: i32, message: &str) -> Vec<DeleteFailure> {
    let failure = |handle: &&str| DeleteFailure { handle: (*handle).to_owned(), code, message: message.to_owned() };
    handles.iter().map(failure).collect()
}

/// The failures of an answer that says there are some. Where it says that all failed, those that it does not name did too.
fn named(
    handles: &[&str],
    mut failures: Vec<DeleteFailure>,
    operation: &str,
    code: i32,
    message: &str,
) -> Result<Vec<DeleteFailure>, Fault> {
    if failures.is_empty() {
        let message = format!("{operation}: some or all failed, and the answer does not say which");
        return Err(Fault::retry(FaultKind::Service, message));
    }
    if codes::ALL_DELETES_FAILED.contains(&code) {
        let is_named = |handle: &&&str| failures.iter().any(|failure| failure.handle == **handle);
        let left: Vec<&str> = handles.iter().filter(|handle| !is_named(handle)).copied().collect();
        failures.extend(all_failed(&left, code, message));
    }
    Ok(failures)
}

/// How often a message has been delivered. Where the service says nothing of use, this is the first time.
fn count(told: i64) -> u32 {
    u32::try_from(told.max(1)).unwrap_or(u32::MAX)
}
