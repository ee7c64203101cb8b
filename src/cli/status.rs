//! `queuewarden status`: the pipelines of a running supervisor.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use tokio::time::sleep;

use super::{
    Exit,
    client::{Client, PipelineView, Refused, block_on},
};

/// What `status` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The state folder of the supervisor.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
    /// Print what /api/pipelines answers.
    #[arg(long)]
    json: bool,
    /// Again every second, until interrupted; also while no supervisor is running.
    #[arg(long)]
    watch: bool,
}

const EVERY: Duration = Duration::from_secs(1);
/// Clears a terminal and begins at its upper left.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";
const COLUMNS: [&str; 9] = ["name", "slot", "state", "for", "generation", "restarts", "rows", "checkpoint", "reason"];
/// The columns of numbers and ages.
const RIGHT: [usize; 6] = [1, 3, 4, 5, 6, 7];

/// Shows them on stdout.
pub fn run(args: &Args) -> Exit {
    block_on(status(args))
}

async fn status(args: &Args) -> Result<Exit, Refused> {
    let client = Client::new(&args.state)?;
    if !args.watch {
        writeln!(io::stdout(), "{}", shown(&client, args.json).await?)?;
        return Ok(Exit::Done);
    }
    loop {
        let text = shown(&client, args.json).await.unwrap_or_else(|refused| refused.reason);
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            write!(out, "{CLEAR}")?;
        }
        writeln!(out, "{text}")?;
        drop(out);
        sleep(EVERY).await;
    }
}

async fn shown(client: &Client, json: bool) -> Result<String, Refused> {
    if json {
        return client.text("/api/pipelines").await;
    }
    let width = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col).filter(|width| *width > 0);
    Ok(table(&client.pipelines().await?, Utc::now(), width))
}

/// `width`: of the terminal; elsewhere a pipeline is one line, however long.
fn table(pipelines: &[PipelineView], now: DateTime<Utc>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(COLUMNS);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for pipeline in pipelines {
        table.add_row(row(pipeline, now));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in RIGHT {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn row(pipeline: &PipelineView, now: DateTime<Utc>) -> [String; 9] {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let age = |at: Option<&String>| at.and_then(|at| age(at, now)).unwrap_or_else(|| "-".to_owned());
    [
        pipeline.name.clone(),
        number(pipeline.slot.map(u64::from)),
        pipeline.state.clone(),
        age(pipeline.since.as_ref()),
        number(pipeline.generation),
        number(pipeline.restarts),
        number(pipeline.counts.as_ref().and_then(|counts| counts.rows_written)),
        age(pipeline.last_checkpoint.as_ref().and_then(|last| last.at.as_ref())),
        reason(pipeline),
    ]
}

/// What is being retried, or why it does not run; the first line of it.
fn reason(pipeline: &PipelineView) -> String {
    let troubles = pipeline.troubles.as_deref().unwrap_or_default();
    let works = matches!(pipeline.state.as_str(), "running" | "degraded" | "finished");
    let reason = if !troubles.is_empty() {
        troubles.join("; ")
    } else if works {
        String::new()
    } else {
        pipeline.last_error.clone().unwrap_or_default()
    };
    reason.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// How long ago a time in RFC 3339 was, in its largest whole unit; `None` for anything else.
fn age(at: &str, now: DateTime<Utc>) -> Option<String> {
    let age = now.signed_duration_since(DateTime::parse_from_rfc3339(at).ok()?).max(TimeDelta::zero());
    let units = [(age.num_days(), "d"), (age.num_hours(), "h"), (age.num_minutes(), "min")];
    let largest = units.into_iter().find(|(count, _)| *count > 1);
    let (count, unit) = largest.unwrap_or((age.num_seconds(), "s"));
    Some(format!("{count} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-11-30T12:00:00Z".parse().expect("a time")
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        for (at, shown) in [
            ("2026-11-30T11:59:58.500Z", "1 s"),
            ("2026-11-30T11:58:30Z", "90 s"),
            ("2026-11-30T11:57:59Z", "2 min"),
            ("2026-11-30T09:00:00Z", "3 h"),
            ("2026-11-01T12:00:00Z", "29 d"),
            ("2026-11-30T12:00:05Z", "0 s"),
        ] {
            assert_eq!(age(at, now()).as_deref(), Some(shown), "{at}");
        }
        assert_eq!(age("yesterday", now()), None);
    }

    #[test]
    fn a_pipeline_is_one_line_with_its_reason_and_without_a_width_none_is_cut() {
        let long = "x".repeat(300);
        let pipelines = [
            PipelineView {
                name: "orders".into(),
                slot: Some(1),
                state: "running".into(),
                generation: Some(4),
                last_error: Some("mended long ago".into()),
                ..PipelineView::default()
            },
            PipelineView {
                name: "bad".into(),
                state: "failed".into(),
                last_error: Some(format!("the definition is not valid:\n{long}")),
                ..PipelineView::default()
            },
            PipelineView {
                name: "slow".into(),
                state: "degraded".into(),
                troubles: Some(vec![long.clone()]),
                ..PipelineView::default()
            },
        ];
        let text = table(&pipelines, now(), None);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].contains("orders") && !lines[1].contains("mended"), "{text}");
        assert!(lines[2].contains("the definition is not valid"), "{text}");
        assert!(lines[3].contains(&long), "{text}");
    }
}
