//! What supervision costs: a restart, a start and their memory with many pipelines; what a hundred pipelines cost
//! that have nothing to do; and how much of a pipeline's panics its neighbour on the same thread feels.
//!
//! `cargo bench --bench supervision`; one part only: `-- restarts`, `-- idle` or `-- neighbour`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

#[path = "../tests/common/mod.rs"]
mod processes;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use processes::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, Supervisor as Running, get, until};
use queuewarden::{
    connector::{RowReject, Sink},
    connectors::{self, Plan},
    definition::{Environment, discover},
    model::{Epoch, Fault, SinkIdentity, Token},
    state::StateDir,
    supervisor::{self, Handle, Hangs, Member, Settings},
    telemetry::Metrics,
};

const RUNS: usize = 5;
const COUNTS: [usize; 4] = [1, 10, 100, 1000];
const IDLE_PIPELINES: usize = 100;
const IDLE_SECONDS: u64 = 60;
/// Of the throughput a neighbour has undisturbed, what the slowest second should keep.
const TARGET: f64 = 0.9;
const LONG: Duration = Duration::from_secs(300);
const RESTARTED_ROWS: u32 = 10;

fn main() {
    // `cargo test --benches` runs this too, in a debug build and to no use.
    let arguments: Vec<String> = std::env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let parts = ["restarts", "idle", "neighbour"];
    let asked = |part: &str| {
        !parts.iter().any(|each| arguments.iter().any(|a| a == each)) || arguments.iter().any(|a| a == part)
    };
    machine();
    if asked("restarts") {
        for count in COUNTS {
            restarts(count);
        }
    }
    if asked("neighbour") {
        neighbour();
    }
    if asked("idle") {
        idle();
    }
}

fn machine() {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    println!("{} x {}, Linux {}", cores, model.unwrap_or("unknown processor"), kernel.trim());
}

fn report(what: &str, unit: &str, mut results: Vec<f64>) -> f64 {
    results.sort_by(f64::total_cmp);
    let (median, least, most) = (results[results.len() / 2], results[0], results[results.len() - 1]);
    println!("  {what:<44} {median:>9.2} {unit}  ({least:.2} to {most:.2})");
    median
}

/// Made-up rows, none of which take any time, so that what is measured is supervision.
fn generated(rows_per_second: u32) -> String {
    format!(
        "source:
  connector: datagen
  rows-per-second: {rows_per_second}
  schema:
    id: BIGINT
    text: STRING
sink:
  connector: blackhole
checkpoint: {{ interval: 10s }}
restart: {{ max: 1000, within: 60s, backoff: 100ms..100ms }}
"
    )
}

fn name(number: usize) -> String {
    format!("pipeline-{number:04}")
}

/// How long one pipeline among `count` takes from the signal to its next generation running; and the start of all.
fn restarts(count: usize) {
    println!("\n{count} pipelines of datagen, {RESTARTED_ROWS} rows a second each; medians of {RUNS} (least to most)");
    let (mut starts, mut memory, mut latencies) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut place = Place::new();
        for number in 0..count {
            place.define(&name(number), &generated(RESTARTED_ROWS));
        }
        let begun = Instant::now();
        let supervisor = place.run();
        until(LONG, "every pipeline runs", || {
            let (status, _) = get(&supervisor.address, "/readyz")?;
            (status == 200).then_some(())
        });
        starts.push(begun.elapsed().as_secs_f64() * 1e3);
        memory.push(kibibytes(supervisor.process.pid(), "VmRSS:") / 1024.0);
        for turn in 0..4 {
            latencies.push(restart(&supervisor, &name(turn * 7 % count)));
        }
    }
    report("from the start until every pipeline runs", "ms", starts);
    report("resident memory then", "MiB", memory);
    report("a restart, from the signal to running", "ms", latencies);
}

