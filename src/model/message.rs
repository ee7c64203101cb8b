//! A message as a reader hands it on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};

use super::LogicalType;

/// One message received from a source.
#[derive(Debug, Clone)]
pub struct Message {
    /// The service's id of the message; the same at every delivery.
    pub id: Arc<str>,
    /// The body, with the transport's own encoding (base64) already removed.
    pub body: Body,
    /// Values of the connector's metadata columns, in the order in which the connector declares them.
    pub meta: Vec<MetaValue>,
    /// What acknowledges this delivery; none where the source is acknowledged by position.
    pub receipt: Option<Receipt>,
}

/// What a message carries.
#[derive(Debug, Clone)]
pub enum Body {
    /// Bytes for the format.
    Bytes(Bytes),
    /// One row of what these bytes decode to, by its number from 0; what becomes of the others is settled already.
    Row(Bytes, u32),
    /// The transport's encoding is broken. An `on_error` case like a body that does not decode.
    Broken {
        /// Why.
        reason: String,
        /// The body as the service gave it.
        received: Bytes,
    },
    /// Left out by an option of the source (such as `startTimeMs`), which it names: no row, but acknowledged and counted.
    Filtered(&'static str),
}

impl Body {
    /// The bytes it holds.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Bytes(body) | Self::Row(body, _) | Self::Broken { received: body, .. } => body.clone(),
            Self::Filtered(_) => Bytes::new(),
        }
    }

    /// How many bytes it holds.
    pub fn size(&self) -> usize {
        match self {
            Self::Bytes(body) | Self::Row(body, _) | Self::Broken { received: body, .. } => body.len(),
            Self::Filtered(_) => 0,
        }
    }
}

/// A value of a metadata column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetaValue {
    /// STRING
    Text(Arc<str>),
    /// INT or BIGINT
    Integer(i64),
    /// TIMESTAMP or TIMESTAMP_LTZ: milliseconds since the epoch, UTC
    Millis(i64),
    /// MAP<STRING, STRING>
    Map(Arc<BTreeMap<String, String>>),
    /// No value.
    Null,
}

impl MetaValue {
    /// As a text from which [`MetaValue::of_text`] reads it again, a map as a JSON object; `None` for no value.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.to_string()),
            Self::Integer(number) => Some(number.to_string()),
            // What is outside the calendar stays a number, which is read again too.
            Self::Millis(millis) => Some(
                DateTime::<Utc>::from_timestamp_millis(*millis)
                    .map_or_else(|| millis.to_string(), |at| at.to_rfc3339_opts(SecondsFormat::Millis, true)),
            ),
            Self::Map(map) => {
                let map = map.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
                Some(serde_json::Value::Object(map.collect()).to_string())
            }
            Self::Null => None,
        }
    }

    /// Reads a value that was declared with a type; `None`: it is none of that type.
    pub fn of_text(declared: &LogicalType, text: &str) -> Option<Self> {
        match declared {
            LogicalType::Timestamp(_) | LogicalType::TimestampLtz(_) => {
                let millis = DateTime::parse_from_rfc3339(text).map(|at| at.timestamp_millis());
                millis.ok().or_else(|| text.parse().ok()).map(Self::Millis)
            }
            LogicalType::TinyInt | LogicalType::SmallInt | LogicalType::Int | LogicalType::BigInt => {
                text.parse().ok().map(Self::Integer)
            }
            LogicalType::Map(..) => serde_json::from_str(text).ok().map(Arc::new).map(Self::Map),
            _ => Some(Self::Text(text.into())),
        }
    }
}

/// What the service wants back to acknowledge one delivery of a message ("receipt handle").
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The service's opaque handle.
    pub handle: Arc<str>,
    /// When the service will deliver the message again: epoch milliseconds by the *service's* clock.
    pub next_visible_ms: i64,
    /// How often the message has been delivered, this delivery included; at least 1.
    pub dequeue_count: u32,
    /// How long, from the moment the answer came in, this delivery stays invisible to others.
    pub invisible_for: Duration,
}

impl Receipt {
    /// Whether `self` supersedes `other` for the same message. Concurrent polls may answer out of order, so
    /// the later visibility wins, then the higher dequeue count.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.next_visible_ms, self.dequeue_count) > (other.next_visible_ms, other.dequeue_count)
    }
}

/// A handle allows a message to be deleted, so it is not shown.
impl std::fmt::Debug for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receipt")
            .field("next_visible_ms", &self.next_visible_ms)
            .field("dequeue_count", &self.dequeue_count)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ColumnType;

    #[test]
    fn metadata_comes_back_from_its_text_as_it_was() {
        let text = || Box::new(ColumnType { logical: LogicalType::VarChar(None), nullable: true });
        let texts = LogicalType::Map(text(), text());
        let map = [("b", "2\n\"quoted\""), ("a", ""), ("", "\u{1}")];
        let map = map.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        for (declared, value) in [
            (LogicalType::VarChar(None), MetaValue::Text("2026-11-30".into())),
            (LogicalType::Int, MetaValue::Integer(-7)),
            (LogicalType::TimestampLtz(3), MetaValue::Millis(1_767_225_600_123)),
            (LogicalType::TimestampLtz(3), MetaValue::Millis(i64::MAX)),
            (texts.clone(), MetaValue::Map(Arc::new(map))),
            (texts, MetaValue::Map(Arc::default())),
        ] {
            let text = value.to_text().unwrap();
            assert_eq!(MetaValue::of_text(&declared, &text), Some(value), "{text}");
        }
        assert_eq!(MetaValue::of_text(&LogicalType::Int, "x"), None);
        assert_eq!(MetaValue::Null.to_text(), None);
    }
}
