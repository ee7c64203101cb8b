//! The only place that names a metric or a log field.

mod logs;
mod metrics;
mod vitals;

pub use logs::{LogFormat, actor_span, init};
pub use metrics::{METRIC_DOCS, Metrics, PipelineMetrics};
pub use vitals::{Checkpointed, Vitals};
