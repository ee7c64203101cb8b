//! `queuewarden restart`: restart pipelines of a running supervisor, and wait until they have.

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    Exit,
    client::{Client, PipelineView, Refused, block_on},
    signals,
};
use crate::model::nearest;

/// What `restart` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The pipelines to restart.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The state folder of the supervisor they run in.
    #[arg(long, env = "QUEUEWARDEN_STATE", value_name = "DIR")]
    state: PathBuf,
    /// How long to wait for all of them, such as `60s`.
    #[arg(long, value_name = "DURATION", default_value = "60s", allow_negative_numbers = true, value_parser = super::duration)]
    deadline: Duration,
}

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A signal that has changed nothing by then is taken for lost.
const SEND_EVERY: Duration = Duration::from_secs(1);

/// A pipeline that is to be restarted.
#[derive(Debug)]
struct Awaited {
    before: PipelineView,
    now: PipelineView,
    sent: Option<Instant>,
    outcome: Option<Outcome>,
}

/// How it went.
#[derive(Debug)]
enum Outcome {
    Restarted,
    Failed,
}

/// What is to be done about a pipeline now.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Restarted,
    Failed,
    Send,
    Wait,
}

/// Restarts; a line per pipeline goes to stdout, what went wrong to stderr.
pub fn run(args: &Args) -> Exit {
    block_on(restart(args))
}

async fn restart(args: &Args) -> Result<Exit, Refused> {
    let client = Client::new(&args.state)?;
    let begun = Instant::now();
    let mut awaited = choose(&args.names, first_look(&client, begun + args.deadline).await?)?;
    loop {
        for one in awaited.iter_mut().filter(|one| one.outcome.is_none()) {
            one.advance(&client)?;
        }
        if awaited.iter().all(|one| one.outcome.is_some()) {
            let failed = awaited.iter().any(|one| matches!(one.outcome, Some(Outcome::Failed)));
            return Ok(if failed { Exit::PipelineFailed } else { Exit::Done });
        }
        if begun.elapsed() >= args.deadline {
            for one in awaited.iter().filter(|one| one.outcome.is_none()) {
                tell!("error: {}: does not run again within {:?}: {}", one.before.name, args.deadline, one.now.words());
            }
            return Ok(Exit::RestartTimeout);
        }
        sleep(LOOK_EVERY).await;
        look(&client, &mut awaited).await?;
    }
}

/// A supervisor that is just starting is waited for.
async fn first_look(client: &Client, until: Instant) -> Result<Vec<PipelineView>, Refused> {
    loop {
        match client.pipelines().await {
            Err(refused) if refused.passing && Instant::now() < until => sleep(LOOK_EVERY).await,
            answer => return answer,
        }
    }
}

/// The pipelines that were named; nothing is restarted if one of them cannot be.
fn choose(names: &[String], all: Vec<PipelineView>) -> Result<Vec<Awaited>, Refused> {
    let known: Vec<&str> = all.iter().map(|pipeline| pipeline.name.as_str()).collect();
    let unknown = names.iter().filter(|name| !known.contains(&name.as_str()));
    let unknown: Vec<_> =
        unknown.map(|name| format!("the supervisor has no pipeline `{name}`{}", hint(name, &known))).collect();
    if !unknown.is_empty() {
        return Err(Refused::new(Exit::NoInput, unknown.join("\nerror: ")));
    }
    let chosen: Vec<_> = all.into_iter().filter(|pipeline| names.contains(&pipeline.name)).collect();
    // Without a source there is no plan, hence nothing to start.
    if let Some(broken) = chosen.iter().find(|pipeline| pipeline.source.is_none() && pipeline.state == "failed") {
        let reason = format!("{}: mend the definition, then reload: {}", broken.name, broken.words());
        return Err(Refused::new(Exit::Definition, reason));
    }
    Ok(chosen
        .into_iter()
        .map(|pipeline| Awaited { now: pipeline.clone(), before: pipeline, sent: None, outcome: None })
        .collect())
}

fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None if known.is_empty() => "; it has none".to_owned(),
        None => format!("; it has {}", known.join(", ")),
    }
}

/// Looks at all of them again. What cannot be seen for a moment is looked at again later.
async fn look(client: &Client, awaited: &mut [Awaited]) -> Result<(), Refused> {
    let all = match client.pipelines().await {
        Ok(all) => all,
        Err(refused) if refused.passing => return Ok(()),
        Err(refused) => return Err(refused),
    };
    for one in awaited {
        match all.iter().find(|pipeline| pipeline.name == one.before.name) {
            Some(now) => one.now = now.clone(),
            None => {
                let reason = format!("the supervisor has no pipeline `{}` any more", one.before.name);
                return Err(Refused::new(Exit::NoInput, reason));
            }
        }
    }
    Ok(())
}

impl Awaited {
    fn advance(&mut self, client: &Client) -> Result<(), Refused> {
        match step(&self.before, &self.now, self.sent.map(|sent| sent.elapsed())) {
            Step::Wait => {}
            Step::Send => self.send(client)?,
            Step::Restarted => {
                let (name, before, now) = (&self.before.name, self.before.generation, self.now.generation);
                let (before, now) = (before.unwrap_or(0), now.unwrap_or(0));
                writeln!(io::stdout(), "{name}: generation {before} -> {now}, {}", self.now.state)?;
                self.outcome = Some(Outcome::Restarted);
            }
            Step::Failed => {
                tell!("error: {}: restarted, but {}", self.before.name, self.now.words());
                self.outcome = Some(Outcome::Failed);
            }
        }
        Ok(())
    }

