//! The primary keys of a pipeline's window, in the order in which checkpoints recorded them.
//!
//! They lie in *pages* of one part each. A checkpoint fills up the last page and begins new ones, so there are never
//! more pages than the keys need, however few come with each checkpoint, and nothing has to be written a second time to
//! pack them. Keys come in the order of the clock: a page all of whose keys have left the window is removed, and no page
//! behind it can have. So what is on the disk is what is in the window, and at most a page more.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    disk::Change,
    layout::{PART_BYTES, page_key, seal, unseal, write_parts},
};
use crate::model::{Fingerprint, PipelineName};

const ENTRY_BYTES: usize = 16 + 8;

/// Keys in a page that is full: with its length and checksum it is one part.
pub(super) const PAGE_KEYS: usize = (PART_BYTES - 12) / ENTRY_BYTES;

/// A key, and when it was first seen, in milliseconds of the key clock.
pub(super) type SeenKey = (Fingerprint, u64);

/// What a record says of the pages that belong to it, so that a missing or an older one cannot go unnoticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pages {
    /// How many there are.
    pub(super) count: u64,
    /// Keys in all of them.
    pub(super) keys: u64,
    /// Wrapping sum of their checksums.
    pub(super) checksums: u64,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    number: u64,
    keys: u64,
    /// When the last of its keys was first seen.
    newest_ms: u64,
    checksum: u64,
}

impl Page {
    fn new(number: u64, keys: &[SeenKey], checksum: u64) -> Self {
        let newest_ms = keys.iter().map(|(_, first_seen_ms)| *first_seen_ms).max().unwrap_or(0);
        Self { number, keys: keys.len() as u64, newest_ms, checksum }
    }
}

/// What the store's thread knows of the pages of a pipeline.
#[derive(Debug, Default)]
pub(super) struct KeyLog {
    pages: VecDeque<Page>,
    /// The keys of the last page.
    tail: Vec<SeenKey>,
    sum: Pages,
}

impl KeyLog {
    /// What a record is to say of it.
    pub(super) fn pages(&self) -> Pages {
        self.sum
    }

    /// Takes in a page that was read, all of those before it having been. Answers its keys; `None`: it cannot be read.
    pub(super) fn load(&mut self, number: u64, sealed: &[u8]) -> Option<&[SeenKey]> {
        let (body, checksum) = unseal(sealed)?;
        self.tail = decode(body)?;
        self.push(Page::new(number, &self.tail, checksum));
        Some(&self.tail)
    }

    /// Removes every page whose keys were all first seen `window_ms` before `now_ms`, or earlier.
    pub(super) fn expire(&mut self, pipeline: &PipelineName, now_ms: u64, window_ms: u64, changes: &mut Vec<Change>) {
        let over = |page: &mut Page| page.newest_ms.saturating_add(window_ms) <= now_ms;
        while let Some(page) = self.pages.pop_front_if(over) {
            self.remove(page, pipeline, changes);
        }
    }

    /// Removes every page.
    pub(super) fn clear(&mut self, pipeline: &PipelineName, changes: &mut Vec<Change>) {
        while let Some(page) = self.pages.pop_front() {
            self.remove(page, pipeline, changes);
        }
    }

    /// Adds keys behind those there are.
    pub(super) fn append(&mut self, pipeline: &PipelineName, mut keys: &[SeenKey], changes: &mut Vec<Change>) {
        while !keys.is_empty() {
            let number = match self.pages.back() {
                Some(page) if self.tail.len() < PAGE_KEYS => page.number,
                last => {
                    let next = last.map_or(0, |page| page.number + 1);
                    self.tail.clear();
                    next
                }
            };
            let (now, later) = keys.split_at(keys.len().min(PAGE_KEYS - self.tail.len()));
            keys = later;
            self.tail.extend_from_slice(now);
            let (sealed, checksum) = seal(&encode(&self.tail));
            write_parts(&page_key(pipeline, number), &sealed, 0, changes);
            if let Some(before) = self.pages.pop_back_if(|page| page.number == number) {
                self.uncount(before);
            }
            self.push(Page::new(number, &self.tail, checksum));
        }
    }

    fn push(&mut self, page: Page) {
        self.sum.count += 1;
        self.sum.keys += page.keys;
        self.sum.checksums = self.sum.checksums.wrapping_add(page.checksum);
        self.pages.push_back(page);
    }

    fn uncount(&mut self, page: Page) {
        self.sum.count -= 1;
        self.sum.keys -= page.keys;
        self.sum.checksums = self.sum.checksums.wrapping_sub(page.checksum);
    }

    fn remove(&mut self, page: Page, pipeline: &PipelineName, changes: &mut Vec<Change>) {
        write_parts(&page_key(pipeline, page.number), &[], 1, changes);
        self.uncount(page);
    }
}

fn encode(keys: &[SeenKey]) -> Vec<u8> {
    let mut body = Vec::with_capacity(keys.len() * ENTRY_BYTES);
    for (key, first_seen_ms) in keys {
        body.extend(key.0.to_le_bytes());
        body.extend(first_seen_ms.to_le_bytes());
    }
    body
}

/// `None`: not written by [`encode`].
fn decode(body: &[u8]) -> Option<Vec<SeenKey>> {
    let (entries, []) = body.as_chunks::<ENTRY_BYTES>() else { return None };
    let read = |entry: &[u8; ENTRY_BYTES]| {
        let (key, first_seen_ms) = entry.split_first_chunk::<16>()?;
        Some((Fingerprint(u128::from_le_bytes(*key)), u64::from_le_bytes(first_seen_ms.try_into().ok()?)))
    };
    entries.iter().map(read).collect()
}
