//! Single values: the text of a JSON value becomes a value of a column.

use std::{borrow::Cow, collections::HashMap};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::de::{DeserializeSeed, Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    failure::Failure,
    number::{self, Decimal},
    plan::{Kind, Node, RowPlan},
    text,
    time::{self, Standard},
};
use crate::model::{ColumnBuilder, Scalar};

/// Base64 as Jackson reads it: padding is mandatory, bits after the last byte are not looked at.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// How many keys of one map are compared one by one before they are hashed.
const FEW_KEYS: usize = 16;

/// How errors are treated and times are spelt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) fail_on_missing: bool,
    pub(super) ignore_errors: bool,
    pub(super) standard: Standard,
}

/// What goes through the reading of one body.
pub(super) struct Context<'s> {
    pub(super) settings: Settings,
    /// Fields made null so far.
    pub(super) nulled: u32,
    pub(super) scratch: &'s mut Scratch,
}

/// Buffers that are kept from body to body.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    text: String,
    bytes: Vec<u8>,
}

/// Reads one object, which `de` is about to read, into one new value of each column of the plan.
pub(super) fn read_object<'a, R: serde_json::de::Read<'a>>(
    de: &mut serde_json::Deserializer<R>,
    plan: &'a RowPlan,
    columns: &mut [ColumnBuilder],
    base: usize,
    context: &mut Context<'_>,
) -> Result<(), Failure<'a>> {
    let mut failure = None;
    let visitor = ObjectVisitor { plan, columns, base, context, failure: &mut failure };
    match (de.deserialize_map(visitor), failure) {
        (_, Some(failure)) => Err(failure),
        (Err(error), None) => Err(Failure::syntax(error)),
        (Ok(()), None) => Ok(()),
    }
}

/// Fills one slot of a column, which may be with null.
fn slot<'a>(
    node: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'_>,
) -> Result<(), Failure<'a>> {
    if raw == "null" {
        return null(node, column);
    }
    let before = column.len();
    match value(node, raw, column, context) {
        Err(failure) if context.settings.ignore_errors && node.nullable && failure.can_be_ignored() => {
            column.truncate(before);
            column.append_null();
            context.nulled += 1;
            Ok(())
        }
        result => result,
    }
}

fn null<'a>(node: &Node, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
    if !node.nullable {
        return Err(Failure::null());
    }
    column.append_null();
    Ok(())
}

/// Appends a value that is not null. On failure the parts of a nested value may be left.
#[inline]
fn value<'a>(
    node: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'_>,
) -> Result<(), Failure<'a>> {
    let mismatch = || Failure::mismatch(node, raw);
    let first = raw.as_bytes().first().copied().unwrap_or(b' ');
    match (&node.kind, first) {
        (Kind::Text, b'{' | b'[') => {
            let compact = &mut context.scratch.bytes;
            compact.clear();
            text::compact(raw, compact);
            let compact = std::str::from_utf8(compact).map_err(|_| mismatch())?;
            return Ok(column.append(Scalar::Text(compact))?);
        }
        (Kind::Array(element), b'[') => return array(element, raw, column, context),
        (Kind::Map(element), b'{') => return map(node, element, raw, column, context),
        (Kind::Row(plan), b'{') => return row(node, plan, raw, column, context),
        (_, b'{' | b'[') => return Err(mismatch()),
        _ => {}
    }
    let literal = first == b'"';
    let content = if literal { text::unquote(raw, &mut context.scratch.text) } else { raw };
    let scalar = match &node.kind {
        Kind::Text => Some(Scalar::Text(content)),
        Kind::Bytes if literal => bytes(content, &mut context.scratch.bytes).map(Scalar::Bytes),
        Kind::Date if literal => time::parse_date(content.as_bytes()).map(Scalar::Int32),
        Kind::Time if literal => time::parse_time(content.as_bytes()).map(Scalar::Int32),
        Kind::Timestamp { zoned, unit } if literal => {
            time::parse_timestamp(content.as_bytes(), context.settings.standard, *zoned, *unit).map(Scalar::Int64)
        }
        Kind::Decimal { precision, scale } => match number::decimal(content, *precision, *scale) {
            Decimal::Value(value) => Some(Scalar::Int128(value)),
            Decimal::Invalid => None,
            Decimal::TooLarge => {
                // Flink makes it null without an error; here it is counted at least.
                context.nulled += 1;
                return null(node, column);
            }
        },
        kind => plain_number(kind, content, literal),
    };
    Ok(column.append(scalar.ok_or_else(mismatch)?)?)
}

