//! The one file that knows the crate `rocketmq-client-rust`: it makes connections, writes and reads frames, finds the
//! answer to a request, and signs.
//!
//! What was measured of its version 1.0.0, and what is done about it here:
//! - Of its public types only `ClientInstanceHandle` sends any command to any address. A handle answers one call at a
//!   time, so whoever waits long needs one for itself.
//! - After five failed connects it refuses to connect for 30 s. So a handle that had trouble with a connection is
//!   given up, and the next call makes another: that takes a millisecond.
//! - A call whose connection breaks is not told: it waits for its own timeout. So tasks are counted while a call
//!   waits, for each connection has one that writes to it ([`Live::lost`]).
//! - It looks for the machine's address on a thread of its own whenever a configuration is made. So one is made for
//!   the whole process, with a made-up address, which nothing that we send carries.
//! - It connects to the name servers that it must be told of, twice a minute, on its own account. So it is told of one
//!   that cannot be reached.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use cheetah_string::CheetahString;
use futures_util::future::BoxFuture;
use rocketmq_client_rust::{
    AclClientRPCHook, ClientConfig, ClientError, ClientInstanceHandle, ClientRpcHook, ClientRuntime,
    ClientRuntimeConfig, SessionCredentials, TelemetryHandle,
};
use rocketmq_protocol::protocol::{
    remoting_command::RemotingCommand, remoting_command_defaults::application_remoting_command_factory,
};
use rocketmq_runtime::{RuntimeComponent, RuntimeContext, RuntimeTaskKindV1};
use tokio::sync::Mutex;

use super::types::{Channel, ClientOptions, Credentials};
use crate::model::{Fault, FaultKind};

/// When a call that waits asks first whether its connection is there, and how often after that.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);

/// A command to be sent.
pub(super) struct Request {
    /// Says what is asked; see the callers.
    pub code: i32,
    /// The fields of its header.
    pub fields: Vec<(&'static str, CheetahString)>,
    /// What follows the header.
    pub body: Option<Bytes>,
}

impl Request {
    pub(super) fn new(code: i32) -> Self {
        Self { code, fields: Vec::with_capacity(16), body: None }
    }

    /// Adds a field.
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl AsRef<str>) -> Self {
        self.fields.push((name, CheetahString::from_slice(value.as_ref())));
        self
    }
}

/// What came back.
pub(super) struct Answer(RemotingCommand);

impl Answer {
    pub(super) fn code(&self) -> i32 {
        self.0.code()
    }

    /// What the server says of it, for people.
    pub(super) fn remark(&self) -> &str {
        self.0.remark().map_or("", CheetahString::as_str)
    }

    /// A field of its header.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.0.ext_fields().and_then(|fields| fields.get(name)).map(CheetahString::as_str)
    }

    /// What follows the header.
    pub(super) fn into_body(mut self) -> Bytes {
        self.0.take_body().unwrap_or_default()
    }
}

/// Connections to all the servers of one service. Everything is made at the first call, on the runtime of that call,
/// and ends with this.
pub(super) struct Connection {
    config: ClientConfig,
    signer: Option<Arc<ClientRpcHook>>,
    channel: Channel,
    live: Mutex<Option<Arc<Live>>>,
}

