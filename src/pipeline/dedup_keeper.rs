//! The dedup-keeper: takes out the rows of messages already seen, and says which of them are redeliveries of
//! something checkpointed. Of the rows that are left it takes out those whose primary key was seen shortly before, and
//! runs the query over the rest.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix::prelude::*;

use super::{checkpointer::Checkpointer, messages::*, report::Reporter, selection::select, sink_writer::SinkWriter};
use crate::{
    dedup::{Ids, Keys, Seen},
    model::{Batch, Disposition, Fault, Fingerprint, Reject},
    query::Query,
    telemetry::{Vitals, fail_point},
};

pub const NAME: &str = "dedup-keeper";

/// How often ids past the queue's retention are looked for.
const EXPIRY_TICK: Duration = Duration::from_secs(60);

/// How often keys whose window is over are let go while no rows come; rows let them go by themselves.
const KEYS_TICK: Duration = Duration::from_secs(1);

/// See the module.
pub struct DedupKeeper {
    pub ids: Ids,
    /// Where the source has a primary key.
    pub keys: Option<Keys>,
    /// Where the pipeline has one.
    pub query: Option<Query>,
    /// The pipeline's up time when this generation began, in milliseconds, and the moment it began.
    pub uptime: (u64, Instant),
    /// How long the queue keeps a message: after so much up time it cannot be delivered again.
    pub retention: Duration,
    pub sink: Addr<SinkWriter>,
    pub checkpointer: Addr<Checkpointer>,
    pub reporter: Reporter,
    pub vitals: Arc<Vitals>,
}

impl DedupKeeper {
    fn recognise(&mut self, batch: &mut Batch) -> Result<(), Fault> {
        let mut redelivered = Vec::new();
        let mut any = false;
        for message in &mut batch.messages {
            let Some(id) = message.fingerprint else { continue };
            match self.ids.see(id) {
                Seen::New => continue,
                Seen::OnTheWay => {}
                Seen::Settled => redelivered.push(id),
            }
            message.disposition = Disposition::Duplicate;
            any = true;
        }
        if any {
            take_out_duplicates(batch)?;
        }
        if let Some(keys) = &mut self.keys {
            let dropped = keys.check(batch)?;
            self.vitals.metrics.key_rows_dropped.inc_by(dropped as u64);
        }
        if let Some(query) = &self.query {
            let left_out = select(query, batch)?;
            self.vitals.metrics.query_rows_filtered.inc_by(left_out as u64);
        }
        for message in &batch.messages {
            self.vitals.metrics.message(message.disposition).inc();
        }
        self.note_size();
        if !redelivered.is_empty() {
            self.checkpointer.do_send(Redelivered(redelivered));
        }
        Ok(())
    }

    fn note_size(&self) {
        self.vitals
            .metrics
            .remembered
            .set(i64::try_from(self.ids.settled() + self.ids.on_the_way()).unwrap_or(i64::MAX));
        let keys = self.keys.as_ref().map_or(0, |keys| keys.window.len());
        self.vitals.metrics.remembered_keys.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    fn uptime_ms(&self) -> u64 {
        self.uptime.0 + u64::try_from(self.uptime.1.elapsed().as_millis()).unwrap_or(u64::MAX >> 1)
    }
}

fn take_out_duplicates(batch: &mut Batch) -> Result<(), Fault> {
    let kept: Vec<bool> = batch.messages.iter().map(|m| m.disposition != Disposition::Duplicate).collect();
    let stays = |message: u32| kept.get(message as usize).copied().unwrap_or(false);
    batch.rejects.retain(|Reject { message, .. }| stays(*message));
    batch.retain(|origin| stays(origin.message))
}

impl Actor for DedupKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.note_size();
        ctx.run_interval(EXPIRY_TICK, |keeper, _| {
            let retention = u64::try_from(keeper.retention.as_millis()).unwrap_or(u64::MAX);
            let expired = keeper.ids.expire(keeper.uptime_ms(), retention);
            if !expired.is_empty() {
                tracing::info!(ids = expired.len(), "forgot ids past the queue's retention: their messages are gone");
                keeper.checkpointer.do_send(Expired(expired));
            }
            keeper.note_size();
        });
        ctx.run_interval(KEYS_TICK, |keeper, _| {
            if let Some(keys) = &mut keeper.keys {
                keys.window.expire(keys.clock.now_ms());
                keeper.note_size();
            }
        });
    }
}

impl Handler<Rows> for DedupKeeper {
    type Result = ();

    fn handle(&mut self, Rows(mut batch): Rows, ctx: &mut Self::Context) {
        fail_point!("dedup.rows");
        match self.recognise(&mut batch) {
            Ok(()) => self.sink.do_send(Rows(batch)),
            Err(fault) => {
                self.reporter.fault(NAME, fault);
                ctx.stop();
            }
        }
    }
}

impl Handler<Forget> for DedupKeeper {
    type Result = ();

    fn handle(&mut self, Forget(ids): Forget, _: &mut Self::Context) {
        self.ids.forget(ids);
        self.note_size();
    }
}

impl Handler<End> for DedupKeeper {
    type Result = ();

    fn handle(&mut self, end: End, _: &mut Self::Context) {
        self.sink.do_send(end);
    }
}

impl Handler<Settled> for DedupKeeper {
    type Result = ();

    fn handle(&mut self, Settled { ids, stamp_ms }: Settled, _: &mut Self::Context) {
        self.ids.settle(ids, stamp_ms);
    }
}

impl Handler<Live> for DedupKeeper {
    type Result = MessageResult<Live>;

    fn handle(&mut self, _: Live, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.ids.live().collect::<Vec<(Fingerprint, u64)>>())
    }
}
