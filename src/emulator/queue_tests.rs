//! Promises of a queue.

use super::*;

const SECOND: i64 = 1000;

fn queue(faults: Faults) -> Queue {
    Queue::new(&Settings::default(), faults, 7, 0)
}

fn send(queue: &mut Queue, count: usize) {
    for number in 0..count {
        queue.send(Outgoing { body: number.to_string().into(), ..Outgoing::default() }, 0);
    }
}

fn handle(delivery: &Delivery) -> Handle {
    delivery.receipt.handle
}

fn body(message: &Message) -> &str {
    std::str::from_utf8(&message.body).expect("UTF-8")
}

/// How often it has been delivered, when first, and when again.
fn times(Delivery { message, receipt }: &Delivery) -> (u32, i64, i64) {
    (message.dequeue_count, message.first_dequeue_ms, receipt.next_visible_ms)
}

fn counters(queue: &mut Queue, now: i64) -> (u64, u64, u64) {
    let report = queue.report(now);
    (report.active, report.inactive, report.delayed)
}

#[test]
fn a_received_message_is_invisible_until_its_timeout_and_its_handle_dies_with_it() {
    let mut queue = queue(Faults::default());
    send(&mut queue, 1);
    let first = queue.receive(16, None, 10).remove(0);
    assert_eq!(times(&first), (1, 10, 30_010));
    assert_eq!(counters(&mut queue, 11), (0, 1, 0));
    assert!(queue.receive(16, None, 30_009).is_empty());
    let second = queue.receive(16, None, 30_010).remove(0);
    assert_eq!(times(&second), (2, 10, 60_010));
    assert_eq!(second.message.id, first.message.id);
    assert!(!queue.delete(handle(&first), 30_011));
    assert!(queue.delete(handle(&second), 30_011));
    assert!(!queue.delete(handle(&second), 30_012));
    assert_eq!(counters(&mut queue, 30_012), (0, 0, 0));
    assert_eq!(queue.report(30_012).statistics.redelivered_after_timeout, 1);
}

#[test]
fn an_expired_handle_is_dead_even_before_the_message_is_delivered_again() {
    let mut queue = queue(Faults::default());
    send(&mut queue, 1);
    let delivery = queue.receive(1, None, 0).remove(0);
    assert!(!queue.delete(handle(&delivery), 30 * SECOND));
    assert_eq!(counters(&mut queue, 30 * SECOND), (1, 0, 0));
}

#[test]
fn a_change_of_visibility_gives_a_new_handle_and_the_old_one_dies() {
    let mut queue = queue(Faults::default());
    send(&mut queue, 1);
    let delivery = queue.receive(1, None, 0).remove(0);
    let changed = queue.change_visibility(handle(&delivery), 60, 5).expect("valid");
    assert_eq!(changed.next_visible_ms, 60_005);
    assert!(!queue.delete(handle(&delivery), 6));
    assert_eq!(counters(&mut queue, 60_004), (0, 1, 0));
    assert!(queue.delete(changed.handle, 60_004));
    assert!(!queue.delete(Handle::NONE, 60_004));
}

#[test]
fn urgent_comes_before_old_and_a_delay_is_kept() {
    let mut queue = queue(Faults::default());
    for (body, priority, delay) in [("late", 16, 0), ("usual", 8, 0), ("delayed", 1, 5), ("first", 1, 0)] {
        let sent = queue.send(
            Outgoing { body: body.into(), priority: Some(priority), delay_seconds: Some(delay), ..Outgoing::default() },
            0,
        );
        assert_eq!(sent.receipt.is_some(), delay > 0);
    }
    assert_eq!(counters(&mut queue, 0), (3, 0, 1));
    assert_eq!(queue.next_change(), Some(5 * SECOND));
    let bodies: Vec<_> = queue.receive(16, None, 1).into_iter().map(|delivery| body(&delivery.message).to_owned()).collect();
    assert_eq!(bodies, ["first", "usual", "late"]);
    assert_eq!(queue.receive(16, None, 5 * SECOND).remove(0).message.body, "delayed");
}

#[test]
fn a_message_past_its_retention_is_gone_wherever_it_is() {
    let mut queue = queue(Faults::default());
    queue.set(&Settings { retention_seconds: Some(60), ..Settings::default() }, 0);
    send(&mut queue, 2);
    queue.receive(1, None, 59 * SECOND);
    assert_eq!(counters(&mut queue, 59 * SECOND), (1, 1, 0));
    assert_eq!(counters(&mut queue, 60 * SECOND), (0, 0, 0));
    assert_eq!(queue.report(60 * SECOND).statistics.expired, 2);
}

