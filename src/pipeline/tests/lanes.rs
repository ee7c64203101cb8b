//! Several lanes: where each starts is recorded before it is read, and each goes on by itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    harness::{Rig, Setup, run, until},
    log::{Log, lane, rows},
    running::Running,
};
use crate::{
    connector::Start,
    definition::{Per, Rate},
    model::{CreditLimits, Fault, FaultKind, LaneId},
    pipeline::Event,
};

pub const QUICK: Duration = Duration::from_millis(10);
/// Checkpoints by themselves, and often.
pub const OFTEN: fn() -> Setup = || Setup { interval: QUICK, ..Setup::default() };

/// The positions in the store; whatever runs is fenced off.
pub async fn stored(rig: &Rig) -> BTreeMap<LaneId, u64> {
    let plan = rig.plan();
    rig.state_dir.store().open_generation(&plan.name, &plan.source_identity).await.unwrap().positions
}

pub async fn all_polled(log: &Arc<Log>, lanes: u64) {
    until("every lane is polled", || (0..lanes).all(|number| log.polls(number) > 0)).await;
}

pub async fn written(rig: &Rig, count: usize) {
    until("the rows are written", || {
        let state = rig.world.state();
        state.open.len() + state.committed.len() >= count
    })
    .await;
}

/// A generation that has begun to read every lane, and recorded that, then is drained.
pub async fn begin(rig: &Rig, log: &Arc<Log>, lanes: u64) {
    let running = log.open(rig).await;
    all_polled(log, lanes).await;
    running.drain().await;
    log.opens();
    for number in 0..lanes {
        log.with(number, |lane| lane.polls = 0);
    }
}

async fn finishes(mut running: Running) {
    assert!(matches!(running.event().await, Event::Finished));
    running.cut().await;
}

#[test]
fn a_lane_of_which_nothing_was_read_keeps_where_it_starts_and_that_is_resolved_once() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 5);
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        running.cut().await;
        assert_eq!(log.opens(), [(lane(0), Start::First), (lane(1), Start::First)]);
        // Resolved again, this would be passed over.
        log.send(0, 4);
        log.send(1, 4);
        let running = log.open(rig).await;
        written(rig, 24).await;
        running.drain().await;
        assert_eq!(log.opens(), [(lane(0), Start::Resume(5)), (lane(1), Start::Resume(5))]);
        assert_eq!(rig.world.committed(), [rows(0, 5..9), rows(1, 5..9)].concat());
    });
}

#[test]
fn lanes_that_were_never_read_begin_in_one_record_and_none_is_read_before() {
    run(OFTEN(), async |rig| {
        let log = Log::new(5, 7);
        let (go_on, gate) = oneshot::channel();
        log.with(3, |lane| lane.open_gates.push_back(gate));
        let running = log.open(rig).await;
        until("the others are open", || log.state().opens.len() == 4).await;
        // Checkpoints go by meanwhile.
        tokio::time::sleep(5 * QUICK).await;
        assert!((0..5).all(|number| log.polls(number) == 0));
        running.cut().await;
        drop(go_on);
        assert_eq!(stored(rig).await, BTreeMap::new());
        log.opens();
        let running = log.open(rig).await;
        until("one of them is read", || (0..5).any(|number| log.polls(number) > 0)).await;
        running.cut().await;
        assert!(log.opens().iter().all(|(_, start)| *start == Start::First));
        assert_eq!(stored(rig).await, (0..5).map(|number| (lane(number), 7)).collect());
    });
}