/// Booleans and binary numbers.
fn plain_number(kind: &Kind, content: &str, literal: bool) -> Option<Scalar<'static>> {
    match kind {
        Kind::Boolean => Some(Scalar::Boolean(number::trim(content).eq_ignore_ascii_case("true"))),
        Kind::TinyInt => number::trim(content).parse().ok().map(Scalar::Int8),
        Kind::SmallInt => number::trim(content).parse().ok().map(Scalar::Int16),
        Kind::Int if literal => number::trim(content).parse().ok().map(Scalar::Int32),
        Kind::Int => number::truncated_int(content).map(Scalar::Int32),
        Kind::BigInt if literal => number::trim(content).parse().ok().map(Scalar::Int64),
        Kind::BigInt => number::truncated(content).map(Scalar::Int64),
        Kind::Float if literal => number::java_float(content)?.parse().ok().map(Scalar::Float32),
        Kind::Float => content.parse().ok().map(Scalar::Float32),
        Kind::Double if literal => number::java_float(content)?.parse().ok().map(Scalar::Float64),
        Kind::Double => content.parse().ok().map(Scalar::Float64),
        _ => None,
    }
}

/// Base64; blanks in it are skipped, as Jackson does.
fn bytes<'b>(content: &str, out: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    out.clear();
    if BASE64.decode_vec(content, out).is_err() {
        let dense: String = content.chars().filter(|character| *character > ' ').collect();
        out.clear();
        (dense.len() < content.len()).then_some(())?;
        BASE64.decode_vec(&dense, out).ok()?;
    }
    Some(out)
}

fn array<'a>(
    element: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'_>,
) -> Result<(), Failure<'a>> {
    let mut failure = None;
    if let Some(items) = column.items_mut() {
        let visitor = ArrayVisitor { element, items, context, failure: &mut failure };
        let result = serde_json::Deserializer::from_str(raw).deserialize_seq(visitor);
        if let Some(failure) = failure {
            return Err(failure);
        }
        result.map_err(Failure::syntax)?;
    }
    Ok(column.close()?)
}

fn map<'a>(
    node: &'a Node,
    element: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'_>,
) -> Result<(), Failure<'a>> {
    let entries = serde_json::Deserializer::from_str(raw).deserialize_map(EntriesVisitor);
    // It has been read once already, so only half a surrogate pair in a key can be wrong with it.
    let entries = last_of_each(entries.map_err(|_| Failure::mismatch(node, raw))?);
    if let Some((keys, values)) = column.entries_mut() {
        for (key, raw) in entries {
            keys.append(Scalar::Text(&key))?;
            slot(element, raw, values, context).map_err(|failure| failure.at_key(&key))?;
        }
    }
    Ok(column.close()?)
}

fn row<'a>(
    node: &'a Node,
    plan: &'a RowPlan,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'_>,
) -> Result<(), Failure<'a>> {
    let base = column.len();
    if let Some(fields) = column.fields_mut() {
        let mut de = serde_json::Deserializer::from_str(raw);
        // As for a map.
        read_object(&mut de, plan, fields, base, context)
            .map_err(|failure| if failure.is_syntax() { Failure::mismatch(node, raw) } else { failure })?;
    }
    Ok(column.close()?)
}

/// A key, borrowed where nothing in it is escaped, and the text of its value.
type Entry<'a> = (Cow<'a, str>, &'a str);

