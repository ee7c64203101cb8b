//! What a checkpoint costs, against the least it could cost, and what a remembered id or primary key costs in memory
//! and in time.
//!
//! `cargo bench --bench store`. Writes below the build directory, which should be on a real disk.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    hint::black_box,
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use arrow_array::{Int64Array, RecordBatch, StringArray};
use peak_alloc::PeakAlloc;
use queuewarden::{
    dedup::{Ids, KeyClock, KeyColumns, KeyWindow, Keys},
    model::{
        Batch, BatchMessage, Column, ColumnType, Disposition, Epoch, Fingerprint, LaneId, Origin, PipelineName, Schema,
        SourceIdentity,
    },
    state::{Checkpoint, Deltas, KeyChanges, StateDir, Store},
};
use tempfile::TempDir;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const RUNS: usize = 5;
const KEYS: usize = 1000;
const CHECKPOINTS: u64 = 400;
const PIPELINES: usize = 8;
const LIVE: u64 = 1_000_000;
/// The goal: no more than this for each id, at every moment.
const MOST_BYTES: f64 = 80.0;

/// What a pipeline's record takes, about: a lane, no token.
const RECORD_BYTES: usize = 250;

fn main() {
    // `cargo test --benches` runs this too, in a debug build and to no use.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    machine();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    println!("\ncheckpoints of {KEYS} new keys, one after the other: a second, median of {RUNS} (least to most)");
    let bare_new = report("bare append + fdatasync of the same bytes", RUNS, || bare(KEYS * 16 + RECORD_BYTES));
    let store_new = report("store, every key kept", RUNS, || runtime.block_on(store(1, false)));
    let bare_both =
        report("bare append + fdatasync, new and deleted keys", RUNS, || bare(2 * KEYS * 16 + RECORD_BYTES));
    let store_both = report("store, each key deleted one checkpoint later", RUNS, || runtime.block_on(store(1, true)));
    let shared = report("store, eight pipelines at once", RUNS, || runtime.block_on(store(PIPELINES, true)));
    println!(
        "store against bare: {:.2} (kept), {:.2} (deleted), {:.2} (eight pipelines)",
        store_new / bare_new,
        store_both / bare_both,
        shared / bare_both
    );
    memory();
    keys();
    runtime.block_on(reload(false));
    runtime.block_on(reload(true));
}

fn machine() {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    println!("{} x {}, Linux {}", cores, model.unwrap_or("unknown processor"), kernel.trim());
}

fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn report(what: &str, runs: usize, mut run: impl FnMut() -> f64) -> f64 {
    let mut results: Vec<f64> = (0..runs).map(|_| run()).collect();
    results.sort_by(f64::total_cmp);
    let median = results[runs / 2];
    println!("  {what:<50} {median:>8.0}  ({:.0} to {:.0})", results[0], results[runs - 1]);
    median
}

fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn bare(bytes: usize) -> f64 {
    let dir = folder();
    let mut file = File::create(dir.path().join("log")).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    let piece: Vec<u8> = (0..bytes).map(|_| rng.u8(..)).collect();
    let begun = Instant::now();
    for _ in 0..CHECKPOINTS {
        file.write_all(&piece).unwrap();
        file.sync_data().unwrap();
    }
    rate(CHECKPOINTS, begun.elapsed())
}

async fn store(pipelines: usize, delete: bool) -> f64 {
    let dir = folder();
    let state = StateDir::open(dir.path()).unwrap();
    let begun = Instant::now();
    let all = (0..pipelines).map(|n| pipeline(state.store(), n, delete));
    futures_util::future::join_all(all).await;
    rate(CHECKPOINTS * pipelines as u64, begun.elapsed())
}

async fn pipeline(store: Store, number: usize, delete: bool) {
    let name = PipelineName::new(&format!("pipeline-{number}")).unwrap();
    let source = SourceIdentity("mns http://127.0.0.1:1 events".to_owned());
    let generation = store.open_generation(&name, &source).await.unwrap().generation;
    let mut rng = fastrand::Rng::with_seed(number as u64);
    let (mut last, mut deltas, mut live) = (Vec::new(), Deltas::default(), 0);
    for epoch in 1..=CHECKPOINTS {
        let added: Vec<_> = (0..KEYS).map(|_| Fingerprint(rng.u128(..))).collect();
        let removed = if delete { std::mem::take(&mut last) } else { Vec::new() };
        live = live + added.len() - removed.len();
        let snapshot = || added.iter().map(|id| (*id, epoch)).collect();
        let checkpoint = Checkpoint {
            pipeline: name.clone(),
            generation,
            epoch: Epoch(epoch),
            positions: BTreeMap::from([(LaneId("poller".into()), epoch)]),
            forgotten: Vec::new(),
            tokens: Vec::new(),
            // What lives is what this checkpoint adds; where all keys are kept, no snapshot falls due.
            snapshot: (delete && deltas.snapshot_due(live)).then(snapshot),
            keys: None,
            added: added.clone(),
            removed,
            uptime_ms: epoch,
            finished: false,
        };
        deltas = store.checkpoint(checkpoint).await.unwrap().deltas;
        last = added;
    }
}

