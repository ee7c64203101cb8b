//! What becomes of a pipeline whose thread is lost.

use actix::prelude::*;

use super::{Outcome, Pipeline};
use crate::supervisor::pool::ThreadLost;

impl Handler<ThreadLost> for Pipeline {
    type Result = ();

    fn handle(&mut self, lost: ThreadLost, ctx: &mut Self::Context) {
        if self.thread != Some(lost.thread) {
            // Its generation had ended already.
            return;
        }
        let ThreadLost { actor, fault, .. } = lost;
        if lost.innocent && self.outcome.is_none() {
            self.makings.vitals.metrics.fault(actor, fault.kind);
            self.last_error = Some(format!("{actor}: {fault}"));
            self.outcome = Some(Outcome::Elsewhere);
            self.cut(ctx);
        } else {
            self.end_with(actor, fault, ctx);
        }
        // No actor on that thread will say that it has ended. What they may do yet is fenced by their generation.
        self.alive.clear();
        self.conclude_if_gone(ctx);
    }
}
