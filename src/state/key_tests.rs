//! Primary keys in the store: what comes back, what is freed, and what is refused.

use std::{ops::Range, path::Path, time::Duration};

use tempfile::TempDir;

use super::{
    Checkpoint, KeyChanges, Opened, StateDir, Stopped, StoreError,
    key_log::{PAGE_KEYS, SeenKey},
    layout::{Record, record_key, seal},
    tests::{blobs, checkpoint, database, ids, name, open, source},
};
use crate::model::{Epoch, Fingerprint, Generation, PipelineName, SinkIdentity, Token};

const WINDOW: Duration = Duration::from_secs(10);

/// Keys by number, each first seen in the millisecond of its number.
fn keys(range: Range<u64>) -> Vec<SeenKey> {
    range.map(|n| (Fingerprint::of_parts(["key", &n.to_string()]), n)).collect()
}

fn with_keys(pipeline: &PipelineName, opened: &Opened, epoch: u64, added: Vec<SeenKey>, clock_ms: u64) -> Checkpoint {
    let keys = Some(KeyChanges { added, clock_ms, window: WINDOW });
    Checkpoint { keys, ..checkpoint(pipeline, opened, epoch) }
}

/// Pages in the database.
fn pages(dir: &Path) -> usize {
    database(dir).scan_prefix(b"p\x01ak").count()
}

#[tokio::test]
async fn keys_come_back_in_their_order_with_when_they_were_first_seen_and_the_clock() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    {
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        assert_eq!((opened.keys.len(), opened.key_clock_ms), (0, 0));
        for (epoch, range) in [(1, 0..3), (2, 3..3), (3, 3..500), (4, 500..501)] {
            let clock_ms = range.end;
            state.store().checkpoint(with_keys(&a, &opened, epoch, keys(range), clock_ms)).await.unwrap();
        }
        assert_eq!(open(&state.store(), &a).await.keys, keys(0..501), "opened again in the same process");
    }
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    assert_eq!((opened.keys, opened.key_clock_ms), (keys(0..501), 501));
    assert_eq!(blobs(dir.path()), 0);
}

#[tokio::test]
async fn however_few_keys_a_checkpoint_brings_pages_are_full() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    for (process, epochs) in [(0, 1..200), (1, 200..400)] {
        // The page that the process before had begun is filled up by the next one.
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        assert_eq!(opened.keys.len() as u64, process * 199);
        for epoch in epochs {
            let next = with_keys(&a, &opened, epoch, keys(epoch..epoch + 1), epoch);
            state.store().checkpoint(next).await.unwrap();
        }
    }
    assert_eq!(pages(dir.path()), 399usize.div_ceil(PAGE_KEYS));
    let state = StateDir::open(dir.path()).unwrap();
    assert_eq!(open(&state.store(), &a).await.keys, keys(1..400));
}

#[tokio::test]
async fn what_is_on_the_disk_is_what_is_in_the_window_and_little_more() {
    const EACH: u64 = 1000;
    let dir = TempDir::new().unwrap();
    let a = name("a");
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    // Forty windows of ten thousand keys each.
    for epoch in 1..=400 {
        let next = with_keys(&a, &opened, epoch, keys((epoch - 1) * EACH..epoch * EACH), epoch * EACH);
        state.store().checkpoint(next).await.unwrap();
        assert_eq!(blobs(dir.path()), 0);
    }
    let known = open(&state.store(), &a).await.keys;
    let live = u64::try_from(WINDOW.as_millis()).unwrap();
    let last = 400 * EACH;
    assert!(known.ends_with(&keys(last - live..last)), "nothing that is in the window is gone");
    assert!(known.len() as u64 <= live + EACH + PAGE_KEYS as u64, "{}", known.len());
    // With time alone the rest goes too.
    let opened = open(&state.store(), &a).await;
    let next = with_keys(&a, &opened, 401, Vec::new(), last + live);
    state.store().checkpoint(next).await.unwrap();
    assert!(open(&state.store(), &a).await.keys.is_empty());
    // And what comes after begins anew.
    let opened = open(&state.store(), &a).await;
    let later = keys(last + live..last + live + 2);
    state.store().checkpoint(with_keys(&a, &opened, 402, later.clone(), last + live + 2)).await.unwrap();
    drop(state);
    assert_eq!(pages(dir.path()), 1);
    let state = StateDir::open(dir.path()).unwrap();
    assert_eq!(open(&state.store(), &a).await.keys, later);
}

