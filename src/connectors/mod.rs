//! The table of connectors, and what a checked definition becomes.

pub mod blackhole;
pub mod filesystem;
pub mod mns;
mod plan;
pub mod print;

pub use plan::{CheckpointPlan, OnError, Plan, RestartPlan, RowShape, recover_elsewhere};
