//! What the options of a sink say, read once.

use std::time::Duration;

use super::{
    bodies,
    client::ClientOptions,
    connection, mq,
    options::{SEND_RETRIES, SEND_TIMEOUT, SINK_GROUP, SINK_TAG, SINK_TOPIC},
    reading::Reading,
};
use crate::{
    definition::{At, Diagnostic, Endpoint, OptionSpec},
    model::SinkIdentity,
};

/// The pause before a send is tried again, where no option says it. Apache's connector begins with as much.
const RETRY_SLEEP: Duration = Duration::from_millis(200);

/// What the options of a sink say, of `rocketmq4`, `rocketmq5` or `mq`.
#[derive(Debug, Clone)]
pub struct SinkOptions {
    /// Where to connect, and as whom.
    pub client: ClientOptions,
    /// The topic, without its namespace.
    pub topic: String,
    /// The producer group, without its namespace.
    pub group: String,
    /// How often a failed send is tried again.
    pub retries: u32,
    /// The pause before that.
    pub retry_sleep: Duration,
    /// How long the answer to a send is waited for.
    pub send_timeout: Duration,
    /// The tag of messages whose row says none.
    pub tag: Option<String>,
}

impl SinkOptions {
    /// Reads them.
    ///
    /// # Errors
    /// Everything in which they contradict each other, or that the table of options cannot check.
    pub fn read(endpoint: &Endpoint) -> Result<Self, Vec<Diagnostic>> {
        let mut reading = Reading::new(endpoint);
        bodies::check(&mut reading);
        twice(&mut reading);
        let read = if endpoint.connector == mq::TABLES.name { mq::read(&mut reading) } else { read(&mut reading) };
        reading.done(read)
    }

    /// Where it writes.
    pub fn identity(&self, connector: &str) -> SinkIdentity {
        let target = format!("{} topic {}", connection::name(&self.client), self.topic);
        SinkIdentity { connector: connector.to_owned(), target }
    }
}

/// What is wrong and what an operator should know.
pub(super) fn check(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let spec = if endpoint.connector == mq::TABLES.name { &mq::TAG } else { &SINK_TAG };
    let mut found = SinkOptions::read(endpoint).err().unwrap_or_default();
    found.extend(several_tags(endpoint, spec));
    found
}

fn read(reading: &mut Reading<'_>) -> SinkOptions {
    SinkOptions {
        client: connection::client(reading),
        topic: connection::topic(reading, &SINK_TOPIC),
        group: connection::group(reading, &SINK_GROUP),
        retries: reading.count(&SEND_RETRIES),
        retry_sleep: RETRY_SLEEP,
        send_timeout: connection::millis(reading, &SEND_TIMEOUT),
        tag: reading.opt_text(&SINK_TAG).map(str::to_owned),
    }
}

/// Two columns for one thing: of one of them nothing would become.
fn twice(reading: &mut Reading<'_>) {
    let columns = &reading.endpoint.schema.columns;
    for (index, column) in columns.iter().enumerate() {
        let Some(key) = &column.metadata else { continue };
        if let Some(other) = columns.iter().take(index).find(|other| other.metadata.as_ref() == Some(key)) {
            let message = format!("`{}` and `{}` are both the metadata `{key}`", other.name, column.name);
            let place = reading.endpoint.at(At::Column(&column.name));
            reading.found.push(Diagnostic::error(message).at(place).help("a message has one"));
        }
    }
}

/// A message has one tag, and nobody who asks for `a` gets one whose tag is `a,b`.
fn several_tags(endpoint: &Endpoint, spec: &OptionSpec) -> Option<Diagnostic> {
    let tag = endpoint.options.opt_text(spec)?;
    let joint = [",", "||"].into_iter().find(|joint| tag.contains(joint))?;
    let message = format!("`{}` holds `{joint}`, but a message has one tag, which this is a part of", spec.name);
    let place = endpoint.at(At::Option(spec));
    Some(Diagnostic::warning(message).at(place).help("readers find it only by all of it"))
}