#[test]
fn a_lane_that_begins_and_is_not_recorded_yet_begins_again_and_nothing_of_it_was_read() {
    run(Setup::default(), async |rig| {
        let log = Log::new(1, 0);
        log.state().discovery = Some(QUICK);
        begin(rig, &log, 1).await;
        // A seal waits for this write.
        let (_never, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        log.send(0, 1);
        let running = log.open(rig).await;
        until("a write is under way", || rig.world.state().gates["write"].is_empty()).await;
        log.with(1, |lane| lane.next = 2);
        until("a lane is added", || log.state().opens.iter().any(|(id, _)| *id == lane(1))).await;
        let listed = log.state().listed;
        until("it is listed again", || log.state().listed > listed + 1).await;
        running.cut().await;
        assert_eq!(log.polls(1), 0);
        assert_eq!(log.opens().last(), Some(&(lane(1), Start::Added)));
        let running = log.open(rig).await;
        written(rig, 9).await;
        running.drain().await;
        assert_eq!(log.opens(), [(lane(0), Start::Resume(0)), (lane(1), Start::Added)]);
        assert_eq!(rig.world.committed(), [rows(0, 0..1), rows(1, 0..2)].concat());
    });
}

#[test]
fn a_lane_that_is_added_at_run_time_loses_nothing_and_disturbs_no_other() {
    run(OFTEN(), async |rig| {
        let log = Log::new(2, 0);
        log.state().discovery = Some(QUICK);
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        log.opens();
        log.with(2, |lane| lane.next = 9);
        written(rig, 27).await;
        log.send(0, 1);
        written(rig, 30).await;
        running.drain().await;
        assert_eq!(log.opens(), [(lane(2), Start::Added)]);
        assert_eq!(rig.world.committed(), [rows(0, 0..1), rows(2, 0..9)].concat());
        let expected = BTreeMap::from([(lane(0), 1), (lane(1), 0), (lane(2), 9)]);
        assert_eq!(stored(rig).await, expected);
    });
}

#[test]
fn a_lane_that_opens_only_after_a_while_holds_up_no_other_and_says_why() {
    run(Setup::default(), async |rig| {
        let log = Log::new(3, 0);
        begin(rig, &log, 3).await;
        (0..3).for_each(|number| log.send(number, 2));
        log.with(1, |lane| lane.open_faults.push_back(Fault::retry(FaultKind::Network, "the broker is away")));
        let running = log.open(rig).await;
        written(rig, 12).await;
        assert_eq!(rig.vitals.troubles(), ["open of lane lane-1: the broker is away"]);
        written(rig, 18).await;
        assert!(rig.vitals.troubles().is_empty());
        running.drain().await;
        assert_eq!(rig.world.committed(), (0..3).flat_map(|number| rows(number, 0..2)).collect::<Vec<_>>());
    });
}

#[test]
fn where_a_lane_is_opened_in_place_of_where_it_was_is_recorded_before_it_is_read() {
    run(Setup::default(), async |rig| {
        let log = Log::new(1, 0);
        begin(rig, &log, 1).await;
        log.with(0, |lane| (lane.next, lane.opens_at) = (50, Some(48)));
        let (_never, gate) = oneshot::channel();
        log.with(0, |lane| lane.gates.push_back(gate));
        let running = log.open(rig).await;
        all_polled(&log, 1).await;
        running.cut().await;
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 48)]));
    });
}

#[test]
fn a_slow_lane_holds_up_no_other_and_not_its_position_either() {
    run(OFTEN(), async |rig| {
        let log = Log::new(2, 0);
        begin(rig, &log, 2).await;
        let (_never, gate) = oneshot::channel();
        log.with(0, |lane| lane.gates.push_back(gate));
        log.send(0, 3);
        log.send(1, 30);
        let running = log.open(rig).await;
        until("the other one is committed", || rig.world.committed() == rows(1, 0..30)).await;
        until("and known to the service", || log.with(1, |lane| lane.committed) == Some(30)).await;
        running.cut().await;
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 0), (lane(1), 30)]));
    });
}

#[test]
fn trouble_of_one_lane_is_told_until_that_lane_works_whatever_the_others_do() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 0);
        begin(rig, &log, 2).await;
        log.with(0, |lane| lane.faults.push_back(Fault::retry(FaultKind::Network, "cannot connect")));
        log.send(0, 1);
        let running = log.open(rig).await;
        until("it is in trouble", || !rig.vitals.troubles().is_empty()).await;
        for round in 1..=5 {
            log.send(1, 1);
            written(rig, 3 * round).await;
            assert_eq!(rig.vitals.troubles(), ["poll of lane lane-0: cannot connect"]);
        }
        written(rig, 18).await;
        until("it is mended", || rig.vitals.troubles().is_empty()).await;
        running.drain().await;
    });
}

#[test]
fn what_no_retry_mends_is_told_with_its_lane_and_what_was_received_is_finished() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 0);
        begin(rig, &log, 2).await;
        log.send(1, 3);
        log.with(0, |lane| lane.faults.push_back(Fault::never(FaultKind::Missing, "its offset is gone")));
        let mut running = log.open(rig).await;
        let Event::Hopeless { actor, fault } = running.event().await else { panic!("something else") };
        assert_eq!((actor, fault.to_string().as_str()), ("reader", "lane lane-0: its offset is gone"));
        written(rig, 9).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), rows(1, 0..3));

        log.with(1, |lane| lane.open_faults.push_back(Fault::never(FaultKind::Credentials, "refused")));
        let mut running = log.open(rig).await;
        let Event::Hopeless { actor, fault } = running.event().await else { panic!("something else") };
        assert_eq!((actor, fault.to_string().as_str()), ("enumerator", "lane lane-1: refused"));
        running.drain().await;
    });
}

