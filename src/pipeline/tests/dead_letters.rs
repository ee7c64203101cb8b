//! Dead letters: written, prepared and committed with the rows of their epoch, whenever a generation ends.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{
    harness::{Rig, Scripted, Setup, delivery, run, until, with_body},
    recording::Letter,
};
use crate::{
    connector::{Polled, Start},
    connectors::Plan,
    definition::{OnError, Per, Rate},
    model::{Fault, FaultKind, Mend, Message},
    pipeline::Event,
};

const QUICK: Duration = Duration::from_millis(10);
const SETUP: fn() -> Setup = || Setup { on_error: OnError::DeadLetter, concurrency: 1, ..Setup::default() };

fn letter(body: &str, row: Option<i32>) -> Letter {
    (body.to_owned(), row)
}

fn letters(rig: &Rig) -> Vec<Letter> {
    let mut letters = rig.world.state().post.committed.clone();
    letters.sort();
    letters
}

fn deleted(rig: &Rig) -> Vec<String> {
    let mut deleted = rig.world.state().deleted.concat();
    deleted.sort();
    deleted
}

#[test]
fn poison_at_every_position_of_a_batch_becomes_a_letter_and_its_neighbours_rows() {
    const SIZE: i64 = 16;
    for on_error in [OnError::Fail, OnError::Skip, OnError::DeadLetter] {
        for position in 0..SIZE {
            run(Setup { on_error, ..SETUP() }, async |rig| {
                let mut running = rig.open().await;
                let body = |n: i64| if n == position { "x".to_owned() } else { n.to_string() };
                rig.world.deliver((0..SIZE).map(|n| with_body(n, 1, &body(n))).collect());
                if on_error == OnError::Fail {
                    let Event::Hopeless { fault, .. } = running.event().await else { panic!("something else") };
                    assert!(fault.to_string().contains(&format!("m{position} ")), "{fault}");
                } else {
                    until("it is refused", || rig.vitals.metrics.rejects.get() == 1).await;
                }
                running.drain().await;
                let neighbours: Vec<i64> = (0..SIZE).filter(|n| *n != position).collect();
                assert_eq!(rig.world.committed(), neighbours);
                let kept = if on_error == OnError::DeadLetter { vec![letter("x", None)] } else { vec![] };
                assert_eq!(letters(rig), kept);
                let metrics = &rig.vitals.metrics;
                assert_eq!(metrics.dead_letters.get(), kept.len() as u64);
                assert_eq!((metrics.rejects.get(), metrics.rows_written.get()), (1, 15));
                let left = usize::from(on_error == OnError::Fail);
                assert_eq!(deleted(rig).len(), 16 - left);
            });
        }
    }
}

#[test]
fn of_a_body_with_rows_that_the_sink_refuses_each_becomes_a_letter_and_the_others_are_written() {
    run(SETUP(), async |rig| {
        rig.world.state().refused.extend([2, 4]);
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "1,2,3,4"), with_body(2, 1, "5"), with_body(3, 1, "x,6")]);
        until("they are refused", || rig.vitals.metrics.dead_letters.get() == 3).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [1, 3, 5]);
        let expected = [letter("1,2,3,4", Some(1)), letter("1,2,3,4", Some(3)), letter("x,6", None)];
        assert_eq!(letters(rig), expected);
        assert_eq!(deleted(rig), ["m1@1", "m2@1", "m3@1"]);
    });
}

