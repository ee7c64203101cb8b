//! The real servers of RocketMQ as child processes, and the official clients that drive them.
//!
//! `make rocketmq` puts the jars into `target/rocketmq`. A JVM costs seconds, so the tests of one program share servers.

mod configuration;
mod driver;
mod messages;
mod pipelines;

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use configuration::Ports;
#[allow(unused_imports, reason = "each test uses its part")]
pub use configuration::{ACCESS_KEY, BROKER, CLUSTER, SECRET_KEY};
use driver::Driver;
pub use messages::{Outgoing, Received};
#[allow(unused_imports, reason = "each test uses its part")]
pub use pipelines::{Reading, bodies, positions, row, rows};
use serde_json::{Value, json};

use super::{Process, skip, until};

/// A broker needs three seconds of a core; how long that is on a busy machine nobody knows.
const START: Duration = Duration::from_secs(240);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// 4.9.7.
    Four,
    /// 5.3.3.
    Five,
}

impl Generation {
    const fn number(self) -> u8 {
        match self {
            Self::Four => 4,
            Self::Five => 5,
        }
    }
}

/// What to start beside name server and broker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// A proxy (5.x), with a gRPC and a remoting port.
    pub proxy: bool,
    /// Servers that refuse whoever is not `ACCESS_KEY`.
    pub access_control: bool,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn installed() -> PathBuf {
    root().join("target/rocketmq")
}

/// Whether the servers can be started here. Without them a test is skipped, and says so; in CI it fails.
fn available() -> bool {
    let parts = ["lib4/stamp", "lib5/stamp", "classes4/stamp", "classes5/stamp", "python.stamp"];
    let missing: Vec<_> = parts.iter().filter(|part| !installed().join(part).exists()).collect();
    if missing.is_empty() {
        return true;
    }
    skip(&format!("the servers of RocketMQ are not installed: run `make rocketmq` (missing: {missing:?})"));
    false
}

/// The servers of 5.x with their proxy, shared by the tests of this program; `None`: they are not installed.
pub fn five() -> Option<&'static Servers> {
    static SHARED: OnceLock<Servers> = OnceLock::new();
    let wanted = Wanted { proxy: true, ..Wanted::default() };
    available().then(|| SHARED.get_or_init(|| Servers::start_installed(Generation::Five, wanted)))
}

/// The servers of 4.9, shared by the tests of this program; `None`: they are not installed.
pub fn four() -> Option<&'static Servers> {
    static SHARED: OnceLock<Servers> = OnceLock::new();
    available().then(|| SHARED.get_or_init(|| Servers::start_installed(Generation::Four, Wanted::default())))
}

/// Name server, broker, perhaps a proxy, and a Java client.
pub struct Servers {
    pub generation: Generation,
    wanted: Wanted,
    home: PathBuf,
    ports: Ports,
    broker: Mutex<Option<Process>>,
    driver: Mutex<Driver>,
    _others: Vec<Process>,
    _sweeper: Sweeper,
}

/// Removes the folder of servers when this process has ended, however it does: what a program shares is never dropped.
struct Sweeper {
    _shell: Process,
}

impl Sweeper {
    fn of(home: &Path) -> Self {
        // The servers end by the same sign, the end of their standard input.
        let script = "trap '' INT TERM; cat >/dev/null; sleep 1; rm -rf \"$0\"";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(home).stdin(Stdio::piped());
        Self { _shell: Process(command.spawn().expect("a shell")) }
    }
}

impl Servers {
    /// Servers of a test's own; `None`: they are not installed.
    pub fn start(generation: Generation, wanted: Wanted) -> Option<Self> {
        available().then(|| Self::start_installed(generation, wanted))
    }

    fn start_installed(generation: Generation, wanted: Wanted) -> Self {
        let home = tempfile::Builder::new().prefix("queuewarden-rocketmq-").tempdir().expect("a folder").keep();
        let sweeper = Sweeper::of(&home);
        let ports = Ports::free();
        configuration::write(&home, generation, wanted, &ports);
        let driver = Driver::start(&home, generation, &ports.name_server(), wanted.access_control);
        let mut name_server = run(&home, generation, "namesrv", "org.apache.rocketmq.namesrv.NamesrvStartup", &["-c"]);
        listens(&home, "namesrv", &mut name_server, ports.name_server);
        let mut servers = Self {
            generation,
            wanted,
            broker: Mutex::new(None),
            driver: Mutex::new(driver),
            _others: vec![name_server],
            _sweeper: sweeper,
            home,
            ports,
        };
        servers.start_broker();
        if wanted.proxy {
            let (home, ports) = (&servers.home, &servers.ports);
            let arguments = ["-pm", "cluster", "-pc"];
            let mut proxy = run(home, generation, "proxy", "org.apache.rocketmq.proxy.ProxyStartup", &arguments);
            listens(home, "proxy", &mut proxy, ports.proxy_grpc);
            listens(home, "proxy", &mut proxy, ports.proxy_remoting);
            servers._others.push(proxy);
        }
        servers
    }

