//! ORC: a body is one complete file. Flink has it for files only; that a message may hold one is said on the page of
//! `mns`, and how is inferred from that.

pub mod options;

#[cfg(feature = "columnar")]
mod decode;
#[cfg(feature = "columnar")]
mod encode;
#[cfg(feature = "columnar")]
mod lengths;
#[cfg(feature = "columnar")]
mod plain;
#[cfg(all(test, feature = "columnar"))]
mod tests;

#[cfg(feature = "columnar")]
pub use decode::Decoder;
#[cfg(feature = "columnar")]
pub use encode::FileEncoder;
pub use options::TABLE;

use crate::definition::{Diagnostic, Endpoint, FormatTables};
#[cfg(feature = "columnar")]
use crate::{
    definition::{At, Role},
    model::{LogicalType, Schema},
};

/// The format's line in the table.
pub static TABLES: FormatTables =
    FormatTables { name: "orc", options: &TABLE, check_source: refused, check_sink: refused };

#[cfg(not(feature = "columnar"))]
fn refused(endpoint: &Endpoint) -> Vec<Diagnostic> {
    super::not_built(endpoint, TABLES.name)
}

#[cfg(feature = "columnar")]
fn refused(endpoint: &Endpoint) -> Vec<Diagnostic> {
    if endpoint.role == Role::Source {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some((column, why)) = unfit(&endpoint.schema) {
        found.push(Diagnostic::error(why).at(endpoint.at(At::Type(&column))));
    }
    if endpoint.format.as_ref().and_then(|format| format.options.opt_size(&options::STRIPE_SIZE)) == Some(0) {
        let none = Diagnostic::error(format!("`{}` is 0: no stripe could hold a row", options::STRIPE_SIZE.name));
        found.push(none.at(endpoint.at(At::Option(&options::STRIPE_SIZE))).expected("a size above 0, such as `16mb`"));
    }
    found
}

#[cfg(feature = "columnar")]
/// The first column that cannot be written, and why: what the library writes is read by everyone, but it has no
/// decimals and nothing nested.
fn unfit(schema: &Schema) -> Option<(String, String)> {
    use LogicalType as T;
    schema.columns.iter().find_map(|column| {
        let logical = &column.ty.logical;
        let written = !matches!(logical, T::Decimal(..) | T::Time(_) | T::Array(_) | T::Map(..) | T::Row(_));
        let why = || format!("column {}: format orc writes no {logical}; parquet and avro do", column.name);
        (!written).then(|| (column.name.clone(), why()))
    })
}
