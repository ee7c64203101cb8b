//! Delimited text: lines, and fields in them, without quotes or escapes; or bytes as they are. The bodies of the
//! connectors for RocketMQ, whose options say what separates what.
//!
//! The rules are those of Apache's connector for Flink (`RowDeserializer`), as far as its code says them. Nothing is left
//! out without being counted.

mod decode;
mod encode;
mod plan;
mod split;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;
pub use plan::{Unfit, unfit};
pub use split::{Delimiters, DelimitersError};

use super::charset::{self, Charset};
use crate::{
    definition::{FormatTables, OptionTable, no_check},
    model::nearest,
};

static NO_OPTIONS: OptionTable = OptionTable { name: "delimited", options: &[] };

/// The format's line in the table. Its connectors check it, for the options are theirs.
pub static TABLES: FormatTables =
    FormatTables { name: "delimited", options: &NO_OPTIONS, check_source: no_check, check_sink: no_check };

/// How bodies are read and written.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The charset.
    pub encoding: Encoding,
    /// What separates fields.
    pub fields: Delimiters,
    /// What separates lines; not needed to write.
    pub lines: Delimiters,
    /// What becomes of a line that has not as many fields as there are columns.
    pub length_check: LengthCheck,
}

/// What becomes of a line that has not as many fields as there are columns, or a field that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthCheck {
    /// Too short: skipped. Too long: the first fields are taken. A field that cannot be read: skipped.
    None,
    /// It is skipped.
    Skip,
    /// The message is an error.
    Exception,
    /// Too short: what is missing is null. Too long: the first fields are taken. A field that cannot be read: skipped.
    Pad,
}

/// The charset of bodies.
#[derive(Debug, Clone, Copy)]
pub struct Encoding(Charset);

impl Encoding {
    /// The charset of this name, in any case.
    ///
    /// # Errors
    /// There is none; the nearest name, if one is near.
    pub fn find(name: &str) -> Result<Self, Option<&'static str>> {
        Charset::find(name).map(Self).ok_or_else(|| nearest(name, charset::NAMES))
    }
}
