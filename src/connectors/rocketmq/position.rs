//! Where a queue is read from, and what becomes of a position that is not in it.

use std::{ops::Range, time::Duration};

use super::{
    client::Queue, options::ON_LOST_POSITION, service::Service, source_options::OnLostPosition, startup::Startup,
    topics::Topics,
};
use crate::{
    connector::Start,
    model::{Fault, FaultKind, LaneId},
};

/// For how long a position beyond the end of its queue is not taken for lost: a broker that starts answers before it
/// has counted all it holds.
const SETTLING: Duration = Duration::from_secs(30);

/// What a queue holds: the offset of its first message, and the one its next message will have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub first: u64,
    pub next: u64,
}

impl Ends {
    /// Asks the broker.
    pub async fn of(service: &dyn Service, queue: &Queue, group: &str) -> Result<Self, Fault> {
        let Range { start: first, end } = service.ends(queue, group).await?;
        Ok(Self { first, next: end.max(first) })
    }

    fn clamp(self, offset: u64) -> u64 {
        offset.clamp(self.first, self.next)
    }
}

/// A lane that is being opened or read.
#[derive(Clone, Copy)]
pub struct Lane<'a> {
    pub id: &'a LaneId,
    pub queue: &'a Queue,
    pub topics: &'a Topics,
}

impl Lane<'_> {
    /// Where it is read from.
    pub async fn start(self, service: &dyn Service, start: Start) -> Result<u64, Fault> {
        let (queue, options) = (self.queue, &self.topics.options);
        let ends = Ends::of(service, queue, &options.group).await?;
        let recorded = match start {
            Start::Resume(position) => Some(position),
            Start::Added => service.group_offset(queue, &options.group).await?,
            Start::First => {
                // New to this process, but another one may have read it: by the options, what that one left would be
                // skipped, or all it has read would be read again.
                let group = options.allocation.is_shared() || options.startup == Startup::GroupOffsets;
                let recorded = if group { service.group_offset(queue, &options.group).await? } else { None };
                let Some(recorded) = recorded else { return self.first_start(service, ends).await };
                Some(recorded)
            }
        };
        recorded.map_or(Ok(ends.first), |position| self.place(position, ends))
    }

    /// Where the options say that a queue is read from of which nothing is known.
    async fn first_start(self, service: &dyn Service, ends: Ends) -> Result<u64, Fault> {
        let options = &self.topics.options;
        Ok(match options.startup {
            Startup::Earliest | Startup::GroupOffsets => ends.first,
            Startup::Latest => ends.next,
            Startup::Timestamp(at_ms) => ends.clamp(service.offset_at(self.queue, &options.group, at_ms).await?),
            // One number for all queues: it need not be in each of them.
            Startup::Specific(offset) => ends.clamp(offset),
        })
    }

    /// The position itself if the queue holds it, or where `on_lost_position` says to go on.
    pub fn place(self, position: u64, ends: Ends) -> Result<u64, Fault> {
        let Ends { first, next } = ends;
        if (first..=next).contains(&position) {
            self.topics.seen.within(self.id);
            return Ok(position);
        }
        let outside = format!("position {position} is outside of what the queue holds, {first} to {next}");
        if position > next && self.topics.seen.beyond_for(self.id) < SETTLING {
            return Err(Fault::retry(FaultKind::Service, format!("{outside}, unless its broker is still starting")));
        }
        let (other, end) = match self.topics.options.on_lost_position {
            OnLostPosition::Fail => {
                let advice = format!("`{}: earliest` or `latest` would go on there", ON_LOST_POSITION.name);
                return Err(Fault::never(FaultKind::Missing, format!("{outside}: messages are lost; {advice}")));
            }
            OnLostPosition::Earliest => (first, "beginning"),
            OnLostPosition::Latest => (next, "end"),
        };
        tracing::warn!("{}: {outside}; it is read on from its {end}, {other}", self.id);
        Ok(other)
    }
}
