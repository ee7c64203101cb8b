//! `queuewarden import`: a script of Flink SQL becomes definitions.

use std::path::PathBuf;

use clap::Args;

use super::check::Report;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "only that there is no SQL is said then"))]
pub struct ImportArgs {
    /// The script; `-`: standard input
    #[arg(value_name = "FILE.sql")]
    script: PathBuf,
    /// The folder the definitions go to; created if it is not there
    #[arg(long, value_name = "DIR", default_value = "pipelines")]
    out: PathBuf,
    /// Print the definitions instead
    #[arg(long, conflicts_with_all = ["out", "force"])]
    print: bool,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
    /// How to show what is wrong [default: with the source line]
    #[arg(long, value_enum, default_value_t = Report::Full)]
    report: Report,
}

/// A build without SQL has none.
#[cfg(not(feature = "sql"))]
pub fn run(_: &ImportArgs) -> super::Exit {
    super::without_sql()
}

#[cfg(feature = "sql")]
pub use with_sql::run;

#[cfg(feature = "sql")]
mod with_sql {
    use std::{
        fs::{self, File, Permissions},
        io::{self, Read, Write},
        os::unix::fs::PermissionsExt,
        path::{Path, PathBuf},
    };

    use tempfile::Builder;

    use super::{
        super::{
            Exit,
            check::{Report, style_of_stderr},
            told::{hand_over, say, show},
        },
        ImportArgs,
    };
    use crate::{
        connectors::REGISTRY,
        definition::{Environment, Style, discover, load_text},
        flink_sql::{Imported, import},
    };

    /// Largest script, in bytes.
    const LARGEST: u64 = 1 << 20;

    /// Imports; diagnostics go to stderr, a line per file to stdout. If anything in the script cannot be imported nothing
    /// is written.
    pub fn run(args: &ImportArgs) -> Exit {
        let stdin = args.script.as_os_str() == "-";
        let file = if stdin { Path::new("stdin") } else { &args.script };
        let text = match read(stdin, &args.script) {
            Ok(text) => text,
            Err(Refused(exit, why)) => {
                tell!("error: {}: {why}", file.display());
                return exit;
            }
        };
        let imported = import(file, &text);
        let style = if args.report == Report::Line { Style::Line } else { style_of_stderr() };
        show(&imported.report.render(style));
        let errors = imported.report.errors();
        if errors > 0 {
            tell!("nothing is written: {errors} {} cannot be imported", if errors == 1 { "thing" } else { "things" });
            return Exit::Definition;
        }
        if args.print {
            let texts: Vec<_> = imported.pipelines.iter().map(|pipeline| pipeline.text.trim_end()).collect();
            return hand_over(&format!("{}\n", texts.join("\n---\n")));
        }
        match write_all(&args.out, &imported.pipelines, args.force) {
            Ok(written) => {
                written.iter().for_each(|file| say(&format!("{}: written", file.display())));
                Exit::Done
            }
            Err(Refused(exit, why)) => {
                tell!("error: {why}");
                exit
            }
        }
    }

    /// Why it ends, and how.
    struct Refused(Exit, String);

