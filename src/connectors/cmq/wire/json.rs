//! The answers over HTTP, and those of the name server. Times are seconds since the epoch.

use serde::{Deserialize, Serialize};

/// What every answer has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// 0, or a code of [`super::class_of`].
    pub code: i32,
    /// Words to it, with the module's code in brackets before them.
    #[serde(default)]
    pub message: String,
    /// The service's id of the request.
    #[serde(default)]
    pub request_id: String,
    /// What the client called the request; 0 if it did not.
    #[serde(default)]
    pub client_request_id: i64,
}

/// An answer: what every one has, and what this one has on code 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer<T> {
    /// What every answer has.
    #[serde(flatten)]
    pub status: Status,
    /// What this one has.
    #[serde(flatten)]
    pub body: T,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedMessage {
    /// The same at every delivery.
    pub msg_id: String,
    /// The body, as it was sent.
    pub msg_body: String,
    /// What deletes this delivery: opaque text.
    pub receipt_handle: String,
    /// When it was sent.
    #[serde(default)]
    pub enqueue_time: i64,
    /// When it was delivered first. Reserved in the TDMQ edition.
    #[serde(default)]
    pub first_dequeue_time: i64,
    /// When it will be delivered again.
    pub next_visible_time: i64,
    /// How often it has been delivered. Reserved in the TDMQ edition.
    #[serde(default)]
    pub dequeue_count: i64,
}

/// Answer to BatchReceiveMessage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchReceived {
    /// The messages.
    pub msg_info_list: Vec<ReceivedMessage>,
}

/// Answer to SendMessage, and one entry of that to BatchSendMessage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The message's id.
    pub msg_id: String,
}

/// Answer to BatchSendMessage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchSent {
    /// The ids, in the order of the bodies.
    pub msg_list: Vec<Sent>,
}

/// Answer to BatchDeleteMessage that failed in part or wholly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletesFailed {
    /// The failures only.
    #[serde(default)]
    pub error_list: Vec<DeleteFailure>,
}

/// A delivery that was not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteFailure {
    /// As [`Status::code`].
    pub code: i32,
    /// As [`Status::message`].
    #[serde(default)]
    pub message: String,
    /// The delivery.
    pub receipt_handle: String,
}

/// Answer to GetQueueAttributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueAttributes {
    /// Most messages the queue holds.
    pub max_msg_heap_num: Option<i64>,
    /// How long a receive waits that does not say how long.
    pub polling_wait_seconds: Option<i64>,
    /// How long a delivered message stays invisible to others.
    pub visibility_timeout: Option<i64>,
    /// The largest message, in bytes.
    pub max_msg_size: Option<i64>,
    /// How long an undeleted message is kept.
    pub msg_retention_seconds: Option<i64>,
    /// How long a deleted message is kept.
    pub rewind_seconds: Option<i64>,
    /// When the queue was made.
    pub create_time: Option<i64>,
    /// When an attribute was changed last.
    pub last_modify_time: Option<i64>,
    /// Messages that can be received, roughly.
    pub active_msg_num: Option<i64>,
    /// Messages that are delivered and not deleted, roughly.
    pub inactive_msg_num: Option<i64>,
    /// Messages that are delayed.
    pub delay_msg_num: Option<i64>,
    /// Messages that are deleted and kept.
    pub rewind_msg_num: Option<i64>,
    /// When the oldest message was sent.
    pub min_msg_time: Option<i64>,
}

/// A name server's answer to QueryQueueRoute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// `host:port` of each address of the queue.
    #[serde(default)]
    pub addr: Vec<String>,
}
