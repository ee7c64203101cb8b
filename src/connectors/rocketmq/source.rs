//! The source: one lane a queue, of all topics, as far as they are allocated to this process.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    position::{Ends, Lane},
    queues::{SeenQueues, topic_of},
    reader::QueueReader,
    service::Connect,
    source_options::SourceOptions,
    topics::Topics,
};
use crate::{
    connector::{Lanes, LogSource, OpenedLane, Start},
    model::{Fault, FaultKind, LaneId, SourceIdentity},
};

/// Topics of RocketMQ, 4.x or 5.x.
pub struct RocketmqSource {
    topics: Arc<Topics>,
    connect: Connect,
    /// What the group's offsets are, as far as this source has told them.
    told: Mutex<BTreeMap<LaneId, u64>>,
}

impl RocketmqSource {
    /// `seen`: the same for every generation.
    pub(super) fn new(options: SourceOptions, connect: Connect, seen: Arc<SeenQueues>) -> Result<Self, Fault> {
        let topics = Arc::new(Topics::new(options, &connect, seen)?);
        Ok(Self { topics, connect, told: Mutex::default() })
    }

    fn options(&self) -> &SourceOptions {
        &self.topics.options
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<LaneId, u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LogSource for RocketmqSource {
    fn identity(&self) -> SourceIdentity {
        self.options().identity()
    }

    async fn lanes(&self, known: &BTreeMap<LaneId, u64>) -> Result<Lanes, Fault> {
        let now = self.topics.queues_now(known).await?;
        if self.options().stop_ms.is_some() {
            self.topics.check_complete(known, &now)?;
        }
        // Of all that were ever there: the restart of a broker must not deal the queues of the others anew.
        let (lanes, queues): (Vec<_>, Vec<_>) = self.topics.seen.all().into_iter().unzip();
        let owned = self.options().allocation.owned(&queues);
        let read_before: HashSet<&str> = known.keys().filter_map(topic_of).collect();
        let mut answer = Lanes::default();
        for (lane, owned) in lanes.into_iter().zip(owned).filter(|(lane, _)| now.contains_key(lane)) {
            let start = match known.get(&lane) {
                Some(position) => Start::Resume(*position),
                None if topic_of(&lane).is_some_and(|topic| read_before.contains(topic)) => Start::Added,
                // All queues so far may be other processes'.
                None if self.options().allocation.is_shared() && self.topics.seen.was_added(&lane) => Start::Added,
                None => Start::First,
            };
            if owned { answer.owned.push((lane, start)) } else { answer.others.push(lane) }
        }
        answer.owned.sort_by(|(one, _), (other, _)| one.cmp(other));
        answer.others.sort();
        Ok(answer)
    }

    fn discovery_interval(&self) -> Option<Duration> {
        self.options().stop_ms.is_none().then_some(self.options().discovery)
    }

    async fn open(&self, id: &LaneId, start: Start) -> Result<OpenedLane, Fault> {
        let queue = self.topics.seen.get(id);
        let queue = queue.ok_or_else(|| Fault::restart(FaultKind::Bug, format!("{id} was opened but never listed")))?;
        let queue = match self.discovery_interval() {
            Some(_) => queue,
            // Nobody asks where it is from time to time, and its broker may have moved since.
            None => self.topics.queue_now(id, &queue.topic).await?,
        };
        let service = (self.connect)()?;
        let position = Lane { id, queue: &queue, topics: &self.topics }.start(&*service, start).await?;
        let reader = QueueReader::open(id.clone(), queue, position, service, Arc::clone(&self.topics)).await?;
        Ok(OpenedLane { reader: Arc::new(reader), position })
    }

    async fn commit(&self, positions: &BTreeMap<LaneId, u64>) -> Result<(), Fault> {
        let news: Vec<_> = {
            let told = self.told();
            positions.iter().filter(|(lane, position)| told.get(*lane) != Some(*position)).collect()
        };
        let (mut failed, mut away) = (None, HashSet::new());
        for (lane, queue) in self.topics.last_seen(news.iter().map(|(lane, _)| *lane)).await? {
            let Some(position) = positions.get(&lane).copied() else { continue };
            if away.contains(&queue.broker) {
                continue;
            }
            let asking = self.topics.asking.lock().await;
            match asking.service.commit_offset(&queue, &self.options().group, position).await {
                Ok(()) => {
                    self.told().insert(lane, position);
                }
                // A broker that is away keeps no other's offsets back.
                Err(fault) => {
                    away.insert(queue.broker);
                    failed = Some(fault);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn commits(&self) -> bool {
        self.options().commit
    }

    async fn ends(&self, lanes: &[LaneId]) -> Result<BTreeMap<LaneId, Range<u64>>, Fault> {
        let mut ends = BTreeMap::new();
        for (lane, queue) in self.topics.last_seen(lanes.iter()).await? {
            let Ends { first, next } =
                Ends::of(&*self.topics.asking.lock().await.service, &queue, &self.options().group).await?;
            ends.insert(lane, first..next);
        }
        Ok(ends)
    }

    /// Each topic is asked for at one server after the other.
    fn patience(&self) -> Duration {
        let SourceOptions { client, topics, .. } = self.options();
        let calls = client.endpoints.len().saturating_mul(topics.len());
        client.request_timeout.saturating_mul(u32::try_from(calls).unwrap_or(u32::MAX))
    }
}
