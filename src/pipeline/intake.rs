//! Where messages come in: one poller, or an enumerator with a reader for each lane.

use std::collections::BTreeMap;

use actix::prelude::*;

use super::{enumerator::Enumerator, messages::*, poller::Poller};
use crate::model::{Fingerprint, LaneId};

/// Who is told to receive no more, and what checkpoints have made durable.
#[derive(Clone)]
pub enum Intake {
    /// Of a queue.
    Poller(Addr<Poller>),
    /// Of a log.
    Enumerator(Addr<Enumerator>),
}

impl Intake {
    /// Receive no more.
    pub fn drain(&self) {
        match self {
            Self::Poller(poller) => poller.do_send(Drain),
            Self::Enumerator(enumerator) => enumerator.do_send(Drain),
        }
    }

    /// Step 5: a checkpoint is through that holds this.
    pub fn checkpointed(&self, ids: Vec<Fingerprint>, positions: BTreeMap<LaneId, u64>, forgotten: Vec<LaneId>) {
        match self {
            Self::Poller(poller) => poller.do_send(Acknowledge(ids)),
            Self::Enumerator(enumerator) => enumerator.do_send(Checkpointed { positions, forgotten }),
        }
    }

    /// These have come again after their checkpoint.
    pub fn redelivered(&self, ids: Vec<Fingerprint>) {
        if let Self::Poller(poller) = self {
            poller.do_send(Acknowledge(ids));
        }
    }

    /// There was nothing to checkpoint.
    pub fn nothing_sealed(&self) {
        match self {
            Self::Poller(poller) => poller.do_send(NothingSealed),
            Self::Enumerator(enumerator) => enumerator.do_send(NothingSealed),
        }
    }

    /// These confirmed deletes are in the store.
    pub fn recorded(&self, ids: Vec<Fingerprint>) {
        if let Self::Poller(poller) = self {
            poller.do_send(Recorded(ids));
        }
    }

    /// Say when every acknowledgement has been answered.
    pub fn await_acknowledged(&self) {
        match self {
            Self::Poller(poller) => poller.do_send(AwaitAcknowledged),
            Self::Enumerator(enumerator) => enumerator.do_send(AwaitAcknowledged),
        }
    }
}
