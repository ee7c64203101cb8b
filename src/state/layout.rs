//! How state is laid out as keys and values.
//!
//! ```text
//! m                                                  what the store is: version, incarnation
//! p <length of name: u8> <name> d <epoch: u64> <part: u32>    a delta, or a snapshot
//! p <length of name: u8> <name> k <page: u64> <part: u32>     primary keys; a page is one part
//! p <length of name: u8> <name> r <part: u32>                 the record
//! ```
//!
//! Numbers in keys are big-endian, so that their order is the order of keys; in values they are little-endian.
//! sled puts large values, and leaves that hold several of them, into files it never syncs, so every value is cut
//! into parts of at most [`PART_BYTES`]. A value begins with its length and checksum: sled undoes a torn batch,
//! and this says so if it ever does not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{disk::Change, key_log::Pages};
use crate::model::{Epoch, Fingerprint, Generation, PipelineName, SourceIdentity, Token};

/// The version of this layout.
pub(super) const FORMAT: u32 = 1;

/// Most bytes of one stored value. A sled leaf splits above 16 entries and goes to a side file above 128 KiB.
pub(super) const PART_BYTES: usize = 4096;

/// The key of [`Meta`].
pub(super) const META_KEY: &[u8] = b"m";

const HEADER_BYTES: usize = 4 + 8;
const ID_BYTES: usize = 16;

/// What the store is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Meta {
    pub(super) format: u32,
    pub(super) incarnation: String,
}

/// A pipeline's record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// `None`: forgotten on request; the next definition's is taken.
    pub(super) source: Option<SourceIdentity>,
    pub(super) generation: Generation,
    pub(super) epoch: Epoch,
    pub(super) positions: BTreeMap<String, u64>,
    pub(super) tokens: Vec<Token>,
    pub(super) uptime_ms: u64,
    pub(super) finished: bool,
    pub(super) chain: Chain,
    // What follows was added to the format later: a record of before has no keys.
    #[serde(default)]
    pub(super) keys: Pages,
    /// How many of these the last epoch added; they are the last ones.
    #[serde(default)]
    pub(super) keys_added: u64,
    /// What the key clock said at the last checkpoint.
    #[serde(default)]
    pub(super) key_clock_ms: u64,
}

/// What a record says of the deltas that belong to it, so that a missing one cannot go unnoticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chain {
    /// How many there are.
    pub(super) count: u64,
    /// Entries in all of them.
    pub(super) ids: u64,
    /// Wrapping sum of their checksums.
    pub(super) checksums: u64,
}

impl Chain {
    pub(super) fn add(&mut self, ids: usize, checksum: u64) {
        self.count += 1;
        self.ids += ids as u64;
        self.checksums = self.checksums.wrapping_add(checksum);
    }
}

/// The ids of one checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delta {
    /// `removed` goes first: an id in both stays, for a duplicate is worse than a byte.
    Change { stamp_ms: u64, added: Vec<Fingerprint>, removed: Vec<Fingerprint> },
    /// All there is, each with its stamp.
    Snapshot(Vec<(Fingerprint, u64)>),
}

/// The beginning of every key of a pipeline. The length keeps `a` and `a.b` apart.
pub(super) fn prefix(pipeline: &PipelineName) -> Vec<u8> {
    let name = pipeline.as_str().as_bytes();
    let mut key = Vec::with_capacity(2 + name.len() + 13);
    // A name has at most 100 bytes.
    key.extend([b'p', name.len() as u8]);
    key.extend(name);
    key
}

/// The beginning of the keys of a pipeline's record.
pub(super) fn record_key(pipeline: &PipelineName) -> Vec<u8> {
    let mut key = prefix(pipeline);
    key.push(b'r');
    key
}

/// The beginning of the keys of a pipeline's delta.
pub(super) fn delta_key(pipeline: &PipelineName, epoch: Epoch) -> Vec<u8> {
    let mut key = prefix(pipeline);
    key.push(b'd');
    key.extend(epoch.0.to_be_bytes());
    key
}

/// The beginning of the key of a page of a pipeline's primary keys.
pub(super) fn page_key(pipeline: &PipelineName, page: u64) -> Vec<u8> {
    let mut key = prefix(pipeline);
    key.push(b'k');
    key.extend(page.to_be_bytes());
    key
}

/// Splits a key, its pipeline's prefix removed, into the value it is part of (`r`, `d` and an epoch, or `k`
/// and a page) and the number of the part. `None`: not a key of this layout.
pub(super) fn split_key(rest: &[u8]) -> Option<(&[u8], u32)> {
    let (value, part) = rest.split_last_chunk::<4>()?;
    let known = matches!(value, [b'r'] | [b'd' | b'k', _, _, _, _, _, _, _, _]);
    known.then(|| (value, u32::from_be_bytes(*part)))
}

/// The pipeline that a key belongs to. `None`: not a key of this layout.
pub(super) fn owner(key: &[u8]) -> Option<PipelineName> {
    let (length, rest) = key.strip_prefix(b"p")?.split_first()?;
    let name = rest.get(..usize::from(*length))?;
    PipelineName::new(std::str::from_utf8(name).ok()?).ok()
}

/// The epoch of the delta that a key, its pipeline's prefix removed, is part of. `None`: it is of no delta.
pub(super) fn epoch_of(rest: &[u8]) -> Option<Epoch> {
    let epoch = split_key(rest)?.0.strip_prefix(b"d")?;
    Some(Epoch(u64::from_be_bytes(epoch.try_into().ok()?)))
}

