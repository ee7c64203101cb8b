//! `queuewarden check`: are these definitions valid?

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, told::Told};
use crate::{
    connectors::{Loaded, load},
    definition::{Environment, Style, discover},
};

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

/// Checks; diagnostics go to stderr, a line per valid definition to stdout.
pub fn run(args: &CheckArgs) -> Exit {
    let style = match args.report {
        Report::Line => Style::Line,
        Report::Full => style_of_stderr(),
    };
    if let Err(reason) = check_secrets_dir(args.secrets_dir.as_deref()) {
        tell!("error: {reason}");
        return Exit::NoInput;
    }
    match check(args, style) {
        Ok(exit) => exit,
        Err(error) => {
            tell!("error: {error}");
            Exit::System
        }
    }
}

/// Whether the folder of secrets, if there is to be one, is there: else each secret would be missing by itself.
pub(super) fn check_secrets_dir(dir: Option<&Path>) -> Result<(), String> {
    let Some(dir) = dir else { return Ok(()) };
    let why = match fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => "it is not a folder".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("--secrets-dir {}: {why}", dir.display()))
}

/// In colour where a person looks, unless `NO_COLOR` asks for none.
pub(super) fn style_of_stderr() -> Style {
    if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() { Style::Terminal } else { Style::Plain }
}

fn check(args: &CheckArgs, style: Style) -> io::Result<Exit> {
    let (mut out, mut err) = (io::stdout().lock(), Told);
    let found = discover(&args.paths);
    for (path, why) in &found.problems {
        writeln!(err, "{}: error: {why}", path.display())?;
    }
    let all = load(&found.files, &Environment::of_process(args.secrets_dir.clone()));
    let invalid = all.iter().filter(|one| one.plan.is_none()).count();
    for Loaded { read, .. } in &all {
        err.write_all(read.report.render(style).as_bytes())?;
        match &read.definition {
            None => {}
            Some(definition) if args.resolved => {
                writeln!(out, "---\n# {}\n{}", read.file.display(), definition.to_yaml())?;
            }
            Some(definition) => {
                let (source, sink) = (definition.source.connector, definition.sink.connector);
                writeln!(out, "{}: `{}` is valid ({source} -> {sink})", read.file.display(), definition.name)?;
            }
        }
    }
    if invalid > 0 {
        writeln!(err, "{invalid} of {} definitions are not valid", all.len())?;
    }
    Ok(match (invalid, found.problems.is_empty()) {
        (0, true) => Exit::Done,
        (0, false) => Exit::NoInput,
        _ => Exit::Definition,
    })
}
