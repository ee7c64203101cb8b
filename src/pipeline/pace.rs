//! How fast the poller may receive: a bucket of tokens, one for each message. Plain data.

use std::time::{Duration, Instant};

use crate::definition::Rate;

/// How many messages a poll brings is known only afterwards, so a bucket may be in debt. The next poll waits until the
/// debt is paid, which keeps the average whatever a single poll brings.
#[derive(Debug)]
pub struct Pace {
    per_second: f64,
    tokens: f64,
    at: Instant,
}

impl Pace {
    /// A bucket that holds what a second brings, and is full.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { per_second: rate.per_second(), tokens: rate.per_second(), at: now }
    }

    /// How long one more poll has to wait; each of those under way is taken to bring at least one message. `None`: it
    /// may begin now.
    pub fn wait(&mut self, now: Instant, under_way: usize) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.per_second);
        self.at = now;
        let missing = under_way as f64 - self.tokens;
        // No sooner than the clock ticks: what is missing may be next to nothing.
        let wait = |missing: f64| Duration::from_secs_f64(missing / self.per_second).max(Duration::from_millis(1));
        (missing > 0.0).then(|| wait(missing))
    }

    /// A poll has brought so many messages.
    pub fn spend(&mut self, messages: usize) {
        self.tokens -= messages as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Per;

    /// Messages received in a stretch of time by polls that bring `each`.
    fn received(rate: Rate, each: usize, seconds: u64) -> usize {
        let begun = Instant::now();
        let (mut now, mut pace, mut received) = (begun, Pace::new(rate, begun), 0);
        while now < begun + Duration::from_secs(seconds) {
            match pace.wait(now, 0) {
                Some(wait) => now += wait,
                None => {
                    pace.spend(each);
                    received += each;
                }
            }
        }
        received
    }

    #[test]
    fn the_average_holds_however_many_messages_a_poll_brings() {
        for (count, per, each, seconds) in [
            (500, Per::Second, 1, 60),
            (500, Per::Second, 16, 60),
            (30, Per::Minute, 16, 3_600),
            (1, Per::Hour, 1, 86_400),
        ] {
            let rate = Rate { count, per };
            let (all, due) = (received(rate, each, seconds) as f64, rate.per_second() * seconds as f64);
            let most = due + rate.per_second() + each as f64;
            assert!(all >= due - 1.0 && all <= most, "{rate}, {each} at a time: {all} in {seconds} s");
        }
    }

    #[test]
    fn a_pause_saves_up_a_second_and_no_more_and_polls_under_way_count() {
        let begun = Instant::now();
        let mut pace = Pace::new(Rate { count: 2, per: Per::Second }, begun);
        pace.spend(2);
        let later = begun + Duration::from_secs(3_600);
        assert_eq!(pace.wait(later, 2), None);
        assert_eq!(pace.wait(later, 3), Some(Duration::from_millis(500)));
        pace.spend(3);
        assert_eq!(pace.wait(later, 0), Some(Duration::from_millis(500)));
        assert_eq!(pace.wait(later + Duration::from_millis(500), 0), None);
    }
}
