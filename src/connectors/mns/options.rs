//! The options and metadata columns of `connector: mns`.

use std::time::Duration;

use crate::{
    definition::{MetadataKey, MetadataType, OptionKind, OptionSpec, OptionTable},
    model::LogicalType,
};

/// The service's address.
pub static ENDPOINT: OptionSpec = OptionSpec::new(
    "endpoint",
    OptionKind::Url,
    "Address of the service, such as http://{account-id}.mns.{region}.aliyuncs.com.",
)
.required()
.example("http://127.0.0.1:9871");
/// The queue's region.
pub static REGION: OptionSpec = OptionSpec::new(
    "region",
    OptionKind::Text,
    "Region of the queue, such as cn-hangzhou. Requests do not carry it; one that contradicts the endpoint is warned of.",
)
.required()
.example("cn-hangzhou");
/// The queue.
pub static QUEUE_NAME: OptionSpec =
    OptionSpec::new("queueName", OptionKind::Text, "Name of the queue.").required().example("orders");
/// The access key's id.
pub static ACCESS_KEY_ID: OptionSpec = OptionSpec::new("accessKeyId", OptionKind::Text, "Id of the access key.")
    .required()
    .example("${MNS_ACCESS_KEY_ID}");
/// The access key's secret.
pub static ACCESS_KEY_SECRET: OptionSpec =
    OptionSpec::new("accessKeySecret", OptionKind::Text, "Secret of the access key.")
        .required()
        .secret()
        .example("${MNS_ACCESS_KEY_SECRET}");
/// A session token.
pub static SECURITY_TOKEN: OptionSpec =
    OptionSpec::new("securityToken", OptionKind::Text, "Session token of a temporary access key (STS).")
        .secret()
        .example("${MNS_SECURITY_TOKEN}")
        .ours();
/// Messages per receive.
pub static BATCH_SIZE: OptionSpec = OptionSpec::new(
    "batchSize",
    OptionKind::Integer { min: 1, max: 16 },
    "Most messages per receive; the service allows 16. More is faster.",
)
.default("1");
/// Wait of a receive.
pub static POLLING_WAIT_TIME: OptionSpec = OptionSpec::new(
    "pollingWaitTime",
    OptionKind::Duration { min: Duration::ZERO, max: Duration::from_secs(30) },
    "How long a receive waits for a first message; 0s does not wait. The service counts whole seconds: a part of one is rounded up.",
)
.default("10s");
/// RAW or OSS.
pub static MESSAGE_TYPE: OptionSpec = OptionSpec::new(
    "messageType",
    OptionKind::Choice { values: &["RAW", "OSS"], any_case: false },
    "RAW: bodies go to the format as they are. OSS: bodies are event notifications of Object Storage Service, whose events are flattened into columns such as ossObjectKey; needs format: json.",
)
.default("RAW");
/// Which events of a notification.
pub static OSS_EVENTS: OptionSpec = OptionSpec::new(
    "oss.events",
    OptionKind::Choice { values: &["first", "all"], any_case: true },
    "Which events of a notification become rows, with messageType: OSS. first: the first, as in Flink; further ones are counted in queuewarden_decode_unread_total. all: each becomes a row of its own.",
)
.default("first")
.ours();
/// Retries of a delete.
pub static DELETE_MAX_RETRIES: OptionSpec = OptionSpec::new(
    "deleteMaxRetries",
    OptionKind::Integer { min: 0, max: i32::MAX as i64 },
    "How often a failed delete is tried again before it is counted as failed. The message then comes back, is recognised and deleted with its new receipt.",
)
.default("3");
/// Filter by enqueue time.
pub static START_TIME_MS: OptionSpec = OptionSpec::new(
    "startTimeMs",
    OptionKind::Integer { min: -1, max: i64::MAX },
    "Messages sent before this time (milliseconds since 1970, UTC) are left out, counted and deleted; -1 leaves out none. It filters, it does not seek.",
)
.default("-1");
/// Long polls in flight.
///
/// The default is 1 because that is what the Flink connector does and because each idle long poll is billed; with
/// `batchSize: 16` one poll in flight already fetches thousands of messages a second within a region.
pub static RECEIVE_CONCURRENCY: OptionSpec = OptionSpec::new(
    "receive.concurrency",
    OptionKind::Integer { min: 1, max: 64 },
    "How many receives are under way at once. More is faster on a connection with a long round trip; too many waiting on an empty queue are answered at once by the service, and billed.",
)
.default("1").ours();
/// How bodies are encoded.
pub static BODY_ENCODING: OptionSpec = OptionSpec::new(
    "bodyEncoding",
    OptionKind::Choice { values: &["auto", "base64", "plain"], any_case: true },
    "Whether senders encode bodies in base64, as most of Alibaba's SDKs do by default; nothing on the wire tells. auto: a body is decoded if all of it is base64 and what comes out looks like the format: for json a JSON text, for csv and raw a printable text, for parquet and orc their first bytes, for avro anything. Short plain words of csv and raw, such as `bGln`, can be mistaken: say base64 or plain where they occur.",
)
.default("auto")
.ours();
/// Whether bodies come in a topic's envelope.
pub static TOPIC_ENVELOPE: OptionSpec = OptionSpec::new(
    "topicEnvelope",
    OptionKind::Choice { values: &["auto", "none", "xml", "json"], any_case: true },
    "Whether bodies are wrapped in the envelope in which a topic delivers to a queue, by its subscription's NotifyContentFormat: XML, JSON or SIMPLIFIED, which is none. Its Message goes to the format, decoded by bodyEncoding. auto: a body is opened if it is a JSON object, or an XML element Notification, of exactly the fields TopicOwner, TopicName, Subscriber, SubscriptionName, MessageId, Message, MessageMD5, PublishTime and perhaps MessageTag, each a text and there once. none: never. xml, json: every body is one, whatever further fields it has, and one that is not is broken.",
)
.default("auto")
.ours();
/// Whether visibility is extended.
pub static VISIBILITY_EXTENSION: OptionSpec = OptionSpec::new(
    "visibility.extension",
    OptionKind::Boolean,
    "Whether messages are kept invisible for longer when a checkpoint takes longer than the queue's visibility timeout. false: they are delivered again, recognised and deleted with their new receipt.",
)
.default("true").ours();

