//! The decoder: bodies to rows. Errors stay with their message.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use actix::prelude::*;
use tracing::Span;

use super::{dedup_keeper::DedupKeeper, messages::*, report::Reporter};
use crate::{
    formats,
    model::{
        Batch, BatchMessage, Body, Disposition, Fault, FaultKind, Message as SourceMessage, MetaValue, Origin,
        Original, Reject, RowsBuilder, Stage,
    },
    telemetry::{Vitals, fail_point},
};

pub const NAME: &str = "decoder";

/// See the module.
pub struct Decoder {
    pub format: Box<dyn formats::Decoder>,
    pub rows: RowsBuilder,
    /// Which column is filled from which metadata value of a message.
    pub metadata: Arc<[(usize, usize)]>,
    /// `batch.rows`: messages are joined up to this many rows; a target, not a limit.
    pub target: usize,
    /// Whether dead letters are asked for, so that bodies and metadata are needed further on.
    pub keeps_originals: bool,
    pub dedup: Addr<DedupKeeper>,
    pub reporter: Reporter,
    pub vitals: Arc<Vitals>,
    pub span: Span,
    pub queue: Queue,
}

/// What is waiting, in the order in which it came.
#[derive(Default)]
pub struct Queue {
    waiting: VecDeque<InBand>,
    scheduled: bool,
}

enum InBand {
    Pulled(Pulled),
    Forget(Forget),
    End(End),
}

/// To itself: everything that was waiting in the mailbox is in the queue now, so join and decode it.
#[derive(Message)]
#[rtype(result = "()")]
struct Process;

impl Decoder {
    fn enqueue(&mut self, item: InBand, ctx: &mut Context<Self>) {
        self.queue.waiting.push_back(item);
        self.schedule(ctx);
    }

    fn schedule(&mut self, ctx: &mut Context<Self>) {
        if !self.queue.scheduled && !self.queue.waiting.is_empty() {
            self.queue.scheduled = true;
            ctx.notify(Process);
        }
    }

    /// Decodes pulls of one lane until there are enough rows; never waits for more.
    fn decode(&mut self, first: Pulled) -> Result<Batch, Fault> {
        let mut batch = Pending { lane: first.lane.clone(), range: first.range.clone(), ..Pending::default() };
        self.decode_pull(first, &mut batch);
        while batch.origin.len() < self.target
            && let Some(InBand::Pulled(next)) = self.queue.waiting.front()
            && next.lane == batch.lane
            && next.range.start == batch.range.end
            && let Some(InBand::Pulled(next)) = self.queue.waiting.pop_front()
        {
            batch.range.end = next.range.end;
            self.decode_pull(next, &mut batch);
        }
        let rows = self.rows.finish()?;
        if rows.num_rows() != batch.origin.len() {
            return Err(Fault::restart(FaultKind::Bug, "a decoder appended another number of rows than it answered"));
        }
        let only = batch.only;
        let mut decoded = Batch {
            lane: batch.lane,
            range: batch.range,
            rows,
            origin: batch.origin,
            rejects: batch.rejects,
            keys: Vec::new(),
            messages: batch.messages,
            originals: batch.originals,
            credits: batch.credits,
        };
        if !only.is_empty() {
            decoded.retain(|origin| only.get(&origin.message).is_none_or(|row| *row == origin.row))?;
        }
        Ok(decoded)
    }

    fn decode_pull(&mut self, pulled: Pulled, batch: &mut Pending) {
        batch.credits.push(pulled.credit);
        for (fingerprint, message) in pulled.messages {
            let index = u32::try_from(batch.messages.len()).unwrap_or(u32::MAX);
            let disposition = self.decode_message(index, &message, batch);
            if self.keeps_originals {
                batch.originals.push(Original { body: message.body.bytes(), metadata: message.meta });
            }
            batch.messages.push(BatchMessage { id: message.id, fingerprint, disposition });
        }
    }

