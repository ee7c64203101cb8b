//! A client of name servers, brokers and the remoting port of a 5.x proxy: what a reader per queue and a sink need.
//!
//! [`connection`] is the only file that knows the crate `rocketmq-client-rust`; the others write and read what its
//! commands carry. Nothing is tried again here: a fault says whether trying again can help. Source of protocol facts:
//! the Java sources of RocketMQ 4.9.7 and 5.3.3, checked against their servers.

mod answers;
mod batch;
mod commands;
mod compression;
mod connection;
mod endpoints;
mod ids;
mod message;
mod namespace;
mod properties;
mod route;
mod timestamps;
mod types;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod wire_tests;

pub use commands::Client;
pub use endpoints::parse_endpoints;
pub use ids::of_now as new_ids;
pub use namespace::{TEMPLATE, qualified};
pub use properties::Properties;
pub use types::{
    Channel, ClientOptions, Credentials, Filter, Outgoing, Pull, PullStatus, Pulled, PulledMessage, Queue, Route,
};
