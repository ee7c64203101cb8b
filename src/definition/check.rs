//! Checks the entries of a mapping against option tables.

use std::collections::BTreeMap;

use super::{
    column_options::{Meant, is_of, meant_column},
    diagnostics::{Diagnostic, Report},
    located::{Entry, Node, Span, Value},
    options::{OptionKind, OptionSpec, OptionTable, OptionValue, Options},
};
use crate::model::nearest;

/// Longest part of a value that a message repeats, in characters.
const LONGEST_SHOWN: usize = 60;
/// Most names that a message lists; more are read by nobody.
const MOST_NAMED: usize = 30;

/// A mapping of a definition that holds options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    /// What it is called, as in "`endpoint` is missing from `source`".
    pub name: &'a str,
    /// Where it begins; `None`: it is the file as a whole.
    pub key: Option<Span>,
    /// Its entries.
    pub entries: &'a [Entry],
}

/// The options of one table, and where they stand.
#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    pub options: Options,
    pub places: BTreeMap<&'static str, Span>,
}

impl Section<'_> {
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.value == key)
    }
}

/// Reads every option of `table`: those given are checked, those absent get their default or are reported as
/// missing at the section, unless they are in `meant`: what [`check_keys`] has suggested for a misspelt key, of
/// which nobody needs to be told twice.
pub(super) fn check_table(
    table: &OptionTable,
    section: Section<'_>,
    meant: &[&'static str],
    report: &mut Report,
) -> Checked {
    let mut checked = Checked::default();
    for spec in table.options {
        if let Some(entry) = section.get(spec.name) {
            if let Some((value, secret)) = check_value(spec, spec.name, &entry.value, report) {
                checked.options.insert_from(spec, value, secret);
                check_needs(table, spec, section, entry.key.span, meant, report);
            }
            checked.places.insert(spec.name, entry.value.span);
        } else if let Some(default) = spec.default {
            match spec.kind.parse(default) {
                Ok(value) => checked.options.insert(spec, value),
                Err(refusal) => report.push(Diagnostic::error(format!(
                    "the option table of `{}` is wrong: the default of `{}` is not {}",
                    table.name, spec.name, refusal.expected
                ))),
            }
        } else if spec.required && !meant.contains(&spec.name) {
            let mut diagnostic =
                Diagnostic::error(format!("the required option `{}` is missing from `{}`", spec.name, section.name))
                    .expected(format!("`{}: ...`, {}", spec.name, spec.kind.describe()));
            diagnostic.span = section.key;
            report.push(diagnostic);
        }
    }
    checked
}

/// Reports that what an option needs is not given.
fn check_needs(
    table: &OptionTable,
    spec: &OptionSpec,
    section: Section<'_>,
    place: Span,
    meant: &[&'static str],
    report: &mut Report,
) {
    let missing = spec
        .needs
        .filter(|name| section.get(name).is_none() && !meant.contains(name))
        .and_then(|name| table.find(name));
    if let Some(other) = missing {
        let message = format!("`{}` needs `{}`, which is missing from `{}`", spec.name, other.name, section.name);
        let expected = format!("`{}: ...`, {}", other.name, other.kind.describe());
        report.push(Diagnostic::error(message).at(place).expected(expected));
    }
}

/// Reads one value, of the key `name`. Answers it, and whether it came from a secrets directory.
pub(super) fn check_value(
    spec: &OptionSpec,
    name: &str,
    node: &Node,
    report: &mut Report,
) -> Option<(OptionValue, bool)> {
    let scalar = match &node.value {
        Value::Scalar(scalar) => scalar,
        Value::Broken => return None,
        other => {
            let nothing = matches!(other, Value::Null);
            let mut diagnostic = Diagnostic::error(format!("`{name}` holds {}", other.describe()))
                .at(node.span)
                .expected(spec.kind.describe());
            if nothing {
                let leave_out = "leave the option out if it is not wanted, or write the text null in quotes";
                diagnostic = if spec.required { diagnostic } else { diagnostic.help(leave_out) };
            }
            report.push(diagnostic);
            return None;
        }
    };
    let hidden = spec.secret || scalar.secret || (spec.kind == OptionKind::Url && scalar.text.contains('@'));
    if !hidden {
        report.show(node.span);
    }
    match spec.kind.parse(&scalar.text) {
        Ok(value) => Some((value, scalar.secret)),
        Err(_) if scalar.unknown && (!spec.required || stand_in(spec).is_some()) => {
            stand_in(spec).map(|value| (value, scalar.secret))
        }
        Err(refusal) => {
            let message = if hidden {
                format!("the value of `{name}` cannot be used")
            } else {
                format!("`{name}` is {}", quoted(&scalar.text))
            };
            let near = refusal.nearest.filter(|_| !hidden);
            report.push_of_value(Diagnostic::error(message).at(node.span).expected(refusal.expected).nearest(near));
            None
        }
    }
}

/// What stands for a value that nobody knows yet.
fn stand_in(spec: &OptionSpec) -> Option<OptionValue> {
    let written = spec.default.or(spec.example.filter(|_| spec.required));
    written.and_then(|text| spec.kind.parse(text).ok())
}

/// A value for a message, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    if text.is_empty() {
        return "empty".to_owned();
    }
    let mut shown: String = text.chars().take(LONGEST_SHOWN).collect();
    if text.chars().nth(LONGEST_SHOWN).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

/// What may be said of a key that is not known.
pub(super) struct Keys<'a> {
    /// Keys that are not options, such as `schema`.
    pub words: &'a [&'static str],
    /// The tables whose options the section may have.
    pub tables: &'a [&'static OptionTable],
    /// The options that each column may have; [`super::column_options::check_columns`] looks at these.
    pub columns: Option<&'static OptionTable>,
    /// Says of a key that is valid elsewhere where that is.
    pub elsewhere: &'a dyn Fn(&str) -> Option<String>,
}

