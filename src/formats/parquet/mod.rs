//! Parquet: a body is one complete file. Flink has it for files only; that a message may hold one is said on the page of
//! `mns`, and how is inferred from that.

pub mod options;

#[cfg(feature = "columnar")]
mod decode;
#[cfg(feature = "columnar")]
mod encode;
#[cfg(feature = "columnar")]
mod look;
#[cfg(feature = "columnar")]
mod pages;
#[cfg(feature = "columnar")]
#[cfg(test)]
mod tests;
#[cfg(feature = "columnar")]
mod thrift;
#[cfg(feature = "columnar")]
mod unpack;

#[cfg(feature = "columnar")]
pub(super) use decode::decoder;
#[cfg(feature = "columnar")]
pub use encode::FileEncoder;
pub use options::TABLE;

use crate::definition::{Diagnostic, Endpoint, FormatTables};

/// The format's line in the table.
pub static TABLES: FormatTables = FormatTables { name: "parquet", options: &TABLE, check_source, check_sink };

#[cfg(not(feature = "columnar"))]
fn check_source(endpoint: &Endpoint) -> Vec<Diagnostic> {
    super::not_built(endpoint, TABLES.name)
}

#[cfg(feature = "columnar")]
fn check_source(_: &Endpoint) -> Vec<Diagnostic> {
    Vec::new()
}

fn check_sink(endpoint: &Endpoint) -> Vec<Diagnostic> {
    use crate::definition::At;

    let mut found = check_source(endpoint);
    let Some(format) = &endpoint.format else { return found };
    let mut refuse = |option, message: String, expected: &str| {
        found.push(Diagnostic::error(message).at(endpoint.at(At::Option(option))).expected(expected));
    };
    if format.options.opt_boolean(&options::INT64_TIMESTAMP) == Some(false) {
        let message = format!("`{}`: INT96 is read, but not written", options::INT64_TIMESTAMP.name);
        refuse(&options::INT64_TIMESTAMP, message, "true");
    }
    for option in [&options::BLOCK_SIZE, &options::PAGE_SIZE, &options::DICTIONARY_PAGE_SIZE] {
        if format.options.opt_size(option) == Some(0) {
            refuse(option, format!("`{}` is 0: it could hold nothing", option.name), "a size above 0, such as `1mb`");
        }
    }
    found
}
