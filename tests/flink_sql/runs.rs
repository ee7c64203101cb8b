//! The scripts of the pages run: a row arrives.

use std::{collections::BTreeMap, fs};

use queuewarden::connectors::mns::wire::QueueSettings;

use crate::{
    common::{
        EmulatorProcess, KEY_ID, KEY_SECRET, Place, SOON, Supervisor,
        numbers::{client, send},
        rocketmq::{Outgoing, Servers, five, four},
        until,
    },
    imported, scripts,
};

/// The scripts whose names begin so.
fn scripts_of(prefix: &str) -> Vec<(String, String)> {
    scripts().into_iter().filter(|(name, _)| name.starts_with(prefix)).collect()
}

/// The script with texts in the place of others, each of which it has.
fn replaced(script: &str, pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(script.to_owned(), |script, (from, to)| {
        assert!(script.contains(from), "{from}: {script}");
        script.replace(from, to)
    })
}

/// Imports a script and runs what it becomes.
fn run(place: &mut Place, name: &str, script: &str, variables: &[(&str, &str)]) -> Supervisor {
    place.define(name, &format!("{}checkpoint: {{ interval: 200ms }}\n", imported(name, script)));
    place.run_with(variables)
}

/// Waits until a line is printed.
fn prints(place: &Place, supervisor: &Supervisor, name: &str, line: &str) {
    until(SOON, &format!("{name} prints {line}"), || {
        let failed = supervisor.pipeline(&status_name(place, name)).is_some_and(|status| status["state"] == "failed");
        assert!(!failed, "{name}: {}", supervisor.log());
        let printed = fs::read_to_string(place.path("stdout")).unwrap_or_default();
        printed.lines().any(|printed| printed == line).then_some(())
    });
}

fn status_name(place: &Place, name: &str) -> String {
    let text = fs::read_to_string(place.path("pipelines").join(format!("{name}.yaml"))).unwrap();
    text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap().to_owned()
}

const NOTIFICATION: &str = r#"{"events": [{"eventName": "ObjectCreated:PutObject", "eventSource": "acs:oss",
  "eventTime": "2026-01-15T08:30:00.000Z", "region": "cn-hangzhou",
  "oss": {"bucket": {"name": "photos"}, "object": {"key": "a/b.jpg", "size": 1024}}}]}"#;

