//! The `source` and the `sink` of a definition: connector, format, options and columns.

use std::collections::BTreeMap;

use super::{
    check::{Checked, Keys, Section, check_keys, check_table, quoted},
    column_options::{ColumnOptionPlaces, ColumnOptions, check_columns},
    diagnostics::{Diagnostic, Report},
    located::{Entry, Located, Span, Value},
    options::{OptionSpec, OptionTable, Options},
    primary_key::{PRIMARY_KEY, read_primary_key, taken_by},
    query::QUERY,
    registry::{ConnectorTables, FormatTables, FormatUse, Registry, RoleTables},
    schema::{ReadSchema, SchemaPlaces, check_insert, check_metadata, read_schema, taken_over},
    sections,
};
use crate::model::{Schema, nearest};

/// Which end of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Where messages come from.
    Source,
    /// Where rows go to.
    Sink,
}

impl Role {
    /// The key of its section.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Sink => "sink",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Source => Self::Sink,
            Self::Sink => Self::Source,
        }
    }

    /// What a connector is in this role.
    pub const fn of(self, connector: &'static ConnectorTables) -> Option<&'static RoleTables> {
        match self {
            Self::Source => connector.source.as_ref(),
            Self::Sink => connector.sink.as_ref(),
        }
    }
}

/// A format and its options.
#[derive(Debug, Clone)]
pub struct FormatDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its options, defaults filled in.
    pub options: Options,
}

/// One end of a pipeline, every part valid by itself and every default filled in.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Which end.
    pub role: Role,
    /// The connector's name.
    pub connector: &'static str,
    /// The connector's options, defaults filled in.
    pub options: Options,
    /// The options that every connector of the role may have.
    pub general: Options,
    /// The options of single columns, where the connector has such.
    pub column_options: ColumnOptions,
    /// The format, if the connector has one.
    pub format: Option<FormatDefinition>,
    /// The columns. Those of the source or of the query, all physical, for a sink without a schema of its own.
    pub schema: Schema,
    /// Whether the section has a `schema:`.
    pub own_schema: bool,
    /// The columns of a source's `primaryKey`, in its order; all of them are in the schema. Empty: it has none.
    pub primary_key: Vec<String>,
    places: Places,
}

