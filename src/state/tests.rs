use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::sync::watch;

use super::{
    Checkpoint, Deltas, OpenError, Opened, StateDir, Store, StoreError,
    disk::{Change, Disk, DiskError, Each},
    layout::PART_BYTES,
    worker::Worker,
};
use crate::model::{Epoch, Fingerprint, Generation, LaneId, PipelineName, SinkIdentity, SourceIdentity, Token};

pub(super) fn name(name: &str) -> PipelineName {
    PipelineName::new(name).unwrap()
}

pub(super) fn source() -> SourceIdentity {
    SourceIdentity("mns http://127.0.0.1:1 events".to_owned())
}

pub(super) fn ids(range: std::ops::Range<u64>) -> Vec<Fingerprint> {
    range.map(|n| Fingerprint::of_message(&source(), &n.to_string())).collect()
}

pub(super) fn checkpoint(pipeline: &PipelineName, opened: &Opened, epoch: u64) -> Checkpoint {
    Checkpoint {
        pipeline: pipeline.clone(),
        generation: opened.generation,
        epoch: Epoch(epoch),
        positions: BTreeMap::new(),
        forgotten: Vec::new(),
        tokens: Vec::new(),
        added: Vec::new(),
        removed: Vec::new(),
        snapshot: None,
        keys: None,
        uptime_ms: 0,
        finished: false,
    }
}

fn sorted(mut ids: Vec<(Fingerprint, u64)>) -> Vec<(Fingerprint, u64)> {
    ids.sort_unstable();
    ids
}

pub(super) fn stamped(ids: Vec<Fingerprint>, stamp: u64) -> Vec<(Fingerprint, u64)> {
    ids.into_iter().map(|id| (id, stamp)).collect()
}

pub(super) async fn open(store: &Store, pipeline: &PipelineName) -> Opened {
    store.open_generation(pipeline, &source()).await.unwrap()
}

/// The database itself. The threads of one that was just closed may hold its lock for a moment longer.
pub(super) fn database(dir: &Path) -> sled::Db {
    let begun = Instant::now();
    loop {
        match sled::open(dir.join("store")) {
            Err(sled::Error::Io(error)) if begun.elapsed() < Duration::from_secs(20) => {
                assert!(error.to_string().contains("could not acquire lock"), "{error}");
                thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}

pub(super) fn blobs(dir: &Path) -> usize {
    fs::read_dir(dir.join("store/blobs")).unwrap().count()
}

#[tokio::test]
async fn everything_a_checkpoint_records_survives_a_reopen() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    let token = Token {
        sink: SinkIdentity { connector: "filesystem".to_owned(), target: "/out".to_owned() },
        content: "[\"x\"]".to_owned(),
    };
    let lane = LaneId("queue-0".into());
    {
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        assert_eq!(opened, Opened { generation: Generation(1), ..Opened::default() });
        let mut first = checkpoint(&a, &opened, 1);
        first.added = ids(0..3);
        first.uptime_ms = 50;
        first.positions.insert(lane.clone(), 5);
        state.store().checkpoint(first).await.unwrap();
        let mut second = checkpoint(&a, &opened, 2);
        second.added = ids(3..5);
        second.removed = ids(1..2);
        second.uptime_ms = 90;
        second.tokens = vec![token.clone()];
        second.finished = true;
        let recorded = state.store().checkpoint(second).await.unwrap();
        assert_eq!((recorded.epoch, recorded.deltas), (Epoch(2), Deltas { count: 2, ids: 6 }));
    }
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    assert_eq!((opened.generation, opened.epoch, opened.uptime_ms), (Generation(2), Epoch(2), 90));
    assert_eq!(opened.positions, BTreeMap::from([(lane, 5)]), "a lane that is not named keeps its position");
    assert_eq!(opened.tokens, [token]);
    assert!(opened.finished);
    let mut expected = stamped(ids(0..1), 50);
    expected.extend(stamped(ids(2..3), 50));
    expected.extend(stamped(ids(3..5), 90));
    assert_eq!(sorted(opened.ids), sorted(expected));
}

#[tokio::test]
async fn a_position_that_is_forgotten_is_gone_and_the_others_stay() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    let lane = |number: u64| LaneId(format!("queue-{number}").into());
    {
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        let mut first = checkpoint(&a, &opened, 1);
        first.positions = (0..3).map(|number| (lane(number), number)).collect();
        state.store().checkpoint(first).await.unwrap();
        let mut second = checkpoint(&a, &opened, 2);
        second.positions = BTreeMap::from([(lane(2), 7)]);
        // One that is not known is forgotten already.
        second.forgotten = vec![lane(1), lane(9)];
        state.store().checkpoint(second).await.unwrap();
    }
    let state = StateDir::open(dir.path()).unwrap();
    assert_eq!(open(&state.store(), &a).await.positions, BTreeMap::from([(lane(0), 0), (lane(2), 7)]));
}

#[tokio::test]
async fn the_tokens_of_an_epoch_are_gone_with_the_next_one() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let opened = open(&store, &a).await;
    let mut first = checkpoint(&a, &opened, 1);
    let sink = SinkIdentity { connector: "filesystem".to_owned(), target: "/out".to_owned() };
    first.tokens = vec![Token { sink, content: String::new() }];
    store.checkpoint(first).await.unwrap();
    assert_eq!(open(&store, &a).await.tokens.len(), 1);
    let opened = open(&store, &a).await;
    assert_eq!(opened.tokens.len(), 1, "opening alone commits nothing");
    store.checkpoint(checkpoint(&a, &opened, 2)).await.unwrap();
    assert!(open(&store, &a).await.tokens.is_empty());
}

