//! The source: batch receives, and batch deletes after checkpoints.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;

use super::{
    client::{Client, ClientOptions, DeleteFailure, Delivery},
    options::{BATCH_SIZE, POLLING_WAIT_TIMEOUT, RECEIVE_CONCURRENCY},
    settings::{QueueName, client_options},
    wire::{self, Class, class_of_answer, json::QueueAttributes},
};
use crate::{
    connector::{Acknowledged, Acknowledger, OpenedQueue, QueueFacts, QueueReader, QueueSource},
    definition::{Diagnostic, Endpoint},
    model::{Body, Fault, FaultKind, LaneId, Mend, Message, MetaValue, Receipt, SourceIdentity},
};

/// How often a failed delete is tried again. The published SDK does not; the message comes back then.
const DELETE_RETRIES: u32 = 3;

/// A queue of CMQ.
#[derive(Clone)]
pub struct CmqSource {
    client: ClientOptions,
    batch_size: usize,
    wait_seconds: u32,
    concurrency: usize,
}

impl CmqSource {
    /// A source by the checked options of [`super::options::TABLE`].
    ///
    /// # Errors
    /// Everything that is wrong with the options taken together.
    pub fn new(endpoint: &Endpoint) -> Result<Self, Vec<Diagnostic>> {
        let options = &endpoint.options;
        let wait = options.duration(&POLLING_WAIT_TIMEOUT);
        Ok(Self {
            client: client_options(endpoint)?,
            batch_size: usize::try_from(options.integer(&BATCH_SIZE)).unwrap_or(1),
            wait_seconds: u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(wire::LONGEST_WAIT_SECONDS),
            concurrency: usize::try_from(options.integer(&RECEIVE_CONCURRENCY)).unwrap_or(1).max(1),
        })
    }
}

#[async_trait]
impl QueueSource for CmqSource {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity(format!("cmq {}", QueueName(&self.client)))
    }

    async fn open(&self) -> Result<OpenedQueue, Fault> {
        let client = Client::new(&self.client)?;
        let attributes = match client.attributes().await {
            Ok(attributes) => attributes.unwrap_or_default(),
            Err(fault) if is_about_the_request(&fault) => {
                tracing::warn!(error = %fault, "the queue's visibility timeout and retention are not known");
                QueueAttributes::default()
            }
            Err(fault) => return Err(fault),
        };
        let facts = facts(&attributes);
        let reader = CmqReader {
            client: client.clone(),
            batch_size: self.batch_size,
            wait_seconds: self.wait_seconds,
            visibility: facts.visibility_timeout,
            patience: self.client.patience(Duration::from_secs(self.wait_seconds.into())),
        };
        let acknowledger = CmqAcknowledger { client, patience: self.patience() };
        Ok(OpenedQueue {
            lane: LaneId("cmq".into()),
            reader: Arc::new(reader),
            acknowledger: Arc::new(acknowledger),
            concurrency: self.concurrency,
            facts,
        })
    }

    fn patience(&self) -> Duration {
        self.client.patience(Duration::ZERO)
    }
}

/// Whether a service refuses to tell attributes to this key, or has no such action any more: it may still give messages,
/// and if it does not, it says so again.
fn is_about_the_request(fault: &Fault) -> bool {
    fault.mend == Mend::Never && matches!(fault.kind, FaultKind::Rejected | FaultKind::Credentials)
}

fn facts(attributes: &QueueAttributes) -> QueueFacts {
    let seconds = |value: Option<i64>| {
        value.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0).map(Duration::from_secs)
    };
    QueueFacts {
        visibility_timeout: seconds(attributes.visibility_timeout),
        retention: seconds(attributes.msg_retention_seconds),
    }
}

struct CmqReader {
    client: Client,
    batch_size: usize,
    wait_seconds: u32,
    visibility: Option<Duration>,
    patience: Duration,
}

