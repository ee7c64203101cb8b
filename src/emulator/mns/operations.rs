//! The operations of the service, from a request's parts to an answer's.

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use super::{access::NOT_AUTHENTICATED, convert, receipt};
use crate::{
    connectors::mns::wire::{
        self, DeleteFailure, LONGEST_VISIBILITY_SECONDS, LONGEST_WAIT_SECONDS, MOST_PER_CALL, Outgoing, QueueSettings,
    },
    emulator::{
        cell::{NotDone, QueueCell, Receive},
        orders::Refused,
        server::UNAVAILABLE_PAGE,
        state::{Created, State, lock},
    },
};

/// Largest total of the bodies of a batch send, in bytes of the wire.
const LARGEST_BATCH: usize = 65_536;

/// An answer that is a success.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub status: StatusCode,
    pub body: String,
    pub location: Option<String>,
}

/// Why a request was not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An error document.
    Error { status: StatusCode, code: &'static str, message: &'static str },
    /// An answer with another document of its own.
    Document(StatusCode, String),
    /// A page of something that stands before the service and knows nothing of it.
    Proxy(StatusCode, &'static str),
    /// No answer: the connection is closed.
    Cut,
}

impl Refusal {
    pub(super) const fn new(status: StatusCode, code: &'static str, message: &'static str) -> Self {
        Self::Error { status, code, message }
    }
}

const NO_MESSAGE: Refusal = Refusal::new(StatusCode::NOT_FOUND, "MessageNotExist", "Message not exist.");
const NO_QUEUE: Refusal =
    Refusal::new(StatusCode::NOT_FOUND, "QueueNotExist", "The queue name you provided is not exist.");
const MALFORMED_XML: Refusal =
    Refusal::new(StatusCode::BAD_REQUEST, "MalformedXML", "The XML you provided was not well-formed.");
const MALFORMED_HANDLE: Refusal =
    Refusal::new(StatusCode::BAD_REQUEST, "ReceiptHandleError", "The receipt handle you provided is not valid.");
const INTERNAL: Refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "Internal error.");
const THROTTLED: Refusal =
    Refusal::new(StatusCode::BAD_REQUEST, "QpsLimitExceeded", "The QPS of the queue exceeds the limit.");
const UNAVAILABLE: Refusal = Refusal::Proxy(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE_PAGE);
/// A request whose clock is too far off.
pub(super) const TIME_EXPIRED: Refusal =
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "TimeExpired", "The http request you sent is expired.");
const BAD_URL: Refusal = Refusal::new(StatusCode::BAD_REQUEST, "InvalidRequestURL", "The request URL is invalid.");

const fn invalid(message: &'static str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "InvalidArgument", message)
}

type Answer = Result<Done, Refusal>;

/// A request's parts.
pub(super) struct Request<'a> {
    /// The service's own URL.
    pub host: &'a str,
    pub method: &'a Method,
    pub path: &'a str,
    pub query: Query,
    pub headers: &'a http::HeaderMap,
    pub body: &'a [u8],
}

/// Query parameters: names in any case, since the live service's clients differ; values decoded, but `+` stays,
/// since handles come raw, too.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (name.to_ascii_lowercase(), percent_decode_str(value).decode_utf8_lossy().into_owned())
        };
        Self(text.split('&').filter(|part| !part.is_empty()).map(pair).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str, range: std::ops::RangeInclusive<u32>) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(invalid("A number in the query is out of range.")),
        }
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

/// The queue a path is about.
pub(super) fn queue_of(path: &str) -> Option<String> {
    match path.trim_start_matches('/').split('/').collect::<Vec<_>>().as_slice() {
        ["queues", name] | ["queues", name, "messages"] => Some(decoded(name)),
        _ => None,
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Throttled => THROTTLED,
            Refused::Unavailable => UNAVAILABLE,
            Refused::TimeExpired => TIME_EXPIRED,
            Refused::NotAuthenticated => NOT_AUTHENTICATED,
            Refused::Cut => Self::Cut,
        }
    }
}

impl From<NotDone> for Refusal {
    fn from(why: NotDone) -> Self {
        match why {
            NotDone::Gone => NO_QUEUE,
            NotDone::Failed => INTERNAL,
            NotDone::Lost => Self::Cut,
        }
    }
}

/// Does what a request asks for.
pub(super) async fn handle(state: &State, request: Request<'_>) -> Answer {
    let segments: Vec<_> = request.path.trim_start_matches('/').split('/').collect();
    match (segments.as_slice(), request.method) {
        (["queues"], &Method::GET) => list(state, &request),
        (["queues", name], method) => queue(state, method, &decoded(name), &request),
        (["queues", name, "messages"], method) => {
            let cell = state.find(&decoded(name)).ok_or(NO_QUEUE)?;
            match *method {
                Method::GET if request.query.is_true("peekonly") => peek(state, &cell, &request),
                Method::GET => receive(state, &cell, &request).await,
                Method::POST => send(state, &cell, request.body),
                Method::DELETE => delete(state, &cell, &request),
                Method::PUT => change_visibility(state, &cell, &request),
                _ => Err(BAD_URL),
            }
        }
        _ => Err(BAD_URL),
    }
}

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

