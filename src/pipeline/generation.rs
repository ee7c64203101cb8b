//! Opens one generation and wires its tree. Reading this file shows all of it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use actix::prelude::*;
use tracing::Instrument;

use super::{
    checkpointer::{self, Checkpointer},
    child::{self, Child},
    decoder::{self, Decoder, Queue},
    dedup_keeper::{self, DedupKeeper},
    enumerator::{self, Enumerator},
    intake::Intake,
    poller::{self, Poller},
    polling::Polling,
    reader,
    report::{Event, Reporter},
    retry::{retrying, within},
    sink_writer::{self, SinkWriter},
    sinks::{Letters, Sinks, with_retries},
    visibility::Visibility,
};
use crate::{
    connector::{Lanes, LogSource, OpenedQueue, QueueFacts, Sink, SinkContext, Source},
    connectors::{Plan, recover_elsewhere},
    dedup::{Ids, KeyClock, KeyColumns, KeyWindow, Keys},
    formats,
    model::{Credits, Fault, Generation, LaneId, RowsBuilder, SinkIdentity, Token},
    state::{Opened as Stored, Store},
    telemetry::{Vitals, Who, actor_span, attributed, fail_point, start_span},
};

/// Unknown retention: the longest a queue of the services can be set to, as of 2026.
const LONGEST_RETENTION: Duration = Duration::from_secs(15 * 86_400);

/// What a generation is started from.
#[derive(Clone)]
pub struct Seed {
    /// The pipeline.
    pub plan: Arc<Plan>,
    /// The state store of the process.
    pub store: Store,
    /// Part of every name a sink makes.
    pub incarnation: String,
    /// Where its actors report numbers.
    pub vitals: Arc<Vitals>,
    /// Where it reports events.
    pub reporter: Reporter,
}

/// How the supervisor's side holds a running generation.
pub struct Controls {
    /// Its number.
    pub generation: Generation,
    /// Its actors.
    pub children: Vec<Child>,
    /// Whether messages are received; otherwise [`Event::Begun`] follows.
    pub begun: bool,
    intake: Intake,
    /// An actor ends when nobody holds its address. Held here, it ends only when it is ended, or by a fault of its
    /// own, so that after a panic it is the one that panicked which is named.
    _others: (Addr<Decoder>, Addr<DedupKeeper>, Addr<SinkWriter>, Addr<Checkpointer>),
}

impl Controls {
    /// Asks it to receive no more, finish what it has, and report [`Event::Drained`].
    pub fn drain(&self) {
        self.intake.drain();
    }
}

/// The name under which the opening of a generation is known, like an actor.
pub const START: &str = "start";

/// Opens a generation on the current arbiter. What happens is reported, not answered.
pub fn open(seed: Seed) -> impl Future<Output = ()> {
    let who = Who { slot: seed.reporter.slot, pipeline: seed.plan.name.clone(), actor: START };
    attributed(who, async move {
        let reporter = seed.reporter.clone();
        let prepared = prepare(&seed).instrument(start_span(&seed.plan.name)).await;
        match prepared {
            // A pipeline that was removed meanwhile: nobody would hold what is wired here.
            Ok(_) if !reporter.to.connected() => {}
            Ok(Some(prepared)) => reporter.event(Event::Running(wire(seed, prepared))),
            Ok(None) => reporter.event(Event::Finished),
            Err(fault) => reporter.fault(START, fault),
        }
    })
}

/// All that has to answer before the first poll.
struct Prepared {
    stored: Stored,
    opened: Opened,
    format: Box<dyn formats::Decoder>,
    sinks: Sinks,
}

/// What is read.
enum Opened {
    Queue(OpenedQueue),
    /// With the lanes there are.
    Log(Arc<dyn LogSource>, Lanes),
}

/// `None`: an earlier generation has finished for good.
async fn prepare(seed: &Seed) -> Result<Option<Prepared>, Fault> {
    let plan = &seed.plan;
    let reporter = &seed.reporter;
    // Durable before anything is committed or acknowledged: from here on a word of an older generation is refused.
    let timeout = plan.checkpoint.timeout;
    let stored = async { seed.store.open_generation(&plan.name, &plan.source_identity).await.map_err(Fault::from) };
    let stored = within(timeout, &"the state store".into(), stored).await?;
    seed.vitals.stored(stored.positions.clone());
    reporter.event(Event::Numbered(stored.generation));
    fail_point!("start.numbered");
    let context = SinkContext {
        pipeline: plan.name.clone(),
        incarnation: seed.incarnation.clone(),
        generation: stored.generation,
    };
    let mut sinks = recover_sinks(seed, &stored, context).await?;
    if stored.finished {
        return Ok(None);
    }
    let opened = open_source(seed, &stored.positions).await?;
    if let Some(letters) = &mut sinks.letters {
        letters.positions = matches!(opened, Opened::Log(..));
    }
    Ok(Some(Prepared { stored, opened, format: (plan.decoder)()?, sinks }))
}

