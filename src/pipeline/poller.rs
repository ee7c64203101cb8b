//! The poller: receives, hands on as credits allow, and acknowledges what a checkpoint has made durable.
//!
//! A singleton per queue. Polls and deletes run as spawned futures, never inside a handler, so that a drain never
//! waits behind a long poll.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{fut::wrap_future, prelude::*};
use tracing::{Instrument, Span};

use super::{
    checkpointer::Checkpointer,
    decoder::Decoder,
    ledger::Ledger,
    messages::*,
    polling::{Polling, QuickEmpties, task},
    report::Event,
    retry::{retrying, within},
    visibility::Visibility,
};
use crate::{
    connector::{Acknowledged, OpenedQueue},
    model::{Credit, Credits, Fault, FaultKind, Fingerprint, Mend, Message as SourceMessage, Receipt, SourceIdentity},
    telemetry::fail_point,
};

pub const NAME: &str = "poller";

/// How often receipts are looked at for extension.
const EXTENSION_TICK: Duration = Duration::from_millis(500);
/// Extensions under way at once; each is a call of its own.
const EXTENSIONS: usize = 4;

/// See the module.
pub struct Poller {
    pub source: SourceIdentity,
    pub opened: OpenedQueue,
    pub visibility: Visibility,
    pub credits: Credits,
    pub polling: Polling,
    /// `checkpoint.max_unacknowledged`
    pub limit: usize,
    pub decoder: Addr<Decoder>,
    pub checkpointer: Addr<Checkpointer>,
    pub span: Span,
    pub work: Work,
}

/// What the poller keeps track of.
#[derive(Default)]
pub struct Work {
    ledger: Ledger,
    /// Polls begun and not yet handed on; the handle while the call is under way, none while waiting for a credit.
    polls: BTreeMap<u64, Option<SpawnHandle>>,
    next_poll: u64,
    /// Pulls handed on so far.
    handed: u64,
    quick_empties: QuickEmpties,
    /// Ids whose delete was confirmed, with the first poll that began after that and so cannot bring them any more.
    confirmed: VecDeque<(u64, Vec<Fingerprint>)>,
    deletes: usize,
    extensions: usize,
    asked_for_checkpoint: bool,
    draining: bool,
    ended: bool,
    awaiting: bool,
    /// A timer ends the wait for the source's rate.
    paced: bool,
}

impl Poller {
    fn pump_polls(&mut self, ctx: &mut Context<Self>) {
        while !self.work.draining
            && self.work.polls.len() < self.opened.concurrency
            && self.work.ledger.len() < self.limit
            && self.may_poll(ctx)
        {
            self.start_poll(ctx);
        }
    }

    /// Whether the source's rate allows one more poll now. If not, the end of a poll or a timer asks again: a poll that
    /// waits itself would count as under way, and hold back what is known of deletes.
    fn may_poll(&mut self, ctx: &mut Context<Self>) -> bool {
        let under_way = self.work.polls.len();
        let Some(wait) = self.polling.wait(under_way) else { return true };
        if under_way == 0 && !self.work.paced {
            self.work.paced = true;
            self.polling.waits();
            ctx.run_later(wait, |poller, ctx| {
                poller.work.paced = false;
                poller.pump_polls(ctx);
            });
        }
        false
    }

    fn start_poll(&mut self, ctx: &mut Context<Self>) {
        let number = self.work.next_poll;
        self.work.next_poll += 1;
        let (reader, quick_empties) = (Arc::clone(&self.opened.reader), self.work.quick_empties);
        let patience = reader.patience();
        let call = move || {
            let reader = Arc::clone(&reader);
            async move {
                fail_point!("poller.poll");
                reader.poll().await
            }
        };
        let poll = self.polling.poll("poll".into(), quick_empties, patience, &self.span, call);
        let handle =
            ctx.spawn(wrap_future(poll).map(move |result, poller: &mut Self, ctx| poller.polled(number, result, ctx)));
        self.work.polls.insert(number, Some(handle));
    }

