//! As tables of Markdown. The README holds these, and a test holds it to them.

use std::fmt::Write;

use super::{Subject, format_use, general_sections, primary_key_use, roles};
use crate::{
    connectors::REGISTRY,
    definition::{MetadataKey, OptionTable},
};

/// A cell of a table.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A table of options. `prefix`: what stands before each name.
pub fn option_table(table: &OptionTable, prefix: &str) -> String {
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
        let (default, values, meaning) = (cell(&default), cell(&option.kind.describe()), cell(&option.meaning()));
        push(&mut text, format_args!("| `{prefix}{}` | {default} | {values} | {meaning} |\n", option.name));
    }
    text
}

/// A table of metadata columns.
pub fn metadata_table(keys: &[MetadataKey]) -> String {
    let mut text = String::from("| key | type | meaning |\n|---|---|---|\n");
    for key in keys {
        let null = if key.nullable { "" } else { " NOT NULL" };
        push(&mut text, format_args!("| `{}` | {}{null} | {} |\n", key.name, key.logical(), cell(key.doc)));
    }
    text
}

/// Every table there is, with what names it in a document: `options: mns`, `metadata: mns`. What several connectors share
/// is there once.
pub fn tables() -> Vec<(String, String)> {
    let mut tables = Vec::new();
    for table in general_sections() {
        tables.push((format!("options: {}", table.name), option_table(table, "")));
    }
    for connector in REGISTRY.connectors {
        for (_, role) in roles(connector) {
            let name = role.options.name;
            let shared = format!("options: {name}");
            if tables.iter().any(|(other, _)| *other == shared) {
                continue;
            }
            tables.push((shared, option_table(role.options, "")));
            if let Some(columns) = role.columns {
                let name = format!("options: {name} {}", columns.name);
                tables.push((name, option_table(columns, &format!("{}.COLUMN.", columns.name))));
            }
            if !role.metadata.is_empty() {
                tables.push((format!("metadata: {name}"), metadata_table(role.metadata)));
            }
        }
    }
    for format in REGISTRY.formats {
        tables.push((format!("options: {}", format.name), option_table(format.options, "")));
    }
    tables
}

pub(super) fn all(subjects: &[Subject]) -> String {
    let parts: Vec<_> = subjects.iter().map(|subject| one(*subject)).collect();
    parts.join("\n")
}

fn one(subject: Subject) -> String {
    let mut text = String::new();
    match subject {
        Subject::Section(table) => {
            push(&mut text, format_args!("## `{}` (section)\n\n{}", table.name, option_table(table, "")));
        }
        Subject::Format(format) => {
            push(&mut text, format_args!("## `{}` (format)\n\n{}", format.name, option_table(format.options, "")));
        }
        Subject::Connector(connector) => {
            for (at, (role, tables)) in roles(connector).enumerate() {
                let between = if at > 0 { "\n" } else { "" };
                push(&mut text, format_args!("{between}## `{}` ({})\n\n", connector.name, role.name()));
                for has in format_use(tables).into_iter().chain(primary_key_use(tables)) {
                    push(&mut text, format_args!("It {has}.\n\n"));
                }
                text.push_str(&option_table(tables.options, ""));
                if let Some(columns) = tables.columns {
                    let table = option_table(columns, &format!("{}.COLUMN.", columns.name));
                    push(&mut text, format_args!("\nOptions of each column:\n\n{table}"));
                }
                if !tables.metadata.is_empty() {
                    push(&mut text, format_args!("\nMetadata columns:\n\n{}", metadata_table(tables.metadata)));
                }
            }
        }
    }
    text
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(piece);
}
