//! Objects: the fields of a row go straight to their columns.
//!
//! serde tells a value's kind only by reading it as some kind, and there is no way back. So the first byte of each
//! value is looked up in the document itself, where the key before it has been borrowed from; then the value is
//! read as what it is. Where that is not possible (a key with escapes) or not wanted (when a failure inside a value
//! must leave the rest readable) the value's text is taken first, and read in a second pass.

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    failure::{Failure, position},
    nested::{ArrayVisitor, EntriesVisitor, fill_map, slot},
    plan::{FieldPlan, Kind, Node, RowPlan},
    value::{Context, Token, null, scalar_slot},
};
use crate::model::ColumnBuilder;

/// Reads the object that `de` is about to read into one new value of each column of the plan, all of which have
/// `base` values. `document` is what `de` reads from; with an empty one, every value is read in two passes.
pub(super) fn read_object<'a>(
    document: &'a str,
    plan: &'a RowPlan,
    columns: &mut [ColumnBuilder],
    base: usize,
    context: &mut Context<'a, '_>,
    de: &mut serde_json::Deserializer<serde_json::de::StrRead<'a>>,
) -> Result<(), Failure<'a>> {
    let result = de.deserialize_map(ObjectVisitor { document, plan, columns, base, context });
    match context.failure.take() {
        Some(failure) => Err(failure),
        None => result.map_err(Failure::syntax),
    }
}

struct ObjectVisitor<'a, 'c, 's> {
    document: &'a str,
    plan: &'a RowPlan,
    columns: &'c mut [ColumnBuilder],
    /// Length of every column before.
    base: usize,
    context: &'c mut Context<'a, 's>,
}

impl<'a> ObjectVisitor<'a, '_, '_> {
    /// Reads the value of a field. `rest` is the document from that value on, empty if it is not known.
    fn field<A: MapAccess<'a>>(&mut self, field: &'a FieldPlan, rest: &'a str, map: &mut A) -> Result<(), A::Error> {
        let Some(column) = self.columns.get_mut(field.column) else { return Ok(()) };
        if column.len() > self.base {
            // The last of several fields of one name wins.
            column.truncate(self.base);
        }
        let (node, context) = (&field.node, &mut *self.context);
        let result = match (rest.as_bytes().first(), &node.kind) {
            (Some(b'"'), _) => map.next_value_seed(LiteralSeed { node, rest, column, context })?,
            (Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n'), _) => {
                map.next_value::<IgnoredAny>()?;
                let text = bare(rest);
                scalar_slot(node, Token::Bare(text), text, column, context)
            }
            (Some(b'{'), Kind::Row(_) | Kind::Map(_)) | (Some(b'['), Kind::Array(_))
                if !context.settings.ignore_errors =>
            {
                map.next_value_seed(NestedSeed { document: self.document, node, column, context })
                    .inspect_err(|_| self.context.failure_in(&field.name))?
            }
            _ => slot(node, map.next_value::<&'a RawValue>()?.get(), column, context),
        };
        result.or_else(|failure| self.context.fail(failure.in_field(&field.name)))
    }

    fn missing<E: serde::de::Error>(&mut self) -> Result<(), E> {
        for field in &self.plan.fields {
            let Some(column) = self.columns.get_mut(field.column) else { continue };
            if column.len() > self.base {
                continue;
            }
            let result = match self.context.settings.fail_on_missing {
                true => Err(Failure::missing()),
                false => null(&field.node, column),
            };
            result.or_else(|failure| self.context.fail(failure.in_field(&field.name)))?;
        }
        Ok(())
    }
}

impl<'a> Context<'a, '_> {
    /// Keeps the failure; serde gets an error that only says that there is one.
    pub(super) fn fail<T, E: serde::de::Error>(&mut self, failure: Failure<'a>) -> Result<T, E> {
        self.failure = Some(failure);
        Err(E::custom("refused"))
    }

    fn failure_in(&mut self, name: &'a str) {
        self.failure = self.failure.take().map(|failure| failure.in_field(name));
    }
}

impl<'a> Visitor<'a> for ObjectVisitor<'a, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut behind = None;
        while let Some(found) = map.next_key_seed(FieldSeed { document: self.document, plan: self.plan, behind })? {
            match found.and_then(|(index, rest)| Some((index, self.plan.fields.get(index)?, rest))) {
                Some((index, field, rest)) => {
                    behind = Some(index);
                    self.field(field, rest, &mut map)?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        self.missing()
    }
}

/// Reads a field name; answers which field of the plan it is, and the document from its value on.
struct FieldSeed<'a> {
    document: &'a str,
    plan: &'a RowPlan,
    /// The field before it.
    behind: Option<usize>,
}

impl<'a> DeserializeSeed<'a> for FieldSeed<'a> {
    type Value = Option<(usize, &'a str)>;

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for FieldSeed<'a> {
    type Value = Option<(usize, &'a str)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a field name")
    }

    #[inline]
    fn visit_borrowed_str<E>(self, name: &'a str) -> Result<Self::Value, E> {
        let index = self.plan.find(name, self.behind);
        Ok(index.map(|index| (index, value_after(self.document, name).unwrap_or(""))))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.plan.find(name, self.behind).map(|index| (index, "")))
    }
}

/// The document from the value of a key on. The key is a part of the document.
fn value_after<'a>(document: &'a str, key: &str) -> Option<&'a str> {
    let quote = position(document, key)? + key.len();
    let colon = skip_blanks(document, quote + 1);
    (document.as_bytes().get(colon) == Some(&b':')).then_some(())?;
    document.get(skip_blanks(document, colon + 1)..)
}

/// Where the blanks that begin at a byte end.
fn skip_blanks(document: &str, mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = document.as_bytes().get(at) {
        at += 1;
    }
    at
}

/// The number or word at the beginning of a text, which is known to be valid there.
fn bare(text: &str) -> &str {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let end = text.as_bytes().iter().position(|byte| !token(byte)).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

/// Reads a string literal into a slot.
struct LiteralSeed<'a, 'c, 's> {
    node: &'a Node,
    /// The document from the literal on.
    rest: &'a str,
    column: &'c mut ColumnBuilder,
    context: &'c mut Context<'a, 's>,
}

impl<'a> DeserializeSeed<'a> for LiteralSeed<'a, '_, '_> {
    type Value = Result<(), Failure<'a>>;

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for LiteralSeed<'a, '_, '_> {
    type Value = Result<(), Failure<'a>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(scalar_slot(self.node, Token::Literal(text), self.rest, self.column, self.context))
    }
}

/// Reads an array or object into a slot of its type.
struct NestedSeed<'a, 'c, 's> {
    document: &'a str,
    node: &'a Node,
    column: &'c mut ColumnBuilder,
    context: &'c mut Context<'a, 's>,
}

impl<'a> DeserializeSeed<'a> for NestedSeed<'a, '_, '_> {
    type Value = Result<(), Failure<'a>>;

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let Self { document, node, column, context } = self;
        match &node.kind {
            Kind::Row(plan) => {
                let base = column.len();
                if let Some(columns) = column.fields_mut() {
                    deserializer.deserialize_map(ObjectVisitor { document, plan, columns, base, context })?;
                }
            }
            Kind::Array(element) => {
                if let Some(items) = column.items_mut() {
                    deserializer.deserialize_seq(ArrayVisitor { element, items, context })?;
                }
            }
            Kind::Map(element) => {
                let entries = deserializer.deserialize_map(EntriesVisitor)?;
                return Ok(fill_map(element, entries, column, context));
            }
            _ => {}
        }
        Ok(column.close().map_err(Failure::from))
    }
}
