//! What the options say that a table of options cannot check by itself, for source and sink alike.

use std::{borrow::Cow, fmt};

use url::Url;

use super::{
    client::{ClientOptions, Credentials, Transport},
    options::{
        HOSTS, KEY_ALIVE_TIMEOUT, MAX_BLOCK_TIMEOUT, POLLING_WAIT_TIMEOUT, QUEUE, RECEIVE_CONCURRENCY, REQUEST_TIMEOUT,
        RETRY_TIMES, SECRET_ID, SECRET_KEY, SIGN_METHOD, TRANSPORT,
    },
    signature::SignMethod,
    wire,
};
use crate::{
    definition::{At, Diagnostic, Endpoint, OptionSpec, Options, Role},
    formats,
};

/// Longest name of a queue.
const LONGEST_QUEUE: usize = 64;
/// How the ids of the service's own keys begin; with another it answers that the id is wrong.
const SECRET_ID_PREFIX: &str = "AKID";

/// Reads what a client must be told.
///
/// # Errors
/// Everything that is wrong with it.
pub fn client_options(endpoint: &Endpoint) -> Result<ClientOptions, Vec<Diagnostic>> {
    let options = &endpoint.options;
    let transport = if options.text(&TRANSPORT) == "http" { Transport::Http } else { Transport::Tcp };
    let mut found = Vec::new();
    let hosts = hosts(endpoint, transport).unwrap_or_else(|diagnostic| {
        found.push(*diagnostic);
        Vec::new()
    });
    let queue = options.text(&QUEUE);
    if !is_queue(queue) {
        let expected = "a queue: a letter, then up to 63 letters, digits, `-` or `_`";
        found.push(refused(endpoint, &QUEUE, format!("`queue` is `{queue}`")).expected(expected));
    }
    let secret = options.text(&SECRET_KEY);
    if secret.trim().is_empty() || secret.chars().any(char::is_control) {
        let diagnostic = Diagnostic::error("the value of `secret-key` cannot be used");
        found.push(diagnostic.at(endpoint.at(At::Option(&SECRET_KEY))).expected("a text without line ends"));
    }
    if !found.is_empty() {
        return Err(found);
    }
    Ok(ClientOptions {
        hosts,
        queue: queue.to_owned(),
        credentials: credentials(options),
        transport,
        request_timeout: options.duration(&REQUEST_TIMEOUT),
    })
}

fn credentials(options: &Options) -> Credentials {
    Credentials {
        secret_id: options.text(&SECRET_ID).to_owned(),
        secret_key: options.text(&SECRET_KEY).to_owned(),
        method: SignMethod::of_name(options.text(&SIGN_METHOD)),
    }
}

fn is_queue(name: &str) -> bool {
    name.len() <= LONGEST_QUEUE
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// An error of an option, which repeats its value only if it may be shown.
fn refused(endpoint: &Endpoint, spec: &OptionSpec, message: String) -> Diagnostic {
    let masked = endpoint.options.is_masked(spec);
    let message = if masked { format!("the value of `{}` cannot be used", spec.name) } else { message };
    Diagnostic::error(message).at(endpoint.at(At::Option(spec)))
}

/// What is told back of a URL: a user and a password are not.
fn without_user(url: &str) -> Cow<'_, str> {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://...@{rest}").into(),
        None => url.into(),
    }
}

fn hosts(endpoint: &Endpoint, transport: Transport) -> Result<Vec<Url>, Box<Diagnostic>> {
    const EXPECTED: &str = "`http://` or `https://` URLs without a user, password or query, separated by `;`";
    let text = endpoint.options.text(&HOSTS);
    let mut hosts: Vec<Url> = Vec::new();
    for part in text.split(';').map(str::trim) {
        let Some(url) = host(part) else {
            let message = match part.is_empty() {
                true => "a part of `hosts` is empty".to_owned(),
                false if part == text => format!("`hosts` is `{}`", without_user(part)),
                false => format!("`hosts` holds `{}`", without_user(part)),
            };
            // Most often just the scheme is missing.
            let nearest = format!("http://{part}");
            let nearest = (!part.contains("://") && host(&nearest).is_some()).then_some(nearest);
            let nearest = nearest.filter(|_| !endpoint.options.is_masked(&HOSTS));
            return Err(Box::new(refused(endpoint, &HOSTS, message).expected(EXPECTED).nearest(nearest)));
        };
        if hosts.contains(&url) {
            let diagnostic = refused(endpoint, &HOSTS, format!("`hosts` holds `{part}` twice"));
            return Err(Box::new(diagnostic.help("name each once")));
        }
        hosts.push(url);
    }
    if transport == Transport::Http && hosts.len() > 1 {
        let message = format!("`hosts` holds {} URLs", hosts.len());
        let help = "with `transport: http` it is the one HTTP endpoint";
        return Err(Box::new(refused(endpoint, &HOSTS, message).help(help)));
    }
    Ok(hosts)
}

