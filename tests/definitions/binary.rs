//! What the program itself answers: `check`, and `run` before it starts anything.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::EXAMPLE;

/// Exit code, stdout and stderr of the program, run in `folder` with the keys that [`EXAMPLE`] asks for.
pub fn queuewarden(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_queuewarden"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs([("MNS_ACCESS_KEY_ID", "id"), ("MNS_ACCESS_KEY_SECRET", "T0PS3CRET"), ("NO_COLOR", "1")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(!out.contains("T0PS3CRET") && !err.contains("T0PS3CRET"), "{out}{err}");
    (output.status.code().unwrap(), out, err)
}

fn check(folder: &Path, paths: &[&str]) -> (i32, String, String) {
    queuewarden(folder, &[&["check", "--report", "line"], paths].concat())
}

#[test]
fn check_has_an_exit_code_for_each_outcome() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("good.yaml"), EXAMPLE).unwrap();
    let (code, out, err) = check(dir.path(), &["good.yaml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "good.yaml: `oss-created` is valid (mns -> filesystem)\n");

    let (code, out, err) = check(dir.path(), &["good.yaml", "nope.yaml"]);
    assert_eq!(code, 66, "{err}");
    assert!(err.starts_with("nope.yaml: error: No such file"), "{err}");
    assert_eq!(out.lines().count(), 1, "the other is checked all the same");
    let (code, _, err) = check(dir.path(), &["empty"]);
    assert_eq!((code, err.as_str()), (66, "empty: error: there is no .yaml or .yml file in it\n"));

    fs::write(dir.path().join("bad.yaml"), EXAMPLE.replace("batchSize: 16", "batchSize: 17")).unwrap();
    let (code, out, err) = check(dir.path(), &["."]);
    assert_eq!((code, out.lines().count()), (78, 1));
    assert!(err.starts_with("./bad.yaml:11:14: error: `batchSize` is `17`"), "{err}");
    assert!(err.ends_with("1 of 2 definitions are not valid\n"), "{err}");
    assert_eq!(check(dir.path(), &["bad.yaml", "nope.yaml"]).0, 78, "what is wrong weighs more than what is missing");
    assert_eq!(check(dir.path(), &[]).0, 64);
}

#[test]
fn check_shows_what_a_definition_means_without_its_secret() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("good.yaml"), EXAMPLE).unwrap();
    let (code, out, err) = queuewarden(dir.path(), &["check", "--resolved", "good.yaml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("accessKeySecret: '***'") && out.contains("receive.concurrency: '1'"), "{out}");
}

#[test]
fn a_variable_that_is_not_set_is_told_where_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.yaml"), EXAMPLE.replace("oss-events", "${QUEUE}")).unwrap();
    let (code, _, err) = check(dir.path(), &["a.yaml"]);
    assert_eq!(code, 78);
    assert!(err.starts_with("a.yaml:6:14: error: "), "{err}");
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let check = |content: &[u8]| {
        fs::write(dir.path().join("a.yaml"), content).unwrap();
        check(dir.path(), &["a.yaml"])
    };
    let (code, _, err) = check(b"name: a\nsource: \xff\n");
    assert_eq!(code, 78);
    assert!(err.contains("a.yaml: error: the file is not UTF-8: line 2"), "{err}");
    assert!(check(&vec![b'#'; (1 << 20) + 1]).2.contains("larger than 256 KiB"));
    assert_eq!(check(format!("\u{feff}{EXAMPLE}").as_bytes()).0, 0);
    assert_eq!(check(EXAMPLE.replace('\n', "\r\n").as_bytes()).0, 0);
}

#[test]
fn a_strict_run_with_a_broken_file_ends_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("p")).unwrap();
    fs::write(dir.path().join("p/good.yaml"), EXAMPLE).unwrap();
    let run = || {
        let listen = ["--listen", "127.0.0.1:0"];
        queuewarden(dir.path(), &[&["run", "--strict", "--pipelines", "p", "--state", "s"], &listen[..]].concat())
    };
    let untouched = || {
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["p"], "nothing is created");
    };
    fs::write(dir.path().join("p/bad.yaml"), EXAMPLE.replace("mns", "nms")).unwrap();
    let (code, _, err) = run();
    assert_eq!(code, 78, "{err}");
    assert!(err.contains("there is no connector `nms`"), "{err}");
    untouched();

    fs::remove_file(dir.path().join("p/bad.yaml")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("p/dangling.yaml")).unwrap();
    let (code, _, err) = run();
    assert_eq!(code, 66, "{err}");
    assert!(err.contains("dangling.yaml"), "{err}");
    untouched();
}

#[test]
fn a_run_without_its_folder_ends_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, err) = queuewarden(dir.path(), &["run", "--pipelines", "p", "--state", "s"]);
    assert_eq!(code, 66, "{err}");
    assert!(!dir.path().join("s").exists());
}

#[test]
fn a_path_counts_from_where_the_program_was_started() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let other = EXAMPLE.replace("oss-created", "other").replace("oss-events", "other");
    fs::create_dir_all(root.join("p/q")).unwrap();
    fs::write(root.join("p/a.yaml"), EXAMPLE).unwrap();
    let absolute = |folder: &str| other.replace("path: out", &format!("path: {}", root.join(folder).display()));
    fs::write(root.join("p/q/b.yaml"), absolute("p/out")).unwrap();
    assert_eq!(check(&root, &["p"]).0, 0, "not from where the file is");
    fs::write(root.join("p/q/b.yaml"), absolute("out")).unwrap();
    let (code, _, err) = check(&root, &["p"]);
    assert_eq!(code, 78);
    assert!(
        err.starts_with("p/q/b.yaml:21:9: error: another pipeline writes to this folder; it is declared in p/a.yaml"),
        "{err}"
    );
}

#[test]
fn a_pipe_among_the_definitions_is_told_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("a.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_queuewarden"))
        .args(["check", "--report", "line"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a.yaml: error: this is not a regular file"));
}

#[test]
fn a_folder_of_secrets_that_is_not_there_is_told_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("p")).unwrap();
    fs::write(dir.path().join("p/good.yaml"), EXAMPLE).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for secrets in ["nowhere", "file"] {
        let run = ["run", "--pipelines", "p", "--state", "s", "--listen", "127.0.0.1:0", "--secrets-dir", secrets];
        for arguments in [&run[..], &["check", "--secrets-dir", secrets, "p"]] {
            let (code, out, err) = queuewarden(dir.path(), arguments);
            assert_eq!((code, out.as_str()), (66, ""), "{err}");
            assert!(err.starts_with(&format!("error: --secrets-dir {secrets}: ")), "{err}");
        }
    }
    assert!(!dir.path().join("s").exists());
}

#[test]
fn strict_takes_the_words_of_a_switch_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("p")).unwrap();
    fs::write(dir.path().join("p/bad.yaml"), "source: { connector: mms }\n").unwrap();
    let run = |strict: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_queuewarden"))
            // A lenient start fails too, at its address, but later.
            .args(["run", "--pipelines", "p", "--state", "s", "--listen", "192.0.2.1:1"])
            .current_dir(dir.path())
            .env("QUEUEWARDEN_STRICT", strict)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for (word, code) in [("true", 78), ("ON", 78), ("1", 78), ("false", 71), ("no", 71), ("", 71), ("maybe", 64)] {
        let (ended, err) = run(word);
        assert_eq!(ended, code, "{word}: {err}");
        if code == 64 {
            assert!(err.contains("'maybe'") && err.contains("expected true or false"), "{err}");
        }
    }
}
