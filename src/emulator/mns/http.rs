//! Requests and answers.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;

use super::{
    Mns, access,
    operations::{self, Done, Query, Refusal, TIME_EXPIRED},
};
use crate::{
    connectors::mns::wire::{self, ServiceError},
    emulator::{
        control,
        orders::{ForRequest, Through},
        server::{Answering, LARGEST_REQUEST, Lost},
        state::lock,
    },
};

const XML: HeaderValue = HeaderValue::from_static("text/xml;charset=utf-8");

pub(super) fn respond(mns: Arc<Mns>, request: Request<Incoming>) -> Answering {
    Box::pin(async move { mns.respond(request).await })
}

impl Mns {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Lost> {
        let state = &self.state;
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, LARGEST_REQUEST).collect().await.ok().map(|body| body.to_bytes());
        if control::is_for(parts.uri.path()) {
            return Ok(control::respond(state, &parts.method, parts.uri.path(), &body.unwrap_or_default()));
        }
        let cell = operations::queue_of(parts.uri.path()).and_then(|name| state.find(&name));
        let orders = cell.as_ref().map(|cell| lock(&cell.queue).orders.for_request(Through::Mns)).unwrap_or_default();
        let result = self.answer(&parts, body.as_deref(), &orders).await;
        if let (Err(TIME_EXPIRED), Some(cell)) = (&result, &cell) {
            lock(&cell.queue).orders.statistics.time_expired += 1;
        }
        if !orders.hold_back().await {
            std::future::pending::<()>().await;
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
                    host_id: self.host.clone(),
                };
                (status, wire::write_error(&error), None)
            }
        };
        Ok(service_answer(status, text, date, request_id, location))
    }

    async fn answer(
        &self,
        parts: &http::request::Parts,
        body: Option<&[u8]>,
        orders: &ForRequest,
    ) -> Result<Done, Refusal> {
        if let Some(refused) = orders.refused().await {
            return Err(refused.into());
        }
        let too_large = Refusal::new(StatusCode::BAD_REQUEST, "InvalidArgument", "The request is too large.");
        let body = body.ok_or(too_large)?;
        let now = shifted(SystemTime::now(), orders.clock_offset_ms);
        if let Some(key) = &self.state.credentials {
            let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
            access::check(key, parts.method.as_str(), target, &parts.headers, now)?;
        } else if orders.clock_offset_ms != 0 {
            access::check_date(&parts.headers, now)?;
        }
        let request = operations::Request {
            host: &self.host,
            method: &parts.method,
            path: parts.uri.path(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            headers: &parts.headers,
            body,
        };
        operations::handle(&self.state, request).await
    }
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

fn shifted(time: SystemTime, offset_ms: i64) -> SystemTime {
    let by = Duration::from_millis(offset_ms.unsigned_abs());
    if offset_ms < 0 { time.checked_sub(by).unwrap_or(UNIX_EPOCH) } else { time + by }
}
