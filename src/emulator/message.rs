//! What the queue engine takes in and hands out, in no service's shape.

use bytes::Bytes;

/// What can be set of a queue. `None` in a create: the default; in a change: as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Settings {
    /// Seconds until a sent message can be received.
    pub delay_seconds: Option<u32>,
    /// Bytes of one body.
    pub maximum_message_size: Option<u32>,
    /// Seconds after which a message is dropped.
    pub retention_seconds: Option<u32>,
    /// Seconds for which a received message is invisible.
    pub visibility_seconds: Option<u32>,
    /// Seconds that a receive waits which does not say how long.
    pub polling_wait_seconds: Option<u32>,
    /// Told as it was set; nothing follows from it here. MNS has it.
    pub logging_enabled: Option<bool>,
    /// Told as it was set; nothing follows from it here. CMQ has it.
    pub heap_messages: Option<u32>,
    /// Told as it was set; nothing follows from it here. CMQ has it.
    pub rewind_seconds: Option<u32>,
}

pub(super) const DEFAULTS: Settings = Settings {
    delay_seconds: Some(0),
    maximum_message_size: Some(65_536),
    retention_seconds: Some(345_600),
    visibility_seconds: Some(30),
    polling_wait_seconds: Some(0),
    logging_enabled: Some(false),
    heap_messages: Some(10_000_000),
    rewind_seconds: Some(0),
};

impl Settings {
    /// These, and those of `others` for what is not given.
    pub(super) fn or(&self, others: &Self) -> Self {
        Self {
            delay_seconds: self.delay_seconds.or(others.delay_seconds),
            maximum_message_size: self.maximum_message_size.or(others.maximum_message_size),
            retention_seconds: self.retention_seconds.or(others.retention_seconds),
            visibility_seconds: self.visibility_seconds.or(others.visibility_seconds),
            polling_wait_seconds: self.polling_wait_seconds.or(others.polling_wait_seconds),
            logging_enabled: self.logging_enabled.or(others.logging_enabled),
            heap_messages: self.heap_messages.or(others.heap_messages),
            rewind_seconds: self.rewind_seconds.or(others.rewind_seconds),
        }
    }
}

/// What a queue tells of itself. Times are by the service's clock.
#[derive(Debug)]
pub(super) struct Attributes {
    pub settings: Settings,
    /// Epoch seconds.
    pub created_s: i64,
    /// Epoch seconds.
    pub modified_s: i64,
    pub active: u64,
    pub inactive: u64,
    pub delayed: u64,
    /// When the oldest message was sent, in epoch milliseconds.
    pub oldest_ms: Option<i64>,
}

/// A message to send.
#[derive(Debug, Clone, Default)]
pub(super) struct Outgoing {
    pub body: Bytes,
    /// `None`: the queue's own delay.
    pub delay_seconds: Option<u32>,
    /// 1 (first) to 16; `None`: 8.
    pub priority: Option<u8>,
    pub properties: Vec<Property>,
}

/// A named value beside a body.
#[derive(Debug, Clone)]
pub(super) struct Property {
    pub name: String,
    pub value: String,
    pub kind: String,
    /// Whether it is the service's own and not its users'.
    pub is_system: bool,
}

/// A message as it is in a queue. Times are epoch milliseconds.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// Random; each service writes it in its own way.
    pub id: u128,
    pub body: Bytes,
    pub enqueue_ms: i64,
    /// 0: never.
    pub first_dequeue_ms: i64,
    pub dequeue_count: u32,
    pub priority: u8,
    pub properties: Vec<Property>,
}

impl Message {
    /// As a service tells of it whose clock is ahead by `offset` milliseconds.
    pub(super) fn told(&self, offset: i64) -> Self {
        Self {
            enqueue_ms: self.enqueue_ms + offset,
            // 0 is no time: it has never been received.
            first_dequeue_ms: if self.first_dequeue_ms == 0 { 0 } else { self.first_dequeue_ms + offset },
            ..self.clone()
        }
    }
}

/// What deletes a message. Each service writes it in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handle {
    /// The message's number within its queue.
    pub number: u64,
    /// Which of the message's handles it is, from 1.
    pub serial: u64,
}

impl Handle {
    /// One that no queue gives out.
    pub(super) const NONE: Self = Self { number: 0, serial: 0 };
}

/// A handle as it was given out.
#[derive(Debug, Clone)]
pub(super) struct Receipt {
    /// Of the message.
    pub id: u128,
    pub handle: Handle,
    /// Epoch milliseconds.
    pub issued_ms: i64,
    /// For how long, in milliseconds.
    pub valid_ms: i64,
    /// How often the message had been delivered by then.
    pub dequeue_count: u32,
    /// When the message can be received again, by the service's clock, in epoch milliseconds.
    pub next_visible_ms: i64,
}

/// A message that is handed out.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    /// With times by the service's clock.
    pub message: Message,
    pub receipt: Receipt,
}

/// What a send answers for one message.
#[derive(Debug)]
pub(super) struct Sent {
    pub id: u128,
    /// Only for a delayed message.
    pub receipt: Option<Receipt>,
}
