//! The receipts of one generation: message -> newest receipt, and what is being done with it. Plain data.

use std::{
    collections::{VecDeque, hash_map},
    time::{Duration, Instant},
};

use crate::model::{Fingerprint, FingerprintMap, Receipt};

/// Messages received whose delete has not been answered.
#[derive(Default)]
pub struct Ledger {
    entries: FingerprintMap<Entry>,
    /// Entries that are not wanted yet.
    open: usize,
    /// Wanted and not under way; may hold ids that are gone again.
    pending: VecDeque<Fingerprint>,
}

struct Entry {
    receipt: Receipt,
    expires: Instant,
    /// A delete or an extension is under way. The two never overlap for one message.
    busy: bool,
    /// Its message is checkpointed: it is to be deleted.
    wanted: bool,
}

impl Ledger {
    /// Messages whose delete has not been answered yet.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Of those, the messages that no checkpoint has disposed of yet.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a delivery of the message is in the ledger.
    pub fn holds(&self, id: Fingerprint) -> bool {
        self.entries.contains_key(&id)
    }

    /// Notes a delivery; an older receipt of the same message is replaced, a newer one kept.
    pub fn received(&mut self, id: Fingerprint, receipt: Receipt, now: Instant) {
        let expires = now + receipt.invisible_for;
        match self.entries.entry(id) {
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { receipt, expires, busy: false, wanted: false });
                self.open += 1;
            }
            hash_map::Entry::Occupied(mut known) => {
                let entry = known.get_mut();
                if receipt.is_newer_than(&entry.receipt) {
                    entry.receipt = receipt;
                    entry.expires = expires;
                }
            }
        }
    }

    /// The message is checkpointed. Without a receipt (restored, not redelivered yet) there is nothing to do.
    pub fn want(&mut self, id: Fingerprint) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.wanted
        {
            entry.wanted = true;
            self.open -= 1;
            if !entry.busy {
                self.pending.push_back(id);
            }
        }
    }

    /// Takes up to `most` wanted receipts; each must be given back to [`Self::answered`].
    pub fn take(&mut self, most: usize) -> Vec<(Fingerprint, Receipt)> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(id) = self.pending.pop_front()
        {
            if let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.wanted && !entry.busy) {
                entry.busy = true;
                taken.push((id, entry.receipt.clone()));
            }
        }
        taken
    }

    /// The service answered a delete that used `receipt`. If another delivery came in meanwhile, its receipt is
    /// the one that counts and the delete is done again with it (`false`); else the message is out of the ledger.
    pub fn answered(&mut self, id: Fingerprint, receipt: &Receipt) -> bool {
        match self.entries.get_mut(&id) {
            Some(entry) if entry.receipt.is_newer_than(receipt) => {
                entry.busy = false;
                self.pending.push_back(id);
                false
            }
            _ => {
                self.entries.remove(&id);
                true
            }
        }
    }

    /// Whether no delete is left to send or under way; one that waits for an extension is left to send.
    pub fn is_idle(&self) -> bool {
        self.open == self.entries.len()
    }

    /// Up to `most` messages that are neither wanted nor busy and whose delivery runs out within `within`. Each is
    /// marked busy and must be given back to [`Self::extended`].
    pub fn take_expiring(&mut self, now: Instant, within: Duration, most: usize) -> Vec<(Fingerprint, Receipt)> {
        let mut taken = Vec::new();
        for (id, entry) in &mut self.entries {
            if taken.len() == most {
                break;
            }
            if !entry.busy && !entry.wanted && entry.expires <= now + within {
                entry.busy = true;
                taken.push((*id, entry.receipt.clone()));
            }
        }
        taken
    }

    /// An extension was answered: with a new receipt, or (`None`) with a failure, after which the delivery is let
    /// run out and the message comes back.
    pub fn extended(&mut self, id: Fingerprint, receipt: Option<Receipt>, now: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.busy = false;
        match receipt {
            Some(receipt) if receipt.is_newer_than(&entry.receipt) => {
                entry.expires = now + receipt.invisible_for;
                entry.receipt = receipt;
            }
            Some(_) => {}
            // Not tried again for this delivery: its receipt may be dead, and a new delivery brings a new one.
            None => entry.expires = now + Duration::from_secs(86_400),
        }
        if entry.wanted {
            self.pending.push_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(handle: &str, next_visible_ms: i64) -> Receipt {
        Receipt { handle: handle.into(), next_visible_ms, dequeue_count: 1, invisible_for: Duration::from_secs(30) }
    }

    const ID: Fingerprint = Fingerprint(7);

    #[test]
    fn a_duplicate_is_deleted_with_its_newest_receipt_also_when_two_polls_answer_out_of_order() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.received(ID, receipt("newer", 2_000), now);
        ledger.received(ID, receipt("older", 1_000), now);
        ledger.want(ID);
        assert_eq!(ledger.take(16), vec![(ID, receipt("newer", 2_000))]);
    }

    #[test]
    fn a_delivery_during_a_delete_is_deleted_too() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.received(ID, receipt("first", 1_000), now);
        ledger.want(ID);
        let first = ledger.take(16);
        ledger.received(ID, receipt("second", 2_000), now);
        assert!(!ledger.answered(ID, &first[0].1));
        assert!(!ledger.is_idle());
        let second = ledger.take(16);
        assert_eq!(second, vec![(ID, receipt("second", 2_000))]);
        assert!(ledger.answered(ID, &second[0].1));
        assert!(ledger.is_idle());
        assert_eq!(ledger.len(), 0);
    }

    #[test]
    fn a_message_is_open_until_it_is_wanted_however_often_it_is_delivered() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        for (handle, at) in [("first", 1_000), ("second", 2_000)] {
            ledger.received(ID, receipt(handle, at), now);
        }
        assert_eq!((ledger.open(), ledger.len()), (1, 1));
        ledger.want(ID);
        ledger.want(ID);
        assert_eq!((ledger.open(), ledger.len()), (0, 1));
        let taken = ledger.take(16);
        assert!(ledger.answered(ID, &taken[0].1));
        ledger.received(ID, receipt("again", 3_000), now);
        assert_eq!((ledger.open(), ledger.len()), (1, 1));
    }

    #[test]
    fn an_extension_never_overlaps_a_delete() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.received(ID, receipt("first", 1_000), now);
        let extending = ledger.take_expiring(now, Duration::from_secs(60), 4);
        assert_eq!(extending.len(), 1);
        ledger.want(ID);
        assert!(ledger.take(16).is_empty(), "the extension is still under way");
        assert!(!ledger.is_idle(), "its delete is still to come");
        ledger.extended(ID, Some(receipt("extended", 9_000)), now);
        assert_eq!(ledger.take(16), vec![(ID, receipt("extended", 9_000))]);
        assert!(ledger.take_expiring(now, Duration::from_secs(60), 4).is_empty(), "the delete is under way");
    }
}
