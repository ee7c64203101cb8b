use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    allocate::{Allocation, Strategy},
    client::{Channel, ClientOptions, Filter, PullStatus, Pulled},
    fake::{Fake, Log, Stored, busy},
    queues::SeenQueues,
    source::RocketmqSource,
    source_options::{OnLostPosition, SourceOptions},
    startup::Startup,
};
use crate::{
    connector::{LogReader, LogSource, Start},
    model::{Body, Fault, FaultKind, LaneId, Mend, MetaValue},
};

fn options() -> SourceOptions {
    SourceOptions {
        client: ClientOptions {
            endpoints: vec!["ns:1".to_owned()],
            namespace: Some("N".to_owned()),
            credentials: None,
            channel: Channel::Cloud,
            tls: false,
            request_timeout: Duration::from_secs(5),
        },
        topics: vec!["t".to_owned()],
        group: "g".to_owned(),
        filter: Filter::All,
        startup: Startup::Latest,
        stop_ms: None,
        allocation: Allocation { strategy: Strategy::Hash, parallelism: 1, index: 0 },
        discovery: Duration::from_secs(10),
        pull_batch: 32,
        pull_wait: Duration::from_secs(1),
        commit: true,
        on_lost_position: OnLostPosition::Fail,
        ingestion_is_stored: true,
    }
}

struct Tried {
    fake: Arc<Fake>,
    seen: Arc<SeenQueues>,
    source: RocketmqSource,
}

fn with(fake: Arc<Fake>, options: SourceOptions) -> Tried {
    let seen = Arc::new(SeenQueues::default());
    let source = RocketmqSource::new(options, fake.connect(), Arc::clone(&seen)).unwrap();
    Tried { fake, seen, source }
}

/// A queue that begins at 100 and holds messages stored at 0, 10, 20 ... ms.
fn one_queue(messages: usize, options: SourceOptions) -> Tried {
    let fake = Fake::with(&["a"], 1);
    let stored = |at: usize| Stored { body: at.to_string(), keys: None, tags: None, stored_ms: 10 * at as i64 };
    let log = Log { first: 100, messages: (0..messages).map(stored).collect() };
    fake.held().logs.insert(("a".into(), 0), log);
    with(fake, options)
}

fn lane(broker: &str, queue: u32) -> LaneId {
    LaneId(format!("c/N%t/{broker}/{queue}").into())
}

fn known(lanes: &[(LaneId, u64)]) -> BTreeMap<LaneId, u64> {
    lanes.iter().cloned().collect()
}

impl Tried {
    async fn open(&self, start: Start) -> Result<(Arc<dyn LogReader>, u64), Fault> {
        self.source.lanes(&BTreeMap::new()).await.unwrap();
        let opened = self.source.open(&lane("a", 0), start).await?;
        Ok((opened.reader, opened.position))
    }
}

#[tokio::test]
async fn a_lane_resumes_or_is_the_first_of_its_topic_or_was_added_to_it() {
    let tried = with(Fake::with(&["a"], 2), options());
    let none = tried.source.lanes(&BTreeMap::new()).await.unwrap();
    assert_eq!(none.owned, [(lane("a", 0), Start::First), (lane("a", 1), Start::First)]);
    let other_topic = known(&[(LaneId("c/N%u/a/0".into()), 5)]);
    assert_eq!(tried.source.lanes(&other_topic).await.unwrap(), none);
    let one = tried.source.lanes(&known(&[(lane("a", 1), 7)])).await.unwrap();
    assert_eq!(one.owned, [(lane("a", 0), Start::Added), (lane("a", 1), Start::Resume(7))]);
    assert!(one.others.is_empty());
}

