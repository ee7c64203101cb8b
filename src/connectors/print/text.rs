//! Rows as Java's `Row.toString` shows them: what Flink's print connector prints. Nothing is quoted.

use std::fmt::{Display, Write};

use arrow_array::{Array, RecordBatch, cast::AsArray, types::*};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// A type no column of a schema can have.
pub(super) type Unprintable = DataType;

/// Appends one row and a newline.
pub(super) fn line(rows: &RecordBatch, row: usize, out: &mut String) -> Result<(), Unprintable> {
    out.push_str("+I");
    list(out, "[]", rows.columns().iter(), |out, column| value(column, row, out))?;
    out.push('\n');
    Ok(())
}

fn list<T>(
    out: &mut String,
    brackets: &str,
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(&mut String, T) -> Result<(), Unprintable>,
) -> Result<(), Unprintable> {
    let (open, close) = brackets.split_at(1);
    out.push_str(open);
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        each(out, item)?;
    }
    out.push_str(close);
    Ok(())
}

fn value(array: &dyn Array, row: usize, out: &mut String) -> Result<(), Unprintable> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Boolean => show(out, array.as_boolean().value(row)),
        DataType::Int8 => show(out, array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => show(out, array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => show(out, array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => show(out, array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => {
            let number = array.as_primitive::<Float32Type>().value(row);
            float(out, f64::from(number.abs()), format!("{number:?}"), format!("{number:e}"));
        }
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            float(out, number.abs(), format!("{number:?}"), format!("{number:e}"));
        }
        DataType::Decimal128(_, scale) => {
            decimal(out, array.as_primitive::<Decimal128Type>().value(row), i32::from(*scale));
        }
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::Binary => {
            let bytes = array.as_binary::<i32>().value(row);
            list(out, "[]", bytes.iter(), |out, byte| {
                show(out, byte.cast_signed());
                Ok(())
            })?;
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            list(out, "[]", 0..items.len(), |out, at| value(&items, at, out))?;
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            list(out, "{}", 0..entries.len(), |out, at| {
                value(entries.column(0), at, out)?;
                out.push('=');
                value(entries.column(1), at, out)
            })?;
        }
        DataType::Struct(_) => {
            out.push_str("+I");
            list(out, "[]", array.as_struct().columns().iter(), |out, column| value(column, row, out))?;
        }
        other => return time_value(array, other, row, out),
    }
    Ok(())
}

fn time_value(array: &dyn Array, ty: &DataType, row: usize, out: &mut String) -> Result<(), Unprintable> {
    let shown = match ty {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            NaiveDate::from_epoch_days(days).map(|date| date.to_string())
        }
        DataType::Time32(TimeUnit::Millisecond) => {
            let ms = u32::try_from(array.as_primitive::<Time32MillisecondType>().value(row)).unwrap_or(u32::MAX);
            NaiveTime::from_num_seconds_from_midnight_opt(ms / 1000, ms % 1000 * 1_000_000).map(|at| time(at, false))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            DateTime::from_timestamp_micros(micros).map(|at| timestamp(at.naive_utc(), zone.is_some()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
            Some(timestamp(DateTime::from_timestamp_nanos(nanos).naive_utc(), zone.is_some()))
        }
        other => return Err(other.clone()),
    };
    // Only a number far outside every calendar has no text.
    out.push_str(shown.as_deref().unwrap_or("?"));
    Ok(())
}

fn show(out: &mut String, value: impl Display) {
    // Writing to a String does not fail.
    let _ = write!(out, "{value}");
}

/// As `LocalDateTime.toString` shows it; an instant as `Instant.toString` does.
fn timestamp(at: NaiveDateTime, instant: bool) -> String {
    format!("{}T{}{}", at.date(), time(at.time(), instant), if instant { "Z" } else { "" })
}

/// As `LocalTime.toString` shows it: seconds only if there are any (or `seconds` asks for them), fractions in groups
/// of three digits.
fn time(at: NaiveTime, seconds: bool) -> String {
    let (nanos, mut text) = (at.nanosecond(), at.format("%H:%M").to_string());
    if seconds || at.second() > 0 || nanos > 0 {
        show(&mut text, at.format(":%S"));
    }
    match nanos {
        0 => {}
        _ if nanos % 1_000_000 == 0 => show(&mut text, at.format("%.3f")),
        _ if nanos % 1000 == 0 => show(&mut text, at.format("%.6f")),
        _ => show(&mut text, at.format("%.9f")),
    }
    text
}

/// As `Double.toString` and `Float.toString` show it: with an exponent from 1e7 and below 1e-3.
fn float(out: &mut String, magnitude: f64, plain: String, scientific: String) {
    if magnitude.is_nan() {
        out.push_str("NaN");
    } else if magnitude.is_infinite() {
        out.push_str(if plain.starts_with('-') { "-Infinity" } else { "Infinity" });
    } else if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        out.push_str(&plain);
    } else {
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        show(out, format_args!("{digits}{point}E{exponent}"));
    }
}

/// As `BigDecimal.toString` shows it: with an exponent if more than five zeros would follow the point.
fn decimal(out: &mut String, unscaled: i128, scale: i32) {
    let digits = unscaled.unsigned_abs().to_string();
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let exponent = length - 1 - scale;
    if unscaled < 0 {
        out.push('-');
    }
    if scale == 0 {
        out.push_str(&digits);
    } else if exponent >= -6 {
        let padded = format!("{digits:0>width$}", width = usize::try_from(scale + 1).unwrap_or(1));
        let (whole, fraction) = padded.split_at(padded.len() - usize::try_from(scale).unwrap_or(0));
        show(out, format_args!("{whole}.{fraction}"));
    } else {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        show(out, format_args!("{first}{point}{rest}E{exponent:+}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
        ListArray, StringArray, StructArray, Time32MillisecondArray, TimestampMicrosecondArray,
        TimestampNanosecondArray,
        builder::{Int32Builder, MapBuilder, StringBuilder},
    };
    use arrow_schema::Field;

    use super::*;

    fn shown(array: impl Array + 'static) -> Vec<String> {
        let array: ArrayRef = Arc::new(array);
        let rows = RecordBatch::try_from_iter([("c", Arc::clone(&array))]).unwrap();
        let shown = (0..array.len()).map(|row| {
            let mut out = String::new();
            line(&rows, row, &mut out).unwrap();
            out.strip_prefix("+I[").unwrap().strip_suffix("]\n").unwrap().to_owned()
        });
        shown.collect()
    }

    #[test]
    fn simple_values_are_bare() {
        assert_eq!(shown(StringArray::from(vec![Some("a \"b\""), Some(""), None])), ["a \"b\"", "", "null"]);
        assert_eq!(shown(BooleanArray::from(vec![true, false])), ["true", "false"]);
        assert_eq!(shown(Int8Array::from(vec![-128, 5])), ["-128", "5"]);
        assert_eq!(shown(BinaryArray::from(vec![&[1u8, 2, 255][..], &[]])), ["[1, 2, -1]", "[]"]);
    }

    #[test]
    fn floats_look_as_in_java() {
        let doubles =
            vec![0.0, -0.0, 1.0, 100.5, 9_999_999.0, 1e7, 1.25e10, 0.001, 0.00012, f64::NAN, f64::NEG_INFINITY];
        let texts =
            ["0.0", "-0.0", "1.0", "100.5", "9999999.0", "1.0E7", "1.25E10", "0.001", "1.2E-4", "NaN", "-Infinity"];
        assert_eq!(shown(Float64Array::from(doubles)), texts);
        assert_eq!(shown(Float32Array::from(vec![0.1, 1e10, -3.5])), ["0.1", "1.0E10", "-3.5"]);
    }

    #[test]
    fn decimals_look_as_in_java() {
        let with_scale = |scale, values: Vec<i128>| {
            shown(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap())
        };
        assert_eq!(with_scale(2, vec![12345, -5, 0, 100]), ["123.45", "-0.05", "0.00", "1.00"]);
        assert_eq!(with_scale(0, vec![7, -7]), ["7", "-7"]);
        assert_eq!(with_scale(9, vec![27, 1000, -12]), ["2.7E-8", "0.000001000", "-1.2E-8"]);
        assert_eq!(with_scale(10, vec![0]), ["0E-10"]);
    }

    #[test]
    fn times_look_as_in_java() {
        let day = 1_768_435_200_000_000; // 2026-01-15
        let at = |micros: i64| day + 30_600_000_000 + micros;
        let stamps = vec![at(0), at(1_000_000), at(123_000), at(123_456)];
        assert_eq!(
            shown(TimestampMicrosecondArray::from(stamps.clone())),
            ["2026-01-15T08:30", "2026-01-15T08:30:01", "2026-01-15T08:30:00.123", "2026-01-15T08:30:00.123456"]
        );
        assert_eq!(
            shown(TimestampMicrosecondArray::from(stamps).with_timezone("UTC")),
            ["2026-01-15T08:30:00Z", "2026-01-15T08:30:01Z", "2026-01-15T08:30:00.123Z", "2026-01-15T08:30:00.123456Z"]
        );
        assert_eq!(shown(TimestampNanosecondArray::from(vec![1])), ["1970-01-01T00:00:00.000000001"]);
        assert_eq!(shown(Date32Array::from(vec![0, -1])), ["1970-01-01", "1969-12-31"]);
        let times = vec![0, 30_600_000, 30_601_000, 30_600_120];
        assert_eq!(shown(Time32MillisecondArray::from(times)), ["00:00", "08:30", "08:30:01", "08:30:00.120"]);
    }

    #[test]
    fn nested_values_are_shown_inside() {
        let items = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None, Some(3)]), None]);
        assert_eq!(shown(items), ["[1, null, 3]", "null"]);
        let a = Arc::new(StringArray::from(vec![Some("x")])) as ArrayRef;
        let b = Arc::new(Int8Array::from(vec![None])) as ArrayRef;
        let field = |name, ty| Arc::new(Field::new(name, ty, true));
        let row = StructArray::from(vec![(field("a", DataType::Utf8), a), (field("b", DataType::Int8), b)]);
        assert_eq!(shown(row), ["+I[x, null]"]);
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        map.keys().append_value("k");
        map.values().append_value(1);
        map.keys().append_value("l");
        map.values().append_null();
        map.append(true).unwrap();
        assert_eq!(shown(map.finish()), ["{k=1, l=null}"]);
    }
}
