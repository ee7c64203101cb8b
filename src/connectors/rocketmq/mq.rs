//! The sink `mq`: RocketMQ of Alibaba Cloud, under the names that its own connector gives to everything.

use std::time::Duration;

use super::{
    client::{Channel, ClientOptions},
    connection,
    options::SINK_METADATA,
    reading::Reading,
    sink_options::{self, SinkOptions},
};
use crate::definition::{ConnectorTables, FormatUse, OptionKind, OptionSpec, OptionTable, RoleTables};

/// How long an answer is waited for, and that to a send, as by the Java client: there is no option for either.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The topic.
pub static TOPIC: OptionSpec =
    OptionSpec::new("topic", OptionKind::Text, "The topic to write to.").required().example("orders");
/// The service's address.
pub static ENDPOINT: OptionSpec = OptionSpec::new(
    "endpoint",
    OptionKind::Text,
    "Addresses of the service for clients that speak TCP, `host:port` each, separated by `;`. `http://` before an address is left out.",
)
.required()
.example("127.0.0.1:9876");
/// The access key's id.
pub static ACCESS_ID: OptionSpec =
    OptionSpec::new("accessId", OptionKind::Text, "Id of the access key.").required().example("${MQ_ACCESS_ID}");
/// The access key's secret.
pub static ACCESS_KEY: OptionSpec = OptionSpec::new("accessKey", OptionKind::Text, "Secret of the access key.")
    .required()
    .secret()
    .example("${MQ_ACCESS_KEY}");
/// The producer group.
pub static PRODUCER_GROUP: OptionSpec = OptionSpec::new(
    "producerGroup",
    OptionKind::Text,
    "The producer group. The connector's page says it is required, and has a sample without it, which is valid here too.",
)
.default("PID-flink-producer");
/// The tag of every message.
pub static TAG: OptionSpec = OptionSpec::new(
    "tag",
    OptionKind::Text,
    "The tag of every message whose row has none in a column `tags`. A message has one tag: of several, joined by a comma, all of the text is the tag, as in Flink.",
)
.example("created");
/// The name server group, which is no more.
pub static NAME_SERVER_SUBGROUP: OptionSpec = OptionSpec::new(
    "nameServerSubgroup",
    OptionKind::Gone("only VVR 2.1.1 to 3.0.0 had it, before an endpoint said which name servers are meant"),
    "The group of name servers.",
);
/// The charset of bodies.
pub static ENCODING: OptionSpec = OptionSpec::new(
    "encoding",
    OptionKind::Text,
    "The charset of bodies. A row with a character that it lacks is refused.",
)
.default("utf-8");
/// Retries of a send.
pub static RETRY_TIMES: OptionSpec = OptionSpec::new(
    "retryTimes",
    OptionKind::Integer { min: 0, max: i32::MAX as i64 },
    "How often a failed send is tried again before it counts as failed, within 15 seconds; that is told, and the send goes on.",
)
.default("10");
/// The pause before a retry.
pub static SLEEP_TIME_MS: OptionSpec = OptionSpec::new(
    "sleepTimeMs",
    OptionKind::Integer { min: 0, max: i32::MAX as i64 },
    "The pause before a failed send is tried again, in milliseconds.",
)
.default("1000");
/// The instance.
pub static INSTANCE_ID: OptionSpec = OptionSpec::new(
    "instanceID",
    OptionKind::Text,
    "Id of the instance, if it has a namespace of its own; otherwise it must not be given. An endpoint that begins with the id says it too.",
);
/// What separates fields.
pub static FIELD_DELIMITER: OptionSpec = OptionSpec::new(
    "fieldDelimiter",
    OptionKind::Text,
    "What stands between the fields of a body. `\\t` and `\\u0001` are understood.",
)
.default("\\u0001")
.ours();

/// All options, in the order in which they are documented.
pub static TABLE: OptionTable = OptionTable {
    name: "mq",
    options: &[
        &TOPIC,
        &ENDPOINT,
        &ACCESS_ID,
        &ACCESS_KEY,
        &PRODUCER_GROUP,
        &TAG,
        &NAME_SERVER_SUBGROUP,
        &ENCODING,
        &RETRY_TIMES,
        &SLEEP_TIME_MS,
        &INSTANCE_ID,
        &FIELD_DELIMITER,
    ],
};

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "mq",
    source: None,
    sink: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FormatUse::Defaulted(&["delimited"]),
        metadata: SINK_METADATA,
        key_window: None,
        check: sink_options::check,
    }),
};

pub(super) fn read(reading: &mut Reading<'_>) -> SinkOptions {
    let endpoints = connection::addresses(reading, &ENDPOINT);
    let instance = reading.opt_text(&INSTANCE_ID).map(str::to_owned);
    let key = (reading.text(&ACCESS_ID), reading.text(&ACCESS_KEY));
    SinkOptions {
        client: ClientOptions {
            namespace: instance.or_else(|| connection::instance(&endpoints)),
            endpoints,
            credentials: Some(connection::credentials(key)),
            channel: Channel::Aliyun,
            tls: false,
            request_timeout: TIMEOUT,
        },
        topic: connection::topic(reading, &TOPIC),
        group: connection::group(reading, &PRODUCER_GROUP),
        retries: reading.count(&RETRY_TIMES),
        retry_sleep: connection::millis(reading, &SLEEP_TIME_MS),
        send_timeout: TIMEOUT,
        tag: reading.opt_text(&TAG).map(str::to_owned),
    }
}
