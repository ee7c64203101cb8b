//! The primary keys that were first seen not long ago.

use std::{
    collections::{HashSet, VecDeque},
    hash::BuildHasherDefault,
    time::Duration,
};

use crate::model::{Fingerprint, TakeAsIs};

/// A set of keys, each of which leaves it a fixed time after it came, whatever is asked of it meanwhile.
///
/// Keys come in the order of the clock, so the one that leaves next is the one that came first: a queue says which.
/// What has left takes no memory, and what is in the set needs no stamp there. A key takes 17 bytes a slot of the set,
/// of which there are between 8/7 and 16/7 a key while it grows, and up to 32/7 while as many keys leave as come; and
/// 16 to 32 bytes in the queue, plus as much again for each moment of the clock in which keys came. That is 36 to 110
/// bytes, and up to 32 more where each key came in a moment of its own.
#[derive(Debug, Default)]
pub struct KeyWindow {
    window_ms: u64,
    seen: HashSet<Fingerprint, BuildHasherDefault<TakeAsIs>>,
    /// The same keys in the order in which they came.
    order: VecDeque<Fingerprint>,
    /// When they came, and how many at once.
    moments: VecDeque<(u64, u32)>,
}

/// Below this many slots, giving memory back is not worth the work.
const SMALL: usize = 16 * 1024;

impl KeyWindow {
    /// A window as long as `window`, with what a restored checkpoint knows: keys, each with when it was first seen, in
    /// milliseconds of the clock that says `now_ms` now. Of a key that is there twice the later one counts: the earlier
    /// one had left before the key came again.
    pub fn load(window: Duration, mut keys: Vec<(Fingerprint, u64)>, now_ms: u64) -> Self {
        let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        keys.retain(|(_, first_seen_ms)| first_seen_ms.saturating_add(window_ms) > now_ms);
        keys.sort_by_key(|(_, first_seen_ms)| *first_seen_ms);
        let mut seen = HashSet::with_capacity_and_hasher(keys.len(), BuildHasherDefault::default());
        let mut latest: Vec<bool> = keys.iter().rev().map(|(key, _)| seen.insert(*key)).collect();
        latest.reverse();
        let mut loaded = Self { window_ms, seen, ..Self::default() };
        for ((key, first_seen_ms), _) in keys.into_iter().zip(latest).filter(|(_, latest)| *latest) {
            loaded.append(key, first_seen_ms);
        }
        loaded
    }

    /// Whether a row with this key may pass at this time of the clock, which never goes back: no other has within the
    /// window. If so, the window of the key begins now; if not, it stays as it is.
    pub fn pass(&mut self, key: Fingerprint, now_ms: u64) -> bool {
        self.expire(now_ms);
        let passes = self.seen.insert(key);
        if passes {
            self.append(key, now_ms);
        }
        passes
    }

    fn append(&mut self, key: Fingerprint, first_seen_ms: u64) {
        self.order.push_back(key);
        match self.moments.back_mut().filter(|(at, count)| *at == first_seen_ms && *count < u32::MAX) {
            Some((_, count)) => *count += 1,
            None => self.moments.push_back((first_seen_ms, 1)),
        }
    }

    /// Forgets every key that was first seen as long ago as the window is, or longer. Costs nothing while there is none.
    pub fn expire(&mut self, now_ms: u64) {
        let window_ms = self.window_ms;
        let mut any = false;
        while let Some((_, count)) = self.moments.pop_front_if(|(at, _)| at.saturating_add(window_ms) <= now_ms) {
            for key in self.order.drain(..(count as usize).min(self.order.len())) {
                self.seen.remove(&key);
            }
            any = true;
        }
        if any {
            self.give_back();
        }
    }

    /// How many keys are in the window.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Bytes of memory it takes, as far as the layout is known.
    pub fn bytes(&self) -> usize {
        let slots = match self.seen.capacity() {
            0 => 0,
            // One slot in eight stays free.
            capacity => (capacity * 8 / 7).next_power_of_two(),
        };
        slots * (size_of::<Fingerprint>() + 1)
            + self.order.capacity() * size_of::<Fingerprint>()
            + self.moments.capacity() * size_of::<(u64, u32)>()
    }

