//! For programs: one object for each thing, or the one asked for.

use serde_json::{Map, Value, json};

use super::{Subject, roles};
use crate::definition::{FormatUse, MetadataKey, OptionKind, OptionSpec, OptionTable, RoleTables, show_duration};

/// `single`: the thing itself, not a list of one.
pub(super) fn all(subjects: &[Subject], single: bool) -> String {
    let mut values: Vec<Value> = subjects.iter().map(|subject| one(*subject)).collect();
    let whole = if single { values.pop().unwrap_or_default() } else { Value::Array(values) };
    format!("{whole:#}\n")
}

fn one(subject: Subject) -> Value {
    match subject {
        Subject::Section(table) => json!({"kind": "section", "name": table.name, "options": options(table)}),
        Subject::Format(format) => {
            json!({"kind": "format", "name": format.name, "options": options(format.options)})
        }
        Subject::Connector(connector) => {
            let mut value =
                Map::from_iter([("kind".to_owned(), "connector".into()), ("name".to_owned(), connector.name.into())]);
            value.extend(roles(connector).map(|(at, tables)| (at.name().to_owned(), role(tables))));
            value.into()
        }
    }
}

fn role(tables: &RoleTables) -> Value {
    let (required, default) = match tables.format {
        FormatUse::Never => (false, None),
        FormatUse::Required(_) => (true, None),
        FormatUse::Defaulted(choices) => (false, choices.first()),
    };
    json!({
        "formats": {"choices": tables.format.choices(), "required": required, "default": default},
        "options": options(tables.options),
        "column_options": tables.columns.map(|table| json!({"prefix": table.name, "options": options(table)})),
        "primary_key_window": tables.key_window.map(|option| option.name),
        "metadata": tables.metadata.iter().map(metadata).collect::<Vec<_>>(),
    })
}

fn metadata(key: &MetadataKey) -> Value {
    json!({"key": key.name, "type": key.logical().to_string(), "nullable": key.nullable, "meaning": key.doc})
}

fn options(table: &OptionTable) -> Vec<Value> {
    table.options.iter().map(|option| self::option(option)).collect()
}

fn option(option: &OptionSpec) -> Value {
    let mut value = json!({
        "name": option.name,
        "required": option.required,
        "default": option.default,
        "secret": option.secret,
        "flink": !option.ours,
        "needs": option.needs,
        "values": option.kind.describe(),
        "meaning": option.doc,
    });
    if let Value::Object(value) = &mut value {
        kind(option.kind, value);
    }
    value
}

/// The type of an option's value, and what bounds it.
fn kind(kind: OptionKind, value: &mut Map<String, Value>) {
    let mut set = |key: &str, it: Value| {
        value.insert(key.to_owned(), it);
    };
    let name = match kind {
        OptionKind::Text => "text",
        OptionKind::AnyText => "any_text",
        OptionKind::Url => "url",
        OptionKind::Boolean => "boolean",
        OptionKind::Path => "path",
        OptionKind::Character => "character",
        OptionKind::Size => "size",
        OptionKind::Number => "number",
        OptionKind::Share => "share",
        OptionKind::Rate => "rate",
        OptionKind::Backoff => "backoff",
        OptionKind::Gone(_) => "gone",
        OptionKind::Integer { min, max } => {
            set("min", min.into());
            set("max", max.into());
            "integer"
        }
        OptionKind::Duration { min, max } => {
            set("min", show_duration(min).into());
            if max != std::time::Duration::MAX {
                set("max", show_duration(max).into());
            }
            "duration"
        }
        OptionKind::Choice { values, any_case } => {
            set("choices", values.into());
            set("any_case", any_case.into());
            "choice"
        }
    };
    set("type", name.into());
}
