//! Definitions from files to plans, with what can only be checked across them.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Component, Path, PathBuf},
};

use super::{Claim, Plan, REGISTRY, cmq, datagen, filesystem, mns, resolve, rocketmq};
use crate::{
    definition::{self, At, Diagnostic, Endpoint, Environment, OptionSpec, PipelineDefinition, Span},
    formats,
    model::PipelineName,
};

/// A definition that has been read, checked and resolved.
pub struct Loaded {
    /// The pipeline's name. No two have one: a broken definition that declares none, or another's, has one made of
    /// its file's.
    pub name: PipelineName,
    /// The file, what it declares, and what is wrong with it.
    pub read: definition::Loaded,
    /// What it becomes; `None` if anything in it is an error.
    pub plan: Option<Plan>,
}

/// Reads, checks and resolves files. A name, a queue or a folder that an earlier pipeline has is an error of the
/// later one. Blocks.
pub fn load(files: &[PathBuf], environment: &Environment) -> Vec<Loaded> {
    all(files.iter().map(|file| definition::load_file(file, &REGISTRY, environment)))
}

/// The same for texts, each as if it stood in the file of this name.
pub fn load_texts(texts: &[(PathBuf, String)], environment: &Environment) -> Vec<Loaded> {
    all(texts.iter().map(|(file, text)| definition::load_text(file, text, &REGISTRY, environment)))
}

fn all(read: impl Iterator<Item = definition::Loaded>) -> Vec<Loaded> {
    let mut claimed: HashMap<Claim, PathBuf> = HashMap::new();
    let read: Vec<_> = read.map(|read| resolved(read, &mut claimed)).collect();
    let mut names: HashSet<_> = read.iter().filter_map(|(_, plan)| Some(plan.as_ref()?.name.clone())).collect();
    let named = read.into_iter().map(|(read, plan)| {
        let name = plan.as_ref().map_or_else(|| name_to_show(&read, &mut names), |plan| plan.name.clone());
        Loaded { name, read, plan }
    });
    named.collect()
}

fn resolved(mut read: definition::Loaded, claimed: &mut HashMap<Claim, PathBuf>) -> (definition::Loaded, Option<Plan>) {
    let Some(definition) = &read.definition else { return (read, None) };
    let mut plan = match resolve::resolve(definition) {
        Ok(plan) => plan,
        Err(diagnostic) => {
            read.add([*diagnostic]);
            return (read, None);
        }
    };
    let (mut claims, mut taken) = (claims(definition, &plan), Vec::new());
    for claim in &claims {
        taken.extend(
            claimed
                .get(claim)
                .map(|first| self::taken(claim, definition, definition.sink.at(At::Option(&filesystem::PATH)), first)),
        );
    }
    taken.extend(fed_back(definition, &plan));
    taken.extend(unreadable_letters(definition));
    if let Some((endpoint, folder)) = letters_folder(definition, &plan) {
        let claim = Claim::Folder(folder);
        let place = endpoint.at(At::Option(&filesystem::PATH));
        taken.extend(claimed.get(&claim).map(|first| self::taken(&claim, definition, place, first)));
        taken.extend(claims.iter().filter_map(|other| overlap(&claim, other, place)));
        claims.push(claim);
    }
    if taken.is_empty() {
        claimed.extend(claims.iter().map(|claim| (claim.clone(), read.file.clone())));
        plan.claims = claims;
        return (read, Some(plan));
    }
    read.add(taken);
    (read, None)
}

fn claims(definition: &PipelineDefinition, plan: &Plan) -> Vec<Claim> {
    let mut claims = vec![Claim::Name(plan.name.clone())];
    // Rows that are made up are not taken from anyone.
    match definition.source.connector {
        name if name == datagen::TABLE.name => {}
        _ if rocketmq::is(&definition.source) => {
            let options = rocketmq::SourceOptions::read(&definition.source);
            let topics = options.map(|options| options.claims()).unwrap_or_default();
            claims.extend(topics.into_iter().map(Claim::Queue));
        }
        _ => claims.push(Claim::Queue(plan.source_identity.clone())),
    }
    if definition.sink.connector == filesystem::TABLE.name {
        claims.push(Claim::Folder(real_path(Path::new(&plan.sink_identity.target))));
    }
    claims
}

/// A sink that writes to what the pipeline reads: each row would come back as a message, for ever.
fn fed_back(definition: &PipelineDefinition, plan: &Plan) -> Option<Diagnostic> {
    let source = &definition.source;
    let read: Vec<String> = if source.connector == cmq::TABLE.name {
        vec![plan.source_identity.0.strip_prefix("cmq ")?.to_owned()]
    } else if rocketmq::is(source) {
        let options = rocketmq::SourceOptions::read(source).ok()?;
        // With a filter what is written may be what is not read.
        if options.filter != rocketmq::client::Filter::All { Vec::new() } else { options.names_of_topics() }
    } else {
        return None;
    };
    let letters = definition.dead_letter.as_ref().zip(plan.dead_letter.as_ref().map(|letters| &letters.identity));
    let mut sinks = [Some((&definition.sink, &plan.sink_identity)), letters].into_iter().flatten();
    let (endpoint, _) = sinks.find(|(endpoint, identity)| {
        let same_service = match rocketmq::is(source) {
            true => rocketmq::is(endpoint),
            false => endpoint.connector == source.connector,
        };
        same_service && read.contains(&identity.target)
    })?;
    let (what, option) = match rocketmq::is(source) {
        true if endpoint.connector == rocketmq::mq::TABLES.name => ("topic", &rocketmq::mq::TOPIC),
        true => ("topic", &rocketmq::options::SINK_TOPIC),
        false => ("queue", &cmq::QUEUE),
    };
    let message = format!("what is written here goes to the {what} that the pipeline reads");
    let diagnostic = Diagnostic::error(message).at(endpoint.at(At::Option(option)));
    Some(diagnostic.help("each row would come back as a message, without end"))
}

