//! An HTTP client for the operations a source needs, and the few a producer needs.
//!
//! It never tries again by itself: its faults say whether trying again can help.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::{
    faults::fault_of_answer,
    signature,
    wire::{self, DeleteFailure, Delivery, Outgoing, QueueAttributes, QueueSettings, Sent},
};
use crate::{
    connectors::http_client::{self, fault_of_transport},
    model::{Fault, FaultKind},
};

/// How much longer than the wait it asked for a request may take. Alibaba's SDKs allow 5 to 30 s more than the
/// longest wait.
const MARGIN: Duration = Duration::from_secs(15);
/// Longest time to make a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Content type of requests with a body, as the Python and Java SDKs write it.
const XML: HeaderValue = HeaderValue::from_static("text/xml;charset=UTF-8");
/// What stays as it is in a query value. Handles hold `+`, `/` and `=`.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How long a request that waits for a message may take before it counts as unanswered.
pub(super) fn longest_call(wait: Duration) -> Duration {
    wait + MARGIN
}

/// An access key, and a session token where the key is temporary. Never shown.
#[derive(Clone)]
pub struct Credentials {
    /// The key's id.
    pub access_key_id: String,
    /// The key's secret.
    pub access_key_secret: String,
    /// Sent as `security-token`.
    pub security_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// A client of one endpoint. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    endpoint: Url,
    credentials: Credentials,
}

/// What a receive answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// The messages; none is normal.
    pub messages: Vec<Delivery>,
    /// The service's clock at its answer, from the `Date` header: epoch milliseconds, cut to whole seconds.
    pub answered_ms: Option<i64>,
}

/// An answer that was read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: bytes::Bytes,
}

impl Client {
    /// A client of `endpoint` (`http://` or `https://`, path ignored). Fails on another URL, on credentials that no
    /// header can carry, or if the TLS side cannot be set up.
    pub fn new(endpoint: &str, credentials: Credentials) -> Result<Self, Fault> {
        let refuse = |what: &str| Fault::never(FaultKind::Definition, format!("endpoint {endpoint}: {what}"));
        let mut endpoint = Url::parse(endpoint).map_err(|error| refuse("not a URL").because(error))?;
        if !matches!(endpoint.scheme(), "http" | "https") || !endpoint.has_host() {
            return Err(refuse("not an http or https URL"));
        }
        endpoint.set_path("/");
        endpoint.set_query(None);
        endpoint.set_fragment(None);
        let http = http_client::build(&[&endpoint], CONNECT)?;
        Ok(Self { http, endpoint, credentials })
    }

    /// Receives up to `most` (1 to 16) messages, waiting up to `wait_seconds` (0 to 30) for the first. An empty
    /// queue is an empty answer.
    pub async fn receive(&self, queue: &str, most: usize, wait_seconds: u32) -> Result<Received, Fault> {
        let path = format!("{}?numOfMessages={most}&waitseconds={wait_seconds}", messages_path(queue));
        let wait = Duration::from_secs(wait_seconds.into());
        let answer = self.call("receive", Method::GET, &path, None, wait).await?;
        let answered_ms = answer.date_ms();
        if answer.status == StatusCode::OK {
            let messages = answer.read("receive", wire::parse_deliveries)?;
            return Ok(Received { messages, answered_ms });
        }
        if answer.status == StatusCode::NOT_FOUND && answer.code().as_deref() == Some("MessageNotExist") {
            return Ok(Received { messages: Vec::new(), answered_ms });
        }
        Err(answer.fault("receive"))
    }

    /// Deletes up to 16 deliveries; answers those that were *not* deleted.
    pub async fn delete(&self, queue: &str, handles: &[&str]) -> Result<Vec<DeleteFailure>, Fault> {
        let body = wire::write_handles(handles.iter().copied());
        let answer = self.call("delete", Method::DELETE, &messages_path(queue), Some(body), Duration::ZERO).await?;
        if answer.status.is_success() {
            return Ok(Vec::new());
        }
        match wire::parse_delete_failures(&answer.body) {
            Ok(Some(failures)) => Ok(failures),
            Ok(None) | Err(_) => Err(answer.fault("delete")),
        }
    }

