//! What a two-phase sink hands out at `prepare` and takes back at `commit`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a sink writes: connector and absolute target. A token is committed by the sink of its own identity,
/// even if the definition has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SinkIdentity {
    /// The connector's name, such as `filesystem`.
    pub connector: String,
    /// The absolute target, such as `/data/out`.
    pub target: String,
}

impl fmt::Display for SinkIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.connector, self.target)
    }
}

/// Everything needed to commit what one epoch staged. Durable in the store between prepare and commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The sink that can commit it.
    pub sink: SinkIdentity,
    /// The sink's own content, as JSON text.
    pub content: String,
}
