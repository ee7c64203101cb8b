//! A generation on the current arbiter whose source and sink follow a script.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};

use super::{
    recording::{Post, Posted, Recording, letters_identity, sink_identity},
    running::{Events, Running, SOON},
    service::Service,
};
use crate::{
    connector::{
        Acknowledged, Acknowledger, Lanes, LogReader, LogSource, OpenedLane, OpenedQueue, Polled, QueueFacts,
        QueueReader, QueueSource, Sink, Source, Start,
    },
    connectors::{DeadLetterPlan, Plan, PrimaryKey, RowShape},
    definition::{CheckpointDefinition, Digest, OnError, Rate, RestartDefinition},
    formats::{Decoded, Decoder},
    model::{
        Body, Column, ColumnType, CreditLimits, Fault, FaultKind, LaneId, Message as SourceMessage, PipelineName,
        Receipt, RowsBuilder, Scalar, Schema, Slot, SourceIdentity,
    },
    pipeline::{Event, Reporter, Seed},
    state::StateDir,
    telemetry::{Metrics, Vitals},
};

/// What the service and the sink do, and what was done to them.
#[derive(Default)]
pub struct World {
    state: Mutex<State>,
    polls: Notify,
}

#[derive(Default)]
pub struct State {
    /// In place of the script.
    pub service: Option<Service>,
    /// In place of the script: what comes after a position.
    pub rows_from: Option<fn(u64) -> Polled>,
    /// Where the source was opened, each time.
    pub opened: Vec<Start>,
    /// Rows the sink refuses.
    pub refused: Vec<i64>,
    polls: VecDeque<Scripted<Polled>>,
    /// Polls under way or answered.
    pub polled: usize,
    /// What becomes of the next deletes; after these, each is confirmed.
    pub deletes: VecDeque<Scripted<Vec<Acknowledged>>>,
    /// Handles of each delete, in order.
    pub deleted: Vec<Vec<String>>,
    /// What becomes of the next extensions; after these, each is refused.
    pub extensions: VecDeque<Scripted<Option<Receipt>>>,
    pub extended: usize,
    /// Faults of the next calls of the sink, by the name of the call.
    pub faults: HashMap<&'static str, VecDeque<Fault>>,
    /// What holds up the next calls of the sink, and `open` of the source, by the name of the call.
    pub gates: HashMap<&'static str, VecDeque<oneshot::Receiver<()>>>,
    /// Rows taken and not yet prepared.
    pub open: Vec<i64>,
    /// Rows committed.
    pub committed: Vec<i64>,
    pub tokens: HashSet<String>,
    pub post: Posted,
    /// The sinks' calls, in order.
    pub calls: Vec<&'static str>,
    /// The next sink that is dropped panics.
    pub panics_when_dropped: bool,
}

/// An answer, and what it waits for.
pub struct Scripted<T> {
    pub gate: Option<oneshot::Receiver<()>>,
    pub answer: Result<T, Fault>,
}

impl<T> Scripted<T> {
    pub fn now(answer: Result<T, Fault>) -> Self {
        Self { gate: None, answer }
    }

    pub fn gated(answer: Result<T, Fault>) -> (oneshot::Sender<()>, Self) {
        let (open, gate) = oneshot::channel();
        (open, Self { gate: Some(gate), answer })
    }

    async fn answer(self) -> Result<T, Fault> {
        if let Some(gate) = self.gate {
            let _opened_or_dropped = gate.await;
        }
        self.answer
    }
}

impl World {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next poll to begin gets this.
    pub fn poll(&self, Scripted { gate, answer }: Scripted<Vec<SourceMessage>>) {
        self.push(Scripted { gate, answer: answer.map(|messages| Polled { messages, ..Polled::default() }) });
    }

    pub fn push(&self, scripted: Scripted<Polled>) {
        self.state().polls.push_back(scripted);
        self.polls.notify_one();
    }

    pub fn deliver(&self, messages: Vec<SourceMessage>) {
        self.poll(Scripted::now(Ok(messages)));
    }

