//! The commands a reader and a sink need.

use std::{
    collections::HashSet,
    fmt::Display,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::json;

use super::{
    answers, batch,
    connection::{Answer, Connection, Request},
    message,
    namespace::{RETRY, TEMPLATE, qualified},
    route,
    types::{ClientOptions, Filter, Outgoing, Pull, PullStatus, Pulled, Queue, Route},
};
use crate::model::{Fault, FaultKind};

const PULL_MESSAGE: i32 = 11;
const QUERY_CONSUMER_OFFSET: i32 = 14;
const UPDATE_CONSUMER_OFFSET: i32 = 15;
const SEARCH_OFFSET_BY_TIMESTAMP: i32 = 29;
const GET_MAX_OFFSET: i32 = 30;
const GET_MIN_OFFSET: i32 = 31;
const HEART_BEAT: i32 = 34;
const UNREGISTER_CLIENT: i32 = 35;
const CHECK_CLIENT_CONFIG: i32 = 46;
const GET_ROUTEINFO_BY_TOPIC: i32 = 105;
const SEND_MESSAGE_V2: i32 = 310;
const SEND_BATCH_MESSAGE: i32 = 320;

/// What a frame of 16 MiB, the limit of clients and servers, has room for.
const LARGEST: usize = (16 << 20) - (64 << 10);

/// Bits of a pull's `sysFlag`: the broker may wait; the request says what is wanted, so no heartbeat has to.
const SUSPEND: u32 = 1 << 1;
const SUBSCRIPTION: u32 = 1 << 2;
/// How much later than asked a broker may end a wait: it looks every five seconds.
const OVERSLEPT: Duration = Duration::from_secs(6);

/// Connections to one service. Made at the first call, on the runtime of that call; dropping the client ends them and
/// every task that serves them.
///
/// Calls of one client queue behind each other, so one that waits (a pull) wants a client for itself.
pub struct Client {
    connection: Connection,
    endpoints: Vec<String>,
    /// The one that answered last.
    endpoint: AtomicUsize,
    namespace: Option<String>,
    request_timeout: Duration,
    /// The predicate that is filtered by, and what is known of it.
    checked: Mutex<Option<(String, Checked)>>,
    /// Groups that were made known, each to the broker of an address.
    introduced: Mutex<HashSet<(Arc<str>, String)>>,
}

/// Whether a predicate is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    No,
    ByBroker,
    ByTrial,
}

impl Client {
    /// Connects to nothing yet. Fails on blank credentials, and without an endpoint.
    pub fn new(options: &ClientOptions) -> Result<Self, Fault> {
        if options.endpoints.is_empty() {
            return Err(Fault::never(FaultKind::Definition, "no endpoint is given"));
        }
        Ok(Self {
            connection: Connection::new(options)?,
            endpoints: options.endpoints.clone(),
            endpoint: AtomicUsize::new(0),
            namespace: options.namespace.clone(),
            request_timeout: options.request_timeout,
            checked: Mutex::new(None),
            introduced: Mutex::default(),
        })
    }

    /// The queues of a topic, asked of one endpoint after the other until one answers. `None`: there is no such topic.
    pub async fn route(&self, topic: &str) -> Result<Option<Route>, Fault> {
        let first = self.endpoint.load(Ordering::Relaxed);
        let mut last = None;
        for turn in 0..self.endpoints.len() {
            let at = (first + turn) % self.endpoints.len();
            match self.route_of(topic, &self.endpoints[at]).await {
                Err(fault) => last = Some(fault),
                answered => {
                    self.endpoint.store(at, Ordering::Relaxed);
                    return answered;
                }
            }
        }
        Err(last.unwrap_or_else(|| Fault::never(FaultKind::Definition, "no endpoint is given")))
    }

    async fn route_of(&self, topic: &str, endpoint: &str) -> Result<Option<Route>, Fault> {
        let request = Request::new(GET_ROUTEINFO_BY_TOPIC)
            .with("topic", self.qualified(topic))
            .with("acceptStandardJsonOnly", "true");
        let answer = self.connection.invoke(endpoint, request, self.request_timeout).await?;
        match answer.code() {
            answers::SUCCESS => route::parse(topic, &answer.into_body()).map(Some),
            answers::TOPIC_NOT_EXIST => Ok(None),
            _ => Err(answers::fault(&format!("route of {topic} from {endpoint}"), &answer)),
        }
    }

