//! What is done with messages, over either protocol.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    answer::{
        BATCH_SIZE, BATCH_TOO_LARGE, Code, DELAY, EMPTY_BODY, INVALID_HANDLE, NO_MESSAGE, NO_QUEUE, NOTHING_DELETED, OK,
        OUT_OF_RANGE, PARTLY_DELETED, Refusal, TOO_LARGE,
    },
    id_number,
};
use crate::{
    connectors::cmq::wire::{LONGEST_VISIBILITY_SECONDS, LONGEST_WAIT_SECONDS, MOST_PER_CALL},
    emulator::{
        cell::{QueueCell, Receive},
        message::{Delivery, Handle, Outgoing},
        state::{Clock, State, lock},
    },
};

/// Longest delay of a message, in seconds.
pub(super) const LONGEST_DELAY_SECONDS: u32 = 3600;

/// Largest total of the bodies of a batch, in bytes. The documentation has two limits, this and 1 MiB, and names the
/// latter with the error; what keeps to the smaller one is right either way.
const LARGEST_BATCH: usize = 65_536;

/// The queue of this name.
pub(super) fn find(state: &State, name: &str) -> Result<Arc<QueueCell>, Code> {
    state.find(name).ok_or(NO_QUEUE)
}

/// Sends all of them; answers their ids.
pub(super) fn send(
    clock: &Clock,
    cell: &QueueCell,
    bodies: Vec<Bytes>,
    delay_seconds: Option<u32>,
) -> Result<Vec<u64>, Refusal> {
    if !(1..=MOST_PER_CALL).contains(&bodies.len()) {
        return Err(BATCH_SIZE.into());
    }
    if delay_seconds.is_some_and(|delay| delay > LONGEST_DELAY_SECONDS) {
        return Err(DELAY.into());
    }
    let largest = lock(&cell.queue).maximum_message_size();
    if bodies.iter().any(Bytes::is_empty) {
        return Err(EMPTY_BODY.into());
    }
    if bodies.iter().any(|body| body.len() > largest) {
        return Err(TOO_LARGE.into());
    }
    if bodies.iter().map(Bytes::len).sum::<usize>() > LARGEST_BATCH {
        return Err(BATCH_TOO_LARGE.into());
    }
    let outgoing = |body| Outgoing { body, delay_seconds, ..Outgoing::default() };
    let sent = cell.send(clock, bodies.into_iter().map(outgoing).collect())?;
    Ok(sent.iter().map(|sent| id_number(sent.id)).collect())
}

/// Waits for messages, and answers at least one.
pub(super) async fn receive(clock: &Clock, cell: &QueueCell, asked: Receive) -> Result<Vec<Delivery>, Refusal> {
    if !(1..=MOST_PER_CALL).contains(&asked.most) {
        return Err(BATCH_SIZE.into());
    }
    let is_wrong = asked.wait.is_some_and(|wait| wait > LONGEST_WAIT_SECONDS)
        || asked.visibility.is_some_and(|seconds| !(1..=LONGEST_VISIBILITY_SECONDS).contains(&seconds));
    if is_wrong {
        return Err(OUT_OF_RANGE.into());
    }
    let messages = cell.receive(clock, asked).await?;
    if messages.is_empty() { Err(NO_MESSAGE.into()) } else { Ok(messages) }
}

/// Deletes one.
pub(super) fn delete(clock: &Clock, cell: &QueueCell, handle: Handle) -> Result<(), Refusal> {
    let deleted = cell.delete(clock, &[handle])?;
    if deleted == [true] { Ok(()) } else { Err(INVALID_HANDLE.into()) }
}

/// Deletes them, each for itself; answers how that went in all, and which were deleted.
pub(super) fn batch_delete(clock: &Clock, cell: &QueueCell, handles: &[Handle]) -> Result<(Code, Vec<bool>), Refusal> {
    if !(1..=MOST_PER_CALL).contains(&handles.len()) {
        return Err(BATCH_SIZE.into());
    }
    let deleted = cell.delete(clock, handles)?;
    let code = match (deleted.contains(&true), deleted.contains(&false)) {
        (_, false) => OK,
        (true, true) => PARTLY_DELETED,
        (false, true) => NOTHING_DELETED,
    };
    Ok((code, deleted))
}
