//! From a checked definition to a plan: the one place that knows which connector's code a name stands for.

use std::{path::PathBuf, sync::Arc};

use super::{
    NotNull, Plan, RowShape, blackhole, cmq, datagen, filesystem, mns,
    plan::{DeadLetterPlan, Make, MakeSink, PrimaryKey, Transport},
    print, rocketmq,
};
use crate::{
    connector::{Fate, Sink, SinkContext, Source},
    definition::{At, Diagnostic, Endpoint, MetadataKey, PipelineDefinition, sections},
    formats::{self, Decoder, Writer},
    model::{Body, Fault, FaultKind, SinkIdentity, SourceIdentity, Token},
};

/// Builds the plan. What cannot be built is answered with its place in the definition.
pub fn resolve(definition: &PipelineDefinition) -> Result<Plan, Box<Diagnostic>> {
    let (source_identity, source) = source(&definition.source, definition.batch_rows)?;
    let (sink_identity, sink) = sink(&definition.sink)?;
    let sink = NotNull::of(definition).around(sink);
    let dead_letter = definition.dead_letter.as_ref().map(|endpoint| dead_letter(endpoint, definition)).transpose()?;
    Ok(Plan {
        name: definition.name.clone(),
        definition: definition.digest(),
        claims: Vec::new(),
        source_identity,
        source,
        decoder: decoder(&definition.source),
        schema: Arc::new(definition.source.schema.clone()),
        metadata: metadata(&definition.source),
        primary_key: primary_key(&definition.source),
        query: definition.query.clone(),
        sink_identity,
        sink,
        shape: RowShape::new(definition.selected(), &definition.sink.schema),
        checkpoint: definition.checkpoint,
        restart: definition.restart,
        on_error: definition.on_error,
        dead_letter,
        transport: transport(&definition.source),
        rate: definition.source.general.opt_rate(&sections::RATE),
        batch_rows: definition.batch_rows,
        credits: definition.credits,
    })
}

fn unknown(endpoint: &Endpoint) -> Box<Diagnostic> {
    let message = format!("`{}` is not a {} here", endpoint.connector, endpoint.role.name());
    refuse(message, endpoint, At::Connector)
}

fn refuse(message: impl Into<String>, endpoint: &Endpoint, part: At<'_>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(message).at(endpoint.at(part)))
}

/// A definition that was checked has none.
fn first(found: Vec<Diagnostic>) -> Box<Diagnostic> {
    Box::new(found.into_iter().next().unwrap_or_else(|| Diagnostic::error("the options contradict each other")))
}

fn format_name(endpoint: &Endpoint) -> &'static str {
    endpoint.format.as_ref().map_or("", |format| format.name)
}

type MakeSource = Make<Source>;

fn source(endpoint: &Endpoint, batch_rows: usize) -> Result<(SourceIdentity, MakeSource), Box<Diagnostic>> {
    if endpoint.connector == datagen::TABLE.name {
        let endpoint = endpoint.clone();
        let make = move || Source::Log(Arc::new(datagen::DatagenSource::new(&endpoint, batch_rows)));
        return Ok((make().identity(), Arc::new(move || Ok(make()))));
    }
    if rocketmq::is(endpoint) {
        return rocketmq::source(endpoint).map_err(first);
    }
    if endpoint.connector == cmq::TABLE.name {
        return cmq::source(endpoint).map_err(first);
    }
    if endpoint.connector != mns::TABLE.name {
        return Err(unknown(endpoint));
    }
    let (options, format) = (endpoint.options.clone(), format_name(endpoint));
    let make = move || mns::MnsSource::new(&options, format).map(|source| Source::Queue(Arc::new(source)));
    let identity = make().map_err(|fault| refuse(fault.to_string(), endpoint, At::Section))?.identity();
    Ok((identity, Arc::new(make)))
}

