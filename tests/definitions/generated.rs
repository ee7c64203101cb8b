//! For every entry of every option table: what a person can get wrong with it is told at the right line and column,
//! with the right suggestion, and a secret is never shown.

use std::{path::Path, time::Duration};

use queuewarden::definition::{
    ConnectorTables, Diagnostic, Environment, FormatUse, Loaded, OptionKind, OptionSpec, OptionTable, Registry, Role,
    Severity, Style, load_text, sections,
};

const SECRET: &str = "S3CR3T";

/// A valid value for a required option where the kind alone does not tell one: `(connector, option) -> value`.
pub type Samples = fn(&str, &str) -> Option<&'static str>;

/// A column that an option of columns goes with.
pub struct ColumnSample {
    /// Its type.
    pub ty: &'static str,
    /// A valid value, where the kind alone does not tell one.
    pub value: Option<&'static str>,
    /// Other options the column must have then.
    pub with: &'static [(&'static str, &'static str)],
}

/// For each option of columns: `(connector, option) -> sample`.
pub type ColumnSamples = fn(&str, &str) -> ColumnSample;

/// A section in the making: its key and its lines, each a key and a value as YAML.
#[derive(Clone)]
struct Part {
    key: &'static str,
    lines: Vec<(String, String)>,
    /// The type of the column `a`.
    schema: Option<&'static str>,
}

#[derive(Clone)]
struct Document(Vec<Part>);

impl Document {
    fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            let indent = if part.key.is_empty() { "" } else { "  " };
            if !part.key.is_empty() {
                text += &format!("{}:\n", part.key);
            }
            for (key, value) in &part.lines {
                text += &format!("{indent}{key}: {value}\n");
            }
            if let Some(ty) = part.schema {
                text += &format!("  schema:\n    a: {ty}\n");
            }
        }
        text
    }

    /// Line of the part's key, then of the option in it; 1-based.
    fn lines_of(&self, part_key: &str, option: &str) -> (u32, u32) {
        let mut line = 1;
        for part in &self.0 {
            let at = line;
            line += u32::from(!part.key.is_empty());
            for (key, _) in &part.lines {
                if part.key == part_key && key == option {
                    return (at, line);
                }
                line += 1;
            }
            if part.key == part_key {
                return (at, 0);
            }
            line += if part.schema.is_some() { 2 } else { 0 };
        }
        panic!("no {part_key}")
    }

    /// The same with an option set, renamed or (with neither) taken out.
    fn with(&self, part_key: &str, option: &str, new: Option<(&str, &str)>) -> Self {
        let mut changed = self.clone();
        let part = changed.0.iter_mut().find(|part| part.key == part_key).expect("the part is there");
        part.lines.retain(|(key, _)| key != option);
        part.lines.extend(new.map(|(key, value)| (key.to_owned(), value.to_owned())));
        changed
    }
}

fn load(document: &Document, registry: &Registry) -> Loaded {
    load_text(Path::new("p.yaml"), &document.text(), registry, &Environment::new(|_| None, None))
}

fn sample(kind: OptionKind) -> String {
    match kind {
        OptionKind::Text | OptionKind::AnyText => "x".into(),
        OptionKind::Url => "http://127.0.0.1:1".into(),
        OptionKind::Integer { min, max } => 1.clamp(min, max).to_string(),
        OptionKind::Boolean => "true".into(),
        OptionKind::Duration { min, max } => {
            format!("{}ns", Duration::from_secs(10).clamp(min, max).as_nanos())
        }
        OptionKind::Choice { values, .. } => values[0].into(),
        OptionKind::Path => "p".into(),
        OptionKind::Character => "','".into(),
        OptionKind::Size => "1mb".into(),
        OptionKind::Number | OptionKind::Share => "1".into(),
        OptionKind::Rate => "500/s".into(),
        OptionKind::Backoff => "1s..2s".into(),
        OptionKind::Gone(_) => "x".into(),
    }
}

