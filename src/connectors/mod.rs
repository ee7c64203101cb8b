//! The table of connectors, and what a checked definition becomes.

mod plan;

pub use plan::{CheckpointPlan, OnError, Plan, RestartPlan, RowShape, recover_elsewhere};