    /// What was once large does not stay so.
    fn give_back(&mut self) {
        if self.seen.capacity() > SMALL && self.seen.len() < self.seen.capacity() / 8 {
            self.seen.shrink_to(self.seen.len() * 2);
            self.order.shrink_to(self.order.len() * 2);
            self.moments.shrink_to(self.moments.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Fingerprint {
        Fingerprint::of_parts(["key", &n.to_string()])
    }

    fn window(ms: u64) -> KeyWindow {
        KeyWindow::load(Duration::from_millis(ms), Vec::new(), 0)
    }

    #[test]
    fn a_key_passes_again_exactly_when_its_window_is_over_and_a_duplicate_does_not_begin_it_anew() {
        let mut keys = window(1000);
        assert!(keys.pass(key(1), 50));
        for inside in [50, 51, 700, 1049] {
            assert!(!keys.pass(key(1), inside), "{inside}");
        }
        assert!(keys.pass(key(1), 1050), "the window runs from first seen");
        assert!(!keys.pass(key(1), 2049));
        assert!(keys.pass(key(1), 2050));
        assert_eq!(keys.len(), 1);
    }

    #[test]
    fn keys_do_not_share_a_window() {
        let mut keys = window(100);
        assert!(keys.pass(key(1), 0) && keys.pass(key(2), 60) && keys.pass(key(3), 60));
        assert!(keys.pass(key(1), 100) && !keys.pass(key(2), 100));
        assert!(!keys.pass(key(1), 160) && keys.pass(key(3), 160) && keys.pass(key(2), 160));
    }

    #[test]
    fn what_has_expired_is_freed_without_being_asked_for() {
        let mut keys = window(100);
        for n in 0..100_000 {
            assert!(keys.pass(key(n), n / 1000));
        }
        let most = keys.bytes();
        assert!(most <= 80 * 100_000, "{most}");
        keys.expire(198);
        assert_eq!(keys.len(), 1000, "those of the last millisecond");
        keys.expire(199);
        assert!(keys.is_empty());
        assert!(keys.bytes() < most / 40, "{} of {most}", keys.bytes());
    }

    #[test]
    fn a_hundred_windows_of_keys_take_no_more_memory_than_ten() {
        let mut keys = window(1000);
        let mut most = 0;
        for n in 0..1_000_000 {
            assert!(keys.pass(key(n), n / 10));
            if n == 100_000 {
                most = keys.bytes();
            }
        }
        assert_eq!(keys.len(), 10_000);
        assert!(most <= 110 * 10_000, "{most}");
        assert!(keys.bytes() <= most, "{} instead of {most}", keys.bytes());
    }

    #[test]
    fn a_restored_window_goes_on_where_it_was() {
        let kept = vec![(key(3), 900), (key(1), 400), (key(2), 100)];
        let mut keys = KeyWindow::load(Duration::from_millis(1000), kept, 1100);
        assert_eq!(keys.len(), 2, "the one of 100 is over");
        assert!(keys.pass(key(2), 1100));
        assert!(!keys.pass(key(1), 1399) && keys.pass(key(1), 1400));
        assert!(!keys.pass(key(3), 1899) && keys.pass(key(3), 1900));
        assert!(!keys.pass(key(2), 2099) && keys.pass(key(2), 2100));
    }

    #[test]
    fn of_a_key_that_was_recorded_twice_the_later_window_counts() {
        // As it is where the window has been made longer since.
        let mut keys = KeyWindow::load(Duration::from_secs(1), vec![(key(1), 500), (key(1), 100)], 600);
        assert_eq!(keys.len(), 1);
        assert!(!keys.pass(key(1), 1499) && keys.pass(key(1), 1500));
    }

    #[test]
    fn a_window_of_no_length_drops_nothing() {
        let mut keys = window(0);
        assert!(keys.pass(key(1), 5) && keys.pass(key(1), 5) && keys.pass(key(1), 6));
    }

    #[test]
    fn the_longest_window_is_no_overflow() {
        let mut keys = KeyWindow::load(Duration::MAX, Vec::new(), 0);
        assert!(keys.pass(key(1), 1 << 50) && !keys.pass(key(1), 1 << 51));
    }
}
