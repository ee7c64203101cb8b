//! The names and numbers things are known by.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// A pipeline's name: letters, digits, `.`, `_` and `-`, at most 100 characters, first a letter or digit.
/// It is a metric label, a state key and part of every staged file's folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PipelineName(Arc<str>);

impl PipelineName {
    /// Longest name accepted, in characters.
    pub const MAX: usize = 100;

    /// Checks and wraps a name; the error says what a name may be.
    pub fn new(name: &str) -> Result<Self, &'static str> {
        let mut bytes = name.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if first && rest && name.len() <= Self::MAX {
            Ok(Self(name.into()))
        } else {
            Err("1 to 100 letters, digits, '.', '_' or '-', beginning with a letter or digit")
        }
    }

    /// A name made of what `text` has that a name may have, for something that has to be shown but has no valid name.
    pub fn resembling(text: &str) -> Self {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let begun = text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let name: String = begun.chars().take(Self::MAX).map(allowed).collect();
        Self(if name.is_empty() { "unnamed".into() } else { name.into() })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PipelineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pipeline's place in the supervisor: counts from 1, never reused while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Slot(pub u32);

/// One run of a pipeline's actors. Grows by one with every start and is durable before anything is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct Generation(pub u64);

/// A checkpoint's number; goes on counting over restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

macro_rules! display_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
display_number!(Slot, Generation, Epoch);

/// One ordered stretch of a source: a queue of RocketMQ, or the one poller of MNS and CMQ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct LaneId(pub Arc<str>);

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a source reads, independent of credentials and tuning: connector, endpoint and queue.
/// Two pipelines with one identity are an error; a stored state belongs to one identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceIdentity(pub String);

impl fmt::Display for SourceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A 128-bit xxh3 hash that stands for a message id or a primary key.
///
/// With a million live fingerprints the chance of one false duplicate is about 1.5e-27.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(pub u128);

/// Hashed by its lower half as it is, for it is uniform already.
impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0 as u64);
    }
}

/// A map by fingerprint that does not hash a hash.
pub type FingerprintMap<V> = HashMap<Fingerprint, V, BuildHasherDefault<TakeAsIs>>;

/// Hands on the one number it is given.
#[derive(Debug, Default)]
pub struct TakeAsIs(u64);

impl Hasher for TakeAsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not reached by a fingerprint; right for anything else all the same.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl Fingerprint {
    /// The fingerprint of a message id at a source. Every part is length-prefixed, and the kind is part of it,
    /// so that no two different things can be written alike.
    pub fn of_message(source: &SourceIdentity, id: &str) -> Self {
        Self::of_parts(["message", &source.0, id])
    }

    /// The fingerprint of texts, each of them length-prefixed.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Xxh3::new();
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.digest128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_resembled_is_a_name() {
        let long = "x".repeat(200);
        for (text, name) in
            [("orders", "orders"), ("my pipe\u{e9}", "my-pipe-"), (".-a", "a"), ("", "unnamed"), ("\u{e9}", "unnamed")]
        {
            assert_eq!(PipelineName::resembling(text).as_str(), name);
        }
        for text in ["a b", "\n", &long, "\u{fffd}x/../y"] {
            assert!(PipelineName::new(PipelineName::resembling(text).as_str()).is_ok(), "{text:?}");
        }
    }
}
