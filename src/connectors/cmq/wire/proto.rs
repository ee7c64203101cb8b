//! The messages of the TCP protocol (proto2), by hand: those of queues, and those that publish to topics, so that every
//! frame there is reads.
//!
//! Names and numbers are those of the published SDK's own definition. Repeated numbers are *not* packed there.

use std::fmt;

use prost::Message;

/// The one message a frame holds.
#[derive(Clone, PartialEq, Message)]
pub struct CmqProto {
    /// Correlates an answer with its request: the client counts, the answer repeats.
    #[prost(int64, required, tag = "1")]
    pub seqno: i64,
    /// One of [`super::Command`]. What the service writes into that of an answer is not known.
    #[prost(int32, required, tag = "2")]
    pub cmd: i32,
    /// Answers only: 0, or a code of [`super::class_of`].
    #[prost(int32, optional, tag = "3")]
    pub result: Option<i32>,
    /// Answers only: words to `result`.
    #[prost(string, optional, tag = "4")]
    pub error: Option<String>,
    /// Not written by the SDK.
    #[prost(string, optional, tag = "5")]
    pub proto_type_name: Option<String>,
    /// Not written by the SDK.
    #[prost(int32, optional, tag = "9")]
    pub is_oneway: Option<i32>,
    /// The client's own small counter on sends; the service's id of the request, for tracing, on answers.
    #[prost(uint64, optional, tag = "10")]
    pub request_id: Option<u64>,
    /// Answer to a pull.
    #[prost(message, optional, tag = "26")]
    pub pull_rsp: Option<PulledMessage>,
    /// Answer to a batch pull.
    #[prost(message, optional, tag = "27")]
    pub batch_pull_rsp: Option<BatchPulled>,
    /// Answer to a batch delete: the failures only.
    #[prost(message, repeated, tag = "28")]
    pub del_result: Vec<DeleteResult>,
    /// Answer to a send: one id for each message.
    #[prost(uint64, repeated, packed = "false", tag = "29")]
    pub msgids: Vec<u64>,
    /// Request.
    #[prost(message, optional, tag = "199")]
    pub tcp_auth: Option<Auth>,
    /// Request.
    #[prost(message, optional, tag = "200")]
    pub tcp_send_msg: Option<SendMessage>,
    /// Request.
    #[prost(message, optional, tag = "201")]
    pub tcp_batch_send_msg: Option<BatchSend>,
    /// Request.
    #[prost(message, optional, tag = "202")]
    pub tcp_pull_msg: Option<Pull>,
    /// Request.
    #[prost(message, optional, tag = "204")]
    pub tcp_batch_pull_msg: Option<BatchPull>,
    /// Request.
    #[prost(message, optional, tag = "206")]
    pub tcp_delete_msg: Option<Delete>,
    /// Request.
    #[prost(message, optional, tag = "207")]
    pub tcp_batch_delete_msg: Option<BatchDelete>,
    /// Request to a topic.
    #[prost(message, optional, tag = "208")]
    pub tcp_publish_msg: Option<Publish>,
    /// Request to a topic.
    #[prost(message, optional, tag = "209")]
    pub tcp_batch_publish_msg: Option<BatchPublish>,
}

/// `cmq_tcp_auth`: the first request of a connection.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct Auth {
    /// Who asks.
    #[prost(string, required, tag = "1")]
    pub secret_id: String,
    /// As [`crate::connectors::cmq::signature::connection_text`] is signed. Constant per client and secret: as good as
    /// a password, and not shown.
    #[prost(string, required, tag = "2")]
    pub signature: String,
    /// Local address and instance name, joined by `@`; signed.
    #[prost(string, required, tag = "3")]
    pub client_id: String,
    /// `HmacSHA1` or `HmacSHA256`.
    #[prost(string, required, tag = "4")]
    pub signature_method: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("secret_id", &self.secret_id)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// `cmq_tcp_send_msg`.
#[derive(Clone, PartialEq, Message)]
pub struct SendMessage {
    /// The queue.
    #[prost(string, required, tag = "1")]
    pub queue_name: String,
    /// The body, as it is: UTF-8 in practice.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub msg_body: Option<bytes::Bytes>,
    /// After how many seconds the message can be received.
    #[prost(uint32, optional, tag = "3")]
    pub delay_seconds: Option<u32>,
    /// Of transactions, which are not used.
    #[prost(int32, optional, tag = "4")]
    pub is_transaction: Option<i32>,
    /// Of transactions, which are not used.
    #[prost(int32, optional, tag = "5")]
    pub first_query_interval: Option<i32>,
}

/// `cmq_tcp_batch_send_msg`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchSend {
    /// The queue.
    #[prost(string, required, tag = "1")]
    pub queue_name: String,
    /// The bodies, at most [`super::MOST_PER_CALL`].
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub msg_body: Vec<bytes::Bytes>,
    /// One delay for all.
    #[prost(uint32, optional, tag = "3")]
    pub delay_seconds: Option<u32>,
    /// Of transactions, which are not used.
    #[prost(int32, optional, tag = "4")]
    pub is_transaction: Option<i32>,
    /// Of transactions, which are not used.
    #[prost(int32, optional, tag = "5")]
    pub first_query_interval: Option<i32>,
}