/// A URL with the path of requests.
fn host(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    // A URL may hold line ends, which are taken out, and a comma that was meant to separate two.
    if text.chars().any(char::is_control) || url.host_str().is_some_and(|host| host.contains(',')) {
        return None;
    }
    let plain = url.username().is_empty() && url.password().is_none();
    let bare = url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !plain || !bare {
        return None;
    }
    if url.path() == "/" {
        url.set_path(wire::PATH);
    }
    Some(url)
}

/// What is wrong, and what an operator should know of options that are valid.
pub(super) fn check(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let options = match client_options(endpoint) {
        Ok(options) => options,
        Err(found) => return found,
    };
    let mut found = Vec::new();
    found.extend(other_service(endpoint, &options));
    if !options.credentials.secret_id.starts_with(SECRET_ID_PREFIX) {
        let message = format!("`secret-id` does not begin with `{SECRET_ID_PREFIX}`, as those of the service do");
        found.push(Diagnostic::warning(message).at(endpoint.at(At::Option(&SECRET_ID))));
    }
    found.extend(without_effect(endpoint));
    let wait = endpoint.options.duration(&POLLING_WAIT_TIMEOUT);
    if endpoint.role == Role::Source && wait.subsec_nanos() != 0 {
        let rounded = wait.as_millis().div_ceil(1000);
        let text = format!("`polling-wait-timeout`: the service counts whole seconds, so {rounded}s is used");
        found.push(Diagnostic::warning(text).at(endpoint.at(At::Option(&POLLING_WAIT_TIMEOUT))));
    }
    found
}

/// Options of the other side, which are taken as the Flink connector takes them.
fn without_effect(endpoint: &Endpoint) -> impl Iterator<Item = Diagnostic> {
    let (others, side) = match endpoint.role {
        Role::Source => (vec![&RETRY_TIMES, &MAX_BLOCK_TIMEOUT], "a source"),
        _ => (vec![&POLLING_WAIT_TIMEOUT, &KEY_ALIVE_TIMEOUT, &RECEIVE_CONCURRENCY], "a sink"),
    };
    let given = others.into_iter().filter(|spec| endpoint.at(At::Option(spec)) != endpoint.at(At::Section));
    given.map(move |spec| {
        let message = format!("`{}` has no effect on {side}", spec.name);
        Diagnostic::warning(message).at(endpoint.at(At::Option(spec)))
    })
}

/// A name server where the endpoint is wanted, or the other way round: it would answer what nobody understands.
fn other_service(endpoint: &Endpoint, options: &ClientOptions) -> Option<Diagnostic> {
    let mut places = options.hosts.iter().filter_map(|host| Place::of(host.host_str()?));
    let wrong = places.find(|place| place.transport != options.transport)?;
    let (is, help) = match wrong.transport {
        Transport::Tcp => ("a name server", "say `transport: tcp`, or the HTTP endpoint of the region"),
        Transport::Http => ("an HTTP endpoint", "say `transport: http`, or a name server of the region"),
    };
    let message = format!("`hosts` looks like {is}, but `transport` is `{}`", endpoint.options.text(&TRANSPORT));
    Some(Diagnostic::warning(message).at(endpoint.at(At::Option(&HOSTS))).help(help))
}

