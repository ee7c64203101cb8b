//! From the text of a field to the value of a column.

use super::{
    failure::{Cause, Failure, Step},
    options::{ARRAY_ELEMENT_DELIMITER, IGNORE_PARSE_ERRORS, NULL_LITERAL},
    plan::{Kind, Node},
};
use crate::{
    definition::Options,
    formats::{
        base64,
        number::{self, Decimal},
        time::{self, Standard},
    },
    model::{ColumnBuilder, Scalar},
};

/// How values are read.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) ignore_errors: bool,
    null_literal: Option<String>,
    element_delimiter: char,
    scratch: Vec<u8>,
    /// Fields made null so far.
    pub(super) nulled: u32,
    /// Fields left out so far.
    pub(super) left_out: u32,
}

impl Values {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            ignore_errors: options.opt_boolean(&IGNORE_PARSE_ERRORS).unwrap_or(false),
            null_literal: options.opt_text(&NULL_LITERAL).map(str::to_owned),
            element_delimiter: options.opt_character(&ARRAY_ELEMENT_DELIMITER).unwrap_or(';'),
            scratch: Vec::new(),
            nulled: 0,
            left_out: 0,
        }
    }

    /// Fills one slot of a column, which may be with null. On failure the column is as before.
    pub(super) fn slot<'a>(
        &mut self,
        node: &'a Node,
        text: &'a str,
        column: &mut ColumnBuilder,
    ) -> Result<(), Failure<'a>> {
        if self.null_literal.as_deref() == Some(text) {
            return null(node, column);
        }
        let before = column.len();
        let result = match &node.kind {
            Kind::Array(element) => self.array(element, text, column),
            Kind::Row(_) if number::trim(text).is_empty() => return null(node, column),
            Kind::Row(fields) => self.row(fields, text, column),
            _ => self.scalar(node, text, column),
        };
        result.or_else(|failure| {
            column.truncate(before);
            self.refuse(node, failure, column)
        })
    }

    /// Null in the place of a field that the row lacks.
    pub(super) fn missing<'a>(&mut self, node: &Node, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
        null(node, column)?;
        self.nulled += 1;
        Ok(())
    }

    /// Null in the place of what was refused, if errors are ignored and the column may be null.
    fn refuse<'a>(&mut self, node: &Node, failure: Failure<'a>, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
        if !(self.ignore_errors && node.nullable && failure.can_be_ignored()) {
            return Err(failure);
        }
        column.append_null();
        self.nulled += 1;
        Ok(())
    }

    fn array<'a>(&mut self, element: &'a Node, text: &'a str, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
        if let Some(items) = column.items_mut()
            && !number::trim(text).is_empty()
        {
            for (index, part) in text.split(self.element_delimiter).enumerate() {
                self.slot(element, part, items).map_err(|failure| failure.at(Step::Index(index)))?;
            }
        }
        Ok(column.close()?)
    }

    fn row<'a>(
        &mut self,
        fields: &'a [(String, Node)],
        text: &'a str,
        column: &mut ColumnBuilder,
    ) -> Result<(), Failure<'a>> {
        let found = text.split(self.element_delimiter).count();
        // Flink leaves out what is too much without a word, in either mode.
        if found != fields.len() && !self.ignore_errors {
            return Err(Failure::new(Cause::Length { expected: fields.len(), found }));
        }
        self.left_out += u32::try_from(found.saturating_sub(fields.len())).unwrap_or(u32::MAX);
        let mut parts = text.split(self.element_delimiter);
        for ((name, node), column) in fields.iter().zip(column.fields_mut().unwrap_or_default()) {
            let result = match parts.next() {
                Some(part) => self.slot(node, part, column),
                None => self.missing(node, column),
            };
            result.map_err(|failure| failure.at(Step::Field(name)))?;
        }
        Ok(column.close()?)
    }

    fn scalar<'a>(&mut self, node: &'a Node, text: &'a str, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
        let trimmed = number::trim(text);
        let scalar = match &node.kind {
            Kind::Text => Some(Scalar::Text(text)),
            // Everything that is not true is false, as in Flink.
            Kind::Boolean => Some(Scalar::Boolean(trimmed.eq_ignore_ascii_case("true"))),
            Kind::TinyInt => trimmed.parse().ok().map(Scalar::Int8),
            Kind::SmallInt => trimmed.parse().ok().map(Scalar::Int16),
            Kind::Int => trimmed.parse().ok().map(Scalar::Int32),
            Kind::BigInt => trimmed.parse().ok().map(Scalar::Int64),
            Kind::Float => number::java_float(text).and_then(|text| text.parse().ok()).map(Scalar::Float32),
            Kind::Double => number::java_float(text).and_then(|text| text.parse().ok()).map(Scalar::Float64),
            Kind::Decimal { precision, scale } => match number::decimal(text, *precision, *scale) {
                Decimal::Value(value) => Some(Scalar::Int128(value)),
                Decimal::Invalid => None,
                // Flink makes it null without an error; here it is counted at least.
                Decimal::TooLarge => return self.missing(node, column),
            },
            Kind::Bytes => base64::decode(text, &mut self.scratch).map(Scalar::Bytes),
            Kind::Date => time::parse_lenient_date(text).map(Scalar::Int32),
            Kind::Time { step } => time::parse_time_of_day(text.as_bytes()).map(|ms| Scalar::Int32(ms / step * step)),
            Kind::Timestamp { zoned, unit } => {
                time::parse_timestamp(trimmed.as_bytes(), Standard::Sql, *zoned, *unit).map(Scalar::Int64)
            }
            Kind::Array(_) | Kind::Row(_) => None,
        };
        match scalar {
            Some(scalar) => Ok(column.append(scalar)?),
            None => Err(Failure::new(Cause::Mismatch { node, found: text })),
        }
    }
}

/// Appends null, if the column may be null.
fn null<'a>(node: &Node, column: &mut ColumnBuilder) -> Result<(), Failure<'a>> {
    if !node.nullable {
        return Err(Failure::new(Cause::Null));
    }
    column.append_null();
    Ok(())
}
