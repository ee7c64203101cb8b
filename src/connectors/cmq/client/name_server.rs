//! Name servers: where the addresses of a queue are asked for.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::StatusCode;
use url::Url;

use super::{ClientOptions, Credentials, faults::fault_of_answer, signed::signed};
use crate::{
    connectors::{
        cmq::wire::{
            codes,
            json::{Answer, Route},
        },
        http_client::{self, fault_of_transport},
    },
    model::{Fault, FaultKind, Mend},
};

const OPERATION: &str = "ask the name server";

/// Name servers of one region, of which any will do.
#[derive(Debug)]
pub struct NameServers {
    http: reqwest::Client,
    hosts: Vec<Url>,
    /// Which one is asked first: the last that answered.
    first: AtomicUsize,
    credentials: Credentials,
    timeout: Duration,
}

impl NameServers {
    pub fn new(options: &ClientOptions) -> Result<Self, Fault> {
        let hosts = options.hosts.clone();
        let all: Vec<&Url> = hosts.iter().collect();
        Ok(Self {
            http: http_client::build(&all, options.request_timeout)?,
            // Not all pipelines ask the same one.
            first: AtomicUsize::new(fastrand::usize(..hosts.len().max(1))),
            hosts,
            credentials: options.credentials.clone(),
            timeout: options.request_timeout,
        })
    }

    /// The addresses (`host:port`) of a queue; at least one. The published SDK gives up at the first name server that
    /// cannot be reached; here the next one is asked, as after one that refuses.
    pub async fn route(&self, queue: &str) -> Result<Vec<String>, Fault> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.hosts.len());
        let mut failed: Option<Fault> = None;
        for at in (0..count).map(|step| (first + step) % count) {
            let Some(host) = self.hosts.get(at) else { continue };
            match self.ask(host, queue).await {
                Ok(addresses) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(addresses);
                }
                Err(fault) => {
                    if count > 1 {
                        tracing::warn!(host = host.host_str(), error = %fault, "a name server is passed over");
                    }
                    // What one refuses for good another one may know once it can be reached again.
                    if failed.as_ref().is_none_or(|before| before.mend == Mend::Never) {
                        failed = Some(fault);
                    }
                }
            }
        }
        Err(failed.unwrap_or_else(|| Fault::never(FaultKind::Definition, "there is no name server to ask")))
    }

    async fn ask(&self, host: &Url, queue: &str) -> Result<Vec<String>, Fault> {
        let parameters = vec![("queueName".into(), queue.to_owned())];
        let mut url = host.clone();
        url.set_query(Some(&signed("GET", host, "QueryQueueRoute", parameters, &self.credentials)));
        let request = self.http.get(url).timeout(self.timeout);
        let response = request.send().await.map_err(|error| fault_of_transport(OPERATION, error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| fault_of_transport(OPERATION, error))?;
        if status != StatusCode::OK {
            return Err(Fault::retry(FaultKind::Service, format!("{OPERATION}: {status}")));
        }
        let Answer { status, body } = serde_json::from_slice::<Answer<Route>>(&body).map_err(|error| {
            Fault::retry(FaultKind::Service, format!("{OPERATION}: unreadable answer")).because(error)
        })?;
        match status.code {
            codes::OK if body.addr.is_empty() => {
                Err(Fault::retry(FaultKind::Service, format!("{OPERATION}: it knows no address of the queue")))
            }
            codes::OK => Ok(body.addr),
            code => Err(fault_of_answer(OPERATION, code, &status.message, &status.request_id)),
        }
    }
}
