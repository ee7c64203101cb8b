//! The supervisor that runs on a state directory, for the verbs that ask it something: found through the lock it
//! holds, asked over HTTP.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, de::DeserializeOwned};

use super::Exit;
use crate::state::{Holder, HolderError};

/// How long one question may take. The supervisor answers from memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a verb cannot do what it was asked for, and the exit code that says so.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// The exit code.
    pub exit: Exit,
    /// For a person.
    pub reason: String,
    /// Whether it may be otherwise in a moment: a supervisor that starts or ends has no HTTP.
    pub passing: bool,
}

impl Refused {
    /// For good.
    pub fn new(exit: Exit, reason: impl Into<String>) -> Self {
        Self { exit, reason: reason.into(), passing: false }
    }
}

impl From<io::Error> for Refused {
    /// Of writing to standard output: a reader that has gone is no mistake of ours.
    fn from(error: io::Error) -> Self {
        let exit = if error.kind() == io::ErrorKind::BrokenPipe { Exit::Done } else { Exit::System };
        Self::new(exit, format!("standard output: {error}"))
    }
}

/// Runs a verb, and says why it could not be done.
pub fn block_on(verb: impl Future<Output = Result<Exit, Refused>>) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::failed("the command cannot start", &error),
    };
    match runtime.block_on(verb) {
        Ok(exit) => exit,
        Err(Refused { exit: Exit::Done, .. }) => Exit::Done,
        Err(refused) => {
            tell!("error: {refused}");
            refused.exit
        }
    }
}

/// Finds and asks the supervisor of a state directory.
pub struct Client {
    state: PathBuf,
    http: reqwest::Client,
}

/// One pipeline, as far as a command needs it. Whatever another version leaves out or adds is no mistake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PipelineView {
    pub name: String,
    pub slot: Option<u32>,
    pub state: String,
    pub since: Option<String>,
    pub generation: Option<u64>,
    pub restarts: Option<u64>,
    pub last_error: Option<String>,
    pub troubles: Option<Vec<String>>,
    pub last_checkpoint: Option<CheckpointView>,
    pub counts: Option<CountsView>,
    pub source: Option<String>,
    pub positions: Option<BTreeMap<String, u64>>,
}

/// See [`PipelineView`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CheckpointView {
    pub at: Option<String>,
}

/// See [`PipelineView`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CountsView {
    pub rows_written: Option<u64>,
}

impl Client {
    /// For a state directory; whether anybody runs there is looked at with each question.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new(state: &Path) -> Result<Self, Refused> {
        // The supervisor is on this machine and speaks plain HTTP: neither a proxy nor a certificate is meant for it.
        let http = reqwest::Client::builder().no_proxy().tls_built_in_root_certs(false).timeout(TIMEOUT).build();
        let http = http.map_err(|error| Refused::new(Exit::System, format!("no HTTP client: {error}")))?;
        Ok(Self { state: state.to_owned(), http })
    }

    /// The process that holds the directory now.
    ///
    /// # Errors
    /// None does, or it cannot be seen from here.
    pub fn holder(&self) -> Result<Holder, Refused> {
        match Holder::of(&self.state) {
            Ok(Some(holder)) => Ok(holder),
            Ok(None) => {
                let reason = format!("no supervisor is running on {}", self.state.display());
                Err(Refused::new(Exit::Unavailable, reason))
            }
            Err(HolderError::Io(path, error)) => {
                Err(Refused::new(Exit::System, format!("cannot read {}: {error}", path.display())))
            }
            Err(error @ HolderError::NoDirectory(_)) => Err(Refused::new(Exit::NoInput, error.to_string())),
            Err(error @ HolderError::OutOfSight(..)) => Err(Refused::new(Exit::Unavailable, error.to_string())),
        }
    }

    /// All pipelines, by slot.
    ///
    /// # Errors
    /// See [`Self::text`].
    pub async fn pipelines(&self) -> Result<Vec<PipelineView>, Refused> {
        self.json("/api/pipelines").await
    }

    /// An answer in JSON.
    ///
    /// # Errors
    /// See [`Self::text`].
    pub async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refused> {
        let text = self.text(path).await?;
        serde_json::from_str(&text)
            .map_err(|error| Refused::new(Exit::System, format!("the supervisor's answer to {path}: {error}")))
    }

    /// An answer as it is.
    ///
    /// # Errors
    /// No supervisor runs there, it does not answer, or it answers with an error.
    pub async fn text(&self, path: &str) -> Result<String, Refused> {
        let holder = self.holder()?;
        let passing = |reason: String| Refused { exit: Exit::Unavailable, reason, passing: true };
        let Some(address) = &holder.address else {
            return Err(passing(format!("{holder} is starting or ending: it does not serve HTTP")));
        };
        let unreachable =
            |error: reqwest::Error| passing(format!("{holder}, does not answer: {}", super::with_causes(&error)));
        let answer = self.http.get(format!("http://{}{path}", reachable(address))).send().await;
        let answer = answer.map_err(unreachable)?;
        if !answer.status().is_success() {
            let reason = format!("{holder}, answers {path} with {}; is it another version?", answer.status());
            return Err(Refused::new(Exit::System, reason));
        }
        answer.text().await.map_err(unreachable)
    }
}

/// Where to reach an address from this machine: one that means every interface is no address to connect to.
fn reachable(address: &str) -> String {
    let Ok(mut parsed) = address.parse::<SocketAddr>() else { return address.to_owned() };
    match parsed.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => parsed.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => parsed.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    parsed.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_every_interface_is_reached_over_loopback() {
        assert_eq!(reachable("0.0.0.0:9870"), "127.0.0.1:9870");
        assert_eq!(reachable("[::]:9870"), "[::1]:9870");
        assert_eq!(reachable("10.1.2.3:1"), "10.1.2.3:1");
    }

    #[test]
    fn what_another_version_adds_or_leaves_out_is_no_mistake() {
        let text = r#"[{"name":"a","state":"resting","new":{"x":1},"counts":{"y":2},"last_error":null}]"#;
        let all: Vec<PipelineView> = serde_json::from_str(text).expect("lenient");
        assert_eq!((all[0].name.as_str(), all[0].state.as_str(), all[0].generation), ("a", "resting", None));
    }
}
