//! Bodies to rows.

use super::{
    LengthCheck, Settings,
    plan::{ColumnPlan, Kind, Plan, Unfit},
};
use crate::{
    formats::{
        self, Decoded,
        number::{self, Decimal},
        reason::excerpt,
        time::{self, Standard, Unit},
    },
    model::{ColumnError, RowsBuilder, Scalar, Schema},
};

/// Milliseconds of a day.
const DAY_MS: i32 = 86_400_000;

/// Reads a body whose lines are rows; with a single column of BYTES, a body as its value.
///
/// - Lines that are empty are no rows, so an empty body has none. With a single column a line is its value, whatever
///   delimiters it holds.
/// - Bytes that are no text in the charset are read as U+FFFD, as by Java.
/// - [`Decoded::dropped`] says that a line was skipped; [`Decoded::unread`] counts those after the first, and fields
///   behind those that there are columns for. [`Decoded::nulled_fields`] counts fields that a line lacks, and decimals
///   that are too large, which are null as everywhere. Where null is not allowed the line is skipped.
#[derive(Debug)]
pub struct Decoder {
    plan: Plan,
    settings: Settings,
}

/// What was read of a line that is a row.
#[derive(Debug, Default)]
struct Line {
    nulled: u32,
    left_out: u32,
}

/// Why a line is none. Put into words only when it is shown.
#[derive(Debug)]
enum Failure<'a> {
    Mismatch(&'a ColumnPlan, &'a str),
    Null(&'a ColumnPlan),
    Length { expected: usize, found: usize },
    Column(ColumnError),
}

impl Decoder {
    /// A decoder for a table's physical columns.
    pub fn new(schema: &Schema, settings: Settings) -> Result<Self, Unfit> {
        Ok(Self { plan: Plan::new(schema)?, settings })
    }

    fn lines(&self, columns: &[ColumnPlan], body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let mut decoded = Decoded::default();
        let mut skipped = 0_u32;
        let text = self.settings.encoding.0.decode(body);
        for (number, line) in (1_u64..).zip(self.settings.lines.split(&text)) {
            if line.is_empty() {
                continue;
            }
            let before = length(columns, rows);
            match self.line(columns, line, rows) {
                Ok(line) => {
                    decoded.rows += 1;
                    decoded.nulled_fields += line.nulled;
                    decoded.unread = decoded.unread.saturating_add(line.left_out);
                }
                Err(failure) if self.settings.length_check != LengthCheck::Exception && failure.can_be_skipped() => {
                    rows.truncate(before);
                    skipped += 1;
                }
                Err(failure) => return Err(format!("line {number}: {}", failure.reason())),
            }
        }
        decoded.dropped = skipped > 0;
        decoded.unread = decoded.unread.saturating_add(skipped.saturating_sub(1));
        Ok(decoded)
    }

    /// Appends one row. On failure, part of it may be left.
    fn line<'a>(
        &'a self,
        columns: &'a [ColumnPlan],
        line: &'a str,
        rows: &mut RowsBuilder,
    ) -> Result<Line, Failure<'a>> {
        let mut read = Line::default();
        if let [only] = columns {
            append(only, line, rows, &mut read)?;
            return Ok(read);
        }
        let fields = || self.settings.fields.split(line);
        let (expected, found) = (columns.len(), fields().count());
        let refused = match self.settings.length_check {
            LengthCheck::None => found < expected,
            LengthCheck::Skip | LengthCheck::Exception => found != expected,
            LengthCheck::Pad => false,
        };
        if refused {
            return Err(Failure::Length { expected, found });
        }
        let mut fields = fields();
        for plan in columns {
            match fields.next() {
                Some(field) => append(plan, field, rows, &mut read)?,
                None => append_null(plan, rows, &mut read)?,
            }
        }
        read.left_out = u32::try_from(found.saturating_sub(expected)).unwrap_or(u32::MAX);
        Ok(read)
    }
}

/// How long every physical column is.
fn length(columns: &[ColumnPlan], rows: &RowsBuilder) -> usize {
    columns.first().and_then(|column| rows.columns().get(column.index)).map_or(0, |column| column.len())
}