#[test]
fn a_body_of_many_rows_reaches_the_sinks_in_parts_and_each_row_keeps_its_number() {
    run(SETUP(), async |rig| {
        let refused: Vec<i64> = [1, 16_384, 16_385, 40_000].into_iter().chain(20_000..20_200).collect();
        rig.world.state().refused.extend(&refused);
        let running = rig.open().await;
        let body = (1..=40_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        rig.world.deliver(vec![with_body(1, 1, &body)]);
        until("they are refused", || rig.vitals.metrics.dead_letters.get() == refused.len() as u64).await;
        running.drain().await;
        let (mut expected, mut kept) = (refused.clone(), Vec::new());
        expected.sort_unstable();
        kept.extend((1..=40_000).filter(|n| expected.binary_search(n).is_err()));
        assert_eq!(rig.world.committed(), kept);
        let rows: Vec<i64> = letters(rig).into_iter().map(|(_, row)| i64::from(row.unwrap()) + 1).collect();
        assert_eq!(rows, expected);
        let calls = rig.world.state().calls.clone();
        let times = |call: &str| calls.iter().filter(|made| **made == call).count();
        assert_eq!((times("write"), times("write letters")), (3, 2), "letters hold the body, 229 KB, each");
        assert_eq!(deleted(rig), ["m1@1"]);
    });
}

#[test]
fn under_fail_no_row_of_a_message_that_stays_is_committed_so_none_is_written_again() {
    run(Setup { on_error: OnError::Fail, concurrency: 1, interval: QUICK, ..Setup::default() }, async |rig| {
        rig.world.state().refused.push(2);
        let mut running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "1,2")]);
        let Event::Fault { fault, .. } = running.event().await else { panic!("something else") };
        assert!(fault.mend == Mend::Never && fault.to_string().contains("m1"), "{fault}");
        running.cut().await;
        assert_eq!((rig.world.committed(), deleted(rig)), (vec![], vec![]));
        // Once the cause is gone it comes again, and is written whole.
        rig.world.state().refused.clear();
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 2, "1,2")]);
        until("it is deleted", || !rig.world.state().deleted.is_empty()).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [1, 2]);
    });
}

#[test]
fn the_sink_comes_first_and_the_letters_second_in_each_step() {
    run(SETUP(), async |rig| {
        let running = rig.open().await;
        rig.world.state().calls.clear();
        rig.world.deliver(vec![delivery(1, 1), with_body(2, 1, "x")]);
        until("it is a letter", || rig.vitals.metrics.dead_letters.get() == 1).await;
        running.drain().await;
        let expected = ["write", "write letters", "prepare", "prepare letters", "commit", "commit letters"];
        assert_eq!(rig.world.state().calls, expected);
    });
}

#[test]
fn an_epoch_of_letters_alone_is_a_checkpoint_and_one_without_letters_asks_their_sink_nothing() {
    run(SETUP(), async |rig| {
        let running = rig.open().await;
        rig.world.state().calls.clear();
        rig.world.deliver(vec![with_body(2, 1, "x")]);
        until("it is a letter", || rig.vitals.metrics.dead_letters.get() == 1).await;
        running.drain().await;
        assert_eq!(rig.world.state().calls, ["write letters", "prepare letters", "commit letters"]);
        let running = rig.open().await;
        rig.world.state().calls.clear();
        rig.world.deliver(vec![delivery(1, 1)]);
        until("it is written", || rig.world.state().open.len() == 1).await;
        running.drain().await;
        assert_eq!(rig.world.state().calls, ["write", "prepare", "commit"]);
        assert_eq!((letters(rig), deleted(rig).len()), (vec![letter("x", None)], 2));
    });
}

/// Cuts a generation off while a call of a sink is held up, and goes on with the next one.
async fn cut_in(rig: &Rig, call: &'static str, ends: fn(oneshot::Sender<()>)) {
    let running = rig.open().await;
    let (go_on, gate) = oneshot::channel();
    rig.world.state().gates.entry(call).or_default().push_back(gate);
    rig.world.deliver(vec![delivery(1, 1), with_body(2, 1, "x"), delivery(3, 1)]);
    until(call, || rig.world.state().gates[call].is_empty()).await;
    running.cut().await;
    ends(go_on);
    let running = rig.open().await;
    rig.world.deliver(vec![delivery(1, 2), with_body(2, 2, "x"), delivery(3, 2)]);
    until("all is deleted", || rig.world.state().deleted.concat().len() >= 3).await;
    running.drain().await;
    assert_eq!(rig.world.committed(), [1, 3], "{call}");
    assert_eq!(letters(rig), [letter("x", None)], "{call}");
}

