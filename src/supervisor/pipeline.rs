//! The supervisor's side of one pipeline: its state machine. It lives on the main arbiter, where every `JoinHandle`
//! and deadline of its generations is awaited. What it may be asked to do is in `requests`.

mod lost;
mod requests;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use actix::{fut::wrap_future, prelude::*};
use tokio::task::AbortHandle;

pub use requests::{Begin, Cut, Described, Leave, Restart, Stop};

use super::{
    State,
    budget::Budget,
    handle::{Board, Entry},
    pool::{Pool, ThreadNumber, run_on},
};
use crate::{
    connectors::Plan,
    model::{Fault, FaultKind, Generation, Mend, Slot},
    pipeline::{Child, ChildName, Controls, Event, ExitReason, Report, START, Seed},
    state::Store,
    telemetry::{Vitals, fail_point},
};

/// After this a generation that was cut off counts as gone although an actor has not ended: whatever it still does is
/// fenced by its number.
pub(super) const JOIN_DEADLINE: Duration = Duration::from_secs(10);

/// What a pipeline is started with.
pub struct Makings {
    pub slot: Slot,
    pub plan: Arc<Plan>,
    pub file: String,
    pub store: Store,
    pub incarnation: String,
    pub vitals: Arc<Vitals>,
    pub pool: Pool,
    pub board: Board,
    pub stopped: Recipient<PipelineStopped>,
}

/// See the module.
pub struct Pipeline {
    makings: Makings,
    budget: Budget,
    state: State,
    since: SystemTime,
    /// Starts so far in this process.
    attempt: u64,
    generation: Option<Generation>,
    restarts: u64,
    last_error: Option<String>,
    /// Why what the definition's file holds now is not valid; the pipeline goes on with what it held before.
    definition_error: Option<String>,
    controls: Option<Controls>,
    /// The thread of the generation.
    thread: Option<ThreadNumber>,
    /// Actors that have not ended, by number.
    alive: HashMap<u64, Living>,
    /// The number of the next one.
    next_child: u64,
    /// What happens once the generation is gone; `None` while it is to go on.
    outcome: Option<Outcome>,
    timer: Option<SpawnHandle>,
    /// A stop was asked for: nothing is started any more.
    stop_asked: bool,
    /// Nothing that was received is unfinished.
    drained: bool,
}

/// An actor that has not ended.
struct Living {
    name: ChildName,
    /// What cuts it off; none yet while the arbiter has not taken up the opening.
    abort: Option<AbortHandle>,
}

/// What comes after a generation.
#[derive(Debug, Clone)]
enum Outcome {
    /// A fault that a new generation can mend: the next one after a pause, if the budget has one left.
    Retry(Fault),
    /// A person asked for it: the next one at once, with a full budget.
    Restart,
    /// The thread is lost, by no fault of this pipeline: the next one at once, on another.
    Elsewhere,
    Fail(Fault),
    Finish,
    Stop,
}

/// Pipeline -> supervisor, after a [`Stop`]: it is at rest.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PipelineStopped {
    pub slot: Slot,
    /// Everything received was finished.
    pub drained: bool,
}

impl Pipeline {
    pub fn new(makings: Makings) -> Self {
        Self {
            budget: Budget::new(makings.plan.restart),
            makings,
            state: State::Starting,
            since: SystemTime::now(),
            attempt: 0,
            generation: None,
            restarts: 0,
            last_error: None,
            definition_error: None,
            controls: None,
            thread: None,
            alive: HashMap::new(),
            next_child: 0,
            outcome: None,
            timer: None,
            stop_asked: false,
            drained: true,
        }
    }

    /// The only place that changes the state; answers whether it did.
    fn enter(&mut self, next: State) -> bool {
        if self.state != next {
            if !self.state.may_become(next) {
                tracing::error!(pipeline = %self.makings.plan.name, from = self.state.name(), to = next.name(), "refused an illegal transition");
                debug_assert!(false, "an illegal transition, from {} to {}", self.state.name(), next.name());
                return false;
            }
            tracing::info!(pipeline = %self.makings.plan.name, generation = self.generation.map(|g| g.0), from = self.state.name(), to = next.name(), "state");
            self.state = next;
            self.since = SystemTime::now();
        }
        self.publish();
        true
    }

