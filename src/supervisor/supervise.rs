//! The supervisor actor, and what starts it.

mod reload;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use actix::prelude::*;
use tokio::sync::oneshot;

use super::{
    Handle, Hangs, State,
    changes::{Known, PlanKnown},
    failure::Failure,
    handle::{Board, Entry, Request},
    pipeline::{Cut, JOIN_DEADLINE, Makings, Pipeline, PipelineStopped, Restart, Stop},
    pool::Pool,
    watch::watch,
};
use crate::{
    connectors::Plan,
    model::{PipelineName, Slot},
    state::Store,
    telemetry::{Metrics, Vitals},
};
use reload::Reloading;

/// After the time a pipeline may take to be cut off, so much more for its answer.
const GRACE: Duration = Duration::from_secs(2);

/// One definition.
pub struct Member {
    /// The pipeline's name, or the file's where even that could not be read.
    pub name: PipelineName,
    /// The definition's file.
    pub file: String,
    /// The plan, or why there is none: then the pipeline is Failed and the others run.
    pub plan: Result<Plan, String>,
}

/// Reads every definition again; an error if they cannot even be listed. Blocks.
pub type Load = Arc<dyn Fn() -> Result<Vec<Member>, String> + Send + Sync>;

/// How to supervise.
pub struct Settings {
    /// What a reload reads.
    pub load: Load,
    /// Arbiters that pipelines are spread over.
    pub threads: usize,
    /// When one of them counts as hung.
    pub hangs: Hangs,
    /// How long a stop may take before what is unfinished is cut off.
    pub shutdown_deadline: Duration,
    /// The state store.
    pub store: Store,
    /// The store's incarnation.
    pub incarnation: String,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Everything received was finished.
    Drained,
    /// Something had to be cut off; it will be read again.
    CutOff,
}

/// A running supervisor.
pub struct Supervision {
    /// Reads the state of all pipelines.
    pub handle: Handle,
    board: Board,
    supervisor: Addr<Supervisor>,
    failure: Failure,
}

impl Supervision {
    /// Drains every pipeline; answers when all are at rest, at the latest a little after the shutdown deadline.
    pub async fn stop(&self) -> Stopped {
        let (answer, stopped) = oneshot::channel();
        self.supervisor.do_send(Shutdown(answer));
        stopped.await.unwrap_or(Stopped::CutOff)
    }

    /// Waits until the process cannot go on, and answers why: too many threads hang, or what supervises panicked.
    pub async fn failed(&self) -> String {
        self.failure.reason().await
    }

    /// Waits until every pipeline is Finished, and there is one. One that is Failed keeps this from being: it may be
    /// restarted yet.
    pub async fn all_finished(&self) {
        self.board.all_finished().await;
    }

    /// A second request to stop: cut off what is left, now.
    pub fn force(&self) {
        self.supervisor.do_send(Force);
    }
}

/// Starts every pipeline. Must be called on the main arbiter.
pub fn start(members: Vec<Member>, settings: Settings) -> Supervision {
    let board = Board::default();
    let (handle, mut requests) = Handle::new(Arc::clone(&settings.metrics), board.clone());
    let (pool, failure) = (Pool::new(settings.threads), Failure::new());
    let watched = watch(pool.clone(), settings.hangs, Arc::clone(&settings.metrics), failure.clone());
    failure.spawn("the watch over threads".to_owned(), watched);
    let of_pipelines = failure.clone();
    let supervisor = failure.start("the supervisor".to_owned(), |ctx| {
        let mut supervisor = Supervisor {
            pool,
            failure: of_pipelines,
            settings,
            board: board.clone(),
            slots: BTreeMap::new(),
            last_slot: Slot(0),
            reloads: 0,
            reloading: None,
            stopping: None,
        };
        // Here, so that every pipeline is shown before anyone can ask.
        for member in members {
            supervisor.admit_new(member, ctx);
        }
        supervisor
    });
    let asked = supervisor.clone();
    actix::spawn(async move {
        while let Some(request) = requests.recv().await {
            asked.do_send(request);
        }
    });
    Supervision { handle, board, supervisor, failure }
}

struct Supervisor {
    settings: Settings,
    pool: Pool,
    failure: Failure,
    board: Board,
    slots: BTreeMap<Slot, Occupant>,
    last_slot: Slot,
    /// Reloads begun so far.
    reloads: u64,
    reloading: Option<Reloading>,
    stopping: Option<Stopping>,
}

/// Who has a slot.
struct Occupant {
    known: Known,
    /// `checkpoint.timeout`
    deadline: Duration,
    vitals: Arc<Vitals>,
    /// `None`: its definition is not valid, and was not when it came.
    pipeline: Option<Addr<Pipeline>>,
}

struct Stopping {
    answer: Option<oneshot::Sender<Stopped>>,
    waiting: HashSet<Slot>,
    result: Stopped,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Shutdown(oneshot::Sender<Stopped>);

#[derive(Message)]
#[rtype(result = "()")]
struct Force;

impl Supervisor {
    /// Takes the next slot: none is ever used again.
    fn admit_new(&mut self, member: Member, ctx: &mut Context<Self>) {
        self.last_slot = Slot(self.last_slot.0 + 1);
        self.admit(self.last_slot, member, ctx);
    }

