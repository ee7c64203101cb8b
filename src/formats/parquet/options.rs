//! The options of `parquet`, named as Flink and the writer of Parquet for Java name them.

use crate::definition::{OptionKind, OptionSpec, OptionTable};

/// `parquet.utc-timezone`
pub static UTC_TIMEZONE: OptionSpec = OptionSpec::new(
    "parquet.utc-timezone",
    OptionKind::Boolean,
    "In Flink, whether TIMESTAMP is in UTC in the file rather than in the zone of the machine. Here the zone of the \
     machine is never asked: it is UTC either way.",
)
.default("false");

/// `parquet.compression`
pub static COMPRESSION: OptionSpec = OptionSpec::new(
    "parquet.compression",
    OptionKind::Choice { values: &["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW"], any_case: true },
    "How pages are compressed when written. Read is whatever the file has, LZO excepted.",
)
.default("SNAPPY");

/// `parquet.block.size`
pub static BLOCK_SIZE: OptionSpec = OptionSpec::new(
    "parquet.block.size",
    OptionKind::Size,
    "When written: about how large a row group becomes, encoded; so much is held in memory. The writer for Java has \
     128mb, and writes one file at a time.",
)
.default("16mb");

/// `parquet.page.size`
pub static PAGE_SIZE: OptionSpec = OptionSpec::new(
    "parquet.page.size",
    OptionKind::Size,
    "When written: about how large a page becomes, encoded and not yet compressed.",
)
.default("1mb");

/// `parquet.enable.dictionary`
pub static DICTIONARY: OptionSpec = OptionSpec::new(
    "parquet.enable.dictionary",
    OptionKind::Boolean,
    "When written: whether values are written once and referred to, where that is smaller.",
)
.default("true");

/// `parquet.dictionary.page.size`
pub static DICTIONARY_PAGE_SIZE: OptionSpec = OptionSpec::new(
    "parquet.dictionary.page.size",
    OptionKind::Size,
    "When written: how large a dictionary may become before values are written as they are.",
)
.default("1mb");

/// `parquet.write.int64.timestamp`
pub static INT64_TIMESTAMP: OptionSpec = OptionSpec::new(
    "parquet.write.int64.timestamp",
    OptionKind::Boolean,
    "In Flink, whether timestamps are written as INT64 rather than as INT96, which Parquet has given up. Here they \
     always are INT64; `false` is refused. Both are read.",
)
.default("true");

/// `parquet.timestamp.time.unit`
pub static TIME_UNIT: OptionSpec = OptionSpec::new(
    "parquet.timestamp.time.unit",
    OptionKind::Choice { values: &["millis", "micros", "nanos"], any_case: true },
    "The unit of timestamps when written; what is finer is cut off, and what does not fit refused.",
)
.default("micros");

/// All of them.
pub static TABLE: OptionTable = OptionTable {
    name: "parquet",
    options: &[
        &UTC_TIMEZONE,
        &COMPRESSION,
        &BLOCK_SIZE,
        &PAGE_SIZE,
        &DICTIONARY,
        &DICTIONARY_PAGE_SIZE,
        &INT64_TIMESTAMP,
        &TIME_UNIT,
    ],
};
