//! From a checked definition to what makes its source, its decoder and its sink.

use std::sync::Arc;

use super::{
    client::Client,
    options::{BATCH_SIZE, MAX_BLOCK_TIMEOUT, RETRY_TIMES, TABLE},
    settings::{QueueName, client_options, format_options},
    sink::{CmqSink, Messages, SendOptions, Sends},
    source::CmqSource,
};
use crate::{
    connector::{QueueSource, Sink, Source},
    connectors::plan::{Make, MakeSink},
    definition::{Diagnostic, Endpoint},
    formats::{self, Decoder},
    model::{Fault, FaultKind, SinkIdentity, SourceIdentity},
};

/// What is read there, and what makes the source of each generation.
///
/// # Errors
/// Everything that is wrong with the options taken together.
pub fn source(endpoint: &Endpoint) -> Result<(SourceIdentity, Make<Source>), Vec<Diagnostic>> {
    let source = CmqSource::new(endpoint)?;
    let identity = source.identity();
    Ok((identity, Arc::new(move || Ok(Source::Queue(Arc::new(source.clone()))))))
}

/// The decoder of bodies.
///
/// # Errors
/// What the format cannot do with the columns or options. A definition that was checked has none.
pub fn decoder(endpoint: &Endpoint) -> Result<Box<dyn Decoder>, String> {
    formats::decoder(format_name(endpoint), &endpoint.schema, &format_options(endpoint))
}

/// Where it writes, and what makes the sink of each generation.
///
/// # Errors
/// As [`source`].
pub fn sink(endpoint: &Endpoint) -> Result<(SinkIdentity, MakeSink), Vec<Diagnostic>> {
    let client = client_options(endpoint)?;
    let options = &endpoint.options;
    let sends = SendOptions {
        batch_size: usize::try_from(options.integer(&BATCH_SIZE)).unwrap_or(1),
        max_block: options.duration(&MAX_BLOCK_TIMEOUT),
        retries: u32::try_from(options.integer(&RETRY_TIMES)).unwrap_or(u32::MAX),
    };
    let identity = SinkIdentity { connector: TABLE.name.to_owned(), target: QueueName(&client).to_string() };
    let (endpoint, sink) = (endpoint.clone(), identity.clone());
    let make = move |_| {
        let encoder = formats::encoder(format_name(&endpoint), &endpoint.schema, &format_options(&endpoint))
            .map_err(|reason| Fault::never(FaultKind::Definition, reason))?;
        let sends = Sends::new(Arc::new(Client::new(&client)?), sends);
        Ok(Box::new(CmqSink::new(sink.clone(), Messages::new(encoder), sends)) as Box<dyn Sink>)
    };
    Ok((identity, Arc::new(make)))
}

fn format_name(endpoint: &Endpoint) -> &'static str {
    endpoint.format.as_ref().map_or("", |format| format.name)
}
