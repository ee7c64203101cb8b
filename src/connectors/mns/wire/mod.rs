//! The XML of MNS, both directions of both sides: the client writes requests and reads answers, the emulator the
//! other way round.
//!
//! Readers match local names only, since the namespace comes with a trailing slash, without one, or not at all,
//! and they keep texts byte for byte: no trimming, no newline normalisation.

mod document;
mod messages;
mod queues;
mod receipts;

pub use document::{WireError, escape, is_xml_text};
pub use messages::{
    Delivery, Outgoing, Property, Sent, parse_deliveries, parse_notification, parse_outgoing, parse_sent,
    write_deliveries, write_outgoing, write_sent,
};
pub use queues::{
    QueueAttributes, QueueSettings, ServiceError, parse_attributes, parse_error, parse_settings, write_attributes,
    write_error, write_queue_list, write_settings,
};
pub use receipts::{
    ChangedVisibility, DeleteFailure, parse_changed_visibility, parse_delete_failures, parse_handles,
    write_changed_visibility, write_delete_failures, write_handles,
};

/// The namespace as requests write it (documentation, Python, Node and PHP SDKs).
pub const REQUEST_NAMESPACE: &str = "http://mns.aliyuncs.com/doc/v1/";
/// The namespace as the live service's answers write it.
pub const RESPONSE_NAMESPACE: &str = "http://mns.aliyuncs.com/doc/v1";
/// The first line of a request.
pub const REQUEST_PROLOG: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
/// The first line of the live service's answers.
pub const RESPONSE_PROLOG: &str = "<?xml version=\"1.0\" ?>\n";
/// The one version of the protocol, as in the header `x-mns-version`.
pub const VERSION: &str = "2015-06-06";
/// Most messages per receive, send or delete.
pub const MOST_PER_CALL: usize = 16;
/// Longest wait of a receive, in seconds.
pub const LONGEST_WAIT_SECONDS: u32 = 30;
/// Longest visibility timeout, in seconds; the shortest is 1.
pub const LONGEST_VISIBILITY_SECONDS: u32 = 43_200;
