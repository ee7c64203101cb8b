//! Definitions as people write them, right and wrong.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

#[path = "definitions/binary.rs"]
mod binary;
#[path = "definitions/cmq.rs"]
mod cmq;
#[path = "definitions/datagen.rs"]
mod datagen;
#[path = "definitions/dead_letters.rs"]
mod dead_letters;
#[path = "definitions/documented.rs"]
mod documented;
#[path = "definitions/formats.rs"]
mod formats;
#[path = "definitions/generated.rs"]
mod generated;
#[cfg(feature = "sql")]
#[path = "definitions/query.rs"]
mod query;
#[path = "definitions/rocketmq.rs"]
mod rocketmq;
#[path = "definitions/together.rs"]
mod together;

use std::path::Path;

use generated::ColumnSample;

use queuewarden::{
    connectors::REGISTRY,
    definition::{Environment, Loaded, OnError, Style, load_text},
    model::LogicalType,
};

fn environment() -> Environment {
    Environment::new(
        |name| match name {
            "MNS_ACCESS_KEY_ID" => Some("id".into()),
            "MNS_ACCESS_KEY_SECRET" => Some("T0PS3CRET".into()),
            "CMQ_SECRET_ID" => Some("AKIDid".into()),
            "CMQ_SECRET_KEY" => Some("T0PS3CRET".into()),
            "ROCKETMQ_ACCESS_KEY" => Some("id".into()),
            "ROCKETMQ_SECRET_KEY" => Some("T0PS3CRET".into()),
            _ => None,
        },
        None,
    )
}

fn load(text: &str) -> Loaded {
    load_text(Path::new("dir/oss.yaml"), text, &REGISTRY, &environment())
}

fn told(text: &str) -> Vec<String> {
    let loaded = load(text);
    assert_eq!(loaded.definition.is_none(), loaded.report.has_errors());
    let lines = loaded.report.render(Style::Line);
    lines.lines().map(|line| line.strip_prefix("dir/oss.yaml:").unwrap_or(line).to_owned()).collect()
}

/// What is told of [`EXAMPLE`] with a piece of it replaced.
fn told_with(old: &str, new: &str) -> Vec<String> {
    assert_eq!(EXAMPLE.matches(old).count(), 1, "{old}");
    told(&EXAMPLE.replace(old, new))
}

const EXAMPLE: &str = "\
name: oss-created                 # default: the file's name
source:
  connector: mns                  # options keep the Flink connector's names
  endpoint: http://127.0.0.1:9871
  region: cn-hangzhou
  queueName: oss-events
  accessKeyId: ${MNS_ACCESS_KEY_ID}
  accessKeySecret: ${MNS_ACCESS_KEY_SECRET}
  format: json
  messageType: OSS
  batchSize: 16
  pollingWaitTime: 10s
  schema:                         # column: type, as in CREATE TABLE
    eventName: STRING
    ossObjectKey: STRING
    ossObjectSize: BIGINT
    eventTime: TIMESTAMP(3)
    message-id: STRING METADATA
sink:
  connector: filesystem
  path: out
  format: json                    # with a schema: of its own, columns are matched by position, as INSERT INTO does
checkpoint: { interval: 10s, timeout: 60s, max_unacknowledged: 10000 }
restart: { max: 5, within: 60s, backoff: 1s..60s }
on_error: fail
";

#[test]
fn the_example_is_accepted_and_read_as_it_is_meant() {
    let loaded = load(EXAMPLE);
    let definition = loaded.definition.unwrap_or_else(|| panic!("{}", loaded.report.render(Style::Plain)));
    assert_eq!(definition.name.as_str(), "oss-created");
    assert_eq!(definition.source.connector, "mns");
    assert_eq!(definition.on_error, OnError::Fail);
    assert_eq!(definition.checkpoint.max_unacknowledged, 10_000);
    assert_eq!(definition.restart.backoff_max.as_secs(), 60);
    let columns = &definition.source.schema.columns;
    assert_eq!(columns.len(), 5);
    assert_eq!(columns[3].ty.logical, LogicalType::Timestamp(3));
    assert_eq!(columns[4].metadata.as_deref(), Some("message-id"));
    assert_eq!(definition.sink.schema.columns.len(), 5);
    assert!(definition.sink.schema.columns.iter().all(|column| column.metadata.is_none()));
    assert!(!format!("{definition:?}").contains("T0PS3CRET"));
}