#[tokio::test]
async fn a_stale_generation_is_refused() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let unopened = store.checkpoint(checkpoint(&a, &Opened::default(), 1)).await;
    assert!(matches!(unopened, Err(StoreError::Fenced { .. })));
    let old = open(&store, &a).await;
    let new = open(&store, &a).await;
    let refused = store.checkpoint(checkpoint(&a, &old, 1)).await;
    assert_eq!(
        refused,
        Err(StoreError::Fenced { pipeline: a.clone(), generation: old.generation, current: new.generation })
    );
    store.checkpoint(checkpoint(&a, &new, 1)).await.unwrap();
}

#[tokio::test]
async fn an_epoch_is_neither_skipped_nor_recorded_twice() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let opened = open(&store, &a).await;
    store.checkpoint(checkpoint(&a, &opened, 1)).await.unwrap();
    for wrong in [0, 1, 3] {
        let refused = store.checkpoint(checkpoint(&a, &opened, wrong)).await;
        assert_eq!(refused, Err(StoreError::NotNext { pipeline: a.clone(), epoch: Epoch(wrong), last: Epoch(1) }));
    }
    store.checkpoint(checkpoint(&a, &opened, 2)).await.unwrap();
    let opened = open(&store, &a).await;
    assert_eq!(opened.epoch, Epoch(2), "epochs go on counting over generations");
    store.checkpoint(checkpoint(&a, &opened, 3)).await.unwrap();
}

#[tokio::test]
async fn the_state_of_another_source_is_refused_and_kept_once_there_is_a_checkpoint() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let other = SourceIdentity("mns http://127.0.0.1:1 others".to_owned());
    store.open_generation(&a, &other).await.unwrap();
    let opened = open(&store, &a).await;
    store.checkpoint(checkpoint(&a, &opened, 1)).await.unwrap();
    let error = store.open_generation(&a, &other).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&source().0) && text.contains(&other.0) && text.contains("another name"), "{text}");
    assert_eq!(open(&store, &a).await.generation, Generation(3), "the refused one has taken no number");
}