#[tokio::test]
async fn a_page_goes_when_its_last_key_is_over_and_not_a_millisecond_before() {
    let dir = TempDir::new().unwrap();
    let (a, window) = (name("a"), u64::try_from(WINDOW.as_millis()).unwrap());
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    state.store().checkpoint(with_keys(&a, &opened, 1, keys(0..8), 8)).await.unwrap();
    state.store().checkpoint(with_keys(&a, &opened, 2, Vec::new(), 7 + window - 1)).await.unwrap();
    assert_eq!(open(&state.store(), &a).await.keys.len(), 8);
    let opened = open(&state.store(), &a).await;
    state.store().checkpoint(with_keys(&a, &opened, 3, Vec::new(), 7 + window)).await.unwrap();
    assert_eq!(open(&state.store(), &a).await.keys.len(), 0);
}

#[tokio::test]
async fn a_pipeline_without_a_primary_key_keeps_none_of_an_earlier_one() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    state.store().checkpoint(with_keys(&a, &opened, 1, keys(0..1000), 1000)).await.unwrap();
    assert_eq!(open(&state.store(), &a).await.keys.len(), 1000, "opening alone forgets nothing");
    let opened = open(&state.store(), &a).await;
    state.store().checkpoint(checkpoint(&a, &opened, 2)).await.unwrap();
    let opened = open(&state.store(), &a).await;
    assert_eq!((opened.keys.len(), opened.key_clock_ms), (0, 1000));
    drop(state);
    assert_eq!(pages(dir.path()), 0);
}

#[tokio::test]
async fn state_that_lost_a_page_of_keys_or_has_an_older_one_is_refused() {
    type Harm = fn(&sled::Db, &sled::IVec, &sled::IVec);
    let harms: [Harm; 3] = [
        |db, first, _| drop(db.remove(first).unwrap()),
        |db, _, last| drop(db.remove(last).unwrap()),
        // Written whole, but not by the last checkpoint.
        |db, _, last| drop(db.insert(last, db.get(b"older").unwrap().unwrap()).unwrap()),
    ];
    for harm in harms {
        let dir = TempDir::new().unwrap();
        let a = name("a");
        let last = |db: &sled::Db| db.scan_prefix(b"p\x01ak").keys().next_back().unwrap().unwrap();
        {
            let state = StateDir::open(dir.path()).unwrap();
            let opened = open(&state.store(), &a).await;
            state.store().checkpoint(with_keys(&a, &opened, 1, keys(0..200), 200)).await.unwrap();
        }
        let older = {
            let db = database(dir.path());
            db.get(last(&db)).unwrap().unwrap().to_vec()
        };
        {
            let state = StateDir::open(dir.path()).unwrap();
            let opened = open(&state.store(), &a).await;
            state.store().checkpoint(with_keys(&a, &opened, 2, keys(200..210), 210)).await.unwrap();
        }
        {
            let db = database(dir.path());
            let first = db.scan_prefix(b"p\x01ak").keys().next().unwrap().unwrap();
            db.insert(b"older", older).unwrap();
            harm(&db, &first, &last(&db));
            db.remove(b"older").unwrap();
            db.flush().unwrap();
        }
        let state = StateDir::open(dir.path()).unwrap();
        let refused = state.store().open_generation(&a, &source()).await;
        let Err(StoreError::Damaged { reason, .. }) = &refused else { panic!("{refused:?}") };
        assert!(reason.contains("primary keys are missing"), "{reason}");
        open(&state.store(), &name("b")).await;
    }
}

#[tokio::test]
async fn a_state_from_before_there_were_keys_opens_and_takes_keys() {
    // As the version before wrote it.
    const RECORD: &str = r#"{"source":"mns http://127.0.0.1:1 events","generation":7,"epoch":2,"positions":{"lane":5},
        "tokens":[],"uptime_ms":90,"finished":false,"chain":{"count":0,"ids":0,"checksums":0}}"#;
    let dir = TempDir::new().unwrap();
    let a = name("a");
    drop(StateDir::open(dir.path()).unwrap());
    {
        let db = database(dir.path());
        let key = [record_key(&a), 0u32.to_be_bytes().to_vec()].concat();
        db.insert(key, seal(RECORD.as_bytes()).0).unwrap();
        db.flush().unwrap();
    }
    assert_eq!(Stopped::open(dir.path()).unwrap().show(&a).unwrap().keys, 0);
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &a).await;
    assert_eq!((opened.generation, opened.epoch, opened.uptime_ms), (Generation(8), Epoch(2), 90));
    assert_eq!((opened.keys.len(), opened.key_clock_ms), (0, 0));
    state.store().checkpoint(with_keys(&a, &opened, 3, keys(0..3), 3)).await.unwrap();
    assert_eq!(open(&state.store(), &a).await.keys, keys(0..3));
}

