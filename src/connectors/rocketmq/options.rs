//! The options and metadata columns of `connector: rocketmq4` and `rocketmq5`, which are the same for both.

use std::time::Duration;

use crate::{
    definition::{MetadataKey, MetadataType, OptionKind, OptionSpec, OptionTable},
    model::LogicalType,
};

/// Most messages that a pull may ask for, as the Java client allows it; the broker has a limit of its own.
const MOST_PER_PULL: i64 = 1024;

/// The service's addresses.
pub static ENDPOINTS: OptionSpec = OptionSpec::new(
    "rocketmq.client.endpoints",
    OptionKind::Text,
    "Addresses of the service, `host:port` each, separated by `;`: name servers, or for 5.x the remoting port of proxies. `http://` before an address is left out.",
)
.required()
.example("127.0.0.1:9876");
/// The instance's namespace.
pub static NAMESPACE: OptionSpec = OptionSpec::new(
    "rocketmq.client.namespace",
    OptionKind::Text,
    "Namespace of the instance, where it has one. Of an endpoint that begins with an instance's id, `MQ_INST_..._....`, that id is the namespace if none is given, as in the Java client.",
);
/// The access channel.
pub static CHANNEL: OptionSpec = OptionSpec::new(
    "rocketmq.client.channel",
    OptionKind::Choice { values: &["LOCAL", "CLOUD", "ALIYUN"], any_case: true },
    "ALIYUN says so in every signed request, as Alibaba's own clients do; LOCAL and CLOUD are the same here.",
)
.default("CLOUD");
/// How often queues are looked for.
pub static DISCOVERY_INTERVAL: OptionSpec = OptionSpec::new(
    "rocketmq.client.partition.discovery.interval.ms",
    OptionKind::Integer { min: 1, max: i64::MAX },
    "How often the queues of the topics are asked for, in milliseconds. A queue that has come since is read from the offset of the group, else from its beginning.",
)
.default("10000");
/// The zone of times in options.
pub static TIME_ZONE: OptionSpec = OptionSpec::new(
    "rocketmq.client.timeZone",
    OptionKind::Text,
    "The time zone of dates in options: a name such as `Asia/Shanghai`, or an offset such as `GMT+8` or `+08:00`.",
)
.example("Asia/Shanghai");
/// The charset of bodies.
pub static MESSAGE_ENCODING: OptionSpec = OptionSpec::new(
    "rocketmq.client.message.encoding",
    OptionKind::Text,
    "The charset of bodies, with `format: delimited`. Bytes that are no text in it are read as U+FFFD; a row with a character that it lacks is refused when written.",
)
.default("UTF-8");
/// What separates fields.
pub static FIELD_DELIMITER: OptionSpec = OptionSpec::new(
    "rocketmq.client.message.field.delimiter",
    OptionKind::Text,
    "What separates the fields of a line, with `format: delimited`: any of these characters; what is written has the first of them. `\\t` and `\\u0001` are understood.",
)
.default("\\u0001");
/// What separates lines.
pub static LINE_DELIMITER: OptionSpec = OptionSpec::new(
    "rocketmq.client.message.line.delimiter",
    OptionKind::Text,
    "What separates the lines of a body, of which each is a row, with `format: delimited`: any of these characters. Empty lines are no rows. What is written is one line for each message, without a delimiter.",
)
.default("\\n");
/// What becomes of lines of another length.
pub static LENGTH_CHECK: OptionSpec = OptionSpec::new(
    "rocketmq.client.message.length.check",
    OptionKind::Choice { values: &["NONE", "SKIP", "EXCEPTION", "PAD"], any_case: true },
    "What becomes of a line that has not as many fields as there are columns, with `format: delimited`. NONE: with fewer it is skipped, of more the first are taken. SKIP: it is skipped. EXCEPTION: the message is an error. PAD: what is missing is null, of more the first are taken. A line with a field that cannot be read is skipped, with EXCEPTION an error. What is skipped, left out or null is counted.",
)
.default("NONE");
/// The access key.
pub static ACCESS_KEY: OptionSpec =
    OptionSpec::new("rocketmq.client.accessKey", OptionKind::Text, "Access key, where the service checks access.")
        .needs("rocketmq.client.secretKey")
        .example("${ROCKETMQ_ACCESS_KEY}");