#[tokio::test]
async fn a_snapshot_takes_the_place_of_every_delta() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let opened = open(&store, &a).await;
    for epoch in 1..=20 {
        let mut next = checkpoint(&a, &opened, epoch);
        next.added = ids(epoch * 1000..(epoch + 1) * 1000);
        store.checkpoint(next).await.unwrap();
    }
    let mut snapshot = checkpoint(&a, &opened, 21);
    snapshot.snapshot = Some(stamped(ids(0..2), 7));
    let recorded = store.checkpoint(snapshot).await.unwrap();
    assert_eq!(recorded.deltas, Deltas { count: 1, ids: 2 });
    let mut after = checkpoint(&a, &opened, 22);
    after.added = ids(2..3);
    after.uptime_ms = 8;
    store.checkpoint(after).await.unwrap();
    drop(state);

    let mut keys = 0;
    let db = database(dir.path());
    for key in db.scan_prefix(b"p\x01ad").keys() {
        key.unwrap();
        keys += 1;
    }
    drop(db);
    assert_eq!(keys, 2, "one part for the snapshot, one for the delta after it");
    let state = StateDir::open(dir.path()).unwrap();
    let mut expected = stamped(ids(0..2), 7);
    expected.extend(stamped(ids(2..3), 8));
    assert_eq!(sorted(open(&state.store(), &a).await.ids), sorted(expected));
}

#[tokio::test]
async fn an_empty_snapshot_leaves_no_delta() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let opened = open(&store, &a).await;
    let mut first = checkpoint(&a, &opened, 1);
    first.added = ids(0..10);
    store.checkpoint(first).await.unwrap();
    let mut second = checkpoint(&a, &opened, 2);
    second.snapshot = Some(Vec::new());
    assert_eq!(store.checkpoint(second).await.unwrap().deltas, Deltas::default());
    assert!(open(&store, &a).await.ids.is_empty());
}

#[test]
fn a_snapshot_is_due_when_most_of_the_chain_is_dead_or_the_chain_is_long() {
    let due = |count, ids, live| Deltas { count, ids }.snapshot_due(live);
    assert!(!due(10, 4096, 0));
    assert!(due(10, 4097, 0));
    assert!(!due(10, 2_000_000, 1_000_000));
    assert!(due(257, 257, 10));
    assert!(!due(1000, 1_000_000, 1_000_000));
}

#[tokio::test]
async fn pipelines_whose_names_begin_alike_do_not_mix() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = state.store();
    for (at, pipeline) in ["a", "a.b", "ad", "ar"].into_iter().enumerate() {
        let pipeline = name(pipeline);
        let opened = open(&store, &pipeline).await;
        let mut next = checkpoint(&pipeline, &opened, 1);
        next.added = ids(at as u64..at as u64 + 1);
        store.checkpoint(next).await.unwrap();
    }
    for (at, pipeline) in ["a", "a.b", "ad", "ar"].into_iter().enumerate() {
        let opened = open(&store, &name(pipeline)).await;
        assert_eq!(opened.ids, stamped(ids(at as u64..at as u64 + 1), 0));
    }
}

#[tokio::test]
async fn no_value_goes_to_a_file_that_is_never_synced() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let opened = open(&store, &a).await;
    let lane = |n: u64| LaneId(format!("cluster/namespace/topic-with-a-long-name/broker-{}/{n}", n % 7).into());
    for epoch in 1..=5 {
        let mut next = checkpoint(&a, &opened, epoch);
        next.positions = (0..1000).map(|n| (lane(n), n * epoch)).collect();
        next.added = if epoch == 3 { ids(0..100_000) } else { ids(200_000..200_100) };
        store.checkpoint(next).await.unwrap();
        assert_eq!(blobs(dir.path()), 0, "epoch {epoch}");
    }
    drop(state);
    let db = database(dir.path());
    assert!(db.iter().values().all(|value| value.unwrap().len() <= PART_BYTES));
    drop(db);
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    assert_eq!((opened.ids.len(), opened.positions.len()), (100_100, 1000));
    assert_eq!(blobs(dir.path()), 0);
}