/// Values that are refused, as YAML.
fn refused(kind: OptionKind) -> Vec<String> {
    let mut all: Vec<String> = vec!["[1, 2]".into(), "{a: b}".into(), "~".into(), "''".into()];
    let nanos = |duration: Duration| format!("{}ns", duration.as_nanos());
    match kind {
        OptionKind::Text => {}
        OptionKind::AnyText => drop(all.pop()),
        OptionKind::Path => all.push("\"a\\0b\"".into()),
        OptionKind::Url => all.extend(["nonsense".into(), "ftp://h".into(), "http://u:p@h".into()]),
        OptionKind::Integer { min, max } => {
            all.extend(["abc".into(), "1.5".into(), "0x1".into()]);
            all.extend(min.checked_sub(1).map(|below| below.to_string()));
            all.extend(max.checked_add(1).map(|above| above.to_string()));
            all.push("99999999999999999999".into());
        }
        OptionKind::Boolean => all.extend(["yes".into(), "1".into()]),
        OptionKind::Duration { min, max } => {
            all.extend(["soon".into(), "-1s".into(), "1.5s".into()]);
            all.extend(min.checked_sub(Duration::from_nanos(1)).map(nanos));
            let above = max.checked_add(Duration::from_nanos(1));
            all.extend(above.filter(|above| above.as_nanos() < u128::from(u64::MAX)).map(nanos));
        }
        OptionKind::Choice { .. } => all.push("zzzzzz".into()),
        OptionKind::Character => all.push("'||'".into()),
        OptionKind::Size => all.extend(["big".into(), "-1".into()]),
        OptionKind::Number => all.extend(["many".into(), "0x1".into(), "1e9999".into()]),
        OptionKind::Share => all.extend(["half".into(), "1.1".into(), "-0.1".into()]),
        OptionKind::Rate => all.extend(["500".into(), "0/s".into(), "1/d".into()]),
        OptionKind::Backoff => all.extend(["1s".into(), "2s..1s".into()]),
        OptionKind::Gone(_) => all.push("x".into()),
    }
    all
}

/// A document with one connector at one end, and any at the other.
fn document(
    registry: &Registry,
    role: Role,
    connector: &ConnectorTables,
    format: Option<&str>,
    samples: Samples,
) -> Document {
    let part = |role: Role, connector: &ConnectorTables, format: Option<&str>| {
        let tables = match role {
            Role::Source => connector.source.as_ref(),
            Role::Sink => connector.sink.as_ref(),
        };
        let tables = tables.expect("the connector has the role");
        let mut lines = vec![("connector".to_owned(), connector.name.to_owned())];
        let first = match tables.format {
            FormatUse::Required(choices) => choices.first().copied(),
            FormatUse::Never | FormatUse::Defaulted(_) => None,
        };
        lines.extend(format.or(first).map(|format| ("format".to_owned(), format.to_owned())));
        let required = tables.options.options.iter().filter(|spec| spec.required);
        lines.extend(required.map(|spec| (spec.name.to_owned(), valid(connector.name, spec, samples))));
        Part { key: role.name(), lines, schema: (role == Role::Source).then_some("STRING") }
    };
    let other = |role: Role| {
        let has = |c: &&&'static ConnectorTables| match role {
            Role::Source => c.source.is_some(),
            Role::Sink => c.sink.is_some(),
        };
        registry.connectors.iter().find(has).expect("each role has a connector")
    };
    let mut parts = vec![Part { key: "", lines: vec![("name".into(), "p".into())], schema: None }];
    parts.extend(match role {
        Role::Source => [part(role, connector, format), part(Role::Sink, other(Role::Sink), None)],
        Role::Sink => [part(Role::Source, other(Role::Source), None), part(role, connector, format)],
    });
    parts.extend(["checkpoint", "restart", "batch", "credits"].map(|key| {
        let table = sections::SECTIONS.iter().find(|table| table.name == key).expect("a section");
        let lines = table.options.iter().map(|spec| (spec.name.to_owned(), sample(spec.kind))).collect();
        Part { key, lines, schema: None }
    }));
    Document(parts)
}

fn valid(connector: &str, spec: &OptionSpec, samples: Samples) -> String {
    samples(connector, spec.name).map_or_else(|| sample(spec.kind), str::to_owned)
}

