//! Options that every column may have, written `fields.COLUMN.OPTION`: a table of options under a prefix, once for
//! each column and for each part of a nested one.

use std::collections::BTreeMap;

use super::{
    check::{Section, check_value},
    diagnostics::{Diagnostic, Report},
    located::{Entry, Span, Value},
    options::{OptionTable, Options},
    show::Texts,
};
use crate::model::{ColumnType, LogicalType, Schema, nearest};

/// The checked options of single columns. Without defaults: which hold depends on the column.
#[derive(Debug, Clone, Default)]
pub struct ColumnOptions {
    prefix: &'static str,
    given: BTreeMap<String, Options>,
}

impl ColumnOptions {
    /// What is given for a column, or for a part of it such as `address.city`; `None`: nothing.
    pub fn of(&self, path: &str) -> Option<&Options> {
        self.given.get(path)
    }

    /// Keys and values; `texts` says of each column's options whether secrets are masked.
    pub(super) fn texts(&self, texts: Texts) -> impl Iterator<Item = (String, String)> {
        let of = move |(path, options): (&String, &Options)| -> Vec<_> {
            texts(options).into_iter().map(|(name, value)| (format!("{}.{path}.{name}", self.prefix), value)).collect()
        };
        self.given.iter().flat_map(of)
    }
}

/// Where the options of columns stand: by path and name.
pub(super) type ColumnOptionPlaces = BTreeMap<(String, &'static str), Span>;

/// The columns and the parts of nested ones, each by the path that its options are written with: a field of a ROW by
/// its name, the parts of an ARRAY and a MAP as `element`, `key` and `value`.
fn paths(schema: &Schema) -> BTreeMap<String, &ColumnType> {
    fn add<'a>(path: String, ty: &'a ColumnType, all: &mut BTreeMap<String, &'a ColumnType>) {
        let mut part = |name: &str, ty| add(format!("{path}.{name}"), ty, all);
        match &ty.logical {
            LogicalType::Array(element) => part("element", element),
            LogicalType::Map(key, value) => {
                part("key", key);
                part("value", value);
            }
            LogicalType::Row(fields) => fields.iter().for_each(|field| part(&field.name, &field.ty)),
            _ => {}
        }
        all.insert(path, ty);
    }
    let mut all = BTreeMap::new();
    for column in schema.columns.iter().filter(|column| column.metadata.is_none()) {
        add(column.name.clone(), &column.ty, &mut all);
    }
    all
}

/// Whether a key is one that [`check_columns`] looks at.
pub(super) fn is_of(table: &OptionTable, key: &str) -> bool {
    key.strip_prefix(table.name).is_some_and(|rest| rest.starts_with('.'))
}

/// What a key that is no option was probably meant to be.
pub(super) enum Meant {
    /// An option of a column, with the prefix misspelt; the right spelling.
    Nearest(String),
    /// One, with what is below the prefix written as a mapping; how it is written.
    Written(String),
}

/// Whether a key that is no option was probably meant to be one of the table's.
pub(super) fn meant_column(table: &OptionTable, entry: &Entry) -> Option<Meant> {
    let first = |value: &Value| match value {
        Value::Mapping(entries) => entries.first().cloned(),
        _ => None,
    };
    let key = entry.key.value.as_str();
    if key != table.name {
        let (prefix, rest) = key.split_once('.')?;
        nearest(prefix, [table.name])?;
        return Some(Meant::Nearest(format!("{}.{rest}", table.name)));
    }
    let column = first(&entry.value.value)?;
    let option = first(&column.value.value).map_or_else(|| "OPTION".to_owned(), |option| option.key.value);
    Some(Meant::Written(format!("{key}.{}.{option}", column.key.value)))
}

/// Reads every key of the section that begins with the table's name. `complete`: the schema has every column that was
/// declared, so that one it does not have is an error.
pub(super) fn check_columns(
    table: &'static OptionTable,
    schema: &Schema,
    complete: bool,
    section: Section<'_>,
    report: &mut Report,
) -> (ColumnOptions, ColumnOptionPlaces) {
    let mut read = ColumnOptions { prefix: table.name, given: BTreeMap::new() };
    let mut places = ColumnOptionPlaces::new();
    let paths = paths(schema);
    for entry in section.entries.iter().filter(|entry| is_of(table, &entry.key.value)) {
        let key = entry.key.value.as_str();
        let rest = key.get(table.name.len() + 1..).unwrap_or_default();
        // The last dot: a column's name may have some.
        let (path, name) = rest.rsplit_once('.').unwrap_or((rest, ""));
        let Some(spec) = table.find(name).filter(|_| !complete || paths.contains_key(path)) else {
            report.push(unknown(table, &paths, complete, section.name, rest).at(entry.key.span));
            continue;
        };
        places.insert((path.to_owned(), spec.name), entry.value.span);
        if let Some((value, secret)) = check_value(spec, key, &entry.value, report) {
            read.given.entry(path.to_owned()).or_default().insert_from(spec, value, secret);
        }
    }
    (read, places)
}

/// What is wrong with the part of a key behind the prefix.
fn unknown(
    table: &OptionTable,
    paths: &BTreeMap<String, &ColumnType>,
    complete: bool,
    section: &str,
    rest: &str,
) -> Diagnostic {
    let prefix = table.name;
    let options = || table.options.iter().map(|spec| spec.name);
    let list = |names: &mut dyn Iterator<Item = &str>| {
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        format!("one of {}", names.join(", "))
    };
    let (path, name) = match rest.rsplit_once('.') {
        Some(parts) if !paths.contains_key(rest) => parts,
        // A column without an option behind it, or nothing that looks like either.
        _ => {
            return Diagnostic::error(format!("`{prefix}.{rest}` names no option of a column"))
                .expected(format!("`{prefix}.COLUMN.OPTION`, with an option of {}", list(&mut options())));
        }
    };
    let known = !complete || paths.contains_key(path);
    let column = if known { Some(path) } else { nearest(path, paths.keys().map(String::as_str)) };
    let option = nearest(name, options());
    let meant = column.zip(option).map(|(column, option)| format!("{prefix}.{column}.{option}"));
    let message = if known {
        format!("`{section}` has no option `{prefix}.{rest}`: a column has no `{name}`")
    } else {
        format!("`{section}` has no option `{prefix}.{rest}`: there is no column `{path}`")
    };
    let diagnostic = Diagnostic::error(message);
    match meant {
        Some(meant) => diagnostic.nearest(Some(meant)),
        None if known => diagnostic.expected(list(&mut options())),
        None => diagnostic.expected(list(&mut paths.keys().map(String::as_str))),
    }
}
