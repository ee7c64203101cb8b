//! What is done with queues, over HTTP only.

use std::net::{IpAddr, SocketAddr};

use serde_json::json;

use super::{
    Cmq,
    actions::find,
    answer::{Code, NAME_RELEASED, NO_QUEUE, OUT_OF_RANGE, QUEUE_EXISTS, QUEUE_NAME},
    http::{Fields, fields},
    parameters::Parameters,
};
use crate::{
    connectors::cmq::wire::{LONGEST_VISIBILITY_SECONDS, LONGEST_WAIT_SECONDS, json},
    emulator::{
        cell::QueueCell,
        message::Settings,
        state::{Created, lock},
    },
};

/// For how long the name of a deleted queue cannot be used again.
const RELEASE_MS: i64 = 30_000;

type Done = Result<Fields, Code>;

pub(super) fn create(cmq: &Cmq, parameters: &Parameters) -> Done {
    let name = parameters.queue()?;
    check_name(name)?;
    let settings = settings(parameters)?;
    let now = cmq.state.clock.now_ms();
    {
        let mut released = lock(&cmq.released);
        released.retain(|_, at| *at + RELEASE_MS > now);
        if released.contains_key(name) {
            return Err(NAME_RELEASED);
        }
    }
    // A name that differs in case only is taken, too.
    if cmq.state.cells().iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
        || cmq.state.create(name, &settings) != Created::New
    {
        return Err(QUEUE_EXISTS);
    }
    let id = queue_id(&*find(&cmq.state, name)?);
    Ok(fields(&json!({ "queueId": id })))
}

fn queue_id(cell: &QueueCell) -> String {
    format!("queue-{:08x}", cell.id)
}

/// At most 64 letters, digits and `-`, a letter first. The Go SDK lets `_` through as well.
fn check_name(name: &str) -> Result<(), Code> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if starts && name.len() <= 64 && name.bytes().all(is_plain) { Ok(()) } else { Err(QUEUE_NAME) }
}

fn settings(parameters: &Parameters) -> Result<Settings, Code> {
    let number = |name, range| parameters.number(name, range, OUT_OF_RANGE);
    Ok(Settings {
        delay_seconds: None,
        maximum_message_size: number("maxMsgSize", 1024..=65_536)?,
        retention_seconds: number("msgRetentionSeconds", 60..=1_296_000)?,
        visibility_seconds: number("visibilityTimeout", 1..=LONGEST_VISIBILITY_SECONDS)?,
        polling_wait_seconds: number("pollingWaitSeconds", 0..=LONGEST_WAIT_SECONDS)?,
        logging_enabled: None,
        // What may be set of these two is not looked at: nothing follows from them here.
        heap_messages: number("maxMsgHeapNum", 0..=u32::MAX)?,
        rewind_seconds: number("rewindSeconds", 0..=u32::MAX)?,
    })
}

pub(super) fn set_attributes(cmq: &Cmq, parameters: &Parameters) -> Done {
    let cell = find(&cmq.state, parameters.queue()?)?;
    let settings = settings(parameters)?;
    cell.change(&cmq.state.clock, |queue, now| queue.set(&settings, now));
    Ok(Fields::new())
}

pub(super) fn attributes(cmq: &Cmq, parameters: &Parameters) -> Done {
    let cell = find(&cmq.state, parameters.queue()?)?;
    let attributes = lock(&cell.queue).attributes(cmq.state.clock.now_ms());
    let settings = &attributes.settings;
    let count = |count: u64| i64::try_from(count).ok();
    let mut told = fields(&json::QueueAttributes {
        max_msg_heap_num: settings.heap_messages.map(i64::from),
        polling_wait_seconds: settings.polling_wait_seconds.map(i64::from),
        visibility_timeout: settings.visibility_seconds.map(i64::from),
        max_msg_size: settings.maximum_message_size.map(i64::from),
        msg_retention_seconds: settings.retention_seconds.map(i64::from),
        rewind_seconds: settings.rewind_seconds.map(i64::from),
        create_time: Some(attributes.created_s),
        last_modify_time: Some(attributes.modified_s),
        active_msg_num: count(attributes.active),
        inactive_msg_num: count(attributes.inactive),
        delay_msg_num: count(attributes.delayed),
        // What was deleted is not kept here.
        rewind_msg_num: Some(0),
        min_msg_time: Some(attributes.oldest_ms.unwrap_or(0) / 1000),
    });
    // As the Python SDK reads it, against the documentation.
    told.insert("rewindmsgNum".to_owned(), 0.into());
    Ok(told)
}

pub(super) fn list(cmq: &Cmq, parameters: &Parameters) -> Done {
    let word = parameters.get("searchWord").unwrap_or_default();
    let offset = parameters.number("offset", 0..=u32::MAX, OUT_OF_RANGE)?.unwrap_or(0);
    let limit = parameters.number("limit", 1..=50, OUT_OF_RANGE)?.unwrap_or(20);
    let found: Vec<_> = cmq.state.cells().into_iter().filter(|(name, _)| name.contains(word)).collect();
    let page = found.iter().skip(offset as usize).take(limit as usize);
    let page: Vec<_> =
        page.map(|(name, cell)| json!({ "queueId": queue_id(cell), "queueName": name })).collect();
    Ok(fields(&json!({ "totalCount": found.len(), "queueList": page })))
}

pub(super) fn delete(cmq: &Cmq, parameters: &Parameters) -> Done {
    let name = parameters.queue()?;
    if !cmq.state.remove(name) {
        return Err(NO_QUEUE);
    }
    lock(&cmq.released).insert(name.to_owned(), cmq.state.clock.now_ms());
    Ok(Fields::new())
}

/// `asked_at`: the address by which the client has reached the name server.
pub(super) fn route(cmq: &Cmq, parameters: &Parameters, asked_at: IpAddr) -> Done {
    let cell = find(&cmq.state, parameters.queue()?)?;
    // Where it listens on every address, the client is told of the one that it has come through to.
    let ip = if cmq.tcp.ip().is_unspecified() { asked_at } else { cmq.tcp.ip() };
    let mut addr = Vec::new();
    if lock(&cell.queue).orders.has_dead_address()
        && let Ok(dead) = cmq.dead.local_addr()
    {
        let ip = if dead.ip().is_unspecified() { asked_at } else { dead.ip() };
        addr.push(SocketAddr::new(ip, dead.port()).to_string());
    }
    addr.push(SocketAddr::new(ip, cmq.tcp.port()).to_string());
    Ok(fields(&json::Route { addr }))
}
