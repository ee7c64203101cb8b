//! Expected trouble: retried inside the actor with jittered backoff, counted, visible as Degraded.

use std::{future::Future, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};

use super::report::{Event, Reporter};
use crate::{
    model::{Fault, FaultKind, Mend},
    telemetry::{Operation, Vitals},
};

/// The first pause; the services recommend 1 s, jitter adds up to as much again.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause; with its jitter up to half of the recommended 60 s, for an operator waits it out after mending a cause.
const LONGEST: Duration = Duration::from_secs(15);
/// Clock skew and refused signatures do not pass by themselves soon: asking faster only fills logs.
const SLOW: Duration = Duration::from_secs(10);

/// The longest pause while a service cannot be reached at all. Asking costs it nothing then, and a broker that was
/// restarted should be read on within seconds.
const UNREACHED: Duration = Duration::from_secs(4);

/// A deadline runs out in so many parts. A process that was stopped for longer than all of it takes only the part
/// that it was in for run out, and its calls get the rest.
const PARTS: u32 = 4;

/// What a call answers, or a fault that names it if there is no answer within the deadline.
pub async fn within<T>(
    deadline: Duration,
    operation: &Operation,
    call: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    #[cfg(feature = "failpoints")]
    let call = async {
        if hangs(operation.name) {
            std::future::pending::<()>().await;
        }
        call.await
    };
    tokio::pin!(call);
    for _ in 0..PARTS {
        if let Ok(answer) = tokio::time::timeout(deadline / PARTS, &mut call).await {
            return answer;
        }
    }
    Err(Fault::restart(FaultKind::Hung, format!("{} hangs: no answer within {deadline:?}", operation.name)))
}

/// The fail points `hang.OPERATION`: the action `return` makes the call one that never answers.
#[cfg(feature = "failpoints")]
fn hangs(operation: &str) -> bool {
    crate::telemetry::fail_point!(&format!("hang.{}", operation.replace(' ', "-")), |_| true);
    false
}

/// Calls until it works, or until it fails in a way that trying again cannot mend, or `times` retries are used up.
/// Each call has the whole `deadline`; one that misses it hangs, and is not tried again.
pub async fn retrying<T, F>(
    vitals: &Arc<Vitals>,
    reporter: &Reporter,
    operation: impl Into<Operation>,
    deadline: Duration,
    times: Option<usize>,
    mut call: impl FnMut() -> F,
) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let operation = &operation.into();
    let _told = Told { vitals, reporter, operation };
    let call = || within(deadline, operation, call());
    let backoff = ExponentialBuilder::new().with_min_delay(FIRST).with_max_delay(LONGEST).with_jitter();
    let backoff = match times {
        Some(times) => backoff.with_max_times(times),
        None => backoff.without_max_times(),
    };
    let result = call
        .retry(backoff)
        .sleep(tokio::time::sleep)
        .when(|fault: &Fault| fault.mend == Mend::Retry)
        .adjust(|fault, pause| match fault.kind {
            FaultKind::Clock | FaultKind::Credentials => pause.map(|pause| pause.max(SLOW)),
            // With a jitter of its own: the readers of all queues wait for the same broker.
            FaultKind::Network => pause.map(|pause| pause.min(UNREACHED.mul_f64(0.5 + fastrand::f64() / 2.0))),
            _ => pause,
        })
        .notify(|fault, pause| {
            tracing::warn!(operation = operation.name, kind = fault.kind.label(), again_in = ?pause, error = %fault, "will be tried again");
            vitals.trouble(operation, fault);
            reporter.event(Event::HealthChanged);
        })
        .await;
    if result.is_ok() && vitals.is_in_trouble(operation) {
        tracing::info!(operation = operation.name, "works again");
    }
    result
}

/// However the call ends, also when it is dropped unfinished, it is no trouble any more.
struct Told<'a> {
    vitals: &'a Vitals,
    reporter: &'a Reporter,
    operation: &'a Operation,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if self.vitals.mended(self.operation) {
            self.reporter.event(Event::HealthChanged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_a_stop_of_the_process_made_late_has_time_left_and_one_that_hangs_has_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let deadline = Duration::from_millis(400);
        let call = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        };
        let stop = async { std::thread::sleep(2 * deadline) };
        let operation = Operation::from("call");
        let both = async { futures_util::join!(within(deadline, &operation, call), stop) };
        assert!(runtime.block_on(both).0.is_ok());

        let hangs = within(deadline, &operation, std::future::pending::<Result<(), Fault>>());
        let fault = runtime.block_on(hangs).expect_err("it does not answer");
        assert_eq!((fault.kind, fault.to_string().as_str()), (FaultKind::Hung, "call hangs: no answer within 400ms"));
    }
}
