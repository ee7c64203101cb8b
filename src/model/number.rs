//! Numbers as Java reads and writes them.

/// Blanks as `String.trim` of Java knows them: everything up to and including U+0020.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|character| character <= ' ')
}

/// A JSON number as an integer: fractions are cut off toward zero. `None` if it is out of range.
pub fn truncated(number: &str) -> Option<i64> {
    if let Ok(value) = number.parse() {
        return Some(value);
    }
    if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return None;
    }
    let value = number.parse::<f64>().ok()?;
    // 2^63, the first value too large; its negative is the least that fits.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&value).then_some(value as i64)
}

/// A JSON number as an INT. Bounds are those of Jackson: the value itself must be within the range, not only what
/// is left of it after its fraction has been cut off.
pub fn truncated_int(number: &str) -> Option<i32> {
    if let Ok(value) = number.parse() {
        return Some(value);
    }
    let value = number.parse::<f64>().ok()?;
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value).then_some(value as i32)
}

/// A text that Java's `Double.parseDouble` accepts, in the form Rust reads: blanks around it and a final `d` or
/// `f` are allowed, `inf` and the like are not. Hexadecimal floats, which Java also reads, are refused.
pub fn java_float(text: &str) -> Option<&str> {
    let text = trim(text);
    match text.strip_prefix(['+', '-']).unwrap_or(text) {
        // Rust reads these with a sign as well.
        "NaN" | "Infinity" => return Some(text),
        _ => {}
    }
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)).then_some(text)
}

/// What a text is as a DECIMAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decimal {
    /// The unscaled value.
    Value(i128),
    /// More digits before the point than the type has; Flink makes it null.
    TooLarge,
    /// Not a number.
    Invalid,
}

/// Reads a decimal of any length and rounds it half up (away from zero) to the scale.
pub fn decimal(text: &str, precision: u8, scale: u8) -> Decimal {
    match short_decimal(text.as_bytes(), scale) {
        Some(value) if value.unsigned_abs() < 10_u64.pow(u32::from(precision.min(18))) => {
            return Decimal::Value(i128::from(value));
        }
        _ => {}
    }
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or("")),
        Some(b'+') => (false, text.get(1..).unwrap_or("")),
        _ => (false, text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => {
            let (mantissa, exponent) = unsigned.split_at(at);
            let Some(exponent) = exponent_of(exponent.get(1..).unwrap_or("")) else { return Decimal::Invalid };
            (mantissa, exponent)
        }
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if whole.len() + fraction.len() == 0 || !digits().all(|byte| byte.is_ascii_digit()) {
        return Decimal::Invalid;
    }
    // Where the wanted digits end, counted from the first digit.
    let end = (whole.len() as i64).saturating_add(exponent).saturating_add(i64::from(scale));
    let Some(magnitude) = rounded(digits(), end) else { return Decimal::TooLarge };
    match 10_i128.checked_pow(u32::from(precision)) {
        Some(limit) if magnitude < limit => Decimal::Value(if negative { -magnitude } else { magnitude }),
        _ => Decimal::TooLarge,
    }
}

/// A finite number as a DECIMAL through its shortest digits, as `BigDecimal.valueOf` of Java does, rounded half up;
/// `None` where the precision is too small, or it is not finite.
pub fn decimal_of_double(value: f64, precision: u8, scale: u8) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    match decimal(ryu::Buffer::new().format_finite(value), precision, scale) {
        Decimal::Value(value) => Some(value),
        _ => None,
    }
}

/// The DOUBLE next to a DECIMAL of this unscaled value.
pub fn decimal_to_double(value: i128, scale: u8) -> f64 {
    // Both are exact up to 2^53 and 10^22, so their quotient is rounded once.
    if value.unsigned_abs() < 1 << 53 && scale <= 22 {
        return value as f64 / 10_f64.powi(scale.into());
    }
    format!("{value}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// The FLOAT next to a DECIMAL of this unscaled value: rounding twice would be another number.
pub fn decimal_to_float(value: i128, scale: u8) -> f32 {
    format!("{value}e-{scale}").parse().unwrap_or(f32::NAN)
}

/// The common case: at most 18 digits at the column's scale, no exponent, nothing to round.
fn short_decimal(text: &[u8], scale: u8) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let fraction = digits.iter().position(|byte| *byte == b'.').map_or(0, |point| digits.len() - point - 1);
    let missing = usize::from(scale).checked_sub(fraction)?;
    let (whole, fraction) = digits.split_at(digits.len() - fraction);
    let whole = whole.strip_suffix(b".").unwrap_or(whole);
    if whole.is_empty() || whole.len() + usize::from(scale) > 18 {
        return None;
    }
    let mut value = 0;
    for byte in whole.iter().chain(fraction) {
        value = value * 10 + i64::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    value *= 10_i64.pow(missing as u32);
    Some(if negative { -value } else { value })
}

/// The first `end` of the digits as a number, rounded half up by the next, or filled up with zeros. `None` if that
/// has more than 38 digits.
fn rounded(digits: impl Iterator<Item = u8>, end: i64) -> Option<i128> {
    const MOST: i128 = 10_i128.pow(37);
    let mut value = 0_i128;
    let mut left = end;
    for digit in digits {
        if left <= 0 {
            let up = left == 0 && digit >= b'5';
            return Some(value + i128::from(up));
        }
        if value >= MOST {
            return None;
        }
        value = value * 10 + i128::from(digit - b'0');
        left -= 1;
    }
    if value == 0 || left <= 0 {
        return Some(value);
    }
    10_i128.checked_pow(u32::try_from(left).ok()?)?.checked_mul(value)
}

/// An exponent; one that does not fit is as good as endless.
fn exponent_of(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    Some(if negative { -value } else { value })
}

/// Writes a DOUBLE as `Double.toString` does (the shortest digits that read back the same); what is not finite as
/// a quoted word, as Jackson does.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    match non_finite(value) {
        Some(word) => out.extend_from_slice(word),
        None => write_java(ryu::Buffer::new().format_finite(value), value.abs(), out),
    }
}

