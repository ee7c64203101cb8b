//! Prometheus metrics: names, labels and help texts, all of them here.

use std::{collections::HashMap, sync::Arc};

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
    core::{Collector, MetricVec, MetricVecBuilder},
};

use crate::model::{Disposition, FaultKind, LaneId, PipelineName};

macro_rules! metrics {
    (
        pipeline {
            $($(#[label($($label:literal),*)])? $field:ident: $family:ident = $name:literal, $help:literal;)*
        }
        process {
            $($(#[label($($own_label:literal),*)])? $own:ident: $own_family:ident = $own_name:literal, $own_help:literal;)*
        }
    ) => {
        /// Name, labels and meaning of every metric of our own, for the documentation (a test compares the README).
        pub const METRIC_DOCS: &[(&str, &[&str], &str)] = &[
            $((concat!("queuewarden_", $name), &["pipeline" $($(, $label)*)?], $help),)*
            $((concat!("queuewarden_", $own_name), &[$($($own_label),*)?], $own_help),)*
        ];

        struct Families { $($field: $family,)* $($own: $own_family,)* }

        impl Families {
            fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
                $(let $field = <$family as Family>::make(
                    concat!("queuewarden_", $name), $help, &["pipeline" $($(, $label)*)?])?;
                registry.register(Box::new($field.clone()))?;)*
                $(let $own = <$own_family as Family>::make(
                    concat!("queuewarden_", $own_name), $own_help, &[$($($own_label),*)?])?;
                registry.register(Box::new($own.clone()))?;)*
                Ok(Self { $($field,)* $($own,)* })
            }

            /// Takes away everything counted of a pipeline.
            fn forget(&self, pipeline: &str) {
                $(forget(&self.$field, pipeline);)*
            }
        }
    };
}

fn forget<T: MetricVecBuilder>(family: &MetricVec<T>, pipeline: &str) {
    for of_family in family.collect() {
        for metric in of_family.get_metric() {
            let labels: HashMap<&str, &str> =
                metric.get_label().iter().map(|label| (label.name(), label.value())).collect();
            if labels.get("pipeline") == Some(&pipeline) {
                // Nobody else takes metrics away.
                let _gone_already = family.remove(&labels);
            }
        }
    }
}

/// The three families used, made alike.
trait Family: Collector + Clone + Sized + 'static {
    fn make(name: &str, help: &str, labels: &[&str]) -> Result<Self, prometheus::Error>;
}

impl Family for IntCounterVec {
    fn make(name: &str, help: &str, labels: &[&str]) -> Result<Self, prometheus::Error> {
        Self::new(Opts::new(name, help), labels)
    }
}

impl Family for IntGaugeVec {
    fn make(name: &str, help: &str, labels: &[&str]) -> Result<Self, prometheus::Error> {
        Self::new(Opts::new(name, help), labels)
    }
}

impl Family for HistogramVec {
    fn make(name: &str, help: &str, labels: &[&str]) -> Result<Self, prometheus::Error> {
        // From a local disk's sync to a checkpoint that is about to time out.
        let buckets = vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
        Self::new(HistogramOpts::new(name, help).buckets(buckets), labels)
    }
}

metrics! {
    pipeline {
        #[label("state")]
        state: IntGaugeVec = "pipeline_state", "1 for the state the pipeline is in, 0 for the others.";
        generation: IntGaugeVec = "pipeline_generation", "Number of the current generation of the pipeline's actors.";
        restarts: IntCounterVec = "pipeline_restarts_total", "Generations started again after a fault or on request, in this process; not by a reload.";
        #[label("actor", "kind")]
        faults: IntCounterVec = "pipeline_faults_total", "Faults that ended a generation, by the actor that had them.";
        received: IntCounterVec = "source_messages_received_total", "Deliveries received, duplicates included.";
        received_bytes: IntCounterVec = "source_received_bytes_total", "Bytes of the bodies received.";
        polls: IntCounterVec = "source_polls_total", "Polls that were answered, empty ones included.";
        #[label("operation", "kind")]
        retries: IntCounterVec = "retries_total", "Calls to a service or sink that failed and were tried again.";
        #[label("disposition")]
        messages: IntCounterVec = "messages_total", "Messages by what became of them: rows, duplicate, duplicate_key, filtered, ignored, rejected.";
        nulled_fields: IntCounterVec = "decode_nulled_fields_total", "Fields set to null because they cannot be held: by an ignore-parse-errors option, a DECIMAL too large for its type, or a time that nanoseconds cannot hold.";
        unread: IntCounterVec = "decode_unread_total", "Parts of bodies left unread or dropped, as an option or Flink's meaning of it asks.";
        rejects: IntCounterVec = "rejects_total", "Bodies and rows refused for good.";
        dead_letters: IntCounterVec = "dead_letters_total", "Bodies and rows refused for good that the sink for dead letters has taken.";
        rate_waits: IntCounterVec = "source_rate_waits_total", "Times that polling waited because of the source's rate.";
        rate_limited: IntGaugeVec = "source_rate_limited", "1 while polling waits because of the source's rate.";
        deleted: IntCounterVec = "source_messages_deleted_total", "Deliveries whose deletion the service confirmed.";
        delete_unknown: IntCounterVec = "source_delete_unknown_total", "Deletions answered with: no such receipt. The message may come back.";
        delete_failed: IntCounterVec = "source_delete_failed_total", "Deletions given up after all retries. The message will come back.";
        extended: IntCounterVec = "source_visibility_extensions_total", "Visibility timeouts extended.";
        extend_failed: IntCounterVec = "source_visibility_extension_failures_total", "Visibility extensions that failed.";
        unacknowledged: IntGaugeVec = "source_unacknowledged_messages", "Messages received by this generation whose deletion has not been answered.";
        lanes: IntGaugeVec = "source_lanes", "Lanes that are read now, of a source that has positions.";
        #[label("lane")]
        lane_lag: IntGaugeVec = "lane_lag_messages", "Messages of a lane that have not been read, as the service last said.";
        #[label("outcome")]
        offset_commits: IntCounterVec = "offset_commits_total", "Commits of positions to the service: done, or failed; after a failure the next checkpoint tries again.";
        remembered: IntGaugeVec = "dedup_remembered_ids", "Message ids kept so that a redelivery is recognised.";
        remembered_keys: IntGaugeVec = "dedup_remembered_keys", "Primary keys in the window, so that a row with one of them is dropped.";
        key_rows_dropped: IntCounterVec = "dedup_key_rows_dropped_total", "Rows dropped because their primary key had been seen within the window.";
        query_rows_filtered: IntCounterVec = "query_rows_filtered_total", "Rows that the WHERE of the query left out.";
        rows_written: IntCounterVec = "sink_rows_written_total", "Rows the sink has taken.";
        checkpoints: IntCounterVec = "checkpoints_total", "Checkpoints that became durable.";
        checkpoint_seconds: HistogramVec = "checkpoint_duration_seconds", "From the seal of an epoch to the commit of its output.";
        checkpoint_time: IntGaugeVec = "checkpoint_last_timestamp_seconds", "When the last checkpoint became durable, Unix time.";
        epoch: IntGaugeVec = "checkpoint_epoch", "Number of the last durable checkpoint.";
    }
    process {
        threads_hung: IntGaugeVec = "threads_hung", "Threads that are blocked now and were given up.";
        threads_given_up: IntCounterVec = "threads_given_up_total", "Threads given up because they answered nothing within --hang-deadline, or ended.";
        #[label("signal", "asks")]
        signals: IntCounterVec = "signals_total", "Signals received, by what they ask for: stop, reload, restart, restart_failed, or nothing where the value is missing or no slot.";
        unknown_restarts: IntCounterVec = "restart_requests_unknown_total", "Restarts asked for of a slot that no pipeline has.";
        #[label("result")]
        reloads: IntCounterVec = "reloads_total", "Reloads by result: done; broken: done, but for definitions that are not valid; failed: nothing was changed.";
    }
}

/// The registry and every metric family of the process.
pub struct Metrics {
    registry: Registry,
    families: Arc<Families>,
}

/// How a reload went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadResult {
    /// As the definitions say.
    Done,
    /// Done, but for definitions that are not valid.
    Broken,
    /// Nothing was changed.
    Failed,
}

impl ReloadResult {
    const ALL: [Self; 3] = [Self::Done, Self::Broken, Self::Failed];

    const fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Broken => "broken",
            Self::Failed => "failed",
        }
    }
}

