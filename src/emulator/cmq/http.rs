//! Requests and answers over HTTP, those to the name server included.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::net::TcpStream;

use super::{
    Cmq,
    access::{self, Signed},
    actions::{self, LONGEST_DELAY_SECONDS},
    answer::{BATCH_SIZE, Code, DELAY, EMPTY_BODY, INVALID_HANDLE, MISSING, OK, OUT_OF_RANGE, REQUEST_TOO_LARGE, Refusal},
    id_number,
    parameters::Parameters,
    queues, read_handle, write_handle,
};
use crate::{
    connectors::cmq::wire::{
        LONGEST_WAIT_SECONDS, MOST_PER_CALL, PATH,
        json::{self, Answer, Status},
    },
    emulator::{
        cell::{QueueCell, Receive},
        control,
        message::{Delivery, Handle},
        orders::{ForRequest, Through},
        server::{Answering, LARGEST_REQUEST, Lost, UNAVAILABLE_PAGE},
        state::lock,
    },
};

/// What an answer has beside its status.
pub(super) type Fields = Map<String, Value>;

/// The service as one connection reaches it.
#[derive(Debug)]
pub(super) struct Front {
    cmq: Arc<Cmq>,
    /// Of this end of the connection.
    ip: IpAddr,
}

pub(super) fn respond(front: Arc<Front>, request: Request<Incoming>) -> Answering {
    Box::pin(async move { front.respond(request).await })
}

/// The fields of a struct.
pub(super) fn fields(body: &impl Serialize) -> Fields {
    // Texts, numbers and lists in structs: they always have a JSON form.
    serde_json::to_value(body).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default()
}

