//! The reader of one queue: long polls from a position on, over a connection of its own.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{
    client::{Filter, Pull, PullStatus, Pulled, PulledMessage, Queue},
    metadata,
    options::FILTER_TAG,
    position::{Ends, Lane},
    service::Service,
    source_options::SourceOptions,
    topics::Topics,
};
use crate::{
    connector::{LogReader, Polled},
    model::{Body, Fault, FaultKind, LaneId, Mend, Message},
};

/// How much longer than asked a broker may hold a pull: it looks every five seconds.
const OVERSLEPT: Duration = Duration::from_secs(6);

/// How far the broker's clock may be behind this machine's: a message may still be stored that long before a time that
/// has come here.
const CLOCKS_APART_MS: i64 = 5_000;

/// Reads one queue.
pub(super) struct QueueReader {
    lane: LaneId,
    topic: Arc<str>,
    service: Box<dyn Service>,
    topics: Arc<Topics>,
    state: Mutex<State>,
}

struct State {
    queue: Queue,
    next: u64,
    /// The last call failed, so its broker may have another address now.
    renew: bool,
    stop: Option<Stop>,
}

/// Where a bounded source ends.
struct Stop {
    at_ms: i64,
    /// The first offset that is not read any more; known once the time has come.
    offset: Option<u64>,
}

impl QueueReader {
    /// A reader of `queue` from `position` on.
    pub async fn open(
        lane: LaneId,
        queue: Queue,
        position: u64,
        service: Box<dyn Service>,
        topics: Arc<Topics>,
    ) -> Result<Self, Fault> {
        let stop = topics.options.stop_ms.map(|at_ms| Stop { at_ms, offset: None });
        let topic = Arc::clone(&queue.topic);
        let mut state = State { queue, next: position, renew: false, stop };
        state.find_end(&*service, &topics.options.group).await?;
        Ok(Self { lane, topic, service, topics, state: Mutex::new(state) })
    }

    async fn pull(&self, state: &mut State) -> Result<Polled, Fault> {
        state.find_end(&*self.service, &self.topics.options.group).await?;
        if state.is_at_end() {
            return Ok(state.polled(Vec::new(), 0));
        }
        let SourceOptions { group, filter, pull_batch, .. } = &self.topics.options;
        let wait = state.wait(self.topics.options.pull_wait);
        let pull = Pull { group, offset: state.next, most: *pull_batch, wait, filter };
        let pulled = self.service.pull(&state.queue, &pull).await?;
        if pulled.status == PullStatus::OffsetIllegal {
            state.next = self.moved(state).await?;
            return Ok(state.polled(Vec::new(), pulled.max));
        }
        self.topics.seen.within(&self.lane);
        if let Some(position) = self.over_gap(state, &pulled).await? {
            state.next = position;
            return Ok(state.polled(Vec::new(), pulled.max));
        }
        let mut messages = Vec::with_capacity(pulled.messages.len());
        let mut next = pulled.next;
        let from = state.next;
        for message in pulled.messages.into_iter().filter(|message| message.queue_offset >= from) {
            if state.stops_before(&message) {
                break;
            }
            next = next.max(message.queue_offset + 1);
            messages.push(self.message(state.queue.id, message));
        }
        // Never back: that would be reading twice.
        state.next = state.end().map_or(next, |end| next.min(end)).max(state.next);
        Ok(state.polled(messages, pulled.max))
    }

    /// The queue does not hold the position (any more): where it is read on.
    async fn moved(&self, state: &State) -> Result<u64, Fault> {
        let ends = Ends::of(&*self.service, &state.queue, &self.topics.options.group).await?;
        let position = self.lane(state).place(state.next, ends)?;
        if position < state.next {
            let text = format!("it is read on from {position}, before {}", state.next);
            return Err(Fault::restart(FaultKind::Service, text));
        }
        if position == state.next {
            let Ends { first, next } = ends;
            let text = format!("position {position} is refused, though it is in {first} to {next}");
            return Err(Fault::retry(FaultKind::Service, text));
        }
        Ok(position)
    }

