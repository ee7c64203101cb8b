//! Who is at work on a thread right now: for the log of a panic, and to tell who blocks a thread that others share.

use std::{
    cell::RefCell,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use crate::model::{PipelineName, Slot};

/// Who is at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The pipeline's slot.
    pub slot: Slot,
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Its actor, or `start` while a generation is being opened.
    pub actor: &'static str,
}

/// What one thread is at; other threads may look.
#[derive(Debug, Default)]
pub struct Whereabouts(Mutex<Option<Arc<Who>>>);

thread_local! {
    static HERE: RefCell<Arc<Whereabouts>> = RefCell::default();
}

impl Whereabouts {
    /// Who is at work there; `None` for nobody, or nobody known.
    pub fn now(&self) -> Option<Arc<Who>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on the current thread says here what it is at, and holds this until it ends.
    pub fn of_this_thread(self: Arc<Self>) {
        HERE.set(self);
    }

    fn replace(&self, who: Option<Arc<Who>>) -> Option<Arc<Who>> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), who)
    }
}

/// Who is at work on the current thread.
pub fn here() -> Option<Arc<Who>> {
    // A thread that is ending has forgotten.
    HERE.try_with(|here| here.borrow().now()).ok().flatten()
}

fn replace(who: Option<Arc<Who>>) -> Option<Arc<Who>> {
    HERE.try_with(|here| here.borrow().replace(who)).ok().flatten()
}

/// While it lives, the current thread is at work for someone.
struct Visit {
    before: Option<Arc<Who>>,
}

impl Visit {
    fn of(who: Option<Arc<Who>>) -> Self {
        Self { before: replace(who) }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        replace(self.before.take());
    }
}

/// A future whose thread says whose it is, while it is polled and while it is dropped.
pub struct Attributed<F> {
    who: Option<Arc<Who>>,
    /// `None` only while it is being dropped.
    future: Option<Pin<Box<F>>>,
}

/// Attributes a future to someone.
pub fn attributed<F: Future>(who: Who, future: F) -> Attributed<F> {
    Attributed { who: Some(Arc::new(who)), future: Some(Box::pin(future)) }
}

/// Attributes a future to whoever is at work on the current thread.
pub fn attributed_as_here<F: Future>(future: F) -> Attributed<F> {
    Attributed { who: here(), future: Some(Box::pin(future)) }
}

/// Attributes work for another thread to whoever is at work on the current one.
pub fn work_as_here<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let who = here();
    move || {
        let _visit = Visit::of(who);
        work()
    }
}

impl<F: Future> Future for Attributed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _visit = Visit::of(self.who.clone());
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Attributed<F> {
    fn drop(&mut self) {
        let _visit = Visit::of(self.who.take());
        self.future = None;
    }
}

/// Whether fail points act here: everywhere, or only in the pipeline that `QUEUEWARDEN_FAIL_PIPELINE` names.
#[cfg(feature = "failpoints")]
pub fn may_fail() -> bool {
    static ONLY: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("QUEUEWARDEN_FAIL_PIPELINE").ok());
    ONLY.as_deref().is_none_or(|only| here().is_some_and(|who| who.pipeline.as_str() == only))
}

/// A fail point of a pipeline: a place where a test may end, stop or fail what is at work there.
macro_rules! fail_point {
    ($name:expr $(, $answer:expr)?) => {
        #[cfg(feature = "failpoints")]
        if $crate::telemetry::may_fail() {
            fail::fail_point!($name $(, $answer)?);
        }
    };
}
pub(crate) use fail_point;

#[cfg(test)]
mod tests {
    use super::*;

    fn who(actor: &'static str) -> Who {
        Who { slot: Slot(1), pipeline: PipelineName::new("p").unwrap(), actor }
    }

    #[test]
    fn a_thread_is_at_work_for_whose_future_it_polls_or_drops_and_for_nobody_after_a_panic() {
        struct Seen(Arc<Mutex<Vec<Option<&'static str>>>>);
        impl Drop for Seen {
            fn drop(&mut self) {
                self.0.lock().unwrap().push(here().map(|who| who.actor));
            }
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let in_future = Seen(Arc::clone(&seen));
        let mut future = attributed(who("decoder"), async move {
            let _in_future = &in_future;
            assert_eq!(here().unwrap().actor, "decoder");
            let inner = attributed(who("poller"), async { here().unwrap().actor });
            assert_eq!((inner.await, here().unwrap().actor), ("poller", "decoder"));
            let elsewhere = std::thread::spawn(work_as_here(|| here().unwrap().actor));
            assert_eq!(elsewhere.join().unwrap(), "decoder");
            std::future::pending::<()>().await;
        });
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        assert_eq!(here(), None);
        drop(future);
        assert_eq!(*seen.lock().unwrap(), [Some("decoder")]);

        let mut panics = attributed(who("decoder"), async { panic!("on purpose") });
        let poll = std::panic::AssertUnwindSafe(|| Pin::new(&mut panics).poll(&mut context).map(|()| ()));
        assert!(std::panic::catch_unwind(poll).is_err());
        assert_eq!(here(), None);
    }
}