#[test]
fn twice_in_one_answer_leaves_only_the_second_handle_valid() {
    let mut queue = queue(Faults { duplicate_same_receive: 1.0, ..Faults::default() });
    send(&mut queue, 2);
    let deliveries = queue.receive(3, None, 0);
    let seen: Vec<_> = deliveries.iter().map(|d| (body(&d.message), d.message.dequeue_count)).collect();
    assert_eq!(seen, [("0", 1), ("0", 2), ("1", 1)]);
    assert!(!queue.delete(handle(&deliveries[0]), 1));
    assert!(queue.delete(handle(&deliveries[1]), 1));
    assert_eq!(queue.report(1).statistics.duplicates_same_receive, 1);
}

#[test]
fn a_duplicate_in_flight_comes_at_once_and_kills_the_first_handle_only_then() {
    let mut queue = queue(Faults { duplicate_in_flight: 1.0, ..Faults::default() });
    send(&mut queue, 2);
    let first = queue.receive(16, None, 0);
    assert_eq!(first.len(), 2);
    assert!(queue.delete(handle(&first[0]), 1));
    let second = queue.receive(16, None, 1);
    assert_eq!(second.len(), 1);
    assert!(!queue.delete(handle(&first[1]), 2));
    assert!(queue.receive(16, None, 2).is_empty());
    assert!(queue.delete(handle(&second[0]), 2));
    assert_eq!(queue.report(2).statistics.duplicates_in_flight, 1);
}

#[test]
fn a_duplicate_before_delete_comes_once_and_only_its_own_delete_counts() {
    let mut queue = queue(Faults { duplicate_before_delete: 1.0, ..Faults::default() });
    send(&mut queue, 1);
    let first = queue.receive(16, None, 0).remove(0);
    assert!(!queue.delete(handle(&first), 1));
    let second = queue.receive(16, None, 1).remove(0);
    assert_eq!((second.message.id, second.message.dequeue_count), (first.message.id, 2));
    assert!(queue.delete(handle(&second), 2));
    assert_eq!(queue.report(2).statistics.duplicates_before_delete, 1);
}

#[test]
fn a_consumer_that_deletes_what_it_receives_ends_with_an_empty_queue_whatever_the_faults() {
    let mut queue = queue(Faults {
        duplicate_same_receive: 0.5,
        duplicate_in_flight: 0.5,
        duplicate_before_delete: 0.5,
        ..Faults::default()
    });
    send(&mut queue, 1000);
    let mut now = 0;
    let mut on_their_way = Vec::new();
    while counters(&mut queue, now) != (0, 0, 0) {
        let received = queue.receive(16, None, now);
        for delivery in std::mem::replace(&mut on_their_way, received) {
            let _ = queue.delete(handle(&delivery), now);
        }
        now += 1;
        assert!(now < 30 * SECOND, "every message is deleted before any timeout");
    }
    let statistics = queue.report(now).statistics;
    assert_eq!((statistics.sent, statistics.deleted), (1000, 1000));
    for count in
        [statistics.duplicates_same_receive, statistics.duplicates_in_flight, statistics.duplicates_before_delete]
    {
        assert!(count > 100, "{statistics:?}");
    }
}

#[test]
fn a_receive_ordered_to_get_fewer_gets_some_and_never_all_and_the_rest_stays_ready() {
    let mut queue = queue(Faults { fewer_than_asked: 1.0, ..Faults::default() });
    send(&mut queue, 40);
    let mut got = 0;
    while queue.report(0).active > 1 {
        let ready = queue.report(0).active;
        let received = queue.receive(16, None, 0).len() as u64;
        assert!((1..ready.min(16)).contains(&received), "{received} of {ready}");
        got += received;
    }
    assert_eq!((got, queue.receive(16, None, 0).len()), (39, 1), "one alone cannot be fewer");
    assert!(queue.report(0).statistics.short_receives > 2);
}

#[test]
fn a_clock_ahead_shows_in_every_time_that_is_told_and_moves_nothing() {
    let mut queue = queue(Faults { clock_offset_ms: 60_000, ..Faults::default() });
    send(&mut queue, 1);
    let peeked = queue.peek(1, 5).remove(0);
    assert_eq!((peeked.enqueue_ms, peeked.first_dequeue_ms), (60_000, 0));
    let delivery = queue.receive(1, None, 10).remove(0);
    assert_eq!(times(&delivery), (1, 60_010, 90_010));
    let changed = queue.change_visibility(handle(&delivery), 5, 20).expect("valid");
    assert_eq!(changed.next_visible_ms, 65_020);
    assert!(queue.receive(1, None, 5_019).is_empty());
    assert_eq!(queue.receive(1, None, 5_020).len(), 1);
}
