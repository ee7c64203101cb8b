//! Which queues are read here, of those that several processes share.
//!
//! The formulae are those of Apache's connector for Flink, so that a queue goes where it went there.

use std::collections::BTreeMap;

use super::client::Queue;

/// `rocketmq.source.allocate.strategy`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// By a hash of broker, number and topic.
    Hash,
    /// Dealt one by one.
    Average,
    /// Every process reads every queue.
    Broadcast,
}

/// Which share of the queues is read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// How they are shared.
    pub strategy: Strategy,
    /// Among how many processes; at least 1.
    pub parallelism: u32,
    /// Which of them this is; below `parallelism`.
    pub index: u32,
}

impl Allocation {
    /// Whether other processes may have read a queue that comes to this one.
    pub fn is_shared(&self) -> bool {
        self.parallelism > 1 && self.strategy != Strategy::Broadcast
    }

    /// Whether each of these queues is read here. `queues` are all that there are, of all topics; their order does not
    /// matter.
    pub fn owned(&self, queues: &[Queue]) -> Vec<bool> {
        owned(self.strategy, self.parallelism, self.index, queues)
    }
}

/// Whether each queue is read by process `index` of `parallelism`.
pub fn owned(strategy: Strategy, parallelism: u32, index: u32, queues: &[Queue]) -> Vec<bool> {
    let parallelism = parallelism.max(1);
    match strategy {
        Strategy::Broadcast => vec![true; queues.len()],
        Strategy::Hash => queues.iter().map(|queue| owner_by_hash(queue, parallelism) == index).collect(),
        Strategy::Average => {
            let owners = owners_dealt(parallelism, queues);
            queues.iter().map(|queue| owners.get(&key(queue)) == Some(&index)).collect()
        }
    }
}

/// Java's `String.hashCode`.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Which of `parallelism` a Java hash stands for.
fn slot(hash: i32, parallelism: u32) -> u32 {
    let positive = hash.wrapping_mul(31) & 0x7fff_ffff;
    positive.cast_unsigned() % parallelism
}

/// `MessageQueue.hashCode` of Java.
fn queue_hash(queue: &Queue) -> i32 {
    let number = queue.id.cast_signed();
    let hash = 31_i32.wrapping_add(java_hash(&queue.broker));
    let hash = hash.wrapping_mul(31).wrapping_add(number);
    hash.wrapping_mul(31).wrapping_add(java_hash(&queue.topic))
}

fn owner_by_hash(queue: &Queue, parallelism: u32) -> u32 {
    slot(queue_hash(queue), parallelism)
}

/// What tells queues apart; a broker that has moved to another address has the same ones.
type Key<'a> = (&'a str, &'a str, &'a str, u32);

fn key(queue: &Queue) -> Key<'_> {
    (&queue.topic, &queue.cluster, &queue.broker, queue.id)
}

/// Each topic begins at a process that its name says, and goes on with the next for each queue dealt so far, of whatever
/// topic. Apache's connector deals in the order of a hash set, and so not in the same one in every process; here they
/// are sorted.
fn owners_dealt(parallelism: u32, queues: &[Queue]) -> BTreeMap<Key<'_>, u32> {
    let mut owners: BTreeMap<_, _> = queues.iter().map(|queue| (key(queue), 0)).collect();
    for (dealt, ((topic, ..), owner)) in (0_u64..).zip(&mut owners) {
        let turn = u64::from(slot(java_hash(topic), parallelism)) + dealt;
        // A remainder of 32 bits fits them.
        *owner = (turn % u64::from(parallelism)) as u32;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(topic: &str, broker: &str, id: u32) -> Queue {
        let address = "127.0.0.1:10911".into();
        Queue { cluster: "c".into(), topic: topic.into(), broker: broker.into(), id, address }
    }

    fn eight() -> Vec<Queue> {
        (0..8).map(|id| queue("TopicTest", "broker-a", id)).collect()
    }

    /// Who reads each queue; exactly one does.
    fn owners(strategy: Strategy, parallelism: u32, queues: &[Queue]) -> Vec<u32> {
        let shares: Vec<_> = (0..parallelism).map(|index| owned(strategy, parallelism, index, queues)).collect();
        let owner = |at: usize| {
            let readers: Vec<u32> = (0..).zip(&shares).filter(|(_, share)| share[at]).map(|(index, _)| index).collect();
            assert_eq!(readers.len(), 1, "queue {at} is read by {readers:?}");
            readers[0]
        };
        (0..queues.len()).map(owner).collect()
    }

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!(java_hash("TopicTest"), -1_902_610_879);
        assert_eq!(queue_hash(&queue("TopicTest", "broker-a", 0)), -222_122_291);
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("\u{1f600}"), 0xd83d * 31 + 0xde00, "by UTF-16");
    }

    #[test]
    fn hash_gives_each_queue_the_owner_it_has_in_flink() {
        assert_eq!(owners(Strategy::Hash, 2, &eight()), [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(owners(Strategy::Hash, 4, &eight()), [3, 0, 1, 2, 3, 0, 1, 2]);
        assert_eq!(owners(Strategy::Hash, 1, &eight()), [0; 8]);
    }

    #[test]
    fn average_deals_the_queues_from_where_the_topic_says_whatever_their_order() {
        assert_eq!(owners(Strategy::Average, 2, &eight()), [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(owners(Strategy::Average, 4, &eight()), [3, 0, 1, 2, 3, 0, 1, 2]);
        let mut reversed = eight();
        reversed.reverse();
        assert_eq!(owners(Strategy::Average, 4, &reversed), [2, 1, 0, 3, 2, 1, 0, 3]);
    }

    #[test]
    fn average_leaves_nobody_more_than_one_queue_of_a_topic_behind() {
        let brokers = ["x", "y", "z"].into_iter();
        let queues: Vec<_> = brokers.flat_map(|broker| (0..3).map(move |id| queue("t", broker, id))).collect();
        let owners = owners(Strategy::Average, 4, &queues);
        let shares = (0..4).map(|index| owners.iter().filter(|owner| **owner == index).count());
        let shares: Vec<_> = shares.collect();
        assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{shares:?}");
    }

    #[test]
    fn broadcast_gives_everyone_everything() {
        for index in 0..3 {
            assert_eq!(owned(Strategy::Broadcast, 3, index, &eight()), [true; 8]);
        }
    }
}
