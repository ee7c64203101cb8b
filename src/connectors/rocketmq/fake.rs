//! A service in memory, for tests.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::{
    client::{Outgoing, Properties, Pull, PullStatus, Pulled, PulledMessage, Queue, Route},
    service::{Connect, Service},
};
use crate::model::{Body, Fault, FaultKind};

/// What it holds, and what it was asked.
#[derive(Default)]
pub struct Held {
    /// The route of the topic; none: there is no topic.
    pub queues: Vec<Queue>,
    pub logs: HashMap<(Arc<str>, u32), Log>,
    /// The offsets of the group.
    pub offsets: BTreeMap<(Arc<str>, u32), u64>,
    /// The largest body that is taken.
    pub limit: Option<usize>,
    /// What the next sends answer; then they are taken.
    pub failures: VecDeque<Fault>,
    /// What the next pulls answer in place of what is there.
    pub pulls: VecDeque<Result<Pulled, Fault>>,
    /// Sends that were tried: broker, queue, messages.
    pub sends: Vec<(Arc<str>, u32, usize)>,
    /// Offsets that were committed.
    pub commits: Vec<(Arc<str>, u32, u64)>,
    pub routes_asked: usize,
}

/// One queue.
#[derive(Default)]
pub struct Log {
    pub first: u64,
    pub messages: Vec<Stored>,
}

/// A message in it.
#[derive(Debug, Clone)]
pub struct Stored {
    pub body: String,
    pub keys: Option<String>,
    pub tags: Option<String>,
    pub stored_ms: i64,
}

/// See the module. A send waits for a permit of `sends`.
pub struct Fake {
    held: Mutex<Held>,
    pub sends: Semaphore,
}

impl Fake {
    /// A topic `t` with queues 0 to `queues` at each of these brokers.
    pub fn with(brokers: &[&str], queues: u32) -> Arc<Self> {
        let queue = |broker: &str, id| Queue {
            cluster: "c".into(),
            topic: "t".into(),
            broker: broker.into(),
            id,
            address: format!("{broker}:1").into(),
        };
        let queues = brokers.iter().flat_map(|broker| (0..queues).map(move |id| queue(broker, id))).collect();
        let held = Mutex::new(Held { queues, ..Held::default() });
        Arc::new(Self { held, sends: Semaphore::new(Semaphore::MAX_PERMITS) })
    }

    pub fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    pub fn connect(self: &Arc<Self>) -> Connect {
        let fake = Arc::clone(self);
        Arc::new(move || Ok(Box::new(Connection(Arc::clone(&fake))) as Box<dyn Service>))
    }

    /// Every body that was sent, sorted.
    pub fn bodies(&self) -> Vec<String> {
        let held = self.held();
        let messages = held.logs.values().flat_map(|log| &log.messages);
        let mut bodies: Vec<_> = messages.map(|message| message.body.clone()).collect();
        bodies.sort();
        bodies
    }
}

struct Connection(Arc<Fake>);

fn key(queue: &Queue) -> (Arc<str>, u32) {
    (Arc::clone(&queue.broker), queue.id)
}

impl Log {
    fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    fn pull(&self, pull: &Pull<'_>) -> Pulled {
        let mut pulled = Pulled {
            status: PullStatus::Found,
            next: pull.offset,
            min: self.first,
            max: self.next(),
            messages: Vec::new(),
        };
        if !(self.first..=self.next()).contains(&pull.offset) {
            return Pulled { status: PullStatus::OffsetIllegal, ..pulled };
        }
        let skipped = (pull.offset - self.first) as usize;
        for (at, stored) in self.messages.iter().enumerate().skip(skipped).take(pull.most as usize) {
            let properties = [("KEYS", &stored.keys), ("TAGS", &stored.tags)];
            let properties = properties.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
            pulled.next = self.first + at as u64 + 1;
            pulled.messages.push(PulledMessage {
                queue_offset: self.first + at as u64,
                id: format!("id-{at}").into(),
                born_ms: stored.stored_ms - 1,
                stored_ms: stored.stored_ms,
                properties: Properties::of(properties),
                body: Body::Bytes(stored.body.clone().into()),
            });
        }
        if pulled.messages.is_empty() {
            pulled.status = PullStatus::NothingNew;
        }
        pulled
    }
}

#[async_trait]
impl Service for Connection {
    async fn route(&self, topic: &str) -> Result<Option<Route>, Fault> {
        let mut held = self.0.held();
        held.routes_asked += 1;
        let queues: Vec<_> = held.queues.iter().filter(|queue| &*queue.topic == topic).cloned().collect();
        Ok((!queues.is_empty()).then(|| Route { writable: queues.clone(), queues }))
    }

    async fn pull(&self, queue: &Queue, pull: &Pull<'_>) -> Result<Pulled, Fault> {
        let mut held = self.0.held();
        let there = held.pulls.pop_front();
        there.unwrap_or_else(|| Ok(held.logs.entry(key(queue)).or_default().pull(pull)))
    }

    async fn ends(&self, queue: &Queue, _: &str) -> Result<Range<u64>, Fault> {
        Ok(self.0.held().logs.get(&key(queue)).map_or(0..0, |log| log.first..log.next()))
    }

    async fn offset_at(&self, queue: &Queue, _: &str, timestamp_ms: i64) -> Result<u64, Fault> {
        let held = self.0.held();
        let Some(log) = held.logs.get(&key(queue)) else { return Ok(0) };
        let before = log.messages.iter().filter(|message| message.stored_ms < timestamp_ms).count();
        Ok(log.first + before as u64)
    }

    async fn group_offset(&self, queue: &Queue, _: &str) -> Result<Option<u64>, Fault> {
        Ok(self.0.held().offsets.get(&key(queue)).copied())
    }

    async fn commit_offset(&self, queue: &Queue, _: &str, offset: u64) -> Result<(), Fault> {
        let (broker, id) = key(queue);
        self.0.held().commits.push((broker, id, offset));
        Ok(())
    }

    async fn send(&self, queue: &Queue, _: &str, messages: &[Outgoing]) -> Result<(), Fault> {
        self.0.sends.acquire().await.unwrap().forget();
        let (broker, id) = key(queue);
        let mut held = self.0.held();
        held.sends.push((Arc::clone(&broker), id, messages.len()));
        if let Some(fault) = held.failures.pop_front() {
            return Err(fault);
        }
        if held.limit.is_some_and(|limit| messages.iter().any(|message| message.body.len() > limit)) {
            return Err(Fault::never(FaultKind::Poison, "the broker takes no such message"));
        }
        let stored = messages.iter().map(|message| Stored {
            body: String::from_utf8(message.body.to_vec()).unwrap(),
            keys: message.keys.clone(),
            tags: message.tags.clone(),
            stored_ms: 0,
        });
        held.logs.entry((broker, id)).or_default().messages.extend(stored);
        Ok(())
    }
}

/// What a retry can mend.
pub fn busy() -> Fault {
    Fault::retry(FaultKind::Throttled, "the broker is busy")
}
