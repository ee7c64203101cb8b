//! Signed HTTP requests, of the service and of name servers.

use std::{borrow::Cow, time::SystemTime};

use url::{Position, Url, form_urlencoded};

use super::Credentials;
use crate::connectors::cmq::signature::text_to_sign;

/// A parameter's name and its value, raw.
pub type Parameter = (Cow<'static, str>, String);

/// The parameters of a request with those that every one has and their signature: a query, or the body of a form.
pub fn signed(
    method: &str,
    url: &Url,
    action: &'static str,
    parameters: Vec<Parameter>,
    credentials: &Credentials,
) -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // 31 bits, as the Java client has them.
    let nonce = fastrand::i32(1..);
    let mut parameters = parameters;
    parameters.extend([
        ("Action".into(), action.to_owned()),
        ("Nonce".into(), nonce.to_string()),
        ("SecretId".into(), credentials.secret_id.clone()),
        ("SignatureMethod".into(), credentials.method.name().to_owned()),
        ("Timestamp".into(), seconds.to_string()),
    ]);
    encoded(method, url, &parameters, credentials)
}

fn encoded(method: &str, url: &Url, parameters: &[Parameter], credentials: &Credentials) -> String {
    // As in the Host header: with the port if it is not the scheme's own.
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let pairs: Vec<(&str, &str)> = parameters.iter().map(|(key, value)| (&**key, value.as_str())).collect();
    let signature = credentials.sign(&text_to_sign(method, host, url.path(), &pairs));
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(pairs).append_pair("Signature", &signature);
    form.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::cmq::signature::SignMethod;

    #[test]
    fn a_name_server_is_asked_as_the_java_client_asks_it() {
        let credentials = Credentials {
            secret_id: "AKIDEXAMPLE0000000000000000000000000".into(),
            secret_key: "exampleSecretKey0000000000000000".into(),
            method: SignMethod::HmacSha1,
        };
        let of = |text: &'static str| text.split('&').filter_map(|pair| pair.split_once('='));
        let asked = "Action=QueryQueueRoute&Nonce=47898968&SecretId=AKIDEXAMPLE0000000000000000000000000\
            &SignatureMethod=HmacSHA1&Timestamp=1796004183&queueName=tcpq";
        let parameters: Vec<Parameter> = of(asked).map(|(key, value)| (key.into(), value.to_owned())).collect();
        let url = Url::parse("http://127.0.0.1:18080/v2/index.php").expect("a URL");
        let query = encoded("GET", &url, &parameters, &credentials);
        assert_eq!(query, format!("{asked}&Signature=mQ2sy%2BcTIvzKTuEMj%2B3MTGtLqhA%3D"));
    }

    #[test]
    fn the_host_that_is_signed_has_a_port_only_where_the_request_has_one() {
        let host = |url: &str| Url::parse(url).expect("a URL")[Position::BeforeHost..Position::AfterPort].to_owned();
        assert_eq!(host("http://h:80/"), "h");
        assert_eq!(host("https://h:443"), "h");
        assert_eq!(host("https://h:80/x"), "h:80");
        assert_eq!(host("http://[::1]:18080/v2/index.php"), "[::1]:18080");
    }
}
