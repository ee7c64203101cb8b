//! Messages, handles and their outcomes.

use std::fmt::Write;

use super::{
    REQUEST_NAMESPACE, REQUEST_PROLOG, RESPONSE_NAMESPACE, RESPONSE_PROLOG,
    document::{Step, WireError, escape, line, number, tag, walk},
};

/// A message as a receive or peek answers it. Times are epoch milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    /// 32 upper-case hex digits in all recordings; opaque.
    pub id: String,
    /// Upper-case hex MD5 of the body's text. Not to be relied on: with user properties the live service answers
    /// something else, by a formula nobody has published.
    pub body_md5: String,
    /// The body's text as it is on the wire.
    pub body: String,
    /// What deletes this delivery; none in a peek.
    pub handle: Option<String>,
    /// When it was sent.
    pub enqueue_ms: i64,
    /// When it was first received; 0: never.
    pub first_dequeue_ms: i64,
    /// When it can be received again; none in a peek.
    pub next_visible_ms: Option<i64>,
    /// How often it has been received, this time included.
    pub dequeue_count: u32,
    /// 1 (first) to 16.
    pub priority: u8,
    /// `UserProperties`
    pub user_properties: Vec<Property>,
    /// `SystemProperties`
    pub system_properties: Vec<Property>,
}

/// A named value beside a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value; base64 for BINARY.
    pub value: String,
    /// STRING, NUMBER, BOOLEAN or BINARY.
    pub kind: String,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// The body's text as it will be on the wire.
    pub body: String,
    /// How long until it can be received; `None`: the queue's own delay.
    pub delay_seconds: Option<u32>,
    /// 1 (first) to 16; `None`: 8.
    pub priority: Option<u8>,
    /// `UserProperties`
    pub user_properties: Vec<Property>,
    /// `SystemProperties`
    pub system_properties: Vec<Property>,
}

/// What a send answers for one message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sent {
    /// The id it got.
    pub id: String,
    /// Upper-case hex MD5 of the body's text.
    pub body_md5: String,
    /// Only for a delayed message.
    pub handle: Option<String>,
}

