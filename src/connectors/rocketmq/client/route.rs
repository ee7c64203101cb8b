//! What a name server says of a topic.
//!
//! The crate's own types cannot read what a 4.x server sends (no `enableActingMaster`; `topicSynFlag` until 4.9.1), so
//! only the fields that are needed are read here, and all others are left alone. Numbers as keys of an object come
//! without quotes from servers before 4.9.4, and from later ones unless asked for standard JSON.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;

use super::types::{Queue, Route};
use crate::model::{Fault, FaultKind};

const READABLE: u32 = 4;
const WRITABLE: u32 = 2;
/// A master's number among the brokers of one name.
const MASTER: i64 = 0;
/// More queues than this at one broker is not a route but a mistake: a topic has 8 or 16.
const MOST_QUEUES: u32 = 65_536;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    broker_datas: Vec<Broker>,
    #[serde(default)]
    queue_datas: Vec<Queues>,
    /// Of a topic whose queues are spread over brokers by number (5.x "static topics"): by broker.
    #[serde(default)]
    topic_queue_mapping_by_broker: Option<BTreeMap<String, serde::de::IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Broker {
    #[serde(default)]
    cluster: Option<String>,
    broker_name: String,
    #[serde(default)]
    broker_addrs: BTreeMap<i64, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Queues {
    broker_name: String,
    #[serde(default)]
    read_queue_nums: u32,
    #[serde(default)]
    write_queue_nums: u32,
    #[serde(default)]
    perm: u32,
}

/// The queues of `topic` that `body` lists. A broker without an address now has none.
pub(super) fn parse(topic: &str, body: &[u8]) -> Result<Route, Fault> {
    let quoted = quote_keys(body);
    let body: Body = serde_json::from_slice(&quoted).map_err(|error| {
        Fault::retry(FaultKind::Service, format!("route of {topic}: the answer cannot be read")).because(error)
    })?;
    if body.topic_queue_mapping_by_broker.is_some_and(|mapping| !mapping.is_empty()) {
        return Err(Fault::never(
            FaultKind::Rejected,
            format!("topic {topic} is a static topic, whose queues move between brokers; these are not supported"),
        ));
    }
    let topic: Arc<str> = topic.into();
    let (mut readable, mut writable) = (BTreeSet::new(), BTreeSet::new());
    for queues in &body.queue_datas {
        // The master, else the slave with the lowest number.
        let Some((broker, number, address)) =
            body.broker_datas.iter().filter(|broker| broker.broker_name == queues.broker_name).find_map(|broker| {
                broker.broker_addrs.first_key_value().map(|(number, address)| (broker, number, address))
            })
        else {
            continue;
        };
        let (cluster, name) =
            (Arc::from(broker.cluster.as_deref().unwrap_or_default()), Arc::from(&*broker.broker_name));
        let address: Arc<str> = address.as_str().into();
        let queue = |id| Queue {
            cluster: Arc::clone(&cluster),
            topic: Arc::clone(&topic),
            broker: Arc::clone(&name),
            id,
            address: Arc::clone(&address),
        };
        if queues.perm & READABLE != 0 {
            readable.extend((0..queues.read_queue_nums.min(MOST_QUEUES)).map(queue));
        }
        if queues.perm & WRITABLE != 0 && *number == MASTER {
            writable.extend((0..queues.write_queue_nums.min(MOST_QUEUES)).map(queue));
        }
    }
    Ok(Route { queues: readable.into_iter().collect(), writable: writable.into_iter().collect() })
}

/// `{0:"a"}` as `{"0":"a"}`. Text within quotes stays.
fn quote_keys(body: &[u8]) -> Cow<'_, [u8]> {
    let mut quoted = Vec::new();
    let (mut copied, mut at) = (0, 0);
    let (mut within_text, mut key_may_follow) = (false, false);
    while at < body.len() {
        match body[at] {
            b'\\' if within_text => at += 1,
            b'"' => (within_text, key_may_follow) = (!within_text, false),
            _ if within_text => {}
            b'{' | b',' => key_may_follow = true,
            b'-' | b'0'..=b'9' if key_may_follow => {
                let end = at + body[at..].iter().take_while(|b| matches!(b, b'-' | b'0'..=b'9')).count();
                if body.get(end) == Some(&b':') {
                    quoted.extend_from_slice(&body[copied..at]);
                    quoted.push(b'"');
                    quoted.extend_from_slice(&body[at..end]);
                    quoted.push(b'"');
                    copied = end;
                }
                at = end - 1;
                key_may_follow = false;
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => key_may_follow = false,
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(body);
    }
    quoted.extend_from_slice(&body[copied..]);
    Cow::Owned(quoted)
}
