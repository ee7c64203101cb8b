//! From a script to definitions, one for each INSERT.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
    path::{Path as FilePath, PathBuf},
};

use super::{
    alone::{check_names, check_whole},
    script::Script,
    select::{Item, ItemKind, QueryText},
    shown::show,
    statements::{Insert, Statements, read_statements},
    table::{OF_DEFINITIONS, Table},
    write::{Draft, Parts, write},
    yaml::Found,
};
use crate::{
    connectors::load_texts,
    definition::{Diagnostic, Environment, LARGEST_FILE, Located, Report, Role},
    model::{Column, LogicalType, PipelineName, Schema, inserts, nearest},
    query::Query,
};

/// What has become of a script.
pub struct Import {
    /// The definitions, in the order of their INSERTs; none if anything in the script is an error.
    pub pipelines: Vec<Imported>,
    /// Everything that is wrong with the script, or left out.
    pub report: Report,
}

/// A definition made of an INSERT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The pipeline's name, which no other of the script has.
    pub name: PipelineName,
    /// Its definition.
    pub text: String,
}

/// Makes definitions of a script, and checks them. `file`: what the script is called in messages; the definitions say
/// the name only, without folders.
pub fn import(file: &FilePath, text: &str) -> Import {
    let mut report = Report::new(file, text);
    let Some(script) = Script::read(text, &mut report) else { return Import { pipelines: Vec::new(), report } };
    let statements = read_statements(&script, &mut report);
    show(&script, &statements, &mut report);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut importing =
        Importing { script: &script, statements: &statements, file: &name, report, used: BTreeSet::new() };
    let mut names = Names::default();
    let drafts: Vec<_> = statements.inserts.iter().filter_map(|insert| importing.draft(insert, &mut names)).collect();
    importing.unused();
    importing.check(&drafts);
    let report = importing.report;
    let valid = !report.has_errors();
    let pipelines =
        drafts.into_iter().filter(|_| valid).map(|draft| Imported { name: draft.name, text: draft.yaml.text });
    Import { pipelines: pipelines.collect(), report }
}

/// The names that are taken.
#[derive(Default)]
struct Names {
    taken: HashSet<PipelineName>,
    /// Of each name that was wanted twice the number that is tried next.
    next: HashMap<PipelineName, u64>,
}

impl Names {
    /// The name, or with a number behind it where it is taken.
    fn free(&mut self, wanted: &PipelineName) -> PipelineName {
        let mut name = wanted.clone();
        while !self.taken.insert(name.clone()) {
            let next = self.next.entry(wanted.clone()).or_insert(2);
            let number = format!("-{next}");
            *next += 1;
            let kept = wanted.as_str().get(..PipelineName::MAX.saturating_sub(number.len()));
            name = PipelineName::resembling(&format!("{}{number}", kept.unwrap_or(wanted.as_str())));
        }
        name
    }
}

struct Importing<'a> {
    script: &'a Script<'a>,
    statements: &'a Statements,
    /// The script's name.
    file: &'a str,
    report: Report,
    /// The tables that some INSERT reads or writes.
    used: BTreeSet<usize>,
}

