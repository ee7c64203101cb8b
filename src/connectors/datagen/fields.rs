//! From the options of a source to what makes its rows; and what does not fit together in them.

use bigdecimal::{BigDecimal, ToPrimitive};

use super::{
    generate::{As, Generator, Length, Value, Width},
    options as o,
};
use crate::{
    definition::{At, Diagnostic, Endpoint, OptionSpec},
    model::{ColumnType, LogicalType as T},
};

/// A row may take so many bytes, about; so that a batch of them fits into memory and into Arrow's offsets.
const LARGEST_ROW: u64 = 4 << 20;
const LONGEST: u32 = 1_000_000;
const DEFAULT_LENGTH: u32 = 100;
const DEFAULT_ELEMENTS: i64 = 3;
/// Integers up to here are exact in a FLOAT, and in a DOUBLE.
const EXACT_FLOAT: i64 = 1 << 24;
const EXACT_DOUBLE: i64 = 1 << 53;

/// What makes rows.
#[derive(Debug)]
pub struct Fields {
    /// One for each column.
    pub columns: Vec<Generator>,
    /// How many there are; `None`: no end.
    pub rows: Option<u64>,
    /// Rows a second; at least 1.
    pub rate: u64,
    /// What chance depends on.
    pub seed: u64,
    base_ms: i64,
}

impl Fields {
    /// The time of a row, in milliseconds since 1970.
    pub fn time_ms(&self, index: u64) -> i64 {
        let since = match index.checked_mul(1000) {
            Some(thousandfold) => thousandfold / self.rate,
            None => u64::try_from(u128::from(index) * 1000 / u128::from(self.rate)).unwrap_or(u64::MAX),
        };
        self.base_ms.saturating_add_unsigned(since)
    }
}

/// Reads the options of a section that is valid in each of its parts; and what is wrong with them as a whole, after
/// which the fields are of no use.
pub fn read(endpoint: &Endpoint) -> (Fields, Vec<Diagnostic>) {
    let mut reading = Reading { endpoint, found: Vec::new(), rows: None };
    let positive = |number: i64| u64::try_from(number).unwrap_or(1).max(1);
    reading.rows = endpoint.options.opt_integer(&o::NUMBER_OF_ROWS).map(positive);
    let columns = endpoint.schema.columns.iter();
    let columns: Vec<_> = columns.map(|column| reading.column(&column.name, &column.ty)).collect();
    let size = columns.iter().map(Generator::size).fold(0, u64::saturating_add);
    if size > LARGEST_ROW {
        let message = format!("a row may take {size} bytes, by the lengths of its columns");
        let expected = format!("rows of at most {LARGEST_ROW} bytes");
        reading.found.push(Diagnostic::error(message).at(endpoint.at(At::Schema)).expected(expected));
    }
    let fields = Fields {
        columns,
        rows: reading.rows,
        rate: positive(endpoint.options.integer(&o::ROWS_PER_SECOND)),
        seed: endpoint.options.integer(&o::SEED) as u64,
        base_ms: endpoint.options.integer(&o::BASE_TIME_MS),
    };
    (fields, reading.found)
}

struct Reading<'a> {
    endpoint: &'a Endpoint,
    found: Vec<Diagnostic>,
    rows: Option<u64>,
}

fn key(path: &str, spec: &OptionSpec) -> String {
    format!("{}.{path}.{}", o::COLUMNS.name, spec.name)
}

fn list(specs: &[&OptionSpec]) -> String {
    let names: Vec<_> = specs.iter().map(|spec| format!("`{}`", spec.name)).collect();
    if names.is_empty() { "no option".to_owned() } else { names.join(", ") }
}

/// The options a random value of a type has, besides `kind` and `null-rate`.
fn random_options(ty: &T) -> Vec<&'static OptionSpec> {
    match ty {
        T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::Float | T::Double | T::Decimal(..) => {
            vec![&o::MIN, &o::MAX]
        }
        T::VarChar(_) | T::VarBinary(_) => vec![&o::LENGTH, &o::VAR_LEN],
        T::Timestamp(_) | T::TimestampLtz(_) => vec![&o::MAX_PAST],
        T::Array(_) | T::Map(..) => vec![&o::LENGTH],
        T::Boolean | T::Char(_) | T::Binary(_) | T::Date | T::Time(_) | T::Row(_) => vec![],
    }
}

