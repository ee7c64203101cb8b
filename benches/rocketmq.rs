//! Reading and sending against the official Java client, on the same broker in the same run: messages a second, and
//! CPU a message from /proc. Goal: no slower than Java, and at most half of its CPU a message.
//!
//! Read: the Java client's own pull loop, a thread a queue; ours, a task a queue on one thread; and a pipeline
//! `rocketmq5 -> blackhole`, with everything that a pipeline does beside pulling. All pull the same bodies of 1 KiB, up
//! to 32 at a time, from the beginning of the same topic. Send: batches of 32 such bodies, one under way a queue.
//!
//! The broker has one processor and the client another, as a server elsewhere would: else the two wait for each other
//! in ways that change from run to run. The Java client runs for 20 s before it is measured, ours for 2.
//!
//! `make rocketmq` fetches the servers; `cargo bench --bench rocketmq`; one part only: `-- --queues 8`, `-- --send`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

#[path = "../tests/common/mod.rs"]
mod processes;

use std::{
    cell::Cell,
    fs,
    io::Read as _,
    process::{Command, Stdio},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use processes::{
    Place,
    rocketmq::{Generation, Servers, Wanted},
    until,
};
use queuewarden::connectors::rocketmq::client::{
    Channel, Client, ClientOptions, Filter, Outgoing, Pull, Queue, parse_endpoints,
};
use serde_json::Value;

/// As the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 5;
const BODY: usize = 1024;
const BATCH: u32 = 32;
/// In a topic that is read. A pipeline reads it once, the loops begin again at its end.
const MESSAGES: u64 = 400_000;
const WARM_JAVA: Duration = Duration::from_secs(20);
/// Once it is warm it stays so.
const WARM: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(300);
/// First arguments that make this binary one of the loops.
const PULL: &str = "pull-loop";
const SEND: &str = "send-loop";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
    match argument(1) {
        PULL => return pull_loop(argument(2), argument(3)),
        SEND => return send_loop(argument(2), argument(3)),
        _ => {}
    }
    // `cargo test --benches` runs this too, in a debug build and to no use.
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--bench") {
        return;
    }
    let only = arguments.iter().position(|argument| argument == "--queues").map(|at| argument(at + 1).to_owned());
    let Some(servers) = Servers::start(Generation::Five, Wanted::default()) else {
        println!("not measured: no servers; `make rocketmq` fetches them");
        return;
    };
    pin(servers.broker_pid(), "0");
    println!("RocketMQ 5.3.3; bodies of {BODY} bytes; medians of {RUNS} (least to most)");
    for queues in [1, 8].into_iter().filter(|queues| only.as_ref().is_none_or(|only| *only == queues.to_string())) {
        if !has("--send") {
            compare_reading(&servers, queues);
        }
        compare_sending(&servers, queues);
    }
}

fn compare_reading(servers: &Servers, queues: u32) {
    let topic = format!("read-{queues}");
    servers.create_topic(&topic, queues);
    fill(servers, &topic);
    println!("\nread, {queues} queues, {BATCH} at a time");
    let java = |warm| Measured::of_java(&servers.pull_bench(&topic, BATCH, warm, MEASURED));
    pin(servers.client_pid(), "1");
    java(WARM_JAVA);
    let (mut javas, mut loops, mut pipelines) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        javas.push(java(WARM));
        loops.push(measure_loop(PULL, servers, &topic));
        pipelines.push(measure_pipeline(servers, &topic, run));
    }
    report("Java's pull loop", &javas, &javas);
    report("our pull loop", &loops, &javas);
    report("a pipeline to blackhole", &pipelines, &javas);
}

fn compare_sending(servers: &Servers, queues: u32) {
    let topic = format!("send-{queues}");
    servers.create_topic(&topic, queues);
    println!("\nsend, {queues} queues, {BATCH} in a batch");
    let java = |warm| Measured::of_java(&servers.send_bench(&topic, BATCH, BODY as u32, warm, MEASURED));
    pin(servers.client_pid(), "1");
    java(WARM_JAVA);
    let (mut javas, mut loops) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        javas.push(java(WARM));
        loops.push(measure_loop(SEND, servers, &topic));
    }
    report("Java's send loop", &javas, &javas);
    report("our send loop", &loops, &javas);
}

/// Fills a topic; which bodies does not matter.
fn fill(servers: &Servers, topic: &str) {
    let there = || servers.offsets(topic).iter().map(|(first, next)| (next - first) as u64).sum::<u64>();
    while there() < MESSAGES {
        servers.send_bench(topic, 128, BODY as u32, Duration::ZERO, Duration::from_secs(2));
    }
    println!("  {topic}: {} messages", there());
}

struct Measured {
    rate: f64,
    cpu_us: f64,
}

impl Measured {
    fn new(messages: u64, took: Duration, cpu: Duration) -> Self {
        let messages = messages as f64;
        Self { rate: messages / took.as_secs_f64(), cpu_us: cpu.as_secs_f64() * 1e6 / messages }
    }

    fn of_java(answer: &Value) -> Self {
        let cpu = Duration::from_millis(10 * answer["cpu_ticks"].as_u64().unwrap());
        let took = Duration::from_secs_f64(answer["seconds"].as_f64().unwrap());
        Self::new(answer["messages"].as_u64().unwrap(), took, cpu)
    }
}

