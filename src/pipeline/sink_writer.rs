//! The sink-writer: one queue of Write, Seal, Commit and End, one operation of the sinks in flight.
//!
//! Positions, ids and primary keys join the epoch when their write has *returned*; so when everything written has been
//! made durable, the epoch holds exactly what that stands for.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use actix::{fut::wrap_future, prelude::*};
use tracing::{Instrument, Span};

use super::{
    checkpointer::Checkpointer,
    messages::*,
    report::{Event, Reporter},
    sinks::{Calls, Kept, Refusal, Sinks},
};
use crate::{
    connectors::{RowShape, Shaped},
    definition::OnError,
    model::{Batch, Disposition, Epoch, Fault, FaultKind, Fingerprint, LaneId, Reject, Stage, Token},
    telemetry::{Vitals, fail_point},
};

pub const NAME: &str = "sink-writer";

/// The most refused rows of one message that are logged one by one. A body may hold millions.
const MOST_LOGGED: usize = 100;

/// See the module.
pub struct SinkWriter {
    /// Away while an operation is in flight.
    pub sinks: Option<Sinks>,
    /// From the columns of the query, or else of the source, to the sink's.
    pub shape: RowShape,
    pub on_error: OnError,
    /// `checkpoint.timeout`: how long one call of the sink may take.
    pub timeout: Duration,
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
    /// Lanes that have not ended.
    lanes: HashSet<LaneId>,
    /// No lane begins any more, and whether every one was read to its end.
    closed: Option<bool>,
    /// The end was told.
    ended: bool,
    disposed: Vec<Fingerprint>,
    /// The lanes that have positions.
    resuming: HashSet<LaneId>,
    /// Those of the open epoch.
    positions: BTreeMap<LaneId, u64>,
    /// Those of the rows of the open epoch, each with when it was first seen.
    keys: Vec<(Fingerprint, u64)>,
    written: u64,
    /// Dead letters written in the open epoch.
    letters: u64,
    /// Where the last batch of each lane ended.
    ends: HashMap<LaneId, u64>,
    poisoned: bool,
}

impl Work {
    /// Of a queue: its one lane has begun, and there is no other.
    pub fn of_queue(lane: LaneId) -> Self {
        Self { lanes: HashSet::from([lane]), closed: Some(false), ..Self::default() }
    }
}

enum Operation {
    Write(Batch),
    Seal(Epoch),
    Commit(Vec<Token>),
    End(End),
}

/// What an operation in flight brings back beside the sinks.
enum Done {
    Written(Box<Batch>, Vec<Refusal>),
    Prepared(Epoch, Vec<Token>),
    Committed,
}

impl SinkWriter {
    fn push(&mut self, operation: Operation, ctx: &mut Context<Self>) {
        self.work.queue.push_back(operation);
        self.pump(ctx);
    }

