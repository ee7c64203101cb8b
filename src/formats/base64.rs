//! Bytes as text, the way Jackson reads and writes them.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Padding is mandatory, bits after the last byte are not looked at.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The bytes that a text stands for, in place of what is in `out`; blanks between groups of four characters are
/// skipped. `None`: it is not base64.
pub(super) fn decode<'b>(content: &str, out: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    out.clear();
    if BASE64.decode_vec(content, out).is_err() {
        let units = || content.split(|character| character <= ' ');
        out.clear();
        (units().count() > 1 && units().all(|unit| unit.len() % 4 == 0)).then_some(())?;
        BASE64.decode_vec(units().collect::<String>(), out).ok()?;
    }
    Some(out)
}

/// Appends bytes as standard base64 with padding and without line breaks.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let room = out.get_mut(start..).unwrap_or(&mut []);
    BASE64.encode_slice(bytes, room).map(|_| ()).map_err(|error| error.to_string())
}
