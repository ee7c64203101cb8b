//! The options of `orc`, named as the writer of ORC for Java names them.

use crate::definition::{OptionKind, OptionSpec, OptionTable};

/// `orc.compress`
pub static COMPRESS: OptionSpec = OptionSpec::new(
    "orc.compress",
    OptionKind::Choice { values: &["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"], any_case: true },
    "How blocks are compressed when written. Read is whatever the file has.",
)
.default("ZLIB");

/// `orc.stripe.size`
pub static STRIPE_SIZE: OptionSpec = OptionSpec::new(
    "orc.stripe.size",
    OptionKind::Size,
    "When written: about how large a stripe becomes; so much is held in memory. The writer for Java has 64mb, and \
     writes one file at a time.",
)
.default("16mb");

/// All of them.
pub static TABLE: OptionTable = OptionTable { name: "orc", options: &[&COMPRESS, &STRIPE_SIZE] };