/// The secret of the access key.
pub static SECRET_KEY: OptionSpec =
    OptionSpec::new("rocketmq.client.secretKey", OptionKind::Text, "Secret of the access key.")
        .needs("rocketmq.client.accessKey")
        .secret()
        .example("${ROCKETMQ_SECRET_KEY}");
/// Whether connections are encrypted.
pub static TLS: OptionSpec =
    OptionSpec::new("rocketmq.client.tls", OptionKind::Boolean, "Whether connections are encrypted with TLS.")
        .default("false")
        .ours();
/// How long an answer is waited for.
pub static REQUEST_TIMEOUT: OptionSpec = OptionSpec::new(
    "rocketmq.client.request.timeout",
    OptionKind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
    "Of a source: how long an answer is waited for; for a pull in addition to its own wait. A sink waits `rocketmq.sink.send.timeout`.",
)
.default("5s")
.ours();

/// What is read.
pub static SOURCE_TOPIC: OptionSpec = OptionSpec::new(
    "rocketmq.source.topic",
    OptionKind::Text,
    "The topics to read, separated by `;`, without the namespace.",
)
.required()
.example("orders");
/// As whom it is read.
pub static SOURCE_GROUP: OptionSpec = OptionSpec::new(
    "rocketmq.source.group",
    OptionKind::Text,
    "The consumer group, under which the broker keeps how far the queues are read.",
)
.required()
.example("queuewarden");
/// Filter by tag.
pub static FILTER_TAG: OptionSpec = OptionSpec::new(
    "rocketmq.source.filter.tag",
    OptionKind::Text,
    "Only messages with this tag are read, or with one of several, joined by `||`; `*`: all. All readers of a group should have the same filter.",
)
.default("*");
/// Filter by expression.
pub static FILTER_SQL: OptionSpec = OptionSpec::new(
    "rocketmq.source.filter.sql",
    OptionKind::Text,
    "Only messages are read of which this expression of SQL92 over their properties is true; the broker must allow it (`enablePropertyFilter`). Not together with a tag.",
)
.example("amount > 5");
/// Where reading begins.
pub static SCAN_MODE: OptionSpec = OptionSpec::new(
    "rocketmq.source.startup.scan.mode",
    OptionKind::Choice {
        values: &["earliest", "latest", "timestamp", "specific_offset", "group_offsets"],
        any_case: true,
    },
    "Where a queue is read from that has no position in the state yet. Default: latest, or what one of the three options `rocketmq.source.startup.offset.*` says, with which it cannot be given; timestamp and specific_offset are said by those alone. group_offsets: at the offset of the group, or where it has none at the beginning of the queue.",
)
.example("earliest");
/// A number to begin at.
pub static OFFSET_SPECIFIC: OptionSpec = OptionSpec::new(
    "rocketmq.source.startup.offset.specific",
    OptionKind::Integer { min: -1, max: i64::MAX },
    "The offset that every queue is read from, or from the nearest that there is; -1: not set.",
)
.default("-1");
/// A time to begin at.
pub static OFFSET_TIMESTAMP: OptionSpec = OptionSpec::new(
    "rocketmq.source.startup.offset.timestamp",
    OptionKind::Integer { min: -1, max: i64::MAX },
    "Queues are read from the first message stored at this time or after (milliseconds since 1970, UTC); -1: not set.",
)
.default("-1");
/// A date to begin at.
pub static OFFSET_DATE: OptionSpec = OptionSpec::new(
    "rocketmq.source.startup.offset.date",
    OptionKind::Text,
    "The same as a date and time, `yyyy-MM-dd HH:mm:ss`.",
)
.needs("rocketmq.client.timeZone")
.example("2026-11-30 08:00:00");
/// A time to end at.
pub static STOP_TIMESTAMP: OptionSpec = OptionSpec::new(
    "rocketmq.source.stop.offset.timestamp",
    OptionKind::Text,
    "Where reading ends: each queue before the first message stored at this time or after, in milliseconds since 1970 (UTC) or as `yyyy-MM-dd HH:mm:ss` in `rocketmq.client.timeZone`. The pipeline then is Finished; -1: not set.",
)
.example("1796025600000");
/// Which queues are read here.
pub static ALLOCATE_STRATEGY: OptionSpec = OptionSpec::new(
    "rocketmq.source.allocate.strategy",
    OptionKind::Choice { values: &["hash", "broadcast", "average"], any_case: true },
    "Which of several processes (`parallelism`) reads a queue. hash: as its name says; average: the queues in order, dealt one by one; broadcast: every process reads every queue.",
)
.default("hash");
/// Messages per pull.
pub static PULL_BATCH_SIZE: OptionSpec = OptionSpec::new(
    "rocketmq.source.pull.batch.size",
    OptionKind::Integer { min: 1, max: MOST_PER_PULL },
    "Most messages of a pull. The broker has a limit of its own, of 32 unless it says otherwise (`maxTransferCountOnMessageInMemory`).",
)
.default("32");
/// Whether offsets are committed.
pub static COMMIT: OptionSpec = OptionSpec::new(
    "rocketmq.source.offset.commit.checkpoint",
    OptionKind::Boolean,
    "Whether the broker is told at each checkpoint how far the group has read, for its own tools and for group_offsets. The pipeline itself goes on from its state.",
)
.default("true");
/// How long a pull waits.
pub static PULL_WAIT: OptionSpec = OptionSpec::new(
    "rocketmq.source.pull.wait",
    OptionKind::Duration { min: Duration::from_millis(100), max: Duration::from_secs(60) },
    "How long the broker holds a pull that finds nothing, until a message comes.",
)
.default("15s")
.ours();
/// What the ingestion time is.
pub static INGESTION_TIME: OptionSpec = OptionSpec::new(
    "rocketmq.source.ingestion.time",
    OptionKind::Choice { values: &["received", "stored"], any_case: true },
    "What the metadata `ingestion-time` is. received: when the message came in here. stored: when the broker stored it, as in Apache's connector; the same however often it is read.",
)
.default("received")
.ours();
/// What is done about a position that is gone.
pub static ON_LOST_POSITION: OptionSpec = OptionSpec::new(
    "on_lost_position",
    OptionKind::Choice { values: &["fail", "earliest", "latest"], any_case: false },
    "What is done if the position in the state is outside of what the queue holds, because the broker has deleted messages that were not read yet or has lost some. fail: the pipeline is Failed and says so. earliest, latest: it goes on at the beginning or the end of the queue.",
)
.default("fail")
.ours();
/// How many processes share the topics.
pub static PARALLELISM: OptionSpec = OptionSpec::new(
    "parallelism",
    OptionKind::Integer { min: 1, max: i32::MAX as i64 },
    "How many processes share the queues, each with this definition and an index of its own. Flink has it as the job's.",
)
.default("1")
.ours();
/// Which of them this is.
pub static PARALLELISM_INDEX: OptionSpec = OptionSpec::new(
    "parallelism.index",
    OptionKind::Integer { min: 0, max: i32::MAX as i64 },
    "Which of `parallelism` processes this is, from 0. Must be given if there is more than one.",
)
.example("0")
.ours();

