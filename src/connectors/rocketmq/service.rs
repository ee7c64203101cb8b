//! What source and sink ask of the service, so that both can be tried without one.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;

use super::client::{Client, Outgoing, Pull, Pulled, Queue, Route};
use crate::model::Fault;

/// A connection to the service: see [`Client`], whose calls these are. One call at a time.
#[async_trait]
pub(super) trait Service: Send + Sync {
    async fn route(&self, topic: &str) -> Result<Option<Route>, Fault>;
    async fn pull(&self, queue: &Queue, pull: &Pull<'_>) -> Result<Pulled, Fault>;
    async fn ends(&self, queue: &Queue, group: &str) -> Result<Range<u64>, Fault>;
    async fn offset_at(&self, queue: &Queue, group: &str, timestamp_ms: i64) -> Result<u64, Fault>;
    async fn group_offset(&self, queue: &Queue, group: &str) -> Result<Option<u64>, Fault>;
    async fn commit_offset(&self, queue: &Queue, group: &str, offset: u64) -> Result<(), Fault>;
    async fn send(&self, queue: &Queue, group: &str, messages: &[Outgoing]) -> Result<(), Fault>;
}

/// Makes one connection more.
pub(super) type Connect = Arc<dyn Fn() -> Result<Box<dyn Service>, Fault> + Send + Sync>;

#[async_trait]
impl Service for Client {
    async fn route(&self, topic: &str) -> Result<Option<Route>, Fault> {
        self.route(topic).await
    }

    async fn pull(&self, queue: &Queue, pull: &Pull<'_>) -> Result<Pulled, Fault> {
        self.pull(queue, pull).await
    }

    async fn ends(&self, queue: &Queue, group: &str) -> Result<Range<u64>, Fault> {
        self.ends(queue, group).await
    }

    async fn offset_at(&self, queue: &Queue, group: &str, timestamp_ms: i64) -> Result<u64, Fault> {
        self.offset_at(queue, group, timestamp_ms).await
    }

    async fn group_offset(&self, queue: &Queue, group: &str) -> Result<Option<u64>, Fault> {
        self.group_offset(queue, group).await
    }

    async fn commit_offset(&self, queue: &Queue, group: &str, offset: u64) -> Result<(), Fault> {
        self.commit_offset(queue, group, offset).await
    }

    async fn send(&self, queue: &Queue, group: &str, messages: &[Outgoing]) -> Result<(), Fault> {
        self.send(queue, group, messages).await
    }
}
