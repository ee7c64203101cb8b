//! The enumerator: knows the lanes of a log, opens them, and starts a reader for each. It also tells the service how
//! far the lanes are read, once a checkpoint holds that.
//!
//! A lane *begins* when the sink-writer knows of it. Where it starts must be in the store before anything of it is read,
//! or a crash would resolve it again, to another place perhaps.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use actix::{fut::wrap_future, prelude::*};
use tracing::{Instrument, Span};

use super::{
    checkpointer::Checkpointer,
    child,
    commits::Commits,
    decoder::Decoder,
    messages::*,
    polling::{Polling, task},
    reader::{self, Reader},
    report::Event,
    retry::retrying,
    sink_writer::SinkWriter,
};
use crate::{
    connector::{Lanes, LogSource, OpenedLane, Start},
    model::{Credits, Fault, Generation, LaneId, Mend},
    telemetry::{Operation, Who, fail_point, lane_span},
};

pub const NAME: &str = "enumerator";

/// How often a commit is tried again before it is left to the next checkpoint.
const COMMIT_RETRIES: usize = 2;

/// See the module.
pub struct Enumerator {
    pub source: Arc<dyn LogSource>,
    /// Who a reader is.
    pub who: Who,
    pub generation: Generation,
    /// Shared by the readers.
    pub credits: Credits,
    pub polling: Polling,
    pub decoder: Addr<Decoder>,
    pub sink: Addr<SinkWriter>,
    pub checkpointer: Addr<Checkpointer>,
    pub span: Span,
    pub work: Work,
}

/// What the enumerator keeps track of.
pub struct Work {
    /// The first answer, until it is looked at.
    first: Option<Lanes>,
    lanes: BTreeMap<LaneId, Lane>,
    /// The positions in the store.
    stored: BTreeMap<LaneId, u64>,
    /// Those of lanes that have never been looked for here, as far as that was told.
    away: Vec<LaneId>,
    commits: Commits,
    /// The next question for the lanes, or the pause before it.
    discovery: Option<SpawnHandle>,
    /// It was told that lanes are read, or that there is none.
    told_begun: bool,
    /// No lane begins any more.
    closed: bool,
    awaiting: bool,
}

/// What has become of a lane.
enum Lane {
    Opening {
        start: Start,
        call: SpawnHandle,
    },
    /// Nothing has ever been read of it: waits for the others of which that is so.
    Opened(OpenedLane),
    /// It has begun, and waits for the checkpoint that holds where.
    Begun(OpenedLane),
    Read(Addr<Reader>),
    Ended {
        position: u64,
        finished: bool,
    },
    /// Another process reads it from now on; its reader ends.
    Leaving,
    /// All that was read of it is on its way into the store, and to the service.
    Left {
        position: u64,
    },
    /// The store is to forget its position.
    Forgetting,
}

impl Work {
    /// `first`: the lanes there are; `stored`: the positions the store holds.
    pub fn new(first: Lanes, stored: BTreeMap<LaneId, u64>) -> Self {
        Self {
            first: Some(first),
            lanes: BTreeMap::new(),
            stored,
            away: Vec::new(),
            commits: Commits::default(),
            discovery: None,
            told_begun: false,
            closed: false,
            awaiting: false,
        }
    }

    /// The positions the source is told: those in the store, and of lanes that have begun since.
    fn known(&self) -> BTreeMap<LaneId, u64> {
        let begun = self.lanes.iter().filter_map(|(lane, state)| match state {
            Lane::Begun(opened) => Some((lane.clone(), opened.position)),
            _ => None,
        });
        self.stored.clone().into_iter().chain(begun).collect()
    }

    /// The lanes that have never been read, if every one of them is open.
    fn first_group(&mut self) -> Vec<LaneId> {
        let waits = |lane: &Lane| matches!(lane, Lane::Opening { start: Start::First, .. });
        if self.lanes.values().any(waits) {
            return Vec::new();
        }
        let opened = self.lanes.iter().filter(|(_, lane)| matches!(lane, Lane::Opened(_)));
        opened.map(|(id, _)| id.clone()).collect()
    }

    /// Whether the source is at its end: every lane has ended by itself; while more may be listed, each that was ever
    /// read is among them.
    fn is_finished(&self, may_list_more: bool) -> bool {
        let left = |lane: &Lane| matches!(lane, Lane::Leaving | Lane::Left { .. } | Lane::Forgetting);
        let finished = |lane: &Lane| matches!(lane, Lane::Ended { finished: true, .. });
        self.lanes.values().any(finished)
            && self.lanes.values().all(|lane| finished(lane) || left(lane))
            && (!may_list_more || self.stored.keys().all(|lane| self.lanes.contains_key(lane)))
    }
}