impl<'a> Importing<'a> {
    fn find(&mut self, insert: &Insert, path: &super::script::Path) -> Option<&'a Table> {
        let place = self.script.places.span(path.at.clone());
        match self.statements.find(insert, path, place) {
            Ok((index, table)) => {
                self.used.insert(index);
                Some(table)
            }
            Err(error) => {
                self.report.push(*error);
                None
            }
        }
    }

    fn draft(&mut self, insert: &'a Insert, names: &mut Names) -> Option<Draft<'a>> {
        let sink = self.find(insert, &insert.target);
        let source = self.find(insert, &insert.select.from);
        let (source, sink) = source.zip(sink)?;
        if source.broken || sink.broken {
            // What is wrong with it has been told.
            return None;
        }
        let before = self.report.errors();
        let items = self.columns(insert, source, sink);
        if self.report.errors() > before {
            return None;
        }
        let query =
            (!is_plain(insert, source) || items.is_some()).then(|| insert.select.text(self.script, items.as_deref()));
        let schema = match &query {
            Some(query) => self.plan(query, source)?.schema().columns.clone(),
            None => source.schema().columns.into_iter().map(physical).collect(),
        };
        self.check_types(insert, items.as_deref(), &schema, (source, sink));
        if self.report.errors() > before {
            return None;
        }
        let declared: Vec<Column> = taken(sink).cloned().collect();
        // What a sink takes over from a query may be null.
        let taken_over = schema.iter().cloned().map(|mut column| {
            column.ty.nullable |= query.is_some();
            column
        });
        let inherits = taken_over.eq(declared.iter().cloned()) && sink.columns.len() == declared.len();
        let name = self.name(insert, source, sink, names);
        let parts = Parts { file: self.file, name, insert, source, sink, query, inherits };
        let draft = write(parts, &mut self.report)?;
        if draft.yaml.text.len() as u64 > LARGEST_FILE {
            let error = Diagnostic::error("the definition would be larger than 256 KiB").at(insert.place);
            self.report.push(error.expected("less than a definition may hold"));
            return None;
        }
        Some(draft)
    }

    /// What the pipeline is called: as the script says, else by its tables.
    fn name(&mut self, insert: &Insert, source: &Table, sink: &Table, names: &mut Names) -> PipelineName {
        let wanted = match insert.settings.name() {
            Some(setting) => {
                if let Err(expected) = PipelineName::new(&setting.value) {
                    let warning = Diagnostic::warning("this is not a pipeline's name; the nearest is taken");
                    self.report.push(warning.at(setting.span).expected(expected));
                }
                setting.value.clone()
            }
            None => {
                let wanted = format!("{}-to-{}", source.path.last(), sink.path.last());
                if !wanted.is_ascii() {
                    let text = format!("the pipeline is called `{}`", PipelineName::resembling(&wanted));
                    let help = "its name can only have letters, digits, `.`, `_` and `-` of ASCII; SET 'pipeline.name' gives another";
                    self.report.push(Diagnostic::warning(text).at(insert.place).help(help));
                }
                wanted
            }
        };
        names.free(&PipelineName::resembling(&wanted))
    }

    /// The select list in the order of the sink's columns, where the INSERT names some and it is another order.
    fn columns(&mut self, insert: &Insert, source: &Table, sink: &Table) -> Option<Vec<Result<Range<usize>, String>>> {
        let everything: Vec<Item>;
        let items = match insert.select.items.as_slice() {
            [Item { at, kind: ItemKind::Everything, .. }] => {
                let column = |column: &super::table::TableColumn| ItemKind::Column(column.column.name.clone());
                let item = |of| Item { at: at.clone(), kind: column(of), of: None };
                everything = source.columns.iter().map(item).collect();
                everything.as_slice()
            }
            items if items.iter().any(|item| item.kind == ItemKind::Everything) => {
                if insert.columns.is_some() {
                    let error = Diagnostic::error("`*` beside other columns goes with no list of columns");
                    self.report.push(error.at(insert.place).expected("the columns one by one"));
                }
                return None;
            }
            items => items,
        };
        let taken: Vec<&Column> = taken(sink).collect();
        let Some(named) = &insert.columns else {
            self.count(insert, items.len(), taken.len(), sink);
            return None;
        };
        self.check_named(named, &taken, sink);
        self.count(insert, items.len(), named.len(), sink);
        if named.iter().map(|name| name.value.as_str()).eq(taken.iter().map(|column| column.name.as_str())) {
            return None;
        }
        let has_text = !matches!(insert.select.items.as_slice(), [Item { kind: ItemKind::Everything, .. }]);
        let one = |item: &Item| match &item.kind {
            ItemKind::Column(name) if !has_text => Err(format!("`{}`", name.replace('`', "``"))),
            _ => Ok(item.at.clone()),
        };
        let of = |column: &&Column| match named.iter().position(|name| name.value == column.name) {
            Some(position) => items.get(position).map_or_else(|| Err("NULL".to_owned()), one),
            None => Err(null(column)),
        };
        Some(taken.iter().map(of).collect())
    }

    /// Whether what is selected can be inserted into the columns of the sink. It is told at what is selected.
    fn check_types(
        &mut self,
        insert: &Insert,
        items: Option<&[Result<Range<usize>, String>]>,
        schema: &[Column],
        (source, sink): (&Table, &Table),
    ) {
        // A `*` stands for every column.
        let times = |item: &Item| if item.kind == ItemKind::Everything { source.columns.len() } else { 1 };
        let selected: Vec<&Item> =
            insert.select.items.iter().flat_map(|item| std::iter::repeat_n(item, times(item))).collect();
        for (number, (from, to)) in schema.iter().zip(taken(sink)).enumerate() {
            if inserts(&from.ty.logical, &to.ty.logical) {
                continue;
            }
            let bytes = match items {
                Some(items) => items.get(number).and_then(|item| item.clone().ok()),
                None => selected.get(number).map(|item| item.at.clone()),
            };
            let place = bytes.map_or(insert.place, |bytes| self.script.places.span(bytes));
            let text = format!("`{}` of `{}` is {}, and this is {}", to.name, sink.path.last(), to.ty, from.ty);
            let error =
                Diagnostic::error(text).at(place).expected(format!("what can be inserted into {}", to.ty.logical));
            let item = match items {
                Some(_) => selected.iter().copied().find(|item| items_at(items, number) == Some(&item.at)),
                None => selected.get(number).copied(),
            };
            let column = match item.map(|item| &item.kind) {
                Some(ItemKind::Column(name)) => Some(name.as_str()),
                Some(ItemKind::Everything) => Some(from.name.as_str()),
                Some(ItemKind::Other) | None => None,
            };
            let cast = column.and_then(|column| cast(column, from, to));
            self.report.push(Diagnostic { help: cast, ..error });
        }
    }

    fn count(&mut self, insert: &Insert, given: usize, wanted: usize, sink: &Table) {
        if given != wanted {
            let text = format!("{given} columns are selected for {wanted} of `{}`", sink.path.last());
            let error = Diagnostic::error(text).at(insert.place);
            self.report.push(error.expected("one for each; they are matched by position"));
        }
    }

    fn check_named(&mut self, named: &[Located<String>], taken: &[&Column], sink: &Table) {
        let table = sink.path.last();
        for (index, name) in named.iter().enumerate() {
            if !taken.iter().any(|column| column.name == name.value) {
                let error = Diagnostic::error(format!("`{table}` takes no column `{}`", name.value)).at(name.span);
                self.report.push(error.nearest(nearest(&name.value, taken.iter().map(|column| column.name.as_str()))));
            }
            if named.iter().take(index).any(|other| other.value == name.value) {
                self.report.push(Diagnostic::error(format!("`{}` is named twice", name.value)).at(name.span));
            }
        }
        let left_out = taken.iter().filter(|column| !named.iter().any(|name| name.value == column.name));
        for (column, first) in left_out.zip(named.first().into_iter().cycle()) {
            let is = if !column.ty.nullable {
                "is NOT NULL and is given no value".to_owned()
            } else if is_nested(&column.ty.logical) {
                format!("is {}, and a query cannot make a null of that type", column.ty)
            } else {
                continue;
            };
            let error = Diagnostic::error(format!("`{}` of `{table}` {is}", column.name)).at(first.span);
            self.report.push(error.expected("a value for it"));
        }
    }

    /// Plans a query, so that what is wrong with it is told at its place in the script.
    fn plan(&mut self, query: &QueryText, source: &Table) -> Option<Query> {
        if let Some(at) = query.text.find("${") {
            let start = query.origin(at);
            let warning = Diagnostic::warning("`${` in a query is a text here, and refers to nothing");
            let help = "write the reference into the definition if something else is to put in its value";
            self.report.push(warning.at(self.script.places.span(start..start + 2)).help(help));
        }
        let errors = match Query::plan(&query.text, &source.schema()) {
            Ok(query) => return Some(query),
            Err(errors) => errors,
        };
        for error in errors {
            let start = query.origin(error.at.start);
            let end = query.origin(error.at.end.saturating_sub(1)).max(start) + 1;
            let mut diagnostic = Diagnostic::error(error.message).at(self.script.places.span(start..end));
            diagnostic.expected = error.expected;
            diagnostic.help = error.help;
            self.report.push(diagnostic.nearest(error.nearest));
        }
        None
    }

    /// Says which tables no INSERT reads or writes.
    fn unused(&mut self) {
        for (index, table) in self.statements.tables.iter().enumerate() {
            if self.used.contains(&index) || table.broken || self.report.has_errors() {
                continue;
            }
            let warning = Diagnostic::warning(format!("no INSERT reads or writes the table `{}`", table.path.last()));
            self.report.push(warning.at(table.place).help("it becomes part of no pipeline"));
        }
        if !self.statements.has_insert && !self.report.has_errors() {
            let error = Diagnostic::error("the script has no INSERT INTO, so there is nothing to run");
            self.report.push(error.expected("INSERT INTO ... SELECT ... FROM ..."));
        }
    }

    /// Checks the definitions as `check` does, and tells what is wrong where it stands in the script; of tables that
    /// became part of none, only what can be seen of one alone.
    fn check(&mut self, drafts: &[Draft<'_>]) {
        let texts: Vec<_> = drafts
            .iter()
            .map(|draft| (PathBuf::from(format!("{}.yaml", draft.name)), draft.yaml.text.clone()))
            .collect();
        // Each variable has a value of its own, so that two that are not set are not taken for the same.
        let environment =
            Environment::new(|name| Some(format!("http://{name}.invalid").into()), None).with_placeholders();
        for (loaded, draft) in load_texts(&texts, &environment).iter().zip(drafts) {
            let known: Vec<Diagnostic> = loaded.read.report.diagnostics().into_iter().cloned().collect();
            for mut diagnostic in known {
                let found = diagnostic.span.and_then(|span| draft.yaml.origin(span.start));
                diagnostic.help = diagnostic.help.map(|help| of_insert(help, drafts));
                self.tell(diagnostic, found.unwrap_or(Found { place: draft.insert.place, unknown: false }));
            }
        }
        if self.report.has_errors() {
            self.check_rest(drafts, &environment);
        }
    }

    /// Checks the tables that are part of no definition.
    fn check_rest(&mut self, drafts: &[Draft<'_>], environment: &Environment) {
        let statements = self.statements;
        let whole: HashSet<usize> = drafts.iter().flat_map(|draft| draft.tables.map(|of| of.place.start)).collect();
        let rest = statements.tables.iter().enumerate().filter(|(_, table)| !whole.contains(&table.place.start));
        for (index, table) in rest.take(MOST_ALONE) {
            match statements.roles.get(&index).copied().flatten().filter(|_| !table.broken) {
                Some(role) => {
                    for (diagnostic, found) in check_whole(table, role, environment) {
                        self.tell(diagnostic, found);
                    }
                }
                None => check_names(table, environment, &mut self.report),
            }
        }
    }

    /// Tells in the script what was said of a definition.
    fn tell(&mut self, mut diagnostic: Diagnostic, found: Found) {
        if found.unknown {
            return;
        }
        diagnostic.span = Some(found.place);
        let written = self.script.text(found.place.range());
        if written.starts_with("'<") && written.ends_with(">'") {
            diagnostic.help.get_or_insert_with(|| "it stands for a value of yours: put that in".to_owned());
        }
        push_once(&mut self.report, diagnostic);
    }
}

/// Most tables that are part of no definition that are looked at; beyond it reading on helps nobody.
const MOST_ALONE: usize = 100;

/// A help that names the file another pipeline is declared in, of which there is none yet.
fn of_insert(help: String, drafts: &[Draft<'_>]) -> String {
    let named = help.strip_prefix("it is declared in ").and_then(|rest| rest.split_once(".yaml; "));
    let found = named.and_then(|(name, why)| Some((drafts.iter().find(|draft| draft.name.as_str() == name)?, why)));
    found
        .map(|(draft, why)| format!("it is that of the INSERT in line {}; {why}", draft.insert.place.line))
        .unwrap_or(help)
}

/// Reports what may be found again for another INSERT.
pub(super) fn push_once(report: &mut Report, diagnostic: Diagnostic) {
    let diagnostic = of_tables(diagnostic);
    if !report.diagnostics().contains(&&diagnostic) {
        report.push(diagnostic);
    }
}

/// Without advising a key that only a definition has.
fn of_tables(mut diagnostic: Diagnostic) -> Diagnostic {
    for (key, _) in OF_DEFINITIONS {
        diagnostic.nearest = diagnostic.nearest.filter(|near| near != key);
        let listed = format!("`{key}`, ");
        diagnostic.expected = diagnostic.expected.map(|expected| expected.replace(&listed, ""));
    }
    diagnostic
}

/// A null for a column that is given no value.
fn null(column: &Column) -> String {
    format!("CAST(NULL AS {})", column.ty.logical)
}

/// Where the part of the select list stands that is taken at this place.
fn items_at(items: Option<&[Result<Range<usize>, String>]>, number: usize) -> Option<&Range<usize>> {
    items?.get(number)?.as_ref().ok()
}

/// A column converted so that it can be inserted, if there is such a conversion.
fn cast(name: &str, from: &Column, to: &Column) -> Option<String> {
    let cast = format!("CAST(`{}` AS {})", name.replace('`', "``"), to.ty.logical);
    let column = Column { name: name.to_owned(), ..physical(from.clone()) };
    let query = Query::plan(&format!("SELECT {cast} FROM source"), &Schema { columns: vec![column] });
    query.is_ok().then_some(cast)
}

const fn is_nested(ty: &LogicalType) -> bool {
    matches!(ty, LogicalType::Array(_) | LogicalType::Map(..) | LogicalType::Row(_))
}

/// The columns of a sink that are written.
fn taken(sink: &Table) -> impl Iterator<Item = &Column> {
    sink.columns.iter().map(|column| &column.column).filter(|column| !column.is_virtual)
}

fn physical(column: Column) -> Column {
    Column { metadata: None, is_virtual: false, ..column }
}

/// Whether a SELECT hands on every column as it is.
fn is_plain(insert: &Insert, source: &Table) -> bool {
    let same = |(item, column): (&Item, &super::table::TableColumn)| matches!(&item.kind, ItemKind::Column(name) if *name == column.column.name);
    let items = &insert.select.items;
    let every = items.len() == source.columns.len() && items.iter().zip(&source.columns).all(same);
    !insert.select.has_where && (every || matches!(items.as_slice(), [Item { kind: ItemKind::Everything, .. }]))
}

/// How a table is used.
pub(super) const fn name_of(role: Role) -> &'static str {
    match role {
        Role::Source => "read",
        Role::Sink => "written",
    }
}
