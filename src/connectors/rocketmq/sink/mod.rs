//! The sink: each row is a message. At least once: `prepare` waits for every send, so what is checkpointed is stored.
//!
//! A `write` returns once its rows are on their way, with a bounded number of sends outstanding. It waits only for the
//! answers to messages larger than any that was taken before: the service's limit of their size is known to the broker
//! alone, and a row that it refuses must be answered by the write that brought it.

mod messages;
mod sends;
#[cfg(test)]
mod tests;
mod topic;

use arrow_array::RecordBatch;
use async_trait::async_trait;

use self::sends::Until;
pub(super) use self::{messages::Messages, sends::Sends, topic::Topic};
use crate::{
    connector::{RowReject, Sink},
    model::{Epoch, Fault, SinkIdentity, Token},
};

/// Sends rows to a topic.
pub struct RocketmqSink {
    identity: SinkIdentity,
    messages: Messages,
    sends: Sends,
    /// Writes so far.
    writes: u64,
    /// The rows that the format refused in a write that has not returned well yet: the same rows come again, and are
    /// with `sends` already.
    open: Option<Vec<RowReject>>,
}

impl RocketmqSink {
    /// A sink called `identity`, which connects at its first write.
    pub(super) fn new(identity: SinkIdentity, messages: Messages, sends: Sends) -> Self {
        Self { identity, messages, sends, writes: 0, open: None }
    }
}

#[async_trait]
impl Sink for RocketmqSink {
    fn identity(&self) -> SinkIdentity {
        self.identity.clone()
    }

    async fn recover(&mut self, _: &[Token]) -> Result<(), Fault> {
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        if self.open.is_none() {
            self.writes += 1;
            let (batches, refused) = self.messages.of(self.writes, rows)?;
            self.sends.begin_write(self.writes, batches);
            self.open = Some(refused);
        }
        self.sends.settle(Until::Taken).await?;
        let mut refused = self.open.take().unwrap_or_default();
        refused.extend(self.sends.end_write());
        refused.sort_by_key(|reject| reject.row);
        Ok(refused)
    }

    async fn prepare(&mut self, _: Epoch) -> Result<Option<Token>, Fault> {
        self.sends.settle(Until::Answered).await?;
        Ok(None)
    }

    async fn commit(&mut self, _: &Token) -> Result<(), Fault> {
        Ok(())
    }
}
