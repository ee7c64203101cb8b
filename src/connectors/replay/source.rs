//! The source: letters as messages, and when the last one has been handed on.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use super::letters::{Letter, Letters};
use crate::{
    connector::{Acknowledged, Acknowledger, OpenedQueue, QueueFacts, QueueReader, QueueSource},
    connectors::plan::Transport,
    definition::MetadataKey,
    model::{Body, Fault, FaultKind, LaneId, Message, Receipt, SourceIdentity, Stage},
    telemetry::work_as_here,
};

/// Most letters of one poll, and about so many bytes of bodies.
const POLL_LETTERS: usize = 256;
const POLL_BYTES: usize = 1 << 20;
/// How long a poll waits where nothing comes any more.
const PAUSE: Duration = Duration::from_secs(1);
/// Ids are kept for as long as there is a state: the files may be given again at any time.
const FOR_EVER: Duration = Duration::from_secs(1000 * 366 * 86_400);

/// How far the reading of the files has come.
#[derive(Debug, Default)]
pub struct Progress(AtomicBool);

impl Progress {
    /// Whether every letter has been handed on by the generation that runs.
    pub fn is_at_end(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, at_end: bool) {
        self.0.store(at_end, Ordering::Release);
    }
}

/// Files of dead letters. It has no end by itself: a pipeline that has finished would stay so, and other files of the
/// same pipeline could never be replayed.
pub(super) struct ReplaySource {
    pub identity: SourceIdentity,
    pub files: Arc<[PathBuf]>,
    pub keys: &'static [MetadataKey],
    pub transport: Transport,
    pub progress: Arc<Progress>,
}

#[async_trait]
impl QueueSource for ReplaySource {
    fn identity(&self) -> SourceIdentity {
        self.identity.clone()
    }

    async fn open(&self) -> Result<OpenedQueue, Fault> {
        self.progress.set(false);
        let reader = ReplayReader {
            letters: Arc::new(Mutex::new(Letters::new(&self.files))),
            keys: self.keys,
            transport: Arc::clone(&self.transport),
            progress: Arc::clone(&self.progress),
        };
        Ok(OpenedQueue {
            lane: LaneId("letters".into()),
            reader: Arc::new(reader),
            acknowledger: Arc::new(NeverDeleted),
            // A poll that begins says that what the one before it brought is handed on.
            concurrency: 1,
            facts: QueueFacts { visibility_timeout: None, retention: Some(FOR_EVER) },
        })
    }
}

struct ReplayReader {
    letters: Arc<Mutex<Letters>>,
    keys: &'static [MetadataKey],
    transport: Transport,
    progress: Arc<Progress>,
}

impl ReplayReader {
    fn message(&self, letter: Letter) -> Result<Message, String> {
        let meta = letter.meta(self.keys)?;
        let body = match (letter.stage, letter.row) {
            (Stage::Transport, _) => (self.transport)(letter.body),
            (_, Some(row)) => Body::Row(letter.body, row),
            (_, None) => Body::Bytes(letter.body),
        };
        let id: Arc<str> = letter.id.into();
        let receipt = Receipt {
            handle: Arc::clone(&id),
            next_visible_ms: i64::MAX,
            dequeue_count: 1,
            invisible_for: Duration::from_secs(86_400),
        };
        Ok(Message { id, body, meta, receipt: Some(receipt) })
    }
}

#[async_trait]
impl QueueReader for ReplayReader {
    async fn poll(&self) -> Result<Vec<Message>, Fault> {
        let letters = Arc::clone(&self.letters);
        let read =
            spawn_blocking(work_as_here(move || take(&mut letters.lock().unwrap_or_else(PoisonError::into_inner))));
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        let messages = read.and_then(|letters| letters.into_iter().map(|letter| self.message(letter)).collect());
        let messages: Vec<Message> = messages.map_err(|why: String| Fault::never(FaultKind::Missing, why))?;
        if messages.is_empty() {
            self.progress.set(true);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(messages)
    }

    fn patience(&self) -> Duration {
        PAUSE
    }
}

fn take(letters: &mut Letters) -> Result<Vec<Letter>, String> {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    while taken.len() < POLL_LETTERS && bytes < POLL_BYTES {
        let Some(letter) = letters.next() else { break };
        let (_, letter) = letter.map_err(|mistake| format!("{}: {}", mistake.place, mistake.why))?;
        bytes += letter.body.len();
        taken.push(letter);
    }
    Ok(taken)
}

/// A letter stays where it is, and so does its id: never is a delete confirmed.
struct NeverDeleted;

#[async_trait]
impl Acknowledger for NeverDeleted {
    fn most(&self) -> usize {
        POLL_LETTERS
    }

    fn retries(&self) -> u32 {
        0
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Result<Vec<Acknowledged>, Fault> {
        Ok(vec![Acknowledged::Unknown; receipts.len()])
    }

    fn extends(&self) -> bool {
        false
    }

    async fn extend(&self, _: &Receipt, _: Duration) -> Result<Option<Receipt>, Fault> {
        Ok(None)
    }
}