impl Enumerator {
    fn discover(&mut self, ctx: &mut Context<Self>) {
        let (source, known) = (Arc::clone(&self.source), self.work.known());
        let lanes = self.call("discover".into(), None, async move || source.lanes(&known).await);
        self.work.discovery =
            Some(ctx.spawn(wrap_future(lanes).map(|result, enumerator: &mut Self, ctx| match result {
                Ok(lanes) => enumerator.listed(lanes, ctx),
                Err(fault) => enumerator.fault(fault, ctx),
            })));
    }

    /// A call to the source as a task of its own.
    fn call<T: 'static>(
        &self,
        operation: Operation,
        retries: Option<usize>,
        call: impl AsyncFn() -> Result<T, Fault> + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + 'static {
        let Polling { timeout, reporter, vitals, .. } = self.polling.clone();
        let deadline = self.source.patience() + timeout;
        let run = async move { retrying(&vitals, &reporter, operation, deadline, retries, || call()).await };
        task(run.instrument(self.span.clone()))
    }

    fn listed(&mut self, Lanes { owned, others }: Lanes, ctx: &mut Context<Self>) {
        self.work.discovery = None;
        for lane in &others {
            self.leave(lane, ctx);
        }
        for (lane, start) in owned {
            if !self.work.lanes.contains_key(&lane) {
                self.open(lane, start, ctx);
            }
        }
        self.note_away();
        if self.work.lanes.is_empty() {
            self.tell_begun();
        }
        self.begin_first();
        self.pump_commits(ctx);
        if let Some(interval) = self.source.discovery_interval() {
            let interval = interval.max(Duration::from_millis(1));
            self.work.discovery = Some(ctx.run_later(interval, |enumerator, ctx| enumerator.discover(ctx)));
        }
    }

    /// Says which lanes keep a position without being read.
    fn note_away(&mut self) {
        let away = self.work.stored.keys().filter(|lane| !self.work.lanes.contains_key(*lane));
        let away: Vec<LaneId> = away.cloned().collect();
        if self.work.away != away {
            let _in_span = self.span.enter();
            let lanes = away.iter().map(|lane| &*lane.0).collect::<Vec<_>>().join(", ");
            tracing::warn!(lanes, "lanes that have been read are not there now; they keep their position");
            self.work.away = away;
        }
    }

    fn open(&mut self, lane: LaneId, start: Start, ctx: &mut Context<Self>) {
        let (source, of) = (Arc::clone(&self.source), lane.clone());
        let open = self.call(Operation::of("open", &lane), None, async move || source.open(&of, start).await);
        let of = lane.clone();
        let call = wrap_future(open).map(move |result, enumerator: &mut Self, ctx| {
            enumerator.opened(of, result, ctx);
        });
        self.work.lanes.insert(lane, Lane::Opening { start, call: ctx.spawn(call) });
    }

    fn opened(&mut self, lane: LaneId, result: Result<OpenedLane, Fault>, ctx: &mut Context<Self>) {
        // An opening that was cancelled at the very moment it was answered counts as cancelled.
        let Some(Lane::Opening { start, .. }) = self.work.lanes.get(&lane) else { return };
        let start = *start;
        let opened = match result {
            Ok(opened) => opened,
            Err(fault) => return self.fault(fault.of(format_args!("lane {lane}")), ctx),
        };
        if self.work.stored.get(&lane) == Some(&opened.position) {
            // The service may not know it yet: the last generation may have ended before it could tell.
            self.work.commits.want([(lane.clone(), opened.position)]);
            self.sink.do_send(Begin { lanes: vec![(lane.clone(), opened.position)], stored: true });
            self.read(lane, opened, ctx);
            return self.pump_commits(ctx);
        }
        self.work.lanes.insert(lane.clone(), Lane::Opened(opened));
        match start {
            // One of them alone in the store, and after a crash the others would be new beside it.
            Start::First => self.begin_first(),
            Start::Added | Start::Resume(_) => self.begin(vec![lane]),
        }
    }

    fn begin_first(&mut self) {
        let lanes = self.work.first_group();
        self.begin(lanes);
    }

    /// Has where these lanes start recorded, all of it in one epoch.
    fn begin(&mut self, ids: Vec<LaneId>) {
        let mut lanes = Vec::new();
        for id in ids {
            if let Some(Lane::Opened(opened)) = self.work.lanes.remove(&id) {
                lanes.push((id.clone(), opened.position));
                self.work.lanes.insert(id, Lane::Begun(opened));
            }
        }
        if !lanes.is_empty() {
            self.sink.do_send(Begin { lanes, stored: false });
            fail_point!("enumerator.begun");
            self.checkpointer.do_send(CheckpointSoon);
        }
    }

    /// Starts the lane's reader.
    fn read(&mut self, lane: LaneId, opened: OpenedLane, ctx: &mut Context<Self>) {
        let reader = Reader {
            lane: lane.clone(),
            log: opened.reader,
            credits: self.credits.clone(),
            polling: self.polling.clone(),
            progress: self.polling.vitals.lane(&lane, opened.position),
            decoder: self.decoder.clone(),
            enumerator: ctx.address(),
            span: lane_span(&self.who.pipeline, self.generation, reader::NAME, &lane),
            work: reader::Work::from(opened.position),
        };
        let context = Context::<Reader>::new();
        let address = context.address();
        let child = child::start_for(lane.clone(), self.who.clone(), context, reader);
        self.polling.reporter.event(Event::Started(child));
        self.work.lanes.insert(lane, Lane::Read(address));
        self.tell_begun();
    }

    fn tell_begun(&mut self) {
        if !std::mem::replace(&mut self.work.told_begun, true) {
            self.polling.reporter.event(Event::Begun);
        }
    }

    /// Another process reads it.
    fn leave(&mut self, lane: &LaneId, ctx: &mut Context<Self>) {
        let next = match self.work.lanes.remove(lane) {
            Some(Lane::Opening { call, .. }) => {
                ctx.cancel_future(call);
                None
            }
            Some(Lane::Opened(_)) | None => None,
            Some(Lane::Begun(OpenedLane { position, .. })) => {
                self.sink.do_send(End { lane: lane.clone(), leaves: true });
                Some(Lane::Left { position })
            }
            Some(Lane::Read(reader)) => {
                reader.do_send(EndLane { leaves: true });
                Some(Lane::Leaving)
            }
            Some(Lane::Ended { position, .. }) => Some(Lane::Left { position }),
            Some(already @ (Lane::Leaving | Lane::Left { .. } | Lane::Forgetting)) => {
                self.work.lanes.insert(lane.clone(), already);
                return;
            }
        };
        match next {
            Some(next) => {
                self.span.in_scope(|| tracing::info!(%lane, "another process reads this lane from now on"));
                self.work.lanes.insert(lane.clone(), next);
            }
            // Whoever reads it has gone on from there.
            None if self.work.stored.contains_key(lane) => self.forget(vec![lane.clone()]),
            None => {}
        }
    }

    fn forget(&mut self, lanes: Vec<LaneId>) {
        if !lanes.is_empty() {
            self.work.lanes.extend(lanes.iter().map(|lane| (lane.clone(), Lane::Forgetting)));
            self.checkpointer.do_send(ForgetLanes(lanes));
            self.checkpointer.do_send(CheckpointSoon);
        }
    }

    fn pump_commits(&mut self, ctx: &mut Context<Self>) {
        if !self.source.commits() {
            while self.work.commits.begin().is_some() {
                self.work.commits.ended(true);
            }
        }
        if let Some(positions) = self.work.commits.begin() {
            let source = Arc::clone(&self.source);
            let commit = self.call("commit offsets".into(), Some(COMMIT_RETRIES), async move || {
                fail_point!("enumerator.commit");
                source.commit(&positions).await
            });
            ctx.spawn(wrap_future(commit).map(|result, enumerator: &mut Self, ctx| enumerator.committed(result, ctx)));
        }
        self.forget_left();
        self.answer_if_settled();
    }

    fn committed(&mut self, result: Result<(), Fault>, ctx: &mut Context<Self>) {
        let done = result.is_ok();
        self.polling.vitals.metrics.offset_commit(done);
        self.work.commits.ended(done);
        match result {
            Ok(()) => self.pump_commits(ctx),
            Err(fault) => {
                self.span.in_scope(|| {
                    tracing::warn!(error = %fault, "positions could not be committed to the service; the next checkpoint tries again");
                });
                // Not once more now: what it is for can wait.
                self.answer_if_settled();
            }
        }
    }

    /// Forgets lanes that have left, once the store and the service know how far they were read.
    fn forget_left(&mut self) {
        let Work { lanes, stored, commits, .. } = &self.work;
        let is_through = |(lane, state): &(&LaneId, &Lane)| match state {
            Lane::Left { position } => stored.get(*lane) == Some(position) && commits.is_told(lane),
            _ => false,
        };
        let through = lanes.iter().filter(is_through).map(|(lane, _)| lane.clone()).collect();
        self.forget(through);
    }

    fn answer_if_settled(&mut self) {
        if self.work.awaiting && !self.work.commits.is_under_way() {
            self.work.awaiting = false;
            self.checkpointer.do_send(AllAcknowledged);
        }
    }

    fn close(&mut self, finished: bool, ctx: &mut Context<Self>) {
        if let Some(discovery) = self.work.discovery.take() {
            ctx.cancel_future(discovery);
        }
        if !self.work.closed {
            self.work.closed = true;
            self.sink.do_send(Closed { finished });
        }
    }

    fn drain(&mut self, ctx: &mut Context<Self>) {
        self.polling.vitals.metrics.rate_limited.set(0);
        for (id, lane) in std::mem::take(&mut self.work.lanes) {
            let lane = match lane {
                Lane::Opening { call, .. } => {
                    ctx.cancel_future(call);
                    continue;
                }
                Lane::Opened(_) => continue,
                Lane::Begun(OpenedLane { position, .. }) => {
                    self.sink.do_send(End { lane: id.clone(), leaves: false });
                    Lane::Ended { position, finished: false }
                }
                Lane::Read(reader) => {
                    reader.do_send(EndLane { leaves: false });
                    Lane::Read(reader)
                }
                other => other,
            };
            self.work.lanes.insert(id, lane);
        }
        self.close(false, ctx);
    }

    /// What no retry mends.
    fn fault(&mut self, fault: Fault, ctx: &mut Context<Self>) {
        if fault.mend == Mend::Never {
            // Rows already received can be finished.
            self.polling.reporter.event(Event::Hopeless { actor: NAME, fault });
            self.drain(ctx);
        } else {
            self.polling.reporter.fault(NAME, fault);
            ctx.stop();
        }
    }
}

