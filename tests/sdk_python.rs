//! The services' own Python SDKs drive the emulator.

#![allow(clippy::expect_used, reason = "a test that cannot go on says so")]

use std::{path::Path, process::Command};

use queuewarden::emulator::{AccessKey, Config, Emulator, start};

const SECRET: &str = "secret";

async fn emulator(id: &str) -> Emulator {
    let credentials = Some(AccessKey { id: id.into(), secret: SECRET.into() });
    let cmq = Some(([127, 0, 0, 1], 0).into());
    start(Config { cmq, credentials, ..Config::default() }).await.expect("it starts")
}

/// Runs a script to its end, against an endpoint.
async fn run(script: &str, endpoint: String, id: &'static str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/sdk/venv/bin/python");
    assert!(python.exists(), "the Python SDKs are not installed: run `make sdk`");
    let script = root.join("tests/sdk").join(script);
    let run = move || Command::new(python).arg(script).args([endpoint.as_str(), id, SECRET]).output();
    let output = tokio::task::spawn_blocking(run).await.expect("no panic").expect("python runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
}

#[tokio::test]
async fn alibabas_sdk_finds_an_mns() {
    let emulator = emulator("id").await;
    run("python_sdk.py", emulator.endpoint(), "id").await;
    emulator.shutdown().await;
}

#[tokio::test]
async fn tencents_sdk_finds_a_cmq_posting_and_getting_with_both_signatures() {
    let emulator = emulator("AKIDtest").await;
    let endpoint = format!("http://{}", emulator.cmq_addr().expect("it serves CMQ"));
    run("cmq_sdk.py", endpoint, "AKIDtest").await;
    emulator.shutdown().await;
}
