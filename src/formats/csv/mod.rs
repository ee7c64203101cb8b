//! CSV with the per-field and per-row behaviour of Flink's `csv` format, except that nothing is lost silently.
//!
//! Where Flink drops something without a word (what follows the first row of a body, fields that a ROW has no room
//! for) it is an error of the message here, or is counted under `csv.ignore-parse-errors`.

mod decode;
mod dialect;
mod encode;
mod failure;
pub mod options;
mod plan;
mod quoting;
mod record;
mod value;

#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;
pub use options::{TABLE, check};

use crate::{
    definition::{At, Diagnostic, Endpoint, FormatTables, Options, Role},
    model::{Column, Schema},
};

/// The format's line in the table.
pub static TABLES: FormatTables = FormatTables {
    name: "csv",
    options: &TABLE,
    check_source: |endpoint| refused(endpoint, |schema, options| Decoder::new(schema, options).err()),
    check_sink: |endpoint| refused(endpoint, |schema, options| Encoder::new(schema, options).err()),
};

fn refused(endpoint: &Endpoint, build: impl Fn(&Schema, &Options) -> Option<String>) -> Vec<Diagnostic> {
    let Some(format) = &endpoint.format else { return Vec::new() };
    if let Some((reason, option)) = check(&format.options) {
        return vec![Diagnostic::error(reason).at(endpoint.at(At::Option(option)))];
    }
    // Metadata of a source does not come from the format.
    let of_format = |column: &&Column| endpoint.role == Role::Sink || column.metadata.is_none();
    if let Some(unfit) = plan::unfit(endpoint.schema.columns.iter().filter(of_format)) {
        return vec![Diagnostic::error(unfit.to_string()).at(endpoint.at(At::Type(&unfit.column)))];
    }
    let found = build(&endpoint.schema, &format.options);
    found.map(|reason| Diagnostic::error(reason).at(endpoint.at(At::Format))).into_iter().collect()
}