async fn open_source(seed: &Seed, known: &BTreeMap<LaneId, u64>) -> Result<Opened, Fault> {
    let Seed { plan, vitals, reporter, .. } = seed;
    let timeout = plan.checkpoint.timeout;
    match (plan.source)()? {
        Source::Queue(source) => {
            let deadline = source.patience() + timeout;
            let opened = retrying(vitals, reporter, "open", deadline, None, || source.open()).await?;
            Ok(Opened::Queue(opened))
        }
        Source::Log(source) => {
            let deadline = source.patience() + timeout;
            let lanes = retrying(vitals, reporter, "discover", deadline, None, || source.lanes(known)).await?;
            Ok(Opened::Log(source, lanes))
        }
    }
}

/// Commits what a crash left uncommitted: each token with the sink it names, even if the definition has changed.
async fn recover_sinks(seed: &Seed, stored: &Stored, context: SinkContext) -> Result<Sinks, Fault> {
    let (plan, vitals, reporter) = (&seed.plan, &seed.vitals, &seed.reporter);
    let mut by_sink: BTreeMap<(String, String), Vec<Token>> = BTreeMap::new();
    for token in &stored.tokens {
        by_sink.entry((token.sink.connector.clone(), token.sink.target.clone())).or_default().push(token.clone());
    }
    let mut of = |sink: &SinkIdentity| by_sink.remove(&(sink.connector.clone(), sink.target.clone()));
    let own = of(&plan.sink_identity).unwrap_or_default();
    let letters_own = plan.dead_letter.as_ref().and_then(|letters| of(&letters.identity)).unwrap_or_default();
    for tokens in by_sink.values() {
        if let Some(first) = tokens.first() {
            let recover = || recover_elsewhere(&first.sink, tokens, &context);
            retrying(vitals, reporter, "recover", plan.checkpoint.timeout, None, recover).await?;
        }
    }
    let recovered = async |mut sink: Box<dyn Sink>, tokens: &[Token]| {
        let recover = async |sink: &mut Box<dyn Sink>| sink.recover(tokens).await;
        with_retries(&mut sink, vitals, reporter, "recover", plan.checkpoint.timeout, recover).await?;
        Ok::<_, Fault>(sink)
    };
    let main = recovered((plan.sink)(context.clone())?, &own).await?;
    let Some(planned) = &plan.dead_letter else { return Ok(Sinks { main, letters: None }) };
    let letters = Letters {
        pipeline: context.pipeline.clone(),
        generation: context.generation,
        source: plan.source_identity.clone(),
        keys: Arc::clone(&planned.keys),
        positions: false,
        sink: recovered((planned.sink)(context)?, &letters_own).await?,
    };
    Ok(Sinks { main, letters: Some(letters) })
}

/// What receives, not started yet.
enum Receiver {
    Poller(Context<Poller>, OpenedQueue),
    Enumerator(Context<Enumerator>, Arc<dyn LogSource>, Lanes),
}

impl Receiver {
    fn new(opened: Opened) -> Self {
        match opened {
            Opened::Queue(opened) => Self::Poller(Context::new(), opened),
            Opened::Log(source, lanes) => Self::Enumerator(Context::new(), source, lanes),
        }
    }

    fn intake(&self) -> Intake {
        match self {
            Self::Poller(context, _) => Intake::Poller(context.address()),
            Self::Enumerator(context, ..) => Intake::Enumerator(context.address()),
        }
    }

    /// The lane of a queue, which begins at once.
    fn sink_work(&self) -> sink_writer::Work {
        match self {
            Self::Poller(_, opened) => sink_writer::Work::of_queue(opened.lane.clone()),
            Self::Enumerator(..) => sink_writer::Work::default(),
        }
    }

    fn facts(&self) -> QueueFacts {
        match self {
            Self::Poller(_, opened) => opened.facts,
            Self::Enumerator(..) => QueueFacts::default(),
        }
    }
}

/// The window of the primary key, if there is one, with what the store knows of it.
fn keys(plan: &Plan, stored: &mut Stored) -> Option<Keys> {
    let primary = plan.primary_key.as_ref()?;
    let clock = KeyClock::resume(stored.key_clock_ms);
    let window = KeyWindow::load(primary.window, std::mem::take(&mut stored.keys), clock.now_ms());
    let columns = KeyColumns::new(&plan.source_identity, &plan.schema, &primary.columns);
    Some(Keys { columns, window, clock })
}

