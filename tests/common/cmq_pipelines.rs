//! Pipelines from and to queues of CMQ, and what is in the queues.

use std::{collections::BTreeMap, fs, ops::Range, path::Path, time::Duration};

use queuewarden::connectors::{
    cmq::{
        client::{Client, ClientOptions, Credentials, Transport},
        signature::SignMethod,
    },
    mns::{self, wire::QueueSettings},
};
use serde_json::Value;
use url::Url;

use super::{EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, Supervisor, get, until};

/// Both protocols, as an option says them.
pub const TRANSPORTS: [&str; 2] = ["tcp", "http"];

/// An emulator, and a folder with pipelines.
pub struct Rig {
    pub emulator: EmulatorProcess,
    pub place: Place,
    pub transport: &'static str,
}

impl Rig {
    pub fn new(transport: &'static str) -> Self {
        let emulator = EmulatorProcess::start(&["--cmq", "127.0.0.1:0", "--seed", "11"]);
        Self { emulator, place: Place::new(), transport }
    }

    /// Makes a queue. `visibility` in seconds.
    pub fn create(&self, queue: &str, settings: QueueSettings) {
        let credentials = mns::client::Credentials {
            access_key_id: KEY_ID.into(),
            access_key_secret: KEY_SECRET.into(),
            security_token: None,
        };
        let client = mns::client::Client::new(&self.emulator.endpoint, credentials).unwrap();
        runtime().block_on(client.create_queue(queue, &settings)).unwrap();
    }

    pub fn create_with_visibility(&self, queue: &str, seconds: u32) {
        self.create(queue, QueueSettings { visibility_seconds: Some(seconds), ..QueueSettings::default() });
    }

    /// The lines of a section that reads or writes a queue.
    pub fn queue(&self, queue: &str) -> String {
        format!(
            "  connector: cmq
  hosts: {}
  queue: {queue}
  secret-id: ${{MNS_ACCESS_KEY_ID}}
  secret-key: ${{MNS_ACCESS_KEY_SECRET}}
  format: json
  transport: {}
",
            self.emulator.cmq, self.transport
        )
    }

    /// A pipeline `q` that writes the numbers in a queue `q` to files. `more`: further lines of the source.
    pub fn define_to_files(&self, more: &str, rest: &str) {
        let definition = format!(
            "source:\n{}  polling-wait-timeout: 1s\n{more}  schema: {{ n: INT }}
sink: {{ connector: filesystem, path: {}, format: json }}\n{rest}\n",
            self.queue("q"),
            self.place.path("out").display()
        );
        self.place.define("q", &definition);
    }

    /// A pipeline `q` from a queue `from` to a queue `to`. `more`: further lines of the sink.
    pub fn define_to_queue(&self, more: &str, rest: &str) {
        let definition = format!(
            "source:\n{}  polling-wait-timeout: 1s\n  schema: {{ n: INT }}\nsink:\n{}{more}{rest}\n",
            self.queue("from"),
            self.queue("to")
        );
        self.place.define("q", &definition);
    }

    fn client(&self, queue: &str) -> Client {
        let options = ClientOptions {
            hosts: vec![Url::parse(&format!("{}/v2/index.php", self.emulator.cmq)).unwrap()],
            queue: queue.to_owned(),
            credentials: Credentials {
                secret_id: KEY_ID.to_owned(),
                secret_key: KEY_SECRET.to_owned(),
                method: SignMethod::HmacSha256,
            },
            transport: Transport::Http,
            request_timeout: Duration::from_secs(10),
        };
        Client::new(&options).unwrap()
    }

    /// Sends the numbers of a range.
    pub fn send(&self, queue: &str, numbers: Range<u32>) {
        self.send_bodies(queue, numbers.map(|n| format!("{{\"n\":{n}}}")));
    }

    /// Sends numbers, each with a text so long.
    pub fn send_texts(&self, queue: &str, rows: &[(u32, usize)]) {
        let body = |(n, length): &(u32, usize)| format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(*length));
        self.send_bodies(queue, rows.iter().map(body));
    }

    fn send_bodies(&self, queue: &str, bodies: impl Iterator<Item = String>) {
        let client = self.client(queue);
        let bodies: Vec<bytes::Bytes> = bodies.map(Into::into).collect();
        runtime().block_on(async {
            for batch in bodies.chunks(16) {
                client.send(batch).await.unwrap();
            }
        });
    }

    /// Takes all that a queue holds: each number, and how often it was there.
    pub fn take(&self, queue: &str) -> BTreeMap<u32, u32> {
        let client = self.client(queue);
        let mut taken = BTreeMap::new();
        runtime().block_on(async {
            while self.emulator.left(queue) > 0 {
                let messages = client.receive(16, 1).await.unwrap();
                for message in &messages {
                    *taken.entry(number(&message.body)).or_default() += 1;
                }
                let handles: Vec<&str> = messages.iter().map(|message| message.handle.as_str()).collect();
                if !handles.is_empty() {
                    assert_eq!(client.delete(&handles).await.unwrap(), []);
                }
            }
        });
        taken
    }

    pub fn count(&self, queue: &str, what: &str) -> u64 {
        self.emulator.count(queue, what)
    }

    /// Waits until the numbers of a range, each once, are all that has been written to files and the queue is empty.
    pub fn all_is_in_files(&self, numbers: Range<u32>) {
        until(SOON * 3, "the queue is empty", || (self.emulator.left("q") == 0).then_some(()));
        assert_eq!(numbers_in(&self.place.path("out")), numbers.collect::<Vec<_>>());
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn number(body: &[u8]) -> u32 {
    let row: Value = serde_json::from_slice(body).unwrap();
    u32::try_from(row["n"].as_u64().unwrap()).unwrap()
}

/// The numbers in the files of a folder, sorted.
pub fn numbers_in(out: &Path) -> Vec<u32> {
    let files = fs::read_dir(out).into_iter().flatten().map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap());
    let mut numbers: Vec<u32> =
        texts.flat_map(|text| text.lines().map(|line| number(line.as_bytes())).collect::<Vec<_>>()).collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until the pipeline tells trouble with these words, counted as of this kind.
pub fn in_trouble(supervisor: &Supervisor, kind: &str, words: &str) {
    until(SOON, &format!("it tells of trouble: {words}"), || {
        let status = supervisor.pipeline("q")?;
        let troubles = status["troubles"].as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
        troubles.contains(words).then_some(())
    });
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    let label = format!("kind=\"{kind}\"");
    assert!(metrics.lines().any(|line| line.contains("retries_total{") && line.contains(&label)), "{kind}: {metrics}");
}

/// It runs, without trouble, and has not been restarted.
pub fn runs_well(supervisor: &Supervisor) {
    let status = supervisor.wait_for_state("q", "running");
    assert_eq!((&status["restarts"], &status["troubles"]), (&Value::from(0), &Value::Array(Vec::new())));
}

/// The value of a counter of the pipeline.
pub fn metric(supervisor: &Supervisor, name: &str) -> u64 {
    let (_, metrics) = get(&supervisor.address, "/metrics").unwrap();
    let line = metrics.lines().find(|line| line.starts_with(&format!("queuewarden_{name}{{")));
    line.and_then(|line| line.rsplit_once(' ')).map_or(0, |(_, value)| value.parse().unwrap())
}