#[test]
fn a_record_without_keys_is_one_that_knows_none() {
    let mut written = serde_json::to_value(Record::default()).unwrap();
    for field in ["keys", "keys_added", "key_clock_ms"] {
        assert!(written.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    let read: Record = serde_json::from_value(written).unwrap();
    assert_eq!((read.keys, read.keys_added, read.key_clock_ms), (Default::default(), 0, 0));
}

/// Two epochs with keys, of which the second has prepared output.
async fn fill(dir: &Path, pipeline: &PipelineName, first: Range<u64>, second: Range<u64>, pending: bool) {
    let state = StateDir::open(dir).unwrap();
    let opened = open(&state.store(), pipeline).await;
    let sink = SinkIdentity { connector: "filesystem".to_owned(), target: "/out".to_owned() };
    for (epoch, range) in [(1, first), (2, second)] {
        let clock_ms = range.end;
        let mut next = with_keys(pipeline, &opened, epoch, keys(range), clock_ms);
        next.added = ids(epoch..epoch + 1);
        next.uptime_ms = epoch;
        if pending {
            next.tokens = vec![Token { sink: sink.clone(), content: "prepared".to_owned() }];
        }
        state.store().checkpoint(next).await.unwrap();
    }
}

#[tokio::test]
async fn settling_output_that_is_gone_forgets_the_keys_of_its_epoch_or_its_rows_would_be_dropped_when_they_come_again()
{
    for (first, second) in
        [(0..3, 3..5), (0..500, 500..1300), (0..PAGE_KEYS as u64, PAGE_KEYS as u64..200), (0..0, 0..7)]
    {
        let dir = TempDir::new().unwrap();
        let a = name("a");
        fill(dir.path(), &a, first.clone(), second.clone(), true).await;
        assert_eq!(Stopped::open(dir.path()).unwrap().show(&a).unwrap().keys as u64, second.end);
        Stopped::open(dir.path()).unwrap().settle(&a, true).unwrap();
        assert_eq!(blobs(dir.path()), 0);
        let state = StateDir::open(dir.path()).unwrap();
        let opened = open(&state.store(), &a).await;
        assert_eq!((opened.keys, opened.key_clock_ms), (keys(first), second.end), "{second:?}");
    }
}

#[tokio::test]
async fn settling_output_that_was_committed_keeps_every_key() {
    let dir = TempDir::new().unwrap();
    let a = name("a");
    fill(dir.path(), &a, 0..3, 3..5, true).await;
    Stopped::open(dir.path()).unwrap().settle(&a, false).unwrap();
    assert_eq!(Stopped::open(dir.path()).unwrap().show(&a).unwrap().keys, 5);
}

#[tokio::test]
async fn keys_are_shown_move_with_a_rename_and_are_forgotten_by_a_reset() {
    let dir = TempDir::new().unwrap();
    let (a, b) = (name("a"), name("another-name"));
    fill(dir.path(), &a, 0..500, 500..600, false).await;
    let mut stopped = Stopped::open(dir.path()).unwrap();
    assert_eq!(stopped.show(&a).unwrap().keys, 600);
    stopped.rename(&a, &b).unwrap();
    assert_eq!(stopped.show(&b).unwrap().keys, 600);
    drop(stopped);
    {
        let state = StateDir::open(dir.path()).unwrap();
        assert_eq!(open(&state.store(), &b).await.keys, keys(0..600));
    }
    assert_eq!(pages(dir.path()), 0, "nothing is left under the old name");
    let forgotten = Stopped::open(dir.path()).unwrap().reset(&b).unwrap();
    assert_eq!(forgotten.stored.unwrap().keys, 600);
    let state = StateDir::open(dir.path()).unwrap();
    let opened = open(&state.store(), &b).await;
    assert_eq!((opened.keys.len(), opened.key_clock_ms, opened.epoch), (0, 0, Epoch(2)));
}
