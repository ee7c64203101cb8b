//! `import` and `export` as commands.

use std::{fs, process::Output};

use crate::{common::binary, root};

fn run(folder: &std::path::Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = binary().current_dir(folder).args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("it exits"), text(stdout), text(stderr))
}

const SCRIPT: &str = "SET 'execution.checkpointing.interval' = '30s';
SET restart-strategy.type = failure-rate;
SET 'restart-strategy.failure-rate.delay' = '2 s';
SET 'table.exec.state.ttl' = '1 d';
CREATE TEMPORARY TABLE IF NOT EXISTS `c`.`d`.`s` (
  `id` BIGINT COMMENT 'the id',
  tags ROW<a INT, b MAP<STRING, ARRAY<INT>>>
) COMMENT 'rows' WITH ('connector' = 'datagen', 'rows-per-second' = '5');
CREATE TABLE k (id BIGINT, tags ROW<a INT, b MAP<STRING, ARRAY<INT>>>)
WITH ('connector' = 'filesystem', 'path' = 'file:///tmp/a$b', 'format' = 'json');
CREATE TABLE p (id BIGINT, tags ROW<a INT, b MAP<STRING, ARRAY<INT>>>) WITH ('connector' = 'print');
BEGIN STATEMENT SET;
INSERT INTO p SELECT * FROM d.s;
INSERT INTO k SELECT id, tags FROM s AS x;
END;
";

const FIRST: &str = "# From a.sql, line 13: INSERT INTO p.
# Left out, for it has no counterpart here: SET 'table.exec.state.ttl' in line 4
name: s-to-p
source:
  connector: datagen
  rows-per-second: 5
  schema:
    id: BIGINT COMMENT 'the id'
    tags: ROW<`a` INT, `b` MAP<STRING, ARRAY<INT>>>
sink:
  connector: print
checkpoint:
  interval: 30s
restart:
  backoff: 2 s..2 s
";

#[test]
fn every_insert_becomes_a_file_and_a_file_is_written_over_only_when_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.sql"), SCRIPT).unwrap();
    let (exit, out, error) = run(folder, &["import", "a.sql", "--report", "line"]);
    assert_eq!(
        (exit, out.as_str()),
        (0, "pipelines/s-to-p.yaml: written\npipelines/s-to-k.yaml: written\n"),
        "{error}"
    );
    assert_eq!(error, "a.sql:4:5: warning: `table.exec.state.ttl` has no counterpart here and is left out\n");
    assert_eq!(fs::read_to_string(folder.join("pipelines/s-to-p.yaml")).unwrap(), FIRST);
    assert!(fs::read_to_string(folder.join("pipelines/s-to-k.yaml")).unwrap().contains("\n  path: /tmp/a$$b\n"));
    assert_eq!(run(folder, &["check", "pipelines"]).0, 0);

    let (exit, _, error) = run(folder, &["import", "a.sql"]);
    assert_eq!(exit, 73, "{error}");
    assert!(error.contains("already there: pipelines/s-to-p.yaml, pipelines/s-to-k.yaml"), "{error}");
    fs::write(folder.join("pipelines/s-to-p.yaml"), "changed").unwrap();
    assert_eq!(run(folder, &["import", "a.sql", "--force"]).0, 0);
    assert_eq!(fs::read_to_string(folder.join("pipelines/s-to-p.yaml")).unwrap(), FIRST);
    let (exit, out, _) = run(folder, &["import", "a.sql", "--print"]);
    assert_eq!(exit, 0);
    assert!(
        out.starts_with(FIRST.trim_end()) && out.contains("\n---\n# From a.sql, line 14: INSERT INTO k.\n"),
        "{out}"
    );
}