/// Where rows go.
pub static SINK_TOPIC: OptionSpec =
    OptionSpec::new("rocketmq.sink.topic", OptionKind::Text, "The topic to write to, without the namespace.")
        .required()
        .example("orders");
/// As whom they are written.
pub static SINK_GROUP: OptionSpec =
    OptionSpec::new("rocketmq.sink.group", OptionKind::Text, "The producer group.").default("PID-flink-producer");
/// The guarantee.
pub static DELIVERY_GUARANTEE: OptionSpec = OptionSpec::new(
    "rocketmq.sink.delivery.guarantee",
    OptionKind::Choice { values: &["AT_LEAST_ONCE"], any_case: true },
    "What is promised of every row; there is nothing to choose.",
)
.default("AT_LEAST_ONCE");
/// Retries of a send.
pub static SEND_RETRIES: OptionSpec = OptionSpec::new(
    "rocketmq.sink.send.retry.times",
    OptionKind::Integer { min: 0, max: i32::MAX as i64 },
    "How often a failed send is tried again before it counts as failed, within 15 seconds; that is told, and the send goes on.",
)
.default("3");
/// The timeout of a send.
pub static SEND_TIMEOUT: OptionSpec = OptionSpec::new(
    "rocketmq.sink.send.timeout",
    OptionKind::Integer { min: 1, max: i32::MAX as i64 },
    "How long the answer to a send is waited for, in milliseconds.",
)
.default("5000");
/// The tag of every message.
pub static SINK_TAG: OptionSpec = OptionSpec::new(
    "rocketmq.sink.tag",
    OptionKind::Text,
    "The tag of every message whose row has none in a column `tags`. A message has one tag, so a comma is a part of it.",
)
.example("created");

