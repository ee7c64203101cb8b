//! The process's own metrics: those of the Prometheus client, but for the processor time, which it has only in whole
//! seconds.

use prometheus::{
    core::{Collector, Desc},
    process_collector::ProcessCollector,
    proto::MetricFamily,
};
use rustix::time::{ClockId, clock_gettime};

const CPU_SECONDS: &str = "process_cpu_seconds_total";

pub(super) struct Process(ProcessCollector);

impl Process {
    pub(super) fn new() -> Self {
        Self(ProcessCollector::for_self())
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.0.collect();
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9;
        for family in families.iter_mut().filter(|family| family.name() == CPU_SECONDS) {
            for metric in family.mut_metric() {
                let mut counter = prometheus::proto::Counter::default();
                counter.set_value(seconds);
                metric.set_counter(counter);
            }
        }
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu_seconds(process: &Process) -> f64 {
        let families = process.collect();
        let family = families.iter().find(|family| family.name() == CPU_SECONDS).unwrap();
        family.get_metric()[0].get_counter().get_value()
    }

    #[test]
    fn processor_time_has_fractions_of_a_second() {
        let process = Process::new();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while cpu_seconds(&process).fract() == 0.0 {
            assert!(std::time::Instant::now() < deadline, "whole seconds only");
        }
    }
}
