//! The parts of a definition that are the same for every connector, as option tables.

use std::time::Duration;

use super::options::{OptionKind, OptionSpec, OptionTable};

const fn at_least(milliseconds: u64) -> OptionKind {
    OptionKind::Duration { min: Duration::from_millis(milliseconds), max: Duration::MAX }
}

const fn from(min: i64) -> OptionKind {
    OptionKind::Integer { min, max: i64::MAX }
}

/// `name`
pub static NAME: OptionSpec = OptionSpec::new(
    "name",
    OptionKind::Text,
    "What the pipeline is called: 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit. It is \
     the key of its state. Default: the file's name without its extension.",
);
/// `on_error`
pub static ON_ERROR: OptionSpec = OptionSpec::new(
    "on_error",
    OptionKind::Choice { values: &["fail", "skip", "dead_letter"], any_case: false },
    "What becomes of a body that does not decode and of a row that the sink refuses for good: `fail` stops the \
     pipeline with the message left in the queue, `skip` counts it and goes on, `dead_letter` writes it to the sink of \
     the section `dead_letter` and goes on.",
)
.default("fail");
/// Options that stand at the top of a definition.
pub static TOP: OptionTable = OptionTable { name: "definition", options: &[&NAME, &ON_ERROR] };

/// `rate`
pub static RATE: OptionSpec = OptionSpec::new(
    "rate",
    OptionKind::Rate,
    "Most messages received on average. After a pause it may be a second's worth more, and what the polls under way \
     bring. Default: no limit.",
);
/// Options that every source may have.
pub static SOURCE: OptionTable = OptionTable { name: "source", options: &[&RATE] };

/// `checkpoint.interval`
pub static INTERVAL: OptionSpec =
    OptionSpec::new("interval", at_least(10), "How often there is a checkpoint while there is anything new.")
        .default("10s");
/// `checkpoint.timeout`
pub static TIMEOUT: OptionSpec = OptionSpec::new(
    "timeout",
    at_least(10),
    "How long a checkpoint may go without progress, or one call of the source, the sink or the state without an answer, before the pipeline is restarted. A call of the source has this beyond its own wait and timeout.",
)
.default("60s");
/// `checkpoint.max_unacknowledged`
pub static MAX_UNACKNOWLEDGED: OptionSpec = OptionSpec::new(
    "max_unacknowledged",
    from(1),
    "Messages that may be received and not yet acknowledged; at half of it a checkpoint starts early, at the limit \
     polling waits.",
)
.default("10000");
/// Options of `checkpoint`.
pub static CHECKPOINT: OptionTable =
    OptionTable { name: "checkpoint", options: &[&INTERVAL, &TIMEOUT, &MAX_UNACKNOWLEDGED] };

/// `restart.max`
pub static RESTART_MAX: OptionSpec = OptionSpec::new(
    "max",
    OptionKind::Integer { min: 0, max: u32::MAX as i64 },
    "Restarts allowed within `within`; past that the pipeline is Failed. 0: never restart.",
)
.default("5");
/// `restart.within`
pub static RESTART_WITHIN: OptionSpec =
    OptionSpec::new("within", at_least(1), "The stretch of time in which restarts are counted.").default("60s");
/// `restart.backoff`
pub static RESTART_BACKOFF: OptionSpec = OptionSpec::new(
    "backoff",
    OptionKind::Backoff,
    "The wait before the first restart, doubled for each one after it up to the second duration.",
)
.default("1s..60s");
/// Options of `restart`.
pub static RESTART: OptionTable =
    OptionTable { name: "restart", options: &[&RESTART_MAX, &RESTART_WITHIN, &RESTART_BACKOFF] };

/// `batch.rows`
pub static BATCH_ROWS: OptionSpec = OptionSpec::new(
    "rows",
    OptionKind::Integer { min: 1, max: 1 << 20 },
    "Rows a batch is filled up to while messages are waiting. A target: the rows of one message stay together.",
)
.default("256");
/// Options of `batch`.
pub static BATCH: OptionTable = OptionTable { name: "batch", options: &[&BATCH_ROWS] };

/// `credits.batches`
pub static CREDIT_BATCHES: OptionSpec = OptionSpec::new(
    "batches",
    OptionKind::Integer { min: 1, max: 1 << 20 },
    "Pulls that may be on their way between source and sink at once.",
)
.default("64");
/// `credits.bytes`
pub static CREDIT_BYTES: OptionSpec =
    OptionSpec::new("bytes", OptionKind::Size, "Bytes of bodies that may be on their way at once.").default("64mb");
/// Options of `credits`.
pub static CREDITS: OptionTable = OptionTable { name: "credits", options: &[&CREDIT_BATCHES, &CREDIT_BYTES] };

/// Sections that are mappings of options, each of which may be left out.
pub static SECTIONS: [&OptionTable; 4] = [&CHECKPOINT, &RESTART, &BATCH, &CREDITS];
