//! The only place that names a metric or a log field.

mod logs;
mod metrics;
#[cfg(target_os = "linux")]
mod process;
mod vitals;

pub use logs::{DEFAULT_FILTER, LogFormat, actor_span, init, start_span};
pub use metrics::{METRIC_DOCS, Metrics, PipelineMetrics, ReloadResult};
pub use vitals::{Checkpointed, Vitals};
