//! Who may do what: the signature of a request, and that of a connection.

use super::{
    answer::{Code, MISSING, NOT_AUTHENTICATED, SECRET_ID, UNKNOWN_ID},
    parameters::Parameters,
};
use crate::{
    connectors::cmq::{
        signature::{SignMethod, connection_text, text_to_sign, verify},
        wire::proto::Auth,
    },
    emulator::AccessKey,
};

/// A request as it is signed.
pub(super) struct Signed<'a> {
    /// In capitals.
    pub method: &'a str,
    /// As in the Host header.
    pub host: &'a str,
    /// As requested, without the query.
    pub path: &'a str,
    pub parameters: &'a Parameters,
}

/// Checks a request against the one access key there is. How far its clock is off and whether its nonce was seen
/// before is not looked at: no table of errors of the service knows either.
pub(super) fn check(key: &AccessKey, request: &Signed<'_>) -> Result<(), Code> {
    let Signed { method, host, path, parameters } = request;
    check_id(key, parameters.get("SecretId").unwrap_or_default())?;
    if parameters.get("Nonce").is_none() || parameters.get("Timestamp").is_none() {
        return Err(MISSING);
    }
    let given = parameters.get("Signature").ok_or(NOT_AUTHENTICATED)?;
    let by = SignMethod::of_name(parameters.get("SignatureMethod").unwrap_or_default());
    let pairs: Vec<_> = parameters.pairs().collect();
    let is_signed = |pairs: &[(&str, &str)]| verify(by, &key.secret, &text_to_sign(method, host, path, pairs), given);
    if is_signed(&pairs) {
        return Ok(());
    }
    // The Python SDK signs no value that begins so when it posts. What the service makes of that is not known; both
    // ways are taken here.
    let without: Vec<_> = pairs.iter().copied().filter(|(_, value)| !value.starts_with('@')).collect();
    if *method == "POST" && without.len() < pairs.len() && is_signed(&without) {
        return Ok(());
    }
    Err(NOT_AUTHENTICATED)
}

/// Checks the first request of a connection.
pub(super) fn check_connection(key: &AccessKey, auth: &Auth) -> Result<(), Code> {
    check_id(key, &auth.secret_id)?;
    let text = connection_text(&auth.client_id, &auth.secret_id);
    let by = SignMethod::of_name(&auth.signature_method);
    if verify(by, &key.secret, &text, &auth.signature) { Ok(()) } else { Err(NOT_AUTHENTICATED) }
}

fn check_id(key: &AccessKey, id: &str) -> Result<(), Code> {
    if id == key.id {
        Ok(())
    } else if id.starts_with("AKID") {
        Err(UNKNOWN_ID)
    } else {
        Err(SECRET_ID)
    }
}