    pub(super) fn publish(&self) {
        let plan = &self.makings.plan;
        self.makings.vitals.metrics.set_state(self.state.name(), &State::NAMES);
        self.makings.board.publish(
            self.makings.slot,
            Entry {
                name: plan.name.to_string(),
                file: self.makings.file.clone(),
                source: Some(plan.source_identity.to_string()),
                sink: Some(plan.sink_identity.to_string()),
                state: self.state,
                since: self.since,
                generation: self.generation.map(|generation| generation.0),
                restarts: self.restarts,
                last_error: self.last_error.clone(),
                definition_error: self.definition_error.clone(),
                vitals: Arc::clone(&self.makings.vitals),
            },
        );
    }

    fn begin(&mut self, ctx: &mut Context<Self>) {
        if !self.enter(State::Starting) {
            return;
        }
        self.attempt += 1;
        self.outcome = None;
        let number = self.number_of(START.into());
        let makings = &self.makings;
        let seed = Seed {
            plan: Arc::clone(&makings.plan),
            store: makings.store.clone(),
            incarnation: makings.incarnation.clone(),
            vitals: Arc::clone(&makings.vitals),
            reporter: crate::pipeline::Reporter {
                to: ctx.address().recipient(),
                slot: makings.slot,
                attempt: self.attempt,
            },
        };
        let seat = makings.pool.seat(makings.slot, ctx.address().recipient());
        self.thread = Some(seat.thread);
        let attempt = self.attempt;
        let start = async move { run_on(&seat.arbiter, move || crate::pipeline::open(seed)).await };
        ctx.spawn(wrap_future(start).map(move |join, pipeline: &mut Self, ctx| match join {
            Some(join) => pipeline.adopt(number, Child { name: START.into(), join }, attempt, ctx),
            None if attempt == pipeline.attempt => {
                pipeline.alive.remove(&number);
                pipeline.end_with(START, Fault::restart(FaultKind::Bug, "the arbiter is gone"), ctx);
            }
            None => {}
        }));
    }

    /// Counts a child among those alive.
    fn number_of(&mut self, name: ChildName) -> u64 {
        self.next_child += 1;
        self.alive.insert(self.next_child, Living { name, abort: None });
        self.next_child
    }

    /// Awaits a child's end here, on the main arbiter.
    fn adopt(&mut self, number: u64, child: Child, attempt: u64, ctx: &mut Context<Self>) {
        let Child { name, join } = child;
        if attempt != self.attempt {
            // Its generation was given up before it could be heard of.
            return join.abort();
        }
        self.alive.insert(number, Living { name: name.clone(), abort: Some(join.abort_handle()) });
        // What is drained goes on to its end.
        if self.outcome.is_some() && self.controls.is_none() {
            join.abort();
        }
        let slot = self.makings.slot;
        ctx.spawn(wrap_future(join).map(move |result, _: &mut Self, ctx| {
            // Through the mailbox, so behind what the actor said of its end: else that would be taken for an end
            // without a reason.
            let event = Event::Exited { number, name, reason: ExitReason::of(result) };
            ctx.address().do_send(Report { slot, attempt, event });
        }));
    }

    fn exited(&mut self, number: u64, name: &ChildName, reason: ExitReason, ctx: &mut Context<Self>) {
        self.alive.remove(&number);
        match reason {
            ExitReason::Panicked(text) => {
                self.end_with(name.actor, Fault::restart(FaultKind::Bug, format!("{name} panicked: {text}")), ctx);
            }
            // One that is there for a lane ends with it.
            ExitReason::Stopped if name.lane.is_some() => {}
            _ if self.outcome.is_none() && name.actor != START => {
                self.end_with(name.actor, Fault::restart(FaultKind::Bug, format!("{name} ended by itself")), ctx);
            }
            _ => {}
        }
        self.conclude_if_gone(ctx);
    }