    fn send(&mut self, client: &Client) -> Result<(), Refused> {
        let Some(slot) = self.now.slot else {
            return Err(Refused::new(Exit::System, format!("the supervisor tells no slot of `{}`", self.now.name)));
        };
        // Looked at right before the signal: its number must not be another process's by now.
        let process = client.holder()?.pid;
        match signals::send_restart(process, slot) {
            Ok(()) => {}
            // The system's limit of signals that wait: there is room later.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                return Err(Refused::new(Exit::System, format!("no signal can be sent to process {process}: {error}")));
            }
        }
        self.sent = Some(Instant::now());
        Ok(())
    }
}

/// `sent`: how long ago the last signal was sent.
fn step(before: &PipelineView, now: &PipelineView, sent: Option<Duration>) -> Step {
    let Some(sent) = sent else { return Step::Send };
    let state = now.state.as_str();
    let changed = now.since != before.since;
    if now.generation > before.generation {
        return match state {
            "running" | "degraded" | "finished" => Step::Restarted,
            "failed" => Step::Failed,
            _ => Step::Wait,
        };
    }
    match state {
        // It failed before its new generation had a number.
        "failed" if changed => Step::Failed,
        // A reload starts it again, or the process is about to end: neither would heed a signal.
        "stopped" => Step::Wait,
        // On its way: one more signal would restart it twice.
        "draining" | "starting" if changed => Step::Wait,
        _ if sent >= SEND_EVERY => Step::Send,
        _ => Step::Wait,
    }
}

impl PipelineView {
    /// Its state and why, in a sentence.
    fn words(&self) -> String {
        let state = if self.state.is_empty() { "of an unknown state" } else { &self.state };
        let troubles = self.troubles.clone().unwrap_or_default().join("; ");
        let reason = if troubles.is_empty() { self.last_error.clone() } else { Some(troubles) };
        format!("it is {state}{}", reason.map(|reason| format!(": {reason}")).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(state: &str, since: &str, generation: u64) -> PipelineView {
        PipelineView {
            name: "orders".to_owned(),
            slot: Some(1),
            state: state.to_owned(),
            since: Some(since.to_owned()),
            generation: Some(generation),
            source: Some("mns".to_owned()),
            ..PipelineView::default()
        }
    }

    const LATE: Option<Duration> = Some(Duration::from_secs(2));

    #[test]
    fn a_signal_is_sent_again_only_while_nothing_has_come_of_the_last_one() {
        let before = view("running", "t0", 4);
        assert_eq!(step(&before, &before, None), Step::Send);
        assert_eq!(step(&before, &before, Some(Duration::ZERO)), Step::Wait);
        assert_eq!(step(&before, &before, LATE), Step::Send);
        // It went on by itself.
        assert_eq!(step(&before, &view("degraded", "t1", 4), LATE), Step::Send);
        for under_way in [view("draining", "t1", 4), view("starting", "t1", 4), view("backoff", "t1", 5)] {
            assert_eq!(step(&before, &under_way, LATE), Step::Wait, "{under_way:?}");
        }
        // It did so before, for another reason.
        let draining = view("draining", "t0", 4);
        assert_eq!(step(&draining, &draining, LATE), Step::Send);
    }

    #[test]
    fn only_a_new_generation_that_works_is_a_restart() {
        let before = view("failed", "t0", 4);
        for state in ["running", "degraded", "finished"] {
            assert_eq!(step(&before, &view(state, "t1", 5), LATE), Step::Restarted);
        }
        assert_eq!(step(&before, &view("starting", "t1", 5), LATE), Step::Wait);
        assert_eq!(step(&before, &view("failed", "t1", 5), LATE), Step::Failed);
        assert_eq!(step(&before, &view("failed", "t1", 4), LATE), Step::Failed, "before it had a number");
    }

    #[test]
    fn a_pipeline_that_a_reload_has_stopped_is_waited_for_and_not_taken_for_failed() {
        let before = view("running", "t0", 4);
        for stopped in [view("stopped", "t0", 4), view("stopped", "t1", 4), view("stopped", "t1", 5)] {
            assert_eq!(step(&before, &stopped, LATE), Step::Wait, "{stopped:?}");
        }
    }

    #[test]
    fn an_unknown_name_names_the_nearest_and_nothing_is_chosen() {
        let all = || vec![view("running", "t0", 1)];
        let refused = choose(&["orders".to_owned(), "ordres".to_owned()], all()).expect_err("refused");
        assert!(refused.reason.contains("did you mean `orders`?"), "{refused}");
        let refused = choose(&["x".to_owned()], all()).expect_err("refused");
        assert!(refused.reason.contains("it has orders"), "{refused}");
        assert_eq!(choose(&["orders".to_owned(), "orders".to_owned()], all()).expect("known").len(), 1);
    }

    #[test]
    fn a_broken_definition_is_not_waited_for() {
        let broken = PipelineView { source: None, generation: None, ..view("failed", "t0", 0) };
        assert_eq!(choose(&["orders".to_owned()], vec![broken]).expect_err("refused").exit, Exit::Definition);
    }
}
