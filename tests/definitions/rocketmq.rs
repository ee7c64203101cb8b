//! What can be wrong with the options of `rocketmq4`, `rocketmq5` and `mq`, and what is right.

use queuewarden::connectors::rocketmq::{
    Allocation, OnLostPosition, SinkOptions, SourceOptions, Startup, Strategy,
    client::{Channel, Filter},
};

use super::{load, told};

/// A source whose further lines begin in line 6.
fn source(lines: &[&str]) -> String {
    with_schema(lines, "{ user_id: BIGINT, behavior: STRING }")
}

fn with_schema(lines: &[&str], schema: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "source:\n  connector: rocketmq5\n  rocketmq.client.endpoints: 127.0.0.1:9876\n  rocketmq.source.topic: t\n  \
         rocketmq.source.group: g\n{lines}  schema: {schema}\nsink: {{ connector: blackhole }}\n"
    )
}

/// A sink whose further lines begin in line 5.
fn sink(lines: &[&str]) -> String {
    sink_of(lines, "id: BIGINT, name: STRING")
}

/// The same behind a source with these columns.
fn sink_of(lines: &[&str], columns: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "sink:\n  connector: rocketmq4\n  rocketmq.client.endpoints: 127.0.0.1:9876\n  rocketmq.sink.topic: t\n{lines}\
         source: {{ connector: datagen, schema: {{ {columns} }} }}\n"
    )
}

/// A sink whose further lines begin in line 7.
fn mq(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "sink:\n  connector: mq\n  topic: t\n  endpoint: http://h:80\n  accessId: id\n  accessKey: ${{MNS_ACCESS_KEY_SECRET}}\n\
         {lines}source: {{ connector: datagen, schema: {{ id: BIGINT, name: STRING }} }}\n"
    )
}

fn read(lines: &[&str]) -> SourceOptions {
    let loaded = load(&source(lines));
    let told = loaded.report.render(queuewarden::definition::Style::Plain);
    let definition = loaded.definition.unwrap_or_else(|| panic!("{lines:?}\n{told}"));
    assert_eq!(told, "", "{lines:?}");
    SourceOptions::read(&definition.source).unwrap()
}

fn read_sink(text: &str) -> SinkOptions {
    let definition = load(text).definition.unwrap_or_else(|| panic!("{:#?}", told(text)));
    SinkOptions::read(&definition.sink).unwrap()
}