#[test]
fn a_file_is_written_as_a_whole_and_what_is_written_is_told_where_the_rest_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.sql"), SCRIPT).unwrap();
    fs::create_dir_all(folder.join("pipelines/s-to-k.yaml")).unwrap();
    let (exit, out, error) = run(folder, &["import", "a.sql", "--force"]);
    assert_eq!((exit, out.as_str()), (71, ""), "{error}");
    assert!(error.contains("error: pipelines/s-to-k.yaml cannot be written: "), "{error}");
    assert!(error.ends_with("; written so far: pipelines/s-to-p.yaml\n"), "{error}");
    assert_eq!(fs::read_to_string(folder.join("pipelines/s-to-p.yaml")).unwrap(), FIRST);
    let mut names: Vec<_> = fs::read_dir(folder.join("pipelines"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["s-to-k.yaml", "s-to-p.yaml"], "nothing else is left");
    // One that is written over is another file: whoever reads the old one reads it to its end.
    let inode = |name: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(folder.join(name)).unwrap());
    fs::remove_dir(folder.join("pipelines/s-to-k.yaml")).unwrap();
    fs::hard_link(folder.join("pipelines/s-to-p.yaml"), folder.join("old")).unwrap();
    assert_eq!(run(folder, &["import", "a.sql", "--force"]).0, 0);
    assert_ne!(inode("pipelines/s-to-p.yaml"), inode("old"));
    fs::write(folder.join("plain"), "").unwrap();
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions();
    assert_eq!(mode("pipelines/s-to-p.yaml"), mode("plain"));
}

#[test]
fn a_name_that_another_file_of_the_folder_has_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.sql"), SCRIPT).unwrap();
    fs::create_dir_all(folder.join("pipelines/old")).unwrap();
    let other = "name: s-to-k\nsource: {connector: datagen, schema: {a: INT}}\nsink: {connector: prnt}\n";
    fs::write(folder.join("pipelines/old/mine.yaml"), other).unwrap();
    for arguments in [&["import", "a.sql"][..], &["import", "a.sql", "--force"]] {
        let (exit, out, error) = run(folder, arguments);
        assert_eq!((exit, out.as_str()), (73, ""), "{error}");
        let expected = "error: pipelines/old/mine.yaml has a pipeline `s-to-k` already; nothing is written\n";
        assert!(error.ends_with(expected), "{error}");
        assert!(!folder.join("pipelines/s-to-p.yaml").exists());
    }
    fs::write(folder.join("pipelines/old/mine.yaml"), other.replace("s-to-k", "mine")).unwrap();
    assert_eq!(run(folder, &["import", "a.sql"]).0, 0);
    assert_eq!(run(folder, &["import", "a.sql", "--force"]).0, 0, "its own files are no others");
}

#[test]
fn a_script_in_another_encoding_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let wide = |little: bool, mark: &[u8]| {
        let units = "SET 'a' = 'b';".encode_utf16();
        let bytes = units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
        [mark, &bytes.collect::<Vec<u8>>()].concat()
    };
    for (bytes, expected) in [
        (b"SET 'a'\n= '\xe9';".to_vec(), "a byte that is not UTF-8 in line 2, column 4\n"),
        (
            wide(true, b"\xff\xfe"),
            "a byte that is not UTF-8 in line 1, column 1; it looks like UTF-16: save it as UTF-8\n",
        ),
        (wide(true, b""), "a zero byte in line 1, column 2; it looks like UTF-16: save it as UTF-8\n"),
        (wide(false, b""), "a zero byte in line 1, column 1; it looks like UTF-16: save it as UTF-8\n"),
        (b"SET \0 x".to_vec(), "a zero byte in line 1, column 5\n"),
    ] {
        fs::write(folder.join("b.sql"), bytes).unwrap();
        let (exit, out, error) = run(folder, &["import", "b.sql"]);
        assert_eq!(
            (exit, out.as_str(), error.as_str()),
            (78, "", format!("error: b.sql: the script has {expected}").as_str())
        );
    }
}

