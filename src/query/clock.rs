//! The time of a batch: what `CURRENT_TIMESTAMP` and its like answer, the same for all rows.

use std::{
    cell::Cell,
    time::{SystemTime, UNIX_EPOCH},
};

thread_local! {
    // A query runs over a batch in one call on one thread, also where it is evaluated again without the rows that
    // failed.
    static MILLIS: Cell<i64> = const { Cell::new(0) };
}

/// Takes the time for the batch that is run next on this thread.
pub(super) fn begin_batch() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    MILLIS.set(now.and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0));
}

/// Milliseconds since the epoch.
pub(super) fn now() -> i64 {
    MILLIS.get()
}
