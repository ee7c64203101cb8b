//! The ids of messages that are on their way, or disposed of and not yet known to be deleted.

use std::{
    collections::HashMap,
    collections::hash_map::Entry,
    hash::{BuildHasherDefault, Hash, Hasher},
};

use crate::model::{Fingerprint, TakeAsIs};

/// What is known of a message id at the moment it is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Not known. From now on it is [`Seen::OnTheWay`].
    New,
    /// Seen, but in no checkpoint yet.
    OnTheWay,
    /// Disposed of by a recorded checkpoint.
    Settled,
}

/// A set of message ids, each new, on its way, or settled with a stamp.
///
/// Stamps are the pipeline's *uptime*, so that no change of the clock expires an id, and a process that was down
/// for a month still knows them all. They are kept in whole seconds, rounded up.
///
/// A slot takes 21 bytes, and there are between 8/7 and 16/7 slots an id: 24 to 48 bytes, and at most 72 for the
/// moment in which the table doubles. The fingerprint is kept as bytes since a `u128` would align slots to 16.
#[derive(Debug, Default)]
pub struct Ids {
    table: HashMap<Key, Stamp, BuildHasherDefault<TakeAsIs>>,
    /// No settled id has an older stamp. Makes an expiry that finds nothing free.
    oldest_s: u32,
    settled: usize,
}

/// Uptime in seconds, or [`ON_THE_WAY`].
type Stamp = u32;

/// The uptime of 136 years is not reached.
const ON_THE_WAY: Stamp = Stamp::MAX;

/// Below this many slots, giving memory back is not worth the work.
const SMALL: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key([u8; 16]);

impl Key {
    const fn new(id: Fingerprint) -> Self {
        Self(id.0.to_ne_bytes())
    }

    const fn fingerprint(self) -> Fingerprint {
        Fingerprint(u128::from_ne_bytes(self.0))
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint().hash(state);
    }
}

impl Ids {
    /// The ids a restored checkpoint knows, each with its stamp in milliseconds of uptime. All are settled.
    pub fn load(ids: Vec<(Fingerprint, u64)>) -> Self {
        let mut table = HashMap::with_capacity_and_hasher(ids.len(), BuildHasherDefault::default());
        let mut oldest_s = ON_THE_WAY;
        for (id, stamp_ms) in ids {
            let stamp = seconds(stamp_ms);
            oldest_s = oldest_s.min(stamp);
            table.insert(Key::new(id), stamp);
        }
        Self { settled: table.len(), table, oldest_s }
    }

    /// What is known of an id. A new one is on its way from now on.
    pub fn see(&mut self, id: Fingerprint) -> Seen {
        match self.table.entry(Key::new(id)) {
            Entry::Vacant(vacant) => {
                vacant.insert(ON_THE_WAY);
                Seen::New
            }
            Entry::Occupied(known) if *known.get() == ON_THE_WAY => Seen::OnTheWay,
            Entry::Occupied(_) => Seen::Settled,
        }
    }

    /// Ids a recorded checkpoint has disposed of, at this uptime in milliseconds. One that is settled already keeps
    /// its stamp; one that is not known is taken in, for it is in the record.
    pub fn settle(&mut self, ids: impl IntoIterator<Item = Fingerprint>, stamp_ms: u64) {
        let stamp = seconds(stamp_ms);
        for id in ids {
            let known = self.table.entry(Key::new(id)).or_insert(ON_THE_WAY);
            if *known == ON_THE_WAY {
                *known = stamp;
                self.oldest_s = if self.settled == 0 { stamp } else { self.oldest_s.min(stamp) };
                self.settled += 1;
            }
        }
    }

