//! The source: one queue, read by long polls, acknowledged by batch deletes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use super::{
    body::{BodyEncoding, Expected},
    client::{Client, Credentials, Received, longest_call},
    envelope::{self, TopicEnvelope},
    options,
    wire::{self, Delivery},
};
use crate::{
    connector::{Acknowledged, Acknowledger, OpenedQueue, QueueFacts, QueueReader, QueueSource},
    definition::{At, Diagnostic, Endpoint, Options},
    model::{Body, Fault, FaultKind, LaneId, Message, MetaValue, Receipt, SourceIdentity},
};

/// How long a delivery is taken to stay invisible if neither the queue nor the answer says: the service's default.
const DEFAULT_VISIBILITY: Duration = Duration::from_secs(30);

/// A queue of MNS.
pub struct MnsSource {
    settings: Settings,
    endpoint: Url,
    credentials: Credentials,
    retries: u32,
    extends: bool,
    concurrency: usize,
}

#[derive(Clone)]
struct Settings {
    queue: String,
    batch_size: usize,
    wait_seconds: u32,
    start_ms: i64,
    envelope: TopicEnvelope,
    encoding: BodyEncoding,
}

impl MnsSource {
    /// A source by the checked options of [`super::TABLE`]. Fails on an endpoint that is no http URL.
    pub fn new(options: &Options, format: &str) -> Result<Self, Fault> {
        let endpoint = options.text(&options::ENDPOINT);
        let endpoint = Url::parse(endpoint).map_err(|error| {
            Fault::never(FaultKind::Definition, format!("endpoint {endpoint} is not a URL")).because(error)
        })?;
        let wait = options.duration(&options::POLLING_WAIT_TIME);
        let (envelope, encoding) = transport(options, format);
        let settings = Settings {
            queue: options.text(&options::QUEUE_NAME).to_owned(),
            batch_size: usize::try_from(options.integer(&options::BATCH_SIZE)).unwrap_or(1),
            wait_seconds: u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(wire::LONGEST_WAIT_SECONDS),
            start_ms: options.integer(&options::START_TIME_MS),
            envelope,
            encoding,
        };
        Ok(Self {
            concurrency: usize::try_from(options.integer(&options::RECEIVE_CONCURRENCY)).unwrap_or(1).max(1),
            settings,
            endpoint,
            credentials: Credentials {
                access_key_id: options.text(&options::ACCESS_KEY_ID).to_owned(),
                access_key_secret: options.text(&options::ACCESS_KEY_SECRET).to_owned(),
                security_token: options.opt_text(&options::SECURITY_TOKEN).map(str::to_owned),
            },
            retries: u32::try_from(options.integer(&options::DELETE_MAX_RETRIES)).unwrap_or(u32::MAX),
            extends: options.boolean(&options::VISIBILITY_EXTENSION),
        })
    }

    /// What becomes of bodies as the service gives them before the format gets them.
    pub fn transport(options: &Options, format: &str) -> Arc<dyn Fn(Bytes) -> Body + Send + Sync> {
        let (envelope, encoding) = transport(options, format);
        Arc::new(move |received| match String::from_utf8(received.to_vec()) {
            Ok(text) => envelope::payload(envelope, encoding, text),
            Err(error) => Body::Broken { reason: format!("the body is not UTF-8: {error}"), received },
        })
    }

    /// Whether bodies are OSS notifications, to go through [`super::oss::OssDecoder`].
    pub fn flattens(options: &Options) -> bool {
        options.text(&options::MESSAGE_TYPE) == "OSS"
    }
}

/// How bodies are wrapped on their way.
fn transport(options: &Options, format: &str) -> (TopicEnvelope, BodyEncoding) {
    let encoding = match options.text(&options::BODY_ENCODING) {
        "base64" => BodyEncoding::Base64,
        "plain" => BodyEncoding::Plain,
        _ => BodyEncoding::Auto(Expected::of_format(format)),
    };
    let envelope = match options.text(&options::TOPIC_ENVELOPE) {
        "none" => TopicEnvelope::None,
        "xml" => TopicEnvelope::Xml,
        "json" => TopicEnvelope::Json,
        _ => TopicEnvelope::Auto,
    };
    (envelope, encoding)
}

/// Things an operator should know of options that are valid.
pub(super) fn warnings(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let wait = endpoint.options.duration(&options::POLLING_WAIT_TIME);
    if wait.subsec_nanos() != 0 {
        let rounded = wait.as_millis().div_ceil(1000);
        let text = format!("`pollingWaitTime`: the service counts whole seconds, so {rounded}s is used");
        warnings.push(Diagnostic::warning(text).at(endpoint.at(At::Option(&options::POLLING_WAIT_TIME))));
    }
    let region = endpoint.options.text(&options::REGION);
    let url = Url::parse(endpoint.options.text(&options::ENDPOINT)).ok();
    if let Some(actual) = url.as_ref().and_then(Url::host_str).and_then(region_of_host)
        && !actual.eq_ignore_ascii_case(region)
    {
        let text = format!("`region` contradicts the endpoint, which is in {actual}");
        warnings.push(Diagnostic::warning(text).at(endpoint.at(At::Option(&options::REGION))).expected(actual));
    }
    warnings
}

