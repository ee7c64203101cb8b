//! Event notifications of Object Storage Service, flattened into one JSON object.
//!
//! The first event of `{"events":[…]}` becomes an object whose names are the paths in camel case:
//! `oss.bucket.name` is `ossBucketName`. Nine columns are documented (eventName, eventSource, eventTime, region,
//! ossBucketName, ossObjectKey, ossObjectSize, responseElementsRequestId, userIdentityPrincipalId); the rule for
//! all others is [inferred] from them.
//!
//! Beyond the rule: an object whose own columns nobody can foresee (such as `oss.xVars`) is there as a whole, too;
//! `oss.ossSchemaVersion` is both `ossOssSchemaVersion` and `ossSchemaVersion`; what some samples nest in `oss` and
//! others do not (region, requestParameters, responseElements, userIdentity, xVars) is found in either place.

use std::{borrow::Cow, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, NaiveDateTime};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

use super::wire;
use crate::{
    definition::Options,
    formats::{Decoded, Decoder, json},
    model::RowsBuilder,
};

/// How a decoder wants timestamps: `json.timestamp-format.standard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampStyle {
    /// `2019-07-16 09:06:01.000`
    #[default]
    Sql,
    /// `2019-07-16T09:06:01.000`
    Iso8601,
}

impl TimestampStyle {
    /// What the json format is told by its options.
    pub fn of(options: &Options) -> Self {
        match options.opt_text(&json::options::TIMESTAMP_FORMAT) {
            Some("ISO-8601") => Self::Iso8601,
            _ => Self::Sql,
        }
    }
}

/// An event as one flat object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flattened {
    /// The object, as JSON text for the json format.
    pub json: Vec<u8>,
    /// Events after the first, which are not in it.
    pub further_events: usize,
}

/// Decodes OSS notifications: flattens, then lets the json format read the flat object.
pub struct OssDecoder {
    json: Box<dyn Decoder>,
    style: TimestampStyle,
}

impl OssDecoder {
    /// `json` decodes the flat object and reads timestamps in `style`.
    pub fn new(json: Box<dyn Decoder>, style: TimestampStyle) -> Self {
        Self { json, style }
    }
}

impl Decoder for OssDecoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        match flatten(body, self.style) {
            Ok(flat) => {
                let decoded = self.json.decode(&flat.json, rows)?;
                let further = u32::try_from(flat.further_events).unwrap_or(u32::MAX);
                Ok(Decoded { unread: decoded.unread.saturating_add(further), ..decoded })
            }
            // The json format decides by its own options what becomes of a body that is no notification.
            Err(reason) => match self.json.decode(b"!", rows) {
                Ok(ignored) => Ok(ignored),
                Err(_) => Err(format!("not an OSS notification: {reason}")),
            },
        }
    }
}

/// Objects that every event has: their members are columns, they themselves are not.
const STRUCTURE: [&str; 7] =
    ["oss", "bucket", "object", "objectMeta", "requestParameters", "responseElements", "userIdentity"];
/// Members that stand in `oss` in some samples and beside it in others.
const EITHER_PLACE: [&str; 5] = ["region", "requestParameters", "responseElements", "userIdentity", "xVars"];
/// An envelope in an envelope in an envelope is a mistake or an attack.
const MOST_ENVELOPES: u8 = 3;
/// Deeper objects than any event's are left whole.
const MOST_LEVELS: u8 = 16;

/// Flattens the first event of a body.
///
/// The body may also be the JSON or XML envelope of a topic's subscription, whose `Message` is the notification,
/// plain or in base64. `eventTime` is converted to UTC, all other values keep their text. The error says what is
/// wrong, without the body.
pub fn flatten(body: &[u8], style: TimestampStyle) -> Result<Flattened, String> {
    let events = events_of(body, 0)?;
    let events: Vec<&RawValue> =
        serde_json::from_str(&events).map_err(|error| format!("`events` is not an array: {error}"))?;
    let first = *events.first().ok_or("`events` is empty")?;
    let event = members(first).ok_or("the first event is not an object")?;
    let mut flat = Flat { members: Vec::with_capacity(32), style };
    flat.event(&event);
    let json = serde_json::to_vec(&flat).map_err(|error| error.to_string())?;
    Ok(Flattened { json, further_events: events.len() - 1 })
}

/// The text of the `events` array, taken out of up to [`MOST_ENVELOPES`] envelopes.
fn events_of(body: &[u8], depth: u8) -> Result<String, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("not UTF-8: {error}"))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('<') {
        let message = wire::parse_notification(text.as_bytes()).map_err(|error| error.to_string())?;
        return unwrap_message(&message, depth);
    }
    let whole: Object<'_> = serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
    if let Some(events) = whole.get("events") {
        return Ok(events.get().to_owned());
    }
    let message = whole.get("Message").ok_or("there is no `events`")?;
    let message: String = serde_json::from_str(message.get()).map_err(|_| "`Message` is not a text".to_owned())?;
    unwrap_message(&message, depth)
}