    pub fn committed(&self) -> Vec<i64> {
        let mut rows = self.state().committed.clone();
        rows.sort_unstable();
        rows
    }

    async fn gate(&self, call: &'static str) {
        let gate = self.state().gates.get_mut(call).and_then(VecDeque::pop_front);
        if let Some(gate) = gate {
            let _opened_or_dropped = gate.await;
        }
    }

    pub async fn sink_call(&self, call: &'static str) -> Result<(), Fault> {
        if self.state().service.as_mut().is_some_and(|service| service.chance(100)) {
            return Err(Fault::restart(FaultKind::Sink, "a broken sink"));
        }
        self.state().calls.push(call);
        self.gate(call).await;
        let fault = self.state().faults.get_mut(call).and_then(VecDeque::pop_front);
        fault.map_or(Ok(()), Err)
    }
}

/// A delivery of message `n`, whose body is `n`; later `visible` is the newer receipt.
pub fn delivery(n: i64, visible: i64) -> SourceMessage {
    with_body(n, visible, &n.to_string())
}

pub fn with_body(n: i64, visible: i64, body: &str) -> SourceMessage {
    SourceMessage {
        id: format!("m{n}").into(),
        body: Body::Bytes(body.to_owned().into()),
        meta: Vec::new(),
        receipt: Some(Receipt {
            handle: format!("m{n}@{visible}").into(),
            next_visible_ms: visible,
            dequeue_count: 1,
            invisible_for: Duration::from_secs(30),
        }),
    }
}

struct Script(Arc<World>, Setup, AtomicU64);

#[async_trait]
impl QueueSource for Script {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity("script".to_owned())
    }

    async fn open(&self) -> Result<OpenedQueue, Fault> {
        self.0.gate("open").await;
        let link = || Arc::new(Script(Arc::clone(&self.0), self.1, 0.into()));
        let facts = QueueFacts { visibility_timeout: Some(self.1.visibility), retention: None };
        let lane = LaneId("lane".into());
        Ok(OpenedQueue { lane, reader: link(), acknowledger: link(), concurrency: self.1.concurrency, facts })
    }
}

#[async_trait]
impl LogSource for Script {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity("script".to_owned())
    }

    async fn lanes(&self, known: &BTreeMap<LaneId, u64>) -> Result<Lanes, Fault> {
        let lane = LaneId("lane".into());
        let start = known.get(&lane).map_or(Start::First, |at| Start::Resume(*at));
        Ok(Lanes { owned: vec![(lane, start)], others: Vec::new() })
    }

    async fn open(&self, _: &LaneId, start: Start) -> Result<OpenedLane, Fault> {
        self.0.gate("open").await;
        self.0.state().opened.push(start);
        let position = if let Start::Resume(position) = start { position } else { 0 };
        Ok(OpenedLane { reader: Arc::new(Script(Arc::clone(&self.0), self.1, position.into())), position })
    }
}

impl Script {
    async fn next(&self) -> Result<Polled, Fault> {
        loop {
            let next = self.0.state().polls.pop_front();
            match next {
                Some(scripted) => return scripted.answer().await,
                None => self.0.polls.notified().await,
            }
        }
    }
}

#[async_trait]
impl QueueReader for Script {
    async fn poll(&self) -> Result<Vec<SourceMessage>, Fault> {
        self.0.state().polled += 1;
        let served = self.0.state().service.as_mut().map(Service::receive);
        if let Some((messages, pause)) = served {
            tokio::time::sleep(pause).await;
            return Ok(messages);
        }
        Ok(self.next().await?.messages)
    }

    fn patience(&self) -> Duration {
        self.1.patience
    }
}

#[async_trait]
impl LogReader for Script {
    async fn poll(&self) -> Result<Polled, Fault> {
        self.0.state().polled += 1;
        let rows_from = self.0.state().rows_from;
        if let Some(rows_from) = rows_from {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let polled = rows_from(self.2.load(Ordering::Relaxed));
            self.2.store(polled.position, Ordering::Relaxed);
            return Ok(polled);
        }
        self.next().await
    }

