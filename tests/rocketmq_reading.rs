//! Promises of the source against real brokers of both generations: queues that come, brokers that go, where reading
//! begins and ends, filters, and several processes.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use common::{
    Place, Process, SOON, Supervisor,
    rocketmq::{Generation, Outgoing, Reading, Servers, bodies, five, four, positions, rows},
    until,
};

fn message(queue: u32, body: impl Into<String>) -> Outgoing {
    Outgoing { queue, body: body.into().into_bytes(), ..Outgoing::default() }
}

fn numbered(text: &str, count: u32, queues: u32) -> Vec<Outgoing> {
    (0..count).map(|n| message(n % queues, format!("{text} {n:04}"))).collect()
}

fn texts<'a>(messages: impl IntoIterator<Item = &'a Outgoing>) -> Vec<String> {
    let mut texts: Vec<_> =
        messages.into_iter().map(|message| String::from_utf8(message.body.clone()).expect("text")).collect();
    texts.sort();
    texts
}

/// Waits until exactly these bodies are in the folder that is named as its pipeline; a body too many is told at once.
fn writes(place: &Place, name: &str, supervisor: &Supervisor, wanted: &[String]) {
    until(SOON, "the bodies are written", || {
        let found = bodies(&place.path(name));
        assert!(found.len() <= wanted.len(), "{found:?} instead of {wanted:?}");
        (found == wanted).then_some(()).or_else(|| {
            let status = supervisor.pipeline(name);
            assert!(status.is_none_or(|status| status["state"] != "failed"), "{}", supervisor.log());
            None
        })
    });
}

/// Waits until the state holds a position of each queue, as its begin is recorded before it is read.
fn has_begun(supervisor: &Supervisor, lanes: usize) {
    until(SOON, "every queue is read", || {
        let status = supervisor.pipeline("p")?;
        assert_ne!(status["state"], "failed", "{}", supervisor.log());
        (status["lanes"].as_array().map_or(0, Vec::len) == lanes && status["state"] == "running").then_some(())
    });
}

/// Latest is the end of what was there at the start, and a queue that comes later is read from its beginning.
fn a_queue_that_is_added_is_read_from_its_beginning(servers: &Servers) {
    servers.create_topic("grows", 2);
    servers.send("grows", &numbered("before", 10, 2));
    let mut place = Place::new();
    let options = ["rocketmq.source.startup.scan.mode: latest", "rocketmq.client.partition.discovery.interval.ms: 500"];
    place.define("p", &Reading::new(servers, "grows", "grows-group", &options).definition(&place.path("p")));
    let mut supervisor = place.run();
    has_begun(&supervisor, 2);
    servers.create_topic("grows", 4);
    // At once, so that most are in the new queues before anybody has found these.
    let after = numbered("after", 40, 4);
    servers.send("grows", &after);
    writes(&place, "p", &supervisor, &texts(&after));
    assert_eq!(supervisor.stop(), 0);
    assert_eq!(positions(&place, "p", "grows"), BTreeMap::from([(0, 15), (1, 15), (2, 10), (3, 10)]));
}

/// The pipeline may be there before its topic.
fn a_topic_that_comes_later_is_waited_for(servers: &Servers) {
    let mut place = Place::new();
    place.define("p", &Reading::new(servers, "later", "later-group", &[]).definition(&place.path("p")));
    let mut supervisor = place.run();
    until(SOON, "it says what it waits for", || {
        let status = supervisor.pipeline("p")?;
        assert_eq!(status["state"], "starting", "{}", supervisor.log());
        status["troubles"].to_string().contains("there is no topic later").then_some(())
    });
    servers.create_topic("later", 2);
    let sent = numbered("sent", 10, 2);
    servers.send("later", &sent);
    writes(&place, "p", &supervisor, &texts(&sent));
    assert_eq!(supervisor.pipeline("p").unwrap()["restarts"], 0, "{}", supervisor.log());
    assert_eq!(supervisor.stop(), 0);
}

