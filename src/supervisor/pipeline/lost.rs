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
        if lost.innocent {
            self.outcome.get_or_insert(Outcome::Elsewhere);
        }
        self.end_with(lost.actor, lost.fault, ctx);
        // No actor on that thread will say that it has ended. What they may do yet is fenced by their generation.
        self.alive.clear();
        self.conclude_if_gone(ctx);
    }
}