    /// Asks for messages, and waits for the first as long as it says. The broker makes the group if it may.
    pub async fn pull(&self, queue: &Queue, pull: &Pull<'_>) -> Result<Pulled, Fault> {
        let Filter::Sql(predicate) = pull.filter else { return self.ask(queue, pull).await };
        self.check(queue, pull.group, predicate).await?;
        let pulled = self.ask(queue, pull).await?;
        if let Some(message) = pulled.messages.first() {
            self.prove(queue, pull.group, predicate, message.queue_offset).await?;
        }
        Ok(pulled)
    }

    async fn ask(&self, queue: &Queue, pull: &Pull<'_>) -> Result<Pulled, Fault> {
        let flags = if pull.wait.is_zero() { SUBSCRIPTION } else { SUBSCRIPTION | SUSPEND };
        let (kind, expression) = match pull.filter {
            Filter::All => ("TAG", "*".to_owned()),
            Filter::Tags(tags) => ("TAG", tags.join("||")),
            Filter::Sql(predicate) => ("SQL92", predicate.clone()),
        };
        let request = self
            .of_queue(PULL_MESSAGE, queue)
            .with("consumerGroup", self.qualified(pull.group))
            .with("queueOffset", pull.offset.to_string())
            .with("maxMsgNums", pull.most.to_string())
            .with("sysFlag", flags.to_string())
            .with("commitOffset", "0")
            .with("suspendTimeoutMillis", pull.wait.as_millis().to_string())
            .with("subscription", expression)
            .with("subVersion", "0")
            .with("expressionType", kind);
        let margin = if pull.wait.is_zero() { Duration::ZERO } else { OVERSLEPT };
        let timeout = pull.wait + margin + self.request_timeout;
        let answer = self.connection.invoke(&queue.address, request, timeout).await?;
        let status = match answer.code() {
            answers::SUCCESS => PullStatus::Found,
            answers::PULL_NOT_FOUND => PullStatus::NothingNew,
            answers::PULL_RETRY_IMMEDIATELY => PullStatus::NothingMatched,
            answers::PULL_OFFSET_MOVED => PullStatus::OffsetIllegal,
            _ => return Err(refused("pull", queue, &answer)),
        };
        let number = |name| number("pull", queue, &answer, name);
        let (next, min, max) = (number("nextBeginOffset")?, number("minOffset")?, number("maxOffset")?);
        let mut messages = Vec::new();
        if status == PullStatus::Found {
            messages = message::decode_all(answer.into_body())?;
        }
        Ok(Pulled { status, next, min, max, messages })
    }

    /// Has the broker read a predicate, once, as the Java client does: a pull with one that it cannot read is answered
    /// with every message (by 4.9.7 and 5.3.3).
    async fn check(&self, queue: &Queue, group: &str, predicate: &str) -> Result<(), Fault> {
        if self.progress(predicate) != Checked::No {
            return Ok(());
        }
        let subscription = json!({
            "topic": self.qualified(&queue.topic), "subString": predicate, "expressionType": "SQL92",
            "classFilterMode": false, "tagsSet": [], "codeSet": [], "subVersion": 0,
        });
        let body = json!({
            "clientId": "queuewarden", "group": self.qualified(group), "subscriptionData": subscription,
        });
        let mut request = Request::new(CHECK_CLIENT_CONFIG).with("bname", &queue.broker);
        request.body = Some(body.to_string().into());
        let answer = self.connection.invoke(&queue.address, request, self.request_timeout).await?;
        if answer.code() != answers::SUCCESS {
            return Err(refused("check of the filter", queue, &answer));
        }
        self.note(predicate, Checked::ByBroker);
        Ok(())
    }

    /// A proxy (5.3.3) lets every predicate pass that check. So before the first message is believed, it is asked for
    /// under a condition that never holds: whoever has it all the same has not read the predicate.
    async fn prove(&self, queue: &Queue, group: &str, predicate: &str, offset: u64) -> Result<(), Fault> {
        if self.progress(predicate) == Checked::ByTrial {
            return Ok(());
        }
        let never = Filter::Sql(format!("({predicate}) AND 1 = 2"));
        let pull = Pull { group, offset, most: 1, wait: Duration::ZERO, filter: &never };
        if !self.ask(queue, &pull).await?.messages.is_empty() {
            let text = format!("pull: {queue}: the filter is not a predicate that the broker can read: {predicate}");
            return Err(Fault::never(FaultKind::Rejected, text));
        }
        self.note(predicate, Checked::ByTrial);
        Ok(())
    }

    fn progress(&self, predicate: &str) -> Checked {
        let Ok(checked) = self.checked.lock() else { return Checked::No };
        checked.as_ref().filter(|(of, _)| of == predicate).map_or(Checked::No, |(_, progress)| *progress)
    }