    /// A fault ends the generation: cut off what is left, then restart or fail.
    fn end_with(&mut self, actor: &'static str, fault: Fault, ctx: &mut Context<Self>) {
        if self.outcome.is_some() && self.controls.is_none() {
            // It is being cut off already, for a reason that was told.
            return;
        }
        tracing::error!(pipeline = %self.makings.plan.name, generation = self.generation.map(|g| g.0), actor, kind = fault.kind.label(), error = %fault, "a generation ends");
        self.makings.vitals.metrics.fault(actor, fault.kind);
        // A fault during a drain does not hide why the drain began.
        if !matches!(self.outcome, Some(Outcome::Fail(_))) {
            self.last_error = Some(format!("{actor}: {fault}"));
        }
        self.outcome.get_or_insert(match fault.mend {
            Mend::Never => Outcome::Fail(fault),
            Mend::Retry | Mend::Restart => Outcome::Retry(fault),
        });
        self.cut(ctx);
    }

    fn cut(&mut self, ctx: &mut Context<Self>) {
        self.controls = None;
        for abort in self.alive.values().filter_map(|living| living.abort.as_ref()) {
            abort.abort();
        }
        self.cancel_timer(ctx);
        self.timer = Some(ctx.run_later(JOIN_DEADLINE, |pipeline, ctx| {
            pipeline.timer = None;
            let left: Vec<_> = pipeline.alive.drain().map(|(_, living)| living.name.to_string()).collect();
            tracing::error!(pipeline = %pipeline.makings.plan.name, ?left, "cut off, but not ended; its late words are refused");
            pipeline.conclude_if_gone(ctx);
        }));
        self.conclude_if_gone(ctx);
    }

    fn cancel_timer(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
    }

    fn conclude_if_gone(&mut self, ctx: &mut Context<Self>) {
        if !self.alive.is_empty() || self.controls.is_some() {
            return;
        }
        let Some(outcome) = self.outcome.take() else { return };
        self.thread = None;
        self.cancel_timer(ctx);
        // Words of the generation that is gone are not meant for the next one.
        self.attempt += 1;
        self.makings.vitals.generation_ended();
        match outcome {
            Outcome::Finish => self.rest(State::Finished),
            Outcome::Stop => self.rest(State::Stopped),
            _ if self.stop_asked => self.rest(State::Stopped),
            Outcome::Restart => self.restart(ctx),
            Outcome::Elsewhere => {
                self.enter(State::Backoff);
                self.begin_again(ctx);
            }
            Outcome::Fail(fault) => self.fail(&fault),
            Outcome::Retry(fault) => match self.budget.spend(fault.kind, Instant::now()) {
                Some(pause) => {
                    self.enter(State::Backoff);
                    self.timer = Some(ctx.run_later(pause, |pipeline, ctx| {
                        pipeline.timer = None;
                        pipeline.begin_again(ctx);
                    }));
                }
                None => self.fail(&fault),
            },
        }
    }

    fn begin_again(&mut self, ctx: &mut Context<Self>) {
        self.restarts += 1;
        self.makings.vitals.metrics.restarts.inc();
        self.begin(ctx);
    }

    /// The restart that a person asked for.
    fn restart(&mut self, ctx: &mut Context<Self>) {
        self.budget = Budget::new(self.makings.plan.restart);
        self.begin_again(ctx);
    }

    fn fail(&mut self, fault: &Fault) {
        tracing::error!(pipeline = %self.makings.plan.name, error = %fault, "the pipeline is Failed until someone restarts it");
        self.enter(State::Failed);
    }

    fn rest(&mut self, state: State) {
        self.enter(state);
        if self.stop_asked {
            self.makings.stopped.do_send(PipelineStopped { slot: self.makings.slot, drained: self.drained });
        }
    }

