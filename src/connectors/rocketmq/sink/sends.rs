//! The sends of a sink: several under way, each tried as often as the options say, nothing forgotten on a failure.

use std::{collections::VecDeque, sync::Arc};

use super::{
    super::{
        client::Outgoing,
        service::{Connect, Service},
    },
    topic::Topic,
};
use crate::{
    connector::RowReject,
    connectors::outstanding::{Retries, Tries, UnderWay, gravest},
    model::{Fault, FaultKind},
};

/// Sends under way at once, each on a connection of its own. So what the sink holds beside one write is at most so many
/// batches.
const UNDER_WAY: usize = 4;

/// Messages that go to one queue with one request.
#[derive(Debug)]
pub struct SendBatch {
    pub messages: Vec<Outgoing>,
    /// The row each of them was made of.
    pub rows: Vec<usize>,
    /// The write that brought it.
    pub write: u64,
    /// Of the largest message, in bytes.
    pub largest: usize,
}

impl SendBatch {
    /// The two halves of a batch of several messages.
    fn halves(self) -> [Self; 2] {
        let (mut messages, mut rows) = (self.messages, self.rows);
        let half = messages.len() / 2;
        let (later, later_rows) = (messages.split_off(half), rows.split_off(half));
        [(messages, rows), (later, later_rows)].map(|(messages, rows)| Self {
            largest: messages.iter().map(Outgoing::size).max().unwrap_or(0),
            messages,
            rows,
            write: self.write,
        })
    }
}

/// See the module.
pub struct Sends {
    connect: Connect,
    topic: Arc<Topic>,
    group: Arc<str>,
    retries: Retries,
    idle: Vec<Box<dyn Service>>,
    waiting: VecDeque<SendBatch>,
    under_way: UnderWay<Answered>,
    /// How many of those under way are of the open write and may hold a message that the broker refuses as too large.
    unsure: usize,
    /// The write that has not returned yet.
    open: Option<u64>,
    /// The largest message the brokers have taken, in bytes. What is not larger is taken too.
    taken: usize,
    /// Rows of the open write that were refused.
    refused: Vec<RowReject>,
}

struct Answered {
    service: Box<dyn Service>,
    batch: SendBatch,
    unsure: bool,
    result: Result<(), Fault>,
}

/// What [`Sends::settle`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Every row of the open write is sent or being sent, and it is known which of them are refused.
    Taken,
    /// Every send is answered.
    Answered,
}

impl Sends {
    /// Nothing is connected before the first send.
    pub fn new(connect: Connect, topic: Arc<Topic>, group: Arc<str>, retries: Retries) -> Self {
        Self {
            connect,
            topic,
            group,
            retries,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            under_way: UnderWay::default(),
            unsure: 0,
            open: None,
            taken: 0,
            refused: Vec::new(),
        }
    }

    /// Takes the batches of a new write, which is open from now on.
    pub fn begin_write(&mut self, write: u64, batches: impl IntoIterator<Item = SendBatch>) {
        self.open = Some(write);
        self.waiting.extend(batches);
    }

    /// The open write returns: its rows that the broker refused for good.
    pub fn end_write(&mut self) -> Vec<RowReject> {
        self.open = None;
        std::mem::take(&mut self.refused)
    }

    /// Sends what is waiting. After a failure nothing is lost and nothing is twice: what failed is waiting still, and the
    /// next call goes on with it.
    pub async fn settle(&mut self, until: Until) -> Result<(), Fault> {
        loop {
            let answered = self.under_way.answered();
            gravest(answered.into_iter().map(|answered| self.answered(answered)))?;
            self.begin()?;
            let done = match until {
                Until::Taken => self.unsure == 0,
                Until::Answered => self.under_way.len() == 0,
            };
            if done && self.waiting.is_empty() {
                return Ok(());
            }
            if let Some(answered) = self.under_way.next().await? {
                self.answered(answered)?;
            }
        }
    }

    fn begin(&mut self) -> Result<(), Fault> {
        while self.under_way.len() < UNDER_WAY && !self.waiting.is_empty() {
            let service = match self.idle.pop() {
                Some(service) => service,
                None => (self.connect)()?,
            };
            let Some(batch) = self.waiting.pop_front() else { return Ok(()) };
            let unsure = Some(batch.write) == self.open && batch.largest > self.taken;
            self.unsure += usize::from(unsure);
            let (topic, group, retries) = (Arc::clone(&self.topic), Arc::clone(&self.group), self.retries);
            self.under_way.begin(async move {
                let result = send(&*service, &topic, &group, &batch.messages, retries).await;
                Answered { service, batch, unsure, result }
            });
        }
        Ok(())
    }

    fn answered(&mut self, answered: Answered) -> Result<(), Fault> {
        let Answered { service, batch, unsure, result } = answered;
        self.idle.push(service);
        self.unsure -= usize::from(unsure);
        match result {
            Ok(()) => self.taken = self.taken.max(batch.largest),
            Err(fault) if is_too_large(&fault) => return self.too_large(batch, &fault),
            Err(fault) => {
                self.waiting.push_front(batch);
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Halves a batch until the message that is too large is alone.
    fn too_large(&mut self, batch: SendBatch, fault: &Fault) -> Result<(), Fault> {
        let size = batch.largest;
        match batch.rows.as_slice() {
            [row] if Some(batch.write) == self.open => {
                self.refused.push(RowReject { row: *row, reason: format!("a message of {size} bytes: {fault}") });
                Ok(())
            }
            // Its row can no longer be refused, for its write has returned. The next generation, which knows of no
            // message that was taken, waits for the answer.
            [_] => Err(Fault::restart(
                FaultKind::Sink,
                format!("a message of {size} bytes is refused, though one as large was taken: {fault}"),
            )),
            _ => {
                let [first, second] = batch.halves();
                self.waiting.push_front(second);
                self.waiting.push_front(first);
                Ok(())
            }
        }
    }
}

/// Whether the broker will never take what was sent: a message, or several together, because of their size.
fn is_too_large(fault: &Fault) -> bool {
    fault.kind == FaultKind::Poison
}

/// Sends to one queue after the other until one takes it, or the retries are used up.
async fn send(
    service: &dyn Service,
    topic: &Topic,
    group: &str,
    messages: &[Outgoing],
    retries: Retries,
) -> Result<(), Fault> {
    let mut failed: Option<Arc<str>> = None;
    let mut tries = Tries::new(retries);
    loop {
        let sent = match topic.next(failed.as_deref()).await {
            Ok(queue) => {
                let sent = service.send(&queue, group, messages).await;
                failed = Some(queue.broker);
                sent
            }
            Err(fault) => Err(fault),
        };
        if !tries.again(&sent).await {
            return sent;
        }
    }
}
