//! The queues a source has seen, for as long as the process runs: plain data, shared by the generations of a pipeline.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::client::{Queue, qualified};
use crate::model::LaneId;

/// See the module.
#[derive(Debug, Default)]
pub struct SeenQueues(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    queues: HashMap<LaneId, Queue>,
    /// Those of them that their topic did not have at first.
    added: HashSet<LaneId>,
    /// Since when a position is beyond the end of its queue.
    beyond: HashMap<LaneId, Instant>,
}

impl SeenQueues {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers queues under the addresses they have now.
    pub fn remember(&self, queues: impl IntoIterator<Item = (LaneId, Queue)>) {
        let mut seen = self.lock();
        let topics: HashSet<_> = seen.queues.values().map(|queue| Arc::clone(&queue.topic)).collect();
        for (lane, queue) in queues {
            if topics.contains(&queue.topic) && !seen.queues.contains_key(&lane) {
                seen.added.insert(lane.clone());
            }
            seen.queues.insert(lane, queue);
        }
    }

    /// Whether its topic was seen without it before.
    pub fn was_added(&self, lane: &LaneId) -> bool {
        self.lock().added.contains(lane)
    }

    /// A queue by its lane.
    pub fn get(&self, lane: &LaneId) -> Option<Queue> {
        self.lock().queues.get(lane).cloned()
    }

    /// Every queue seen so far, and its lane.
    pub fn all(&self) -> Vec<(LaneId, Queue)> {
        self.lock().queues.iter().map(|(lane, queue)| (lane.clone(), queue.clone())).collect()
    }

    /// For how long a position has been beyond the end of its queue, counted from the first call.
    pub fn beyond_for(&self, lane: &LaneId) -> Duration {
        self.lock().beyond.entry(lane.clone()).or_insert_with(Instant::now).elapsed()
    }

    /// As if a position had been beyond the end for long.
    #[cfg(test)]
    pub fn long_beyond(&self, lane: &LaneId) {
        let long_ago = Instant::now().checked_sub(Duration::from_secs(3600)).unwrap();
        self.lock().beyond.insert(lane.clone(), long_ago);
    }

    /// The position is within its queue.
    pub fn within(&self, lane: &LaneId) {
        self.lock().beyond.remove(lane);
    }
}

/// The lane of a queue: `CLUSTER/TOPIC/BROKER/NUMBER`, the topic with its namespace.
pub fn lane(namespace: Option<&str>, queue: &Queue) -> LaneId {
    let Queue { cluster, topic, broker, id, .. } = queue;
    LaneId(format!("{cluster}/{}/{broker}/{id}", qualified(namespace, topic)).into())
}

/// The topic of a lane, with its namespace. From the right: topics and numbers have no `/` in them, and brokers are
/// named after hosts.
pub fn topic_of(lane: &LaneId) -> Option<&str> {
    lane.0.rsplit('/').nth(2)
}
