//! The command line: one file per verb.

#[macro_use]
mod told;
pub mod check;
mod client;
mod demo;
pub mod describe;
pub mod emulator;
mod exit;
mod export;
#[cfg(feature = "failpoints")]
mod failpoints;
mod find;
mod import;
mod init;
mod lag;
mod reload;
mod replay;
mod restart;
mod run;
mod signals;
mod state;
mod status;
mod test;

use std::{net::SocketAddr, ops::RangeInclusive, time::Duration};

use clap::{Parser, Subcommand, ValueEnum};

pub use exit::Exit;
use signals::Signals;

use crate::{
    definition::parse_duration,
    telemetry::{self, LogFormat},
};

#[derive(Parser)]
#[command(name = "queuewarden", version, about, after_help = Exit::HELP, max_term_width = 110)]
struct Cli {
    /// How log lines look (on stderr).
    #[arg(long, global = true, env = "QUEUEWARDEN_LOG_FORMAT", default_value = "auto")]
    log_format: LogFormatArg,
    /// What is logged: error, warn, info, debug, trace, or a filter such as `queuewarden=debug`.
    #[arg(long, global = true, env = "QUEUEWARDEN_LOG", default_value = telemetry::DEFAULT_FILTER)]
    log: String,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormatArg {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the pipelines of a folder until SIGTERM or SIGINT.
    Run(run::Args),
    /// Restart pipelines of a running supervisor, and wait until they have.
    Restart(restart::Args),
    /// Have a running supervisor read its definitions again, and wait until it has.
    Reload(reload::Args),
    /// Show the pipelines of a running supervisor.
    Status(status::Args),
    /// Check definitions and show every mistake, without running anything.
    Check(check::CheckArgs),
    /// Show what connectors and formats take: options, defaults, ranges, metadata columns.
    Describe(describe::DescribeArgs),
    /// Write a definition to begin with, with a comment for every option.
    Init(init::InitArgs),
    /// Make definitions of a script of Flink SQL, one for each INSERT.
    Import(import::ImportArgs),
    /// Write a pipeline as a script of Flink SQL.
    Export(export::Args),
    /// Run the tests beside definitions: given messages, the rows they should become. Opens no source and no sink.
    Test(test::TestArgs),
    /// Show how far behind each queue of a pipeline is that reads by position, such as RocketMQ's.
    Lag(lag::Args),
    /// Send dead letters through a pipeline again, while no supervisor runs.
    Replay(replay::Args),
    /// Look at, forget or rename what pipelines have stored, while no supervisor runs.
    #[command(subcommand)]
    State(state::Verb),
    /// Serve queues that behave as Alibaba MNS does, for tests and trials.
    Emulator(emulator::EmulatorArgs),
    /// Emulator, producer and two pipelines in one process, to look at.
    Demo(demo::Args),
}

/// Reads the command line and does what it says.
pub fn main() -> Exit {
    // First of all, so that no moment is left in which a signal would end a supervisor without a drain.
    let signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => return failed("signals cannot be caught", &error),
    };
    #[cfg(feature = "failpoints")]
    let _scenario = failpoints::arm();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _closed_pipe = error.print();
            return exit;
        }
    };
    let format = match cli.log_format {
        LogFormatArg::Auto => LogFormat::Auto,
        LogFormatArg::Text => LogFormat::Text,
        LogFormatArg::Json => LogFormat::Json,
    };
    if let Err(reason) = telemetry::init(format, &cli.log) {
        tell!("error: {reason}");
        return Exit::Usage;
    }
    match cli.verb {
        Verb::Run(args) => run::run(args, signals),
        Verb::Emulator(args) => emulator::main(args, signals),
        Verb::Demo(args) => demo::run(args, signals),
        Verb::Restart(args) => uncaught(signals, || restart::run(&args)),
        Verb::Reload(args) => uncaught(signals, || reload::run(&args)),
        Verb::Status(args) => uncaught(signals, || status::run(&args)),
        Verb::Check(args) => uncaught(signals, || check::run(&args)),
        Verb::Describe(args) => uncaught(signals, || describe::run(&args)),
        Verb::Init(args) => uncaught(signals, || init::run(&args)),
        Verb::Import(args) => uncaught(signals, || import::run(&args)),
        Verb::Export(args) => uncaught(signals, || export::run(&args)),
        Verb::Test(args) => uncaught(signals, || test::run(&args)),
        Verb::Lag(args) => uncaught(signals, || lag::run(&args)),
        Verb::Replay(args) => uncaught(signals, || replay::run(&args)),
        Verb::State(verb) => uncaught(signals, || state::run(verb)),
    }
}

/// For a verb that a signal ends as it ends any program.
fn uncaught(signals: Signals, verb: impl FnOnce() -> Exit) -> Exit {
    match signals.by_default() {
        Ok(()) => verb(),
        Err(error) => failed("signals cannot be listened to", &error),
    }
}

/// For flags that take a duration, written as in definitions.
fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|expected| format!("expected {expected}"))
}

/// For flags that take an address of this machine.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as `127.0.0.1:9870` or `[::]:9870`")
}

/// For flags that take a whole number.
fn whole<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let expected = || format!("expected a whole number from {} to {}", range.start(), range.end());
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(expected)
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// For verbs that a build without the feature `sql` does not have.
#[cfg(not(feature = "sql"))]
fn without_sql() -> Exit {
    tell!("error: this build has no SQL: it was built without the feature `sql`");
    Exit::Usage
}

fn failed(what: &str, error: &dyn std::error::Error) -> Exit {
    tell!("error: {what}: {}", with_causes(error));
    Exit::System
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_cannot_be_understood_says_what_it_takes() {
        let run = ["run", "--pipelines=p", "--state=s"];
        for (verb, flag, value, expected) in [
            (&run[..], "--listen", "localhost:9870", "an IP address and a port, such as `127.0.0.1:9870`"),
            (&run, "--shutdown-deadline", "1.5", "a whole number from 0 to 31536000"),
            // More than can be added to a time.
            (&run, "--shutdown-deadline", "18446744073709551615", "a whole number from 0 to 31536000"),
            (&run, "--threads", "0", "a whole number from 1 to 1024"),
            (&run, "--hang-deadline", "-1", "a whole number from 1 to 3600"),
            (&run, "--hung-threads-max", "many", "a whole number from 0 to 1024"),
            (&["restart", "orders", "--state=s"], "--deadline", "-1", "a duration such as"),
            (&["reload", "--state=s"], "--deadline", "-1", "a duration such as"),
            (&["emulator"], "--mns", "9871", "an IP address and a port"),
        ] {
            let words = [&["queuewarden"], verb, &[flag, value]].concat();
            let error = Cli::try_parse_from(words).err().unwrap().to_string();
            assert!(
                error.contains(&format!("'{value}'")) && error.contains(&format!("expected {expected}")),
                "{error}"
            );
        }
    }
}