/// The same for a FLOAT.
pub fn write_f32(value: f32, out: &mut Vec<u8>) {
    match non_finite(f64::from(value)) {
        Some(word) => out.extend_from_slice(word),
        None => write_java(ryu::Buffer::new().format_finite(value), f64::from(value.abs()), out),
    }
}

fn non_finite(value: f64) -> Option<&'static [u8]> {
    if value.is_finite() {
        None
    } else if value.is_nan() {
        Some(b"\"NaN\"")
    } else if value > 0.0 {
        Some(b"\"Infinity\"")
    } else {
        Some(b"\"-Infinity\"")
    }
}

/// Java writes magnitudes from 10^-3 to below 10^7 plainly, as ryu does there, and others with an exponent.
fn write_java(shortest: &str, magnitude: f64, out: &mut Vec<u8>) {
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        out.extend_from_slice(shortest.as_bytes());
        return;
    }
    let unsigned = match shortest.strip_prefix('-') {
        Some(unsigned) => {
            out.push(b'-');
            unsigned
        }
        None => shortest,
    };
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let leading = all.iter().take_while(|digit| **digit == b'0').count();
    let trailing = all.iter().rev().take_while(|digit| **digit == b'0').count();
    let digits = all.get(leading..all.len() - trailing).unwrap_or(&[]);
    let point = whole.len() as i64 + exponent.parse::<i64>().unwrap_or(0);
    let (first, rest) = digits.split_at(1.min(digits.len()));
    out.extend_from_slice(first);
    out.push(b'.');
    out.extend_from_slice(if rest.is_empty() { b"0" } else { rest });
    out.push(b'E');
    out.extend_from_slice(itoa::Buffer::new().format(point - leading as i64 - 1).as_bytes());
}

/// Writes a DECIMAL without trailing zeros; unless `plain`, with an exponent where Java's `BigDecimal.toString`
/// uses one.
pub fn write_decimal(unscaled: i128, scale: i8, plain: bool, out: &mut Vec<u8>) {
    if unscaled == 0 {
        out.push(b'0');
        return;
    }
    if unscaled < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let all = buffer.format(unscaled.unsigned_abs());
    let digits = all.trim_end_matches('0');
    let scale = i64::from(scale) - (all.len() - digits.len()) as i64;
    let exponent = digits.len() as i64 - 1 - scale;
    if plain || (scale >= 0 && exponent >= -6) {
        write_plain(digits, scale, out);
        return;
    }
    let (first, rest) = digits.split_at(1);
    out.extend_from_slice(first.as_bytes());
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest.as_bytes());
    }
    out.extend_from_slice(if exponent < 0 { b"E-" } else { b"E+" });
    out.extend_from_slice(itoa::Buffer::new().format(exponent.unsigned_abs()).as_bytes());
}

