//! What every client of the service must be told: addresses, namespace, credentials, names.

use std::{collections::BTreeSet, time::Duration};

use super::{
    client::{Channel, ClientOptions, Credentials, parse_endpoints},
    options,
    reading::Reading,
};
use crate::definition::{Diagnostic, OptionSpec};

/// Longest name of a topic, as Java's `TopicValidator` has it.
const LONGEST_TOPIC: usize = 127;
/// Longest name of a group, as Java's `Validators` has it.
const LONGEST_GROUP: usize = 255;
const TOPIC: &str = "a topic: 1 to 127 letters, digits, `_`, `-`, `%` or `|`";
const TOPICS: &str = "topics, of 1 to 127 letters, digits, `_`, `-`, `%` or `|` each, separated by `;`";
const GROUP: &str = "a group: 1 to 255 letters, digits, `_`, `-`, `%` or `|`";

/// The client of `rocketmq4` and `rocketmq5`.
pub(super) fn client(reading: &mut Reading<'_>) -> ClientOptions {
    let endpoints = addresses(reading, &options::ENDPOINTS);
    let given = reading.opt_text(&options::NAMESPACE).map(str::to_owned);
    let values = &reading.endpoint.options;
    ClientOptions {
        namespace: given.or_else(|| instance(&endpoints)),
        endpoints,
        credentials: values.opt_text(&options::ACCESS_KEY).zip(values.opt_text(&options::SECRET_KEY)).map(credentials),
        channel: match values.text(&options::CHANNEL) {
            "LOCAL" => Channel::Local,
            "ALIYUN" => Channel::Aliyun,
            _ => Channel::Cloud,
        },
        tls: values.boolean(&options::TLS),
        request_timeout: values.duration(&options::REQUEST_TIMEOUT),
    }
}

pub(super) fn credentials((access_key, secret_key): (&str, &str)) -> Credentials {
    Credentials { access_key: access_key.to_owned(), secret_key: secret_key.to_owned() }
}

/// `host:port` of each address of an option.
pub(super) fn addresses(reading: &mut Reading<'_>, spec: &'static OptionSpec) -> Vec<String> {
    parse_endpoints(reading.text(spec)).unwrap_or_else(|why| {
        let message = match reading.endpoint.options.is_masked(spec) {
            true => format!("the value of `{}` cannot be used", spec.name),
            false => format!("`{}`: {why}", spec.name),
        };
        reading.found.push(Diagnostic::error(message).at(reading.place(spec)));
        Vec::new()
    })
}

/// The instance that an endpoint of Alibaba Cloud begins with: `MQ_INST_`, a word, `_`, a word, `.`. The Java client
/// (`ClientConfig.getNamespace`) takes it for the namespace where none is given.
pub(super) fn instance(endpoints: &[String]) -> Option<String> {
    let (id, _) = endpoints.first()?.split_once('.')?;
    let (account, instance) = id.strip_prefix("MQ_INST_")?.split_once('_')?;
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (word(account) && word(instance)).then(|| id.to_owned())
}

/// The one topic of an option.
pub(super) fn topic(reading: &mut Reading<'_>, spec: &'static OptionSpec) -> String {
    let topic = reading.text(spec);
    if !is_name(topic, LONGEST_TOPIC) {
        reading.refuse(spec, topic, TOPIC, None);
    }
    topic.to_owned()
}

/// The topics of an option, each once.
pub(super) fn topics(reading: &mut Reading<'_>, spec: &'static OptionSpec) -> Vec<String> {
    let mut topics: Vec<String> = Vec::new();
    for part in reading.text(spec).split(';').map(str::trim) {
        if !is_name(part, LONGEST_TOPIC) {
            reading.refuse(spec, part, TOPICS, None);
        } else if topics.iter().any(|other| other == part) {
            reading.error(spec, format!("`{}` has a topic twice", spec.name), "name each once");
        } else {
            topics.push(part.to_owned());
        }
    }
    topics
}

/// The group of an option.
pub(super) fn group(reading: &mut Reading<'_>, spec: &'static OptionSpec) -> String {
    let group = reading.text(spec);
    if !is_name(group, LONGEST_GROUP) {
        reading.refuse(spec, group, GROUP, None);
    }
    group.to_owned()
}

fn is_name(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-%|".contains(&byte))
}

/// A whole number of milliseconds.
pub(super) fn millis(reading: &Reading<'_>, spec: &OptionSpec) -> Duration {
    Duration::from_millis(reading.endpoint.options.integer(spec).unsigned_abs())
}

/// The client as it is called in a name: its addresses and namespace.
pub(super) fn name(client: &ClientOptions) -> String {
    let namespace = client.namespace.as_ref().map_or_else(String::new, |namespace| format!(" namespace {namespace}"));
    // The same servers in another order are no other service.
    let endpoints: BTreeSet<_> = client.endpoints.iter().map(String::as_str).collect();
    format!("{}{namespace}", Vec::from_iter(endpoints).join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_names_an_instance_says_its_namespace() {
        let of = |endpoint: &str| instance(&[endpoint.to_owned()]);
        let endpoint = "MQ_INST_1973281269661160_BXmPlOA6.mq-internet.aliyuncs.com:80";
        assert_eq!(of(endpoint).as_deref(), Some("MQ_INST_1973281269661160_BXmPlOA6"));
        for none in ["127.0.0.1:9876", "MQ_INST_1.x.com:80", "MQ_INST__a.x:1", "a.MQ_INST_1_a.x:1", "MQ_INST_1_a:1"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
