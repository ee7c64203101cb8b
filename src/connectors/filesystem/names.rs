//! The names of the sink's files, and what a token says of them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    connector::SinkContext,
    model::{Epoch, Fault, FaultKind, Generation, PipelineName, SinkIdentity, Token},
};

/// The folder inside the target that readers do not look into.
pub(super) const HIDDEN: &str = ".queuewarden";

/// Where a pipeline stages what goes to `target`.
pub(super) fn staging(target: &Path, pipeline: &PipelineName) -> PathBuf {
    target.join(HIDDEN).join(pipeline.as_str())
}

/// The name of a file that is being written. Its epoch is not known yet.
pub(super) fn open_name(context: &SinkContext, number: u64, extension: &str) -> String {
    format!("open-{}-{}-{number}.{extension}", context.incarnation, context.generation)
}

/// The name of a prepared file, which it keeps.
pub(super) fn part_name(context: &SinkContext, epoch: Epoch, part: u64, extension: &str) -> String {
    format!("part-{}-{}-{epoch}-{part}.{extension}", context.incarnation, context.generation)
}

/// Whose file a name in a staging folder says it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Owner<'a> {
    pub(super) incarnation: &'a str,
    pub(super) generation: Generation,
}

/// `None`: not a name this sink gives.
pub(super) fn owner(name: &str) -> Option<Owner<'_>> {
    let (stem, _) = name.split_once('.')?;
    let mut words = stem.split('-');
    let numbers = match words.next()? {
        "open" => 1,
        "part" => 2,
        _ => return None,
    };
    let incarnation = words.next()?;
    let hex = incarnation.len() == 16 && incarnation.bytes().all(|b| b.is_ascii_hexdigit());
    let generation = Generation(words.next()?.parse().ok()?);
    let rest: Vec<&str> = words.collect();
    let numbered = rest.len() == numbers && rest.iter().all(|word| word.parse::<u64>().is_ok());
    (hex && numbered).then_some(Owner { incarnation, generation })
}

/// The content of a token.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Staged {
    /// Whose staging folder; the pipeline may have another name by now.
    pub(super) pipeline: String,
    /// Names of files in it, which they keep in the target.
    pub(super) files: Vec<String>,
}

impl Staged {
    pub(super) fn to_token(&self, sink: SinkIdentity) -> Result<Token, Fault> {
        let content = serde_json::to_string(self)
            .map_err(|error| Fault::restart(FaultKind::Bug, "cannot write a token").because(error))?;
        Ok(Token { sink, content })
    }

    /// Reads a token, and refuses names that lead out of the folders.
    pub(super) fn from_token(token: &Token) -> Result<(PathBuf, PipelineName, Self), Fault> {
        let unreadable = |reason: String| {
            Fault::never(FaultKind::Sink, format!("a token of {} cannot be read: {reason}", token.sink))
        };
        let target = PathBuf::from(&token.sink.target);
        if token.sink.connector != super::TABLE.name || !target.is_absolute() {
            return Err(unreadable("it is not one of a filesystem sink".to_owned()));
        }
        let staged: Self = serde_json::from_str(&token.content).map_err(|error| unreadable(error.to_string()))?;
        let pipeline = PipelineName::new(&staged.pipeline).map_err(|why| unreadable(why.to_owned()))?;
        match staged.files.iter().find(|name| name.contains('/') || owner(name).is_none()) {
            Some(name) => Err(unreadable(format!("{name:?} is not a name of this sink"))),
            None => Ok((target, pipeline, staged)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let context = SinkContext {
            pipeline: PipelineName::new("a-b").unwrap(),
            incarnation: "0123456789abcdef".to_owned(),
            generation: Generation(12),
        };
        let ours = Some(Owner { incarnation: "0123456789abcdef", generation: Generation(12) });
        assert_eq!(owner(&open_name(&context, 3, "json")), ours);
        assert_eq!(owner(&part_name(&context, Epoch(4), 0, "json.gz")), ours);
        for other in ["part-1.json", "part-0123456789abcdef-1-2.json", "lock", "part-0123456789abcdef-x-2-0.json", ""] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn a_token_cannot_name_a_file_elsewhere() {
        let sink = SinkIdentity { connector: "filesystem".to_owned(), target: "/out".to_owned() };
        for name in ["../../etc/passwd", "/etc/passwd", "part-0123456789abcdef-1-2-0.x/../../y"] {
            let staged = Staged { pipeline: "a".to_owned(), files: vec![name.to_owned()] };
            let token = staged.to_token(sink.clone()).unwrap();
            assert!(Staged::from_token(&token).is_err(), "{name}");
        }
    }
}
