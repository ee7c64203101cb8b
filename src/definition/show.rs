//! A definition as YAML again, with every default filled in and every secret masked; and its digest.

use std::fmt;

use serde_yaml::{Mapping, Value};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    Endpoint, OnError, Options, PipelineDefinition, endpoint::DEAD_LETTER, primary_key::PRIMARY_KEY, query::QUERY,
    show_duration,
};
use crate::model::Column;

/// Stands for all that a definition means, secrets included: two that differ in it have different digests. It is kept
/// in memory and never shown, for a short secret could be guessed from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    /// The digest of a text that says all there is to say.
    pub fn of(text: &str) -> Self {
        Self(xxh3_128(text.as_bytes()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

/// The options of a connector or format as texts, secrets masked or not.
pub(super) type Texts = fn(&Options) -> Vec<(&'static str, String)>;

impl PipelineDefinition {
    /// The definition as YAML: what it means once defaults are filled in and variables put in. Secrets read `***`.
    pub fn to_yaml(&self) -> String {
        self.written(|options| options.shown().collect())
    }

    /// Changes with what the definition means: not with its comments or the order of its keys, but with a variable or
    /// secret it refers to.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.written(Options::plain))
    }

    fn written(&self, texts: Texts) -> String {
        let restart = &self.restart;
        let backoff = format!("{}..{}", show_duration(restart.backoff_min), show_duration(restart.backoff_max));
        let whole = mapping([
            ("name", text(self.name.as_str())),
            ("source", endpoint(&self.source, texts)),
            (QUERY, self.query.as_ref().map_or(Value::Null, |query| text(query.text().trim()))),
            ("sink", endpoint(&self.sink, texts)),
            (
                "checkpoint",
                mapping([
                    ("interval", text(&show_duration(self.checkpoint.interval))),
                    ("timeout", text(&show_duration(self.checkpoint.timeout))),
                    ("max_unacknowledged", self.checkpoint.max_unacknowledged.into()),
                ]),
            ),
            (
                "restart",
                mapping([
                    ("max", restart.max.into()),
                    ("within", text(&show_duration(restart.within))),
                    ("backoff", text(&backoff)),
                ]),
            ),
            ("batch", mapping([("rows", self.batch_rows.into())])),
            ("credits", mapping([("batches", self.credits.batches.into()), ("bytes", self.credits.bytes.into())])),
            (
                "on_error",
                text(match self.on_error {
                    OnError::Fail => "fail",
                    OnError::Skip => "skip",
                    OnError::DeadLetter => "dead_letter",
                }),
            ),
        ]);
        let letters = self.dead_letter.as_ref().map(|letters| mapping([(DEAD_LETTER, endpoint(letters, texts))]));
        let whole =
            [Some(whole), letters].into_iter().flatten().filter_map(|part| part.as_mapping().cloned()).flatten();
        let whole: Value = whole.filter(|(_, value)| !value.is_null()).collect::<Mapping>().into();
        // Writing a tree of texts and numbers to memory has no way to fail.
        serde_yaml::to_string(&whole).unwrap_or_else(|error| format!("# {error}\n"))
    }
}

fn text(text: &str) -> Value {
    // A literal dollar sign would otherwise be read as the beginning of a reference.
    Value::String(text.replace('$', "$$"))
}

fn mapping<const N: usize>(entries: [(&str, Value); N]) -> Value {
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect::<Mapping>().into()
}

fn endpoint(end: &Endpoint, texts: Texts) -> Value {
    let mut all = Mapping::new();
    all.insert("connector".into(), end.connector.into());
    all.extend(texts(&end.general).into_iter().map(|(name, value)| (name.into(), text(&value))));
    all.extend(texts(&end.options).into_iter().map(|(name, value)| (name.into(), text(&value))));
    all.extend(end.column_options.texts(texts).map(|(name, value)| (name.into(), text(&value))));
    if let Some(format) = &end.format {
        all.insert("format".into(), format.name.into());
        all.extend(texts(&format.options).into_iter().map(|(name, value)| (name.into(), text(&value))));
    }
    // The columns of dead letters are fixed.
    if end.own_schema {
        let columns = end.schema.columns.iter().map(|column| (column.name.as_str().into(), text(&declared(column))));
        all.insert("schema".into(), columns.collect::<Mapping>().into());
    }
    if !end.primary_key.is_empty() {
        all.insert(PRIMARY_KEY.into(), end.primary_key.iter().map(|name| text(name)).collect::<Vec<_>>().into());
    }
    all.into()
}

fn declared(column: &Column) -> String {
    let from = match &column.metadata {
        None => String::new(),
        Some(key) if *key == column.name => " METADATA".to_owned(),
        Some(key) => format!(" METADATA FROM '{}'", key.replace('\'', "''")),
    };
    format!("{}{from}{}", column.ty, if column.is_virtual { " VIRTUAL" } else { "" })
}