    fn polled(&mut self, number: u64, result: Result<(Vec<SourceMessage>, Duration), Fault>, ctx: &mut Context<Self>) {
        // A poll that was cancelled at the very moment it was answered counts as cancelled: the lane has ended.
        if !self.work.polls.contains_key(&number) {
            return;
        }
        let (messages, took) = match result {
            Ok(answer) => answer,
            // No poll will work again, but rows already received can be finished; a queue that is gone gives none back.
            Err(fault) if fault.mend == Mend::Never => {
                self.work.polls.remove(&number);
                self.polling.reporter.event(Event::Hopeless { actor: NAME, fault });
                return self.drain(ctx);
            }
            Err(fault) => return self.fail(fault, ctx),
        };
        fail_point!("poller.polled");
        self.polling.answered(messages.len());
        if messages.is_empty() {
            self.work.quick_empties.brought_nothing(took);
            return self.finish_poll(number, ctx);
        }
        self.work.quick_empties.brought_something();
        self.work.polls.insert(number, None);
        let (messages, bytes) = self.register(messages);
        self.note_unacknowledged();
        // Most often there is room, and a future would only cost.
        if let Some(credit) = self.credits.try_take(bytes) {
            return self.hand_on(number, messages, credit, ctx);
        }
        let credits = self.credits.clone();
        ctx.spawn(wrap_future(async move { credits.take(bytes).await }).map(move |credit, poller: &mut Self, ctx| {
            match credit {
                Some(credit) => poller.hand_on(number, messages, credit, ctx),
                None => poller.fail(Fault::restart(FaultKind::Bug, "the credits were closed"), ctx),
            }
        }));
    }

    /// Receipts go into the ledger at once, whatever waits for a credit: they are what a delete needs.
    fn register(&mut self, messages: Vec<SourceMessage>) -> (Vec<(Option<Fingerprint>, SourceMessage)>, usize) {
        let now = Instant::now();
        let bytes = self.polling.received(messages.iter());
        if let Some(receipt) = messages.iter().find_map(|message| message.receipt.as_ref()) {
            self.span.in_scope(|| self.visibility.delivered(receipt.invisible_for));
        }
        let mut known = Vec::with_capacity(messages.len());
        for mut message in messages {
            let id = message.receipt.take().map(|receipt| {
                let id = Fingerprint::of_message(&self.source, &message.id);
                self.work.ledger.received(id, receipt, now);
                id
            });
            known.push((id, message));
        }
        (known, bytes)
    }

    fn hand_on(
        &mut self,
        number: u64,
        messages: Vec<(Option<Fingerprint>, SourceMessage)>,
        credit: Credit,
        ctx: &mut Context<Self>,
    ) {
        let range = self.work.handed..self.work.handed + 1;
        self.work.handed = range.end;
        self.decoder.do_send(Pulled { lane: self.opened.lane.clone(), range, messages, credit });
        self.finish_poll(number, ctx);
    }

    fn finish_poll(&mut self, number: u64, ctx: &mut Context<Self>) {
        self.work.polls.remove(&number);
        self.send_confirmed();
        if self.work.draining {
            self.end_if_done();
        } else {
            self.pump_polls(ctx);
        }
    }

    /// A poll that began before a delete was confirmed may still bring a copy of the message. Until it has ended the
    /// confirmation is held back, so that neither the store nor the dedup-keeper forgets the id too soon.
    fn send_confirmed(&mut self) {
        let oldest = self.work.polls.keys().next().copied().unwrap_or(u64::MAX);
        while let Some((first_clean, _)) = self.work.confirmed.front()
            && *first_clean <= oldest
            && let Some((_, mut ids)) = self.work.confirmed.pop_front()
        {
            // A copy that did come has a delete of its own to be confirmed first.
            ids.retain(|id| !self.work.ledger.holds(*id));
            if !ids.is_empty() {
                self.checkpointer.do_send(Confirmed(ids));
            }
        }
    }

    fn end_if_done(&mut self) {
        if self.work.polls.is_empty() && !self.work.ended {
            self.work.ended = true;
            self.decoder.do_send(End { lane: self.opened.lane.clone(), leaves: false });
        }
    }

