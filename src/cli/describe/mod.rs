//! `queuewarden describe`: what connectors, formats and the other sections of a definition take.
//!
//! Everything comes from the option tables, which also check definitions; the README's tables come from here.

mod json;
pub mod markdown;
mod text;

use clap::{Args, ValueEnum};

use super::{Exit, told::hand_over};
use crate::{
    connectors::REGISTRY,
    definition::{ConnectorTables, FormatTables, FormatUse, OptionTable, Role, RoleTables, sections},
    model::nearest,
};

/// Arguments of `describe`.
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// A connector, a format, or a section of a definition such as `checkpoint` [default: all of them]
    name: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = As::Text)]
    format: As,
}

/// How to write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum As {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// As in the README.
    Markdown,
}

/// What can be described.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Connector(&'static ConnectorTables),
    Format(&'static FormatTables),
    /// Of a definition, but neither source nor sink.
    Section(&'static OptionTable),
}

impl Subject {
    fn all() -> impl Iterator<Item = Self> {
        let connectors = REGISTRY.connectors.iter().copied().map(Self::Connector);
        let formats = REGISTRY.formats.iter().copied().map(Self::Format);
        connectors.chain(formats).chain(general_sections().map(Self::Section))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Connector(connector) => connector.name,
            Self::Format(format) => format.name,
            Self::Section(table) => table.name,
        }
    }
}

fn general_sections() -> impl Iterator<Item = &'static OptionTable> {
    [&sections::TOP, &sections::SOURCE].into_iter().chain(sections::SECTIONS)
}

/// What a connector can be.
fn roles(connector: &'static ConnectorTables) -> impl Iterator<Item = (Role, &'static RoleTables)> {
    [Role::Source, Role::Sink].into_iter().filter_map(move |role| Some((role, role.of(connector)?)))
}

/// Whether and which format, in words; `None`: it has none.
fn format_use(tables: &RoleTables) -> Option<String> {
    let names: Vec<_> = tables.format.choices().iter().map(|name| format!("`{name}`")).collect();
    match (tables.format, names.first()) {
        (FormatUse::Required(_), _) => Some(format!("needs a format: {}", names.join(", "))),
        (FormatUse::Defaulted(_), Some(first)) => {
            Some(format!("may have a format: {}; {first} if none is given", names.join(", ")))
        }
        _ => None,
    }
}

/// Whether it takes a primary key, in words; `None`: it takes none.
fn primary_key_use(tables: &RoleTables) -> Option<String> {
    let window = tables.key_window?;
    Some(format!(
        "may have a `primaryKey`: a column or a list of columns; rows whose key was seen within `{}` are dropped",
        window.name
    ))
}

/// Writes it to stdout.
pub fn run(args: &DescribeArgs) -> Exit {
    let subjects: Vec<Subject> = match &args.name {
        None => Subject::all().collect(),
        Some(name) => match Subject::all().find(|subject| subject.name() == name) {
            Some(subject) => vec![subject],
            None => return unknown(name),
        },
    };
    let text = match args.format {
        As::Text => text::all(&subjects),
        As::Markdown => markdown::all(&subjects),
        As::Json => json::all(&subjects, args.name.is_some()),
    };
    hand_over(&text)
}

fn unknown(name: &str) -> Exit {
    let list =
        |names: &mut dyn Iterator<Item = &str>| names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    tell!("error: there is nothing called `{}` to describe", name.escape_debug());
    match nearest(name, Subject::all().map(Subject::name)) {
        Some(near) => tell!("  did you mean `{near}`?"),
        None => {
            tell!("  connectors: {}", list(&mut REGISTRY.connectors.iter().map(|connector| connector.name)));
            tell!("  formats: {}", list(&mut REGISTRY.formats.iter().map(|format| format.name)));
            tell!("  sections: {}", list(&mut general_sections().map(|table| table.name)));
        }
    }
    Exit::NoInput
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_stands_for_one_thing_only() {
        let names: Vec<_> = Subject::all().map(Subject::name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }

    #[test]
    fn every_option_of_every_table_is_in_every_rendering() {
        let all: Vec<_> = Subject::all().collect();
        let (text, markdown, json) = (text::all(&all), markdown::all(&all), json::all(&all, false));
        let tables = REGISTRY.connectors.iter().flat_map(|connector| roles(connector)).map(|(_, role)| role);
        let of_connectors = tables.flat_map(|role| std::iter::once(role.options).chain(role.columns));
        let tables =
            of_connectors.chain(REGISTRY.formats.iter().map(|format| format.options)).chain(general_sections());
        for option in tables.flat_map(|table| table.options) {
            for rendering in [&text, &markdown, &json] {
                assert!(rendering.contains(option.name), "{}", option.name);
            }
            assert!(markdown.contains(&option.doc.replace('|', "\\|")), "{}", option.name);
        }
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
    }
}
