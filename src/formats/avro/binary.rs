//! Values in Avro's binary form, straight into columns.

use super::{
    nodes::{Kind, Nodes},
    plan::{Convert, Plan, Record, Wire},
};
use crate::{
    formats::columnar::{
        Budget, Failure, MOST_LEVELS, MOST_VALUES, decimal, integer, time_of_day, timestamp, too_many,
    },
    model::{ColumnBuilder, ColumnType, Field, LogicalType, Scalar},
};

/// Bytes of the budget that a value costs beside those of its text: one that takes no byte on the wire takes room too.
const VALUE_BYTES: usize = 8;
/// Values, and parts of them, that may be passed over in one body.
const MOST_SKIPPED: usize = 4 * MOST_VALUES;

/// What is left of a body.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Elements of arrays and maps that may still come. One that takes no byte could come without end.
    elements: usize,
    /// Values that may still be passed over; these too may take no byte.
    skipped: usize,
    budget: Budget,
}

/// A value on the wire.
pub(super) enum Raw<'a> {
    Boolean(bool),
    Integer(i64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
    Text(&'a str),
}

fn cut_off() -> Failure {
    Failure::new("the body is cut off")
}

impl<'a> Cursor<'a> {
    /// Over a whole body.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, elements: MOST_VALUES, skipped: MOST_SKIPPED, budget: Budget::new() }
    }

    /// Goes on with other bytes of the same body.
    pub(super) fn over<'b>(self, bytes: &'b [u8]) -> Cursor<'b> {
        Cursor { bytes, elements: self.elements, skipped: self.skipped, budget: self.budget }
    }

    /// Bytes left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// So many bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Failure> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(cut_off)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// A number, of which the bits that are nought at the front are left out.
    pub(super) fn long(&mut self) -> Result<i64, Failure> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first().ok_or_else(cut_off)?;
            self.bytes = rest;
            if shift == 63 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Failure::new("a number of more than 64 bits"))
    }

    fn int(&mut self) -> Result<i64, Failure> {
        let value = self.long()?;
        i32::try_from(value).map(i64::from).map_err(|_| Failure::new(format!("{value} is no int of 32 bits")))
    }

    /// Bytes after their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Failure> {
        let length = self.long()?;
        let length = usize::try_from(length).map_err(|_| Failure::new("a length below zero"))?;
        self.take(length)
    }

    fn raw(&mut self, wire: &'a Wire) -> Result<Raw<'a>, Failure> {
        Ok(match wire {
            Wire::Boolean => match self.take(1)? {
                [0] => Raw::Boolean(false),
                [1] => Raw::Boolean(true),
                _ => return Err(Failure::new("neither true nor false")),
            },
            Wire::Int => Raw::Integer(self.int()?),
            Wire::Long => Raw::Integer(self.long()?),
            Wire::Float => Raw::Float(f32::from_le_bytes(self.take(4)?.first_chunk().copied().ok_or_else(cut_off)?)),
            Wire::Double => Raw::Double(f64::from_le_bytes(self.take(8)?.first_chunk().copied().ok_or_else(cut_off)?)),
            Wire::Bytes => Raw::Bytes(self.bytes()?),
            Wire::String => Raw::Text(text(self.bytes()?)?),
            Wire::Fixed(size) => Raw::Bytes(self.take(*size)?),
            Wire::Enum(symbols) => {
                let index = self.int()?;
                let symbol = usize::try_from(index).ok().and_then(|index| symbols.get(index));
                Raw::Text(symbol.ok_or_else(|| Failure::new(format!("there is no symbol {index}")))?)
            }
        })
    }

    /// The elements of an array or map, block by block.
    fn elements(&mut self, mut each: impl FnMut(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                // The size in bytes, for those who skip.
                self.long()?;
            }
            let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
            self.elements = self.elements.checked_sub(count).ok_or_else(|| Failure::of_all(too_many()))?;
            for _ in 0..count {
                each(self)?;
            }
        }
    }

    fn branch<'p>(&mut self, branches: &'p [(String, Result<Plan, String>)]) -> Result<&'p Plan, Failure> {
        let index = self.long()?;
        let branch = usize::try_from(index).ok().and_then(|index| branches.get(index));
        let (_, plan) = branch.ok_or_else(|| Failure::new(format!("there is no branch {index} of the union")))?;
        plan.as_ref().map_err(|why| Failure::new(why.clone()))
    }
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    simdutf8::basic::from_utf8(bytes).map_err(|_| Failure::new("bytes that are no UTF-8"))
}

