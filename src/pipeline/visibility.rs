//! A warning where a queue delivers its messages again before a checkpoint can delete them.

use std::time::Duration;

use crate::connector::OpenedQueue;

/// Warns once, as soon as the queue's visibility timeout is known.
#[derive(Debug)]
pub struct Visibility {
    /// `checkpoint.interval`
    interval: Duration,
    extends: bool,
    known: bool,
}

impl Visibility {
    /// Of a queue that was just opened.
    pub fn of(opened: &OpenedQueue, interval: Duration) -> Self {
        let mut visibility = Self { interval, extends: opened.acknowledger.extends(), known: false };
        if let Some(timeout) = opened.facts.visibility_timeout {
            visibility.is(timeout);
        }
        visibility
    }

    /// A message was delivered that stays invisible for so long. Where the service does not tell the queue's timeout, this
    /// is how it is known.
    pub fn delivered(&mut self, invisible_for: Duration) {
        if !self.known {
            self.is(invisible_for);
        }
    }

    fn is(&mut self, timeout: Duration) {
        self.known = true;
        if timeout > self.interval {
            return;
        }
        let meanwhile = if self.extends {
            "messages are extended one by one"
        } else {
            "messages are delivered again before they are deleted"
        };
        tracing::warn!(
            visibility_timeout = ?timeout, checkpoint_interval = ?self.interval,
            "the queue's visibility timeout should be longer than the checkpoint interval: {meanwhile}"
        );
    }
}
