//! What the process cannot go on after: a panic of its own actors on the main arbiter, or too many hung threads.

use std::sync::Arc;

use actix::prelude::*;
use tokio::sync::watch;

use crate::pipeline::ExitReason;

/// Why the process must end; nothing yet, at first. Clones are the same.
#[derive(Clone)]
pub struct Failure(Arc<watch::Sender<Option<String>>>);

impl Failure {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// The first reason is the one that is told.
    pub fn report(&self, reason: String) {
        self.0.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert(reason);
            first
        });
    }

    /// Waits for a reason.
    pub async fn reason(&self) -> String {
        let mut reasons = self.0.subscribe();
        match reasons.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            _ => std::future::pending().await,
        }
    }

    /// Starts an actor on the current arbiter without which the process is nothing: its panic is a reason.
    pub fn start<A>(&self, what: String, make: impl FnOnce(&mut Context<A>) -> A) -> Addr<A>
    where
        A: Actor<Context = Context<A>>,
    {
        let mut context = Context::new();
        let (address, actor) = (context.address(), make(&mut context));
        self.spawn(what, context.into_future(actor));
        address
    }

    /// The same for a task.
    pub fn spawn(&self, what: String, task: impl Future<Output = ()> + 'static) {
        let (failure, join) = (self.clone(), tokio::task::spawn_local(task));
        actix::spawn(async move {
            if let ExitReason::Panicked(text) = ExitReason::of(join.await) {
                failure.report(format!("{what} panicked: {text}"));
            }
        });
    }
}