fn list(state: &State, request: &Request<'_>) -> Answer {
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    let prefix = header("x-mns-prefix").unwrap_or_default();
    let most = match header("x-mns-ret-number").map(str::parse) {
        None => 1000,
        Some(Ok(most @ 1..=1000)) => most,
        Some(_) => return Err(invalid("x-mns-ret-number is not from 1 to 1000.")),
    };
    let marker = header("x-mns-marker").unwrap_or_default();
    let names: Vec<String> = state.report().into_keys().collect();
    let mut names = names.into_iter().filter(|name| name.starts_with(prefix) && name.as_str() >= marker);
    let page: Vec<_> = names.by_ref().take(most).map(|name| format!("{}/queues/{name}", request.host)).collect();
    Ok(Done { body: wire::write_queue_list(&page, names.next().as_deref()), ..Done::default() })
}

fn queue(state: &State, method: &Method, name: &str, request: &Request<'_>) -> Answer {
    match *method {
        Method::PUT => {
            check_name(name)?;
            let settings = wire::parse_settings(request.body).map_err(|_| MALFORMED_XML)?;
            check_settings(&settings)?;
            let settings = convert::settings(&settings);
            if request.query.is_true("metaoverride") {
                let cell = state.find(name).ok_or(NO_QUEUE)?;
                cell.change(&state.clock, |queue, now| queue.set(&settings, now));
                return Ok(Done { status: StatusCode::NO_CONTENT, ..Done::default() });
            }
            let status = match state.create(name, &settings) {
                Created::New => StatusCode::CREATED,
                Created::Same => StatusCode::NO_CONTENT,
                Created::Different => {
                    return Err(Refusal::new(
                        StatusCode::CONFLICT,
                        "QueueAlreadyExist",
                        "The queue you want to create is already exist.",
                    ));
                }
            };
            let location = Some(format!("{}/queues/{name}", request.host));
            Ok(Done { status, location, ..Done::default() })
        }
        Method::GET => {
            let cell = state.find(name).ok_or(NO_QUEUE)?;
            let attributes = convert::attributes(name, &lock(&cell.queue).attributes(state.clock.now_ms()));
            Ok(Done { body: wire::write_attributes(&attributes), ..Done::default() })
        }
        Method::DELETE => {
            if !state.remove(name) {
                return Err(NO_QUEUE);
            }
            Ok(Done { status: StatusCode::NO_CONTENT, ..Done::default() })
        }
        _ => Err(BAD_URL),
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    if name.len() > 120 {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "QueueNameLengthError", "The queue name is too long."));
    }
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        Ok(())
    } else {
        Err(Refusal::new(StatusCode::BAD_REQUEST, "InvalidQueueName", "The queue name you provided is invalid."))
    }
}

fn check_settings(settings: &QueueSettings) -> Result<(), Refusal> {
    let within = [
        (settings.delay_seconds, 0..=604_800),
        (settings.maximum_message_size, 1024..=65_536),
        // One SDK lets this much through; the documentation says 604800.
        (settings.retention_seconds, 60..=1_296_000),
        (settings.visibility_seconds, 1..=LONGEST_VISIBILITY_SECONDS),
        (settings.polling_wait_seconds, 0..=LONGEST_WAIT_SECONDS),
    ];
    if within.iter().all(|(value, range)| value.is_none_or(|value| range.contains(&value))) {
        Ok(())
    } else {
        Err(invalid("An attribute of the queue is out of range."))
    }
}

fn send(state: &State, cell: &QueueCell, body: &[u8]) -> Answer {
    let (messages, batch) = wire::parse_outgoing(body).map_err(|_| MALFORMED_XML)?;
    if messages.is_empty() || messages.len() > MOST_PER_CALL {
        return Err(invalid("A batch is of 1 to 16 messages."));
    }
    let largest = lock(&cell.queue).maximum_message_size();
    if messages.iter().map(|message| message.body.len()).sum::<usize>() > LARGEST_BATCH {
        return Err(invalid("The messages are too large."));
    }
    messages.iter().try_for_each(|message| check_message(message, largest))?;
    let digests: Vec<_> = messages.iter().map(|message| convert::body_md5(message.body.as_bytes())).collect();
    let sent = cell.send(&state.clock, messages.into_iter().map(convert::outgoing).collect())?;
    let sent: Vec<_> = sent.iter().zip(digests).map(|(sent, digest)| convert::sent(sent, digest)).collect();
    Ok(Done { status: StatusCode::CREATED, body: wire::write_sent(&sent, batch), location: None })
}

