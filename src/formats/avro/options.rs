//! The options of `avro`, named as Flink names them.

use crate::definition::{OptionKind, OptionSpec, OptionTable};

/// `avro.encoding`
pub static ENCODING: OptionSpec = OptionSpec::new(
    "avro.encoding",
    OptionKind::Choice { values: &["binary", "json"], any_case: true },
    "How Avro writes a value into a message: in its binary form, or as JSON with the name of a type around each value \
     that may be null. Files are binary always.",
)
.default("binary");

/// `avro.codec`
pub static CODEC: OptionSpec = OptionSpec::new(
    "avro.codec",
    OptionKind::Choice { values: &["null", "deflate", "snappy", "bzip2", "xz", "zstandard"], any_case: false },
    "How blocks of a file are compressed when written. Messages are not compressed. Read is whatever the file has.",
)
.default("snappy");

/// `avro.timestamp_mapping.legacy`
pub static LEGACY_TIMESTAMPS: OptionSpec = OptionSpec::new(
    "avro.timestamp_mapping.legacy",
    OptionKind::Boolean,
    "Whether TIMESTAMP(0) to TIMESTAMP(3) are `timestamp-millis` and there are no others, as Flink had it up to 1.19. \
     Otherwise TIMESTAMP is `local-timestamp-millis` up to three digits and `local-timestamp-micros` up to six, and \
     TIMESTAMP_LTZ is `timestamp-millis` or `timestamp-micros`.",
)
.default("true");

/// All of them.
pub static TABLE: OptionTable = OptionTable { name: "avro", options: &[&ENCODING, &CODEC, &LEGACY_TIMESTAMPS] };
