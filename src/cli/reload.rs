//! `queuewarden reload`: have a running supervisor read its definitions again, and wait until it has.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{
    Exit,
    client::{Client, Refused, block_on},
};

/// What `reload` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The state folder of the supervisor.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
    /// How long to wait until it is done, such as `60s`. A changed pipeline is drained first.
    #[arg(long, value_name = "DURATION", default_value = "60s", allow_negative_numbers = true, value_parser = super::duration)]
    deadline: Duration,
}

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a reload did, as far as it is told. Whatever another version leaves out or adds is no mistake.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Report {
    number: u64,
    began: Option<String>,
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
    unchanged: Vec<String>,
    broken: BTreeMap<String, String>,
    error: Option<String>,
}

/// Reloads; what it did goes to stdout.
pub fn run(args: &Args) -> Exit {
    block_on(reload(args))
}

async fn reload(args: &Args) -> Result<Exit, Refused> {
    let client = Client::new(&args.state)?;
    let until = Instant::now() + args.deadline;
    let before = last(&client, until).await?.map_or(0, |report| report.number);
    // Looked at right before the signal: its number must not be another process's by now.
    let process = client.holder()?.pid;
    let refused =
        |error: io::Error| Refused::new(Exit::System, format!("no signal can be sent to process {process}: {error}"));
    let pid = process.try_into().ok().and_then(Pid::from_raw).ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
    let asked = Utc::now();
    kill_process(pid, Signal::HUP).map_err(|error| refused(error.into()))?;
    loop {
        match last(&client, until).await? {
            _ if client.holder()?.pid != process => {
                let reason = format!(
                    "process {process} ended before the reload was done; the one that is there now has read the definitions at its start"
                );
                return Err(Refused::new(Exit::Unavailable, reason));
            }
            Some(report) if report.is_of(before, asked) => return tell(&report),
            _ if Instant::now() >= until => {
                let reason = format!("the reload was not done within {:?}; it goes on", args.deadline);
                return Err(Refused::new(Exit::RestartTimeout, reason));
            }
            _ => sleep(LOOK_EVERY).await,
        }
    }
}

impl Report {
    /// Whether it is of a reload that has seen what was there when it was asked for. One that was under way then may
    /// have read a file before it was written; another follows it.
    fn is_of(&self, before: u64, asked: DateTime<Utc>) -> bool {
        let began = self.began.as_ref().and_then(|began| DateTime::parse_from_rfc3339(began).ok());
        // Told in whole milliseconds.
        self.number > before && began.is_none_or(|began| began.timestamp_millis() >= asked.timestamp_millis())
    }
}

/// The last reload that is done. A supervisor that does not answer for a moment is asked again.
async fn last(client: &Client, until: Instant) -> Result<Option<Report>, Refused> {
    loop {
        match client.json("/api/reload").await {
            Err(refused) if refused.passing && Instant::now() < until => sleep(LOOK_EVERY).await,
            answer => return answer,
        }
    }
}

fn tell(report: &Report) -> Result<Exit, Refused> {
    if let Some(error) = &report.error {
        return Err(Refused::new(Exit::NoInput, format!("nothing was changed: {error}")));
    }
    let mut out = io::stdout().lock();
    for (what, names) in [
        ("added", &report.added),
        ("removed", &report.removed),
        ("changed", &report.changed),
        ("unchanged", &report.unchanged),
    ] {
        writeln!(out, "{what:<9} {:>3}  {}", names.len(), names.join(", "))?;
    }
    writeln!(out, "{:<9} {:>3}", "broken", report.broken.len())?;
    for (name, reason) in &report.broken {
        writeln!(out, "  {name}: {}", reason.trim_end().replace('\n', "\n  "))?;
    }
    Ok(if report.broken.is_empty() { Exit::Done } else { Exit::Definition })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_that_was_under_way_is_not_the_one_that_was_asked_for() {
        let report = |number, began: Option<&str>| Report { number, began: began.map(Into::into), ..Report::default() };
        let asked: DateTime<Utc> = "2026-11-30T12:00:00.0005Z".parse().expect("a time");
        assert!(report(5, Some("2026-11-30T12:00:00.000Z")).is_of(4, asked));
        assert!(!report(5, Some("2026-11-30T11:59:59.999Z")).is_of(4, asked), "it began before");
        assert!(!report(4, Some("2026-11-30T12:00:01.000Z")).is_of(4, asked), "it was seen before");
        assert!(report(5, None).is_of(4, asked), "another version");
    }
}
