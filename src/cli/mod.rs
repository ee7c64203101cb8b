//! The command line: one file per verb.

pub mod check;
mod demo;
pub mod emulator;
mod exit;
#[cfg(feature = "failpoints")]
mod failpoints;
mod run;
mod state;

use clap::{Parser, Subcommand, ValueEnum};

pub use exit::Exit;

use crate::telemetry::{self, LogFormat};

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
    /// Check definitions and show every mistake, without running anything.
    Check(check::CheckArgs),
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
        eprintln!("error: {reason}");
        return Exit::Usage;
    }
    match cli.verb {
        Verb::Run(args) => run::run(args),
        Verb::Check(args) => check::run(&args),
        Verb::State(verb) => state::run(verb),
        Verb::Emulator(args) => emulator::main(args),
        Verb::Demo(args) => demo::run(args),
    }
}