/// Puts length and checksum before a value.
pub(super) fn seal(body: &[u8]) -> (Vec<u8>, u64) {
    let checksum = xxh3_64(body);
    let mut sealed = Vec::with_capacity(HEADER_BYTES + body.len());
    // A value is at most some ten million ids of 24 bytes.
    sealed.extend((body.len() as u32).to_le_bytes());
    sealed.extend(checksum.to_le_bytes());
    sealed.extend(body);
    (sealed, checksum)
}

/// Checks and removes what [`seal`] put before a value; answers the checksum too.
pub(super) fn unseal(sealed: &[u8]) -> Option<(&[u8], u64)> {
    let (length, rest) = sealed.split_first_chunk::<4>()?;
    let (checksum, body) = rest.split_first_chunk::<8>()?;
    let (length, checksum) = (u32::from_le_bytes(*length), u64::from_le_bytes(*checksum));
    (body.len() == length as usize && xxh3_64(body) == checksum).then_some((body, checksum))
}

/// Adds the changes that write a sealed value in parts over one that had `before` parts; answers the new number.
pub(super) fn write_parts(key: &[u8], sealed: &[u8], before: u32, changes: &mut Vec<Change>) -> u32 {
    let mut parts = 0;
    for part in sealed.chunks(PART_BYTES) {
        changes.push(Change { key: part_key(key, parts), value: Some(part.to_vec()) });
        parts += 1;
    }
    for surplus in parts..before {
        changes.push(Change { key: part_key(key, surplus), value: None });
    }
    parts
}

fn part_key(key: &[u8], part: u32) -> Vec<u8> {
    let mut full = Vec::with_capacity(key.len() + 4);
    full.extend(key);
    full.extend(part.to_be_bytes());
    full
}

impl Delta {
    /// Entries in it.
    pub(super) fn ids(&self) -> usize {
        match self {
            Self::Change { added, removed, .. } => added.len() + removed.len(),
            Self::Snapshot(ids) => ids.len(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(17 + self.ids() * (ID_BYTES + 8));
        match self {
            Self::Change { stamp_ms, added, removed } => {
                body.push(b'c');
                body.extend(stamp_ms.to_le_bytes());
                body.extend((added.len() as u64).to_le_bytes());
                for id in added.iter().chain(removed) {
                    body.extend(id.0.to_le_bytes());
                }
            }
            Self::Snapshot(ids) => {
                body.push(b's');
                for (id, stamp_ms) in ids {
                    body.extend(id.0.to_le_bytes());
                    body.extend(stamp_ms.to_le_bytes());
                }
            }
        }
        body
    }

    /// `None`: not written by [`Delta::encode`].
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        match body.split_first()? {
            (b'c', rest) => {
                let (stamp_ms, rest) = rest.split_first_chunk::<8>()?;
                let (count, rest) = rest.split_first_chunk::<8>()?;
                let (ids, []) = rest.as_chunks::<ID_BYTES>() else { return None };
                let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
                let (added, removed) = ids.split_at_checked(count)?;
                let read =
                    |ids: &[[u8; ID_BYTES]]| ids.iter().map(|id| Fingerprint(u128::from_le_bytes(*id))).collect();
                Some(Self::Change {
                    stamp_ms: u64::from_le_bytes(*stamp_ms),
                    added: read(added),
                    removed: read(removed),
                })
            }
            (b's', rest) => {
                let (entries, []) = rest.as_chunks::<{ ID_BYTES + 8 }>() else { return None };
                let read = |entry: &[u8; ID_BYTES + 8]| {
                    let (id, stamp_ms) = entry.split_first_chunk::<ID_BYTES>()?;
                    let stamp_ms = u64::from_le_bytes(stamp_ms.try_into().ok()?);
                    Some((Fingerprint(u128::from_le_bytes(*id)), stamp_ms))
                };
                entries.iter().map(read).collect::<Option<Vec<_>>>().map(Self::Snapshot)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_pipeline_do_not_begin_with_those_of_another() {
        let names: Vec<_> = ["a", "a.b", "a.b.c", "ar", "b"].iter().map(|n| PipelineName::new(n).unwrap()).collect();
        for one in &names {
            for other in names.iter().filter(|other| *other != one) {
                assert!(!record_key(one).starts_with(&prefix(other)), "{one} {other}");
            }
        }
    }

    #[test]
    fn deltas_come_back_as_they_were_written() {
        let ids = |range: std::ops::Range<u128>| range.map(|n| Fingerprint(n << 70 | n)).collect::<Vec<_>>();
        for delta in [
            Delta::Change { stamp_ms: 7, added: ids(0..5), removed: ids(5..8) },
            Delta::Change { stamp_ms: u64::MAX, added: vec![], removed: ids(1..2) },
            Delta::Snapshot(ids(0..9).into_iter().zip(100..).collect()),
        ] {
            assert_eq!(Delta::decode(&delta.encode()), Some(delta));
        }
    }

    #[test]
    fn a_changed_or_shortened_value_is_noticed() {
        let (sealed, _) = seal(b"some value");
        assert!(unseal(&sealed).is_some());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(unseal(&changed).is_none(), "byte {at}");
            assert!(unseal(&sealed[..at]).is_none(), "length {at}");
        }
    }
}