/// Reads one value into a column.
pub(super) fn read<'a>(
    nodes: &Nodes,
    plan: &'a Plan,
    ty: &ColumnType,
    column: &mut ColumnBuilder,
    from: &mut Cursor<'a>,
) -> Result<(), Failure> {
    if !matches!(plan, Plan::Union(_)) {
        from.budget.take(VALUE_BYTES)?;
    }
    match plan {
        Plan::Union(branches) => {
            let plan = from.branch(branches)?;
            return read(nodes, plan, ty, column, from);
        }
        Plan::Null if !ty.nullable => return Err(Failure::null()),
        Plan::Null => column.append_null(),
        Plan::Scalar(wire, convert) => {
            let raw = from.raw(wire)?;
            let value = scalar(&raw, *convert, &ty.logical)?;
            match value {
                Scalar::Text(text) => from.budget.take(text.len())?,
                Scalar::Bytes(bytes) => from.budget.take(bytes.len())?,
                _ => {}
            }
            column.append(value).map_err(|error| error.to_string())?;
        }
        Plan::Array(items) => {
            let LogicalType::Array(element) = &ty.logical else { return Err(Failure::new("no array")) };
            let builder = column.items_mut().ok_or_else(|| Failure::new("no array"))?;
            let before = builder.len();
            let read = from.elements(|from| read(nodes, items, element, builder, from));
            read.map_err(|failure| failure.in_element(builder.len() - before))?;
            column.close().map_err(|error| error.to_string())?;
        }
        Plan::Map(values) => {
            let LogicalType::Map(_, of) = &ty.logical else { return Err(Failure::new("no map")) };
            let (keys, builder) = column.entries_mut().ok_or_else(|| Failure::new("no map"))?;
            let before = builder.len();
            let read = from.elements(|from| {
                let key = text(from.bytes()?)?;
                from.budget.take(key.len())?;
                keys.append(Scalar::Text(key)).map_err(|error| error.to_string())?;
                read(nodes, values, of, builder, from)
            });
            read.map_err(|failure| failure.in_element(builder.len() - before))?;
            column.close().map_err(|error| error.to_string())?;
        }
        Plan::Record(record) => {
            let LogicalType::Row(fields) = &ty.logical else { return Err(Failure::new("no row")) };
            let builders = column.fields_mut().ok_or_else(|| Failure::new("no row"))?;
            record_into(nodes, record, fields.iter().zip(builders).collect(), from)
                .map_err(|(name, failure)| failure.in_field(&name))?;
            column.close().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Reads the fields of a record, each into its column. The error names the field.
pub(super) fn record_into<'a>(
    nodes: &Nodes,
    record: &'a Record,
    mut columns: Vec<(&Field, &mut ColumnBuilder)>,
    from: &mut Cursor<'a>,
) -> Result<(), (String, Failure)> {
    for field in &record.fields {
        let done = match &field.to {
            None => skip(nodes, field.node, from, 0),
            Some((index, plan)) => match columns.get_mut(*index) {
                Some((of, column)) => read(nodes, plan, &of.ty, column, from),
                None => Ok(()),
            },
        };
        done.map_err(|failure| (field.name.clone(), failure))?;
    }
    for index in &record.absent {
        if let Some((of, column)) = columns.get_mut(*index) {
            from.budget.take(VALUE_BYTES).map_err(|why| (of.name.clone(), why.into()))?;
            column.append_null();
        }
    }
    Ok(())
}

/// Passes over a value that nobody wants.
fn skip(nodes: &Nodes, index: usize, from: &mut Cursor<'_>, level: usize) -> Result<(), Failure> {
    if level > MOST_LEVELS {
        return Err(Failure::new(format!("values are nested more than {MOST_LEVELS} levels deep")));
    }
    from.skipped = from.skipped.checked_sub(1).ok_or_else(|| {
        Failure::of_all(format!("the body holds more than {MOST_SKIPPED} values that no column is filled with"))
    })?;
    match &nodes.get(index).kind {
        Kind::Null => {}
        Kind::Boolean => drop(from.take(1)?),
        Kind::Int | Kind::Long | Kind::Enum(_) => drop(from.long()?),
        Kind::Float => drop(from.take(4)?),
        Kind::Double => drop(from.take(8)?),
        Kind::Bytes | Kind::String => drop(from.bytes()?),
        Kind::Fixed(size) => drop(from.take(*size)?),
        Kind::Array(items) => from.elements(|from| skip(nodes, *items, from, level + 1))?,
        Kind::Map(values) => from.elements(|from| {
            from.bytes()?;
            skip(nodes, *values, from, level + 1)
        })?,
        Kind::Union(branches) => {
            let index = from.long()?;
            let branch = usize::try_from(index).ok().and_then(|index| branches.get(index));
            let branch = branch.ok_or_else(|| Failure::new(format!("there is no branch {index} of the union")))?;
            skip(nodes, *branch, from, level + 1)?;
        }
        Kind::Record(fields) => {
            for (_, field) in fields {
                skip(nodes, *field, from, level + 1)?;
            }
        }
    }
    Ok(())
}

/// The value of a column.
pub(super) fn scalar<'a>(raw: &Raw<'a>, convert: Convert, logical: &LogicalType) -> Result<Scalar<'a>, Failure> {
    let wrong = || Failure::new(format!("a value that is no {logical}"));
    Ok(match (convert, raw) {
        (Convert::Boolean, Raw::Boolean(value)) => Scalar::Boolean(*value),
        (Convert::Integer, Raw::Integer(value)) => integer(i128::from(*value), logical)?,
        (Convert::Float, Raw::Integer(value)) => Scalar::Float32(*value as f32),
        (Convert::Float, Raw::Float(value)) => Scalar::Float32(*value),
        (Convert::Double, Raw::Integer(value)) => Scalar::Float64(*value as f64),
        (Convert::Double, Raw::Float(value)) => Scalar::Float64((*value).into()),
        (Convert::Double, Raw::Double(value)) => Scalar::Float64(*value),
        (Convert::Text, Raw::Text(value)) => Scalar::Text(value),
        (Convert::Text, Raw::Bytes(value)) => Scalar::Text(text(value)?),
        (Convert::Bytes, Raw::Bytes(value)) => Scalar::Bytes(value),
        (Convert::Bytes, Raw::Text(value)) => Scalar::Bytes(value.as_bytes()),
        (Convert::Date, Raw::Integer(value)) => Scalar::Int32(i32::try_from(*value).map_err(|_| wrong())?),
        (Convert::Time(per_second), Raw::Integer(value)) => time_of_day(*value, per_second)?,
        (Convert::Timestamp(per_second), Raw::Integer(value)) => timestamp(*value, per_second, logical)?,
        (Convert::Decimal(from_scale), Raw::Bytes(bytes)) => {
            let LogicalType::Decimal(precision, scale) = logical else { return Err(wrong()) };
            let unscaled = unscaled(bytes)
                .ok_or_else(|| Failure::new(format!("a decimal is out of range for DECIMAL({precision}, {scale})")))?;
            decimal(unscaled, from_scale, *precision, *scale)?
        }
        _ => return Err(wrong()),
    })
}

/// A number in two's complement, the highest byte first, of any length. `None` if 128 bits do not hold it.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let filler = if negative { 0xff } else { 0 };
    let start = bytes.len().saturating_sub(16);
    let (front, back) = bytes.split_at(start);
    if front.iter().any(|byte| *byte != filler) {
        return None;
    }
    let mut value = [filler; 16];
    value.get_mut(16 - back.len()..)?.copy_from_slice(back);
    let value = i128::from_be_bytes(value);
    (value.is_negative() == negative && !bytes.is_empty()).then_some(value)
}
