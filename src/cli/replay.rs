//! `queuewarden replay`: sends dead letters through their pipeline again, while no supervisor runs.

use std::{fmt::Write, path::PathBuf, sync::Arc, time::Duration};

use super::{
    Exit,
    find::find,
    run::{exit_of, leave},
    told::say,
    with_causes,
};
use crate::{
    connectors::{Plan, replay},
    definition::OnError,
    state::{OpenError, StateDir, Stopped as StoppedState, Store},
    supervisor::{self, Hangs, Member, PipelineStatus, Settings, State, Stopped, Supervision},
    telemetry::Metrics,
};

/// What `replay` takes.
#[derive(clap::Args)]
pub struct Args {
    /// Files of dead letters as a filesystem sink with format json writes them, or folders of such files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The pipeline that decodes and writes them, by its definition of now.
    #[arg(long, value_name = "NAME")]
    to: String,
    /// The folder of pipeline definitions (*.yaml, *.yml).
    #[arg(long, env = "QUEUEWARDEN_PIPELINES", value_name = "DIR")]
    pipelines: PathBuf,
    /// The folder of the state. No supervisor may be using it.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
    /// The folder of files that ${secret_values.NAME} reads.
    #[arg(long, env = "QUEUEWARDEN_SECRETS_DIR", value_name = "DIR")]
    secrets_dir: Option<PathBuf>,
}

/// How often it is looked whether all is done.
const TICK: Duration = Duration::from_millis(20);
/// What is left to be done at the end may take at least so long, however short `checkpoint.timeout` is.
const LAST_DEADLINE: Duration = Duration::from_secs(60);

/// Why nothing was replayed.
struct Refusal(Exit, String);

/// Replays until every letter is checkpointed.
pub fn run(args: &Args) -> Exit {
    match prepare(args) {
        Ok(Some(prepared)) => supervisor::block_on(go(prepared)),
        Ok(None) => Exit::Done,
        Err(Refusal(exit, text)) => {
            tell!("error: {text}");
            exit
        }
    }
}

/// Everything that can be wrong before anything is done.
struct Prepared {
    plan: Plan,
    progress: Arc<replay::Progress>,
    letters: u64,
    state: StateDir,
}

/// `None`: there is nothing to be done.
fn prepare(args: &Args) -> Result<Option<Prepared>, Refusal> {
    let (definition, plan) = find(&args.to, "--to: ", &args.pipelines, args.secrets_dir.as_deref())
        .map_err(|refused| Refusal(refused.exit, refused.reason))?;
    let found = replay::find(&args.paths).map_err(|why| Refusal(Exit::NoInput, why))?;
    for (path, why) in &found.left_out {
        tell!("warning: {} is left out: {why}", path.display());
    }
    let summary = replay::check(&found.files, replay::keys(&definition)).map_err(|wrong| {
        let text = format!("nothing was replayed, for not every line is a dead letter:\n{}", wrong.join("\n"));
        Refusal(Exit::StoreUnreadable, text)
    })?;
    for (pipeline, count) in summary.pipelines.iter().filter(|(pipeline, _)| !is_of(pipeline, &args.to)) {
        tell!("warning: {count} of {} dead letters are of the pipeline {pipeline}", summary.letters);
    }
    if summary.letters == 0 {
        say(&format!("nothing to do: there is no dead letter in {} files", found.files.len()));
        return Ok(None);
    }
    is_the_right_state(args, &summary)?;
    let progress = Arc::default();
    let plan = replay::plan(&definition, plan, found.files, &progress).map_err(|why| Refusal(Exit::Usage, why))?;
    Ok(Some(Prepared { plan, progress, letters: summary.letters, state: open_state(args)? }))
}

fn is_of(pipeline: &str, to: &str) -> bool {
    pipeline == to || pipeline.strip_suffix(".replay") == Some(to)
}

/// A state that knows none of these pipelines is another supervisor's: it does not know what has been replayed.
fn is_the_right_state(args: &Args, summary: &replay::Summary) -> Result<(), Refusal> {
    if !args.state.join("store").is_dir() {
        return Ok(());
    }
    let unreadable = |error: &dyn std::error::Error| Refusal(Exit::StoreUnreadable, with_causes(error));
    let stopped = match StoppedState::open(&args.state) {
        Ok(stopped) => stopped,
        // Told by whoever opens it next, with what to do.
        Err(_) => return Ok(()),
    };
    let known: Vec<String> =
        stopped.list().map_err(|error| unreadable(&error))?.into_iter().map(|(name, _)| name.to_string()).collect();
    let replayed = format!("{}.replay", args.to);
    let is_wanted = |name: &String| *name == args.to || *name == replayed || summary.pipelines.contains_key(name);
    if known.iter().any(is_wanted) {
        return Ok(());
    }
    let text = format!(
        "the state in {} has never seen the pipeline {}, nor one that these dead letters are of: is it the state of the \
         supervisor that wrote them? It knows: {}",
        args.state.display(),
        args.to,
        known.join(", ")
    );
    Err(Refusal(Exit::NoInput, text))
}