/// Runs every case over every table of the registry; answers how many cases there were.
pub fn every_option_is_guarded(registry: &Registry, samples: Samples, column_samples: ColumnSamples) -> usize {
    let mut cases = 0;
    for connector in registry.connectors {
        for (role, tables) in [(Role::Source, &connector.source), (Role::Sink, &connector.sink)] {
            let Some(tables) = tables else { continue };
            let base = document(registry, role, connector, None, samples);
            cases += table_is_guarded(&base, role.name(), connector.name, tables.options, registry, samples);
            for spec in tables.columns.iter().flat_map(|table| table.options) {
                let sample = column_samples(connector.name, spec.name);
                cases += column_option_is_guarded(&base, role.name(), spec, &sample, tables.columns, registry);
            }
            for format in tables.format.choices() {
                let base = document(registry, role, connector, Some(format), samples);
                let table = registry.format(format).unwrap_or_else(|| panic!("no format {format}")).options;
                let prefix = format!("{format}.");
                assert!(table.options.iter().all(|spec| spec.name.starts_with(&prefix)), "options of {format}");
                cases += table_is_guarded(&base, role.name(), connector.name, table, registry, samples);
            }
        }
    }
    let base = document(registry, Role::Source, first_source(registry), None, samples);
    for table in sections::SECTIONS {
        cases += table_is_guarded(&base, table.name, "", table, registry, samples);
    }
    cases += table_is_guarded(&base, "source", "", &sections::SOURCE, registry, samples);
    cases + table_is_guarded(&base, "", "", &sections::TOP, registry, samples)
}

fn first_source(registry: &Registry) -> &'static ConnectorTables {
    registry.connectors.iter().find(|c| c.source.is_some()).expect("a source")
}

fn table_is_guarded(
    base: &Document,
    part: &str,
    connector: &str,
    table: &OptionTable,
    registry: &Registry,
    samples: Samples,
) -> usize {
    let loaded = load(base, registry);
    assert!(loaded.definition.is_some(), "{}\n{}", base.text(), loaded.report.render(Style::Plain));
    let mut cases = 0;
    for spec in table.options {
        let good = valid(connector, spec, samples);
        let needed = spec.needs.map(|name| table.find(name).unwrap_or_else(|| panic!("there is no {name} to need")));
        let with_needed =
            needed.map(|needed| base.with(part, needed.name, Some((needed.name, &valid(connector, needed, samples)))));
        let base = with_needed.as_ref().unwrap_or(base);
        let case = Case { base, part, stem: "", name: spec.name.to_owned(), spec, registry, good };
        cases += case.misspelt() + case.wrong() + case.absent() + case.secret();
        is_documented(spec);
    }
    cases
}

fn is_documented(spec: &OptionSpec) {
    if let Some(default) = spec.default {
        assert!(spec.kind.parse(default).is_ok(), "the default of {} is not valid", spec.name);
    }
    assert!(!spec.doc.is_empty(), "{} is not documented", spec.name);
}

/// The same for an option that each column may have; and its column misspelt.
fn column_option_is_guarded(
    base: &Document,
    part: &str,
    spec: &'static OptionSpec,
    sample: &ColumnSample,
    table: Option<&'static OptionTable>,
    registry: &Registry,
) -> usize {
    let table = table.expect("it has such options").name;
    let mut base = base.clone();
    let section = base.0.iter_mut().find(|section| section.key == part).expect("the part is there");
    section.schema = Some(sample.ty);
    section.lines.extend(sample.with.iter().map(|(option, value)| (format!("{table}.a.{option}"), (*value).into())));
    let stem = format!("{table}.a.");
    let (name, good) = (format!("{stem}{}", spec.name), sample.value.map_or_else(|| sample_of(spec), str::to_owned));
    let valid = base.with(part, &name, Some((&name, &good)));
    let loaded = load(&valid, registry);
    assert!(loaded.definition.is_some(), "{}\n{}", valid.text(), loaded.report.render(Style::Plain));
    is_documented(spec);
    let case = Case { base: &base, part, stem: &stem, name, spec, registry, good };
    case.misspelt() + case.wrong() + case.secret() + case.misspelt_around(table)
}

fn sample_of(spec: &OptionSpec) -> String {
    sample(spec.kind)
}

struct Case<'a> {
    base: &'a Document,
    part: &'a str,
    /// What stands before the option's own name.
    stem: &'a str,
    /// The whole key.
    name: String,
    spec: &'static OptionSpec,
    registry: &'a Registry,
    good: String,
}

