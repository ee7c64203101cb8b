//! From a file to a checked definition.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    diagnostics::{Diagnostic, Report},
    located::{self, Node},
    pipeline::{PipelineDefinition, ReadPipeline, read_pipeline},
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
    /// The pipeline's name, if that is valid, whatever else is wrong.
    pub name: Option<PipelineName>,
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
}

/// Reads and checks one file.
pub fn load_file(file: &Path, registry: &Registry, environment: &Environment) -> Loaded {
    match read_text(file) {
        Ok(text) => load_text(file, &text, registry, environment),
        Err(diagnostic) => {
            let mut report = Report::new(file, "");
            report.push(*diagnostic);
            Loaded { file: file.to_owned(), name: None, definition: None, report }
        }
    }
}

/// Checks a text as if it stood in `file`.
pub fn load_text(file: &Path, text: &str, registry: &Registry, environment: &Environment) -> Loaded {
    let mut report = Report::new(file, text);
    let read = located::read(text, located::DEFINITION, &mut report).map(|mut root| {
        substitute(&mut root, environment, &mut report);
        read_pipeline(&root, file, registry, &mut report)
    });
    let ReadPipeline { name, definition } = read.unwrap_or_default();
    Loaded { file: file.to_owned(), name, definition, report }
}

/// A text of a definition as it is written, with nothing put in the place of `${...}`. `None`: it is no YAML, or no
/// mapping.
pub fn written(text: &str) -> Option<Node> {
    located::read(text, located::DEFINITION, &mut Report::default())
}

pub(super) fn read_text(file: &Path) -> Result<String, Box<Diagnostic>> {
    let refuse = |error: std::io::Error| Box::new(Diagnostic::error(format!("the file cannot be read: {error}")));
    // Opening a pipe would wait for a writer that may never come.
    if !std::fs::metadata(file).map_err(refuse)?.is_file() {
        return Err(Diagnostic::error("this is not a regular file").expected("a pipeline's definition").into());
    }
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