#[test]
fn a_shown_definition_means_the_same_and_hides_its_secret() {
    let first = load(EXAMPLE).definition.unwrap();
    let shown = first.to_yaml();
    assert!(!shown.contains("T0PS3CRET"), "{shown}");
    assert!(shown.contains("accessKeySecret: '***'"), "{shown}");
    assert!(shown.contains("deleteMaxRetries: '3'"), "{shown}");
    let second = load(&shown).definition.unwrap();
    assert_eq!(second.to_yaml(), shown);
}

#[test]
fn five_mistakes_are_all_told_each_at_its_place() {
    let text = EXAMPLE
        .replace("  region: cn-hangzhou\n", "")
        .replace("queueName", "queuename")
        .replace("batchSize: 16", "batchSize: 17")
        .replace("BIGINT", "BIGNIT")
        .replace("interval: 10s", "interval: 1ms")
        .replace("on_error: fail", "on_error: fial");
    assert_eq!(
        told(&text),
        [
            "2:1: error: the required option `region` is missing from `source`; expected `region: ...`, a text that is \
             not empty",
            "5:3: error: `source` has no option `queuename`, and the required option `queueName` is missing; did you mean \
             `queueName`?",
            "10:14: error: `batchSize` is `17`; expected an integer from 1 to 16",
            "15:20: error: found `BIGNIT` in the type of column `ossObjectSize`; expected a type such as STRING, BIGINT \
             or TIMESTAMP(3); did you mean `BIGINT`?",
            "22:25: error: `interval` is `1ms`; expected a duration of at least 10ms, such as `10s`",
            "24:11: error: `on_error` is `fial`; expected `fail`, `skip` or `dead_letter` (in this case); did you mean `fail`?",
        ]
    );
}

#[test]
fn a_mistake_is_shown_as_a_compiler_would() {
    let report = load(&EXAMPLE.replace("batchSize: 16", "batchSize: 17 # was T0PS3CRET")).report;
    assert_eq!(
        report.render(Style::Plain),
        "\
error: `batchSize` is `17`
  --> dir/oss.yaml:11:14
   |
11 |   batchSize: 17 ***
   |              ^^ expected an integer from 1 to 16

"
    );
}

#[test]
fn a_secret_is_masked_wherever_it_stands() {
    for (old, new) in [
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecrt: T0PS3CRET"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: [T0PS3CRET, x]"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: T0PS3CRET: x"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: \"T0PS3CRET"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: &a T0PS3CRET"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: T0PS3CRET-${NOPE}"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: ${NOPE:-T0PS3CRET ${}"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: {T0PS3CRET"),
        ("accessKeySecret: ${MNS_ACCESS_KEY_SECRET}", "accessKeySecret: |\n    T0PS3CRET\n   T0PS3CRET"),
        ("endpoint: http://127.0.0.1:9871", "endpoint: http://user:T0PS3CRET@127.0.0.1"),
        ("endpoint: http://127.0.0.1:9871", "accessKeySecret: T0PS3CRET"),
        ("name: oss-created ", "accessKeySecret: T0PS3CRET # "),
        ("  region: cn-hangzhou", "  T0PS3CRET"),
    ] {
        let report = load(&EXAMPLE.replace(old, new)).report;
        assert!(report.has_errors(), "{new}");
        for style in [Style::Plain, Style::Terminal, Style::Line] {
            assert!(!report.render(style).contains("T0PS3CRET"), "{new}\n{}", report.render(style));
        }
    }
}

