//! A thousand restarts of one pipeline among twenty leave nothing behind.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use common::{
    EmulatorProcess, KEY_ID, KEY_SECRET, Place,
    numbers::{lines, numbers, one_to, send},
};
use queuewarden::{
    connectors,
    definition::{Environment, discover},
    model::Slot,
    state::StateDir,
    supervisor::{Hangs, Member, PipelineStatus, Settings, State, Stopped, Supervision, block_on, start},
    telemetry::Metrics,
};

const PIPELINES: usize = 20;
/// The one that is restarted; slots are in the order of the files.
const SLOT: Slot = Slot(7);
/// After so many all pools of threads and connections have the size they need.
const WARM: u64 = 100;
const MANY: u64 = 1000;

/// What the process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    resident_kib: u64,
    threads: u64,
    descriptors: usize,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    Held { resident_kib: number("VmRSS:"), threads: number("Threads:"), descriptors }
}

fn supervise(place: &Place, state: &StateDir) -> Supervision {
    let environment = Environment::new(
        |name| match name {
            "MNS_ACCESS_KEY_ID" => Some(KEY_ID.into()),
            "MNS_ACCESS_KEY_SECRET" => Some(KEY_SECRET.into()),
            _ => None,
        },
        None,
    );
    let loaded = connectors::load(&discover(&[place.path("pipelines")]).files, &environment);
    let member = |loaded: connectors::Loaded| Member {
        name: loaded.name,
        file: loaded.read.file.display().to_string(),
        plan: Ok(loaded.plan.unwrap()),
    };
    let settings = Settings {
        load: Arc::new(|| Err("not here".to_owned())),
        threads: 2,
        hangs: Hangs::default(),
        shutdown_deadline: Duration::from_secs(30),
        store: state.store(),
        incarnation: state.incarnation().to_owned(),
        metrics: Arc::new(Metrics::new().unwrap()),
    };
    start(loaded.into_iter().map(member).collect(), settings)
}

async fn until(supervision: &Supervision, what: &str, is_so: impl Fn(&[PipelineStatus]) -> bool) {
    let begun = Instant::now();
    while !is_so(&supervision.handle.pipelines()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Restarts until this generation runs.
async fn restart_until(supervision: &Supervision, generation: u64) {
    loop {
        let all = supervision.handle.pipelines();
        let one = all.iter().find(|pipeline| pipeline.slot == SLOT).unwrap();
        let now = one.generation.unwrap();
        if now == generation {
            return;
        }
        supervision.handle.restart(SLOT);
        until(supervision, "the next generation runs", |all| {
            all.iter().any(|one| one.slot == SLOT && one.generation == Some(now + 1) && one.state == State::Running)
        })
        .await;
    }
}

#[test]
fn memory_descriptors_and_threads_end_where_they_began() {
    let emulator = EmulatorProcess::start(&[]);
    let place = Place::new();
    let mut names = Vec::new();
    for number in 1..=PIPELINES {
        let name = format!("p{number:02}");
        send(&emulator.endpoint, &name, 30, &["{\"n\":1}", "{\"n\":2}"]);
        place.define(&name, &numbers(&emulator.endpoint, &name, &place.path(&name), "checkpoint: { interval: 100ms }"));
        names.push(name);
    }
    let state = StateDir::open(&place.path("state")).unwrap();
    block_on(async {
        let supervision = supervise(&place, &state);
        until(&supervision, "all is deleted", |all| {
            all.iter().all(|one| one.state == State::Running && one.counts.deleted == 2)
        })
        .await;
        restart_until(&supervision, WARM).await;
        let before = held();
        let begun = Instant::now();
        restart_until(&supervision, WARM + MANY).await;
        let after = held();
        println!("{MANY} restarts in {:.1?}: {before:?}, then {after:?}", begun.elapsed());
        for one in supervision.handle.pipelines() {
            let generation = if one.slot == SLOT { WARM + MANY } else { 1 };
            assert_eq!((one.state, one.generation), (State::Running, Some(generation)), "{}", one.name);
        }
        assert!(after.threads <= before.threads + 8, "threads");
        assert!(after.descriptors <= before.descriptors + 8, "descriptors");
        assert!(after.resident_kib <= before.resident_kib + 8 * 1024, "memory");
        assert_eq!(supervision.stop().await, Stopped::Drained);
    });
    for name in names {
        assert_eq!((lines(&place.path(&name)), emulator.left(&name)), (one_to(2), 0));
    }
}