    /// Where it is read on, if the broker has deleted what was to be read next. Without a filter every offset is a message:
    /// one that is passed over has been deleted, or taken out of a compacted topic.
    async fn over_gap(&self, state: &State, pulled: &Pulled) -> Result<Option<u64>, Fault> {
        let SourceOptions { filter, group, .. } = &self.topics.options;
        let read_on = pulled.messages.first().map_or(pulled.next, |first| first.queue_offset);
        let passes_over = *filter == Filter::All && read_on > state.next;
        if !passes_over && pulled.min <= state.next {
            return Ok(None);
        }
        let ends = Ends::of(&*self.service, &state.queue, group).await?;
        if state.next < ends.first {
            return self.lane(state).place(state.next, ends).map(Some);
        }
        if passes_over {
            tracing::warn!("{}: the broker passes over the offsets {} to {}", self.lane, state.next, read_on - 1);
        }
        Ok(None)
    }

    fn lane<'a>(&'a self, state: &'a State) -> Lane<'a> {
        Lane { id: &self.lane, queue: &state.queue, topics: &self.topics }
    }

    fn message(&self, queue_id: u32, message: PulledMessage) -> Message {
        let Filter::Tags(tags) = &self.topics.options.filter else { return self.whole(queue_id, message) };
        // The broker looks at hashes of tags only.
        if tags.iter().any(|tag| Some(tag.as_str()) == message.tags()) {
            return self.whole(queue_id, message);
        }
        let filtered = Body::Filtered(FILTER_TAG.name);
        Message { body: filtered, ..self.whole(queue_id, message) }
    }

    fn whole(&self, queue_id: u32, message: PulledMessage) -> Message {
        let arrived_ms = if self.topics.options.ingestion_is_stored { message.stored_ms } else { now_ms() };
        let meta = metadata::of(&message, &self.topic, queue_id, arrived_ms);
        // The sender's id may be on several messages, after its retries; the place is on one.
        let id = format!("{} at {} of {}", message.id, message.queue_offset, self.lane).into();
        Message { id, body: message.body, meta, receipt: None }
    }
}

impl State {
    /// Finds out where a bounded source ends, once its time has come: until then messages may still be stored before it.
    async fn find_end(&mut self, service: &dyn Service, group: &str) -> Result<(), Fault> {
        if let Some(stop) = &mut self.stop
            && stop.offset.is_none()
            && stop.at_ms.saturating_add(CLOCKS_APART_MS) <= now_ms()
        {
            stop.offset = Some(service.offset_at(&self.queue, group, stop.at_ms).await?);
        }
        Ok(())
    }

    fn end(&self) -> Option<u64> {
        self.stop.as_ref()?.offset
    }

    fn is_at_end(&self) -> bool {
        self.end().is_some_and(|end| self.next >= end)
    }

    /// Whether the lane ends before this message.
    fn stops_before(&mut self, message: &PulledMessage) -> bool {
        let Some(stop) = &mut self.stop else { return false };
        if stop.offset.is_none() && message.stored_ms >= stop.at_ms {
            stop.offset = Some(message.queue_offset);
        }
        stop.offset.is_some_and(|end| message.queue_offset >= end)
    }

    /// How long a pull waits: not beyond the time at which the lane ends.
    fn wait(&self, wait: Duration) -> Duration {
        let left = |stop: &Stop| {
            let decided_ms = stop.at_ms.saturating_add(CLOCKS_APART_MS);
            Duration::from_millis(u64::try_from(decided_ms.saturating_sub(now_ms())).unwrap_or(0))
        };
        match &self.stop {
            Some(stop) if stop.offset.is_none() => left(stop).clamp(Duration::from_millis(100), wait),
            _ => wait,
        }
    }

    /// What was read, up to `self.next`; `max`: what the next message of the queue will have.
    fn polled(&self, messages: Vec<Message>, max: u64) -> Polled {
        let end = self.end();
        let behind = end.map_or(max, |end| max.min(end)).saturating_sub(self.next);
        Polled { messages, position: self.next, behind: Some(behind), end: self.is_at_end() }
    }
}

#[async_trait]
impl LogReader for QueueReader {
    async fn poll(&self) -> Result<Polled, Fault> {
        let mut state = self.state.lock().await;
        if state.renew {
            state.queue = self.topics.queue_now(&self.lane, &self.topic).await?;
            state.renew = false;
        }
        let polled = self.pull(&mut state).await;
        state.renew = polled.as_ref().is_err_and(|fault| fault.mend == Mend::Retry);
        polled
    }

    fn patience(&self) -> Duration {
        self.topics.options.pull_wait + OVERSLEPT + self.topics.options.client.request_timeout
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
