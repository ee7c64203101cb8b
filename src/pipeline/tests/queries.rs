//! Queries: what their WHERE leaves out is acknowledged like what is written, and a row that fails is refused alone.

use std::time::Duration;

use super::harness::{Rig, Setup, delivery, run, until, with_body};
use crate::{definition::OnError, model::Disposition, pipeline::Event};

fn setup(query: &'static str) -> Setup {
    Setup { query: Some(query), concurrency: 1, ..Setup::default() }
}

fn deleted(rig: &Rig) -> Vec<String> {
    let mut deleted = rig.world.state().deleted.concat();
    deleted.sort();
    deleted
}

/// Fails for 2.
const FAILING: &str = "SELECT 12 / (n - 2) FROM source WHERE n < 100";

#[test]
fn what_the_where_leaves_out_is_deleted_with_its_checkpoint_and_counted() {
    run(setup("SELECT n + 10 AS n FROM source WHERE n > 2"), async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1), with_body(2, 1, "1,3,2"), delivery(3, 1), with_body(4, 1, "null")]);
        until("all is received", || rig.vitals.metrics.received.get() == 4).await;
        running.drain().await;
        assert_eq!(rig.world.committed(), [13, 13]);
        assert_eq!(deleted(rig), ["m1@1", "m2@1", "m3@1", "m4@1"]);
        let metrics = &rig.vitals.metrics;
        assert_eq!((metrics.query_rows_filtered.get(), metrics.rows_written.get()), (4, 2));
        let messages = |disposition| metrics.message(disposition).get();
        assert_eq!((messages(Disposition::Filtered), messages(Disposition::Rows)), (2, 2));
    });
}

#[test]
fn an_epoch_of_which_nothing_is_left_is_a_checkpoint() {
    run(Setup { interval: Duration::from_millis(10), ..setup("SELECT n FROM source WHERE FALSE") }, async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1)]);
        until("it is deleted", || deleted(rig).len() == 1).await;
        assert!(rig.world.committed().is_empty());
        running.drain().await;
    });
}

#[test]
fn a_row_that_fails_in_the_query_is_refused_alone_and_its_letter_names_it() {
    run(Setup { on_error: OnError::DeadLetter, ..setup(FAILING) }, async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "1,2,5"), delivery(3, 1), delivery(2, 1)]);
        until("two are refused", || rig.vitals.metrics.rejects.get() == 2).await;
        running.drain().await;
        let mut rows = rig.world.committed();
        rows.sort_unstable();
        assert_eq!(rows, [-12, 4, 12]);
        let mut letters = rig.world.state().post.committed.clone();
        letters.sort();
        assert_eq!(letters, [("1,2,5".to_owned(), Some(1)), ("2".to_owned(), Some(0))]);
        assert_eq!(deleted(rig).len(), 3);
        assert_eq!(rig.vitals.metrics.message(Disposition::Rejected).get(), 2);
    });
}

#[test]
fn a_row_that_fails_in_the_query_ends_the_pipeline_and_leaves_its_message_if_nothing_else_is_said() {
    run(setup(FAILING), async |rig| {
        let mut running = rig.open().await;
        rig.world.deliver(vec![delivery(1, 1), delivery(2, 1), delivery(3, 1)]);
        let Event::Hopeless { fault, .. } = running.event().await else { panic!("something else") };
        assert!(fault.to_string().contains("m2 "), "{fault}");
        running.drain().await;
        assert_eq!(rig.world.committed(), [-12, 12]);
        assert_eq!(deleted(rig), ["m1@1", "m3@1"]);
    });
}

#[test]
fn a_row_that_was_left_out_counts_for_its_key_as_one_that_was_written() {
    let window = Some(Duration::from_secs(3600));
    run(Setup { window, ..setup("SELECT n FROM source WHERE n <> 7") }, async |rig| {
        let running = rig.open().await;
        rig.world.deliver(vec![with_body(1, 1, "7,8"), with_body(2, 1, "7,8")]);
        until("all is received", || rig.vitals.metrics.received.get() == 2).await;
        running.drain().await;
        let metrics = &rig.vitals.metrics;
        assert_eq!((metrics.query_rows_filtered.get(), metrics.key_rows_dropped.get()), (1, 2));
        assert_eq!(metrics.message(Disposition::DuplicateKey).get(), 1);
        assert_eq!(rig.world.committed(), [8]);
    });
}
