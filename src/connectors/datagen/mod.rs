//! `datagen`: rows made up, as Flink's connector of this name makes them, but so that each can be made again: row n
//! is a function of the seed and n.
//!
//! The reader paces: one of its messages stands for a stretch of rows, `from..to`, and its position is the next row.
//! The decoder makes the rows. So they cost nothing before they are wanted, and nothing is parsed.

mod decoder;
mod fields;
mod generate;
mod options;
mod source;
#[cfg(test)]
mod tests;

pub use decoder::{GeneratingDecoder, body};
pub use options::{COLUMNS, TABLE};
pub use source::DatagenSource;

use crate::definition::{At, ConnectorTables, Diagnostic, Endpoint, FormatUse, RoleTables, sections};

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "datagen",
    source: Some(RoleTables {
        options: &TABLE,
        columns: Some(&COLUMNS),
        format: FormatUse::Never,
        metadata: &[],
        key_window: None,
        check,
    }),
    sink: None,
};

fn check(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let mut found = fields::read(endpoint).1;
    if endpoint.general.has(&sections::RATE) {
        let message = "`rate` counts messages, and `datagen` makes rows in stretches of many";
        let place = endpoint.at(At::Option(&sections::RATE));
        found.push(Diagnostic::error(message).at(place).help("`rows-per-second` says how many rows there are"));
    }
    found
}

/// How many rows a checked source of this connector makes in all; `None`: it has no end.
pub fn bound(endpoint: &Endpoint) -> Option<u64> {
    fields::read(endpoint).0.rows
}
