//! What a topic wraps around a message that it delivers to a queue.
//!
//! By its subscription's NotifyContentFormat that is an XML element, a JSON object of the same names, or nothing
//! (SIMPLIFIED). Nothing on the queue's wire tells which, so a body is judged by its content. Names and order are
//! from recordings and documents of the service; that no other field can be in an envelope is [inferred].

use bytes::Bytes;

use super::{
    body::{self, BodyEncoding},
    object::Object,
    wire,
};
use crate::model::Body;

/// Every envelope has these.
const FIELDS: [&str; 8] =
    ["TopicOwner", "TopicName", "Subscriber", "SubscriptionName", "MessageId", "Message", "MessageMD5", "PublishTime"];
/// It is there if the publisher gave one.
const TAG: &str = "MessageTag";
/// Where the payload is.
const PAYLOAD: &str = "Message";

/// The option `topicEnvelope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopicEnvelope {
    /// Opened if it has exactly the fields of an envelope, each once, all of them texts. A body of a user's own that
    /// only resembles one stays as it is.
    Auto,
    /// Bodies are never opened.
    None,
    /// Every body is one, whatever else is in it; one that is not is broken.
    Xml,
    /// The same.
    Json,
}

/// The body as the format gets it: without its envelope, and decoded as `encoding` says.
///
/// The service wraps what was published as it is, so the encoding is the payload's. Bodies whose envelope is itself
/// base64 are known from no source; they are opened too, since a sender in between may encode whatever it forwards.
pub(super) fn payload(envelope: TopicEnvelope, encoding: BodyEncoding, text: String) -> Body {
    if envelope == TopicEnvelope::None {
        return body::decode(encoding, text);
    }
    if let Some(message) = envelope.open(&text) {
        return as_received(body::decode(encoding, message), Some(text));
    }
    if envelope == TopicEnvelope::Auto && begins_like_one(&text) {
        // Neither character is of base64, so decoding would find nothing new to look into.
        return body::decode(encoding, text);
    }
    // Only these can find that something is broken.
    let strict = encoding == BodyEncoding::Base64 || envelope != TopicEnvelope::Auto;
    let received = strict.then(|| text.clone());
    let decoded = body::decode(encoding, text);
    let Body::Bytes(bytes) = &decoded else { return decoded };
    let opened = match simdutf8::basic::from_utf8(bytes).ok().and_then(|text| envelope.open(text)) {
        Some(message) => body::decode(encoding, message),
        None => match envelope {
            TopicEnvelope::Auto | TopicEnvelope::None => decoded,
            TopicEnvelope::Xml => broken("no element `Notification` with a `Message` in it (topicEnvelope: xml)"),
            TopicEnvelope::Json => broken("no JSON object with a text `Message` in it (topicEnvelope: json)"),
        },
    };
    as_received(opened, received)
}

/// What is broken inside of an envelope is kept with it.
fn as_received(body: Body, text: Option<String>) -> Body {
    match (body, text) {
        (Body::Broken { reason, .. }, Some(text)) => Body::Broken { reason, received: Bytes::from(text) },
        (body, _) => body,
    }
}

fn broken(what: &str) -> Body {
    Body::Broken { reason: format!("the body is not the envelope of a topic: {what}"), received: Bytes::new() }
}

fn begins_like_one(text: &str) -> bool {
    inside(text).starts_with(['{', '<'])
}

fn inside(text: &str) -> &str {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
}

impl TopicEnvelope {
    /// The payload; `None`: this is no envelope.
    fn open(self, text: &str) -> Option<String> {
        let text = inside(text);
        // Looked for first, since most bodies are none and need not be read twice.
        let is_likely = || memchr::memmem::find(text.as_bytes(), b"SubscriptionName").is_some();
        match self {
            Self::Auto if text.starts_with('<') && is_likely() => open_xml(text, true),
            Self::Auto if text.starts_with('{') && is_likely() => open_json(text, true),
            Self::Xml => open_xml(text, false),
            Self::Json => open_json(text, false),
            Self::Auto | Self::None => None,
        }
    }
}

fn open_xml(text: &str, exact: bool) -> Option<String> {
    let mut elements = wire::parse_notification(text.as_bytes()).ok()?;
    if exact && !is_exact(elements.iter().map(|(name, _)| name.as_str())) {
        return None;
    }
    let at = elements.iter().position(|(name, _)| name == PAYLOAD)?;
    Some(elements.swap_remove(at).1)
}

fn open_json(text: &str, exact: bool) -> Option<String> {
    let object: Object<'_> = serde_json::from_str(text).ok()?;
    if exact {
        // PublishTime is a text in the recording, but it is a number of milliseconds that others may write as one.
        let is_scalar = |(name, value): &(_, &serde_json::value::RawValue)| {
            value.get().starts_with('"') || (name == "PublishTime" && value.get().parse::<u64>().is_ok())
        };
        if !object.0.iter().all(is_scalar) || !is_exact(object.0.iter().map(|(name, _)| name.as_ref())) {
            return None;
        }
    }
    serde_json::from_str(object.get(PAYLOAD)?.get()).ok()
}

/// Whether these are the fields of an envelope: each once, the tag or not, and no other.
fn is_exact<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = [false; FIELDS.len() + 1];
    for name in names {
        let at = if name == TAG { Some(FIELDS.len()) } else { FIELDS.iter().position(|field| *field == name) };
        match at.and_then(|at| seen.get_mut(at)) {
            Some(seen) if !*seen => *seen = true,
            _ => return false,
        }
    }
    seen.iter().take(FIELDS.len()).all(|seen| *seen)
}

#[cfg(test)]
mod tests {
    use base64_simd::STANDARD;

