//! `queuewarden state settle`: gives up prepared output that is gone for good.

use std::fmt::Write;

use super::{Dir, Refusal, parse_name};
use crate::{cli::Exit, connector::Fate, connectors, model::PipelineName};

/// What `settle` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The pipeline
    #[arg(value_parser = parse_name)]
    name: PipelineName,
    #[command(flatten)]
    dir: Dir,
}

pub(super) fn run(args: &Args) -> Result<String, Refusal> {
    let name = &args.name;
    let mut state = args.dir.open()?;
    let tokens = state.show(name)?.tokens;
    if tokens.is_empty() {
        return Ok(format!("{name}: nothing is pending\n"));
    }
    let (mut text, mut again) = (String::new(), false);
    for token in &tokens {
        let became = match connectors::fate(token) {
            Fate::Waiting(place) => return Err(waiting(name, &place)),
            Fate::Committed => "was committed",
            Fate::Gone => {
                again = true;
                "is gone, and given up"
            }
        };
        // Writing to a String does not fail.
        let _infallible = writeln!(text, "{}: {} {became}", token.sink, token.content);
    }
    let forgotten = state.settle(name, again)?;
    text += &format!("{name}: nothing is pending any more\n");
    if again {
        text += &format!(
            "{forgotten} message ids of that epoch are forgotten, and its primary keys: those messages that are still in the queue are \
             written again\n"
        );
    }
    Ok(text)
}

fn waiting(name: &PipelineName, place: &str) -> Refusal {
    let text = format!(
        "{place} is still there, and giving it up would lose its rows: start the supervisor, which commits it; if it \
         must not be committed, remove the folder it is in first. The state of {name} has not been changed"
    );
    Refusal { exit: Exit::Refused, text }
}