fn check_message(message: &Outgoing, largest: usize) -> Result<(), Refusal> {
    if !wire::is_xml_text(&message.body) {
        return Err(MALFORMED_XML);
    }
    if message.body.len() > largest {
        return Err(invalid("The message is too large."));
    }
    let delay = message.delay_seconds.is_none_or(|delay| delay <= 604_800);
    let priority = message.priority.is_none_or(|priority| (1..=16).contains(&priority));
    if delay && priority { Ok(()) } else { Err(invalid("DelaySeconds or Priority is out of range.")) }
}

fn how_many(request: &Request<'_>) -> Result<(usize, bool), Refusal> {
    let number = request.query.number("numofmessages", 1..=16)?;
    Ok((number.unwrap_or(1) as usize, number.is_some()))
}

fn peek(state: &State, cell: &QueueCell, request: &Request<'_>) -> Answer {
    let (most, batch) = how_many(request)?;
    let messages = lock(&cell.queue).peek(most, state.clock.now_ms());
    let messages: Vec<_> = messages.into_iter().map(convert::peeked).collect();
    if messages.is_empty() {
        return Err(NO_MESSAGE);
    }
    Ok(Done { body: wire::write_deliveries(messages.iter(), batch), ..Done::default() })
}

async fn receive(state: &State, cell: &QueueCell, request: &Request<'_>) -> Answer {
    let (most, batch) = how_many(request)?;
    let wait = request.query.number("waitseconds", 0..=LONGEST_WAIT_SECONDS)?;
    let messages = cell.receive(&state.clock, Receive { most, wait, visibility: None }).await?;
    if messages.is_empty() {
        return Err(NO_MESSAGE);
    }
    let messages: Vec<_> = messages.into_iter().map(convert::delivery).collect();
    Ok(Done { body: wire::write_deliveries(messages.iter(), batch), ..Done::default() })
}

fn delete(state: &State, cell: &QueueCell, request: &Request<'_>) -> Answer {
    let single = request.query.get("receipthandle");
    let handles = match single {
        Some(handle) => vec![handle.to_owned()],
        None if request.body.is_empty() => {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "MissingReceiptHandle", "ReceiptHandle is required."));
        }
        None => wire::parse_handles(request.body).map_err(|_| MALFORMED_XML)?,
    };
    if handles.is_empty() || handles.len() > MOST_PER_CALL {
        return Err(invalid("A batch is of 1 to 16 receipt handles."));
    }
    let read: Vec<_> = handles.iter().map(|handle| receipt::read(handle)).collect();
    let known: Vec<_> = read.iter().copied().flatten().collect();
    let mut deleted = cell.delete(&state.clock, &known)?.into_iter();
    let outcomes = read.into_iter().map(|handle| match handle {
        None => Err(MALFORMED_HANDLE),
        Some(_) if deleted.next() == Some(true) => Ok(()),
        Some(_) => Err(NO_MESSAGE),
    });
    if single.is_some() {
        outcomes.collect::<Result<(), _>>()?;
        return Ok(Done { status: StatusCode::NO_CONTENT, ..Done::default() });
    }
    let failures: Vec<_> = handles.iter().zip(outcomes).filter_map(failure).collect();
    if failures.is_empty() {
        return Ok(Done { status: StatusCode::NO_CONTENT, ..Done::default() });
    }
    Err(Refusal::Document(StatusCode::NOT_FOUND, wire::write_delete_failures(&failures)))
}

fn failure((handle, outcome): (&String, Result<(), Refusal>)) -> Option<DeleteFailure> {
    let Err(Refusal::Error { code, message, .. }) = outcome else { return None };
    Some(DeleteFailure { code: code.to_owned(), message: message.to_owned(), handle: handle.clone() })
}

fn change_visibility(state: &State, cell: &QueueCell, request: &Request<'_>) -> Answer {
    let missing = |code| Refusal::new(StatusCode::BAD_REQUEST, code, "A parameter of the query is missing.");
    let handle = request.query.get("receipthandle").ok_or(missing("MissingReceiptHandle"))?;
    let seconds = request.query.number("visibilitytimeout", 1..=LONGEST_VISIBILITY_SECONDS)?;
    let seconds = seconds.ok_or(missing("MissingVisibilityTimeout"))?;
    let handle = receipt::read(handle).ok_or(MALFORMED_HANDLE)?;
    let changed = cell.change(&state.clock, |queue, now| queue.change_visibility(handle, seconds, now));
    let changed = changed.ok_or(NO_MESSAGE)?;
    Ok(Done { body: wire::write_changed_visibility(&convert::changed_visibility(&changed)), ..Done::default() })
}