/// All options of a source, in the order in which they are documented.
pub static SOURCE_TABLE: OptionTable = OptionTable {
    name: "rocketmq source",
    options: &[
        &ENDPOINTS,
        &NAMESPACE,
        &CHANNEL,
        &DISCOVERY_INTERVAL,
        &TIME_ZONE,
        &MESSAGE_ENCODING,
        &FIELD_DELIMITER,
        &LINE_DELIMITER,
        &LENGTH_CHECK,
        &ACCESS_KEY,
        &SECRET_KEY,
        &TLS,
        &REQUEST_TIMEOUT,
        &SOURCE_TOPIC,
        &SOURCE_GROUP,
        &FILTER_TAG,
        &FILTER_SQL,
        &SCAN_MODE,
        &OFFSET_SPECIFIC,
        &OFFSET_TIMESTAMP,
        &OFFSET_DATE,
        &STOP_TIMESTAMP,
        &ALLOCATE_STRATEGY,
        &PULL_BATCH_SIZE,
        &COMMIT,
        &PULL_WAIT,
        &INGESTION_TIME,
        &ON_LOST_POSITION,
        &PARALLELISM,
        &PARALLELISM_INDEX,
    ],
};
/// All options of a sink, likewise. Those of the client that a sink has no use for are here too, for they belong to
/// both.
pub static SINK_TABLE: OptionTable = OptionTable {
    name: "rocketmq sink",
    options: &[
        &ENDPOINTS,
        &NAMESPACE,
        &CHANNEL,
        &DISCOVERY_INTERVAL,
        &TIME_ZONE,
        &MESSAGE_ENCODING,
        &FIELD_DELIMITER,
        &LINE_DELIMITER,
        &LENGTH_CHECK,
        &ACCESS_KEY,
        &SECRET_KEY,
        &TLS,
        &REQUEST_TIMEOUT,
        &SINK_TOPIC,
        &SINK_GROUP,
        &DELIVERY_GUARANTEE,
        &SEND_RETRIES,
        &SEND_TIMEOUT,
        &SINK_TAG,
    ],
};

/// The bodies' options.
pub static MESSAGE_OPTIONS: [&OptionSpec; 4] = [&MESSAGE_ENCODING, &FIELD_DELIMITER, &LINE_DELIMITER, &LENGTH_CHECK];

const TEXT: MetadataType = MetadataType::Plain(LogicalType::VarChar(None));
const TIME: MetadataType = MetadataType::Plain(LogicalType::TimestampLtz(3));

const fn read(name: &'static str, ty: MetadataType, doc: &'static str) -> MetadataKey {
    MetadataKey { name, ty, nullable: false, doc }
}

const fn written(name: &'static str, doc: &'static str) -> MetadataKey {
    MetadataKey { name, ty: TEXT, nullable: true, doc }
}

/// Metadata columns of a source, in the order of [`crate::model::Message::meta`].
pub static SOURCE_METADATA: &[MetadataKey] = &[
    read("topic", TEXT, "The topic, without its namespace."),
    read("ingestion-time", TIME, "When the message came in here, or as `rocketmq.source.ingestion.time` says."),
    read("event-time", TIME, "When the message was sent, by its sender's clock."),
    read("queue-id", MetadataType::Plain(LogicalType::Int), "The number of the queue at its broker."),
    read("queue-offset", MetadataType::Plain(LogicalType::BigInt), "The message's offset in its queue."),
    read("msg-id", TEXT, "The id that its sender gave the message; without one, the broker's."),
    read("keys", TEXT, "The keys, joined by blanks; empty if there are none."),
    read("tags", TEXT, "The tag; empty if there is none."),
    read("properties", MetadataType::TextMap, "The properties that the sender has set, without RocketMQ's own."),
];
/// Metadata columns that a sink takes.
pub static SINK_METADATA: &[MetadataKey] = &[
    written("keys", "The keys, joined by blanks; null or empty: none."),
    written("tags", "The tag; null or empty: that of the option, if there is one."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_hold_every_option_once_and_mask_secrets() {
        for table in [&SOURCE_TABLE, &SINK_TABLE] {
            let mut names: Vec<_> = table.options.iter().map(|option| option.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.options.len());
            let secret: Vec<_> =
                table.options.iter().filter(|option| option.secret).map(|option| option.name).collect();
            assert_eq!(secret, ["rocketmq.client.secretKey"]);
        }
    }
}