    fn patience(&self) -> Duration {
        self.1.patience
    }
}

#[async_trait]
impl Acknowledger for Script {
    fn most(&self) -> usize {
        16
    }

    fn retries(&self) -> u32 {
        0
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Result<Vec<Acknowledged>, Fault> {
        let served = self.0.state().service.as_mut().map(|service| service.delete(receipts));
        if let Some((outcome, pause)) = served {
            tokio::time::sleep(pause).await;
            return outcome;
        }
        let scripted = {
            let mut state = self.0.state();
            state.deleted.push(receipts.iter().map(|receipt| receipt.handle.to_string()).collect());
            state.deletes.pop_front()
        };
        match scripted {
            Some(scripted) => scripted.answer().await,
            None => Ok(vec![Acknowledged::Deleted; receipts.len()]),
        }
    }

    fn extends(&self) -> bool {
        true
    }

    async fn extend(&self, receipt: &Receipt, _: Duration) -> Result<Option<Receipt>, Fault> {
        let served = self.0.state().service.as_mut().map(|service| service.extend(receipt));
        if let Some(receipt) = served {
            tokio::task::yield_now().await;
            return Ok(receipt);
        }
        let scripted = {
            let mut state = self.0.state();
            state.extended += 1;
            state.extensions.pop_front()
        };
        match scripted {
            Some(scripted) => scripted.answer().await,
            None => Ok(None),
        }
    }
}

/// Numbers with commas between them, a row each. `null` is one too.
struct Numbers;

impl Decoder for Numbers {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
        let number = |n: &str| (n != "null").then(|| n.parse().map_err(|_| "not a number")).transpose();
        let numbers: Vec<Option<i64>> = text.split(',').map(number).collect::<Result<_, _>>()?;
        let column = rows.column_mut(0).ok_or("no column")?;
        for number in &numbers {
            match number {
                Some(number) => column.append(Scalar::Int64(*number)).map_err(|error| error.to_string())?,
                None => column.append_null(),
            }
        }
        Ok(Decoded { rows: numbers.len() as u32, ..Decoded::default() })
    }
}

/// What differs from test to test.
#[derive(Clone, Copy)]
pub struct Setup {
    pub interval: Duration,
    pub timeout: Duration,
    /// How long a poll may wait for messages.
    pub patience: Duration,
    pub limit: usize,
    pub concurrency: usize,
    pub visibility: Duration,
    pub credits: CreditLimits,
    pub on_error: OnError,
    /// `rate` of the source.
    pub rate: Option<Rate>,
    /// Whether the lane has positions.
    pub positions: bool,
    /// `restart.max`
    pub restarts: u32,
    /// The number is the primary key, for so long.
    pub window: Option<Duration>,
}

impl Default for Setup {
    /// No checkpoint by itself, and no extension.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(3600),
            timeout: Duration::from_secs(60),
            patience: Duration::from_secs(3600),
            limit: 10_000,
            concurrency: 2,
            visibility: Duration::from_millis(1),
            credits: CreditLimits::default(),
            on_error: OnError::Fail,
            rate: None,
            positions: false,
            restarts: 0,
            window: None,
        }
    }
}

/// One process: a store, and the generations opened on it.
pub struct Rig {
    pub world: Arc<World>,
    pub vitals: Arc<Vitals>,
    pub state_dir: StateDir,
    pub setup: Setup,
    _dir: tempfile::TempDir,
}

impl Rig {
    pub fn new(setup: Setup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let metrics = Metrics::new().unwrap();
        let vitals = Arc::new(Vitals::new(metrics.pipeline(&PipelineName::new("p").unwrap())));
        let state_dir = StateDir::open(dir.path()).unwrap();
        Self { world: Arc::default(), vitals, state_dir, setup, _dir: dir }
    }

    pub fn plan(&self) -> Plan {
        self.plan_of("p", &self.world)
    }

