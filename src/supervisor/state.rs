//! The states of a pipeline, and which may follow which.

use serde::Serialize;

/// Where a pipeline stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A generation is being opened, up to where its first lane is read.
    Starting,
    /// Messages flow, or would if there were any.
    Running,
    /// As Running, but something is being retried.
    Degraded,
    /// No more is received; what was received is being finished.
    Draining,
    /// A generation ended; the next one begins after a pause.
    Backoff,
    /// Nothing but a person can mend it, or the restart budget is used up.
    Failed,
    /// A bounded source is at its end.
    Finished,
    /// Stopped on request.
    Stopped,
}

impl State {
    /// The names of all states, as in the status and the metric label.
    pub const NAMES: [&str; 8] =
        ["starting", "running", "degraded", "draining", "backoff", "failed", "finished", "stopped"];

    /// Its name.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether the pipeline does what it is for.
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Running | Self::Degraded | Self::Finished)
    }

    /// The one place that says which state may follow which.
    pub const fn may_become(self, next: Self) -> bool {
        use State::{Backoff, Degraded, Draining, Failed, Finished, Running, Starting, Stopped};
        match self {
            Starting => matches!(next, Running | Draining | Backoff | Failed | Finished | Stopped),
            Running | Degraded => matches!(next, Running | Degraded | Draining | Backoff | Failed | Finished),
            Draining => matches!(next, Starting | Stopped | Failed | Finished | Backoff),
            Backoff => matches!(next, Starting | Failed | Stopped),
            Failed | Finished => matches!(next, Starting | Stopped),
            Stopped => matches!(next, Starting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_pipeline_runs_again_only_through_starting() {
        assert!(State::Failed.may_become(State::Starting));
        assert!(!State::Failed.may_become(State::Running));
        assert!(!State::Stopped.may_become(State::Running));
        assert!(!State::Backoff.may_become(State::Running));
    }
}