/// Files of dead letters that nobody could replay.
fn unreadable_letters(definition: &PipelineDefinition) -> Option<Diagnostic> {
    let endpoint = definition.dead_letter.as_ref().filter(|letters| letters.connector == filesystem::TABLE.name)?;
    let format = endpoint.format.as_ref().filter(|format| format.name != formats::json::TABLES.name)?;
    let message = format!("dead letters in files of `{}` could not be replayed", format.name);
    Some(Diagnostic::error(message).at(endpoint.at(At::Format)).expected("`format: json`"))
}

/// The folder that dead letters go to, if they go to files.
fn letters_folder<'a>(definition: &'a PipelineDefinition, plan: &Plan) -> Option<(&'a Endpoint, PathBuf)> {
    let endpoint = definition.dead_letter.as_ref().filter(|letters| letters.connector == filesystem::TABLE.name)?;
    Some((endpoint, real_path(Path::new(&plan.dead_letter.as_ref()?.identity.target))))
}

/// Whoever reads one of the two folders must not come upon the files of the other.
fn overlap(letters: &Claim, rows: &Claim, place: Span) -> Option<Diagnostic> {
    let (Claim::Folder(letters), Claim::Folder(rows)) = (letters, rows) else { return None };
    let message = match (letters.starts_with(rows), rows.starts_with(letters)) {
        (true, true) => "the dead letters go to the same folder as the rows",
        (true, false) => "the dead letters go to a folder inside that of the rows",
        (false, true) => "the dead letters go to a folder that holds that of the rows",
        (false, false) => return None,
    };
    Some(Diagnostic::error(message).at(place).help("each needs a folder of its own"))
}

/// What names the queue of a source that reads one.
fn queue_option(definition: &PipelineDefinition) -> &'static OptionSpec {
    if definition.source.connector == cmq::TABLE.name { &cmq::QUEUE } else { &mns::QUEUE_NAME }
}

/// Repeats neither queue nor path: either may have come from a secret. `folder`: where the path stands.
fn taken(claim: &Claim, definition: &PipelineDefinition, folder: Span, first: &Path) -> Diagnostic {
    let (message, place, why) = match claim {
        Claim::Name(name) => {
            (format!("another pipeline is called `{name}`"), definition.name_place, "each needs a name of its own")
        }
        Claim::Queue(_) if rocketmq::is(&definition.source) => (
            "another pipeline reads a topic of these as the same group".to_owned(),
            Some(definition.source.at(At::Option(&rocketmq::options::SOURCE_TOPIC))),
            "each would set the offsets of the other",
        ),
        Claim::Queue(_) => (
            "another pipeline reads this queue".to_owned(),
            Some(definition.source.at(At::Option(queue_option(definition)))),
            "two readers would take each other's messages",
        ),
        Claim::Folder(_) => {
            ("another pipeline writes to this folder".to_owned(), Some(folder), "each needs a folder of its own")
        }
    };
    let mut diagnostic = Diagnostic::error(message).help(format!("it is declared in {}; {why}", first.display()));
    diagnostic.span = place;
    diagnostic
}

/// An absolute path with links and `..` followed, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, fs::canonicalize(ancestor).ok()?)));
    let Some((ancestor, mut real)) = existing else { return path.to_owned() };
    for component in path.strip_prefix(ancestor).unwrap_or(path).components() {
        match component {
            // Nothing that does not exist yet is a link.
            Component::ParentDir => {
                real.pop();
            }
            other => real.push(other),
        }
    }
    real
}

/// What a broken definition is shown as.
fn name_to_show(read: &definition::Loaded, names: &mut HashSet<PipelineName>) -> PipelineName {
    let stem = read.file.file_stem().unwrap_or_default().to_string_lossy();
    let mut candidates = read.name.clone().into_iter().chain([PipelineName::resembling(&stem)]);
    let mut name = candidates.find(|name| !names.contains(name));
    let mut number = 2_u64;
    loop {
        if let Some(free) = name.filter(|name| names.insert(name.clone())) {
            return free;
        }
        name = Some(PipelineName::resembling(&format!("{number}-{stem}")));
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_real_path_is_the_same_before_and_after_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        for path in ["real/a/b", "link/a/b", "link/../real/a/b", "real/x/../a/./b", "real/../link/a/b"] {
            assert_eq!(real_path(&root.join(path)), root.join("real/a/b"), "{path}");
        }
        fs::create_dir_all(root.join("real/a/b")).unwrap();
        fs::create_dir(root.join("real/x")).unwrap();
        assert_eq!(real_path(&root.join("link/x/../a/b")), root.join("real/a/b"));
    }
}