#[test]
fn cut_off_in_any_call_of_either_sink_each_row_and_each_letter_is_committed_once() {
    for call in ["write", "write letters", "prepare", "prepare letters", "commit", "commit letters"] {
        run(Setup { interval: QUICK, ..SETUP() }, async |rig| cut_in(rig, call, drop).await);
    }
}

#[test]
fn a_fault_of_the_sink_for_letters_is_one_of_the_generation_and_nothing_is_disposed_of() {
    for call in ["write letters", "prepare letters", "commit letters"] {
        run(Setup { interval: QUICK, ..SETUP() }, async |rig| {
            let broken = Fault::restart(FaultKind::Sink, "the folder is gone");
            rig.world.state().faults.entry(call).or_default().push_back(broken);
            let mut running = rig.open().await;
            rig.world.deliver(vec![delivery(1, 1), with_body(2, 1, "x")]);
            let Event::Fault { fault, .. } = running.event().await else { panic!("something else") };
            assert!(fault.to_string().contains("the folder is gone"), "{call}: {fault}");
            running.cut().await;
            assert_eq!(deleted(rig), Vec::<String>::new());
            let running = rig.open().await;
            rig.world.deliver(vec![delivery(1, 2), with_body(2, 2, "x")]);
            until("all is deleted", || rig.world.state().deleted.concat().len() >= 2).await;
            running.drain().await;
            assert_eq!((rig.world.committed(), letters(rig)), (vec![1], vec![letter("x", None)]), "{call}");
        });
    }
}

#[test]
fn a_letter_that_its_sink_refuses_stops_the_pipeline_with_the_message_left_and_the_rest_finished() {
    run(SETUP(), async |rig| {
        rig.world.state().post.refused.push("x");
        let mut running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1), with_body(2, 1, "x"), with_body(3, 1, "y")]);
        let Event::Hopeless { fault, .. } = running.event().await else { panic!("something else") };
        for part in ["m2", "not a number", "no such addressee"] {
            assert!(fault.to_string().contains(part), "{fault}");
        }
        running.drain().await;
        assert_eq!((rig.world.committed(), letters(rig)), (vec![1], vec![letter("y", None)]));
        assert_eq!(deleted(rig), ["m1@1", "m3@1"]);
    });
}

#[test]
fn tokens_of_letters_that_are_no_longer_asked_for_are_not_forgotten() {
    run(Setup { interval: QUICK, ..SETUP() }, async |rig| {
        let running = rig.open().await;
        let (_go_on, gate) = oneshot::channel();
        rig.world.state().gates.entry("commit letters").or_default().push_back(gate);
        rig.world.deliver(vec![with_body(2, 1, "x")]);
        until("the commit hangs", || rig.world.state().gates["commit letters"].is_empty()).await;
        running.cut().await;
        // Nobody here knows the sink any more, so the pipeline says so rather than go on.
        let mut events = rig.start_with(Plan { dead_letter: None, ..rig.plan() });
        assert!(matches!(events.next().await, Event::Numbered(_)));
        let Event::Fault { fault, .. } = events.next().await else { panic!("it goes on") };
        assert!(fault.to_string().contains("recording letters is not committed yet"), "{fault}");
        rig.open().await.drain().await;
        assert_eq!(letters(rig), [letter("x", None)]);
    });
}

#[test]
fn whatever_the_service_does_and_whenever_a_generation_ends_each_row_is_a_row_once_or_a_letter_once() {
    for seed in 0..4 {
        run(Setup { on_error: OnError::DeadLetter, ..super::hard(seed) }, async |rig| {
            let (refused, written): (Vec<i64>, Vec<i64>) = (0..400).partition(|n| n % 7 == 0);
            rig.world.state().refused.clone_from(&refused);
            super::live_through(rig, seed, super::Service::new(seed, 400)).await;
            assert_eq!(rig.world.committed(), written, "seed {seed}");
            let mut expected: Vec<Letter> = refused.iter().map(|n| letter(&n.to_string(), Some(0))).collect();
            expected.sort();
            assert_eq!(letters(rig), expected, "seed {seed}");
        });
    }
}

