//! ORC: a body is one complete file. Flink has it for files only; that a message may hold one is said on the page of
//! `mns`, and how is inferred from that.
//!
//! It is read, not written: version 0.9 of the library writes whole numbers of 16 bits that other readers read as other
//! numbers.

#[cfg(feature = "columnar")]
mod decode;
#[cfg(feature = "columnar")]
mod lengths;
#[cfg(feature = "columnar")]
mod plain;
#[cfg(feature = "columnar")]
#[cfg(test)]
mod tests;

#[cfg(feature = "columnar")]
pub(super) use decode::decoder;

use crate::definition::{Diagnostic, Endpoint, FormatTables, OptionTable};

/// It has no options: those of Flink are about writing.
pub static TABLE: OptionTable = OptionTable { name: "orc", options: &[] };

/// The format's line in the table.
pub static TABLES: FormatTables =
    FormatTables { name: "orc", options: &TABLE, check_source: refused, check_sink: refused };

#[cfg(not(feature = "columnar"))]
fn refused(endpoint: &Endpoint) -> Vec<Diagnostic> {
    super::not_built(endpoint, TABLES.name)
}

#[cfg(feature = "columnar")]
fn refused(_: &Endpoint) -> Vec<Diagnostic> {
    Vec::new()
}
