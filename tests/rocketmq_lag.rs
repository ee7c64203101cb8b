//! What the servers' own admin tool shows as lag is what is left to be read here.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod common;

use common::{
    Place, SOON, binary,
    rocketmq::{BROKER, CLUSTER, Outgoing, Reading, Servers, bodies, five, four},
    until,
};
use serde_json::Value;

const QUEUES: u32 = 8;

fn messages(counts: impl Iterator<Item = (u32, u32)>, text: &str) -> Vec<Outgoing> {
    let message =
        |queue, n| Outgoing { queue, body: format!("{text} {queue} {n}").into_bytes(), ..Outgoing::default() };
    counts.flat_map(|(queue, count)| (0..count).map(move |n| message(queue, n))).collect()
}

/// What `queuewarden lag` says of each queue.
fn ours(place: &Place, topic: &str) -> Vec<i64> {
    let mut command = binary();
    command.args(["lag", "p", "--json"]).arg("--pipelines").arg(place.path("pipelines"));
    let output = command.arg("--state").arg(place.path("state")).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lanes: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let behind = |queue| {
        let name = format!("{CLUSTER}/{topic}/{BROKER}/{queue}");
        let lane = lanes.as_array().expect("lanes").iter().find(|lane| lane["lane"] == name);
        lane.unwrap_or_else(|| panic!("no {name} in {lanes}"))["behind"].as_i64().expect("a number")
    };
    (0..QUEUES).map(behind).collect()
}

fn the_tool_counts_what_is_left(servers: &Servers, endpoint: &str, topic: &str, group: &str) {
    servers.create_topic(topic, QUEUES);
    let read = messages((0..QUEUES).map(|queue| (queue, 20 + queue)), "read");
    servers.send(topic, &read);
    let mut place = Place::new();
    let reading = Reading { endpoint: endpoint.to_owned(), ..Reading::new(servers, topic, group, &[]) };
    place.define("p", &reading.definition(&place.path("out")));
    let mut supervisor = place.run();
    let written = || bodies(&place.path("out")).len();
    until(SOON, "all is written", || (written() == read.len()).then_some(()));
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
    // A clean stop has committed the last of it.
    assert_eq!(servers.lag(group, topic), [0; QUEUES as usize], "{}", supervisor.log());

    let left: Vec<i64> = (0..QUEUES).map(|queue| i64::from(queue * queue)).collect();
    servers.send(topic, &messages((0..QUEUES).map(|queue| (queue, queue * queue)), "left"));
    assert_eq!(servers.lag(group, topic), left);
    assert_eq!(ours(&place, topic), left);
    // The tool itself, as an operator runs it. A proxy has the broker make no retry topic for a group, and without that
    // the tool wants to be told the topic.
    let arguments = ["consumerProgress", "-g", group, "-t", topic];
    let table = servers.mqadmin(if endpoint == servers.name_server() { &arguments[..3] } else { &arguments });
    let total: i64 = left.iter().sum();
    assert!(table.contains(&format!("Diff Total: {total}\n")), "{table}");

    let mut supervisor = place.run();
    let all = read.len() as i64 + total;
    until(SOON, "the rest is written", || (bodies(&place.path("out")).len() as i64 == all).then_some(()));
    until(SOON, "nothing is left", || (servers.lag(group, topic) == [0; QUEUES as usize]).then_some(()));
    assert_eq!(supervisor.stop(), 0, "{}", supervisor.log());
}

#[test]
fn the_admin_tool_of_5_counts_for_each_queue_what_is_left_to_be_read() {
    let Some(servers) = five() else { return };
    the_tool_counts_what_is_left(servers, &servers.name_server(), "lag-direct", "lag-direct-group");
}

#[test]
fn the_admin_tool_of_5_counts_for_each_queue_what_is_left_to_be_read_through_a_proxy() {
    let Some(servers) = five() else { return };
    the_tool_counts_what_is_left(servers, &servers.proxy(), "lag-proxied", "lag-proxied-group");
}

#[test]
fn the_admin_tool_of_4_counts_for_each_queue_what_is_left_to_be_read() {
    let Some(servers) = four() else { return };
    the_tool_counts_what_is_left(servers, &servers.name_server(), "lag-direct", "lag-direct-group");
}
