//! `queuewarden state reset`: forgets what a pipeline has read.

use super::{Dir, Refusal, parse_name, source_of};
use crate::model::PipelineName;

/// What `reset` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The pipeline
    #[arg(value_parser = parse_name)]
    name: PipelineName,
    #[command(flatten)]
    dir: Dir,
}

pub(super) fn run(args: &Args) -> Result<String, Refusal> {
    let forgotten = args.dir.open()?.reset(&args.name)?;
    let what = match &forgotten.stored {
        Some(stored) => format!(
            "its source {}, {} message ids, {} primary keys, {} positions{}",
            source_of(stored),
            stored.ids,
            stored.keys,
            stored.positions.len(),
            if stored.finished { ", and that it had finished" } else { "" }
        ),
        None => "all that it held: it was damaged".to_owned(),
    };
    let mut text = format!("{}: forgotten: {what}\n", args.name);
    for token in &forgotten.tokens {
        text += &format!("given up: what was prepared in {}: {}\n", token.sink, token.content);
    }
    Ok(text
        + &format!(
            "generation {} and epoch {} are kept, and go on counting: they are part of the names of files\n",
            forgotten.generation, forgotten.epoch
        ))
}
