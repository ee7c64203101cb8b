//! For people at a terminal.

use std::fmt::Write;

use super::{Subject, format_use, primary_key_use, roles};
use crate::definition::{MetadataKey, OptionTable};

/// Width that texts are broken at.
const WIDTH: usize = 100;

pub(super) fn all(subjects: &[Subject]) -> String {
    let parts: Vec<_> = subjects.iter().map(|subject| one(*subject)).collect();
    parts.join("\n")
}

fn one(subject: Subject) -> String {
    let mut text = String::new();
    match subject {
        Subject::Section(table) => {
            push(&mut text, format_args!("{} (section)\n", table.name));
            options(table, "", &mut text);
        }
        Subject::Format(format) => {
            push(&mut text, format_args!("{} (format)\n", format.name));
            options(format.options, "", &mut text);
        }
        Subject::Connector(connector) => {
            for (at, (role, tables)) in roles(connector).enumerate() {
                let between = if at > 0 { "\n" } else { "" };
                push(&mut text, format_args!("{between}{} ({})\n", connector.name, role.name()));
                for has in format_use(tables).into_iter().chain(primary_key_use(tables)) {
                    push(&mut text, format_args!("\n  {has}\n"));
                }
                options(tables.options, "", &mut text);
                if let Some(columns) = tables.columns {
                    text.push_str("\n  options of each column\n");
                    options(columns, &format!("{}.COLUMN.", columns.name), &mut text);
                }
                metadata(tables.metadata, &mut text);
            }
        }
    }
    text
}

fn options(table: &OptionTable, prefix: &str, text: &mut String) {
    if table.options.is_empty() {
        text.push_str("\n  it has no options\n");
    }
    for option in table.options {
        let default = match option.default {
            Some(default) => format!("= {default}"),
            None if option.required => "required".to_owned(),
            None => "optional".to_owned(),
        };
        push(text, format_args!("\n  {prefix}{}  {default}\n", option.name));
        paragraph(&option.kind.describe(), text);
        paragraph(&option.meaning(), text);
    }
}

fn metadata(keys: &[MetadataKey], text: &mut String) {
    if keys.is_empty() {
        return;
    }
    text.push_str("\n  metadata columns\n");
    for key in keys {
        let null = if key.nullable { "" } else { " NOT NULL" };
        push(text, format_args!("\n  {}  {}{null}\n", key.name, key.logical()));
        paragraph(key.doc, text);
    }
}

/// Indented and broken between words.
fn paragraph(words: &str, text: &mut String) {
    const INDENT: &str = "      ";
    let mut column = 0;
    for word in words.split(' ') {
        let width = word.chars().count();
        if column == 0 || column + 1 + width > WIDTH {
            let begin = if column == 0 { "" } else { "\n" };
            push(text, format_args!("{begin}{INDENT}{word}"));
            column = INDENT.len() + width;
        } else {
            push(text, format_args!(" {word}"));
            column += 1 + width;
        }
    }
    text.push('\n');
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(piece);
}
