//! The layers of ARCHITECTURE.md: imports point downwards only, and only three modules know an actor.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::visit::Visit;

/// From the top down. A module may use those after it.
const LAYERS: [&str; 17] = [
    "main",
    "cli",
    "admin",
    "emulator",
    "flink_sql",
    "supervisor",
    "pipeline",
    "connectors",
    "connector",
    "formats",
    "dedup",
    "state",
    "definition",
    "query",
    "telemetry",
    "model",
    "lib",
];

/// Modules that may know actix.
const ACTORS: [&str; 3] = ["pipeline", "supervisor", "admin"];

struct Paths {
    found: Vec<(Vec<String>, usize)>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.found.push((path.segments.iter().map(|segment| segment.ident.to_string()).collect(), line));
        syn::visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&item.tree, &mut Vec::new());
    }
}

impl Paths {
    fn use_tree(&mut self, tree: &syn::UseTree, prefix: &mut Vec<String>) {
        let (name, line) = match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.use_tree(&path.tree, prefix);
                prefix.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, prefix);
                }
                return;
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.span().start().line),
            syn::UseTree::Rename(name) => (name.ident.to_string(), name.ident.span().start().line),
            syn::UseTree::Glob(glob) => ("*".to_owned(), glob.star_token.spans[0].start().line),
        };
        let mut path = prefix.clone();
        path.push(name);
        self.found.push((path, line));
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

fn upward(file: &Path, own: &str, path: &[String]) -> Option<String> {
    let layer = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    let first = path.first()?;
    if matches!(first.as_str(), "actix" | "actix_web" | "actix_rt") && !ACTORS.contains(&own) {
        return Some(format!("{own} knows {first}"));
    }
    if first != "crate" && first != "queuewarden" {
        return None;
    }
    let target = path.get(1)?;
    if own == "emulator" && target == "connectors" {
        // The emulator speaks the same wire as the client; of a connector it may know nothing else.
        let wire = path.iter().any(|part| matches!(part.as_str(), "wire" | "signature"));
        return (!wire).then(|| format!("emulator uses {} of a connector", path.join("::")));
    }
    let (own_layer, target_layer) = (layer(own)?, layer(target)?);
    (target_layer < own_layer).then(|| format!("{} ({own}) uses {target}, which is above it", file.display()))
}

#[test]
fn imports_point_downwards_only_and_only_three_modules_know_an_actor() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 30, "the sources are there");
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&root).expect("below src");
        let own = relative.iter().next().expect("a name").to_string_lossy();
        let own = own.trim_end_matches(".rs");
        assert!(LAYERS.contains(&own), "{own} has no layer: add it to LAYERS and ARCHITECTURE.md");
        let parsed = syn::parse_file(&fs::read_to_string(&file).expect("utf-8")).expect("parses");
        let mut paths = Paths { found: Vec::new() };
        paths.visit_file(&parsed);
        for (path, line) in &paths.found {
            if let Some(reason) = upward(relative, own, path) {
                wrong.push(format!("src/{}:{line}: {reason}", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A panic must end its actor, not the process: that is what the whole supervision rests on.
#[test]
fn a_panic_unwinds_in_every_profile() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("readable");
    assert!(!manifest.lines().any(|line| line.trim_start().starts_with("panic")), "no profile may set `panic`");
}