    /// `host:port` of the name server.
    pub fn name_server(&self) -> String {
        self.ports.name_server()
    }

    /// `host:port` where the broker listens.
    pub fn broker(&self) -> String {
        format!("127.0.0.1:{}", self.ports.broker)
    }

    /// `host:port` where the proxy speaks remoting.
    pub fn proxy(&self) -> String {
        assert!(self.wanted.proxy, "these servers have no proxy");
        format!("127.0.0.1:{}", self.ports.proxy_remoting)
    }

    /// `host:port` where the proxy speaks gRPC.
    pub fn proxy_grpc(&self) -> String {
        assert!(self.wanted.proxy, "these servers have no proxy");
        format!("127.0.0.1:{}", self.ports.proxy_grpc)
    }

    /// Kills the broker as `kill -9` does.
    pub fn kill_broker(&self) {
        let mut broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner);
        broker.take().expect("a broker runs").kill_9();
    }

    /// Starts the broker on its store, where it was before; answers when it is registered and serves.
    pub fn start_broker(&self) {
        let mut place = self.broker.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(place.is_none(), "a broker runs");
        let class = "org.apache.rocketmq.broker.BrokerStartup";
        let mut broker = run(&self.home, self.generation, "broker", class, &["-c"]);
        listens(&self.home, "broker", &mut broker, self.ports.broker);
        let registered = self.try_ask(&json!({"do": "register", "broker": BROKER, "address": self.broker()}));
        if let Err(error) = registered {
            alive(&self.home, "broker", &mut broker);
            panic!("the broker does not register: {error}\n{}", printed(&self.home, "broker"));
        }
        *place = Some(broker);
    }

    /// `kill -9`, and the same broker again.
    pub fn restart_broker(&self) {
        self.kill_broker();
        self.start_broker();
    }

    /// The process of the broker that runs.
    pub fn broker_pid(&self) -> u32 {
        let broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner);
        broker.as_ref().expect("a broker runs").pid()
    }

    /// The process of the official client.
    pub fn client_pid(&self) -> u32 {
        self.driver().process.pid()
    }

    fn driver(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the official client answers; `Err`: what it says went wrong.
    pub fn try_ask(&self, what: &Value) -> Result<Value, String> {
        self.driver().ask(what)
    }

    pub fn ask(&self, what: &Value) -> Value {
        self.try_ask(what).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Creates a topic, or changes the number of its queues.
    pub fn create_topic(&self, topic: &str, queues: u32) {
        self.ask(&json!({"do": "create_topic", "topic": topic, "queues": queues}));
    }

    /// Sends by the official Java client, in batches per queue, each message to the queue it names.
    pub fn send(&self, topic: &str, messages: &[Outgoing]) {
        let file = messages::write(&self.home, messages);
        let sent = self.ask(&json!({"do": "send", "topic": topic, "file": file.path(), "batch": 100}));
        assert_eq!(sent, messages.len());
    }

    /// Sends by the official Python client through the proxy's gRPC port; the client chooses the queues.
    pub fn send_grpc(&self, topic: &str, messages: &[Outgoing]) {
        let file = messages::write(&self.home, messages);
        let output = Command::new(installed().join("venv/bin/python"))
            .arg(root().join("tests/rocketmq/send_grpc.py"))
            .args([self.proxy_grpc().as_str(), topic])
            .arg(file.path())
            // Where the client writes its log.
            .env("HOME", &self.home)
            .output()
            .expect("python runs");
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}\n{error}");
        assert_eq!(out.trim(), json!({"sent": messages.len()}).to_string().replace(':', ": "), "{error}");
    }

    /// Reads all a topic holds by the official Java client, in the order of queues and offsets.
    pub fn read(&self, topic: &str) -> Vec<Received> {
        let file = tempfile::NamedTempFile::new_in(&self.home).expect("a file");
        self.ask(&json!({"do": "read", "topic": topic, "file": file.path()}));
        messages::read(file.path())
    }

    /// First and next offset of each queue, by its number.
    pub fn offsets(&self, topic: &str) -> Vec<(i64, i64)> {
        let queues = self.ask(&json!({"do": "offsets", "topic": topic}));
        let number = |queue: &Value, name: &str| queue[name].as_i64().expect("an offset");
        queues.as_array().expect("queues").iter().map(|one| (number(one, "min"), number(one, "max"))).collect()
    }

    /// Lag of a group in each queue, by its number, as the servers' admin tool counts it.
    pub fn lag(&self, group: &str, topic: &str) -> Vec<i64> {
        let queues = self.ask(&json!({"do": "lag", "group": group, "topic": topic}));
        let queues = queues.as_array().expect("queues").iter().filter(|one| one["topic"] == topic);
        queues.map(|one| one["lag"].as_i64().expect("a lag")).collect()
    }

    /// Creates a consumer group, as an operator and a consumer's first heartbeat do: without its retry topic the
    /// admin tool of 4.9 shows no lag.
    pub fn create_group(&self, group: &str) {
        let said = self.mqadmin(&["updateSubGroup", "-b", &self.broker(), "-g", group]);
        assert!(said.contains("success"), "{said}");
        self.create_topic(&format!("%RETRY%{group}"), 1);
    }

    /// Sets the offset of a group, as an operator does.
    pub fn commit(&self, group: &str, topic: &str, queue: u32, offset: i64) {
        let queue =
            json!({"do": "commit", "group": group, "topic": topic, "broker": BROKER, "queue": queue, "offset": offset});
        self.ask(&queue);
    }

    /// Runs the servers' own command line tool (`mqadmin`), and answers what it prints.
    pub fn mqadmin(&self, arguments: &[&str]) -> String {
        self.ask(&json!({"do": "admin", "arguments": arguments})).as_str().expect("a text").to_owned()
    }

    /// The Java client's own pull loop at full speed, a thread a queue.
    pub fn pull_bench(&self, topic: &str, pull_size: u32, warm: Duration, measure: Duration) -> Value {
        let (warm, measure) = (warm.as_millis() as u64, measure.as_millis() as u64);
        self.ask(&json!({"do": "pull_bench", "topic": topic, "pull_size": pull_size, "warm_ms": warm, "measure_ms": measure}))
    }

    /// The Java client's own send loop at full speed, a thread a queue.
    pub fn send_bench(&self, topic: &str, batch: u32, body_bytes: u32, warm: Duration, measure: Duration) -> Value {
        let (warm, measure) = (warm.as_millis() as u64, measure.as_millis() as u64);
        self.ask(&json!({
            "do": "send_bench", "topic": topic, "batch": batch, "body_bytes": body_bytes,
            "warm_ms": warm, "measure_ms": measure,
        }))
    }
}

