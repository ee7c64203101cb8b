//! Makes the values of a row.

use fastrand::Rng;

use crate::model::{ColumnBuilder, ColumnError, Scalar};

const MILLIS_A_DAY: i64 = 86_400_000;

/// What a value depends on besides chance.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its number, from 0.
    pub index: u64,
    /// Its time, in milliseconds since 1970.
    pub time_ms: i64,
}

/// Makes the values of one column, or of one part of a nested one.
#[derive(Debug, Clone)]
pub struct Generator {
    /// The share of values that are null.
    pub null_rate: f64,
    /// What the others are.
    pub value: Value,
}

/// See [`Generator`]. Bounds are included.
#[derive(Debug, Clone)]
pub enum Value {
    Boolean,
    Integer(Width, i64, i64),
    Float(f32, f32),
    Double(f64, f64),
    /// Unscaled.
    Decimal(i128, i128),
    /// Hex digits.
    Text(Length),
    Bytes(Length),
    /// The day of the row's time.
    Date,
    /// The time of day of the row's time.
    Time,
    /// Up to so many milliseconds before the row's time; in units of so many to a millisecond.
    Timestamp(u64, i64),
    /// The number plus the row's.
    Sequence(As, i64),
    Array(usize, Box<Generator>),
    /// The keys are texts. One that a map has already is left out, with its value.
    Map(usize, Length, Box<Generator>),
    Row(Vec<Generator>),
}

/// The integer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Tiny,
    Small,
    Int,
    Big,
}

/// How the number of a sequence is held.
#[derive(Debug, Clone, Copy)]
pub enum As {
    Integer(Width),
    Float,
    Double,
    /// Times this, the unit of the scale.
    Decimal(i128),
    Text,
    Bytes,
}

/// How long a value is.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    pub most: usize,
    /// From 1 to `most`, rather than `most`.
    pub varies: bool,
}

impl Length {
    fn draw(self, chance: &mut Rng) -> usize {
        if self.varies && self.most > 0 { chance.usize(1..=self.most) } else { self.most }
    }
}

impl Width {
    /// The numbers are known to fit: the definition was checked.
    fn scalar(self, number: i64) -> Scalar<'static> {
        match self {
            Self::Tiny => Scalar::Int8(number as i8),
            Self::Small => Scalar::Int16(number as i16),
            Self::Int => Scalar::Int32(number as i32),
            Self::Big => Scalar::Int64(number),
        }
    }
}

impl Generator {
    /// Appends one value.
    pub fn append(
        &self,
        row: Row,
        chance: &mut Rng,
        column: &mut ColumnBuilder,
        text: &mut Vec<u8>,
    ) -> Result<(), ColumnError> {
        if self.null_rate > 0.0 && chance.f64() < self.null_rate {
            column.append_null();
            return Ok(());
        }
        let scalar = match &self.value {
            Value::Boolean => Scalar::Boolean(chance.bool()),
            Value::Integer(width, least, most) => width.scalar(chance.i64(*least..=*most)),
            Value::Float(least, most) => {
                let value = between(chance, f64::from(*least), f64::from(*most)) as f32;
                Scalar::Float32(value.clamp(*least, *most))
            }
            Value::Double(least, most) => Scalar::Float64(between(chance, *least, *most)),
            Value::Decimal(least, most) => Scalar::Int128(chance.i128(*least..=*most)),
            Value::Text(length) => Scalar::Text(hex(*length, chance, text)),
            Value::Bytes(length) => {
                text.clear();
                text.resize(length.draw(chance), 0);
                chance.fill(text);
                Scalar::Bytes(text)
            }
            Value::Date => Scalar::Int32(row.time_ms.div_euclid(MILLIS_A_DAY) as i32),
            Value::Time => Scalar::Int32(row.time_ms.rem_euclid(MILLIS_A_DAY) as i32),
            Value::Timestamp(max_past_ms, units) => {
                let past = if *max_past_ms == 0 { 0 } else { chance.u64(0..=*max_past_ms) };
                Scalar::Int64(row.time_ms.saturating_sub_unsigned(past).saturating_mul(*units))
            }
            Value::Sequence(held, start) => return held.append(start.wrapping_add_unsigned(row.index), column, text),
            Value::Array(length, element) => {
                let items = column.items_mut().ok_or(ColumnError::WrongType)?;
                for _ in 0..*length {
                    element.append(row, chance, items, text)?;
                }
                return column.close();
            }
            Value::Map(length, key, value) => {
                map(*length, *key, value, row, chance, column, text)?;
                return column.close();
            }
            Value::Row(fields) => {
                let columns = column.fields_mut().ok_or(ColumnError::WrongType)?;
                for (field, column) in fields.iter().zip(columns) {
                    field.append(row, chance, column, text)?;
                }
                return column.close();
            }
        };
        column.append(scalar)
    }

    /// The most bytes that a value takes, about.
    pub fn size(&self) -> u64 {
        let of = |count: usize, each: u64| (count as u64).saturating_mul(each);
        match &self.value {
            Value::Text(length) | Value::Bytes(length) => length.most as u64 + 4,
            Value::Array(length, element) => of(*length, element.size()).saturating_add(4),
            Value::Map(length, key, value) => {
                of(*length, (key.most as u64 + 4).saturating_add(value.size())).saturating_add(4)
            }
            Value::Row(fields) => fields.iter().map(Self::size).fold(0, u64::saturating_add),
            Value::Sequence(As::Text, _) => 24,
            _ => 16,
        }
    }
}

impl As {
    fn append(self, number: i64, column: &mut ColumnBuilder, text: &mut Vec<u8>) -> Result<(), ColumnError> {
        column.append(match self {
            Self::Integer(width) => width.scalar(number),
            Self::Float => Scalar::Float32(number as f32),
            Self::Double => Scalar::Float64(number as f64),
            Self::Decimal(unit) => Scalar::Int128(i128::from(number) * unit),
            Self::Text => return column.append(Scalar::Text(itoa::Buffer::new().format(number))),
            Self::Bytes => {
                text.clear();
                text.extend(number.to_be_bytes());
                Scalar::Bytes(text)
            }
        })
    }
}

/// Weighed rather than added to, since the distance of two doubles may be none.
fn between(chance: &mut Rng, least: f64, most: f64) -> f64 {
    let share = chance.f64();
    (least * (1.0 - share) + most * share).clamp(least, most)
}

fn hex<'a>(length: Length, chance: &mut Rng, text: &'a mut Vec<u8>) -> &'a str {
    let length = length.draw(chance);
    text.clear();
    while text.len() < length {
        let digits = chance.u64(..).to_le_bytes();
        text.extend(
            digits.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| b"0123456789abcdef"[digit as usize]),
        );
    }
    text.truncate(length);
    std::str::from_utf8(text).unwrap_or_default()
}

fn map(
    length: usize,
    key: Length,
    value: &Generator,
    row: Row,
    chance: &mut Rng,
    column: &mut ColumnBuilder,
    text: &mut Vec<u8>,
) -> Result<(), ColumnError> {
    let (keys, values) = column.entries_mut().ok_or(ColumnError::WrongType)?;
    let mut known = std::collections::HashSet::with_capacity(length);
    for _ in 0..length {
        let drawn = hex(key, chance, text);
        if !known.contains(drawn) {
            known.insert(drawn.to_owned());
            keys.append(Scalar::Text(drawn))?;
            value.append(row, chance, values, text)?;
        }
    }
    Ok(())
}
