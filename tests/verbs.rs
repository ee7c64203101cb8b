//! What `describe`, `init` and `test` say and how they end. None of them needs a supervisor, or talks to a service.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Output,
};

use common::{Place, binary};
use serde_json::Value;
use tempfile::TempDir;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines")
}

/// Runs a verb to its end, without any variable that a definition may ask for.
fn run(arguments: &[&str]) -> Output {
    let mut command = binary();
    command.env_remove("MNS_ACCESS_KEY_ID").env_remove("MNS_ACCESS_KEY_SECRET").args(arguments).output().unwrap()
}

/// Code, standard output, standard error.
fn ask(arguments: &[&str]) -> (i32, String, String) {
    let output = run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_example_has_a_test_and_passes_it_without_a_secret() {
    for entry in fs::read_dir(examples()).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".test.yaml") {
            let test = file.with_extension("test.yaml");
            assert!(test.is_file(), "{name} has no test");
        }
    }
    let (code, out, err) = ask(&["test", examples().to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}

/// A folder with one definition and its test.
struct Tested(TempDir);

const DEFINITION: &str = "\
source:
  connector: mns
  endpoint: ENDPOINT
  region: r
  queueName: q
  accessKeyId: ${ID}
  accessKeySecret: ${secret_values.key}
  format: json
  schema:
    id: BIGINT
    name: STRING
    parts: ARRAY<ROW<n INT>>
    count: INT METADATA FROM 'dequeue-count'
sink:
  connector: filesystem
  path: /nowhere/that/exists
  format: json
  schema: {number: BIGINT NOT NULL, name: STRING, parts: ARRAY<ROW<n INT>>, count: BIGINT}
";

impl Tested {
    fn new(definition: &str, test: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.yaml"), definition).unwrap();
        fs::write(dir.path().join("a.test.yaml"), test).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn run(&self) -> (i32, String, String) {
        ask(&["test", &self.path("a.test.yaml")])
    }
}

/// Without a source that could be asked.
fn definition(on_error: &str) -> String {
    format!("{}on_error: {on_error}\n", DEFINITION.replace("ENDPOINT", "http://127.0.0.1:1"))
}

#[test]
fn bodies_go_through_decoder_metadata_and_the_columns_of_the_sink() {
    let test = "\
cases:
  - name: three ways to write a body
    messages:
      - text: '{\"id\": 1, \"name\": \"a\", \"parts\": [{\"n\": 1}, null]}'
        metadata: {dequeue-count: 7}
      - base64: eyJpZCI6IDJ9
      - file: bodies/three.json
    rows:
      - {number: 1, name: a, parts: [{n: 1}, ~], count: 7}
      - {number: 2, count: 1}
      - {number: 3, name: '3', count: 1}
";
    let tested = Tested::new(&definition("fail"), test);
    fs::create_dir(tested.0.path().join("bodies")).unwrap();
    fs::write(tested.0.path().join("bodies/three.json"), r#"{"id": 3, "name": "3"}"#).unwrap();
    let (code, out, err) = tested.run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("a.test.yaml: three ways to write a body\n1 passed, 0 failed\n"), "{out}");
    // By the definition, and by the folder.
    for path in [tested.path("a.yaml"), tested.path("")] {
        assert_eq!(ask(&["test", &path]).0, 0, "{path}");
    }
}

#[test]
fn a_body_as_it_is_received_is_decoded_as_the_source_says() {
    let base64 = definition("skip")
        .replace("  format: json\n  schema:\n    id", "  bodyEncoding: base64\n  format: json\n  schema:\n    id");
    let test = "\
cases:
  - messages: [{received: eyJpZCI6IDJ9}, {received: '{\"id\": 3}'}, {text: '{\"id\": 4}'}]
    rows: [{number: 2, count: 1}, {number: 4, count: 1}]
    rejects: [{message: 2, reason: the body is not base64}]
";
    let (code, out, err) = Tested::new(&base64, test).run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}

#[cfg(feature = "sql")]
#[test]
fn a_decimal_that_is_too_large_is_null_in_a_sink_that_takes_what_the_query_makes() {
    let definition = "name: p
source: {connector: mns, endpoint: 'http://h', region: r, queueName: q, accessKeyId: i, accessKeySecret: k, format: json,
  schema: {id: BIGINT NOT NULL}}
query: SELECT id, CAST(id AS DECIMAL(3, 0)) AS x FROM source
sink: SINK
";
    let test = "
cases:
  - messages: [{text: '{\"id\": 999}'}, {text: '{\"id\": 1000}'}]
    rows: [{id: 999, x: 999}, {id: 1000}]
";
    let (code, out, err) = Tested::new(&definition.replace("SINK", "{connector: print}"), test).run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let sink = "{connector: print, schema: {id: BIGINT, x: 'DECIMAL(3, 0) NOT NULL'}}";
    let refused = test.replace(", {id: 1000}]", "]\n    error: 'column x: null where the sink'");
    let (code, out, err) = Tested::new(&definition.replace("SINK", sink), &refused).run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}

#[test]
fn refused_rows_are_rejects_whatever_on_error_says_and_an_error_under_fail() {
    let messages = "
  - messages: [{text: '{\"id\": 1}'}, {text: nonsense}, {text: '{\"name\": \"no id\"}'}]
    rows: [{number: 1, count: 1}]\n";
    let rejects = "    rejects:
      - {message: 2, reason: expected a JSON object}
      - {message: 3, reason: 'column number: null where the sink'}\n";
    let (code, out, err) = Tested::new(&definition("skip"), &format!("cases:{messages}{rejects}")).run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let letters = "dead_letter\ndead_letter: {connector: print}";
    let (code, out, err) = Tested::new(&definition(letters), &format!("cases:{messages}{rejects}")).run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let error = "    error: message 2 cannot be processed\n";
    let (code, out, _) = Tested::new(&definition("skip"), &format!("cases:{messages}{rejects}{error}")).run();
    assert_eq!(code, 2, "{out}");
    assert!(out.contains("\n      - error: message 2 cannot be processed\n"), "{out}");
    let (code, out, err) = Tested::new(&definition("fail"), &format!("cases:{messages}{rejects}{error}")).run();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let (code, out, _) = Tested::new(&definition("skip"), &format!("cases:{messages}")).run();
    assert_eq!(code, 2);
    assert!(out.contains("\n      + reject of message 3: column number: null where the sink's schema"), "{out}");
}

#[test]
fn a_difference_is_shown_by_column_and_has_a_code_of_its_own() {
    let test = "\
cases:
  - name: wrong
    messages: [{text: '{\"id\": 1, \"name\": \"a\"}'}]
    rows: [{number: 1, name: b, count: 1}]
  - name: right
    messages: [{text: '{\"id\": 1.0}'}]
    rows: [{number: 1, count: 1}]
";
    let (code, out, _) = Tested::new(&definition("fail"), test).run();
    assert_eq!(code, 2, "{out}");
    let shown = "a.test.yaml:2:5: wrong
        - expected, + came out
        row 1
          number: 1
      -   name: \"b\"
      +   name: \"a\"
          parts: null
          count: 1
ok ";
    assert!(out.contains(shown), "{out}");
    assert!(out.ends_with("1 passed, 1 failed\n"), "{out}");
}

#[test]
fn mistakes_in_a_test_are_told_as_those_in_a_definition() {
    let test = "\
cases:
  - messages: [{text: '{}', metadata: {dequeue-cont: 1, priority: x}}]
    rows: [{nmber: 1, number: one, parts: [{m: 1}]}]
  - generate: 1
  - messages: [{base64: '%'}, {file: none.json}]
";
    let (code, out, err) = Tested::new(&definition("fail"), test).run();
    assert_eq!((code, out.as_str()), (78, "0 passed, 0 failed, 1 files not valid\n"), "{err}");
    for (place, words) in [
        ("2:40", &["`mns` has no metadata `dequeue-cont`", "did you mean `dequeue-count`"][..]),
        ("2:67", &["this is no value of the metadata `priority`", "expected INT"]),
        ("3:13", &["the sink has no column `nmber`", "did you mean `number`"]),
        ("3:31", &["this is no value of `number`", "expected BIGINT NOT NULL"]),
        ("3:45", &["ROW<`n` INT> has no field `m`"]),
        ("4:15", &["`mns` makes no rows up"]),
        ("5:25", &["this is not base64"]),
        ("5:38", &["none.json cannot be read"]),
    ] {
        let told = err.split("\n\n").find(|told| told.contains(&format!("a.test.yaml:{place}\n")));
        let told = told.unwrap_or_else(|| panic!("nothing at {place}: {err}"));
        words.iter().for_each(|word| assert!(told.contains(word), "{word}: {told}"));
    }
}

#[test]
fn what_is_not_valid_or_not_there_has_the_codes_of_check() {
    let good = "cases:\n  - messages: []\n";
    let broken = Tested::new(&definition("fail").replace("region", "regin"), good);
    let (code, _, err) = broken.run();
    assert!(code == 78 && err.contains("did you mean `region`"), "{code} {err}");
    let (code, _, err) = ask(&["test", &broken.path("b.test.yaml")]);
    assert!(code == 66 && err.contains("b.test.yaml: error: No such file"), "{code} {err}");
    let orphan = Tested::new("", good);
    fs::remove_file(orphan.path("a.yaml")).unwrap();
    let (code, _, err) = orphan.run();
    assert!(code == 66 && err.contains("there is no definition beside it"), "{code} {err}");
    let empty = tempfile::tempdir().unwrap();
    let (code, _, err) = ask(&["test", empty.path().to_str().unwrap()]);
    assert!(code == 66 && err.contains("there is no .test.yaml"), "{code} {err}");
}

#[test]
fn a_test_opens_no_source_and_no_sink() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let place = Place::new();
    let out = place.path("out");
    let definition = DEFINITION
        .replace("ENDPOINT", &format!("http://{}", listener.local_addr().unwrap()))
        .replace("/nowhere/that/exists", out.to_str().unwrap());
    let test = "cases:\n  - messages: [{text: '{\"id\": 1}'}]\n    rows: [{number: 1, count: 1}]\n";
    let (code, said, err) = Tested::new(&definition, test).run();
    assert_eq!(code, 0, "{said}{err}");
    assert!(listener.accept().is_err(), "somebody connected");
    assert!(!out.exists(), "the sink's folder was made");
}

#[test]
fn rows_that_are_made_up_are_tested_by_their_number() {
    let source = "source:\n  connector: datagen\n  number-of-rows: 3\n  fields.n.kind: sequence\n  fields.n.start: 5\n  \
                  fields.n.end: 9\n  schema: {n: INT}\nsink: {connector: print}\n";
    let run = |count| {
        Tested::new(source, &format!("cases:\n  - generate: {count}\n    rows: [{{n: 5}}, {{n: 6}}, {{n: 7}}]\n")).run()
    };
    assert_eq!(run(3).0, 0);
    assert_eq!(run(2).0, 2);
    let (code, _, err) = run(4);
    assert!(code == 78 && err.contains("the source is at its end after 3 rows"), "{code} {err}");
}

#[test]
fn a_null_for_a_not_null_column_of_the_sink_is_skipped_and_its_neighbours_are_written() {
    let mut place = Place::new();
    let out = place.path("out");
    let definition = |on_error: &str| {
        format!(
            "source:\n  connector: datagen\n  number-of-rows: 400\n  fields.n.null-rate: 0.5\n  fields.n.min: 1\n  \
             fields.n.max: 9\n  schema: {{n: INT, text: CHAR(3)}}\nsink:\n  connector: filesystem\n  path: {}\n  \
             format: json\n  schema: {{n: BIGINT NOT NULL, text: STRING}}\non_error: {on_error}\n",
            out.display()
        )
    };
    place.define("nulls", &definition("skip"));
    let ended = place.run_command().arg("--exit-when-finished").status().unwrap();
    assert_eq!(ended.code(), Some(0), "{}", fs::read_to_string(place.path("log-1")).unwrap());
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let text: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().all(|row| row["n"].is_i64()), "{text}");
    assert!((100..300).contains(&rows.len()), "about half of 400: {}", rows.len());

    place.define("nulls", &definition("fail"));
    fs::remove_dir_all(place.path("state")).unwrap();
    let mut supervisor = place.run();
    let failed = supervisor.wait_for_state("nulls", "failed").to_string();
    assert!(failed.contains("column n: null where the sink's schema"), "{failed}");
    assert_eq!(supervisor.stop(), 0);
}