/// Row `n` of a lane with positions.
fn row(n: u64, body: &str) -> Message {
    Message { receipt: None, ..with_body(n as i64, 0, body) }
}

#[test]
fn on_a_lane_with_positions_the_position_passes_what_is_a_letter() {
    run(Setup { positions: true, ..SETUP() }, async |rig| {
        rig.world.state().refused.push(2);
        let running = rig.open().await;
        let messages = vec![row(0, "0"), row(1, "x"), row(2, "2"), row(3, "3")];
        rig.world.push(Scripted::now(Ok(Polled { messages, position: 4, behind: None, end: false })));
        until("they are letters", || rig.vitals.metrics.dead_letters.get() == 2).await;
        running.drain().await;
        let running = rig.open().await;
        until("the lane is opened", || rig.world.state().opened.len() == 2).await;
        running.drain().await;
        assert_eq!(rig.world.state().opened.last(), Some(&Start::Resume(4)));
        assert_eq!((rig.world.committed(), letters(rig)), (vec![0, 3], vec![letter("2", Some(0)), letter("x", None)]));
        assert_eq!(rig.world.state().post.positions, ["0..4", "0..4"]);
    });
}

#[test]
fn of_a_body_of_which_one_row_is_wanted_only_that_is_written_and_refused_under_its_own_number() {
    use crate::model::Body;
    run(SETUP(), async |rig| {
        rig.world.state().refused.push(6);
        let wanted = |n, body: &'static str, row| Message { body: Body::Row(body.into(), row), ..delivery(n, 1) };
        let running = rig.open().await;
        rig.world.deliver(vec![
            wanted(1, "1,2,3", 1),
            wanted(2, "4,5,6", 2),
            wanted(3, "7,x", 0),
            wanted(4, "8", 1),
            delivery(9, 1),
        ]);
        until("all is through", || rig.vitals.metrics.dead_letters.get() == 3).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [2, 9]);
        assert_eq!(letters(rig), [letter("4,5,6", Some(2)), letter("7,x", Some(0)), letter("8", Some(1))]);
    });
}

#[test]
fn a_source_with_a_rate_is_not_read_faster_and_a_drain_does_not_wait_for_it() {
    let rate = Some(Rate { count: 1, per: Per::Hour });
    run(Setup { rate, ..SETUP() }, async |rig| {
        let running = rig.open().await;
        for n in 0..3 {
            rig.world.deliver(vec![delivery(n, 1)]);
        }
        until("it waits", || rig.vitals.metrics.rate_limited.get() == 1).await;
        until("it is written", || rig.world.state().open.len() == 1).await;
        assert_eq!((rig.vitals.metrics.received.get(), rig.world.state().polled), (1, 1));
        running.drain().await;
        assert_eq!((rig.world.committed(), rig.vitals.metrics.rate_limited.get()), (vec![0], 0));
    });
    let rate = Some(Rate { count: 200, per: Per::Second });
    run(Setup { rate, concurrency: 4, ..SETUP() }, async |rig| {
        let begun = std::time::Instant::now();
        let running = rig.open().await;
        for n in 0..60 {
            rig.world.deliver((0..10).map(|m| delivery(n * 10 + m, 1)).collect());
        }
        until("all is received", || rig.vitals.metrics.received.get() == 600).await;
        // A second's worth at once, and the last polls on credit.
        assert!(begun.elapsed() >= Duration::from_millis(1700), "{:?}", begun.elapsed());
        assert!(rig.vitals.metrics.rate_waits.get() < 100, "no busy loop");
        running.drain().await;
    });
}