    fn decode_message(&mut self, index: u32, message: &SourceMessage, batch: &mut Pending) -> Disposition {
        let before = self.rows.rows();
        let (decoded, row, stage) = match &message.body {
            Body::Bytes(body) => (self.format.decode(body, &mut self.rows), None, Stage::Decode),
            Body::Row(body, row) => (self.format.decode(body, &mut self.rows), Some(*row), Stage::Decode),
            Body::Broken { reason, .. } => (Err(reason.clone()), None, Stage::Transport),
            Body::Filtered(_) => return Disposition::Filtered,
        };
        let decoded = decoded.and_then(|decoded| self.fill_metadata(message, decoded)).and_then(|decoded| match row {
            Some(row) if decoded.rows > 0 && row >= decoded.rows => {
                Err(format!("row {row} of the body is wanted, but it has only {} rows now", decoded.rows))
            }
            _ => Ok(decoded),
        });
        match decoded {
            Ok(decoded) => {
                if let Some(row) = row {
                    batch.only.insert(index, row);
                }
                batch.origin.extend((0..decoded.rows).map(|row| Origin { message: index, row }));
                self.vitals.metrics.nulled_fields.inc_by(decoded.nulled_fields.into());
                // A part dropped behind a first row is no less unread than what a meaning of Flink leaves.
                let dropped_part = u64::from(decoded.dropped && decoded.rows > 0);
                self.vitals.metrics.unread.inc_by(u64::from(decoded.unread) + dropped_part);
                if decoded.rows == 0 { Disposition::Ignored } else { Disposition::Rows }
            }
            Err(reason) => {
                self.rows.truncate(before);
                batch.rejects.push(Reject { message: index, row, stage, reason });
                Disposition::Rejected
            }
        }
    }

    fn fill_metadata(
        &mut self,
        message: &SourceMessage,
        decoded: formats::Decoded,
    ) -> Result<formats::Decoded, String> {
        for _ in 0..decoded.rows {
            for (column, value) in self.metadata.iter() {
                self.rows.append_meta(*column, message.meta.get(*value).unwrap_or(&MetaValue::Null))?;
            }
        }
        Ok(decoded)
    }
}

#[derive(Default)]
struct Pending {
    lane: crate::model::LaneId,
    range: std::ops::Range<u64>,
    origin: Vec<Origin>,
    rejects: Vec<Reject>,
    messages: Vec<BatchMessage>,
    originals: Vec<Original>,
    credits: Vec<crate::model::Credit>,
    /// The messages of which only one row is wanted.
    only: HashMap<u32, u32>,
}

impl Actor for Decoder {
    type Context = Context<Self>;
}

impl Handler<Pulled> for Decoder {
    type Result = ();

    fn handle(&mut self, pulled: Pulled, ctx: &mut Self::Context) {
        self.enqueue(InBand::Pulled(pulled), ctx);
    }
}

impl Handler<Forget> for Decoder {
    type Result = ();

    fn handle(&mut self, forget: Forget, ctx: &mut Self::Context) {
        self.enqueue(InBand::Forget(forget), ctx);
    }
}

impl Handler<End> for Decoder {
    type Result = ();

    fn handle(&mut self, end: End, ctx: &mut Self::Context) {
        self.enqueue(InBand::End(end), ctx);
    }
}

impl Handler<Process> for Decoder {
    type Result = ();

    fn handle(&mut self, _: Process, ctx: &mut Self::Context) {
        fail_point!("decoder.process");
        self.queue.scheduled = false;
        match self.queue.waiting.pop_front() {
            Some(InBand::Pulled(pulled)) => {
                let _in_span = self.span.clone().entered();
                match self.decode(pulled) {
                    Ok(batch) => self.dedup.do_send(Rows(batch)),
                    Err(fault) => {
                        self.reporter.fault(NAME, fault);
                        ctx.stop();
                    }
                }
            }
            Some(InBand::Forget(forget)) => self.dedup.do_send(forget),
            Some(InBand::End(end)) => self.dedup.do_send(end),
            None => {}
        }
        self.schedule(ctx);
    }
}