    fn read(stdin: bool, path: &Path) -> Result<String, Refused> {
        let missing = |error: io::Error| Refused(Exit::NoInput, error.to_string());
        let mut bytes = Vec::new();
        let input: Box<dyn Read> = match stdin {
            true => Box::new(io::stdin().lock()),
            // Opening a pipe would wait for a writer that may never come, which is what is wanted of one.
            false => Box::new(File::open(path).map_err(missing)?),
        };
        input.take(LARGEST + 1).read_to_end(&mut bytes).map_err(missing)?;
        if bytes.len() as u64 > LARGEST {
            return Err(Refused(Exit::Definition, "the script is larger than 1 MiB".to_owned()));
        }
        let text = match String::from_utf8(bytes) {
            // As UTF-16 has them where the letters are ASCII.
            Ok(text) if text.contains('\0') => {
                let before = text.split('\0').next().unwrap_or_default();
                return Err(unreadable("a zero byte", before, text.as_bytes()));
            }
            Ok(text) => text,
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let bytes = error.as_bytes();
                let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default());
                return Err(unreadable("a byte that is not UTF-8", &before, bytes));
            }
        };
        // A byte order mark is no part of the first word.
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// Says where a script cannot be read. `before`: what can be read of it.
    fn unreadable(what: &str, before: &str, bytes: &[u8]) -> Refused {
        let (line, start) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |at| at + 1));
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        let zeros = |first: usize| bytes.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
        let (most, least) = (zeros(0).max(zeros(1)), zeros(0).min(zeros(1)));
        let marked = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
        // Every other byte is zero where most letters are ASCII.
        let why = if marked || (most * 4 > bytes.len() && least * 8 < most) {
            "; it looks like UTF-16: save it as UTF-8"
        } else {
            ""
        };
        Refused(Exit::Definition, format!("the script has {what} in line {line}, column {column}{why}"))
    }

    /// Refuses names that definitions in other files of the folder have.
    fn check_names(out: &Path, files: &[PathBuf], pipelines: &[Imported]) -> Result<(), Refused> {
        let environment = Environment::new(|_| None, None).with_placeholders();
        let others = discover(&[out.to_owned()]).files.into_iter().filter(|other| !files.contains(other));
        for other in others {
            let Ok(text) = fs::read_to_string(&other) else { continue };
            let name = load_text(&other, &text, &REGISTRY, &environment).name;
            if let Some(pipeline) = pipelines.iter().find(|pipeline| Some(&pipeline.name) == name.as_ref()) {
                let why = format!("{} has a pipeline `{}` already; nothing is written", other.display(), pipeline.name);
                return Err(Refused(Exit::Refused, why));
            }
        }
        Ok(())
    }

    /// Writes every definition, or none if one of the files is there. Each appears as a whole, or not at all.
    fn write_all(out: &Path, pipelines: &[Imported], force: bool) -> Result<Vec<PathBuf>, Refused> {
        let system = |what: &Path, error: &io::Error| {
            Refused(Exit::System, format!("{} cannot be written: {error}", what.display()))
        };
        let files: Vec<_> = pipelines.iter().map(|pipeline| out.join(format!("{}.yaml", pipeline.name))).collect();
        let there: Vec<_> = files.iter().filter(|file| !force && file.symlink_metadata().is_ok()).collect();
        if !there.is_empty() {
            let there: Vec<_> = there.iter().map(|file| file.display().to_string()).collect();
            let why = format!("already there: {}; nothing is written without --force", there.join(", "));
            return Err(Refused(Exit::Refused, why));
        }
        check_names(out, &files, pipelines)?;
        fs::create_dir_all(out).map_err(|error| system(out, &error))?;
        // First all of them beside their places, so that a full disk leaves nothing half-written.
        let beside = |(file, pipeline): (&PathBuf, &Imported)| {
            let mut named = Builder::new();
            named.prefix(".import-").suffix(".tmp").permissions(Permissions::from_mode(0o666));
            let written = named.tempfile_in(out).and_then(|mut new| {
                new.write_all(pipeline.text.as_bytes())?;
                new.as_file().sync_all()?;
                Ok(new)
            });
            written.map_err(|error| system(file, &error))
        };
        let new = files.iter().zip(pipelines).map(beside).collect::<Result<Vec<_>, _>>()?;
        for (number, (file, new)) in files.iter().zip(new).enumerate() {
            let moved = if force { new.persist(file) } else { new.persist_noclobber(file) };
            moved.map_err(|error| {
                let Refused(exit, why) = system(file, &error.error);
                let written: Vec<_> = files.iter().take(number).map(|file| file.display().to_string()).collect();
                let so_far = if written.is_empty() { "nothing".to_owned() } else { written.join(", ") };
                Refused(exit, format!("{why}; written so far: {so_far}"))
            })?;
        }
        Ok(files)
    }
}