/// Of a folder without a state nobody knows what has been replayed: that is a mistake in the path.
fn open_state(args: &Args) -> Result<StateDir, Refusal> {
    let opened = if args.state.join("store").is_dir() {
        StateDir::open(&args.state)
    } else {
        Err(OpenError::Missing { dir: args.state.clone() })
    };
    opened.map_err(|error| {
        let help = if matches!(error, OpenError::Locked { .. }) {
            "; stop the supervisor first: a replay writes where its pipeline writes"
        } else {
            ""
        };
        Refusal(exit_of(&error), format!("{}{help}", with_causes(&error)))
    })
}

async fn go(Prepared { plan, progress, letters, state }: Prepared) -> Exit {
    let metrics = match Metrics::new() {
        Ok(metrics) => Arc::new(metrics),
        Err(error) => return super::failed("the metrics cannot be registered", &error),
    };
    let (name, on_error) = (plan.name.clone(), plan.on_error);
    let store = state.store();
    let settings = Settings {
        threads: 1,
        hangs: Hangs::default(),
        shutdown_deadline: plan.checkpoint.timeout.max(LAST_DEADLINE),
        store: store.clone(),
        incarnation: replay::incarnation(state.incarnation(), &name),
        metrics,
        // Nobody asks for a reload.
        load: Arc::new(|| Ok(Vec::new())),
    };
    let member = Member { name: name.clone(), file: String::new(), plan: Ok(plan) };
    let supervision = supervisor::start(vec![member], settings);
    let end = tokio::select! {
        () = ended(&supervision, &progress) => None,
        exit = lost(&store, &supervision) => Some(exit),
    };
    if let Some(exit) = end {
        leave(exit, None);
    }
    // How it stands when it is failed is not known afterwards.
    let failed = status(&supervision).filter(|status| status.state == State::Failed);
    let stopped = supervision.stop().await;
    let Some(status) = failed.or_else(|| status(&supervision)) else { leave(Exit::Software, None) };
    let (exit, text) = verdict(&status, stopped, on_error, letters);
    if exit == Exit::Done {
        say(&text);
    } else {
        tell!("error: {text}");
    }
    if stopped == Stopped::Drained {
        leave(exit, Some(state));
    }
    // What was cut off may hang in the store, and would hang whoever closes it: it must not even be dropped.
    leave(exit, None)
}

/// Waits until every letter has been handed on, or the pipeline cannot go on.
async fn ended(supervision: &Supervision, progress: &replay::Progress) {
    while !progress.is_at_end() && status(supervision).is_some_and(|status| status.state != State::Failed) {
        tokio::time::sleep(TICK).await;
    }
}

/// Waits for what the process cannot go on after.
async fn lost(store: &Store, supervision: &Supervision) -> Exit {
    let (exit, reason) = tokio::select! {
        reason = store.failed() => (Exit::StoreFailed, reason.to_string()),
        reason = supervision.failed() => (Exit::Software, reason),
    };
    tell!("error: {reason}; give the same command again: what is done is known");
    exit
}

fn status(supervision: &Supervision) -> Option<PipelineStatus> {
    supervision.handle.pipelines().into_iter().next()
}

/// How it went, in words.
fn verdict(status: &PipelineStatus, stopped: Stopped, on_error: OnError, letters: u64) -> (Exit, String) {
    let counts = &status.counts;
    let refused_for_good = on_error != OnError::Skip && counts.rejects > counts.dead_letters;
    if status.state == State::Failed || refused_for_good {
        let why = status.last_error.as_deref().unwrap_or("a letter was refused");
        return (
            Exit::PipelineFailed,
            format!("not all was replayed: {why}; what is done is known to the next replay"),
        );
    }
    if stopped == Stopped::CutOff {
        return (Exit::DrainDeadline, "not all was replayed in time: give the same command again".to_owned());
    }
    if counts.duplicates >= letters && status.restarts == 0 {
        let name = &status.name;
        let text = format!(
            "nothing to do: all {letters} dead letters had been replayed before (`queuewarden state reset {name}` forgets that)"
        );
        return (Exit::Done, text);
    }
    let mut text = format!("{letters} dead letters: {} rows written", counts.rows_written);
    let skipped = counts.rejects - counts.dead_letters;
    for (count, what) in [
        (counts.dead_letters, "dead again"),
        (skipped, "skipped"),
        (counts.ignored, "without a row"),
        (counts.duplicates, "replayed before"),
    ] {
        if count > 0 {
            // Writing to a String does not fail.
            let _infallible = write!(text, ", {count} {what}");
        }
    }
    if status.restarts > 0 {
        let _infallible = write!(text, " (restarted {} times: some are counted more than once)", status.restarts);
    }
    (Exit::Done, text)
}
