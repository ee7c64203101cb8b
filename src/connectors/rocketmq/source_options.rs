//! What the options of a source say, read once.

use std::time::Duration;

use super::{
    allocate::{Allocation, Strategy},
    bodies,
    client::{ClientOptions, Filter},
    connection,
    options::{
        ALLOCATE_STRATEGY, COMMIT, DISCOVERY_INTERVAL, FILTER_SQL, FILTER_TAG, INGESTION_TIME, ON_LOST_POSITION,
        PARALLELISM, PARALLELISM_INDEX, PULL_BATCH_SIZE, PULL_WAIT, SOURCE_GROUP, SOURCE_TOPIC,
    },
    reading::Reading,
    startup::{self, Startup},
};
use crate::{
    definition::{Diagnostic, Endpoint},
    model::SourceIdentity,
};

/// What the options of a source say.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Where to connect, and as whom.
    pub client: ClientOptions,
    /// The topics, without their namespace; at least one.
    pub topics: Vec<String>,
    /// The consumer group, without its namespace.
    pub group: String,
    /// Which messages are wanted.
    pub filter: Filter,
    /// Where a queue is read from that has no position yet.
    pub startup: Startup,
    /// Each queue ends before the first message stored at this time or after, in milliseconds since 1970; `None`: it has
    /// no end.
    pub stop_ms: Option<i64>,
    /// Which queues are read here.
    pub allocation: Allocation,
    /// How often queues are asked for.
    pub discovery: Duration,
    /// Most messages of a pull; at least 1.
    pub pull_batch: u32,
    /// How long the broker holds a pull that finds nothing.
    pub pull_wait: Duration,
    /// Whether the broker is told how far the group has read.
    pub commit: bool,
    /// What is done about a position that is gone.
    pub on_lost_position: OnLostPosition,
    /// Whether the metadata `ingestion-time` is when the broker stored a message, and not when it came in here.
    pub ingestion_is_stored: bool,
}

/// `on_lost_position`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLostPosition {
    /// It is a fault that no retry mends.
    Fail,
    /// Reading goes on at the beginning of the queue.
    Earliest,
    /// Reading goes on at its end.
    Latest,
}

impl SourceOptions {
    /// Reads them.
    ///
    /// # Errors
    /// Everything in which they contradict each other, or that the table of options cannot check.
    pub fn read(endpoint: &Endpoint) -> Result<Self, Vec<Diagnostic>> {
        let mut reading = Reading::new(endpoint);
        let zone = startup::zone(&mut reading);
        let startup = startup::startup(&mut reading, zone);
        bodies::check(&mut reading);
        let options = &endpoint.options;
        let read = Self {
            client: connection::client(&mut reading),
            topics: connection::topics(&mut reading, &SOURCE_TOPIC),
            group: connection::group(&mut reading, &SOURCE_GROUP),
            filter: filter(&mut reading),
            startup,
            stop_ms: startup::stop(&mut reading, startup, zone),
            allocation: allocation(&mut reading),
            discovery: connection::millis(&reading, &DISCOVERY_INTERVAL),
            pull_batch: reading.count(&PULL_BATCH_SIZE),
            pull_wait: options.duration(&PULL_WAIT),
            commit: options.boolean(&COMMIT),
            on_lost_position: match options.text(&ON_LOST_POSITION) {
                "earliest" => OnLostPosition::Earliest,
                "latest" => OnLostPosition::Latest,
                _ => OnLostPosition::Fail,
            },
            ingestion_is_stored: options.text(&INGESTION_TIME) == "stored",
        };
        reading.done(read)
    }

    /// What is read, without its topics: another topic makes no other source, for positions are kept by queue.
    pub fn identity(&self) -> SourceIdentity {
        SourceIdentity(format!("rocketmq {} group {}", connection::name(&self.client), self.group))
    }

