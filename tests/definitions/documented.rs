//! Definitions that people are shown must be valid.

use std::{fs, path::Path};

use queuewarden::{
    connectors::{self, REGISTRY},
    definition::{Style, discover, load_text},
};

use crate::environment;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_pipeline_that_comes_along_is_valid() {
    let found = discover(&[root().join("pipelines")]);
    assert_eq!(found.problems, []);
    assert!(found.files.len() >= 2, "{found:?}");
    for loaded in connectors::load(&found.files, &environment()) {
        assert_eq!(loaded.read.report.render(Style::Plain), "");
        assert!(loaded.plan.is_some());
    }
}

/// The fenced blocks of YAML in a Markdown text: the line of the fence, and what is in them.
fn yaml_blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let fence = line.trim_start();
        if fence != "```yaml" {
            continue;
        }
        let indent = line.len() - fence.len();
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let block = inside.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect();
        blocks.push((at + 1, block));
    }
    blocks
}

#[test]
fn every_whole_definition_in_the_readme_is_valid() {
    let text = fs::read_to_string(root().join("README.md")).expect("README.md is there");
    let is_whole = |block: &str| block.lines().any(|line| line.starts_with("source:"));
    let whole: Vec<_> = yaml_blocks(&text).into_iter().filter(|(_, block)| is_whole(block)).collect();
    assert!(!whole.is_empty(), "README.md shows no definition");
    for (line, block) in whole {
        let loaded = load_text(Path::new("readme.yaml"), &block, &REGISTRY, &environment());
        let told = loaded.report.render(Style::Plain);
        assert!(loaded.definition.is_some() && told.is_empty(), "the block at line {line} of README.md:\n{told}");
    }
}
