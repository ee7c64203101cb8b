//! The options and metadata columns of `connector: cmq`. As on the page of the Flink connector, source and sink have one
//! table.

use std::time::Duration;

use super::wire;
use crate::{
    definition::{MetadataKey, MetadataType, OptionKind, OptionSpec, OptionTable},
    model::LogicalType,
};

const HOUR: Duration = Duration::from_secs(3600);

/// Where the queue is asked for.
pub static HOSTS: OptionSpec = OptionSpec::new(
    "hosts",
    OptionKind::Text,
    "Name servers of the queue's region, such as `http://cmq-nameserver-vpc-gz.api.tencentyun.com`, separated by `;`; one that does not answer or refuses is passed over. With `transport: http`: the one HTTP endpoint, such as `https://cmq-gz.public.tencenttdmq.com`. A URL without a path means `/v2/index.php`.",
)
.required()
.example("http://127.0.0.1:9873");
/// The queue.
pub static QUEUE: OptionSpec =
    OptionSpec::new("queue", OptionKind::Text, "Name of the queue.").required().example("orders");
/// The key's id.
pub static SECRET_ID: OptionSpec =
    OptionSpec::new("secret-id", OptionKind::Text, "Id of the account's key. The service's own begin with `AKID`.")
        .required()
        .example("${CMQ_SECRET_ID}");
/// The key's secret.
pub static SECRET_KEY: OptionSpec = OptionSpec::new("secret-key", OptionKind::Text, "Secret of the account's key.")
    .required()
    .secret()
    .example("${CMQ_SECRET_KEY}");
/// How requests and connections are signed.
pub static SIGN_METHOD: OptionSpec = OptionSpec::new(
    "sign-method",
    OptionKind::Choice { values: &["HmacSHA1", "HmacSHA256"], any_case: true },
    "How requests and connections are signed.",
)
.default("HmacSHA1");
/// Which protocol is spoken.
pub static TRANSPORT: OptionSpec = OptionSpec::new(
    "transport",
    OptionKind::Choice { values: &["tcp", "http"], any_case: true },
    "Which protocol is spoken. tcp: that of the Flink connector, with addresses that a name server gives; it is not encrypted. http: signed requests, encrypted where `hosts` is an `https://` URL.",
)
.default("tcp")
.ours();
/// Messages per receive or send.
pub static BATCH_SIZE: OptionSpec = OptionSpec::new(
    "batch-size",
    OptionKind::Integer { min: 1, max: wire::MOST_PER_CALL as i64 },
    "Most messages of a receive, or of a send; the service allows 16.",
)
.default("16");
/// How long an answer is waited for.
pub static REQUEST_TIMEOUT: OptionSpec = OptionSpec::new(
    "request-timeout",
    OptionKind::Duration { min: Duration::from_millis(1), max: HOUR },
    "How long an answer is waited for; that to a receive for `polling-wait-timeout` longer.",
)
.default("5000ms");
/// How long a receive waits.
pub static POLLING_WAIT_TIMEOUT: OptionSpec = OptionSpec::new(
    "polling-wait-timeout",
    OptionKind::Duration { min: Duration::ZERO, max: Duration::from_secs(wire::LONGEST_WAIT_SECONDS as u64) },
    "How long a receive waits for a first message; 0s does not wait. The service counts whole seconds: a part of one is rounded up. Of a source; a sink has no use for it.",
)
.default("10s");
/// How long a primary key is remembered.
pub static KEY_ALIVE_TIMEOUT: OptionSpec = OptionSpec::new(
    "key-alive-timeout",
    OptionKind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(366 * 86_400) },
    "How long a primary key is remembered from when it was first seen: a row whose key is remembered is dropped. Longer takes more memory. Of a source with a primary key; without one it has no effect.",
)
.default("60s");
/// Receives in flight.
pub static RECEIVE_CONCURRENCY: OptionSpec = OptionSpec::new(
    "receive.concurrency",
    OptionKind::Integer { min: 1, max: 64 },
    "How many receives are under way at once. More is faster on a connection with a long round trip. Of a source.",
)
.default("1")
.ours();
/// Retries of a send.
pub static RETRY_TIMES: OptionSpec = OptionSpec::new(
    "retry-times",
    OptionKind::Integer { min: 0, max: i32::MAX as i64 },
    "How often a failed send is tried again before it counts as failed, within 15 seconds; that is told, and the send goes on. Of a sink.",
)
.default("3");
/// How long a batch is filled.
pub static MAX_BLOCK_TIMEOUT: OptionSpec = OptionSpec::new(
    "max-block-timeout",
    OptionKind::Duration { min: Duration::ZERO, max: HOUR },
    "How long a batch that is not full may wait for more rows; 0s: it does not wait. A checkpoint waits for none. Of a sink.",
)
.default("0s");

/// All options, in the order in which they are documented.
pub static TABLE: OptionTable = OptionTable {
    name: "cmq",
    options: &[
        &HOSTS,
        &QUEUE,
        &SECRET_ID,
        &SECRET_KEY,
        &SIGN_METHOD,
        &TRANSPORT,
        &BATCH_SIZE,
        &REQUEST_TIMEOUT,
        &POLLING_WAIT_TIMEOUT,
        &KEY_ALIVE_TIMEOUT,
        &RECEIVE_CONCURRENCY,
        &RETRY_TIMES,
        &MAX_BLOCK_TIMEOUT,
    ],
};

const fn key(name: &'static str, logical: LogicalType, doc: &'static str) -> MetadataKey {
    MetadataKey { name, ty: MetadataType::Plain(logical), nullable: false, doc }
}

/// Metadata columns, in the order of [`crate::model::Message::meta`]. The Flink connector has none.
pub static METADATA: &[MetadataKey] = &[
    key("message-id", LogicalType::VarChar(None), "The service's id of the message; the same at every delivery."),
    key("enqueue-time", LogicalType::TimestampLtz(3), "When the message was sent, to the second."),
    key(
        "first-dequeue-time",
        LogicalType::TimestampLtz(3),
        "When the message was first received by anyone, to the second. Reserved in the TDMQ edition.",
    ),
    key("next-visible-time", LogicalType::TimestampLtz(3), "When this delivery would have run out, to the second."),
    key(
        "dequeue-count",
        LogicalType::Int,
        "How often the message has been delivered, this delivery included. Reserved in the TDMQ edition.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_every_option_once_and_masks_the_secret() {
        let mut names: Vec<_> = TABLE.options.iter().map(|option| option.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.options.len());
        let secret: Vec<_> = TABLE.options.iter().filter(|option| option.secret).map(|option| option.name).collect();
        assert_eq!(secret, ["secret-key"]);
        for option in TABLE.options {
            assert!(!(option.required && option.default.is_some()), "{}", option.name);
        }
    }
}
