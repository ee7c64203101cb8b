//! What a pipeline costs over the least that could do its job: MNS or CMQ -> `blackhole` against a loop that receives
//! and deletes, over the same client with the same batch and concurrency. The emulator, the loop and the supervisor are
//! processes of their own. The ratio of throughputs should be at least 0.85.
//!
//! The emulator has one processor and the consumer another, as a service on another machine would: else the two wait
//! for each other in ways that change from run to run. It answers at once, which no service does. So with several
//! calls under way the loop is bound by processors alone, and the ratio becomes that of CPU a message.
//!
//! So it is measured once more with a service that takes a few milliseconds to answer, as one in the same region does.
//! There the loop receives and deletes side by side, as many of each at once as the pipeline: else it would wait for
//! twice as many answers, one after the other.
//!
//! Last, what it costs to ask for dead letters when there are none: the pipeline with them against the pipeline without.
//!
//! `cargo bench --bench throughput`; another number of messages a run: `-- --messages 20000`; one
//! row only: `-- --concurrency 4`, or `-- --letters` for the last one; CMQ only: `-- --cmq`. Each run has a queue of
//! its own, which does not run dry: what counts is the time from the first delivery to the delete of the last message
//! that is measured, so neither a start nor the wait for a last checkpoint is in it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

#[path = "../tests/common/mod.rs"]
mod processes;
#[path = "throughput/protocol.rs"]
mod protocol;

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use processes::{EmulatorProcess, Place, Process, until};
use protocol::{Protocol, Reader, mns};
use queuewarden::connectors::mns::wire::{Outgoing, QueueSettings};

/// As the program has: else the loop would pay for another one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 5;
/// Messages measured in a run.
const MESSAGES: u64 = 100_000;
/// Messages in the queue beyond those: more than a pipeline may hold at once.
const MORE: u64 = 12_000;
const BATCH: usize = 16;
const CONCURRENCIES: [usize; 3] = [1, 4, 8];
/// How long a service takes to answer that is not on the same machine.
const DELAY_MS: u64 = 3;
const TARGET: f64 = 0.85;
/// The first argument that makes this binary the bare loop.
const BARE: &str = "bare-loop";
/// And its last one, if it is to receive and delete side by side.
const SIDE_BY_SIDE: &str = "side-by-side";
const LONG: Duration = Duration::from_secs(600);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
    if argument(1) == BARE {
        let side_by_side = argument(6) == SIDE_BY_SIDE;
        return bare(Protocol::of(argument(2)), argument(3), argument(4), argument(5).parse().unwrap(), side_by_side);
    }
    // `cargo test --benches` runs this too, in a debug build and to no use.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(argument(at + 1).parse::<u64>().unwrap())
    };
    let messages = number("--messages").unwrap_or(MESSAGES);
    let only = number("--concurrency");
    machine();
    println!(
        "{messages} messages a run, JSON of {} to {} bytes, sent as base64, batches of {BATCH}; medians of {RUNS} (least to most)",
        (0..100).map(|n| body(n).len()).min().unwrap(),
        (0..100).map(|n| body(n).len()).max().unwrap(),
    );
    let emulator = EmulatorProcess::start(&["--cmq", "127.0.0.1:0"]);
    pin(emulator.process.pid(), "0");
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let (letters_only, cmq_only) = (has("--letters"), has("--cmq"));
    if letters_only || (only.is_none() && !cmq_only) {
        compare_letters(&emulator, messages);
    }
    if letters_only {
        return;
    }
    let (at_once, later) = (0, DELAY_MS);
    let mns = [(Protocol::Mns, at_once), (Protocol::Mns, later)].map(|which| (which, &CONCURRENCIES[..]));
    let cmq = [Protocol::CmqTcp, Protocol::CmqHttp]
        .map(|protocol| [((protocol, at_once), &CONCURRENCIES[..1]), ((protocol, later), &CONCURRENCIES[1..2])]);
    let all = mns.into_iter().filter(|_| !cmq_only).chain(cmq.into_iter().flatten());
    for ((protocol, delay_ms), concurrencies) in all {
        let service = Service { protocol, delay_ms };
        for concurrency in concurrencies.iter().copied().filter(|each| only.is_none_or(|only| only == *each as u64)) {
            let ratio = compare(&emulator, service, concurrency, service.messages(messages, concurrency));
            println!("  goal: {TARGET} at least: {}", if ratio >= TARGET { "met" } else { "NOT met" });
        }
    }
}

