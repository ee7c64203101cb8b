//! A whole pipeline, checked, with the place of everything that a later check may have to point at.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    check::{Checked, Keys, Section, check_keys, check_table},
    diagnostics::{Diagnostic, Report},
    endpoint::{Columns, DEAD_LETTER, Endpoint, ReadEndpoint, Role, read_endpoint},
    located::{Node, Span, Value},
    options::{OptionTable, Options},
    primary_key::PRIMARY_KEY,
    query::{QUERY, ReadQuery, read_query},
    registry::Registry,
    sections as s,
};
use crate::{
    model::{CreditLimits, PipelineName, Schema, dead_letter_schema},
    query::Query,
};

/// A pipeline as its file declares it, every part valid and every default filled in.
#[derive(Debug, Clone)]
pub struct PipelineDefinition {
    /// Its name.
    pub name: PipelineName,
    /// Where its name stands; `None`: it is the file's.
    pub name_place: Option<Span>,
    /// The file it was read from.
    pub file: PathBuf,
    /// What it reads.
    pub source: Endpoint,
    /// What is made of its rows on their way to the sink, if they do not go there as they are.
    pub query: Option<Query>,
    /// What it writes.
    pub sink: Endpoint,
    /// When there is a checkpoint.
    pub checkpoint: CheckpointDefinition,
    /// How often it may be restarted.
    pub restart: RestartDefinition,
    /// What becomes of bodies and rows that are refused for good.
    pub on_error: OnError,
    /// Where dead letters go: there if and only if they are asked for.
    pub dead_letter: Option<Endpoint>,
    /// Rows a batch is filled up to; at least 1.
    pub batch_rows: usize,
    /// The bound on what is on its way.
    pub credits: CreditLimits,
}

impl PipelineDefinition {
    /// The columns that go to the sink: those of the query, else those of the source.
    pub fn selected(&self) -> &Schema {
        self.query.as_ref().map_or(&self.source.schema, Query::schema)
    }
}

/// `checkpoint:`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointDefinition {
    /// How often; at least 10 ms.
    pub interval: Duration,
    /// How long without progress; at least 10 ms.
    pub timeout: Duration,
    /// Messages received and not yet acknowledged; at least 1.
    pub max_unacknowledged: usize,
}

/// `restart:`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartDefinition {
    /// Restarts allowed within `within`; 0: none.
    pub max: u32,
    /// The stretch of time in which they are counted; above zero.
    pub within: Duration,
    /// The first wait; above zero.
    pub backoff_min: Duration,
    /// The longest wait; not below the first.
    pub backoff_max: Duration,
}

/// `on_error:`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The pipeline is Failed and names the message, which stays in the queue.
    Fail,
    /// It is counted and acknowledged.
    Skip,
    /// It is written to the sink for dead letters, and acknowledged with it.
    DeadLetter,
}

/// Keys of a definition that are no options.
const WORDS: [&str; 8] = ["source", QUERY, "sink", DEAD_LETTER, "checkpoint", "restart", "batch", "credits"];

/// What could be read of a document.
#[derive(Debug, Default)]
pub(super) struct ReadPipeline {
    /// The name, if it is valid, whatever else is wrong.
    pub name: Option<PipelineName>,
    /// The whole, if nothing in it is an error.
    pub definition: Option<PipelineDefinition>,
}

