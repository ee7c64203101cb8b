//! Lanes that another process reads, and what the service is told of how far they are read.

use std::{collections::BTreeMap, time::Duration};

use tokio::sync::oneshot;

use super::{
    harness::{Setup, run, until},
    lanes::{OFTEN, QUICK, all_polled, begin, stored, written},
    log::{Log, lane, rows},
};
use crate::{
    connector::Start,
    model::{Fault, FaultKind, LaneId},
};

#[test]
fn a_lane_that_another_process_reads_is_finished_committed_and_then_forgotten() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 0);
        log.state().discovery = Some(QUICK);
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        // What is on its way is written first.
        let (go_on, gate) = oneshot::channel();
        rig.world.state().gates.entry("write").or_default().push_back(gate);
        log.send(1, 5);
        until("a write is under way", || rig.world.state().gates["write"].is_empty()).await;
        // Of this the service learns only when it is asked a second time.
        let refused = || Fault::never(FaultKind::Service, "no such group now");
        log.state().commit_faults.push_back(refused());
        log.move_away(1, true);
        let listed = log.state().listed;
        until("it is listed as another's", || log.state().listed > listed + 1).await;
        go_on.send(()).unwrap();
        until("its rows are committed", || rig.world.committed() == rows(1, 0..5)).await;
        until("the commit has failed", || log.state().commit_faults.is_empty()).await;
        log.send(0, 1);
        running.drain().await;
        let commits = log.state().commits.clone();
        assert_eq!(commits.last().and_then(|last| last.get(&lane(1))), Some(&5), "{commits:?}");
        assert_eq!(stored(rig).await.keys().collect::<Vec<_>>(), [&lane(0)]);
    });
}

#[test]
fn a_lane_is_not_forgotten_before_the_service_knows_how_far_it_was_read() {
    run(OFTEN(), async |rig| {
        let log = Log::new(1, 0);
        log.state().discovery = Some(QUICK);
        begin(rig, &log, 1).await;
        let running = log.open(rig).await;
        all_polled(&log, 1).await;
        let refused = || Fault::never(FaultKind::Service, "no such group now");
        log.state().commit_faults.extend((0..1_000).map(|_| refused()));
        log.send(0, 5);
        written(rig, 15).await;
        log.move_away(0, true);
        until("it is not read any more", || rig.vitals.metrics.lanes.get() == 0).await;
        let left = log.state().commit_faults.len();
        // Each checkpoint tries again, also one that holds nothing.
        until("it is refused time and again", || log.state().commit_faults.len() + 5 < left).await;
        running.cut().await;
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 5)]));
    });
}

#[test]
fn a_commit_that_hangs_is_given_up_and_does_not_keep_a_drain_from_its_end() {
    run(Setup { timeout: Duration::from_secs(1), ..Setup::default() }, async |rig| {
        let log = Log::new(1, 0);
        begin(rig, &log, 1).await;
        let (_never, gate) = oneshot::channel();
        log.state().commit_gates.push_back(gate);
        let running = log.open(rig).await;
        all_polled(&log, 1).await;
        running.drain().await;
    });
}

#[test]
fn a_lane_that_comes_back_starts_where_the_other_process_has_got_to() {
    run(OFTEN(), async |rig| {
        let log = Log::new(2, 0);
        log.state().discovery = Some(QUICK);
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        log.send(1, 5);
        written(rig, 15).await;
        log.move_away(1, true);
        until("it is not read any more", || rig.vitals.metrics.lanes.get() == 1).await;
        until("it is known to the service", || log.with(1, |lane| lane.committed) == Some(5)).await;
        // Meanwhile it is read elsewhere.
        log.with(1, |lane| (lane.next, lane.committed) = (12, Some(9)));
        log.opens();
        until("it is forgotten", || {
            log.move_away(1, false);
            !log.state().opens.is_empty()
        })
        .await;
        written(rig, 24).await;
        running.drain().await;
        assert_eq!(log.opens(), [(lane(1), Start::Added)]);
        assert_eq!(rig.world.committed(), [rows(1, 0..5), rows(1, 9..12)].concat());
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 0), (lane(1), 12)]));
    });
}

#[test]
fn what_is_stored_of_a_lane_that_another_process_reads_at_the_start_is_forgotten_and_not_committed() {
    run(Setup::default(), async |rig| {
        let log = Log::new(3, 0);
        begin(rig, &log, 3).await;
        log.state().commits.clear();
        log.move_away(2, true);
        let running = log.open(rig).await;
        until("the others are read", || rig.vitals.metrics.lanes.get() == 2).await;
        running.drain().await;
        assert!(log.state().commits.iter().all(|commit| !commit.contains_key(&lane(2))));
        assert_eq!(stored(rig).await.into_keys().collect::<Vec<_>>(), [lane(0), lane(1)]);
    });
}

#[test]
fn a_lane_that_is_taken_away_before_it_was_read_is_forgotten_too() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 4);
        log.state().discovery = Some(QUICK);
        let (_never, gate) = oneshot::channel();
        log.with(1, |lane| lane.open_gates.push_back(gate));
        let running = log.open(rig).await;
        until("one is open", || log.state().opens.len() == 1).await;
        // The one that was waited for is another's now, so the rest begins.
        log.move_away(1, true);
        until("the other one is read", || log.polls(0) > 0).await;
        running.drain().await;
        assert_eq!(stored(rig).await, BTreeMap::from([(lane(0), 4)]));
    });
}

#[test]
fn positions_are_told_to_the_service_after_their_checkpoint_and_those_restored_once_at_the_start() {
    run(Setup::default(), async |rig| {
        let log = Log::new(2, 0);
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        log.send(0, 4);
        written(rig, 12).await;
        assert_eq!(log.with(0, |lane| lane.committed), Some(0));
        // A drain waits for the commit, and what fails for a while is tried again.
        log.state().commit_faults.push_back(Fault::retry(FaultKind::Timeout, "no answer"));
        running.drain().await;
        assert_eq!(log.with(0, |lane| lane.committed), Some(4));
        log.with(0, |lane| lane.committed = None);
        log.state().commits.clear();
        let running = log.open(rig).await;
        until("it is told again", || log.with(0, |lane| lane.committed) == Some(4)).await;
        let told: BTreeMap<LaneId, u64> =
            log.state().commits.iter().flatten().map(|(id, at)| (id.clone(), *at)).collect();
        assert_eq!(told.get(&lane(0)), Some(&4));
        running.drain().await;
    });
}

#[test]
fn a_commit_that_fails_is_counted_and_left_to_the_next_checkpoint_which_tells_what_is_newest() {
    run(OFTEN(), async |rig| {
        let log = Log::new(2, 0);
        begin(rig, &log, 2).await;
        let running = log.open(rig).await;
        all_polled(&log, 2).await;
        let (go_on, gate) = oneshot::channel();
        log.state().commit_gates.push_back(gate);
        log.state().commit_faults.push_back(Fault::restart(FaultKind::Service, "not now"));
        log.send(0, 1);
        log.send(1, 1);
        until("a commit is under way", || log.state().commit_gates.is_empty()).await;
        log.state().commits.clear();
        log.send(0, 1);
        until("there is something newer", || rig.world.committed().len() == 9).await;
        go_on.send(()).unwrap();
        until("both are told", || {
            log.with(0, |lane| lane.committed) == Some(2) && log.with(1, |lane| lane.committed) == Some(1)
        })
        .await;
        assert!(log.state().commits.iter().all(|commit| commit.get(&lane(0)) != Some(&1)), "{:?}", log.state().commits);
        running.drain().await;
    });
}
