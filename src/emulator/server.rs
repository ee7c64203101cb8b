//! Connections, and what every HTTP service here does with theirs.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// More than any request needs: 64 KiB of bodies, escaped, and what is around them.
pub(super) const LARGEST_REQUEST: usize = 1 << 20;

/// The answer was lost by order; hyper closes the connection on it.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost by order")]
pub(super) struct Lost;

/// An answer on its way.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Lost>> + Send>>;

/// Accepts until `stop` is true, then closes every connection.
pub(super) async fn serve<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    connection: impl Fn(TcpStream) -> F,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are small and whole; a failure only costs time.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(connection(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "emulator: cannot accept a connection");
                    // Out of file handles, as a rule; it would be told at once again.
                    tokio::time::sleep(Duration::from_millis(50)).await;
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

/// Answers the requests of a connection, one after the other.
pub(super) async fn http<S>(stream: TcpStream, service: Arc<S>, respond: fn(Arc<S>, Request<Incoming>) -> Answering) {
    let answering = service_fn(move |request| respond(Arc::clone(&service), request));
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answering).await;
    if let Err(error) = served {
        tracing::debug!(%error, "emulator: a connection ended early");
    }
}

/// The page of something that stands before a service and knows nothing of it.
pub(super) const UNAVAILABLE_PAGE: &str = "<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>\r\n<center><h1>503 Service \
     Temporarily Unavailable</h1></center>\r\n<hr><center>Tengine</center>\r\n</body>\r\n</html>\r\n";