/// How a type holds a sequence, and the numbers it holds; `None`: it cannot.
fn sequence_of(ty: &T) -> Option<(As, i64, i64)> {
    let integer = |width| {
        let (least, most) = range_of(width);
        (As::Integer(width), least, most)
    };
    let digits = |count: u32| 10_i64.checked_pow(count).map_or(i64::MAX, |above| above - 1);
    Some(match ty {
        T::TinyInt => integer(Width::Tiny),
        T::SmallInt => integer(Width::Small),
        T::Int => integer(Width::Int),
        T::BigInt => integer(Width::Big),
        T::Float => (As::Float, -EXACT_FLOAT, EXACT_FLOAT),
        T::Double => (As::Double, -EXACT_DOUBLE, EXACT_DOUBLE),
        T::Decimal(precision, scale) => {
            let most = digits(u32::from(precision - scale));
            (As::Decimal(10_i128.pow(u32::from(*scale))), -most, most)
        }
        // The sign is a character too.
        T::Char(n) | T::VarChar(Some(n)) => (As::Text, -digits(n.saturating_sub(1)), digits(*n)),
        T::VarChar(None) => (As::Text, i64::MIN, i64::MAX),
        T::Binary(8) | T::VarBinary(None) => (As::Bytes, i64::MIN, i64::MAX),
        T::VarBinary(Some(n)) if *n >= 8 => (As::Bytes, i64::MIN, i64::MAX),
        _ => return None,
    })
}

const fn range_of(width: Width) -> (i64, i64) {
    match width {
        Width::Tiny => (i8::MIN as i64, i8::MAX as i64),
        Width::Small => (i16::MIN as i64, i16::MAX as i64),
        Width::Int => (i32::MIN as i64, i32::MAX as i64),
        Width::Big => (i64::MIN, i64::MAX),
    }
}