/// All options, in the order in which they are documented.
pub static TABLE: OptionTable = OptionTable {
    name: "mns",
    options: &[
        &ENDPOINT,
        &REGION,
        &QUEUE_NAME,
        &ACCESS_KEY_ID,
        &ACCESS_KEY_SECRET,
        &SECURITY_TOKEN,
        &BATCH_SIZE,
        &POLLING_WAIT_TIME,
        &MESSAGE_TYPE,
        &OSS_EVENTS,
        &DELETE_MAX_RETRIES,
        &START_TIME_MS,
        &RECEIVE_CONCURRENCY,
        &BODY_ENCODING,
        &TOPIC_ENVELOPE,
        &VISIBILITY_EXTENSION,
    ],
};

const fn key(name: &'static str, logical: LogicalType, doc: &'static str) -> MetadataKey {
    MetadataKey { name, ty: MetadataType::Plain(logical), nullable: false, doc }
}

/// Metadata columns, in the order of [`crate::model::Message::meta`].
pub static METADATA: &[MetadataKey] = &[
    key("message-id", LogicalType::VarChar(None), "The service's id of the message; the same at every delivery."),
    key("enqueue-time", LogicalType::TimestampLtz(3), "When the message was sent."),
    key("first-dequeue-time", LogicalType::TimestampLtz(3), "When the message was first received by anyone."),
    key("next-visible-time", LogicalType::TimestampLtz(3), "When this delivery would have run out."),
    key("dequeue-count", LogicalType::Int, "How often the message has been delivered, this delivery included."),
    key("priority", LogicalType::Int, "1 (most urgent) to 16."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_every_option_once_and_masks_secrets() {
        let mut names: Vec<_> = TABLE.options.iter().map(|option| option.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.options.len());
        let secret: Vec<_> = TABLE.options.iter().filter(|option| option.secret).map(|option| option.name).collect();
        assert_eq!(secret, ["accessKeySecret", "securityToken"]);
        for option in TABLE.options {
            assert!(!(option.required && option.default.is_some()), "{}", option.name);
        }
    }
}
