//! What the read-only HTTP side answers to each method.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use common::Place;

/// The whole answer: head and body.
fn ask(address: &str, method: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn length(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("content-length: "))
}

#[test]
fn head_answers_as_get_without_a_body_and_every_other_method_is_refused_by_name() {
    let mut place = Place::new();
    let mut supervisor = place.run();
    for path in ["/", "/metrics", "/healthz", "/readyz", "/api/pipelines"] {
        let (got, body) = ask(&supervisor.address, "GET", path);
        assert!(got.starts_with("http/1.1 200") && !body.is_empty(), "{path}: {got}");
        let (head, nothing) = ask(&supervisor.address, "HEAD", path);
        assert!(head.starts_with("http/1.1 200") && nothing.is_empty(), "{path}: {head}\n{nothing}");
        if path != "/metrics" {
            assert_eq!(length(&head), length(&got), "{path}");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let (head, _) = ask(&supervisor.address, method, path);
            assert!(head.starts_with("http/1.1 405") && head.contains("allow: get, head"), "{method} {path}: {head}");
        }
    }
    assert!(ask(&supervisor.address, "GET", "/nowhere").0.starts_with("http/1.1 404"));
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn readiness_is_a_line_for_each_pipeline_also_where_the_reason_is_long() {
    let mut place = Place::new();
    for name in ["a", "b"] {
        place.define(name, "source: { connector: mms }\n");
    }
    let mut supervisor = place.run();
    let (_, body) = ask(&supervisor.address, "GET", "/readyz");
    assert_eq!(body, "a is failed: the definition is not valid\nb is failed: the definition is not valid\n");
    assert_eq!(supervisor.stop(), 0);
}