    use super::{super::body::Expected, *};

    const AUTO: BodyEncoding = BodyEncoding::Auto(Expected::Json);

    fn opened(envelope: TopicEnvelope, encoding: BodyEncoding, text: &str) -> Result<String, String> {
        match payload(envelope, encoding, text.into()) {
            Body::Bytes(bytes) => Ok(String::from_utf8(bytes.to_vec()).expect("UTF-8")),
            Body::Broken { reason, received } => {
                assert_eq!(received, text, "it is kept as it came");
                Err(reason)
            }
            other => panic!("{other:?}"),
        }
    }

    /// An envelope in the order of a recording.
    fn json(message: &str) -> String {
        let message = serde_json::to_string(message).expect("text");
        format!(
            r#"{{"TopicOwner":"1","Message":{message},"Subscriber":"1","PublishTime":"1768465800000","SubscriptionName":"s","MessageMD5":"AB","TopicName":"t","MessageId":"0F"}}"#
        )
    }

    fn xml(message: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Notification xmlns=\"http://mns.aliyuncs.com/doc/v1/\">\n  \
             <TopicOwner>1</TopicOwner><TopicName>t</TopicName><Subscriber>1</Subscriber>\
             <SubscriptionName>s</SubscriptionName><MessageId>0F</MessageId><Message>{}</Message>\
             <MessageMD5>AB</MessageMD5><MessageTag>x</MessageTag><PublishTime>1768465800000</PublishTime>\n\
             </Notification>",
            wire::escape(message)
        )
    }

    #[test]
    fn every_form_of_a_delivery_yields_what_was_published_plain_or_encoded() {
        let published = r#" {"a":"<&>\n世"} "#;
        let encoded = STANDARD.encode_to_string(published);
        for body in [
            published.to_owned(),
            encoded.clone(),
            json(published),
            json(&encoded),
            xml(published),
            xml(&encoded),
            format!("\u{feff}\n{}", xml(&encoded)),
            STANDARD.encode_to_string(json(published)),
            STANDARD.encode_to_string(xml(&encoded)),
        ] {
            assert_eq!(opened(TopicEnvelope::Auto, AUTO, &body).as_deref(), Ok(published), "{body}");
        }
    }

    #[test]
    fn a_body_that_only_resembles_an_envelope_stays_as_it_is() {
        let envelope = json("{}");
        let alike = [
            r#"{"Message":"{}"}"#.to_owned(),
            r#"{"SubscriptionName":"s","Message":"{}"}"#.to_owned(),
            envelope.replace("\"MessageId\"", "\"messageId\""),
            envelope.replace(r#""TopicOwner":"1","#, ""),
            envelope.replace(r#""TopicOwner":"1","#, r#""TopicOwner":"1","TopicOwner":"2","#),
            envelope.replace(r#""TopicOwner":"1","#, r#""TopicOwner":"1","Extra":"2","#),
            envelope.replace(r#""TopicOwner":"1","#, r#""TopicOwner":1,"#),
            envelope.replace(r#""Message":"{}""#, r#""Message":{}"#),
            envelope.replace(r#""1768465800000""#, "[1]"),
            format!("{envelope} 1"),
            format!("[{envelope}]"),
            xml("{}").replace("Notification", "Notice"),
            xml("{}").replace("MessageMD5", "MessageMd5"),
            xml("{}").replace("<MessageTag>x</MessageTag>", "<MessageTag>x</MessageTag><Extra/>"),
            xml("{}").replace("<MessageId>0F</MessageId>", ""),
        ];
        for body in alike {
            assert_ne!(body, envelope);
            assert_eq!(opened(TopicEnvelope::Auto, AUTO, &body).as_deref(), Ok(body.as_str()));
        }
        let number = envelope.replace(r#""1768465800000""#, "1768465800000");
        assert_eq!(opened(TopicEnvelope::Auto, AUTO, &number).as_deref(), Ok("{}"));
    }

    #[test]
    fn none_opens_nothing_and_a_named_form_refuses_every_other_body() {
        for body in [json("{}"), xml("{}")] {
            assert_eq!(opened(TopicEnvelope::None, AUTO, &body).as_deref(), Ok(body.as_str()));
        }
        // With a field that auto does not know.
        let more = json("{}").replace("{\"TopicOwner\"", "{\"Signature\":{},\"TopicOwner\"");
        assert_eq!(opened(TopicEnvelope::Json, AUTO, &more).as_deref(), Ok("{}"));
        assert_eq!(opened(TopicEnvelope::Xml, AUTO, &xml("{}").replace("0F", "")).as_deref(), Ok("{}"));
        for (envelope, body, told) in [
            (TopicEnvelope::Json, xml("{}"), "topicEnvelope: json"),
            (TopicEnvelope::Json, "{}".into(), "topicEnvelope: json"),
            (TopicEnvelope::Xml, json("{}"), "topicEnvelope: xml"),
            (TopicEnvelope::Xml, String::new(), "topicEnvelope: xml"),
        ] {
            let error = opened(envelope, AUTO, &body).expect_err(&body);
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn the_encoding_is_that_of_the_payload() {
        let encoded = STANDARD.encode_to_string("{}");
        assert_eq!(opened(TopicEnvelope::Auto, BodyEncoding::Plain, &json(&encoded)), Ok(encoded.clone()));
        assert_eq!(opened(TopicEnvelope::Auto, BodyEncoding::Base64, &xml(&encoded)).as_deref(), Ok("{}"));
        let error = opened(TopicEnvelope::Auto, BodyEncoding::Base64, &xml("{}")).expect_err("not base64");
        assert!(error.contains("bodyEncoding: base64"), "{error}");
    }
}