    /// Makes a delivery invisible for `seconds` (1 to 43200) from now. `None`: the handle is no longer valid.
    pub async fn change_visibility(
        &self,
        queue: &str,
        handle: &str,
        seconds: u32,
    ) -> Result<Option<wire::ChangedVisibility>, Fault> {
        let handle = utf8_percent_encode(handle, QUERY);
        let path = format!("{}?ReceiptHandle={handle}&VisibilityTimeout={seconds}", messages_path(queue));
        let answer = self.call("change visibility", Method::PUT, &path, None, Duration::ZERO).await?;
        if answer.status.is_success() {
            return answer.read("change visibility", wire::parse_changed_visibility).map(Some);
        }
        match answer.code().as_deref() {
            Some("MessageNotExist" | "ReceiptHandleError") => Ok(None),
            _ => Err(answer.fault("change visibility")),
        }
    }

    /// Asks for a queue's attributes.
    pub async fn queue_attributes(&self, queue: &str) -> Result<QueueAttributes, Fault> {
        let answer = self.call("get queue attributes", Method::GET, &queue_path(queue), None, Duration::ZERO).await?;
        if !answer.status.is_success() {
            return Err(answer.fault("get queue attributes"));
        }
        answer.read("get queue attributes", wire::parse_attributes)
    }

    /// Creates a queue; `false`: it was there with the same settings.
    pub async fn create_queue(&self, queue: &str, settings: &QueueSettings) -> Result<bool, Fault> {
        let body = Some(wire::write_settings(settings));
        let answer = self.call("create queue", Method::PUT, &queue_path(queue), body, Duration::ZERO).await?;
        match answer.status {
            StatusCode::CREATED => Ok(true),
            StatusCode::NO_CONTENT => Ok(false),
            _ => Err(answer.fault("create queue")),
        }
    }

    /// Deletes a queue and all that is in it.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), Fault> {
        let answer = self.call("delete queue", Method::DELETE, &queue_path(queue), None, Duration::ZERO).await?;
        if answer.status.is_success() { Ok(()) } else { Err(answer.fault("delete queue")) }
    }

    /// Sends up to 16 messages, together at most 64 KiB. After a fault any of them may have been sent.
    pub async fn send(&self, queue: &str, messages: &[Outgoing]) -> Result<Vec<Sent>, Fault> {
        let body = Some(wire::write_outgoing(messages));
        let answer = self.call("send", Method::POST, &messages_path(queue), body, Duration::ZERO).await?;
        if !answer.status.is_success() {
            return Err(answer.fault("send"));
        }
        answer.read("send", wire::parse_sent)
    }

    async fn call(
        &self,
        operation: &'static str,
        method: Method,
        path: &str,
        body: Option<String>,
        wait: Duration,
    ) -> Result<Answer, Fault> {
        let url = self.endpoint.join(path).map_err(|error| {
            Fault::never(FaultKind::Rejected, format!("{operation}: no URL can be made")).because(error)
        })?;
        let headers = self.headers(operation, &method, &url, body.is_some())?;
        let mut request = self.http.request(method, url).headers(headers).timeout(longest_call(wait));
        if let Some(body) = body {
            request = request.body(body);
        }
        let mut response = request.send().await.map_err(|error| fault_of_transport(operation, error))?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let body = response.bytes().await.map_err(|error| fault_of_transport(operation, error))?;
        Ok(Answer { status, headers, body })
    }

    /// The headers that are signed, the signature, and the session token.
    fn headers(&self, operation: &'static str, method: &Method, url: &Url, has_body: bool) -> Result<HeaderMap, Fault> {
        let value = |text: &str| {
            HeaderValue::try_from(text).map_err(|_| {
                Fault::never(FaultKind::Credentials, format!("{operation}: the credentials hold forbidden characters"))
            })
        };
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::DATE, value(&httpdate::fmt_http_date(SystemTime::now()))?);
        headers.insert(HeaderName::from_static("x-mns-version"), HeaderValue::from_static(wire::VERSION));
        if has_body {
            headers.insert(header::CONTENT_TYPE, XML);
        }
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let text = signature::string_to_sign(method.as_str(), target, &headers);
        let Credentials { access_key_id, access_key_secret, security_token } = &self.credentials;
        let mut authorization = value(&signature::authorization(access_key_id, access_key_secret, &text))?;
        authorization.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, authorization);
        if let Some(token) = security_token {
            let mut token = value(token)?;
            token.set_sensitive(true);
            headers.insert(HeaderName::from_static("security-token"), token);
        }
        Ok(headers)
    }
}

