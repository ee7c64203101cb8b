//! A table by itself: what is wrong with it is told also where the INSERT that uses it cannot be read. Of one that is
//! broken itself, or used nobody knows how, only that its connector, its format and the names of its options exist.

use std::path::PathBuf;

use super::{import::push_once, table::Table, write, yaml::Found};
use crate::{
    connectors::{REGISTRY, load_texts},
    definition::{Diagnostic, Environment, Report, Role, Span},
};

/// Tells all that is wrong with a table that is whole and used like this.
pub(super) fn check_whole(table: &Table, role: Role, environment: &Environment) -> Vec<(Diagnostic, Found)> {
    let (yaml, own) = write::alone(role, table);
    let loaded = load_texts(&[(PathBuf::from("table.yaml"), yaml.text.clone())], environment);
    let diagnostics = loaded.iter().flat_map(|loaded| loaded.read.report.diagnostics());
    let placed = diagnostics.filter_map(|diagnostic| {
        let at = diagnostic.span.map(|span| span.start).filter(|at| own.contains(at))?;
        Some((diagnostic.clone(), yaml.origin(at)?))
    });
    placed.collect()
}

/// Tells which of the names in the WITH of a table nobody knows, however the table may be used. What its values, types
/// and columns would be refused for is left to a whole definition.
pub(super) fn check_names(table: &Table, environment: &Environment, report: &mut Report) {
    let connector = table.option("connector").and_then(|option| REGISTRY.connector(&option.value.value));
    let roles = [Role::Source, Role::Sink].into_iter();
    let mut roles = roles.filter(|role| connector.is_none_or(|connector| role.of(connector).is_some()));
    let Some(first) = roles.next() else { return };
    let mut found = unknown_names(first, table, environment);
    for role in roles {
        let other = unknown_names(role, table, environment);
        found.retain(|one| other.iter().any(|other| other.span == one.span));
    }
    found.into_iter().for_each(|diagnostic| push_once(report, diagnostic));
}

fn unknown_names(role: Role, table: &Table, environment: &Environment) -> Vec<Diagnostic> {
    let (yaml, _) = write::alone(role, table);
    let names: Vec<Span> = names(table).collect();
    let loaded = load_texts(&[(PathBuf::from("table.yaml"), yaml.text.clone())], environment);
    let diagnostics = loaded.iter().flat_map(|loaded| loaded.read.report.diagnostics());
    let placed = diagnostics.filter_map(|diagnostic| {
        let place = yaml.origin(diagnostic.span?.start).filter(|found| !found.unknown)?.place;
        Some(Diagnostic { span: Some(place), ..diagnostic.clone() })
    });
    placed.filter(|diagnostic| diagnostic.span.is_some_and(|place| names.contains(&place))).collect()
}

/// Where the names stand: the keys, and the values that are names.
fn names(table: &Table) -> impl Iterator<Item = Span> {
    let named = |key: &str| key == "connector" || key == "format" || key.ends_with(".format");
    table.options.iter().flat_map(move |option| {
        let value = named(&option.key.value).then_some(option.value.span);
        std::iter::once(option.key.span).chain(value)
    })
}