/// The region in a host of Alibaba's, public or internal: `{account}.mns.{region}.aliyuncs.com` or
/// `{region}.mns.aliyuncs.com`.
fn region_of_host(host: &str) -> Option<&str> {
    let parts: Vec<_> = host.strip_suffix(".aliyuncs.com")?.split('.').collect();
    match *parts.as_slice() {
        [_, "mns", region] | [region, "mns"] => Some(public_part(region)),
        _ => None,
    }
}

/// A host label without the suffix of the internal networks.
fn public_part(label: &str) -> &str {
    label.strip_suffix("-internal-vpc").or_else(|| label.strip_suffix("-internal")).unwrap_or(label)
}

/// The endpoint as part of an identity: scheme and internal or public network do not make another queue.
fn normalised(endpoint: &Url) -> String {
    let host = endpoint.host_str().unwrap_or_default().to_ascii_lowercase();
    let host = if host.ends_with(".aliyuncs.com") {
        host.split('.').map(public_part).collect::<Vec<_>>().join(".")
    } else {
        host
    };
    endpoint.port().map_or(host.clone(), |port| format!("{host}:{port}"))
}

#[async_trait]
impl QueueSource for MnsSource {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity(format!("mns {} {}", normalised(&self.endpoint), self.settings.queue))
    }

    async fn open(&self) -> Result<OpenedQueue, Fault> {
        let client = Client::new(self.endpoint.as_str(), self.credentials.clone())?;
        let attributes = client.queue_attributes(&self.settings.queue).await?;
        let seconds = |value: Option<u32>| value.map(|seconds| Duration::from_secs(seconds.into()));
        let facts = QueueFacts {
            visibility_timeout: seconds(attributes.settings.visibility_seconds),
            retention: seconds(attributes.settings.retention_seconds),
        };
        let reader =
            MnsReader { client: client.clone(), settings: self.settings.clone(), visibility: facts.visibility_timeout };
        let acknowledger = MnsAcknowledger {
            client,
            queue: self.settings.queue.clone(),
            retries: self.retries,
            extends: self.extends,
        };
        Ok(OpenedQueue {
            lane: LaneId("mns".into()),
            reader: Arc::new(reader),
            acknowledger: Arc::new(acknowledger),
            concurrency: self.concurrency,
            facts,
        })
    }

    fn patience(&self) -> Duration {
        longest_call(Duration::ZERO)
    }
}

struct MnsReader {
    client: Client,
    settings: Settings,
    visibility: Option<Duration>,
}

#[async_trait]
impl QueueReader for MnsReader {
    async fn poll(&self) -> Result<Vec<Message>, Fault> {
        let Settings { queue, batch_size, wait_seconds, .. } = &self.settings;
        let Received { messages, answered_ms } = self.client.receive(queue, *batch_size, *wait_seconds).await?;
        messages.into_iter().map(|delivery| self.message(delivery, answered_ms)).collect()
    }

    fn patience(&self) -> Duration {
        longest_call(Duration::from_secs(self.settings.wait_seconds.into()))
    }
}

impl MnsReader {
    fn message(&self, delivery: Delivery, answered_ms: Option<i64>) -> Result<Message, Fault> {
        let missing = |element| {
            Fault::retry(FaultKind::Service, "receive: unreadable answer").because(wire::WireError::Missing(element))
        };
        let handle = delivery.handle.ok_or_else(|| missing("ReceiptHandle"))?;
        let next_visible_ms = delivery.next_visible_ms.ok_or_else(|| missing("NextVisibleTime"))?;
        let id: Arc<str> = delivery.id.into();
        let meta = vec![
            MetaValue::Text(Arc::clone(&id)),
            MetaValue::Millis(delivery.enqueue_ms),
            MetaValue::Millis(delivery.first_dequeue_ms),
            MetaValue::Millis(next_visible_ms),
            MetaValue::Integer(delivery.dequeue_count.into()),
            MetaValue::Integer(delivery.priority.into()),
        ];
        let start = self.settings.start_ms;
        let body = if start >= 0 && delivery.enqueue_ms < start {
            Body::Filtered(options::START_TIME_MS.name)
        } else {
            envelope::payload(self.settings.envelope, self.settings.encoding, delivery.body)
        };
        let receipt = Receipt {
            handle: handle.into(),
            next_visible_ms,
            dequeue_count: delivery.dequeue_count.max(1),
            invisible_for: invisible_for(next_visible_ms, answered_ms, self.visibility),
        };
        Ok(Message { id, body, meta, receipt: Some(receipt) })
    }
}

/// By the service's own two clock readings, so that ours does not matter. `Date` is cut to whole seconds, which
/// would promise up to a second too much; a receive never grants more than the queue's timeout, so that caps it.
fn invisible_for(next_visible_ms: i64, answered_ms: Option<i64>, visibility: Option<Duration>) -> Duration {
    let Some(answered_ms) = answered_ms else { return visibility.unwrap_or(DEFAULT_VISIBILITY) };
    let left = u64::try_from(next_visible_ms.saturating_sub(answered_ms)).unwrap_or(0);
    let left = Duration::from_millis(left);
    visibility.map_or(left, |visibility| left.min(visibility))
}