#[test]
fn describe_shows_one_thing_or_all_in_three_forms() {
    let (code, text, _) = ask(&["describe", "mns"]);
    assert_eq!(code, 0);
    for part in [
        "mns (source)",
        "endpoint  required",
        "batchSize  = 1",
        "an integer from 1 to 16",
        "message-id  STRING NOT NULL",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, json, _) = ask(&["describe", "mns", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let option = |name: &str| {
        let all = json["source"]["options"].as_array().unwrap();
        all.iter().find(|option| option["name"] == name).unwrap().clone()
    };
    assert_eq!(option("accessKeySecret")["secret"], true);
    let batch = option("batchSize");
    assert_eq!((&batch["min"], &batch["max"], &batch["flink"]), (&1.into(), &16.into(), &true.into()));
    assert_eq!(option("bodyEncoding")["flink"], false);
    let (_, markdown, _) = ask(&["describe", "restart", "--format", "markdown"]);
    assert!(markdown.contains("| `backoff` | `1s..60s` |"), "{markdown}");
    let (_, all, _) = ask(&["describe"]);
    for name in ["mns (source)", "filesystem (sink)", "json (format)", "checkpoint (section)"] {
        assert!(all.contains(name), "{name}");
    }
    let (code, _, err) = ask(&["describe", "filesytem"]);
    assert!(code == 66 && err.contains("did you mean `filesystem`?"), "{err}");
    let (code, _, err) = ask(&["describe", "kinesis"]);
    assert!(code == 66 && err.contains("connectors: `mns`"), "{err}");
}

#[test]
fn init_writes_what_check_accepts_and_replaces_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("orders.yaml");
    let init = ["init", "mns", "--to", "filesystem", "-o", file.to_str().unwrap()];
    assert_eq!(ask(&init).0, 0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("  accessKeySecret: ${MNS_ACCESS_KEY_SECRET}\n") && text.contains("  # batchSize: 1\n"),
        "{text}"
    );
    // With the variables set, as `binary` does.
    let checked = binary().arg("check").arg(&file).output().unwrap();
    assert_eq!((checked.status.code(), checked.stderr.as_slice()), (Some(0), &b""[..]));
    let (code, _, err) = ask(&init);
    assert!(code == 73 && err.contains("is there already"), "{code} {err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let (code, out, _) = ask(&["init", "print"]);
    assert!(code == 0 && out.contains("connector: datagen"), "{out}");
    let (code, _, err) = ask(&["init", "mnss"]);
    assert!(code == 66 && err.contains("did you mean `mns`?"), "{err}");
}

/// What stands in the README between two texts, the first of them included.
fn in_readme<'a>(readme: &'a str, from: &str, to: &str) -> &'a str {
    let start = readme.find(from).unwrap_or_else(|| panic!("README.md has no {from:?}"));
    readme[start..].split(to).next().unwrap()
}

