//! What can be wrong with the options of `cmq`, and what is right.

use std::time::Duration;

use queuewarden::connectors::{
    PrimaryKey,
    cmq::{
        client::Transport,
        client_options,
        options::{
            BATCH_SIZE, KEY_ALIVE_TIMEOUT, MAX_BLOCK_TIMEOUT, POLLING_WAIT_TIMEOUT, RECEIVE_CONCURRENCY,
            REQUEST_TIMEOUT, RETRY_TIMES,
        },
        signature::SignMethod,
    },
    resolve,
};

use super::{load, told};

/// A source whose further lines begin in line 8.
fn source(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "source:\n  connector: cmq\n  hosts: http://127.0.0.1:1\n  queue: q\n  secret-id: AKID1\n  \
         secret-key: ${{MNS_ACCESS_KEY_SECRET}}\n  schema: {{ id: INT, name: STRING }}\n{lines}sink: {{ connector: blackhole }}\n"
    )
}

/// A sink whose further lines begin in line 7.
fn sink(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "sink:\n  connector: cmq\n  hosts: http://127.0.0.1:1\n  queue: q\n  secret-id: AKID1\n  \
         secret-key: ${{MNS_ACCESS_KEY_SECRET}}\n{lines}source: {{ connector: datagen, schema: {{ id: INT, name: STRING }} }}\n"
    )
}

/// Compares what is told of each text, and says all that differ.
fn golden(cases: &[(String, &[&str])]) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let told = told(text);
        if told != *expected {
            wrong.push_str(&format!("{text}\ntold: {told:#?}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_option_has_the_default_of_the_flink_connectors_page() {
    let definition = load(&source(&["format: json"])).definition.unwrap();
    let (client, options) = (client_options(&definition.source).unwrap(), &definition.source.options);
    assert_eq!(client.transport, Transport::Tcp);
    assert_eq!(client.credentials.method, SignMethod::HmacSha1);
    assert_eq!(client.request_timeout, Duration::from_secs(5));
    assert_eq!(client.hosts[0].as_str(), "http://127.0.0.1:1/v2/index.php");
    assert_eq!(options.integer(&BATCH_SIZE), 16);
    assert_eq!(options.duration(&REQUEST_TIMEOUT), Duration::from_millis(5000));
    assert_eq!(options.duration(&POLLING_WAIT_TIMEOUT), Duration::from_secs(10));
    assert_eq!(options.duration(&KEY_ALIVE_TIMEOUT), Duration::from_secs(60));
    assert_eq!(options.integer(&RECEIVE_CONCURRENCY), 1);
    assert_eq!(options.integer(&RETRY_TIMES), 3);
    assert_eq!(options.duration(&MAX_BLOCK_TIMEOUT), Duration::ZERO);
    assert!(!format!("{definition:?} {client:?}").contains("T0PS3CRET"));
}

/// The four samples of the page.
#[test]
fn the_samples_of_the_flink_connectors_page_are_valid_key_by_key() {
    let reads = ["request-timeout: 5000ms", "polling-wait-timeout: 10s", "key-alive-timeout: 5min"];
    let writes = ["request-timeout: 5000ms", "retry-times: '3'", "max-block-timeout: 0s"];
    let key = ["primaryKey: [id]"];
    let common = ["sign-method: HmacSHA1", "batch-size: '16'"];
    let json = ["format: json", "json.fail-on-missing-field: 'false'", "json.ignore-parse-errors: 'true'"];
    for format in [&json[..], &["format: csv"]] {
        assert_eq!(told(&source(&[format, &common, &reads, &key].concat())), [""; 0]);
        assert_eq!(told(&sink(&[format, &common, &writes].concat())), [""; 0]);
    }
    let read = load(&source(&["format: json", "key-alive-timeout: 5min", "primaryKey: id"])).definition.unwrap();
    assert_eq!(
        resolve(&read).unwrap().primary_key,
        Some(PrimaryKey { columns: [0].into(), window: Duration::from_secs(300) })
    );
    // The page lists the options of both sides as one.
    let all = [&json[..], &common, &reads, &writes[1..]].concat();
    let told = [told(&source(&[&all[..], &key].concat())), told(&sink(&all))].concat();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|told| told.contains("warning: ") && told.contains(" has no effect on a s")), "{told:?}");
}