struct MnsAcknowledger {
    client: Client,
    queue: String,
    retries: u32,
    extends: bool,
}

#[async_trait]
impl Acknowledger for MnsAcknowledger {
    fn most(&self) -> usize {
        wire::MOST_PER_CALL
    }

    fn retries(&self) -> u32 {
        self.retries
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Result<Vec<Acknowledged>, Fault> {
        if receipts.is_empty() {
            return Ok(Vec::new());
        }
        let handles: Vec<&str> = receipts.iter().map(|receipt| &*receipt.handle).collect();
        let failures = self.client.delete(&self.queue, &handles).await?;
        if failures.is_empty() {
            return Ok(vec![Acknowledged::Deleted; handles.len()]);
        }
        let mut failed: HashMap<&str, &wire::DeleteFailure> =
            failures.iter().map(|failure| (failure.handle.as_str(), failure)).collect();
        let outcomes = handles
            .iter()
            .map(|handle| match failed.remove(handle) {
                None => Acknowledged::Deleted,
                Some(failure) if failure.code == "MessageNotExist" => Acknowledged::Unknown,
                Some(failure) => Acknowledged::Refused(format!("{}: {}", failure.code, failure.message)),
            })
            .collect();
        if failed.is_empty() {
            return Ok(outcomes);
        }
        // A failure that names none of our handles could be that of any, so none may be taken for deleted.
        Err(Fault::retry(FaultKind::Service, "delete: the answer names a receipt handle that was not sent"))
    }

    fn extends(&self) -> bool {
        self.extends
    }

    async fn extend(&self, receipt: &Receipt, timeout: Duration) -> Result<Option<Receipt>, Fault> {
        let seconds = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX).clamp(1, wire::LONGEST_VISIBILITY_SECONDS);
        let changed = self.client.change_visibility(&self.queue, &receipt.handle, seconds).await?;
        Ok(changed.map(|changed| Receipt {
            handle: changed.handle.into(),
            next_visible_ms: changed.next_visible_ms,
            dequeue_count: receipt.dequeue_count,
            invisible_for: Duration::from_secs(seconds.into()),
        }))
    }

    fn patience(&self) -> Duration {
        longest_call(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        connectors::REGISTRY,
        definition::{Environment, Style, load_text},
    };

    fn url(text: &str) -> Url {
        Url::parse(text).expect("URL")
    }

    #[test]
    fn one_queue_has_one_identity_by_whatever_address_it_is_reached() {
        let public = normalised(&url("http://1.mns.cn-hangzhou.aliyuncs.com"));
        for same in [
            "https://1.mns.cn-hangzhou.aliyuncs.com/",
            "http://1.MNS.cn-hangzhou.aliyuncs.com:80",
            "http://1.mns.cn-hangzhou-internal.aliyuncs.com",
            "http://1.mns.cn-hangzhou-internal-vpc.aliyuncs.com",
        ] {
            assert_eq!(normalised(&url(same)), public, "{same}");
        }
        assert_ne!(normalised(&url("http://127.0.0.1:1")), normalised(&url("http://127.0.0.1:2")));
    }

    #[test]
    fn a_contradicting_region_and_a_part_of_a_second_are_warned_of() {
        let told = |endpoint: &str, region: &str, wait: &str| {
            let text = format!(
                "source:\n  connector: mns\n  endpoint: {endpoint}\n  region: {region}\n  queueName: q\n  \
                 accessKeyId: i\n  accessKeySecret: s\n  format: json\n  pollingWaitTime: {wait}\n  schema: {{ a: INT }}\n\
                 sink: {{ connector: blackhole }}\n"
            );
            let environment = Environment::new(|_| None, None);
            let loaded = load_text("q.yaml".as_ref(), &text, &REGISTRY, &environment);
            assert!(loaded.definition.is_some(), "{}", loaded.report.render(Style::Line));
            loaded.report.render(Style::Line)
        };
        let host = "http://1.mns.cn-hangzhou-internal.aliyuncs.com";
        assert_eq!(told(host, "cn-hangzhou", "10s"), "");
        assert!(told(host, "cn-shanghai", "10s").starts_with("q.yaml:4:11: warning: "));
        assert_eq!(told("http://127.0.0.1:1", "anywhere", "10s"), "");
        assert!(told(host, "cn-hangzhou", "1500ms").contains("so 2s is used"));
    }

    #[test]
    fn invisibility_is_by_the_services_clock_and_never_above_the_queues_timeout() {
        let thirty = Some(Duration::from_secs(30));
        assert_eq!(invisible_for(40_000, Some(15_000), thirty), Duration::from_secs(25));
        assert_eq!(invisible_for(45_900, Some(15_000), thirty), Duration::from_secs(30));
        assert_eq!(invisible_for(10_000, Some(15_000), thirty), Duration::ZERO);
        assert_eq!(invisible_for(45_000, None, thirty), Duration::from_secs(30));
        assert_eq!(invisible_for(45_000, Some(15_000), None), Duration::from_secs(30));
    }
}
