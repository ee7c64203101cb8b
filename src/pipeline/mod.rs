//! One pipeline's actors: one file each, the messages between them, and `generation.rs`, which wires one tree.
//!
//! ```text
//! poller -> decoder -> dedup-keeper -> sink-writer
//!    ^ acknowledge                        | sealed
//!    +------------- checkpointer <--------+
//! ```
//!
//! Over a log, whose lanes have positions, an enumerator is in the poller's place, and each lane has a reader that hands
//! on to the decoder.

mod checkpointer;
mod child;
mod commits;
mod decoder;
mod dedup_keeper;
mod enumerator;
mod generation;
mod intake;
mod ledger;
mod messages;
mod pace;
mod poller;
mod polling;
mod reader;
mod report;
mod retry;
mod selection;
mod sink_writer;
mod sinks;
#[cfg(test)]
pub(crate) mod tests;
mod visibility;

pub use child::{Child, ChildName, ExitReason};
pub use generation::{Controls, START, Seed, open};
pub use report::{Event, Report, Reporter};