impl Actor for Enumerator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(first) = self.work.first.take() {
            self.listed(first, ctx);
        }
    }
}

impl Handler<Checkpointed> for Enumerator {
    type Result = ();

    fn handle(&mut self, Checkpointed { positions, forgotten }: Checkpointed, ctx: &mut Self::Context) {
        self.work.commits.want(positions.clone());
        self.work.stored.extend(positions);
        for lane in &forgotten {
            self.work.stored.remove(lane);
            self.work.commits.forget(lane);
            self.work.lanes.remove(lane);
        }
        self.polling.vitals.stored(self.work.stored.clone());
        let stored = &self.work.stored;
        let ready = self
            .work
            .lanes
            .iter()
            .filter(|(id, lane)| matches!(lane, Lane::Begun(opened) if stored.get(*id) == Some(&opened.position)));
        let ready: Vec<LaneId> = ready.map(|(id, _)| id.clone()).collect();
        for id in ready {
            if let Some(Lane::Begun(opened)) = self.work.lanes.remove(&id) {
                self.read(id, opened, ctx);
            }
        }
        self.pump_commits(ctx);
    }
}

impl Handler<NothingSealed> for Enumerator {
    type Result = ();

    fn handle(&mut self, _: NothingSealed, ctx: &mut Self::Context) {
        // What failed after the last checkpoint is tried again with this one, though it holds nothing.
        self.pump_commits(ctx);
    }
}

impl Handler<LaneEnded> for Enumerator {
    type Result = ();

    fn handle(&mut self, LaneEnded { lane, position, finished }: LaneEnded, ctx: &mut Self::Context) {
        self.polling.vitals.lane_gone(&lane);
        let left = matches!(self.work.lanes.get(&lane), Some(Lane::Leaving));
        let state = if left { Lane::Left { position } } else { Lane::Ended { position, finished } };
        self.work.lanes.insert(lane, state);
        if self.work.is_finished(self.source.discovery_interval().is_some()) {
            self.close(true, ctx);
        }
        self.pump_commits(ctx);
    }
}

impl Handler<AwaitAcknowledged> for Enumerator {
    type Result = ();

    fn handle(&mut self, _: AwaitAcknowledged, ctx: &mut Self::Context) {
        self.work.awaiting = true;
        self.pump_commits(ctx);
    }
}

impl Handler<Drain> for Enumerator {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.drain(ctx);
    }
}
