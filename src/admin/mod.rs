//! The read-only HTTP side: what Prometheus, a probe and a person ask.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use actix_web::{
    App, FromRequest, Handler, HttpResponse, HttpServer, Resource, Responder,
    dev::ServerHandle,
    guard,
    http::header::{ALLOW, ContentType},
    web,
};

use crate::supervisor::Handle;

/// Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A running HTTP server.
pub struct Admin {
    /// Where it listens; the port is real where 0 was asked for.
    pub address: SocketAddr,
    handle: ServerHandle,
}

impl Admin {
    /// Stops listening and ends open connections.
    pub async fn stop(&self) {
        self.handle.stop(false).await;
    }
}

/// Serves on a bound listener, on the main arbiter.
///
/// # Errors
/// The listener cannot be registered with the system.
pub fn serve(listener: TcpListener, handle: Handle) -> io::Result<Admin> {
    let address = listener.local_addr()?;
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(handle.clone()))
            .service(read_only("/", index))
            .service(read_only("/metrics", metrics))
            .service(read_only("/healthz", healthz))
            .service(read_only("/readyz", readyz))
            .service(read_only("/api/pipelines", pipelines))
            .service(read_only("/api/reload", reload))
    })
    .workers(1)
    .disable_signals()
    .shutdown_timeout(1)
    .listen(listener)?;
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    Ok(Admin { address, handle })
}

/// A path that answers GET, HEAD (the same without the body), and tells every other method so.
fn read_only<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    F::Output: Responder + 'static,
    Args: FromRequest + 'static,
{
    let reads = guard::Any(guard::Get()).or(guard::Head());
    web::resource(path).route(web::route().guard(reads).to(handler)).default_service(web::to(not_allowed))
}

async fn not_allowed() -> impl Responder {
    HttpResponse::MethodNotAllowed().insert_header((ALLOW, "GET, HEAD")).body("this is read only: GET or HEAD\n")
}

async fn index() -> impl Responder {
    "queuewarden\n\n/metrics        for Prometheus\n/healthz        is the process alive\n/readyz         does every pipeline run\n/api/pipelines  their state, as JSON\n/api/reload     what the last reload did, as JSON\n"
}

async fn metrics(handle: web::Data<Handle>) -> HttpResponse {
    match handle.metrics.render() {
        Ok(text) => HttpResponse::Ok().content_type(METRICS_TYPE).body(text),
        Err(error) => HttpResponse::InternalServerError().body(error.to_string()),
    }
}

async fn healthz() -> impl Responder {
    "ok\n"
}

/// 200 if every pipeline does what it is for, else 503 with a line for each that does not.
async fn readyz(handle: web::Data<Handle>) -> HttpResponse {
    let not_ready: Vec<String> = handle
        .pipelines()
        .iter()
        .filter(|pipeline| !pipeline.state.is_ready())
        .map(|pipeline| {
            // What is being tried now says more than what ended an earlier generation.
            let mut reasons = pipeline.troubles.clone();
            if reasons.is_empty() {
                reasons.extend(pipeline.last_error.clone());
            }
            // A line for each pipeline; the others are in `/api/pipelines`.
            let reason = reasons.join("; ").lines().next().map(|reason| format!(": {}", reason.trim_end_matches(':')));
            let reason = reason.unwrap_or_default();
            format!("{} is {}{reason}\n", pipeline.name, pipeline.state.name())
        })
        .collect();
    if not_ready.is_empty() {
        HttpResponse::Ok().content_type(ContentType::plaintext()).body("ready\n")
    } else {
        HttpResponse::ServiceUnavailable().content_type(ContentType::plaintext()).body(not_ready.concat())
    }
}

async fn pipelines(handle: web::Data<Handle>) -> impl Responder {
    web::Json(handle.pipelines())
}

/// `null` before the first.
async fn reload(handle: web::Data<Handle>) -> impl Responder {
    web::Json(handle.last_reload())
}
