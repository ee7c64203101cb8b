//! The sinks of a pipeline: the main one, and the one for dead letters. A call for both goes to the main one first.

use std::{collections::HashMap, sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use chrono::Utc;

use super::{report::Reporter, retry::retrying};
use crate::{
    connector::{RowReject, Sink},
    model::{
        Batch, DeadLetter, Epoch, Fault, FaultKind, Generation, PipelineName, Reject, RowsBuilder, SourceIdentity,
        Stage, Token, dead_letter_schema,
    },
    telemetry::{Vitals, fail_point},
};

/// The calls of a sink that are retried.
pub const OPERATIONS: [&str; 6] =
    ["write", "prepare", "commit", "write dead letters", "prepare dead letters", "commit dead letters"];

/// The most rows that a sink is given at once. A body may hold millions, and the thread is not theirs alone.
const AT_ONCE: usize = 16 * 1024;

/// About the most bytes of bodies in the dead letters that a sink is given at once.
const LETTER_BYTES: usize = 32 * 1024 * 1024;

/// See the module.
pub struct Sinks {
    /// Where the rows go.
    pub main: Box<dyn Sink>,
    /// Where dead letters go, if they are asked for.
    pub letters: Option<Letters>,
}

/// Where dead letters go, and what each of them says.
pub struct Letters {
    pub sink: Box<dyn Sink>,
    pub pipeline: PipelineName,
    pub generation: Generation,
    pub source: SourceIdentity,
    /// The names of the connector's metadata.
    pub keys: Arc<[&'static str]>,
    /// Whether lanes have positions.
    pub positions: bool,
}

/// What goes with the calls of a sink.
pub struct Calls {
    pub vitals: Arc<Vitals>,
    pub reporter: Reporter,
    pub timeout: Duration,
}

/// A body or row that was refused for good, and whether it is kept.
pub struct Refusal {
    pub reject: Reject,
    pub kept: Kept,
}

/// What became of what was refused.
pub enum Kept {
    /// Nothing: no dead letters are asked for.
    No,
    /// It is a dead letter of the open epoch.
    Letter,
    /// The sink for dead letters refused it too, for this reason.
    Refused(String),
}

impl Refusal {
    /// Of a batch of which no dead letter is to be made.
    pub fn unkept(rejects: Vec<Reject>) -> Vec<Self> {
        rejects.into_iter().map(|reject| Self { reject, kept: Kept::No }).collect()
    }
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

    async fn write(
        &self,
        sink: &mut Box<dyn Sink>,
        operation: &'static str,
        rows: &RecordBatch,
    ) -> Result<Vec<RowReject>, Fault> {
        let refused = self.run(sink, operation, async |sink| sink.write(rows).await).await?;
        match refused.iter().find(|reject| reject.row >= rows.num_rows()) {
            // Which message it belongs to is not known, so none may be taken for written.
            Some(reject) => {
                Err(Fault::restart(FaultKind::Bug, format!("the sink refused row {}: no such", reject.row)))
            }
            None => Ok(refused),
        }
    }
}

impl Sinks {
    /// Writes the rows of a batch, if it has any, then dead letters of what was refused, by the format or now.
    pub async fn write(&mut self, calls: &Calls, batch: &Batch, rows: &RecordBatch) -> Result<Vec<Refusal>, Fault> {
        fail_point!("sink.write");
        let mut rejects = batch.rejects.clone();
        let mut first = 0;
        while first < rows.num_rows() {
            let some = rows.slice(first, AT_ONCE.min(rows.num_rows() - first));
            for RowReject { row, reason } in calls.write(&mut self.main, "write", &some).await? {
                let Some(origin) = batch.origin.get(first + row) else { continue };
                let (message, row) = (origin.message, Some(origin.row));
                rejects.push(Reject { message, row, stage: Stage::Sink, reason });
            }
            first += some.num_rows();
            if first < rows.num_rows() {
                tokio::task::yield_now().await;
            }
        }
        match &mut self.letters {
            Some(letters) if !rejects.is_empty() => letters.write(calls, batch, rejects).await,
            _ => Ok(Refusal::unkept(rejects)),
        }
    }

    /// Prepares what has been written: `rows` by the main sink, `letters` by that for dead letters.
    pub async fn prepare(
        &mut self,
        calls: &Calls,
        epoch: Epoch,
        rows: bool,
        letters: bool,
    ) -> Result<Vec<Token>, Fault> {
        let mut tokens = Vec::new();
        if rows {
            fail_point!("sink.before_prepare");
            tokens.extend(calls.run(&mut self.main, "prepare", async |sink| sink.prepare(epoch).await).await?);
            fail_point!("sink.after_prepare");
        }
        if let Some(to) = self.letters.as_mut().filter(|_| letters) {
            fail_point!("letters.before_prepare");
            let prepared = calls.run(&mut to.sink, "prepare dead letters", async |sink| sink.prepare(epoch).await);
            tokens.extend(prepared.await?);
            fail_point!("letters.after_prepare");
        }
        Ok(tokens)
    }

    /// Commits tokens, each with the sink it names.
    pub async fn commit(&mut self, calls: &Calls, tokens: &[Token]) -> Result<(), Fault> {
        fail_point!("sink.before_commit");
        for token in tokens {
            match &mut self.letters {
                Some(letters) if letters.sink.identity() == token.sink => {
                    fail_point!("letters.before_commit");
                    let commit = async |sink: &mut Box<dyn Sink>| sink.commit(token).await;
                    calls.run(&mut letters.sink, "commit dead letters", commit).await?;
                }
                _ => calls.run(&mut self.main, "commit", async |sink| sink.commit(token).await).await?,
            }
        }
        fail_point!("sink.after_commit");
        Ok(())
    }
}

impl Letters {
    async fn write(&mut self, calls: &Calls, batch: &Batch, rejects: Vec<Reject>) -> Result<Vec<Refusal>, Fault> {
        let mut refusals = Vec::with_capacity(rejects.len());
        let mut rejects = rejects.into_iter().peekable();
        while rejects.peek().is_some() {
            // Each letter holds the whole body.
            let (mut some, mut bytes) = (Vec::new(), 0);
            while let Some(reject) =
                rejects.next_if(|_| some.is_empty() || (some.len() < AT_ONCE && bytes < LETTER_BYTES))
            {
                bytes += batch.originals.get(reject.message as usize).map_or(0, |original| original.body.len());
                some.push(reject);
            }
            refusals.extend(self.write_some(calls, batch, some).await?);
            if rejects.peek().is_some() {
                tokio::task::yield_now().await;
            }
        }
        Ok(refusals)
    }

    async fn write_some(&mut self, calls: &Calls, batch: &Batch, rejects: Vec<Reject>) -> Result<Vec<Refusal>, Fault> {
        let rows = self.rows(batch, &rejects)?;
        fail_point!("letters.write");
        let refused = calls.write(&mut self.sink, "write dead letters", &rows).await?;
        let mut refused: HashMap<usize, String> = refused.into_iter().map(|one| (one.row, one.reason)).collect();
        let refusal = |(at, reject)| Refusal { reject, kept: refused.remove(&at).map_or(Kept::Letter, Kept::Refused) };
        Ok(rejects.into_iter().enumerate().map(refusal).collect())
    }

    fn rows(&self, batch: &Batch, rejects: &[Reject]) -> Result<RecordBatch, Fault> {
        let mut rows = RowsBuilder::new(&dead_letter_schema());
        let position = self.positions.then(|| format!("{}..{}", batch.range.start, batch.range.end));
        let rejected_ms = Utc::now().timestamp_millis();
        for Reject { message, row, stage, reason } in rejects {
            let at = *message as usize;
            let (Some(original), Some(message)) = (batch.originals.get(at), batch.messages.get(at)) else {
                return Err(Fault::restart(FaultKind::Bug, "a batch without the body that was refused"));
            };
            let letter = DeadLetter {
                original,
                keys: &self.keys,
                row: *row,
                stage: *stage,
                reason,
                source: &self.source,
                lane: &batch.lane.0,
                position: position.clone(),
                message_id: &message.id,
                rejected_ms,
                pipeline: self.pipeline.as_str(),
                generation: self.generation.0,
            };
            letter.append_to(&mut rows)?;
        }
        rows.finish()
    }
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