/// How the emulator behaves.
#[derive(Clone, Copy)]
struct Service {
    protocol: Protocol,
    delay_ms: u64,
}

impl Service {
    /// What it can deliver in some seconds, if that is less.
    fn messages(self, asked: u64, concurrency: usize) -> u64 {
        match self.delay_ms {
            0 => asked,
            delay => asked.min(4_000 / delay * (BATCH * concurrency) as u64),
        }
    }

    fn order(self, emulator: &EmulatorProcess, queue: &str) {
        emulator.order(queue, &format!("delay-ms={}", self.delay_ms));
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

/// Alternates the two, each first in turn; answers the median of the ratios of the pairs.
fn compare(emulator: &EmulatorProcess, service: Service, concurrency: usize, messages: u64) -> f64 {
    let (name, delay) = (service.protocol.name(), service.delay_ms);
    println!("\n{name}, receive.concurrency {concurrency}, answers after {delay} ms, {messages} messages");
    let (mut loops, mut pipelines) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let queue = |what: &str| format!("{what}-{name}-{delay}-{concurrency}-{run}");
        if run % 2 == 0 {
            loops.push(measure_loop(emulator, service, &queue("loop"), concurrency, messages));
            pipelines.push(measure_pipeline(emulator, service, &queue("pipeline"), concurrency, messages, ""));
        } else {
            pipelines.push(measure_pipeline(emulator, service, &queue("pipeline"), concurrency, messages, ""));
            loops.push(measure_loop(emulator, service, &queue("loop"), concurrency, messages));
        }
    }
    let rates = |of: &[Measured]| of.iter().map(|measured| measured.rate).collect();
    let cpus = |of: &[Measured]| of.iter().map(|measured| measured.cpu_us).collect();
    report("bare loop, messages a second", 0, rates(&loops));
    report("pipeline, messages a second", 0, rates(&pipelines));
    report("bare loop, CPU microseconds a message", 1, cpus(&loops));
    report("pipeline, CPU microseconds a message", 1, cpus(&pipelines));
    report("emulator, CPU microseconds a message (loop)", 1, loops.iter().map(|run| run.emulator_us).collect());
    report("emulator, CPU microseconds a message (pipeline)", 1, pipelines.iter().map(|run| run.emulator_us).collect());
    let ratios: Vec<f64> = pipelines.iter().zip(&loops).map(|(pipeline, bare)| pipeline.rate / bare.rate).collect();
    println!("  ratio of each pair: {ratios:.3?}");
    report("ratio of throughputs", 3, ratios)
}

/// What dead letters are asked for with.
const LETTERS: &str = "on_error: dead_letter\ndead_letter: { connector: blackhole }\n";

/// Alternates a pipeline without dead letters and one with, each first in turn. Nothing is rejected in either.
fn compare_letters(emulator: &EmulatorProcess, messages: u64) {
    let concurrency = 4;
    println!("\non_error: dead_letter against fail, nothing rejected, receive.concurrency {concurrency}");
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let mut measure = |letters: bool| {
            let (rest, results) = if letters { (LETTERS, &mut with) } else { ("", &mut without) };
            let queue = format!("letters-{letters}-{run}");
            results.push(measure_pipeline(
                emulator,
                Service { protocol: Protocol::Mns, delay_ms: 0 },
                &queue,
                concurrency,
                messages,
                rest,
            ));
        };
        let first = run % 2 == 0;
        measure(first);
        measure(!first);
    }
    for (what, of) in [("fail", &without), ("dead_letter", &with)] {
        report(&format!("{what}, messages a second"), 0, of.iter().map(|run| run.rate).collect());
        report(&format!("{what}, CPU microseconds a message"), 1, of.iter().map(|run| run.cpu_us).collect());
    }
    let pairs = with.iter().zip(&without);
    report("ratio of throughputs", 3, pairs.clone().map(|(with, without)| with.rate / without.rate).collect());
    report("ratio of CPU a message", 3, pairs.map(|(with, without)| with.cpu_us / without.cpu_us).collect());
}

