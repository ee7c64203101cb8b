//! JSON within texts, as Calcite's functions have it. A path without `lax` before it is `strict`: what it does not find
//! is an error, which is null unless the query says otherwise.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

use super::{
    Function, Given,
    Param::Text,
    STRING, bools, function,
    json_path::{Mode, Path},
    pattern::Kept,
    texts,
};
use crate::{
    model::{ColumnType, LogicalType as T, number},
    query::{
        QueryError,
        call::{Each, Kernel, Row},
        cast,
        lower::{Planned, Term},
        types::Type,
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    function("JSON_VALUE", 7..=7, value),
    function("JSON_QUERY", 5..=5, query),
    function("JSON_EXISTS", 3..=3, exists),
    function("IS JSON", 2..=2, |given| is_json(given, true)),
    function("IS NOT JSON", 2..=2, |given| is_json(given, false)),
];

/// A document, its objects in the order that is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i128),
    /// An integer beyond 64 bits, as it is written.
    Large(String),
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Nodes;
        impl<'de> Visitor<'de> for Nodes {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E: Error>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Bool(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Integer(value.into()))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Integer(value.into()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Float(value))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Text(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Node::Array(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
                let mut all: Vec<(String, Node)> = Vec::new();
                while let Some((name, value)) = entries.next_entry::<String, Node>()? {
                    // The last one of a name wins, at the place of the first.
                    match all.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => *known = value,
                        None => all.push((name, value)),
                    }
                }
                Ok(Node::Object(all))
            }
        }
        from.deserialize_any(Nodes)
    }
}

