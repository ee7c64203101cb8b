//! The source: one lane a queue, of all topics, as far as they are allocated to this process.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    client::{Queue, Route, qualified},
    position::{Ends, Lane},
    queues::{SeenQueues, lane, topic_of},
    reader::QueueReader,
    service::{Connect, Service},
    source_options::SourceOptions,
};
use crate::{
    connector::{Lanes, LogSource, OpenedLane, Start},
    model::{Fault, FaultKind, LaneId, SourceIdentity},
};

/// Topics of RocketMQ, 4.x or 5.x.
pub struct RocketmqSource {
    options: Arc<SourceOptions>,
    connect: Connect,
    seen: Arc<SeenQueues>,
    /// For routes and offsets.
    asking: tokio::sync::Mutex<Box<dyn Service>>,
    /// What the group's offsets are, as far as they were told by this source.
    told: Mutex<BTreeMap<LaneId, u64>>,
    /// Topics that were said to be away.
    away: Mutex<HashSet<String>>,
}

impl RocketmqSource {
    /// `seen`: the same for every generation.
    pub(super) fn new(options: Arc<SourceOptions>, connect: Connect, seen: Arc<SeenQueues>) -> Result<Self, Fault> {
        let asking = tokio::sync::Mutex::new(connect()?);
        Ok(Self { options, connect, seen, asking, told: Mutex::default(), away: Mutex::default() })
    }

    fn namespace(&self) -> Option<&str> {
        self.options.client.namespace.as_deref()
    }

    fn lane_of(&self, queue: &Queue) -> LaneId {
        lane(self.namespace(), queue)
    }

    /// The queues of all topics that there are now. A topic without a route has none for now, if it was ever there.
    async fn present(&self, known: &BTreeMap<LaneId, u64>) -> Result<BTreeMap<LaneId, Queue>, Fault> {
        let mut present = BTreeMap::new();
        for topic in &self.options.topics {
            match self.asking.lock().await.route(topic).await? {
                Some(Route { queues, .. }) => {
                    self.set_away(topic, false);
                    present.extend(queues.into_iter().map(|queue| (self.lane_of(&queue), queue)));
                }
                None if self.was_there(topic, known) => self.set_away(topic, true),
                None => return Err(self.missing(topic)),
            }
        }
        Ok(present)
    }

    fn was_there(&self, topic: &str, known: &BTreeMap<LaneId, u64>) -> bool {
        let name = qualified(self.namespace(), topic);
        known.keys().any(|lane| topic_of(lane) == Some(&*name))
            || self.seen.all().iter().any(|(lane, _)| topic_of(lane) == Some(&*name))
    }

