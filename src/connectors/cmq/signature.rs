//! Signatures: of HTTP requests, the name server's included, and of TCP connections.
//!
//! The client signs with it and the emulator checks with it.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// How is signed. On the wire HmacSHA256 is asked for by name, and anything else means the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignMethod {
    /// The default of the service and of its SDKs.
    #[default]
    HmacSha1,
    /// Also.
    HmacSha256,
}

impl SignMethod {
    /// As in options and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha1 => "HmacSHA1",
            Self::HmacSha256 => "HmacSHA256",
        }
    }

    /// By the name; any other than the one of HmacSHA256 means HmacSHA1, as the service reads it.
    pub fn of_name(name: &str) -> Self {
        if name == Self::HmacSha256.name() { Self::HmacSha256 } else { Self::HmacSha1 }
    }
}

/// The text that is signed for an HTTP request.
///
/// `method` in capitals. `host` as in the Host header, so with the port if the endpoint names one. `path` as requested.
/// `parameters` are those of the query or of the form, raw; `Signature` takes no part. They are sorted by key, byte by
/// byte, and then `_` in keys (not in values) becomes `.`.
pub fn text_to_sign(method: &str, host: &str, path: &str, parameters: &[(&str, &str)]) -> String {
    let mut sorted: Vec<_> = parameters.iter().filter(|(key, _)| *key != "Signature").collect();
    sorted.sort_by_key(|(key, _)| *key);
    let length: usize = sorted.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
    let mut text = String::with_capacity(method.len() + host.len() + path.len() + length);
    for part in [method, host, path] {
        text.push_str(part);
    }
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.extend(key.chars().map(|c| if c == '_' { '.' } else { c }));
        text.push('=');
        text.push_str(value);
    }
    text
}

/// The signature of a text under a secret key: base64 of its HMAC.
pub fn sign(method: SignMethod, secret: &str, text: &str) -> String {
    fn encoded<M: Mac + hmac::digest::KeyInit>(secret: &str, text: &str) -> String {
        // HMAC takes keys of any length, so there always is one.
        mac::<M>(secret, text).map(|mac| STANDARD.encode(mac.finalize().into_bytes())).unwrap_or_default()
    }
    match method {
        SignMethod::HmacSha1 => encoded::<Hmac<Sha1>>(secret, text),
        SignMethod::HmacSha256 => encoded::<Hmac<Sha256>>(secret, text),
    }
}

/// Whether `signature` (base64) is that of `text`. Takes the same time wherever the two differ.
pub fn verify(method: SignMethod, secret: &str, text: &str, signature: &str) -> bool {
    fn same<M: Mac + hmac::digest::KeyInit>(secret: &str, text: &str, given: &[u8]) -> bool {
        mac::<M>(secret, text).is_some_and(|mac| mac.verify_slice(given).is_ok())
    }
    let Ok(given) = STANDARD.decode(signature) else { return false };
    match method {
        SignMethod::HmacSha1 => same::<Hmac<Sha1>>(secret, text, &given),
        SignMethod::HmacSha256 => same::<Hmac<Sha256>>(secret, text, &given),
    }
}

fn mac<M: Mac + hmac::digest::KeyInit>(secret: &str, text: &str) -> Option<M> {
    let mut mac = <M as Mac>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(text.as_bytes());
    Some(mac)
}