#[test]
fn a_poll_that_hangs_is_told_with_its_lane() {
    let setup = Setup { timeout: Duration::from_secs(1), patience: Duration::from_millis(100), ..Setup::default() };
    run(Setup { positions: true, ..setup }, async |rig| {
        let mut running = rig.open().await;
        let Event::Fault { actor, fault } = running.event().await else { panic!("something else than a fault") };
        assert_eq!((actor, fault.kind), ("reader", FaultKind::Hung));
        assert_eq!(fault.to_string(), "lane lane: poll hangs: no answer within 1.1s");
        running.cut().await;
    });
}

#[test]
fn a_drain_ends_at_once_during_long_polls_of_eight_lanes_and_without_any_lane() {
    for lanes in [8, 0] {
        run(Setup::default(), async |rig| {
            let log = Log::new(lanes, 0);
            let mut took = Vec::new();
            // The disk may be slow once.
            while took.len() < 3 && took.iter().all(|took| *took >= Duration::from_secs(1)) {
                let polled: Vec<usize> = (0..lanes).map(|number| log.polls(number)).collect();
                let running = log.open(rig).await;
                until("every lane is polled", || (0..lanes).all(|n| log.polls(n) > polled[n as usize])).await;
                let begun = Instant::now();
                running.drain().await;
                took.push(begun.elapsed());
            }
            assert!(took.iter().any(|took| *took < Duration::from_secs(1)), "{took:?}");
            // Nothing to read is no end for good.
            log.open(rig).await.cut().await;
        });
    }
}

#[test]
fn a_drain_before_anything_is_open_ends_at_once_and_leaves_nothing_begun() {
    run(Setup::default(), async |rig| {
        let log = Log::new(3, 5);
        let (_never, gate) = oneshot::channel();
        log.with(2, |lane| lane.open_gates.push_back(gate));
        let running = log.open(rig).await;
        until("two are open", || log.state().opens.len() == 2).await;
        running.drain().await;
        assert_eq!(stored(rig).await, BTreeMap::new());
        // The opening that is under way was given up.
        log.opens();
        begin(rig, &log, 3).await;
        assert_eq!(stored(rig).await.len(), 3);
    });
}

#[test]
fn a_pipeline_is_finished_when_every_lane_is_at_its_end_and_not_before() {
    run(OFTEN(), async |rig| {
        let log = Log::new(3, 0);
        begin(rig, &log, 3).await;
        for number in 0..3 {
            log.with(number, |lane| (lane.next, lane.bounded) = (5, number != 1));
        }
        let running = log.open(rig).await;
        until("all is committed", || rig.world.committed().len() == 45).await;
        running.drain().await;
        // What ended by itself ends again.
        let running = log.open(rig).await;
        until("all are polled again", || (0..3).all(|number| log.polls(number) > 1)).await;
        log.with(1, |lane| (lane.next, lane.bounded) = (6, true));
        finishes(running).await;
        assert_eq!(rig.world.committed(), [rows(0, 0..5), rows(1, 0..6), rows(2, 0..5)].concat());
    });
}

#[test]
fn a_pipeline_is_not_finished_while_a_lane_that_was_read_is_away() {
    run(OFTEN(), async |rig| {
        let log = Log::new(2, 0);
        log.state().discovery = Some(QUICK);
        begin(rig, &log, 2).await;
        log.with(0, |lane| (lane.next, lane.bounded) = (5, true));
        log.with(1, |lane| (lane.next, lane.bounded, lane.away) = (5, true, true));
        let mut running = log.open(rig).await;
        until("what there is is committed", || rig.world.committed() == rows(0, 0..5)).await;
        let listed = log.state().listed;
        until("it is looked for", || log.state().listed > listed + 3).await;
        assert!(!matches!(running.events.try_recv(), Ok(Event::Finished)));
        // It has kept its position.
        log.with(1, |lane| lane.away = false);
        finishes(running).await;
        assert_eq!(log.opens(), [(lane(0), Start::Resume(0)), (lane(1), Start::Resume(0))]);
        assert_eq!(rig.world.committed(), [rows(0, 0..5), rows(1, 0..5)].concat());
    });
}

#[test]
fn a_lane_that_is_no_part_of_the_source_any_more_keeps_its_position_and_no_end_away() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 0);
        begin(rig, &log, 2).await;
        log.with(0, |lane| (lane.next, lane.bounded) = (5, true));
        log.with(1, |lane| lane.away = true);
        // It is asked once, so the answer is complete.
        finishes(log.open(rig).await).await;
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 5), (lane(1), 0)]));
    });
}

