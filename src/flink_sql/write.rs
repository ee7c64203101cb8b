//! The definition that an INSERT becomes.

use std::ops::Range;

use super::{
    import::{name_of, push_once},
    select::QueryText,
    settings::Line,
    statements::Insert,
    table::{Table, TableOption},
    yaml::{Yaml, escaped, with_references},
};
use crate::{
    connectors::{REGISTRY, blackhole, datagen, filesystem},
    definition::{ConnectorTables, Diagnostic, Report, Role, Span},
    model::{Column, PipelineName},
};

/// A definition, before it has been checked.
pub(super) struct Draft<'a> {
    pub name: PipelineName,
    pub yaml: Yaml,
    pub insert: &'a Insert,
    /// What it reads and what it writes.
    pub tables: [&'a Table; 2],
}

/// What a definition is made of.
pub(super) struct Parts<'a, 'f> {
    /// The script's name.
    pub file: &'f str,
    pub name: PipelineName,
    pub insert: &'a Insert,
    pub source: &'a Table,
    pub sink: &'a Table,
    pub query: Option<QueryText>,
    /// Whether the sink's columns are those of the source, or of the query.
    pub inherits: bool,
}

/// Writes the definition. `None`: it cannot be, which has been reported.
pub(super) fn write<'a>(parts: Parts<'a, '_>, report: &mut Report) -> Option<Draft<'a>> {
    let Parts { file, name, insert, source, sink, query, inherits } = parts;
    let before = report.errors();
    let (restart, note) = insert.settings.restart().unwrap_or_else(|error| {
        report.push(*error);
        (Vec::new(), None)
    });
    insert.settings.idle().into_iter().for_each(|warning| push_once(report, warning));
    let mut writing = Writing { yaml: Yaml::default(), report };
    let (line, target) = (insert.place.line, insert.target.last());
    writing.yaml.comment(&format!("From {file}, line {line}: INSERT INTO {target}."));
    let left_out = insert.settings.left_out().map(|set| format!("Left out, for it has no counterpart here: {set}"));
    left_out.chain(note.map(str::to_owned)).for_each(|note| writing.yaml.comment(&note));
    writing.yaml.entry(0, "name", name.as_str(), (insert.place, insert.place));
    writing.endpoint(Role::Source, source, false);
    if let Some(query) = &query {
        writing.yaml.entry(0, "query", &escaped(&query.text), (insert.place, insert.place));
    }
    writing.endpoint(Role::Sink, sink, inherits);
    writing.section("checkpoint", &insert.settings.checkpoint());
    writing.section("restart", &restart);
    let Writing { yaml, report } = writing;
    (report.errors() == before).then_some(Draft { name, yaml, insert, tables: [source, sink] })
}

/// A definition for looking at one table only, and where in it that stands: the other side is one that takes, or makes,
/// anything.
pub(super) fn alone(role: Role, table: &Table) -> (Yaml, Range<usize>) {
    // What is left out of it is told where the table is used.
    let mut unheard = Report::new("", "");
    let mut writing = Writing { yaml: Yaml::default(), report: &mut unheard };
    writing.yaml.entry(0, "name", "table", (table.place, table.place));
    let places = (table.place, table.place);
    let own = match role {
        Role::Source => {
            let start = writing.yaml.text.len();
            writing.endpoint(role, table, false);
            let own = start..writing.yaml.text.len();
            writing.yaml.section(0, Role::Sink.name(), table.place);
            writing.yaml.entry(1, "connector", blackhole::TABLES.name, places);
            own
        }
        Role::Sink => {
            writing.yaml.section(0, Role::Source.name(), table.place);
            writing.yaml.entry(1, "connector", datagen::TABLES.name, places);
            writing.yaml.section(1, "schema", table.place);
            for column in table.columns.iter().filter(|column| !column.column.is_virtual) {
                let ty = escaped(&column.column.ty.to_string());
                writing.yaml.entry(2, &column.column.name, &ty, places);
            }
            let start = writing.yaml.text.len();
            writing.endpoint(role, table, false);
            start..writing.yaml.text.len()
        }
    };
    (writing.yaml, own)
}

struct Writing<'a> {
    yaml: Yaml,
    report: &'a mut Report,
}