    fn note(&self, predicate: &str, progress: Checked) {
        if let Ok(mut checked) = self.checked.lock() {
            *checked = Some((predicate.to_owned(), progress));
        }
    }

    /// Position of the first message the queue holds.
    pub async fn min_offset(&self, queue: &Queue) -> Result<u64, Fault> {
        self.offset("first offset", self.of_queue(GET_MIN_OFFSET, queue), queue).await
    }

    /// Position behind the last message of the queue.
    pub async fn max_offset(&self, queue: &Queue) -> Result<u64, Fault> {
        self.offset("last offset", self.of_queue(GET_MAX_OFFSET, queue), queue).await
    }

    /// The positions the queue holds. A 5.x broker with access control wants a right for the two requests above that
    /// those who read need not have (`Get`); it is asked by a pull of `group` then, whose answer tells them too.
    pub async fn ends(&self, queue: &Queue, group: &str) -> Result<Range<u64>, Fault> {
        let asked = async { Ok(self.min_offset(queue).await?..self.max_offset(queue).await?) };
        match asked.await {
            Err(fault @ Fault { kind: FaultKind::Credentials, .. }) => {
                let pull = Pull { group, offset: 0, most: 1, wait: Duration::ZERO, filter: &Filter::All };
                self.pull(queue, &pull).await.map(|pulled| pulled.min..pulled.max).map_err(|_| fault)
            }
            answered => answered,
        }
    }

    /// What the broker answers for a time, which only 5.x promises to be the first message stored then or later.
    pub(super) async fn search_offset(&self, queue: &Queue, timestamp_ms: i64) -> Result<u64, Fault> {
        let request = self
            .of_queue(SEARCH_OFFSET_BY_TIMESTAMP, queue)
            .with("timestamp", timestamp_ms.to_string())
            .with("boundaryType", "LOWER");
        self.offset("offset at a time", request, queue).await
    }

    async fn offset(&self, operation: &str, request: Request, queue: &Queue) -> Result<u64, Fault> {
        let answer = self.connection.invoke(&queue.address, request, self.request_timeout).await?;
        match answer.code() {
            answers::SUCCESS => number(operation, queue, &answer, "offset"),
            _ => Err(refused(operation, queue, &answer)),
        }
    }

    /// How far the group has told the broker that it is. `None`: it never did. (A 4.x broker answers 0 instead as long
    /// as the queue still holds its first message.)
    pub async fn group_offset(&self, queue: &Queue, group: &str) -> Result<Option<u64>, Fault> {
        let request = self
            .of_queue(QUERY_CONSUMER_OFFSET, queue)
            .with("consumerGroup", self.qualified(group))
            .with("setZeroIfNotFound", "false");
        let answer = self.connection.invoke(&queue.address, request, self.request_timeout).await?;
        match answer.code() {
            answers::SUCCESS => number("offset of the group", queue, &answer, "offset").map(Some),
            answers::QUERY_NOT_FOUND => Ok(None),
            _ => Err(refused("offset of the group", queue, &answer)),
        }
    }

    /// Tells the broker how far the group is. Only for its tools, and for starts without a state.
    pub async fn commit_offset(&self, queue: &Queue, group: &str, offset: u64) -> Result<(), Fault> {
        self.introduce(queue, group).await?;
        let mut answer = self.try_commit(queue, group, offset).await?;
        if answer.code() == answers::SUBSCRIPTION_GROUP_NOT_EXIST {
            // Unlike 4.x, a 5.x broker makes no group for this, but it does for a pull.
            self.pull(queue, &Pull { group, offset, most: 1, wait: Duration::ZERO, filter: &Filter::All }).await?;
            answer = self.try_commit(queue, group, offset).await?;
        }
        match answer.code() {
            answers::SUCCESS => Ok(()),
            _ => Err(refused("commit of the offset", queue, &answer)),
        }
    }