#[test]
fn the_scripts_of_mns_run() {
    let emulator = EmulatorProcess::start(&[]);
    let key = [("'your-ak'", KEY_ID), ("'your-sk'", KEY_SECRET)].map(|(from, to)| (from, format!("'{to}'")));
    let scripts = scripts_of("mns-");
    assert_eq!(scripts.len(), 5);
    for (name, script) in scripts {
        let queue = name.replace('.', "-");
        let mut place = Place::new();
        let variables = [
            ("endpoint", emulator.endpoint.as_str()),
            ("region", "cn-hangzhou"),
            ("queueName", &queue),
            ("accessKeyId", KEY_ID),
            ("accessKeySecret", KEY_SECRET),
        ];
        if name.starts_with("mns-json") {
            let body = r#"{"userId": 7, "action": "buy", "timestamp": "2026-01-15 08:30:00", "payload": "x"}"#;
            send(&emulator.endpoint, &queue, 30, &[body]);
            let script = replaced(
                &script,
                &[
                    ("http://your-account-id.mns.cn-hangzhou.aliyuncs.com", &emulator.endpoint),
                    ("my-events-queue", &queue),
                    (key[0].0, &key[0].1),
                    (key[1].0, &key[1].1),
                ],
            );
            let mut supervisor = run(&mut place, &name, &script, &[]);
            prints(&place, &supervisor, &name, "+I[7, buy, 2026-01-15T08:30, x]");
            assert_eq!(supervisor.stop(), 0);
        } else if name.starts_with("mns-oss") {
            let other = NOTIFICATION.replace("ObjectCreated:PutObject", "ObjectRemoved:DeleteObject");
            send(&emulator.endpoint, &queue, 30, &[&other, NOTIFICATION]);
            let script = replaced(
                &script,
                &[
                    ("http://123456789.mns.cn-hangzhou.aliyuncs.com", &emulator.endpoint),
                    ("oss-events-queue", &queue),
                    ("${secret_values.ak_id}", "${accessKeyId}"),
                    ("${secret_values.ak_secret}", "${accessKeySecret}"),
                ],
            );
            let mut supervisor = run(&mut place, &name, &script, &variables);
            prints(&place, &supervisor, &name, "+I[ObjectCreated:PutObject, photos, a/b.jpg, 1024, 2026-01-15T08:30]");
            until(SOON, "both are acknowledged", || (emulator.left(&queue) == 0).then_some(()));
            let printed = fs::read_to_string(place.path("stdout")).unwrap();
            assert!(!printed.contains("ObjectRemoved"), "{printed}");
            assert_eq!(supervisor.stop(), 0);
        } else {
            send(&emulator.endpoint, &queue, 30, &[r#"{"data": "x"}"#]);
            let mut supervisor = run(&mut place, &name, &script, &variables);
            prints(&place, &supervisor, &name, "+I[x]");
            assert_eq!(supervisor.stop(), 0);
        }
    }
}

#[test]
fn the_scripts_of_cmq_run() {
    let emulator = EmulatorProcess::start_open(&["--cmq", "127.0.0.1:0"]);
    let scripts = scripts_of("cmq-");
    assert_eq!(scripts.len(), 5);
    for (name, script) in scripts {
        let queue = name.clone();
        let sink_queue = format!("{name}-sink");
        let script = script.replace("sink_queue_name", &sink_queue);
        let pairs =
            [("http://cmq-nameserver-vpc-gz.api.tencentyun.com", emulator.cmq.as_str()), ("queue_name", &queue)];
        let script = replaced(&script, &pairs);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for queue in [&queue, &sink_queue] {
            runtime.block_on(client(&emulator.endpoint).create_queue(queue, &QueueSettings::default())).unwrap();
        }
        let bodies: &[&str] = match name.as_str() {
            "cmq-csv-source" => &["1,Ada", "1,again"],
            "cmq-json-source" | "cmq-copy" => &[r#"{"id":1,"name":"Ada"}"#, r#"{"id":1,"name":"again"}"#],
            _ => &[],
        };
        if !bodies.is_empty() {
            send(&emulator.endpoint, &queue, 30, bodies);
        }
        let mut place = Place::new();
        let mut supervisor = run(&mut place, &name, &script, &[]);
        match name.as_str() {
            "cmq-csv-source" | "cmq-json-source" => {
                until(SOON, "both are acknowledged", || (emulator.left(&queue) == 0).then_some(()));
                let printed = fs::read_to_string(place.path("stdout")).unwrap();
                // Of two rows with the same key the first goes through, whichever that is.
                assert!(["+I[1, Ada]\n", "+I[1, again]\n"].contains(&printed.as_str()), "{printed}");
            }
            "cmq-copy" => until(SOON, "one goes through", || {
                (emulator.left(&queue) == 0 && emulator.left(&sink_queue) == 1).then_some(())
            }),
            _ => until(SOON, "rows arrive", || (emulator.left(&queue) > 5).then_some(())),
        }
        assert_eq!(supervisor.stop(), 0);
    }
}

/// Runs every script of one generation of servers, and sees rows arrive in a topic or on stdout.
fn run_on_rocketmq(servers: &Servers, prefixes: &[&str]) -> usize {
    let mut count = 0;
    for (name, script) in prefixes.iter().flat_map(|prefix| scripts_of(prefix)) {
        count += 1;
        let (topic, sink_topic) = (format!("{name}-topic"), format!("{name}-sink-topic"));
        let address = servers.name_server();
        let endpoints = [
            "rmq-xxx.rocketmq.gz.qcloud.tencenttdmq.com:8080",
            "http://rocketmq-xxx.rocketmq.gz.qcloud.tencenttdmq.com:9876",
            "YourEndpoint:8080",
            "yourEndpoint:8080",
        ];
        let script = endpoints.iter().fold(script, |script, endpoint| script.replace(endpoint, &address));
        let script =
            script.replace("YourSinkTopic", &sink_topic).replace("YourTopic", &topic).replace("yourTopicName", &topic);
        servers.create_topic(&topic, 2);
        servers.create_topic(&sink_topic, 2);
        // The 4.x sample starts at the end of the topic.
        let from_the_end = name == "rocketmq4-source" || name == "rocketmq-binary";
        let body = |n: usize| format!("{n}\u{1}2\u{1}buy").into_bytes();
        let outgoing =
            |n: usize| Outgoing { queue: 0, body: body(n), keys: None, tags: None, properties: BTreeMap::new() };
        let reads = name.ends_with("-source") || name == "rocketmq-binary" || name == "rocketmq-copy";
        if reads && !from_the_end {
            servers.send(&topic, &[outgoing(1)]);
        }
        let mut place = Place::new();
        let mut supervisor = run(&mut place, &name, &script, &[]);
        let held = |topic: &str| servers.offsets(topic).iter().map(|(first, next)| next - first).sum::<i64>();
        let printed = || fs::read_to_string(place.path("stdout")).unwrap_or_default();
        let mut sent = 1;
        until(SOON, &format!("{name}: a row arrives"), || {
            let failed =
                supervisor.pipeline(&status_name(&place, &name)).is_some_and(|status| status["state"] == "failed");
            assert!(!failed, "{name}: {}", supervisor.log());
            match reads {
                false => (held(&topic) > 3).then_some(()),
                true if name == "rocketmq-copy" => (held(&sink_topic) > 0).then_some(()),
                true => {
                    if from_the_end && printed().is_empty() {
                        servers.send(&topic, &[outgoing(sent)]);
                        sent += 1;
                    }
                    let expected = if name == "rocketmq-binary" { "+I[[" } else { ", 2, buy]" };
                    printed().contains(expected).then_some(())
                }
            }
        });
        assert_eq!(supervisor.stop(), 0, "{name}: {}", supervisor.log());
    }
    count
}

#[test]
fn the_scripts_of_rocketmq_5_run() {
    let Some(servers) = five() else { return };
    assert_eq!(run_on_rocketmq(servers, &["rocketmq5-", "rocketmq-"]), 4);
}

#[test]
fn the_scripts_of_rocketmq_4_and_mq_run() {
    let Some(servers) = four() else { return };
    assert_eq!(run_on_rocketmq(servers, &["rocketmq4-", "mq-"]), 5);
}