fn write_plain(digits: &str, scale: i64, out: &mut Vec<u8>) {
    let zeros = |count: i64| usize::try_from(count).unwrap_or(0);
    let whole = digits.len() as i64 - scale;
    if scale <= 0 {
        out.extend_from_slice(digits.as_bytes());
        out.resize(out.len() + zeros(-scale), b'0');
    } else if whole <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + zeros(-whole), b'0');
        out.extend_from_slice(digits.as_bytes());
    } else {
        let (before, after) = digits.split_at(zeros(whole));
        out.extend_from_slice(before.as_bytes());
        out.push(b'.');
        out.extend_from_slice(after.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_are_rounded_half_up_and_too_large_ones_told_apart() {
        use Decimal::{Invalid, TooLarge, Value};
        for (text, precision, scale, expected) in [
            ("1.005", 10, 2, Value(101)),
            ("1.015", 10, 2, Value(102)),
            ("-1.005", 10, 2, Value(-101)),
            ("1.0049", 10, 2, Value(100)),
            ("1e2", 10, 2, Value(10_000)),
            ("15e-1", 10, 0, Value(2)),
            ("0.5", 1, 0, Value(1)),
            ("0.05", 1, 0, Value(0)),
            ("9.5", 1, 0, TooLarge),
            ("99.99", 4, 2, Value(9999)),
            ("99.995", 4, 2, TooLarge),
            ("1e400", 38, 0, TooLarge),
            ("0e400", 38, 0, Value(0)),
            ("1e-400", 38, 10, Value(0)),
            ("1e99999999999999999999", 38, 0, TooLarge),
            ("1e-99999999999999999999", 38, 0, Value(0)),
            ("99999999999999999999999999999999999999", 38, 0, Value(10_i128.pow(38) - 1)),
            ("100000000000000000000000000000000000000", 38, 0, TooLarge),
            ("0000000000000000000000000000000000000000000001.5", 38, 1, Value(15)),
            (".5", 3, 1, Value(5)),
            ("5.", 3, 1, Value(50)),
            ("+5", 3, 0, Value(5)),
            ("", 3, 0, Invalid),
            (".", 3, 0, Invalid),
            ("-", 3, 0, Invalid),
            (" 1", 3, 0, Invalid),
            ("1e", 3, 0, Invalid),
            ("true", 3, 0, Invalid),
            ("--1", 3, 0, Invalid),
        ] {
            assert_eq!(decimal(text, precision, scale), expected, "{text} as DECIMAL({precision}, {scale})");
        }
    }

    #[test]
    fn decimals_agree_with_bigdecimal() {
        use bigdecimal::{BigDecimal, RoundingMode};
        use std::str::FromStr;
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let digits: String = (0..random.usize(1..25)).map(|_| random.digit(10)).collect();
            let point = random.usize(0..=digits.len());
            let (whole, fraction) = digits.split_at(point);
            let sign = if random.bool() { "-" } else { "" };
            let text = format!("{sign}{whole}.{fraction}e{}", random.i32(-12..12));
            let (precision, scale) = (random.u8(1..=38), random.u8(0..10));
            let exact = BigDecimal::from_str(&text).unwrap().with_scale_round(i64::from(scale), RoundingMode::HalfUp);
            let unscaled = i128::from_str(&exact.as_bigint_and_exponent().0.to_string()).ok();
            let expected = match unscaled.filter(|value| value.abs() < 10_i128.pow(u32::from(precision))) {
                Some(value) => Decimal::Value(value),
                None => Decimal::TooLarge,
            };
            assert_eq!(decimal(&text, precision, scale), expected, "{text} as ({precision}, {scale})");
        }
    }

    #[test]
    fn decimals_are_written_as_bigdecimal_writes_them() {
        for (unscaled, scale, exponent, plain) in [
            (150, 2, "1.5", "1.5"),
            (27, 9, "2.7E-8", "0.000000027"),
            (1, 6, "0.000001", "0.000001"),
            (1, 7, "1E-7", "0.0000001"),
            (100, 0, "1E+2", "100"),
            (120, 0, "1.2E+2", "120"),
            (10_000, 2, "1E+2", "100"),
            (12_345, 2, "123.45", "123.45"),
            (-5, 1, "-0.5", "-0.5"),
            (0, 5, "0", "0"),
        ] {
            assert_eq!(written(|out| write_decimal(unscaled, scale, false, out)), exponent);
            assert_eq!(written(|out| write_decimal(unscaled, scale, true, out)), plain);
        }
    }

    #[test]
    fn floats_are_written_as_java_writes_them() {
        for (value, expected) in [
            (100.0, "100.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e10, "1.0E10"),
            (-12_345_678.9, "-1.23456789E7"),
            (1e300, "1.0E300"),
            (5e-324, "5.0E-324"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157E308"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(written(|out| write_f64(value, out)), expected);
        }
        assert_eq!(written(|out| write_f32(1.1, out)), "1.1");
        assert_eq!(written(|out| write_f32(3.4e38, out)), "3.4E38");
    }

    #[test]
    fn integers_are_cut_toward_zero_within_their_range() {
        for (text, expected) in [
            ("1.7", Some(1)),
            ("-1.9", Some(-1)),
            ("1e3", Some(1000)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("9223372036854775808.0", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("1e400", None),
        ] {
            assert_eq!(truncated(text), expected, "{text}");
        }
        assert_eq!(truncated_int("2147483647"), Some(i32::MAX));
        assert_eq!(truncated_int("2147483648"), None);
        assert_eq!(truncated_int("112.9"), Some(112));
        assert_eq!(truncated_int("-0"), Some(0));
    }
}
