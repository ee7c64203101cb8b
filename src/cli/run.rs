//! `queuewarden run`: the supervisor.

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process,
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    Exit,
    check::{check_secrets_dir, style_of_stderr},
    signals::{Asks, Received, Signals},
    told::show,
    with_causes,
};
use crate::{
    admin,
    connectors::{self, Loaded},
    definition::{Environment, Style, discover},
    state::{OpenError, StateDir, Store},
    supervisor::{self, Hangs, Load, Member, Settings, Stopped, Supervision},
    telemetry::Metrics,
};

/// What `run` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The folder of pipeline definitions (*.yaml, *.yml).
    #[arg(long, env = "QUEUEWARDEN_PIPELINES", value_name = "DIR")]
    pipelines: PathBuf,
    /// The folder for the state; made if it is not there. One supervisor at a time.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
    /// Where /metrics, /healthz, /readyz and /api/pipelines are served; port 0 takes a free one.
    #[arg(long, env = "QUEUEWARDEN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9870", value_parser = super::address)]
    listen: SocketAddr,
    /// The folder of files that ${secret_values.NAME} reads.
    #[arg(long, env = "QUEUEWARDEN_SECRETS_DIR", value_name = "DIR")]
    secrets_dir: Option<PathBuf>,
    /// Do not start at all if a definition is not valid, or cannot be looked at.
    #[arg(long, env = "QUEUEWARDEN_STRICT", value_parser = parse_switch)]
    strict: bool,
    /// Seconds that a stop may take before what is unfinished is cut off (it is read again).
    #[arg(long, env = "QUEUEWARDEN_SHUTDOWN_DEADLINE", value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true, value_parser = super::whole::<u64>(0..=31_536_000))]
    shutdown_deadline: u64,
    /// Threads that pipelines are spread over; default: one per processor.
    #[arg(long, env = "QUEUEWARDEN_THREADS", value_name = "N", allow_negative_numbers = true, value_parser = super::whole::<u16>(1..=1024))]
    threads: Option<u16>,
    /// Seconds after which a thread that does not answer is given up; its pipelines go on on a fresh one.
    #[arg(long, env = "QUEUEWARDEN_HANG_DEADLINE", value_name = "SECONDS", default_value_t = 10, allow_negative_numbers = true, value_parser = super::whole::<u64>(1..=3600))]
    hang_deadline: u64,
    /// Threads given up that may be blocked still; one more, and the process ends with 70.
    #[arg(long, env = "QUEUEWARDEN_HUNG_THREADS_MAX", value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = super::whole::<u16>(0..=1024))]
    hung_threads_max: u16,
    /// End with 0 as soon as every pipeline is finished; only bounded sources finish.
    #[arg(long, env = "QUEUEWARDEN_EXIT_WHEN_FINISHED", value_parser = parse_switch)]
    exit_when_finished: bool,
}

/// A switch that a variable may set too.
fn parse_switch(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" | "" => Ok(false),
        _ => Err("expected true or false, yes or no, on or off, 1 or 0"),
    }
}

/// Runs until a signal, or until something ends it.
pub fn run(args: Args, signals: Signals) -> Exit {
    if let Err(reason) = check_secrets_dir(args.secrets_dir.as_deref()) {
        tell!("error: {reason}");
        return Exit::NoInput;
    }
    if !args.pipelines.is_dir() {
        tell!("error: --pipelines {}: not a folder", args.pipelines.display());
        return Exit::NoInput;
    }
    let environment = Environment::of_process(args.secrets_dir);
    let Folder { members, problems } = read(&args.pipelines, &environment);
    for problem in &problems {
        tell!("warning: {problem}");
    }
    if args.strict && members.iter().any(|member| member.plan.is_err()) {
        return Exit::Definition;
    }
    if args.strict && !problems.is_empty() {
        return Exit::NoInput;
    }
    let state = match StateDir::open(&args.state) {
        Ok(state) => state,
        Err(error) => {
            tell!("error: {}", with_causes(&error));
            return exit_of(&error);
        }
    };
    let threads = args.threads.map(usize::from);
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let config = Config {
        members,
        load: reading(args.pipelines, environment),
        state,
        listen: args.listen,
        shutdown_deadline: Duration::from_secs(args.shutdown_deadline),
        threads,
        hangs: Hangs { deadline: Duration::from_secs(args.hang_deadline), most: args.hung_threads_max.into() },
        exit_when_finished: args.exit_when_finished,
    };
    supervisor::block_on(serve(config, signals, |_, _| ()))
}

