//! A queue as the services use it: who waits is woken, and what is ordered to go wrong goes wrong.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    lock,
    message::{Delivery, Handle, Outgoing, Sent},
    queue::Queue,
    state::Clock,
};

/// A queue and what wakes the polls that wait on it.
#[derive(Debug)]
pub(super) struct QueueCell {
    pub queue: Mutex<Queue>,
    /// Random, for services that tell of a queue by an id.
    pub id: u32,
    pub changed: Notify,
    /// Receives that wait now.
    pub polls: AtomicUsize,
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotDone {
    /// The queue has been deleted meanwhile.
    Gone,
    /// The service failed, by order, and nothing is done.
    Failed,
    /// It is done, but the connection is to be closed instead of an answer, by order.
    Lost,
}

/// What a receive asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receive {
    pub most: usize,
    /// Seconds; `None`: as long as the queue says.
    pub wait: Option<u32>,
    /// Seconds; `None`: as long as the queue says.
    pub visibility: Option<u32>,
}

impl QueueCell {
    pub(super) fn new(queue: Queue) -> Self {
        Self {
            queue: Mutex::new(queue),
            id: fastrand::u32(..),
            changed: Notify::new(),
            polls: AtomicUsize::new(0),
        }
    }

    /// Changes the queue, then wakes who waits if there is reason to: something is ready, or will be earlier than they
    /// know of.
    pub(super) fn change<T>(&self, clock: &Clock, act: impl FnOnce(&mut Queue, i64) -> T) -> T {
        let mut queue = lock(&self.queue);
        let before = queue.next_change();
        let result = act(&mut queue, clock.now_ms());
        let is_earlier = queue.next_change().is_some_and(|after| before.is_none_or(|before| after < before));
        let has_ready = queue.has_ready();
        drop(queue);
        if is_earlier {
            self.changed.notify_waiters();
        }
        if has_ready {
            // One is enough: whoever leaves something behind wakes the next.
            self.changed.notify_one();
        }
        result
    }

    /// Sends all of them.
    pub(super) fn send(&self, clock: &Clock, messages: Vec<Outgoing>) -> Result<Vec<Sent>, NotDone> {
        self.change(clock, |queue, now| {
            if queue.orders.fails_send() {
                return Err(NotDone::Failed);
            }
            let sent = messages.into_iter().map(|message| queue.send(message, now)).collect();
            if queue.orders.loses_send_reply() { Err(NotDone::Lost) } else { Ok(sent) }
        })
    }

    /// Whether each handle's message was deleted.
    pub(super) fn delete(&self, clock: &Clock, handles: &[Handle]) -> Result<Vec<bool>, NotDone> {
        self.change(clock, |queue, now| {
            if queue.orders.fails_delete() {
                return Err(NotDone::Failed);
            }
            let deleted = handles.iter().map(|handle| queue.delete(*handle, now)).collect();
            // One of them may have been given a message.
            self.changed.notify_waiters();
            if queue.orders.loses_delete_reply() { Err(NotDone::Lost) } else { Ok(deleted) }
        })
    }

    /// Waits for messages; none: the wait is over.
    pub(super) async fn receive(&self, clock: &Clock, asked: Receive) -> Result<Vec<Delivery>, NotDone> {
        let wait = asked.wait.unwrap_or_else(|| lock(&self.queue).polling_wait_seconds());
        if lock(&self.queue).orders.fails_receive() {
            return Err(NotDone::Failed);
        }
        let is_impatient = wait > 0 && lock(&self.queue).orders.is_impatient();
        let wait = if is_impatient { 0 } else { wait };
        let deadline = Instant::now() + Duration::from_secs(wait.into());
        let (sender, mut gift) = oneshot::channel();
        let mut sender = Some(sender);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no wake-up is missed, also those that come before the await below.
            changed.as_mut().enable();
            let is_over = Instant::now() >= deadline;
            let (messages, is_gone) = self.change(clock, |queue, now| {
                let messages = match gift.try_recv() {
                    Ok(message) => vec![message],
                    Err(_) => queue.receive(asked.most, asked.visibility, now),
                };
                if is_over || !messages.is_empty() {
                    gift.close();
                } else if let Some(sender) = sender.take() {
                    queue.wait(sender);
                }
                (messages, queue.is_gone)
            });
            if is_gone {
                return Err(NotDone::Gone);
            }
            if !messages.is_empty() {
                let loses = lock(&self.queue).orders.loses_receive_reply();
                return if loses { Err(NotDone::Lost) } else { Ok(messages) };
            }
            if is_over {
                lock(&self.queue).orders.statistics.empties_at_once += u64::from(is_impatient);
                return Ok(Vec::new());
            }
            let next = lock(&self.queue).next_change().map(|at| (at - clock.now_ms()).max(1));
            let next = next.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis);
            let wake = next.map_or(deadline, |after| deadline.min(Instant::now() + after));
            let _waiting = Waiting::begin(&self.polls);
            tokio::select! {
                () = changed => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Tells everyone who waits that the queue has been deleted.
    pub(super) fn close(&self) {
        lock(&self.queue).is_gone = true;
        self.changed.notify_waiters();
    }
}

/// Counts a receive while it waits, however that ends.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(polls: &'a AtomicUsize) -> Self {
        polls.fetch_add(1, Ordering::SeqCst);
        Self(polls)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
