//! MNS, over HTTP.

mod access;
mod convert;
mod http;
mod operations;
mod receipt;

use std::sync::Arc;

pub(super) use convert::id_text;
use tokio::{net::TcpListener, sync::watch};

use super::{server, state::State};

/// The service.
#[derive(Debug)]
struct Mns {
    /// Its own URL, which is part of answers.
    host: String,
    state: Arc<State>,
}

/// Serves until `stop` is true, then closes every connection.
pub(super) async fn serve(listener: TcpListener, state: Arc<State>, stop: watch::Receiver<bool>) {
    // It has one, or it would not listen.
    let host = listener.local_addr().map(|addr| format!("http://{addr}")).unwrap_or_default();
    let mns = Arc::new(Mns { host, state });
    server::serve(listener, stop, move |stream| server::http(stream, Arc::clone(&mns), http::respond)).await;
}
