//! `queuewarden state show`: everything stored of one pipeline.

use std::{fmt::Write, time::Duration};

use super::{Dir, Refusal, parse_name, pretty, source_of, to_json, yes_or_no};
use crate::{
    model::PipelineName,
    state::{Deltas, Stored},
};

/// What `show` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The pipeline
    #[arg(value_parser = parse_name)]
    name: PipelineName,
    #[command(flatten)]
    dir: Dir,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<String, Refusal> {
    let stored = args.dir.open()?.show(&args.name)?;
    Ok(if args.json { pretty(&to_json(&args.name, &stored)) } else { to_text(&args.name, &stored) })
}

fn to_text(name: &PipelineName, stored: &Stored) -> String {
    let Deltas { count, ids } = stored.deltas;
    let mut lines = vec![
        ("name", name.to_string()),
        ("source", source_of(stored)),
        ("generation", stored.generation.to_string()),
        ("epoch", stored.epoch.to_string()),
        ("finished", yes_or_no(stored.finished).to_owned()),
        ("uptime", format!("{:?}", Duration::from_millis(stored.uptime_ms))),
        ("ids", format!("{} kept, in {count} deltas of {ids} entries", stored.ids)),
        ("keys", format!("{} kept", stored.keys)),
    ];
    lines.extend(stored.positions.iter().map(|(lane, position)| ("position", format!("{lane}: next is {position}"))));
    lines.extend(stored.tokens.iter().map(|token| ("pending", format!("{}: {}", token.sink, token.content))));
    lines.into_iter().fold(String::new(), |mut text, (what, value)| {
        // Writing to a String does not fail.
        let _infallible = writeln!(text, "{what:<12}{value}");
        text
    })
}