impl Reading<'_> {
    /// A column as a whole, which alone can be a sequence.
    fn column(&mut self, name: &str, ty: &ColumnType) -> Generator {
        let given = self.endpoint.column_options.of(name);
        if given.and_then(|given| given.opt_text(&o::KIND)) != Some("sequence") {
            return self.random(name, ty, &[&o::KIND, &o::NULL_RATE], "");
        }
        let value = match sequence_of(&ty.logical) {
            Some((held, least, most)) => self.sequence(name, ty, held, least, most),
            None => {
                let message = format!("`{name}` is {}, which cannot be a sequence", ty.logical);
                self.refuse(name, &o::KIND, message, "`random`");
                Value::Boolean
            }
        };
        Generator { null_rate: 0.0, value }
    }

    fn sequence(&mut self, path: &str, ty: &ColumnType, held: As, least: i64, most: i64) -> Value {
        self.allow(path, &[&o::KIND, &o::START, &o::END], &format!("a sequence of {}", ty.logical));
        for spec in [&o::START, &o::END] {
            if !self.is_given(path, spec) {
                let message = format!("`{}: sequence` needs `{}`", key(path, &o::KIND), key(path, spec));
                self.refuse(path, &o::KIND, message, format!("`{}: ...`, an integer", key(path, spec)));
            }
        }
        let start = self.integer(path, &o::START, ty, least, most);
        let end = self.integer(path, &o::END, ty, least, most);
        if let (Some(start), Some(end)) = (start, end) {
            if start > end {
                let message = format!("`{}` is less than `{}`", key(path, &o::END), key(path, &o::START));
                self.refuse(path, &o::END, message, "the last number of the sequence, not before its first");
            } else {
                let count = u64::try_from(i128::from(end) - i128::from(start) + 1).unwrap_or(u64::MAX);
                self.rows = Some(self.rows.map_or(count, |rows| rows.min(count)));
            }
        }
        Value::Sequence(held, start.unwrap_or(0))
    }

    /// A value of chance; `general`: the options it has besides those of its type.
    fn random(&mut self, path: &str, ty: &ColumnType, general: &[&'static OptionSpec], within: &str) -> Generator {
        let allowed: Vec<_> = general.iter().copied().chain(random_options(&ty.logical)).collect();
        self.allow(path, &allowed, &format!("{within}{}", ty.logical));
        let given = self.endpoint.column_options.of(path);
        let null_rate = given.and_then(|given| given.opt_number(&o::NULL_RATE)?.to_f64()).unwrap_or(0.0);
        if null_rate > 0.0 && !ty.nullable {
            let message = format!("`{}` asks for nulls, but `{path}` is NOT NULL", key(path, &o::NULL_RATE));
            self.refuse(path, &o::NULL_RATE, message, "0, or a type without NOT NULL");
        }
        Generator { null_rate, value: self.value(path, ty) }
    }

    fn value(&mut self, path: &str, ty: &ColumnType) -> Value {
        match &ty.logical {
            T::Boolean => Value::Boolean,
            T::TinyInt => self.integers(path, ty, Width::Tiny),
            T::SmallInt => self.integers(path, ty, Width::Small),
            T::Int => self.integers(path, ty, Width::Int),
            T::BigInt => self.integers(path, ty, Width::Big),
            T::Float => {
                let all = (f64::from(f32::MIN), 0.0, f64::from(f32::MAX));
                let (min, max) = self.floats(path, ty, all);
                Value::Float(min as f32, max as f32)
            }
            T::Double => {
                let (min, max) = self.floats(path, ty, (f64::MIN, 0.0, f64::MAX));
                Value::Double(min, max)
            }
            T::Decimal(precision, scale) => self.decimals(path, ty, *precision, *scale),
            T::Char(_) | T::VarChar(_) => Value::Text(self.length(path, ty)),
            T::Binary(_) | T::VarBinary(_) => Value::Bytes(self.length(path, ty)),
            T::Date => Value::Date,
            T::Time(_) => Value::Time,
            T::Timestamp(precision) | T::TimestampLtz(precision) => {
                let given = self.endpoint.column_options.of(path);
                let past = given.and_then(|given| given.opt_duration(&o::MAX_PAST)).unwrap_or_default();
                let units = if *precision <= 6 { 1_000 } else { 1_000_000 };
                Value::Timestamp(u64::try_from(past.as_millis()).unwrap_or(u64::MAX), units)
            }
            T::Array(element) => {
                let element = self.random(&format!("{path}.element"), element, &[&o::NULL_RATE], "an element of ");
                Value::Array(self.elements(path), Box::new(element))
            }
            T::Map(of_key, value) => self.map(path, of_key, value),
            T::Row(fields) => {
                let fields = fields.iter().map(|field| {
                    self.random(&format!("{path}.{}", field.name), &field.ty, &[&o::NULL_RATE], "a field of ")
                });
                Value::Row(fields.collect())
            }
        }
    }

    fn map(&mut self, path: &str, of_key: &ColumnType, value: &ColumnType) -> Value {
        let keys = format!("{path}.key");
        if !matches!(of_key.logical, T::Char(_) | T::VarChar(_)) {
            let column = path.split('.').next().unwrap_or(path);
            let message = format!("a MAP with keys of {} cannot be generated", of_key.logical);
            self.found
                .push(Diagnostic::error(message).at(self.endpoint.at(At::Type(column))).expected("keys of STRING"));
        }
        let key = match self.random(&keys, of_key, &[], "a key of ").value {
            Value::Text(length) => length,
            _ => Length { most: 0, varies: false },
        };
        let value = self.random(&format!("{path}.value"), value, &[&o::NULL_RATE], "a value of ");
        Value::Map(self.elements(path), key, Box::new(value))
    }

    fn is_given(&self, path: &str, spec: &OptionSpec) -> bool {
        self.endpoint.column_options.of(path).is_some_and(|given| given.has(spec))
    }

    fn refuse(&mut self, path: &str, spec: &OptionSpec, message: String, expected: impl Into<String>) {
        let place = self.endpoint.at(At::ColumnOption(path, spec));
        self.found.push(Diagnostic::error(message).at(place).expected(expected));
    }

    /// Refuses every option but these.
    fn allow(&mut self, path: &str, allowed: &[&'static OptionSpec], whose: &str) {
        for spec in o::COLUMNS.options {
            if !self.is_given(path, spec) || allowed.iter().any(|one| one.name == spec.name) {
                continue;
            }
            let of_sequence = [o::START.name, o::END.name].contains(&spec.name);
            if of_sequence && allowed.iter().any(|one| one.name == o::KIND.name) {
                let message = format!("`{}` is for a sequence, and `{path}` is none", key(path, spec));
                self.refuse(path, spec, message, format!("`{}: sequence` with it", key(path, &o::KIND)));
            } else {
                let message = format!("`{}` does not go with {whose}", key(path, spec));
                self.refuse(path, spec, message, format!("{} for `{path}`", list(allowed)));
            }
        }
    }

    fn number(&self, path: &str, spec: &OptionSpec) -> Option<BigDecimal> {
        self.endpoint.column_options.of(path)?.opt_number(spec)
    }

    /// `None`: not given, or reported.
    fn integer(&mut self, path: &str, spec: &OptionSpec, ty: &ColumnType, least: i64, most: i64) -> Option<i64> {
        let number = self.number(path, spec)?;
        let fits = number.is_integer().then(|| number.to_i64()).flatten().filter(|n| (least..=most).contains(n));
        if fits.is_none() {
            let message = format!("`{}` does not fit {}", key(path, spec), ty.logical);
            self.refuse(path, spec, message, format!("an integer from {least} to {most}"));
        }
        fits
    }

    fn integers(&mut self, path: &str, ty: &ColumnType, width: Width) -> Value {
        let (least, most) = range_of(width);
        let min = self.integer(path, &o::MIN, ty, least, most).unwrap_or(least);
        let max = self.integer(path, &o::MAX, ty, least, most).unwrap_or(most);
        let max = self.ordered(path, min, max);
        Value::Integer(width, min, max)
    }

    /// `all`: the least of the type, the least if none is given, the greatest.
    fn floats(&mut self, path: &str, ty: &ColumnType, all: (f64, f64, f64)) -> (f64, f64) {
        let (least, default, most) = all;
        let mut read = |spec: &OptionSpec| {
            let number = self.number(path, spec)?;
            let fits = number.to_f64().filter(|number| (least..=most).contains(number));
            if fits.is_none() {
                let message = format!("`{}` does not fit {}", key(path, spec), ty.logical);
                self.refuse(path, spec, message, format!("a number from {least:e} to {most:e}"));
            }
            fits
        };
        let (min, max) = (read(&o::MIN).unwrap_or(default), read(&o::MAX).unwrap_or(most));
        (min, self.ordered(path, min, max))
    }

    fn decimals(&mut self, path: &str, ty: &ColumnType, precision: u8, scale: u8) -> Value {
        let most = 10_i128.pow(u32::from(precision)) - 1;
        let mut read = |spec: &OptionSpec| {
            let number = self.number(path, spec)?;
            let scaled = number.with_scale(i64::from(scale));
            let unscaled = if scaled == number { scaled.into_bigint_and_exponent().0.to_i128() } else { None };
            let fits = unscaled.filter(|unscaled| (-most..=most).contains(unscaled));
            if fits.is_none() {
                let message = format!("`{}` does not fit {}", key(path, spec), ty.logical);
                let expected = format!("at most {} digits before the point and {scale} after it", precision - scale);
                self.refuse(path, spec, message, expected);
            }
            fits
        };
        let (min, max) = (read(&o::MIN).unwrap_or(0), read(&o::MAX).unwrap_or(most));
        Value::Decimal(min, self.ordered(path, min, max))
    }

    /// Refuses a greatest that is less than the least; answers one that is not.
    fn ordered<N: PartialOrd + Copy>(&mut self, path: &str, min: N, max: N) -> N {
        if min <= max {
            return max;
        }
        let (least, most) = (key(path, &o::MIN), key(path, &o::MAX));
        if self.is_given(path, &o::MIN) {
            let at = if self.is_given(path, &o::MAX) { &o::MAX } else { &o::MIN };
            self.refuse(
                path,
                at,
                format!("`{most}` is less than `{least}`"),
                "the greatest number, not below the least",
            );
        } else {
            let message = format!("`{most}` is less than 0, which `{least}` is if it is not given");
            self.refuse(path, &o::MAX, message, format!("`{least}: ...` with it"));
        }
        min
    }

    fn length(&mut self, path: &str, ty: &ColumnType) -> Length {
        let (declared, fixed) = match ty.logical {
            T::Char(n) | T::Binary(n) => (Some(n), true),
            T::VarChar(n) | T::VarBinary(n) => (n, false),
            _ => (None, false),
        };
        if let Some(declared) = declared.filter(|declared| fixed && *declared > LONGEST) {
            let column = path.split('.').next().unwrap_or(path);
            let message = format!("a value of {declared} characters or bytes is too long to be generated");
            let expected = format!("at most {LONGEST}");
            self.found.push(Diagnostic::error(message).at(self.endpoint.at(At::Type(column))).expected(expected));
        }
        let given = self.endpoint.column_options.of(path);
        let length = given.and_then(|given| given.opt_integer(&o::LENGTH));
        let length = length.map(|length| u32::try_from(length).unwrap_or(LONGEST));
        if let (Some(length), Some(declared)) = (length, declared.filter(|_| !fixed))
            && length > declared
        {
            let message = format!("`{}` is more than {} holds", key(path, &o::LENGTH), ty.logical);
            self.refuse(path, &o::LENGTH, message, format!("an integer from 0 to {declared}"));
        }
        let varies = given.and_then(|given| given.opt_boolean(&o::VAR_LEN)).unwrap_or(false);
        let most = length.or(declared).unwrap_or(DEFAULT_LENGTH).min(LONGEST);
        Length { most: most as usize, varies: varies && !fixed }
    }

    fn elements(&self, path: &str) -> usize {
        let given = self.endpoint.column_options.of(path);
        let length = given.and_then(|given| given.opt_integer(&o::LENGTH)).unwrap_or(DEFAULT_ELEMENTS);
        usize::try_from(length).unwrap_or(0)
    }
}
