//! From a checked definition to what makes its source and its sink.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    bodies,
    client::{Client, ClientOptions},
    queues::SeenQueues,
    service::{Connect, Service},
    sink::{Messages, RocketmqSink, Sends, Topic},
    sink_options::SinkOptions,
    source::RocketmqSource,
    source_options::SourceOptions,
};
use crate::{
    connector::{Sink, Source},
    connectors::{
        outstanding::Retries,
        plan::{Make, MakeSink},
    },
    definition::{Diagnostic, Endpoint},
    model::{Fault, FaultKind, SinkIdentity, SourceIdentity},
};

/// What was read there, and what makes the source of each generation.
///
/// # Errors
/// As [`SourceOptions::read`].
pub fn source(endpoint: &Endpoint) -> Result<(SourceIdentity, Make<Source>), Vec<Diagnostic>> {
    let options = SourceOptions::read(endpoint)?;
    let connect = connect(options.client.clone());
    // Plain data, so generations may share it: which queues there are, not connections to them.
    let seen = Arc::new(SeenQueues::default());
    let identity = options.identity();
    let make = move || {
        let source = RocketmqSource::new(options.clone(), Arc::clone(&connect), Arc::clone(&seen))?;
        Ok(Source::Log(Arc::new(source)))
    };
    Ok((identity, Arc::new(make)))
}

/// Where it writes, and what makes the sink of each generation.
///
/// # Errors
/// As [`SinkOptions::read`].
pub fn sink(endpoint: &Endpoint) -> Result<(SinkIdentity, MakeSink), Vec<Diagnostic>> {
    let options = SinkOptions::read(endpoint)?;
    let identity = options.identity(endpoint.connector);
    let connect = connect(ClientOptions { request_timeout: options.send_timeout, ..options.client.clone() });
    let (endpoint, sink, seen) = (endpoint.clone(), identity.clone(), Arc::new(AtomicBool::new(false)));
    let make = move |_| {
        let encoder = bodies::encoder(&endpoint).map_err(|reason| Fault::never(FaultKind::Definition, reason))?;
        let messages = Messages::new(&endpoint.schema, encoder, options.tag.clone());
        let endpoints = options.client.endpoints.join(";");
        let topic = Topic::new(options.topic.clone(), endpoints, Arc::clone(&connect), Arc::clone(&seen));
        let retries = Retries { times: options.retries, pause: options.retry_sleep };
        let sends = Sends::new(Arc::clone(&connect), Arc::new(topic), options.group.as_str().into(), retries);
        Ok(Box::new(RocketmqSink::new(sink.clone(), messages, sends)) as Box<dyn Sink>)
    };
    Ok((identity, Arc::new(make)))
}

fn connect(options: ClientOptions) -> Connect {
    Arc::new(move || Ok(Box::new(Client::new(&options)?) as Box<dyn Service>))
}