impl Metrics {
    /// Registers all families, those of the process (CPU, memory, file descriptors) and the version.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let families = Arc::new(Families::register(&registry)?);
        // Scraped as zero before they are first counted.
        families.threads_hung.with_label_values::<&str>(&[]);
        families.threads_given_up.with_label_values::<&str>(&[]);
        families.unknown_restarts.with_label_values::<&str>(&[]);
        for result in ReloadResult::ALL {
            families.reloads.with_label_values(&[result.label()]);
        }
        let info =
            IntGaugeVec::new(Opts::new("queuewarden_build_info", "Always 1; the version is a label."), &["version"])?;
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        registry.register(Box::new(info))?;
        #[cfg(target_os = "linux")]
        registry.register(Box::new(super::process::Process::new()))?;
        Ok(Self { registry, families })
    }

    /// The metrics of one pipeline, resolved once so that counting is one atomic operation.
    pub fn pipeline(&self, name: &PipelineName) -> PipelineMetrics {
        let families = &self.families;
        let label = [name.as_str()];
        let one = |family: &IntCounterVec| family.with_label_values(&label);
        let gauge = |family: &IntGaugeVec| family.with_label_values(&label);
        PipelineMetrics {
            families: Arc::clone(families),
            messages: Disposition::ALL.map(|d| families.messages.with_label_values(&[name.as_str(), d.label()])),
            generation: gauge(&families.generation),
            restarts: one(&families.restarts),
            received: one(&families.received),
            received_bytes: one(&families.received_bytes),
            polls: one(&families.polls),
            nulled_fields: one(&families.nulled_fields),
            unread: one(&families.unread),
            rejects: one(&families.rejects),
            dead_letters: one(&families.dead_letters),
            rate_waits: one(&families.rate_waits),
            rate_limited: gauge(&families.rate_limited),
            deleted: one(&families.deleted),
            delete_unknown: one(&families.delete_unknown),
            delete_failed: one(&families.delete_failed),
            extended: one(&families.extended),
            extend_failed: one(&families.extend_failed),
            unacknowledged: gauge(&families.unacknowledged),
            lanes: gauge(&families.lanes),
            remembered: gauge(&families.remembered),
            remembered_keys: gauge(&families.remembered_keys),
            key_rows_dropped: one(&families.key_rows_dropped),
            query_rows_filtered: one(&families.query_rows_filtered),
            rows_written: one(&families.rows_written),
            checkpoints: one(&families.checkpoints),
            checkpoint_seconds: families.checkpoint_seconds.with_label_values(&label),
            checkpoint_time: gauge(&families.checkpoint_time),
            epoch: gauge(&families.epoch),
            name: name.clone(),
        }
    }

    /// Says how many threads hang now.
    pub fn hung_threads(&self, count: usize) {
        self.families.threads_hung.with_label_values::<&str>(&[]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a thread that was given up.
    pub fn thread_given_up(&self) {
        self.families.threads_given_up.with_label_values::<&str>(&[]).inc();
    }

    /// Counts a signal by its name, such as `TERM`, and by what it asks for.
    pub fn signal(&self, name: &str, asks: &str) {
        self.families.signals.with_label_values(&[name, asks]).inc();
    }

    /// Counts a restart asked for of a slot that no pipeline has.
    pub fn unknown_restart(&self) {
        self.families.unknown_restarts.with_label_values::<&str>(&[]).inc();
    }

    /// Counts a reload.
    pub fn reload(&self, result: ReloadResult) {
        self.families.reloads.with_label_values(&[result.label()]).inc();
    }

    /// Everything, in Prometheus' text format 0.0.4.
    pub fn render(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }
}

/// The metrics of one pipeline. Cheap to clone.
#[derive(Clone)]
#[allow(missing_docs, reason = "each field is one line of the table above, with its help text")]
pub struct PipelineMetrics {
    name: PipelineName,
    families: Arc<Families>,
    messages: [IntCounter; Disposition::ALL.len()],
    pub generation: IntGauge,
    pub restarts: IntCounter,
    pub received: IntCounter,
    pub received_bytes: IntCounter,
    pub polls: IntCounter,
    pub nulled_fields: IntCounter,
    pub unread: IntCounter,
    pub rejects: IntCounter,
    pub dead_letters: IntCounter,
    pub rate_waits: IntCounter,
    pub rate_limited: IntGauge,
    pub deleted: IntCounter,
    pub delete_unknown: IntCounter,
    pub delete_failed: IntCounter,
    pub extended: IntCounter,
    pub extend_failed: IntCounter,
    pub unacknowledged: IntGauge,
    pub lanes: IntGauge,
    pub remembered: IntGauge,
    pub remembered_keys: IntGauge,
    pub key_rows_dropped: IntCounter,
    pub query_rows_filtered: IntCounter,
    pub rows_written: IntCounter,
    pub checkpoints: IntCounter,
    pub checkpoint_seconds: Histogram,
    pub checkpoint_time: IntGauge,
    pub epoch: IntGauge,
}

impl PipelineMetrics {
    /// Sets the state gauge: 1 for `now`, 0 for the rest of `all`.
    pub fn set_state(&self, now: &str, all: &[&str]) {
        for state in all {
            self.families.state.with_label_values(&[self.name.as_str(), state]).set((*state == now).into());
        }
    }

    /// Counts a fault that ended a generation.
    pub fn fault(&self, actor: &str, kind: FaultKind) {
        self.families.faults.with_label_values(&[self.name.as_str(), actor, kind.label()]).inc();
    }

    /// Counts a call that failed and will be tried again.
    pub fn retry(&self, operation: &str, kind: FaultKind) {
        self.families.retries.with_label_values(&[self.name.as_str(), operation, kind.label()]).inc();
    }

    /// Counts a commit of positions to the service.
    pub fn offset_commit(&self, done: bool) {
        let outcome = if done { "done" } else { "failed" };
        self.families.offset_commits.with_label_values(&[self.name.as_str(), outcome]).inc();
    }

    /// How far a lane is behind, resolved once.
    pub(super) fn lane_lag(&self, lane: &LaneId) -> IntGauge {
        self.families.lane_lag.with_label_values(&[self.name.as_str(), &lane.0])
    }

    /// Takes a lane out of what is scraped: it is not read any more.
    pub(super) fn lane_gone(&self, lane: &LaneId) {
        // Of a lane whose service has never said how far it is behind there is nothing.
        let _never_said = self.families.lane_lag.remove_label_values(&[self.name.as_str(), &lane.0]);
    }

    /// Takes the pipeline out of what is scraped, for good: it is gone.
    pub fn forget(&self) {
        self.families.forget(self.name.as_str());
    }

    /// Counts a message by what became of it.
    pub fn message(&self, disposition: Disposition) -> &IntCounter {
        &self.messages[disposition as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counted_thing_is_scraped_under_the_prefix_and_its_pipeline() {
        let metrics = Metrics::new().expect("registers");
        let pipeline = metrics.pipeline(&PipelineName::new("p1").expect("valid"));
        pipeline.received.inc_by(3);
        pipeline.message(Disposition::Duplicate).inc();
        let text = String::from_utf8(metrics.render().expect("renders")).expect("utf-8");
        assert!(text.contains("queuewarden_source_messages_received_total{pipeline=\"p1\"} 3"));
        assert!(text.contains("queuewarden_messages_total{disposition=\"duplicate\",pipeline=\"p1\"} 1"));
    }
    #[test]
    fn commits_are_counted_by_outcome_and_a_lane_that_is_gone_is_scraped_no_more() {
        let metrics = Metrics::new().expect("registers");
        let pipeline = metrics.pipeline(&PipelineName::new("p1").expect("valid"));
        let (gone, stays) = (LaneId("gone".into()), LaneId("stays".into()));
        pipeline.lane_lag(&gone).set(7);
        pipeline.lane_lag(&stays).set(8);
        pipeline.lane_gone(&gone);
        pipeline.offset_commit(true);
        pipeline.offset_commit(false);
        pipeline.offset_commit(false);
        let text = String::from_utf8(metrics.render().expect("renders")).expect("utf-8");
        assert!(!text.contains("\"gone\""), "{text}");
        for line in [
            "queuewarden_lane_lag_messages{lane=\"stays\",pipeline=\"p1\"} 8",
            "queuewarden_offset_commits_total{outcome=\"done\",pipeline=\"p1\"} 1",
            "queuewarden_offset_commits_total{outcome=\"failed\",pipeline=\"p1\"} 2",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn a_pipeline_that_is_forgotten_is_scraped_no_more_and_its_neighbour_still_is() {
        let metrics = Metrics::new().expect("registers");
        let name = |name| PipelineName::new(name).expect("valid");
        let (gone, stays) = (metrics.pipeline(&name("gone")), metrics.pipeline(&name("stays")));
        for pipeline in [&gone, &stays] {
            pipeline.set_state("running", &["running", "failed"]);
            pipeline.fault("poller", FaultKind::Bug);
            pipeline.checkpoint_seconds.observe(1.0);
        }
        gone.forget();
        let text = String::from_utf8(metrics.render().expect("renders")).expect("utf-8");
        assert!(!text.contains("\"gone\"") && text.contains("\"stays\""), "{text}");
    }
}