impl Answer {
    fn read<T>(&self, operation: &str, parse: fn(&[u8]) -> Result<T, wire::WireError>) -> Result<T, Fault> {
        parse(&self.body).map_err(|error| {
            Fault::retry(FaultKind::Service, format!("{operation}: unreadable answer ({})", self.status)).because(error)
        })
    }

    fn code(&self) -> Option<String> {
        wire::parse_error(&self.body).ok().map(|error| error.code)
    }

    fn fault(&self, operation: &'static str) -> Fault {
        let request_id = self.headers.get("x-mns-request-id").and_then(|value| value.to_str().ok());
        let ahead_ms = self.date_ms().and_then(|answered| Some(answered - epoch_ms(SystemTime::now())?));
        fault_of_answer(operation, self.status, wire::parse_error(&self.body).ok().as_ref(), request_id, ahead_ms)
    }

    fn date_ms(&self) -> Option<i64> {
        let time = httpdate::parse_http_date(self.headers.get(header::DATE)?.to_str().ok()?).ok()?;
        epoch_ms(time)
    }
}

fn epoch_ms(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

fn queue_path(queue: &str) -> String {
    format!("/queues/{}", utf8_percent_encode(queue, QUERY))
}

fn messages_path(queue: &str) -> String {
    format!("{}/messages", queue_path(queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials {
            access_key_id: "id".into(),
            access_key_secret: "very-secret".into(),
            security_token: Some("token-secret".into()),
        }
    }

    #[test]
    fn neither_debug_nor_an_error_shows_a_secret() {
        let client = Client::new("http://127.0.0.1:1", credentials()).expect("valid");
        assert!(!format!("{client:?}").contains("secret"));
        let broken = Credentials { access_key_id: "i\nd".into(), ..credentials() };
        let client = Client::new("http://127.0.0.1:1", broken).expect("valid");
        let url = Url::parse("http://127.0.0.1:1/queues/q").expect("URL");
        let fault = client.headers("receive", &Method::GET, &url, false).expect_err("a newline");
        assert!(!format!("{fault:?} {fault}").contains("secret"));
    }

    #[test]
    fn the_target_that_is_sent_is_the_one_that_is_signed() {
        let client = Client::new("http://127.0.0.1:1/ignored?x#y", credentials()).expect("valid");
        let path = format!("{}?ReceiptHandle={}", messages_path("q"), utf8_percent_encode("A-b+/c==", QUERY));
        let url = client.endpoint.join(&path).expect("URL");
        assert_eq!(url.as_str(), "http://127.0.0.1:1/queues/q/messages?ReceiptHandle=A-b%2B%2Fc%3D%3D");
        let mut headers = client.headers("x", &Method::PUT, &url, false).expect("valid");
        let authorization = headers.remove(header::AUTHORIZATION).expect("signed");
        let target = "/queues/q/messages?ReceiptHandle=A-b%2B%2Fc%3D%3D";
        let text = signature::string_to_sign("PUT", target, &headers);
        assert_eq!(authorization, signature::authorization("id", "very-secret", &text));
    }

    #[test]
    fn only_http_endpoints_are_taken() {
        for endpoint in ["", "127.0.0.1:80", "ftp://h", "file:///x"] {
            assert!(Client::new(endpoint, credentials()).is_err(), "{endpoint}");
        }
    }
}
