//! Finds the definitions in folders.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Files to read, in the order of their paths, none twice.
    pub files: Vec<PathBuf>,
    /// Paths that could not be looked at, or held nothing, and why.
    pub problems: Vec<(PathBuf, String)>,
}

/// Finds the definitions at `paths`. A file is taken whatever it is called. Of a folder and the folders in it every
/// `.yaml` and `.yml` file is taken but hidden ones and `*.test.yaml`; symbolic links are followed, which with the
/// hidden folders left out is what the layout of a mounted ConfigMap needs.
pub fn discover(paths: &[PathBuf]) -> Discovered {
    discover_such(paths, is_definition, "there is no .yaml or .yml file in it")
}

/// Finds the tests of definitions at `paths`, likewise: of a folder every `*.test.yaml` and `*.test.yml`.
pub fn discover_tests(paths: &[PathBuf]) -> Discovered {
    discover_such(paths, is_test, "there is no .test.yaml or .test.yml file in it")
}

fn discover_such(paths: &[PathBuf], wanted: Wanted, nothing: &str) -> Discovered {
    let mut found = Discovered::default();
    let mut files = BTreeSet::new();
    for path in paths {
        match fs::metadata(path) {
            Err(error) => found.problems.push((path.clone(), error.to_string())),
            Ok(metadata) if metadata.is_dir() => {
                let before = found.problems.len();
                let mut inside = BTreeSet::new();
                walk(path, wanted, &mut BTreeSet::new(), &mut inside, &mut found.problems);
                if inside.is_empty() && found.problems.len() == before {
                    found.problems.push((path.clone(), nothing.to_owned()));
                }
                files.extend(inside);
            }
            Ok(_) => {
                files.insert(path.clone());
            }
        }
    }
    found.files = files.into_iter().collect();
    found
}

/// Whether a file of this name is looked for.
type Wanted = fn(&str) -> bool;

fn walk(
    folder: &Path,
    wanted: Wanted,
    visited: &mut BTreeSet<PathBuf>,
    files: &mut BTreeSet<PathBuf>,
    problems: &mut Vec<(PathBuf, String)>,
) {
    // A link may lead back to a folder it is in.
    match fs::canonicalize(folder).map(|real| visited.insert(real)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return problems.push((folder.to_owned(), error.to_string())),
    }
    let entries = match fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return problems.push((folder.to_owned(), error.to_string())),
    };
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk(&path, wanted, visited, files, problems),
            Ok(_) if wanted(&name) => {
                files.insert(path);
            }
            Err(error) if wanted(&name) => problems.push((path, error.to_string())),
            Ok(_) | Err(_) => {}
        }
    }
}

fn stem(name: &str) -> Option<&str> {
    name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"))
}

fn is_definition(name: &str) -> bool {
    stem(name).is_some_and(|stem| !stem.ends_with(".test"))
}

fn is_test(name: &str) -> bool {
    stem(name).is_some_and(|stem| stem.ends_with(".test"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(found: &Discovered, root: &Path) -> Vec<String> {
        found.files.iter().map(|file| file.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn definitions_are_found_in_order_and_the_rest_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("team/.git")).unwrap();
        for name in
            ["b.yml", "a.yaml", ".c.yaml", "a.test.yaml", "b.test.yml", "notes.txt", "team/d.yaml", "team/.git/e.yaml"]
        {
            fs::write(root.join(name), "").unwrap();
        }
        let found = discover(&[root.to_owned(), root.join("a.yaml")]);
        assert_eq!(names(&found, root), ["a.yaml", "b.yml", "team/d.yaml"]);
        assert_eq!(found.problems, []);
        assert_eq!(names(&discover_tests(&[root.to_owned()]), root), ["a.test.yaml", "b.test.yml"]);
    }

    #[test]
    fn a_mounted_config_map_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join("..2026_11_30")).unwrap();
        fs::write(root.join("..2026_11_30/a.yaml"), "").unwrap();
        symlink("..2026_11_30", root.join("..data")).unwrap();
        symlink("..data/a.yaml", root.join("a.yaml")).unwrap();
        let found = discover(&[root.to_owned()]);
        assert_eq!(names(&found, root), ["a.yaml"]);
    }

    #[test]
    fn a_link_in_a_circle_ends_and_a_dangling_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::write(root.join("a.yaml"), "").unwrap();
        symlink(root, root.join("again")).unwrap();
        symlink("nowhere", root.join("z.yaml")).unwrap();
        let found = discover(&[root.to_owned()]);
        assert_eq!(names(&found, root), ["a.yaml"]);
        assert_eq!(found.problems.len(), 1);
        assert_eq!(found.problems[0].0, root.join("z.yaml"));
    }

    #[test]
    fn a_path_that_is_missing_or_holds_nothing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let found = discover(&[dir.path().join("nope"), dir.path().to_owned()]);
        assert_eq!(found.files, [""; 0].map(PathBuf::from));
        assert_eq!(found.problems.len(), 2);
    }
}
