//! What goes wrong now: the dice, thrown by the queue's switches and counted.

use std::time::Duration;

use tokio::time::sleep;

use super::{Faults, Statistics};

/// How far ahead the clock of `clock-skew` is; the service tolerates 15 minutes.
const SKEW_MS: i64 = 20 * 60 * 1000;

/// The switches of a queue, and what they have done.
#[derive(Debug)]
pub(super) struct Orders {
    pub faults: Faults,
    pub statistics: Statistics,
    random: fastrand::Rng,
}

/// What is ordered for one request before anyone has looked at it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ForRequest {
    pub refusal: Option<Refused>,
    /// Whether it is done but never answered.
    pub is_silent: bool,
    /// How far ahead the clock is that the request is judged and answered by.
    pub clock_offset_ms: i64,
    /// How long the answer is held back.
    pub delay: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Throttled,
    Unavailable,
    TimeExpired,
    NotAuthenticated,
    /// The connection is cut while the request is under way.
    Cut,
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Through {
    Mns,
    CmqHttp,
    CmqTcp,
}

/// How long a request is under way before its connection is cut.
const BEFORE_CUT: Duration = Duration::from_millis(50);

impl ForRequest {
    /// Why nothing is to be done for the request, once it is time to say so.
    pub(super) async fn refused(&self) -> Option<Refused> {
        if self.refusal == Some(Refused::Cut) {
            sleep(BEFORE_CUT).await;
        }
        self.refusal
    }

    /// Returns when the answer may be sent, and whether it is sent at all.
    pub(super) async fn hold_back(&self) -> bool {
        if !self.delay.is_zero() {
            sleep(self.delay).await;
        }
        !self.is_silent
    }
}

impl Orders {
    pub(super) fn new(faults: Faults, seed: u64) -> Self {
        Self { faults, statistics: Statistics::default(), random: fastrand::Rng::with_seed(seed) }
    }

    /// Probability 0 uses up no randomness, so a fault that is off does not change what the others do.
    pub(super) fn roll(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.f64() < probability
    }

    /// What happens to a request whatever it asks for.
    pub(super) fn for_request(&mut self, through: Through) -> ForRequest {
        let mut clock_offset_ms = self.faults.clock_offset_ms;
        // No proxy stands before the frames, and CMQ's tables of errors know no clock.
        let (has_proxy, has_clock) = (through != Through::CmqTcp, through == Through::Mns);
        let refusal = if has_proxy && self.roll(self.faults.unavailable) {
            self.statistics.unavailable += 1;
            Some(Refused::Unavailable)
        } else if self.roll(self.faults.throttle) {
            self.statistics.throttled += 1;
            Some(Refused::Throttled)
        } else if has_clock && self.roll(self.faults.clock_skew) {
            clock_offset_ms += SKEW_MS;
            Some(Refused::TimeExpired)
        } else if self.roll(self.faults.not_authenticated) {
            self.statistics.not_authenticated += 1;
            Some(Refused::NotAuthenticated)
        } else if self.roll(self.faults.cut_connection) {
            self.statistics.connections_cut += 1;
            Some(Refused::Cut)
        } else {
            None
        };
        let is_silent = refusal.is_none() && self.roll(self.faults.no_reply);
        self.statistics.unanswered += u64::from(is_silent);
        let delay = Duration::from_millis(u64::try_from(self.faults.delay_ms).unwrap_or(0));
        self.statistics.slow_answers += u64::from(!delay.is_zero());
        ForRequest { refusal, is_silent, clock_offset_ms, delay }
    }

    /// Whether a send is to fail before it is done.
    pub(super) fn fails_send(&mut self) -> bool {
        let fails = self.roll(self.faults.error_on_send);
        self.statistics.errors_on_send += u64::from(fails);
        fails
    }

    /// Whether the answer of a send that was done is to be lost.
    pub(super) fn loses_send_reply(&mut self) -> bool {
        let loses = self.roll(self.faults.lost_send_reply);
        self.statistics.lost_send_replies += u64::from(loses);
        loses
    }

    /// Whether the name server does not answer.
    pub(super) fn is_name_server_down(&mut self) -> bool {
        let is_down = self.roll(self.faults.name_server_down);
        self.statistics.name_server_downs += u64::from(is_down);
        is_down
    }

    /// Whether a route begins with an address where nobody listens.
    pub(super) fn has_dead_address(&mut self) -> bool {
        let has = self.roll(self.faults.dead_route);
        self.statistics.dead_routes += u64::from(has);
        has
    }

    /// Whether a receive is to fail.
    pub(super) fn fails_receive(&mut self) -> bool {
        let fails = self.roll(self.faults.error_on_receive);
        self.statistics.errors_on_receive += u64::from(fails);
        fails
    }

    /// How many messages a receive gets at most that asks for `asked` when so many are ready.
    pub(super) fn how_many(&mut self, asked: usize, ready: usize) -> usize {
        let most = asked.min(ready);
        if most < 2 || !self.roll(self.faults.fewer_than_asked) {
            return asked;
        }
        self.statistics.short_receives += 1;
        self.random.usize(1..most)
    }

    /// Whether a receive that would wait is not to; counted by whoever answers it.
    pub(super) fn is_impatient(&mut self) -> bool {
        self.roll(self.faults.empty_at_once)
    }

    /// Whether the answer of a receive that was done is to be lost.
    pub(super) fn loses_receive_reply(&mut self) -> bool {
        let loses = self.roll(self.faults.lost_receive_reply);
        self.statistics.lost_receive_replies += u64::from(loses);
        loses
    }

    /// Whether a delete is to fail before it is done.
    pub(super) fn fails_delete(&mut self) -> bool {
        let fails = self.roll(self.faults.error_on_delete);
        self.statistics.errors_on_delete += u64::from(fails);
        fails
    }

    /// Whether the answer of a delete that was done is to be lost.
    pub(super) fn loses_delete_reply(&mut self) -> bool {
        let loses = self.roll(self.faults.lost_delete_reply);
        self.statistics.lost_delete_replies += u64::from(loses);
        loses
    }
}