fn decoder(endpoint: &Endpoint) -> Make<Box<dyn Decoder>> {
    if endpoint.connector == datagen::TABLE.name {
        let endpoint = endpoint.clone();
        return Arc::new(move || Ok(Box::new(datagen::GeneratingDecoder::new(&endpoint)) as Box<dyn Decoder>));
    }
    if rocketmq::is(endpoint) {
        let endpoint = endpoint.clone();
        return Arc::new(move || rocketmq::decoder(&endpoint).map_err(refused));
    }
    if endpoint.connector == cmq::TABLE.name {
        let endpoint = endpoint.clone();
        return Arc::new(move || cmq::decoder(&endpoint).map_err(refused));
    }
    let schema = endpoint.schema.clone();
    let options = endpoint.format.as_ref().map(|format| format.options.clone()).unwrap_or_default();
    let format = format_name(endpoint);
    let oss = mns::MnsSource::flattens(&endpoint.options)
        .then(|| (mns::oss::TimestampStyle::of(&options), mns::oss::Events::of(&endpoint.options)));
    Arc::new(move || {
        let plain = formats::decoder(format, &schema, &options).map_err(refused)?;
        Ok(match oss {
            Some((style, events)) => Box::new(mns::oss::OssDecoder::new(plain, style, events)),
            None => plain,
        })
    })
}

fn refused(reason: String) -> Fault {
    Fault::never(FaultKind::Definition, reason)
}

fn transport(endpoint: &Endpoint) -> Transport {
    if endpoint.connector == mns::TABLE.name {
        return mns::MnsSource::transport(&endpoint.options, format_name(endpoint));
    }
    Arc::new(Body::Bytes)
}

fn dead_letter(endpoint: &Endpoint, definition: &PipelineDefinition) -> Result<DeadLetterPlan, Box<Diagnostic>> {
    let (identity, sink) = sink(endpoint)?;
    Ok(DeadLetterPlan { identity, sink, keys: metadata_keys(&definition.source).iter().map(|key| key.name).collect() })
}

/// The metadata that messages of a source carry, in this order.
pub(super) fn metadata_keys(endpoint: &Endpoint) -> &'static [MetadataKey] {
    super::REGISTRY
        .connector(endpoint.connector)
        .and_then(|connector| connector.source.as_ref())
        .map_or(&[][..], |tables| tables.metadata)
}

/// Which metadata value fills which column. Keys are known to be the connector's: the definition was checked.
fn metadata(endpoint: &Endpoint) -> Arc<[(usize, usize)]> {
    let keys = metadata_keys(endpoint);
    let columns = endpoint.schema.columns.iter().enumerate();
    columns
        .filter_map(|(column, declared)| {
            let key = declared.metadata.as_deref()?;
            Some((column, keys.iter().position(|known| known.name == key)?))
        })
        .collect()
}

/// Columns are known to be the schema's, and the connector to have a window: the definition was checked.
fn primary_key(endpoint: &Endpoint) -> Option<PrimaryKey> {
    let tables = super::REGISTRY.connector(endpoint.connector)?.source.as_ref()?;
    let window = endpoint.options.duration(tables.key_window?);
    let columns = &endpoint.schema.columns;
    let index = |name: &String| columns.iter().position(|column| column.name == *name);
    let columns: Arc<[usize]> = endpoint.primary_key.iter().filter_map(index).collect();
    (!columns.is_empty()).then_some(PrimaryKey { columns, window })
}

fn sink(endpoint: &Endpoint) -> Result<(SinkIdentity, MakeSink), Box<Diagnostic>> {
    let name = endpoint.connector;
    if name == filesystem::TABLE.name {
        return filesystem_sink(endpoint);
    }
    if name == print::TABLE.name {
        let options = endpoint.options.clone();
        let identity = print::PrintSink::new(&options).identity();
        return Ok((identity, Arc::new(move |_| Ok(Box::new(print::PrintSink::new(&options)) as Box<dyn Sink>))));
    }
    if rocketmq::is(endpoint) {
        return rocketmq::sink(endpoint).map_err(first);
    }
    if name == cmq::TABLE.name {
        return cmq::sink(endpoint).map_err(first);
    }
    if name == blackhole::TABLE.name {
        let make: MakeSink = Arc::new(|_| Ok(Box::new(blackhole::BlackholeSink::new()) as Box<dyn Sink>));
        return Ok((blackhole::BlackholeSink::new().identity(), make));
    }
    Err(unknown(endpoint))
}