#[test]
fn a_lane_whose_route_vanishes_is_read_on() {
    run(OFTEN(), async |rig| {
        let log = Log::new(2, 0);
        log.state().discovery = Some(QUICK);
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        log.with(0, |lane| lane.away = true);
        let listed = log.state().listed;
        until("it is not listed", || log.state().listed > listed + 1).await;
        log.send(0, 2);
        written(rig, 6).await;
        running.drain().await;
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 2), (lane(1), 0)]));
    });
}

#[test]
fn the_rate_is_that_of_all_lanes_together() {
    let rate = Some(Rate { count: 200, per: Per::Second });
    run(Setup { rate, ..Setup::default() }, async |rig| {
        let log = Log::new(4, 0);
        begin(rig, &log, 4).await;
        (0..4).for_each(|number| log.send(number, 150));
        let begun = Instant::now();
        let running = log.open(rig).await;
        until("all is received", || rig.vitals.metrics.received.get() == 600).await;
        // A second's worth at once, and the last polls on credit.
        assert!(begun.elapsed() >= Duration::from_millis(1800), "{:?}", begun.elapsed());
        assert!(rig.vitals.metrics.rate_waits.get() < 600, "no busy loop");
        running.drain().await;
        assert_eq!(rig.vitals.metrics.rate_limited.get(), 0);
    });
}

#[test]
fn how_far_each_lane_is_read_and_how_much_is_behind_is_told_while_it_is_read() {
    run(Setup { credits: CreditLimits { batches: 1, bytes: 1 << 20 }, ..Setup::default() }, async |rig| {
        let log = Log::new(2, 0);
        begin(rig, &log, 2).await;
        let (go_on, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        log.send(0, 10);
        let running = log.open(rig).await;
        until("four are handed on, and no credit is left", || rig.vitals.metrics.received.get() == 8).await;
        let lanes = || -> Vec<(String, u64, Option<u64>)> {
            rig.vitals.lanes().into_iter().map(|lane| (lane.lane.to_string(), lane.position, lane.behind)).collect()
        };
        assert_eq!(lanes(), [("lane-0".to_owned(), 4, Some(6)), ("lane-1".to_owned(), 0, None)]);
        go_on.send(()).unwrap();
        written(rig, 30).await;
        assert_eq!(lanes()[0], ("lane-0".to_owned(), 10, Some(0)));
        running.drain().await;
        assert_eq!((lanes(), rig.vitals.metrics.lanes.get()), (vec![], 0));
    });
}

const MESSAGES: u64 = 100;

/// Generations that end at moments of chance, lanes that come late, vanish for a while and come back.
async fn live_through(rig: &Rig, log: &Arc<Log>, seed: u64, lanes: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    log.state().random = Some(fastrand::Rng::with_seed(seed));
    let expected = (lanes * MESSAGES) as usize * rows(0, 0..1).len();
    let begun = Instant::now();
    let mut generations = 0;
    while rig.world.state().committed.len() < expected {
        assert!(begun.elapsed() < Duration::from_secs(60), "seed {seed}");
        let number = random.u64(0..lanes);
        // Each lane comes with the first of its messages.
        let more = random.u64(0..=MESSAGES);
        log.with(number, |lane| {
            lane.next = (lane.next + more).min(MESSAGES);
            lane.away = random.u8(0..4) == 0;
        });
        generations += 1;
        let Ok(mut running) = rig.try_open_with(log.plan(rig)).await else { continue };
        let life = Duration::from_millis(random.u64(0..100));
        let ended = tokio::time::timeout(life, running.event()).await.is_ok();
        if !ended && random.bool() {
            running.controls.drain();
            let _drained_or_failed = running.event().await;
        }
        running.cut().await;
    }
    assert!(generations > 3, "{generations} generations");
}

#[test]
fn whenever_a_generation_ends_and_whatever_lanes_do_each_row_is_committed_once_and_in_its_lanes_order() {
    for seed in 0..4 {
        let credits = CreditLimits { batches: 3, bytes: 1 << 20 };
        run(Setup { interval: [QUICK, 4 * QUICK][seed as usize % 2], credits, ..Setup::default() }, async |rig| {
            const LANES: u64 = 6;
            let log = Log::new(2, 0);
            log.state().discovery = Some(2 * QUICK);
            begin(rig, &log, 2).await;
            live_through(rig, &log, seed, LANES).await;
            let committed = rig.world.state().committed.clone();
            assert_eq!(committed.iter().collect::<BTreeSet<_>>().len(), committed.len(), "seed {seed}: twice");
            for number in 0..LANES {
                let of_lane = committed.iter().filter(|row| **row as u64 / 1_000_000 == number);
                let of_lane: Vec<i64> = of_lane.copied().collect();
                assert_eq!(of_lane, rows(number, 0..MESSAGES), "seed {seed}, lane {number}");
            }
        });
    }
}
