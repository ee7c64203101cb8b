//! The queues of the topic that is written to, and which of them is next.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Mutex;

use super::super::{
    client::{Queue, Route, TEMPLATE},
    service::{Connect, Service},
};
use crate::model::{Fault, FaultKind};

/// How often the route is asked for: as the Java client's `pollNameServerInterval`.
const REFRESHED_AFTER: Duration = Duration::from_secs(30);
/// Queues that such a topic gets on each broker: the Java client's `defaultTopicQueueNums`.
const TEMPLATE_QUEUES: u32 = 4;

/// A topic that is written to. Shared by all sends of a sink.
pub struct Topic {
    name: String,
    /// The service, for messages.
    endpoints: String,
    /// Whether the topic has been found before, by an earlier generation too: then it is only away for a while.
    seen: Arc<AtomicBool>,
    connect: Connect,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Asks name servers, and nobody else: a connection of theirs that ends must not look like a send that failed.
    asking: Option<Box<dyn Service>>,
    queues: Vec<Queue>,
    next: usize,
    asked: Option<Instant>,
}

impl Topic {
    /// The topic `name`, without its namespace.
    pub fn new(name: String, endpoints: String, connect: Connect, seen: Arc<AtomicBool>) -> Self {
        // Not always the first queue: a pipeline that writes little would fill only that one.
        let known = Known { next: fastrand::usize(..1024), ..Known::default() };
        Self { name, endpoints, seen, connect, known: Mutex::new(known) }
    }

    /// The queue for the next send: one after the other; after a failure of the broker `avoid` one of another broker, if
    /// there is any, by the route as it is now.
    pub async fn next(&self, avoid: Option<&str>) -> Result<Queue, Fault> {
        let mut known = self.known.lock().await;
        if avoid.is_some() || known.asked.is_none_or(|asked| asked.elapsed() >= REFRESHED_AFTER) {
            self.refresh(&mut known).await?;
        }
        let count = known.queues.len();
        let from = known.next;
        known.next = from.wrapping_add(1);
        let elsewhere = |at: &usize| known.queues.get(*at).is_some_and(|queue| Some(&*queue.broker) != avoid);
        let in_turn = (0..count).map(|step| from.wrapping_add(step) % count);
        let at = in_turn.clone().find(elsewhere).or_else(|| in_turn.clone().next());
        at.and_then(|at| known.queues.get(at).cloned()).ok_or_else(|| self.missing())
    }

    /// What cannot be asked, or is not there for the moment, leaves what is known.
    async fn refresh(&self, known: &mut Known) -> Result<(), Fault> {
        let service = match &mut known.asking {
            Some(service) => service,
            none => none.insert((self.connect)()?),
        };
        let route = match service.route(&self.name).await {
            Ok(route) => route,
            Err(_) if !known.queues.is_empty() => None,
            Err(fault) => return Err(fault),
        };
        let queues = match route {
            Some(Route { writable, .. }) => {
                self.seen.store(true, Ordering::Relaxed);
                writable
            }
            None if known.queues.is_empty() => self.not_made_yet(&**service).await?,
            None => Vec::new(),
        };
        if !queues.is_empty() {
            known.queues = queues;
        }
        known.asked = (!known.queues.is_empty()).then(Instant::now);
        Ok(())
    }

    /// The queues the topic will have where brokers make it at its first message; none where they do not.
    async fn not_made_yet(&self, service: &dyn Service) -> Result<Vec<Queue>, Fault> {
        let template = service.route(TEMPLATE).await?.map(|route| route.writable).unwrap_or_default();
        let made = template.into_iter().filter(|queue| queue.id < TEMPLATE_QUEUES);
        Ok(made.map(|queue| Queue { topic: self.name.as_str().into(), ..queue }).collect())
    }

    fn missing(&self) -> Fault {
        let (name, endpoints) = (&self.name, &self.endpoints);
        if self.seen.load(Ordering::Relaxed) {
            return Fault::retry(
                FaultKind::Service,
                format!("topic {name} at {endpoints} has no queue that can be written to now"),
            );
        }
        Fault::retry(
            FaultKind::Missing,
            format!("there is no topic {name} to write to at {endpoints}, and no broker there makes topics by itself"),
        )
    }
}
