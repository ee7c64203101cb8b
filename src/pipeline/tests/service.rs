//! A queue service at its worst: delivers what is already on its way, answers out of order, loses replies, and never
//! hides a message it has delivered. It does keep its one promise: a poll begun after a delete was answered does not
//! bring the message.

use std::time::Duration;

use super::harness::with_body;
use crate::{
    connector::Acknowledged,
    model::{Fault, FaultKind, Message, Receipt},
};

/// See the module. What it does follows from the seed and from when it is asked.
pub struct Service {
    random: fastrand::Rng,
    /// Messages that have not been deleted.
    pub alive: Vec<i64>,
    visible: i64,
    /// Bodies are the numbers of their messages modulo this.
    bodies: i64,
}

impl Service {
    pub fn new(seed: u64, messages: i64) -> Self {
        Self::of_bodies(seed, messages, messages.max(1))
    }

    /// So many messages, with only so many different bodies.
    pub fn of_bodies(seed: u64, messages: i64, bodies: i64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), alive: (0..messages).collect(), visible: 0, bodies }
    }

    /// What one poll brings, and how long after it was decided.
    pub fn receive(&mut self) -> (Vec<Message>, Duration) {
        let most = self.random.usize(0..8).min(self.alive.len() * 2);
        let messages = (0..most)
            .map(|_| {
                self.visible += 1;
                let message = self.alive[self.random.usize(0..self.alive.len())];
                with_body(message, self.visible, &(message % self.bodies).to_string())
            })
            .collect();
        (messages, self.pause())
    }

    /// Deletes, or does not, and answers that, or something else.
    pub fn delete(&mut self, receipts: &[Receipt]) -> (Result<Vec<Acknowledged>, Fault>, Duration) {
        let pause = self.pause();
        let lost = || Err(Fault::retry(FaultKind::Timeout, "no reply"));
        if self.random.u8(0..10) == 0 {
            return (lost(), pause);
        }
        let mut outcomes = Vec::new();
        for receipt in receipts {
            let message = receipt.handle[1..].split('@').next().and_then(|number| number.parse().ok());
            let place = self.alive.iter().position(|alive| Some(*alive) == message);
            outcomes.push(match place.filter(|_| self.random.u8(0..10) > 0) {
                Some(place) => {
                    self.alive.swap_remove(place);
                    Acknowledged::Deleted
                }
                None => Acknowledged::Unknown,
            });
        }
        (if self.random.u8(0..10) == 0 { lost() } else { Ok(outcomes) }, pause)
    }

    /// A new receipt, or none.
    pub fn extend(&mut self, receipt: &Receipt) -> Option<Receipt> {
        self.visible += 1;
        let renewed = Receipt { next_visible_ms: self.visible, ..receipt.clone() };
        self.random.bool().then_some(renewed)
    }

    /// Whether something of this one-in-`of` chance happens.
    pub fn chance(&mut self, of: u32) -> bool {
        self.random.u32(0..of) == 0
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis([0, 0, 1, 5][self.random.usize(0..4)])
    }
}
