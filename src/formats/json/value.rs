//! Single values: the text of a scalar becomes a value of a column.

use super::{
    base64,
    failure::Failure,
    number::{self, Decimal},
    plan::{Kind, Node},
    time::{self, Standard},
};
use crate::model::{ColumnBuilder, Scalar};

/// How errors are treated and times are spelt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) fail_on_missing: bool,
    pub(super) ignore_errors: bool,
    pub(super) standard: Standard,
}

/// What goes through the reading of one body.
pub(super) struct Context<'a, 's> {
    pub(super) settings: Settings,
    /// Fields made null so far.
    pub(super) nulled: u32,
    /// Why the row is refused, while serde carries nothing but the fact upwards.
    pub(super) failure: Option<Failure<'a>>,
    pub(super) scratch: &'s mut Scratch,
}

/// Buffers that are kept from body to body.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) text: String,
    pub(super) bytes: Vec<u8>,
}

/// A scalar as it stands in the body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token<'t> {
    /// What a string literal stands for.
    Literal(&'t str),
    /// The text of a number, `true`, `false` or `null`.
    Bare(&'t str),
}

/// Fills one slot of a column from a scalar, which may be with null. `found` begins with its text.
#[inline]
pub(super) fn scalar_slot<'a>(
    node: &'a Node,
    token: Token<'_>,
    found: &'a str,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    if matches!(token, Token::Bare("null")) {
        return null(node, column);
    }
    match append(node, token, column, context) {
        Ok(true) => Ok(()),
        // A scalar leaves nothing behind when it is refused.
        Ok(false) => refuse(node, Failure::mismatch(node, found), column, context),
        Err(failure) => refuse(node, failure, column, context),
    }
}

/// Null in the place of what was refused, if errors are ignored and the column may be null.
pub(super) fn refuse<'a>(
    node: &Node,
    failure: Failure<'a>,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<(), Failure<'a>> {
    if !(context.settings.ignore_errors && node.nullable && failure.can_be_ignored()) {
        return Err(failure);
    }
    column.append_null();
    context.nulled += 1;
    Ok(())
}

/// Appends null, if the column may be null.
pub(super) fn null<'a>(node: &Node, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
    if !node.nullable {
        return Err(Failure::null());
    }
    column.append_null();
    Ok(())
}

/// Appends a scalar that is not null. `false`: it is not of the type.
fn append<'a>(
    node: &'a Node,
    token: Token<'_>,
    column: &mut ColumnBuilder,
    context: &mut Context<'a, '_>,
) -> Result<bool, Failure<'a>> {
    let (Token::Literal(content) | Token::Bare(content)) = token;
    let literal = matches!(token, Token::Literal(_));
    let scalar = match &node.kind {
        Kind::Text => Some(Scalar::Text(content)),
        Kind::Bytes if literal => base64::decode(content, &mut context.scratch.bytes).map(Scalar::Bytes),
        Kind::Date if literal => time::parse_date(content.as_bytes()).map(Scalar::Int32),
        Kind::Time if literal => time::parse_time(content.as_bytes()).map(Scalar::Int32),
        Kind::Timestamp { zoned, unit } if literal => {
            time::parse_timestamp(content.as_bytes(), context.settings.standard, *zoned, *unit).map(Scalar::Int64)
        }
        // Only a string can have blanks around the number.
        Kind::Decimal { precision, scale } => match number::decimal(number::trim(content), *precision, *scale) {
            Decimal::Value(value) => Some(Scalar::Int128(value)),
            Decimal::Invalid => None,
            Decimal::TooLarge => {
                // Flink makes it null without an error; here it is counted at least.
                null(node, column)?;
                context.nulled += 1;
                return Ok(true);
            }
        },
        kind => plain(kind, content, literal),
    };
    match scalar {
        Some(scalar) => Ok(column.append(scalar).map(|()| true)?),
        None => Ok(false),
    }
}

/// Booleans and binary numbers.
fn plain(kind: &Kind, content: &str, literal: bool) -> Option<Scalar<'static>> {
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
