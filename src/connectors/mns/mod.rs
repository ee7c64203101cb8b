//! Alibaba Cloud MNS ("Simple Message Queue"): the source, and what its client is made of.

pub mod client;
mod faults;
pub mod options;
pub mod oss;
pub mod signature;
pub mod source;
pub mod wire;

mod body;
mod envelope;
mod object;

pub use options::{METADATA, QUEUE_NAME, TABLE};
pub use source::MnsSource;

use crate::{
    definition::{At, ConnectorTables, Diagnostic, Endpoint, FormatUse, RoleTables},
    formats,
};

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "mns",
    source: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FormatUse::Required(formats::NAMES),
        metadata: METADATA,
        key_window: None,
        check,
    }),
    sink: None,
};

fn check(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let mut found = source::warnings(endpoint);
    let format = endpoint.format.as_ref().map(|format| format.name);
    if MnsSource::flattens(&endpoint.options) && format != Some("json") {
        let diagnostic = Diagnostic::error("`messageType: OSS` needs `format: json`").at(endpoint.at(At::Format));
        found.push(diagnostic.expected("json"));
    }
    if !MnsSource::flattens(&endpoint.options) && endpoint.options.text(&options::OSS_EVENTS) != "first" {
        let message = "`oss.events` is about notifications of OSS, and needs `messageType: OSS`";
        found.push(Diagnostic::error(message).at(endpoint.at(At::Option(&options::OSS_EVENTS))));
    }
    found
}
