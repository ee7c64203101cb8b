//! Receipt handles in the shape of the live service: `{MessageId}-{base64 of a text}`.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::convert::id_text;
use crate::emulator::message::{Handle, Receipt};

/// Writes a handle.
pub(super) fn write(receipt: &Receipt) -> String {
    // Seven fields and an opaque end, as recorded; the meaning of those after the third is not known.
    let Receipt { handle: Handle { number, serial }, issued_ms, valid_ms, dequeue_count, .. } = receipt;
    let text = format!("{dequeue_count} {issued_ms} {valid_ms} {number} 0 emulator 0 {serial}|~?>");
    format!("{}-{}", id_text(receipt.id), STANDARD.encode(text))
}

/// Reads a handle, without knowing whether it is still valid. One that looks like a handle but is none of ours is
/// [`Handle::NONE`]; `None`: it cannot be a handle of this service at all.
pub(super) fn read(text: &str) -> Option<Handle> {
    let (id, encoded) = text.split_once('-')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-');
    if id.is_empty() || encoded.is_empty() || !text.bytes().all(plain) {
        return None;
    }
    Some(decode(encoded).unwrap_or(Handle::NONE))
}

fn decode(encoded: &str) -> Option<Handle> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let mut fields = text.split(' ').skip(3);
    let number = fields.next()?.parse().ok()?;
    let serial = fields.nth(3)?.split('|').next()?.parse().ok()?;
    Some(Handle { number, serial })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_reads_back_as_written_and_others_are_told_apart() {
        let handle = Handle { number: 7, serial: 9 };
        let receipt = Receipt { id: 0xAB, handle, issued_ms: 1, valid_ms: 30_000, dequeue_count: 2, next_visible_ms: 0 };
        let written = write(&receipt);
        assert!(written.starts_with("000000000000000000000000000000AB-"), "{written}");
        assert_eq!(read(&written), Some(handle));
        for malformed in ["", "bogus", "-", "a-", "-b", "a-b c", "a-b\u{e4}"] {
            assert_eq!(read(malformed), None, "{malformed}");
        }
        for foreign in ["bogus-handle", "AAAA-bogus==", "AB-YWJj"] {
            assert_eq!(read(foreign), Some(Handle::NONE), "{foreign}");
        }
    }
}
