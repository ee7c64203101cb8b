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
    /// Sends done without an answer.
    pub lost_send_replies: u64,
    /// Sends answered with an error of the service.
    pub errors_on_send: u64,
    /// Deletes done without an answer.
    pub lost_delete_replies: u64,
    /// Receives answered with an error of the service.
    pub errors_on_receive: u64,
    /// Deletes answered with an error of the service.
    pub errors_on_delete: u64,
    /// Handles answered with MessageNotExist, or 4430.
    pub unknown_handles: u64,
    /// Requests answered with QpsLimitExceeded, or 4420.
    pub throttled: u64,
    /// Requests answered with 503 by something that is not the service.
    pub unavailable: u64,
    /// Requests answered with TimeExpired.
    pub time_expired: u64,
    /// Long polls answered that there is no message, without a wait.
    pub empties_at_once: u64,
    /// Receives that got fewer messages than they asked for and could have had.
    pub short_receives: u64,
    /// Receives done without an answer.
    pub lost_receive_replies: u64,
    /// Answers held back.
    pub slow_answers: u64,
    /// Requests answered with SignatureDoesNotMatch, 4100 or 306 by order.
    pub not_authenticated: u64,
    /// Connections closed while a request was under way, with nothing done.
    pub connections_cut: u64,
    /// Requests done and never answered, on a connection that stays.
    pub unanswered: u64,
    /// Questions for a route that were not answered.
    pub name_server_downs: u64,
    /// Routes that begin with an address where nobody listens.
    pub dead_routes: u64,
}
