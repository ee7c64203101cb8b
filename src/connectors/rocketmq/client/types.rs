//! What goes in and comes out of the client.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use super::properties::{self, Properties};
use crate::model::{Body, Fault};

/// What a namespace takes, and the properties that a broker adds to those of a message (`CLUSTER` and others): room is
/// left for it, so that what passes a check is not refused later.
const ADDED: usize = 512;

/// How to reach a service.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// `HOST:PORT` of name servers (4.x, 5.x), or of the remoting port of a 5.x proxy. See [`super::parse_endpoints`].
    pub endpoints: Vec<String>,
    /// Goes before topics and groups on the wire: `NAMESPACE%TOPIC`.
    pub namespace: Option<String>,
    /// Signs every request; none where the service asks for none.
    pub credentials: Option<Credentials>,
    /// What kind of service it is.
    pub channel: Channel,
    /// TLS, with the system's root certificates.
    pub tls: bool,
    /// How long a request may take, on top of what a pull asks the broker to wait.
    pub request_timeout: Duration,
}

/// An access key and its secret.
#[derive(Clone)]
pub struct Credentials {
    /// Sent as `AccessKey`.
    pub access_key: String,
    /// Never sent: it signs.
    pub secret_key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Kind of service. In the Java client it decides only where traces go, which we do not write; `Aliyun` is the
/// channel of Alibaba's own clients, who send it as a signed field beside the access key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Channel {
    /// Servers of one's own.
    #[default]
    Local,
    /// A cloud's.
    Cloud,
    /// Alibaba Cloud's.
    Aliyun,
}

/// Queues of a topic, as the name server lists them now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Route {
    /// Those that may be read, by broker and number.
    pub queues: Vec<Queue>,
    /// Those that may be written.
    pub writable: Vec<Queue>,
}

/// One queue of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    /// The cluster the broker belongs to.
    pub cluster: Arc<str>,
    /// Without a namespace.
    pub topic: Arc<str>,
    /// The broker's name, which a master and its slaves share.
    pub broker: Arc<str>,
    /// The queue's number, from 0, within its broker.
    pub id: u32,
    /// Where the broker listens now, `HOST:PORT`: its master, or a slave for reading where there is no master.
    pub address: Arc<str>,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} of {} at broker {} ({})", self.id, self.topic, self.broker, self.address)
    }
}

/// One request for messages.
#[derive(Debug, Clone, Copy)]
pub struct Pull<'a> {
    /// The consumer group, without a namespace.
    pub group: &'a str,
    /// The position of the first message wanted.
    pub offset: u64,
    /// How many messages at most; the broker may hold a lower limit (32 by default).
    pub most: u32,
    /// How long the broker may wait for the first message. It looks at its clock every five seconds only, so an
    /// answer may come that much later.
    pub wait: Duration,
    /// Which messages are wanted.
    pub filter: &'a Filter,
}

/// Which messages are wanted. The broker leaves out the others, but positions count them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Filter {
    /// All.
    #[default]
    All,
    /// With one of these tags. The broker compares hashes only, so one with another tag may come too.
    Tags(Vec<String>),
    /// For which this SQL92 predicate over tags and properties holds. Brokers refuse it without
    /// `enablePropertyFilter=true`.
    Sql(String),
}

/// What a pull answers.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// What the broker found.
    pub status: PullStatus,
    /// Where to go on: behind every message looked at; where the queue begins or ends for an illegal offset.
    pub next: u64,
    /// Position of the first message the queue still holds.
    pub min: u64,
    /// Position behind its last message.
    pub max: u64,
    /// Of those looked at, those that the broker takes for wanted, by position.
    pub messages: Vec<PulledMessage>,
}

/// How a pull ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullStatus {
    /// Messages follow.
    Found,
    /// Nothing behind the offset came within the wait.
    NothingNew,
    /// Nothing wanted in what was looked at; pull again from [`Pulled::next`].
    NothingMatched,
    /// No message has this offset, and none will: it lies before the first or behind the last position.
    OffsetIllegal,
}

/// One message.
#[derive(Debug, Clone)]
pub struct PulledMessage {
    /// Its position in the queue.
    pub queue_offset: u64,
    /// The id its sender gave it (property `UNIQ_KEY`), else the one of its place in the broker's log, as the Java
    /// client's `getMsgId`; but messages of one batch have one each, where 5.x's client shows that of the batch.
    pub id: Arc<str>,
    /// When its sender made it, in epoch milliseconds by the sender's clock.
    pub born_ms: i64,
    /// When the broker stored it, in epoch milliseconds.
    pub stored_ms: i64,
    /// Keys, tags, what the client put there, and what broker and client keep there for themselves.
    pub properties: Properties,
    /// The body, decompressed. Broken if it claims a compression that it does not have.
    pub body: Body,
}

impl PulledMessage {
    /// The tag; a message has one at most.
    pub fn tags(&self) -> Option<&str> {
        self.properties.get(properties::TAGS)
    }

    /// The keys, joined by blanks.
    pub fn keys(&self) -> Option<&str> {
        self.properties.get(properties::KEYS)
    }
}

/// One message to send.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    /// The body.
    pub body: Bytes,
    /// Keys, joined by blanks.
    pub keys: Option<String>,
    /// The tag.
    pub tags: Option<String>,
    /// Further properties.
    pub properties: Vec<(String, String)>,
    /// Its id (property `UNIQ_KEY`), from [`super::new_ids`]: kept over retries, so that a reader can tell a message that
    /// is stored twice. `None`: each send makes one.
    pub id: Option<String>,
}

impl Outgoing {
    /// Longest encoded properties a broker takes: a signed 16-bit length.
    pub const MOST_PROPERTIES: usize = i16::MAX as usize;

    /// Whether the protocol can carry it at all. A fault of kind `Poison` otherwise, which names what is wrong.
    /// [`super::Client::send`] checks this too.
    pub fn check(&self) -> Result<(), Fault> {
        // As long as any.
        let id = self.id.as_deref().unwrap_or("00000000000000000000000000000000");
        properties::encode(self, id, None).and_then(|encoded| properties::fits(encoded.len() + ADDED))
    }

    /// How many bytes it takes in a batch, for a batch's limit.
    pub fn size(&self) -> usize {
        super::batch::size(self)
    }
}