/// The broker's restart neither ends the generation nor takes long to be got over.
fn a_broker_that_restarts_is_read_on(servers: &Servers, endpoint: String, topic: &str) {
    servers.create_topic(topic, 4);
    let before = numbered("before", 100, 4);
    servers.send(topic, &before);
    let mut place = Place::new();
    let options = ["rocketmq.client.partition.discovery.interval.ms: 500"];
    let reading = Reading { endpoint, ..Reading::new(servers, topic, topic, &options) };
    place.define("p", &reading.definition(&place.path("p")));
    let mut supervisor = place.run();
    writes(&place, "p", &supervisor, &texts(&before));
    servers.kill_broker();
    // Long enough that discovery has seen the route away.
    until(SOON, "the pipeline is troubled", || (supervisor.pipeline("p")?["state"] == "degraded").then_some(()));
    servers.start_broker();
    let begun = Instant::now();
    let after = numbered("then", 100, 4);
    servers.send(topic, &after);
    writes(&place, "p", &supervisor, &texts(before.iter().chain(&after)));
    println!("{topic}: read on {:.1?} after the broker was back", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}\n{}", begun.elapsed(), supervisor.log());
    supervisor.wait_for_state("p", "running");
    assert_eq!(supervisor.pipeline("p").unwrap()["generation"], 1, "{}", supervisor.log());
    assert_eq!(supervisor.stop(), 0);
    let at_end = (0..4).map(|queue| (queue, 50)).collect();
    assert_eq!(positions(&place, "p", topic), at_end);
}

/// What comes while the process is down is read, though nothing was ever read before.
fn latest_is_resolved_once(servers: &Servers) {
    servers.create_topic("idle", 2);
    servers.send("idle", &numbered("before", 10, 2));
    let mut place = Place::new();
    let options = ["rocketmq.source.startup.scan.mode: latest"];
    place.define("p", &Reading::new(servers, "idle", "idle-group", &options).definition(&place.path("p")));
    let mut supervisor = place.run();
    has_begun(&supervisor, 2);
    supervisor.process.kill_9();
    assert_eq!(positions(&place, "p", "idle"), BTreeMap::from([(0, 5), (1, 5)]));
    let meanwhile = numbered("meanwhile", 6, 2);
    servers.send("idle", &meanwhile);
    let mut supervisor = place.run();
    writes(&place, "p", &supervisor, &texts(&meanwhile));
    assert_eq!(supervisor.stop(), 0);
}

/// Runs to the end that the source has by itself.
fn finish(place: &mut Place) {
    let mut command = place.run_command();
    command.arg("--exit-when-finished");
    let mut process = Process(command.spawn().expect("it starts"));
    let code = process.wait(SOON).code();
    assert_eq!(code, Some(0), "{}", place.log());
}

/// Sends in two parts, with a broker's clock between them; answers a time between both.
fn two_parts(servers: &Servers, topic: &str, queues: u32) -> (Vec<Outgoing>, Vec<Outgoing>, i64) {
    servers.create_topic(topic, queues);
    let (first, second) = (numbered("first", 20, queues), numbered("second", 20, queues));
    servers.send(topic, &first);
    let last = servers.read(topic).iter().map(|message| message.stored).max().expect("messages");
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    until(SOON, "the clock goes on", || (now() as i64 > last + 20).then_some(()));
    servers.send(topic, &second);
    (first, second, last + 10)
}

fn a_time_to_stop_finishes_the_pipeline(servers: &Servers) {
    let (first, _, between) = two_parts(servers, "bounded", 4);
    let mut place = Place::new();
    let stop = format!("rocketmq.source.stop.offset.timestamp: {between}");
    place.define("p", &Reading::new(servers, "bounded", "bounded-group", &[&stop]).definition(&place.path("p")));
    finish(&mut place);
    assert_eq!(bodies(&place.path("p")), texts(&first));
    assert_eq!(positions(&place, "p", "bounded"), (0..4).map(|queue| (queue, 5)).collect());
    // And stays so.
    servers.send("bounded", &numbered("third", 4, 4));
    finish(&mut place);
    assert_eq!(bodies(&place.path("p")), texts(&first));
}

