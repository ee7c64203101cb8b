//! `queuewarden state rename`: gives the state of a pipeline to one of another name.

use super::{Dir, Refusal, parse_name};
use crate::model::PipelineName;

/// What `rename` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The pipeline as it is called now
    #[arg(value_parser = parse_name)]
    old: PipelineName,
    /// The name it is to have
    #[arg(value_parser = parse_name)]
    new: PipelineName,
    #[command(flatten)]
    dir: Dir,
}

pub(super) fn run(args: &Args) -> Result<String, Refusal> {
    let Args { old, new, dir } = args;
    dir.open()?.rename(old, new)?;
    Ok(format!(
        "{old} is {new} now; change `name:`, or the name of the file, in its definition\nleftovers of a crash in \
         `.queuewarden/{old}` of its output folder, if there are any, are named by nothing and may be deleted\n"
    ))
}