/// Checks a substituted document against the registry.
pub(super) fn read_pipeline(root: &Node, file: &Path, registry: &Registry, report: &mut Report) -> ReadPipeline {
    let Value::Mapping(entries) = &root.value else { return ReadPipeline::default() };
    // What is missing from the whole is told where the whole begins.
    let begin = entries.first().map_or(root.span, |entry| entry.key.span);
    let top = Section { name: "the definition", key: Some(begin), entries };
    let elsewhere = |key: &str| belongs_inside(key, registry);
    let keys = Keys { words: &WORDS, tables: &[&s::TOP], columns: None, elsewhere: &elsewhere };
    let meant = check_keys(top, &keys, report);
    let own = check_table(&s::TOP, top, &meant, report);
    let name = name(&own, file, report);
    let mut general = |table| general_section(table, top, report);
    let (checkpoint, restart) = (general(&s::CHECKPOINT), general(&s::RESTART));
    let (batch, credits) = (general(&s::BATCH), general(&s::CREDITS));

    let end = |role: Role, columns: Columns<'_>, report: &mut Report| match section(top, role.name(), report) {
        Found::Mapping(section) => read_endpoint(role, section, columns, registry, report),
        Found::Absent if !meant.contains(&role.name()) => {
            report.push(
                Diagnostic::error(format!("the section `{}` is missing", role.name()))
                    .at(begin)
                    .expected(format!("`{}:` with a `connector:`", role.name())),
            );
            ReadEndpoint::default()
        }
        Found::Absent | Found::Wrong => ReadEndpoint::default(),
    };
    let source = end(Role::Source, Columns::Own, report);
    let query = read_query(top, source.schema.as_ref(), report);
    let selected = match &query {
        ReadQuery::Absent => source.schema.as_ref().map(|schema| ("source", schema)),
        ReadQuery::Planned(query) => Some((QUERY, query.schema())),
        ReadQuery::Unknown => None,
    };
    let sink = end(Role::Sink, Columns::Inherited(selected), report);
    let letters = section(top, DEAD_LETTER, report);
    let dead_letter = match letters {
        Found::Mapping(section) => {
            read_endpoint(Role::Sink, section, Columns::Fixed(&dead_letter_schema()), registry, report)
        }
        Found::Absent | Found::Wrong => ReadEndpoint::default(),
    };
    // Nobody knows whether there is need of the section where `on_error` is not known.
    let unknown =
        matches!(top.get(s::ON_ERROR.name).map(|entry| &entry.value.value), Some(Value::Scalar(text)) if text.unknown);
    let on_error = on_error(&own, &letters, unknown || meant.contains(&DEAD_LETTER), begin, report);
    let valid = name.clone().zip(source.endpoint.zip(sink.endpoint)).filter(|_| report.errors() == 0);
    let definition = valid.map(|(name, (source, sink))| PipelineDefinition {
        name,
        name_place: own.places.get(s::NAME.name).copied(),
        file: file.to_owned(),
        source,
        query: match query {
            ReadQuery::Planned(query) => Some(query),
            ReadQuery::Absent | ReadQuery::Unknown => None,
        },
        sink,
        checkpoint: checkpoint_of(&checkpoint.options),
        restart: restart_of(&restart.options),
        on_error,
        dead_letter: dead_letter.endpoint,
        batch_rows: usize::try_from(batch.options.integer(&s::BATCH_ROWS)).unwrap_or(usize::MAX),
        credits: CreditLimits {
            batches: u32::try_from(credits.options.integer(&s::CREDIT_BATCHES)).unwrap_or(u32::MAX),
            bytes: credits.options.size(&s::CREDIT_BYTES),
        },
    });
    ReadPipeline { name, definition }
}

/// What `on_error` says, and whether the section for dead letters is there if and only if it asks for it. `meant`:
/// a misspelt key was probably that section, or nobody knows whether it is asked for.
fn on_error(own: &Checked, letters: &Found<'_>, meant: bool, begin: Span, report: &mut Report) -> OnError {
    let place = own.places.get(s::ON_ERROR.name).copied();
    let Some(text) = own.options.opt_text(&s::ON_ERROR) else { return OnError::Fail };
    match (text, letters) {
        ("dead_letter", Found::Absent) if !meant => report.push(
            Diagnostic::error("`on_error` is `dead_letter`, but the section `dead_letter` is missing")
                .at(place.unwrap_or(begin))
                .expected("`dead_letter:` with a `connector:`"),
        ),
        ("fail" | "skip", Found::Mapping(section)) if !meant => report.push(
            Diagnostic::error(format!("nothing goes to `dead_letter`, for `on_error` is `{text}`"))
                .at(section.key.unwrap_or(begin))
                .help("write `on_error: dead_letter`, or take the section out"),
        ),
        _ => {}
    }
    match text {
        "skip" => OnError::Skip,
        "dead_letter" => OnError::DeadLetter,
        _ => OnError::Fail,
    }
}