#[tokio::test]
async fn a_topic_that_was_never_there_is_told_and_one_that_is_away_keeps_its_positions() {
    let tried = with(Fake::with(&["a"], 1), options());
    let queues = std::mem::take(&mut tried.fake.held().queues);
    let fault = tried.source.lanes(&BTreeMap::new()).await.unwrap_err();
    assert_eq!((fault.kind, fault.mend), (FaultKind::Missing, Mend::Retry));
    assert_eq!(fault.to_string(), "there is no topic N%t at ns:1");
    // Known from the state, or seen by an earlier generation.
    assert_eq!(tried.source.lanes(&known(&[(lane("a", 0), 7)])).await.unwrap(), Default::default());
    tried.fake.held().queues = queues;
    tried.source.lanes(&BTreeMap::new()).await.unwrap();
    tried.fake.held().queues.clear();
    assert_eq!(tried.source.lanes(&BTreeMap::new()).await.unwrap(), Default::default());
}

#[tokio::test]
async fn a_bounded_source_does_not_begin_without_a_queue_it_knows() {
    let tried = with(Fake::with(&["a"], 1), SourceOptions { stop_ms: Some(5), ..options() });
    let fault = tried.source.lanes(&known(&[(lane("a", 0), 7), (lane("b", 0), 7)])).await.unwrap_err();
    assert_eq!(fault.mend, Mend::Retry);
    assert!(fault.to_string().contains("c/N%t/b/0"), "{fault}");
    assert_eq!(tried.source.discovery_interval(), None);
    assert_eq!(tried.source.lanes(&known(&[(lane("a", 0), 7)])).await.unwrap().owned.len(), 1);
}

#[tokio::test]
async fn a_broker_that_is_away_does_not_deal_the_queues_of_the_others_anew() {
    let allocation = Allocation { strategy: Strategy::Average, parallelism: 2, index: 0 };
    let tried = with(Fake::with(&["a", "b"], 3), SourceOptions { allocation, ..options() });
    let both = tried.source.lanes(&BTreeMap::new()).await.unwrap();
    assert_eq!((both.owned.len(), both.others.len()), (3, 3));
    tried.fake.held().queues.retain(|queue| &*queue.broker == "b");
    let one = tried.source.lanes(&BTreeMap::new()).await.unwrap();
    assert!(!one.owned.is_empty() && one.owned.iter().all(|lane| both.owned.contains(lane)));
    assert!(one.others.iter().all(|lane| both.others.contains(lane)));
}

/// Process 0 of two.
fn shared() -> SourceOptions {
    let allocation = Allocation { strategy: Strategy::Average, parallelism: 2, index: 0 };
    SourceOptions { allocation, ..options() }
}

#[tokio::test]
async fn a_queue_added_to_a_topic_that_others_read_so_far_does_not_start_at_its_end() {
    let allocation = Allocation { strategy: Strategy::Hash, ..shared().allocation };
    let tried = with(Fake::with(&["a"], 4), SourceOptions { allocation, ..options() });
    let all = std::mem::take(&mut tried.fake.held().queues);
    let owned = allocation.owned(&all);
    tried.fake.held().queues =
        all.iter().zip(owned).filter(|(_, owned)| !owned).map(|(queue, _)| queue.clone()).collect();
    assert_eq!(tried.source.lanes(&BTreeMap::new()).await.unwrap().owned, []);
    tried.fake.held().queues = all;
    let now = tried.source.lanes(&BTreeMap::new()).await.unwrap();
    assert!(!now.owned.is_empty() && now.owned.iter().all(|(_, start)| *start == Start::Added), "{now:?}");
}