fn restart(supervisor: &Running, name: &str) -> f64 {
    let before = supervisor.pipeline(name).unwrap();
    let generation = before["generation"].as_u64().unwrap();
    let begun = Instant::now();
    let signal =
        ["-s", "RTMIN+1", "-q", &before["slot"].to_string(), &supervisor.process.pid().to_string()].map(str::to_owned);
    assert!(std::process::Command::new("/bin/kill").args(signal).status().unwrap().success());
    loop {
        let now = supervisor.pipeline(name).unwrap();
        if now["generation"].as_u64().unwrap() > generation && now["state"] == "running" {
            return begun.elapsed().as_secs_f64() * 1e3;
        }
        assert!(begun.elapsed() < LONG, "{now}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn kibibytes(pid: u32, what: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A hundred pipelines on empty queues of MNS, all settings at their defaults.
fn idle() {
    let emulator = EmulatorProcess::start(&[]);
    create_queues(&emulator);
    let mut place = Place::new();
    for number in 0..IDLE_PIPELINES {
        place.define(
            &name(number),
            &format!(
                "source:
  connector: mns
  endpoint: {}
  region: cn-hangzhou
  queueName: {}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  format: json
  schema:
    id: BIGINT
sink:
  connector: blackhole
",
                emulator.endpoint,
                name(number)
            ),
        );
    }
    let supervisor = place.run();
    until(LONG, "every pipeline runs", || {
        let (status, _) = get(&supervisor.address, "/readyz")?;
        (status == 200).then_some(())
    });
    let (pid, begun) = (supervisor.process.pid(), Instant::now());
    let before = cpu_time(pid);
    until(LONG, "a minute passes", || (begun.elapsed() >= Duration::from_secs(IDLE_SECONDS)).then_some(()));
    let used = (cpu_time(pid) - before).as_secs_f64();
    println!(
        "\n{IDLE_PIPELINES} pipelines on empty MNS queues, default settings, {IDLE_SECONDS} s: {used:.2} s of CPU, {:.2} % of one core; {:.0} MiB",
        100.0 * used / begun.elapsed().as_secs_f64(),
        kibibytes(pid, "VmRSS:") / 1024.0
    );
}

#[tokio::main(flavor = "current_thread")]
async fn create_queues(emulator: &EmulatorProcess) {
    use queuewarden::connectors::mns::{
        client::{Client, Credentials},
        wire::QueueSettings,
    };
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    let client = Client::new(&emulator.endpoint, credentials).unwrap();
    for number in 0..IDLE_PIPELINES {
        client.create_queue(&name(number), &QueueSettings::default()).await.unwrap();
    }
}

/// What a process has used so far, in user and kernel mode.
fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name of the program may hold anything, but ends with the last parenthesis. A tick is 1/100 s for all
    // programs, see proc_pid_stat(5).
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    Duration::from_millis(10 * [11, 12].map(|at| fields[at].parse::<u64>().unwrap()).iter().sum::<u64>())
}

/// Two pipelines on one thread. One makes rows as fast as it can; the other panics ten times a second, in a sink of
/// its own, and is restarted each time.
fn neighbour() {
    // Writing a backtrace for each would be most of what is measured.
    std::panic::set_hook(Box::new(|_| {}));
    println!("\na neighbour on the same thread, rows a second over 20 s");
    let (calm, calm_slowest, _) = rates(false);
    let (shaken, slowest, panics) = rates(true);
    println!("  undisturbed: mean {calm:.0}, slowest second {calm_slowest:.0}");
    println!("  beside {panics} panics and restarts: mean {shaken:.0}, slowest second {slowest:.0}");
    // Like with like: without any panic the seconds differ as much, by what else the machine does.
    let ratio = slowest / calm_slowest;
    println!("  slowest second against the undisturbed slowest: {ratio:.2}; mean against mean: {:.2}", shaken / calm);
    println!("  goal: {TARGET} at least: {}", if ratio >= TARGET { "met" } else { "NOT met" });
}

/// Mean and slowest second of the neighbour, and restarts of the other.
fn rates(shake: bool) -> (f64, f64, u64) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("steady.yaml"), generated(100_000_000)).unwrap();
    fs::write(dir.path().join("shaky.yaml"), generated(100)).unwrap();
    let state = StateDir::open(&dir.path().join("state")).unwrap();
    supervisor::block_on(async {
        let settings = Settings {
            load: Arc::new(|| Err("definitions are not read again".to_owned())),
            threads: 1,
            shutdown_deadline: Duration::from_secs(10),
            hangs: Hangs::default(),
            store: state.store(),
            incarnation: state.incarnation().to_owned(),
            metrics: Arc::new(Metrics::new().unwrap()),
        };
        let supervision = supervisor::start(members(dir.path(), shake), settings);
        let rows = |name: &str| rows(&supervision.handle, name);
        // Steady before it is measured.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (mut seconds, mut before) = (Vec::new(), (Instant::now(), rows("steady").0));
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = (Instant::now(), rows("steady").0);
            seconds.push((now.1 - before.1) as f64 / (now.0 - before.0).as_secs_f64());
            before = now;
        }
        let restarts = rows("shaky").1;
        supervision.stop().await;
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        (mean, seconds.iter().copied().fold(f64::INFINITY, f64::min), restarts)
    })
}

/// Rows written and restarts.
fn rows(handle: &Handle, name: &str) -> (u64, u64) {
    let all = handle.pipelines();
    let one = all.iter().find(|pipeline| pipeline.name == name).unwrap();
    (one.counts.rows_written, one.restarts)
}

fn members(dir: &Path, shake: bool) -> Vec<Member> {
    let files = discover(&[dir.to_owned()]).files;
    let loaded = connectors::load(&files, &Environment::of_process(None));
    let member = |loaded: connectors::Loaded| {
        let mut plan: Plan = loaded.plan.unwrap();
        if shake && loaded.name.as_str() == "shaky" {
            plan.sink = Arc::new(|_| Ok(Box::new(Panicking)));
        }
        Member { name: loaded.name, file: loaded.read.file.display().to_string(), plan: Ok(plan) }
    };
    loaded.into_iter().map(member).collect()
}

/// Panics at its first write.
struct Panicking;

#[async_trait]
impl Sink for Panicking {
    fn identity(&self) -> SinkIdentity {
        SinkIdentity { connector: "blackhole".to_owned(), target: String::new() }
    }

    async fn recover(&mut self, _: &[Token]) -> Result<(), Fault> {
        Ok(())
    }

    async fn write(&mut self, _: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        panic!("as the bench asks")
    }

    async fn prepare(&mut self, _: Epoch) -> Result<Option<Token>, Fault> {
        Ok(None)
    }

    async fn commit(&mut self, _: &Token) -> Result<(), Fault> {
        Ok(())
    }
}
