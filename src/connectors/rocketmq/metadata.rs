//! The metadata of a message, in the order of [`super::options::SOURCE_METADATA`].

use std::{collections::BTreeMap, sync::Arc};

use super::client::{Properties, PulledMessage};
use crate::model::MetaValue;

/// Properties that RocketMQ keeps for itself: those of Java's `MessageConst`, 4.9 and 5.3; sorted.
const OWN: [&str; 64] = [
    "1ST_POP_TIME",
    "ARRIVE_TIME",
    "BORN_TIMESTAMP",
    "BUYER_ID",
    "CHECK_IMMUNITY_TIME_IN_SECONDS",
    "CLUSTER",
    "CONSUME_START_TIME",
    "CORRECTION_FLAG",
    "CORRELATION_ID",
    "DELAY",
    "DLQ_ORIGIN_MESSAGE_ID",
    "DLQ_ORIGIN_TOPIC",
    "DUP_INFO",
    "EXTEND_UNIQ_INFO",
    "INNER_BASE",
    "INNER_MULTI_DISPATCH",
    "INNER_MULTI_QUEUE_OFFSET",
    "INNER_NUM",
    "INSTANCE_ID",
    "KEYS",
    "MAX_OFFSET",
    "MAX_RECONSUME_TIMES",
    "MIN_OFFSET",
    "MQ2_FLAG",
    "MSG_REGION",
    "MSG_TYPE",
    "ORIGIN_MESSAGE_ID",
    "PGROUP",
    "POP_CK",
    "POP_CK_OFFSET",
    "PROPERTY_FORWARD_QUEUE_ID",
    "PUSH_REPLY_TIME",
    "REAL_QID",
    "REAL_TOPIC",
    "RECONSUME_TIME",
    "REDIRECT",
    "REPLY_TO_CLIENT",
    "RETRY_TOPIC",
    "TAGS",
    "TIMER_DELAY_LEVEL",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELIVER_MS",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DEQUEUE_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_OUT_MS",
    "TIMER_ROLL_TIMES",
    "TRACE_CONTEXT",
    "TRACE_ON",
    "TRANSACTION_CHECK_TIMES",
    "TRANSFER_FLAG",
    "TRAN_MSG",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "TTL",
    "UNIQ_KEY",
    "WAIT",
    "__BORNHOST",
    "__CRC32#",
    "__RMQ.TRANSIENT.",
    "__RMQ.TRANSIENT.GROUP_SYS_FLAG",
    "__RMQ.TRANSIENT.TOPIC_SYS_FLAG",
    "__SHARDINGKEY",
    "__transactionId__",
];

/// What a message says beside its body. `arrived_ms`: its ingestion time.
pub fn of(message: &PulledMessage, topic: &Arc<str>, queue_id: u32, arrived_ms: i64) -> Vec<MetaValue> {
    let text = |text: Option<&str>| MetaValue::Text(text.unwrap_or_default().into());
    vec![
        MetaValue::Text(Arc::clone(topic)),
        MetaValue::Millis(arrived_ms),
        MetaValue::Millis(message.born_ms),
        MetaValue::Integer(queue_id.into()),
        MetaValue::Integer(i64::try_from(message.queue_offset).unwrap_or(i64::MAX)),
        MetaValue::Text(Arc::clone(&message.id)),
        text(message.keys()),
        text(message.tags()),
        MetaValue::Map(Arc::new(senders(&message.properties))),
    ]
}

/// The properties that the sender has set.
fn senders(properties: &Properties) -> BTreeMap<String, String> {
    let own = |name: &str| OWN.binary_search(&name).is_ok();
    let senders = properties.iter().filter(|(name, _)| !own(name));
    senders.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::options::SOURCE_METADATA, *};

    #[test]
    fn names_are_sorted_and_columns_as_many_as_declared() {
        assert!(OWN.is_sorted());
        let message = PulledMessage {
            queue_offset: 7,
            id: "ID".into(),
            born_ms: 1,
            stored_ms: 2,
            properties: Properties::default(),
            body: crate::model::Body::Bytes(Default::default()),
        };
        let meta = of(&message, &"t".into(), 3, 4);
        assert_eq!(meta.len(), SOURCE_METADATA.len());
        assert_eq!(meta[6], MetaValue::Text("".into()));
        assert_eq!(meta[8], MetaValue::Map(Arc::default()));
    }
}
