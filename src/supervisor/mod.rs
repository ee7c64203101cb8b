//! The supervisor: one actor that starts, drains and restarts pipelines, each with a state machine and a restart
//! budget of its own. Exports what starts it and a handle that knows no actor.

mod budget;
mod changes;
mod failure;
mod handle;
mod pipeline;
mod pool;
mod runtime;
mod state;
mod supervise;
#[cfg(test)]
mod tests;
mod watch;

pub use handle::{CheckpointStatus, Counts, Handle, PipelineStatus, ReloadReport};
pub use runtime::block_on;
pub use state::State;
pub use supervise::{Load, Member, Settings, Stopped, Supervision, start};
pub use watch::Hangs;
