//! `queuewarden test`: what a definition makes of given messages, against `NAME.test.yaml` beside it.
//!
//! The decoder and the columns of the sink are those of the definition. Nothing is opened and nothing is written:
//! neither source nor sink nor state.

mod expected;
mod feed;
mod outcome;

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, check::style_of_stderr, failed, told::Told};
use crate::{
    connectors::{Plan, load},
    definition::{Case, Environment, PipelineDefinition, Report, TestFile, discover_tests, read_test},
};
use expected::Values;
use outcome::{Difference, compare};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Tests (`NAME.test.yaml`), definitions that have one, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Counts of what was run.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Files that could not be run.
    invalid: usize,
    missing: usize,
}

/// Runs them; a line per case goes to stdout, what is wrong with files to stderr.
pub fn run(args: &TestArgs) -> Exit {
    match run_all(args) {
        Ok(tally) if tally.invalid > 0 => Exit::Definition,
        Ok(tally) if tally.missing > 0 => Exit::NoInput,
        Ok(tally) if tally.failed > 0 => Exit::TestFailed,
        Ok(_) => Exit::Done,
        Err(error) => failed("the result cannot be shown", &error),
    }
}

fn run_all(args: &TestArgs) -> io::Result<Tally> {
    let (mut out, mut err) = (io::stdout().lock(), Told);
    let coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut tally = Tally::default();
    let paths: Vec<_> = args.paths.iter().map(|path| test_of(path)).collect();
    let found = discover_tests(&paths);
    for (path, why) in &found.problems {
        writeln!(err, "{}: error: {why}", path.display())?;
        tally.missing += 1;
    }
    for file in &found.files {
        let Some(definition) = definition_of(file) else {
            writeln!(err, "{}: error: there is no definition beside it that it is a test of", file.display())?;
            tally.missing += 1;
            continue;
        };
        let results = match run_file(file, &definition) {
            Ok(results) => results,
            Err(reports) => {
                for report in reports {
                    err.write_all(report.render(style_of_stderr()).as_bytes())?;
                }
                tally.invalid += 1;
                continue;
            }
        };
        for Result { name, place, difference } in results {
            match difference {
                None => {
                    tally.passed += 1;
                    writeln!(out, "ok      {}: {name}", file.display())?;
                }
                Some(difference) => {
                    tally.failed += 1;
                    writeln!(out, "FAILED  {}:{place}: {name}", file.display())?;
                    write!(out, "{}", difference.shown(coloured))?;
                }
            }
        }
    }
    let Tally { passed, failed, invalid, .. } = tally;
    let invalid = if invalid > 0 { format!(", {invalid} files not valid") } else { String::new() };
    writeln!(out, "{passed} passed, {failed} failed{invalid}")?;
    Ok(tally)
}

/// The test of a definition; a folder, or what is a test itself, stays what it is.
fn test_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"));
    match stem {
        Some(stem) if !stem.ends_with(".test") && !path.is_dir() => {
            let short = path.with_file_name(format!("{stem}.test.yml"));
            if short.is_file() { short } else { path.with_file_name(format!("{stem}.test.yaml")) }
        }
        _ => path.to_owned(),
    }
}

/// The definition that a test is of.
fn definition_of(test: &Path) -> Option<PathBuf> {
    let name = test.file_name()?.to_str()?;
    let stem = name.strip_suffix(".test.yaml").or_else(|| name.strip_suffix(".test.yml"))?;
    let both = [".yaml", ".yml"].map(|extension| test.with_file_name(format!("{stem}{extension}")));
    both.into_iter().find(|file| file.is_file())
}

/// What became of a case.
struct Result {
    name: String,
    place: String,
    /// `None`: it did what the test says.
    difference: Option<Difference>,
}

/// Runs the cases of a file. `Err`: what is wrong with it or its definition, so that none was run.
fn run_file(file: &Path, definition: &Path) -> std::result::Result<Vec<Result>, Vec<Report>> {
    let environment = Environment::of_process(None).with_placeholders();
    let mut loaded = load(&[definition.to_owned()], &environment);
    let mut test = read_test(file);
    let one = loaded.pop();
    let (Some(definition), Some(plan)) =
        (one.as_ref().and_then(|one| one.read.definition.as_ref()), one.as_ref().and_then(|one| one.plan.as_ref()))
    else {
        let of_definition = one.map(|one| one.read.report);
        return Err(of_definition.into_iter().chain([test.report]).collect());
    };
    let results = run_cases(&mut test, file, definition, plan);
    if test.report.has_errors() { Err(vec![test.report]) } else { Ok(results) }
}

fn run_cases(test: &mut TestFile, file: &Path, definition: &PipelineDefinition, plan: &Plan) -> Vec<Result> {
    let TestFile { cases, report } = test;
    if report.has_errors() {
        return Vec::new();
    }
    let values = match Values::of(&definition.sink.schema) {
        Ok(values) => values,
        Err(diagnostic) => {
            report.push(*diagnostic);
            return Vec::new();
        }
    };
    let run = |case: &Case| {
        let expected = values.rows(&case.rows, report);
        let messages = feed::messages(case, file, (&definition.source, &plan.transport), report);
        // A mistake in a case does not hide those in others.
        let (Some(expected), Some(messages)) = (expected, messages) else { return None };
        let outcome = match feed::run(definition, plan, &messages, &values) {
            Ok(outcome) => outcome,
            Err(diagnostic) => {
                report.push((*diagnostic).at(case.place));
                return None;
            }
        };
        Some(Result {
            name: case.name.clone(),
            place: format!("{}:{}", case.place.line, case.place.column),
            difference: compare(case, &expected, &outcome, values.names()),
        })
    };
    cases.iter().filter_map(run).collect()
}
