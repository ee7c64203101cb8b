//! What is on the wire, both directions of both sides: the client writes requests and reads answers, the emulator the
//! other way round.
//!
//! There are two protocols: signed HTTP with answers in JSON, and frames of protobuf over TCP, whose addresses a name
//! server gives.

pub mod codes;
pub mod frame;
pub mod json;
pub mod proto;
pub mod requests;

#[cfg(test)]
mod golden_tests;

pub use codes::{Class, class_of, class_of_answer};
pub use proto::CmqProto;

/// Most messages per send, receive or delete.
pub const MOST_PER_CALL: usize = 16;
/// Longest wait of a receive, in seconds.
pub const LONGEST_WAIT_SECONDS: u32 = 30;
/// Longest visibility timeout, in seconds; the shortest is 1.
pub const LONGEST_VISIBILITY_SECONDS: u32 = 43_200;
/// The path of every HTTP request that names none.
pub const PATH: &str = "/v2/index.php";

/// What a TCP request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Command {
    /// Authenticates the connection.
    Auth = 1020,
    /// Sends one message.
    Send = 1021,
    /// Sends several messages.
    BatchSend = 1022,
    /// Receives a message.
    Pull = 1023,
    /// Receives several messages.
    BatchPull = 1024,
    /// Deletes a delivery.
    Delete = 1025,
    /// Deletes several deliveries.
    BatchDelete = 1026,
    /// Publishes a message to a topic.
    Publish = 1027,
    /// Publishes several messages to a topic.
    BatchPublish = 1028,
    /// Keeps the connection.
    Heartbeat = 1040,
    /// Ends a transaction.
    ConfirmTransaction = 1041,
    /// The service asks for the state of a transaction: the one request that it starts.
    QueryTransaction = 1042,
}

impl Command {
    /// As on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }
}