    /// The plan of a pipeline in another world.
    pub fn plan_of(&self, name: &str, world: &Arc<World>) -> Plan {
        let ty = ColumnType::parse("BIGINT").unwrap();
        let schema = Schema { columns: vec![Column { name: "n".to_owned(), ty, metadata: None, is_virtual: false }] };
        let (source, sink, setup) = (Arc::clone(world), Arc::clone(world), self.setup);
        let letters = Arc::clone(world);
        Plan {
            name: PipelineName::new(name).unwrap(),
            definition: Digest::of(name),
            claims: Vec::new(),
            source_identity: SourceIdentity("script".to_owned()),
            source: Arc::new(move || {
                let script = Arc::new(Script(Arc::clone(&source), setup, AtomicU64::new(0)));
                Ok(if setup.positions { Source::Log(script) } else { Source::Queue(script) })
            }),
            decoder: Arc::new(|| Ok(Box::new(Numbers) as Box<dyn Decoder>)),
            shape: RowShape::new(&schema, &schema),
            schema: Arc::new(schema),
            metadata: Arc::new([]),
            query: None,
            primary_key: setup.window.map(|window| PrimaryKey { columns: Arc::new([0]), window }),
            sink_identity: sink_identity(),
            sink: Arc::new(move |_| Ok(Box::new(Recording(Arc::clone(&sink))) as Box<dyn Sink>)),
            checkpoint: CheckpointDefinition {
                interval: setup.interval,
                timeout: setup.timeout,
                max_unacknowledged: setup.limit,
            },
            restart: RestartDefinition {
                max: setup.restarts,
                within: Duration::from_secs(60),
                backoff_min: Duration::from_millis(10),
                backoff_max: Duration::from_millis(10),
            },
            on_error: setup.on_error,
            dead_letter: (setup.on_error == OnError::DeadLetter).then(|| DeadLetterPlan {
                identity: letters_identity(),
                sink: Arc::new(move |_| Ok(Box::new(Post(Arc::clone(&letters))) as Box<dyn Sink>)),
                keys: ["number"].into(),
            }),
            transport: Arc::new(Body::Bytes),
            rate: setup.rate,
            batch_rows: 256,
            credits: setup.credits,
        }
    }

    /// Opens a generation; answers when it runs.
    pub async fn open(&self) -> Running {
        self.try_open().await.unwrap_or_else(|fault| panic!("{fault}"))
    }

    pub async fn try_open(&self) -> Result<Running, Fault> {
        self.try_open_with(self.plan()).await
    }

    pub async fn try_open_with(&self, plan: Plan) -> Result<Running, Fault> {
        self.opened(self.start_with(plan)).await.map(|running| running.expect("it has not finished"))
    }

    /// Opens a generation, unless an earlier one has finished for good.
    pub async fn open_unless_finished(&self) -> Option<Running> {
        self.opened(self.start()).await.unwrap_or_else(|fault| panic!("{fault}"))
    }

    async fn opened(&self, mut events: Events) -> Result<Option<Running>, Fault> {
        loop {
            match events.next().await {
                Event::Running(controls) => return Ok(Some(Running::new(controls, events))),
                Event::Fault { fault, .. } => return Err(fault),
                Event::Finished => return Ok(None),
                _ => {}
            }
        }
    }

    /// Begins to open a generation.
    pub fn start(&self) -> Events {
        self.start_with(self.plan())
    }

    pub fn start_with(&self, plan: Plan) -> Events {
        let (to, events) = Events::listen();
        let reporter = Reporter { to, slot: Slot(1), attempt: 1 };
        let seed = Seed {
            plan: Arc::new(plan),
            store: self.state_dir.store(),
            incarnation: self.state_dir.incarnation().to_owned(),
            vitals: Arc::clone(&self.vitals),
            reporter,
        };
        actix::spawn(crate::pipeline::open(seed));
        events
    }
}

/// Lets the actors work until something is so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Runs a test on an arbiter of its own.
pub fn run(setup: Setup, test: impl AsyncFnOnce(&Rig)) {
    actix::System::new().block_on(async {
        let rig = Rig::new(setup);
        test(&rig).await;
    });
}
