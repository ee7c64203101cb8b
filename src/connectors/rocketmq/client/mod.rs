//! The client: all that knows the wire.

use std::{fmt, sync::Arc, time::Duration};

/// Where a client connects, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// `host:port` of name servers, or of a proxy's remoting port.
    pub endpoints: Vec<String>,
    /// On the wire a topic is `NAMESPACE%TOPIC`.
    pub namespace: Option<String>,
    /// Access key and secret key.
    pub credentials: Option<Credentials>,
    /// What the client says it is called through.
    pub channel: Channel,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// How long an answer is waited for.
    pub request_timeout: Duration,
}

/// An access key.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its name.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// `rocketmq.client.channel`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// LOCAL
    Local,
    /// CLOUD
    Cloud,
    /// ALIYUN
    Aliyun,
}

/// One queue of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    /// The cluster.
    pub cluster: Arc<str>,
    /// The topic, without its namespace.
    pub topic: Arc<str>,
    /// The broker's name.
    pub broker: Arc<str>,
    /// The queue's number at that broker.
    pub id: u32,
    /// `host:port` of the broker's master now.
    pub address: Arc<str>,
}

/// Which messages are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All.
    All,
    /// Those with one of these tags.
    Tags(Vec<String>),
    /// Those of which an expression of SQL92 is true.
    Sql(String),
}
