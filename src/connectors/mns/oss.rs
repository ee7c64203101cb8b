//! Event notifications of Object Storage Service, flattened into JSON objects.
//!
//! An event of `{"events":[…]}` becomes an object whose names are the paths in camel case:
//! `oss.bucket.name` is `ossBucketName`. Nine columns are documented (eventName, eventSource, eventTime, region,
//! ossBucketName, ossObjectKey, ossObjectSize, responseElementsRequestId, userIdentityPrincipalId); the rule for
//! all others is [inferred] from them.
//!
//! Beyond the rule: an object whose own columns nobody can foresee (such as `oss.xVars`) is there as a whole, too;
//! `oss.ossSchemaVersion` is both `ossOssSchemaVersion` and `ossSchemaVersion`; what some samples nest in `oss` and
//! others do not (region, requestParameters, responseElements, userIdentity, xVars) is found in either place.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDateTime};
use serde::{Serialize, ser::SerializeMap};
use serde_json::value::RawValue;

use super::{
    object::{Object, members},
    options,
};
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

/// Which events of a notification become rows: `oss.events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Events {
    /// The first, as in Flink; the others are counted as unread.
    #[default]
    First,
    /// Each, as a row of its own.
    All,
}

impl Events {
    /// What the source's options say.
    pub fn of(options: &Options) -> Self {
        if options.text(&options::OSS_EVENTS) == "all" { Self::All } else { Self::First }
    }
}

/// Decodes OSS notifications: flattens, then lets the json format read the flat objects.
pub struct OssDecoder {
    json: Box<dyn Decoder>,
    style: TimestampStyle,
    events: Events,
}

impl OssDecoder {
    /// `json` decodes the flat objects and reads timestamps in `style`.
    pub fn new(json: Box<dyn Decoder>, style: TimestampStyle, events: Events) -> Self {
        Self { json, style, events }
    }

    fn decode_flat(&mut self, flat: Result<Vec<u8>, String>, rows: &mut RowsBuilder) -> Result<Decoded, String> {
        match flat {
            Ok(flat) => self.json.decode(&flat, rows),
            // The json format decides by its own options what becomes of a body that is no notification.
            Err(reason) => match self.json.decode(b"!", rows) {
                Ok(ignored) => Ok(ignored),
                Err(_) => Err(format!("not an OSS notification: {reason}")),
            },
        }
    }
}

impl Decoder for OssDecoder {
    fn decode(&mut self, body: &[u8], rows: &mut RowsBuilder) -> Result<Decoded, String> {
        let events = match events_of(body) {
            Ok(events) => events,
            Err(reason) => return self.decode_flat(Err(reason), rows),
        };
        let read = match self.events {
            Events::First => 1,
            Events::All => events.len(),
        };
        let before = rows.rows();
        let mut sum = Decoded { unread: u32::try_from(events.len() - read).unwrap_or(u32::MAX), ..Decoded::default() };
        for (number, event) in events.iter().take(read).enumerate() {
            let flat = flatten(event, self.style);
            match self.decode_flat(flat, rows) {
                Ok(one) => {
                    sum.rows += one.rows;
                    sum.nulled_fields = sum.nulled_fields.saturating_add(one.nulled_fields);
                    sum.unread = sum.unread.saturating_add(one.unread);
                    sum.dropped |= one.dropped;
                }
                // A message is written whole or not at all, or its delete would lose the rest.
                Err(reason) => {
                    rows.truncate(before);
                    return Err(if read > 1 { format!("event {} of {read}: {reason}", number + 1) } else { reason });
                }
            }
        }
        Ok(sum)
    }
}

/// Objects that every event has: their members are columns, they themselves are not.
const STRUCTURE: [&str; 7] =
    ["oss", "bucket", "object", "objectMeta", "requestParameters", "responseElements", "userIdentity"];
/// Members that stand in `oss` in some samples and beside it in others.
const EITHER_PLACE: [&str; 5] = ["region", "requestParameters", "responseElements", "userIdentity", "xVars"];
/// Deeper objects than any event's are left whole.
const MOST_LEVELS: u8 = 16;

/// Flattens an event. `eventTime` is converted to UTC, all other values keep their text. The error says what is
/// wrong, without the event.
pub fn flatten(event: &RawValue, style: TimestampStyle) -> Result<Vec<u8>, String> {
    let event = members(event).ok_or("the event is not an object")?;
    let mut flat = Flat { members: Vec::with_capacity(32), style };
    flat.event(&event);
    serde_json::to_vec(&flat).map_err(|error| error.to_string())
}

