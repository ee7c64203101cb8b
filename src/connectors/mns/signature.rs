//! Request signature "V2" of MNS: HMAC-SHA1 over a text made from the request as it is sent.
//!
//! The client signs with it and the emulator checks with it.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use http::{HeaderMap, header};
use sha1::Sha1;

/// The text that is signed.
///
/// `target` is path and query exactly as on the request line: neither decoded nor re-ordered. Every header whose
/// name begins with `x-mns-` takes part, `Content-MD5`, `Content-Type` and `Date` have lines of their own
/// (empty when absent), `security-token` and all others are left out.
pub fn string_to_sign(method: &str, target: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(method.to_ascii_uppercase().as_bytes());
    for name in ["content-md5", header::CONTENT_TYPE.as_str(), header::DATE.as_str()] {
        text.push(b'\n');
        text.extend_from_slice(headers.get(name).map_or(b"".as_slice(), |value| value.as_bytes()));
    }
    text.push(b'\n');
    // Names of a HeaderMap are lower-case already.
    let mut signed: Vec<_> = headers.iter().filter(|(name, _)| name.as_str().starts_with("x-mns-")).collect();
    signed.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    for (name, value) in signed {
        text.extend_from_slice(name.as_str().as_bytes());
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text.extend_from_slice(target.as_bytes());
    text
}

fn mac(secret: &str, text: &[u8]) -> Option<Hmac<Sha1>> {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(text);
    Some(mac)
}

/// The signature of a text: base64 of its HMAC-SHA1 under the access key's secret.
pub fn sign(secret: &str, text: &[u8]) -> String {
    // HMAC takes keys of any length, so there always is one.
    mac(secret, text).map(|mac| STANDARD.encode(mac.finalize().into_bytes())).unwrap_or_default()
}

/// Whether `signature` (base64) is that of `text`. Takes the same time wherever the two differ.
pub fn verify(secret: &str, text: &[u8], signature: &str) -> bool {
    let Ok(given) = STANDARD.decode(signature) else { return false };
    mac(secret, text).is_some_and(|mac| mac.verify_slice(&given).is_ok())
}

/// The value of the `Authorization` header.
pub fn authorization(access_key_id: &str, secret: &str, text: &[u8]) -> String {
    format!("MNS {access_key_id}:{}", sign(secret, text))
}

/// Takes an `Authorization` header apart into access key id and signature.
pub fn parse_authorization(value: &str) -> Option<(&str, &str)> {
    value.strip_prefix("MNS ")?.split_once(':')
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    struct Vector {
        secret: &'static str,
        request: (&'static str, &'static str),
        headers: &'static [(&'static str, &'static str)],
        text: Option<&'static str>,
        signature: &'static str,
    }

    const DATE: (&str, &str) = ("Date", "Thu, 15 Jan 2026 08:30:00 GMT");
    const JAVA_DATE: (&str, &str) = ("Date", "Tue, 03 Jun 2025 11:23:48 GMT");
    const VERSION: (&str, &str) = ("x-mns-version", "2015-06-06");
    const XML: (&str, &str) = ("Content-Type", "text/xml;charset=UTF-8");

    /// Four computed with the Python SDK 1.3.0, the example of the documentation, two unit values of the Java SDK.
    const VECTORS: &[(&str, Vector)] = &[
        (
            "A",
            Vector {
                secret: "DummyAccessKeySecret",
                request: ("POST", "/queues/demo-queue/messages"),
                headers: &[XML, ("Content-MD5", "ZmNhMzI5NGRmMmU4NzJjZjJiZTMwYjU5ZWNhZGU0MGE="), DATE, VERSION],
                text: Some(
                    "POST\nZmNhMzI5NGRmMmU4NzJjZjJiZTMwYjU5ZWNhZGU0MGE=\ntext/xml;charset=UTF-8\nThu, 15 Jan 2026 08:30:00 GMT\nx-mns-version:2015-06-06\n/queues/demo-queue/messages",
                ),
                signature: "vED9rxhivfWQdI9JNjQadbP6cXU=",
            },
        ),
        (
            "B",
            Vector {
                secret: "DummyAccessKeySecret",
                request: ("GET", "/queues/demo-queue/messages?numOfMessages=16&waitseconds=10"),
                headers: &[DATE, VERSION],
                text: Some(
                    "GET\n\n\nThu, 15 Jan 2026 08:30:00 GMT\nx-mns-version:2015-06-06\n/queues/demo-queue/messages?numOfMessages=16&waitseconds=10",
                ),
                signature: "Q//lmB1dR7SwsAWiJH/UHcXm8iw=",
            },
        ),
        (
            "D",
            Vector {
                secret: "DummyAccessKeySecret",
                request: ("DELETE", "/queues/demo-queue/messages"),
                headers: &[XML, ("Content-MD5", "ZjI2YWUzMjY3NTc0ZTBmNGQ3NzMyZmI2ODI0NmE4YWY="), DATE, VERSION],
                text: None,
                signature: "aaokclOCm8QMBH7r9n3NEqUpw98=",
            },
        ),
        (
            "E",
            Vector {
                secret: "DummyAccessKeySecret",
                request: ("GET", "/queues"),
                headers: &[
                    ("x-mns-user-request-id", "req-1"),
                    ("x-mns-ret-number", "10"),
                    ("x-mns-prefix", "demo"),
                    ("security-token", "DummyStsToken"),
                    DATE,
                    VERSION,
                ],
                text: Some(
                    "GET\n\n\nThu, 15 Jan 2026 08:30:00 GMT\nx-mns-prefix:demo\nx-mns-ret-number:10\nx-mns-user-request-id:req-1\nx-mns-version:2015-06-06\n/queues",
                ),
                signature: "EPC8WMRiwXW6XS6O1tgv8hbcTns=",
            },
        ),
        (
            "documentation",
            Vector {
                secret: "TestAccessSecret",
                request: ("GET", "/MyQueue"),
                headers: &[("Date", "Thu, 09 Jul 2015 03:01:34 GMT"), VERSION],
                text: None,
                signature: "uwx3yeWoILzgmvesW0BQSgfM7b8=",
            },
        ),
        (
            "Java, one header",
            Vector {
                secret: "sk1",
                request: ("POST", "/queues/TestQueue"),
                headers: &[JAVA_DATE, ("x-mns-abcdef", "abcDEF")],
                text: None,
                signature: "cAThPWnbphg3hDe3ZHDADTgkgyE=",
            },
        ),
        (
            "Java, no header",
            Vector {
                secret: "testSk",
                request: ("GET", "/queues/TestQueue"),
                headers: &[JAVA_DATE],
                text: None,
                signature: "uDJQXbk2xOhH95MDXmgbAGdtyE4=",
            },
        ),
    ];

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).expect("name"), HeaderValue::try_from(*value).expect("value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn every_published_vector_comes_out() {
        for (name, vector) in VECTORS {
            let text = string_to_sign(vector.request.0, vector.request.1, &headers(vector.headers));
            if let Some(expected) = vector.text {
                assert_eq!(String::from_utf8_lossy(&text), expected, "{name}");
            }
            assert_eq!(sign(vector.secret, &text), vector.signature, "{name}");
            assert!(verify(vector.secret, &text, vector.signature), "{name}");
        }
    }

    #[test]
    fn another_byte_or_secret_does_not_verify() {
        let text = string_to_sign("GET", "/queues", &headers(&[DATE]));
        let signature = sign("secret", &text);
        assert!(!verify("Secret", &text, &signature));
        assert!(!verify("secret", &text[1..], &signature));
        assert!(!verify("secret", &text, "not base64"));
        assert!(!verify("secret", &text, ""));
    }

    #[test]
    fn an_authorization_header_is_taken_apart() {
        assert_eq!(parse_authorization(&authorization("id", "secret", b"x")).map(|(id, _)| id), Some("id"));
        assert_eq!(parse_authorization("Basic aWQ6c2VjcmV0"), None);
        assert_eq!(parse_authorization("MNS id"), None);
    }
}