impl Front {
    pub(super) fn new(cmq: Arc<Cmq>, stream: &TcpStream) -> Self {
        let ip = stream.local_addr().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |addr| addr.ip());
        Self { cmq, ip }
    }

    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Lost> {
        let state = &self.cmq.state;
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let body = Limited::new(body, LARGEST_REQUEST).collect().await.ok().map(|body| body.to_bytes());
        if control::is_for(path) {
            return Ok(control::respond(state, &parts.method, path, &body.unwrap_or_default()));
        }
        // SDKs that do not strip a slash from the end of the endpoint ask for two in a row, and sign them.
        let is_ours = path == "/" || path.trim_start_matches('/') == PATH.trim_start_matches('/');
        if !is_ours {
            return Ok(page(StatusCode::NOT_FOUND, "<html><body><h1>404 Not Found</h1></body></html>\r\n"));
        }
        // What a form is said to be is not looked at: one SDK says nothing, another says it is anything.
        let parameters = match parts.method {
            Method::POST => body.as_deref().map(Parameters::parse),
            Method::GET => Some(Parameters::parse(parts.uri.query().unwrap_or_default().as_bytes())),
            _ => return Ok(page(StatusCode::METHOD_NOT_ALLOWED, "GET or POST\r\n")),
        };
        let cell = parameters.as_ref().and_then(|known| state.find(known.get("queueName")?));
        let orders = cell.as_ref().map(|cell| lock(&cell.queue).orders.for_request(Through::CmqHttp));
        let orders = orders.unwrap_or_default();
        let client_request_id = parameters.as_ref().and_then(|known| known.get("clientRequestId")?.parse().ok());
        let result = match &parameters {
            Some(parameters) => self.answer(&parts, parameters, cell.as_deref(), &orders).await,
            None => Err(REQUEST_TOO_LARGE.into()),
        };
        if !orders.hold_back().await {
            std::future::pending::<()>().await;
        }
        let (code, body) = match result {
            Ok((code, fields)) => (code, fields),
            Err(Refusal::Code(code)) => (code, Fields::new()),
            Err(Refusal::Unavailable) => return Ok(page(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE_PAGE)),
            Err(Refusal::Cut) => return Err(Lost),
        };
        let status = Status {
            code: code.code,
            message: code.message(),
            request_id: lock(&state.random).u64(1..1 << 53).to_string(),
            client_request_id: client_request_id.unwrap_or(0),
        };
        Ok(answer(&Answer { status, body }))
    }

    async fn answer(
        &self,
        parts: &Parts,
        parameters: &Parameters,
        cell: Option<&QueueCell>,
        orders: &ForRequest,
    ) -> Result<(Code, Fields), Refusal> {
        let action = parameters.get("Action").unwrap_or_default();
        if action == "QueryQueueRoute" && cell.is_some_and(|cell| lock(&cell.queue).orders.is_name_server_down()) {
            return Err(Refusal::Cut);
        }
        if let Some(refused) = orders.refused().await {
            return Err(refused.into());
        }
        if let Some(key) = &self.cmq.state.credentials {
            let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            let method = parts.method.as_str();
            access::check(key, &Signed { method, host, path: parts.uri.path(), parameters })?;
        }
        if action == "BatchDeleteMessage" {
            return self.batch_delete(parameters);
        }
        let fields = match action {
            "SendMessage" | "BatchSendMessage" => self.send(action, parameters)?,
            "ReceiveMessage" | "BatchReceiveMessage" => self.receive(action, parameters).await?,
            "DeleteMessage" => self.delete(parameters)?,
            "CreateQueue" => queues::create(&self.cmq, parameters)?,
            "GetQueueAttributes" => queues::attributes(&self.cmq, parameters)?,
            "SetQueueAttributes" => queues::set_attributes(&self.cmq, parameters)?,
            "ListQueue" => queues::list(&self.cmq, parameters)?,
            "DeleteQueue" => queues::delete(&self.cmq, parameters)?,
            "QueryQueueRoute" => queues::route(&self.cmq, parameters, self.ip)?,
            other => return Err(Code::no_action(other).into()),
        };
        Ok((OK, fields))
    }

    fn send(&self, action: &str, parameters: &Parameters) -> Result<Fields, Refusal> {
        let cell = actions::find(&self.cmq.state, parameters.queue()?)?;
        let delay = parameters.number("delaySeconds", 0..=LONGEST_DELAY_SECONDS, DELAY)?;
        let is_batch = action == "BatchSendMessage";
        let bodies = if is_batch { parameters.list("msgBody")? } else { vec![parameters.get("msgBody").ok_or(EMPTY_BODY)?] };
        let bodies = bodies.into_iter().map(|body| Bytes::copy_from_slice(body.as_bytes())).collect();
        let sent = actions::send(&self.cmq.state.clock, &cell, bodies, delay)?;
        let mut msg_list: Vec<_> = sent.into_iter().map(|id| json::Sent { msg_id: id.to_string() }).collect();
        Ok(match msg_list.pop() {
            Some(only) if !is_batch => fields(&only),
            last => {
                msg_list.extend(last);
                fields(&json::BatchSent { msg_list })
            }
        })
    }

    async fn receive(&self, action: &str, parameters: &Parameters) -> Result<Fields, Refusal> {
        let cell = actions::find(&self.cmq.state, parameters.queue()?)?;
        let is_batch = action == "BatchReceiveMessage";
        let most = match is_batch {
            true => parameters.number("numOfMsg", 1..=MOST_PER_CALL as u32, BATCH_SIZE)?.ok_or(BATCH_SIZE)?,
            false => 1,
        };
        // `UserpollingWaitSeconds`, which SDKs send beside it or instead of it, is a note to themselves.
        let wait = parameters.number("pollingWaitSeconds", 0..=LONGEST_WAIT_SECONDS, OUT_OF_RANGE)?;
        let asked = Receive { most: most as usize, wait, visibility: None };
        let messages = actions::receive(&self.cmq.state.clock, &cell, asked).await?;
        let msg_info_list: Vec<_> = messages.iter().map(received).collect();
        Ok(match msg_info_list.first() {
            Some(only) if !is_batch => fields(only),
            _ => fields(&json::BatchReceived { msg_info_list }),
        })
    }

    fn delete(&self, parameters: &Parameters) -> Result<Fields, Refusal> {
        let cell = actions::find(&self.cmq.state, parameters.queue()?)?;
        let handle = handle(parameters.get("receiptHandle").ok_or(MISSING)?);
        actions::delete(&self.cmq.state.clock, &cell, handle)?;
        Ok(Fields::new())
    }

    fn batch_delete(&self, parameters: &Parameters) -> Result<(Code, Fields), Refusal> {
        let cell = actions::find(&self.cmq.state, parameters.queue()?)?;
        let texts = parameters.list("receiptHandle")?;
        let handles: Vec<_> = texts.iter().map(|text| handle(text)).collect();
        let (code, deleted) = actions::batch_delete(&self.cmq.state.clock, &cell, &handles)?;
        if code == OK {
            return Ok((code, Fields::new()));
        }
        let failures = texts.iter().zip(deleted).filter(|(_, deleted)| !deleted).map(|(text, _)| json::DeleteFailure {
            code: INVALID_HANDLE.code,
            message: INVALID_HANDLE.message(),
            receipt_handle: (*text).to_owned(),
        });
        Ok((code, fields(&json::DeletesFailed { error_list: failures.collect() })))
    }
}

/// Opaque text to clients, decimal digits here.
fn handle(text: &str) -> Handle {
    text.parse().map_or(Handle::NONE, read_handle)
}

fn received(Delivery { message, receipt }: &Delivery) -> json::ReceivedMessage {
    json::ReceivedMessage {
        msg_id: id_number(message.id).to_string(),
        // What was sent over TCP may be no UTF-8; that is replaced.
        msg_body: String::from_utf8_lossy(&message.body).into_owned(),
        receipt_handle: write_handle(receipt.handle).to_string(),
        enqueue_time: message.enqueue_ms / 1000,
        first_dequeue_time: message.first_dequeue_ms / 1000,
        next_visible_time: receipt.next_visible_ms / 1000,
        dequeue_count: message.dequeue_count.into(),
    }
}

/// Errors, too, have status 200.
fn answer(answer: &Answer<Fields>) -> Response<Full<Bytes>> {
    // Texts and numbers: they always have a JSON form.
    let body = serde_json::to_vec(answer).unwrap_or_default();
    let mut response = Response::new(Full::from(body));
    // What the live service says it is has been recorded nowhere.
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json;charset=utf-8"));
    response
}

fn page(status: StatusCode, page: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}
