//! The topics of a source: which queues they have now, and where.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use super::{
    client::{Queue, Route, qualified},
    queues::{SeenQueues, lane, topic_of},
    service::{Connect, Service},
    source_options::SourceOptions,
};
use crate::model::{Fault, FaultKind, LaneId};

/// Shared by a source and its readers.
pub(super) struct Topics {
    pub options: SourceOptions,
    /// Every queue that was ever there, and where it was last.
    pub seen: Arc<SeenQueues>,
    /// Asks for routes and offsets. No reader pulls with it, for a pull waits, and is cut off when any connection of its
    /// client ends.
    pub asking: tokio::sync::Mutex<Asking>,
}

/// Asks, one question after the other.
pub(super) struct Asking {
    pub service: Box<dyn Service>,
    /// The last answer for each topic, and when it was asked for.
    routes: HashMap<String, (Instant, Answer)>,
}

/// The queues of a topic; `None`: it has no route.
type Answer = Result<Option<Arc<BTreeMap<LaneId, Queue>>>, Fault>;

impl Topics {
    pub fn new(options: SourceOptions, connect: &Connect, seen: Arc<SeenQueues>) -> Result<Self, Fault> {
        let asking = Asking { service: connect()?, routes: HashMap::new() };
        Ok(Self { options, seen, asking: tokio::sync::Mutex::new(asking) })
    }

    fn lane(&self, queue: &Queue) -> LaneId {
        lane(self.options.client.namespace.as_deref(), queue)
    }

    /// A topic with its namespace.
    fn name<'a>(&self, topic: &'a str) -> std::borrow::Cow<'a, str> {
        qualified(self.options.client.namespace.as_deref(), topic)
    }

    /// Readers that lost the same broker wait for one answer, whether it is good or not.
    async fn route(&self, topic: &str) -> Answer {
        let wanted = Instant::now();
        let mut asking = self.asking.lock().await;
        if let Some((asked, answer)) = asking.routes.get(topic)
            && *asked >= wanted
        {
            return answer.clone();
        }
        let asked = Instant::now();
        let lanes = |route: Route| route.queues.into_iter().map(|queue| (self.lane(&queue), queue));
        let answer: Answer =
            asking.service.route(topic).await.map(|route| route.map(|route| Arc::new(lanes(route).collect())));
        if let Ok(Some(lanes)) = &answer {
            self.seen.remember(lanes.iter().map(|(lane, queue)| (lane.clone(), queue.clone())));
        }
        asking.routes.insert(topic.to_owned(), (asked, answer.clone()));
        answer
    }

    /// The queues there are now. A topic that was there before, in `known` or in this process, may have none for a while;
    /// one that never was is waited for, as trouble.
    pub async fn queues_now(&self, known: &BTreeMap<LaneId, u64>) -> Result<BTreeMap<LaneId, Queue>, Fault> {
        let mut now = BTreeMap::new();
        for topic in &self.options.topics {
            let was_there = self.was_there(topic, known);
            match self.route(topic).await? {
                Some(queues) => now.extend(queues.iter().map(|(lane, queue)| (lane.clone(), queue.clone()))),
                None if was_there => {}
                None => return Err(self.missing(topic)),
            }
        }
        Ok(now)
    }

    fn was_there(&self, topic: &str, known: &BTreeMap<LaneId, u64>) -> bool {
        let name = self.name(topic);
        let of_it = |lane: &LaneId| topic_of(lane) == Some(&*name);
        known.keys().any(of_it) || self.seen.all().iter().any(|(lane, _)| of_it(lane))
    }

    fn missing(&self, topic: &str) -> Fault {
        let (name, endpoints) = (self.name(topic), self.options.client.endpoints.join(";"));
        // A producer may make it with its first message.
        Fault::retry(FaultKind::Missing, format!("there is no topic {name} at {endpoints}"))
    }

    /// Refuses to go without a queue of these topics that is known: where one list of lanes is all there ever is, what it
    /// leaves out would count as read to its end.
    pub fn check_complete(&self, known: &BTreeMap<LaneId, u64>, now: &BTreeMap<LaneId, Queue>) -> Result<(), Fault> {
        let names: HashSet<_> = self.options.topics.iter().map(|topic| self.name(topic)).collect();
        let seen = self.seen.all();
        let of_these = |lane: &&LaneId| topic_of(lane).is_some_and(|topic| names.contains(topic));
        let mut before = known.keys().chain(seen.iter().map(|(lane, _)| lane)).filter(of_these);
        before.find(|lane| !now.contains_key(lane)).map_or(Ok(()), |lane| Err(no_route(lane)))
    }

    /// The queue of a lane, where it is now.
    pub async fn queue_now(&self, lane: &LaneId, topic: &str) -> Result<Queue, Fault> {
        let found = self.route(topic).await?.and_then(|queues| queues.get(lane).cloned());
        found.ok_or_else(|| no_route(lane))
    }

    /// Where the queues of these lanes were last; what was never seen is asked for, and left out if it is not there.
    pub async fn last_seen<'a>(
        &self,
        lanes: impl Iterator<Item = &'a LaneId> + Send,
    ) -> Result<Vec<(LaneId, Queue)>, Fault> {
        let lanes: Vec<_> = lanes.collect();
        if lanes.iter().any(|lane| self.seen.get(lane).is_none()) {
            for topic in &self.options.topics {
                self.route(topic).await?;
            }
        }
        Ok(lanes.into_iter().filter_map(|lane| Some((lane.clone(), self.seen.get(lane)?))).collect())
    }
}

fn no_route(lane: &LaneId) -> Fault {
    Fault::retry(FaultKind::Service, format!("{lane} has no route now; its broker may be away"))
}
