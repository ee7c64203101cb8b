//! Between the queues' own types and those of the wire.

use md5::{Digest, Md5};

use super::receipt;
use crate::{
    connectors::mns::wire,
    emulator::message::{Attributes, Delivery, Message, Outgoing, Property, Receipt, Sent, Settings},
};

/// An id as the live service writes it.
pub(in crate::emulator) fn id_text(id: u128) -> String {
    format!("{id:032X}")
}

/// The MD5 of a body, as the live service writes it.
pub(super) fn body_md5(body: &[u8]) -> String {
    format!("{:X}", Md5::digest(body))
}

pub(super) fn settings(settings: &wire::QueueSettings) -> Settings {
    Settings {
        delay_seconds: settings.delay_seconds,
        maximum_message_size: settings.maximum_message_size,
        retention_seconds: settings.retention_seconds,
        visibility_seconds: settings.visibility_seconds,
        polling_wait_seconds: settings.polling_wait_seconds,
        logging_enabled: settings.logging_enabled,
        heap_messages: None,
        rewind_seconds: None,
    }
}

pub(super) fn attributes(name: &str, attributes: &Attributes) -> wire::QueueAttributes {
    let settings = &attributes.settings;
    wire::QueueAttributes {
        name: name.to_owned(),
        settings: wire::QueueSettings {
            delay_seconds: settings.delay_seconds,
            maximum_message_size: settings.maximum_message_size,
            retention_seconds: settings.retention_seconds,
            visibility_seconds: settings.visibility_seconds,
            polling_wait_seconds: settings.polling_wait_seconds,
            logging_enabled: settings.logging_enabled,
        },
        created: attributes.created_s,
        modified: attributes.modified_s,
        active: attributes.active,
        inactive: attributes.inactive,
        delayed: attributes.delayed,
    }
}

pub(super) fn outgoing(message: wire::Outgoing) -> Outgoing {
    let properties = |properties: Vec<wire::Property>, is_system| {
        let own = move |wire::Property { name, value, kind }| Property { name, value, kind, is_system };
        properties.into_iter().map(own)
    };
    let users = properties(message.user_properties, false);
    Outgoing {
        body: message.body.into(),
        delay_seconds: message.delay_seconds,
        priority: message.priority,
        properties: users.chain(properties(message.system_properties, true)).collect(),
    }
}

/// `body_md5`: of the body that was sent.
pub(super) fn sent(sent: &Sent, body_md5: String) -> wire::Sent {
    wire::Sent { id: id_text(sent.id), body_md5, handle: sent.receipt.as_ref().map(receipt::write) }
}

pub(super) fn delivery(delivery: Delivery) -> wire::Delivery {
    let Delivery { message, receipt } = delivery;
    wire::Delivery {
        handle: Some(receipt::write(&receipt)),
        next_visible_ms: Some(receipt.next_visible_ms),
        ..peeked(message)
    }
}

/// What was sent over CMQ may be no UTF-8; that is replaced.
pub(super) fn peeked(message: Message) -> wire::Delivery {
    let (system, users): (Vec<_>, Vec<_>) = message.properties.into_iter().partition(|property| property.is_system);
    wire::Delivery {
        id: id_text(message.id),
        body_md5: body_md5(&message.body),
        body: String::from_utf8_lossy(&message.body).into_owned(),
        handle: None,
        enqueue_ms: message.enqueue_ms,
        first_dequeue_ms: message.first_dequeue_ms,
        next_visible_ms: None,
        dequeue_count: message.dequeue_count,
        priority: message.priority,
        user_properties: properties(users),
        system_properties: properties(system),
    }
}

fn properties(properties: Vec<Property>) -> Vec<wire::Property> {
    properties.into_iter().map(|Property { name, value, kind, .. }| wire::Property { name, value, kind }).collect()
}

pub(super) fn changed_visibility(receipt: &Receipt) -> wire::ChangedVisibility {
    wire::ChangedVisibility { handle: receipt::write(receipt), next_visible_ms: receipt.next_visible_ms }
}
