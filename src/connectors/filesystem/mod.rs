//! `filesystem`: rows go to files, exactly once. The reference for a sink of two phases.
//!
//! Rows are written to a staging folder inside the target, out of sight of its readers. `prepare` makes the file
//! durable and hands out its name; `commit` renames it into the target, where it never changes again. One epoch
//! makes one file, or none if it has no rows.
//!
//! ```text
//! PATH/part-INCARNATION-GENERATION-EPOCH-PART.EXT               committed
//! PATH/.queuewarden/lock                                        held while a pipeline writes here
//! PATH/.queuewarden/PIPELINE/open-INCARNATION-GENERATION-N.EXT  being written
//! PATH/.queuewarden/PIPELINE/part-...                           prepared
//! ```

mod commit;
mod folder;
mod names;
mod sink;
#[cfg(test)]
mod tests;

pub use sink::{FilesystemSink, fate, recover_at};

use crate::{
    definition::{ConnectorTables, FormatUse, OptionKind, OptionSpec, OptionTable, RoleTables, no_check},
    formats,
};

/// Where the files go.
pub static PATH: OptionSpec = OptionSpec::new(
    "path",
    OptionKind::Path,
    "The folder the files go to; created if it is not there. Files appear in it whole, one per checkpoint that has \
     rows, and never change. What is not yet complete is kept in `.queuewarden` inside it, so readers must skip hidden \
     folders.",
)
.required();

/// The options.
pub static TABLE: OptionTable = OptionTable { name: "filesystem", options: &[&PATH] };

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "filesystem",
    source: None,
    sink: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FormatUse::Required(formats::NAMES),
        metadata: &[],
        check: no_check,
    }),
};
