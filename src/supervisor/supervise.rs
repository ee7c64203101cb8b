//! The supervisor actor, and what starts it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use actix::prelude::*;
use tokio::sync::oneshot;

use super::{
    Handle, Hangs, State,
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
    let supervisor = Supervisor {
        pool,
        failure: failure.clone(),
        settings,
        members: Some(members),
        board: board.clone(),
        pipelines: BTreeMap::new(),
        stopping: None,
    };
    let supervisor = failure.start("the supervisor".to_owned(), supervisor);
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
    members: Option<Vec<Member>>,
    board: Board,
    /// `None`: its definition is not valid, and never was in this process.
    pipelines: BTreeMap<Slot, Option<Addr<Pipeline>>>,
    stopping: Option<Stopping>,
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
    fn admit(&mut self, slot: Slot, member: Member, ctx: &mut Context<Self>) {
        let vitals = Arc::new(Vitals::new(self.settings.metrics.pipeline(&member.name)));
        match member.plan {
            Ok(plan) => {
                let pipeline = Pipeline::new(Makings {
                    slot,
                    plan: Arc::new(plan),
                    file: member.file,
                    store: self.settings.store.clone(),
                    incarnation: self.settings.incarnation.clone(),
                    vitals,
                    pool: self.pool.clone(),
                    board: self.board.clone(),
                    stopped: ctx.address().recipient(),
                });
                pipeline.publish();
                let what = format!("the supervision of pipeline {}", member.name);
                self.pipelines.insert(slot, Some(self.failure.start(what, pipeline)));
            }
            Err(reason) => {
                vitals.metrics.set_state(State::Failed.name(), &State::NAMES);
                self.board.publish(
                    slot,
                    Entry {
                        name: member.name.to_string(),
                        file: member.file,
                        source: None,
                        sink: None,
                        state: State::Failed,
                        since: SystemTime::now(),
                        generation: None,
                        restarts: 0,
                        last_error: Some(reason.clone()),
                        definition_error: Some(reason),
                        vitals,
                    },
                );
                self.pipelines.insert(slot, None);
            }
        }
    }

    fn restart(&self, slot: Slot) {
        match self.pipelines.get(&slot) {
            Some(Some(pipeline)) => pipeline.do_send(Restart),
            Some(None) => tracing::warn!(%slot, "no restart: the definition is not valid; mend it and reload"),
            None => {
                tracing::warn!(%slot, known = ?self.pipelines.keys().collect::<Vec<_>>(), "no restart: no pipeline has this slot");
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

    fn started(&mut self, ctx: &mut Self::Context) {
        for (slot, member) in (1..).map(Slot).zip(self.members.take().unwrap_or_default()) {
            self.admit(slot, member, ctx);
        }
    }
}

impl Handler<Request> for Supervisor {
    type Result = ();

    fn handle(&mut self, request: Request, _: &mut Self::Context) {
        if self.stopping.is_some() {
            tracing::warn!(?request, "refused: everything is being stopped");
            return;
        }
        match request {
            Request::Restart(slot) => self.restart(slot),
            Request::RestartFailed => self.board.failed().into_iter().for_each(|slot| self.restart(slot)),
            Request::Reload => {}
        }
    }
}

impl Handler<Shutdown> for Supervisor {
    type Result = ();

    fn handle(&mut self, Shutdown(answer): Shutdown, ctx: &mut Self::Context) {
        let deadline = self.settings.shutdown_deadline;
        let mut waiting = HashSet::new();
        for (slot, pipeline) in &self.pipelines {
            if let Some(pipeline) = pipeline {
                pipeline.do_send(Stop { deadline });
                waiting.insert(*slot);
            }
        }
        self.stopping = Some(Stopping { answer: Some(answer), waiting, result: Stopped::Drained });
        ctx.run_later(deadline + JOIN_DEADLINE + GRACE, |supervisor, _| supervisor.give_up());
        self.answer_if_stopped();
    }
}

impl Handler<Force> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: Force, ctx: &mut Self::Context) {
        if self.stopping.is_some() {
            self.pipelines.values().flatten().for_each(|pipeline| pipeline.do_send(Cut));
            ctx.run_later(JOIN_DEADLINE + GRACE, |supervisor, _| supervisor.give_up());
        }
    }
}

impl Handler<PipelineStopped> for Supervisor {
    type Result = ();

    fn handle(&mut self, PipelineStopped { slot, drained }: PipelineStopped, _: &mut Self::Context) {
        if let Some(stopping) = &mut self.stopping {
            stopping.waiting.remove(&slot);
            if !drained {
                stopping.result = Stopped::CutOff;
            }
        }
        self.answer_if_stopped();
    }
}