#[test]
fn what_belongs_elsewhere_is_told_so() {
    for (old, new, expected) in [
        (
            "on_error: fail",
            "batchSize: 1",
            "25:1: error: `the definition` has no option `batchSize`; `batchSize` stands inside `source:`",
        ),
        (
            "on_error: fail",
            "interval: 1s",
            "25:1: error: `the definition` has no option `interval`; `interval` stands inside `checkpoint:`",
        ),
        (
            "  path: out",
            "  path: out\n  on_error: fail",
            "22:3: error: `sink` has no option `on_error`; `on_error` stands at the top of the file, beside `sink`",
        ),
        (
            "  path: out",
            "  path: out\n  json: {ignore-parse-errors: true}",
            "22:3: error: `sink` has no option `json`; options with a dot are written out: `json.ignore-parse-errors: ...`",
        ),
        (
            "connector: filesystem",
            "connector: mns",
            "20:14: error: `mns` can only be a source, not a sink; expected the name of a sink: `rocketmq4`, `rocketmq5`, `mq`, `cmq`, `filesystem`, `print`, `blackhole`",
        ),
        (
            "connector: filesystem",
            "connector: filesytem",
            "20:14: error: there is no connector `filesytem`; expected the name of a sink: `rocketmq4`, `rocketmq5`, `mq`, `cmq`, `filesystem`, `print`, `blackhole`; did you mean `filesystem`?",
        ),
    ] {
        assert_eq!(told_with(old, new), [expected]);
    }
    let report = told_with("connector: filesystem", "connector: blackhole");
    assert_eq!(report.len(), 2, "{report:?}");
    assert!(report[1].starts_with("22:3: error: `blackhole` has no format"), "{report:?}");
    let sink = "  connector: filesystem\n  path: out\n  format: json ";
    assert_eq!(
        told_with(sink, "  connector: print\n  json.encode.ignore-null-fields: true\n#"),
        [
            "21:3: error: `sink` has no option `json.encode.ignore-null-fields`; `json.encode.ignore-null-fields` goes with \
          `format: json`"
        ]
    );
}

#[test]
fn a_path_that_no_folder_of_this_machine_has_is_refused() {
    for (path, why) in [
        ("oss://bucket/out", "a URL, but only folders of this machine are written to"),
        ("file:///out", "a URL, but only folders of this machine are written to"),
        ("~/out", "meant for a shell, but no shell reads it"),
    ] {
        assert_eq!(
            told_with("path: out", &format!("path: {path}")),
            [format!("21:9: error: `path` is {why}; expected the path of a folder, such as `/var/lib/rows`")]
        );
    }
    assert_eq!(told_with("path: out", "path: a:b/~c"), Vec::<String>::new());
}

#[test]
fn what_there_is_not_yet_is_refused_with_what_there_is() {
    assert_eq!(
        told_with("connector: mns", "connector: kafka"),
        [
            "3:14: error: there is no connector `kafka`; expected the name of a source: `mns`, `rocketmq4`, `rocketmq5`, `cmq`, \
             `datagen`"
        ]
    );
    assert_eq!(
        told_with("connector: mns", "connector: nms"),
        [
            "3:14: error: there is no connector `nms`; expected the name of a source: `mns`, `rocketmq4`, `rocketmq5`, `cmq`, \
             `datagen`; did you mean `mns`?"
        ]
    );
    let read = "`json`, `csv`, `raw`, `avro`, `parquet`, `orc`";
    let xml = "error: there is no format `xml`; expected the name of a format:";
    assert_eq!(told_with("format: json\n  messageType", "format: xml\n  messageType"), [format!("9:11: {xml} {read}")]);
    let written = "`json`, `csv`, `raw`, `avro`, `parquet`";
    assert_eq!(told_with("out\n  format: json", "out\n  format: xml"), [format!("22:11: {xml} {written}")]);
}

#[test]
fn an_unknown_connector_does_not_hide_an_unknown_format() {
    let found = told(&EXAMPLE.replace("filesystem", "zzzzzz").replace("out\n  format: json", "out\n  format: jsno"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].starts_with("22:11: error: there is no format `jsno`"), "{found:?}");
}

#[test]
fn a_value_that_cannot_be_read_is_told_once() {
    for (old, new) in [
        ("endpoint: http://127.0.0.1:9871", "endpoint: *nope"),
        ("queueName: oss-events", "queueName: ${NOPE}"),
        ("format: json\n  messageType", "format: *nope\n  messageType"),
        ("ossObjectSize: BIGINT", "ossObjectSize: ${NOPE}"),
        ("  path: out", "  path: ${NOPE}\n  schema: {a: STRING, b: STRING, c: BIGINT, d: TIMESTAMP(3), e: STRING}"),
        ("  path: out", "  path: out\n  schema: {a: STRING, b: STRING, c: BIGINT, d: TIMESTAMP(3), e: '${NOPE}'}"),
    ] {
        let found = told_with(old, new);
        assert_eq!(found.len(), 1, "{new}: {found:?}");
    }
}

#[test]
fn what_a_file_holds_cannot_steer_the_terminal() {
    let report = load(&EXAMPLE.replace("on_error: fail", "\"\\e[31mred\": 1\non_error: \"\\a\"")).report;
    assert_eq!(report.errors(), 2);
    for style in [Style::Plain, Style::Line] {
        assert!(!report.render(style).contains(['\u{1b}', '\u{7}']), "{}", report.render(style));
    }
}

