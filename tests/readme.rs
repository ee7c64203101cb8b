//! What the README and `deploy/` say of options, metrics, exit codes and variables is what the program has.
//!
//! `UPDATE_README=1 cargo test --test readme` writes the tables.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use queuewarden::{
    cli::{
        Exit,
        describe::markdown::{self, cell},
    },
    emulator::SWITCHES,
    model::DEAD_LETTER_COLUMNS,
    supervisor::State,
    telemetry::{METRIC_DOCS, Metrics},
};

const END: &str = "<!-- end -->";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("README.md is there")
}

fn letters_table() -> String {
    let mut text = String::from("| column | type | meaning |\n|---|---|---|\n");
    for (name, declared, meaning) in DEAD_LETTER_COLUMNS {
        writeln!(text, "| `{name}` | {declared} | {} |", cell(meaning)).unwrap();
    }
    text
}

fn metric_table() -> String {
    let mut text = String::from("| metric | labels | meaning |\n|---|---|---|\n");
    for (name, labels, help) in METRIC_DOCS {
        writeln!(text, "| `{name}` | {} | {} |", labels.join(", "), cell(help)).unwrap();
    }
    text
}

fn switch_table() -> String {
    let mut text = String::from("| switch | takes | what happens |\n|---|---|---|\n");
    for switch in &SWITCHES {
        writeln!(text, "| `{}` | {} | {} |", switch.name, switch.takes(), cell(switch.doc)).unwrap();
    }
    text
}

/// Every table there must be, by what its marker says.
fn tables() -> Vec<(String, String)> {
    let mut tables = markdown::tables();
    tables.push(("metrics".to_owned(), metric_table()));
    tables.push(("switches".to_owned(), switch_table()));
    tables.push(("columns: dead letters".to_owned(), letters_table()));
    tables
}

/// Where the text between a marker and the next end marker is.
fn between(text: &str, marker: &str) -> Option<std::ops::Range<usize>> {
    let begin = text.find(&format!("<!-- {marker} -->\n"))? + marker.len() + "<!--  -->\n".len();
    let end = begin + text.get(begin..)?.find(END)?;
    Some(begin..end)
}

#[test]
fn the_tables_of_the_readme_are_those_of_the_program() {
    let mut text = readme();
    let mut wrong = String::new();
    for (marker, expected) in tables() {
        let Some(range) = between(&text, &marker) else {
            panic!("README.md has no `<!-- {marker} -->` with an `{END}` after it; it should hold:\n{expected}");
        };
        if text.get(range.clone()) != Some(expected.as_str()) {
            write!(wrong, "\n<!-- {marker} -->\n{expected}{END}\n").unwrap();
            text.replace_range(range, &expected);
        }
    }
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(root().join("README.md"), text).expect("README.md can be written");
    } else {
        assert!(wrong.is_empty(), "README.md should hold (UPDATE_README=1 writes it):\n{wrong}");
    }
}

#[test]
fn every_table_marker_of_the_readme_is_checked() {
    let known: BTreeSet<String> = tables().into_iter().map(|(marker, _)| format!("<!-- {marker} -->")).collect();
    let text = readme();
    let markers = text.lines().filter(|line| {
        ["<!-- options", "<!-- metadata", "<!-- switches"].iter().any(|marker| line.starts_with(marker))
    });
    let unknown: Vec<_> = markers.filter(|marker| !known.contains(*marker)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// README.md, ARCHITECTURE.md, CHANGELOG.md and everything in `deploy/`.
fn documents() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].iter().map(|name| root().join(name)).collect();
    let mut folders = vec![root().join("deploy")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("deploy/ is there").map(|entry| entry.expect("readable").path()) {
            if entry.is_dir() { folders.push(entry) } else { paths.push(entry) }
        }
    }
    paths
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))))
        .collect()
}

/// The words of a text that begin with a prefix and go on.
fn words<'a>(text: &'a str, prefix: &'static str) -> impl Iterator<Item = &'a str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(move |word| word.len() > prefix.len() && word.starts_with(prefix))
}

#[test]
fn every_metric_that_is_named_exists() {
    // Some metrics are not of a pipeline, and so not in the table.
    let rendered = String::from_utf8(Metrics::new().unwrap().render().unwrap()).unwrap();
    let known: BTreeSet<&str> =
        METRIC_DOCS.iter().map(|(name, ..)| *name).chain(words(&rendered, "queuewarden_")).collect();
    let exists = |name: &str| {
        let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        known.contains(name) || histogram.is_some_and(|name| known.contains(name))
    };
    let mut named = 0;
    for (path, text) in documents() {
        for name in words(&text, "queuewarden_") {
            assert!(exists(name), "{}: there is no metric {name}", path.display());
            named += 1;
        }
    }
    assert!(named > METRIC_DOCS.len(), "the documents name metrics");
}

#[test]
fn every_state_an_alert_asks_for_exists() {
    let alerts = fs::read_to_string(root().join("deploy/prometheus/alerts.yaml")).expect("alerts.yaml is there");
    let asked: Vec<&str> = alerts.split("state=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!asked.is_empty());
    for state in asked {
        assert!(State::NAMES.contains(&state), "there is no state {state}");
    }
}

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_program() {
    assert!(readme().contains(Exit::HELP), "README.md should hold:\n{}", Exit::HELP);
}

#[test]
fn every_environment_variable_that_is_named_is_read() {
    let cli = fs::read_dir(root().join("src/cli")).expect("src/cli is there").map(|entry| entry.unwrap().path());
    let sources: String = cli.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect();
    for (path, text) in documents() {
        for name in words(&text, "QUEUEWARDEN_") {
            assert!(sources.contains(&format!("env = \"{name}\"")), "{}: nothing reads {name}", path.display());
        }
    }
}

#[test]
fn the_readme_counts_the_cases_of_flink_as_they_are() {
    let (mut all, mut differing) = (0, 0);
    for format in ["json", "csv", "raw"] {
        let file = root().join(format!("tests/fixtures/flink-cases/{format}.json"));
        let file: serde_json::Value = serde_json::from_slice(&fs::read(file).expect("cases")).expect("JSON");
        for case in file["groups"].as_array().unwrap().iter().flat_map(|group| group["cases"].as_array().unwrap()) {
            all += 1;
            differing += usize::from(!case["here"].is_null());
        }
    }
    let readme = readme();
    let agreeing = all - differing;
    for told in [
        format!("holds {all} cases"),
        format!("{all} of {all} come out as the files say"),
        format!("here {agreeing} agree with Flink, and {differing} differ as listed"),
    ] {
        assert!(readme.contains(&told), "the README does not say: {told}");
    }
}
