//! JSON with the per-field and per-row behaviour of Flink's `json` format, except that nothing is lost silently.
//!
//! Where Flink's two decoders differ the better result is taken. Where Flink drops something without a word (what
//! follows the first object of a body, a body that is an array) it is an error of the message here, or is counted
//! under `json.ignore-parse-errors`.

mod decode;
mod encode;
mod failure;
mod nested;
mod object;
pub mod options;
mod plan;
mod text;
mod value;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod written;

pub use decode::Decoder;
pub use encode::Encoder;
pub use options::{TABLE, check};

use super::{
    base64, number, reason, scalars,
    time::{self, Standard},
};
use crate::{
    definition::{At, Diagnostic, Endpoint, FormatTables, Options},
    model::{ColumnType, LogicalType},
};

/// The format's line in the table.
pub static TABLES: FormatTables = FormatTables {
    name: "json",
    options: &TABLE,
    check_source: |endpoint| refused(endpoint, |options| Decoder::new(&endpoint.schema, options).err()),
    check_sink: |endpoint| refused(endpoint, |options| Encoder::new(&endpoint.schema, options).err()),
};

fn refused(endpoint: &Endpoint, build: impl Fn(&Options) -> Option<String>) -> Vec<Diagnostic> {
    let Some(format) = &endpoint.format else { return Vec::new() };
    let contradiction = check(&format.options).map(|reason| (reason, At::Option(&options::FAIL_ON_MISSING_FIELD)));
    let found = contradiction.or_else(|| build(&format.options).map(|reason| (reason, At::Format)));
    found.map(|(reason, part)| Diagnostic::error(reason).at(endpoint.at(part))).into_iter().collect()
}

/// Flink refuses other keys at planning.
fn check_map_key(key: &ColumnType) -> Result<(), String> {
    match key.logical {
        LogicalType::Char(_) | LogicalType::VarChar(_) => Ok(()),
        _ => Err("the keys of a MAP must be STRING, VARCHAR or CHAR in format json".into()),
    }
}

/// `json.timestamp-format.standard`, SQL when absent.
fn standard(options: &Options) -> Standard {
    match options.opt_text(&options::TIMESTAMP_FORMAT) {
        Some("ISO-8601") => Standard::Iso,
        _ => Standard::Sql,
    }
}
