//! Scripts of Flink SQL: those of the connectors' pages come in, run, go out again, and Flink plans them alike.

#![cfg(feature = "sql")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

#[path = "flink_sql/errors.rs"]
mod errors;
#[path = "flink_sql/judge.rs"]
mod judge;
#[path = "flink_sql/queries.rs"]
mod queries;
#[path = "flink_sql/round_trip.rs"]
mod round_trip;
#[path = "flink_sql/runs.rs"]
mod runs;
#[path = "flink_sql/secrets.rs"]
mod secrets;
#[path = "flink_sql/verbs.rs"]
mod verbs;

use std::{
    fs,
    path::{Path, PathBuf},
};

use queuewarden::{
    connectors::REGISTRY,
    definition::{Environment, PipelineDefinition, Style, load_text},
    flink_sql::import,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The scripts of the connectors' pages, by their names.
fn scripts() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join("tests/fixtures/flink-sql")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |file: &Path| file.file_stem().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect()
}

/// The one definition that a script becomes.
fn imported(name: &str, script: &str) -> String {
    let imported = import(Path::new(&format!("{name}.sql")), script);
    let told = imported.report.render(Style::Line);
    let [pipeline] = &imported.pipelines[..] else { panic!("{name}: {} pipelines: {told}", imported.pipelines.len()) };
    pipeline.text.clone()
}

/// An environment in which every variable is set, each to a value of its own.
fn environment() -> Environment {
    // Long names are those of the examples, and may be addresses.
    let value = |name: &str| if name.len() > 3 { format!("http://{name}.invalid:8080") } else { format!("of {name}") };
    Environment::new(move |name| Some(value(name).into()), None).with_placeholders()
}

fn loaded(text: &str) -> PipelineDefinition {
    let loaded = load_text(Path::new("p.yaml"), text, &REGISTRY, &environment());
    loaded.definition.unwrap_or_else(|| panic!("{}\n{text}", loaded.report.render(Style::Line)))
}

/// The definitions that are examples.
fn examples() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join("pipelines")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.to_string_lossy().ends_with(".test.yaml"));
    files.sort();
    let name = |file: &Path| file.file_stem().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect()
}
