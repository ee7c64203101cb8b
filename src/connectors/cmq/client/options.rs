//! What a client must be told.

use std::{fmt, time::Duration};

use url::Url;

use super::tcp::MOST_TRIED;
use crate::connectors::cmq::signature::{SignMethod, sign};

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Frames of protobuf; a name server says where.
    Tcp,
    /// Signed HTTP requests.
    Http,
}

/// A key. Its secret is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The key's id.
    pub secret_id: String,
    /// The key's secret.
    pub secret_key: String,
    /// How is signed with it.
    pub method: SignMethod,
}

impl Credentials {
    /// The signature of a text.
    pub(super) fn sign(&self, text: &str) -> String {
        sign(self.method, &self.secret_key, text)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("secret_id", &self.secret_id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// Everything a client of one queue must be told.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Name servers, at least one; over HTTP the one endpoint. Each with the path of requests.
    pub hosts: Vec<Url>,
    /// The queue.
    pub queue: String,
    /// As whom it is asked.
    pub credentials: Credentials,
    /// How.
    pub transport: Transport,
    /// How long an answer is waited for, beyond the wait that a receive asks for.
    pub request_timeout: Duration,
}

impl ClientOptions {
    /// How long a call may take by itself that waits for `wait`. Over TCP there may come before it: asking every name
    /// server, then connecting to and authenticating at some addresses.
    pub fn patience(&self, wait: Duration) -> Duration {
        let before = match self.transport {
            Transport::Tcp => u32::try_from(self.hosts.len()).unwrap_or(u32::MAX).saturating_add(2 * MOST_TRIED),
            Transport::Http => 0,
        };
        self.request_timeout.saturating_mul(before.saturating_add(1)).saturating_add(wait)
    }
}
