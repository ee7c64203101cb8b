//! Numbers of answers, and what they mean for the pipeline.

use super::connection::Answer;
use crate::model::{Fault, FaultKind, Mend};

pub(super) const SUCCESS: i32 = 0;
pub(super) const FLUSH_DISK_TIMEOUT: i32 = 10;
pub(super) const SLAVE_NOT_AVAILABLE: i32 = 11;
pub(super) const FLUSH_SLAVE_TIMEOUT: i32 = 12;
pub(super) const TOPIC_NOT_EXIST: i32 = 17;
pub(super) const PULL_NOT_FOUND: i32 = 19;
pub(super) const PULL_RETRY_IMMEDIATELY: i32 = 20;
pub(super) const PULL_OFFSET_MOVED: i32 = 21;
pub(super) const QUERY_NOT_FOUND: i32 = 22;
pub(super) const SUBSCRIPTION_GROUP_NOT_EXIST: i32 = 26;

/// What is said of what is closed to reading or writing, as an operator does for maintenance (4.9.7, 5.3.3).
const CLOSED: [&str; 4] =
    ["the broker[", "pulling message is forbidden", "subscription group no permission", "sending message is forbidden"];

/// A remark may carry a Java stack.
const LONGEST_REMARK: usize = 400;

/// The fault of an answer that is not the one that was hoped for. `operation` says what was asked of whom.
pub(super) fn fault(operation: &str, answer: &Answer) -> Fault {
    let (name, kind, mend) = classify(answer.code(), answer.remark());
    let mut remark = answer.remark().split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = remark.char_indices().nth(LONGEST_REMARK) {
        remark.truncate(end);
        remark.push_str("...");
    }
    if remark.is_empty() {
        remark.push_str("no remark");
    }
    Fault::new(kind, mend, format!("{operation}: {name} (code {}): {remark}", answer.code()))
}

/// Name by the Java sources, class by what a person could do about it.
fn classify(code: i32, remark: &str) -> (&'static str, FaultKind, Mend) {
    use FaultKind::{Credentials, Missing, Network, Poison, Rejected, Service, Throttled};
    use Mend::{Never, Retry};
    match code {
        // Access control of 4.x has no number of its own.
        1 if remark.contains("AclException") => ("SYSTEM_ERROR", Credentials, Never),
        1 if remark.contains("does not support consumer to filter message") => ("SYSTEM_ERROR", Rejected, Never),
        // A batch of which all messages together are too large (5.x; 4.x says 13).
        1 if remark.contains("body size exceeded") => ("SYSTEM_ERROR", Poison, Never),
        1 => ("SYSTEM_ERROR", Service, Retry),
        2 => ("SYSTEM_BUSY", Throttled, Retry),
        3 => ("REQUEST_CODE_NOT_SUPPORTED", Rejected, Never),
        FLUSH_DISK_TIMEOUT => ("FLUSH_DISK_TIMEOUT", Service, Retry),
        SLAVE_NOT_AVAILABLE => ("SLAVE_NOT_AVAILABLE", Service, Retry),
        FLUSH_SLAVE_TIMEOUT => ("FLUSH_SLAVE_TIMEOUT", Service, Retry),
        // Messages of this kind do not belong into the topic, or it has no name that can be stored: so it is with all.
        13 if remark.contains("opic") => ("MESSAGE_ILLEGAL", Rejected, Never),
        // Too large, or properties the broker cannot store. The message will never be taken.
        13 => ("MESSAGE_ILLEGAL", Poison, Never),
        14 => ("SERVICE_NOT_AVAILABLE", Service, Retry),
        15 => ("VERSION_NOT_SUPPORTED", Rejected, Never),
        // A broker, a topic or a group that someone has closed for a while says so with the number of missing rights.
        16 if CLOSED.iter().any(|closed| remark.contains(closed)) => ("NO_PERMISSION", Service, Retry),
        16 => ("NO_PERMISSION", Credentials, Never),
        // The name server knows it, or nobody would have asked: the broker will, or the route will change.
        TOPIC_NOT_EXIST => ("TOPIC_NOT_EXIST", Missing, Retry),
        PULL_OFFSET_MOVED => ("PULL_OFFSET_MOVED", Service, Retry),
        QUERY_NOT_FOUND => ("QUERY_NOT_FOUND", Missing, Retry),
        23 => ("SUBSCRIPTION_PARSE_FAILED", Rejected, Never),
        24 => ("SUBSCRIPTION_NOT_EXIST", Missing, Retry),
        25 => ("SUBSCRIPTION_NOT_LATEST", Service, Retry),
        SUBSCRIPTION_GROUP_NOT_EXIST => ("SUBSCRIPTION_GROUP_NOT_EXIST", Missing, Never),
        27 => ("FILTER_DATA_NOT_EXIST", Service, Retry),
        28 => ("FILTER_DATA_NOT_LATEST", Service, Retry),
        // The topic has fewer queues than when its route was asked for (4.x says 1).
        29 if remark.contains("queueId") => ("INVALID_PARAMETER", Missing, Retry),
        29 => ("INVALID_PARAMETER", Rejected, Never),
        215 => ("FLOW_CONTROL", Throttled, Retry),
        501 => ("NOT_LEADER_FOR_QUEUE", Service, Retry),
        1500 => ("GO_AWAY", Network, Retry),
        _ => ("an answer that is not known", Service, Retry),
    }
}
