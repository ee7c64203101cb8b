//! Alibaba Cloud MNS ("Simple Message Queue"): the source, and what its client is made of.

pub mod client;
mod faults;
pub mod options;
pub mod oss;
pub mod signature;
pub mod source;
pub mod wire;

mod body;

pub use options::{TABLE, conflicts, metadata};
pub use source::MnsSource;
