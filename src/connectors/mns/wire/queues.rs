//! Queues and errors.

use std::fmt::Write;

use super::{
    REQUEST_NAMESPACE, REQUEST_PROLOG, RESPONSE_NAMESPACE, RESPONSE_PROLOG,
    document::{Step, WireError, escape, line, number, tag, walk},
};

/// What may be set of a queue. `None`: as it is, or the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueSettings {
    /// Seconds until a sent message can be received: 0 to 604800, default 0.
    pub delay_seconds: Option<u32>,
    /// Bytes: 1024 to 65536, default 65536.
    pub maximum_message_size: Option<u32>,
    /// Seconds: 60 to 604800 (one SDK lets 1296000 through), default 345600.
    pub retention_seconds: Option<u32>,
    /// Seconds: 1 to 43200, default 30.
    pub visibility_seconds: Option<u32>,
    /// Seconds that a receive without `waitseconds` waits: 0 to 30, default 0.
    pub polling_wait_seconds: Option<u32>,
    /// Whether operations are logged; default false.
    pub logging_enabled: Option<bool>,
}

/// What the service tells of a queue. Times are epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueAttributes {
    /// Its name.
    pub name: String,
    /// What may be set.
    pub settings: QueueSettings,
    /// When it was made.
    pub created: i64,
    /// When it was last changed.
    pub modified: i64,
    /// Messages that can be received. The live service counts only roughly.
    pub active: u64,
    /// Messages received and not deleted, invisible for now.
    pub inactive: u64,
    /// Messages sent with a delay that has not run out.
    pub delayed: u64,
}

/// The ordinary error document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceError {
    /// Such as `QueueNotExist`.
    pub code: String,
    /// In words.
    pub message: String,
    /// What the service's support asks for.
    pub request_id: String,
    /// The endpoint.
    pub host_id: String,
}

impl QueueSettings {
    fn set(&mut self, name: &[u8], text: &str) -> Result<(), WireError> {
        match name {
            b"DelaySeconds" => self.delay_seconds = Some(number("DelaySeconds", text)?),
            b"MaximumMessageSize" => self.maximum_message_size = Some(number("MaximumMessageSize", text)?),
            b"MessageRetentionPeriod" => self.retention_seconds = Some(number("MessageRetentionPeriod", text)?),
            b"VisibilityTimeout" => self.visibility_seconds = Some(number("VisibilityTimeout", text)?),
            b"PollingWaitSeconds" => self.polling_wait_seconds = Some(number("PollingWaitSeconds", text)?),
            b"LoggingEnabled" => self.logging_enabled = Some(text.trim().eq_ignore_ascii_case("true")),
            _ => {}
        }
        Ok(())
    }
}

/// Reads the body of a create or change of a queue. An empty body means the defaults.
pub fn parse_settings(xml: &[u8]) -> Result<QueueSettings, WireError> {
    let mut settings = QueueSettings::default();
    if xml.is_empty() {
        return Ok(settings);
    }
    walk(xml, |path, step| match (path, step) {
        ([b"Queue", name], Step::Close(text)) => settings.set(name, &text),
        ([b"Queue", ..], _) => Ok(()),
        ([root, ..], _) => Err(WireError::Root(String::from_utf8_lossy(root).into_owned())),
        ([], _) => Ok(()),
    })?;
    Ok(settings)
}

/// Writes the body of a create of a queue.
pub fn write_settings(settings: &QueueSettings) -> String {
    let mut out = format!("{REQUEST_PROLOG}<Queue xmlns=\"{REQUEST_NAMESPACE}\">");
    let numbers = [
        ("VisibilityTimeout", settings.visibility_seconds),
        ("MaximumMessageSize", settings.maximum_message_size),
        ("MessageRetentionPeriod", settings.retention_seconds),
        ("DelaySeconds", settings.delay_seconds),
        ("PollingWaitSeconds", settings.polling_wait_seconds),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            tag(&mut out, name, &value.to_string());
        }
    }
    if let Some(enabled) = settings.logging_enabled {
        tag(&mut out, "LoggingEnabled", if enabled { "True" } else { "False" });
    }
    out.push_str("</Queue>");
    out
}

/// Reads the attributes of a queue.
pub fn parse_attributes(xml: &[u8]) -> Result<QueueAttributes, WireError> {
    let mut attributes = QueueAttributes::default();
    walk(xml, |path, step| match (path, step) {
        ([b"Queue", name], Step::Close(text)) => {
            match *name {
                b"QueueName" => attributes.name = text.into_owned(),
                b"CreateTime" => attributes.created = number("CreateTime", &text)?,
                b"LastModifyTime" => attributes.modified = number("LastModifyTime", &text)?,
                b"ActiveMessages" => attributes.active = number("ActiveMessages", &text)?,
                b"InactiveMessages" => attributes.inactive = number("InactiveMessages", &text)?,
                b"DelayMessages" => attributes.delayed = number("DelayMessages", &text)?,
                name => attributes.settings.set(name, &text)?,
            }
            Ok(())
        }
        ([b"Queue"], _) | ([b"Queue", ..], _) | ([], _) => Ok(()),
        ([root, ..], _) => Err(WireError::Root(String::from_utf8_lossy(root).into_owned())),
    })?;
    Ok(attributes)
}