fn unwrap_message(message: &str, depth: u8) -> Result<String, String> {
    if depth >= MOST_ENVELOPES {
        return Err("too many envelopes around the events".into());
    }
    match STANDARD.decode(message.trim()) {
        Ok(decoded) => events_of(&decoded, depth + 1),
        Err(_) => events_of(message.as_bytes(), depth + 1),
    }
}

/// The members of a JSON object in their order; of a name that stands twice, both.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The last member of the name: what a JSON reader takes.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(found, _)| found == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A name that borrows from the text unless it holds an escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn members<'a>(value: &'a RawValue) -> Option<Object<'a>> {
    if value.get().starts_with('{') { serde_json::from_str(value.get()).ok() } else { None }
}

/// The flat object while it grows.
struct Flat<'a> {
    members: Vec<(String, Value<'a>)>,
    style: TimestampStyle,
}

enum Value<'a> {
    AsIs(&'a RawValue),
    Text(String),
}

impl<'a> Flat<'a> {
    fn event(&mut self, event: &Object<'a>) {
        for (name, value) in &event.0 {
            self.add(name, name, value, MOST_LEVELS);
        }
        let Some(oss) = event.get("oss").and_then(members) else { return };
        for name in EITHER_PLACE {
            if let (Some(value), None) = (oss.get(name), event.get(name)) {
                self.add(name, name, value, MOST_LEVELS);
            }
        }
        if let (None, Some(variables)) = (oss.get("xVars"), event.get("xVars")) {
            self.add("ossXVars", "xVars", variables, MOST_LEVELS);
        }
        if let Some(version) = oss.get("ossSchemaVersion") {
            self.members.push(("ossSchemaVersion".into(), Value::AsIs(version)));
        }
    }

    /// Adds the value at `path` (already joined) whose own name is `name`, and what is in it.
    fn add(&mut self, path: &str, name: &str, value: &'a RawValue, levels: u8) {
        let inside = if levels == 0 { None } else { members(value) };
        let Some(inside) = inside else {
            let value = if path == "eventTime" { self.event_time(value) } else { Value::AsIs(value) };
            self.members.push((path.to_owned(), value));
            return;
        };
        if !STRUCTURE.contains(&name) {
            self.members.push((path.to_owned(), Value::AsIs(value)));
        }
        for (name, value) in &inside.0 {
            let mut path = path.to_owned();
            let mut characters = name.chars();
            path.extend(characters.next().into_iter().flat_map(char::to_uppercase));
            path.push_str(characters.as_str());
            self.add(&path, name, value, levels - 1);
        }
    }

    /// A time the decoder can read, in UTC; a text that is no time stays as it is, for the decoder to refuse.
    fn event_time(&self, value: &'a RawValue) -> Value<'a> {
        let text = serde_json::from_str::<Cow<'_, str>>(value.get()).ok();
        let time = text.and_then(|text| {
            let text = text.trim();
            let zoned = DateTime::parse_from_rfc3339(text).map(|time| time.naive_utc());
            zoned.or_else(|_| text.parse::<NaiveDateTime>()).ok()
        });
        let form = match self.style {
            TimestampStyle::Sql => "%Y-%m-%d %H:%M:%S%.3f",
            TimestampStyle::Iso8601 => "%Y-%m-%dT%H:%M:%S%.3f",
        };
        time.map_or(Value::AsIs(value), |time| Value::Text(time.format(form).to_string()))
    }
}

impl Serialize for Flat<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in &self.members {
            match value {
                Value::AsIs(value) => map.serialize_entry(name, value)?,
                Value::Text(text) => map.serialize_entry(name, text)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field of an event that any source shows, with values of our own.
    const EVENT: &str = r#"{"eventName":"ObjectCreated:PutObject","eventSource":"acs:oss",
        "eventTime":"2026-01-15T16:30:00.250+08:00","eventVersion":"1.0","region":"cn-hangzhou",
        "oss":{"bucket":{"arn":"acs:oss:cn-hangzhou:1:b","name":"b","ownerIdentity":"1","virtualBucket":""},
          "object":{"key":"a b/\u4e16.jpg","size":115,"deltaSize":-7,"eTag":"AB","position":12345678901234567890123,
            "readFrom":0,"readTo":1.50,"objectMeta":{"mimeType":"image/jpeg"}},
          "ossSchemaVersion":"1.0","ruleId":"r","xVars":{"x:who":"me","x:n":{"d":1}}},
        "requestParameters":{"sourceIPAddress":"192.0.2.1"},"responseElements":{"requestId":"R"},
        "userIdentity":{"principalId":"P"}}"#;

    fn flat(body: &str) -> String {
        String::from_utf8(flatten(body.as_bytes(), TimestampStyle::Sql).expect("flattens").json).expect("UTF-8")
    }

    fn events(event: &str) -> String {
        format!("{{\"events\":[{event}]}}")
    }

