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
    let _already_set = if json {
        // pipeline, generation and actor stand beside the event's own fields, whichever span they come from.
        let layer = json_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_target(false)
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .flatten_span_list_on_top_level(true);
        base.with(layer).try_init()
    } else {
        let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
        base.with(layer.with_ansi(terminal)).try_init()
    };
    Ok(())
}

/// What is logged unless asked otherwise: our own words, and of the HTTP server only what is wrong.
pub const DEFAULT_FILTER: &str = "info,actix_server=warn";

/// The span of a generation that is being opened: it has no number yet.
pub fn start_span(pipeline: &PipelineName) -> Span {
    tracing::info_span!("actor", pipeline = %pipeline, actor = "start")
}

/// The span of one actor of one generation; every line logged inside carries these fields.
pub fn actor_span(pipeline: &PipelineName, generation: Generation, actor: &'static str) -> Span {
    tracing::info_span!("actor", pipeline = %pipeline, generation = generation.0, actor)
}
