//! Logs: on stderr, text on a terminal and JSON elsewhere, with the fields pipeline, generation and actor.

use std::io::IsTerminal;

use tracing::Span;
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, registry, util::SubscriberInitExt};

use crate::model::{Generation, PipelineName};

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text if stderr is a terminal, else JSON.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Installs the subscriber. `filter` is in `tracing`'s syntax, such as `info` or `queuewarden=debug`; the error says
/// what is wrong with it. Calling it twice is harmless.
pub fn init(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("log filter `{filter}`: {error}"))?;
    let terminal = std::io::stderr().is_terminal();
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let base = registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let _already_set = if json {
        base.with(layer.json().flatten_event(true).with_span_list(false)).try_init()
    } else {
        base.with(layer.with_ansi(terminal)).try_init()
    };
    Ok(())
}

/// The span of one actor of one generation; every line logged inside carries these fields.
pub fn actor_span(pipeline: &PipelineName, generation: Generation, actor: &'static str) -> Span {
    tracing::info_span!("actor", pipeline = %pipeline, generation = generation.0, actor)
}
