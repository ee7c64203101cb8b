//! Whether a body is base64. Nothing on the wire tells.

use base64_simd::STANDARD;
use bytes::Bytes;

use crate::model::Body;

/// The option `bodyEncoding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    /// Decode what is base64 all through *and* looks like the format once decoded.
    Auto(Expected),
    /// Every body is base64; one that is not is broken.
    Base64,
    /// Bodies are taken as they are.
    Plain,
}

/// What a decoded body must look like for `auto` to believe that it was encoded.
///
/// A guess can be wrong only for a plain body that is base64 all through: letters, digits, `+` and `/`, a multiple
/// of four long. No JSON object, array or string is. (Plain `1234`, `true` and `null` are, but decode to bytes that
/// are no JSON.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// UTF-8 whose first character that is not blank can begin a JSON value, or a topic's envelope in XML.
    Json,
    /// UTF-8 without control characters other than tab, line ends and the delimiter U+0001. Of random four-letter words one in a few
    /// dozen passes, and of longer ones next to none.
    Text,
    /// Begins with these bytes.
    Magic(&'static [u8]),
    /// Anything: XML cannot carry binary bodies in any other way.
    Binary,
}

impl Expected {
    /// What bodies of a format look like.
    pub(super) fn of_format(format: &str) -> Self {
        match format {
            "json" => Self::Json,
            "parquet" => Self::Magic(b"PAR1"),
            "orc" => Self::Magic(b"ORC"),
            "avro" => Self::Binary,
            _ => Self::Text,
        }
    }

    fn matches(self, decoded: &[u8]) -> bool {
        match self {
            Self::Json => simdutf8::basic::from_utf8(decoded).is_ok_and(|text| {
                let first = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).bytes().next();
                first.is_some_and(|b| b.is_ascii_digit() || b"{[\"-tfnNI<".contains(&b))
            }),
            Self::Text => simdutf8::basic::from_utf8(decoded)
                .is_ok_and(|text| text.chars().all(|c| !c.is_control() || matches!(c, '\u{1}' | '\t' | '\r' | '\n'))),
            Self::Magic(magic) => decoded.starts_with(magic),
            Self::Binary => true,
        }
    }
}

/// The body as the format gets it.
pub(super) fn decode(encoding: BodyEncoding, text: String) -> Body {
    match encoding {
        BodyEncoding::Plain => Body::Bytes(Bytes::from(text)),
        BodyEncoding::Auto(expected) => match STANDARD.decode_to_vec(&text) {
            Ok(decoded) if !decoded.is_empty() && expected.matches(&decoded) => Body::Bytes(Bytes::from(decoded)),
            _ => Body::Bytes(Bytes::from(text)),
        },
        BodyEncoding::Base64 => match STANDARD.decode_to_vec(&text) {
            Ok(decoded) => Body::Bytes(Bytes::from(decoded)),
            Err(_) => decode_wrapped(text),
        },
    }
}

/// Some encoders break lines, which is not part of the data.
fn decode_wrapped(text: String) -> Body {
    let joined: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    match STANDARD.decode_to_vec(joined) {
        Ok(decoded) => Body::Bytes(Bytes::from(decoded)),
        Err(error) => Body::Broken {
            reason: format!("the body is not base64 (bodyEncoding: base64): {error}"),
            received: Bytes::from(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(format: &str, text: &str) -> Vec<u8> {
        match decode(BodyEncoding::Auto(Expected::of_format(format)), text.into()) {
            Body::Bytes(bytes) => bytes.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn auto_decodes_encoded_json_and_leaves_plain_json_alone() {
        for json in ["{}", " [1]", "\"x\"", "-1", "12", "true", "null", "{\"a\":\"世\"}"] {
            assert_eq!(auto("json", &STANDARD.encode_to_string(json)), json.as_bytes(), "{json}");
            assert_eq!(auto("json", json), json.as_bytes(), "{json}");
        }
        for plain in ["1234", "12345678", "true", "null", "abcd", "", "e30", "e30=\n", "e31="] {
            assert_eq!(auto("json", plain), plain.as_bytes(), "{plain}");
        }
    }

    #[test]
    fn auto_decodes_text_only_to_text_and_binary_formats_by_their_first_bytes() {
        assert_eq!(auto("csv", "YSxiCg=="), b"a,b\n");
        assert_eq!(auto("csv", &STANDARD.encode_to_string("a\u{1}b")), b"a\x01b");
        assert_eq!(auto("csv", "abcd"), b"abcd");
        assert_eq!(auto("raw", "AAEC"), b"AAEC");
        // The documented limit of guessing.
        assert_eq!(auto("raw", "bGln"), b"lig");
        assert_eq!(auto("parquet", &STANDARD.encode_to_string("PAR1x")), b"PAR1x");
        assert_eq!(auto("orc", &STANDARD.encode_to_string("PAR1x")), STANDARD.encode_to_string("PAR1x").as_bytes());
        assert_eq!(auto("avro", "AAEC"), [0, 1, 2]);
    }

    #[test]
    fn base64_refuses_what_is_not_and_plain_takes_everything() {
        assert!(matches!(decode(BodyEncoding::Base64, "{}".into()), Body::Broken { .. }));
        assert!(matches!(decode(BodyEncoding::Base64, "YW\nI=\n".into()), Body::Bytes(b) if b == "ab"));
        assert!(matches!(decode(BodyEncoding::Plain, "YWI=".into()), Body::Bytes(b) if b == "YWI="));
    }
}
