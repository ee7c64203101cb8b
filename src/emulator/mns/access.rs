//! Who may do what: the signature of a request.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};

use super::operations::{Refusal, TIME_EXPIRED};
use crate::{
    connectors::mns::{signature, wire},
    emulator::AccessKey,
};

/// A request that another secret signed, or that was changed on its way.
pub(super) const NOT_AUTHENTICATED: Refusal = Refusal::new(
    StatusCode::FORBIDDEN,
    "SignatureDoesNotMatch",
    "The request signature we calculated does not match the signature you provided.",
);

/// How far a request's clock may be off.
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// Checks a request against the one access key there is. `target` is path and query as received; `now` is what the
/// service's clock says.
///
/// The signature is checked first, so that a request changed on its way is told as that, whichever header it was.
pub(super) fn check(
    key: &AccessKey,
    method: &str,
    target: &str,
    headers: &HeaderMap,
    now: SystemTime,
) -> Result<(), Refusal> {
    let authorization = text(headers, header::AUTHORIZATION.as_str())
        .ok_or(bad("MissingAuthorizationHeader", "Authorization header is required."))?;
    let (id, given) = signature::parse_authorization(authorization)
        .ok_or(bad("InvalidAuthorizationHeader", "The Authorization header format is invalid."))?;
    if id != key.id {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "InvalidAccessKeyId",
            "The AccessKey Id you provided is not exist.",
        ));
    }
    if !signature::verify(&key.secret, &signature::string_to_sign(method, target, headers), given) {
        return Err(NOT_AUTHENTICATED);
    }
    check_date(headers, now)?;
    if text(headers, "x-mns-version") != Some(wire::VERSION) {
        // The code is known from SDKs, its status is [inferred].
        return Err(bad("MissingVersionHeader", "x-mns-version header is required."));
    }
    Ok(())
}

/// Checks only how far a request's clock is off.
pub(super) fn check_date(headers: &HeaderMap, now: SystemTime) -> Result<(), Refusal> {
    let date = text(headers, header::DATE.as_str())
        .or_else(|| text(headers, "x-mns-date"))
        .ok_or(bad("MissingDateHeader", "Date header is required."))?;
    let date = httpdate::parse_http_date(date).map_err(|_| bad("InvalidDateHeader", "The Date header is invalid."))?;
    let off = now.duration_since(date).or_else(|_| date.duration_since(now)).unwrap_or_default();
    if off > WINDOW { Err(TIME_EXPIRED) } else { Ok(()) }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

const fn bad(code: &'static str, message: &'static str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, code, message)
}
