//! Logs: on stderr, text on a terminal and JSON elsewhere, with the fields pipeline, generation and actor.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    cell::Cell,
    io::{self, IsTerminal, Write},
    panic::PanicHookInfo,
};

use tracing::Span;
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, registry, util::SubscriberInitExt};

use super::whereabouts::here;
use crate::model::{Generation, LaneId, PipelineName};

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

/// Installs the subscriber, and has panics logged as what they are. `filter` is in `tracing`'s syntax, such as `info` or `queuewarden=debug`; the error says
/// what is wrong with it. Calling it twice is harmless.
pub fn init(format: LogFormat, filter: &str) -> Result<(), String> {
    let asked = filter;
    let mut filter = EnvFilter::try_new(asked).map_err(|error| format!("log filter `{asked}`: {error}"))?;
    // What the crates of the RocketMQ client say is told as faults, which name the pipeline and the server.
    if let Ok(quiet) = "rocketmq=off".parse()
        && !asked.contains("rocketmq")
    {
        filter = filter.add_directive(quiet);
    }
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
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

thread_local! {
    static LOGGING_A_PANIC: Cell<bool> = const { Cell::new(false) };
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of a library that panics where others answer an error. Its panic is no more than that, so it is answered,
/// without its text, which may repeat parts of what it worked on, and logged at `debug` only.
///
/// # Errors
/// It panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, &'static str> {
    let before = EXPECTED.replace(true);
    // What the work has borrowed is as it may be after an error: whoever calls takes back what is half done.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    EXPECTED.set(before);
    done.map_err(|_| "its reader gave up")
}

/// One line like any other, with the place and whose work it was: bare text among JSON lines is a broken line.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("a panic without a message");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    if LOGGING_A_PANIC.replace(true) {
        // The log itself panics. `eprintln!` would panic once more where nobody reads stderr.
        let _nobody_reads = writeln!(io::stderr(), "panicked at {location}: {message}");
        return;
    }
    if EXPECTED.get() {
        tracing::debug!(location, "panicked, as expected of what it does: {message}");
        LOGGING_A_PANIC.set(false);
        return;
    }
    let current = Span::current();
    // What the span says already is not said twice.
    let who = here().filter(|_| current.field("pipeline").is_none());
    let (pipeline, actor) = (who.as_ref().map(|who| who.pipeline.as_str()), who.as_ref().map(|who| who.actor));
    let thread = std::thread::current();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(pipeline, actor, thread = thread.name(), location, backtrace, "panicked: {message}");
    LOGGING_A_PANIC.set(false);
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

/// The span of an actor that reads one lane of several.
pub fn lane_span(pipeline: &PipelineName, generation: Generation, actor: &'static str, lane: &LaneId) -> Span {
    tracing::info_span!("actor", pipeline = %pipeline, generation = generation.0, actor, lane = %lane)
}