#[tokio::test]
async fn a_queue_that_another_process_has_read_goes_on_at_the_offset_of_the_group() {
    for (startup, group, position) in [
        (Startup::Latest, Some(101), 101),
        (Startup::Earliest, Some(101), 101),
        (Startup::Timestamp(15), Some(103), 103),
        (Startup::Latest, None, 104),
        (Startup::Earliest, None, 100),
    ] {
        let tried = one_queue(4, SourceOptions { startup, ..shared() });
        tried.fake.held().offsets.extend(group.map(|offset| (("a".into(), 0), offset)));
        let (_, found) = tried.open(Start::First).await.unwrap();
        assert_eq!(found, position, "{startup:?} {group:?}");
    }
    let broadcast = Allocation { strategy: Strategy::Broadcast, ..shared().allocation };
    let tried = one_queue(4, SourceOptions { allocation: broadcast, ..options() });
    tried.fake.held().offsets.insert(("a".into(), 0), 101);
    assert_eq!(tried.open(Start::First).await.unwrap().1, 104, "nobody else reads it for this process");
}

#[tokio::test]
async fn a_lane_starts_where_its_state_or_the_options_say() {
    let first = |startup| SourceOptions { startup, ..options() };
    for (startup, start, group, position) in [
        (Startup::Earliest, Start::First, None, 100),
        (Startup::Latest, Start::First, Some(101), 104),
        (Startup::Timestamp(15), Start::First, None, 102),
        (Startup::Timestamp(500), Start::First, None, 104),
        (Startup::Specific(103), Start::First, None, 103),
        (Startup::Specific(5), Start::First, None, 100),
        (Startup::Specific(500), Start::First, None, 104),
        (Startup::GroupOffsets, Start::First, Some(101), 101),
        (Startup::GroupOffsets, Start::First, None, 100),
        (Startup::Latest, Start::Added, Some(101), 101),
        (Startup::Latest, Start::Added, None, 100),
        (Startup::Earliest, Start::Resume(104), Some(101), 104),
    ] {
        let tried = one_queue(4, first(startup));
        tried.fake.held().offsets.extend(group.map(|offset| (("a".into(), 0), offset)));
        let (_, found) = tried.open(start).await.unwrap();
        assert_eq!(found, position, "{startup:?} {start:?} {group:?}");
    }
}

#[tokio::test]
async fn a_position_that_the_queue_has_no_more_is_told_or_left_as_the_option_says() {
    let lost = |on_lost_position| SourceOptions { on_lost_position, ..options() };
    let fault = one_queue(4, options()).open(Start::Resume(99)).await.err().unwrap();
    assert_eq!(fault.mend, Mend::Never);
    let text = fault.to_string();
    assert!(text.contains("position 99") && text.contains("100 to 104") && text.contains("on_lost_position"), "{text}");
    let earliest = one_queue(4, lost(OnLostPosition::Earliest)).open(Start::Resume(99)).await.unwrap();
    let latest = one_queue(4, lost(OnLostPosition::Latest)).open(Start::Resume(99)).await.unwrap();
    assert_eq!((earliest.1, latest.1), (100, 104));
}

#[tokio::test]
async fn a_position_beyond_the_end_is_lost_only_after_the_broker_had_time_to_start() {
    let tried = one_queue(4, options());
    assert_eq!(tried.open(Start::Resume(105)).await.err().unwrap().mend, Mend::Retry);
    tried.seen.long_beyond(&lane("a", 0));
    assert_eq!(tried.open(Start::Resume(105)).await.err().unwrap().mend, Mend::Never);
    // Meanwhile it was found: the next time begins anew.
    tried.open(Start::Resume(104)).await.unwrap();
    assert_eq!(tried.open(Start::Resume(105)).await.err().unwrap().mend, Mend::Retry);
}

#[tokio::test]
async fn messages_come_once_in_order_with_their_metadata_and_what_is_behind_them() {
    let tried = one_queue(3, SourceOptions { pull_batch: 2, ..options() });
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    let polled = reader.poll().await.unwrap();
    assert_eq!((polled.position, polled.behind, polled.end), (102, Some(1), false));
    let message = &polled.messages[1];
    assert_eq!((&*message.id, message.body.bytes().as_ref()), ("id-1 at 101 of c/N%t/a/0", &b"1"[..]));
    assert_eq!(message.meta[..2], [MetaValue::Text("t".into()), MetaValue::Millis(10)]);
    assert_eq!(message.meta[3..5], [MetaValue::Integer(0), MetaValue::Integer(101)]);
    let polled = reader.poll().await.unwrap();
    assert_eq!((polled.messages.len(), polled.position, polled.behind), (1, 103, Some(0)));
    let polled = reader.poll().await.unwrap();
    assert_eq!((polled.messages.len(), polled.position), (0, 103));
}