/// Reports every key that is none of the section's; answers what they were probably meant to be.
pub(super) fn check_keys(section: Section<'_>, keys: &Keys<'_>, report: &mut Report) -> Vec<&'static str> {
    let mut meant = Vec::new();
    let options = || keys.tables.iter().flat_map(|table| table.options.iter().map(|option| option.name));
    let required = |name| keys.tables.iter().filter_map(|table| table.find(name)).any(|option| option.required);
    let known = || keys.words.iter().copied().chain(options());
    for entry in section.entries {
        let key = entry.key.value.as_str();
        if known().any(|name| name == key) || keys.columns.is_some_and(|table| is_of(table, key)) {
            continue;
        }
        let message = format!("`{}` has no option `{key}`", section.name);
        let mut diagnostic = Diagnostic::error(message.clone()).at(entry.key.span);
        let prefix = format!("{key}.");
        let dotted = options().find(|name| name.starts_with(&prefix));
        let meant_column = keys.columns.and_then(|table| meant_column(table, entry));
        if let (Value::Mapping(inner), Some(dotted)) = (&entry.value.value, dotted) {
            let name = inner.first().map(|inner| format!("{prefix}{}", inner.key.value));
            let name = name.unwrap_or_else(|| dotted.to_owned());
            diagnostic = diagnostic.help(format!("options with a dot are written out: `{name}: ...`"));
        } else if let Some(Meant::Written(name)) = meant_column {
            diagnostic = diagnostic.help(format!("options with a dot are written out: `{name}: ...`"));
        } else if let Some(Meant::Nearest(name)) = meant_column {
            diagnostic = diagnostic.nearest(Some(name));
        } else if let Some(help) = (keys.elsewhere)(key) {
            diagnostic = diagnostic.help(help);
        } else if let Some(near) = nearest(key, known()) {
            meant.push(near);
            if section.get(near).is_none() && required(near) {
                let message = format!("{message}, and the required option `{near}` is missing");
                diagnostic = Diagnostic::error(message).at(entry.key.span);
            }
            diagnostic = diagnostic.nearest(Some(near));
        } else {
            let of_columns = keys.columns.map(|table| format!("`{}.COLUMN.OPTION`", table.name));
            let names: Vec<_> = known().map(|name| format!("`{name}`")).chain(of_columns).collect();
            diagnostic = match names.len() <= MOST_NAMED {
                true => diagnostic.expected(format!("one of {}", names.join(", "))),
                false => diagnostic.help("`queuewarden describe` lists what the connector and the format have"),
            };
        }
        report.push(diagnostic);
    }
    meant
}
