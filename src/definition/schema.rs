//! The `schema` of a section, and how the columns of a sink match those of a source.

use std::collections::BTreeMap;

use super::{
    check::{Section, quoted},
    diagnostics::{Diagnostic, Report},
    endpoint::{Role, word},
    located::{Entry, Span, Value},
    query::QUERY,
    registry::{ConnectorTables, MetadataKey, RoleTables},
};
use crate::model::{Column, ColumnType, LogicalType, Schema, TypeError, inserts, may_overflow, nearest};

/// Where a schema and its columns stand.
#[derive(Debug, Clone, Default)]
pub(super) struct SchemaPlaces {
    pub key: Option<Span>,
    pub columns: BTreeMap<String, ColumnPlaces>,
}

/// Where a column stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnPlaces {
    pub name: Span,
    pub ty: Span,
}

const EXPECTED: &str = "columns, such as `name: STRING`";

/// Reads the `schema` of a section. A source must have one. `None` if it is absent or anything in it is wrong.
pub(super) fn read_schema(role: Role, section: Section<'_>, report: &mut Report) -> ReadSchema {
    let mut read = ReadSchema::default();
    let Some(entry) = section.get("schema") else {
        if role == Role::Source {
            let mut diagnostic =
                Diagnostic::error(format!("`schema` is missing from `{}`", section.name)).expected(EXPECTED);
            diagnostic.span = section.key;
            report.push(diagnostic);
        }
        return read;
    };
    read.places.key = Some(entry.key.span);
    let before = report.errors();
    let columns = match &entry.value.value {
        Value::Mapping(entries) => entries,
        Value::Broken => return read,
        other => {
            let message = format!("`schema` holds {}", other.describe());
            report.push(Diagnostic::error(message).at(entry.value.span).expected(EXPECTED));
            return read;
        }
    };
    let mut schema = Schema { columns: Vec::with_capacity(columns.len()) };
    for column in columns {
        let at = ColumnPlaces { name: column.key.span, ty: column.value.span };
        read.places.columns.insert(column.key.value.clone(), at);
        schema.columns.extend(read_column(column, report));
    }
    let physical = schema.columns.iter().any(|column| column.metadata.is_none());
    // A column whose value could not even be read was reported before.
    let complete = report.errors() == before && schema.columns.len() == columns.len();
    if !physical && complete {
        report.push(
            Diagnostic::error("the schema has no column that is read from the body")
                .at(entry.key.span)
                .expected("at least one column without METADATA"),
        );
    }
    read.valid = complete && physical;
    read.readable = Some(schema);
    read
}

/// What could be read of a `schema:`.
#[derive(Debug, Default)]
pub(super) struct ReadSchema {
    /// The columns that could be read, whatever is wrong with others; `None` without a mapping of columns.
    pub readable: Option<Schema>,
    /// Whether that is all of them, and makes a schema.
    pub valid: bool,
    /// Where everything stands.
    pub places: SchemaPlaces,
}

fn read_column(entry: &Entry, report: &mut Report) -> Option<Column> {
    if entry.key.value.is_empty() {
        report.push(Diagnostic::error("a column has an empty name").at(entry.key.span).expected("a name"));
    }
    let text = word(entry, "a type such as `STRING` or `TIMESTAMP(3)`", report)?;
    let error = match Column::parse(&entry.key.value, &text.value) {
        Ok(column) => return Some(column),
        Err(error) => error,
    };
    report.push(type_diagnostic(&entry.key.value, &text.value, &error, text.span, report));
    None
}

fn type_diagnostic(column: &str, text: &str, error: &TypeError, span: Span, report: &Report) -> Diagnostic {
    let piece = text.get(error.offset..error.offset + error.length).unwrap_or_default();
    let found = if error.length == 0 { error.found.clone() } else { quoted(piece) };
    let diagnostic = Diagnostic::error(format!("found {found} in the type of column `{column}`"))
        .at(report.within(span, error.offset, piece))
        .expected(error.expected.as_str())
        .nearest(error.nearest.as_deref());
    let opened = text.matches(['<', '(']).count() > text.matches(['>', ')']).count();
    if error.length == 0 && opened {
        diagnostic.help("inside `{ ... }` a type with a comma needs quotes")
    } else {
        diagnostic
    }
}

