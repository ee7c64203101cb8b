//! `queuewarden demo`: an emulator, a producer and three pipelines in one process, talking over loopback TCP.

use std::{
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::Utc;
use serde_json::json;

use super::{Exit, run, signals::Signals, told::say};
use crate::{
    connectors::mns::{
        client::{Client, Credentials},
        wire::{Outgoing, QueueSettings},
    },
    definition::Environment,
    emulator,
    model::Fault,
    state::StateDir,
    supervisor::{self, Handle, Hangs},
};

/// The definitions it runs: those of the repository's `pipelines/`.
const DEFINITIONS: [(&str, &str); 3] = [
    ("cmq-copy.yaml", include_str!("../../pipelines/cmq-copy.yaml")),
    ("oss-created.yaml", include_str!("../../pipelines/oss-created.yaml")),
    ("orders.yaml", include_str!("../../pipelines/orders.yaml")),
];
const QUEUES: [&str; 4] = ["oss-events", "orders", "cmq-source", "cmq-sink"];
/// As the ids of CMQ begin.
const KEY_ID: &str = "AKIDdemo";
const KEY_SECRET: &str = "demo-secret";
/// What the producer sends a second: enough to see, few enough to read.
const EVENTS_A_SECOND: u64 = 20;
const ORDERS_A_SECOND: u64 = 2;
/// To CMQ, each twice: the second time its primary key is known.
const NAMES_A_SECOND: u64 = 3;

/// What `demo` takes.
#[derive(clap::Args)]
pub struct Args {
    /// Where /metrics and /api/pipelines are served; port 0 takes a free one.
    #[arg(long, env = "QUEUEWARDEN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9870", value_parser = super::address)]
    listen: SocketAddr,
    /// Where the emulator listens; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9871", value_parser = super::address)]
    mns: SocketAddr,
    /// Where its CMQ listens, for HTTP and as a name server; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9873", value_parser = super::address)]
    cmq: SocketAddr,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: Args, signals: Signals) -> Exit {
    // The emulator and the producer have threads of their own, as they would have processes of their own.
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed("the demo cannot start", &error),
    };
    let emulator = match runtime.block_on(start_emulator(args.mns, args.cmq)) {
        Ok(emulator) => emulator,
        Err(error) => return failed(&format!("the emulator cannot listen on {} and {}", args.mns, args.cmq), &error),
    };
    let endpoints = Endpoints {
        mns: emulator.endpoint(),
        cmq: emulator.cmq_addr().map(|addr| format!("http://{addr}")).unwrap_or_default(),
    };
    let folder = match tempfile::Builder::new().prefix("queuewarden-demo-").tempdir() {
        // Left in place: what the demo wrote is there to be looked at.
        Ok(folder) => folder.keep(),
        Err(error) => return failed("no temporary folder", &error),
    };
    let config = match prepare(&folder, &endpoints, args.listen) {
        Ok(config) => config,
        Err(error) => return failed("the demo cannot be prepared", &error),
    };
    runtime.spawn(produce(endpoints.mns.clone()));
    supervisor::block_on(run::serve(config, signals, move |address, handle| {
        introduce(&folder, &endpoints, address);
        runtime.spawn(async move {
            let _emulator = emulator;
            tell(handle).await;
        });
        // Its threads end with the process.
        std::mem::forget(runtime);
    }))
}

fn failed(what: &str, error: &dyn std::error::Error) -> Exit {
    tell!("error: {what}: {error}");
    Exit::System
}

/// Where the emulator's services are.
struct Endpoints {
    mns: String,
    cmq: String,
}

async fn start_emulator(mns: SocketAddr, cmq: SocketAddr) -> io::Result<emulator::Emulator> {
    let credentials = Some(emulator::AccessKey { id: KEY_ID.into(), secret: KEY_SECRET.into() });
    let queues = QUEUES.map(str::to_owned).to_vec();
    emulator::start(emulator::Config { mns, cmq: Some(cmq), credentials, queues, ..emulator::Config::default() }).await
}

fn prepare(folder: &Path, endpoints: &Endpoints, listen: SocketAddr) -> io::Result<run::Config> {
    let pipelines = folder.join("pipelines");
    fs::create_dir(&pipelines)?;
    for (name, text) in DEFINITIONS {
        fs::write(pipelines.join(name), text)?;
    }
    let (out, mns, cmq) = (folder.join("out").into_os_string(), endpoints.mns.clone(), endpoints.cmq.clone());
    let environment = Environment::new(
        move |name| match name {
            "MNS_ENDPOINT" => Some(OsString::from(&mns)),
            "CMQ_HOSTS" => Some(OsString::from(&cmq)),
            "MNS_ACCESS_KEY_ID" | "CMQ_SECRET_ID" => Some(KEY_ID.into()),
            "MNS_ACCESS_KEY_SECRET" | "CMQ_SECRET_KEY" => Some(KEY_SECRET.into()),
            "OUT" => Some(out.clone()),
            _ => None,
        },
        None,
    );
    let members = run::read(&pipelines, &environment).members;
    if let Some(reason) = members.iter().find_map(|member| member.plan.as_ref().err()) {
        return Err(io::Error::other(reason.clone()));
    }
    let state = StateDir::open(&folder.join("state")).map_err(io::Error::other)?;
    Ok(run::Config {
        members,
        load: run::reading(pipelines, environment),
        state,
        listen,
        shutdown_deadline: Duration::from_millis(1500),
        threads: 1,
        hangs: Hangs::default(),
        exit_when_finished: false,
    })
}

