//! What a pipeline may be asked to do, and what it does about it in each state.

use std::{sync::Arc, time::Duration};

use actix::prelude::*;

use super::{Outcome, Pipeline};
use crate::{
    connectors::Plan,
    supervisor::{State, budget::Budget},
};

/// Supervisor -> pipeline: drain, at the deadline cut off, then Stopped. Nothing is started any more until a [`Begin`].
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop {
    /// From now.
    pub deadline: Duration,
}

/// Supervisor -> pipeline: whatever is draining has no more time.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Cut;

/// Supervisor -> pipeline: a new generation, with a full budget. What runs is drained first, at the deadline of
/// `checkpoint.timeout` cut off.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Restart;

/// Supervisor -> pipeline at rest: start, from another definition of the same name.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Begin {
    pub plan: Arc<Plan>,
    pub file: String,
}

/// Supervisor -> pipeline: where its definition stands now, and what is wrong with what stands there.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Described {
    pub file: String,
    pub error: Option<String>,
}

/// Supervisor -> pipeline at rest: its definition is gone, and so is all that is shown of it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Leave;

impl Handler<Stop> for Pipeline {
    type Result = ();

    fn handle(&mut self, Stop { deadline }: Stop, ctx: &mut Self::Context) {
        self.stop_asked = true;
        if self.controls.is_none() && self.state != State::Draining {
            // Nothing is under way; what a failed generation left is read again, as after any failure.
            self.drained = true;
        }
        match self.state {
            State::Starting | State::Running | State::Degraded if self.controls.is_some() => {
                self.drain(Outcome::Stop, deadline, ctx);
            }
            // It is being cut off: at rest as soon as it is gone.
            State::Running | State::Degraded => {
                self.enter(State::Draining);
            }
            // Whatever it drains for, this is the deadline now.
            State::Draining if self.controls.is_some() => self.cut_after(deadline, ctx),
            State::Draining => {}
            State::Starting => {
                self.outcome = Some(Outcome::Stop);
                self.cut(ctx);
            }
            State::Backoff => {
                self.cancel_timer(ctx);
                self.rest(State::Stopped);
            }
            State::Failed | State::Finished | State::Stopped => self.rest(self.state),
        }
    }
}

impl Handler<Cut> for Pipeline {
    type Result = ();

    fn handle(&mut self, _: Cut, ctx: &mut Self::Context) {
        if self.outcome.is_some() && self.controls.is_some() {
            self.cut(ctx);
        }
    }
}

impl Handler<Restart> for Pipeline {
    type Result = ();

    fn handle(&mut self, _: Restart, ctx: &mut Self::Context) {
        let pipeline = self.makings.plan.name.clone();
        if self.stop_asked {
            tracing::warn!(%pipeline, "a restart is refused: the pipeline is being stopped");
            return;
        }
        if matches!(self.outcome, Some(Outcome::Restart)) {
            tracing::info!(%pipeline, "a restart is under way already");
            return;
        }
        tracing::info!(%pipeline, state = self.state.name(), "a restart was asked for");
        match self.state {
            State::Starting | State::Running | State::Degraded if self.controls.is_some() => {
                self.drain(Outcome::Restart, self.makings.plan.checkpoint.timeout, ctx);
            }
            // It is being cut off: what comes after that is no pause now, and no end.
            State::Running | State::Degraded => {
                self.drained = true;
                self.outcome = Some(Outcome::Restart);
                self.enter(State::Draining);
            }
            // Whatever that was to end in; its deadline stays.
            State::Draining => self.outcome = Some(Outcome::Restart),
            // An opening has nothing to finish, and may hang.
            State::Starting => {
                let cut_off_already = self.outcome.replace(Outcome::Restart).is_some();
                if !cut_off_already {
                    self.cut(ctx);
                }
            }
            State::Backoff => {
                self.cancel_timer(ctx);
                self.restart(ctx);
            }
            State::Failed | State::Finished | State::Stopped => self.restart(ctx),
        }
    }
}

impl Handler<Begin> for Pipeline {
    type Result = ();

    fn handle(&mut self, Begin { plan, file }: Begin, ctx: &mut Self::Context) {
        self.stop_asked = false;
        self.definition_error = None;
        self.last_error = None;
        self.budget = Budget::new(plan.restart);
        self.makings.plan = plan;
        self.makings.file = file;
        self.begin(ctx);
    }
}

impl Handler<Described> for Pipeline {
    type Result = ();

    fn handle(&mut self, Described { file, error }: Described, _: &mut Self::Context) {
        self.makings.file = file;
        self.definition_error = error;
        self.publish();
    }
}

impl Handler<Leave> for Pipeline {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        self.makings.board.remove(self.makings.slot);
        self.makings.pool.leave(self.makings.slot);
        self.makings.vitals.metrics.forget();
        ctx.terminate();
    }
}