pub(super) fn exit_of(error: &OpenError) -> Exit {
    match error {
        OpenError::Locked { .. } => Exit::LockHeld,
        OpenError::Io { .. } => Exit::System,
        OpenError::Missing { .. } => Exit::NoInput,
        OpenError::Unreadable { .. } => Exit::StoreUnreadable,
    }
}

/// Everything a supervisor needs that can fail before it runs.
pub(super) struct Config {
    pub members: Vec<Member>,
    /// What a reload reads.
    pub load: Load,
    pub state: StateDir,
    pub listen: SocketAddr,
    pub shutdown_deadline: Duration,
    pub threads: usize,
    pub hangs: Hangs,
    pub exit_when_finished: bool,
}

/// Serves until a signal; `running` is told the address and the handle once everything is up.
pub(super) async fn serve(
    config: Config,
    signals: Signals,
    running: impl FnOnce(SocketAddr, supervisor::Handle),
) -> Exit {
    let Config { members, load, state, listen, shutdown_deadline, threads, hangs, exit_when_finished } = config;
    let metrics = match Metrics::new() {
        Ok(metrics) => Arc::new(metrics),
        Err(error) => return system_error("the metrics cannot be registered", &error),
    };
    let mut signals = match signals.listen() {
        Ok(signals) => signals,
        Err(error) => return system_error("signals cannot be listened to", &error),
    };
    // Before anything is started: an address that is taken must not cost a generation.
    let listener = match std::net::TcpListener::bind(listen) {
        Ok(listener) => listener,
        Err(error) => return system_error(&format!("cannot listen on {listen}"), &error),
    };
    let store = state.store();
    let settings = Settings {
        threads,
        hangs,
        shutdown_deadline,
        store: store.clone(),
        incarnation: state.incarnation().to_owned(),
        metrics,
        load,
    };
    let supervision = supervisor::start(members, settings);
    let admin = match admin::serve(listener, supervision.handle.clone()) {
        Ok(admin) => admin,
        Err(error) => return system_error(&format!("cannot listen on {listen}"), &error),
    };
    if let Err(error) = state.set_address(&admin.address.to_string()) {
        return system_error("the state directory's lock file cannot be written", &error);
    }
    tracing::info!(address = %admin.address, pid = process::id(), "listening");
    running(admin.address, supervision.handle.clone());

    let failed = failed(&store, &supervision);
    tokio::pin!(failed);
    let ending = tokio::select! {
        () = asked_to_stop(&mut signals, &supervision.handle) => "asked to",
        () = supervision.all_finished(), if exit_when_finished => "every pipeline is finished",
        exit = &mut failed => leave(exit, None),
    };
    tracing::info!(reason = ending, "stopping: every pipeline is drained; a second signal cuts off");
    let stopped = tokio::select! {
        stopped = drain(&supervision, &mut signals) => stopped,
        exit = failed => leave(exit, None),
    };
    admin.stop().await;
    let exit = if stopped == Stopped::Drained { Exit::Done } else { Exit::DrainDeadline };
    tracing::info!(code = exit as u8, "stopped");
    if stopped == Stopped::Drained {
        leave(exit, Some(state));
    }
    // What was cut off may hang in the store, and would hang whoever closes it: it must not even be dropped.
    leave(exit, None)
}

/// Waits for what the process cannot go on after.
async fn failed(store: &Store, supervision: &Supervision) -> Exit {
    tokio::select! {
        reason = store.failed() => {
            tracing::error!(%reason, "the state store failed: the process ends, since nothing after this could be believed");
            Exit::StoreFailed
        }
        reason = supervision.failed() => {
            tracing::error!(reason, "the process ends, since it cannot supervise its pipelines any more");
            Exit::Software
        }
    }
}