#[tokio::test]
async fn a_bounded_lane_ends_before_the_first_message_stored_at_its_time_or_after() {
    let tried = one_queue(4, SourceOptions { stop_ms: Some(20), ..options() });
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    let polled = reader.poll().await.unwrap();
    assert_eq!((polled.messages.len(), polled.position, polled.behind, polled.end), (2, 102, Some(0), true));
    // Opened again where it ended, or behind it.
    for position in [102, 103] {
        let (reader, _) = tried.open(Start::Resume(position)).await.unwrap();
        let polled = reader.poll().await.unwrap();
        assert_eq!((polled.messages.len(), polled.position, polled.end), (0, position, true));
    }
}

#[tokio::test]
async fn an_end_that_lies_in_the_future_is_not_where_the_queue_ends_now() {
    let stop_ms = chrono::Utc::now().timestamp_millis() + 60_000;
    let tried = one_queue(2, SourceOptions { stop_ms: Some(stop_ms), ..options() });
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    assert!(!reader.poll().await.unwrap().end);
    assert!(!reader.poll().await.unwrap().end);
    let late = |stored_ms| Stored { body: "late".to_owned(), keys: None, tags: None, stored_ms };
    let log = Log { first: 102, messages: vec![late(stop_ms - 1), late(stop_ms)] };
    tried.fake.held().logs.insert(("a".into(), 0), log);
    let polled = reader.poll().await.unwrap();
    assert_eq!((polled.messages.len(), polled.position, polled.end), (1, 103, true));
}

#[tokio::test]
async fn a_message_whose_tag_only_has_the_same_hash_is_filtered() {
    let tried = one_queue(0, SourceOptions { filter: Filter::Tags(vec!["Aa".to_owned()]), ..options() });
    let tagged = |tag: &str| Stored { body: tag.to_owned(), keys: None, tags: Some(tag.to_owned()), stored_ms: 0 };
    tried.fake.held().logs.get_mut(&("a".into(), 0)).unwrap().messages = vec![tagged("Aa"), tagged("BB")];
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    let polled = reader.poll().await.unwrap();
    assert_eq!(polled.position, 102);
    assert!(matches!(polled.messages[0].body, Body::Bytes(_)));
    assert!(matches!(polled.messages[1].body, Body::Filtered("rocketmq.source.filter.tag")));
}

#[tokio::test]
async fn a_reader_whose_messages_are_deleted_meanwhile_says_so_and_never_jumps_by_itself() {
    for (on_lost_position, expected) in [(OnLostPosition::Fail, None), (OnLostPosition::Latest, Some(152))] {
        let tried = one_queue(4, SourceOptions { on_lost_position, ..options() });
        let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
        tried.fake.held().logs.get_mut(&("a".into(), 0)).unwrap().first = 148;
        let polled = reader.poll().await;
        match expected {
            Some(position) => assert_eq!(polled.unwrap().position, position),
            None => assert_eq!(polled.unwrap_err().mend, Mend::Never),
        }
    }
    // The same where the broker passes over them by itself.
    let tried = one_queue(4, options());
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    tried.fake.held().logs.get_mut(&("a".into(), 0)).unwrap().first = 102;
    let over = Pulled { status: PullStatus::NothingMatched, next: 102, min: 102, max: 106, messages: Vec::new() };
    tried.fake.held().pulls.push_back(Ok(over));
    assert_eq!(reader.poll().await.unwrap_err().mend, Mend::Never);
    // And so under a filter, where not every offset is a message, and to wherever the options say.
    let filter = Filter::Tags(vec!["x".to_owned()]);
    let options = SourceOptions { on_lost_position: OnLostPosition::Latest, filter, ..options() };
    let tried = one_queue(4, options);
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    tried.fake.held().logs.get_mut(&("a".into(), 0)).unwrap().first = 102;
    let over = Pulled { status: PullStatus::NothingMatched, next: 103, min: 102, max: 106, messages: Vec::new() };
    tried.fake.held().pulls.push_back(Ok(over));
    assert_eq!(reader.poll().await.unwrap().position, 106);
}

