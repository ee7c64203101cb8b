//! Several messages in one request.

use bytes::{BufMut, Bytes, BytesMut};

use super::{ids, properties, types::Outgoing};
use crate::model::Fault;

/// What a message takes beside body and properties: size, magic, checksum, flag, and the two lengths.
const FIXED: usize = 4 + 4 + 4 + 4 + 4 + 2;
/// What [`properties::encode`] adds to what the message says: the id, and its name.
const ID: usize = 32 + "UNIQ_KEY".len() + 2;

/// How many bytes the message takes; without a namespace, which is noted in a property.
pub(super) fn size(message: &Outgoing) -> usize {
    let fixed = [("KEYS", &message.keys), ("TAGS", &message.tags)];
    let fixed = fixed.into_iter().filter_map(|(name, value)| Some(name.len() + value.as_ref()?.len() + 2));
    let own = message.properties.iter().map(|(name, value)| name.len() + value.len() + 2);
    FIXED + ID + message.body.len() + fixed.chain(own).sum::<usize>()
}

/// The body of a batch, as the Java client's `MessageDecoder.encodeMessages`.
pub(super) fn encode<'a>(messages: impl Iterator<Item = (&'a Outgoing, &'a str)>, size: usize) -> Bytes {
    let mut encoded = BytesMut::with_capacity(size);
    for (message, properties) in messages {
        let size = FIXED + message.body.len() + properties.len();
        // Sizes are within 32 bits, and properties within 16: they were checked before.
        encoded.put_u32(size as u32);
        encoded.put_bytes(0, 4 + 4 + 4);
        encoded.put_u32(message.body.len() as u32);
        encoded.put_slice(&message.body);
        encoded.put_u16(properties.len() as u16);
        encoded.put_slice(properties.as_bytes());
    }
    encoded.freeze()
}

/// The properties of every message, with an id each.
pub(super) fn with_ids(messages: &[Outgoing], namespace: Option<&str>) -> Result<Vec<String>, Fault> {
    let mut fresh = ids::of_now();
    let mut properties = |message: &Outgoing| match &message.id {
        Some(id) => properties::encode(message, id, namespace),
        None => properties::encode(message, &fresh.next().unwrap_or_default(), namespace),
    };
    messages.iter().map(&mut properties).collect()
}
