//! Alibaba's Python SDK drives the emulator.

use std::{path::Path, process::Command};

use queuewarden::emulator::{AccessKey, Config, start};

#[tokio::test]
async fn the_python_sdk_finds_an_mns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/sdk/venv/bin/python");
    assert!(python.exists(), "Alibaba's Python SDK is not installed: run `make sdk`");
    let credentials = Some(AccessKey { id: "id".into(), secret: "secret".into() });
    let emulator = start(Config { credentials, ..Config::default() }).await.expect("it starts");
    let endpoint = emulator.endpoint();
    let script = root.join("tests/sdk/python_sdk.py");
    let run = move || Command::new(python).arg(script).args([endpoint.as_str(), "id", "secret"]).output();
    let output = tokio::task::spawn_blocking(run).await.expect("no panic").expect("python runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    emulator.shutdown().await;
}
