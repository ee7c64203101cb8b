//! Messages as a broker stores them and hands them out: one after the other, without a copy of their bodies.

use std::{fmt::Write, ops::Range, sync::Arc};

use bytes::{Buf, Bytes};

use super::{
    compression,
    properties::{Properties, UNIQ_KEY},
    types::PulledMessage,
};
use crate::model::{Body, Fault, FaultKind};

/// First field behind the size: the layout with a topic of up to 127 bytes.
const MAGIC: i32 = -626_843_481;
/// The layout with a longer topic (5.x).
const MAGIC_V2: i32 = -626_843_477;

const COMPRESSED: i32 = 1;
const BORN_AT_IPV6: i32 = 1 << 4;
const STORED_AT_IPV6: i32 = 1 << 5;
/// The body is a batch that stands as one message in the log (5.x, topics of type batch).
const INNER_BATCH: i32 = (1 << 7) | (1 << 6);

/// Reads all messages of an answer. An answer that ends within a message, or holds anything else, is a fault: what
/// cannot be read is not skipped.
pub(super) fn decode_all(mut body: Bytes) -> Result<Vec<PulledMessage>, Fault> {
    let mut messages = Vec::new();
    while body.has_remaining() {
        let size = body.get(..4).map(|mut size| size.get_i32()).and_then(|size| usize::try_from(size).ok());
        let Some(size) = size.filter(|size| (4..=body.len()).contains(size)) else {
            return Err(unreadable(&format!(
                "a message begins with the size {size:?}, and {} bytes follow",
                body.len()
            )));
        };
        let decoded = decode(body.split_to(size)).ok_or_else(|| unreadable("a message ends within a field"))??;
        if decoded.flags & INNER_BATCH == INNER_BATCH {
            unwrap(&decoded.message, &mut messages)?;
        } else {
            messages.push(decoded.message);
        }
    }
    Ok(messages)
}

fn unreadable(what: &str) -> Fault {
    Fault::retry(FaultKind::Service, format!("pull: the answer cannot be read: {what}"))
}

struct Decoded {
    flags: i32,
    message: PulledMessage,
}

/// `None` if the bytes end too early.
fn decode(whole: Bytes) -> Option<Result<Decoded, Fault>> {
    let mut at = &whole[4..];
    let magic = at.try_get_i32().ok()?;
    if magic != MAGIC && magic != MAGIC_V2 {
        return Some(Err(unreadable(&format!("a message of an unknown layout (magic {magic:#x})"))));
    }
    // The checksum of the body, which the Java client ignores too; the queue's number; the sender's own flag.
    skip(&mut at, 4 + 4 + 4)?;
    let queue_offset = u64::try_from(at.try_get_i64().ok()?).ok()?;
    let log_offset = at.try_get_i64().ok()?;
    let flags = at.try_get_i32().ok()?;
    let born_ms = at.try_get_i64().ok()?;
    skip(&mut at, host_size(flags, BORN_AT_IPV6))?;
    let stored_ms = at.try_get_i64().ok()?;
    let host = take(&whole, &mut at, host_size(flags, STORED_AT_IPV6))?;
    // How often it was consumed again; the offset of a prepared transaction.
    skip(&mut at, 4 + 8)?;
    let size = usize::try_from(at.try_get_i32().ok()?).ok()?;
    let body = take(&whole, &mut at, size)?;
    let topic = if magic == MAGIC { at.try_get_u8().ok()?.into() } else { at.try_get_u16().ok()?.into() };
    skip(&mut at, topic)?;
    let size = usize::from(at.try_get_u16().ok()?);
    let properties = Properties::new(whole.slice(take(&whole, &mut at, size)?));
    let id = match properties.get(UNIQ_KEY) {
        Some(id) => Arc::from(id),
        None => place_in_log(&whole[host], log_offset),
    };
    let body = opened(whole.slice(body), flags);
    Some(Ok(Decoded { flags, message: PulledMessage { queue_offset, id, born_ms, stored_ms, properties, body } }))
}

/// Address and port.
fn host_size(flags: i32, ipv6: i32) -> usize {
    if flags & ipv6 == 0 { 4 + 4 } else { 16 + 4 }
}

fn skip(at: &mut &[u8], size: usize) -> Option<()> {
    *at = at.get(size..)?;
    Some(())
}

/// Where in `whole` the next `size` bytes lie.
fn take(whole: &Bytes, at: &mut &[u8], size: usize) -> Option<Range<usize>> {
    let start = whole.len() - at.len();
    skip(at, size)?;
    Some(start..start + size)
}

fn opened(body: Bytes, flags: i32) -> Body {
    if flags & COMPRESSED == 0 {
        return Body::Bytes(body);
    }
    match compression::decompress(&body, flags) {
        Ok(plain) => Body::Bytes(plain),
        Err(reason) => Body::Broken { reason, received: body },
    }
}

/// The id of a message whose sender gave it none: address and port of the broker, and the place in its log, in hex.
fn place_in_log(host: &[u8], log_offset: i64) -> Arc<str> {
    let mut id = String::with_capacity(2 * (host.len() + 8));
    for byte in host.iter().chain(&log_offset.to_be_bytes()) {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02X}");
    }
    id.into()
}

/// Messages of a batch that is one message in the log: size, magic, checksum, flag, body, properties of each.
fn unwrap(outer: &PulledMessage, messages: &mut Vec<PulledMessage>) -> Result<(), Fault> {
    let Body::Bytes(whole) = &outer.body else {
        messages.push(outer.clone());
        return Ok(());
    };
    let mut at = &whole[..];
    let mut queue_offset = outer.queue_offset;
    while !at.is_empty() {
        let inner = inner(whole, &mut at).ok_or_else(|| unreadable("a batch ends within a message"))?;
        let (body, properties) = (whole.slice(inner.0), Properties::new(whole.slice(inner.1)));
        let id = properties.get(UNIQ_KEY).map_or_else(|| outer.id.clone(), Arc::from);
        messages.push(PulledMessage { queue_offset, id, properties, body: Body::Bytes(body), ..outer.clone() });
        queue_offset += 1;
    }
    Ok(())
}

fn inner(whole: &Bytes, at: &mut &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    skip(at, 4 + 4 + 4 + 4)?;
    let size = usize::try_from(at.try_get_i32().ok()?).ok()?;
    let body = take(whole, at, size)?;
    let size = usize::from(at.try_get_u16().ok()?);
    Some((body, take(whole, at, size)?))
}
