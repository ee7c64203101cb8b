//! Faults to order, and what is counted.

use std::str::FromStr;

use serde::Serialize;

/// Probabilities, 0 to 1, of what goes wrong on a queue. Each kind of duplicate happens at most once to a message, so
/// that a consumer that deletes what it receives ends with an empty queue even at 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// Of a message's first delivery: it is in the answer twice, with two handles, of which only the second, with
    /// the higher `DequeueCount`, is valid. Needs a receive of at least two.
    pub duplicate_same_receive: f64,
    /// Of a message's first delivery: it can be received again at once, long before its visibility timeout. The
    /// handle is valid until it is.
    pub duplicate_in_flight: f64,
    /// Of a message's first delete with a valid handle: it is answered MessageNotExist, as if the visibility timeout
    /// had run out just before, and the message is delivered once more, with a new handle.
    pub duplicate_before_delete: f64,
    /// Of a message's first delete with a valid handle, if a poll waits at that moment: that poll gets the message
    /// once more, with a handle that is dead on arrival, and the delete is done and answered as usual. So a poll
    /// begun before a confirmed delete can answer after it.
    pub duplicate_during_delete: f64,
    /// Of a delete: it is done, but the connection is closed instead of an answer.
    pub lost_delete_reply: f64,
    /// Of a receive: 500 InternalError, and nothing is done.
    pub error_on_receive: f64,
    /// Of a delete: 500 InternalError, and nothing is done.
    pub error_on_delete: f64,
}

/// Where a fault's probability is kept.
type Field = fn(&mut Faults) -> &mut f64;

impl Faults {
    /// The names of flags, and the field each sets.
    const NAMES: [(&'static str, Field); 7] = [
        ("duplicate-same-receive", |faults| &mut faults.duplicate_same_receive),
        ("duplicate-in-flight", |faults| &mut faults.duplicate_in_flight),
        ("duplicate-before-delete", |faults| &mut faults.duplicate_before_delete),
        ("duplicate-during-delete", |faults| &mut faults.duplicate_during_delete),
        ("lost-delete-reply", |faults| &mut faults.lost_delete_reply),
        ("error-on-receive", |faults| &mut faults.error_on_receive),
        ("error-on-delete", |faults| &mut faults.error_on_delete),
    ];
}

/// One fault as a flag writes it: `[QUEUE:]NAME=PROBABILITY`.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultFlag {
    /// The queue; `None`: all.
    pub queue: Option<String>,
    name: &'static str,
    probability: f64,
}

impl FaultFlag {
    /// Sets the fault.
    pub fn apply(&self, faults: &mut Faults) {
        if let Some((_, field)) = Faults::NAMES.iter().find(|(name, _)| *name == self.name) {
            *field(faults) = self.probability;
        }
    }
}

impl FromStr for FaultFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            let names = Faults::NAMES.map(|(name, _)| name).join(", ");
            format!("expected [QUEUE:]NAME=PROBABILITY with a probability from 0 to 1 and NAME one of {names}")
        };
        let (left, probability) = text.split_once('=').ok_or_else(expected)?;
        let (queue, name) = left.split_once(':').map_or((None, left), |(queue, name)| (Some(queue.to_owned()), name));
        let (name, _) = Faults::NAMES.iter().find(|(known, _)| *known == name).ok_or_else(expected)?;
        let probability: f64 = probability.parse().map_err(|_| expected())?;
        if !(0.0..=1.0).contains(&probability) {
            return Err(expected());
        }
        Ok(Self { queue, name, probability })
    }
}

/// What has happened on a queue since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Messages sent.
    pub sent: u64,
    /// Deliveries, duplicates included.
    pub delivered: u64,
    /// Messages deleted.
    pub deleted: u64,
    /// Messages dropped because their retention ran out.
    pub expired: u64,
    /// Deliveries because a visibility timeout ran out.
    pub redelivered_after_timeout: u64,
    /// Second deliveries within one answer.
    pub duplicates_same_receive: u64,
    /// Second deliveries while the first was on its way.
    pub duplicates_in_flight: u64,
    /// Deliveries after a delete was sent and before it took effect.
    pub duplicates_before_delete: u64,
    /// Deliveries to a waiting poll while a delete was done.
    pub duplicates_during_delete: u64,
    /// Deletes done without an answer.
    pub lost_delete_replies: u64,
    /// Receives answered with 500.
    pub errors_on_receive: u64,
    /// Deletes answered with 500.
    pub errors_on_delete: u64,
    /// Handles answered with MessageNotExist.
    pub unknown_handles: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_one_fault_of_one_queue_or_all() {
        let mut faults = Faults::default();
        let flag: FaultFlag = "duplicate-in-flight=0.25".parse().expect("valid");
        flag.apply(&mut faults);
        assert_eq!((flag.queue, faults.duplicate_in_flight), (None, 0.25));
        let flag: FaultFlag = "q:error-on-delete=1".parse().expect("valid");
        assert_eq!(flag.queue.as_deref(), Some("q"));
        for wrong in ["", "x=1", "error-on-delete", "error-on-delete=2", "error-on-delete=NaN", "q:=1"] {
            assert!(wrong.parse::<FaultFlag>().is_err(), "{wrong}");
        }
    }
}