/// Asserts the goal where the table is fullest, where it has just doubled, and in between.
fn memory() {
    println!("\nids in memory: bytes for each (most while it grew)");
    let mut rng = fastrand::Rng::with_seed(2);
    let before = MEMORY.current_usage();
    let mut ids = Ids::default();
    MEMORY.reset_peak_usage();
    // A table of 2^20 slots is full with 7/8 of that.
    for count in [917_504, 917_505, LIVE] {
        while (ids.settled() as u64) < count {
            ids.settle([Fingerprint(rng.u128(..))], 1000);
        }
        let each = |bytes: usize| (bytes - before) as f64 / count as f64;
        let (now, most) = (each(MEMORY.current_usage()), each(MEMORY.peak_usage()));
        println!(
            "  {count:>9} ids {now:>31.1}  ({most:.1}); by its own account {:.1}",
            ids.bytes() as f64 / count as f64
        );
        assert!(most <= MOST_BYTES, "{most} bytes an id");
        MEMORY.reset_peak_usage();
    }
    black_box(ids);
}

/// What it costs a row to be looked up by its primary key, and a key to be remembered; once with every key new, once with
/// none.
fn keys() {
    const ROWS: usize = 256;
    let column = |name: &str, ty: &str| Column {
        name: name.to_owned(),
        ty: ColumnType::parse(ty).unwrap(),
        metadata: None,
        is_virtual: false,
    };
    let schema = Schema { columns: vec![column("shop", "STRING"), column("order", "BIGINT")] };
    let message = BatchMessage { id: "m".into(), fingerprint: None, disposition: Disposition::Rows };
    let batch = |first: usize| {
        let numbers = first..first + ROWS;
        let shops: StringArray = numbers.clone().map(|n| Some(format!("shop-{:05}", n % 1000))).collect();
        let orders: Int64Array = numbers.map(|n| n as i64).collect();
        Batch {
            lane: LaneId::default(),
            range: 0..1,
            rows: RecordBatch::try_new(schema.to_arrow(), vec![Arc::new(shops), Arc::new(orders)]).unwrap(),
            origin: (0..ROWS as u32).map(|message| Origin { message, row: 0 }).collect(),
            rejects: Vec::new(),
            keys: Vec::new(),
            messages: vec![message.clone(); ROWS],
            originals: Vec::new(),
            credits: Vec::new(),
        }
    };
    let before = MEMORY.current_usage();
    let columns = KeyColumns::new(&SourceIdentity("cmq q".to_owned()), &schema, &[0, 1]);
    let window = KeyWindow::load(Duration::from_secs(86_400), Vec::new(), 0);
    let mut keys = Keys { columns, window, clock: KeyClock::resume(0) };
    println!("\nrows looked up by their primary key, two columns, batches of {ROWS}: ns a row");
    for what in ["every key new", "every key known"] {
        let mut took = Duration::ZERO;
        for first in (0..LIVE as usize).step_by(ROWS) {
            let mut batch = batch(first);
            let begun = Instant::now();
            black_box(keys.check(&mut batch).unwrap());
            took += begun.elapsed();
        }
        println!("  {what:<50} {:>8.0}", took.as_nanos() as f64 / LIVE as f64);
    }
    let each = (MEMORY.current_usage() - before) as f64 / keys.window.len() as f64;
    let own = keys.window.bytes() as f64 / keys.window.len() as f64;
    println!("  {} keys in memory: {each:.1} bytes for each; by its own account {own:.1}", keys.window.len());
    assert!(each <= MOST_BYTES, "{each} bytes a key");
}

/// Writes a million ids or primary keys, and reads them back as a restart does.
async fn reload(primary: bool) {
    let dir = folder();
    let name = PipelineName::new("events").unwrap();
    let source = SourceIdentity("mns http://127.0.0.1:1 events".to_owned());
    let mut rng = fastrand::Rng::with_seed(3);
    let state = StateDir::open(dir.path()).unwrap();
    let generation = state.store().open_generation(&name, &source).await.unwrap().generation;
    for epoch in 1..=LIVE / KEYS as u64 {
        let mut new = || (0..KEYS).map(|_| Fingerprint(rng.u128(..))).collect::<Vec<_>>();
        let checkpoint = Checkpoint {
            pipeline: name.clone(),
            generation,
            epoch: Epoch(epoch),
            positions: BTreeMap::new(),
            forgotten: Vec::new(),
            tokens: Vec::new(),
            added: if primary { Vec::new() } else { new() },
            removed: Vec::new(),
            snapshot: None,
            keys: primary.then(|| KeyChanges {
                added: new().into_iter().map(|key| (key, epoch)).collect(),
                clock_ms: epoch,
                window: Duration::from_secs(86_400),
            }),
            uptime_ms: epoch,
            finished: false,
        };
        state.store().checkpoint(checkpoint).await.unwrap();
    }
    drop(state);
    let disk: u64 = fs::metadata(dir.path().join("store/db")).unwrap().len();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let begun = Instant::now();
    let state = StateDir::open(dir.path()).unwrap();
    let opening = begun.elapsed();
    let opened = state.store().open_generation(&name, &source).await.unwrap();
    let ids = Ids::load(opened.ids);
    let keys = KeyWindow::load(Duration::from_secs(86_400), opened.keys, opened.key_clock_ms);
    assert_eq!((ids.settled() + keys.len()) as u64, LIVE);
    println!(
        "\na million stored {}: {} MiB on disk; opened in {opening:.0?}, loaded in {:.0?}; at most {} MiB of memory \
         meanwhile, {} MiB after it (database included)",
        if primary { "primary keys" } else { "ids" },
        disk >> 20,
        begun.elapsed() - opening,
        (MEMORY.peak_usage() - before) >> 20,
        (MEMORY.current_usage() - before) >> 20
    );
}