#[tokio::test]
async fn a_record_that_shrinks_leaves_no_part_behind() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let (store, a) = (state.store(), name("a"));
    let opened = open(&store, &a).await;
    let mut large = checkpoint(&a, &opened, 1);
    let sink = SinkIdentity { connector: "filesystem".to_owned(), target: "/out".to_owned() };
    large.tokens = vec![Token { sink, content: "x".repeat(3 * PART_BYTES) }];
    store.checkpoint(large).await.unwrap();
    let opened = open(&store, &a).await;
    store.checkpoint(checkpoint(&a, &opened, 2)).await.unwrap();
    assert_eq!(open(&store, &a).await.epoch, Epoch(2));
}

#[tokio::test]
async fn many_pipelines_at_once_are_each_answered_with_their_own() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = state.store();
    let pipelines: Vec<_> = (0..30).map(|n| name(&format!("p{n}"))).collect();
    let all = futures_util::future::join_all(pipelines.iter().map(async |pipeline| {
        let opened = open(&store, pipeline).await;
        for epoch in 1..=10 {
            assert_eq!(store.checkpoint(checkpoint(pipeline, &opened, epoch)).await.unwrap().epoch, Epoch(epoch));
        }
        // Opened again in the same group as its last checkpoint, perhaps.
        open(&store, pipeline).await
    }));
    for opened in all.await {
        assert_eq!((opened.generation, opened.epoch), (Generation(2), Epoch(10)));
    }
}

#[tokio::test]
async fn a_second_supervisor_is_told_who_holds_the_directory() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let error = StateDir::open(dir.path()).unwrap_err();
    assert!(matches!(&error, OpenError::Locked { pid: Some(pid), address: None, .. } if *pid == std::process::id()));
    state.set_address("127.0.0.1:9870").unwrap();
    let text = StateDir::open(dir.path()).unwrap_err().to_string();
    let pid = std::process::id().to_string();
    assert!(text.contains(&pid) && text.contains("127.0.0.1:9870"), "{text}");
    assert!(text.contains(dir.path().to_str().unwrap()), "{text}");
    drop(state);
    StateDir::open(dir.path()).unwrap();
}

#[test]
fn the_incarnation_is_made_once() {
    let dir = TempDir::new().unwrap();
    let deep = dir.path().join("not/yet/there");
    let first = StateDir::open(&deep).unwrap().incarnation().to_owned();
    assert!(first.len() == 16 && first.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "{first}");
    assert_eq!(StateDir::open(&deep).unwrap().incarnation(), first);
    let other = TempDir::new().unwrap();
    assert_ne!(StateDir::open(other.path()).unwrap().incarnation(), first);
}

