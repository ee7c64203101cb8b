//! Dead letters sent through their pipeline again: a source that no definition can name, in place of the pipeline's own.
//!
//! A letter is a message here, known by its id. So what one checkpoint holds is never read a second time, whatever
//! becomes of the process, and in whatever file the letter is found by then. The ids are kept in the state of a pipeline
//! of its own, `NAME.replay`; nothing of the state of NAME is touched.

mod letters;
mod source;

use std::{path::PathBuf, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

pub use letters::{Found, Summary, check, find};
pub use source::Progress;
use source::ReplaySource;

use super::{Plan, resolve::metadata_keys};
use crate::{
    connector::Source,
    definition::{MetadataKey, PipelineDefinition},
    model::{PipelineName, SourceIdentity},
};

/// The metadata that a pipeline's messages carry, which letters are checked against.
pub fn keys(definition: &PipelineDefinition) -> &'static [MetadataKey] {
    metadata_keys(&definition.source)
}

/// The plan that reads files of dead letters, and does with them what the pipeline would: its decoder, sinks, `on_error`
/// and checkpoints. Its rate is not that of a file, and the time between two letters is not that
/// between their rows, so there is no window of primary keys.
///
/// # Errors
/// The pipeline's name is too long for another one to be made of it.
pub fn plan(
    definition: &PipelineDefinition,
    plan: Plan,
    files: Vec<PathBuf>,
    progress: &Arc<Progress>,
) -> Result<Plan, String> {
    let name = PipelineName::new(&format!("{}.replay", plan.name)).map_err(|expected| {
        format!("`{}` is too long to be replayed to: its name and `.replay` must be {expected}", plan.name)
    })?;
    // Without the name, so that the state may get another one with its pipeline.
    let identity = SourceIdentity("dead letters".to_owned());
    let files: Arc<[PathBuf]> = files.into();
    let (of_source, transport, progress) = (identity.clone(), Arc::clone(&plan.transport), Arc::clone(progress));
    let keys = keys(definition);
    let source = move || {
        let (identity, files) = (of_source.clone(), Arc::clone(&files));
        let (transport, progress) = (Arc::clone(&transport), Arc::clone(&progress));
        Ok(Source::Queue(Arc::new(ReplaySource { identity, files, keys, transport, progress })))
    };
    let source = Arc::new(source);
    Ok(Plan { name, claims: Vec::new(), source_identity: identity, source, rate: None, primary_key: None, ..plan })
}

/// The text that is part of every file name. Not the pipeline's own: its generations are counted apart from these, and
/// no two files may ever have one name, though a reader may have moved the first away.
pub fn incarnation(of_store: &str, name: &PipelineName) -> String {
    format!("{:016x}", xxh3_64(format!("{of_store} {name}").as_bytes()))
}