    /// Only messages that no checkpoint has disposed of count towards an early one: to the others, whose delete is on
    /// its way, it would do nothing.
    fn note_unacknowledged(&mut self) {
        let Work { ledger, draining, .. } = &self.work;
        self.polling.vitals.metrics.unacknowledged.set(i64::try_from(ledger.len()).unwrap_or(i64::MAX));
        if ledger.open() >= self.limit.div_ceil(2) && !draining && !self.work.asked_for_checkpoint {
            self.work.asked_for_checkpoint = true;
            self.checkpointer.do_send(CheckpointSoon);
        }
    }

    fn pump_deletes(&mut self, ctx: &mut Context<Self>) {
        while self.work.deletes < self.opened.concurrency.max(1) {
            let batch = self.work.ledger.take(self.opened.acknowledger.most());
            if batch.is_empty() {
                break;
            }
            self.work.deletes += 1;
            self.delete(batch, ctx);
        }
        if self.work.awaiting && self.work.ledger.is_idle() {
            self.work.awaiting = false;
            self.checkpointer.do_send(AllAcknowledged);
        }
    }

    fn delete(&mut self, batch: Vec<(Fingerprint, Receipt)>, ctx: &mut Context<Self>) {
        let (ids, receipts): (Vec<Fingerprint>, Vec<Receipt>) = batch.into_iter().unzip();
        let (vitals, reporter) = (Arc::clone(&self.polling.vitals), self.polling.reporter.clone());
        let acknowledger = Arc::clone(&self.opened.acknowledger);
        let deadline = acknowledger.patience() + self.polling.timeout;
        let delete = async move {
            let times = Some(acknowledger.retries() as usize);
            let call = || acknowledger.acknowledge(&receipts);
            let result = retrying(&vitals, &reporter, "acknowledge", deadline, times, call).await;
            (ids, receipts, result)
        };
        ctx.spawn(
            wrap_future(task(delete.instrument(self.span.clone())))
                .map(|(ids, receipts, result), poller: &mut Self, ctx| poller.deleted(&ids, &receipts, result, ctx)),
        );
    }

