//! What every HTTP client of a service here is made with, and what it means when it gets no answer.

use std::time::Duration;

use url::Url;

use crate::model::{Fault, FaultKind};

/// A client of these endpoints, without a timeout for whole requests. `connect`: the longest time to make a connection.
pub(super) fn build(endpoints: &[&Url], connect: Duration) -> Result<reqwest::Client, Fault> {
    let mut builder = reqwest::Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("queuewarden/", env!("CARGO_PKG_VERSION")));
    if endpoints.iter().all(|endpoint| is_loopback(endpoint)) {
        // A proxy named in the environment is for reaching other machines.
        builder = builder.no_proxy();
    }
    if endpoints.iter().all(|endpoint| endpoint.scheme() == "http") {
        // Reading the system's root certificates takes longer than all else in the start of a generation.
        builder = builder.tls_built_in_root_certs(false);
    }
    builder.build().map_err(|error| Fault::never(FaultKind::Definition, "cannot set up the HTTP client").because(error))
}

fn is_loopback(endpoint: &Url) -> bool {
    match endpoint.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The class of a request that got no answer. The URL is left out: it can hold a handle or a signature.
pub(super) fn fault_of_transport(operation: &'static str, error: reqwest::Error) -> Fault {
    let (kind, what) = match &error {
        error if error.is_timeout() => (FaultKind::Timeout, "no answer in time"),
        error if error.is_connect() => (FaultKind::Network, "cannot connect"),
        _ => (FaultKind::Network, "the connection broke"),
    };
    Fault::retry(kind, format!("{operation}: {what}")).because(error.without_url())
}
