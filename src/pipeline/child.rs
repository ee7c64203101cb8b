//! How actors are started, so that their end is always noticed.
//!
//! A panic in actix kills only the actor, and `actix::Supervisor` does not restart on one. So every actor runs as a
//! task whose `JoinHandle` is awaited on the main arbiter.

use std::{any::Any, fmt};

use actix::prelude::*;
use tokio::task::{JoinError, JoinHandle};

use crate::{
    model::LaneId,
    telemetry::{Who, attributed},
};

/// An actor of a generation.
#[derive(Debug)]
pub struct Child {
    /// What it is called.
    pub name: ChildName,
    /// Ends when the actor does, however that comes about.
    pub join: JoinHandle<()>,
}

/// What an actor is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildName {
    /// In logs and metrics.
    pub actor: &'static str,
    /// The one lane it is there for, of several. It may end by itself, since its lane may.
    pub lane: Option<LaneId>,
}

impl From<&'static str> for ChildName {
    fn from(actor: &'static str) -> Self {
        Self { actor, lane: None }
    }
}

impl fmt::Display for ChildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lane {
            Some(lane) => write!(f, "{} of lane {lane}", self.actor),
            None => f.write_str(self.actor),
        }
    }
}

/// How an actor ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// It stopped.
    Stopped,
    /// It was cut off.
    Cancelled,
    /// It panicked, with this message.
    Panicked(String),
}

impl ExitReason {
    /// Reads it from what a `JoinHandle` answered.
    pub fn of(result: Result<(), JoinError>) -> Self {
        match result {
            Ok(()) => Self::Stopped,
            Err(error) if error.is_panic() => Self::Panicked(panic_message(error.into_panic().as_ref())),
            Err(_) => Self::Cancelled,
        }
    }
}

/// Starts an actor in its context on the current arbiter, which says whose work it does while it does that.
pub fn start<A: Actor<Context = Context<A>>>(who: Who, context: Context<A>, actor: A) -> Child {
    Child { name: who.actor.into(), join: tokio::task::spawn_local(attributed(who, context.into_future(actor))) }
}

/// As [`start`], an actor that is there for one lane of several.
pub fn start_for<A: Actor<Context = Context<A>>>(lane: LaneId, who: Who, context: Context<A>, actor: A) -> Child {
    let Child { name: ChildName { actor, .. }, join } = start(who, context, actor);
    Child { name: ChildName { actor, lane: Some(lane) }, join }
}

/// The text of a panic's payload.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