/// Checks the metadata columns of a schema against the keys that the connector has: of a sink those that it takes, and
/// for VIRTUAL columns, which it leaves out, those that it would read as a source.
pub(super) fn check_metadata(
    role: Role,
    connector: &ConnectorTables,
    tables: &RoleTables,
    schema: &Schema,
    places: &SchemaPlaces,
    report: &mut Report,
) {
    for column in &schema.columns {
        let (Some(key), Some(at)) = (&column.metadata, places.columns.get(&column.name)) else { continue };
        let read_only = (role == Role::Sink && column.is_virtual).then_some(connector.source.as_ref()).flatten();
        let (role, tables) = read_only.map_or((role, tables), |source| (Role::Source, source));
        let Some(known) = tables.metadata.iter().find(|known| known.name == key) else {
            report.push(unknown_metadata(role, connector.name, tables, column, key, *at, report));
            continue;
        };
        if !fills(known, &column.ty.logical) {
            report.push(
                Diagnostic::error(format!(
                    "`{}` is {}, the metadata `{key}` {}",
                    column.name,
                    column.ty,
                    known.logical()
                ))
                .at(at.ty)
                .expected(known.logical().to_string()),
            );
        } else if role == Role::Source && known.nullable && !column.ty.nullable {
            report.push(
                Diagnostic::error(format!("`{}` is NOT NULL, but the metadata `{key}` may be null", column.name))
                    .at(at.ty)
                    .expected(column.ty.logical.to_string()),
            );
        }
    }
}

fn unknown_metadata(
    role: Role,
    connector: &str,
    tables: &RoleTables,
    column: &Column,
    key: &str,
    at: ColumnPlaces,
    report: &Report,
) -> Diagnostic {
    let named = format!("'{key}'");
    let place = if column.name == key && !report.written(at.ty).contains(&named) {
        at.name
    } else {
        report.within(at.ty, usize::MAX / 2, &named)
    };
    let names: Vec<_> = tables.metadata.iter().map(|known| known.name).collect();
    let diagnostic = Diagnostic::error(format!("`{connector}` as a {} has no metadata `{key}`", role.name())).at(place);
    if names.is_empty() {
        return diagnostic.help("it has no metadata columns at all");
    }
    let list: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let near = nearest(key, names.iter().copied());
    diagnostic.expected(format!("one of {}", list.join(", "))).nearest(near)
}

/// Whether a metadata value can fill a column of this type.
fn fills(known: &MetadataKey, column: &LogicalType) -> bool {
    use LogicalType::{BigInt, Char, Int, SmallInt, Timestamp, TimestampLtz, VarChar};
    match (&known.logical(), column) {
        // Formats neither pad nor cut texts, and neither is metadata.
        (VarChar(_) | Char(_), VarChar(_) | Char(_)) => true,
        // Times are kept in milliseconds and shown in UTC, whichever of the two kinds is asked for.
        (Timestamp(_) | TimestampLtz(_), Timestamp(_) | TimestampLtz(_)) => true,
        (from, SmallInt | Int | BigInt) => inserts(from, column),
        (from, to) => from == to,
    }
}

/// The columns of a source or a query as a sink without a schema of its own takes them. Those of a query may be null: a
/// DECIMAL that is too large is, whatever its type says, and nobody asked that it be refused.
pub(super) fn taken_over(of: &str, schema: &Schema) -> Schema {
    let column = |column: &Column| {
        let ty = ColumnType { nullable: column.ty.nullable || of == QUERY, ..column.ty.clone() };
        Column { ty, metadata: None, is_virtual: false, ..column.clone() }
    };
    Schema { columns: schema.columns.iter().map(column).collect() }
}

/// Checks that the columns of a source, or of a query, can be inserted into those of a sink, by position, as INSERT INTO
/// does. Whether a value is null where the sink has NOT NULL is seen when there is a row, as in Flink.
pub(super) fn check_insert((of, source): (&str, &Schema), sink: &Schema, places: &SchemaPlaces, report: &mut Report) {
    let taken = &sink.columns;
    if taken.len() != source.columns.len() {
        let mut diagnostic = Diagnostic::error(format!(
            "the sink has {} columns, the {of} has {}; they are matched by position",
            taken.len(),
            source.columns.len()
        ))
        .expected(format!("{} columns", source.columns.len()));
        diagnostic.span = places.key;
        report.push(diagnostic);
        return;
    }
    for (number, (from, to)) in source.columns.iter().zip(taken).enumerate() {
        let Some(at) = places.columns.get(&to.name) else { continue };
        let (number, name) = (number + 1, &from.name);
        let both = format!("`{}` is {}, column {number} of the {of}, `{name}`, is {}", to.name, to.ty, from.ty);
        if !inserts(&from.ty.logical, &to.ty.logical) {
            let expected = format!("{} or a wider type of its kind", from.ty.logical);
            report.push(Diagnostic::error(both).at(at.ty).expected(expected));
        } else if may_overflow(&from.ty.logical, &to.ty.logical) {
            let help = "what does not fit becomes NULL and is counted: in a DECIMAL what has more digits before the point, as in Flink; in a TIMESTAMP of more than 6 digits the years before 1678 and after 2261";
            report.push(Diagnostic::warning(both).at(at.ty).help(help));
        }
    }
}
