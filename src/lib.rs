//! Queuewarden: one process that supervises many message pipelines.
//!
//! A pipeline reads a queue service, decodes bodies into typed rows, drops what it has already seen, writes to a
//! sink, and acknowledges only what a checkpoint has made durable. `ARCHITECTURE.md` holds the decisions the code
//! rests on; a test holds the layers: imports point downwards only.

// The futures of the RocketMQ crate's calls are nested deeply.
#![recursion_limit = "256"]

pub mod admin;
pub mod cli;
pub mod connector;
pub mod connectors;
pub mod dedup;
pub mod definition;
pub mod emulator;
#[cfg(feature = "sql")]
pub mod flink_sql;
pub mod formats;
pub mod model;
pub mod pipeline;
pub mod query;
pub mod state;
pub mod supervisor;
pub mod telemetry;
