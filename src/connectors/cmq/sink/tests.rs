use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::{sends::Target, *};
use crate::{
    definition::Options,
    formats,
    model::{Column, ColumnType, FaultKind, Mend, Schema},
};

/// A service in memory. A send waits for a permit.
#[derive(Debug)]
struct Fake {
    held: Mutex<Held>,
    permits: Semaphore,
}

#[derive(Debug, Default)]
struct Held {
    batches: Vec<Vec<String>>,
    failures: VecDeque<Fault>,
    limit: Option<usize>,
}

impl Fake {
    fn new() -> Arc<Self> {
        Arc::new(Self { held: Mutex::default(), permits: Semaphore::new(Semaphore::MAX_PERMITS) })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    /// All bodies, sorted.
    fn bodies(&self) -> Vec<String> {
        let mut bodies: Vec<_> = self.held().batches.concat();
        bodies.sort();
        bodies
    }

    fn sizes(&self) -> Vec<usize> {
        self.held().batches.iter().map(Vec::len).collect()
    }

    fn fails(&self, times: usize) {
        self.held().failures.extend((0..times).map(|_| Fault::retry(FaultKind::Throttled, "busy")));
    }
}

#[async_trait]
impl Target for Fake {
    async fn send(&self, bodies: &[Bytes]) -> Result<(), Fault> {
        self.permits.acquire().await.unwrap().forget();
        let mut held = self.held();
        if let Some(fault) = held.failures.pop_front() {
            return Err(fault);
        }
        if held.limit.is_some_and(|limit| bodies.iter().any(|body| body.len() > limit)) {
            return Err(Fault::never(FaultKind::Poison, "send: the service answers 4400"));
        }
        held.batches.push(bodies.iter().map(|body| String::from_utf8(body.to_vec()).unwrap()).collect());
        Ok(())
    }
}

fn sink(fake: &Arc<Fake>, options: SendOptions) -> CmqSink {
    let ty = ColumnType::parse("STRING").unwrap();
    let schema = Schema { columns: vec![Column { name: "b".to_owned(), ty, metadata: None, is_virtual: false }] };
    let encoder = formats::encoder("raw", &schema, &Options::default()).unwrap();
    let target: Arc<dyn Target> = Arc::clone(fake) as Arc<dyn Target>;
    let identity = SinkIdentity { connector: "cmq".to_owned(), target: "gz q".to_owned() };
    CmqSink::new(identity, Messages::new(encoder), Sends::new(target, options))
}

fn options(max_block: Duration, retries: u32) -> SendOptions {
    SendOptions { batch_size: 4, max_block, retries }
}

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(3600);

fn rows<T: AsRef<str>>(bodies: &[T]) -> RecordBatch {
    let array: StringArray = bodies.iter().map(|body| Some(body.as_ref())).collect();
    RecordBatch::try_from_iter_with_nullable([("b", Arc::new(array) as ArrayRef, true)]).unwrap()
}

async fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("{number:03}")).collect()
}

#[tokio::test]
async fn what_a_write_brings_is_sent_at_once_in_full_and_part_batches() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(NOW, 0));
    assert_eq!(sink.write(&rows(&numbered(0..9))).await.unwrap(), []);
    sink.write(&rows(&numbered(9..10))).await.unwrap();
    assert_eq!(sink.prepare(Epoch(1)).await.unwrap(), None);
    let mut sizes = fake.sizes();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1, 4, 4]);
    assert_eq!(fake.bodies(), numbered(0..10));
}

#[tokio::test]
async fn a_part_filled_batch_waits_for_more_and_is_sent_when_it_is_full() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(LONG, 0));
    for row in 0..9 {
        sink.write(&rows(&numbered(row..row + 1))).await.unwrap();
    }
    until(|| fake.sizes() == [4, 4]).await;
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.sizes(), [4, 4, 1], "a checkpoint waits for no more rows");
    assert_eq!(fake.bodies(), numbered(0..9));
}

#[tokio::test]
async fn a_part_filled_batch_is_sent_at_its_time_without_another_write() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(Duration::from_secs(1), 0));
    let begun = Instant::now();
    sink.write(&rows(&["1"])).await.unwrap();
    sink.write(&rows(&["2"])).await.unwrap();
    until(|| !fake.sizes().is_empty()).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(fake.bodies(), ["1", "2"]);
    assert_eq!(fake.sizes(), [2]);
}

