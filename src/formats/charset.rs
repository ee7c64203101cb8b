//! Texts in other encodings than UTF-8.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Names to suggest for a misspelt one.
pub(super) const NAMES: [&str; 16] = [
    "UTF-8",
    "UTF-16",
    "UTF-16BE",
    "UTF-16LE",
    "US-ASCII",
    "ISO-8859-1",
    "ISO-8859-15",
    "windows-1252",
    "GBK",
    "GB2312",
    "GB18030",
    "Big5",
    "Shift_JIS",
    "EUC-JP",
    "EUC-KR",
    "KOI8-R",
];

/// An encoding of texts, under the meaning that Java gives to its name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Charset {
    Utf8,
    Ascii,
    Latin1,
    /// The byte order is told by a mark at the beginning; without one it is big-endian.
    Utf16,
    Utf16Be,
    Utf16Le,
    Other(&'static Encoding),
}

impl Charset {
    /// The encoding of this name, in any case; `None` if there is none.
    ///
    /// The Encoding Standard takes `ISO-8859-1` and `US-ASCII` for windows-1252 and `UTF-16` for little-endian, as
    /// browsers do. Those are Java's here.
    pub(super) fn find(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => Self::Utf8,
            "us-ascii" | "ascii" => Self::Ascii,
            "iso-8859-1" | "iso8859-1" | "iso8859_1" | "latin1" => Self::Latin1,
            "utf-16" | "utf16" => Self::Utf16,
            "utf-16be" => Self::Utf16Be,
            "utf-16le" => Self::Utf16Le,
            lower => {
                let encoding = Encoding::for_label_no_replacement(lower.as_bytes())?;
                let others_meaning = [UTF_8, UTF_16BE, UTF_16LE, REPLACEMENT, X_USER_DEFINED].contains(&encoding)
                    || (encoding == WINDOWS_1252 && !matches!(lower, "windows-1252" | "cp1252"));
                Self::Other(Some(encoding).filter(|_| !others_meaning)?)
            }
        })
    }

    /// The text; what is none in this encoding becomes U+FFFD.
    pub(super) fn decode<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        let other = |encoding: &'static Encoding, bytes: &'a [u8]| encoding.decode_without_bom_handling(bytes).0;
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes),
            Self::Ascii => match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => Cow::Borrowed(text),
                _ => bytes
                    .iter()
                    .map(|byte| if byte.is_ascii() { char::from(*byte) } else { char::REPLACEMENT_CHARACTER })
                    .collect(),
            },
            Self::Latin1 => encoding_rs::mem::decode_latin1(bytes),
            Self::Utf16 => match bytes {
                [0xff, 0xfe, rest @ ..] => other(UTF_16LE, rest),
                [0xfe, 0xff, rest @ ..] => other(UTF_16BE, rest),
                _ => other(UTF_16BE, bytes),
            },
            Self::Utf16Be => other(UTF_16BE, bytes),
            Self::Utf16Le => other(UTF_16LE, bytes),
            Self::Other(encoding) => other(encoding, bytes),
        }
    }

    /// Appends the text in this encoding. The error is a character that it does not have; Java writes `?` for it.
    pub(super) fn encode(&self, text: &str, out: &mut Vec<u8>) -> Result<(), char> {
        let narrow = |most: u32, out: &mut Vec<u8>| {
            text.chars().try_for_each(|character| match u8::try_from(u32::from(character)) {
                Ok(byte) if u32::from(byte) <= most => {
                    out.push(byte);
                    Ok(())
                }
                _ => Err(character),
            })
        };
        match self {
            Self::Utf8 => out.extend_from_slice(text.as_bytes()),
            Self::Ascii => narrow(0x7f, out)?,
            Self::Latin1 => narrow(0xff, out)?,
            Self::Utf16 => {
                if !text.is_empty() {
                    out.extend_from_slice(&[0xfe, 0xff]);
                }
                out.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
            }
            Self::Utf16Be => out.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Self::Utf16Le => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Self::Other(encoding) => encode_other(encoding, text, out)?,
        }
        Ok(())
    }
}

fn encode_other(encoding: &'static Encoding, mut text: &str, out: &mut Vec<u8>) -> Result<(), char> {
    let mut encoder = encoding.new_encoder();
    loop {
        let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len() + 16);
        out.reserve(room);
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(text, out, true);
        match result {
            EncoderResult::InputEmpty => return Ok(()),
            EncoderResult::OutputFull => text = text.get(read..).unwrap_or(""),
            EncoderResult::Unmappable(character) => return Err(character),
        }
    }
}