#[test]
fn a_column_on_a_line_with_masked_parts_is_the_files() {
    let line = "source: {connector: zzz, accessKeySecret: T0PS3CRET-T0PS3CRET, schema: {a: STRNG}}";
    let told = load(&format!("name: p\n{line}\n")).report.render(Style::Plain);
    let column = line.find("STRNG").unwrap() + 1;
    assert!(told.contains(&format!("oss.yaml:2:{column}\n")), "{told}");
}

#[test]
fn a_value_from_the_secrets_directory_is_masked_whatever_it_is_used_for() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s"), "T0PS3CRET\n").unwrap();
    let environment = Environment::new(|_| Some("x".into()), Some(dir.path().to_owned()));
    let load =
        |old: &str, new: &str| load_text(Path::new("p.yaml"), &EXAMPLE.replace(old, new), &REGISTRY, &environment);
    let definition = load("oss-events", "${secret_values.s}").definition.unwrap();
    assert!(!format!("{definition:?}{}", definition.to_yaml()).contains("T0PS3CRET"));
    for (old, new) in [
        ("batchSize: 16", "batchSize: ${secret_values.s}"),
        ("messageType: OSS", "messageType: ${secret_values.s}"),
        ("connector: mns", "connector: ${secret_values.s}"),
        ("connector: filesystem", "connector: ${secret_values.s}"),
        ("format: json\n  messageType", "format: ${secret_values.s}\n  messageType"),
        ("eventName: STRING", "eventName: ${secret_values.s}"),
        ("name: oss-created ", "name: ${secret_values.s} "),
        ("on_error: fail", "on_error: ${secret_values.s}"),
        ("on_error: fail", "checkpoints: ${secret_values.s}"),
    ] {
        let loaded = load(old, new);
        assert!(loaded.report.has_errors(), "{new}");
        let told = format!("{}{}{loaded:?}", loaded.report.render(Style::Plain), loaded.report.render(Style::Line));
        assert!(!told.contains("T0PS3CRET"), "{told}");
    }
}

#[test]
fn whole_sections_may_be_missing_or_of_the_wrong_kind() {
    assert_eq!(
        told("# nothing yet\nname: x\n"),
        [
            "2:1: error: the section `source` is missing; expected `source:` with a `connector:`",
            "2:1: error: the section `sink` is missing; expected `sink:` with a `connector:`",
        ]
    );
    let found = told("source: mns\nsinks: {}\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("1:9: error: `source` holds a single value; expected a mapping"), "{found:?}");
    assert!(found[1].ends_with("did you mean `sink`?"), "{found:?}");
}

#[test]
fn schemas_are_checked() {
    for (old, new, start) in [
        (
            "eventName: STRING",
            "eventName: STRING\n    eventName: INT",
            "15:5: error: the key `eventName` is given twice",
        ),
        ("eventName: STRING", "eventName:", "14:5: error: `eventName` holds nothing"),
        ("eventName: STRING", "eventName: 'ARRAY<STRIGN>'", "14:23: error: found `STRIGN` in the type"),
        (
            "TIMESTAMP(3)",
            "TIMESTAMP(10)",
            "17:26: error: found `10` in the type of column `eventTime`; expected a precision",
        ),
        ("message-id: STRING", "message-di: STRING", "18:5: error: `mns` as a source has no metadata `message-di`"),
        (
            "STRING METADATA",
            "STRING METADATA FROM 'message_id'",
            "18:38: error: `mns` as a source has no metadata `message_id`",
        ),
        (
            "STRING METADATA",
            "BIGINT METADATA",
            "18:17: error: `message-id` is BIGINT, the metadata `message-id` STRING",
        ),
    ] {
        let found = told_with(old, new);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(start), "{found:?}\n{start}");
    }
    assert!(told_with("message-id: STRING", "message-di: STRING")[0].ends_with("did you mean `message-id`?"));
    let start = EXAMPLE.find("    eventName").unwrap();
    let end = EXAMPLE.find("    message-id").unwrap();
    let found = told(&format!("{}{}", &EXAMPLE[..start], &EXAMPLE[end..]));
    assert!(found[0].starts_with("13:3: error: the schema has no column that is read"), "{found:?}");
    let found = told_with("    message-id: STRING METADATA\n", "    row: { a: ROW<x INT, y INT> }\n");
    assert!(found[0].starts_with("18:10: error: `row` holds a mapping"), "{found:?}");
}

