//! One pipeline of a folder of definitions, by its name: for the verbs that need to know what it reads and writes.

use std::path::Path;

use super::{
    Exit,
    check::{check_secrets_dir, style_of_stderr},
    client::Refused,
    told::show,
};
use crate::{
    connectors::{self, Plan},
    definition::{Environment, PipelineDefinition, discover},
    model::nearest,
};

/// The definition of `name`, and what it becomes. `asked`: the words with which a name that is not there is told.
///
/// # Errors
/// The folder or the pipeline is not there; or its definition is not valid, which has been shown on stderr then.
pub fn find(
    name: &str,
    asked: &str,
    pipelines: &Path,
    secrets_dir: Option<&Path>,
) -> Result<(PipelineDefinition, Plan), Refused> {
    let missing = |text: String| Refused::new(Exit::NoInput, text);
    check_secrets_dir(secrets_dir).map_err(missing)?;
    if !pipelines.is_dir() {
        return Err(missing(format!("--pipelines {}: not a folder", pipelines.display())));
    }
    let files = discover(&[pipelines.to_owned()]).files;
    let mut all = connectors::load(&files, &Environment::of_process(secrets_dir.map(Path::to_owned)));
    let Some(at) = all.iter().position(|one| one.name.as_str() == name) else {
        let near = nearest(name, all.iter().map(|one| one.name.as_str()));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(missing(format!("{asked}there is no pipeline `{name}` in {}{near}", pipelines.display())));
    };
    let one = all.swap_remove(at);
    one.read.definition.clone().zip(one.plan).ok_or_else(|| {
        show(&one.read.report.render(style_of_stderr()));
        Refused::new(Exit::Definition, format!("the definition of `{name}` is not valid"))
    })
}