/// The text that is signed for a TCP connection. Nothing in it changes with time.
pub fn connection_text(client_id: &str, secret_id: &str) -> String {
    format!("{client_id}{secret_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "exampleSecretKey0000000000000000";
    const SECRET_ID: &str = "AKIDEXAMPLE0000000000000000000000000";
    const VECTORS: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cmq-samples/signature_vectors.txt"));
    /// Two that the Python and the Node SDK agree on.
    const G: &str = "POSTcmq-queue-gz.api.qcloud.com/v2/index.php?Action=SendMessage&Nonce=2889&Region=gz\
        &SecretId=AKIDEXAMPLE0000000000000000000000000&SignatureMethod=HmacSHA1&Timestamp=1534154812&delaySeconds=0\
        &msgBody=msg&queueName=test1";

    /// Takes a text apart again; the body may hold `&` and `=`, and is the last but one key.
    fn parsed(text: &str) -> (&str, &str, Vec<(&str, &str)>) {
        let (method, rest) = ["POST", "GET"].iter().find_map(|m| Some((*m, text.strip_prefix(m)?))).expect("a method");
        let (before, query) = rest.split_once('?').expect("a query");
        let host = before.strip_suffix("/v2/index.php").expect("the path");
        let (query, body) = match query.split_once("&msgBody=") {
            Some((query, rest)) => (query, rest.rsplit_once("&queueName=")),
            None => (query, None),
        };
        let mut parameters: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        if let Some((body, queue)) = body {
            parameters.extend([("msgBody", body), ("queueName", queue)]);
        }
        (method, host, parameters)
    }

    /// From the parameters in another order, and with a signature among them.
    fn rebuilt(text: &str) -> String {
        let (method, host, mut parameters) = parsed(text);
        parameters.reverse();
        parameters.insert(0, ("Signature", "x"));
        text_to_sign(method, host, "/v2/index.php", &parameters)
    }

    #[test]
    fn every_vector_comes_out_from_its_parameters() {
        let mut count = 0;
        for vector in VECTORS.split("VEC ").skip(1) {
            let mut lines = vector.lines();
            let method = if lines.next().expect("a name").ends_with("sha256") { "HmacSHA256" } else { "HmacSHA1" };
            let text = lines.next().and_then(|line| line.trim().strip_prefix("plain: ")).expect("a text");
            let signature = lines.next().and_then(|line| line.trim().strip_prefix("sig:")).expect("a signature").trim();
            assert_eq!(rebuilt(text), text);
            let method = SignMethod::of_name(method);
            assert_eq!(sign(method, SECRET, text), signature);
            assert!(verify(method, SECRET, text, signature));
            count += 1;
        }
        assert_eq!(count, 7);
        assert_eq!(sign(SignMethod::HmacSha1, SECRET, G), "2DT2twJ08FwSQCkHAR/Uc/l2YHQ=");
        let g2 = G.replace("HmacSHA1", "HmacSHA256");
        assert_eq!(sign(SignMethod::HmacSha256, SECRET, &g2), "u/nOO0EnRBBGaJuISku6NPg12dbv7B6e1t19q0dt8MM=");
        assert_eq!(rebuilt(G), G);
    }

    #[test]
    fn every_connection_vector_comes_out() {
        let mut count = 0;
        for line in VECTORS.lines().filter(|line| line.starts_with("127.0.0.1@")) {
            let (client_id, signature) = line.split_once(' ').expect("two words");
            let method = SignMethod::of_name(client_id.rsplit_once('-').expect("a method").1);
            assert_eq!(sign(method, SECRET, &connection_text(client_id, SECRET_ID)), signature);
            count += 1;
        }
        assert_eq!(count, 2);
    }

    #[test]
    fn keys_are_sorted_byte_by_byte_and_lose_their_underscores_afterwards() {
        let parameters = [("msgBody.2", "a_b"), ("msgBody.10", "& ="), ("a_b", "_"), ("a.c", ""), ("Z", "1")];
        assert_eq!(
            text_to_sign("POST", "h:1", "/", &parameters),
            "POSTh:1/?Z=1&a.c=&a.b=_&msgBody.10=& =&msgBody.2=a_b"
        );
    }

    #[test]
    fn another_byte_method_or_secret_does_not_verify() {
        let signature = sign(SignMethod::HmacSha1, SECRET, G);
        assert!(!verify(SignMethod::HmacSha1, "other", G, &signature));
        assert!(!verify(SignMethod::HmacSha1, SECRET, &G[1..], &signature));
        assert!(!verify(SignMethod::HmacSha256, SECRET, G, &signature));
        assert!(!verify(SignMethod::HmacSha1, SECRET, G, "not base64"));
        assert!(!verify(SignMethod::HmacSha1, SECRET, G, ""));
    }
}
