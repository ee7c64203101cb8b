//! Digests and encodings of bytes as texts.

use std::{borrow::Cow, fmt::Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::Digest;

use super::{
    Function, Given,
    Param::{Long, Text},
    STRING, function, texts,
};
use crate::{
    model::LogicalType,
    query::{
        lower::Planned,
        types::{Family, is_integer},
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    function("MD5", 1..=1, |given| digest(given, 32, |bytes| hex(&md5::Md5::digest(bytes), false))),
    function("SHA1", 1..=1, |given| digest(given, 40, |bytes| hex(&sha1::Sha1::digest(bytes), false))),
    function("SHA224", 1..=1, |given| digest(given, 56, |bytes| hex(&sha2::Sha224::digest(bytes), false))),
    function("SHA256", 1..=1, |given| digest(given, 64, |bytes| hex(&sha2::Sha256::digest(bytes), false))),
    function("SHA384", 1..=1, |given| digest(given, 96, |bytes| hex(&sha2::Sha384::digest(bytes), false))),
    function("SHA512", 1..=1, |given| digest(given, 128, |bytes| hex(&sha2::Sha512::digest(bytes), false))),
    function("SHA2", 2..=2, |given| {
        let kernel = texts(|row| {
            let bytes = row.text(0).as_bytes();
            Ok(Some(Cow::Owned(match row.long(1) {
                224 => hex(&sha2::Sha224::digest(bytes), false),
                256 => hex(&sha2::Sha256::digest(bytes), false),
                384 => hex(&sha2::Sha384::digest(bytes), false),
                512 => hex(&sha2::Sha512::digest(bytes), false),
                other => return Err(format!("there is no SHA2 of {other} bits: expected 224, 256, 384 or 512")),
            })))
        });
        let given = given.with(&[Text, Long])?;
        let known = given.arg(1).is_some_and(|bits| matches!(bits.constant_long(), Some(224 | 256 | 384 | 512)));
        let made = given.strict(LogicalType::VarChar(Some(128)), kernel);
        Ok(if known { made } else { made.may_fail() })
    }),
    function("TO_BASE64", 1..=1, |given| {
        Ok(given.with(&[Text])?.strict(STRING, texts(|row| Ok(Some(STANDARD.encode(row.text(0)).into())))))
    }),
    function("FROM_BASE64", 1..=1, |given| {
        let kernel = texts(|row| {
            let bytes = STANDARD.decode(row.text(0)).map_err(|_| "the text is no base64".to_owned())?;
            Ok(Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())))
        });
        Ok(given.with(&[Text])?.strict(STRING, kernel).may_fail())
    }),
    function("HEX", 1..=1, |given| {
        if given.family(0) == Some(Family::Number) {
            return Ok(given.with(&[Long])?.strict(STRING, texts(|row| Ok(Some(format!("{:X}", row.long(0)).into())))));
        }
        Ok(given.with(&[Text])?.strict(STRING, texts(|row| Ok(Some(hex(row.text(0).as_bytes(), true).into())))))
    }),
    function("BIN", 1..=1, |given| {
        let given = given.with(&[Long])?;
        debug_assert!(given.arg(0).and_then(|arg| arg.logical()).is_none_or(is_integer));
        Ok(given.strict(STRING, texts(|row| Ok(Some(format!("{:b}", row.long(0)).into())))))
    }),
];

fn digest(given: Given<'_>, length: u32, of: fn(&[u8]) -> String) -> Planned {
    Ok(given
        .with(&[Text])?
        .strict(LogicalType::Char(length), texts(move |row| Ok(Some(of(row.text(0).as_bytes()).into())))))
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let mut made = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let written = if upper { write!(made, "{byte:02X}") } else { write!(made, "{byte:02x}") };
        debug_assert!(written.is_ok(), "a String takes everything");
    }
    made
}
