//! What is counted.

use serde::Serialize;

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
    /// Requests answered with QpsLimitExceeded.
    pub throttled: u64,
    /// Requests answered with 503 by something that is not the service.
    pub unavailable: u64,
    /// Requests answered with TimeExpired.
    pub time_expired: u64,
    /// Long polls answered MessageNotExist without a wait.
    pub empties_at_once: u64,
    /// Receives that got fewer messages than they asked for and could have had.
    pub short_receives: u64,
    /// Receives done without an answer.
    pub lost_receive_replies: u64,
    /// Answers held back.
    pub slow_answers: u64,
}
