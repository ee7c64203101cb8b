//! Real processes, started and ended by pid, and a way to wait without sleeping blindly.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

pub mod cmq;
pub mod cmq_pipelines;
pub mod letters;
pub mod numbers;
pub mod rocketmq;
pub mod rows;

use std::{
    env,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

pub const KEY_ID: &str = "test-id";
pub const KEY_SECRET: &str = "test-secret-that-is-never-shown";

/// Asks until there is an answer; fails with `what` after the deadline.
pub fn until<T>(deadline: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < deadline, "not within {deadline:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(15));
    }
}

pub const SOON: Duration = Duration::from_secs(60);

/// Says that the test is skipped, and why, where `make test` looks for that; in CI it fails.
pub fn skip(why: &str) {
    let line = format!("skipped: {}: {why}", std::thread::current().name().unwrap_or("a test"));
    assert!(env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{line}");
    // Not through println!, which is kept from who sees a test that passes.
    let _ = writeln!(io::stderr(), "{line}");
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    let list = File::options().append(true).create(true).open(target.join("skipped"));
    writeln!(list.expect("a list"), "{line}").expect("written");
}

/// A child process that does not outlive the test.
pub struct Process(pub Child);

impl Process {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("/bin/kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Sends a signal with a value, as `sigqueue` does.
    pub fn signal_with(&self, name: &str, value: i32) {
        let (value, pid) = (value.to_string(), self.pid().to_string());
        let status = Command::new("/bin/kill").args(["-s", name, "-q", &value, &pid]).status();
        assert!(status.expect("kill runs").success());
    }

    pub fn kill_9(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }

    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        until(deadline, "the process ends", || self.0.try_wait().expect("it can be waited for"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuewarden"));
    command.env("MNS_ACCESS_KEY_ID", KEY_ID).env("MNS_ACCESS_KEY_SECRET", KEY_SECRET);
    command
}

/// The emulator in a process of its own.
pub struct EmulatorProcess {
    pub process: Process,
    pub endpoint: String,
    /// Where CMQ is over HTTP, its name server too, if it was started with `--cmq`.
    pub cmq: String,
    /// Where CMQ is over TCP, as `127.0.0.1:1234`.
    pub cmq_tcp: String,
}

impl EmulatorProcess {
    /// One that checks signatures.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_open(&[&["--access-key-id", KEY_ID, "--access-key-secret", KEY_SECRET], arguments].concat())
    }

    /// One that looks at no signature.
    pub fn start_open(arguments: &[&str]) -> Self {
        let mut child = binary()
            .args(["emulator", "--mns", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut told = |service: &str| {
            let line = lines.next().expect("it says where it is").expect("UTF-8");
            line.strip_prefix("emulator: ").and_then(|line| line.strip_prefix(service)).expect("its address").to_owned()
        };
        let endpoint = told("mns ");
        let has_cmq = arguments.contains(&"--cmq");
        let (cmq, cmq_tcp) = if has_cmq { (told("cmq "), told("cmq tcp ")) } else { Default::default() };
        Self { process: Process(child), endpoint, cmq, cmq_tcp }
    }

    fn address(&self) -> &str {
        self.endpoint.strip_prefix("http://").expect("http")
    }

    /// What a queue holds and has done.
    pub fn queue(&self, queue: &str) -> Value {
        let (_, body) = get(self.address(), "/_emulator/stats").expect("the emulator answers");
        let all: Value = serde_json::from_str(&body).expect("JSON");
        all.get(queue).unwrap_or_else(|| panic!("no queue {queue} in {body}")).clone()
    }

    pub fn count(&self, queue: &str, what: &str) -> u64 {
        self.queue(queue)[what].as_u64().unwrap_or_else(|| panic!("no count {what}"))
    }

    /// Sets the switches of a queue, such as `delay-ms=3&throttle=0.1`; those not named are off.
    pub fn order(&self, queue: &str, switches: &str) {
        let address = self.address();
        let mut stream = TcpStream::connect(address).expect("the emulator answers");
        let head = format!("PUT /_emulator/queues/{queue}/faults HTTP/1.1\r\nHost: {address}\r\nConnection: close");
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{switches}", switches.len()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Messages in the queue, in whatever condition.
    pub fn left(&self, queue: &str) -> u64 {
        let report = self.queue(queue);
        ["active", "inactive", "delayed"].iter().map(|part| report[*part].as_u64().unwrap_or(0)).sum()
    }
}

/// A plain GET; `None` if nobody answers.
pub fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// A folder with pipelines, state and output, and the supervisor that runs there.
pub struct Place {
    pub dir: tempfile::TempDir,
    starts: u32,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("pipelines")).expect("a folder");
        Self { dir, starts: 0 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn define(&self, name: &str, text: &str) {
        fs::write(self.path("pipelines").join(format!("{name}.yaml")), text).expect("written");
    }

    pub fn run_command(&mut self) -> Command {
        self.starts += 1;
        let log = File::create(self.path(&format!("log-{}", self.starts))).expect("a log");
        let mut command = binary();
        command
            .args(["run", "--listen", "127.0.0.1:0"])
            .arg("--pipelines")
            .arg(self.path("pipelines"))
            .arg("--state")
            .arg(self.path("state"))
            .stdin(Stdio::null())
            .stdout(File::create(self.path("stdout")).expect("a file"))
            .stderr(log);
        command
    }

    /// What the process that was started last has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path(&format!("log-{}", self.starts))).expect("its log")
    }

    /// Starts the supervisor; answers when it listens.
    pub fn run(&mut self) -> Supervisor {
        self.run_with(&[])
    }

    pub fn run_with(&mut self, environment: &[(&str, &str)]) -> Supervisor {
        let mut command = self.run_command();
        command.envs(environment.iter().copied());
        self.started(command)
    }

    pub fn started(&self, mut command: Command) -> Supervisor {
        let mut process = Process(command.spawn().expect("it starts"));
        let log = self.path(&format!("log-{}", self.starts));
        let address = until(SOON, "the supervisor listens", || {
            let log = fs::read_to_string(&log).expect("its log");
            if let Some(status) = process.0.try_wait().expect("it can be waited for") {
                panic!("it ended with {status}:\n{log}");
            }
            let line = log.lines().find(|line| line.contains("\"listening\""))?;
            let line: Value = serde_json::from_str(line).expect("a JSON log line");
            Some(line["address"].as_str().expect("an address").to_owned())
        });
        Supervisor { process, address, log }
    }
}

/// A running supervisor.
pub struct Supervisor {
    pub process: Process,
    pub address: String,
    pub log: PathBuf,
}

impl Supervisor {
    /// The status of a pipeline; `None` if nobody answers any more.
    pub fn pipeline(&self, name: &str) -> Option<Value> {
        let (_, body) = get(&self.address, "/api/pipelines")?;
        let all: Value = serde_json::from_str(&body).ok()?;
        all.as_array()?.iter().find(|pipeline| pipeline["name"] == name).cloned()
    }

    pub fn wait_for_state(&self, name: &str, state: &str) -> Value {
        until(SOON, &format!("{name} is {state}"), || self.pipeline(name).filter(|status| status["state"] == state))
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("its log")
    }

    /// SIGTERM, and the exit code.
    pub fn stop(&mut self) -> i32 {
        self.process.signal("TERM");
        self.process.wait(SOON).code().expect("it exits")
    }
}

/// Runs `tests/sdk/traffic.py`, which uses Alibaba's Python SDK, and reads its one line of JSON.
pub fn traffic(arguments: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/sdk/venv/bin/python");
    assert!(python.exists(), "Alibaba's Python SDK is not installed: run `make sdk`");
    let output = Command::new(python)
        .arg(root.join("tests/sdk/traffic.py"))
        .args(arguments)
        .env("MNS_ACCESS_KEY_ID", KEY_ID)
        .env("MNS_ACCESS_KEY_SECRET", KEY_SECRET)
        .output()
        .expect("python runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    serde_json::from_str(out.trim()).unwrap_or(Value::Null)
}

/// The definition that reads what `traffic.py` sends.
pub fn traffic_definition(endpoint: &str, queue: &str, out: &Path, rest: &str) -> String {
    format!(
        "source:
  connector: mns
  endpoint: {endpoint}
  region: cn-hangzhou
  queueName: {queue}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  format: json
  batchSize: 16
  receive.concurrency: 4
  pollingWaitTime: 1s
  schema:
    n: BIGINT
    text: STRING
    amount: DECIMAL(10, 2)
    at: TIMESTAMP(3)
    tags: ARRAY<STRING>
    flag: BOOLEAN
    message-id: STRING METADATA
sink:
  connector: filesystem
  path: {}
  format: json
{rest}
",
        out.display()
    )
}

/// Every row is there once, with its content.
pub fn assert_exactly_once(out: &Path, count: u64) {
    let verdict = traffic(&["verify", &out.display().to_string(), &count.to_string()]);
    assert_eq!(
        verdict,
        serde_json::json!({"rows": count, "missing": [], "repeated": [], "different": []}),
        "what the reader found"
    );
}