/// A JVM of a generation, with everything of it in `home`.
fn java(home: &Path, generation: Generation) -> Command {
    let number = generation.number();
    let (classes, lib) = (installed().join(format!("classes{number}")), installed().join(format!("lib{number}")));
    let mut command = Command::new("java");
    command.args(configuration::JVM).args(configuration::jvm_paths(home));
    command.arg("-cp").arg(format!("{}:{}/*", classes.display(), lib.display())).env("ROCKETMQ_HOME", home);
    command
}

/// Starts a server with its configuration as last argument; it ends when this process does.
fn run(home: &Path, generation: Generation, name: &str, class: &str, arguments: &[&str]) -> Process {
    let out = File::options().append(true).create(true).open(home.join(format!("{name}.out"))).expect("a file");
    let mut command = java(home, generation);
    command
        .args(["Attached", class])
        .args(arguments)
        .arg(home.join(configuration::file(name)))
        .stdin(Stdio::piped())
        .stdout(out.try_clone().expect("a file"))
        .stderr(out);
    Process(command.spawn().expect("java starts"))
}

/// Fails with what the server has printed if it has ended.
fn alive(home: &Path, name: &str, process: &mut Process) {
    if let Some(status) = process.0.try_wait().expect("it can be waited for") {
        panic!("{name} ended with {status}:\n{}", printed(home, name));
    }
}

fn printed(home: &Path, name: &str) -> String {
    fs::read_to_string(home.join(format!("{name}.out"))).unwrap_or_default()
}

fn listens(home: &Path, name: &str, process: &mut Process, port: u16) {
    until(START, &format!("{name} listens"), || {
        alive(home, name, process);
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
    });
}

/// Whether nobody listens on a port, on whatever address.
fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}
