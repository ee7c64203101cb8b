//! Receipt handles in the shape of the live service: `{MessageId}-{base64 of a text}`.

use base64::{Engine, engine::general_purpose::STANDARD};

/// What a handle says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Handle {
    /// The message's number within its queue.
    pub number: u64,
    /// Which of the message's handles it is.
    pub serial: u64,
}

/// Why a handle says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It cannot be a handle of this service at all.
    Malformed,
    /// It looks like one, but is none of ours.
    Foreign,
}

/// Writes a handle. `serial` differs for every delivery and visibility change of a message.
pub(super) fn write(id: &str, handle: &Handle, received_ms: i64, visibility_ms: i64, count: u32) -> String {
    // Seven fields and an opaque end, as recorded; the meaning of those after the third is not known.
    let Handle { number, serial } = handle;
    let text = format!("{count} {received_ms} {visibility_ms} {number} 0 emulator 0 {serial}|~?>");
    format!("{id}-{}", STANDARD.encode(text))
}

/// Reads a handle, without knowing whether it is still valid.
pub(super) fn read(handle: &str) -> Result<(&str, Handle), Unreadable> {
    let (id, encoded) = handle.split_once('-').ok_or(Unreadable::Malformed)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-');
    if id.is_empty() || encoded.is_empty() || !handle.bytes().all(plain) {
        return Err(Unreadable::Malformed);
    }
    let text = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or(Unreadable::Foreign)?;
    let mut fields = text.split(' ').skip(3);
    let number = fields.next().and_then(|field| field.parse().ok());
    let serial = fields.nth(3).and_then(|field| field.split('|').next()).and_then(|field| field.parse().ok());
    match (number, serial) {
        (Some(number), Some(serial)) => Ok((id, Handle { number, serial })),
        _ => Err(Unreadable::Foreign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_reads_back_as_written_and_others_are_told_apart() {
        let written = write("AB", &Handle { number: 7, serial: 9 }, 1, 30_000, 2);
        assert_eq!(read(&written), Ok(("AB", Handle { number: 7, serial: 9 })));
        for malformed in ["", "bogus", "-", "a-", "-b", "a-b c", "a-b\u{e4}"] {
            assert_eq!(read(malformed), Err(Unreadable::Malformed), "{malformed}");
        }
        for foreign in ["bogus-handle", "AAAA-bogus==", "AB-YWJj"] {
            assert_eq!(read(foreign), Err(Unreadable::Foreign), "{foreign}");
        }
    }
}