/// Each way to say where reading begins, all at once, each as a group of its own.
fn reading_begins_where_the_options_say(servers: &Servers) {
    let (first, second, between) = two_parts(servers, "starts", 4);
    servers.create_group("from-group");
    for queue in 0..4 {
        // 5 of the first part and 5 of the second lie in each queue.
        servers.commit("from-group", "starts", queue, i64::from(queue) + 3);
    }
    // A whole second: what was stored before it is not read.
    let date = chrono::DateTime::from_timestamp_millis(between - 3_600_000).expect("a time");
    let zoned = date.with_timezone(&chrono::FixedOffset::east_opt(8 * 3600).expect("an offset"));
    let date = format!("rocketmq.source.startup.offset.date: '{}'", zoned.format("%Y-%m-%d %H:%M:%S"));
    let timestamp = format!("rocketmq.source.startup.offset.timestamp: {between}");
    let all = || first.iter().chain(&second);
    let skip = |count: &dyn Fn(u32) -> usize| {
        let of_queue = |queue| all().filter(move |message| message.queue == queue).skip(count(queue));
        texts((0..4).flat_map(of_queue))
    };
    let cases: [(&str, Vec<&str>, Vec<String>); 5] = [
        ("from-earliest", vec!["rocketmq.source.startup.scan.mode: earliest"], texts(all())),
        ("from-timestamp", vec![&timestamp], texts(&second)),
        ("from-date", vec![&date, "rocketmq.client.timeZone: Asia/Shanghai"], texts(all())),
        ("from-offset", vec!["rocketmq.source.startup.offset.specific: 7"], skip(&|_| 7)),
        ("from-group", vec!["rocketmq.source.startup.scan.mode: group_offsets"], skip(&|queue| queue as usize + 3)),
    ];
    let mut place = Place::new();
    for (name, options, _) in &cases {
        place.define(name, &Reading::new(servers, "starts", name, options).definition(&place.path(name)));
    }
    let mut supervisor = place.run();
    for (name, _, wanted) in &cases {
        writes(&place, name, &supervisor, wanted);
    }
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
}

/// Tags and expressions are judged by the broker.
fn filters_are_judged_by_the_broker(servers: &Servers) {
    servers.create_topic("filtered", 4);
    let regions = ["north", "south"];
    let messages: Vec<_> = (0..120)
        .map(|n| Outgoing {
            tags: (n % 4 != 3).then(|| ["TagA", "TagB", "TagC"][n % 4].to_owned()),
            properties: BTreeMap::from([
                ("amount".to_owned(), (n % 10).to_string()),
                ("region".to_owned(), regions[n % 2].to_owned()),
            ]),
            ..message(n as u32 % 4, format!("{n:04}"))
        })
        .collect();
    servers.send("filtered", &messages);
    let keep = |wanted: &dyn Fn(usize) -> bool| {
        texts(messages.iter().enumerate().filter(|(n, _)| wanted(*n)).map(|(_, message)| message))
    };
    let cases: [(&str, &str, Vec<String>); 4] = [
        ("one-tag", "rocketmq.source.filter.tag: TagA", keep(&|n| n % 4 == 0)),
        ("two-tags", "rocketmq.source.filter.tag: TagA || TagC", keep(&|n| n % 4 == 0 || n % 4 == 2)),
        (
            "sql",
            "rocketmq.source.filter.sql: amount BETWEEN 3 AND 6 AND region = 'north'",
            keep(&|n| (3..=6).contains(&(n % 10)) && n % 2 == 0),
        ),
        ("sql-tags", "rocketmq.source.filter.sql: TAGS IS NULL OR amount > 8", keep(&|n| n % 4 == 3 || n % 10 > 8)),
    ];
    let mut place = Place::new();
    for (name, option, _) in &cases {
        place.define(name, &Reading::new(servers, "filtered", name, &[option]).definition(&place.path(name)));
    }
    let mut supervisor = place.run();
    for (name, _, wanted) in &cases {
        writes(&place, name, &supervisor, wanted);
    }
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
    // What the filter left out is read too.
    for (name, ..) in &cases {
        assert_eq!(servers.lag(name, "filtered"), [0; 4], "{name}");
    }
}

