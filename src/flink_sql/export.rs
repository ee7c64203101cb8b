//! From a definition to a script.
//!
//! Values are taken as they are written, so that a reference stays one and a secret is not shown.

use super::{
    rename::query_of,
    script::{Piece, pieces},
    sql,
    write::declared,
};
use crate::{
    connectors::REGISTRY,
    definition::{
        Endpoint, Entry, FormatUse, Node, OnError, OptionSpec, PipelineDefinition, Role, Value, is_reference, sections,
        show_duration, written,
    },
};

/// Connectors whose counterpart in Flink has no metadata columns, by its page.
const WITHOUT_METADATA: [&str; 2] = ["mns", "cmq"];

/// Writes the script. `text`: the file that the definition was read from.
pub fn export(definition: &PipelineDefinition, text: &str) -> String {
    let root = written(text);
    let name = definition.name.as_str();
    let stem: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let (source, sink) = (format!("{stem}_source"), format!("{stem}_sink"));
    let mut exporting = Exporting { root: root.as_ref(), lacking: Vec::new(), refused: Vec::new() };
    let settings = exporting.settings(definition);
    let tables = [exporting.table(&source, &definition.source), exporting.table(&sink, &definition.sink)];
    exporting.general(definition);
    let select = match exporting.top("query") {
        Some(query) => query_of(query, &source, &definition.source.schema),
        None => format!("SELECT * FROM {}", sql::name(&source)),
    };
    // A comment at its end would swallow the semicolon.
    let end = if select.lines().last().is_some_and(|line| line.contains("--")) { "\n;" } else { ";" };
    let insert = format!("INSERT INTO {}\n{}{end}\n", sql::name(&sink), select.trim_end());

    let mut script = sql::comment(&format!("The pipeline {name} of Queuewarden, for Flink."));
    let body = [settings, tables.join("\n"), insert].join("\n");
    if body.contains("${") {
        script += &sql::comment("${...} stands for a value that is not shown: put it in, or have it put in.");
    }
    if names_hold_dollars(&body) {
        script += &sql::comment("Only in a name, between backticks, it is just that.");
    }
    let mut list = |head: &str, lines: &[String]| {
        if !lines.is_empty() {
            script += &sql::comment("");
            script += &sql::comment(head);
            lines.iter().for_each(|line| script += &sql::comment(&format!("  {line}")));
        }
    };
    list("Flink has nothing for these, and they are left out:", &exporting.lacking);
    list(
        "The connector of Flink has no such metadata, and will refuse these columns. Take them out:",
        &exporting.refused,
    );
    let lines = script.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    format!("{lines}\n{body}")
}

struct Exporting<'a> {
    root: Option<&'a Node>,
    /// What has no counterpart, a line each.
    lacking: Vec<String>,
    /// Columns that the connector of Flink does not have, a line each.
    refused: Vec<String>,
}

fn entries(node: Option<&Node>) -> &[Entry] {
    match node.map(|node| &node.value) {
        Some(Value::Mapping(entries)) => entries,
        _ => &[],
    }
}

/// The text of a key of a section.
fn within<'a>(entries: &'a [Entry], key: &str) -> Option<&'a str> {
    entries.iter().find(|entry| entry.key.value == key).and_then(|entry| scalar(&entry.value))
}

fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar(scalar) => Some(&scalar.text),
        _ => None,
    }
}

