//! Alibaba Cloud MNS ("Simple Message Queue"): the source, and what its client is made of.

pub mod client;
mod faults;
pub mod oss;
pub mod signature;
pub mod source;
pub mod wire;

mod body;
mod options;

pub use options::{TABLE, metadata};
pub use source::MnsSource;