fn append<'a>(
    plan: &'a ColumnPlan,
    field: &'a str,
    rows: &mut RowsBuilder,
    read: &mut Line,
) -> Result<(), Failure<'a>> {
    let scalar = match plan.kind {
        Kind::Text => Some(Scalar::Text(field)),
        Kind::Boolean => boolean(field).map(Scalar::Boolean),
        // Neither trimmed nor rounded, as by `Integer.parseInt`.
        Kind::TinyInt => field.parse().ok().map(Scalar::Int8),
        Kind::SmallInt => field.parse().ok().map(Scalar::Int16),
        Kind::Int => field.parse().ok().map(Scalar::Int32),
        Kind::BigInt => field.parse().ok().map(Scalar::Int64),
        Kind::Float => number::java_float(field).and_then(|text| text.parse().ok()).map(Scalar::Float32),
        Kind::Double => number::java_float(field).and_then(|text| text.parse().ok()).map(Scalar::Float64),
        Kind::Decimal { precision, scale } => match number::decimal(field, precision, scale) {
            Decimal::Value(value) => Some(Scalar::Int128(value)),
            Decimal::TooLarge => return append_null(plan, rows, read),
            Decimal::Invalid => None,
        },
        Kind::Date => time::parse_lenient_date(field).map(Scalar::Int32),
        Kind::Time { step } => {
            let millis = field.parse::<i32>().ok().filter(|millis| (0..DAY_MS).contains(millis));
            millis.map(|millis| Scalar::Int32(millis / step * step))
        }
        Kind::Timestamp { zoned, unit } => timestamp(field, zoned, unit).map(Scalar::Int64),
    };
    let scalar = scalar.ok_or(Failure::Mismatch(plan, field))?;
    let Some(column) = rows.column_mut(plan.index) else { return Ok(()) };
    column.append(scalar).map_err(Failure::Column)
}

fn append_null<'a>(plan: &'a ColumnPlan, rows: &mut RowsBuilder, read: &mut Line) -> Result<(), Failure<'a>> {
    if !plan.nullable {
        return Err(Failure::Null(plan));
    }
    if let Some(column) = rows.column_mut(plan.index) {
        column.append_null();
    }
    read.nulled += 1;
    Ok(())
}

fn boolean(field: &str) -> Option<bool> {
    match field {
        "1" => Some(true),
        "0" => Some(false),
        _ if field.eq_ignore_ascii_case("true") => Some(true),
        _ if field.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Milliseconds since 1970, or a text; of an instant one that ends with `Z`, as the other formats have it.
fn timestamp(field: &str, zoned: bool, unit: Unit) -> Option<i64> {
    match field.parse::<i64>() {
        Ok(millis) => millis.checked_mul(unit.per_second() / 1000),
        Err(_) => time::parse_timestamp(field.as_bytes(), Standard::Sql, zoned, unit),
    }
}

impl Failure<'_> {
    /// Whether the next line can be read: not so when there is no room for one.
    fn can_be_skipped(&self) -> bool {
        !matches!(self, Self::Column(_))
    }

    fn reason(&self) -> String {
        match self {
            Self::Mismatch(plan, found) => {
                format!("column {}: expected {}, found {:?}", plan.name, plan.expected, excerpt(found))
            }
            Self::Null(plan) => format!("column {}: null where the schema says NOT NULL", plan.name),
            Self::Length { expected, found } => format!("{found} fields where {expected} are expected"),
            Self::Column(error) => error.to_string(),
        }
    }
}

impl formats::Decoder for Decoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        match &self.plan {
            Plan::Bytes(index) => {
                let Some(column) = rows.column_mut(*index) else { return Ok(Decoded::default()) };
                column.append(Scalar::Bytes(body)).map_err(|error| error.to_string())?;
                Ok(Decoded { rows: 1, ..Decoded::default() })
            }
            Plan::Lines(columns) => {
                let base = length(columns, rows);
                self.lines(columns, body, rows).inspect_err(|_| rows.truncate(base))
            }
        }
    }
}
