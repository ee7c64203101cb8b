//! The only place that names a metric or a log field.

mod logs;
mod metrics;
#[cfg(target_os = "linux")]
mod process;
mod vitals;
mod whereabouts;

pub use logs::{DEFAULT_FILTER, LogFormat, actor_span, caught, init, lane_span, start_span};
pub use metrics::{METRIC_DOCS, Metrics, PipelineMetrics, ReloadResult};
pub use vitals::{Checkpointed, LaneProgressed, LaneVitals, Operation, Vitals};
pub(crate) use whereabouts::fail_point;
#[cfg(feature = "failpoints")]
pub use whereabouts::may_fail;
pub use whereabouts::{Whereabouts, Who, attributed, attributed_as_here, here, work_as_here};