/// Two processes share a topic: each row once, and both have some.
fn two_processes_share_a_topic(servers: &Servers, strategy: &str) {
    let topic = format!("shared-{strategy}");
    servers.create_topic(&topic, 8);
    let sent = numbered("shared", 400, 8);
    servers.send(&topic, &sent);
    let mut places = [Place::new(), Place::new()];
    let mut supervisors: Vec<_> = (0..2)
        .zip(&mut places)
        .map(|(index, place)| {
            let (index, strategy) =
                (format!("parallelism.index: {index}"), format!("rocketmq.source.allocate.strategy: {strategy}"));
            let options = ["parallelism: 2", &index, &strategy];
            let reading = Reading::new(servers, &topic, &topic, &options);
            place.define("p", &reading.definition(&place.path("p")));
            place.run()
        })
        .collect();
    let all = || places.iter().map(|place| bodies(&place.path("p")).len()).sum::<usize>();
    until(SOON, "all is written", || (all() >= sent.len()).then_some(()));
    for supervisor in &mut supervisors {
        assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
    }
    let shares: Vec<Vec<String>> = places.iter().map(|place| bodies(&place.path("p"))).collect();
    let mut together = shares.concat();
    together.sort();
    assert_eq!(together, texts(&sent));
    let queues: Vec<Vec<u64>> = places
        .iter()
        .map(|place| {
            let mut queues: Vec<_> =
                rows(&place.path("p")).iter().map(|row| row["queue-id"].as_u64().expect("a queue")).collect();
            queues.sort_unstable();
            queues.dedup();
            queues
        })
        .collect();
    println!("{strategy}: {queues:?}");
    assert!(queues.iter().all(|queues| !queues.is_empty()) && queues.concat().len() == 8, "{queues:?}");
    assert_eq!(servers.lag(&topic, &topic), [0; 8]);
}

type Promise = fn(&Servers);

/// The promises in one test for each generation: a restart of the broker would be felt by the others.
fn promises(servers: &Servers) {
    let timed = |what: &str, begun: Instant| println!("{:?}: {what}: {:.1?}", servers.generation, begun.elapsed());
    let each: [(&str, Promise); 7] = [
        ("later topic", a_topic_that_comes_later_is_waited_for),
        ("added queue", a_queue_that_is_added_is_read_from_its_beginning),
        ("latest", latest_is_resolved_once),
        ("stop", a_time_to_stop_finishes_the_pipeline),
        ("starts", reading_begins_where_the_options_say),
        ("filters", filters_are_judged_by_the_broker),
        ("restart", |servers| a_broker_that_restarts_is_read_on(servers, servers.name_server(), "restarts")),
    ];
    for (what, promise) in each {
        let begun = Instant::now();
        promise(servers);
        timed(what, begun);
    }
    for strategy in ["hash", "average"] {
        let begun = Instant::now();
        two_processes_share_a_topic(servers, strategy);
        timed(strategy, begun);
    }
    if servers.generation == Generation::Five {
        a_broker_that_restarts_is_read_on(servers, servers.proxy(), "restarts-proxied");
    }
}

/// Started side by side, one of the two lost the news of its topics on their way to its name server.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn from_5_queues_that_come_are_read_and_brokers_that_go_are_awaited() {
    let _turn = one_at_a_time();
    let Some(servers) = five() else { return };
    promises(servers);
}

#[test]
fn from_4_queues_that_come_are_read_and_brokers_that_go_are_awaited() {
    let _turn = one_at_a_time();
    let Some(servers) = four() else { return };
    promises(servers);
}