/// Does what signals ask for, until one asks to stop.
async fn asked_to_stop(signals: &mut UnboundedReceiver<Received>, handle: &supervisor::Handle) {
    while let Some(signal) = signals.recv().await {
        tracing::info!(signal = signal.name(), value = signal.value, asks = signal.asks.name(), "signal");
        handle.metrics.signal(signal.name(), signal.asks.name());
        match signal.asks {
            Asks::Stop => return,
            Asks::Reload => handle.reload(),
            Asks::Restart(slot) => handle.restart(slot),
            Asks::RestartFailed => handle.restart_failed(),
            Asks::Nothing => {
                tracing::warn!(
                    signal = signal.name(),
                    value = signal.value,
                    "the signal names no slot; see /bin/kill -q"
                );
            }
        }
    }
    // The thread that listens is gone, which is no wish to stop.
    std::future::pending().await
}

async fn drain(supervision: &Supervision, signals: &mut UnboundedReceiver<Received>) -> Stopped {
    let stop = supervision.stop();
    tokio::pin!(stop);
    loop {
        // A supervisor that stops restarts and reloads nothing.
        tokio::select! {
            stopped = &mut stop => return stopped,
            () = asked_to_stop(signals, &supervision.handle) => supervision.force(),
        }
    }
}

/// What a folder of definitions holds.
pub(super) struct Folder {
    pub members: Vec<Member>,
    /// What could not be looked at, and why.
    pub problems: Vec<String>,
}

/// Reads every definition, and says on stderr what is wrong with them. Blocks.
pub(super) fn read(folder: &Path, environment: &Environment) -> Folder {
    let found = discover(&[folder.to_owned()]);
    let problems: Vec<_> = found.problems.iter().map(|(path, why)| format!("{}: {why}", path.display())).collect();
    let loaded = connectors::load(&found.files, environment);
    for pipeline in &loaded {
        show(&pipeline.read.report.render(style_of_stderr()));
    }
    Folder { members: loaded.into_iter().map(member).collect(), problems }
}

/// Reads a folder again. What cannot be looked at, and a folder that holds nothing (is its disk mounted?), is an error
/// of the whole: else the pipelines in it would be taken for gone.
pub(super) fn reading(pipelines: PathBuf, environment: Environment) -> Load {
    Arc::new(move || {
        if pipelines.exists() && !pipelines.is_dir() {
            return Err(format!("{}: not a folder", pipelines.display()));
        }
        let Folder { members, problems } = read(&pipelines, &environment);
        if problems.is_empty() { Ok(members) } else { Err(problems.join("; ")) }
    })
}

/// A broken definition is a Failed pipeline.
fn member(loaded: Loaded) -> Member {
    let file = loaded.read.file.display().to_string();
    let plan =
        loaded.plan.ok_or_else(|| format!("the definition is not valid:\n{}", loaded.read.report.render(Style::Line)));
    Member { name: loaded.name, plan, file }
}

fn system_error(what: &str, error: &dyn std::error::Error) -> Exit {
    tell!("error: {what}: {}", with_causes(error));
    leave(Exit::System, None)
}

/// How long the store may take to be closed. What it holds is durable already.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// Ends the process without waiting for a blocking call that never returns; the store is closed first if it is given,
/// unless its disk does not answer any more.
pub(super) fn leave(exit: Exit, state: Option<StateDir>) -> ! {
    if let Some(state) = state {
        let (closed, wait) = mpsc::channel();
        std::thread::spawn(move || {
            drop(state);
            let _gone = closed.send(());
        });
        if wait.recv_timeout(CLOSE_DEADLINE).is_err() {
            tracing::error!("the state store could not be closed in time; the next start checks it");
        }
    }
    // Nothing is destroyed: the runtime, the actors and what they hold would be while other threads are at work with
    // them, and a panic on a thread that has lost its own variables cannot even be logged.
    let _nobody_reads = io::stdout().flush();
    signal_hook::low_level::exit(exit as i32)
}