/// Entries in the order of their first appearance, each with the value of its last.
fn last_of_each(mut entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    if entries.len() <= FEW_KEYS {
        let mut at = 1;
        while at < entries.len() {
            let (earlier, rest) = entries.split_at_mut(at);
            let repeated = rest.first().and_then(|(key, value)| {
                earlier.iter_mut().find(|(other, _)| other == key).map(|entry| entry.1 = value)
            });
            match repeated {
                Some(()) => drop(entries.remove(at)),
                None => at += 1,
            }
        }
        return entries;
    }
    let mut places: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(entries.len());
    let mut kept: Vec<Entry<'_>> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match places.get(&key).and_then(|place| kept.get_mut(*place)) {
            Some(entry) => entry.1 = value,
            None => {
                places.insert(key.clone(), kept.len());
                kept.push((key, value));
            }
        }
    }
    kept
}

struct ObjectVisitor<'a, 'c, 's> {
    plan: &'a RowPlan,
    columns: &'c mut [ColumnBuilder],
    /// Length of every column before.
    base: usize,
    context: &'c mut Context<'s>,
    failure: &'c mut Option<Failure<'a>>,
}

impl<'a> ObjectVisitor<'a, '_, '_> {
    fn field(&mut self, index: usize, raw: &'a str) -> Result<(), Failure<'a>> {
        let Some(field) = self.plan.fields.get(index) else { return Ok(()) };
        let Some(column) = self.columns.get_mut(field.column) else { return Ok(()) };
        if column.len() > self.base {
            // The last of several fields of one name wins.
            column.truncate(self.base);
        }
        slot(&field.node, raw, column, self.context).map_err(|failure| failure.in_field(&field.name))
    }

    fn missing(&mut self) -> Result<(), Failure<'a>> {
        for field in &self.plan.fields {
            let Some(column) = self.columns.get_mut(field.column) else { continue };
            if column.len() > self.base {
                continue;
            }
            let result = match self.context.settings.fail_on_missing {
                true => Err(Failure::missing()),
                false => null(&field.node, column),
            };
            result.map_err(|failure| failure.in_field(&field.name))?;
        }
        Ok(())
    }
}

impl<'a> Visitor<'a> for ObjectVisitor<'a, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut likely = 0;
        while let Some(found) = map.next_key_seed(FieldSeed { plan: self.plan, likely })? {
            let Some(index) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            likely = index + 1;
            let raw: &'a RawValue = map.next_value()?;
            if let Err(failure) = self.field(index, raw.get()) {
                *self.failure = Some(failure);
                return Err(A::Error::custom("a field was refused"));
            }
        }
        if let Err(failure) = self.missing() {
            *self.failure = Some(failure);
            return Err(A::Error::custom("a field is missing"));
        }
        Ok(())
    }
}

/// Reads a field name; answers which field of the plan it is.
struct FieldSeed<'p> {
    plan: &'p RowPlan,
    likely: usize,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.plan.find(name, self.likely))
    }
}

struct ArrayVisitor<'a, 'c, 's> {
    element: &'a Node,
    items: &'c mut ColumnBuilder,
    context: &'c mut Context<'s>,
    failure: &'c mut Option<Failure<'a>>,
}

impl<'a> Visitor<'a> for ArrayVisitor<'a, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(raw) = seq.next_element::<&'a RawValue>()? {
            if let Err(failure) = slot(self.element, raw.get(), self.items, self.context) {
                *self.failure = Some(failure.at_index(index));
                return Err(A::Error::custom("an element was refused"));
            }
            index += 1;
        }
        Ok(())
    }
}

/// Reads an object's entries without looking into the values.
struct EntriesVisitor;

impl<'a> Visitor<'a> for EntriesVisitor {
    type Value = Vec<Entry<'a>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(KeyVisitor)? {
            let raw: &'a RawValue = map.next_value()?;
            entries.push((key, raw.get()));
        }
        Ok(entries)
    }
}

/// Reads a key without copying it, which `Cow` by itself would not.
struct KeyVisitor;

impl<'a> DeserializeSeed<'a> for KeyVisitor {
    type Value = Cow<'a, str>;

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for KeyVisitor {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'a str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