/// What writes the bodies or lines of a sink, and which columns of a row it takes: those that are no metadata.
pub type Writes = (Writer, Vec<usize>);

/// That of a sink that has a format.
///
/// # Errors
/// What the format cannot do with the columns or options. A definition that was checked has none.
pub fn encoder(endpoint: &Endpoint) -> Result<Option<Writes>, String> {
    let Some(format) = &endpoint.format else { return Ok(None) };
    let columns = endpoint.schema.columns.iter().enumerate();
    let columns = columns.filter(|(_, column)| column.metadata.is_none()).map(|(index, _)| index).collect();
    let writer = match endpoint.connector {
        name if name == filesystem::TABLE.name => formats::writer(format.name, &endpoint.schema, &format.options)?,
        _ if rocketmq::is(endpoint) => Writer::Lines(rocketmq::encoder(endpoint)?),
        _ => Writer::Lines(formats::encoder(format.name, &endpoint.schema, &format.options)?),
    };
    Ok(Some((writer, columns)))
}

fn filesystem_sink(endpoint: &Endpoint) -> Result<(SinkIdentity, MakeSink), Box<Diagnostic>> {
    let refuse = |message: String| refuse(message, endpoint, At::Option(&filesystem::PATH));
    let absolute = std::path::absolute(endpoint.options.path(&filesystem::PATH))
        .map_err(|error| refuse(format!("`path` cannot be made absolute: {error}")))?;
    // Without a slash at the end: `out` and `out/` are one target, also to the tokens of an earlier definition.
    let path: PathBuf = absolute.components().collect();
    let Some(target) = path.to_str().map(str::to_owned) else {
        return Err(refuse("`path` is not UTF-8".to_owned()));
    };
    let (format, schema) = (format_name(endpoint), endpoint.schema.clone());
    let options = endpoint.format.as_ref().map(|format| format.options.clone()).unwrap_or_default();
    let file_size = endpoint.options.size(&filesystem::FILE_SIZE);
    let make = move |context: SinkContext| {
        let writer = formats::writer(format, &schema, &options).map_err(refused)?;
        let sink = filesystem::FilesystemSink::new(path.clone(), writer, file_size, context);
        Ok(Box::new(sink) as Box<dyn Sink>)
    };
    Ok((SinkIdentity { connector: filesystem::TABLE.name.to_owned(), target }, Arc::new(make)))
}

/// Commits tokens whose sink is not the one the definition names now: the output was promised to the old target.
///
/// # Errors
/// As the sink's `recover`; and if there is no such connector any more, which only a person can mend.
pub async fn recover_elsewhere(sink: &SinkIdentity, tokens: &[Token], context: &SinkContext) -> Result<(), Fault> {
    if sink.connector == filesystem::TABLE.name {
        return filesystem::recover_at(sink, tokens, context).await;
    }
    Err(Fault::never(
        FaultKind::Sink,
        format!(
            "output of {sink} is not committed yet, and there is no connector `{}` to commit it with",
            sink.connector
        ),
    ))
}

/// What has become of the output that a token names, for whoever wants to give it up. Blocks, and touches nothing.
/// What no connector here can commit is gone.
pub fn fate(token: &Token) -> Fate {
    if token.sink.connector == filesystem::TABLE.name {
        // A token that cannot be read is never committed either.
        return filesystem::fate(token).unwrap_or(Fate::Gone);
    }
    Fate::Gone
}
