//! What a checked definition becomes: everything a generation of the pipeline is built from.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;

use super::RowShape;
use crate::{
    connector::{Sink, SinkContext, Source},
    definition::{CheckpointDefinition, Digest, OnError, Rate, RestartDefinition},
    formats::Decoder,
    model::{Body, CreditLimits, Fault, PipelineName, Schema, SinkIdentity, SourceIdentity},
    query::Query,
};

/// Makes a source or a decoder anew for each generation.
pub type Make<T> = Arc<dyn Fn() -> Result<T, Fault> + Send + Sync>;
/// Makes a sink anew for each generation.
pub type MakeSink = Arc<dyn Fn(SinkContext) -> Result<Box<dyn Sink>, Fault> + Send + Sync>;

/// Takes the transport's own encoding away from a body.
pub type Transport = Arc<dyn Fn(Bytes) -> Body + Send + Sync>;

/// Where dead letters go.
#[derive(Clone)]
pub struct DeadLetterPlan {
    /// Where it writes.
    pub identity: SinkIdentity,
    /// Makes the sink; its columns are those of dead letters.
    pub sink: MakeSink,
    /// The names of the source's metadata, in the order in which its messages carry them.
    pub keys: Arc<[&'static str]>,
}

/// By which columns rows of the source are known, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryKey {
    /// Indices of the columns, in the order in which the definition names them.
    pub columns: Arc<[usize]>,
    /// After a row has passed, how long others with its key are dropped.
    pub window: Duration,
}

/// What only one pipeline of a process may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Claim {
    /// Its name.
    Name(PipelineName),
    /// The queue it reads.
    Queue(SourceIdentity),
    /// The folder it writes to, with links followed.
    Folder(PathBuf),
}

/// A pipeline, ready to be started any number of times.
#[derive(Clone)]
pub struct Plan {
    /// Its name.
    pub name: PipelineName,
    /// Changes with what the definition means.
    pub definition: Digest,
    /// What no other pipeline may have.
    pub claims: Vec<Claim>,
    /// What it reads.
    pub source_identity: SourceIdentity,
    /// Makes the source.
    pub source: Make<Source>,
    /// Makes the decoder of bodies.
    pub decoder: Make<Box<dyn Decoder>>,
    /// The source's columns.
    pub schema: Arc<Schema>,
    /// Pairs of a column and the metadata value of the connector it is filled from.
    pub metadata: Arc<[(usize, usize)]>,
    /// `primaryKey` of the source.
    pub primary_key: Option<PrimaryKey>,
    /// What is made of its rows on their way to the sink.
    pub query: Option<Query>,
    /// Where it writes.
    pub sink_identity: SinkIdentity,
    /// Makes the sink.
    pub sink: MakeSink,
    /// From the columns of the query, or else of the source, to the sink's.
    pub shape: RowShape,
    /// `checkpoint:`
    pub checkpoint: CheckpointDefinition,
    /// `restart:`
    pub restart: RestartDefinition,
    /// `on_error:`
    pub on_error: OnError,
    /// `dead_letter:`, under `on_error: dead_letter` and only there.
    pub dead_letter: Option<DeadLetterPlan>,
    /// What becomes of a body as the service gives it before the format gets it.
    pub transport: Transport,
    /// `rate` of the source.
    pub rate: Option<Rate>,
    /// `batch.rows`: rows a batch is filled up to if that many are waiting.
    pub batch_rows: usize,
    /// How much may be on its way at once.
    pub credits: CreditLimits,
}
