//! A reader: reads one lane and hands on as credits allow. One poll is under way at a time, and the next one begins as
//! soon as an answer has been handed on, so that it is on its way while that is processed.

use std::{sync::Arc, time::Duration};

use actix::{fut::wrap_future, prelude::*};
use tracing::Span;

use super::{
    decoder::Decoder,
    enumerator::Enumerator,
    messages::*,
    polling::{Polling, QuickEmpties},
    report::Event,
};
use crate::{
    connector::{LogReader, Polled},
    model::{Credit, Credits, Fault, FaultKind, LaneId, Mend, Message as SourceMessage},
    telemetry::{LaneVitals, Operation, fail_point},
};

pub const NAME: &str = "reader";

/// See the module.
pub struct Reader {
    pub lane: LaneId,
    pub log: Arc<dyn LogReader>,
    /// Shared with the pipeline's other readers.
    pub credits: Credits,
    pub polling: Polling,
    pub progress: LaneVitals,
    pub decoder: Addr<Decoder>,
    pub enumerator: Addr<Enumerator>,
    pub span: Span,
    pub work: Work,
}

/// What a reader keeps track of.
pub struct Work {
    doing: Doing,
    /// The position of what is handed on next.
    handed: u64,
    /// The lane has said that nothing comes any more.
    at_end: bool,
    /// It was told to stop.
    told: Option<EndLane>,
    quick_empties: QuickEmpties,
}

enum Doing {
    /// Waiting for the source's rate, or not begun.
    Waiting,
    Polling(SpawnHandle),
    /// An answer waits for a credit. It is finished, whatever comes.
    HandingOn,
    Ended,
}

impl Work {
    /// Nothing read yet.
    pub fn from(position: u64) -> Self {
        let quick_empties = QuickEmpties::default();
        Self { doing: Doing::Waiting, handed: position, at_end: false, told: None, quick_empties }
    }
}

impl Reader {
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        if self.work.at_end || self.work.told.is_some() {
            return self.end(ctx);
        }
        // What polls of other lanes bring is not known yet. One that waits for messages must not keep this one from
        // those there are, so none of them counts; their debt is paid before the next poll of any lane.
        if let Some(wait) = self.polling.wait(0) {
            self.polling.waits();
            self.work.doing = Doing::Waiting;
            ctx.run_later(wait, |reader, ctx| reader.go_on(ctx));
            return;
        }
        let log = Arc::clone(&self.log);
        let call = move || {
            let log = Arc::clone(&log);
            async move {
                fail_point!("reader.poll");
                log.poll().await
            }
        };
        let operation = Operation::of("poll", &self.lane);
        let poll = self.polling.poll(operation, self.work.quick_empties, self.log.patience(), &self.span, call);
        let poll = wrap_future(poll).map(|result, reader: &mut Self, ctx| reader.polled(result, ctx));
        self.work.doing = Doing::Polling(ctx.spawn(poll));
    }

    fn polled(&mut self, result: Result<(Polled, Duration), Fault>, ctx: &mut Context<Self>) {
        // A poll that was cancelled at the very moment it was answered counts as cancelled: the lane has ended.
        if !matches!(self.work.doing, Doing::Polling(_)) {
            return;
        }
        let _in_span = self.span.clone().entered();
        let (Polled { messages, position, behind, end }, took) = match result {
            Ok(answer) => answer,
            // No poll will work again, but rows already received can be finished.
            Err(fault) if fault.mend == Mend::Never => {
                let fault = fault.of(format_args!("lane {}", self.lane));
                self.polling.reporter.event(Event::Hopeless { actor: NAME, fault });
                return self.end(ctx);
            }
            Err(fault) => return self.fail(fault, ctx),
        };
        fail_point!("reader.polled");
        self.polling.answered(messages.len());
        if position < self.work.handed {
            let text = format!("a poll goes from {} back to {position}", self.work.handed);
            return self.fail(Fault::restart(FaultKind::Bug, text), ctx);
        }
        self.work.at_end = end;
        if messages.is_empty() && position == self.work.handed {
            self.work.quick_empties.brought_nothing(took);
            self.progress.read(position, behind);
            return self.go_on(ctx);
        }
        self.work.quick_empties.brought_something();
        self.work.doing = Doing::HandingOn;
        let bytes = self.polling.received(messages.iter());
        // Most often there is room, and a future would only cost.
        if let Some(credit) = self.credits.try_take(bytes) {
            return self.hand_on(messages, position, behind, credit, ctx);
        }
        let credits = self.credits.clone();
        ctx.spawn(wrap_future(async move { credits.take(bytes).await }).map(move |credit, reader: &mut Self, ctx| {
            match credit {
                Some(credit) => reader.hand_on(messages, position, behind, credit, ctx),
                None => reader.fail(Fault::restart(FaultKind::Bug, "the credits were closed"), ctx),
            }
        }));
    }

    fn hand_on(
        &mut self,
        messages: Vec<SourceMessage>,
        position: u64,
        behind: Option<u64>,
        credit: Credit,
        ctx: &mut Context<Self>,
    ) {
        let range = self.work.handed..position;
        self.work.handed = position;
        self.progress.read(position, behind);
        // Nothing of a lane comes again but what was not checkpointed, so there is nothing to be recognised by.
        let messages = messages.into_iter().map(|message| (None, message)).collect();
        self.decoder.do_send(Pulled { lane: self.lane.clone(), range, messages, credit });
        self.go_on(ctx);
    }

    fn end(&mut self, ctx: &mut Context<Self>) {
        self.work.doing = Doing::Ended;
        let lane = self.lane.clone();
        let leaves = self.work.told.as_ref().is_some_and(|told| told.leaves);
        self.decoder.do_send(End { lane: lane.clone(), leaves });
        self.enumerator.do_send(LaneEnded { lane, position: self.work.handed, finished: self.work.at_end });
        ctx.stop();
    }

    fn fail(&mut self, fault: Fault, ctx: &mut Context<Self>) {
        self.polling.reporter.fault(NAME, fault.of(format_args!("lane {}", self.lane)));
        ctx.stop();
    }
}

impl Actor for Reader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.go_on(ctx);
    }
}

impl Handler<EndLane> for Reader {
    type Result = ();

    fn handle(&mut self, told: EndLane, ctx: &mut Self::Context) {
        self.work.told = Some(told);
        match self.work.doing {
            Doing::HandingOn | Doing::Ended => {}
            Doing::Waiting => self.end(ctx),
            Doing::Polling(poll) => {
                ctx.cancel_future(poll);
                self.end(ctx);
            }
        }
    }
}
