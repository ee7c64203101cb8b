//! JSON with the per-field and per-row behaviour of Flink's `json` format, except that nothing is lost silently.
//!
//! Where Flink's two decoders differ the better result is taken. Where Flink drops something without a word (what
//! follows the first object of a body, a body that is an array) it is an error of the message here, or is counted
//! under `json.ignore-parse-errors`.

mod decode;
mod encode;
mod failure;
mod nested;
mod number;
mod object;
pub mod options;
mod plan;
mod text;
mod time;
mod value;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod worked_cases;
#[cfg(test)]
mod written;

pub use decode::Decoder;
pub use encode::Encoder;
pub use options::{TABLE, check};

use crate::{
    definition::Options,
    model::{ColumnType, LogicalType},
};
use time::Standard;

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
