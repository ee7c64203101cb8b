//! What the dedup-keeper remembers: the ids of messages on their way or disposed of, as plain data.

mod ids;

pub use ids::{Ids, Seen};
