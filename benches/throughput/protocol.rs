//! The services that are read, each by its protocol, behind one face.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use queuewarden::connectors::{
    cmq::{
        client::{self as cmq, ClientOptions, Transport},
        signature::SignMethod,
    },
    mns::client as mns_client,
};

use super::processes::{EmulatorProcess, KEY_ID, KEY_SECRET};

/// A service and how it is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Mns,
    CmqTcp,
    CmqHttp,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Mns, Self::CmqTcp, Self::CmqHttp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Mns => "mns",
            Self::CmqTcp => "cmq-tcp",
            Self::CmqHttp => "cmq-http",
        }
    }

    pub fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name).expect("a protocol")
    }

    pub fn endpoint(self, emulator: &EmulatorProcess) -> &str {
        match self {
            Self::Mns => &emulator.endpoint,
            Self::CmqTcp | Self::CmqHttp => &emulator.cmq,
        }
    }

    /// A body as producers of the service send it.
    pub fn encode(self, body: &str) -> String {
        match self {
            Self::Mns => STANDARD.encode(body),
            Self::CmqTcp | Self::CmqHttp => body.to_owned(),
        }
    }

    /// What the definition of a source says, but for the schema.
    pub fn source(self, endpoint: &str, queue: &str, batch: usize, concurrency: usize) -> String {
        let own = match self {
            Self::Mns => format!(
                "  connector: mns
  endpoint: {endpoint}
  region: cn-hangzhou
  queueName: {queue}
  accessKeyId: ${{MNS_ACCESS_KEY_ID}}
  accessKeySecret: ${{MNS_ACCESS_KEY_SECRET}}
  batchSize: {batch}
  pollingWaitTime: 1s
"
            ),
            Self::CmqTcp | Self::CmqHttp => format!(
                "  connector: cmq
  hosts: {endpoint}
  transport: {}
  queue: {queue}
  secret-id: ${{MNS_ACCESS_KEY_ID}}
  secret-key: ${{MNS_ACCESS_KEY_SECRET}}
  batch-size: {batch}
  polling-wait-timeout: 1s
",
                if self == Self::CmqTcp { "tcp" } else { "http" }
            ),
        };
        format!("source:\n{own}  receive.concurrency: {concurrency}\n  format: json\n")
    }
}

pub fn mns(endpoint: &str) -> mns_client::Client {
    let credentials = mns_client::Credentials {
        access_key_id: KEY_ID.into(),
        access_key_secret: KEY_SECRET.into(),
        security_token: None,
    };
    mns_client::Client::new(endpoint, credentials).unwrap()
}

/// A client of one queue.
pub enum Reader {
    Mns(mns_client::Client, String),
    Cmq(cmq::Client),
}

impl Reader {
    pub fn new(protocol: Protocol, endpoint: &str, queue: &str) -> Self {
        let transport = match protocol {
            Protocol::Mns => return Self::Mns(mns(endpoint), queue.to_owned()),
            Protocol::CmqTcp => Transport::Tcp,
            Protocol::CmqHttp => Transport::Http,
        };
        let options = ClientOptions {
            hosts: vec![format!("{endpoint}/v2/index.php").parse().unwrap()],
            queue: queue.to_owned(),
            credentials: cmq::Credentials {
                secret_id: KEY_ID.into(),
                secret_key: KEY_SECRET.into(),
                method: SignMethod::of_name("HmacSHA1"),
            },
            transport,
            request_timeout: Duration::from_secs(5),
        };
        Self::Cmq(cmq::Client::new(&options).unwrap())
    }

    /// The handles of what came.
    pub async fn receive(&self, most: usize) -> Vec<String> {
        match self {
            Self::Mns(client, queue) => {
                let received = client.receive(queue, most, 1).await.unwrap();
                received.messages.into_iter().filter_map(|message| message.handle).collect()
            }
            Self::Cmq(client) => {
                client.receive(most, 1).await.unwrap().into_iter().map(|message| message.handle).collect()
            }
        }
    }

    pub async fn delete(&self, handles: &[String]) {
        let handles: Vec<&str> = handles.iter().map(String::as_str).collect();
        match self {
            Self::Mns(client, queue) => assert!(client.delete(queue, &handles).await.unwrap().is_empty()),
            Self::Cmq(client) => assert!(client.delete(&handles).await.unwrap().is_empty()),
        }
    }
}