fn report(what: &str, digits: usize, mut results: Vec<f64>) -> f64 {
    results.sort_by(f64::total_cmp);
    let (median, least, most) = (results[results.len() / 2], results[0], results[results.len() - 1]);
    println!("  {what:<50} {median:>8.digits$}  ({least:.digits$} to {most:.digits$})");
    median
}

struct Measured {
    rate: f64,
    cpu_us: f64,
    emulator_us: f64,
}

fn measure_loop(
    emulator: &EmulatorProcess,
    service: Service,
    queue: &str,
    concurrency: usize,
    messages: u64,
) -> Measured {
    fill(emulator, service.protocol, queue, messages + MORE);
    service.order(emulator, queue);
    let child = Command::new(std::env::current_exe().unwrap())
        .args([BARE, service.protocol.name(), service.protocol.endpoint(emulator), queue, &concurrency.to_string()])
        .args((service.delay_ms > 0).then_some(SIDE_BY_SIDE))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child);
    let measured = measure(emulator, queue, process.pid(), messages);
    drop(process);
    forget(emulator, queue);
    measured
}

/// `rest`: what the definition says beyond source, sink and checkpoint.
fn measure_pipeline(
    emulator: &EmulatorProcess,
    service: Service,
    queue: &str,
    concurrency: usize,
    messages: u64,
    rest: &str,
) -> Measured {
    fill(emulator, service.protocol, queue, messages + MORE);
    service.order(emulator, queue);
    let mut place = Place::new();
    place.define("bench", &(definition(service.protocol, emulator, queue, concurrency) + rest));
    let mut supervisor = place.run();
    let measured = measure(emulator, queue, supervisor.process.pid(), messages);
    let status = supervisor.pipeline("bench").unwrap();
    assert_eq!(status["restarts"], 0, "{status}");
    assert_eq!(status["state"], "running", "{status}");
    supervisor.process.kill_9();
    forget(emulator, queue);
    measured
}

/// Keeps all threads of a process on one processor.
fn pin(pid: u32, processor: &str) {
    let pinned = Command::new("taskset").args(["-acp", processor, &pid.to_string()]).stdout(Stdio::null()).status();
    if !pinned.is_ok_and(|status| status.success()) {
        println!("  (process {pid} is not kept on processor {processor}: no taskset, or no such processor)");
    }
}