#[test]
fn a_schema_of_the_sink_takes_columns_by_position() {
    let with = |schema: &str| told_with("  path: out", &format!("  path: out\n  schema: {schema}"));
    assert_eq!(with("{a: STRING, b: STRING, c: BIGINT, d: TIMESTAMP(6), e: STRING}"), [""; 0]);
    let found = with("{a: STRING, b: STRING}");
    assert_eq!(
        found,
        ["22:3: error: the sink has 2 columns, the source has 5; they are matched by position; expected 5 columns"]
    );
    let found = with("{a: STRING, b: STRING, c: INT, d: TIMESTAMP(3) NOT NULL, e: STRING METADATA}");
    // That `d` may not be null is seen when there is a row, as in Flink.
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("22:37: error: `c` is INT, column 3 of the source, `ossObjectSize`, is BIGINT"));
    assert!(found[1].starts_with("22:68: error: `filesystem` as a sink has no metadata `e`"), "{found:?}");
}

#[test]
fn options_that_do_not_go_together_are_told() {
    let found = told_with(
        "  messageType",
        "  json.fail-on-missing-field: true\n  json.ignore-parse-errors: true\n  messageType",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("10:31: error: json.fail-on-missing-field and json.ignore-parse-errors cannot both be"),
        "{found:?}"
    );
}

#[test]
fn a_warning_leaves_a_definition_valid() {
    for (old, new, expected) in [
        (
            "pollingWaitTime: 10s",
            "pollingWaitTime: 500ms",
            "12:20: warning: `pollingWaitTime`: the service counts whole seconds, so 1s is used",
        ),
        (
            "endpoint: http://127.0.0.1:9871",
            "endpoint: http://1.mns.cn-beijing.aliyuncs.com",
            "5:11: warning: `region` contradicts the endpoint, which is in cn-beijing; expected cn-beijing",
        ),
    ] {
        assert!(load(&EXAMPLE.replace(old, new)).definition.is_some());
        assert_eq!(told_with(old, new), [expected]);
    }
}

#[test]
fn the_name_is_the_files_unless_given() {
    assert_eq!(load(&EXAMPLE.replace("name: oss-created", "#")).definition.unwrap().name.as_str(), "oss");
    let found = told_with("name: oss-created ", "name: oss created ");
    assert!(found[0].starts_with("1:7: error: this is not a pipeline's name; expected 1 to 100"), "{found:?}");
}

#[test]
fn every_entry_of_every_option_table_is_guarded() {
    let columns = |_: &str, option: &str| {
        let (ty, value, with): (_, _, &[_]) = match option {
            "min" | "max" => ("INT", None, &[]),
            "start" => ("INT", None, &[("kind", "sequence"), ("end", "9")]),
            "end" => ("INT", None, &[("kind", "sequence"), ("start", "1")]),
            "max-past" => ("TIMESTAMP(3)", None, &[]),
            _ => ("STRING", None, &[]),
        };
        ColumnSample { ty, value, with }
    };
    let samples = |connector: &str, option: &str| match (connector, option) {
        (_, "rocketmq.client.endpoints") | ("mq", "endpoint") => Some("127.0.0.1:1"),
        ("cmq", "hosts") => Some("http://127.0.0.1:1"),
        _ => None,
    };
    let cases = generated::every_option_is_guarded(&REGISTRY, samples, columns);
    println!("{cases} cases");
    assert!(cases > 300, "{cases}");
}

#[test]
fn no_mutilated_file_breaks_the_reader_or_shows_a_secret() {
    let whole = EXAMPLE.replace("${MNS_ACCESS_KEY_SECRET}", "T0PS3CRET");
    let odd =
        ["{", "}", "[", "]", ": ", "\"", "'", " #", "&", "*", "!", "|", ">", "%", "@", "\t", "\n", "$", "${", "-", "é"];
    let secret = whole.find("T0PS3CRET").unwrap()..whole.find("T0PS3CRET").unwrap() + "T0PS3CRET".len();
    for at in 0..whole.len() {
        let insert = format!("{}{}{}", &whole[..at], odd[at % odd.len()], &whole[at..]);
        for text in [whole[..at].to_owned(), insert] {
            let report = load(&text).report;
            let told = report.render(Style::Plain) + &report.render(Style::Line);
            assert!(secret.contains(&at) || !told.contains("T0PS3CRET"), "{text}\n{told}");
        }
    }
}