impl<'a> Exporting<'a> {
    fn at(&self, key: &str) -> Option<&'a Node> {
        entries(self.root).iter().find(|entry| entry.key.value == key).map(|entry| &entry.value)
    }

    /// A text at the top of the definition.
    fn top(&self, key: &str) -> Option<&'a str> {
        self.at(key).and_then(scalar)
    }

    fn lacks(&mut self, what: impl Into<String>) {
        self.lacking.push(what.into());
    }

    /// An option that Flink does not have.
    fn lacks_option(&mut self, place: &str, key: &str, secret: bool, value: &Node) {
        let shown = scalar(value).filter(|_| !secret).map_or_else(String::new, |text| format!(": {text}"));
        self.lacks(format!("{place}.{key}{shown}"));
    }

    fn settings(&mut self, definition: &PipelineDefinition) -> String {
        let mut settings = String::new();
        let mut set = |key: &str, value: &str| settings += &format!("SET '{key}' = {};\n", sql::value(value));
        set("pipeline.name", definition.name.as_str());
        let checkpoint = entries(self.at("checkpoint"));
        let given = |key: &str| within(checkpoint, key);
        let interval = show_duration(definition.checkpoint.interval);
        // Without it Flink takes no checkpoints, and nothing would be acknowledged.
        set("execution.checkpointing.interval", given(sections::INTERVAL.name).unwrap_or(&interval));
        if let Some(timeout) = given(sections::TIMEOUT.name) {
            set("execution.checkpointing.timeout", timeout);
        }
        let restart = entries(self.at("restart"));
        // What is not known here stays a reference.
        let referred = |key: &str| within(restart, key).filter(|text| text.contains("${")).map(str::to_owned);
        if !restart.is_empty() {
            let of = &definition.restart;
            let max = referred(sections::RESTART_MAX.name);
            let (least, most) = (show_duration(of.backoff_min), show_duration(of.backoff_max));
            if of.max == 0 && max.is_none() {
                set("restart-strategy.type", "none");
            } else {
                let within = referred(sections::RESTART_WITHIN.name).unwrap_or_else(|| show_duration(of.within));
                set("restart-strategy.type", "failure-rate");
                let max = max.unwrap_or_else(|| of.max.to_string());
                set("restart-strategy.failure-rate.max-failures-per-interval", &max);
                set("restart-strategy.failure-rate.failure-rate-interval", &within);
                set("restart-strategy.failure-rate.delay", &least);
            }
            let backoff = referred(sections::RESTART_BACKOFF.name);
            if least != most || backoff.is_some() {
                let backoff = backoff.unwrap_or_else(|| format!("{least}..{most}"));
                self.lacks(format!("restart.backoff: {backoff}; the wait of failure-rate does not grow"));
            }
        }
        for entry in checkpoint.iter().filter(|entry| entry.key.value == sections::MAX_UNACKNOWLEDGED.name) {
            self.lacks_option("checkpoint", &entry.key.value, false, &entry.value);
        }
        settings
    }

    /// What the definition says as a whole and Flink has no word for.
    fn general(&mut self, definition: &PipelineDefinition) {
        for section in ["batch", "credits"] {
            for entry in entries(self.at(section)) {
                self.lacks_option(section, &entry.key.value, false, &entry.value);
            }
        }
        if let Some(unknown) = self.top(sections::ON_ERROR.name).filter(|text| text.contains("${")) {
            return self.lacks(format!("on_error: {unknown}; in Flink the job fails"));
        }
        match (definition.on_error, &definition.dead_letter) {
            (OnError::Fail, _) => {}
            (OnError::DeadLetter, Some(letters)) => {
                self.lacks(format!("on_error: dead_letter, to {}; in Flink the job fails", letters.connector));
            }
            _ => self.lacks("on_error: skip; in Flink the job fails"),
        }
    }

    fn table(&mut self, name: &str, endpoint: &Endpoint) -> String {
        let mut lines: Vec<String> = Vec::new();
        let role = endpoint.role.name();
        for column in &endpoint.schema.columns {
            if column.metadata.is_some() && WITHOUT_METADATA.contains(&endpoint.connector) {
                self.refused.push(format!("{role}: {} {}", column.name, declared(column)));
            }
            lines.push(format!("  {} {}", sql::name(&column.name), declared(column)));
        }
        if !endpoint.primary_key.is_empty() {
            let columns: Vec<_> = endpoint.primary_key.iter().map(|column| sql::name(column)).collect();
            lines.push(format!("  PRIMARY KEY ({}) NOT ENFORCED", columns.join(", ")));
        }
        let mut options = vec![format!("  'connector' = '{}'", endpoint.connector)];
        for entry in entries(self.at(role)) {
            if let Some(option) = self.option(endpoint, entry) {
                options.push(option);
            }
        }
        let (columns, options) = (lines.join(",\n"), options.join(",\n"));
        format!("CREATE TEMPORARY TABLE {} (\n{columns}\n) WITH (\n{options}\n);\n", sql::name(name))
    }

    /// A pair of the WITH clause; `None`: the entry is none, or Flink has no such option.
    fn option(&mut self, endpoint: &Endpoint, entry: &Entry) -> Option<String> {
        let (key, role) = (entry.key.value.as_str(), endpoint.role);
        if ["connector", "schema", "primaryKey"].contains(&key) {
            return None;
        }
        let tables = REGISTRY.connector(endpoint.connector).and_then(|connector| role.of(connector))?;
        let text = scalar(&entry.value)?;
        // The pages of those that can do without a format know none.
        let has_format = matches!(tables.format, FormatUse::Required(_));
        if key == "format" {
            if !has_format && text != tables.format.choices().first().copied().unwrap_or_default() {
                self.lacks(format!("{}.format: {text}; the connector takes delimited text and bytes", role.name()));
            }
            return has_format.then(|| format!("  'format' = {}", sql::value(text)));
        }
        let of_format = endpoint.format.as_ref().and_then(|format| REGISTRY.format(format.name)?.options.find(key));
        let general = (role == Role::Source).then(|| sections::SOURCE.find(key)).flatten();
        let spec = tables.options.find(key).or(of_format).or(general);
        let flinks = spec.is_none_or(|spec| !spec.ours) && general.is_none() && (of_format.is_none() || has_format);
        if !flinks {
            self.lacks_option(role.name(), key, spec.is_some_and(|spec| spec.secret), &entry.value);
            return None;
        }
        let value = match spec.filter(|spec| spec.secret) {
            Some(secret) => secret_value(secret, text),
            None => text.to_owned(),
        };
        Some(format!("  {} = {}", sql::text(key), sql::value(&value)))
    }
}

/// Whether a name of the script looks like a reference, which it never is. Flink has no escapes in names.
fn names_hold_dollars(script: &str) -> bool {
    let is_one = |piece: &Piece| piece.name().is_some_and(|name| name.contains("${"));
    script.contains("${") && pieces(script).is_ok_and(|pieces| pieces.iter().any(is_one))
}

/// What may be shown of a secret: the reference that it is, without a default; or where to put it.
fn secret_value(spec: &OptionSpec, text: &str) -> String {
    let reference = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    match reference.filter(|reference| !reference.contains('}') && is_reference(reference)) {
        Some(reference) => format!("${{{}}}", reference.split(":-").next().unwrap_or(reference)),
        None => format!("<{}>", spec.name),
    }
}