    #[test]
    fn every_field_of_an_event_becomes_a_column_by_the_rule() {
        let expected = [
            r#""eventName":"ObjectCreated:PutObject""#,
            r#""eventSource":"acs:oss""#,
            r#""eventTime":"2026-01-15 08:30:00.250""#,
            r#""eventVersion":"1.0""#,
            r#""region":"cn-hangzhou""#,
            r#""ossBucketArn":"acs:oss:cn-hangzhou:1:b""#,
            r#""ossBucketName":"b""#,
            r#""ossBucketOwnerIdentity":"1""#,
            r#""ossBucketVirtualBucket":"""#,
            r#""ossObjectKey":"a b/\u4e16.jpg""#,
            r#""ossObjectSize":115"#,
            r#""ossObjectDeltaSize":-7"#,
            r#""ossObjectETag":"AB""#,
            r#""ossObjectPosition":12345678901234567890123"#,
            r#""ossObjectReadFrom":0"#,
            r#""ossObjectReadTo":1.50"#,
            r#""ossObjectObjectMetaMimeType":"image/jpeg""#,
            r#""ossOssSchemaVersion":"1.0""#,
            r#""ossRuleId":"r""#,
            r#""ossXVars":{"x:who":"me","x:n":{"d":1}}"#,
            r#""ossXVarsX:who":"me""#,
            r#""ossXVarsX:n":{"d":1}"#,
            r#""ossXVarsX:nD":1"#,
            r#""requestParametersSourceIPAddress":"192.0.2.1""#,
            r#""responseElementsRequestId":"R""#,
            r#""userIdentityPrincipalId":"P""#,
            r#""xVars":{"x:who":"me","x:n":{"d":1}}"#,
            r#""xVarsX:who":"me""#,
            r#""xVarsX:n":{"d":1}"#,
            r#""xVarsX:nD":1"#,
            r#""ossSchemaVersion":"1.0""#,
        ];
        assert_eq!(flat(&events(EVENT)), format!("{{{}}}", expected.join(",")));
    }

    #[test]
    fn what_is_nested_in_oss_is_found_as_if_beside_it_and_the_other_way_round() {
        let nested = flat(&events(
            r#"{"oss":{"region":"r","userIdentity":{"principalId":"P"},"requestParameters":{"sourceIPAddress":"I"},
                "responseElements":{"requestId":"R"}},"xVars":{"x:a":"1"}}"#,
        ));
        for part in [
            r#""region":"r""#,
            r#""userIdentityPrincipalId":"P""#,
            r#""requestParametersSourceIPAddress":"I""#,
            r#""responseElementsRequestId":"R""#,
            r#""ossXVars":{"x:a":"1"}"#,
        ] {
            assert!(nested.contains(part), "{part} in {nested}");
        }
        let both = flat(&events(r#"{"region":"outer","oss":{"region":"inner"}}"#));
        assert_eq!(both, r#"{"region":"outer","ossRegion":"inner"}"#);
    }

    #[test]
    fn times_become_utc_in_the_decoders_style_and_other_texts_stay() {
        let time = |text: &str| flat(&events(&format!(r#"{{"eventTime":{text}}}"#)));
        assert_eq!(time(r#""2019-07-16T09:06:01.000Z""#), r#"{"eventTime":"2019-07-16 09:06:01.000"}"#);
        assert_eq!(time(r#""2019-07-16T09:06:01""#), r#"{"eventTime":"2019-07-16 09:06:01.000"}"#);
        assert_eq!(time(r#""yesterday""#), r#"{"eventTime":"yesterday"}"#);
        assert_eq!(time("5"), r#"{"eventTime":5}"#);
        let body = events(r#"{"eventTime":"2019-07-16T09:06:01Z"}"#);
        let iso = flatten(body.as_bytes(), TimestampStyle::Iso8601).expect("flattens");
        assert_eq!(iso.json, br#"{"eventTime":"2019-07-16T09:06:01.000"}"#);
    }

    #[test]
    fn further_events_are_counted() {
        let two = flatten(br#"{"events":[{"a":1},{"a":2},{"a":3}]}"#, TimestampStyle::Sql).expect("flattens");
        assert_eq!((two.json.as_slice(), two.further_events), (br#"{"a":1}"#.as_slice(), 2));
    }

    #[test]
    fn envelopes_of_a_subscription_are_opened() {
        let inner = events(r#"{"a":1}"#);
        let encoded = STANDARD.encode(&inner);
        let quoted = serde_json::to_string(&inner).expect("text");
        for body in [
            format!(r#"{{"TopicName":"t","Message":"{encoded}"}}"#),
            format!(r#"{{"TopicName":"t","Message":{quoted}}}"#),
            format!("<?xml version=\"1.0\"?><Notification><Message>{encoded}</Message></Notification>"),
            format!("<Notification xmlns='x'><Message>{inner}</Message></Notification>"),
        ] {
            assert_eq!(flat(&body), r#"{"a":1}"#, "{body}");
        }
    }

    #[test]
    fn what_is_no_notification_says_why() {
        let cases = [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "no `events`"),
            (r#"{"events":{}}"#, "not an array"),
            (r#"{"events":[]}"#, "empty"),
            (r#"{"events":[1]}"#, "not an object"),
            (r#"{"events":[{}]"#, "not a JSON object"),
            ("<a/>", "Message"),
        ];
        for (body, reason) in cases {
            let error = flatten(body.as_bytes(), TimestampStyle::Sql).expect_err(body);
            assert!(error.contains(reason), "{body}: {error}");
        }
    }
}
