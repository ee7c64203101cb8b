//! A message as a reader hands it on.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

/// One message received from a source.
#[derive(Debug, Clone)]
pub struct Message {
    /// The service's id of the message; the same at every delivery.
    pub id: Arc<str>,
    /// The body, with the transport's own encoding (base64) already removed.
    pub body: Body,
    /// Values of the connector's metadata columns, in the order in which the connector declares them.
    pub meta: Vec<MetaValue>,
    /// What acknowledges this delivery; none where the source is acknowledged by position.
    pub receipt: Option<Receipt>,
}

/// What a message carries.
#[derive(Debug, Clone)]
pub enum Body {
    /// Bytes for the format.
    Bytes(Bytes),
    /// The transport's encoding is broken; the reason. An `on_error` case like a body that does not decode.
    Broken(String),
    /// Left out by an option of the source (such as `startTimeMs`), which it names: no row, but acknowledged and counted.
    Filtered(&'static str),
}

/// A value of a metadata column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetaValue {
    /// STRING
    Text(Arc<str>),
    /// INT or BIGINT
    Integer(i64),
    /// TIMESTAMP or TIMESTAMP_LTZ: milliseconds since the epoch, UTC
    Millis(i64),
    /// No value.
    Null,
}

/// What the service wants back to acknowledge one delivery of a message ("receipt handle").
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The service's opaque handle.
    pub handle: Arc<str>,
    /// When the service will deliver the message again: epoch milliseconds by the *service's* clock.
    pub next_visible_ms: i64,
    /// How often the message has been delivered, this delivery included; at least 1.
    pub dequeue_count: u32,
    /// How long, from the moment the answer came in, this delivery stays invisible to others.
    pub invisible_for: Duration,
}

impl Receipt {
    /// Whether `self` supersedes `other` for the same message. Concurrent polls may answer out of order, so
    /// the later visibility wins, then the higher dequeue count.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.next_visible_ms, self.dequeue_count) > (other.next_visible_ms, other.dequeue_count)
    }
}

/// A handle allows a message to be deleted, so it is not shown.
impl std::fmt::Debug for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receipt")
            .field("next_visible_ms", &self.next_visible_ms)
            .field("dequeue_count", &self.dequeue_count)
            .finish_non_exhaustive()
    }
}