#[async_trait]
impl QueueReader for CmqReader {
    async fn poll(&self) -> Result<Vec<Message>, Fault> {
        let deliveries = self.client.receive(self.batch_size, self.wait_seconds).await?;
        let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
        Ok(deliveries.into_iter().map(|delivery| message(delivery, now_ms, self.visibility)).collect())
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

fn message(delivery: Delivery, now_ms: i64, visibility: Option<Duration>) -> Message {
    let invisible_for = invisible_for(&delivery, now_ms, visibility);
    let id: Arc<str> = delivery.id.into();
    let meta = vec![
        MetaValue::Text(Arc::clone(&id)),
        MetaValue::Millis(delivery.enqueue_ms),
        MetaValue::Millis(delivery.first_dequeue_ms),
        MetaValue::Millis(delivery.next_visible_ms),
        MetaValue::Integer(delivery.dequeue_count.into()),
    ];
    let receipt = Receipt {
        handle: delivery.handle.into(),
        next_visible_ms: delivery.next_visible_ms,
        dequeue_count: delivery.dequeue_count,
        invisible_for,
    };
    Message { id, body: Body::Bytes(delivery.body), meta, receipt: Some(receipt) }
}

/// At the first delivery by two readings of the service's own clock, so that ours does not matter; at a later one, or
/// where the service keeps the time of the first to itself, by ours. Never more than the queue grants.
fn invisible_for(delivery: &Delivery, now_ms: i64, visibility: Option<Duration>) -> Duration {
    let first = delivery.dequeue_count == 1 && delivery.first_dequeue_ms > 0;
    let since = if first { delivery.first_dequeue_ms } else { now_ms };
    let left = u64::try_from(delivery.next_visible_ms.saturating_sub(since)).unwrap_or(0);
    let longest = visibility.unwrap_or(Duration::from_secs(wire::LONGEST_VISIBILITY_SECONDS.into()));
    Duration::from_millis(left).min(longest)
}

struct CmqAcknowledger {
    client: Client,
    patience: Duration,
}

#[async_trait]
impl Acknowledger for CmqAcknowledger {
    fn most(&self) -> usize {
        wire::MOST_PER_CALL
    }

    fn retries(&self) -> u32 {
        DELETE_RETRIES
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Result<Vec<Acknowledged>, Fault> {
        if receipts.is_empty() {
            return Ok(Vec::new());
        }
        let handles: Vec<&str> = receipts.iter().map(|receipt| &*receipt.handle).collect();
        outcomes(&handles, &self.client.delete(&handles).await?)
    }

    /// No request of the service makes a delivery invisible for longer.
    fn extends(&self) -> bool {
        false
    }

    async fn extend(&self, _: &Receipt, _: Duration) -> Result<Option<Receipt>, Fault> {
        Ok(None)
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

/// One outcome for each handle, in order.
fn outcomes(handles: &[&str], failures: &[DeleteFailure]) -> Result<Vec<Acknowledged>, Fault> {
    let mut failed: HashMap<&str, &DeleteFailure> =
        failures.iter().map(|failure| (failure.handle.as_str(), failure)).collect();
    let outcomes = handles
        .iter()
        .map(|handle| match failed.remove(handle) {
            None => Acknowledged::Deleted,
            Some(failure) if class_of_answer(failure.code, &failure.message) == Class::InvalidHandle => {
                Acknowledged::Unknown
            }
            Some(failure) => Acknowledged::Refused(format!("{}: {}", failure.code, failure.message)),
        })
        .collect();
    if failed.is_empty() {
        return Ok(outcomes);
    }
    // A failure that names none of our handles could be that of any, so none may be taken for deleted.
    Err(Fault::retry(FaultKind::Service, "delete: the answer names a receipt handle that was not sent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(first_dequeue_ms: i64, dequeue_count: u32) -> Delivery {
        Delivery {
            id: "7".to_owned(),
            handle: "h".to_owned(),
            body: "b".into(),
            enqueue_ms: 1_000,
            first_dequeue_ms,
            next_visible_ms: 40_000,
            dequeue_count,
        }
    }

    #[test]
    fn invisibility_is_by_the_services_clock_where_it_tells_it_and_never_above_the_queues_timeout() {
        let (thirty, now) = (Some(Duration::from_secs(30)), 15_500);
        assert_eq!(invisible_for(&delivery(10_000, 1), now, None), Duration::from_secs(30));
        assert_eq!(invisible_for(&delivery(15_000, 1), now, thirty), Duration::from_secs(25));
        assert_eq!(invisible_for(&delivery(5_000, 1), now, thirty), Duration::from_secs(30));
        assert_eq!(invisible_for(&delivery(5_000, 2), now, thirty), Duration::from_millis(24_500));
        assert_eq!(invisible_for(&delivery(0, 1), now, None), Duration::from_millis(24_500));
        assert_eq!(invisible_for(&delivery(0, 1), 50_000, None), Duration::ZERO);
        assert_eq!(invisible_for(&delivery(0, 1), i64::MIN, None), Duration::from_secs(43_200));
    }

    #[test]
    fn a_delete_that_failed_is_told_for_its_own_handle_only() {
        let failure = |handle: &str, code, message: &str| DeleteFailure {
            handle: handle.to_owned(),
            code,
            message: message.to_owned(),
        };
        let failures = [failure("2", 10_260, ""), failure("3", 6000, "(10130)failed"), failure("5", 4430, "")];
        let told = outcomes(&["1", "2", "3", "4", "5"], &failures).unwrap();
        let refused = Acknowledged::Refused("6000: (10130)failed".to_owned());
        let (deleted, unknown) = (Acknowledged::Deleted, Acknowledged::Unknown);
        assert_eq!(told, [deleted.clone(), unknown.clone(), refused, deleted, unknown]);
        assert!(outcomes(&["1"], &[failure("9", 4430, "")]).is_err());
    }

    #[test]
    fn a_key_that_may_not_ask_for_attributes_may_still_receive() {
        let refused = |kind| is_about_the_request(&Fault::never(kind, "x"));
        assert!(refused(FaultKind::Rejected) && refused(FaultKind::Credentials));
        assert!(!refused(FaultKind::Missing));
        assert!(!is_about_the_request(&Fault::retry(FaultKind::Credentials, "x")));
    }
}
