//! `queuewarden check`: are these definitions valid?

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use clap::Args;

use crate::definition::{Environment, Loaded, Registry, Style, discover, load};

/// Exit code: at least one definition is not valid (EX_CONFIG of sysexits.h).
pub const EXIT_INVALID: u8 = 78;
/// Exit code: a path does not exist, cannot be read, or is a folder without a definition (EX_NOINPUT). A definition
/// that is not valid outranks it.
pub const EXIT_NO_INPUT: u8 = 66;

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Definitions, or folders of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Folder that holds the values of ${secret_values.NAME}, one file each
    #[arg(long, value_name = "DIR", env = "QUEUEWARDEN_SECRETS_DIR")]
    pub secrets_dir: Option<PathBuf>,
    /// How to show what is wrong [default: with the source line]
    #[arg(long, value_enum, default_value_t = Report::Full)]
    pub report: Report,
    /// Print each valid definition with its defaults filled in and secrets masked
    #[arg(long)]
    pub resolved: bool,
}

/// How to show what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Report {
    /// With the source line, as a compiler does
    Full,
    /// `file:line:column: error: ...`, one line each
    Line,
}

/// Checks, prints diagnostics to stderr and a line per valid definition to stdout; answers the exit code: 0,
/// [`EXIT_INVALID`] or [`EXIT_NO_INPUT`]. `resolve` adds what only the connectors can tell.
pub fn run(args: &CheckArgs, registry: &Registry, resolve: impl FnMut(&mut Loaded)) -> io::Result<u8> {
    let style = match args.report {
        Report::Line => Style::Line,
        Report::Full if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() => Style::Terminal,
        Report::Full => Style::Plain,
    };
    let environment = Environment::of_process(args.secrets_dir.clone());
    run_to(args, registry, &environment, resolve, Output { style, out: io::stdout().lock(), err: io::stderr().lock() })
}

/// Where [`run_to`] writes.
#[derive(Debug)]
pub struct Output<O, E> {
    /// How diagnostics are shown.
    pub style: Style,
    /// A line per valid definition.
    pub out: O,
    /// Diagnostics.
    pub err: E,
}

/// [`run`] with an environment and an output of the caller's choice.
pub fn run_to(
    args: &CheckArgs,
    registry: &Registry,
    environment: &Environment,
    mut resolve: impl FnMut(&mut Loaded),
    output: Output<impl Write, impl Write>,
) -> io::Result<u8> {
    let Output { style, mut out, mut err } = output;
    let found = discover(&args.paths);
    for (path, why) in &found.problems {
        writeln!(err, "{}: error: {why}", path.display())?;
    }
    let mut invalid = 0;
    for mut one in load(&found.files, registry, environment) {
        resolve(&mut one);
        err.write_all(one.report.render(style).as_bytes())?;
        match &one.definition {
            None => invalid += 1,
            Some(definition) if args.resolved => {
                writeln!(out, "---\n# {}\n{}", one.file.display(), definition.to_yaml())?;
            }
            Some(definition) => {
                let (source, sink) = (definition.source.connector, definition.sink.connector);
                writeln!(out, "{}: `{}` is valid ({source} -> {sink})", one.file.display(), definition.name)?;
            }
        }
    }
    if invalid > 0 {
        writeln!(err, "{invalid} of {} definitions are not valid", found.files.len())?;
        Ok(EXIT_INVALID)
    } else if !found.problems.is_empty() {
        Ok(EXIT_NO_INPUT)
    } else {
        Ok(0)
    }
}
