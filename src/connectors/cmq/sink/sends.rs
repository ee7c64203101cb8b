//! The sends of a sink: several under way, each tried as often as the options say, nothing forgotten on a failure.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::{task::AbortHandle, time::Instant};

use super::messages::Outgoing;
use crate::{
    connector::RowReject,
    connectors::{
        cmq::client::Client,
        outstanding::{Retries, Tries, UnderWay, gravest},
    },
    model::{Fault, FaultKind},
};

/// Sends under way at once. So what the sink holds beside one write is at most so many batches.
const UNDER_WAY: usize = 8;
/// The bodies of one batch together. The documentation of the TDMQ edition contradicts itself: one page says 64 KB, as for
/// CMQ, another one that a batch above 1 MB is refused. The smaller one is right with both.
pub const BATCH_BYTES: usize = 64 << 10;
/// No queue refuses a message that is not larger: 1024 is the least that an owner may set as a queue's limit.
const ALWAYS_TAKEN: usize = 1024;
/// Whether a larger one is taken depends on how long it is as a form, where a byte may be three, so none says it of another.
const SURELY_TAKEN: usize = (1 << 20) / 3;
/// The pause before a send is tried again: as in the sinks of RocketMQ.
const RETRY_SLEEP: Duration = Duration::from_millis(200);

/// Takes bodies, all of them or none.
#[async_trait]
pub trait Target: std::fmt::Debug + Send + Sync {
    /// As [`Client::send`].
    async fn send(&self, bodies: &[Bytes]) -> Result<(), Fault>;
}

#[async_trait]
impl Target for Client {
    async fn send(&self, bodies: &[Bytes]) -> Result<(), Fault> {
        Self::send(self, bodies).await
    }
}

/// What the options say of sends.
#[derive(Debug, Clone, Copy)]
pub struct SendOptions {
    /// Most messages of a batch.
    pub batch_size: usize,
    /// How long a batch that is not full waits for more.
    pub max_block: Duration,
    /// How often a failed send is tried again.
    pub retries: u32,
}

type Batch = Vec<Outgoing>;

/// See the module.
#[derive(Debug)]
pub struct Sends {
    target: Arc<dyn Target>,
    options: SendOptions,
    /// Batches that are to be sent.
    waiting: VecDeque<Batch>,
    /// The one that is not full.
    filling: Option<Filling>,
    /// `None`: the batch was taken back.
    under_way: UnderWay<Option<Answered>>,
    /// The write that has not returned yet.
    open: Option<u64>,
    /// Its rows that the service may yet refuse as too large.
    unsure: BTreeSet<usize>,
    /// The largest message the service has taken, in bytes. What is not larger is taken too.
    taken: usize,
    /// Rows of the open write that were refused.
    refused: Vec<RowReject>,
}

/// A batch that waits for more. Its task sends it when its time has come, whether anything is written then or not.
#[derive(Debug)]
struct Filling {
    /// `None` once the task has it.
    batch: Arc<Mutex<Option<Batch>>>,
    until: Instant,
    task: AbortHandle,
}

#[derive(Debug)]
struct Answered {
    batch: Batch,
    result: Result<(), Fault>,
}

/// What [`Sends::settle`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Every row of the open write is sent, being sent or in the batch that is not full, and it is known which of them
    /// are refused.
    Taken,
    /// Every send is answered, and no batch waits for more.
    Answered,
}

impl Sends {
    /// Nothing is connected before the first send.
    pub fn new(target: Arc<dyn Target>, options: SendOptions) -> Self {
        Self {
            target,
            options,
            waiting: VecDeque::new(),
            filling: None,
            under_way: UnderWay::default(),
            open: None,
            unsure: BTreeSet::new(),
            taken: ALWAYS_TAKEN,
            refused: Vec::new(),
        }
    }

    /// Takes the messages of a new write, which is open from now on.
    pub fn begin_write(&mut self, write: u64, messages: Vec<Outgoing>) {
        self.open = Some(write);
        let large = messages.iter().filter(|message| message.body.len() > self.taken.min(SURELY_TAKEN));
        self.unsure.extend(large.map(|message| message.row));
        let (mut last, until) = self.unfilled();
        let mut bytes = size(&last);
        for message in messages {
            let size = message.body.len();
            if last.len() >= self.options.batch_size || (!last.is_empty() && bytes + size > BATCH_BYTES) {
                self.waiting.push_back(std::mem::take(&mut last));
                bytes = 0;
            }
            bytes += size;
            last.push(message);
        }
        let full = last.len() >= self.options.batch_size || bytes >= BATCH_BYTES;
        // Of a new batch the time begins now.
        let until = until.filter(|_| last.iter().any(|message| message.write != write));
        let until = until.unwrap_or_else(|| Instant::now() + self.options.max_block);
        // A row whose message may be refused must not wait, for its write waits for it.
        if full || self.options.max_block.is_zero() || !self.unsure.is_empty() {
            self.push(last);
        } else if !last.is_empty() {
            self.fill(last, until);
        }
    }