/// Compares what is told of each text, and says all that differ.
fn golden(cases: &[(String, &[&str])]) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let told = told(text);
        if told != *expected {
            wrong.push_str(&format!("{text}\ntold: {told:#?}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn where_reading_begins_is_what_the_options_say() {
    let zone = "rocketmq.client.timeZone: Asia/Shanghai";
    for (lines, startup) in [
        (&[][..], Startup::Latest),
        (&["rocketmq.source.startup.scan.mode: earliest"], Startup::Earliest),
        (&["rocketmq.source.startup.scan.mode: LATEST"], Startup::Latest),
        (&["rocketmq.source.startup.scan.mode: group_offsets"], Startup::GroupOffsets),
        (&["rocketmq.source.startup.offset.specific: 0"], Startup::Specific(0)),
        (&["rocketmq.source.startup.offset.timestamp: 1796011200000"], Startup::Timestamp(1_796_011_200_000)),
        (&["rocketmq.source.startup.offset.date: 2026-11-30 12:00:00", zone], Startup::Timestamp(1_796_011_200_000)),
        (
            &["rocketmq.source.startup.offset.date: 2026-11-30 12:00:00", "rocketmq.client.timeZone: GMT+8"],
            Startup::Timestamp(1_796_011_200_000),
        ),
        // -1 is not set, as if it were not there.
        (
            &["rocketmq.source.startup.scan.mode: earliest", "rocketmq.source.startup.offset.specific: -1"],
            Startup::Earliest,
        ),
        (
            &["rocketmq.source.startup.offset.timestamp: -1", "rocketmq.source.startup.offset.specific: 7"],
            Startup::Specific(7),
        ),
    ] {
        assert_eq!(read(lines).startup, startup, "{lines:?}");
    }
}

#[test]
fn where_reading_begins_is_said_once() {
    golden(&[
        (
            source(&["rocketmq.source.startup.scan.mode: timestamp"]),
            &[
                "6:38: error: `rocketmq.source.startup.scan.mode: timestamp` says nothing of where; give `rocketmq.source.startup.offset.timestamp` or `rocketmq.source.startup.offset.date` in its place",
            ],
        ),
        (
            source(&["rocketmq.source.startup.scan.mode: specific_offset"]),
            &[
                "6:38: error: `rocketmq.source.startup.scan.mode: specific_offset` says nothing of where; give `rocketmq.source.startup.offset.specific` in its place",
            ],
        ),
        (
            source(&["rocketmq.source.startup.scan.mode: ealiest"]),
            &[
                "6:38: error: `rocketmq.source.startup.scan.mode` is `ealiest`; expected `earliest`, `latest`, `timestamp`, `specific_offset` or `group_offsets`; did you mean `earliest`?",
            ],
        ),
        (
            source(&["rocketmq.source.startup.scan.mode: latest", "rocketmq.source.startup.offset.specific: 0"]),
            &[
                "6:38: error: `rocketmq.source.startup.scan.mode` cannot be given with `rocketmq.source.startup.offset.specific`, which says the mode by itself; take one of the two out",
            ],
        ),
        (
            source(&["rocketmq.source.startup.scan.mode: timestamp", "rocketmq.source.startup.offset.timestamp: 5"]),
            &[
                "6:38: error: `rocketmq.source.startup.scan.mode` cannot be given with `rocketmq.source.startup.offset.timestamp`, which says the mode by itself; take one of the two out",
            ],
        ),
        (
            source(&[
                "rocketmq.source.startup.scan.mode: earliest",
                "rocketmq.source.startup.offset.date: 2026-11-30 12:00:00",
                "rocketmq.client.timeZone: UTC",
            ]),
            &[
                "6:38: error: `rocketmq.source.startup.scan.mode` cannot be given with `rocketmq.source.startup.offset.date`, which says the mode by itself; take one of the two out",
            ],
        ),
        (
            source(&["rocketmq.source.startup.offset.specific: 1", "rocketmq.source.startup.offset.timestamp: 5"]),
            &[
                "7:45: error: `rocketmq.source.startup.offset.specific` and `rocketmq.source.startup.offset.timestamp` both say where reading begins; give one of them",
            ],
        ),
        (
            source(&[
                "rocketmq.source.startup.offset.timestamp: 5",
                "rocketmq.source.startup.offset.date: 2026-11-30 12:00:00",
                "rocketmq.client.timeZone: UTC",
            ]),
            &[
                "7:40: error: `rocketmq.source.startup.offset.timestamp` and `rocketmq.source.startup.offset.date` both say where reading begins; give one of them",
            ],
        ),
        (
            source(&["rocketmq.source.startup.offset.specific: -2"]),
            &["6:44: error: `rocketmq.source.startup.offset.specific` is `-2`; expected an integer of at least -1"],
        ),
        (
            source(&["rocketmq.source.startup.offset.timestamp: 2026-11-30 12:00:00"]),
            &[
                "6:45: error: `rocketmq.source.startup.offset.timestamp` is `2026-11-30 12:00:00`; expected an integer of at least -1",
            ],
        ),
    ]);
}

#[test]
fn a_date_is_a_time_in_a_zone_that_there_is() {
    let date = "rocketmq.source.startup.offset.date: 2026-11-30 12:00:00";
    golden(&[
        (
            source(&[date]),
            &[
                "6:3: error: `rocketmq.source.startup.offset.date` needs `rocketmq.client.timeZone`, which is missing from `source`; expected `rocketmq.client.timeZone: ...`, a text that is not empty",
            ],
        ),
        (
            source(&[date, "rocketmq.client.timeZone: Asia/Shangai"]),
            &[
                "7:29: error: `rocketmq.client.timeZone` is `Asia/Shangai`; expected a time zone such as `Asia/Shanghai`, or an offset such as `GMT+8`; did you mean `Asia/Shanghai`?",
            ],
        ),
        (
            source(&[date, "rocketmq.client.timeZone: CST"]),
            &[
                "7:29: error: `rocketmq.client.timeZone` is `CST`; expected a time zone such as `Asia/Shanghai`, or an offset such as `GMT+8`",
            ],
        ),
        (
            source(&["rocketmq.source.startup.offset.date: 2026-11-30", "rocketmq.client.timeZone: UTC"]),
            &[
                "6:40: error: `rocketmq.source.startup.offset.date` is `2026-11-30`; expected a date and time as `yyyy-MM-dd HH:mm:ss`",
            ],
        ),
        (
            source(&[
                "rocketmq.source.startup.offset.date: 2026-03-29 02:30:00",
                "rocketmq.client.timeZone: Europe/Berlin",
            ]),
            &[
                "6:40: error: `rocketmq.source.startup.offset.date` is a time that clocks in that zone went forward over; give the milliseconds since 1970",
            ],
        ),
        (
            source(&[
                "rocketmq.source.startup.offset.date: 2026-10-25 02:30:00",
                "rocketmq.client.timeZone: Europe/Berlin",
            ]),
            &[
                "6:40: error: `rocketmq.source.startup.offset.date` is a time that clocks in that zone showed twice; give the milliseconds since 1970",
            ],
        ),
    ]);
}

#[test]
fn reading_ends_at_a_time_in_either_form_and_not_before_it_begins() {
    let zone = "rocketmq.client.timeZone: Asia/Shanghai";
    for (lines, stop) in [
        (&[][..], None),
        (&["rocketmq.source.stop.offset.timestamp: -1"], None),
        (&["rocketmq.source.stop.offset.timestamp: 1796011200000"], Some(1_796_011_200_000)),
        (&["rocketmq.source.stop.offset.timestamp: 2026-11-30 12:00:00", zone], Some(1_796_011_200_000)),
        (&["rocketmq.source.stop.offset.timestamp: 5", "rocketmq.source.startup.offset.timestamp: 5"], Some(5)),
    ] {
        assert_eq!(read(lines).stop_ms, stop, "{lines:?}");
    }
    golden(&[
        (
            source(&["rocketmq.source.stop.offset.timestamp: tomorrow"]),
            &[
                "6:42: error: `rocketmq.source.stop.offset.timestamp` is `tomorrow`; expected milliseconds since 1970, or a date and time as `yyyy-MM-dd HH:mm:ss`",
            ],
        ),
        (
            source(&["rocketmq.source.stop.offset.timestamp: -2"]),
            &[
                "6:42: error: `rocketmq.source.stop.offset.timestamp` is `-2`; expected milliseconds since 1970, or a date and time as `yyyy-MM-dd HH:mm:ss`",
            ],
        ),
        (
            source(&["rocketmq.source.stop.offset.timestamp: 2026-11-30 12:00:00"]),
            &[
                "6:42: error: a date in `rocketmq.source.stop.offset.timestamp` needs a time zone; give `rocketmq.client.timeZone`",
            ],
        ),
        (
            source(&["rocketmq.source.stop.offset.timestamp: 4", "rocketmq.source.startup.offset.timestamp: 5"]),
            &[
                "6:42: error: `rocketmq.source.stop.offset.timestamp` is before the time that reading begins at; nothing would be read",
            ],
        ),
        (
            source(&[
                "rocketmq.source.stop.offset.timestamp: 2026-11-30 11:59:59",
                "rocketmq.source.startup.offset.date: 2026-11-30 12:00:00",
                zone,
            ]),
            &[
                "6:42: error: `rocketmq.source.stop.offset.timestamp` is before the time that reading begins at; nothing would be read",
            ],
        ),
    ]);
}

#[test]
fn a_filter_is_tags_or_an_expression() {
    let tags = |tags: &[&str]| Filter::Tags(tags.iter().map(|tag| (*tag).to_owned()).collect());
    for (lines, filter) in [
        (&[][..], Filter::All),
        (&["rocketmq.source.filter.tag: '*'"], Filter::All),
        (&["rocketmq.source.filter.tag: a"], tags(&["a"])),
        (&["rocketmq.source.filter.tag: 'a || b||c '"], tags(&["a", "b", "c"])),
        (&["rocketmq.source.filter.sql: a > 5"], Filter::Sql("a > 5".to_owned())),
        (&["rocketmq.source.filter.sql: a > 5", "rocketmq.source.filter.tag: '*'"], Filter::Sql("a > 5".to_owned())),
    ] {
        assert_eq!(read(lines).filter, filter, "{lines:?}");
    }
    golden(&[
        (
            source(&["rocketmq.source.filter.tag: a", "rocketmq.source.filter.sql: a > 5"]),
            &[
                "7:31: error: `rocketmq.source.filter.tag` and `rocketmq.source.filter.sql` are both given; give one of them",
            ],
        ),
        (
            source(&["rocketmq.source.filter.tag: a ||"]),
            &[
                "6:31: error: `rocketmq.source.filter.tag` is `a ||`; expected a tag, or several joined by `||`, or `*` alone for all",
            ],
        ),
        (
            source(&["rocketmq.source.filter.tag: a || *"]),
            &[
                "6:31: error: `rocketmq.source.filter.tag` is `a || *`; expected a tag, or several joined by `||`, or `*` alone for all",
            ],
        ),
        (
            source(&["rocketmq.source.filter.tag: ''"]),
            &["6:31: error: `rocketmq.source.filter.tag` is empty; expected a text that is not empty"],
        ),
    ]);
}

#[test]
fn queues_are_shared_as_the_options_say() {
    let allocation = |strategy, parallelism, index| Allocation { strategy, parallelism, index };
    for (lines, expected) in [
        (&[][..], allocation(Strategy::Hash, 1, 0)),
        (
            &["rocketmq.source.allocate.strategy: AVERAGE", "parallelism: 3", "parallelism.index: 2"],
            allocation(Strategy::Average, 3, 2),
        ),
        (&["rocketmq.source.allocate.strategy: broadcast"], allocation(Strategy::Broadcast, 1, 0)),
    ] {
        assert_eq!(read(lines).allocation, expected, "{lines:?}");
    }
    golden(&[
        (
            source(&["rocketmq.source.allocate.strategy: consistent-hash"]),
            &[
                "6:38: error: `rocketmq.source.allocate.strategy` is `consistent-hash`; expected `hash`, `broadcast` or `average`",
            ],
        ),
        (
            source(&["parallelism: 3"]),
            &[
                "6:16: error: `parallelism` is 3, but `parallelism.index` is missing; say which of them this process is, from 0 to 2",
            ],
        ),
        (
            source(&["parallelism: 3", "parallelism.index: 3"]),
            &[
                "7:22: error: `parallelism.index` is 3, `parallelism` is 3; the index counts from 0, so that the last is 2",
            ],
        ),
        (
            source(&["parallelism: 2", "parallelism.index: 1", "rocketmq.source.offset.commit.checkpoint: false"]),
            &[
                "8:45: error: `rocketmq.source.offset.commit.checkpoint` is off, but `parallelism` is 2; leave it on: a queue that moves to another process goes on at the group's offset",
            ],
        ),
        (
            source(&["parallelism.index: 1"]),
            &[
                "6:22: error: `parallelism.index` is 1, `parallelism` is 1; the index counts from 0, so that the last is 0",
            ],
        ),
        (source(&["parallelism: 0"]), &["6:16: error: `parallelism` is `0`; expected an integer from 1 to 2147483647"]),
    ]);
}

#[test]
fn every_length_check_is_taken_and_no_other() {
    for check in ["NONE", "skip", "Exception", "PAD"] {
        read(&[&format!("rocketmq.client.message.length.check: {check}")]);
    }
    golden(&[(
        source(&["rocketmq.client.message.length.check: SKIP_SILENT"]),
        &[
            "6:41: error: `rocketmq.client.message.length.check` is `SKIP_SILENT`; expected `NONE`, `SKIP`, `EXCEPTION` or `PAD`",
        ],
    )]);
}

#[test]
fn options_of_delimited_text_mean_what_they_look_like_and_are_not_given_with_another_format() {
    read(&[
        "rocketmq.client.message.encoding: gbk",
        "rocketmq.client.message.field.delimiter: '||'",
        "rocketmq.client.message.line.delimiter: '\\r\\n'",
    ]);
    read(&["format: json", "rocketmq.client.message.encoding: UTF-8", "json.ignore-parse-errors: true"]);
    golden(&[
        (
            source(&["rocketmq.client.message.encoding: gkb"]),
            &[
                "6:37: error: `rocketmq.client.message.encoding` is `gkb`; expected the name of a charset, such as `UTF-8` or `GBK`; did you mean `GBK`?",
            ],
        ),
        (
            source(&["rocketmq.client.message.field.delimiter: '\\\\u0001'"]),
            &[
                "6:44: error: each character of `rocketmq.client.message.field.delimiter` separates, and two backslashes are one of them; write one backslash",
            ],
        ),
        (
            source(&["rocketmq.client.message.field.delimiter: '\\u00'"]),
            &[
                "6:44: error: `rocketmq.client.message.field.delimiter` is `\\u00`; expected delimiters such as `,` or `\\u0001`",
            ],
        ),
        (
            source(&["rocketmq.client.message.field.delimiter: ''"]),
            &["6:44: error: `rocketmq.client.message.field.delimiter` is empty; expected a text that is not empty"],
        ),
        (
            source(&["rocketmq.client.message.field.delimiter: ',\\n'"]),
            &[
                "6:44: error: `rocketmq.client.message.field.delimiter` and `rocketmq.client.message.line.delimiter` have a character in common; no line would hold it",
            ],
        ),
        (
            source(&["format: json", "rocketmq.client.message.field.delimiter: ','"]),
            &[
                "7:44: error: `rocketmq.client.message.field.delimiter` is about delimited text, and the format is `json`; take it out, or the format",
            ],
        ),
        (
            source(&["format: csv", "rocketmq.client.message.length.check: PAD"]),
            &[
                "7:41: error: `rocketmq.client.message.length.check` is about delimited text, and the format is `csv`; take it out, or the format",
            ],
        ),
        (
            source(&["format: xml"]),
            &[
                "6:11: error: there is no format `xml`; expected the name of a format: `delimited`, `json`, `csv`, `raw`, `avro`, `parquet`, `orc`",
            ],
        ),
    ]);
}

#[test]
fn columns_are_those_that_a_line_can_hold_or_one_for_the_body() {
    for schema in [
        "{ msg_body: VARBINARY }",
        "{ msg_body: VARBINARY, keys: STRING METADATA, p: \"MAP<STRING, STRING> NOT NULL METADATA FROM 'properties' VIRTUAL\" }",
        "{ a: BOOLEAN, b: TINYINT, c: DOUBLE, d: 'DECIMAL(10, 2)', e: STRING }",
        "{ a: STRING, topic: STRING NOT NULL METADATA, ingestion-time: TIMESTAMP_LTZ(3) METADATA VIRTUAL, \
           event-time: TIMESTAMP(3) METADATA, queue-id: INT METADATA, queue-offset: BIGINT NOT NULL METADATA, \
           msg-id: STRING METADATA, tags: STRING NOT NULL METADATA }",
    ] {
        assert_eq!(told(&with_schema(&[], schema)), [""; 0], "{schema}");
    }
    golden(&[
        (
            with_schema(&[], "{ a: BIGINT, b: VARBINARY }"),
            &["6:27: error: column b: BYTES is a whole body, which no other column can be a part of"],
        ),
        (
            with_schema(&[], "{ a: BIGINT, b: 'ARRAY<INT>' }"),
            &["6:27: error: column b: format delimited has no ARRAY<INT>"],
        ),
        (
            with_schema(&[], "{ a: BIGINT, key: STRING METADATA }"),
            &[
                "6:24: error: `rocketmq5` as a source has no metadata `key`; expected one of `topic`, `ingestion-time`, `event-time`, `queue-id`, `queue-offset`, `msg-id`, `keys`, `tags`, `properties`; did you mean `keys`?",
            ],
        ),
        (
            with_schema(&[], "{ a: BIGINT, properties: STRING METADATA }"),
            &[
                "6:36: error: `properties` is STRING, the metadata `properties` MAP<STRING, STRING>; expected MAP<STRING, STRING>",
            ],
        ),
        (
            with_schema(&[], "{ a: BIGINT, queue-offset: INT METADATA }"),
            &["6:38: error: `queue-offset` is INT, the metadata `queue-offset` BIGINT; expected BIGINT"],
        ),
    ]);
}

#[test]
fn names_and_addresses_are_looked_at() {
    let options = read(&[
        "rocketmq.client.namespace: ns",
        "rocketmq.client.channel: aliyun",
        "rocketmq.client.accessKey: id",
        "rocketmq.client.secretKey: ${MNS_ACCESS_KEY_SECRET}",
        "rocketmq.source.offset.commit.checkpoint: FALSE",
        "on_lost_position: earliest",
    ]);
    assert_eq!(options.identity().0, "rocketmq 127.0.0.1:9876 namespace ns group g");
    assert_eq!((options.client.channel, options.commit), (Channel::Aliyun, false));
    assert_eq!(options.on_lost_position, OnLostPosition::Earliest);
    assert!(!format!("{options:?}").contains("T0PS3CRET"));
    let text = source(&[]);
    let with = |old: &str, new: &str| text.replace(old, new);
    let several = with("topic: t", "topic: a; b%c").replace("127.0.0.1:9876", "http://h:1;i:2");
    let several = SourceOptions::read(&load(&several).definition.unwrap().source).unwrap();
    assert_eq!(
        (several.topics, several.client.endpoints),
        (vec!["a".into(), "b%c".into()], vec!["h:1".into(), "i:2".into()])
    );
    let identity = |servers| {
        SourceOptions::read(&load(&with("127.0.0.1:9876", servers)).definition.unwrap().source).unwrap().identity()
    };
    assert_eq!(identity("i:2;h:1"), identity("h:1;i:2"), "their order makes no other service");
    golden(&[
        (
            with("127.0.0.1:9876", "127.0.0.1"),
            &["3:30: error: `rocketmq.client.endpoints`: \"127.0.0.1\" has no port, expected HOST:PORT"],
        ),
        (
            with("127.0.0.1:9876", "https://h:9876"),
            &[
                "3:30: error: `rocketmq.client.endpoints`: \"https://h:9876\" begins with https://, expected HOST:PORT or http://HOST:PORT",
            ],
        ),
        (
            with("127.0.0.1:9876", "a:1,b:2"),
            &["3:30: error: `rocketmq.client.endpoints`: \"a:1,b:2\" holds a comma; several servers are joined by ;"],
        ),
        (
            with("topic: t", "topic: a,b"),
            &[
                "4:26: error: `rocketmq.source.topic` is `a,b`; expected topics, of 1 to 127 letters, digits, `_`, `-`, `%` or `|` each, separated by `;`",
            ],
        ),
        (with("topic: t", "topic: a;a"), &["4:26: error: `rocketmq.source.topic` has a topic twice; name each once"]),
        (
            with("topic: t", "topic: a;"),
            &[
                "4:26: error: a part of `rocketmq.source.topic` is empty; expected topics, of 1 to 127 letters, digits, `_`, `-`, `%` or `|` each, separated by `;`",
            ],
        ),
        (
            with("group: g", "group: my group"),
            &[
                "5:26: error: `rocketmq.source.group` is `my group`; expected a group: 1 to 255 letters, digits, `_`, `-`, `%` or `|`",
            ],
        ),
        (
            source(&["rocketmq.client.accessKey: id"]),
            &[
                "6:3: error: `rocketmq.client.accessKey` needs `rocketmq.client.secretKey`, which is missing from `source`; expected `rocketmq.client.secretKey: ...`, a text that is not empty",
            ],
        ),
        (
            source(&["rocketmq.client.secretKey: ${MNS_ACCESS_KEY_SECRET}"]),
            &[
                "6:3: error: `rocketmq.client.secretKey` needs `rocketmq.client.accessKey`, which is missing from `source`; expected `rocketmq.client.accessKey: ...`, a text that is not empty",
            ],
        ),
        (
            source(&["rocketmq.source.pull.batch.size: 1025"]),
            &["6:36: error: `rocketmq.source.pull.batch.size` is `1025`; expected an integer from 1 to 1024"],
        ),
        (
            source(&["rocketmq.source.pull.batch.size: ' 32'"]),
            &["6:36: error: `rocketmq.source.pull.batch.size` is ` 32`; expected an integer from 1 to 1024"],
        ),
        (
            source(&["rocketmq.client.partition.discovery.interval.ms: 10s"]),
            &[
                "6:52: error: `rocketmq.client.partition.discovery.interval.ms` is `10s`; expected an integer of at least 1",
            ],
        ),
        (
            source(&["rocketmq.source.filter.sql: a = 1) OR (b = 2"]),
            &[
                "6:31: error: `rocketmq.source.filter.sql` is `a = 1) OR (b = 2`; expected a predicate whose parentheses and quotes are balanced",
            ],
        ),
        (
            source(&["rocketmq.client.channel: local_"]),
            &[
                "6:28: error: `rocketmq.client.channel` is `local_`; expected `LOCAL`, `CLOUD` or `ALIYUN`; did you mean `LOCAL`?",
            ],
        ),
    ]);
}

#[test]
fn options_of_the_other_role_are_refused_by_its_name() {
    golden(&[
        (
            source(&["rocketmq.sink.topic: t"]),
            &[
                "6:3: error: `source` has no option `rocketmq.sink.topic`; `rocketmq5` has it as a sink, not as a source",
            ],
        ),
        (
            sink(&["rocketmq.source.group: g"]),
            &[
                "5:3: error: `sink` has no option `rocketmq.source.group`; `rocketmq4` has it as a source, not as a sink",
            ],
        ),
        (
            sink(&["parallelism: 2"]),
            &["5:3: error: `sink` has no option `parallelism`; `rocketmq4` has it as a source, not as a sink"],
        ),
        (
            mq(&["rocketmq.sink.tag: x"]),
            &[
                "7:3: error: `sink` has no option `rocketmq.sink.tag`; expected one of `connector`, `format`, `schema`, `topic`, `endpoint`, `accessId`, `accessKey`, `producerGroup`, `tag`, `nameServerSubgroup`, `encoding`, `retryTimes`, `sleepTimeMs`, `instanceID`, `fieldDelimiter`",
            ],
        ),
        (
            source(&["rocketmq.source.topics: t"]),
            &["6:3: error: `source` has no option `rocketmq.source.topics`; did you mean `rocketmq.source.topic`?"],
        ),
    ]);
}

#[test]
fn a_sink_is_what_its_options_say() {
    let options = read_sink(&sink(&[
        "rocketmq.sink.tag: x",
        "rocketmq.sink.send.retry.times: 0",
        "rocketmq.client.timeZone: UTC",
    ]));
    assert_eq!((options.topic.as_str(), options.group.as_str()), ("t", "PID-flink-producer"));
    assert_eq!((options.tag.as_deref(), options.retries, options.send_timeout.as_millis()), (Some("x"), 0, 5000));
    assert_eq!(options.identity("rocketmq4").target, "127.0.0.1:9876 topic t");
    golden(&[
        (
            sink(&["rocketmq.sink.delivery.guarantee: EXACTLY_ONCE"]),
            &["5:37: error: `rocketmq.sink.delivery.guarantee` is `EXACTLY_ONCE`; expected `AT_LEAST_ONCE`"],
        ),
        (
            sink(&["rocketmq.sink.tag: a,b"]),
            &[
                "5:22: warning: `rocketmq.sink.tag` holds `,`, but a message has one tag, which this is a part of; readers find it only by all of it",
            ],
        ),
        (
            sink(&["rocketmq.sink.send.timeout: 0"]),
            &["5:31: error: `rocketmq.sink.send.timeout` is `0`; expected an integer from 1 to 2147483647"],
        ),
        (
            sink_of(&["rocketmq.sink.tag: x"], "id: BIGINT, body: BYTES"),
            &[
                "1:1: error: column body: BYTES is a whole body, which no other column can be a part of; without a `schema` of its own the sink puts every column of the source into the body",
            ],
        ),
        (sink_of(&["format: json"], "id: BIGINT, body: BYTES"), &[]),
        (
            sink_of(
                &["schema: { id: BIGINT, key: STRING METADATA FROM 'keys', keys: STRING METADATA }"],
                "id: BIGINT, a: STRING, b: STRING",
            ),
            &["5:59: error: `key` and `keys` are both the metadata `keys`; a message has one"],
        ),
        (
            sink_of(&["schema: { id: BIGINT, queue-id: INT METADATA }"], "id: BIGINT, n: INT"),
            &["5:25: error: `rocketmq4` as a sink has no metadata `queue-id`; expected one of `keys`, `tags`"],
        ),
        (
            sink_of(&["schema: { id: BIGINT, keys: INT METADATA }"], "id: BIGINT, n: INT"),
            &["5:31: error: `keys` is INT, the metadata `keys` STRING; expected STRING"],
        ),
        (
            sink(&["schema: { id: BIGINT, name: STRING, q: INT METADATA FROM 'queue-idd' VIRTUAL }"]),
            &[
                "5:60: error: `rocketmq4` as a source has no metadata `queue-idd`; expected one of `topic`, `ingestion-time`, `event-time`, `queue-id`, `queue-offset`, `msg-id`, `keys`, `tags`, `properties`; did you mean `queue-id`?",
            ],
        ),
    ]);
    for schema in [
        "{ id: BIGINT, keys: STRING METADATA }",
        "{ id: BIGINT, k: STRING NOT NULL METADATA FROM 'keys' }",
        // What it would read is left out of what it writes.
        "{ id: BIGINT, queue-id: INT METADATA VIRTUAL, tags: STRING METADATA }",
    ] {
        let loaded = load(&sink(&[&format!("schema: {schema}")]));
        let definition = loaded.definition.unwrap_or_else(|| panic!("{schema}"));
        assert_eq!(definition.sink.schema.columns.len(), 2, "{schema}");
    }
}

#[test]
fn keys_and_tags_stand_beside_the_one_column_of_format_raw_in_a_sink() {
    let schema = "schema: { body: STRING, k: STRING METADATA FROM 'keys', t: STRING METADATA FROM 'tags' }";
    let text = sink_of(&["format: raw", schema], "body: STRING, k: STRING, t: STRING");
    assert_eq!(told(&text), [""; 0]);
    read_sink(&text);
    let two = sink_of(&["format: raw"], "id: BIGINT, name: STRING");
    assert!(
        told(&two).iter().any(|line| line.contains("format raw has exactly one column, not 2")),
        "{:?}",
        told(&two)
    );
}

#[test]
fn mq_takes_what_its_page_has_and_tells_what_is_gone() {
    let text = mq(&[
        "producerGroup: g",
        "tag: x",
        "encoding: utf-8",
        "retryTimes: 5",
        "sleepTimeMs: 500",
        "instanceID: MQ_INST_1_a",
    ]);
    let options = read_sink(&text);
    assert_eq!((options.retries, options.retry_sleep.as_millis()), (5, 500));
    assert_eq!(options.client.namespace.as_deref(), Some("MQ_INST_1_a"));
    assert_eq!(options.client.endpoints, ["h:80"]);
    assert!(!format!("{options:?}").contains("T0PS3CRET"));
    // The page's first sample has no group.
    assert_eq!(read_sink(&mq(&[])).group, "PID-flink-producer");
    let implied = mq(&[]).replace("http://h:80", "http://MQ_INST_1_b.mq.aliyuncs.com:80");
    assert_eq!(read_sink(&implied).client.namespace.as_deref(), Some("MQ_INST_1_b"));
    golden(&[
        (
            mq(&["nameServerSubgroup: nsaddr4client-internal"]),
            &[
                "7:23: error: `nameServerSubgroup` is `nsaddr4client-internal`; expected nothing: only VVR 2.1.1 to 3.0.0 had it, before an endpoint said which name servers are meant",
            ],
        ),
        (
            mq(&["tag: a,b"]),
            &[
                "7:8: warning: `tag` holds `,`, but a message has one tag, which this is a part of; readers find it only by all of it",
            ],
        ),
        (
            mq(&["encoding: utf-9"]),
            &[
                "7:13: error: `encoding` is `utf-9`; expected the name of a charset, such as `UTF-8` or `GBK`; did you mean `UTF-8`?",
            ],
        ),
        (
            mq(&["fieldDelimiter: '\\\\t'"]),
            &[
                "7:19: error: each character of `fieldDelimiter` separates, and two backslashes are one of them; write one backslash",
            ],
        ),
        (
            mq(&["format: json"]),
            &["7:11: error: `mq` does not go with the format `json`; expected the name of a format: `delimited`"],
        ),
        (mq(&["retryTimes: -1"]), &["7:15: error: `retryTimes` is `-1`; expected an integer from 0 to 2147483647"]),
        (mq(&["instanceId: x"]), &["7:3: error: `sink` has no option `instanceId`; did you mean `instanceID`?"]),
        (
            mq(&["tag: x"]).replace("name: STRING", "body: BYTES"),
            &[
                "1:1: error: column body: BYTES is a whole body, which no other column can be a part of; without a `schema` of its own the sink puts every column of the source into the body",
            ],
        ),
        (
            mq(&[]).replace("sink:", "source:").replace("source: {", "sink: {").replace("datagen", "print"),
            &[
                "1:1: error: `schema` is missing from `source`; expected columns, such as `name: STRING`",
                "2:14: error: `mq` can only be a sink, not a source; expected the name of a source: `mns`, `rocketmq4`, `rocketmq5`, `cmq`, `datagen`",
            ],
        ),
    ]);
}

#[test]
fn a_shown_definition_means_the_same() {
    for text in [
        source(&["rocketmq.source.startup.offset.timestamp: 5", "format: json"]),
        source(&["rocketmq.client.message.field.delimiter: '|'", "rocketmq.source.filter.sql: a > 5"]),
        sink(&["schema: { id: BIGINT, queue-id: INT METADATA VIRTUAL, tags: STRING METADATA }"]),
        mq(&["tag: x"]),
    ] {
        let shown = load(&text).definition.unwrap().to_yaml();
        assert!(!shown.contains("T0PS3CRET"), "{shown}");
        let again = load(&shown).definition.unwrap_or_else(|| panic!("{:#?}\n{shown}", told(&shown)));
        assert_eq!(again.to_yaml(), shown);
    }
}
