//! What a person asks the emulator itself, beside the service it plays: counts, and switches to see and to set.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};

use super::{
    Faults, SWITCHES, Switch, Value, page,
    state::{State, lock},
};
use crate::model::nearest;

/// What there is to ask, for whoever asks for something else.
const PATHS: &str = "there are: GET /_emulator/, GET /_emulator/stats, GET /_emulator/queues/NAME/log, and GET, PUT, \
                     POST and DELETE /_emulator/faults and /_emulator/queues/NAME/faults";

/// Whether a path is one of these and not the service's.
pub(super) fn is_for(path: &str) -> bool {
    path == "/_emulator" || path.starts_with("/_emulator/")
}

pub(super) fn respond(state: &State, method: &Method, path: &str, body: &[u8]) -> Response<Full<Bytes>> {
    let segments: Vec<_> = path.split('/').skip(2).collect();
    match segments.as_slice() {
        [] | [""] if is_read(method) => answer(StatusCode::OK, "text/html; charset=utf-8", page::render(state)),
        ["stats"] if is_read(method) => json(StatusCode::OK, &state.report()),
        [] | [""] | ["stats"] => refuse(StatusCode::METHOD_NOT_ALLOWED, "this is read only: GET"),
        ["faults"] => faults(state, method, None, body),
        ["queues", name, what @ ("faults" | "log")] => {
            let name = percent_decode_str(name).decode_utf8_lossy();
            let Some(cell) = state.find(&name) else { return no_queue(state, &name) };
            match *what {
                "faults" => faults(state, method, Some(&name), body),
                _ if is_read(method) => match lock(&cell.queue).log() {
                    Some(entries) => json(StatusCode::OK, &entries),
                    None => refuse(StatusCode::NOT_FOUND, "no record is kept: start the emulator with --keep-log"),
                },
                _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "this is read only: GET"),
            }
        }
        _ => refuse(StatusCode::NOT_FOUND, PATHS),
    }
}

fn no_queue(state: &State, name: &str) -> Response<Full<Bytes>> {
    let names: Vec<String> = state.report().into_keys().collect();
    let hint = nearest(name, names.iter().map(String::as_str));
    let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    refuse(StatusCode::NOT_FOUND, &format!("there is no queue `{name}`{hint}"))
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// PUT turns off what it does not name, POST leaves it as it is, DELETE goes back to the switches for all. Every
/// answer is what is then in force.
fn faults(state: &State, method: &Method, queue: Option<&str>, body: &[u8]) -> Response<Full<Bytes>> {
    match *method {
        Method::GET | Method::HEAD => {}
        Method::PUT | Method::POST => {
            let settings = match settings(body) {
                Ok(settings) => settings,
                Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
            };
            state.change_faults(queue, |faults| {
                if method == Method::PUT {
                    *faults = Faults::default();
                }
                for (switch, value) in settings {
                    switch.set(faults, value);
                }
            });
        }
        Method::DELETE => match queue {
            Some(queue) => state.forget_faults(queue),
            None => state.change_faults(None, |faults| *faults = Faults::default()),
        },
        _ => return refuse(StatusCode::METHOD_NOT_ALLOWED, "switches take GET, PUT, POST and DELETE"),
    }
    let faults = state.faults(queue);
    let shown: BTreeMap<_, _> = SWITCHES.iter().map(|switch| (switch.name, show(switch.get(faults)))).collect();
    json(StatusCode::OK, &shown)
}

fn show(value: Value) -> Json {
    match value {
        Value::Probability(value) => Json::from(value),
        Value::Millis(value) => Json::from(value),
    }
}

/// The switches a body names: an object of JSON, or a form. All of them are right, or nothing is set.
fn settings(body: &[u8]) -> Result<Vec<(&'static Switch, Value)>, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("the body is not UTF-8: {error}"))?.trim();
    let pairs: Vec<(String, String)> = if text.starts_with('{') {
        let object: Map<String, Json> =
            serde_json::from_str(text).map_err(|error| format!("the body is not a JSON object: {error}"))?;
        object
            .into_iter()
            .map(|(name, value)| (name, value.as_str().map_or(value.to_string(), str::to_owned)))
            .collect()
    } else if text.contains('=') {
        url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
    } else {
        return Err(format!("expected switches, as JSON {{\"{0}\": 0.1}} or as a form {0}=0.1", "throttle"));
    };
    let checked = pairs.iter().map(|(name, value)| {
        let switch = Switch::find(name)?;
        Ok((switch, switch.read(value)?))
    });
    checked.collect()
}

fn refuse(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    json(status, &BTreeMap::from([("error", why)]))
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Full<Bytes>> {
    // Numbers and texts: they always have a JSON form.
    answer(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

fn answer(status: StatusCode, content: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<(&'static str, Value)>, String> {
        settings(body.as_bytes())
            .map(|settings| settings.into_iter().map(|(switch, value)| (switch.name, value)).collect())
    }

    #[test]
    fn json_and_forms_say_the_same() {
        let expected = Ok(vec![("delay-ms", Value::Millis(250)), ("throttle", Value::Probability(0.5))]);
        assert_eq!(read(r#" {"delay-ms": 250, "throttle": 0.5} "#), expected);
        assert_eq!(read(r#"{"delay-ms": "250", "throttle": "0.5"}"#), expected);
        assert_eq!(read("delay-ms=250&throttle=0.5"), expected);
        assert_eq!(read("{}"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_was_expected() {
        for (body, told) in [
            ("", "as a form throttle=0.1"),
            ("throttle", "as a form throttle=0.1"),
            ("[1]", "expected switches"),
            ("{", "not a JSON object"),
            (r#"{"throtle": 1}"#, "did you mean `throttle`?"),
            ("throttle=1&delay-sm=5", "did you mean `delay-ms`?"),
            (r#"{"throttle": 1.5}"#, "a probability from 0 to 1, not `1.5`"),
            (r#"{"throttle": null}"#, "not `null`"),
            (r#"{"delay-ms": 600001}"#, "from 0 to 600000, not `600001`"),
        ] {
            let error = read(body).expect_err(body);
            assert!(error.contains(told), "{body}: {error}");
        }
    }
}