    /// The topics as a sink's identity names what it writes to.
    pub fn names_of_topics(&self) -> Vec<String> {
        let service = connection::name(&self.client);
        self.topics.iter().map(|topic| format!("{service} topic {topic}")).collect()
    }

    /// What no other pipeline may read: each topic, of several processes the share of this one.
    pub fn claims(&self) -> Vec<SourceIdentity> {
        let Allocation { parallelism, index, .. } = self.allocation;
        // Who reads everything shares it with nobody: two of one group would overwrite each other's offsets.
        let is_shared = self.allocation.is_shared();
        let share = if is_shared { format!(" {index}/{parallelism}") } else { String::new() };
        let identity = self.identity().0;
        self.topics.iter().map(|topic| SourceIdentity(format!("{identity} topic {topic}{share}"))).collect()
    }
}

fn filter(reading: &mut Reading<'_>) -> Filter {
    let tag = reading.text(&FILTER_TAG);
    let tags: Vec<_> = tag.split("||").map(str::trim).collect();
    if let Some(sql) = reading.opt_text(&FILTER_SQL) {
        if tags != ["*"] {
            let message = format!("`{}` and `{}` are both given", FILTER_TAG.name, FILTER_SQL.name);
            reading.error(&FILTER_SQL, message, "give one of them");
        }
        if !is_balanced(sql) {
            reading.refuse(&FILTER_SQL, sql, "a predicate whose parentheses and quotes are balanced", None);
        }
        return Filter::Sql(sql.to_owned());
    }
    if tags == ["*"] {
        return Filter::All;
    }
    if tags.iter().any(|tag| tag.is_empty() || *tag == "*") {
        reading.refuse(&FILTER_TAG, tag, "a tag, or several joined by `||`, or `*` alone for all", None);
    }
    Filter::Tags(tags.into_iter().map(str::to_owned).collect())
}

/// A predicate that closes what it did not open would mean something else inside the parentheses that it is put into to be
/// tried.
fn is_balanced(sql: &str) -> bool {
    let (mut open, mut quoted) = (0_u32, false);
    for character in sql.chars() {
        match character {
            '\'' => quoted = !quoted,
            '(' if !quoted => open += 1,
            ')' if !quoted => match open.checked_sub(1) {
                Some(left) => open = left,
                None => return false,
            },
            _ => {}
        }
    }
    open == 0 && !quoted
}

fn allocation(reading: &mut Reading<'_>) -> Allocation {
    let parallelism = reading.count(&PARALLELISM);
    let index = reading.endpoint.options.opt_integer(&PARALLELISM_INDEX).map(|index| u32::try_from(index).unwrap_or(0));
    let last = parallelism.saturating_sub(1);
    match index {
        None if parallelism > 1 => {
            let message =
                format!("`{}` is {parallelism}, but `{}` is missing", PARALLELISM.name, PARALLELISM_INDEX.name);
            reading.error(&PARALLELISM, message, &format!("say which of them this process is, from 0 to {last}"));
        }
        Some(index) if index >= parallelism => {
            let message = format!("`{}` is {index}, `{}` is {parallelism}", PARALLELISM_INDEX.name, PARALLELISM.name);
            reading.error(&PARALLELISM_INDEX, message, &format!("the index counts from 0, so that the last is {last}"));
        }
        _ => {}
    }
    let strategy = match reading.text(&ALLOCATE_STRATEGY) {
        "average" => Strategy::Average,
        "broadcast" => Strategy::Broadcast,
        _ => Strategy::Hash,
    };
    let allocation = Allocation { strategy, parallelism, index: index.unwrap_or(0) };
    if allocation.is_shared() && !reading.endpoint.options.boolean(&COMMIT) {
        let message = format!("`{}` is off, but `{}` is {parallelism}", COMMIT.name, PARALLELISM.name);
        reading.error(
            &COMMIT,
            message,
            "leave it on: a queue that moves to another process goes on at the group's offset",
        );
    }
    allocation
}