fn measure(emulator: &EmulatorProcess, queue: &str, pid: u32, messages: u64) -> Measured {
    pin(pid, "1");
    let emulator_pid = emulator.process.pid();
    until(LONG, "messages are received", || (emulator.count(queue, "delivered") > 0).then_some(()));
    let (begun, cpu, emulator_cpu) = (Instant::now(), cpu_time(pid), cpu_time(emulator_pid));
    let (deleted, took) = until(LONG, "messages are deleted", || {
        let deleted = emulator.count(queue, "deleted");
        (deleted >= messages).then(|| (deleted, begun.elapsed()))
    });
    let each = |now: Duration, before: Duration| (now - before).as_secs_f64() * 1e6 / deleted as f64;
    assert_eq!(emulator.count(queue, "redelivered_after_timeout"), 0, "a run outlasted the visibility timeout");
    Measured {
        rate: deleted as f64 / took.as_secs_f64(),
        cpu_us: each(cpu_time(pid), cpu),
        emulator_us: each(cpu_time(emulator_pid), emulator_cpu),
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

fn definition(protocol: Protocol, emulator: &EmulatorProcess, queue: &str, concurrency: usize) -> String {
    protocol.source(protocol.endpoint(emulator), queue, BATCH, concurrency)
        + "  schema:
    orderId: STRING
    customer: BIGINT
    createdAt: TIMESTAMP(3)
    amount: DECIMAL(12, 2)
    paid: BOOLEAN
    weight: DOUBLE
    address: STRING
    note: STRING
sink:
  connector: blackhole
checkpoint: { interval: 1s }
"
}

/// What a shop may tell of an order: about 1 KiB of JSON, each field typed.
fn body(number: u64) -> String {
    let note = "Please leave the parcel with the neighbours if nobody is in, and ring twice: the bell is old. ";
    serde_json::json!({
        "orderId": format!("{:032x}", u128::from(number) * 0x9E37_79B9_7F4A_7C15_F39C),
        "customer": 10_000_000_000u64 + number * 7,
        "createdAt": format!("2026-03-{:02} {:02}:{:02}:17.{:03}", 1 + number % 28, number % 24, number % 60, number % 1000),
        "amount": format!("{}.{:02}", number % 10_000, number % 100),
        "paid": number.is_multiple_of(3),
        "weight": (number * 137) as f64 % 100_000.0 / 100.0,
        "address": format!("{} Long Road \u{676d}\u{5dde}, building {}, floor {}", number % 300, number % 17, number % 40),
        "note": note.repeat(6 + number as usize % 4),
    })
    .to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn fill(emulator: &EmulatorProcess, protocol: Protocol, queue: &str, count: u64) {
    // Queues of the emulator are the same whatever they are read as.
    let client = mns(&emulator.endpoint);
    // Longer than any run.
    let settings = QueueSettings { visibility_seconds: Some(3600), ..QueueSettings::default() };
    client.create_queue(queue, &settings).await.unwrap();
    let numbers: Vec<u64> = (0..count).collect();
    let senders = numbers.chunks(numbers.len().div_ceil(4)).map(|part| {
        let client = client.clone();
        async move {
            for batch in part.chunks(BATCH) {
                let batch = batch.iter().map(|n| Outgoing { body: protocol.encode(&body(*n)), ..Outgoing::default() });
                client.send(queue, &batch.collect::<Vec<_>>()).await.unwrap();
            }
        }
    });
    futures_util::future::join_all(senders).await;
}

#[tokio::main(flavor = "current_thread")]
async fn forget(emulator: &EmulatorProcess, queue: &str) {
    mns(&emulator.endpoint).delete_queue(queue).await.unwrap();
}

/// The least there can be: each task receives a batch and deletes it, until the process is killed; or leaves that to
/// one of as many others. One thread, as a pipeline has.
#[tokio::main(flavor = "current_thread")]
async fn bare(protocol: Protocol, endpoint: &str, queue: &str, concurrency: usize, side_by_side: bool) {
    let reader = Reader::new(protocol, endpoint, queue);
    let (hand_over, batches) = tokio::sync::mpsc::channel::<Vec<String>>(64);
    let batches = tokio::sync::Mutex::new(batches);
    let receivers = (0..concurrency).map(|_| async {
        loop {
            let handles = reader.receive(BATCH).await;
            match handles.is_empty() {
                true => {}
                false if side_by_side => hand_over.send(handles).await.unwrap(),
                false => reader.delete(&handles).await,
            }
        }
    });
    let deleters = (0..concurrency).map(|_| async {
        loop {
            let batch = batches.lock().await.recv().await;
            reader.delete(&batch.unwrap()).await;
        }
    });
    futures_util::future::join(futures_util::future::join_all(receivers), futures_util::future::join_all(deleters))
        .await;
}
