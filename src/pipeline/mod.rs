//! One pipeline's actors: one file each, the messages between them, and `generation.rs`, which wires one tree.
//!
//! ```text
//! poller -> decoder -> dedup-keeper -> sink-writer
//!    ^ acknowledge                        | sealed
//!    +------------- checkpointer <--------+
//! ```

mod checkpointer;
mod child;
mod decoder;
mod dedup_keeper;
mod generation;
mod ledger;
mod messages;
mod opened;
mod pace;
mod poller;
mod report;
mod retry;
mod sink_writer;
mod sinks;
#[cfg(test)]
pub(crate) mod tests;

pub use child::{Child, ExitReason};
pub use generation::{Controls, START, Seed, open};
pub use report::{Event, Report, Reporter};
