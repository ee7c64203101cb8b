//! What the poller and the readers have in common: calls as tasks of their own, the source's `rate`, and the pause
//! after an empty answer that came at once.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::RemoteHandle};
use tracing::{Instrument, Span};

use super::{pace::Pace, report::Reporter, retry::retrying};
use crate::{
    definition::Rate,
    model::{Body, Fault, Message},
    telemetry::{Operation, Vitals, attributed_as_here},
};

/// An empty answer sooner than this is not a long poll that ran its time: without a pause it would be a busy loop
/// (and a bill) against the service.
const QUICK: Duration = Duration::from_millis(200);
/// The longest pause after quick empty answers.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How a pipeline polls; shared by all that poll for it.
#[derive(Clone)]
pub struct Polling {
    pace: Option<Rc<RefCell<Pace>>>,
    /// `checkpoint.timeout`: how long one call of the service may take, beyond its own patience.
    pub timeout: Duration,
    pub reporter: Reporter,
    pub vitals: Arc<Vitals>,
}

/// Quick empty answers in a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuickEmpties(u32);

impl QuickEmpties {
    /// A poll brought nothing, and took so long.
    pub fn brought_nothing(&mut self, took: Duration) {
        self.0 = if took < QUICK { self.0.saturating_add(1) } else { 0 };
    }

    /// A poll brought something.
    pub fn brought_something(&mut self) {
        self.0 = 0;
    }

    fn pause(self) -> Duration {
        match self.0 {
            0 => Duration::ZERO,
            n => LONGEST_PAUSE.min(Duration::from_millis(50) * 2u32.saturating_pow(n.min(8))),
        }
    }
}

impl Polling {
    pub fn new(rate: Option<Rate>, timeout: Duration, reporter: Reporter, vitals: Arc<Vitals>) -> Self {
        let pace = rate.map(|rate| Rc::new(RefCell::new(Pace::new(rate, Instant::now()))));
        Self { pace, timeout, reporter, vitals }
    }

    /// How long one more poll has to wait for the rate; each of those under way is taken to bring at least one message.
    /// `None`: it may begin now.
    pub fn wait(&self, under_way: usize) -> Option<Duration> {
        let pace = self.pace.as_ref()?;
        let wait = pace.borrow_mut().wait(Instant::now(), under_way);
        if wait.is_none() {
            self.vitals.metrics.rate_limited.set(0);
        }
        wait
    }

    /// Polling waits for the rate from now on.
    pub fn waits(&self) {
        self.vitals.metrics.rate_limited.set(1);
        self.vitals.metrics.rate_waits.inc();
    }

    /// A poll was answered with so many messages.
    pub fn answered(&self, messages: usize) {
        self.vitals.metrics.polls.inc();
        if let Some(pace) = &self.pace {
            pace.borrow_mut().spend(messages);
        }
    }

    /// Counts what was received; answers its bytes.
    pub fn received<'a>(&self, messages: impl ExactSizeIterator<Item = &'a Message>) -> usize {
        self.vitals.metrics.received.inc_by(messages.len() as u64);
        let bytes = messages.map(|message| Body::size(&message.body)).sum();
        self.vitals.metrics.received_bytes.inc_by(bytes as u64);
        bytes
    }

    /// Begins a poll, after the pause that quick empty answers ask for; it is tried again for as long as that may help.
    /// Answers also how long it took.
    pub fn poll<T, F>(
        &self,
        operation: Operation,
        quick: QuickEmpties,
        patience: Duration,
        span: &Span,
        call: impl FnMut() -> F + 'static,
    ) -> RemoteHandle<Result<(T, Duration), Fault>>
    where
        T: 'static,
        F: Future<Output = Result<T, Fault>> + 'static,
    {
        let Self { timeout, reporter, vitals, .. } = self.clone();
        let poll = async move {
            let pause = quick.pause();
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let begun = Instant::now();
            let polled = retrying(&vitals, &reporter, operation, patience + timeout, None, call).await?;
            Ok((polled, begun.elapsed()))
        };
        task(poll.instrument(span.clone()))
    }
}

/// A call to the service as a task of its own: whenever anything wakes an actor, all its futures are polled, which is
/// dear for calls and cheap for this handle. Dropping the handle drops the call, and a panic goes on in the actor.
pub fn task<F: Future + 'static>(call: F) -> RemoteHandle<F::Output> {
    let (task, handle) = call.remote_handle();
    actix::spawn(attributed_as_here(task));
    handle
}