/// The events of a notification, at least one. The error says what is wrong, without the body.
pub fn events_of(body: &[u8]) -> Result<Vec<&RawValue>, String> {
    let text = simdutf8::compat::from_utf8(body).map_err(|error| format!("not UTF-8: {error}"))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    let whole: Object<'_> = serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
    let Some(events) = whole.get("events") else {
        return Err(match whole.get("Message") {
            Some(_) => "there is no `events`; is it a topic's envelope, and `topicEnvelope` does not open it?".into(),
            None => "there is no `events`".into(),
        });
    };
    let events: Vec<&RawValue> =
        serde_json::from_str(events.get()).map_err(|error| format!("`events` is not an array: {error}"))?;
    if events.is_empty() { Err("`events` is empty".into()) } else { Ok(events) }
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
    use crate::{
        definition::OptionValue,
        model::{Column, ColumnType, Schema},
    };

    /// Every field of an event that any source shows, with values of our own.
    const EVENT: &str = r#"{"eventName":"ObjectCreated:PutObject","eventSource":"acs:oss",
        "eventTime":"2026-01-15T16:30:00.250+08:00","eventVersion":"1.0","region":"cn-hangzhou",
        "oss":{"bucket":{"arn":"acs:oss:cn-hangzhou:1:b","name":"b","ownerIdentity":"1","virtualBucket":""},
          "object":{"key":"a b/\u4e16.jpg","size":115,"deltaSize":-7,"eTag":"AB","position":12345678901234567890123,
            "readFrom":0,"readTo":1.50,"objectMeta":{"mimeType":"image/jpeg"}},
          "ossSchemaVersion":"1.0","ruleId":"r","xVars":{"x:who":"me","x:n":{"d":1}}},
        "requestParameters":{"sourceIPAddress":"192.0.2.1"},"responseElements":{"requestId":"R"},
        "userIdentity":{"principalId":"P"}}"#;

    fn flat_in(body: &str, style: TimestampStyle) -> String {
        let events = events_of(body.as_bytes()).expect("a notification");
        String::from_utf8(flatten(events[0], style).expect("flattens")).expect("UTF-8")
    }

    fn flat(body: &str) -> String {
        flat_in(body, TimestampStyle::Sql)
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
        assert_eq!(flat_in(&body, TimestampStyle::Iso8601), r#"{"eventTime":"2019-07-16T09:06:01.000"}"#);
    }

    /// A decoder of `a BIGINT` with a metadata column before it, and rows to fill.
    fn decoder(events: Events, ignore: bool) -> (OssDecoder, RowsBuilder) {
        let column = |name: &str, metadata: Option<&str>| Column {
            name: name.into(),
            ty: ColumnType::parse("BIGINT").expect("a type"),
            metadata: metadata.map(str::to_owned),
            is_virtual: false,
        };
        let schema = Schema { columns: vec![column("m", Some("priority")), column("a", None)] };
        let mut options = Options::default();
        options.insert(&json::options::IGNORE_PARSE_ERRORS, OptionValue::Boolean(ignore));
        let plain = crate::formats::decoder("json", &schema, &options).expect("a decoder");
        (OssDecoder::new(plain, TimestampStyle::Sql, events), RowsBuilder::new(&schema))
    }

    /// What became of a body, and the rows that column `a` then has.
    fn decoded(events: Events, ignore: bool, body: &str) -> (Result<Decoded, String>, usize) {
        let (mut decoder, mut rows) = decoder(events, ignore);
        let decoded = decoder.decode(body.as_bytes(), &mut rows);
        (decoded, rows.columns()[1].len())
    }

    const THREE: &str = r#"{"events":[{"a":1},{"a":2},{"a":3}]}"#;

    #[test]
    fn the_first_event_is_a_row_and_the_others_are_counted_or_every_event_is_a_row() {
        let first = Decoded { rows: 1, unread: 2, ..Decoded::default() };
        assert_eq!(decoded(Events::First, false, THREE), (Ok(first), 1));
        let all = Decoded { rows: 3, ..Decoded::default() };
        assert_eq!(decoded(Events::All, false, THREE), (Ok(all), 3));
    }

    #[test]
    fn a_bad_event_among_several_rejects_the_message_whole_or_is_dropped_alone_where_the_format_ignores_errors() {
        for bad in ["5", r#"{"a":{}}"#] {
            let body = format!(r#"{{"events":[{{"a":1}},{bad},{{"a":3}}]}}"#);
            let (result, rows) = decoded(Events::All, false, &body);
            assert!(result.clone().expect_err(bad).starts_with("event 2 of 3: "), "{result:?}");
            assert_eq!(rows, 0, "nothing is left of the first");
        }
        let (result, rows) = decoded(Events::All, true, r#"{"events":[{"a":1},5,{"a":3}]}"#);
        assert_eq!((result, rows), (Ok(Decoded { rows: 2, dropped: true, ..Decoded::default() }), 2));
    }

    #[test]
    fn what_is_no_notification_says_why() {
        let cases = [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "no `events`"),
            (r#"{"Message":"{}"}"#, "`topicEnvelope`"),
            (r#"{"events":{}}"#, "not an array"),
            (r#"{"events":[]}"#, "empty"),
            (r#"{"events":[1]}"#, "not an object"),
            (r#"{"events":[{}]"#, "not a JSON object"),
            ("<a/>", "not a JSON object"),
        ];
        for (body, reason) in cases {
            let (result, rows) = decoded(Events::First, false, body);
            let error = result.expect_err(body);
            assert!(error.contains(reason), "{body}: {error}");
            assert_eq!((rows, decoded(Events::First, true, body).0.map(|decoded| decoded.rows)), (0, Ok(0)), "{body}");
        }
    }
}