impl Writing<'_> {
    fn section(&mut self, name: &str, lines: &[Line]) {
        let Some(first) = lines.first() else { return };
        self.yaml.section(0, name, first.place);
        for line in lines {
            self.value(1, line.key, &line.value, (line.place, line.place));
        }
    }

    /// A value that may refer to variables.
    fn value(&mut self, depth: usize, key: &str, value: &str, places: (Span, Span)) {
        self.written(depth, key, with_references(value), places);
    }

    /// A value as a definition has it; `Err`: something in it looks like a reference and is none.
    fn written(&mut self, depth: usize, key: &str, value: Result<String, ()>, places: (Span, Span)) {
        match value {
            Ok(value) => self.yaml.entry(depth, key, &value, places),
            Err(()) => {
                // What is in it may be a part of a secret.
                let error = Diagnostic::error("`${...}` does not hold the name of a variable");
                let expected =
                    "`${NAME}` or `${secret_values.NAME}`; where the text itself is meant, U&'...' with \\0024";
                push_once(self.report, error.at(places.1).expected(expected));
            }
        }
    }

    fn endpoint(&mut self, role: Role, table: &Table, inherits: bool) {
        self.yaml.section(0, role.name(), table.place);
        let connector = table.option("connector").and_then(|option| REGISTRY.connector(&option.value.value));
        // What a thing is comes first.
        let first = table.options.iter().filter(|option| option.key.value == "connector");
        for option in first.chain(table.options.iter().filter(|option| option.key.value != "connector")) {
            if let Some(why) = left_out(role, connector, &option.key.value) {
                let text = format!("`{}` is left out: {why}", option.key.value);
                push_once(self.report, Diagnostic::warning(text).at(option.key.span));
                continue;
            }
            self.option(connector, option);
        }
        self.primary_key(role, connector, table);
        if inherits {
            return;
        }
        self.yaml.section(1, "schema", table.place);
        for column in &table.columns {
            let comment = column.comment.as_ref().map(|text| format!(" COMMENT '{}'", text.replace('\'', "''")));
            let text = declared(&column.column) + &comment.unwrap_or_default();
            self.yaml.entry(2, &column.column.name, &escaped(&text), (column.name, column.ty));
        }
    }

    fn option(&mut self, connector: Option<&ConnectorTables>, option: &TableOption) {
        let key = option.key.value.as_str();
        let places = (option.key.span, option.value.span);
        let is_folder =
            connector.is_some_and(|found| found.name == filesystem::TABLE.name) && key == filesystem::PATH.name;
        let value = option.stretches.iter().map(|text| with_references(text)).collect::<Result<Vec<_>, ()>>();
        let value = value.map(|stretches| {
            let value = stretches.join("$$");
            let folder = value.strip_prefix("file://").filter(|path| is_folder && path.starts_with('/'));
            folder.map(str::to_owned).unwrap_or(value)
        });
        self.written(1, key, value, places);
    }

    fn primary_key(&mut self, role: Role, connector: Option<&ConnectorTables>, table: &Table) {
        let Some(key) = &table.primary_key else { return };
        let tables = connector.and_then(|connector| connector.source.as_ref());
        if role == Role::Source && tables.is_some_and(|tables| tables.key_window.is_some()) {
            let names: Vec<_> = key.columns.iter().map(|name| name.value.as_str()).collect();
            return self.yaml.list("primaryKey", &names, key.place);
        }
        let names: Vec<_> = REGISTRY.with_primary_key().into_iter().map(|name| format!("`{name}`")).collect();
        let text =
            format!("the primary key of `{}` is left out: the table is {} here", table.path.last(), name_of(role));
        let warning = Diagnostic::warning(text).at(key.place);
        push_once(self.report, warning.help(format!("a primary key is only for what is read by {}", names.join(", "))));
    }
}

/// Why an option of the table is no part of this side of a pipeline; `None`: it is, or nobody knows it.
fn left_out(role: Role, connector: Option<&'static ConnectorTables>, key: &str) -> Option<String> {
    let connector = connector?;
    let here = role.of(connector)?;
    let own = here.options.find(key).is_some() || here.columns.is_some_and(|table| key.starts_with(table.name));
    if own || key == "connector" || key == "format" {
        return None;
    }
    if key.ends_with(".parallelism") {
        return Some("a pipeline is not cut into parallel parts".to_owned());
    }
    let other = if role == Role::Source { Role::Sink } else { Role::Source };
    let there = other.of(connector).is_some_and(|tables| tables.options.find(key).is_some());
    there.then(|| format!("it is for a table that is {}, and this one is {}", name_of(other), name_of(role)))
}

/// A column as a definition declares it.
pub(super) fn declared(column: &Column) -> String {
    let from = match &column.metadata {
        None => String::new(),
        Some(key) if *key == column.name => " METADATA".to_owned(),
        Some(key) => format!(" METADATA FROM '{}'", key.replace('\'', "''")),
    };
    format!("{}{from}{}", column.ty, if column.is_virtual { " VIRTUAL" } else { "" })
}
