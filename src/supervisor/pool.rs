//! The arbiters that generations run on. A generation stays on one.

use std::future::Future;

use actix::Arbiter;

/// A pool of arbiters, each one thread.
pub struct Pool {
    arbiters: Vec<Arbiter>,
    next: usize,
}

impl Pool {
    /// Starts `threads` arbiters, at least one.
    pub fn new(threads: usize) -> Self {
        Self { arbiters: (0..threads.max(1)).map(|_| Arbiter::new()).collect(), next: 0 }
    }

    /// The arbiter for the next pipeline, in turn.
    pub fn assign(&mut self) -> ArbiterHandle {
        let handle = self.arbiters[self.next % self.arbiters.len()].handle();
        self.next += 1;
        handle
    }

    /// Stops them; they end when their current task yields.
    pub fn stop(&self) {
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
    }
}

/// See [`Arbiter`].
pub type ArbiterHandle = actix::ArbiterHandle;

/// Runs a future on an arbiter; the answer ends when it does, also by a panic.
pub async fn run_on<F, Fut>(arbiter: &ArbiterHandle, make: F) -> Option<tokio::task::JoinHandle<()>>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let (answer, join) = tokio::sync::oneshot::channel();
    arbiter.spawn_fn(move || {
        let _receiver_gone = answer.send(tokio::task::spawn_local(make()));
    });
    join.await.ok()
}
