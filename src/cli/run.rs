//! `queuewarden run`: the supervisor.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process,
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    Exit,
    check::{check_secrets_dir, style_of_stderr},
};
use crate::{
    admin,
    connectors::{self, Loaded},
    definition::{Environment, Style, discover},
    state::{OpenError, StateDir},
    supervisor::{self, Member, Settings, Stopped, Supervision},
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
    #[arg(long, env = "QUEUEWARDEN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9870")]
    listen: SocketAddr,
    /// The folder of files that ${secret_values.NAME} reads.
    #[arg(long, env = "QUEUEWARDEN_SECRETS_DIR", value_name = "DIR")]
    secrets_dir: Option<PathBuf>,
    /// Do not start at all if a definition is not valid, or cannot be looked at.
    #[arg(long, env = "QUEUEWARDEN_STRICT", value_parser = parse_switch)]
    strict: bool,
    /// Seconds that a stop may take before what is unfinished is cut off (it is read again).
    #[arg(long, env = "QUEUEWARDEN_SHUTDOWN_DEADLINE", value_name = "SECONDS", default_value_t = 30)]
    shutdown_deadline: u64,
    /// Threads that pipelines are spread over; default: one per processor.
    #[arg(long, env = "QUEUEWARDEN_THREADS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
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
pub fn run(args: Args) -> Exit {
    if let Err(reason) = check_secrets_dir(args.secrets_dir.as_deref()) {
        eprintln!("error: {reason}");
        return Exit::NoInput;
    }
    let found = discover(std::slice::from_ref(&args.pipelines));
    if !args.pipelines.is_dir() {
        eprintln!("error: --pipelines {}: not a folder", args.pipelines.display());
        return Exit::NoInput;
    }
    for (path, why) in &found.problems {
        eprintln!("{}: warning: {why}", path.display());
    }
    let loaded = connectors::load(&found.files, &Environment::of_process(args.secrets_dir));
    for pipeline in &loaded {
        eprint!("{}", pipeline.read.report.render(style_of_stderr()));
    }
    if args.strict && loaded.iter().any(|pipeline| pipeline.plan.is_none()) {
        return Exit::Definition;
    }
    if args.strict && !found.problems.is_empty() {
        return Exit::NoInput;
    }
    let state = match StateDir::open(&args.state) {
        Ok(state) => state,
        Err(error) => {
            eprintln!("error: {}", with_causes(&error));
            return exit_of(&error);
        }
    };
    let threads = args.threads.map(usize::from);
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let config = Config {
        loaded,
        state,
        listen: args.listen,
        shutdown_deadline: Duration::from_secs(args.shutdown_deadline),
        threads,
    };
    supervisor::block_on(serve(config, |_, _| ()))
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
    pub loaded: Vec<Loaded>,
    pub state: StateDir,
    pub listen: SocketAddr,
    pub shutdown_deadline: Duration,
    pub threads: usize,
}

/// Serves until a signal; `running` is told the address and the handle once everything is up.
pub(super) async fn serve(config: Config, running: impl FnOnce(SocketAddr, supervisor::Handle)) -> Exit {
    let Config { loaded, state, listen, shutdown_deadline, threads } = config;
    let metrics = match Metrics::new() {
        Ok(metrics) => Arc::new(metrics),
        Err(error) => return system_error("the metrics cannot be registered", &error),
    };
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => return system_error("signals cannot be caught", &error),
    };
    // Before anything is started: an address that is taken must not cost a generation.
    let listener = match std::net::TcpListener::bind(listen) {
        Ok(listener) => listener,
        Err(error) => return system_error(&format!("cannot listen on {listen}"), &error),
    };
    let store = state.store();
    let settings = Settings {
        threads,
        shutdown_deadline,
        store: store.clone(),
        incarnation: state.incarnation().to_owned(),
        metrics,
    };
    let supervision = supervisor::start(loaded.into_iter().map(member).collect(), settings);
    let admin = match admin::serve(listener, supervision.handle.clone()) {
        Ok(admin) => admin,
        Err(error) => return system_error(&format!("cannot listen on {listen}"), &error),
    };
    if let Err(error) = state.set_address(&admin.address.to_string()) {
        return system_error("the state directory's lock file cannot be written", &error);
    }
    tracing::info!(address = %admin.address, pid = process::id(), "listening");
    running(admin.address, supervision.handle.clone());

    let exit = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        reason = store.failed() => Some(reason),
    };
    if let Some(reason) = exit {
        tracing::error!(%reason, "the state store failed: the process ends, since nothing after this could be believed");
        leave(Exit::StoreFailed, None);
    }
    tracing::info!("stopping: every pipeline is drained; a second signal cuts off");
    let stopped = tokio::select! {
        stopped = drain(&supervision, &mut terminate, &mut interrupt) => stopped,
        _ = store.failed() => leave(Exit::StoreFailed, None),
    };
    admin.stop().await;
    let exit = if stopped == Stopped::Drained { Exit::Done } else { Exit::DrainDeadline };
    tracing::info!(code = exit as u8, "stopped");
    // What was cut off may hang in the store: only after a clean drain is it waited for.
    leave(exit, (stopped == Stopped::Drained).then_some(state))
}

async fn drain(
    supervision: &Supervision,
    terminate: &mut tokio::signal::unix::Signal,
    interrupt: &mut tokio::signal::unix::Signal,
) -> Stopped {
    let stop = supervision.stop();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            stopped = &mut stop => return stopped,
            _ = terminate.recv() => supervision.force(),
            _ = interrupt.recv() => supervision.force(),
        }
    }
}

/// A broken definition is a Failed pipeline.
fn member(loaded: Loaded) -> Member {
    let file = loaded.read.file.display().to_string();
    let plan =
        loaded.plan.ok_or_else(|| format!("the definition is not valid:\n{}", loaded.read.report.render(Style::Line)));
    Member { name: loaded.name, plan, file }
}

pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn system_error(what: &str, error: &dyn std::error::Error) -> Exit {
    eprintln!("error: {what}: {}", with_causes(error));
    leave(Exit::System, None)
}

/// How long the store may take to be closed. What it holds is durable already.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// Ends the process without waiting for a blocking call that never returns; the store is closed first if it is given,
/// unless its disk does not answer any more.
fn leave(exit: Exit, state: Option<StateDir>) -> ! {
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
    process::exit(exit as i32)
}
