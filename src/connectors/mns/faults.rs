//! What an answer or a broken connection means for the pipeline.

use http::StatusCode;

use super::wire::ServiceError;
use crate::model::{Fault, FaultKind, Mend};

/// The class of an answer that is not a success. `ahead_ms`: how far the service's clock is ahead of this machine's,
/// by the answer's own Date.
///
/// The classes are [inferred] from the service's error table: a clock or signature that is off is retried, slowly,
/// because an operator can mend it without touching the pipeline; wrong keys and missing queues need a person.
pub(super) fn fault_of_answer(
    operation: &'static str,
    status: StatusCode,
    error: Option<&ServiceError>,
    request_id: Option<&str>,
    ahead_ms: Option<i64>,
) -> Fault {
    let code = error.map_or("", |error| error.code.as_str());
    let (kind, mend) = classify(status, code);
    let request = error.map(|error| error.request_id.as_str()).filter(|id| !id.is_empty()).or(request_id);
    let request = request.map(|id| format!(" (request {id})")).unwrap_or_default();
    let text = match error {
        Some(error) => format!("{operation}: {status}, {}: {}{request}", error.code, error.message),
        None => format!("{operation}: {status} without an MNS error{request}"),
    };
    let hint = match code {
        "TimeExpired" => clock_hint(ahead_ms),
        "SignatureDoesNotMatch" => "; check accessKeySecret, and whether something on the way changes headers".into(),
        "InvalidSecurityToken" => "; the session token is wrong or expired".into(),
        _ => String::new(),
    };
    Fault::new(kind, mend, text + &hint)
}

fn clock_hint(ahead_ms: Option<i64>) -> String {
    let tolerated = "the service takes requests within 15 minutes of its own";
    let Some(ahead_ms) = ahead_ms else { return format!("; this machine's clock is off: {tolerated}") };
    // The header is cut to whole seconds, so more would be made up.
    let seconds = ahead_ms / 1000;
    let side = if seconds < 0 { "ahead of" } else { "behind" };
    format!("; this machine's clock is {} s {side} the service's, and {tolerated}", seconds.abs())
}

fn classify(status: StatusCode, code: &str) -> (FaultKind, Mend) {
    match code {
        "QpsLimitExceeded" => (FaultKind::Throttled, Mend::Retry),
        "TimeExpired" => (FaultKind::Clock, Mend::Retry),
        "SignatureDoesNotMatch" | "InvalidSecurityToken" => (FaultKind::Credentials, Mend::Retry),
        "InvalidAccessKeyId" | "AccessDenied" => (FaultKind::Credentials, Mend::Never),
        "QueueNotExist" => (FaultKind::Missing, Mend::Never),
        // It answers a create soon after a delete [inferred].
        "QueueDeletedRecently" => (FaultKind::Rejected, Mend::Retry),
        _ if status == StatusCode::TOO_MANY_REQUESTS => (FaultKind::Throttled, Mend::Retry),
        _ if status == StatusCode::REQUEST_TIMEOUT => (FaultKind::Timeout, Mend::Retry),
        _ if status.is_server_error() => (FaultKind::Service, Mend::Retry),
        // Something between us and the service answered: a proxy's page, a redirect.
        "" => (FaultKind::Service, Mend::Retry),
        _ if status == StatusCode::FORBIDDEN => (FaultKind::Credentials, Mend::Never),
        _ => (FaultKind::Rejected, Mend::Never),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_answer_says_who_can_mend_it() {
        let cases = [
            (403, "InvalidAccessKeyId", FaultKind::Credentials, Mend::Never),
            (403, "AccessDenied", FaultKind::Credentials, Mend::Never),
            (404, "QueueNotExist", FaultKind::Missing, Mend::Never),
            (408, "TimeExpired", FaultKind::Clock, Mend::Retry),
            (400, "TimeExpired", FaultKind::Clock, Mend::Retry),
            (403, "SignatureDoesNotMatch", FaultKind::Credentials, Mend::Retry),
            (403, "InvalidSecurityToken", FaultKind::Credentials, Mend::Retry),
            (400, "QpsLimitExceeded", FaultKind::Throttled, Mend::Retry),
            (500, "InternalError", FaultKind::Service, Mend::Retry),
            (503, "", FaultKind::Service, Mend::Retry),
            (502, "", FaultKind::Service, Mend::Retry),
            (404, "", FaultKind::Service, Mend::Retry),
            (429, "", FaultKind::Throttled, Mend::Retry),
            (400, "InvalidArgument", FaultKind::Rejected, Mend::Never),
            (400, "MalformedXML", FaultKind::Rejected, Mend::Never),
        ];
        for (status, code, kind, mend) in cases {
            let status = StatusCode::from_u16(status).expect("a status");
            let error = ServiceError { code: code.into(), message: "m".into(), ..ServiceError::default() };
            let fault = fault_of_answer("receive", status, (!code.is_empty()).then_some(&error), Some("R1"), None);
            assert_eq!((fault.kind, fault.mend), (kind, mend), "{status} {code}");
            assert!(fault.to_string().contains("R1"), "{fault}");
        }
    }

    #[test]
    fn a_refused_clock_is_told_by_how_much_and_to_which_side() {
        let error = ServiceError { code: "TimeExpired".into(), ..ServiceError::default() };
        let told = |ahead_ms| {
            fault_of_answer("receive", StatusCode::REQUEST_TIMEOUT, Some(&error), None, ahead_ms).to_string()
        };
        assert!(told(Some(1_200_400)).contains("is 1200 s behind the service's"), "{}", told(Some(1_200_400)));
        assert!(told(Some(-901_000)).contains("is 901 s ahead of the service's"));
        assert!(told(None).contains("within 15 minutes"));
    }
}