/// `java`: what was measured in the same turns.
fn report(what: &str, measured: &[Measured], java: &[Measured]) {
    let show = |figure: &str, digits: usize, mut results: Vec<f64>| {
        results.sort_by(f64::total_cmp);
        let (least, most) = (results[0], results[results.len() - 1]);
        let name = format!("{what}, {figure}");
        println!("  {name:<52} {:>9.digits$}  ({least:.digits$} to {most:.digits$})", results[results.len() / 2]);
    };
    show("messages a second", 0, measured.iter().map(|run| run.rate).collect());
    show("CPU microseconds a message", 2, measured.iter().map(|run| run.cpu_us).collect());
    if !std::ptr::eq(measured, java) {
        let pairs = || measured.iter().zip(java);
        show("ratio of throughputs to Java", 2, pairs().map(|(ours, java)| ours.rate / java.rate).collect());
        show("ratio of CPU a message to Java", 2, pairs().map(|(ours, java)| ours.cpu_us / java.cpu_us).collect());
    }
}

/// Runs one of our loops as a process of its own, which counts on its own after its start.
fn measure_loop(which: &str, servers: &Servers, topic: &str) -> Measured {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([which, &servers.name_server(), topic])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    pin(child.id(), "1");
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [messages, seconds, cpu] = numbers[..] else { panic!("{text}") };
    Measured::new(messages as u64, Duration::from_secs_f64(seconds), Duration::from_secs_f64(cpu))
}

fn measure_pipeline(servers: &Servers, topic: &str, run: usize) -> Measured {
    let mut place = Place::new();
    place.define(
        "bench",
        &format!(
            "source:
  connector: rocketmq5
  rocketmq.client.endpoints: {}
  rocketmq.source.topic: {topic}
  rocketmq.source.group: bench-{run}
  rocketmq.source.startup.scan.mode: earliest
  rocketmq.source.pull.batch.size: {BATCH}
  schema: {{ body: VARBINARY }}
sink: {{ connector: blackhole }}
checkpoint: {{ interval: 1s }}
",
            servers.name_server()
        ),
    );
    let supervisor = place.run();
    let pid = supervisor.process.pid();
    pin(pid, "1");
    let rows = || supervisor.pipeline("bench").map_or(0, |status| status["counts"]["rows_written"].as_u64().unwrap());
    // Not from the first row on: the start is in those.
    let first = until(LONG, "rows come", || Some(rows()).filter(|rows| *rows > MESSAGES / 10));
    let (begun, cpu) = (Instant::now(), cpu_time(pid));
    let last = until(LONG, "rows have come", || Some(rows()).filter(|rows| *rows > MESSAGES * 9 / 10));
    let measured = Measured::new(last - first, begun.elapsed(), cpu_time(pid) - cpu);
    let status = supervisor.pipeline("bench").unwrap();
    assert_eq!((&status["restarts"], &status["state"]), (&Value::from(0), &Value::from("running")), "{status}");
    measured
}

/// Keeps all threads of a process on one processor.
fn pin(pid: u32, processor: &str) {
    let pinned = Command::new("taskset").args(["-acp", processor, &pid.to_string()]).stdout(Stdio::null()).status();
    if !pinned.is_ok_and(|status| status.success()) {
        println!("  (process {pid} is not kept on processor {processor}: no taskset, or no such processor)");
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

fn client(name_server: &str) -> Client {
    Client::new(&ClientOptions {
        endpoints: parse_endpoints(name_server).unwrap(),
        namespace: None,
        credentials: None,
        channel: Channel::Local,
        tls: false,
        request_timeout: Duration::from_secs(10),
    })
    .unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn pull_loop(name_server: &str, topic: &str) {
    let queues = client(name_server).route(topic).await.unwrap().expect("a topic").queues;
    side_by_side(queues, async |queue, count| {
        let client = client(name_server);
        let (first, end) = (client.min_offset(&queue).await.unwrap(), client.max_offset(&queue).await.unwrap());
        let mut offset = first;
        loop {
            let pull =
                Pull { group: "bench", offset, most: BATCH, wait: Duration::from_secs(10), filter: &Filter::All };
            let pulled = client.pull(&queue, &pull).await.unwrap();
            offset = if pulled.next >= end { first } else { pulled.next };
            let bytes: usize = pulled.messages.iter().map(|message| message.body.size()).sum();
            assert_eq!(bytes, pulled.messages.len() * BODY);
            count(pulled.messages.len() as u64);
        }
    })
    .await;
}

#[tokio::main(flavor = "current_thread")]
async fn send_loop(name_server: &str, topic: &str) {
    let queues = client(name_server).route(topic).await.unwrap().expect("a topic").writable;
    let body = Bytes::from(vec![b'x'; BODY]);
    side_by_side(queues, async |queue, count| {
        let client = client(name_server);
        loop {
            let messages: Vec<_> = (0..BATCH).map(|_| Outgoing { body: body.clone(), ..Outgoing::default() }).collect();
            client.send(&queue, "bench", &messages).await.unwrap();
            count(messages.len() as u64);
        }
    })
    .await;
}

/// Runs the loops of all queues on this thread, and prints what they did in the time that is measured: messages,
/// seconds, seconds of CPU.
async fn side_by_side(queues: Vec<Queue>, each: impl AsyncFn(Queue, &dyn Fn(u64))) {
    let messages = Rc::new(Cell::new(0));
    let count = |more| messages.set(messages.get() + more);
    let each = Arc::new(each);
    let loops = futures_util::future::join_all(queues.into_iter().map(|queue| each(queue, &count)));
    let measure = async {
        tokio::time::sleep(WARM).await;
        let (begun, before, cpu) = (Instant::now(), messages.get(), cpu_time(std::process::id()));
        tokio::time::sleep(MEASURED).await;
        let (took, used) = (begun.elapsed(), cpu_time(std::process::id()) - cpu);
        println!("{} {} {}", messages.get() - before, took.as_secs_f64(), used.as_secs_f64());
    };
    tokio::select! {
        () = measure => {}
        _ = loops => {}
    }
}