fn introduce(folder: &Path, Endpoints { mns, cmq }: &Endpoints, address: SocketAddr) {
    say(&format!(
        "queuewarden demo
  emulator   MNS {mns}, CMQ {cmq}
             ({EVENTS_A_SECOND} OSS events, {ORDERS_A_SECOND} orders and {NAMES_A_SECOND} names, each twice, are sent to it a second)
  pipelines  oss-created -> {out}
             orders -> this terminal
             cmq-copy: from one queue of CMQ to another, each name once
  look at    http://{address}/api/pipelines
             http://{address}/metrics
  folder     {folder}  (left there when the demo ends)
  Ctrl-C ends it.
",
        out = PathBuf::from(folder).join("out/oss-created").display(),
        folder = folder.display(),
    ));
}

/// One line a second.
async fn tell(handle: Handle) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tick.tick().await;
        let parts: Vec<String> = handle
            .pipelines()
            .into_iter()
            .map(|pipeline| {
                let counts = &pipeline.counts;
                let checkpoint = pipeline.last_checkpoint.as_ref().map_or(0, |last| last.epoch);
                format!(
                    "{} {}: {} received, {} written, {} deleted, checkpoint {checkpoint}",
                    pipeline.name,
                    pipeline.state.name(),
                    counts.received,
                    counts.rows_written,
                    counts.deleted,
                )
            })
            .collect();
        say(&format!("{}  {}", Utc::now().format("%H:%M:%S"), parts.join("  |  ")));
    }
}

/// Sends events and orders until the process ends.
async fn produce(endpoint: String) {
    if let Err(fault) = try_produce(&endpoint).await {
        say(&format!("the producer stopped: {fault}"));
    }
}

async fn try_produce(endpoint: &str) -> Result<(), Fault> {
    let credentials =
        Credentials { access_key_id: KEY_ID.into(), access_key_secret: KEY_SECRET.into(), security_token: None };
    let client = Client::new(endpoint, credentials)?;
    for queue in QUEUES {
        client.create_queue(queue, &QueueSettings::default()).await?;
    }
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    for second in 0.. {
        tick.tick().await;
        let events = (0..EVENTS_A_SECOND).map(|n| outgoing(&oss_event(second * EVENTS_A_SECOND + n)));
        for batch in events.collect::<Vec<_>>().chunks(16) {
            client.send("oss-events", batch).await?;
        }
        let orders: Vec<_> = (0..ORDERS_A_SECOND).map(|n| outgoing(&order(second * ORDERS_A_SECOND + n))).collect();
        client.send("orders", &orders).await?;
        // The emulator's queues are the same for both services; what is sent to CMQ is not encoded.
        let names =
            (0..NAMES_A_SECOND).map(|n| name(second * NAMES_A_SECOND + n)).flat_map(|body| [body.clone(), body]);
        let names: Vec<_> = names.map(|body| Outgoing { body, ..Outgoing::default() }).collect();
        client.send("cmq-source", &names).await?;
    }
    Ok(())
}

fn outgoing(body: &serde_json::Value) -> Outgoing {
    use base64::{Engine, engine::general_purpose::STANDARD};
    // As OSS and Alibaba's Java and Python SDKs send it.
    Outgoing { body: STANDARD.encode(body.to_string()), ..Outgoing::default() }
}

fn oss_event(n: u64) -> serde_json::Value {
    let now = Utc::now().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    json!({"events": [{
        "eventName": "ObjectCreated:PutObject", "eventSource": "acs:oss", "eventTime": now, "eventVersion": "1.0",
        "region": "cn-hangzhou",
        "oss": {
            "bucket": {"arn": "acs:oss:cn-hangzhou:1234567890:photos", "name": "photos", "ownerIdentity": "1234567890",
                "virtualBucket": ""},
            "object": {"deltaSize": 1000 + n, "eTag": format!("{n:032X}"), "key": format!("2026/照片-{n}.jpg"),
                "size": 1000 + n},
            "ossSchemaVersion": "1.0", "ruleId": "created"
        },
        "requestParameters": {"sourceIPAddress": "192.0.2.1"},
        "responseElements": {"requestId": format!("{n:024X}")},
        "userIdentity": {"principalId": "1234567890"}
    }]})
}

fn order(n: u64) -> serde_json::Value {
    let customer = if n.is_multiple_of(2) { "Ada" } else { "Grace" };
    json!({
        "id": n,
        "customer": customer,
        "amount": format!("{}.{:02}", 10 + n % 90, n % 100),
        "placed": Utc::now().format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        "items": [{"sku": format!("SKU-{}", n % 7), "quantity": 1 + n % 3}],
    })
}

fn name(n: u64) -> String {
    json!({ "id": n, "name": format!("{} {n}", if n.is_multiple_of(2) { "Ada" } else { "Grace" }) }).to_string()
}
