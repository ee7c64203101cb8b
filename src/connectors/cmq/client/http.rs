//! The HTTP protocol: signed forms, answers in JSON.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{StatusCode, header};
use serde::de::DeserializeOwned;
use url::Url;

use super::{
    ClientOptions, Credentials, DeleteFailure, Delivery,
    faults::fault_of_answer,
    signed::{Parameter, signed},
};
use crate::{
    connectors::{
        cmq::wire::{
            Class, class_of_answer, codes,
            json::{BatchReceived, DeletesFailed, QueueAttributes, ReceivedMessage, Status},
        },
        http_client::{self, fault_of_transport},
    },
    model::{Fault, FaultKind},
};

/// A client of one queue over HTTP.
#[derive(Debug)]
pub struct HttpClient {
    http: reqwest::Client,
    endpoint: Url,
    queue: String,
    credentials: Credentials,
    timeout: Duration,
}

/// An answer whose status was read.
struct Read {
    status: Status,
    body: Bytes,
}

impl HttpClient {
    pub fn new(options: &ClientOptions) -> Result<Self, Fault> {
        let endpoint = options.hosts.first().cloned();
        let endpoint = endpoint.ok_or_else(|| Fault::never(FaultKind::Definition, "there is no endpoint"))?;
        Ok(Self {
            http: http_client::build(&[&endpoint], options.request_timeout)?,
            endpoint,
            queue: options.queue.clone(),
            credentials: options.credentials.clone(),
            timeout: options.request_timeout,
        })
    }

    pub async fn attributes(&self) -> Result<QueueAttributes, Fault> {
        const OPERATION: &str = "get queue attributes";
        let read = self.call(OPERATION, "GetQueueAttributes", Vec::new(), Duration::ZERO).await?;
        read.done(OPERATION)?;
        read.parsed(OPERATION)
    }

    pub async fn receive(&self, most: usize, wait_seconds: u32) -> Result<Vec<Delivery>, Fault> {
        const OPERATION: &str = "receive";
        let parameters =
            vec![("numOfMsg".into(), most.to_string()), ("pollingWaitSeconds".into(), wait_seconds.to_string())];
        let wait = Duration::from_secs(wait_seconds.into());
        let read = self.call(OPERATION, "BatchReceiveMessage", parameters, wait).await?;
        if read.class() == Class::NoMessage {
            return Ok(Vec::new());
        }
        read.done(OPERATION)?;
        let received: BatchReceived = read.parsed(OPERATION)?;
        Ok(received.msg_info_list.into_iter().map(Delivery::from).collect())
    }

    pub async fn delete(&self, handles: &[&str]) -> Result<Vec<DeleteFailure>, Fault> {
        const OPERATION: &str = "delete";
        let (action, parameters) = match handles {
            [handle] => ("DeleteMessage", vec![("receiptHandle".into(), (*handle).to_owned())]),
            _ => ("BatchDeleteMessage", numbered("receiptHandle", handles.iter().map(|handle| (*handle).to_owned()))),
        };
        let read = self.call(OPERATION, action, parameters, Duration::ZERO).await?;
        match read.class() {
            Class::Done => Ok(Vec::new()),
            Class::InvalidHandle => Ok(super::all_failed(handles, read.status.code, &read.status.message)),
            Class::DeletesFailed => {
                let failed: DeletesFailed = read.parsed(OPERATION)?;
                let failures = failed.error_list.into_iter().map(|failure| DeleteFailure {
                    handle: failure.receipt_handle,
                    code: failure.code,
                    message: failure.message,
                });
                super::named(handles, failures.collect(), OPERATION, read.status.code, &read.status.message)
            }
            _ => Err(read.fault(OPERATION)),
        }
    }

    pub async fn send(&self, bodies: &[Bytes]) -> Result<(), Fault> {
        const OPERATION: &str = "send";
        let texts = bodies.iter().map(|body| std::str::from_utf8(body).map(str::to_owned));
        let texts = texts.collect::<Result<Vec<String>, _>>().map_err(|error| {
            Fault::never(FaultKind::Rejected, "send: a body is not UTF-8, which a form cannot carry").because(error)
        })?;
        let (action, parameters) = match <[String; 1]>::try_from(texts) {
            Ok([text]) => ("SendMessage", vec![("msgBody".into(), text)]),
            Err(texts) => ("BatchSendMessage", numbered("msgBody", texts)),
        };
        self.call(OPERATION, action, parameters, Duration::ZERO).await?.done(OPERATION)
    }

    async fn call(
        &self,
        operation: &'static str,
        action: &'static str,
        mut parameters: Vec<Parameter>,
        wait: Duration,
    ) -> Result<Read, Fault> {
        parameters.push(("queueName".into(), self.queue.clone()));
        let form = signed("POST", &self.endpoint, action, parameters, &self.credentials);
        let request = self.http.post(self.endpoint.clone()).timeout(self.timeout + wait).body(form);
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = request.send().await.map_err(|error| fault_of_transport(operation, error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| fault_of_transport(operation, error))?;
        match status {
            // The service tells all its faults inside of these; anything else comes from what is in between.
            StatusCode::OK => {
                let status = parsed(operation, &body)?;
                Ok(Read { status, body })
            }
            // Of a proxy: the service says it inside of an answer.
            StatusCode::PAYLOAD_TOO_LARGE => Err(Fault::never(FaultKind::Poison, format!("{operation}: {status}"))),
            StatusCode::TOO_MANY_REQUESTS => Err(Fault::retry(FaultKind::Throttled, format!("{operation}: {status}"))),
            _ => Err(Fault::retry(FaultKind::Service, format!("{operation}: {status} instead of an answer"))),
        }
    }
}

impl Read {
    fn class(&self) -> Class {
        class_of_answer(self.status.code, &self.status.message)
    }

    fn done(&self, operation: &'static str) -> Result<(), Fault> {
        if self.status.code == codes::OK { Ok(()) } else { Err(self.fault(operation)) }
    }

    fn fault(&self, operation: &'static str) -> Fault {
        fault_of_answer(operation, self.status.code, &self.status.message, &self.status.request_id)
    }

    fn parsed<T: DeserializeOwned>(&self, operation: &'static str) -> Result<T, Fault> {
        parsed(operation, &self.body)
    }
}

fn parsed<T: DeserializeOwned>(operation: &'static str, body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body)
        .map_err(|error| Fault::retry(FaultKind::Service, format!("{operation}: unreadable answer")).because(error))
}

/// `name.1`, `name.2` and so on: an index may begin at 0 or 1, and most SDKs begin at 1.
fn numbered(name: &str, values: impl IntoIterator<Item = String>) -> Vec<Parameter> {
    (1..).zip(values).map(|(index, value)| (Cow::Owned(format!("{name}.{index}")), value)).collect()
}

impl From<ReceivedMessage> for Delivery {
    fn from(message: ReceivedMessage) -> Self {
        Self {
            id: message.msg_id,
            handle: message.receipt_handle,
            body: Bytes::from(message.msg_body),
            enqueue_ms: message.enqueue_time.saturating_mul(1000),
            first_dequeue_ms: message.first_dequeue_time.saturating_mul(1000),
            next_visible_ms: message.next_visible_time.saturating_mul(1000),
            dequeue_count: super::count(message.dequeue_count),
        }
    }
}
