//! `filesystem`: rows go to files, exactly once. The reference for a sink of two phases.
//!
//! Rows are written to a staging folder inside the target, out of sight of its readers. `prepare` makes the file
//! durable and hands out its name; `commit` renames it into the target, where it never changes again. One epoch
//! makes one file, more if there is more than `sink.rolling-policy.file-size`, or none if it has no rows.
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
    definition::{
        At, ConnectorTables, Diagnostic, Endpoint, FormatUse, OptionKind, OptionSpec, OptionTable, RoleTables,
    },
    formats,
};

/// Where the files go.
pub static PATH: OptionSpec = OptionSpec::new(
    "path",
    OptionKind::Path,
    "The folder the files go to; created if it is not there. Files appear in it whole, one or more per \
     checkpoint that has rows, and never change. What is not yet complete is kept in `.queuewarden` inside it, so readers must skip hidden \
     folders.",
)
.required()
.example("out");

/// How large a file becomes.
pub static FILE_SIZE: OptionSpec = OptionSpec::new(
    "sink.rolling-policy.file-size",
    OptionKind::Size,
    "A file that has reached this size is closed and another one begun, within one checkpoint too. It is looked at \
     after each batch, so a file may be larger by one batch (see `batch.rows`).",
)
.default("128mb");

/// The options.
pub static TABLE: OptionTable = OptionTable { name: "filesystem", options: &[&PATH, &FILE_SIZE] };

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "filesystem",
    source: None,
    sink: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FormatUse::Required(formats::WRITTEN),
        metadata: &[],
        key_window: None,
        check,
    }),
};

fn check(endpoint: &Endpoint) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let path = endpoint.options.path(&PATH);
    let path = path.to_string_lossy();
    // The path itself is not repeated: it may have come from a secret.
    let elsewhere = if path.contains("://") || path.starts_with("file:") {
        Some("a URL, but only folders of this machine are written to")
    } else if path == "~" || path.starts_with("~/") {
        Some("meant for a shell, but no shell reads it")
    } else {
        None
    };
    if let Some(why) = elsewhere {
        let error = Diagnostic::error(format!("`{}` is {why}", PATH.name));
        wrong.push(error.at(endpoint.at(At::Option(&PATH))).expected("the path of a folder, such as `/var/lib/rows`"));
    }
    if endpoint.options.size(&FILE_SIZE) == 0 {
        let none = Diagnostic::error(format!("`{}` is 0: no file could hold a row", FILE_SIZE.name));
        wrong.push(none.at(endpoint.at(At::Option(&FILE_SIZE))).expected("a size above 0, such as `128mb`"));
    }
    wrong
}