fn refusal(dir: &Path) -> String {
    match StateDir::open(dir) {
        Err(error @ OpenError::Unreadable { .. }) => {
            let text = error.to_string();
            assert!(text.contains(dir.to_str().unwrap()) && text.contains("aside"), "{text}");
            text
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_that_is_broken_or_emptied_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    open(&state.store(), &name("a")).await;
    drop(state);
    let db = dir.path().join("store/db");
    let good = fs::read(&db).unwrap();
    fs::write(&db, vec![0x5a; good.len()]).unwrap();
    refusal(dir.path());
    fs::remove_dir_all(dir.path().join("store")).unwrap();
    refusal(dir.path());
}

#[test]
fn a_database_of_another_program_is_refused() {
    let dir = TempDir::new().unwrap();
    let db = database(dir.path());
    db.insert("something", "else").unwrap();
    db.flush().unwrap();
    drop(db);
    assert!(refusal(dir.path()).contains("not one of this program"));
}

#[test]
fn a_database_in_use_without_our_lock_is_not_called_broken() {
    let dir = TempDir::new().unwrap();
    drop(StateDir::open(dir.path()).unwrap());
    let db = database(dir.path());
    assert!(matches!(StateDir::open(dir.path()), Err(OpenError::Locked { pid: None, .. })));
    drop(db);
    StateDir::open(dir.path()).unwrap();
}

#[test]
fn a_store_of_another_format_is_refused() {
    let dir = TempDir::new().unwrap();
    drop(StateDir::open(dir.path()).unwrap());
    let db = database(dir.path());
    db.insert("m", &br#"{"format":2,"incarnation":"0123456789abcdef"}"#[..]).unwrap();
    db.flush().unwrap();
    drop(db);
    assert!(refusal(dir.path()).contains("format is 2"));
}

#[tokio::test]
async fn state_that_lost_some_of_its_ids_is_refused() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    {
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        for epoch in 1..=3 {
            let mut next = checkpoint(&a, &opened, epoch);
            next.added = ids(epoch..epoch + 1);
            state.store().checkpoint(next).await.unwrap();
        }
    }
    let db = database(dir.path());
    let key = db.scan_prefix(b"p\x01ad").keys().nth(1).unwrap().unwrap();
    db.remove(key).unwrap();
    db.flush().unwrap();
    drop(db);
    let state = StateDir::open(dir.path()).unwrap();
    let refused = state.store().open_generation(&a, &source()).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    open(&state.store(), &name("b")).await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = state.store();
    drop(state);
    assert_eq!(store.open_generation(&name("a"), &source()).await, Err(StoreError::Closed));
}

/// Takes what it is told to until its sync fails; says what was asked of it.
struct FailingDisk {
    calls: mpsc::Sender<&'static str>,
    syncs_left: u32,
    panics: bool,
}

impl Disk for FailingDisk {
    fn scan(&self, _: &[u8], _: &mut Each<'_>) -> Result<(), DiskError> {
        Ok(())
    }

    fn apply(&mut self, _: Vec<Change>) -> Result<(), DiskError> {
        self.calls.send("apply").unwrap();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.calls.send("flush").unwrap();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.calls.send("sync").unwrap();
        match self.syncs_left.checked_sub(1) {
            Some(left) => self.syncs_left = left,
            None if self.panics => panic!("the disk is on fire"),
            None => return Err("the disk is on fire".into()),
        }
        Ok(())
    }
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_believed_or_written() {
    for panics in [false, true] {
        let (calls, called) = mpsc::channel();
        let (commands, received) = mpsc::channel();
        let (failed, failure) = watch::channel(None);
        let disk = FailingDisk { calls, syncs_left: 1, panics };
        let worker = thread::spawn(move || Worker::new(Box::new(disk), failed).run(&received));
        let store = Store { commands, failure };
        let a = name("a");
        let opened = open(&store, &a).await;
        let first = store.checkpoint(checkpoint(&a, &opened, 1)).await;
        assert!(matches!(first, Err(StoreError::Poisoned(_))), "{first:?}");
        assert!(store.failed().await.contains("on fire"));
        let later = store.checkpoint(checkpoint(&a, &opened, 1)).await;
        assert!(matches!(later, Err(StoreError::Poisoned(_))), "{later:?}");
        let later = store.open_generation(&name("b"), &source()).await;
        assert!(matches!(later, Err(StoreError::Poisoned(_))), "{later:?}");
        drop(store);
        worker.join().unwrap();
        let calls: Vec<_> = called.iter().collect();
        assert_eq!(calls, ["apply", "flush", "sync", "apply", "flush", "sync"]);
    }
}

#[tokio::test]
async fn what_waits_together_shares_one_sync() {
    let (calls, called) = mpsc::channel();
    let (commands, received) = mpsc::channel();
    let (failed, failure) = watch::channel(None);
    let store = Store { commands, failure };
    let names: Vec<_> = (0..8).map(|n| name(&format!("p{n}"))).collect();
    let mut asked: Vec<_> = names.iter().map(|name| Box::pin(open(&store, name))).collect();
    for asked in &mut asked {
        assert!(futures_util::poll!(asked).is_pending());
    }
    let disk = FailingDisk { calls, syncs_left: 1, panics: false };
    let worker = thread::spawn(move || Worker::new(Box::new(disk), failed).run(&received));
    let generations: BTreeSet<_> =
        futures_util::future::join_all(asked).await.into_iter().map(|opened| opened.generation).collect();
    assert_eq!(generations, BTreeSet::from([Generation(1)]));
    drop(store);
    worker.join().unwrap();
    assert_eq!(called.iter().filter(|call| *call == "sync").count(), 1);
}
