//! The sink-writer: one queue of Write, Seal, Commit and End, one operation of the sink in flight.
//!
//! Positions and ids join the epoch when their write has *returned*; so when everything written has been made
//! durable, the epoch holds exactly what that stands for.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use actix::{fut::wrap_future, prelude::*};
use arrow_array::RecordBatch;
use tracing::{Instrument, Span};

use super::{
    checkpointer::Checkpointer,
    messages::*,
    report::{Event, Reporter},
    retry::retrying,
};
use crate::{
    connector::{RowReject, Sink},
    connectors::RowShape,
    definition::OnError,
    model::{Batch, Disposition, Epoch, Fault, FaultKind, Fingerprint, LaneId, Token},
    telemetry::{Vitals, fail_point},
};

pub const NAME: &str = "sink-writer";
/// The calls of a sink that are retried.
pub const OPERATIONS: [&str; 3] = ["write", "prepare", "commit"];

/// See the module.
pub struct SinkWriter {
    /// Away while an operation is in flight.
    pub sink: Option<Box<dyn Sink>>,
    /// From the source's columns to the sink's.
    pub shape: RowShape,
    pub on_error: OnError,
    /// `checkpoint.timeout`: how long one call of the sink may take.
    pub timeout: Duration,
    /// Lanes that have not ended.
    pub lanes: HashSet<LaneId>,
    pub checkpointer: Addr<Checkpointer>,
    pub reporter: Reporter,
    pub vitals: Arc<Vitals>,
    pub span: Span,
    pub work: Work,
}

/// What waits and what the open epoch holds.
#[derive(Default)]
pub struct Work {
    queue: VecDeque<Operation>,
    disposed: Vec<Fingerprint>,
    /// The lanes that have positions.
    resuming: HashSet<LaneId>,
    /// Those of the open epoch.
    positions: BTreeMap<LaneId, u64>,
    written: u64,
    /// Where the last batch of each lane ended.
    ends: HashMap<LaneId, u64>,
    poisoned: bool,
    /// A lane was told to stop before its end.
    stopped: bool,
}

impl Work {
    /// Nothing written yet; the first batch of `lane` begins at its position, if it has one.
    pub fn new(lane: &LaneId, position: Option<u64>) -> Self {
        let ends: HashMap<_, _> = position.map(|at| (lane.clone(), at)).into_iter().collect();
        Self { resuming: ends.keys().cloned().collect(), ends, ..Self::default() }
    }
}

enum Operation {
    Write(Batch),
    Seal(Epoch),
    Commit(Vec<Token>),
    End(End),
}

/// What an operation in flight brings back beside the sink.
enum Done {
    Written(Batch, Vec<RowReject>),
    Prepared(Epoch, Option<Token>),
    Committed,
}

impl SinkWriter {
    fn push(&mut self, operation: Operation, ctx: &mut Context<Self>) {
        self.work.queue.push_back(operation);
        self.pump(ctx);
    }

    fn pump(&mut self, ctx: &mut Context<Self>) {
        while self.sink.is_some()
            && let Some(operation) = self.work.queue.pop_front()
        {
            if let Err(fault) = self.begin(operation, ctx) {
                self.fail(fault, ctx);
                return;
            }
        }
    }

    fn begin(&mut self, operation: Operation, ctx: &mut Context<Self>) -> Result<(), Fault> {
        match operation {
            Operation::Write(batch) => {
                self.check_gap(&batch)?;
                if batch.rows.num_rows() == 0 {
                    return self.written(batch, Vec::new());
                }
                let rows = self.shape.apply(&batch.rows)?;
                self.run(ctx, async move |sink, calls| write(sink, calls, batch, rows).await);
            }
            Operation::Seal(epoch) if self.work.written == 0 => self.seal(epoch, None),
            Operation::Seal(epoch) => self.run(ctx, async move |mut sink, calls| {
                let result = prepare(&mut sink, &calls, epoch).await;
                (sink, result)
            }),
            Operation::Commit(tokens) => self.run(ctx, async move |mut sink, calls| {
                let result = commit(&mut sink, &calls, &tokens).await;
                (sink, result)
            }),
            Operation::End(End { lane, finished }) => {
                self.lanes.remove(&lane);
                self.work.stopped |= !finished;
                if self.lanes.is_empty() {
                    self.checkpointer.do_send(AllEnded { finished: !self.work.stopped });
                }
            }
        }
        Ok(())
    }

