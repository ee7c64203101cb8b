//! `queuewarden export`: a pipeline as a script of Flink SQL.

use std::path::PathBuf;

/// What `export` takes.
#[derive(clap::Args)]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "only that there is no SQL is said then"))]
pub struct Args {
    /// The pipeline
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder of pipeline definitions (*.yaml, *.yml).
    #[arg(long, env = "QUEUEWARDEN_PIPELINES", value_name = "DIR")]
    pipelines: PathBuf,
}

/// A build without SQL has none.
#[cfg(not(feature = "sql"))]
pub fn run(_: &Args) -> super::Exit {
    super::without_sql()
}

#[cfg(feature = "sql")]
pub use with_sql::run;

#[cfg(feature = "sql")]
mod with_sql {
    use super::{
        super::{
            Exit,
            check::style_of_stderr,
            failed,
            told::{hand_over, show},
        },
        Args,
    };
    use crate::{
        connectors::REGISTRY,
        definition::{Environment, discover, load_file},
        flink_sql::export,
        model::nearest,
    };

    /// Writes the script to stdout. No variable and no secret needs to be set but in a type and in a query, outside of its
    /// texts.
    pub fn run(args: &Args) -> Exit {
        let Args { name, pipelines } = args;
        if !pipelines.is_dir() {
            tell!("error: --pipelines {}: not a folder", pipelines.display());
            return Exit::NoInput;
        }
        let environment = Environment::of_process(None).with_unknowns();
        let files = discover(std::slice::from_ref(pipelines)).files;
        let mut all: Vec<_> = files.iter().map(|file| load_file(file, &REGISTRY, &environment)).collect();
        let is_it = |one: &crate::definition::Loaded| one.name.as_ref().is_some_and(|own| own.as_str() == name);
        let Some(at) = all.iter().position(is_it) else {
            let names = all.iter().filter_map(|one| one.name.as_ref()).map(|own| own.as_str());
            let near = nearest(name, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            tell!("error: there is no pipeline `{name}` in {}{near}", pipelines.display());
            return Exit::NoInput;
        };
        let one = all.swap_remove(at);
        let Some(definition) = one.definition else {
            show(&one.report.render(style_of_stderr()));
            tell!("error: the definition of `{name}` is not valid");
            return Exit::Definition;
        };
        match std::fs::read_to_string(&one.file) {
            Ok(text) => hand_over(&format!("{}\n", export(&definition, &text).trim_end())),
            Err(error) => failed(&format!("{} cannot be read", one.file.display()), &error),
        }
    }
}