#[tokio::test]
async fn a_position_that_was_beyond_the_end_once_and_was_read_from_since_is_not_lost_at_once_the_next_time() {
    let tried = one_queue(4, options());
    let (reader, _) = tried.open(Start::Resume(103)).await.unwrap();
    tried.seen.long_beyond(&lane("a", 0));
    assert_eq!(reader.poll().await.unwrap().position, 104);
    tried.fake.held().logs.get_mut(&("a".into(), 0)).unwrap().messages.truncate(1);
    assert_eq!(reader.poll().await.unwrap_err().mend, Mend::Retry);
}

#[tokio::test]
async fn a_queue_that_lost_its_tail_is_read_on_by_a_new_generation() {
    let tried = one_queue(4, SourceOptions { on_lost_position: OnLostPosition::Latest, ..options() });
    let (reader, _) = tried.open(Start::Resume(104)).await.unwrap();
    tried.fake.held().logs.get_mut(&("a".into(), 0)).unwrap().messages.truncate(1);
    assert_eq!(reader.poll().await.unwrap_err().mend, Mend::Retry);
    tried.seen.long_beyond(&lane("a", 0));
    assert_eq!(reader.poll().await.unwrap_err().mend, Mend::Restart);
    assert_eq!(tried.open(Start::Resume(104)).await.unwrap().1, 101);
}

#[tokio::test]
async fn after_a_failure_the_broker_is_looked_for_in_the_route() {
    let tried = one_queue(1, options());
    let (reader, _) = tried.open(Start::Resume(100)).await.unwrap();
    tried.fake.held().pulls.push_back(Err(busy()));
    reader.poll().await.unwrap_err();
    let queues = std::mem::take(&mut tried.fake.held().queues);
    assert!(reader.poll().await.unwrap_err().to_string().contains("no route"));
    tried.fake.held().queues = queues;
    tried.fake.held().queues[0].address = "elsewhere:1".into();
    assert_eq!(reader.poll().await.unwrap().position, 101);
    assert_eq!(&*tried.seen.get(&lane("a", 0)).unwrap().address, "elsewhere:1");
}

#[tokio::test]
async fn offsets_are_told_once_for_each_queue_and_not_at_all_if_not_asked_for() {
    let tried = with(Fake::with(&["a"], 2), options());
    let positions = known(&[(lane("a", 0), 5), (lane("a", 1), 6)]);
    tried.source.commit(&positions).await.unwrap();
    tried.source.commit(&positions).await.unwrap();
    assert_eq!(tried.fake.held().commits, [("a".into(), 0, 5), ("a".into(), 1, 6)]);
    tried.source.commit(&known(&[(lane("a", 0), 5), (lane("a", 1), 7)])).await.unwrap();
    assert_eq!(tried.fake.held().commits.len(), 3);

    let quiet = with(Fake::with(&["a"], 2), SourceOptions { commit: false, ..options() });
    assert!(!quiet.source.commits() && tried.source.commits());
}

#[tokio::test]
async fn the_ends_of_lanes_are_asked_for_without_listing_them_first() {
    let tried = one_queue(4, options());
    let ends = tried.source.ends(&[lane("a", 0), lane("gone", 0)]).await.unwrap();
    assert_eq!(ends, [(lane("a", 0), 100..104)].into());
}
