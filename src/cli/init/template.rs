//! The text of the definition, from the option tables.

use std::fmt::Write;

use super::End;
use crate::definition::{FormatUse, MetadataKey, OptionKind, OptionSpec, OptionTable, Role, sections};

/// What `on_error: dead_letter` needs.
const DEAD_LETTERS: &str = "\
# With `on_error: dead_letter`: where bodies and rows go that are refused for good. Any sink, with columns of its own.
# dead_letter:
#   connector: filesystem
#   path: dead-letters
#   format: json
";

/// A whole definition; valid once its variables are set.
pub(super) fn definition(source: End, sink: End) -> String {
    let mut text = String::new();
    push(
        &mut text,
        format_args!(
            "# A pipeline from `{0}` to `{1}`. What is commented out may be left out; the value is the default, or an\n\
             # example. `queuewarden describe {0}` says more, `queuewarden check FILE` what is wrong.\n",
            source.name, sink.name
        ),
    );
    optional_at_the_top(&sections::TOP, &mut text);
    end(source, (source, sink), &mut text);
    end(sink, (source, sink), &mut text);
    text.push_str(DEAD_LETTERS);
    for table in sections::SECTIONS {
        push(&mut text, format_args!("# {}:\n", table.name));
        for option in table.options {
            push(&mut text, format_args!("#   # {}\n", summary(option)));
            push(&mut text, format_args!("#   {}: {}\n", option.name, value(option, table.name)));
        }
    }
    text
}

/// Options of the file itself.
fn optional_at_the_top(table: &OptionTable, text: &mut String) {
    for option in table.options {
        push(text, format_args!("# {}\n# {}: {}\n", summary(option), option.name, value(option, "my")));
    }
}

fn end(end: End, (source, sink): (End, End), text: &mut String) {
    push(text, format_args!("{}:\n  connector: {}\n", end.role.name(), end.name));
    for option in end.tables.options.options.iter().filter(|option| option.required) {
        push(text, format_args!("  # {}\n", summary(option)));
        push(text, format_args!("  {}: {}\n", option.name, value(option, end.name)));
    }
    if let Some(format) = end.format {
        push(text, format_args!("  format: {}\n", format.name));
        for option in format.options.options.iter().filter(|option| option.required) {
            push(text, format_args!("  # {}\n", summary(option)));
            push(text, format_args!("  {}: {}\n", option.name, value(option, end.name)));
        }
    }
    match end.role {
        Role::Source => schema(source, sink, text),
        Role::Sink => text.push_str(
            "  # Without a `schema:` of its own the sink has the columns of the source. With one, columns are matched by\n  \
             # position, as INSERT INTO does.\n",
        ),
    }
    // They are of messages; what has no format makes rows up.
    let has_messages = end.role == Role::Source && end.tables.format != FormatUse::Never;
    let general = has_messages.then_some(&sections::SOURCE);
    let tables = std::iter::once(end.tables.options).chain(end.format.map(|format| format.options)).chain(general);
    for option in tables.flat_map(|table| table.options).filter(|option| !option.required) {
        if matches!(option.kind, OptionKind::Gone(_)) {
            continue;
        }
        push(text, format_args!("  # {}\n", summary(option)));
        push(text, format_args!("  # {}: {}\n", option.name, value(option, source.name)));
    }
    for option in end.tables.columns.iter().flat_map(|table| table.options) {
        let prefix = end.tables.columns.map_or("", |table| table.name);
        push(text, format_args!("  # {}\n", summary(option)));
        push(text, format_args!("  # {prefix}.COLUMN.{}: {}\n", option.name, value(option, source.name)));
    }
}

fn schema(source: End, sink: End, text: &mut String) {
    text.push_str("  # Columns as in CREATE TABLE, read from the body by their names.\n  schema:\n");
    // A format that does not look into bodies has one column for all of it.
    let is_raw = |end: End| end.format.is_some_and(|format| format.name == "raw");
    let columns = if is_raw(source) || is_raw(sink) { &["body: STRING"][..] } else { &["id: BIGINT", "name: STRING"] };
    columns.iter().for_each(|column| push(text, format_args!("    {column}\n")));
    for key @ MetadataKey { name, nullable, doc, .. } in source.tables.metadata {
        let null = if *nullable { "" } else { " NOT NULL" };
        let declared = scalar(&format!("{}{null} METADATA", key.logical()));
        push(text, format_args!("    # {}\n    # {name}: {declared}\n", first_sentence(doc)));
    }
    if let (Some(window), Some((column, _))) =
        (source.tables.key_window, columns.first().and_then(|c| c.split_once(':')))
    {
        push(text, format_args!("  # Rows whose key was first seen within `{}` are dropped\n", window.name));
        push(text, format_args!("  # primaryKey: {column}\n"));
    }
}

/// What to write for an option: its default, an example, or any value it accepts. `owner`: whose it is, for the name
/// of a secret's variable.
fn value(option: &OptionSpec, owner: &str) -> String {
    if let Some(given) = option.default.or(option.example) {
        return scalar(given);
    }
    if option.secret {
        let word = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_ascii_uppercase();
        return format!("${{{}_{}}}", word(owner), word(option.name));
    }
    scalar(&match option.kind {
        OptionKind::Text | OptionKind::AnyText => format!("my-{}", option.name),
        OptionKind::Url => "http://127.0.0.1".to_owned(),
        OptionKind::Integer { min, max } => 1_i64.clamp(min, max).to_string(),
        OptionKind::Boolean => "false".to_owned(),
        OptionKind::Duration { min, .. } => format!("{}ms", min.as_millis().max(1)),
        OptionKind::Choice { values, .. } => values.first().copied().unwrap_or_default().to_owned(),
        OptionKind::Path => "out".to_owned(),
        OptionKind::Character => ",".to_owned(),
        OptionKind::Size => "1mb".to_owned(),
        OptionKind::Number => "1".to_owned(),
        OptionKind::Share => "0".to_owned(),
        OptionKind::Rate => "500/s".to_owned(),
        OptionKind::Backoff => "1s..60s".to_owned(),
        OptionKind::Gone(_) => String::new(),
    })
}

/// A value of YAML that reads as `text`: bare where that is plain to see, else in quotes.
fn scalar(text: &str) -> String {
    let variable = text.starts_with("${") && text.ends_with('}');
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/:-".contains(c);
    let word = text.starts_with(|c: char| c.is_ascii_alphanumeric()) || text.parse::<i64>().is_ok();
    if variable || (word && !text.eq_ignore_ascii_case("null") && !text.ends_with(':') && text.chars().all(plain)) {
        return text.to_owned();
    }
    // What JSON quotes, YAML reads as the same.
    serde_json::Value::from(text).to_string()
}

/// One line that says what an option is.
fn summary(option: &OptionSpec) -> String {
    let what = first_sentence(option.doc);
    match option.kind {
        OptionKind::Choice { values, .. } => format!("{what} [{}]", values.join(" | ")),
        _ => what.to_owned(),
    }
}

fn first_sentence(doc: &str) -> &str {
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim_end_matches('.')
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(piece);
}
