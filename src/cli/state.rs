//! `queuewarden state`: looks at, forgets and renames what pipelines have stored, while no supervisor runs.

mod list;
mod rename;
mod reset;
mod settle;
mod show;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use serde_json::{Value, json};

use super::{Exit, run};
use crate::{
    model::PipelineName,
    state::{Stopped, StoppedError, Stored},
};

/// What `state` takes.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// List the pipelines that have a state.
    List(list::Args),
    /// Show everything stored of a pipeline.
    Show(show::Args),
    /// Forget what a pipeline has read, all but where its generations and epochs stand.
    Reset(reset::Args),
    /// Give the state of a pipeline to one of another name.
    Rename(rename::Args),
    /// Give up prepared output that is gone for good and can never be committed.
    Settle(settle::Args),
}

/// Does what the verb says.
pub fn run(verb: Verb) -> Exit {
    let done = match verb {
        Verb::List(args) => list::run(&args),
        Verb::Show(args) => show::run(&args),
        Verb::Reset(args) => reset::run(&args),
        Verb::Rename(args) => rename::run(&args),
        Verb::Settle(args) => settle::run(&args),
    };
    let said = done.and_then(|text| io::stdout().write_all(text.as_bytes()).map_err(Refusal::system));
    match said {
        Ok(()) => Exit::Done,
        Err(Refusal { exit, text }) => {
            tell!("error: {text}");
            exit
        }
    }
}

/// Where the state is.
#[derive(clap::Args)]
struct Dir {
    /// The folder of the state. No supervisor may be using it.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
}

impl Dir {
    fn open(&self) -> Result<Stopped, Refusal> {
        Stopped::open(&self.state)
            .map_err(|error| Refusal { exit: run::exit_of(&error), text: super::with_causes(&error) })
    }
}

fn parse_name(text: &str) -> Result<PipelineName, String> {
    PipelineName::new(text).map_err(|expected| format!("expected {expected}"))
}

/// Why a verb did nothing.
struct Refusal {
    exit: Exit,
    text: String,
}

impl Refusal {
    fn system(error: io::Error) -> Self {
        Self { exit: Exit::System, text: format!("cannot write to standard output: {error}") }
    }
}

impl From<StoppedError> for Refusal {
    fn from(error: StoppedError) -> Self {
        let exit = match &error {
            StoppedError::Unknown { .. } => Exit::NoInput,
            StoppedError::Damaged(_) | StoppedError::Unreadable(_) => Exit::StoreUnreadable,
            StoppedError::Pending { .. } | StoppedError::Taken { .. } => Exit::Refused,
            StoppedError::Failed(_) => Exit::StoreFailed,
        };
        Self { exit, text: error.to_string() }
    }
}

fn to_json(name: &PipelineName, stored: &Stored) -> Value {
    json!({
        "name": name.as_str(),
        "source": stored.source,
        "generation": stored.generation,
        "epoch": stored.epoch,
        "positions": stored.positions,
        "tokens": stored.tokens,
        "ids": stored.ids,
        "keys": stored.keys,
        "uptime_ms": stored.uptime_ms,
        "finished": stored.finished,
        "deltas": {"count": stored.deltas.count, "entries": stored.deltas.ids},
    })
}

/// With a newline at the end.
fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn source_of(stored: &Stored) -> String {
    stored.source.as_ref().map_or("none (reset)".to_owned(), ToString::to_string)
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
