//! How often a pipeline may be restarted, and how long to wait before.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{definition::RestartDefinition, model::FaultKind};

/// Faults are forgiven after so long in health.
const FORGIVEN_AFTER: Duration = Duration::from_secs(120);

/// The restart budget of one pipeline.
#[derive(Debug)]
pub struct Budget {
    plan: RestartDefinition,
    /// Restarts within `plan.within`.
    recent: VecDeque<Instant>,
    /// Restarts since the pipeline was last healthy for long: the exponent of the pause.
    in_a_row: u32,
    /// Of these, restarts because something hung.
    hangs: u32,
    healthy_since: Option<Instant>,
}

impl Budget {
    /// A full budget.
    pub fn new(plan: RestartDefinition) -> Self {
        Self { plan, recent: VecDeque::new(), in_a_row: 0, hangs: 0, healthy_since: None }
    }

    /// A generation is running.
    pub fn healthy(&mut self, now: Instant) {
        self.healthy_since = Some(now);
    }

    /// Spends one restart; answers the pause before it, or `None` if the budget is used up. Hangs are counted over all
    /// the time since the pipeline was last healthy for long: each takes as long as its deadline to be noticed, so
    /// that there would never be many of them within a short time.
    pub fn spend(&mut self, kind: FaultKind, now: Instant) -> Option<Duration> {
        if self.healthy_since.take().is_some_and(|since| now.saturating_duration_since(since) >= FORGIVEN_AFTER) {
            self.recent.clear();
            self.in_a_row = 0;
            self.hangs = 0;
        }
        while self.recent.front().is_some_and(|at| now.saturating_duration_since(*at) > self.plan.within) {
            self.recent.pop_front();
        }
        let hung = kind == FaultKind::Hung;
        if self.recent.len() >= self.plan.max as usize || (hung && self.hangs >= self.plan.max) {
            return None;
        }
        self.hangs += u32::from(hung);
        self.recent.push_back(now);
        let pause = self.plan.backoff_min.saturating_mul(2u32.saturating_pow(self.in_a_row));
        self.in_a_row = self.in_a_row.saturating_add(1);
        // Up to a fifth less, so that pipelines that failed together do not come back together.
        Some(pause.min(self.plan.backoff_max).mul_f64(0.8 + 0.2 * fastrand::f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: RestartDefinition = RestartDefinition {
        max: 3,
        within: Duration::from_secs(60),
        backoff_min: Duration::from_secs(1),
        backoff_max: Duration::from_secs(3),
    };

    #[test]
    fn the_budget_is_used_up_after_max_restarts_within_the_time() {
        let (mut budget, now) = (Budget::new(PLAN), Instant::now());
        let pauses: Vec<_> = (0..3).map(|_| budget.spend(FaultKind::Bug, now).expect("within the budget")).collect();
        assert!(pauses[0] <= Duration::from_secs(1) && pauses[0] >= Duration::from_millis(800));
        assert!(
            pauses[2] <= Duration::from_secs(3) && pauses[2] >= Duration::from_millis(2400),
            "capped: {:?}",
            pauses[2]
        );
        assert_eq!(budget.spend(FaultKind::Bug, now), None);
        assert!(budget.spend(FaultKind::Bug, now + Duration::from_secs(61)).is_some(), "the window has moved on");
    }

    #[test]
    fn two_healthy_minutes_forgive() {
        let (mut budget, now) = (Budget::new(PLAN), Instant::now());
        for _ in 0..3 {
            budget.spend(FaultKind::Bug, now);
        }
        budget.healthy(now);
        let pause = budget.spend(FaultKind::Bug, now + Duration::from_secs(121)).expect("forgiven");
        assert!(pause <= Duration::from_secs(1));
    }

    #[test]
    fn hangs_use_the_budget_up_however_long_each_takes() {
        let (mut budget, now) = (Budget::new(PLAN), Instant::now());
        for n in 1..=3 {
            assert!(budget.spend(FaultKind::Hung, now + n * 2 * PLAN.within).is_some());
        }
        let later = now + 8 * PLAN.within;
        assert!(budget.spend(FaultKind::Bug, later).is_some());
        assert_eq!(budget.spend(FaultKind::Hung, later + 2 * PLAN.within), None);
    }
}
