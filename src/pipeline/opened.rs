//! One lane of either kind of source, until there is a reader for each lane.

use std::{sync::Arc, time::Duration};

use crate::{
    connector::{Acknowledger, LogReader, QueueFacts, QueueReader, Source, Start},
    model::{Fault, FaultKind, LaneId, Message},
    state::Opened as Stored,
};

/// What reads the lane.
#[derive(Clone)]
pub enum Reader {
    Queue(Arc<dyn QueueReader>),
    Log(Arc<dyn LogReader>),
}

/// What a poll brought.
pub struct Polled {
    pub messages: Vec<Message>,
    pub position: Option<u64>,
    pub end: bool,
}

impl Reader {
    pub fn patience(&self) -> Duration {
        match self {
            Self::Queue(reader) => reader.patience(),
            Self::Log(reader) => reader.patience(),
        }
    }

    pub async fn poll(&self) -> Result<Polled, Fault> {
        match self {
            Self::Queue(reader) => Ok(Polled { messages: reader.poll().await?, position: None, end: false }),
            Self::Log(reader) => {
                let polled = reader.poll().await?;
                Ok(Polled { messages: polled.messages, position: Some(polled.position), end: polled.end })
            }
        }
    }
}

/// An opened lane.
pub struct Opened {
    pub lane: LaneId,
    pub reader: Reader,
    pub acknowledger: Option<Arc<dyn Acknowledger>>,
    pub concurrency: usize,
    pub position: Option<u64>,
    pub facts: QueueFacts,
}

pub fn patience(source: &Source) -> Duration {
    match source {
        Source::Queue(source) => source.patience(),
        Source::Log(source) => source.patience(),
    }
}

pub async fn open(source: &Source, stored: &Stored) -> Result<Opened, Fault> {
    match source {
        Source::Queue(source) => {
            let opened = source.open().await?;
            Ok(Opened {
                lane: opened.lane,
                reader: Reader::Queue(opened.reader),
                acknowledger: Some(opened.acknowledger),
                concurrency: opened.concurrency,
                position: None,
                facts: opened.facts,
            })
        }
        Source::Log(source) => {
            let lanes = source.lanes(&stored.positions).await?.owned;
            let [(lane, start)] = <[(LaneId, Start); 1]>::try_from(lanes)
                .map_err(|lanes| Fault::never(FaultKind::Bug, format!("{} lanes, but one is read", lanes.len())))?;
            let opened = source.open(&lane, start).await?;
            Ok(Opened {
                lane,
                reader: Reader::Log(opened.reader),
                acknowledger: None,
                concurrency: 1,
                position: Some(opened.position),
                facts: QueueFacts::default(),
            })
        }
    }
}