#[test]
fn a_primary_key_is_for_the_source_and_a_window_without_one_is_told() {
    let window = told(&source(&["format: json", "key-alive-timeout: 5min"]));
    assert!(
        window[0].contains("warning: `key-alive-timeout` needs `primaryKey`, and has no effect without it"),
        "{window:?}"
    );
    let of_sink = told(&sink(&["format: json", "primaryKey: id"]));
    assert!(of_sink[0].contains("only for a source that drops rows by it: `cmq`"), "{of_sink:?}");
    assert_eq!(resolve(&load(&source(&["format: json"])).definition.unwrap()).unwrap().primary_key, None);
}

#[test]
fn options_of_the_other_side_are_taken_and_said_to_have_no_effect() {
    golden(&[
        (source(&["format: json", "retry-times: 2"]), &["9:16: warning: `retry-times` has no effect on a source"]),
        (
            sink(&["format: json", "receive.concurrency: 2"]),
            &["8:24: warning: `receive.concurrency` has no effect on a sink"],
        ),
    ]);
}

#[test]
fn a_key_that_no_request_could_carry_is_refused() {
    let with = |key: &str| source(&["format: json"]).replace("${MNS_ACCESS_KEY_SECRET}", key);
    let told: &[&str] = &["6:15: error: the value of `secret-key` cannot be used; expected a text without line ends"];
    golden(&[(with("' '"), told), (with("\"a\\nb\""), told)]);
}

#[test]
fn the_user_of_a_url_is_shown_nowhere() {
    let text = source(&["format: json"]).replace("http://127.0.0.1:1", "http://me:PASSWORD@a");
    let shown = load(&text).report.render(queuewarden::definition::Style::Plain);
    assert!(shown.contains("http://***:***@a") && !shown.contains("PASSWORD") && !shown.contains("me:"), "{shown}");
}

