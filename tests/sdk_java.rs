//! Tencent's Java SDK drives the emulator over TCP.

#![allow(clippy::expect_used, reason = "a test that cannot go on says so")]

mod common;

use std::{path::Path, process::Command};

use common::skip;

use queuewarden::emulator::{AccessKey, Config, start};

const ID: &str = "AKIDtest";
const SECRET: &str = "secret";

#[tokio::test]
async fn tencents_sdk_finds_a_cmq_over_tcp() {
    let java = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/sdk/java");
    if !java.join("stamp").exists() {
        return skip("Tencent's Java SDK is not installed: it needs a JDK; run `make sdk`");
    }
    let credentials = Some(AccessKey { id: ID.into(), secret: SECRET.into() });
    let (cmq, queues) = (Some(([127, 0, 0, 1], 0).into()), vec!["javaq".to_owned()]);
    let emulator = start(Config { cmq, credentials, queues, ..Config::default() }).await.expect("it starts");
    let name_server = format!("http://{}", emulator.cmq_addr().expect("it serves CMQ"));
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("java");
    // Its logs go there.
    command.arg(format!("-Duser.home={}", home.path().display())).arg("-cp");
    command.arg(format!("{0}:{0}/*", java.display())).args(["CmqSdk", &name_server, ID, SECRET, "javaq"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("java runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("java sdk of cmq: ok"), "{out}\n{error}");
    let report = &emulator.stats()["javaq"];
    assert_eq!((report.statistics.sent, report.statistics.deleted), (10, 10), "{report:?}");
    emulator.shutdown().await;
}
