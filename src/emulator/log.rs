//! What became of every message of a queue, kept for tests: they compute from it what must have been written.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::message::Message;

/// Everything that was ever sent to the queue: it grows for as long as the queue is there.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// By the message's number, so in the order of sending.
    entries: BTreeMap<u64, Entry>,
}

/// What became of a message. Times are epoch milliseconds by the queue's clock, without the offset of a switch.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Entry {
    /// As MNS writes it.
    #[serde(serialize_with = "mns_id")]
    mns_id: u128,
    /// As CMQ writes it.
    #[serde(serialize_with = "cmq_id")]
    cmq_id: u128,
    /// What is no UTF-8 is replaced.
    #[serde(serialize_with = "text")]
    body: Bytes,
    sent_ms: i64,
    first_delivered_ms: Option<i64>,
    last_delivered_ms: Option<i64>,
    deliveries: u64,
    deleted_ms: Option<i64>,
}

fn mns_id<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&super::mns::id_text(*id))
}

fn cmq_id<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&super::cmq::id_number(*id).to_string())
}

fn text<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

impl Log {
    pub(super) fn sent(&mut self, number: u64, message: &Message) {
        let entry = Entry {
            mns_id: message.id,
            cmq_id: message.id,
            body: message.body.clone(),
            sent_ms: message.enqueue_ms,
            first_delivered_ms: None,
            last_delivered_ms: None,
            deliveries: 0,
            deleted_ms: None,
        };
        self.entries.insert(number, entry);
    }

    pub(super) fn delivered(&mut self, number: u64, now: i64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.first_delivered_ms.get_or_insert(now);
        entry.last_delivered_ms = Some(now);
        entry.deliveries += 1;
    }

    pub(super) fn deleted(&mut self, number: u64, now: i64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.deleted_ms = Some(now);
        }
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.values().cloned().collect()
    }
}