/// Writes the attributes of a queue, in the order of recordings of the live service. Settings that are `None` are
/// written as their defaults.
pub fn write_attributes(attributes: &QueueAttributes) -> String {
    let settings = &attributes.settings;
    let mut out = format!("{RESPONSE_PROLOG}<Queue xmlns=\"{RESPONSE_NAMESPACE}\">\n");
    let logging = if settings.logging_enabled.unwrap_or(false) { "True" } else { "False" };
    let lines = [
        ("QueueName", attributes.name.clone()),
        ("DelaySeconds", settings.delay_seconds.unwrap_or(0).to_string()),
        ("MaximumMessageSize", settings.maximum_message_size.unwrap_or(65_536).to_string()),
        ("MessageRetentionPeriod", settings.retention_seconds.unwrap_or(345_600).to_string()),
        ("VisibilityTimeout", settings.visibility_seconds.unwrap_or(30).to_string()),
        ("CreateTime", attributes.created.to_string()),
        ("LastModifyTime", attributes.modified.to_string()),
        ("PollingWaitSeconds", settings.polling_wait_seconds.unwrap_or(0).to_string()),
        ("ActiveMessages", attributes.active.to_string()),
        ("InactiveMessages", attributes.inactive.to_string()),
        ("DelayMessages", attributes.delayed.to_string()),
        ("LoggingEnabled", logging.to_owned()),
        ("MessageType", "0".to_owned()),
        ("EnableSSE", "False".to_owned()),
    ];
    for (name, text) in lines {
        line(&mut out, 2, name, &text);
    }
    out.push_str("</Queue>\n");
    out
}

/// Writes a list of queues: their URLs and, where there are more, what to go on from.
pub fn write_queue_list(urls: &[String], next: Option<&str>) -> String {
    let mut out = format!("{RESPONSE_PROLOG}<Queues xmlns=\"{RESPONSE_NAMESPACE}\">\n");
    for url in urls {
        let _ = writeln!(out, "  <Queue>\n    <QueueURL>{}</QueueURL>\n  </Queue>", escape(url));
    }
    if let Some(next) = next {
        line(&mut out, 2, "NextMarker", &escape(next));
    }
    out.push_str("</Queues>\n");
    out
}

/// Reads an error document; the error says why it is none.
pub fn parse_error(xml: &[u8]) -> Result<ServiceError, WireError> {
    let mut error = ServiceError::default();
    walk(xml, |path, step| {
        if let ([b"Error", name], Step::Close(text)) = (path, step) {
            match *name {
                b"Code" => error.code = text.into_owned(),
                b"Message" => error.message = text.into_owned(),
                b"RequestId" => error.request_id = text.into_owned(),
                b"HostId" => error.host_id = text.into_owned(),
                _ => {}
            }
        }
        Ok(())
    })?;
    if error.code.is_empty() { Err(WireError::Missing("Code")) } else { Ok(error) }
}

/// Writes an error document.
pub fn write_error(error: &ServiceError) -> String {
    let mut out = format!("{RESPONSE_PROLOG}<Error xmlns=\"{RESPONSE_NAMESPACE}\">\n");
    line(&mut out, 2, "Code", &error.code);
    line(&mut out, 2, "Message", &escape(&error.message));
    line(&mut out, 2, "RequestId", &error.request_id);
    line(&mut out, 2, "HostId", &escape(&error.host_id));
    out.push_str("</Error>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_attributes_read_back_as_written() {
        let settings = QueueSettings {
            delay_seconds: Some(1),
            maximum_message_size: Some(1024),
            retention_seconds: Some(60),
            visibility_seconds: Some(2),
            polling_wait_seconds: Some(3),
            logging_enabled: Some(true),
        };
        assert_eq!(parse_settings(write_settings(&settings).as_bytes()).expect("reads"), settings);
        assert_eq!(parse_settings(b"").expect("reads"), QueueSettings::default());
        let attributes =
            QueueAttributes { name: "q".into(), settings, created: 4, modified: 5, active: 6, inactive: 7, delayed: 8 };
        assert_eq!(parse_attributes(write_attributes(&attributes).as_bytes()).expect("reads"), attributes);
    }

    #[test]
    fn an_error_reads_back_as_written_and_a_page_of_a_proxy_is_none() {
        let error = ServiceError {
            code: "QueueNotExist".into(),
            message: "The queue name you provided is not exist.".into(),
            request_id: "1".into(),
            host_id: "http://h".into(),
        };
        assert_eq!(parse_error(write_error(&error).as_bytes()).expect("reads"), error);
        assert!(parse_error(b"<html><body>busy</body></html>").is_err());
        assert!(parse_error(b"").is_err());
    }
}
