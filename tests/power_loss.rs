//! A power cut between the write of a checkpoint and its sync: any of the pages written since the last acknowledged
//! checkpoint may be lost. The store must open at that checkpoint, or at the whole one after it, or refuse.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use fastrand::Rng;
use queuewarden::{
    model::{Epoch, Fingerprint, Generation, LaneId, PipelineName, SinkIdentity, SourceIdentity, Token},
    state::{Checkpoint, Deltas, KeyChanges, OpenError, Opened, StateDir, StoreError},
};
use tempfile::TempDir;

const HISTORIES: u64 = 10;
const IMAGES: u64 = 10;
const PAGE: usize = 4096;
const WINDOW: Duration = Duration::from_secs(100);

/// Everything a checkpoint promised to keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Promised {
    epoch: Epoch,
    positions: BTreeMap<LaneId, u64>,
    tokens: Vec<Token>,
    ids: BTreeMap<Fingerprint, u64>,
    uptime_ms: u64,
    keys: BTreeMap<Fingerprint, u64>,
    key_clock_ms: u64,
}

/// Without the keys whose window is over, which are promised to nobody.
fn alive(keys: impl IntoIterator<Item = (Fingerprint, u64)>, now_ms: u64) -> BTreeMap<Fingerprint, u64> {
    let window_ms = u64::try_from(WINDOW.as_millis()).unwrap();
    keys.into_iter().filter(|(_, first_seen_ms)| first_seen_ms + window_ms > now_ms).collect()
}

impl From<Opened> for Promised {
    fn from(opened: Opened) -> Self {
        let Opened { epoch, positions, tokens, uptime_ms, key_clock_ms, .. } = opened;
        let keys = alive(opened.keys, key_clock_ms);
        Self { epoch, positions, tokens, uptime_ms, ids: opened.ids.into_iter().collect(), keys, key_clock_ms }
    }
}

fn pipeline() -> PipelineName {
    PipelineName::new("events").unwrap()
}

fn source() -> SourceIdentity {
    SourceIdentity("mns http://127.0.0.1:1 events".to_owned())
}

/// A checkpoint of random size, and what the state is after it.
fn next(before: &Promised, generation: Generation, deltas: Deltas, rng: &mut Rng) -> (Checkpoint, Promised) {
    let mut after = before.clone();
    after.epoch = before.epoch.next();
    after.uptime_ms += rng.u64(1..10_000);
    for lane in 0..rng.u64(1..40) {
        after.positions.insert(LaneId(format!("topic/broker-a/{lane}").into()), rng.u64(..));
    }
    let sink = SinkIdentity { connector: "filesystem".to_owned(), target: "/data/out".to_owned() };
    after.tokens = vec![Token { sink, content: format!("[\"part-{}\"]", after.epoch) }];
    let removed: Vec<_> = before.ids.keys().copied().filter(|_| rng.u8(..) < 100).collect();
    let most = if rng.u8(..) < 30 { 20_000 } else { 1500 };
    let added: Vec<_> = (0..rng.usize(0..most)).map(|_| Fingerprint(rng.u128(..))).collect();
    for id in &removed {
        after.ids.remove(id);
    }
    after.ids.extend(added.iter().map(|id| (*id, after.uptime_ms)));
    let mut keys: Vec<_> =
        (0..rng.usize(0..600)).map(|_| (Fingerprint(rng.u128(..)), before.key_clock_ms + rng.u64(0..10_000))).collect();
    keys.sort_unstable_by_key(|(_, first_seen_ms)| *first_seen_ms);
    after.key_clock_ms += 10_000;
    after.keys.extend(keys.iter().copied());
    after.keys = alive(after.keys, after.key_clock_ms);
    let due = deltas.snapshot_due(after.ids.len());
    let checkpoint = Checkpoint {
        pipeline: pipeline(),
        generation,
        epoch: after.epoch,
        positions: after.positions.clone(),
        forgotten: Vec::new(),
        tokens: after.tokens.clone(),
        added,
        removed,
        snapshot: due.then(|| after.ids.iter().map(|(id, stamp)| (*id, *stamp)).collect()),
        keys: Some(KeyChanges { added: keys, clock_ms: after.key_clock_ms, window: WINDOW }),
        uptime_ms: after.uptime_ms,
        finished: false,
    };
    (checkpoint, after)
}

fn files(root: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut dirs) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    found
}

fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(root).into_iter().map(|file| (file.clone(), fs::read(root.join(file)).unwrap())).collect()
}

/// Chooses each page that differs at random from `old` or `new`. A file that grew may have its old length, or its new
/// one with zeros where the data did not arrive. Answers how many pages were lost.
fn tear(old: &[u8], new: &[u8], rng: &mut Rng) -> (Vec<u8>, usize) {
    let length = if rng.bool() { new.len() } else { old.len().min(new.len()) };
    // From losing nearly everything to losing nearly nothing.
    let odds = rng.f64();
    let (mut image, mut lost) = (Vec::with_capacity(length), 0);
    while image.len() < length {
        let range = image.len()..(image.len() + PAGE).min(length);
        let page = |bytes: &[u8]| {
            let mut page = bytes.get(range.start..range.end.min(bytes.len())).unwrap_or_default().to_vec();
            page.resize(range.len(), 0);
            page
        };
        let (before, after) = (page(old), page(new));
        if before != after && rng.f64() < odds {
            lost += 1;
            image.extend(before);
        } else {
            image.extend(after);
        }
    }
    (image, lost)
}

#[derive(Debug, Default)]
struct Tally {
    last: u32,
    next: u32,
    refused: u32,
    pages_lost: usize,
}

#[tokio::test]
async fn a_power_cut_never_takes_the_store_behind_an_acknowledged_checkpoint() {
    let mut tally = Tally::default();
    for history in 0..HISTORIES {
        let mut rng = Rng::with_seed(history);
        let dir = TempDir::new().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let generation = state.store().open_generation(&pipeline(), &source()).await.unwrap().generation;
        let (mut promised, mut deltas) = (Promised::default(), Deltas::default());
        for _ in 0..rng.u64(3..40) {
            let (checkpoint, after) = next(&promised, generation, deltas, &mut rng);
            deltas = state.store().checkpoint(checkpoint).await.unwrap().deltas;
            promised = after;
        }
        let old = contents(dir.path());
        let (checkpoint, after) = next(&promised, generation, deltas, &mut rng);
        state.store().checkpoint(checkpoint).await.unwrap();
        let new = contents(dir.path());
        assert_ne!(old, new);
        drop(state);
        for image in 0..IMAGES {
            let mut rng = Rng::with_seed(history * 1000 + image);
            let torn = TempDir::new().unwrap();
            fs::create_dir_all(torn.path().join("store/blobs")).unwrap();
            for file in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let empty = Vec::new();
                let bytes = |from: &BTreeMap<PathBuf, Vec<u8>>| from.get(file).unwrap_or(&empty).clone();
                let (bytes, lost) = tear(&bytes(&old), &bytes(&new), &mut rng);
                tally.pages_lost += lost;
                fs::write(torn.path().join(file), bytes).unwrap();
            }
            check(torn.path(), &promised, &after, &mut tally, &mut rng).await;
        }
    }
    println!(
        "of {} images ({} pages lost): {} at the last acknowledged checkpoint, {} at the whole next one, {} refused",
        HISTORIES * IMAGES,
        tally.pages_lost,
        tally.last,
        tally.next,
        tally.refused
    );
    assert!(tally.pages_lost > 0 && tally.last > 0, "{tally:?}");
}

/// Opens an image; what opens must also go on, and still be right after that.
async fn check(dir: &Path, promised: &Promised, after: &Promised, tally: &mut Tally, rng: &mut Rng) {
    let state = match StateDir::open(dir) {
        Ok(state) => state,
        Err(OpenError::Unreadable { .. }) => {
            tally.refused += 1;
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let opened = match state.store().open_generation(&pipeline(), &source()).await {
        Ok(opened) => opened,
        Err(StoreError::Damaged { .. }) => {
            tally.refused += 1;
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let (generation, deltas) = (opened.generation, opened.deltas);
    let found = Promised::from(opened);
    if found == *promised {
        tally.last += 1;
    } else {
        assert!(found == *after, "epoch {} after a cut that followed epoch {}", found.epoch, promised.epoch);
        tally.next += 1;
    }
    let (checkpoint, expected) = next(&found, generation, deltas, rng);
    state.store().checkpoint(checkpoint).await.unwrap();
    drop(state);
    let state = StateDir::open(dir).unwrap();
    let opened = state.store().open_generation(&pipeline(), &source()).await.unwrap();
    assert!(Promised::from(opened) == expected);
}
