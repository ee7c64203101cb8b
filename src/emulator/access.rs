//! Who may do what: the signature of a request.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};

use super::{AccessKey, operations::Refusal};
use crate::connectors::mns::{signature, wire};

/// How far a request's clock may be off.
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// Checks a request against the one access key there is. `target` is path and query as received.
///
/// The signature is checked first, so that a request changed on its way is told as that, whichever header it was.
pub(super) fn check(key: &AccessKey, method: &str, target: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bad = |code, message| Refusal::new(StatusCode::BAD_REQUEST, code, message);
    let authorization = text(header::AUTHORIZATION.as_str())
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
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided.",
        ));
    }
    let date = text(header::DATE.as_str())
        .or_else(|| text("x-mns-date"))
        .ok_or(bad("MissingDateHeader", "Date header is required."))?;
    let date = httpdate::parse_http_date(date).map_err(|_| bad("InvalidDateHeader", "The Date header is invalid."))?;
    let now = SystemTime::now();
    let off = now.duration_since(date).or_else(|_| date.duration_since(now)).unwrap_or_default();
    if off > WINDOW {
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "TimeExpired", "The http request you sent is expired."));
    }
    if text("x-mns-version") != Some(wire::VERSION) {
        // The code is known from SDKs, its status is [inferred].
        return Err(bad("MissingVersionHeader", "x-mns-version header is required."));
    }
    Ok(())
}