    /// Runs one operation with the sink, which is away until it is done.
    fn run<F>(&mut self, ctx: &mut Context<Self>, operation: F)
    where
        F: AsyncFnOnce(Box<dyn Sink>, Calls) -> (Box<dyn Sink>, Result<Done, Fault>) + 'static,
    {
        let Some(sink) = self.sink.take() else { return };
        let calls = Calls { vitals: Arc::clone(&self.vitals), reporter: self.reporter.clone(), timeout: self.timeout };
        let run = async move { operation(sink, calls).await };
        ctx.spawn(wrap_future(run.instrument(self.span.clone())).map(|(sink, result), writer: &mut Self, ctx| {
            writer.sink = Some(sink);
            let done = result.and_then(|done| {
                match done {
                    Done::Written(batch, refused) => writer.written(batch, refused)?,
                    Done::Prepared(epoch, token) => writer.seal(epoch, token),
                    Done::Committed => writer.checkpointer.do_send(Committed),
                }
                Ok(())
            });
            if let Err(fault) = done {
                return writer.fail(fault, ctx);
            }
            writer.pump(ctx);
        }));
    }

    fn check_gap(&mut self, batch: &Batch) -> Result<(), Fault> {
        let begins_at = batch.range.start;
        match self.work.ends.insert(batch.lane.clone(), batch.range.end) {
            Some(expected) if expected != begins_at => Err(Fault::restart(
                FaultKind::Bug,
                format!(
                    "lane {}: a batch begins at {begins_at}, but the one before it ended at {expected}",
                    batch.lane
                ),
            )),
            _ if batch.range.end < begins_at => Err(Fault::restart(
                FaultKind::Bug,
                format!("lane {}: a batch goes from {begins_at} back to {}", batch.lane, batch.range.end),
            )),
            _ => Ok(()),
        }
    }

    /// The write has returned: its messages and its position belong to the open epoch now.
    fn written(&mut self, batch: Batch, refused: Vec<RowReject>) -> Result<(), Fault> {
        self.work.written += batch.rows.num_rows() as u64;
        self.vitals.metrics.rows_written.inc_by(batch.rows.num_rows().saturating_sub(refused.len()) as u64);
        let mut reasons: HashMap<u32, String> = batch.rejects.into_iter().map(|r| (r.message, r.reason)).collect();
        for reject in refused {
            if let Some(origin) = batch.origin.get(reject.row) {
                reasons.entry(origin.message).or_insert(reject.reason);
            }
        }
        let resumes = self.work.resuming.contains(&batch.lane);
        for (index, message) in batch.messages.iter().enumerate() {
            if message.disposition == Disposition::Duplicate {
                continue;
            }
            let reason = u32::try_from(index).ok().and_then(|index| reasons.get(&index));
            if let Some(reason) = reason
                && let Err(poison) = self.reject(&message.id, reason)
            {
                // The position may not pass the poison, and what comes after it would be written again: so nothing
                // of the open epoch may last.
                if resumes {
                    return Err(poison);
                }
                if !self.work.poisoned {
                    self.work.poisoned = true;
                    self.reporter.event(Event::Hopeless { actor: NAME, fault: poison });
                }
                continue;
            }
            self.work.disposed.extend(message.fingerprint);
        }
        if resumes {
            self.work.positions.insert(batch.lane, batch.range.end);
        }
        Ok(())
    }

    /// `Ok`: the message is disposed of by being skipped.
    fn reject(&self, id: &str, reason: &str) -> Result<(), Fault> {
        self.vitals.metrics.rejects.inc();
        let _in_span = self.span.enter();
        match self.on_error {
            OnError::Skip => {
                tracing::warn!(message_id = id, reason, "skipped a message");
                Ok(())
            }
            OnError::Fail => {
                tracing::error!(message_id = id, reason, "a message cannot be processed");
                let text = format!("message {id} cannot be processed: {reason} (on_error: fail)");
                Err(Fault::never(FaultKind::Poison, text))
            }
        }
    }