    /// Has the broker make the group's retry topic, once: without it the servers' own `consumerProgress` fails (4.9.7)
    /// or shows nothing unless it is told the topic (5.3.3). Brokers make it when a consumer joins; this one leaves
    /// again at once, for it takes no part in how other consumers share the queues. A proxy makes none.
    async fn introduce(&self, queue: &Queue, group: &str) -> Result<(), Fault> {
        let who = (Arc::clone(&queue.address), group.to_owned());
        if self.introduced.lock().is_ok_and(|introduced| introduced.contains(&who)) {
            return Ok(());
        }
        let retry = self.route(&format!("{RETRY}{group}")).await?;
        if !retry.is_some_and(|retry| retry.queues.iter().any(|retry| retry.broker == queue.broker)) {
            let group = self.qualified(group);
            let consumer = json!({
                "groupName": group, "consumeType": "CONSUME_ACTIVELY", "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": [], "unitMode": false,
            });
            let client = format!("queuewarden@{}", std::process::id());
            let beat = json!({ "clientID": client, "consumerDataSet": [consumer], "producerDataSet": [] });
            let mut join = Request::new(HEART_BEAT).with("bname", &queue.broker);
            join.body = Some(beat.to_string().into());
            let leave = Request::new(UNREGISTER_CLIENT)
                .with("clientID", client)
                .with("consumerGroup", group)
                .with("bname", &queue.broker);
            for request in [join, leave] {
                // Refused or not: it is for display only.
                self.connection.invoke(&queue.address, request, self.request_timeout).await?;
            }
        }
        if let Ok(mut introduced) = self.introduced.lock() {
            introduced.insert(who);
        }
        Ok(())
    }

    async fn try_commit(&self, queue: &Queue, group: &str, offset: u64) -> Result<Answer, Fault> {
        let request = self
            .of_queue(UPDATE_CONSUMER_OFFSET, queue)
            .with("consumerGroup", self.qualified(group))
            .with("commitOffset", offset.to_string());
        self.connection.invoke(&queue.address, request, self.request_timeout).await
    }

    /// Sends messages, in one request. None of them is stored, or all are; after a fault that a retry can mend it may
    /// be either. A fault of kind `Poison` means that the broker will never take this, such as a message that is too
    /// large; of several messages it may be one, or all of them together.
    pub async fn send(&self, queue: &Queue, producer_group: &str, messages: &[Outgoing]) -> Result<(), Fault> {
        let properties = batch::with_ids(messages, self.namespace.as_deref())?;
        let size: usize = messages.iter().map(batch::size).sum();
        if size > LARGEST {
            let text = format!("the message cannot be sent: of {size} bytes, and a frame holds {LARGEST} at most");
            return Err(Fault::never(FaultKind::Poison, text));
        }
        let request = match (messages, &properties[..]) {
            ([], _) => return Err(Fault::never(FaultKind::Bug, "send: no message is given")),
            // A 5.x broker stumbles over an empty body that stands alone.
            ([one], [properties]) if !one.body.is_empty() => {
                let mut request = self.to_queue(SEND_MESSAGE_V2, queue, producer_group, properties, false);
                request.body = Some(one.body.clone());
                request
            }
            _ => {
                let mut request = self.to_queue(SEND_BATCH_MESSAGE, queue, producer_group, "", true);
                let pairs = messages.iter().zip(properties.iter().map(String::as_str));
                request.body = Some(batch::encode(pairs, size));
                request
            }
        };
        let answer = self.connection.invoke(&queue.address, request, self.request_timeout).await?;
        if answer.code() != answers::SUCCESS {
            return Err(refused("send", queue, &answer));
        }
        Ok(())
    }

    /// A request to write. Names are one letter long in this version of it, to save the broker work.
    fn to_queue(&self, code: i32, queue: &Queue, group: &str, properties: &str, batch: bool) -> Request {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Request::new(code)
            .with("a", self.qualified(group))
            .with("b", self.qualified(&queue.topic))
            // The topic to copy the settings of, and how many queues, if this one were to be made. It is there.
            .with("c", TEMPLATE)
            .with("d", "4")
            .with("e", queue.id.to_string())
            // No compression, no transaction.
            .with("f", "0")
            .with("g", now.as_millis().to_string())
            .with("h", "0")
            .with("i", properties)
            .with("j", "0")
            .with("k", "false")
            .with("m", if batch { "true" } else { "false" })
            .with("n", &queue.broker)
    }

    /// A request about a queue. A 5.x proxy wants the broker's name.
    fn of_queue(&self, code: i32, queue: &Queue) -> Request {
        Request::new(code)
            .with("topic", self.qualified(&queue.topic))
            .with("queueId", queue.id.to_string())
            .with("bname", &queue.broker)
    }

    fn qualified<'a>(&self, name: &'a str) -> std::borrow::Cow<'a, str> {
        qualified(self.namespace.as_deref(), name)
    }
}

fn refused(operation: &str, queue: &Queue, answer: &Answer) -> Fault {
    answers::fault(&format!("{operation}: {queue}"), answer)
}

fn number(operation: impl Display, queue: &Queue, answer: &Answer, name: &str) -> Result<u64, Fault> {
    let found = answer.field(name);
    found.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let text = format!("{operation}: {queue}: the answer's field {name} is {found:?}, expected a number");
        Fault::retry(FaultKind::Service, text)
    })
}
