//! The options of `raw`, named as Flink names them.

use crate::definition::{OptionKind, OptionSpec, OptionTable};

/// `raw.charset`
pub static CHARSET: OptionSpec = OptionSpec::new(
    "raw.charset",
    OptionKind::Text,
    "How a text is encoded: UTF-8, UTF-16, UTF-16BE, UTF-16LE, US-ASCII, ISO-8859-1, or any other name of the \
     Encoding Standard, such as GBK. Bytes that are no text in it become U+FFFD, without an error; a text that it has \
     no bytes for is refused when written.",
)
.default("UTF-8");

/// `raw.endianness`
pub static ENDIANNESS: OptionSpec = OptionSpec::new(
    "raw.endianness",
    OptionKind::Choice { values: &["big-endian", "little-endian"], any_case: true },
    "Which byte of a number comes first: the highest or the lowest.",
)
.default("big-endian");

/// `raw.line-delimiter`
pub static LINE_DELIMITER: OptionSpec = OptionSpec::new(
    "raw.line-delimiter",
    OptionKind::Text,
    "What ends a row, for a column of text; `\\n`, `\\r\\n` and `\\u0001` are understood. When read: a body is split \
     into rows at each; one at the end ends the last row. Without it a body is one row. When written: LF without it. \
     Flink has it since 2.1.",
)
.example("\\n");

/// All of them.
pub static TABLE: OptionTable = OptionTable { name: "raw", options: &[&CHARSET, &ENDIANNESS, &LINE_DELIMITER] };
