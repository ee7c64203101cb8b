//! A service on a loopback address, for tests.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::{ClientOptions, Credentials, Transport};
use crate::connectors::cmq::{
    signature::SignMethod,
    wire::{CmqProto, Command, frame},
};

/// What becomes of a request.
pub enum Reply {
    /// Answered with these, in this order.
    Answers(Vec<CmqProto>),
    /// Not answered.
    Silence,
    /// The connection is closed.
    Close,
}

type OnFrame = Box<dyn FnMut(&CmqProto) -> Reply + Send>;

/// An address of the TCP protocol. It takes every authentication; what else becomes of a request the test says.
pub struct Address {
    pub at: SocketAddr,
    seen: Arc<Mutex<Vec<(usize, CmqProto)>>>,
}

impl Address {
    pub async fn new(on_frame: impl FnMut(&CmqProto) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<(usize, CmqProto)>>>::default();
        let on_frame: Arc<Mutex<OnFrame>> = Arc::new(Mutex::new(Box::new(on_frame)));
        let all = Arc::clone(&seen);
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, stream, Arc::clone(&all), Arc::clone(&on_frame)));
            }
        });
        Self { at, seen }
    }

    /// Every request so far, and the number of its connection.
    pub fn seen(&self) -> MutexGuard<'_, Vec<(usize, CmqProto)>> {
        self.seen.lock().unwrap()
    }

    /// How many requests of a command there were.
    pub fn count(&self, command: Command) -> usize {
        self.seen().iter().filter(|(_, request)| request.cmd == command.number()).count()
    }
}

async fn serve(
    connection: usize,
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<(usize, CmqProto)>>>,
    on_frame: Arc<Mutex<OnFrame>>,
) {
    let mut received = BytesMut::new();
    loop {
        while let Some(request) = frame::decode(&mut received).unwrap() {
            seen.lock().unwrap().push((connection, request.clone()));
            let reply = match request.cmd == Command::Auth.number() {
                true => Reply::Answers(vec![answer(&request, 0)]),
                false => (on_frame.lock().unwrap())(&request),
            };
            match reply {
                Reply::Answers(answers) => {
                    for answer in answers {
                        stream.write_all(&frame::encode(&answer)).await.unwrap();
                    }
                }
                Reply::Silence => {}
                Reply::Close => return,
            }
        }
        if !matches!(stream.read_buf(&mut received).await, Ok(1..)) {
            return;
        }
    }
}

/// An answer with nothing but a result.
pub fn answer(request: &CmqProto, result: i32) -> CmqProto {
    CmqProto { seqno: request.seqno, cmd: request.cmd, result: Some(result), ..CmqProto::default() }
}

/// An HTTP server that answers every request with what a function makes of its query or form.
pub async fn http(answer: impl FnMut(&str) -> (u16, String) + Send + 'static) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/v2/index.php", listener.local_addr().unwrap())).unwrap();
    let answer = Arc::new(Mutex::new(answer));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = Arc::clone(&answer);
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = Arc::clone(&answer);
                async move {
                    let query = request.uri().query().map(str::to_owned);
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let asked = query.unwrap_or_else(|| String::from_utf8(body.to_vec()).unwrap());
                    let (status, text) = (answer.lock().unwrap())(&asked);
                    Ok::<_, Infallible>(Response::builder().status(status).body(Full::new(Bytes::from(text))).unwrap())
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// A name server that knows these addresses.
pub async fn name_server(addresses: &[SocketAddr]) -> Url {
    let addresses: Vec<String> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
    let answer = format!("{{\"code\":0,\"message\":\"\",\"requestId\":\"1\",\"addr\":[{}]}}", addresses.join(","));
    http(move |_| (200, answer.clone())).await
}

/// An address where nothing listens.
pub async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

pub fn options(hosts: Vec<Url>, transport: Transport) -> ClientOptions {
    ClientOptions {
        hosts,
        queue: "q".to_owned(),
        credentials: Credentials {
            secret_id: "AKID1".to_owned(),
            secret_key: "T0PS3CRET".to_owned(),
            method: SignMethod::HmacSha1,
        },
        transport,
        request_timeout: Duration::from_secs(20),
    }
}