    fn event(&mut self, event: Event, ctx: &mut Context<Self>) {
        match event {
            Event::Numbered(generation) => {
                self.generation = Some(generation);
                self.makings.vitals.metrics.generation.set(i64::try_from(generation.0).unwrap_or(i64::MAX));
                self.publish();
            }
            Event::Running(controls) => self.running(controls, ctx),
            Event::Begun if self.controls.is_some() && self.outcome.is_none() => self.begun(),
            Event::Begun => {}
            Event::HealthChanged => self.health_changed(),
            Event::Fault { actor, fault } => self.end_with(actor, fault, ctx),
            Event::Hopeless { actor, fault } => self.hopeless(actor, fault, ctx),
            Event::Drained => self.drained(ctx),
            Event::Finished => self.finished(ctx),
            Event::Started(child) => self.started(child, ctx),
            Event::Exited { number, name, reason } => self.exited(number, &name, reason, ctx),
        }
    }

    fn started(&mut self, child: Child, ctx: &mut Context<Self>) {
        let number = self.number_of(child.name.clone());
        self.adopt(number, child, self.attempt, ctx);
    }

    fn running(&mut self, mut controls: Controls, ctx: &mut Context<Self>) {
        for child in controls.children.drain(..) {
            self.started(child, ctx);
        }
        if self.outcome.is_some() {
            return;
        }
        let begun = controls.begun;
        self.controls = Some(controls);
        self.drained = false;
        if begun {
            self.begun();
        }
    }

    /// Messages are received.
    fn begun(&mut self) {
        self.budget.healthy(Instant::now());
        self.enter(State::Running);
        self.health_changed();
    }

    fn health_changed(&mut self) {
        let troubled = !self.makings.vitals.troubles().is_empty();
        let next = match self.state {
            State::Running if troubled => State::Degraded,
            State::Degraded if !troubled => State::Running,
            unchanged => unchanged,
        };
        self.enter(next);
    }

    fn hopeless(&mut self, actor: &'static str, fault: Fault, ctx: &mut Context<Self>) {
        if self.controls.is_none() {
            return;
        }
        self.makings.vitals.metrics.fault(actor, fault.kind);
        // Also during a drain for another reason: after it this is what is left to be mended.
        self.last_error = Some(format!("{actor}: {fault}"));
        if self.outcome.is_none() {
            self.drain(Outcome::Fail(fault), self.makings.plan.checkpoint.timeout, ctx);
        } else {
            self.publish();
        }
    }

    /// Finishes what was received, then the outcome; at the deadline what is unfinished is cut off.
    fn drain(&mut self, outcome: Outcome, deadline: Duration, ctx: &mut Context<Self>) {
        let Some(controls) = &self.controls else { return };
        controls.drain();
        self.enter(State::Draining);
        self.outcome = Some(outcome);
        self.cut_after(deadline, ctx);
    }

    fn cut_after(&mut self, deadline: Duration, ctx: &mut Context<Self>) {
        self.cancel_timer(ctx);
        self.timer = Some(ctx.run_later(deadline, |pipeline, ctx| {
            pipeline.timer = None;
            tracing::error!(pipeline = %pipeline.makings.plan.name, "did not drain in time; what is unfinished is read again");
            pipeline.cut(ctx);
        }));
    }

    /// The source is at its end, and that is durable.
    fn finished(&mut self, ctx: &mut Context<Self>) {
        self.drained = true;
        if matches!(self.outcome, None | Some(Outcome::Stop)) {
            self.outcome = Some(Outcome::Finish);
        }
        self.cut(ctx);
    }

    fn drained(&mut self, ctx: &mut Context<Self>) {
        self.drained = true;
        self.cut(ctx);
    }
}

impl Actor for Pipeline {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.begin(ctx);
    }
}

impl Handler<Report> for Pipeline {
    type Result = ();

    fn handle(&mut self, report: Report, ctx: &mut Self::Context) {
        fail_point!("supervisor.report");
        if report.attempt == self.attempt {
            self.event(report.event, ctx);
            return;
        }
        match report.event {
            Event::Running(controls) => controls.children.iter().for_each(|child| child.join.abort()),
            Event::Started(child) => child.join.abort(),
            _ => {}
        }
    }
}