#[tokio::test]
async fn the_time_of_a_batch_counts_from_its_first_row() {
    let fake = Fake::new();
    let options = SendOptions { batch_size: 1000, max_block: Duration::from_millis(300), retries: 0 };
    let mut sink = sink(&fake, options);
    let mut writes = 0;
    while fake.sizes().is_empty() {
        sink.write(&rows(&["1"])).await.unwrap();
        writes += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(fake.sizes()[0] < 1000 && writes < 1000, "it was sent before it was full");
}

#[tokio::test]
async fn a_batch_holds_at_most_64_kb() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(NOW, 0));
    let large: Vec<String> = (0..4).map(|row| row.to_string().repeat(30 << 10)).collect();
    sink.write(&rows(&large)).await.unwrap();
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.sizes(), [2, 2]);
}

#[tokio::test]
async fn a_send_is_tried_again_as_often_as_the_options_say_and_then_the_write_or_the_prepare_fails() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(NOW, 2));
    fake.fails(2);
    sink.write(&rows(&["1"])).await.unwrap();
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), ["1"]);
    fake.fails(3);
    sink.write(&rows(&["2"])).await.unwrap();
    let fault = sink.prepare(Epoch(2)).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Throttled, Mend::Retry));
    assert_eq!(fake.bodies(), ["1"]);
    sink.prepare(Epoch(2)).await.unwrap();
    assert_eq!(fake.bodies(), ["1", "2"]);
}

#[tokio::test]
async fn a_write_that_failed_and_is_called_again_sends_every_row_once() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(NOW, 0));
    let bodies = numbered(0..64);
    let rows = rows(&bodies);
    fake.fails(7);
    let mut failed = 0;
    while sink.write(&rows).await.is_err() {
        failed += 1;
        assert!(failed < 4, "what failed together is told together");
    }
    while sink.prepare(Epoch(1)).await.is_err() {}
    assert_eq!(fake.bodies(), bodies);
}

#[tokio::test]
async fn prepare_waits_for_every_send() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(NOW, 0));
    fake.permits.forget_permits(Semaphore::MAX_PERMITS);
    sink.write(&rows(&numbered(0..12))).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), sink.prepare(Epoch(1))).await.is_err());
    fake.permits.add_permits(2);
    assert!(tokio::time::timeout(Duration::from_millis(50), sink.prepare(Epoch(1))).await.is_err());
    fake.permits.add_permits(1);
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), numbered(0..12));
}

#[tokio::test]
async fn a_service_that_does_not_answer_holds_up_the_writes_after_a_bounded_number_of_batches() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(NOW, 0));
    fake.permits.forget_permits(Semaphore::MAX_PERMITS);
    let mut writes = 0;
    while tokio::time::timeout(Duration::from_millis(50), sink.write(&rows(&numbered(0..4)))).await.is_ok() {
        writes += 1;
        assert!(writes < 100);
    }
    assert_eq!(writes, 8);
}

#[tokio::test]
async fn rows_whose_message_is_too_large_are_answered_and_their_neighbours_written() {
    let fake = Fake::new();
    let mut sink = sink(&fake, options(LONG, 3));
    fake.held().limit = Some(2000);
    let (large, larger) = ("a".repeat(2001), "b".repeat((1 << 20) + 1));
    // The batch is not full, and the write does not wait for more.
    let given = rows(&["1", "2", &large, &larger, ""]);
    let written = tokio::time::timeout(Duration::from_secs(30), sink.write(&given)).await;
    let refused = written.expect("an answer in time").unwrap();
    let told: Vec<_> = refused.iter().map(|reject| (reject.row, reject.reason.as_str())).collect();
    assert_eq!(
        told,
        [
            (2, "a message of 2001 bytes: send: the service answers 4400"),
            (3, "its message would have 1048577 bytes; the service takes 1048576 at most"),
            (4, "its message would be empty, which is none"),
        ]
    );
    sink.prepare(Epoch(1)).await.unwrap();
    assert_eq!(fake.bodies(), ["1", "2"]);
}

#[tokio::test]
async fn a_limit_that_shrinks_is_met_by_a_new_generation() {
    let fake = Fake::new();
    let (body, mut first) = ("x".repeat(3000), sink(&fake, options(NOW, 0)));
    first.write(&rows(&[&body])).await.unwrap();
    fake.held().limit = Some(2000);
    first.write(&rows(&[&body])).await.unwrap();
    let fault = first.prepare(Epoch(1)).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Sink, Mend::Restart));
    assert_eq!(sink(&fake, options(NOW, 0)).write(&rows(&[&body])).await.unwrap().len(), 1);
}
