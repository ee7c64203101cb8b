//! JSON text: string literals, compact form, escapes.

/// What a string literal (quotes included, known to be valid) stands for. Borrowed where nothing is escaped.
///
/// Half a surrogate pair becomes U+FFFD, since it stands for no character.
pub(super) fn unquote<'a>(literal: &'a str, scratch: &'a mut String) -> &'a str {
    let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or("");
    if !inner.as_bytes().contains(&b'\\') {
        return inner;
    }
    scratch.clear();
    unescape(inner, scratch);
    scratch
}

fn unescape(mut rest: &str, out: &mut String) {
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escape.chars();
        let character = match chars.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let (character, after) = unescape_unicode(chars.as_str());
                chars = after.chars();
                character
            }
            // A quote, a backslash or a slash stands for itself.
            Some(other) => other,
            None => break,
        };
        out.push(character);
        rest = chars.as_str();
    }
    out.push_str(rest);
}

/// The character whose `\u` has been read already, and what follows it.
fn unescape_unicode(text: &str) -> (char, &str) {
    let unit = |text: &str| text.get(..4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let (Some(first), Some(after)) = (unit(text), text.get(4..)) else {
        return (char::REPLACEMENT_CHARACTER, text);
    };
    if let Some(character) = char::from_u32(u32::from(first)) {
        return (character, after);
    }
    let second = after.strip_prefix("\\u").and_then(unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match (pair, after.get(6..)) {
        (Some(character), Some(after)) => (character, after),
        _ => (char::REPLACEMENT_CHARACTER, after),
    }
}

/// Appends a valid JSON value without the blanks between its tokens. Numbers keep their text, keys their order;
/// strings are escaped no more than they must be.
pub(super) fn compact(value: &str, out: &mut Vec<u8>) {
    let mut scratch = String::new();
    let mut rest = value;
    while let Some(at) = rest.find(['"', ' ', '\n', '\r', '\t']) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        if from.starts_with('"') {
            let (literal, after) = from.split_at(literal_length(from));
            write_string(unquote(literal, &mut scratch), out);
            rest = after;
        } else {
            rest = from.get(1..).unwrap_or("");
        }
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Length of the string literal at the beginning of a text, quotes included.
pub(super) fn literal_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The same document with the control characters inside its strings escaped; `None` if there are none.
///
/// Flink's reader accepts them as they are, the strict reader used here does not.
pub(super) fn escape_controls(document: &str) -> Option<String> {
    let mut out = String::new();
    let (mut inside, mut escaped, mut copied) = (false, false, 0);
    for (at, byte) in document.bytes().enumerate() {
        match byte {
            // After a backslash it is no escape of anything: left as it is, so that it stays an error.
            0..=0x1f if inside && !escaped => {
                out.push_str(document.get(copied..at)?);
                out.push_str(&format!("\\u{byte:04X}"));
                copied = at + 1;
            }
            _ if escaped => escaped = false,
            b'\\' => escaped = inside,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    (copied > 0).then(|| out + document.get(copied..).unwrap_or(""))
}

/// How each byte of a string is written: 0 as it is, `u` as `\u00XX`, another after a backslash.
static ESCAPES: [u8; 256] = escapes();

const fn escapes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = b'u';
        at += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
}

/// Writes a string literal as Jackson does: the short escapes, `\u001F` in upper case for other control
/// characters, everything else as it is.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut rest = text.as_bytes();
    out.push(b'"');
    while let Some((plain, from)) = next_escape(rest).and_then(|at| rest.split_at_checked(at))
        && let Some((byte, after)) = from.split_first()
    {
        out.extend_from_slice(plain);
        let escape = ESCAPES[usize::from(*byte)];
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            out.extend_from_slice(b"00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Where the next byte stands that must be escaped. Eight bytes at a time, for most texts have none.
fn next_escape(bytes: &[u8]) -> Option<usize> {
    let clean =
        bytes.as_chunks::<8>().0.iter().take_while(|chunk| !any_escape(u64::from_ne_bytes(**chunk))).count() * 8;
    let tail = bytes.get(clean..)?;
    tail.iter().position(|byte| ESCAPES[usize::from(*byte)] != 0).map(|at| clean + at)
}

/// Whether any of eight bytes is below U+0020, a quote or a backslash: a byte below `n` borrows from its top bit
/// when `n` is taken off.
fn any_escape(word: u64) -> bool {
    const EACH: u64 = u64::MAX / 255;
    let below = |word: u64, bound: u64| word.wrapping_sub(EACH * bound) & !word & (EACH * 0x80);
    let quote = word ^ (EACH * b'"' as u64);
    let backslash = word ^ (EACH * b'\\' as u64);
    below(word, 0x20) | below(quote, 1) | below(backslash, 1) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_literal_stands_for_its_characters() {
        for (literal, expected) in [
            (r#""plain""#, "plain"),
            (r#""""#, ""),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""caf\u00e9 \uD83D\uDE00!""#, "café 😀!"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ude00x""#, "\u{fffd}x"),
        ] {
            assert_eq!(unquote(literal, &mut String::new()), expected, "{literal}");
        }
    }

    #[test]
    fn a_string_is_escaped_as_jackson_escapes_it() {
        let mut out = Vec::new();
        write_string("a\"\\/\u{8}\u{c}\n\r\t\u{1f}\u{7f}é\u{0}", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u001F\u{7f}é\\u0000\"");
    }

    #[test]
    fn every_byte_is_found_at_every_place() {
        for byte in 0..0x80_u8 {
            for at in 0..20 {
                let mut text = "é".repeat(10).into_bytes();
                text.splice(at / 2 * 2..at / 2 * 2, [b'x', byte].into_iter().skip(at % 2));
                let expected = text.iter().position(|byte| *byte < 0x20 || b"\"\\".contains(byte));
                assert_eq!(next_escape(&text), expected, "{byte} near {at}");
            }
        }
    }

    #[test]
    fn compact_form_keeps_order_numbers_and_blanks_in_strings() {
        let mut out = Vec::new();
        compact("{ \"b\" : [ 1.50 , 1e2,\n true ], \"a \\\" \\u00e9\\/\" : { } }", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"b":[1.50,1e2,true],"a \" é/":{}}"#);
    }

    #[test]
    fn only_control_characters_in_strings_are_escaped() {
        assert_eq!(escape_controls("{\n\"a\":\t\"b\"}"), None);
        assert_eq!(escape_controls("\"\\\n\""), None, "a backslash before a line feed stays an error");
        assert_eq!(escape_controls("{\n\"a\":\"x\ny\\\"\u{1}\"}").unwrap(), "{\n\"a\":\"x\\u000Ay\\\"\\u0001\"}");
    }
}
