//! Definitions from files to plans, with what can only be checked across them.

use std::{collections::HashMap, path::PathBuf};

use super::{Plan, REGISTRY, filesystem, resolve};
use crate::{
    definition::{self, At, Diagnostic, Environment, OptionSpec},
    model::PipelineName,
};

/// A definition that has been read, checked and resolved.
pub struct Loaded {
    /// The file, what it declares, and what is wrong with it.
    pub read: definition::Loaded,
    /// What it becomes; `None` if anything in it is an error.
    pub plan: Option<Plan>,
}

impl Loaded {
    /// The pipeline's name; for a broken definition the file's, as far as it can be a name.
    pub fn name(&self) -> Option<PipelineName> {
        match &self.plan {
            Some(plan) => Some(plan.name.clone()),
            None => PipelineName::new(&self.read.fallback_name()).ok(),
        }
    }

    fn refuse(&mut self, diagnostic: Diagnostic) {
        self.read.add([diagnostic]);
        self.plan = None;
    }
}

/// Reads, checks and resolves files. Two pipelines on one queue, or on one folder, are an error of the later one.
pub fn load(files: &[PathBuf], environment: &Environment) -> Vec<Loaded> {
    let mut sources: HashMap<String, PathBuf> = HashMap::new();
    let mut targets: HashMap<String, PathBuf> = HashMap::new();
    let mut all = Vec::new();
    for read in definition::load(files, &REGISTRY, environment) {
        let mut loaded = Loaded { read, plan: None };
        match loaded.read.definition.as_ref().map(resolve::resolve) {
            Some(Ok(plan)) => loaded.plan = Some(plan),
            Some(Err(diagnostic)) => loaded.refuse(diagnostic),
            None => {}
        }
        alone_on_its_queue(&mut loaded, &mut sources);
        alone_in_its_folder(&mut loaded, &mut targets);
        all.push(loaded);
    }
    all
}

fn alone_on_its_queue(loaded: &mut Loaded, seen: &mut HashMap<String, PathBuf>) {
    let (Some(plan), Some(definition)) = (&loaded.plan, &loaded.read.definition) else { return };
    if let Some(first) = seen.insert(plan.source_identity.0.clone(), loaded.read.file.clone()) {
        let place = definition.source.at(At::Option(queue_option(definition.source.connector)));
        let diagnostic = Diagnostic::error(format!("another pipeline reads this queue ({})", plan.source_identity))
            .at(place)
            .help(format!("it is declared in {}; two readers would take each other's messages", first.display()));
        loaded.refuse(diagnostic);
    }
}

fn queue_option(_connector: &str) -> &'static OptionSpec {
    &super::mns::QUEUE_NAME
}

fn alone_in_its_folder(loaded: &mut Loaded, seen: &mut HashMap<String, PathBuf>) {
    let (Some(plan), Some(definition)) = (&loaded.plan, &loaded.read.definition) else { return };
    if definition.sink.connector != filesystem::TABLE.name {
        return;
    }
    if let Some(first) = seen.insert(plan.sink_identity.target.clone(), loaded.read.file.clone()) {
        let place = definition.sink.at(At::Option(&filesystem::PATH));
        let diagnostic = Diagnostic::error(format!("another pipeline writes to {}", plan.sink_identity.target))
            .at(place)
            .help(format!("it is declared in {}; each needs a folder of its own", first.display()));
        loaded.refuse(diagnostic);
    }
}
