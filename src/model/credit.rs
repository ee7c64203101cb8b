//! The bound on rows on their way. No send to an actor is a bound, so a lane takes a credit before it hands on.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much may be on its way between a pipeline's poller and its sink at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditLimits {
    /// Batches.
    pub batches: u32,
    /// Bytes of message bodies; counted in steps of 1 KiB.
    pub bytes: u64,
}

impl Default for CreditLimits {
    /// 64 batches of 16 messages keep every stage busy; 64 MiB is a thousand of MNS's largest messages.
    fn default() -> Self {
        Self { batches: 64, bytes: 64 << 20 }
    }
}

/// The credits of one generation.
#[derive(Debug, Clone)]
pub struct Credits {
    batches: Arc<Semaphore>,
    kibibytes: Arc<Semaphore>,
    most_kibibytes: u32,
}

/// Room for one pull. Gives itself back when dropped, however that comes about.
#[derive(Debug)]
pub struct Credit {
    _batch: OwnedSemaphorePermit,
    _kibibytes: OwnedSemaphorePermit,
}

impl Credits {
    /// All credits free.
    pub fn new(limits: CreditLimits) -> Self {
        let most_kibibytes =
            u32::try_from(limits.bytes.div_ceil(1024)).unwrap_or(u32::MAX >> 4).clamp(1, u32::MAX >> 4);
        Self {
            batches: Arc::new(Semaphore::new(limits.batches.max(1) as usize)),
            kibibytes: Arc::new(Semaphore::new(most_kibibytes as usize)),
            most_kibibytes,
        }
    }

    /// As [`Self::take`] if there is room now and nobody has waited for it longer.
    pub fn try_take(&self, bytes: usize) -> Option<Credit> {
        let batch = Arc::clone(&self.batches).try_acquire_owned().ok()?;
        let kibibytes = Arc::clone(&self.kibibytes).try_acquire_many_owned(self.kibibytes_of(bytes)).ok()?;
        Some(Credit { _batch: batch, _kibibytes: kibibytes })
    }

    /// Waits for room for one pull of `bytes`, clamped to the total so that a single large pull still goes through.
    /// `None` only if the credits have been closed. Cancel by dropping.
    pub async fn take(&self, bytes: usize) -> Option<Credit> {
        let batch = Arc::clone(&self.batches).acquire_owned().await.ok()?;
        let kibibytes = Arc::clone(&self.kibibytes).acquire_many_owned(self.kibibytes_of(bytes)).await.ok()?;
        Some(Credit { _batch: batch, _kibibytes: kibibytes })
    }

    fn kibibytes_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).clamp(1, self.most_kibibytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pull_larger_than_the_total_still_goes_through_alone() {
        let credits = Credits::new(CreditLimits { batches: 2, bytes: 4096 });
        let large = credits.take(1 << 20).await.expect("open");
        let waiting = credits.take(1);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(large);
        assert!(waiting.await.is_some());
    }
}
