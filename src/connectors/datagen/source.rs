//! The source: hands out the numbers of rows as they become due.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    decoder::body,
    fields::{self, Fields},
};
use crate::{
    connector::{Lanes, LogReader, LogSource, OpenedLane, Polled, Start},
    definition::Endpoint,
    model::{Body, Fault, LaneId, Message, SourceIdentity},
};

/// What is handed out takes about so many bytes at most once it is generated, unless a single row takes more.
const PULL_BYTES: u64 = 1 << 20;
/// How far behind its schedule a pipeline may be and still catch up.
const BEHIND: Duration = Duration::from_secs(1);
/// The longest a poll waits: for one row, at one row a second.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Rows made up.
#[derive(Debug)]
pub struct DatagenSource {
    seed: u64,
    end: u64,
    rate: u64,
    most: u64,
}

impl DatagenSource {
    /// For a checked source of this connector; `most`: rows of one pull.
    pub fn new(endpoint: &Endpoint, most: usize) -> Self {
        let Fields { seed, rows, rate, ref columns, .. } = fields::read(endpoint).0;
        let row = columns.iter().map(|column| column.size()).fold(1, u64::saturating_add);
        let most = (most as u64).min(PULL_BYTES / row).max(1);
        Self { seed, end: rows.unwrap_or(u64::MAX), rate, most }
    }
}

#[async_trait]
impl LogSource for DatagenSource {
    fn identity(&self) -> SourceIdentity {
        // As signed as it was written.
        SourceIdentity(format!("datagen seed {}", self.seed as i64))
    }

    async fn lanes(&self, known: &BTreeMap<LaneId, u64>) -> Result<Lanes, Fault> {
        let lane = LaneId("rows".into());
        let start = known.get(&lane).map_or(Start::First, |at| Start::Resume(*at));
        Ok(Lanes { owned: vec![(lane, start)], others: Vec::new() })
    }

    fn commits(&self) -> bool {
        false
    }

    async fn open(&self, _: &LaneId, start: Start) -> Result<OpenedLane, Fault> {
        let position = match start {
            Start::Resume(position) => position,
            Start::First | Start::Added => 0,
        };
        let pace = Mutex::new(Pace { next: position, rate: self.rate, from: position, since: Instant::now() });
        let reader = DatagenReader { end: self.end, most: self.most, pace };
        Ok(OpenedLane { reader: Arc::new(reader), position })
    }
}

/// A schedule: `rate` rows a second, one after the other, counted from `from` at `since`.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) next: u64,
    pub(super) rate: u64,
    pub(super) from: u64,
    pub(super) since: Instant,
}

impl Pace {
    /// When `count` more rows are due.
    pub(super) fn when(&self, count: u64) -> Instant {
        let rows = u128::from(self.next - self.from) + u128::from(count);
        let nanos = (rows * 1_000_000_000).div_ceil(u128::from(self.rate));
        self.since + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX >> 8))
    }

    /// Takes what is due now, up to `most` rows.
    pub(super) fn take(&mut self, now: Instant, most: u64) -> Range<u64> {
        let elapsed = now.saturating_duration_since(self.since);
        let scheduled = elapsed.as_nanos().saturating_mul(u128::from(self.rate)) / 1_000_000_000;
        let due = u64::try_from(u128::from(self.from).saturating_add(scheduled)).unwrap_or(u64::MAX);
        if let Some(since) = now.checked_sub(BEHIND)
            && due.saturating_sub(self.next) > self.rate
        {
            // What was held up for long is not made up for: the schedule begins anew.
            (self.from, self.since) = (self.next, since);
        }
        let from = self.next;
        self.next = due.min(from.saturating_add(most)).max(from);
        from..self.next
    }
}

struct DatagenReader {
    end: u64,
    most: u64,
    pace: Mutex<Pace>,
}

impl DatagenReader {
    fn with<T>(&self, look: impl FnOnce(&mut Pace) -> T) -> T {
        look(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl LogReader for DatagenReader {
    async fn poll(&self) -> Result<Polled, Fault> {
        let (left, when) = self.with(|pace| {
            let left = self.end.saturating_sub(pace.next);
            // A tenth of a second's rows at a time: even to look at, and no work for each single row.
            (left, pace.when((pace.rate / 10).clamp(1, self.most).min(left)))
        });
        if when > Instant::now() {
            tokio::time::sleep_until(when).await;
        } else {
            // As fast as it goes, but not to the cost of whoever is on this thread too.
            tokio::task::yield_now().await;
        }
        // From here to the answer nothing waits: a poll that is dropped has taken nothing.
        let rows = self.with(|pace| pace.take(Instant::now(), self.most.min(left)));
        let message = Message {
            id: format!("{}..{}", rows.start, rows.end).into(),
            body: Body::Bytes(body(&rows)),
            meta: Vec::new(),
            receipt: None,
        };
        let messages = if rows.is_empty() { Vec::new() } else { vec![message] };
        Ok(Polled { messages, position: rows.end, behind: None, end: rows.end >= self.end })
    }

    fn patience(&self) -> Duration {
        LONGEST_WAIT
    }
}
