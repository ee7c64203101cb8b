//! Properties of a message: `NAME\u{1}VALUE\u{2}` one after the other.

use std::borrow::Cow;

use bytes::Bytes;

use super::types::Outgoing;
use crate::model::{Fault, FaultKind};

/// Between a name and its value.
const NAME_END: u8 = 1;
/// After a value.
const VALUE_END: u8 = 2;

pub(super) const KEYS: &str = "KEYS";
pub(super) const TAGS: &str = "TAGS";
/// The id that the sender gives a message.
pub(super) const UNIQ_KEY: &str = "UNIQ_KEY";
/// The namespace a message was sent with, as the Java client notes it.
const INSTANCE_ID: &str = "INSTANCE_ID";

/// Properties as they came: a slice of the broker's answer, looked through when asked. A message has few, and a
/// reader that wants none of them pays nothing.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Properties(Bytes);

impl Properties {
    /// Takes them as they are on the wire. What is not UTF-8 is replaced, as the Java client does.
    pub(super) fn new(raw: Bytes) -> Self {
        if simdutf8::basic::from_utf8(&raw).is_ok() {
            return Self(raw);
        }
        Self(Bytes::from(String::from_utf8_lossy(&raw).into_owned()))
    }

    /// Made up for a test.
    #[cfg(test)]
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| format!("{name}\u{1}{value}\u{2}")).collect::<String>().into())
    }

    /// The value of a property. If it is there twice, that is the first: a broker appends to each message of a batch
    /// what the batch as a whole had, among it an id that does not tell them apart.
    pub fn get(&self, name: &str) -> Option<&str> {
        let name = name.as_bytes();
        self.pairs().find_map(|(found, value)| (found == name).then_some(value)).map(text)
    }

    /// All of them, in the order in which they came, each name once.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let first = move |at: usize, name: &[u8]| self.pairs().take(at).all(|(earlier, _)| earlier != name);
        let pairs = self.pairs().enumerate().filter(move |(at, (name, _))| first(*at, name));
        pairs.map(|(_, (name, value))| (text(name), text(value)))
    }

    /// Pairs without a name or a value are no properties, as in the Java client.
    fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &*self.0;
        let pairs = std::iter::from_fn(move || {
            let end = memchr::memchr(VALUE_END, rest).unwrap_or(rest.len());
            let pair = (!rest.is_empty()).then(|| &rest[..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
            pair
        });
        pairs.filter_map(|pair| {
            let at = memchr::memchr(NAME_END, pair)?;
            let (name, value) = (&pair[..at], &pair[at + 1..]);
            (!name.is_empty() && !value.is_empty()).then_some((name, value))
        })
    }
}

impl std::fmt::Debug for Properties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Made of UTF-8 that was split at ASCII, so it is UTF-8.
fn text(bytes: &[u8]) -> &str {
    simdutf8::basic::from_utf8(bytes).unwrap_or_default()
}

/// What a message says on the wire beside its body. An empty value is no property: no client could read it.
pub(super) fn encode(message: &Outgoing, id: &str, namespace: Option<&str>) -> Result<String, Fault> {
    let fixed = [(KEYS, message.keys.as_deref()), (TAGS, message.tags.as_deref())];
    let own = fixed.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let further = message.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let ours = [(UNIQ_KEY, Some(id)), (INSTANCE_ID, namespace)].into_iter().filter_map(|(n, v)| Some((n, v?)));
    let mut encoded = String::new();
    for (name, value) in own.chain(further).chain(ours) {
        if value.is_empty() {
            continue;
        }
        if let Some(found) = [name, value].into_iter().find_map(control) {
            return Err(refused(format!("property {name:?} holds {found:?}, which separates properties on the wire")));
        }
        encoded.extend([name, "\u{1}", value, "\u{2}"]);
    }
    fits(encoded.len())?;
    Ok(encoded)
}

/// Whether a broker takes so many bytes of them.
pub(super) fn fits(bytes: usize) -> Result<(), Fault> {
    const MOST: usize = Outgoing::MOST_PROPERTIES;
    match bytes {
        0..=MOST => Ok(()),
        _ => Err(refused(format!("its properties take {bytes} bytes, and a broker takes {MOST} at most"))),
    }
}

fn control(text: &str) -> Option<char> {
    text.chars().find(|c| matches!(c, '\u{1}' | '\u{2}'))
}

fn refused(what: String) -> Fault {
    Fault::never(FaultKind::Poison, Cow::Owned(format!("the message cannot be sent: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_found_by_name_and_pairs_without_name_or_value_are_none() {
        let properties = Properties::new(Bytes::from_static(
            b"KEYS\x01k1 k2\x02KEYS\x01again\x02x\x01\x02\x01y\x02junk\x02TAGS\x01T=\xc3\xa9",
        ));
        assert_eq!(properties.iter().collect::<Vec<_>>(), [("KEYS", "k1 k2"), ("TAGS", "T=é")]);
        assert_eq!((properties.get("TAGS"), properties.get("x"), properties.get("KEY")), (Some("T=é"), None, None));
        assert_eq!(Properties::default().iter().count(), 0);
    }

    #[test]
    fn properties_that_are_no_utf8_are_read_with_replacements() {
        let properties = Properties::new(Bytes::from_static(b"a\x01\xff\x02b\x01c\x02"));
        assert_eq!(properties.iter().collect::<Vec<_>>(), [("a", "\u{fffd}"), ("b", "c")]);
    }

    #[test]
    fn what_the_wire_cannot_carry_is_refused_as_poison() {
        let with =
            |name: &str, value: &str| Outgoing { properties: vec![(name.into(), value.into())], ..Outgoing::default() };
        for bad in [with("a\u{1}", "b"), with("a", "b\u{2}"), with("a", &"x".repeat(40_000))] {
            let fault = bad.check().expect_err("refused");
            assert_eq!(fault.kind, FaultKind::Poison, "{fault}");
        }
        assert_eq!(
            encode(&with("a", ""), "ID", Some("ns")).expect("valid"),
            "UNIQ_KEY\u{1}ID\u{2}INSTANCE_ID\u{1}ns\u{2}"
        );
    }
}
