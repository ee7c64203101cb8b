//! Where a time lies in a queue.

use std::{ops::Range, time::Duration};

use super::{
    commands::Client,
    types::{Filter, Pull, Queue},
};
use crate::model::{Fault, FaultKind};

impl Client {
    /// Position of the first message that was stored at `timestamp_ms` or later; behind the last one if none was.
    ///
    /// 4.x brokers answer the message nearest to the time, or any of those of one millisecond, so their answer is only
    /// where the search begins: pulls of one message by `group` find the place.
    pub async fn offset_at(&self, queue: &Queue, group: &str, timestamp_ms: i64) -> Result<u64, Fault> {
        let Range { start: mut low, end: mut high } = self.ends(queue, group).await?;
        let hint = match self.search_offset(queue, timestamp_ms).await {
            Ok(hint) => hint.clamp(low, high),
            // It takes a right that those who read need not have.
            Err(Fault { kind: FaultKind::Credentials, .. }) => low + (high - low) / 2,
            Err(fault) => return Err(fault),
        };
        // Everything before `low` is earlier, everything from `high` on is not. The hint is right, or nearly.
        let mut step = 1;
        let mut probe = hint.saturating_sub(1);
        while low < high {
            let at = probe.clamp(low, high - 1);
            if self.is_before(queue, group, at, timestamp_ms).await? {
                low = at + 1;
                probe = at + step;
            } else {
                high = at;
                probe = at.saturating_sub(step);
            }
            step *= 2;
            if step > 64 {
                probe = low + (high - low) / 2;
            }
        }
        Ok(low)
    }

    /// A position that holds no message any more lies before every time.
    async fn is_before(&self, queue: &Queue, group: &str, offset: u64, timestamp_ms: i64) -> Result<bool, Fault> {
        let pull = Pull { group, offset, most: 1, wait: Duration::ZERO, filter: &Filter::All };
        let pulled = self.pull(queue, &pull).await?;
        Ok(pulled.messages.first().is_none_or(|message| message.stored_ms < timestamp_ms))
    }
}