    fn set_away(&self, topic: &str, is_away: bool) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if is_away && away.insert(topic.to_owned()) {
            tracing::warn!("topic {topic} has no route now; its queues keep their positions until it is back");
        } else if !is_away && away.remove(topic) {
            tracing::info!("topic {topic} has a route again");
        }
    }

    fn missing(&self, topic: &str) -> Fault {
        let (name, endpoints) = (qualified(self.namespace(), topic), self.options.client.endpoints.join(";"));
        Fault::restart(FaultKind::Missing, format!("there is no topic {name} at {endpoints}"))
    }

    /// A bounded source is Finished when the lanes of its one list are at their ends, so none may be left out of it.
    fn check_complete(&self, known: &BTreeMap<LaneId, u64>, present: &BTreeMap<LaneId, Queue>) -> Result<(), Fault> {
        let names: HashSet<_> = self.options.topics.iter().map(|topic| qualified(self.namespace(), topic)).collect();
        let seen: BTreeSet<LaneId> = self.seen.all().into_iter().map(|(lane, _)| lane).collect();
        let ours = |lane: &&LaneId| topic_of(lane).is_some_and(|topic| names.contains(&*topic));
        let away = known.keys().chain(&seen).filter(ours).find(|lane| !present.contains_key(lane));
        away.map_or(Ok(()), |lane| {
            Err(Fault::retry(FaultKind::Service, format!("{lane} has no route now, so its end is not known")))
        })
    }

    /// The queues of these lanes that can be reached, from their routes if need be.
    async fn queues(&self, lanes: impl Iterator<Item = &LaneId>) -> Result<Vec<(LaneId, Queue)>, Fault> {
        let lanes: Vec<_> = lanes.collect();
        if lanes.iter().any(|lane| self.seen.get(lane).is_none()) {
            for topic in &self.options.topics {
                let route = self.asking.lock().await.route(topic).await?;
                let queues = route.map(|route| route.queues).unwrap_or_default();
                self.seen.remember(queues.into_iter().map(|queue| (self.lane_of(&queue), queue)));
            }
        }
        Ok(lanes.into_iter().filter_map(|lane| Some((lane.clone(), self.seen.get(lane)?))).collect())
    }

    fn told(&self) -> std::sync::MutexGuard<'_, BTreeMap<LaneId, u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LogSource for RocketmqSource {
    fn identity(&self) -> SourceIdentity {
        self.options.identity()
    }

    async fn lanes(&self, known: &BTreeMap<LaneId, u64>) -> Result<Lanes, Fault> {
        let present = self.present(known).await?;
        if self.options.stop_ms.is_some() {
            self.check_complete(known, &present)?;
        }
        self.seen.remember(present.clone());
        // Of what was ever there: the restart of a broker must not deal the queues of the others anew.
        let (lanes, queues): (Vec<_>, Vec<_>) = self.seen.all().into_iter().unzip();
        let owned = self.options.allocation.owned(&queues);
        let topics: HashSet<&str> = known.keys().filter_map(topic_of).collect();
        let mut answer = Lanes::default();
        for (lane, owned) in lanes.into_iter().zip(owned).filter(|(lane, _)| present.contains_key(lane)) {
            let start = match known.get(&lane) {
                Some(position) => Start::Resume(*position),
                None if topic_of(&lane).is_some_and(|topic| topics.contains(topic)) => Start::Added,
                None => Start::First,
            };
            if owned { answer.owned.push((lane, start)) } else { answer.others.push(lane) }
        }
        answer.owned.sort_by(|(one, _), (other, _)| one.cmp(other));
        answer.others.sort();
        Ok(answer)
    }

    fn discovery_interval(&self) -> Option<Duration> {
        self.options.stop_ms.is_none().then_some(self.options.discovery)
    }

    async fn open(&self, id: &LaneId, start: Start) -> Result<OpenedLane, Fault> {
        let queue = self.seen.get(id);
        let queue = queue.ok_or_else(|| Fault::restart(FaultKind::Bug, format!("{id} was opened but never listed")))?;
        let service = (self.connect)()?;
        let lane = Lane { id, queue: &queue, options: &self.options, seen: &self.seen };
        let position = lane.start(&*service, start).await?;
        let reader = QueueReader::open(id.clone(), queue, position, service, &self.options, &self.seen).await?;
        Ok(OpenedLane { reader: Arc::new(reader), position })
    }

    async fn commit(&self, positions: &BTreeMap<LaneId, u64>) -> Result<(), Fault> {
        if !self.options.commit {
            return Ok(());
        }
        let news = positions.keys().filter(|lane| self.told().get(*lane) != positions.get(*lane));
        let mut failed = None;
        for (lane, queue) in self.queues(news).await? {
            let Some(position) = positions.get(&lane) else { continue };
            let group = &self.options.group;
            match self.asking.lock().await.commit_offset(&queue, group, *position).await {
                Ok(()) => {
                    self.told().insert(lane, *position);
                }
                // A broker that is away keeps no other's offset back.
                Err(fault) => failed = Some(fault),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn ends(&self, lanes: &[LaneId]) -> Result<BTreeMap<LaneId, Range<u64>>, Fault> {
        let mut ends = BTreeMap::new();
        for (lane, queue) in self.queues(lanes.iter()).await? {
            let Ends { first, next } = Ends::of(&**self.asking.lock().await, &queue).await?;
            ends.insert(lane, first..next);
        }
        Ok(ends)
    }

    fn patience(&self) -> Duration {
        self.options.client.request_timeout
    }
}