    fn push(&mut self, batch: Batch) {
        if !batch.is_empty() {
            self.waiting.push_back(batch);
        }
    }

    /// Takes back the batch that waits for more, with the time it has.
    fn unfilled(&mut self) -> (Batch, Option<Instant>) {
        let Some(filling) = self.filling.take() else { return (Batch::new(), None) };
        let batch = filling.batch.lock().unwrap_or_else(PoisonError::into_inner).take();
        match batch {
            Some(batch) => {
                filling.task.abort();
                (batch, Some(filling.until))
            }
            // It is being sent just now.
            None => (Batch::new(), None),
        }
    }

    fn fill(&mut self, batch: Batch, until: Instant) {
        let batch = Arc::new(Mutex::new(Some(batch)));
        let (filling, target, retries) = (Arc::clone(&batch), Arc::clone(&self.target), self.options.retries);
        let task = self.under_way.begin(async move {
            tokio::time::sleep_until(until).await;
            let batch = filling.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some(send(&*target, batch, retries).await)
        });
        self.filling = Some(Filling { batch, until, task });
    }

    /// The open write returns: its rows that the service refused for good.
    pub fn end_write(&mut self) -> Vec<RowReject> {
        self.open = None;
        std::mem::take(&mut self.refused)
    }

    /// Sends what is waiting. After a failure nothing is lost and nothing is twice: what failed is waiting still, and the
    /// next call goes on with it.
    pub async fn settle(&mut self, until: Until) -> Result<(), Fault> {
        if until == Until::Answered {
            let (batch, _) = self.unfilled();
            self.push(batch);
        }
        loop {
            let answered = self.under_way.answered();
            gravest(answered.into_iter().map(|answered| self.answered(answered)))?;
            self.begin();
            let done = match until {
                Until::Taken => self.unsure.is_empty(),
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

    fn begin(&mut self) {
        while self.under_way.len() < UNDER_WAY
            && let Some(batch) = self.waiting.pop_front()
        {
            let (target, retries) = (Arc::clone(&self.target), self.options.retries);
            self.under_way.begin(async move { Some(send(&*target, batch, retries).await) });
        }
    }

    fn answered(&mut self, answered: Option<Answered>) -> Result<(), Fault> {
        let Some(Answered { batch, result }) = answered else { return Ok(()) };
        match result {
            Ok(()) => {
                self.taken = batch.iter().map(|message| message.body.len()).fold(self.taken, usize::max);
                for message in batch.iter().filter(|message| Some(message.write) == self.open) {
                    self.unsure.remove(&message.row);
                }
                Ok(())
            }
            Err(fault) if fault.kind == FaultKind::Poison => self.too_large(batch, &fault),
            Err(fault) => {
                self.waiting.push_front(batch);
                Err(fault)
            }
        }
    }

    /// Halves a batch until the message that is too large is alone.
    fn too_large(&mut self, mut batch: Batch, fault: &Fault) -> Result<(), Fault> {
        match batch.as_slice() {
            [message] if Some(message.write) == self.open => {
                let (row, size) = (message.row, message.body.len());
                self.unsure.remove(&row);
                self.refused.push(RowReject { row, reason: format!("a message of {size} bytes: {fault}") });
                Ok(())
            }
            // Its row can no longer be refused, for its write has returned. The next generation, which knows of no
            // message that was taken, waits for the answer.
            [message] => {
                let size = message.body.len();
                let text = format!("a message of {size} bytes is refused, though one as large was taken: {fault}");
                Err(Fault::restart(FaultKind::Sink, text))
            }
            _ => {
                let later = batch.split_off(batch.len() / 2);
                self.waiting.push_front(later);
                self.waiting.push_front(batch);
                Ok(())
            }
        }
    }
}

fn size(batch: &[Outgoing]) -> usize {
    batch.iter().map(|message| message.body.len()).sum()
}

/// Sends until it works, or the retries are used up.
async fn send(target: &dyn Target, batch: Batch, retries: u32) -> Answered {
    let bodies: Vec<Bytes> = batch.iter().map(|message| message.body.clone()).collect();
    let mut tries = Tries::new(Retries { times: retries, pause: RETRY_SLEEP });
    loop {
        let result = target.send(&bodies).await;
        if !tries.again(&result).await {
            return Answered { batch, result };
        }
    }
}