    fn pump(&mut self, ctx: &mut Context<Self>) {
        while self.sinks.is_some()
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
                let makes_letters = self.on_error == OnError::DeadLetter && !batch.rejects.is_empty();
                if batch.rows.num_rows() == 0 && !makes_letters {
                    let rejects = batch.rejects.clone();
                    return self.written(batch, Refusal::unkept(rejects));
                }
                let Shaped { rows, nulled } = self.shape.apply(&batch.rows)?;
                self.vitals.metrics.nulled_fields.inc_by(nulled as u64);
                self.run(ctx, async move |sinks, calls| {
                    let refused = sinks.write(&calls, &batch, &rows).await?;
                    Ok(Done::Written(Box::new(batch), refused))
                });
            }
            Operation::Seal(epoch) => {
                let (rows, letters) = (self.work.written > 0, self.work.letters > 0);
                if !rows && !letters {
                    self.seal(epoch, Vec::new());
                    return Ok(());
                }
                self.run(ctx, async move |sinks, calls| {
                    let tokens = sinks.prepare(&calls, epoch, rows, letters).await?;
                    Ok(Done::Prepared(epoch, tokens))
                });
            }
            Operation::Commit(tokens) => self.run(ctx, async move |sinks, calls| {
                sinks.commit(&calls, &tokens).await?;
                Ok(Done::Committed)
            }),
            Operation::End(End { lane, leaves }) => {
                self.work.lanes.remove(&lane);
                if leaves {
                    self.checkpointer.do_send(CheckpointSoon);
                }
                self.end_if_done();
            }
        }
        Ok(())
    }

    fn end_if_done(&mut self) {
        let Some(finished) = self.work.closed.filter(|_| self.work.lanes.is_empty() && !self.work.ended) else {
            return;
        };
        self.work.ended = true;
        self.checkpointer.do_send(AllEnded { finished });
    }

    /// Runs one operation with the sinks, which are away until it is done.
    fn run<F>(&mut self, ctx: &mut Context<Self>, operation: F)
    where
        F: AsyncFnOnce(&mut Sinks, Calls) -> Result<Done, Fault> + 'static,
    {
        let Some(mut sinks) = self.sinks.take() else { return };
        let calls = Calls { vitals: Arc::clone(&self.vitals), reporter: self.reporter.clone(), timeout: self.timeout };
        let run = async move {
            let result = operation(&mut sinks, calls).await;
            (sinks, result)
        };
        ctx.spawn(wrap_future(run.instrument(self.span.clone())).map(|(sinks, result), writer: &mut Self, ctx| {
            writer.sinks = Some(sinks);
            let done = result.and_then(|done| {
                match done {
                    Done::Written(batch, refused) => writer.written(*batch, refused)?,
                    Done::Prepared(epoch, tokens) => writer.seal(epoch, tokens),
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
    fn written(&mut self, batch: Batch, refused: Vec<Refusal>) -> Result<(), Fault> {
        let rows = batch.rows.num_rows();
        let by_sink = refused.iter().filter(|refusal| refusal.reject.stage == Stage::Sink).count();
        self.work.written += rows as u64;
        self.vitals.metrics.rows_written.inc_by(rows.saturating_sub(by_sink) as u64);
        let mut by_message: HashMap<u32, Vec<Refusal>> = HashMap::new();
        for refusal in refused {
            by_message.entry(refusal.reject.message).or_default().push(refusal);
        }
        let resumes = self.work.resuming.contains(&batch.lane);
        for (index, message) in batch.messages.iter().enumerate() {
            if message.disposition == Disposition::Duplicate {
                continue;
            }
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let refused = by_message.remove(&index).unwrap_or_default();
            let refused_rows = refused.iter().filter(|refusal| refusal.reject.stage == Stage::Sink).count();
            if let Err(poison) = self.refused(&message.id, refused) {
                // The position may not pass the poison, and what comes after it would be written again; and so would
                // the rows of the same message that were written, since it stays: so nothing of the open epoch may
                // last. Neither may it if a row of another message may have been dropped for one of these: that message
                // is behind this one, and would be deleted though its key was never written.
                let has_rows_written = || batch.origin.iter().filter(|o| o.message == index).count() > refused_rows;
                let has_keys = || batch.keys.iter().any(|key| key.message == index);
                if resumes || has_rows_written() || has_keys() {
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
        self.work.keys.extend(batch.keys.iter().map(|key| (key.key, key.first_seen_ms)));
        if resumes {
            self.work.positions.insert(batch.lane, batch.range.end);
        }
        Ok(())
    }

    /// `Ok`: the message is disposed of, whatever of it was refused.
    fn refused(&mut self, id: &str, refused: Vec<Refusal>) -> Result<(), Fault> {
        let mut poison = Ok(());
        let _in_span = self.span.enter();
        let unlogged = refused.len().saturating_sub(MOST_LOGGED);
        for (number, Refusal { reject: Reject { row, stage, reason, .. }, kept }) in refused.into_iter().enumerate() {
            self.vitals.metrics.rejects.inc();
            let stage = stage.label();
            let logged = number < MOST_LOGGED;
            let text = match (self.on_error, kept) {
                (OnError::Skip, _) => {
                    if logged {
                        tracing::warn!(message_id = id, row, stage, reason, "skipped what was refused");
                    }
                    continue;
                }
                (OnError::DeadLetter, Kept::Letter) => {
                    self.work.letters += 1;
                    self.vitals.metrics.dead_letters.inc();
                    if logged {
                        tracing::warn!(message_id = id, row, stage, reason, "a dead letter");
                    }
                    continue;
                }
                // Counted for its prepare all the same: the sink was written to.
                (OnError::DeadLetter, Kept::Refused(why)) => {
                    self.work.letters += 1;
                    format!(
                        "{reason}; and the sink for dead letters refused it: {why} (stage: {stage}, on_error: dead_letter)"
                    )
                }
                (OnError::Fail | OnError::DeadLetter, _) => format!("{reason} (stage: {stage}, on_error: fail)"),
            };
            if logged {
                tracing::error!(message_id = id, row, stage, reason = text, "a message cannot be processed");
            }
            let text = format!("message {id} cannot be processed: {text}");
            poison = poison.and(Err(Fault::never(FaultKind::Poison, text)));
        }
        if unlogged > 0 {
            tracing::warn!(message_id = id, rows = unlogged, "more rows of the message were refused");
        }
        poison
    }

    fn seal(&mut self, epoch: Epoch, tokens: Vec<Token>) {
        let disposed = std::mem::take(&mut self.work.disposed);
        let positions = std::mem::take(&mut self.work.positions);
        let keys = std::mem::take(&mut self.work.keys);
        (self.work.written, self.work.letters) = (0, 0);
        let sealed = SealedEpoch { epoch, tokens, disposed, positions, keys };
        let nothing_disposed = sealed.disposed.is_empty() && sealed.positions.is_empty() && sealed.keys.is_empty();
        let empty = nothing_disposed && sealed.tokens.is_empty();
        self.checkpointer.do_send(Sealed { epoch: (!empty).then_some(sealed) });
    }

    fn fail(&mut self, fault: Fault, ctx: &mut Context<Self>) {
        self.reporter.fault(NAME, fault);
        ctx.stop();
    }
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

impl Handler<Begin> for SinkWriter {
    type Result = ();

    fn handle(&mut self, Begin { lanes, stored }: Begin, _: &mut Self::Context) {
        for (lane, position) in lanes {
            self.work.lanes.insert(lane.clone());
            self.work.resuming.insert(lane.clone());
            self.work.ends.insert(lane.clone(), position);
            if !stored {
                self.work.positions.insert(lane, position);
            }
        }
    }
}

impl Handler<Closed> for SinkWriter {
    type Result = ();

    fn handle(&mut self, Closed { finished }: Closed, _: &mut Self::Context) {
        self.work.closed = Some(finished);
        self.end_if_done();
    }
}