    fn seal(&mut self, epoch: Epoch, token: Option<Token>) {
        let disposed = std::mem::take(&mut self.work.disposed);
        let positions = std::mem::take(&mut self.work.positions);
        self.work.written = 0;
        let sealed = SealedEpoch { epoch, tokens: token.into_iter().collect(), disposed, positions };
        let empty = sealed.disposed.is_empty() && sealed.tokens.is_empty() && sealed.positions.is_empty();
        self.checkpointer.do_send(Sealed { epoch: (!empty).then_some(sealed) });
    }

    fn fail(&mut self, fault: Fault, ctx: &mut Context<Self>) {
        self.reporter.fault(NAME, fault);
        ctx.stop();
    }
}

/// What goes with the calls of a sink.
struct Calls {
    vitals: Arc<Vitals>,
    reporter: Reporter,
    timeout: Duration,
}

impl Calls {
    async fn run<T>(
        &self,
        sink: &mut Box<dyn Sink>,
        operation: &'static str,
        call: impl AsyncFn(&mut Box<dyn Sink>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        with_retries(sink, &self.vitals, &self.reporter, operation, self.timeout, call).await
    }
}

async fn write(
    mut sink: Box<dyn Sink>,
    calls: Calls,
    batch: Batch,
    rows: RecordBatch,
) -> (Box<dyn Sink>, Result<Done, Fault>) {
    fail_point!("sink.write");
    let result = calls.run(&mut sink, "write", async |sink| sink.write(&rows).await).await;
    let result = result.and_then(|refused| match refused.iter().find(|reject| reject.row >= rows.num_rows()) {
        // Which message it belongs to is not known, so none may be taken for written.
        Some(reject) => Err(Fault::restart(FaultKind::Bug, format!("the sink refused row {}: no such", reject.row))),
        None => Ok(Done::Written(batch, refused)),
    });
    (sink, result)
}

async fn prepare(sink: &mut Box<dyn Sink>, calls: &Calls, epoch: Epoch) -> Result<Done, Fault> {
    fail_point!("sink.before_prepare");
    let token = calls.run(sink, "prepare", async |sink| sink.prepare(epoch).await).await?;
    fail_point!("sink.after_prepare");
    Ok(Done::Prepared(epoch, token))
}

async fn commit(sink: &mut Box<dyn Sink>, calls: &Calls, tokens: &[Token]) -> Result<Done, Fault> {
    fail_point!("sink.before_commit");
    for token in tokens {
        calls.run(sink, "commit", async |sink| sink.commit(token).await).await?;
    }
    fail_point!("sink.after_commit");
    Ok(Done::Committed)
}

/// A sink that asks for a retry of the same call gets it; the pipeline is Degraded meanwhile.
pub async fn with_retries<T>(
    sink: &mut Box<dyn Sink>,
    vitals: &Arc<Vitals>,
    reporter: &Reporter,
    operation: &'static str,
    deadline: Duration,
    call: impl AsyncFn(&mut Box<dyn Sink>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let sink = tokio::sync::Mutex::new(sink);
    retrying(vitals, reporter, operation, deadline, None, || async {
        let mut sink = sink.lock().await;
        call(&mut sink).await
    })
    .await
}

impl Actor for SinkWriter {
    type Context = Context<Self>;
}

impl Handler<Rows> for SinkWriter {
    type Result = ();

    fn handle(&mut self, Rows(batch): Rows, ctx: &mut Self::Context) {
        fail_point!("sink.rows");
        self.push(Operation::Write(batch), ctx);
    }
}

impl Handler<Seal> for SinkWriter {
    type Result = ();

    fn handle(&mut self, Seal(epoch): Seal, ctx: &mut Self::Context) {
        self.push(Operation::Seal(epoch), ctx);
    }
}

impl Handler<Commit> for SinkWriter {
    type Result = ();

    fn handle(&mut self, Commit(tokens): Commit, ctx: &mut Self::Context) {
        // Ahead of waiting writes: a commit needs none of them, and what it holds up is an acknowledgement.
        self.work.queue.push_front(Operation::Commit(tokens));
        self.pump(ctx);
    }
}

impl Handler<End> for SinkWriter {
    type Result = ();

    fn handle(&mut self, end: End, ctx: &mut Self::Context) {
        self.push(Operation::End(end), ctx);
    }
}
