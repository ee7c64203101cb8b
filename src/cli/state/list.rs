//! `queuewarden state list`: the pipelines that have a state, one a line.

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::{Dir, Refusal, pretty, source_of, to_json, yes_or_no};
use crate::state::Entry;

/// What `list` takes.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    dir: Dir,
    /// A JSON array, each pipeline as `show --json` has it
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<String, Refusal> {
    let entries = args.dir.open()?.list()?;
    if args.json {
        return Ok(pretty(&entries.iter().map(entry_to_json).collect()));
    }
    if entries.is_empty() {
        return Ok("no pipeline has a state yet\n".to_owned());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["NAME", "SOURCE", "GENERATION", "EPOCH", "IDS", "KEYS", "PENDING", "FINISHED"]);
    for (name, stored) in &entries {
        match stored {
            Ok(stored) => table.add_row([
                name.to_string(),
                source_of(stored),
                stored.generation.to_string(),
                stored.epoch.to_string(),
                stored.ids.to_string(),
                stored.keys.to_string(),
                stored.tokens.len().to_string(),
                yes_or_no(stored.finished).to_owned(),
            ]),
            Err(_) => table.add_row([name.as_str(), "damaged: `state show` says why"]),
        };
    }
    Ok(format!("{}\n", table.trim_fmt()))
}

fn entry_to_json((name, stored): &Entry) -> Value {
    match stored {
        Ok(stored) => to_json(name, stored),
        Err(error) => json!({"name": name.as_str(), "damaged": error.to_string()}),
    }
}