#[test]
fn hosts_are_urls_of_name_servers_or_one_endpoint() {
    let hosts = |hosts: &str, more: &[&str]| {
        source(&[&["format: json"], more].concat()).replace("http://127.0.0.1:1", &format!("'{hosts}'"))
    };
    let expected = "expected `http://` or `https://` URLs without a user, password or query, separated by `;`";
    golden(&[
        (hosts("http://a; https://b:1/x", &[]), &[]),
        (hosts("http://a", &["transport: http"]), &[]),
        (hosts("a:80", &[]), &[&format!("3:10: error: `hosts` is `a:80`; {expected}; did you mean `http://a:80`?")]),
        (hosts("ftp://a", &[]), &[&format!("3:10: error: `hosts` is `ftp://a`; {expected}")]),
        (hosts("http://a;http://u:p@b", &[]), &[&format!("3:10: error: `hosts` holds `http://...@b`; {expected}")]),
        (hosts("http://a,http://b", &[]), &[&format!("3:10: error: `hosts` is `http://a,http://b`; {expected}")]),
        (hosts("http://a;", &[]), &[&format!("3:10: error: a part of `hosts` is empty; {expected}")]),
        (hosts("http://a;http://A/", &[]), &["3:10: error: `hosts` holds `http://A/` twice; name each once"]),
        (
            hosts("http://a;http://b", &["transport: http"]),
            &["3:10: error: `hosts` holds 2 URLs; with `transport: http` it is the one HTTP endpoint"],
        ),
        (
            hosts("http://cmq-nameserver-vpc-gz.api.tencentyun.com", &["transport: http"]),
            &["3:10: warning: `hosts` looks like a name server, but `transport` is `http`; say `transport: tcp`, or \
               the HTTP endpoint of the region"],
        ),
        (
            hosts("https://cmq-gz.public.tencenttdmq.com", &[]),
            &[
                "3:10: warning: `hosts` looks like an HTTP endpoint, but `transport` is `tcp`; say `transport: http`, or \
               a name server of the region",
            ],
        ),
    ]);
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    let json = |lines: &[&str]| source(&[&["format: json"], lines].concat());
    golden(&[
        (
            source(&[]),
            &[
                "1:1: error: the required option `format` is missing from `source`; expected the name of a format: `json`, `csv`",
            ],
        ),
        (
            source(&["format: raw"]),
            &["8:11: error: `cmq` does not go with the format `raw`; expected the name of a format: `json`, `csv`"],
        ),
        (json(&["batch-size: 17"]), &["9:15: error: `batch-size` is `17`; expected an integer from 1 to 16"]),
        (
            json(&["polling-wait-timeout: 31s"]),
            &["9:25: error: `polling-wait-timeout` is `31s`; expected a duration from 0s to 30s, such as `10s`"],
        ),
        (
            json(&["polling-wait-timeout: 1500ms"]),
            &["9:25: warning: `polling-wait-timeout`: the service counts whole seconds, so 2s is used"],
        ),
        (
            json(&["sign-method: HmacSHA512"]),
            &[
                "9:16: error: `sign-method` is `HmacSHA512`; expected `HmacSHA1` or `HmacSHA256`; did you mean `HmacSHA1`?",
            ],
        ),
        (json(&["transport: udp"]), &["9:14: error: `transport` is `udp`; expected `tcp` or `http`"]),
        (json(&["retry-time: 3"]), &["9:3: error: `source` has no option `retry-time`; did you mean `retry-times`?"]),
        (
            json(&["json.ignore-parse-errors: true", "json.fail-on-missing-field: true"]),
            &[
                "10:31: error: json.fail-on-missing-field and json.ignore-parse-errors cannot both be true: one makes a missing \
               field an error, the other ignores errors",
            ],
        ),
        (
            source(&["format: csv", "csv.quote-character: \"'\"", "csv.disable-quote-character: true"]),
            &["9:24: error: csv.quote-character cannot be given while csv.disable-quote-character is true"],
        ),
        (
            source(&["format: csv", "csv.field-delimiter: \"\\n\""]),
            &["9:24: error: csv.field-delimiter cannot be a line end"],
        ),
        (
            json(&[]).replace("queue: q", "queue: 1q"),
            &["4:10: error: `queue` is `1q`; expected a queue: a letter, then up to 63 letters, digits, `-` or `_`"],
        ),
        (
            json(&[]).replace("AKID1", "LTAI1"),
            &["5:14: warning: `secret-id` does not begin with `AKID`, as those of the service do"],
        ),
        (
            sink(&["format: json", "max-block-timeout: soon"]),
            &["8:22: error: `max-block-timeout` is `soon`; expected a duration from 0s to 1h, such as `10s`"],
        ),
        (
            sink(&["format: json", "retry-times: -1"]),
            &["8:16: error: `retry-times` is `-1`; expected an integer from 0 to 2147483647"],
        ),
    ]);
}

#[test]
fn one_queue_has_one_reader_in_a_process_whatever_address_it_is_read_by() {
    let read = |hosts: &str, transport: &str| {
        let transport = format!("transport: {transport}");
        let text = source(&["format: json", &transport]).replace("http://127.0.0.1:1", hosts);
        resolve(&load(&text).definition.unwrap()).unwrap().source_identity
    };
    let tcp = read("http://cmq-nameserver-vpc-gz.api.tencentyun.com", "tcp");
    assert_eq!(tcp.to_string(), "cmq gz q");
    assert_eq!(read("https://cmq-gz.public.tencenttdmq.com", "http"), tcp);
    assert_ne!(read("http://cmq-nameserver-vpc-sh.api.tencentyun.com", "tcp"), tcp);
}

#[test]
fn a_csv_message_is_as_many_rows_as_it_has_lines_by_default() {
    use queuewarden::model::RowsBuilder;
    let rows = |lines: &[&str], body: &str| {
        let definition = load(&source(lines)).definition.unwrap();
        let plan = resolve(&definition).unwrap();
        let mut rows = RowsBuilder::new(&plan.schema);
        (plan.decoder)().unwrap().decode(body.as_bytes(), &mut rows).map(|decoded| decoded.rows)
    };
    assert_eq!(rows(&["format: csv"], "1,a\n2,b\r\n3,\"c\nd\"\n"), Ok(3));
    assert_eq!(rows(&["format: csv", "csv.line-delimiter: ';'"], "1,a;2,b"), Ok(2));
    assert_eq!(rows(&["format: json"], "{\"id\":1}"), Ok(1));
    assert!(rows(&["format: csv", "csv.line-delimiter: ';'"], "1,a\n2,b").is_err());
}