#[test]
fn nothing_is_written_where_anything_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.sql"), format!("{SCRIPT}CREATE VIEW v AS SELECT 1;")).unwrap();
    let (exit, out, error) = run(folder.path(), &["import", "a.sql", "--report", "line"]);
    assert_eq!((exit, out.as_str()), (78, ""));
    assert!(error.ends_with("a.sql:16:1: error: CREATE VIEW cannot be imported; expected CREATE TABLE\nnothing is written: 1 thing cannot be imported\n"), "{error}");
    assert!(!folder.path().join("pipelines").exists());
    assert_eq!(run(folder.path(), &["import", "b.sql"]).0, 66);
}

#[test]
fn a_pipeline_is_exported_by_its_name_and_no_variable_needs_to_be_set() {
    let (exit, out, error) = run(root(), &["export", "payments", "--pipelines", "pipelines"]);
    assert_eq!(exit, 0, "{error}");
    let expected = "-- The pipeline payments of Queuewarden, for Flink.
-- ${...} stands for a value that is not shown: put it in, or have it put in.
--
-- Flink has nothing for these, and they are left out:
--   source.rate: 500/s
--   on_error: dead_letter, to filesystem; in Flink the job fails
SET 'pipeline.name' = 'payments';
SET 'execution.checkpointing.interval' = '5s';
";
    assert!(out.starts_with(expected), "{out}");
    let (exit, _, error) = run(root(), &["export", "payment", "--pipelines", "pipelines"]);
    assert_eq!(exit, 66);
    assert!(error.contains("there is no pipeline `payment` in pipelines; did you mean `payments`?"), "{error}");
}

/// What export, and test, say of a definition.
fn exported(definition: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("p.yaml"), definition).unwrap();
    run(folder.path(), &["export", "p", "--pipelines", "."])
}

#[test]
fn an_option_whose_variable_is_not_set_is_exported_as_it_stands() {
    let definition = "source:
  connector: datagen
  rows-per-second: ${RATE}
  fields.id.min: ${LEAST}
  rate: ${MOST}
  schema: { id: INT }
query: SELECT id, '${TEXT}', '$${NONE}' FROM source
on_error: ${WHAT}
dead_letter: { connector: filesystem, path: /tmp/dead, format: json }
sink:
  connector: print
  standard-error: ${ERROR}
  schema: { id: INT, t: STRING, '${x}': STRING }
checkpoint: { interval: '${EVERY}' }
restart: { max: '${MAX}', within: '${WITHIN}', backoff: '${BACKOFF}' }
";
    let (exit, out, error) = exported(definition);
    assert_eq!((exit, error.as_str()), (0, ""), "{out}");
    let expected = "-- The pipeline p of Queuewarden, for Flink.
-- ${...} stands for a value that is not shown: put it in, or have it put in.
-- Only in a name, between backticks, it is just that.
--
-- Flink has nothing for these, and they are left out:
--   restart.backoff: ${BACKOFF}; the wait of failure-rate does not grow
--   source.rate: ${MOST}
--   on_error: ${WHAT}; in Flink the job fails
SET 'pipeline.name' = 'p';
SET 'execution.checkpointing.interval' = '${EVERY}';
SET 'restart-strategy.type' = 'failure-rate';
SET 'restart-strategy.failure-rate.max-failures-per-interval' = '${MAX}';
SET 'restart-strategy.failure-rate.failure-rate-interval' = '${WITHIN}';
";
    assert!(out.starts_with(expected), "{out}");
    for line in [
        "  'rows-per-second' = '${RATE}',\n",
        "  'fields.id.min' = '${LEAST}'\n",
        "  'standard-error' = '${ERROR}'\n",
        "SELECT id, '${TEXT}', U&'\\0024{NONE}' FROM `p_source`;\n",
    ] {
        assert!(out.contains(line), "{line}{out}");
    }
}

