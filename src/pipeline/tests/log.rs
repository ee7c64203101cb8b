//! A log with several lanes, each with messages of three rows, and what has been asked of it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};

use super::{harness::Rig, running::Running};
use crate::{
    connector::{Lanes, LogReader, LogSource, OpenedLane, Polled, Source, Start},
    connectors::Plan,
    model::{Body, Fault, LaneId, Message, SourceIdentity},
};

/// Rows of one message.
const ROWS: u64 = 3;

/// The service.
pub struct Log {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

pub struct State {
    pub lanes: BTreeMap<LaneId, Lane>,
    /// There, but read by another process.
    pub others: Vec<LaneId>,
    pub discovery: Option<Duration>,
    /// Most messages of one poll.
    pub batch: u64,
    pub opens: Vec<(LaneId, Start)>,
    pub commits: Vec<BTreeMap<LaneId, u64>>,
    pub commit_faults: VecDeque<Fault>,
    /// What holds up the next commits.
    pub commit_gates: VecDeque<oneshot::Receiver<()>>,
    /// How long an answer is on its way, and whether it is a failure, is a matter of chance.
    pub random: Option<fastrand::Rng>,
    /// Answers to `lanes`.
    pub listed: usize,
}

/// What a lane does.
#[derive(Default)]
pub struct Lane {
    /// The position behind its last message.
    pub next: u64,
    /// It is not listed: its route has vanished.
    pub away: bool,
    /// Behind its last message nothing comes any more.
    pub bounded: bool,
    /// Where it is opened, in place of where it is to start.
    pub opens_at: Option<u64>,
    pub open_faults: VecDeque<Fault>,
    pub open_gates: VecDeque<oneshot::Receiver<()>>,
    pub faults: VecDeque<Fault>,
    /// What holds up the next polls.
    pub gates: VecDeque<oneshot::Receiver<()>>,
    /// Polls begun.
    pub polls: usize,
    /// The next poll panics.
    pub panics: bool,
    /// What the last commit said.
    pub committed: Option<u64>,
}

pub fn lane(number: u64) -> LaneId {
    LaneId(format!("lane-{number}").into())
}

/// The rows of a stretch of a lane.
pub fn rows(number: u64, positions: std::ops::Range<u64>) -> Vec<i64> {
    positions.flat_map(|position| (0..ROWS).map(move |row| row_of(number, position, row))).collect()
}

fn row_of(number: u64, position: u64, row: u64) -> i64 {
    (number * 1_000_000 + position * ROWS + row) as i64
}

fn number_of(lane: &LaneId) -> u64 {
    lane.0.strip_prefix("lane-").unwrap().parse().unwrap()
}

fn message(lane: &LaneId, position: u64) -> Message {
    let rows: Vec<String> = (0..ROWS).map(|row| row_of(number_of(lane), position, row).to_string()).collect();
    let body = Body::Bytes(rows.join(",").into());
    Message { id: format!("{lane}@{position}").into(), body, meta: Vec::new(), receipt: None }
}

impl Log {
    /// Lanes that many, each with so many messages.
    pub fn new(lanes: u64, messages: u64) -> Arc<Self> {
        let lanes = (0..lanes).map(|n| (lane(n), Lane { next: messages, ..Lane::default() })).collect();
        let state = State {
            lanes,
            others: Vec::new(),
            discovery: None,
            batch: 4,
            opens: Vec::new(),
            commits: Vec::new(),
            commit_faults: VecDeque::new(),
            commit_gates: VecDeque::new(),
            random: None,
            listed: 0,
        };
        Arc::new(Self { state: Mutex::new(state), changed: watch::Sender::new(()) })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Changes a lane, or makes one.
    pub fn with<T>(&self, number: u64, change: impl FnOnce(&mut Lane) -> T) -> T {
        let answer = change(self.state().lanes.entry(lane(number)).or_default());
        self.changed.send_replace(());
        answer
    }

    fn of<T>(&self, lane: &LaneId, look: impl FnOnce(&mut Lane) -> T) -> T {
        look(self.state().lanes.entry(lane.clone()).or_default())
    }

    /// So many more messages in a lane.
    pub fn send(&self, number: u64, messages: u64) {
        self.with(number, |lane| lane.next += messages);
    }

    /// Another process reads the lane from now on, or gives it back.
    pub fn move_away(&self, number: u64, away: bool) {
        let mut state = self.state();
        state.others.retain(|other| *other != lane(number));
        if away {
            state.others.push(lane(number));
        }
    }

    pub fn polls(&self, number: u64) -> usize {
        self.of(&lane(number), |lane| lane.polls)
    }

    /// How often lanes were opened, and where to start.
    pub fn opens(&self) -> Vec<(LaneId, Start)> {
        let mut opens = std::mem::take(&mut self.state().opens);
        opens.sort_by_key(|(lane, _)| number_of(lane));
        opens
    }

    pub fn source(self: &Arc<Self>) -> Source {
        Source::Log(Arc::new(Script(Arc::clone(self))))
    }

    pub fn plan(self: &Arc<Self>, rig: &Rig) -> Plan {
        let log = Arc::clone(self);
        Plan { source: Arc::new(move || Ok(log.source())), ..rig.plan() }
    }

    pub async fn open(self: &Arc<Self>, rig: &Rig) -> Running {
        rig.try_open_with(self.plan(rig)).await.unwrap_or_else(|fault| panic!("{fault}"))
    }

    async fn chance(&self) -> Result<(), Fault> {
        let pause = self.state().random.as_mut().map(|random| (random.u8(0..100), random.u64(0..4)));
        match pause {
            Some((0, _)) => Err(Fault::restart(crate::model::FaultKind::Network, "the connection broke")),
            Some((_, millis)) if millis > 0 => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

struct Script(Arc<Log>);

#[async_trait]
impl LogSource for Script {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity("script".to_owned())
    }

    async fn lanes(&self, known: &BTreeMap<LaneId, u64>) -> Result<Lanes, Fault> {
        let mut state = self.0.state();
        state.listed += 1;
        let ours = state.lanes.iter().filter(|(id, lane)| !lane.away && !state.others.contains(id));
        let start = |id: &LaneId| match known.get(id) {
            Some(position) => Start::Resume(*position),
            None if known.is_empty() => Start::First,
            None => Start::Added,
        };
        let owned = ours.map(|(id, _)| (id.clone(), start(id))).collect();
        Ok(Lanes { owned, others: state.others.clone() })
    }

    fn discovery_interval(&self) -> Option<Duration> {
        self.0.state().discovery
    }

    /// Of a first start at the end, so that it makes a difference when that is resolved.
    async fn open(&self, id: &LaneId, start: Start) -> Result<OpenedLane, Fault> {
        self.0.chance().await?;
        let (fault, gate) = self.0.of(id, |lane| (lane.open_faults.pop_front(), lane.open_gates.pop_front()));
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some(gate) = gate {
            let _opened_or_dropped = gate.await;
        }
        self.0.state().opens.push((id.clone(), start));
        let position = self.0.of(id, |lane| match start {
            Start::Resume(position) => lane.opens_at.unwrap_or(position),
            Start::First => lane.opens_at.unwrap_or(lane.next),
            Start::Added => lane.committed.unwrap_or(0),
        });
        let reader = ScriptReader { log: Arc::clone(&self.0), lane: id.clone(), at: AtomicU64::new(position) };
        Ok(OpenedLane { reader: Arc::new(reader), position })
    }

    async fn commit(&self, positions: &BTreeMap<LaneId, u64>) -> Result<(), Fault> {
        self.0.chance().await?;
        let (fault, gate) = {
            let mut state = self.0.state();
            (state.commit_faults.pop_front(), state.commit_gates.pop_front())
        };
        if let Some(gate) = gate {
            let _opened_or_dropped = gate.await;
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        for (id, position) in positions {
            self.0.of(id, |lane| lane.committed = Some(*position));
        }
        self.0.state().commits.push(positions.clone());
        Ok(())
    }
}

struct ScriptReader {
    log: Arc<Log>,
    lane: LaneId,
    at: AtomicU64,
}

#[async_trait]
impl LogReader for ScriptReader {
    async fn poll(&self) -> Result<Polled, Fault> {
        let (panics, fault, gate) = self.log.of(&self.lane, |lane| {
            lane.polls += 1;
            (std::mem::take(&mut lane.panics), lane.faults.pop_front(), lane.gates.pop_front())
        });
        assert!(!panics, "the reader panics");
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some(gate) = gate {
            let _opened_or_dropped = gate.await;
        }
        self.log.chance().await?;
        let mut changed = self.log.changed.subscribe();
        loop {
            let (at, batch) = (self.at.load(Ordering::Relaxed), self.log.state().batch);
            let (next, bounded) = self.log.of(&self.lane, |lane| (lane.next, lane.bounded));
            let position = next.min(at + batch).max(at);
            let end = bounded && position == next;
            if position > at || end {
                self.at.store(position, Ordering::Relaxed);
                let messages = (at..position).map(|position| message(&self.lane, position)).collect();
                return Ok(Polled { messages, position, behind: Some(next - position), end });
            }
            let _changed = changed.changed().await;
        }
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(3600)
    }
}