    /// Ids that will not be delivered again: deleted, and every poll begun before that has ended. Also those of
    /// messages that were given up before a checkpoint.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = Fingerprint>) {
        for id in ids {
            if self.table.remove(&Key::new(id)).is_some_and(|stamp| stamp != ON_THE_WAY) {
                self.settled -= 1;
            }
        }
        self.give_back();
    }

    /// Forgets and answers the settled ids whose stamp is at least `retention_ms` of uptime ago: the service itself
    /// has dropped their messages by now. Costs nothing as long as there are none.
    pub fn expire(&mut self, uptime_now_ms: u64, retention_ms: u64) -> Vec<Fingerprint> {
        let expired =
            |stamp: Stamp| u64::from(stamp).saturating_mul(1000).saturating_add(retention_ms) <= uptime_now_ms;
        if self.settled == 0 || !expired(self.oldest_s) {
            return Vec::new();
        }
        let (mut gone, mut oldest_s) = (Vec::new(), ON_THE_WAY);
        self.table.retain(|key, stamp| {
            if *stamp != ON_THE_WAY && expired(*stamp) {
                gone.push(key.fingerprint());
                return false;
            }
            oldest_s = oldest_s.min(*stamp);
            true
        });
        self.oldest_s = oldest_s;
        self.settled -= gone.len();
        self.give_back();
        gone
    }

    /// The settled ids, each with its stamp in milliseconds of uptime: what a snapshot holds.
    pub fn live(&self) -> impl Iterator<Item = (Fingerprint, u64)> {
        let settled = self.table.iter().filter(|(_, stamp)| **stamp != ON_THE_WAY);
        settled.map(|(key, stamp)| (key.fingerprint(), u64::from(*stamp) * 1000))
    }

    /// How many are settled.
    pub fn settled(&self) -> usize {
        self.settled
    }

    /// How many are on their way.
    pub fn on_the_way(&self) -> usize {
        self.table.len() - self.settled
    }

    /// Bytes of memory the table takes, as far as its layout is known.
    pub fn bytes(&self) -> usize {
        let slots = match self.table.capacity() {
            0 => 0,
            // One slot in eight stays free.
            capacity => (capacity * 8 / 7).next_power_of_two(),
        };
        slots * (size_of::<(Key, Stamp)>() + 1)
    }

    /// A table that was once large does not stay so.
    fn give_back(&mut self) {
        if self.table.capacity() > SMALL && self.table.len() < self.table.capacity() / 8 {
            self.table.shrink_to(self.table.len() * 2);
        }
    }
}

fn seconds(ms: u64) -> Stamp {
    u32::try_from(ms.div_ceil(1000)).unwrap_or(ON_THE_WAY).min(ON_THE_WAY - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceIdentity;

    fn id(n: u64) -> Fingerprint {
        Fingerprint::of_message(&SourceIdentity("test".to_owned()), &n.to_string())
    }

    #[test]
    fn an_id_is_new_then_on_its_way_then_settled_then_new_again() {
        let mut ids = Ids::default();
        assert_eq!(ids.see(id(1)), Seen::New);
        assert_eq!(ids.see(id(1)), Seen::OnTheWay);
        assert_eq!((ids.on_the_way(), ids.settled()), (1, 0));
        ids.settle([id(1)], 500);
        assert_eq!(ids.see(id(1)), Seen::Settled);
        assert_eq!((ids.on_the_way(), ids.settled()), (0, 1));
        ids.forget([id(1)]);
        assert_eq!(ids.see(id(1)), Seen::New);
    }

    #[test]
    fn a_settled_id_expires_after_the_retention_and_not_before() {
        let mut ids = Ids::default();
        ids.settle([id(1)], 10_000);
        ids.settle([id(2)], 20_000);
        ids.see(id(3));
        assert_eq!(ids.expire(69_999, 60_000), []);
        assert_eq!(ids.expire(70_000, 60_000), [id(1)]);
        assert_eq!(ids.expire(79_999, 60_000), []);
        assert_eq!(ids.expire(80_000, 60_000), [id(2)]);
        assert_eq!(ids.expire(u64::MAX, 60_000), [], "what is on its way does not expire");
        assert_eq!(ids.see(id(3)), Seen::OnTheWay);
        ids.settle([id(3)], 90_000);
        assert_eq!(ids.expire(150_000, 60_000), [id(3)]);
    }

    #[test]
    fn rounding_never_lets_an_id_expire_early() {
        let mut ids = Ids::default();
        ids.settle([id(1)], 1);
        assert_eq!(ids.expire(60_000, 60_000), []);
        assert_eq!(ids.expire(61_000, 60_000), [id(1)]);
    }

    #[test]
    fn settling_again_keeps_the_first_stamp() {
        let mut ids = Ids::default();
        ids.settle([id(1)], 1000);
        ids.settle([id(1)], 9000);
        assert_eq!(ids.live().collect::<Vec<_>>(), [(id(1), 1000)]);
        assert_eq!(ids.settled(), 1);
    }

    #[test]
    fn a_loaded_snapshot_is_what_was_live() {
        let mut ids = Ids::default();
        ids.settle((0..100).map(id), 3000);
        ids.see(id(1000));
        let mut live: Vec<_> = ids.live().collect();
        let loaded = Ids::load(live.clone());
        let mut again: Vec<_> = loaded.live().collect();
        live.sort_unstable();
        again.sort_unstable();
        assert_eq!(live, again);
        assert_eq!(live.len(), 100, "what is on its way is in no snapshot");
        let mut loaded = loaded;
        assert_eq!(loaded.see(id(1000)), Seen::New);
        assert_eq!(loaded.expire(63_000, 60_000).len(), 100);
    }

    #[test]
    fn memory_is_given_back_after_a_burst() {
        let mut ids = Ids::default();
        ids.settle((0..200_000).map(id), 0);
        let most = ids.bytes();
        assert!(most <= 80 * 200_000, "{most}");
        ids.forget((0..199_000).map(id));
        assert!(ids.bytes() < most / 16, "{} of {most}", ids.bytes());
        assert_eq!(ids.see(id(199_500)), Seen::Settled);
    }
}
