//! The watch over threads that are blocked. A blocked thread cannot be ended: it is given up, its pipelines go on on
//! a fresh one, and past a number of them the process ends.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    failure::Failure,
    pool::{Lost, Pool, ThreadLost},
};
use crate::{
    model::{Fault, FaultKind, Slot},
    telemetry::{Metrics, Who},
};

/// The actor that a pipeline names if the thread it was on is lost and none of its own actors is to blame.
const THREAD: &str = "thread";

/// When a thread counts as hung, and how many may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hangs {
    /// How long a thread may answer nothing.
    pub deadline: Duration,
    /// How many threads may hang at once; one more, and the process ends.
    pub most: usize,
}

impl Default for Hangs {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(10), most: 4 }
    }
}

/// Watches for as long as the process lives.
pub async fn watch(pool: Pool, hangs: Hangs, metrics: Arc<Metrics>, failure: Failure) {
    let tick = (hangs.deadline / 10).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut last = Instant::now();
    loop {
        tokio::time::sleep(tick).await;
        // A process that was stopped, or that gets no processor, is late itself: that is nobody's silence.
        let since = last.elapsed().min(tick * 2);
        last = Instant::now();
        let lost = match pool.round(since, hangs.deadline) {
            Ok(lost) => lost,
            Err(error) => return failure.report(format!("no thread can be started in place of a lost one: {error}")),
        };
        for who in pool.came_back() {
            tracing::warn!(by = name(who.as_deref()), "a thread that was given up came back, and has ended");
        }
        let hung = pool.hung();
        for lost in lost {
            metrics.thread_given_up();
            let (by, pipelines) = (name(lost.who.as_deref()), lost.tenants.len());
            if lost.ended {
                tracing::error!(pipelines, "a thread has ended; its pipelines go on on a fresh one");
            } else {
                tracing::error!(
                    by,
                    pipelines,
                    hung = hung.len(),
                    "a thread was given up: it was blocked for more than {:?}; its pipelines go on on a fresh one",
                    hangs.deadline
                );
            }
            tell(lost, hangs.deadline);
        }
        metrics.hung_threads(hung.len());
        if hung.len() > hangs.most {
            let by: Vec<_> = hung.iter().map(|who| name(who.as_deref())).collect();
            let text = format!(
                "{} hung threads, and at most {} may be, blocked by: {}",
                hung.len(),
                hangs.most,
                by.join(", ")
            );
            return failure.report(text);
        }
    }
}

fn name(who: Option<&Who>) -> String {
    who.map_or_else(|| "nobody known".to_owned(), |who| format!("pipeline {} ({})", who.pipeline, who.actor))
}

/// Tells each pipeline of a lost thread what that means to it.
fn tell(lost: Lost, deadline: Duration) {
    let to_blame = |slot: Slot| lost.who.as_deref().filter(|who| who.slot == slot);
    for (slot, pipeline) in &lost.tenants {
        let (actor, fault) = match to_blame(*slot) {
            _ if lost.ended => (THREAD, Fault::restart(FaultKind::Bug, "its thread has ended")),
            Some(who) if lost.again => {
                let text = format!(
                    "blocked its thread for more than {deadline:?}; an earlier thread that this pipeline blocked has \
                     not come back, so no other one is given to it"
                );
                (who.actor, Fault::never(FaultKind::Hung, text))
            }
            Some(who) => {
                let text = format!("blocked its thread for more than {deadline:?}");
                (who.actor, Fault::restart(FaultKind::Hung, text))
            }
            None => {
                let text =
                    format!("its thread was blocked for more than {deadline:?} by {}", name(lost.who.as_deref()));
                (THREAD, Fault::restart(FaultKind::Hung, text))
            }
        };
        // Where nobody is known, nobody is known to be innocent.
        let innocent = lost.who.is_some() && to_blame(*slot).is_none();
        pipeline.do_send(ThreadLost { thread: lost.thread, actor, fault, innocent });
    }
}

#[cfg(test)]
mod tests {
    use actix::prelude::*;
    use tokio::time::timeout;

    use super::*;

    struct Deaf;

    impl Actor for Deaf {
        type Context = Context<Self>;
    }

    impl Handler<ThreadLost> for Deaf {
        type Result = ();

        fn handle(&mut self, _: ThreadLost, _: &mut Self::Context) {}
    }

    #[test]
    fn what_holds_the_watch_up_too_is_no_silence_and_a_blocked_thread_is() {
        actix::System::new().block_on(async {
            let (pool, failure, deadline) = (Pool::new(1), Failure::new(), Duration::from_millis(400));
            let metrics = Arc::new(Metrics::new().unwrap());
            failure.spawn(
                "the watch".to_owned(),
                watch(pool.clone(), Hangs { deadline, most: 0 }, metrics, failure.clone()),
            );
            let arbiter = pool.seat(Slot(1), Deaf.start().recipient()).arbiter;
            // Both threads stand still for longer than the deadline, with a question under way; the watch goes on first.
            arbiter.spawn_fn(move || std::thread::sleep(deadline * 3));
            tokio::time::sleep(deadline / 4).await;
            std::thread::sleep(deadline * 5 / 2);
            assert_eq!(timeout(deadline, failure.reason()).await.ok(), None);
            assert!(pool.hung().is_empty());

            let (_go_on, blocked) = std::sync::mpsc::channel::<()>();
            arbiter.spawn_fn(move || {
                let _gone = blocked.recv();
            });
            let reason = timeout(Duration::from_secs(20), failure.reason()).await.unwrap();
            assert_eq!(reason, "1 hung threads, and at most 0 may be, blocked by: nobody known");
        });
    }
}
