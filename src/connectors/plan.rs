//! What a checked definition becomes: everything a generation of the pipeline is built from.

use std::{sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{
    connector::{Sink, SinkContext, Source},
    formats::Decoder,
    model::{CreditLimits, Fault, FaultKind, PipelineName, Schema, SinkIdentity, SourceIdentity, Token},
};

/// Makes a source, a decoder or a sink anew for each generation.
type Make<T> = Arc<dyn Fn() -> Result<T, Fault> + Send + Sync>;
type MakeSink = Arc<dyn Fn(SinkContext) -> Result<Box<dyn Sink>, Fault> + Send + Sync>;

/// A pipeline, ready to be started any number of times.
#[derive(Clone)]
pub struct Plan {
    /// Its name.
    pub name: PipelineName,
    /// What it reads.
    pub source_identity: SourceIdentity,
    /// Makes the source.
    pub source: Make<Arc<dyn Source>>,
    /// Makes the decoder of bodies.
    pub decoder: Make<Box<dyn Decoder>>,
    /// The source's columns.
    pub schema: Arc<Schema>,
    /// Which column is filled from which of the connector's metadata values.
    pub metadata: Arc<[(usize, usize)]>,
    /// Where it writes.
    pub sink_identity: SinkIdentity,
    /// Makes the sink.
    pub sink: MakeSink,
    /// From the source's columns to the sink's.
    pub shape: RowShape,
    /// `checkpoint:`
    pub checkpoint: CheckpointPlan,
    /// `restart:`
    pub restart: RestartPlan,
    /// `on_error:`
    pub on_error: OnError,
    /// `batch.rows`: rows a batch is filled up to if that many are waiting.
    pub batch_rows: usize,
    /// How much may be on its way at once.
    pub credits: CreditLimits,
}

/// `checkpoint:`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointPlan {
    /// Time between checkpoints.
    pub interval: Duration,
    /// Time without progress after which a checkpoint counts as hung.
    pub timeout: Duration,
    /// Messages that may be received and not yet acknowledged; at half of it a checkpoint starts early.
    pub max_unacknowledged: usize,
}

/// `restart:`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPlan {
    /// Restarts allowed `within`.
    pub max: u32,
    /// The time in which they are counted.
    pub within: Duration,
    /// The pause before the first restart.
    pub backoff_min: Duration,
    /// The longest pause.
    pub backoff_max: Duration,
}

/// `on_error:` what becomes of bodies that do not decode and rows the sink refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The pipeline goes to Failed and names the message, which stays unacknowledged.
    Fail,
    /// The message is counted, logged and acknowledged.
    Skip,
}

/// Which of the source's columns go to the sink, in which order, and under which names.
#[derive(Debug, Clone)]
pub struct RowShape {
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl RowShape {
    /// `columns` are indexes into the source's schema, one for each field of `schema`, of the same type.
    pub fn new(columns: Vec<usize>, schema: SchemaRef) -> Self {
        Self { columns, schema }
    }

    /// The rows as the sink takes them. No data is copied.
    pub fn apply(&self, rows: &RecordBatch) -> Result<RecordBatch, Fault> {
        let bug = |error| Fault::never(FaultKind::Bug, "rows do not fit the sink's columns").because(error);
        let columns = rows.project(&self.columns).map_err(bug)?.columns().to_vec();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(bug)
    }
}

/// Commits tokens whose sink is not the one the definition names now: the output was promised to the old target.
pub async fn recover_elsewhere(sink: &SinkIdentity, tokens: &[Token], context: &SinkContext) -> Result<(), Fault> {
    let _ = (tokens, context);
    Err(Fault::never(
        FaultKind::Sink,
        format!("uncommitted output of {sink} cannot be recovered: there is no such sink connector here"),
    ))
}
