//! Apache RocketMQ 4.x and 5.x: source and sink (`rocketmq4`, `rocketmq5`), and the sink of Alibaba Cloud's own (`mq`).
//!
//! Both generations are spoken to by the remoting protocol: name servers and brokers, or the remoting port of a proxy.

pub mod allocate;
mod bodies;
pub mod client;
mod connection;
#[cfg(test)]
mod fake;
mod make;
mod metadata;
pub mod mq;
pub mod options;
mod position;
mod queues;
mod reader;
mod reading;
mod service;
mod sink;
mod sink_options;
mod source;
mod source_options;
#[cfg(test)]
mod source_tests;
mod startup;
mod topics;
mod zone;

pub use allocate::{Allocation, Strategy};
pub use bodies::{decoder, encoder};
pub use make::{sink, source};
pub use sink_options::SinkOptions;
pub use source_options::{OnLostPosition, SourceOptions};
pub use startup::Startup;

use crate::definition::{ConnectorTables, Endpoint, FormatUse, RoleTables};

/// Formats of bodies that are read; the first if none is named. The documentation has the delimited one only.
const READ: FormatUse = FormatUse::Defaulted(&["delimited", "json", "csv", "raw", "avro", "parquet", "orc"]);
/// Formats of bodies that are written: not those that are files, of which a body would be one row.
const WRITTEN: FormatUse = FormatUse::Defaulted(&["delimited", "json", "csv", "raw", "avro"]);

const SOURCE: RoleTables = RoleTables {
    options: &options::SOURCE_TABLE,
    columns: None,
    format: READ,
    metadata: options::SOURCE_METADATA,
    key_window: None,
    check: |endpoint| SourceOptions::read(endpoint).err().unwrap_or_default(),
};
const SINK: RoleTables = RoleTables {
    options: &options::SINK_TABLE,
    columns: None,
    format: WRITTEN,
    metadata: options::SINK_METADATA,
    key_window: None,
    check: sink_options::check,
};

/// The line of `rocketmq4` in the table.
pub static TABLES_4: ConnectorTables = ConnectorTables { name: "rocketmq4", source: Some(SOURCE), sink: Some(SINK) };
/// The line of `rocketmq5`, which takes the same.
pub static TABLES_5: ConnectorTables = ConnectorTables { name: "rocketmq5", source: Some(SOURCE), sink: Some(SINK) };

/// Whether a section is one of these connectors'.
pub fn is(endpoint: &Endpoint) -> bool {
    [TABLES_4.name, TABLES_5.name, mq::TABLES.name].contains(&endpoint.connector)
}
