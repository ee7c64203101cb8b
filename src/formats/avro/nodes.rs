//! A schema of Avro as its JSON has it: what a writer wrote.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::formats::columnar::MOST_LEVELS;

/// Types in one schema.
const MOST_NODES: usize = 10_000;
/// Bytes of a name with its namespace, which types may have from those around them.
const LONGEST_NAME: usize = 1024;

/// A schema: its types, each known by its place; the first is the outermost. Named types may hold themselves.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    names: HashMap<String, usize>,
}

/// One type.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// What it is on the wire.
    pub(super) kind: Kind,
    /// What it means, where that is more.
    pub(super) logical: Option<Logical>,
    /// What it is called in a union of JSON, and in errors.
    pub(super) name: String,
}

/// What a type is on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Arc<[String]>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<(String, usize)>),
}

/// What a number or bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    /// The scale; the precision says nothing that a value does not.
    Decimal(i32),
    Date,
    /// Units in a second.
    Time(i64),
    /// Units in a second, whether local or not.
    Timestamp(i64),
}

impl Nodes {
    /// Reads a schema. The error says what is wrong with it.
    pub(super) fn parse(schema: &Value) -> Result<Self, String> {
        let mut nodes = Self::default();
        nodes.add(schema, "", 0)?;
        Ok(nodes)
    }

    /// A type; null if there is none of this number, which no type refers to.
    pub(super) fn get(&self, index: usize) -> &Node {
        const NONE: &Node = &Node { kind: Kind::Null, logical: None, name: String::new() };
        self.nodes.get(index).unwrap_or(NONE)
    }

    fn push(&mut self, node: Node) -> Result<usize, String> {
        if self.nodes.len() >= MOST_NODES {
            return Err(format!("the schema has more than {MOST_NODES} types"));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    fn add(&mut self, schema: &Value, namespace: &str, level: usize) -> Result<usize, String> {
        if level > MOST_LEVELS {
            return Err(format!("the schema is nested more than {MOST_LEVELS} levels deep"));
        }
        match schema {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => {
                let index = self.push(Node { name: "union".into(), ..Node::default() })?;
                let mut indices = Vec::new();
                for branch in branches {
                    if branch.is_array() {
                        return Err("the schema has a union in a union".into());
                    }
                    indices.push(self.add(branch, namespace, level + 1)?);
                }
                let mut seen = HashSet::new();
                if let Some(twice) = indices.iter().find(|branch| !seen.insert(**branch)) {
                    return Err(format!("the schema has a union with {} twice", self.get(*twice).name));
                }
                self.set(index, Kind::Union(indices));
                Ok(index)
            }
            Value::Object(object) => self.object(object, namespace, level),
            _ => Err("the schema has a type that is neither a name, a list nor an object".into()),
        }
    }

    fn set(&mut self, index: usize, kind: Kind) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.kind = kind;
        }
    }

    fn named(&mut self, name: &str, namespace: &str) -> Result<usize, String> {
        let kind = match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "int" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "bytes" => Kind::Bytes,
            "string" => Kind::String,
            _ => {
                let full = full_name(name, namespace);
                let found = self.names.get(&full).or_else(|| self.names.get(name)).copied();
                return found.ok_or_else(|| "the schema refers to a type that it does not have".to_owned());
            }
        };
        self.push(Node { kind, logical: None, name: name.to_owned() })
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str, level: usize) -> Result<usize, String> {
        let kind = match object.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            // `{"type": {"type": "int", ...}}` is written by some.
            Some(inner @ (Value::Object(_) | Value::Array(_))) => return self.add(inner, namespace, level + 1),
            _ => return Err("the schema has an object without a type".into()),
        };
        let part = |key: &str| object.get(key).ok_or_else(|| format!("the schema has {kind} without `{key}`"));
        match kind {
            "array" | "map" => {
                let index = self.push(Node { name: kind.to_owned(), ..Node::default() })?;
                let inner = part(if kind == "array" { "items" } else { "values" })?;
                let inner = self.add(inner, namespace, level + 1)?;
                self.set(index, if kind == "array" { Kind::Array(inner) } else { Kind::Map(inner) });
                Ok(index)
            }
            "record" | "error" | "fixed" | "enum" => {
                let name = part("name")?.as_str().ok_or("the schema has a name that is no text")?;
                let namespace = object.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
                let full = full_name(name, namespace);
                if full.len() > LONGEST_NAME {
                    return Err(format!("the schema has a name of more than {LONGEST_NAME} bytes"));
                }
                let namespace = full.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
                let index = self.push(Node { name: full.clone(), ..Node::default() })?;
                self.names.insert(full, index);
                let read = match kind {
                    "fixed" => Kind::Fixed(
                        part("size")?.as_u64().and_then(|size| usize::try_from(size).ok()).ok_or("a size is broken")?,
                    ),
                    "enum" => {
                        let symbols = part("symbols")?.as_array().ok_or("the schema has symbols that are no list")?;
                        Kind::Enum(symbols.iter().filter_map(|s| s.as_str().map(str::to_owned)).collect())
                    }
                    _ => self.record(part("fields")?, &namespace, level)?,
                };
                self.set(index, read);
                self.annotate(index, object);
                Ok(index)
            }
            _ => {
                let index = self.named(kind, namespace)?;
                // A reference to a type means no more than the type.
                if index + 1 == self.nodes.len() {
                    self.annotate(index, object);
                }
                Ok(index)
            }
        }
    }

    fn record(&mut self, fields: &Value, namespace: &str, level: usize) -> Result<Kind, String> {
        let fields = fields.as_array().ok_or("the schema has fields that are no list")?;
        let (mut read, mut names) = (Vec::new(), HashSet::new());
        for field in fields {
            let name = field.get("name").and_then(Value::as_str).ok_or("the schema has a field without a name")?;
            let ty = field.get("type").ok_or("the schema has a field without a type")?;
            if !names.insert(name) {
                return Err("the schema has two fields of one name".into());
            }
            read.push((name.to_owned(), self.add(ty, namespace, level + 1)?));
        }
        Ok(Kind::Record(read))
    }

    /// What is unknown, or does not go with its type, means nothing, as the specification has it.
    fn annotate(&mut self, index: usize, object: &Map<String, Value>) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        let name = object.get("logicalType").and_then(Value::as_str);
        node.logical = match (name, &node.kind) {
            (Some("decimal"), Kind::Bytes | Kind::Fixed(_)) => {
                let scale = object.get("scale").map_or(Some(0), Value::as_u64);
                scale.and_then(|scale| i32::try_from(scale).ok()).map(Logical::Decimal)
            }
            (Some("date"), Kind::Int) => Some(Logical::Date),
            (Some("time-millis"), Kind::Int) => Some(Logical::Time(1000)),
            (Some("time-micros"), Kind::Long) => Some(Logical::Time(1_000_000)),
            (Some("timestamp-millis" | "local-timestamp-millis"), Kind::Long) => Some(Logical::Timestamp(1000)),
            (Some("timestamp-micros" | "local-timestamp-micros"), Kind::Long) => Some(Logical::Timestamp(1_000_000)),
            (Some("timestamp-nanos" | "local-timestamp-nanos"), Kind::Long) => Some(Logical::Timestamp(1_000_000_000)),
            _ => None,
        };
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}
