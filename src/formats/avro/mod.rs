//! Avro: a body is one value of the schema that Flink derives from the columns, or, which Flink does not read, a
//! container file; files of the `filesystem` sink are container files.
//!
//! This is our own code and no library's. A value must be taken back whole when its message is refused, must be of no
//! more elements and bytes than it may, and an error must name its column; and Avro's JSON is asked for too. Of the two
//! libraries there are, `arrow-avro` decompresses without a bound and keeps what it has read of a broken value, and
//! `apache-avro` makes a tree of every value. The binary form takes less than the code around either of them would.

pub mod options;

#[cfg(feature = "columnar")]
mod binary;
#[cfg(feature = "columnar")]
mod container;
#[cfg(feature = "columnar")]
mod decode;
#[cfg(feature = "columnar")]
mod derive;
#[cfg(feature = "columnar")]
mod encode;
#[cfg(feature = "columnar")]
mod nodes;
#[cfg(feature = "columnar")]
mod plan;
#[cfg(feature = "columnar")]
#[cfg(test)]
mod tests;
#[cfg(feature = "columnar")]
mod text;

#[cfg(feature = "columnar")]
pub use decode::Decoder;
#[cfg(feature = "columnar")]
pub use encode::{Encoder, FileEncoder};
pub use options::TABLE;

use crate::definition::{Diagnostic, Endpoint, FormatTables};

/// The format's line in the table.
pub static TABLES: FormatTables =
    FormatTables { name: "avro", options: &TABLE, check_source: refused, check_sink: refused };

#[cfg(not(feature = "columnar"))]
fn refused(endpoint: &Endpoint) -> Vec<Diagnostic> {
    super::not_built(endpoint, TABLES.name)
}

#[cfg(feature = "columnar")]
fn refused(endpoint: &Endpoint) -> Vec<Diagnostic> {
    use crate::{
        definition::At,
        model::{Column, Field},
    };

    let Some(format) = &endpoint.format else { return Vec::new() };
    let legacy = format.options.opt_boolean(&options::LEGACY_TIMESTAMPS).unwrap_or(true);
    // Metadata is beside the body, also that of a message that is written.
    let physical = endpoint.schema.columns.iter().filter(|column| column.metadata.is_none());
    let field = |column: &Column| Field { name: column.name.clone(), ty: column.ty.clone() };
    let fields: Vec<_> = physical.map(field).collect();
    match derive::schema(fields.iter(), legacy) {
        Ok(_) => Vec::new(),
        Err(unfit) => vec![Diagnostic::error(unfit.to_string()).at(endpoint.at(At::Type(&unfit.column)))],
    }
}
