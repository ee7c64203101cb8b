//! Connections.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::{
    State, access, control, lock,
    operations::{self, Done, Query, Refusal, TIME_EXPIRED},
    orders::ForRequest,
};
use crate::connectors::mns::wire::{self, ServiceError};

/// More than any request needs: 64 KiB of bodies, escaped, and the tags around them.
const LARGEST_REQUEST: usize = 1 << 20;
const XML: HeaderValue = HeaderValue::from_static("text/xml;charset=utf-8");

/// Accepts until `stop` is true, then closes every connection.
pub(super) async fn serve(listener: TcpListener, state: Arc<State>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&state)));
                }
                Err(error) => {
                    tracing::warn!(%error, "emulator: cannot accept a connection");
                    // Out of file handles, as a rule; it would be told at once again.
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the emulator has been dropped, which stops as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    // Answers are small and whole; a failure only costs time.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { respond(&state, request).await }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "emulator: a connection ended early");
    }
}

/// The answer was lost by order; hyper closes the connection on it.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost by order")]
struct Lost;

async fn respond(state: &State, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Lost> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_REQUEST).collect().await.ok().map(|body| body.to_bytes());
    if control::is_for(parts.uri.path()) {
        return Ok(control::respond(state, &parts.method, parts.uri.path(), &body.unwrap_or_default()));
    }
    let cell = operations::queue_of(parts.uri.path()).and_then(|name| state.find(&name));
    let orders = cell.as_ref().map(|cell| lock(&cell.queue).orders.for_request()).unwrap_or_default();
    let result = answer(state, &parts, body.as_deref(), &orders).await;
    if let (Err(TIME_EXPIRED), Some(cell)) = (&result, &cell) {
        lock(&cell.queue).orders.statistics.time_expired += 1;
    }
    if !orders.delay.is_zero() {
        tokio::time::sleep(orders.delay).await;
    }
    let date = shifted(state.clock.now(), orders.clock_offset_ms);
    let request_id = format!("{:024X}", lock(&state.random).u128(..) >> 32);
    let (status, text, location) = match result {
        Ok(Done { status, body, location }) => (status, body, location),
        Err(Refusal::Cut) => return Err(Lost),
        Err(Refusal::Proxy(status, page)) => return Ok(proxy_answer(status, page, date)),
        Err(Refusal::Document(status, body)) => (status, body, None),
        Err(Refusal::Error { status, code, message }) => {
            let error = ServiceError {
                code: code.to_owned(),
                message: message.to_owned(),
                request_id: request_id.clone(),
                host_id: state.host.clone(),
            };
            (status, wire::write_error(&error), None)
        }
    };
    Ok(service_answer(status, text, date, request_id, location))
}

fn service_answer(
    status: StatusCode,
    text: String,
    date: SystemTime,
    request_id: String,
    location: Option<String>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("AliyunMQS"));
    headers.insert(header::CONTENT_TYPE, XML);
    headers.insert("x-mns-version", HeaderValue::from_static(wire::VERSION));
    headers.insert("x-mns-response-format", HeaderValue::from_static("xml"));
    let texts = [
        (header::DATE, Some(httpdate::fmt_http_date(date))),
        (header::HeaderName::from_static("x-mns-request-id"), Some(request_id)),
        (header::LOCATION, location),
    ];
    for (name, text) in texts {
        if let Some(value) = text.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(name, value);
        }
    }
    response
}

/// Nothing in it is the service's: neither XML nor a request id.
fn proxy_answer(status: StatusCode, page: &'static str, date: SystemTime) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("Tengine"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(date)) {
        headers.insert(header::DATE, date);
    }
    response
}

async fn answer(
    state: &State,
    parts: &http::request::Parts,
    body: Option<&[u8]>,
    orders: &ForRequest,
) -> Result<Done, Refusal> {
    if let Some(refused) = orders.refusal {
        return Err(refused.into());
    }
    let too_large = Refusal::new(StatusCode::BAD_REQUEST, "InvalidArgument", "The request is too large.");
    let body = body.ok_or(too_large)?;
    let now = shifted(SystemTime::now(), orders.clock_offset_ms);
    if let Some(key) = &state.credentials {
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        access::check(key, parts.method.as_str(), target, &parts.headers, now)?;
    } else if orders.clock_offset_ms != 0 {
        access::check_date(&parts.headers, now)?;
    }
    let request = operations::Request {
        method: &parts.method,
        path: parts.uri.path(),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        headers: &parts.headers,
        body,
    };
    operations::handle(state, request).await
}

fn shifted(time: SystemTime, offset_ms: i64) -> SystemTime {
    let by = Duration::from_millis(offset_ms.unsigned_abs());
    if offset_ms < 0 { time.checked_sub(by).unwrap_or(UNIX_EPOCH) } else { time + by }
}