fn checkpoint_of(options: &Options) -> CheckpointDefinition {
    CheckpointDefinition {
        interval: options.duration(&s::INTERVAL),
        timeout: options.duration(&s::TIMEOUT),
        max_unacknowledged: usize::try_from(options.integer(&s::MAX_UNACKNOWLEDGED)).unwrap_or(usize::MAX),
    }
}

fn restart_of(options: &Options) -> RestartDefinition {
    let (backoff_min, backoff_max) = options.backoff(&s::RESTART_BACKOFF);
    RestartDefinition {
        max: u32::try_from(options.integer(&s::RESTART_MAX)).unwrap_or(u32::MAX),
        within: options.duration(&s::RESTART_WITHIN),
        backoff_min,
        backoff_max,
    }
}

/// What is at a key that should be a mapping.
enum Found<'a> {
    Mapping(Section<'a>),
    Absent,
    /// Something else, which has been reported.
    Wrong,
}

fn section<'a>(top: Section<'a>, name: &'a str, report: &mut Report) -> Found<'a> {
    let Some(entry) = top.entries.iter().find(|entry| entry.key.value == name) else { return Found::Absent };
    match &entry.value.value {
        Value::Mapping(entries) => Found::Mapping(Section { name, key: Some(entry.key.span), entries }),
        // All of its options are commented out.
        Value::Null => Found::Mapping(Section { name, key: Some(entry.key.span), entries: &[] }),
        Value::Broken => Found::Wrong,
        other => {
            report.push(
                Diagnostic::error(format!("`{name}` holds {}", other.describe()))
                    .at(entry.value.span)
                    .expected("a mapping of options"),
            );
            Found::Wrong
        }
    }
}

/// A section that has nothing but options, all with defaults.
fn general_section(table: &'static OptionTable, top: Section<'_>, report: &mut Report) -> Checked {
    let Found::Mapping(section) = section(top, table.name, report) else {
        return check_table(table, Section { name: table.name, key: None, entries: &[] }, &[], report);
    };
    let keys = Keys { words: &[], tables: &[table], columns: None, elsewhere: &|_| None };
    let meant = check_keys(section, &keys, report);
    check_table(table, section, &meant, report)
}

/// The name given, or the file's.
fn name(own: &Checked, file: &Path, report: &mut Report) -> Option<PipelineName> {
    let place = own.places.get(s::NAME.name).copied();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    if own.options.is_masked(&s::NAME) {
        let mut diagnostic = Diagnostic::error("`name` holds a secret").expected("a name that may be shown");
        diagnostic.span = place;
        report.push(diagnostic);
        return None;
    }
    let text = match (own.options.opt_text(&s::NAME), place) {
        (Some(text), _) => text,
        // Given, and already refused.
        (None, Some(_)) => return None,
        (None, None) => &stem,
    };
    let refused = match PipelineName::new(text) {
        Ok(name) => return Some(name),
        Err(expected) => Diagnostic::error("this is not a pipeline's name").expected(expected),
    };
    report.push(match place {
        Some(span) => refused.at(span),
        None => refused.help(format!("the name is taken from the file, `{stem}`: rename it, or add `name: ...`")),
    });
    None
}

/// Says of a key at the top of a file where it belongs.
fn belongs_inside(key: &str, registry: &Registry) -> Option<String> {
    if let Some(table) = s::SECTIONS.iter().find(|table| table.find(key).is_some()) {
        return Some(format!("`{key}` stands inside `{}:`", table.name));
    }
    if key == PRIMARY_KEY || s::SOURCE.find(key).is_some() {
        return Some(format!("`{key}` stands inside `source:`"));
    }
    let has = |role: Role| {
        registry.connectors.iter().any(|c| role.of(c).is_some_and(|tables| tables.options.find(key).is_some()))
    };
    let general = matches!(key, "connector" | "format" | "schema")
        || registry.formats.iter().any(|format| format.options.find(key).is_some());
    match (general || has(Role::Source), general || has(Role::Sink)) {
        (true, true) => Some(format!("`{key}` stands inside `source:` or `sink:`")),
        (true, false) => Some(format!("`{key}` stands inside `source:`")),
        (false, true) => Some(format!("`{key}` stands inside `sink:`")),
        (false, false) => None,
    }
}