/// The format's options. Only with this connector is there a line delimiter by default; it goes together with whatever
/// else is set, for nothing else may be a line end.
pub(super) fn format_options(endpoint: &Endpoint) -> Options {
    use crate::definition::OptionValue;
    let Some(format) = &endpoint.format else { return Options::default() };
    let mut options = format.options.clone();
    let delimiter = &formats::csv::options::LINE_DELIMITER;
    if format.name == formats::csv::TABLE.name && !options.has(delimiter) {
        options.insert(delimiter, OptionValue::Character('\n'));
    }
    options
}

/// What a host of Tencent's is.
struct Place<'a> {
    region: &'a str,
    transport: Transport,
}

impl<'a> Place<'a> {
    /// The hosts that the service's documentation names, public and private, of CMQ and of its TDMQ edition.
    fn of(host: &'a str) -> Option<Self> {
        const HOSTS: &[(&str, &str, Transport)] = &[
            ("cmq-nameserver-vpc-", ".api.tencentyun.com", Transport::Tcp),
            ("cmq-nameserver-", ".tencentcloudapi.com", Transport::Tcp),
            ("cmq-queue-", ".api.qcloud.com", Transport::Http),
            ("cmq-queue-", ".api.tencentyun.com", Transport::Http),
            ("cmq-", ".public.tencenttdmq.com", Transport::Http),
            ("", ".mqadapter.cmq.tencentyun.com", Transport::Http),
        ];
        HOSTS.iter().find_map(|(before, after, transport)| {
            let region = host.strip_prefix(before)?.strip_suffix(after)?;
            let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_region.then_some(Self { region, transport: *transport })
        })
    }
}

/// A queue as it is called in an identity: by region where that is known, for a queue is one by whatever address it is
/// reached. Names of queues are told apart without regard to case.
pub(super) struct QueueName<'a>(pub &'a ClientOptions);

impl fmt::Display for QueueName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut places: Vec<String> = self.0.hosts.iter().map(place).collect();
        places.sort_unstable();
        places.dedup();
        write!(f, "{} {}", places.join(";"), self.0.queue.to_ascii_lowercase())
    }
}

fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match (Place::of(host), url.port()) {
        (Some(place), _) => place.region.to_owned(),
        (None, Some(port)) => format!("{host}:{port}"),
        (None, None) => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn named(hosts: &[&str], queue: &str) -> String {
        let options = ClientOptions {
            hosts: hosts.iter().map(|text| host(text).expect("a host")).collect(),
            queue: queue.to_owned(),
            credentials: Credentials {
                secret_id: "id".to_owned(),
                secret_key: "T0PS3CRET".to_owned(),
                method: SignMethod::HmacSha1,
            },
            transport: Transport::Tcp,
            request_timeout: Duration::from_secs(5),
        };
        assert!(!format!("{options:?}").contains("T0PS3CRET"));
        QueueName(&options).to_string()
    }

    #[test]
    fn one_queue_has_one_identity_by_whatever_address_it_is_reached() {
        for hosts in [
            &["http://cmq-nameserver-vpc-gz.api.tencentyun.com"][..],
            &["http://cmq-nameserver-gz.tencentcloudapi.com", "http://cmq-nameserver-vpc-gz.api.tencentyun.com/"],
            &["https://cmq-queue-gz.api.qcloud.com"],
            &["http://cmq-queue-gz.api.tencentyun.com/v2/index.php"],
            &["https://cmq-gz.public.tencenttdmq.com"],
            &["http://gz.mqadapter.cmq.tencentyun.com"],
        ] {
            assert_eq!(named(hosts, "Orders"), "gz orders", "{hosts:?}");
        }
        assert_eq!(named(&["http://b:1", "http://a:80", "http://B:1/x"], "q"), "a;b:1 q");
        assert_ne!(named(&["http://127.0.0.1:1"], "q"), named(&["http://127.0.0.1:2"], "q"));
    }

    #[test]
    fn a_host_without_a_path_gets_that_of_requests() {
        let path = |text: &str| host(text).map(|url| url.path().to_owned());
        assert_eq!(path("http://h").as_deref(), Some("/v2/index.php"));
        assert_eq!(path("http://h/").as_deref(), Some("/v2/index.php"));
        assert_eq!(path("https://h:1/x").as_deref(), Some("/x"));
        for wrong in ["", "h:80", "ftp://h", "http://", "http://u:p@h", "http://h/?a=b", "http://h#a"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }
}
