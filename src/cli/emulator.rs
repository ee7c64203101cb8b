//! `queuewarden emulator`: a local MNS and CMQ for tests and trials.

use std::{io, io::Write as _, net::SocketAddr};

use clap::Args;

use super::{
    Exit,
    signals::{Asks, Signals},
};
use crate::emulator::{AccessKey, Config, FaultFlag, SWITCHES, start};

/// Serves a local MNS, and a local CMQ if asked to, from memory until SIGINT or SIGTERM.
#[derive(Debug, Clone, Args)]
pub struct EmulatorArgs {
    /// Where MNS listens, such as 127.0.0.1:9871; port 0 takes a free one
    #[arg(long, value_name = "ADDR", env = "QUEUEWARDEN_EMULATOR_MNS", default_value = "127.0.0.1:9871", value_parser = super::address)]
    pub mns: SocketAddr,
    /// Serve CMQ, too: where it listens for HTTP and as a name server; port 0 takes a free one
    #[arg(long, value_name = "ADDR", env = "QUEUEWARDEN_EMULATOR_CMQ", value_parser = super::address)]
    pub cmq: Option<SocketAddr>,
    /// Where CMQ listens for TCP; without it on a free port of the address of --cmq
    #[arg(long, value_name = "ADDR", env = "QUEUEWARDEN_EMULATOR_CMQ_TCP", requires = "cmq", value_parser = super::address)]
    pub cmq_tcp: Option<SocketAddr>,
    /// Id of the one access key that may sign, CMQ's SecretId; without it signatures are not looked at
    #[arg(long, value_name = "ID", env = "QUEUEWARDEN_EMULATOR_ACCESS_KEY_ID", requires = "access_key_secret")]
    pub access_key_id: Option<String>,
    /// Its secret
    #[arg(
        long,
        value_name = "SECRET",
        env = "QUEUEWARDEN_EMULATOR_ACCESS_KEY_SECRET",
        hide_env_values = true,
        requires = "access_key_id"
    )]
    pub access_key_secret: Option<Secret>,
    /// A queue that is there from the beginning; may be given more than once
    #[arg(long = "queue", value_name = "NAME")]
    pub queues: Vec<String>,
    /// A switch of what goes wrong, [QUEUE:]NAME=VALUE, such as throttle=0.1 or orders:delay-ms=250; may be given more
    /// than once
    #[arg(long = "fault", value_name = "FAULT", long_help = fault_help())]
    pub faults: Vec<FaultFlag>,
    /// Seed of what is random in faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep a record of every message, for GET /_emulator/queues/NAME/log; it grows without a bound
    #[arg(long)]
    pub keep_log: bool,
}

/// What `--help` says of switches: each with what it takes and does.
fn fault_help() -> String {
    let mut text = String::from(
        "A switch of what goes wrong, [QUEUE:]NAME=VALUE, such as throttle=0.1 or orders:delay-ms=250; may be given \
         more than once. While the emulator runs, PUT or POST to /_emulator/queues/NAME/faults sets them. There are:",
    );
    for switch in &SWITCHES {
        text.push_str(&format!("\n\n{} ({}): {}", switch.name, switch.takes(), switch.doc));
    }
    text
}

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl EmulatorArgs {
    fn config(self) -> Config {
        let credentials = self.access_key_id.zip(self.access_key_secret);
        let mut config = Config {
            mns: self.mns,
            cmq: self.cmq,
            cmq_tcp: self.cmq_tcp,
            credentials: credentials.map(|(id, Secret(secret))| AccessKey { id, secret }),
            queues: self.queues,
            seed: self.seed,
            keep_log: self.keep_log,
            ..Config::default()
        };
        for flag in self.faults.iter().filter(|flag| flag.queue.is_none()) {
            flag.apply(&mut config.faults);
        }
        // A queue's own flags come on top of those for all.
        for flag in &self.faults {
            if let Some(queue) = &flag.queue {
                flag.apply(config.queue_faults.entry(queue.clone()).or_insert(config.faults));
            }
        }
        config
    }
}

/// Serves until SIGINT or SIGTERM.
pub fn main(args: EmulatorArgs, signals: Signals) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tell!("error: {error}");
            return Exit::System;
        }
    };
    let asked = [Some(args.mns), args.cmq, args.cmq_tcp];
    let asked = asked.iter().flatten().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ");
    match runtime.block_on(run(args, signals)) {
        Ok(()) => Exit::Done,
        Err(error) => {
            tell!("error: emulator on {asked}: {error}");
            Exit::System
        }
    }
}

/// Serves until SIGINT or SIGTERM. Fails if an address cannot be listened on or no thread be started.
async fn run(args: EmulatorArgs, signals: Signals) -> io::Result<()> {
    let mut signals = signals.listen()?;
    let emulator = start(args.config()).await?;
    {
        // Written at once: who reads only the first line and closes the pipe has all of it.
        let lines: String =
            emulator.services().map(|(name, address)| format!("emulator: {name} {address}\n")).collect();
        let mut out = io::stdout().lock();
        out.write_all(lines.as_bytes())?;
        out.flush()?;
    }
    while let Some(signal) = signals.recv().await {
        if signal.asks == Asks::Stop {
            break;
        }
        signal.act_by_default();
    }
    emulator.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: EmulatorArgs,
    }

    #[test]
    fn faults_of_a_queue_come_on_top_of_those_for_all() {
        let flags =
            ["emulator", "--queue", "a", "--fault", "a:error-on-delete=1", "--fault", "duplicate-in-flight=0.5"];
        let config = Cli::try_parse_from(flags).expect("valid").args.config();
        assert_eq!((config.faults.duplicate_in_flight, config.faults.error_on_delete), (0.5, 0.0));
        let own = &config.queue_faults["a"];
        assert_eq!((own.duplicate_in_flight, own.error_on_delete), (0.5, 1.0));
    }

    #[test]
    fn half_an_access_key_is_an_error_and_a_whole_one_is_not_shown() {
        assert!(Cli::try_parse_from(["emulator", "--access-key-id", "id"]).is_err());
        let flags = ["emulator", "--access-key-id", "id", "--access-key-secret", "hush"];
        let args = Cli::try_parse_from(flags).expect("valid").args;
        assert!(!format!("{args:?}").contains("hush"));
        assert!(args.config().credentials.is_some());
    }
}
