//! The clock that the time since a primary key was first seen is measured with.

use std::time::{Instant, SystemTime};

/// Milliseconds that go on while no process runs, and do not jump while one does.
///
/// A generation takes the wall clock once, at its start, and counts on from there by a monotonic clock: a jump of the
/// wall clock does nothing to it. So unlike the uptime that message ids expire by, this counts the time for which no
/// process ran. For it is worse to lose the legitimate update of a key, because its window has stood still, than to
/// let a duplicate through.
///
/// It never goes back behind what the last checkpoint recorded: an entry would be taken for one of the future, and stay
/// for as long as the wall clock is behind. A wall clock that is ahead at a start only lets duplicates through.
#[derive(Debug, Clone, Copy)]
pub struct KeyClock {
    base_ms: u64,
    begun: Instant,
}

impl KeyClock {
    /// Goes on now; `recorded_ms` is what the last checkpoint recorded, 0 if there is none.
    pub fn resume(recorded_ms: u64) -> Self {
        let wall = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self::at(u64::try_from(wall.as_millis()).unwrap_or(0), recorded_ms)
    }

    fn at(wall_ms: u64, recorded_ms: u64) -> Self {
        Self { base_ms: wall_ms.max(recorded_ms), begun: Instant::now() }
    }

    /// What it says now. Never less than before.
    pub fn now_ms(&self) -> u64 {
        self.base_ms.saturating_add(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_which_no_process_ran_counts_and_a_wall_clock_that_went_back_does_not() {
        let now = |wall_ms, recorded_ms| KeyClock::at(wall_ms, recorded_ms).now_ms();
        let about = |says: u64, expected: u64| assert!((expected..expected + 60_000).contains(&says), "{says}");
        about(now(1_000_000, 400_000), 1_000_000);
        about(now(1_000_000, 5_000_000), 5_000_000);
        about(now(0, 5_000_000), 5_000_000);
        about(now(1_000_000, 0), 1_000_000);
    }

    #[test]
    fn it_goes_on_by_itself_from_what_the_wall_clock_said() {
        let clock = KeyClock { base_ms: 7, begun: Instant::now() };
        let first = clock.now_ms();
        while clock.now_ms() == first {
            std::thread::yield_now();
        }
        assert!(clock.now_ms() > first && first >= 7);
    }
}
