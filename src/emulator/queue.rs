//! One queue: plain data that is told the time.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use super::{
    Faults, QueueReport,
    log::{Entry, Log},
    message::{Attributes, DEFAULTS, Delivery, Handle, Message, Outgoing, Receipt, Sent, Settings},
    orders::Orders,
};

/// Numbers of messages begin at random below this, so that a handle of another queue, or of an emulator that has
/// ended, is none here. What is above is far more than a queue ever numbers.
const FIRST_NUMBERS: u64 = 1 << 38;

/// Messages by number, and where each of them is. Every operation first lets happen what is due by then.
#[derive(Debug)]
pub(super) struct Queue {
    settings: Settings,
    created_s: i64,
    modified_s: i64,
    pub orders: Orders,
    /// The queue has been deleted; polls that still wait on it have to be told.
    pub is_gone: bool,
    /// Polls that wait now, as far as a fault may want to give them something.
    waiting: Vec<oneshot::Sender<Delivery>>,
    next_number: u64,
    log: Option<Log>,
    messages: BTreeMap<u64, Stored>,
    /// By band of priority, then by age.
    ready: BTreeSet<(Band, u64)>,
    /// By the time at which they become ready.
    invisible: BTreeSet<(i64, u64)>,
    delayed: BTreeSet<(i64, u64)>,
}

#[derive(Debug)]
struct Stored {
    message: Message,
    place: Place,
    /// Of the newest handle; 0: there was none yet.
    serial: u64,
    /// Why the next delivery is one the consumer did not ask for.
    due: Option<Due>,
    /// Whether the delete of this message has already been held up once.
    was_held_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Invisible(i64),
    Delayed(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// The handle given out is valid until then.
    InFlight,
    BeforeDelete,
    Timeout,
}

/// How urgent a message is. The service promises only that a higher priority is likely to be received earlier, and
/// recordings have an older message of priority 8 before a newer one of priority 4, so neighbours share a band.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Band {
    Urgent,
    Ordinary,
    Late,
}

impl Band {
    const fn of(priority: u8) -> Self {
        match priority {
            0..=3 => Self::Urgent,
            4..=12 => Self::Ordinary,
            _ => Self::Late,
        }
    }
}

fn millis(seconds: Option<u32>) -> i64 {
    i64::from(seconds.unwrap_or(0)) * 1000
}

impl Queue {
    pub(super) fn new(settings: &Settings, faults: Faults, seed: u64, now: i64) -> Self {
        Self {
            settings: settings.or(&DEFAULTS),
            created_s: now / 1000,
            modified_s: now / 1000,
            orders: Orders::new(faults, seed),
            is_gone: false,
            waiting: Vec::new(),
            // Not from the seed, as ids are not.
            next_number: fastrand::u64(1..FIRST_NUMBERS),
            log: None,
            messages: BTreeMap::new(),
            ready: BTreeSet::new(),
            invisible: BTreeSet::new(),
            delayed: BTreeSet::new(),
        }
    }

    /// From now on it keeps a record of what is sent, delivered and deleted.
    pub(super) fn keep_log(&mut self) {
        self.log = Some(Log::default());
    }

    /// The record, in the order of sending, if there is one.
    pub(super) fn log(&self) -> Option<Vec<Entry>> {
        self.log.as_ref().map(Log::entries)
    }

    pub(super) fn has_settings(&self, settings: &Settings) -> bool {
        settings.or(&DEFAULTS) == self.settings
    }

    pub(super) fn set(&mut self, settings: &Settings, now: i64) {
        self.settings = settings.or(&self.settings);
        self.modified_s = now / 1000;
    }

    pub(super) fn polling_wait_seconds(&self) -> u32 {
        self.settings.polling_wait_seconds.unwrap_or(0)
    }

    pub(super) fn maximum_message_size(&self) -> usize {
        self.settings.maximum_message_size.unwrap_or(65_536) as usize
    }

    pub(super) fn attributes(&mut self, now: i64) -> Attributes {
        let report = self.report(now);
        let offset = self.orders.faults.clock_offset_ms;
        Attributes {
            settings: self.settings.clone(),
            created_s: self.created_s + offset / 1000,
            modified_s: self.modified_s + offset / 1000,
            active: report.active,
            inactive: report.inactive,
            delayed: report.delayed,
            oldest_ms: self.messages.first_key_value().map(|(_, stored)| stored.message.enqueue_ms + offset),
        }
    }