fn wire(seed: Seed, prepared: Prepared) -> Controls {
    let Seed { plan, store, vitals, reporter, .. } = seed;
    let Prepared { mut stored, opened, format, sinks } = prepared;
    let generation = stored.generation;
    let span = |actor| actor_span(&plan.name, generation, actor);
    let slot = reporter.slot;
    let who = |actor| Who { slot, pipeline: plan.name.clone(), actor };
    let uptime = (stored.uptime_ms, Instant::now());
    let keys = keys(&plan, &mut stored);

    let receiver = Receiver::new(opened);
    let intake = receiver.intake();
    let (decoder, dedup) = (Context::<Decoder>::new(), Context::<DedupKeeper>::new());
    let (sink_writer, checkpointer) = (Context::<SinkWriter>::new(), Context::<Checkpointer>::new());
    let (to_decoder, to_dedup) = (decoder.address(), dedup.address());
    let (to_sink, to_checkpointer) = (sink_writer.address(), checkpointer.address());

    let others = (to_decoder.clone(), to_dedup.clone(), to_sink.clone(), to_checkpointer.clone());

    let actor = Checkpointer {
        pipeline: plan.name.clone(),
        generation,
        store,
        interval: plan.checkpoint.interval,
        timeout: plan.checkpoint.timeout,
        uptime,
        keys: keys.as_ref().zip(plan.primary_key.as_ref()).map(|(keys, primary)| (keys.clock, primary.window)),
        sink: to_sink.clone(),
        dedup: to_dedup.clone(),
        intake: intake.clone(),
        reporter: reporter.clone(),
        vitals: Arc::clone(&vitals),
        span: span(checkpointer::NAME),
        work: checkpointer::Work::new(&stored),
    };
    let mut children = vec![child::start(who(checkpointer::NAME), checkpointer, actor)];

    let actor = SinkWriter {
        sinks: Some(sinks),
        shape: plan.shape.clone(),
        on_error: plan.on_error,
        timeout: plan.checkpoint.timeout,
        checkpointer: to_checkpointer.clone(),
        reporter: reporter.clone(),
        vitals: Arc::clone(&vitals),
        span: span(sink_writer::NAME),
        work: receiver.sink_work(),
    };
    children.push(child::start(who(sink_writer::NAME), sink_writer, actor));

    let actor = DedupKeeper {
        ids: Ids::load(std::mem::take(&mut stored.ids)),
        keys,
        query: plan.query.clone(),
        uptime,
        retention: receiver.facts().retention.unwrap_or(LONGEST_RETENTION),
        sink: to_sink.clone(),
        checkpointer: to_checkpointer.clone(),
        reporter: reporter.clone(),
        vitals: Arc::clone(&vitals),
    };
    children.push(child::start(who(dedup_keeper::NAME), dedup, actor));

    let actor = Decoder {
        format,
        rows: RowsBuilder::new(&plan.schema),
        metadata: Arc::clone(&plan.metadata),
        target: plan.batch_rows,
        keeps_originals: plan.dead_letter.is_some(),
        dedup: to_dedup,
        reporter: reporter.clone(),
        vitals: Arc::clone(&vitals),
        span: span(decoder::NAME),
        queue: Queue::default(),
    };
    children.push(child::start(who(decoder::NAME), decoder, actor));

    let credits = Credits::new(plan.credits);
    let polling = Polling::new(plan.rate, plan.checkpoint.timeout, reporter, vitals);
    children.push(match receiver {
        Receiver::Poller(context, opened) => {
            let visibility = span(poller::NAME).in_scope(|| Visibility::of(&opened, plan.checkpoint.interval));
            let actor = Poller {
                source: plan.source_identity.clone(),
                opened,
                visibility,
                credits,
                polling,
                limit: plan.checkpoint.max_unacknowledged,
                decoder: to_decoder,
                checkpointer: to_checkpointer,
                span: span(poller::NAME),
                work: poller::Work::default(),
            };
            child::start(who(poller::NAME), context, actor)
        }
        Receiver::Enumerator(context, source, lanes) => {
            let actor = Enumerator {
                source,
                who: who(reader::NAME),
                generation,
                credits,
                polling,
                decoder: to_decoder,
                sink: to_sink,
                checkpointer: to_checkpointer,
                span: span(enumerator::NAME),
                work: enumerator::Work::new(lanes, stored.positions),
            };
            child::start(who(enumerator::NAME), context, actor)
        }
    });
    let begun = matches!(intake, Intake::Poller(_));
    Controls { generation, children, begun, intake, _others: others }
}