/// `cmq_tcp_pull_msg_req`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Pull {
    /// The queue.
    #[prost(string, required, tag = "1")]
    pub queue_name: String,
    /// How long to wait for a message.
    #[prost(int32, optional, tag = "2")]
    pub poll_wait_seconds: Option<i32>,
    /// Visibility timeout of this one delivery; the SDK never writes it.
    #[prost(uint32, optional, tag = "3")]
    pub visible_timeout: Option<u32>,
}

/// `cmq_tcp_batch_pull_msg_req`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct BatchPull {
    /// The queue.
    #[prost(string, required, tag = "1")]
    pub queue_name: String,
    /// At most so many messages, 1 to [`super::MOST_PER_CALL`].
    #[prost(int32, required, tag = "2")]
    pub num_msg: i32,
    /// How long to wait for the first.
    #[prost(int32, optional, tag = "3")]
    pub poll_wait_seconds: Option<i32>,
    /// Visibility timeout of these deliveries; the SDK never writes it.
    #[prost(uint32, optional, tag = "4")]
    pub visible_timeout: Option<u32>,
}

/// `cmq_pull_msg_rsp`: a message that was received. Times are seconds since the epoch.
#[derive(Clone, PartialEq, Message)]
pub struct PulledMessage {
    /// The same at every delivery.
    #[prost(uint64, required, tag = "1")]
    pub msg_id: u64,
    /// What deletes this delivery.
    #[prost(uint64, optional, tag = "3")]
    pub receipt_handle: Option<u64>,
    /// The body, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub msg_body: Option<bytes::Bytes>,
    /// When it was sent.
    #[prost(int64, optional, tag = "5")]
    pub enqueue_time: Option<i64>,
    /// When it will be delivered again.
    #[prost(int64, optional, tag = "6")]
    pub next_visible_time: Option<i64>,
    /// When it was delivered first. Reserved in the TDMQ edition.
    #[prost(int64, optional, tag = "7")]
    pub first_dequeue_time: Option<i64>,
    /// How often it has been delivered. Reserved in the TDMQ edition.
    #[prost(int64, optional, tag = "8")]
    pub dequeue_count: Option<i64>,
    /// Of a dead letter: the queue it was in.
    #[prost(string, optional, tag = "9")]
    pub original_queue_id: Option<String>,
    /// Of a dead letter: when it was sent.
    #[prost(uint64, optional, tag = "10")]
    pub original_pub_tm: Option<u64>,
    /// Of a dead letter: how often it was delivered there.
    #[prost(uint32, optional, tag = "11")]
    pub original_dequeue_cnt: Option<u32>,
}

/// `cmq_batch_pull_msg_rsp`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchPulled {
    /// The messages.
    #[prost(message, repeated, tag = "1")]
    pub msg_list: Vec<PulledMessage>,
}

/// `cmq_tcp_delete_msg`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Delete {
    /// The queue.
    #[prost(string, required, tag = "1")]
    pub queue_name: String,
    /// The delivery.
    #[prost(uint64, required, tag = "2")]
    pub receipt_handle: u64,
}

/// `cmq_tcp_batch_delete_msg`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct BatchDelete {
    /// The queue.
    #[prost(string, required, tag = "1")]
    pub queue_name: String,
    /// The deliveries, at most [`super::MOST_PER_CALL`].
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub receipt_handle_list: Vec<u64>,
}

/// `cmq_msg_delete_result`: a delivery that was not deleted.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteResult {
    /// The delivery.
    #[prost(uint64, required, tag = "1")]
    pub receipt_handle: u64,
    /// As [`CmqProto::result`].
    #[prost(int32, required, tag = "2")]
    pub err_code: i32,
    /// Words to it.
    #[prost(string, required, tag = "3")]
    pub err_msg: String,
}

/// `cmq_tcp_publish_msg`.
#[derive(Clone, PartialEq, Message)]
pub struct Publish {
    /// The topic.
    #[prost(string, required, tag = "1")]
    pub topic_name: String,
    /// The body.
    #[prost(bytes = "bytes", required, tag = "2")]
    pub msg_body: bytes::Bytes,
    /// Which subscriptions take it.
    #[prost(string, repeated, tag = "3")]
    pub msg_tags: Vec<String>,
    /// Which subscriptions take it, by pattern.
    #[prost(string, optional, tag = "4")]
    pub routing_key: Option<String>,
}

/// `cmq_tcp_batch_publish_msg`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchPublish {
    /// The topic.
    #[prost(string, required, tag = "1")]
    pub topic_name: String,
    /// The bodies.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub msg_body: Vec<bytes::Bytes>,
    /// Which subscriptions take them.
    #[prost(string, repeated, tag = "3")]
    pub msg_tags: Vec<String>,
    /// Which subscriptions take them, by pattern.
    #[prost(string, optional, tag = "4")]
    pub routing_key: Option<String>,
}