/// Reads the answer of a receive or peek: `Message`, or `Messages` of them.
pub fn parse_deliveries(xml: &[u8]) -> Result<Vec<Delivery>, WireError> {
    let mut deliveries = Vec::new();
    let mut current = Delivery::default();
    let mut property = Property::default();
    walk(xml, |path, step| {
        let inside = strip_message(path)?;
        match (inside, step) {
            (Some([]), Step::Open) => current = Delivery { dequeue_count: 1, ..Delivery::default() },
            (Some([]), Step::Close(_)) => {
                if current.id.is_empty() {
                    return Err(WireError::Missing("MessageId"));
                }
                deliveries.push(std::mem::take(&mut current));
            }
            (Some([name]), Step::Close(text)) => match *name {
                b"MessageId" => current.id = text.into_owned(),
                b"MessageBodyMD5" => current.body_md5 = text.into_owned(),
                b"MessageBody" => current.body = text.into_owned(),
                b"ReceiptHandle" => current.handle = Some(text.into_owned()),
                b"EnqueueTime" => current.enqueue_ms = number("EnqueueTime", &text)?,
                b"FirstDequeueTime" => current.first_dequeue_ms = number("FirstDequeueTime", &text)?,
                b"NextVisibleTime" => current.next_visible_ms = Some(number("NextVisibleTime", &text)?),
                b"DequeueCount" => current.dequeue_count = number("DequeueCount", &text)?,
                b"Priority" => current.priority = number("Priority", &text)?,
                _ => {}
            },
            (Some([list, _, name]), Step::Close(text)) => property.set(name, &text, list),
            (Some([list, _]), Step::Close(_)) => {
                current.list(list).extend(property.take());
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(deliveries)
}

/// The names below `Message`, whether it is the root or in `Messages`.
fn strip_message<'p, 'a>(path: &'p [&'a [u8]]) -> Result<Option<&'p [&'a [u8]]>, WireError> {
    match path {
        [b"Message", inside @ ..] | [b"Messages", b"Message", inside @ ..] => Ok(Some(inside)),
        [b"Messages", ..] => Ok(None),
        [root, ..] => Err(WireError::Root(String::from_utf8_lossy(root).into_owned())),
        [] => Ok(None),
    }
}

impl Property {
    fn set(&mut self, name: &[u8], text: &str, list: &[u8]) {
        if !matches!(list, b"UserProperties" | b"SystemProperties") {
            return;
        }
        match name {
            b"Name" => self.name = text.to_owned(),
            b"Value" => self.value = text.to_owned(),
            b"Type" => self.kind = text.to_owned(),
            _ => {}
        }
    }

    /// The property read so far, if there is one.
    fn take(&mut self) -> Option<Self> {
        let property = std::mem::take(self);
        (!property.name.is_empty()).then_some(property)
    }
}

impl Delivery {
    fn list(&mut self, name: &[u8]) -> &mut Vec<Property> {
        if name == b"SystemProperties" { &mut self.system_properties } else { &mut self.user_properties }
    }
}

impl Outgoing {
    fn list(&mut self, name: &[u8]) -> &mut Vec<Property> {
        if name == b"SystemProperties" { &mut self.system_properties } else { &mut self.user_properties }
    }
}

/// Writes the answer of a receive or peek; `batch`: `Messages`, also for one message.
pub fn write_deliveries<'m>(deliveries: impl Iterator<Item = &'m Delivery>, batch: bool) -> String {
    let mut out = String::with_capacity(4096);
    out.push_str(RESPONSE_PROLOG);
    let indent = if batch { 2 } else { 0 };
    if batch {
        let _ = writeln!(out, "<Messages xmlns=\"{RESPONSE_NAMESPACE}\">");
    }
    for delivery in deliveries {
        if batch {
            out.push_str("  <Message>\n");
        } else {
            let _ = writeln!(out, "<Message xmlns=\"{RESPONSE_NAMESPACE}\">");
        }
        write_delivery(&mut out, indent + 2, delivery);
        out.extend(std::iter::repeat_n(' ', indent));
        out.push_str("</Message>\n");
    }
    if batch {
        out.push_str("</Messages>\n");
    }
    out
}

/// The elements in the order of recordings of the live service.
fn write_delivery(out: &mut String, indent: usize, delivery: &Delivery) {
    line(out, indent, "MessageId", &delivery.id);
    line(out, indent, "MessageBodyMD5", &delivery.body_md5);
    line(out, indent, "MessageBody", &escape(&delivery.body));
    if let Some(handle) = &delivery.handle {
        line(out, indent, "ReceiptHandle", &escape(handle));
    }
    line(out, indent, "EnqueueTime", &delivery.enqueue_ms.to_string());
    line(out, indent, "FirstDequeueTime", &delivery.first_dequeue_ms.to_string());
    if let Some(time) = delivery.next_visible_ms {
        line(out, indent, "NextVisibleTime", &time.to_string());
    }
    line(out, indent, "DequeueCount", &delivery.dequeue_count.to_string());
    line(out, indent, "Priority", &delivery.priority.to_string());
    write_properties(out, indent, ("UserProperties", "PropertyValue"), &delivery.user_properties);
    write_properties(out, indent, ("SystemProperties", "SystemPropertyValue"), &delivery.system_properties);
}

fn write_properties(out: &mut String, indent: usize, (list, entry): (&str, &str), properties: &[Property]) {
    if properties.is_empty() {
        return;
    }
    let pad = " ".repeat(indent);
    let _ = writeln!(out, "{pad}<{list}>");
    for property in properties {
        let _ = write!(out, "{pad}  <{entry}>");
        tag(out, "Name", &escape(&property.name));
        tag(out, "Value", &escape(&property.value));
        tag(out, "Type", &escape(&property.kind));
        let _ = writeln!(out, "</{entry}>");
    }
    let _ = writeln!(out, "{pad}</{list}>");
}

/// Reads the body of a send: the messages, and whether it was `Messages`.
pub fn parse_outgoing(xml: &[u8]) -> Result<(Vec<Outgoing>, bool), WireError> {
    let mut messages = Vec::new();
    let mut current = Outgoing::default();
    let mut body = None;
    let mut property = Property::default();
    let mut batch = false;
    walk(xml, |path, step| {
        batch |= matches!(path, [b"Messages"]);
        match (strip_message(path)?, step) {
            (Some([]), Step::Open) => current = Outgoing::default(),
            (Some([]), Step::Close(_)) => {
                let mut message = std::mem::take(&mut current);
                message.body = body.take().ok_or(WireError::Missing("MessageBody"))?;
                messages.push(message);
            }
            (Some([name]), Step::Close(text)) => match *name {
                b"MessageBody" => body = Some(text.into_owned()),
                b"DelaySeconds" => current.delay_seconds = Some(number("DelaySeconds", &text)?),
                b"Priority" => current.priority = Some(number("Priority", &text)?),
                _ => {}
            },
            (Some([list, _, name]), Step::Close(text)) => property.set(name, &text, list),
            (Some([list, _]), Step::Close(_)) => {
                current.list(list).extend(property.take());
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok((messages, batch))
}

/// Writes the body of a batch send.
pub fn write_outgoing(messages: &[Outgoing]) -> String {
    let mut out = format!("{REQUEST_PROLOG}<Messages xmlns=\"{REQUEST_NAMESPACE}\">");
    for message in messages {
        out.push_str("<Message>");
        tag(&mut out, "MessageBody", &escape(&message.body));
        if let Some(delay) = message.delay_seconds {
            tag(&mut out, "DelaySeconds", &delay.to_string());
        }
        if let Some(priority) = message.priority {
            tag(&mut out, "Priority", &priority.to_string());
        }
        write_properties(&mut out, 0, ("UserProperties", "PropertyValue"), &message.user_properties);
        write_properties(&mut out, 0, ("SystemProperties", "SystemPropertyValue"), &message.system_properties);
        out.push_str("</Message>");
    }
    out.push_str("</Messages>");
    out
}

/// Reads the answer of a send. Entries of a partly failed batch have an empty id.
pub fn parse_sent(xml: &[u8]) -> Result<Vec<Sent>, WireError> {
    let mut sent = Vec::new();
    let mut current = Sent::default();
    walk(xml, |path, step| {
        match (strip_message(path)?, step) {
            (Some([]), Step::Close(_)) => sent.push(std::mem::take(&mut current)),
            (Some([name]), Step::Close(text)) => match *name {
                b"MessageId" => current.id = text.into_owned(),
                b"MessageBodyMD5" => current.body_md5 = text.into_owned(),
                b"ReceiptHandle" => current.handle = Some(text.into_owned()),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    })?;
    Ok(sent)
}

/// Writes the answer of a send.
pub fn write_sent(sent: &[Sent], batch: bool) -> String {
    let mut out = String::from(RESPONSE_PROLOG);
    let pad = if batch { "  " } else { "" };
    if batch {
        let _ = writeln!(out, "<Messages xmlns=\"{RESPONSE_NAMESPACE}\">");
    }
    for message in sent {
        if batch {
            out.push_str("  <Message>\n");
        } else {
            let _ = writeln!(out, "<Message xmlns=\"{RESPONSE_NAMESPACE}\">");
        }
        line(&mut out, pad.len() + 2, "MessageId", &message.id);
        line(&mut out, pad.len() + 2, "MessageBodyMD5", &message.body_md5);
        if let Some(handle) = &message.handle {
            line(&mut out, pad.len() + 2, "ReceiptHandle", &escape(handle));
        }
        let _ = writeln!(out, "{pad}</Message>");
    }
    if batch {
        out.push_str("</Messages>\n");
    }
    out
}

/// The elements of a topic's notification in its XML form, by name, in their order. One within another, which the
/// service does not write, is told by its own name.
pub fn parse_notification(xml: &[u8]) -> Result<Vec<(String, String)>, WireError> {
    let mut elements = Vec::new();
    walk(xml, |path, step| match (path, step) {
        ([root], _) if *root != b"Notification" => Err(WireError::Root(String::from_utf8_lossy(root).into())),
        ([_, .., name], Step::Close(text)) => {
            elements.push((String::from_utf8_lossy(name).into_owned(), text.into_owned()));
            Ok(())
        }
        _ => Ok(()),
    })?;
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: &str) -> Delivery {
        Delivery {
            id: id.into(),
            body_md5: "AB".into(),
            body: " <b> & \r\n".into(),
            handle: Some("A-b+/c==".into()),
            enqueue_ms: 1,
            first_dequeue_ms: 2,
            next_visible_ms: Some(3),
            dequeue_count: 4,
            priority: 5,
            user_properties: vec![Property { name: "k<".into(), value: "v&".into(), kind: "STRING".into() }],
            system_properties: vec![Property { name: "traceparent".into(), value: "x".into(), kind: "STRING".into() }],
        }
    }

    #[test]
    fn deliveries_read_back_as_written() {
        let two = [delivery("1"), delivery("2")];
        assert_eq!(parse_deliveries(write_deliveries(two.iter(), true).as_bytes()).expect("reads"), two);
        assert_eq!(parse_deliveries(write_deliveries(two[..1].iter(), false).as_bytes()).expect("reads"), two[..1]);
        assert_eq!(parse_deliveries(b"<Messages/>").expect("reads"), []);
    }

    #[test]
    fn a_delivery_without_an_id_or_with_a_broken_time_is_refused() {
        assert!(matches!(parse_deliveries(b"<Message/>"), Err(WireError::Missing("MessageId"))));
        let broken = b"<Message><MessageId>1</MessageId><EnqueueTime>x</EnqueueTime></Message>";
        assert!(matches!(parse_deliveries(broken), Err(WireError::Number("EnqueueTime"))));
        assert!(matches!(parse_deliveries(b"<Error/>"), Err(WireError::Root(_))));
    }

    #[test]
    fn sends_read_back_as_written() {
        let messages = [
            Outgoing { body: String::new(), ..Outgoing::default() },
            Outgoing {
                body: "a&b".into(),
                delay_seconds: Some(0),
                priority: Some(16),
                user_properties: delivery("1").user_properties,
                system_properties: delivery("1").system_properties,
            },
        ];
        assert_eq!(parse_outgoing(write_outgoing(&messages).as_bytes()).expect("reads"), (messages.to_vec(), true));
        assert!(matches!(parse_outgoing(b"<Message/>"), Err(WireError::Missing("MessageBody"))));
        let sent = [Sent { id: "1".into(), body_md5: "A".into(), handle: Some("h".into()) }];
        assert_eq!(parse_sent(write_sent(&sent, true).as_bytes()).expect("reads"), sent);
        assert_eq!(parse_sent(write_sent(&sent, false).as_bytes()).expect("reads"), sent);
    }
}
