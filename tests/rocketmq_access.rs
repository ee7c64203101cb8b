//! Servers that check access keys: who has the right one reads and writes, who has not is told, and no log has a secret.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use common::{
    Place, SOON,
    rocketmq::{ACCESS_KEY, Generation, Outgoing, SECRET_KEY, Servers, Wanted},
    until,
};

const WRONG: &str = "another-secret-that-is-never-shown";
const COUNT: i64 = 50;

fn definition(servers: &Servers, group: &str, secret: &str) -> String {
    let (connector, endpoint) = (servers.connector(), servers.name_server());
    let client = format!(
        "  rocketmq.client.endpoints: {endpoint}
  rocketmq.client.channel: LOCAL
  rocketmq.client.accessKey: {ACCESS_KEY}
  rocketmq.client.secretKey: {secret}
"
    );
    format!(
        "source:
  connector: {connector}
{client}  rocketmq.source.topic: from
  rocketmq.source.group: {group}
  rocketmq.source.startup.scan.mode: earliest
  schema: {{ text: STRING }}
sink:
  connector: {connector}
{client}  rocketmq.sink.topic: to
"
    )
}

fn keys_are_checked(generation: Generation) {
    let Some(servers) = Servers::start(generation, Wanted { access_control: true, ..Wanted::default() }) else {
        return;
    };
    servers.create_topic("from", 2);
    servers.create_topic("to", 2);
    let message = |n| Outgoing { queue: n % 2, body: format!("text {n}").into_bytes(), ..Outgoing::default() };
    let sent: Vec<_> = (0..COUNT as u32).map(message).collect();
    servers.send("from", &sent);

    let mut place = Place::new();
    place.define("right", &definition(&servers, "right", SECRET_KEY));
    place.define("wrong", &definition(&servers, "wrong", WRONG));
    let mut supervisor = place.run();
    let written = || servers.offsets("to").iter().map(|(first, next)| next - first).sum::<i64>();
    until(SOON, "all is sent on", || (written() >= COUNT).then_some(()));
    let refused = supervisor.wait_for_state("wrong", "failed");
    println!("{generation:?}: {}", refused["last_error"]);
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
    assert_eq!(written(), COUNT);
    let log = supervisor.log();
    for secret in [SECRET_KEY, WRONG] {
        assert!(!log.contains(secret) && !refused.to_string().contains(secret), "{log}");
    }
}

#[test]
fn a_broker_of_5_lets_in_who_has_the_right_key_alone() {
    keys_are_checked(Generation::Five);
}

#[test]
fn a_broker_of_4_lets_in_who_has_the_right_key_alone() {
    keys_are_checked(Generation::Four);
}
