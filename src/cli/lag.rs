//! `queuewarden lag`: how far behind each lane of a pipeline is, whether a supervisor runs or not.
//!
//! What has been read is what the last checkpoint holds; where a lane ends is asked of its service.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    ops::Range,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::{
    Exit,
    client::{Client, Refused, block_on},
    find::find,
    run::exit_of,
    with_causes,
};
use crate::{
    connector::{LogSource, Source},
    connectors::Plan,
    model::{Fault, LaneId, PipelineName},
    state::{OpenError, Stopped, StoppedError},
};

/// How long all the questions to the service may take together, beside their own waits.
const DEADLINE: Duration = Duration::from_secs(20);

/// What `lag` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The pipeline
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder of pipeline definitions (*.yaml, *.yml).
    #[arg(long, env = "QUEUEWARDEN_PIPELINES", value_name = "DIR")]
    pipelines: PathBuf,
    /// The folder of the state; a supervisor may be using it.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
    /// The folder of files that ${secret_values.NAME} reads.
    #[arg(long, env = "QUEUEWARDEN_SECRETS_DIR", value_name = "DIR")]
    secrets_dir: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// One lane.
struct Lag {
    lane: LaneId,
    /// What is read next; `None`: nothing of it is checkpointed yet.
    position: Option<u64>,
    /// What the service has; `None`: it does not know the lane now.
    range: Option<Range<u64>>,
}

impl Lag {
    /// How many messages of the lane are still to be read. Without a position that is not known: the options say where
    /// the lane will start.
    fn behind(&self) -> Option<u64> {
        Some(self.range.as_ref()?.end.saturating_sub(self.position?))
    }
}

/// Shows it on stdout.
pub fn run(args: &Args) -> Exit {
    block_on(lag(args))
}

async fn lag(args: &Args) -> Result<Exit, Refused> {
    let (_, plan) = find(&args.name, "", &args.pipelines, args.secrets_dir.as_deref())?;
    let Source::Log(source) = (plan.source)().map_err(|fault| refused(&fault))? else {
        let reason = format!(
            "the messages of `{}` are acknowledged one by one, so there is no position to be behind: the service counts \
             what is left in the queue",
            args.name
        );
        return Err(Refused::new(Exit::Usage, reason));
    };
    let positions = positions(args, &plan).await?;
    let asked = tokio::time::timeout(source.patience() + DEADLINE, lanes(&source, positions)).await;
    let lanes = asked
        .map_err(|_| Refused::new(Exit::Unavailable, format!("{} does not answer", plan.source_identity)))?
        .map_err(|fault| refused(&fault))?;
    let text = if args.json { to_json(&lanes) } else { to_text(&lanes) };
    writeln!(io::stdout(), "{text}")?;
    Ok(Exit::Done)
}

fn refused(fault: &Fault) -> Refused {
    Refused::new(Exit::Unavailable, with_causes(fault))
}

/// Of the store, or of the supervisor that holds it.
async fn positions(args: &Args, plan: &Plan) -> Result<BTreeMap<LaneId, u64>, Refused> {
    match Stopped::open(&args.state) {
        Ok(stopped) => stored(&stopped, &plan.name),
        Err(OpenError::Locked { .. }) => running(args).await,
        // Nothing has ever run there.
        Err(OpenError::Missing { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(Refused::new(exit_of(&error), with_causes(&error))),
    }
}

fn stored(state: &Stopped, name: &PipelineName) -> Result<BTreeMap<LaneId, u64>, Refused> {
    match state.show(name) {
        Ok(stored) => {
            Ok(stored.positions.into_iter().map(|(lane, position)| (LaneId(lane.into()), position)).collect())
        }
        // It has never run, so it has read nothing.
        Err(StoppedError::Unknown { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(Refused::new(Exit::StoreUnreadable, with_causes(&error))),
    }
}

async fn running(args: &Args) -> Result<BTreeMap<LaneId, u64>, Refused> {
    let pipelines = Client::new(&args.state)?.pipelines().await?;
    let pipeline = pipelines.into_iter().find(|pipeline| pipeline.name == args.name).ok_or_else(|| {
        Refused::new(Exit::NoInput, format!("the supervisor that is running does not know a pipeline `{}`", args.name))
    })?;
    let positions = pipeline.positions.unwrap_or_default();
    Ok(positions.into_iter().map(|(lane, position)| (LaneId(lane.into()), position)).collect())
}

/// The lanes the state knows, and those that are there and would be read.
async fn lanes(source: &Arc<dyn LogSource>, positions: BTreeMap<LaneId, u64>) -> Result<Vec<Lag>, Fault> {
    let there = source.lanes(&positions).await?;
    let mut all: BTreeMap<LaneId, Option<u64>> = there.owned.into_iter().map(|(lane, _)| (lane, None)).collect();
    all.extend(positions.into_iter().map(|(lane, position)| (lane, Some(position))));
    let names: Vec<LaneId> = all.keys().cloned().collect();
    let mut ends = source.ends(&names).await?;
    let with_end = |(lane, position)| {
        let range = ends.remove(&lane);
        Lag { lane, position, range }
    };
    Ok(all.into_iter().map(with_end).collect())
}

fn to_json(lanes: &[Lag]) -> String {
    let one = |lag: &Lag| {
        json!({
            "lane": lag.lane.to_string(),
            "position": lag.position,
            "first": lag.range.as_ref().map(|range| range.start),
            "next": lag.range.as_ref().map(|range| range.end),
            "behind": lag.behind(),
        })
    };
    format!("{:#}", Value::from(lanes.iter().map(one).collect::<Vec<_>>()))
}

fn to_text(lanes: &[Lag]) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["lane", "position", "first", "next", "behind"]);
    for lag in lanes {
        let range = lag.range.as_ref();
        let (first, next) = (range.map(|range| range.start), range.map(|range| range.end));
        table.add_row([lag.lane.to_string(), number(lag.position), number(first), number(next), number(lag.behind())]);
    }
    // Of lanes of which nothing is known, no sum: 0 would mean that all is read.
    let total = lanes.iter().filter_map(Lag::behind).reduce(|one, other| one + other);
    table.add_row(["all".to_owned(), String::new(), String::new(), String::new(), number(total)]);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_no_number() {
        let lane = |position, range| Lag { lane: LaneId("c/t/b/0".into()), position, range };
        assert_eq!(lane(Some(7), Some(0..10)).behind(), Some(3));
        // A queue that was set back is not a negative number of messages behind.
        assert_eq!(lane(Some(12), Some(0..10)).behind(), Some(0));
        assert_eq!(lane(None, Some(0..10)).behind(), None);
        assert_eq!(lane(Some(7), None).behind(), None);
        let text = to_text(&[lane(Some(7), Some(2..10)), lane(None, None)]);
        assert_eq!(
            text.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>()),
            Some(vec!["c/t/b/0", "7", "2", "10", "3"])
        );
        assert!(text.lines().last().is_some_and(|line| line.starts_with("all") && line.ends_with('3')), "{text}");
        let text = to_text(&[lane(None, Some(0..10)), lane(Some(7), None)]);
        assert!(text.lines().last().is_some_and(|line| line.starts_with("all") && line.ends_with('-')), "{text}");
    }
}