    pub(super) fn report(&mut self, now: i64) -> QueueReport {
        self.tick(now);
        QueueReport {
            active: self.ready.len() as u64,
            inactive: self.invisible.len() as u64,
            delayed: self.delayed.len() as u64,
            statistics: self.orders.statistics.clone(),
        }
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When, without anyone's doing, a message becomes ready next.
    pub(super) fn next_change(&self) -> Option<i64> {
        let first = |set: &BTreeSet<(i64, u64)>| set.first().map(|(at, _)| *at);
        first(&self.invisible).into_iter().chain(first(&self.delayed)).min()
    }

    pub(super) fn send(&mut self, outgoing: Outgoing, now: i64) -> Sent {
        self.tick(now);
        let number = self.next_number;
        self.next_number += 1;
        let delay = millis(outgoing.delay_seconds.or(self.settings.delay_seconds));
        let message = Message {
            // Not from the seed: an emulator that is started again must not hand out ids that a consumer remembers.
            id: fastrand::u128(..),
            body: outgoing.body,
            enqueue_ms: now,
            first_dequeue_ms: 0,
            dequeue_count: 0,
            priority: outgoing.priority.unwrap_or(8),
            properties: outgoing.properties,
        };
        if let Some(log) = &mut self.log {
            log.sent(number, &message);
        }
        let (id, serial) = (message.id, u64::from(delay > 0));
        let place = if delay > 0 { Place::Delayed(now + delay) } else { Place::Ready };
        self.messages.insert(number, Stored { message, place: Place::Ready, serial, due: None, was_held_up: false });
        self.put(number, place);
        self.orders.statistics.sent += 1;
        Sent { id, receipt: if delay > 0 { self.receipt(number, now, delay) } else { None } }
    }

    /// Hands out up to `most` messages, invisible for `visibility` seconds or as long as the queue says. Duplicates
    /// of faults count towards that number.
    pub(super) fn receive(&mut self, most: usize, visibility: Option<u32>, now: i64) -> Vec<Delivery> {
        self.tick(now);
        let most = self.orders.how_many(most, self.ready.len());
        let mut deliveries = Vec::with_capacity(most.min(self.ready.len()));
        // They become ready only after this receive: twice in one answer is another fault.
        let mut in_flight = Vec::new();
        while deliveries.len() < most {
            let Some(&(_, number)) = self.ready.first() else { break };
            let Some(delivery) = self.deliver(number, visibility, now) else { break };
            let is_first = delivery.message.dequeue_count == 1;
            deliveries.push(delivery);
            if !is_first {
                continue;
            }
            if deliveries.len() < most && self.orders.roll(self.orders.faults.duplicate_same_receive) {
                deliveries.extend(self.deliver(number, visibility, now));
                self.orders.statistics.duplicates_same_receive += 1;
            }
            if self.orders.roll(self.orders.faults.duplicate_in_flight) {
                in_flight.push(number);
            }
        }
        for number in in_flight {
            self.put(number, Place::Ready);
            if let Some(stored) = self.messages.get_mut(&number) {
                stored.due = Some(Due::InFlight);
            }
        }
        deliveries
    }

    pub(super) fn peek(&mut self, most: usize, now: i64) -> Vec<Message> {
        self.tick(now);
        let numbers = self.ready.iter().take(most);
        let messages = numbers.filter_map(|(_, number)| self.messages.get(number));
        messages.map(|stored| stored.message.told(self.orders.faults.clock_offset_ms)).collect()
    }

    /// Whether the message was deleted. If not, the handle has expired, was superseded or used, or was never given
    /// out.
    pub(super) fn delete(&mut self, handle: Handle, now: i64) -> bool {
        let Some(number) = self.find(handle, now) else { return false };
        if self.holds_up(number) || self.hands_over(number, now) == Some(false) {
            self.orders.statistics.unknown_handles += 1;
            return false;
        }
        self.remove(number);
        self.orders.statistics.deleted += 1;
        if let Some(log) = &mut self.log {
            log.deleted(number, now);
        }
        true
    }

    /// Makes a message invisible for so long from now; `None` as for [`Self::delete`].
    pub(super) fn change_visibility(&mut self, handle: Handle, seconds: u32, now: i64) -> Option<Receipt> {
        let number = self.find(handle, now)?;
        let visibility = i64::from(seconds) * 1000;
        self.put(number, Place::Invisible(now + visibility));
        let stored = self.messages.get_mut(&number)?;
        stored.due = None;
        stored.serial += 1;
        self.receipt(number, now, visibility)
    }

    /// The newest handle of a message.
    fn receipt(&self, number: u64, now: i64, visibility: i64) -> Option<Receipt> {
        let stored = self.messages.get(&number)?;
        Some(Receipt {
            id: stored.message.id,
            handle: Handle { number, serial: stored.serial },
            issued_ms: now,
            valid_ms: visibility,
            dequeue_count: stored.message.dequeue_count,
            next_visible_ms: now + visibility + self.orders.faults.clock_offset_ms,
        })
    }

    /// The message of a handle that is valid now.
    fn find(&mut self, handle: Handle, now: i64) -> Option<u64> {
        self.tick(now);
        let found = self.messages.get(&handle.number).filter(|stored| {
            let is_out = stored.place != Place::Ready || stored.due == Some(Due::InFlight);
            stored.serial == handle.serial && is_out
        });
        if found.is_none() {
            self.orders.statistics.unknown_handles += 1;
        }
        found.map(|_| handle.number)
    }

    /// Whether a delete comes too late by order: the message is made ready again and its handle dies.
    fn holds_up(&mut self, number: u64) -> bool {
        let Some(stored) = self.messages.get_mut(&number) else { return false };
        if stored.was_held_up || !self.orders.roll(self.orders.faults.duplicate_before_delete) {
            return false;
        }
        stored.was_held_up = true;
        stored.serial += 1;
        stored.due = Some(Due::BeforeDelete);
        self.put(number, Place::Ready);
        true
    }

    /// Notes that a poll waits. What is sent to it before it closes its end is a delivery.
    pub(super) fn wait(&mut self, poll: oneshot::Sender<Delivery>) {
        self.waiting.retain(|poll| !poll.is_closed());
        if self.orders.faults.duplicate_during_delete > 0.0 {
            self.waiting.push(poll);
        }
    }

    /// Whether, by order, a waiting poll gets a message that is about to be deleted. `Some(false)`: that poll went
    /// away at the same moment, so the message is ready again and its handle dead.
    fn hands_over(&mut self, number: u64, now: i64) -> Option<bool> {
        self.waiting.retain(|poll| !poll.is_closed());
        let stored = self.messages.get_mut(&number)?;
        if self.waiting.is_empty() || stored.was_held_up {
            return None;
        }
        if !self.orders.roll(self.orders.faults.duplicate_during_delete) {
            return None;
        }
        stored.was_held_up = true;
        let poll = self.waiting.pop()?;
        let delivery = self.deliver(number, None, now)?;
        if poll.send(delivery).is_ok() {
            self.orders.statistics.duplicates_during_delete += 1;
            return Some(true);
        }
        self.put(number, Place::Ready);
        Some(false)
    }

    /// One delivery, with a new handle; the one before dies.
    fn deliver(&mut self, number: u64, visibility: Option<u32>, now: i64) -> Option<Delivery> {
        let visibility = millis(visibility.or(self.settings.visibility_seconds));
        self.put(number, Place::Invisible(now + visibility));
        let stored = self.messages.get_mut(&number)?;
        stored.serial += 1;
        let message = &mut stored.message;
        message.dequeue_count += 1;
        if message.first_dequeue_ms == 0 {
            message.first_dequeue_ms = now;
        }
        self.orders.statistics.delivered += 1;
        match stored.due.take() {
            Some(Due::InFlight) => self.orders.statistics.duplicates_in_flight += 1,
            Some(Due::BeforeDelete) => self.orders.statistics.duplicates_before_delete += 1,
            Some(Due::Timeout) => self.orders.statistics.redelivered_after_timeout += 1,
            None => {}
        }
        let message = message.told(self.orders.faults.clock_offset_ms);
        if let Some(log) = &mut self.log {
            log.delivered(number, now);
        }
        Some(Delivery { message, receipt: self.receipt(number, now, visibility)? })
    }

    /// Lets happen what is due: delays, visibility timeouts and retentions that have run out.
    fn tick(&mut self, now: i64) {
        while let Some(&(at, number)) = self.delayed.first().filter(|(at, _)| *at <= now) {
            self.delayed.remove(&(at, number));
            self.put(number, Place::Ready);
        }
        while let Some(&(at, number)) = self.invisible.first().filter(|(at, _)| *at <= now) {
            self.invisible.remove(&(at, number));
            self.put(number, Place::Ready);
            if let Some(stored) = self.messages.get_mut(&number) {
                stored.due = Some(Due::Timeout);
            }
        }
        // Numbers grow with the time of sending, so the oldest comes first.
        let oldest = now - millis(self.settings.retention_seconds);
        while let Some((&number, _)) = self.messages.first_key_value().filter(|(_, s)| s.message.enqueue_ms <= oldest) {
            self.remove(number);
            self.orders.statistics.expired += 1;
        }
    }

    /// Moves a message.
    fn put(&mut self, number: u64, place: Place) {
        self.take_out(number);
        let Some(stored) = self.messages.get_mut(&number) else { return };
        stored.place = place;
        match place {
            Place::Ready => self.ready.insert((Band::of(stored.message.priority), number)),
            Place::Invisible(at) => self.invisible.insert((at, number)),
            Place::Delayed(at) => self.delayed.insert((at, number)),
        };
    }

    fn take_out(&mut self, number: u64) {
        let Some(stored) = self.messages.get(&number) else { return };
        match stored.place {
            Place::Ready => self.ready.remove(&(Band::of(stored.message.priority), number)),
            Place::Invisible(at) => self.invisible.remove(&(at, number)),
            Place::Delayed(at) => self.delayed.remove(&(at, number)),
        };
    }

    fn remove(&mut self, number: u64) {
        self.take_out(number);
        self.messages.remove(&number);
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