    fn deleted(
        &mut self,
        ids: &[Fingerprint],
        receipts: &[Receipt],
        result: Result<Vec<Acknowledged>, Fault>,
        ctx: &mut Context<Self>,
    ) {
        self.work.deletes -= 1;
        let metrics = &self.polling.vitals.metrics;
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(fault) if fault.kind == FaultKind::Hung => return self.fail(fault, ctx),
            Err(fault) => {
                // The messages come back, are recognised, and are deleted with their new receipt.
                let _in_span = self.span.enter();
                tracing::warn!(messages = ids.len(), error = %fault, "a delete was given up; the messages will come back");
                metrics.delete_failed.inc_by(ids.len() as u64);
                Vec::new()
            }
        };
        let mut outcomes = outcomes.into_iter();
        let mut confirmed = Vec::new();
        for (id, receipt) in ids.iter().zip(receipts) {
            let gone = self.work.ledger.answered(*id, receipt);
            match outcomes.next() {
                Some(Acknowledged::Deleted) => {
                    metrics.deleted.inc();
                    if gone {
                        confirmed.push(*id);
                    }
                }
                Some(Acknowledged::Unknown) => metrics.delete_unknown.inc(),
                Some(Acknowledged::Refused(reason)) => {
                    metrics.delete_failed.inc();
                    self.span.in_scope(|| tracing::warn!(reason, "the service refused a delete"));
                }
                None => {}
            }
        }
        if !confirmed.is_empty() {
            self.work.confirmed.push_back((self.work.next_poll, confirmed));
            self.send_confirmed();
        }
        self.note_unacknowledged();
        self.pump_deletes(ctx);
        self.pump_polls(ctx);
    }

    /// Extends deliveries that would run out before the next checkpoint is likely to be through.
    fn extend(&mut self, ctx: &mut Context<Self>) {
        let Some(timeout) = self.opened.facts.visibility_timeout.filter(|_| self.opened.acknowledger.extends()) else {
            return;
        };
        let free = EXTENSIONS.saturating_sub(self.work.extensions);
        for (id, receipt) in self.work.ledger.take_expiring(Instant::now(), timeout / 2, free) {
            self.work.extensions += 1;
            let acknowledger = Arc::clone(&self.opened.acknowledger);
            let deadline = acknowledger.patience() + self.polling.timeout;
            let extend =
                async move { within(deadline, &"extend".into(), acknowledger.extend(&receipt, timeout)).await };
            ctx.spawn(wrap_future(extend).map(move |result, poller: &mut Self, ctx| poller.extended(id, result, ctx)));
        }
    }

    fn extended(&mut self, id: Fingerprint, result: Result<Option<Receipt>, Fault>, ctx: &mut Context<Self>) {
        self.work.extensions -= 1;
        let answered = result.is_ok();
        let metrics = &self.polling.vitals.metrics;
        if matches!(result, Ok(Some(_))) {
            metrics.extended.inc()
        } else {
            metrics.extend_failed.inc()
        }
        match result {
            Ok(receipt) => self.work.ledger.extended(id, receipt, Instant::now()),
            Err(fault) if fault.kind == FaultKind::Hung => return self.fail(fault, ctx),
            Err(fault) => {
                self.span.in_scope(|| tracing::warn!(error = %fault, "a visibility timeout could not be extended"));
                match fault.mend {
                    Mend::Retry => self.work.ledger.not_extended(id),
                    Mend::Restart | Mend::Never => self.work.ledger.extended(id, None, Instant::now()),
                }
            }
        }
        self.pump_deletes(ctx);
        // Without an answer not before the next tick: a service in trouble is not asked as fast as it refuses.
        if answered {
            self.extend(ctx);
        }
    }

    fn drain(&mut self, ctx: &mut Context<Self>) {
        self.work.draining = true;
        self.polling.vitals.metrics.rate_limited.set(0);
        // What a cancelled poll may have received comes back when its visibility timeout runs out.
        let under_way: Vec<u64> = self.work.polls.iter().filter(|(_, poll)| poll.is_some()).map(|(n, _)| *n).collect();
        for number in under_way {
            if let Some(Some(handle)) = self.work.polls.remove(&number) {
                ctx.cancel_future(handle);
            }
        }
        self.send_confirmed();
        self.end_if_done();
    }

    fn fail(&mut self, fault: Fault, ctx: &mut Context<Self>) {
        self.polling.reporter.fault(NAME, fault);
        ctx.stop();
    }
}

impl Actor for Poller {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(EXTENSION_TICK, |poller, ctx| poller.extend(ctx));
        self.pump_polls(ctx);
    }
}

impl Handler<Acknowledge> for Poller {
    type Result = ();

    fn handle(&mut self, Acknowledge(ids): Acknowledge, ctx: &mut Self::Context) {
        fail_point!("poller.acknowledge");
        self.work.asked_for_checkpoint = false;
        for id in ids {
            self.work.ledger.want(id);
        }
        self.pump_deletes(ctx);
        self.note_unacknowledged();
    }
}

impl Handler<NothingSealed> for Poller {
    type Result = ();

    fn handle(&mut self, _: NothingSealed, _: &mut Self::Context) {
        // What was asked for has not been done: everything received was still on its way to the sink.
        self.work.asked_for_checkpoint = false;
        self.note_unacknowledged();
    }
}

impl Handler<Recorded> for Poller {
    type Result = ();

    fn handle(&mut self, Recorded(ids): Recorded, _: &mut Self::Context) {
        // In band, so that it arrives behind everything handed on so far.
        self.decoder.do_send(Forget(ids));
    }
}

impl Handler<AwaitAcknowledged> for Poller {
    type Result = ();

    fn handle(&mut self, _: AwaitAcknowledged, ctx: &mut Self::Context) {
        self.work.awaiting = true;
        self.pump_deletes(ctx);
    }
}

impl Handler<Drain> for Poller {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.drain(ctx);
    }
}
