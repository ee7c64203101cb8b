//! From a file to a checked definition.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    diagnostics::{Diagnostic, Report},
    located,
    pipeline::{PipelineDefinition, read_pipeline},
    registry::Registry,
    substitute::{Environment, substitute},
};
use crate::model::PipelineName;

/// Largest definition, in bytes.
pub const LARGEST_FILE: u64 = 256 << 10;

/// A file that has been read.
#[derive(Debug)]
pub struct Loaded {
    /// The file.
    pub file: PathBuf,
    /// What it declares; `None` if anything in it is an error.
    pub definition: Option<PipelineDefinition>,
    /// What is wrong with it.
    pub report: Report,
}

impl Loaded {
    /// Adds what a later check has found. Errors take the definition away.
    pub fn add(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        found.into_iter().for_each(|diagnostic| self.report.push(diagnostic));
        if self.report.has_errors() {
            self.definition = None;
        }
    }

    /// What the pipeline would be called if the file were valid: for showing that it is not.
    pub fn fallback_name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Reads and checks files, in order. A name that an earlier one of them has is an error of the later one.
pub fn load(files: &[PathBuf], registry: &Registry, environment: &Environment) -> Vec<Loaded> {
    let mut loaded: Vec<_> = files.iter().map(|file| load_file(file, registry, environment)).collect();
    let mut names: BTreeMap<PipelineName, PathBuf> = BTreeMap::new();
    for one in &mut loaded {
        let Some(definition) = &one.definition else { continue };
        if let Some(first) = names.get(&definition.name) {
            let mut diagnostic = Diagnostic::error(format!("another pipeline is called `{}`", definition.name))
                .help(format!("it is declared in {}; each needs a name of its own", first.display()));
            diagnostic.span = definition.name_place;
            one.add([diagnostic]);
        } else {
            names.insert(definition.name.clone(), one.file.clone());
        }
    }
    loaded
}

/// Reads and checks one file.
pub fn load_file(file: &Path, registry: &Registry, environment: &Environment) -> Loaded {
    match read_text(file) {
        Ok(text) => load_text(file, &text, registry, environment),
        Err(diagnostic) => {
            let mut report = Report::new(file, "");
            report.push(*diagnostic);
            Loaded { file: file.to_owned(), definition: None, report }
        }
    }
}

/// Checks a text as if it stood in `file`.
pub fn load_text(file: &Path, text: &str, registry: &Registry, environment: &Environment) -> Loaded {
    let mut report = Report::new(file, text);
    let definition = located::read(text, &mut report).and_then(|mut root| {
        substitute(&mut root, environment, &mut report);
        read_pipeline(&root, file, registry, &mut report)
    });
    Loaded { file: file.to_owned(), definition, report }
}

fn read_text(file: &Path) -> Result<String, Box<Diagnostic>> {
    let refuse = |error: std::io::Error| Box::new(Diagnostic::error(format!("the file cannot be read: {error}")));
    let opened = std::fs::File::open(file).map_err(refuse)?;
    let mut bytes = Vec::new();
    opened.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(refuse)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(Diagnostic::error("the file is larger than 256 KiB").expected("a pipeline's definition").into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes().get(..at).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count() + 1;
        let message = format!("the file is not UTF-8: line {line} holds other bytes");
        Box::new(Diagnostic::error(message).expected("UTF-8 text"))
    })?;
    // A byte order mark is no part of the first key.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
