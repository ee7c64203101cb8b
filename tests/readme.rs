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
    cli::Exit,
    connectors::REGISTRY,
    definition::{ConnectorTables, MetadataKey, OptionTable, RoleTables, sections},
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

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// `prefix`: what stands before each name.
fn option_table(table: &OptionTable, prefix: &str) -> String {
    if table.options.is_empty() {
        return "It has no options.\n".to_owned();
    }
    let mut text = String::from("| option | default | values | meaning |\n|---|---|---|---|\n");
    for option in table.options {
        let default = match option.default {
            Some(default) => format!("`{default}`"),
            None if option.required => "required".to_owned(),
            None => "none".to_owned(),
        };
        let masked = if option.secret { " Never shown." } else { "" };
        let (values, meaning) = (cell(&option.kind.describe()), cell(option.doc));
        writeln!(text, "| `{prefix}{}` | {} | {values} | {meaning}{masked} |", option.name, cell(&default)).unwrap();
    }
    text
}

fn metadata_table(keys: &[MetadataKey]) -> String {
    let mut text = String::from("| key | type | meaning |\n|---|---|---|\n");
    for key in keys {
        let null = if key.nullable { "" } else { " NOT NULL" };
        writeln!(text, "| `{}` | {}{null} | {} |", key.name, key.logical, cell(key.doc)).unwrap();
    }
    text
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

fn roles(connector: &'static ConnectorTables) -> impl Iterator<Item = &'static RoleTables> {
    connector.source.iter().chain(&connector.sink)
}

/// Every table there must be, by what its marker says.
fn tables() -> Vec<(String, String)> {
    let mut tables = vec![("metrics".to_owned(), metric_table()), ("switches".to_owned(), switch_table())];
    for table in std::iter::once(&sections::TOP).chain(sections::SECTIONS) {
        tables.push((format!("options: {}", table.name), option_table(table, "")));
    }
    tables.push(("options: source".to_owned(), option_table(&sections::SOURCE, "")));
    tables.push(("columns: dead letters".to_owned(), letters_table()));
    for connector in REGISTRY.connectors {
        for role in roles(connector) {
            tables.push((format!("options: {}", connector.name), option_table(role.options, "")));
            if let Some(columns) = role.columns {
                let name = format!("options: {} {}", connector.name, columns.name);
                tables.push((name, option_table(columns, &format!("{}.COLUMN.", columns.name))));
            }
            if !role.metadata.is_empty() {
                tables.push((format!("metadata: {}", connector.name), metadata_table(role.metadata)));
            }
        }
    }
    for format in REGISTRY.formats {
        tables.push((format!("options: {}", format.name), option_table(format.options, "")));
    }
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
