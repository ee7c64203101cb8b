//! Receipt handles: what deletes them and changes their visibility, and what becomes of that.

use super::{
    REQUEST_NAMESPACE, REQUEST_PROLOG, RESPONSE_NAMESPACE, RESPONSE_PROLOG,
    document::{Step, WireError, escape, line, number, tag, walk},
};

/// An entry of a partly failed delete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteFailure {
    /// Such as `MessageNotExist`.
    pub code: String,
    /// In words.
    pub message: String,
    /// The handle that was not deleted.
    pub handle: String,
}

/// What a change of visibility answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedVisibility {
    /// Replaces the handle that was given.
    pub handle: String,
    /// Epoch milliseconds.
    pub next_visible_ms: i64,
}

/// Reads the body of a batch delete.
pub fn parse_handles(xml: &[u8]) -> Result<Vec<String>, WireError> {
    let mut handles = Vec::new();
    walk(xml, |path, step| {
        match (path, step) {
            ([b"ReceiptHandles", b"ReceiptHandle"], Step::Close(text)) => handles.push(text.into_owned()),
            ([b"ReceiptHandles", ..], _) => {}
            ([root, ..], _) => return Err(WireError::Root(String::from_utf8_lossy(root).into_owned())),
            ([], _) => {}
        }
        Ok(())
    })?;
    Ok(handles)
}

/// Writes the body of a batch delete.
pub fn write_handles<'h>(handles: impl Iterator<Item = &'h str>) -> String {
    let mut out = format!("{REQUEST_PROLOG}<ReceiptHandles xmlns=\"{REQUEST_NAMESPACE}\">");
    for handle in handles {
        tag(&mut out, "ReceiptHandle", &escape(handle));
    }
    out.push_str("</ReceiptHandles>");
    out
}

/// Reads the answer of a partly failed delete. `None`: it is something else, such as an ordinary error.
pub fn parse_delete_failures(xml: &[u8]) -> Result<Option<Vec<DeleteFailure>>, WireError> {
    let mut failures = Vec::new();
    let mut current = DeleteFailure::default();
    let mut is_list = false;
    walk(xml, |path, step| {
        match (path, step) {
            ([b"Errors"], _) => is_list = true,
            ([b"Errors", b"Error"], Step::Close(_)) => failures.push(std::mem::take(&mut current)),
            ([b"Errors", b"Error", name], Step::Close(text)) => match *name {
                b"ErrorCode" => current.code = text.into_owned(),
                b"ErrorMessage" => current.message = text.into_owned(),
                b"ReceiptHandle" => current.handle = text.into_owned(),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    })?;
    Ok(is_list.then_some(failures))
}

/// Writes the answer of a partly failed delete.
pub fn write_delete_failures(failures: &[DeleteFailure]) -> String {
    let mut out = format!("{RESPONSE_PROLOG}<Errors xmlns=\"{RESPONSE_NAMESPACE}\">\n");
    for failure in failures {
        out.push_str("  <Error>\n");
        line(&mut out, 4, "ErrorCode", &failure.code);
        line(&mut out, 4, "ErrorMessage", &escape(&failure.message));
        line(&mut out, 4, "ReceiptHandle", &escape(&failure.handle));
        out.push_str("  </Error>\n");
    }
    out.push_str("</Errors>\n");
    out
}

/// Reads the answer of a change of visibility.
pub fn parse_changed_visibility(xml: &[u8]) -> Result<ChangedVisibility, WireError> {
    let (mut handle, mut time) = (None, None);
    walk(xml, |path, step| {
        if let ([_, name], Step::Close(text)) = (path, step) {
            match *name {
                b"ReceiptHandle" => handle = Some(text.into_owned()),
                b"NextVisibleTime" => time = Some(number("NextVisibleTime", &text)?),
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok(ChangedVisibility {
        handle: handle.ok_or(WireError::Missing("ReceiptHandle"))?,
        next_visible_ms: time.ok_or(WireError::Missing("NextVisibleTime"))?,
    })
}

/// Writes the answer of a change of visibility.
pub fn write_changed_visibility(changed: &ChangedVisibility) -> String {
    let mut out = format!("{RESPONSE_PROLOG}<ChangeVisibility xmlns=\"{RESPONSE_NAMESPACE}\">\n");
    line(&mut out, 2, "ReceiptHandle", &escape(&changed.handle));
    line(&mut out, 2, "NextVisibleTime", &changed.next_visible_ms.to_string());
    out.push_str("</ChangeVisibility>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_and_outcomes_read_back_as_written() {
        let handles = ["a-b==", "c&d"];
        assert_eq!(parse_handles(write_handles(handles.into_iter()).as_bytes()).expect("reads"), handles);
        let failures = [DeleteFailure {
            code: "MessageNotExist".into(),
            message: "Message not exist.".into(),
            handle: "h&".into(),
        }];
        let written = write_delete_failures(&failures);
        assert_eq!(parse_delete_failures(written.as_bytes()).expect("reads").expect("a list"), failures);
        assert_eq!(parse_delete_failures(b"<Error><Code>x</Code></Error>").expect("reads"), None);
        let changed = ChangedVisibility { handle: "h".into(), next_visible_ms: 9 };
        assert_eq!(parse_changed_visibility(write_changed_visibility(&changed).as_bytes()).expect("reads"), changed);
    }
}
