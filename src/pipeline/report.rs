//! What a generation tells the supervisor's side of its pipeline.

use actix::prelude::*;

use super::{
    child::{Child, ChildName, ExitReason},
    generation::Controls,
};
use crate::model::{Fault, Generation, Slot};

/// Something that happened in a generation.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Report {
    /// The pipeline's slot.
    pub slot: Slot,
    /// Counts the starts of this pipeline in this process, so that a late word of an old generation is known as such.
    pub attempt: u64,
    /// What happened.
    pub event: Event,
}

/// See [`Report`].
pub enum Event {
    /// The number of the generation is durable; opening goes on.
    Numbered(Generation),
    /// The tree is wired. A queue is polled; of a log, see [`Event::Begun`].
    Running(Controls),
    /// The first lane of a log is read, or none is there to be read.
    Begun,
    /// An actor has been started since: a lane is read.
    Started(Child),
    /// An operation is being retried, or works again.
    HealthChanged,
    /// The generation cannot go on.
    Fault {
        /// Which actor.
        actor: &'static str,
        /// Why.
        fault: Fault,
    },
    /// There is no going on that anything but a person could mend, but what was received can still be finished:
    /// drain, then Failed. A message that can never be processed, under `on_error: fail`; a queue that is gone.
    Hopeless {
        /// Which actor.
        actor: &'static str,
        /// Why.
        fault: Fault,
    },
    /// Everything received is written, checkpointed and acknowledged.
    Drained,
    /// A bounded source is at its end: everything is written and checkpointed, and that it has finished is durable.
    /// Also in place of [`Event::Running`], if it had finished before.
    Finished,
    /// An actor is gone.
    Exited {
        /// Which, as the supervisor's side numbers them: two of one name may follow each other.
        number: u64,
        /// What it was called.
        name: ChildName,
        /// How.
        reason: ExitReason,
    },
}

/// Reports for one generation.
#[derive(Clone)]
pub struct Reporter {
    /// The supervisor's side of the pipeline.
    pub to: Recipient<Report>,
    /// See [`Report::slot`].
    pub slot: Slot,
    /// See [`Report::attempt`].
    pub attempt: u64,
}

impl Reporter {
    /// Sends an event; if the supervisor is gone there is nobody left to tell.
    pub fn event(&self, event: Event) {
        self.to.do_send(Report { slot: self.slot, attempt: self.attempt, event });
    }

    /// Sends a fault of an actor.
    pub fn fault(&self, actor: &'static str, fault: Fault) {
        self.event(Event::Fault { actor, fault });
    }
}