impl Case<'_> {
    fn indent(&self) -> u32 {
        if self.part.is_empty() { 0 } else { 2 }
    }

    /// The only diagnostic of a document.
    fn only(&self, document: &Document) -> Diagnostic {
        let loaded = load(document, self.registry);
        let told = loaded.report.render(Style::Plain);
        let all = loaded.report.diagnostics();
        let errors: Vec<_> = all.into_iter().filter(|found| found.severity == Severity::Error).collect();
        assert_eq!(errors.len(), 1, "{}: {told}\n{}", self.spec.name, document.text());
        assert!(loaded.definition.is_none());
        assert!(!told.contains(SECRET), "{told}");
        errors[0].clone()
    }

    fn misspelt(&self) -> usize {
        let (name, stem) = (self.spec.name, self.stem);
        let mut twisted: Vec<char> = name.chars().collect();
        let middle = twisted.len() / 2;
        twisted.swap(middle, middle - 1);
        let spellings = [format!("{name}s"), twisted.into_iter().collect(), name[..name.len() - 1].to_owned()];
        let mut cases = 0;
        for spelling in spellings.iter().filter(|spelling| *spelling != name) {
            self.is_meant(&format!("{stem}{spelling}"));
            cases += 1;
        }
        cases
    }

    /// The key is an error, and the right one is suggested.
    fn is_meant(&self, spelling: &str) {
        let document = self.base.with(self.part, &self.name, Some((spelling, &self.good)));
        let diagnostic = self.only(&document);
        let (_, line) = document.lines_of(self.part, spelling);
        assert_eq!(diagnostic.place(), Some((line, self.indent() + 1)), "{spelling}: {diagnostic}");
        assert_eq!(diagnostic.nearest.as_deref(), Some(&*self.name), "{spelling}: {diagnostic}");
    }

    /// Misspelt in what stands before the option: the table's name and the column's.
    fn misspelt_around(&self, table: &str) -> usize {
        let option = self.spec.name;
        for spelling in [format!("{table}.A.{option}"), format!("{table}x.a.{option}"), format!("{table}.A.{option}s")]
        {
            self.is_meant(&spelling);
        }
        3
    }

    fn wrong(&self) -> usize {
        let name = self.name.as_str();
        let values = refused(self.spec.kind);
        for value in &values {
            let document = self.base.with(self.part, name, Some((name, value)));
            let diagnostic = self.only(&document);
            let (_, line) = document.lines_of(self.part, name);
            let column = self.indent() + name.len() as u32 + 3;
            assert_eq!(diagnostic.place(), Some((line, column)), "{name}: {value}: {diagnostic}");
            assert!(diagnostic.message.contains(name), "{diagnostic}");
            assert_eq!(diagnostic.expected, Some(self.spec.kind.describe()), "{name}: {value}");
        }
        if let OptionKind::Choice { values: choices, .. } = self.spec.kind {
            for choice in choices {
                let document = self.base.with(self.part, name, Some((name, &format!("{choice}_"))));
                assert_eq!(self.only(&document).nearest.as_deref(), Some(*choice));
            }
        }
        values.len()
    }

    fn absent(&self) -> usize {
        let mut document = self.base.with(self.part, self.spec.name, None);
        // What it needs may need it too.
        if let Some(needed) = self.spec.needs {
            document = document.with(self.part, needed, None);
        }
        if self.spec.required {
            let diagnostic = self.only(&document);
            let (line, _) = document.lines_of(self.part, "");
            assert_eq!(diagnostic.place(), Some((line, 1)), "{diagnostic}");
            assert!(diagnostic.message.contains(&format!("`{}`", self.spec.name)), "{diagnostic}");
        } else {
            let loaded = load(&document, self.registry);
            assert!(!loaded.report.has_errors(), "{}", loaded.report.render(Style::Plain));
        }
        1
    }

    /// A secret stays hidden when the option is misspelt, given twice, a list, or beside another mistake.
    fn secret(&self) -> usize {
        if !self.spec.secret {
            return 0;
        }
        let name = self.name.as_str();
        let misspelt = format!("{name}s");
        let list = format!("[{SECRET}]");
        let commented = format!("[x] # {SECRET}");
        for line in [(misspelt.as_str(), SECRET), ("zzz", SECRET), (name, &list), (name, &commented)] {
            let document = self.base.with(self.part, name, Some(line));
            let mut twice = document.clone();
            let part = twice.0.iter_mut().find(|part| part.key == self.part).expect("the part");
            part.lines.extend([(line.0.to_owned(), SECRET.to_owned()), (name.to_owned(), format!("\"{SECRET}"))]);
            for document in [document, twice] {
                let report = load(&document, self.registry).report;
                assert!(report.has_errors());
                for style in [Style::Plain, Style::Terminal, Style::Line] {
                    let told = report.render(style);
                    assert!(!told.contains(SECRET), "{told}");
                }
            }
        }
        let document = self.base.with(self.part, name, Some((name, SECRET)));
        let definition = load(&document, self.registry).definition.expect("valid");
        assert!(!format!("{definition:?}{}", definition.to_yaml()).contains(SECRET));
        8
    }
}