    fn admit(&mut self, slot: Slot, member: Member, ctx: &mut Context<Self>) {
        let Member { name, file, plan } = member;
        let vitals = Arc::new(Vitals::new(self.settings.metrics.pipeline(&name)));
        let mut known = Known { name, file, plan: None };
        let (deadline, pipeline) = match plan {
            Ok(plan) => {
                known.plan = Some(PlanKnown::of(&plan));
                let deadline = plan.checkpoint.timeout;
                let pipeline = Pipeline::new(Makings {
                    slot,
                    plan: Arc::new(plan),
                    file: known.file.clone(),
                    store: self.settings.store.clone(),
                    incarnation: self.settings.incarnation.clone(),
                    vitals: Arc::clone(&vitals),
                    pool: self.pool.clone(),
                    board: self.board.clone(),
                    stopped: ctx.address().recipient(),
                });
                pipeline.publish();
                let what = format!("the supervision of pipeline {}", known.name);
                (deadline, Some(self.failure.start(what, |_| pipeline)))
            }
            Err(reason) => {
                self.show_broken(slot, &known, &vitals, reason);
                (Duration::ZERO, None)
            }
        };
        self.slots.insert(slot, Occupant { known, deadline, vitals, pipeline });
    }

    /// A definition that is not valid is a Failed pipeline.
    fn show_broken(&self, slot: Slot, known: &Known, vitals: &Arc<Vitals>, reason: String) {
        vitals.metrics.set_state(State::Failed.name(), &State::NAMES);
        self.board.publish(
            slot,
            Entry {
                name: known.name.to_string(),
                file: known.file.clone(),
                source: None,
                sink: None,
                state: State::Failed,
                since: SystemTime::now(),
                generation: None,
                restarts: 0,
                last_error: Some(reason.clone()),
                definition_error: Some(reason),
                vitals: Arc::clone(vitals),
            },
        );
    }

    /// Every pipeline whose definition is valid, or was.
    fn pipelines(&self) -> impl Iterator<Item = (Slot, &Addr<Pipeline>)> {
        self.slots.iter().filter_map(|(slot, occupant)| Some((*slot, occupant.pipeline.as_ref()?)))
    }

    fn restart(&self, slot: Slot) {
        match self.slots.get(&slot) {
            Some(Occupant { pipeline: Some(pipeline), .. }) => pipeline.do_send(Restart),
            Some(Occupant { known, .. }) => {
                tracing::warn!(%slot, pipeline = %known.name, "no restart: the definition is not valid; mend it and reload");
            }
            None => {
                let known: Vec<u32> = self.slots.keys().map(|slot| slot.0).collect();
                tracing::warn!(%slot, ?known, "no restart: no pipeline has this slot");
                self.settings.metrics.unknown_restart();
            }
        }
    }

    /// Even a pipeline that does not answer any more does not keep the process from ending.
    fn give_up(&mut self) {
        if let Some(stopping) = &mut self.stopping
            && let Some(answer) = stopping.answer.take()
        {
            tracing::error!(slots = ?stopping.waiting, "pipelines did not answer that they are at rest");
            let _nobody_waits = answer.send(Stopped::CutOff);
        }
    }

    fn answer_if_stopped(&mut self) {
        if let Some(stopping) = &mut self.stopping
            && stopping.waiting.is_empty()
            && let Some(answer) = stopping.answer.take()
        {
            self.pool.stop();
            let _nobody_waits = answer.send(stopping.result);
        }
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;
}

impl Handler<Request> for Supervisor {
    type Result = ();

    fn handle(&mut self, request: Request, ctx: &mut Self::Context) {
        if self.stopping.is_some() {
            tracing::warn!(?request, "refused: everything is being stopped");
            return;
        }
        match request {
            Request::Restart(slot) => self.restart(slot),
            Request::RestartFailed => self.board.failed().into_iter().for_each(|slot| self.restart(slot)),
            Request::Reload => self.reload(ctx),
        }
    }
}

impl Handler<Shutdown> for Supervisor {
    type Result = ();

    fn handle(&mut self, Shutdown(answer): Shutdown, ctx: &mut Self::Context) {
        let deadline = self.settings.shutdown_deadline;
        let mut waiting = HashSet::new();
        for (slot, pipeline) in self.pipelines() {
            pipeline.do_send(Stop { deadline });
            waiting.insert(slot);
        }
        self.reloading = None;
        self.stopping = Some(Stopping { answer: Some(answer), waiting, result: Stopped::Drained });
        ctx.run_later(deadline + JOIN_DEADLINE + GRACE, |supervisor, _| supervisor.give_up());
        self.answer_if_stopped();
    }
}

impl Handler<Force> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: Force, ctx: &mut Self::Context) {
        if self.stopping.is_some() {
            self.pipelines().for_each(|(_, pipeline)| pipeline.do_send(Cut));
            ctx.run_later(JOIN_DEADLINE + GRACE, |supervisor, _| supervisor.give_up());
        }
    }
}

impl Handler<PipelineStopped> for Supervisor {
    type Result = ();

    fn handle(&mut self, PipelineStopped { slot, drained }: PipelineStopped, ctx: &mut Self::Context) {
        if let Some(stopping) = &mut self.stopping {
            stopping.waiting.remove(&slot);
            if !drained {
                stopping.result = Stopped::CutOff;
            }
            self.answer_if_stopped();
        } else {
            self.stopped_for_reload(slot, ctx);
        }
    }
}