impl Connection {
    /// Fails on blank credentials.
    pub(super) fn new(options: &ClientOptions) -> Result<Self, Fault> {
        let mut config = BASE.clone();
        let mut tls = config.tls_config().clone();
        // It would take settings from a file of the machine, such as not to check the server.
        tls.config_file = String::new();
        config.set_tls_config(tls);
        config.set_use_tls(options.tls);
        if options.tls {
            // It leaves the choice of cryptography to the process, which has two and panics without one. An error says
            // that it was made already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let signer = options.credentials.as_ref().map(signer).transpose()?;
        Ok(Self { config, signer, channel: options.channel, live: Mutex::new(None) })
    }

    /// Sends a request to `address` and waits for its answer, whatever it says. Connects first where need be.
    pub(super) async fn invoke(&self, address: &str, request: Request, timeout: Duration) -> Result<Answer, Fault> {
        let live = self.live().await.map_err(|error| unsent("cannot set up the RocketMQ client", error))?;
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let command = self.command(request);
        let address = CheetahString::from_slice(address);
        // Boxed: the crate's futures are deeply nested, and everything that waits for one would be compiled around it.
        let call: BoxFuture<'_, _> = Box::pin(live.handle.invoke_remoting(&address, command, millis));
        let fault = tokio::select! {
            biased;
            answer = call => match answer {
                Ok(answer) => {
                    live.answered(&address);
                    return Ok(Answer(answer));
                }
                Err(error) => unanswered(&address, timeout, error),
            },
            () = live.lost() => Fault::retry(FaultKind::Network, format!("the connection to {address} broke")),
        };
        self.give_up(&live).await;
        Err(fault)
    }

    fn command(&self, request: Request) -> RemotingCommand {
        let fields = request.fields.into_iter().map(|(name, value)| (CheetahString::from_static_str(name), value));
        let mut fields: HashMap<_, _> = fields.collect();
        if self.channel == Channel::Aliyun && self.signer.is_some() {
            // Alibaba's clients name their channel beside the access key, and sign it.
            fields.insert(CheetahString::from_static_str("OnsChannel"), CheetahString::from_static_str("ALIYUN"));
        }
        let command = application_remoting_command_factory().create_remoting_command(request.code);
        let command = command.set_ext_fields(fields);
        match request.body {
            Some(body) => command.set_body(body),
            None => command,
        }
    }

    async fn live(&self) -> Result<Arc<Live>, ClientError> {
        let mut live = self.live.lock().await;
        if let Some(live) = &*live {
            return Ok(Arc::clone(live));
        }
        let made = Arc::new(Live::start(self.config.clone(), self.signer.clone()).await?);
        *live = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The next call makes new connections. Calls under way keep those they have.
    async fn give_up(&self, failed: &Arc<Live>) {
        let mut live = self.live.lock().await;
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(live, failed)) {
            *live = None;
        }
    }
}

/// What every client of the process begins with.
static BASE: LazyLock<ClientConfig> = LazyLock::new(|| {
    // Its own looks at consumers and producers, of which there are none: as seldom as it takes.
    const SELDOM_MS: u32 = 600_000;
    let mut config = ClientConfig::new();
    // No TCP connection can be made to it, and no packet leaves for it.
    config.set_namesrv_addr(CheetahString::from_static_str("255.255.255.255:1"));
    config.set_client_ip(CheetahString::from_static_str("127.0.0.1"));
    config.set_instance_name(CheetahString::from_static_str("queuewarden"));
    config.set_poll_name_server_interval(SELDOM_MS);
    config.set_heartbeat_broker_interval(SELDOM_MS);
    config.set_persist_consumer_offset_interval(SELDOM_MS / 10);
    config.set_pull_message_service_shards(1);
    config.set_client_callback_executor_threads(1);
    config.set_enable_heartbeat_channel_event_listener(false);
    config.set_enable_trace(false);
    config
});

fn signer(credentials: &Credentials) -> Result<Arc<ClientRpcHook>, Fault> {
    let Credentials { access_key, secret_key } = credentials;
    if access_key.trim().is_empty() || secret_key.trim().is_empty() {
        return Err(Fault::never(FaultKind::Definition, "access key and secret key may not be empty"));
    }
    let credentials = SessionCredentials::with_keys(access_key.as_str(), secret_key.as_str());
    Ok(Arc::new(AclClientRPCHook::new(credentials)))
}

/// A started handle, and all it runs on.
struct Live {
    known: std::sync::Mutex<Known>,
    handle: ClientInstanceHandle,
    runtime: Arc<ClientRuntime>,
    context: RuntimeContext,
}

/// What was connected when it was counted last.
#[derive(Default)]
struct Known {
    addresses: HashSet<CheetahString>,
    writers: usize,
}

impl Live {
    async fn start(config: ClientConfig, signer: Option<Arc<ClientRpcHook>>) -> Result<Self, ClientError> {
        let context = RuntimeContext::try_from_current("queuewarden")
            .map_err(|error| ClientError::internal("borrow the runtime", error))?;
        let scope = context.service_context("client");
        let runtime = ClientRuntime::try_new(scope, ClientRuntimeConfig::default(), TelemetryHandle::noop())?;
        // The number keeps apart clients of one runtime, and this is the only one of its own.
        let handle = ClientInstanceHandle::get_or_create(&runtime, 0, config, signer)?;
        let live = Self { known: std::sync::Mutex::default(), handle, runtime, context };
        let start: BoxFuture<'_, _> = Box::pin(live.handle.start());
        start.await?;
        Ok(live)
    }

    /// Counts anew after the first answer of an address: it has a connection now.
    fn answered(&self, address: &CheetahString) {
        let Ok(mut known) = self.known.lock() else { return };
        if !known.addresses.contains(address) {
            known.addresses.insert(address.clone());
            known.writers = self.writers();
        }
    }

    /// Returns once there are fewer connections than there were. Which one is gone cannot be told, and one that is
    /// closed for being idle counts too; but whoever waits long has a handle for itself, with one connection.
    async fn lost(&self) {
        let mut most = self.known.lock().map_or(0, |known| known.writers);
        let mut pause = FIRST_LOOK;
        loop {
            tokio::time::sleep(pause).await;
            pause = LOOK;
            let writers = self.writers();
            if writers < most {
                return;
            }
            most = writers;
        }
    }

    /// Tasks of the kind that write to a connection, and a few others that never end.
    fn writers(&self) -> usize {
        let view = self.runtime.service_context().diagnostics_view_v1(RuntimeComponent::Other);
        let workers = view.task_kinds.iter().filter(|kind| kind.kind == RuntimeTaskKindV1::Worker);
        workers.map(|kind| kind.active).sum()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The orderly way is asynchronous and would outlive us; all it does beside is to tell servers that a group is
        // left, and none was joined.
        self.context.shutdown_tasks_now();
    }
}

fn unanswered(address: &str, timeout: Duration, error: ClientError) -> Fault {
    let code = error.descriptor().code();
    if code.as_str().ends_with("timeout") || code.as_str().ends_with("timed_out") {
        return Fault::retry(FaultKind::Timeout, format!("no answer from {address} within {} ms", timeout.as_millis()));
    }
    unsent(&format!("no connection to {address}"), error)
}

/// The crate shows little of what went wrong, but keeps its cause.
fn unsent(what: &str, error: ClientError) -> Fault {
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    let told = cause.map_or_else(|| error.descriptor().code().as_str().to_owned(), ToString::to_string);
    Fault::retry(FaultKind::Network, format!("{what}: {told}"))
}