#[test]
fn the_test_that_the_readme_shows_passes_and_fails_as_it_says() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let definition = in_readme(&readme, "name: orders\nsource:", "```");
    let test = in_readme(&readme, "cases:\n  - name: an order", "```");
    let tested = Tested::new(definition, test);
    assert_eq!(tested.run().0, 0, "{}", tested.run().1);
    let (code, out, _) = Tested::new(definition, &test.replace("customer: Ada,", "customer: Eve,")).run();
    let shown = in_readme(&readme, ".test.yaml:2:5: an order becomes a row", "```");
    assert_eq!(code, 2);
    assert!(out.contains(shown), "{out}\nis not\n{shown}");
}

/// Every type a column can have: how it is declared, a value of it in JSON, and as a test expects it.
const TYPES: [(&str, &str, &str); 24] = [
    ("BOOLEAN", "true", "true"),
    ("TINYINT", "-128", "-128"),
    ("SMALLINT", "32767", "32767"),
    ("INT", "-7", "-7"),
    ("BIGINT", "9223372036854775807", "9223372036854775807"),
    ("FLOAT", "1.5", "1.5"),
    ("DOUBLE", "-2.25e10", "-22500000000"),
    ("DECIMAL(10, 2)", "\"12.5\"", "12.50"),
    ("DECIMAL(38, 0)", "12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
    ("CHAR(2)", "\"ab\"", "ab"),
    ("VARCHAR(3)", "\"abc\"", "abc"),
    ("STRING", "\"null\"", "'null'"),
    ("BINARY(2)", "\"AAE=\"", "AAE="),
    ("VARBINARY(3)", "\"AAEC\"", "AAEC"),
    ("BYTES", "\"\"", "''"),
    ("DATE", "\"2026-01-15\"", "2026-01-15"),
    ("TIME(0)", "\"08:30:00\"", "08:30:00"),
    ("TIMESTAMP(3)", "\"2026-01-15 08:30:00.25\"", "2026-01-15 08:30:00.250"),
    ("TIMESTAMP(9)", "\"2026-01-15 08:30:00.123456789\"", "2026-01-15 08:30:00.123456789"),
    ("TIMESTAMP_LTZ(3)", "\"2026-01-15 08:30:00Z\"", "2026-01-15 08:30:00Z"),
    ("ARRAY<INT NOT NULL>", "[1, 2]", "[1, 2]"),
    ("MAP<STRING, BIGINT>", "{\"a\": 1, \"b\": null}", "{a: 1, b: ~}"),
    ("ROW<a INT, b ROW<c STRING NOT NULL>>", "{\"a\": 1, \"b\": {\"c\": \"x\"}}", "{a: 1, b: {c: x}}"),
    ("ARRAY<MAP<STRING, ARRAY<DECIMAL(4, 1)>>>", "[{\"k\": [1, 2.5]}]", "[{k: [1.0, 2.5]}]"),
];

/// `cN: TYPE` for all of them.
fn all_types(suffix: &str) -> String {
    TYPES.iter().enumerate().map(|(at, (ty, ..))| format!("    c{at}: {ty}{suffix}\n")).collect()
}

#[test]
fn a_value_of_every_type_goes_from_a_body_to_the_sink_also_where_null_is_not_allowed() {
    for suffix in ["", " NOT NULL"] {
        let schema = all_types(suffix);
        let definition =
            format!("{}{schema}sink: {{connector: print}}\n", definition("fail").split("    id:").next().unwrap());
        let fields: Vec<_> = TYPES.iter().enumerate().map(|(at, (_, json, _))| format!("\"c{at}\": {json}")).collect();
        let row: String =
            TYPES.iter().enumerate().map(|(at, (.., value))| format!("        c{at}: {value}\n")).collect();
        let none: String = format!(
            "  - messages: [{{text: '{{}}'}}]\n    {}\n",
            match suffix {
                "" => "rows: [{}]",
                _ => "error: 'c0'",
            }
        );
        let body = fields.join(", ");
        let test =
            format!("cases:\n  - messages:\n      - text: |\n          {{{body}}}\n    rows:\n      -\n{row}{none}");
        let (code, out, err) = Tested::new(&definition, &test).run();
        assert_eq!(code, 0, "{suffix}: {out}{err}");
    }
}

#[test]
fn a_row_with_every_type_is_made_up_printed_and_written_to_files() {
    let mut place = Place::new();
    let source = format!("source:\n  connector: datagen\n  number-of-rows: 3\n  schema:\n{}", all_types(""));
    place.define("printed", &format!("{source}sink: {{connector: print, print-identifier: types}}\n"));
    let out = place.path("out");
    place.define(
        "written",
        &format!("{source}sink: {{connector: filesystem, format: json, path: {}}}\n", out.display()),
    );
    let ended = place.run_command().arg("--exit-when-finished").status().unwrap();
    assert_eq!(ended.code(), Some(0), "{}", fs::read_to_string(place.path("log-1")).unwrap());
    let printed = fs::read_to_string(place.path("stdout")).unwrap();
    assert_eq!(printed.lines().filter(|line| line.starts_with("types> +I[")).count(), 3, "{printed}");
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let text: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.as_object().unwrap().len() == TYPES.len()), "{text}");
}
