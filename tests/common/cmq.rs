//! CMQ as bytes on connections: requests written by hand, answers read as they come.

use std::net::SocketAddr;

use bytes::BytesMut;
use queuewarden::connectors::cmq::{
    signature::{SignMethod, connection_text, sign, text_to_sign},
    wire::{CmqProto, frame, proto, requests},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub const ID: &str = "AKIDEXAMPLE0000000000000000000000000";
pub const SECRET: &str = "exampleSecretKey0000000000000000";

/// A request over HTTP, signed when it is written.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub host: String,
    pub path: String,
    pub parameters: Vec<(String, String)>,
}

impl Request {
    /// One that is posted, with what every request has.
    pub fn post(host: impl ToString, action: &str, parameters: &[(&str, &str)]) -> Self {
        let common = [
            ("Action", action),
            ("Nonce", "1"),
            ("SecretId", ID),
            ("SignatureMethod", "HmacSHA256"),
            ("Timestamp", "2"),
        ];
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            method: "POST",
            host: host.to_string(),
            path: "/v2/index.php".to_owned(),
            parameters: common.iter().chain(parameters).map(own).collect(),
        }
    }

    /// Signs it anew.
    pub fn sign(&mut self, secret: &str) {
        self.parameters.retain(|(name, _)| name != "Signature");
        let pairs: Vec<_> = self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let method = self.parameters.iter().find(|(name, _)| name == "SignatureMethod").expect("a method");
        let text = text_to_sign(self.method, &self.host, &self.path, &pairs);
        let signature = sign(SignMethod::of_name(&method.1), secret, &text);
        self.parameters.push(("Signature".to_owned(), signature));
    }

    pub fn write(&self) -> String {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.parameters).finish();
        let Self { method, host, path, .. } = self;
        match *method {
            "GET" => format!("GET {path}?{form} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            _ => format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{form}", form.len()),
        }
    }
}

/// A connection over HTTP.
pub struct Http(TcpStream);

impl Http {
    pub async fn connect(addr: SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.expect("it listens"))
    }

    /// Status and body; `None`: the connection was closed instead.
    pub async fn raw(&mut self, request: &str) -> Option<(u16, String)> {
        self.0.write_all(request.as_bytes()).await.ok()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).expect("UTF-8");
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.expect("a length")];
        self.0.read_exact(&mut body).await.ok()?;
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        Some((status, String::from_utf8(body).expect("UTF-8")))
    }

    /// Sends it as it is.
    pub async fn exchange(&mut self, request: &Request) -> Value {
        let (status, body) = self.raw(&request.write()).await.expect("an answer");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Posts an action, signed.
    pub async fn call(&mut self, action: &str, parameters: &[(&str, &str)]) -> Value {
        let mut request = Request::post(self.0.peer_addr().expect("connected"), action, parameters);
        request.sign(SECRET);
        self.exchange(&request).await
    }
}

/// A connection of frames.
pub struct Frames {
    stream: TcpStream,
    received: BytesMut,
    next: i64,
}

impl Frames {
    pub async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("it listens");
        Self { stream, received: BytesMut::new(), next: 1 }
    }

    /// One that has authenticated itself.
    pub async fn open(addr: SocketAddr) -> Self {
        let mut frames = Self::connect(addr).await;
        assert_eq!(frames.call(auth(SECRET)).await.result, Some(0));
        frames
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it is taken");
    }

    /// Sends it under the next number, which it answers.
    pub async fn send(&mut self, message: CmqProto) -> i64 {
        let seqno = self.next;
        self.next += 1;
        self.write(&frame::encode(&CmqProto { seqno, ..message })).await;
        seqno
    }

    /// The next frame; `None`: the connection was closed instead.
    pub async fn receive(&mut self) -> Option<CmqProto> {
        loop {
            if let Some(message) = frame::decode(&mut self.received).expect("a frame") {
                return Some(message);
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(1..) => {}
                _ => return None,
            }
        }
    }

    /// Sends it and takes its answer, which must be the next one.
    pub async fn call(&mut self, message: CmqProto) -> CmqProto {
        let seqno = self.send(message).await;
        let answer = self.receive().await.expect("an answer");
        assert_eq!(answer.seqno, seqno);
        answer
    }
}

/// The first request of a connection.
pub fn auth(secret: &str) -> CmqProto {
    let client_id = "127.0.0.1@test".to_owned();
    let signature = sign(SignMethod::HmacSha1, secret, &connection_text(&client_id, ID));
    requests::authenticate(proto::Auth {
        secret_id: ID.to_owned(),
        signature,
        client_id,
        signature_method: SignMethod::HmacSha1.name().to_owned(),
    })
}