/// A part of an [`Endpoint`] that a diagnostic may point at.
#[derive(Debug, Clone, Copy)]
pub enum At<'a> {
    /// The section's key.
    Section,
    /// The value of `connector`.
    Connector,
    /// The value of `format`; the section where there is none.
    Format,
    /// The value of an option; the section where its default holds.
    Option(&'a OptionSpec),
    /// The value of an option of a column, which is named by its path; the section where none is given.
    ColumnOption(&'a str, &'a OptionSpec),
    /// The key `schema`; the section where there is none.
    Schema,
    /// The name of a column; like [`At::Schema`] where there is none of this name.
    Column(&'a str),
    /// The type of a column; like [`At::Schema`] where there is none of this name.
    Type(&'a str),
}

#[derive(Debug, Clone, Default)]
struct Places {
    section: Span,
    connector: Option<Span>,
    format: Option<Span>,
    options: BTreeMap<&'static str, Span>,
    column_options: ColumnOptionPlaces,
    schema: SchemaPlaces,
}

impl Endpoint {
    /// The place of a part.
    pub fn at(&self, part: At<'_>) -> Span {
        let places = &self.places;
        let schema = || places.schema.key;
        let found = match part {
            At::Section => None,
            At::Connector => places.connector,
            At::Format => places.format,
            At::Option(spec) => places.options.get(spec.name).copied(),
            At::ColumnOption(path, spec) => places.column_options.get(&(path.to_owned(), spec.name)).copied(),
            At::Schema => schema(),
            At::Column(name) => places.schema.columns.get(name).map(|column| column.name).or_else(schema),
            At::Type(name) => places.schema.columns.get(name).map(|column| column.ty).or_else(schema),
        };
        found.unwrap_or(places.section)
    }
}

/// What could be read of a section.
#[derive(Debug, Default)]
pub(super) struct ReadEndpoint {
    /// The whole, if nothing in it is an error.
    pub endpoint: Option<Endpoint>,
    /// Its columns, if they are valid, whatever else is wrong.
    pub schema: Option<Schema>,
}

/// The key of the section of the sink for dead letters.
pub(super) const DEAD_LETTER: &str = "dead_letter";

/// Where the columns of a section come from.
#[derive(Clone, Copy)]
pub(super) enum Columns<'a> {
    /// The section must declare them.
    Own,
    /// It may; otherwise they are those of the source or of the query, if that has valid ones.
    Inherited(Option<(&'static str, &'a Schema)>),
    /// It may not.
    Fixed(&'a Schema),
}

/// Reads a section.
pub(super) fn read_endpoint(
    role: Role,
    section: Section<'_>,
    columns: Columns<'_>,
    registry: &Registry,
    report: &mut Report,
) -> ReadEndpoint {
    let before = report.errors();
    let mut places = Places { section: section.key.unwrap_or_default(), ..Places::default() };
    let connector = find_connector(role, section, registry, &mut places, report);
    let tables = connector.and_then(|connector| role.of(connector));
    let format = find_format(section, connector.zip(tables), registry, &mut places, report);
    let (inherited, fixed) = match columns {
        Columns::Own => (None, None),
        Columns::Inherited(selected) => (selected, None),
        Columns::Fixed(schema) => (None, Some(schema)),
    };
    let read = if fixed.is_some() { ReadSchema::default() } else { read_schema(role, section, report) };
    let keyed = tables.filter(|tables| role == Role::Source && tables.key_window.is_some());
    let primary_key = keyed.map(|tables| read_primary_key(section, tables, &read, report)).unwrap_or_default();
    places.schema = read.places;
    if let (Some(schema), Some(tables), Some(connector)) = (&read.readable, tables, connector) {
        check_metadata(role, connector, tables, schema, &places.schema, report);
    }
    let valid = read.valid;
    let column_options = match (tables.and_then(|tables| tables.columns), &read.readable) {
        (Some(table), Some(schema)) => check_columns(table, schema, valid, section, report),
        _ => Default::default(),
    };
    places.column_options = column_options.1;
    let own = read.readable.filter(|_| valid);

    // What is only read is no part of what a sink takes.
    let own = own.map(|mut schema| {
        schema.columns.retain(|column| role == Role::Source || !column.is_virtual);
        schema
    });
    if let (Some(sink), Some(selected)) = (&own, inherited) {
        check_insert(selected, sink, &places.schema, report);
    }

    let elsewhere = |key: &str| match key {
        "schema" => Some("the columns of dead letters are always the same".to_owned()),
        _ => belongs_elsewhere(role, section.name, key, connector, registry),
    };
    let mut words = vec!["connector", "format"];
    words.extend(fixed.is_none().then_some("schema"));
    words.extend(keyed.map(|_| PRIMARY_KEY));
    let (general, options, format_options) = read_options(role, section, &words, (tables, format), &elsewhere, report);
    places.options = options.places;
    places.options.extend(format_options.places);
    places.options.extend(general.places);

    let own_schema = fixed.is_none() && section.get("schema").is_some();
    let schema =
        if own_schema { own } else { fixed.cloned().or_else(|| inherited.map(|(of, schema)| taken_over(of, schema))) };
    let (Some(connector), Some(tables), Some(columns)) = (connector, tables, &schema) else {
        return ReadEndpoint { endpoint: None, schema };
    };
    // What could not even be read was reported before, and leaves no value to look at.
    let broken = section.entries.iter().any(|entry| matches!(entry.value.value, Value::Broken));
    if broken || report.errors() > before {
        return ReadEndpoint { endpoint: None, schema };
    }
    let endpoint = Endpoint {
        role,
        connector: connector.name,
        options: options.options,
        general: general.options,
        column_options: column_options.0,
        format: format.map(|format| FormatDefinition { name: format.name, options: format_options.options }),
        schema: columns.clone(),
        own_schema,
        primary_key,
        places,
    };
    cross_check(&endpoint, tables, format, report);
    let good = report.errors() == before;
    ReadEndpoint { endpoint: good.then_some(endpoint), schema }
}

/// The options that every connector of the role has, those of the connector and those of the format, from one section.
fn read_options(
    role: Role,
    section: Section<'_>,
    words: &[&'static str],
    (tables, format): (Option<&RoleTables>, Option<&FormatTables>),
    elsewhere: &dyn Fn(&str) -> Option<String>,
    report: &mut Report,
) -> (Checked, Checked, Checked) {
    // Of an unknown connector nobody can say which options it has.
    let Some(tables) = tables else { return Default::default() };
    let general = (role == Role::Source).then_some(&sections::SOURCE);
    let of_format = format.map(|format| format.options);
    let all: Vec<&'static OptionTable> = std::iter::once(tables.options).chain(of_format).chain(general).collect();
    let keys = Keys { words, tables: &all, columns: tables.columns, elsewhere };
    let meant = check_keys(section, &keys, report);
    let mut check = |table| check_table(table, section, &meant, report);
    let options = check(tables.options);
    (general.map(&mut check).unwrap_or_default(), options, of_format.map(check).unwrap_or_default())
}

fn cross_check(endpoint: &Endpoint, tables: &RoleTables, format: Option<&FormatTables>, report: &mut Report) {
    let of_format = format.map(|format| match endpoint.role {
        Role::Source => format.check_source,
        Role::Sink => format.check_sink,
    });
    for check in std::iter::once(tables.check).chain(of_format) {
        for mut diagnostic in check(endpoint) {
            diagnostic.span = diagnostic.span.or(Some(endpoint.at(At::Section)));
            report.push(diagnostic);
        }
    }
}

/// The text of a key that must be a single word.
pub(super) fn word(entry: &Entry, expected: &str, report: &mut Report) -> Option<Located<String>> {
    match &entry.value.value {
        Value::Broken => None,
        Value::Scalar(scalar) if scalar.secret => {
            // It is shown in logs and metrics, which a secret must not be.
            let message = format!("`{}` holds a secret", entry.key.value);
            report.push(Diagnostic::error(message).at(entry.value.span).expected(expected));
            None
        }
        Value::Scalar(scalar) => {
            report.show(entry.value.span);
            Some(Located::new(scalar.text.clone(), entry.value.span))
        }
        other => {
            report.push(
                Diagnostic::error(format!("`{}` holds {}", entry.key.value, other.describe()))
                    .at(entry.value.span)
                    .expected(expected),
            );
            None
        }
    }
}

fn one_of(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn missing(section: Section<'_>, key: &str, expected: String) -> Diagnostic {
    let mut diagnostic =
        Diagnostic::error(format!("the required option `{key}` is missing from `{}`", section.name)).expected(expected);
    diagnostic.span = section.key;
    diagnostic
}

/// The connector of a section; after a misspelling the one that was probably meant, so that its options are checked.
fn find_connector(
    role: Role,
    section: Section<'_>,
    registry: &Registry,
    places: &mut Places,
    report: &mut Report,
) -> Option<&'static ConnectorTables> {
    let usable = |connector: &&&'static ConnectorTables| role.of(connector).is_some();
    let names: Vec<&'static str> = registry.connectors.iter().filter(usable).map(|connector| connector.name).collect();
    let expected = format!("the name of a {}: {}", role.name(), one_of(&names));
    let Some(entry) = section.get("connector") else {
        report.push(missing(section, "connector", expected));
        return None;
    };
    let name = word(entry, &expected, report)?;
    places.connector = Some(name.span);
    let found = registry.connector(&name.value);
    let refused = match found {
        Some(connector) if role.of(connector).is_some() => return found,
        Some(connector) => {
            let (this, other) = (role.name(), role.other().name());
            Diagnostic::error(format!("`{}` can only be a {other}, not a {this}", connector.name))
        }
        None => Diagnostic::error(format!("there is no connector {}", quoted(&name.value)))
            .nearest(nearest(&name.value, names.iter().copied())),
    };
    let meant = nearest(&name.value, names.iter().copied()).filter(|_| found.is_none());
    report.push(refused.at(name.span).expected(expected));
    meant.and_then(|name| registry.connector(name))
}

/// The format of a section, likewise.
fn find_format(
    section: Section<'_>,
    connector: Option<(&'static ConnectorTables, &'static RoleTables)>,
    registry: &Registry,
    places: &mut Places,
    report: &mut Report,
) -> Option<&'static FormatTables> {
    let every: Vec<&'static str> = registry.formats.iter().map(|format| format.name).collect();
    let entry = section.get("format");
    let Some((connector, tables)) = connector else {
        let expected = format!("the name of a format: {}", one_of(&every));
        let name = entry.and_then(|entry| word(entry, &expected, report))?;
        let found = registry.format(&name.value);
        if found.is_none() {
            let message = format!("there is no format {}", quoted(&name.value));
            let meant = nearest(&name.value, every.iter().copied());
            report.push(Diagnostic::error(message).at(name.span).expected(expected).nearest(meant));
        }
        return found;
    };
    let choices = tables.format.choices();
    let expected = format!("the name of a format: {}", one_of(choices));
    let Some(entry) = entry else {
        return match tables.format {
            FormatUse::Never => None,
            FormatUse::Defaulted(choices) => choices.first().and_then(|name| registry.format(name)),
            FormatUse::Required(_) => {
                report.push(missing(section, "format", expected));
                None
            }
        };
    };
    if tables.format == FormatUse::Never {
        let message = format!("`{}` has no format", connector.name);
        report.push(Diagnostic::error(message).at(entry.key.span).help("take the key `format` out"));
        return None;
    }
    let name = word(entry, &expected, report)?;
    places.format = Some(name.span);
    if choices.contains(&name.value.as_str()) {
        return registry.format(&name.value);
    }
    let message = if every.contains(&name.value.as_str()) {
        format!("`{}` does not go with the format `{}`", connector.name, name.value)
    } else {
        format!("there is no format {}", quoted(&name.value))
    };
    let meant = nearest(&name.value, choices.iter().copied());
    report.push(Diagnostic::error(message).at(name.span).expected(expected).nearest(meant));
    registry.format(meant.unwrap_or(&name.value))
}

/// Says of a key that is not an option of this section where it is one.
fn belongs_elsewhere(
    role: Role,
    section: &str,
    key: &str,
    connector: Option<&'static ConnectorTables>,
    registry: &Registry,
) -> Option<String> {
    if key == PRIMARY_KEY {
        return Some(taken_by(registry));
    }
    let prefix = key.split_once('.').map(|(prefix, _)| prefix);
    if let Some(format) = prefix.and_then(|prefix| registry.format(prefix)).filter(|f| f.options.find(key).is_some()) {
        return Some(format!("`{key}` goes with `format: {}`", format.name));
    }
    let top = sections::TOP.find(key).is_some() || sections::SECTIONS.iter().any(|table| table.name == key);
    if top || key == DEAD_LETTER || key == QUERY || (key == role.other().name()) {
        return Some(format!("`{key}` stands at the top of the file, beside `{section}`"));
    }
    if role == Role::Sink && sections::SOURCE.find(key).is_some() {
        return Some(format!("`{key}` stands inside `source:`"));
    }
    let (connector, other) = connector.and_then(|connector| Some((connector, role.other().of(connector)?)))?;
    let (this, that) = (role.name(), role.other().name());
    other.options.find(key).map(|_| format!("`{}` has it as a {that}, not as a {this}", connector.name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        definition::{Environment, Loaded, MetadataKey, MetadataType, Style, load_text, no_check},
        model::LogicalType,
    };

    static NOTHING: OptionTable = OptionTable { name: "nothing", options: &[] };
    static JSON: FormatTables =
        FormatTables { name: "json", options: &NOTHING, check_source: no_check, check_sink: no_check };
    static CSV: FormatTables =
        FormatTables { name: "csv", options: &NOTHING, check_source: no_check, check_sink: no_check };
    const TEXT: MetadataType = MetadataType::Plain(LogicalType::VarChar(None));
    const MAYBE: MetadataKey = MetadataKey { name: "maybe", ty: TEXT, nullable: true, doc: "" };
    static SOURCE: ConnectorTables = ConnectorTables {
        name: "in",
        source: Some(RoleTables {
            options: &NOTHING,
            columns: None,
            format: FormatUse::Required(&["json", "csv"]),
            metadata: &[MAYBE],
            key_window: None,
            check: no_check,
        }),
        sink: None,
    };
    static SINK: ConnectorTables = ConnectorTables {
        name: "out",
        source: None,
        sink: Some(RoleTables {
            options: &NOTHING,
            columns: None,
            format: FormatUse::Defaulted(&["json"]),
            metadata: &[],
            key_window: None,
            check: no_check,
        }),
    };
    static REGISTRY: Registry = Registry { connectors: &[&SOURCE, &SINK], formats: &[&JSON, &CSV] };

    fn load(m: &str, sink: &str) -> Loaded {
        let source = format!("{{connector: in, format: csv, schema: {{a: STRING, m: {m}}}}}");
        let text = format!("source: {source}\nsink: {sink}\n");
        load_text(Path::new("p.yaml"), &text, &REGISTRY, &Environment::new(|_| None, None))
    }

    #[test]
    fn a_format_may_have_a_default() {
        let definition = load("STRING METADATA FROM 'maybe'", "{connector: out}").definition.unwrap();
        assert_eq!(definition.source.format.map(|format| format.name), Some("csv"));
        assert_eq!(definition.sink.format.map(|format| format.name), Some("json"));
    }

    #[test]
    fn a_format_that_others_have_is_told_apart_from_one_that_nobody_has() {
        let told = load("INT", "{connector: out, format: csv}").report.render(Style::Line);
        let expected = "error: `out` does not go with the format `csv`; expected the name of a format: `json`\n";
        assert_eq!(told, format!("p.yaml:2:32: {expected}"));
    }

    #[test]
    fn metadata_that_may_be_null_fills_no_column_that_may_not() {
        let told = load("STRING NOT NULL METADATA FROM 'maybe'", "{connector: out}").report.render(Style::Line);
        let expected = "error: `m` is NOT NULL, but the metadata `maybe` may be null";
        assert!(told.starts_with(&format!("p.yaml:1:61: {expected}")), "{told}");
    }
}
