//! Tencent CMQ, also as the CMQ edition of TDMQ: source and sink, over either of its protocols.

pub mod client;
mod make;
pub mod options;
mod settings;
pub mod signature;
mod sink;
mod source;
pub mod wire;

pub use make::{decoder, sink, source};
pub use options::{QUEUE, TABLE};
pub use settings::client_options;

use crate::definition::{ConnectorTables, FormatUse, RoleTables};

/// Formats of bodies: those of the Flink connector.
const FORMATS: FormatUse = FormatUse::Required(&["json", "csv"]);

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "cmq",
    source: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FORMATS,
        metadata: options::METADATA,
        key_window: Some(&options::KEY_ALIVE_TIMEOUT),
        check: settings::check,
    }),
    sink: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FORMATS,
        metadata: &[],
        key_window: None,
        check: settings::check,
    }),
};