impl Node {
    const fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// The text of a scalar.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.json(),
        }
    }

    /// Without blanks.
    fn json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Self::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Large(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::Float(value) => number::write_f64(*value, out),
            Self::Text(text) => write_text(text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(entries) => {
                out.push(b'{');
                for (at, (name, value)) in entries.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_text(name, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(&mut *out, text);
    debug_assert!(written.is_ok(), "a Vec takes everything");
}

fn read(text: &str) -> Result<Node, String> {
    const WRONG: &str = "the text is no JSON";
    let parsed = |text: &str| serde_json::from_str::<Node>(text).map_err(|_| WRONG.to_owned());
    match with_marks(text) {
        None => parsed(text),
        Some(marked) => unmarked(parsed(&marked)?).ok_or_else(|| WRONG.into()),
    }
}

/// Stands before the digits of a large integer while a document is parsed. It is no character.
const MARK: char = '\u{fdd0}';

/// A document whose integers beyond 64 bits, which the parser would round, are marked texts; `None` if it has none, or
/// has the mark itself.
fn with_marks(text: &str) -> Option<String> {
    let mut made = String::new();
    let (mut copied, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let of_number = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let end = at + bytes.get(at..)?.iter().take_while(of_number).count();
                let number = text.get(at..end)?;
                if is_large(number) {
                    made.push_str(text.get(copied..at)?);
                    made.extend(['"', MARK]);
                    made.push_str(number);
                    made.push('"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 || text.contains(MARK) || text.to_ascii_lowercase().contains("\\ufdd0") {
        return None;
    }
    made.push_str(text.get(copied..)?);
    Some(made)
}

/// An integer that neither i64 nor u64 holds.
fn is_large(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= 19
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

/// Large integers instead of marked texts; `None` if one is the name of an entry.
fn unmarked(node: Node) -> Option<Node> {
    Some(match node {
        Node::Text(text) => match text.strip_prefix(MARK) {
            Some(digits) => Node::Large(digits.into()),
            None => Node::Text(text),
        },
        Node::Array(items) => Node::Array(items.into_iter().map(unmarked).collect::<Option<_>>()?),
        Node::Object(entries) => {
            let entry =
                |(name, value): (String, Node)| (!name.starts_with(MARK)).then(|| Some((name, unmarked(value)?)));
            Node::Object(entries.into_iter().map(|one| entry(one).flatten()).collect::<Option<_>>()?)
        }
        other => other,
    })
}

/// A path that is known, or one for each row.
enum Paths {
    Constant(Path),
    OfRow(Kept<Path>),
}

impl Paths {
    fn of(given: &Given<'_>) -> Result<Self, QueryError> {
        match given.arg(1).and_then(|arg| Some((arg, arg.constant_text()?))) {
            Some((arg, text)) => Path::new(text).map(Self::Constant).map_err(|error| arg.error(error)),
            None => Ok(Self::OfRow(Kept::new(Path::new))),
        }
    }

    /// What the path finds in the document, or why it is an error, and the mode.
    fn find(&self, row: &Row<'_>) -> Result<(Mode, Result<Option<Node>, String>), String> {
        let found = |path: &Path| (path.mode, read(row.text(0)).and_then(|document| path.find(&document)));
        match self {
            Self::Constant(path) => Ok(found(path)),
            // A text that is no path finds nothing.
            Self::OfRow(kept) => {
                Ok(kept.of(row.text(1)).map_or_else(|error| (Mode::Strict, Err(error)), |path| found(&path)))
            }
        }
    }
}

/// One of the texts that the syntax makes.
fn word(given: &Given<'_>, index: usize) -> String {
    given.arg(index).and_then(Term::constant_text).unwrap_or_default().to_owned()
}

/// What is made of nothing, or of an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Null,
    Fail,
    /// An argument by its index
    Default(usize),
}

impl Behaviour {
    fn of(word: &str, default: usize) -> Self {
        match word {
            "ERROR" => Self::Fail,
            "DEFAULT" => Self::Default(default),
            _ => Self::Null,
        }
    }
}

fn value(given: Given<'_>) -> Planned {
    let paths = Paths::of(&given)?;
    let returning = word(&given, 2);
    let ty = ColumnType::parse(&returning).map(|ty| ty.logical);
    let ty = match ty {
        Ok(ty @ (T::VarChar(_) | T::Boolean | T::Int | T::Double)) => ty,
        _ => {
            let error = QueryError::new(given.at, format!("JSON_VALUE returns no {returning}"));
            return Err(error.expected("STRING, BOOLEAN, INT or DOUBLE"));
        }
    };
    let (empty, error) = (Behaviour::of(&word(&given, 3), 4), Behaviour::of(&word(&given, 5), 6));
    let Given { name, mut args, at } = given;
    for index in [4, 6] {
        let arg = args.remove(index);
        args.insert(index, cast::explicit(arg, &ty, false, at.clone())?);
    }
    let given = Given { name, args, at }.with_input()?;
    let find = move |row: &Row<'_>| -> Result<Result<Node, Behaviour>, String> {
        let (mode, found) = paths.find(row)?;
        let (behaviour, reason) = match found {
            Err(reason) => (error, reason),
            Ok(None | Some(Node::Null)) => (empty, "the path finds nothing".to_owned()),
            Ok(Some(node)) if node.is_scalar() => return Ok(Ok(node)),
            Ok(Some(_)) if mode == Mode::Lax => (empty, "the path finds no scalar".to_owned()),
            Ok(Some(_)) => (error, "the path finds no scalar".to_owned()),
        };
        if behaviour == Behaviour::Fail { Err(format!("JSON_VALUE: {reason}")) } else { Ok(Err(behaviour)) }
    };
    let kernel = as_type(&ty, find);
    Ok(Term::lenient("JSON_VALUE", given.args, Type::new(ty, true), given.at, kernel).may_fail())
}

/// A kernel that makes this type of what is found.
fn as_type(
    ty: &T,
    find: impl Fn(&Row<'_>) -> Result<Result<Node, Behaviour>, String> + Send + Sync + 'static,
) -> Kernel {
    match ty {
        T::Boolean => Kernel::Bool(made(
            find,
            |row, index| row.bool(index),
            |node| match node {
                Node::Bool(value) => Some(*value),
                _ => None,
            },
        )),
        T::Int => Kernel::Int(made(
            find,
            |row, index| row.int(index),
            |node| match node {
                Node::Integer(value) => i32::try_from(*value).ok(),
                _ => None,
            },
        )),
        T::Double => Kernel::Double(made(
            find,
            |row, index| row.double(index),
            |node| match node {
                Node::Float(value) => Some(*value),
                Node::Integer(value) => Some(*value as f64),
                Node::Large(digits) => digits.parse().ok(),
                _ => None,
            },
        )),
        _ => Kernel::Text(Arc::new(move |row| {
            if row.is_null(0) || row.is_null(1) {
                return Ok(None);
            }
            Ok(match find(row)? {
                Ok(node) => Some(Cow::Owned(node.text())),
                Err(Behaviour::Default(index)) if !row.is_null(index) => Some(row.text(index).into()),
                Err(_) => None,
            })
        })),
    }
}

/// A kernel of a type that is not a text.
fn made<V: 'static>(
    find: impl Fn(&Row<'_>) -> Result<Result<Node, Behaviour>, String> + Send + Sync + 'static,
    default: fn(&Row<'_>, usize) -> V,
    read: fn(&Node) -> Option<V>,
) -> Each<V> {
    Arc::new(move |row| {
        if row.is_null(0) || row.is_null(1) {
            return Ok(None);
        }
        match find(row)? {
            Ok(node) => read(&node)
                .map(Some)
                .ok_or_else(|| "JSON_VALUE: the value is of another type than RETURNING says".into()),
            Err(Behaviour::Default(index)) if !row.is_null(index) => Ok(Some(default(row, index))),
            Err(_) => Ok(None),
        }
    })
}

impl Given<'_> {
    /// The same with a text and a path before what the syntax makes.
    fn with_input(self) -> Result<Self, QueryError> {
        let Given { name, args, at } = self;
        let fitted = args
            .into_iter()
            .enumerate()
            .map(|(index, arg)| if index < 2 { super::fit(arg, Text, name) } else { Ok(arg) });
        Ok(Given { args: fitted.collect::<Result<Vec<_>, _>>()?, name, at })
    }
}

fn query(given: Given<'_>) -> Planned {
    let given = given.with_input()?;
    let paths = Paths::of(&given)?;
    let (wrapper, empty, error) = (word(&given, 2), word(&given, 3), word(&given, 4));
    let kernel = texts(move |row| {
        let (mode, found) = paths.find(row)?;
        let behave = |word: &str, reason: &str| match word {
            "[]" | "{}" => Ok(Some(Cow::Owned(word.to_owned()))),
            "ERROR" => Err(format!("JSON_QUERY: {reason}")),
            _ => Ok(None),
        };
        let node = match found {
            Err(reason) => return behave(&error, &reason),
            Ok(None | Some(Node::Null)) => return behave(&empty, "the path finds nothing"),
            Ok(Some(node)) => node,
        };
        let node = match (&*wrapper, node) {
            ("CONDITIONAL", Node::Array(items)) => Node::Array(items),
            ("CONDITIONAL" | "UNCONDITIONAL", node) => Node::Array(vec![node]),
            (_, node) => node,
        };
        match (node.is_scalar(), mode) {
            (false, _) => Ok(Some(Cow::Owned(node.json()))),
            (true, Mode::Lax) => behave(&empty, "the path finds a scalar"),
            (true, Mode::Strict) => behave(&error, "the path finds a scalar"),
        }
    });
    Ok(given.strict_nullable(STRING, kernel).may_fail())
}

fn exists(given: Given<'_>) -> Planned {
    let given = given.with_input()?;
    let paths = Paths::of(&given)?;
    let error = word(&given, 2);
    let kernel = bools(move |row| match paths.find(row)?.1 {
        Ok(found) => Ok(Some(!matches!(found, None | Some(Node::Null)))),
        Err(reason) => match &*error {
            "TRUE" => Ok(Some(true)),
            "UNKNOWN" => Ok(None),
            "ERROR" => Err(format!("JSON_EXISTS: {reason}")),
            _ => Ok(Some(false)),
        },
    });
    Ok(given.strict_nullable(T::Boolean, kernel).may_fail())
}

fn is_json(given: Given<'_>, wanted: bool) -> Planned {
    let given = given.with(&[Text])?;
    let kind = word(&given, 1);
    let kernel = bools(move |row| {
        let fits = |node: &Node| match &*kind {
            "OBJECT" => matches!(node, Node::Object(_)),
            "ARRAY" => matches!(node, Node::Array(_)),
            "SCALAR" => node.is_scalar(),
            _ => true,
        };
        let is = !row.is_null(0) && read(row.text(0)).is_ok_and(|node| fits(&node));
        Ok(Some(is == wanted))
    });
    Ok(Term::lenient("IS JSON", given.args, Type::new(T::Boolean, false), given.at, kernel))
}