#[test]
fn what_must_be_known_for_an_export_is_named() {
    let definition = "source:
  connector: datagen
  schema: { id: INT }
query: SELECT id FROM source WHERE id > 1
sink: { connector: print }
";
    for (from, to, place) in [
        ("{ id: INT }", "{ id: '${TY}' }", "3:18"),
        ("id > 1", "id > ${LEAST}", "4:41"),
        ("datagen", "${CONNECTOR}", "2:14"),
    ] {
        let definition = definition.replace(from, to);
        let (exit, out, error) = exported(&definition);
        assert_eq!((exit, out.as_str()), (78, ""), "{error}");
        let name = to.split(['{', '}']).find(|name| name.chars().all(|c| c.is_ascii_uppercase()) && !name.is_empty());
        assert!(error.contains(&format!("error: `{}` is not set", name.unwrap())), "{error}");
        assert!(error.contains(&format!("p.yaml:{place}")), "{error}");
        assert!(error.contains("set it: nothing can stand for it here") && !error.contains("placeholder"), "{error}");
        assert!(!error.contains("expected"), "{error}");
    }
}

#[test]
fn a_test_names_the_variable_that_nothing_can_stand_for() {
    let folder = tempfile::tempdir().unwrap();
    let definition = "source:
  connector: datagen
  rows-per-second: ${RATE}
  schema: { id: INT }
sink: { connector: print }
";
    fs::write(folder.path().join("p.yaml"), definition).unwrap();
    fs::write(folder.path().join("p.test.yaml"), "cases: []\n").unwrap();
    let (exit, _, error) = run(folder.path(), &["test", "p.yaml"]);
    assert_ne!(exit, 0);
    assert!(error.contains("error: `RATE` is not set") && error.contains("p.yaml:3:20"), "{error}");
    assert!(error.contains("expected an integer"), "{error}");
    assert!(!error.contains("placeholder"), "{error}");
}

#[test]
fn a_secret_that_is_written_down_is_not_exported() {
    let folder = tempfile::tempdir().unwrap();
    let definition = "source:
  connector: mns
  endpoint: http://127.0.0.1:1
  region: r
  queueName: q
  accessKeyId: id
  accessKeySecret: ${SECRET:-T0PS3CRET}
  securityToken: T0PS3CRET
  format: json
  schema: { a: INT }
sink:
  connector: cmq
  hosts: http://127.0.0.1:1
  queue: q
  secret-id: AKIDx
  secret-key: T0PS3CRET
  format: json
";
    fs::write(folder.path().join("p.yaml"), definition).unwrap();
    let (exit, out, error) = run(folder.path(), &["export", "p", "--pipelines", "."]);
    assert_eq!(exit, 0, "{error}");
    assert!(!out.contains("T0PS3CRET"), "{out}");
    assert!(out.contains("'accessKeySecret' = '${SECRET}'") && out.contains("'secret-key' = '<secret-key>'"), "{out}");
    assert!(out.contains("--   source.securityToken\n"), "{out}");
}

#[test]
fn what_does_not_arrive_on_stdout_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.sql"), SCRIPT).unwrap();
    assert_eq!(run(folder, &["import", "a.sql"]).0, 0);
    for arguments in
        [&["import", "a.sql", "--print"][..], &["export", "s-to-p", "--pipelines", "pipelines"], &["describe"]]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let run = binary().current_dir(folder).args(arguments).stdout(full).output().expect("it runs");
        let error = String::from_utf8(run.stderr).expect("UTF-8");
        assert_eq!(run.status.code(), Some(71), "{arguments:?}: {error}");
        assert!(error.contains("stdout cannot be written to"), "{arguments:?}: {error}");
    }
}

#[test]
fn where_not_all_is_shown_the_errors_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sets: String = (0..300).map(|number| format!("SET 'a.b{number}' = 'c';\n")).collect();
    fs::write(folder.join("a.sql"), format!("{sets}{}", SCRIPT.replace("SELECT id, tags", "SELECT idd, tags")))
        .unwrap();
    let (exit, _, error) = run(folder, &["import", "a.sql"]);
    assert_eq!(exit, 78);
    assert!(error.contains("there is no column `idd`") && error.contains("... and 102 more in a.sql"), "{error}");
}
