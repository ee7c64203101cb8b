//! Arrays, maps and rows inside a row.

use std::{borrow::Cow, collections::HashMap, mem};

use serde::de::{DeserializeSeed, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    failure::Failure,
    object::read_object,
    plan::{Kind, Node, RowPlan},
    text,
    value::{Context, Token, refuse, scalar_slot},
};
use crate::model::{ColumnBuilder, Scalar};

/// How many keys of one map are compared one by one before they are hashed.
const FEW_KEYS: usize = 16;

/// Fills one slot of a column from the text of any JSON value.
pub(super) fn slot<'a>(
    node: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    match raw.as_bytes().first() {
        Some(b'"') => {
            let mut scratch = mem::take(&mut context.scratch.text);
            let result = scalar_slot(node, Token::Literal(text::unquote(raw, &mut scratch)), raw, column, context);
            context.scratch.text = scratch;
            return result;
        }
        Some(b'{' | b'[') => {}
        _ => return scalar_slot(node, Token::Bare(raw), raw, column, context),
    }
    let before = column.len();
    nested(node, raw, column, context).or_else(|failure| {
        column.truncate(before);
        refuse(node, failure, column, context)
    })
}

/// Appends an array or object. On failure some of its parts may be left.
fn nested<'a>(
    node: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    match (&node.kind, raw.as_bytes().first()) {
        (Kind::Text, _) => compact(node, raw, column, context),
        (Kind::Array(element), Some(b'[')) => array(element, raw, column, context),
        (Kind::Map(element), Some(b'{')) => map(node, element, raw, column, context),
        (Kind::Row(plan), Some(b'{')) => row(node, plan, raw, column, context),
        _ => Err(Failure::mismatch(node, raw)),
    }
}

fn compact<'a>(
    node: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    let compact = &mut context.scratch.bytes;
    compact.clear();
    text::compact(raw, compact);
    let compact = std::str::from_utf8(compact).map_err(|_| Failure::mismatch(node, raw))?;
    Ok(column.append(Scalar::Text(compact))?)
}

fn array<'a>(
    element: &'a Node,
    raw: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    if let Some(items) = column.items_mut() {
        let visitor = ArrayVisitor { element, items, context };
        let result = serde_json::Deserializer::from_str(raw).deserialize_seq(visitor);
        if let Some(failure) = context.failure.take() {
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
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    let entries = serde_json::Deserializer::from_str(raw).deserialize_map(EntriesVisitor);
    // It has been read once already, so only half a surrogate pair in a key can be wrong with it.
    let entries = entries.map_err(|_| Failure::mismatch(node, raw))?;
    fill_map(element, entries, column, context)
}

pub(super) fn fill_map<'a>(
    element: &'a Node,
    entries: Vec<Entry<'a>>,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    if let Some((keys, values)) = column.entries_mut() {
        for (key, raw) in last_of_each(entries) {
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
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    let base = column.len();
    if let Some(fields) = column.fields_mut() {
        // As for a map.
        read_object(raw, plan, fields, base, context, &mut serde_json::Deserializer::from_str(raw))
            .map_err(|failure| if failure.is_syntax() { Failure::mismatch(node, raw) } else { failure })?;
    }
    Ok(column.close()?)
}

/// A key, borrowed where nothing in it is escaped, and the text of its value.
pub(super) type Entry<'a> = (Cow<'a, str>, &'a str);

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

/// Appends the elements of an array.
pub(super) struct ArrayVisitor<'a, 'c, 's> {
    pub(super) element: &'a Node,
    pub(super) items: &'c mut ColumnBuilder,
    pub(super) context: &'c mut Context<'a, 's>,
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
                return self.context.fail(failure.at_index(index));
            }
            index += 1;
        }
        Ok(())
    }
}

/// Reads an object's entries without looking into the values.
pub(super) struct EntriesVisitor;

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
