//! One error type for everything that can go wrong between a queue and a sink.

use std::{borrow::Cow, error::Error, fmt, sync::Arc};

/// What went wrong, as a metric label: a closed set, so that dashboards can rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The service asked us to slow down.
    Throttled,
    /// No answer in time.
    Timeout,
    /// The connection could not be made, or broke.
    Network,
    /// The service answered that it failed (5xx), or answered something unreadable.
    Service,
    /// Wrong, unknown or expired credentials.
    Credentials,
    /// The clocks of the two sides are too far apart.
    Clock,
    /// The queue, topic, folder or other named thing is not there.
    Missing,
    /// The request was refused as malformed: a wrong option, or a bug of ours.
    Rejected,
    /// A body or row that can never be processed, under `on_error: fail`.
    Poison,
    /// The sink could not write, prepare, commit or recover.
    Sink,
    /// The state store could not read or write.
    Store,
    /// A definition that is not valid.
    Definition,
    /// Something did not finish within its deadline.
    Hung,
    /// A panic, or a state that should be impossible.
    Bug,
}

impl FaultKind {
    /// The value of the metric label `kind`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::Service => "service",
            Self::Credentials => "credentials",
            Self::Clock => "clock",
            Self::Missing => "missing",
            Self::Rejected => "rejected",
            Self::Poison => "poison",
            Self::Sink => "sink",
            Self::Store => "store",
            Self::Definition => "definition",
            Self::Hung => "hung",
            Self::Bug => "bug",
        }
    }
}

/// Who can mend a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mend {
    /// Trying the same call again can mend it: retried inside the actor with backoff, shown as Degraded.
    Retry,
    /// A new generation from the last checkpoint can mend it.
    Restart,
    /// Nothing but a person can mend it: the pipeline is Failed at once.
    Never,
}

/// An error, its cause, and whether a retry can mend it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Who can mend it.
    pub mend: Mend,
    message: Cow<'static, str>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A fault without a cause of its own. `message` says what was attempted and what came back; never a secret.
    pub fn new(kind: FaultKind, mend: Mend, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, mend, message: message.into(), cause: None }
    }

    /// The same call may work when tried again.
    pub fn retry(kind: FaultKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Mend::Retry, message)
    }

    /// A new generation may work.
    pub fn restart(kind: FaultKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Mend::Restart, message)
    }

    /// Only a person can mend it.
    pub fn never(kind: FaultKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Mend::Never, message)
    }

    /// Attaches the error this fault came from.
    #[must_use]
    pub fn because(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }

    /// Says first what it is a fault of.
    #[must_use]
    pub fn of(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message).into();
        self
    }

    /// The message without its causes.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The message followed by its chain of causes, joined by `: `.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause.as_ref() as &(dyn Error + 'static))
    }
}
