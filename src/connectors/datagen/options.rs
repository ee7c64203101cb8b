//! The options of `connector: datagen`.

use std::time::Duration;

use crate::definition::{OptionKind, OptionSpec, OptionTable};

/// 2100-01-01, in milliseconds since 1970.
const LATEST_BASE_MS: i64 = 4_102_444_800_000;
/// A hundred years.
const LONGEST_PAST: Duration = Duration::from_secs(36_500 * 86_400);
/// Characters, bytes or elements of one value.
const LONGEST: i64 = 1_000_000;

/// The rate.
pub static ROWS_PER_SECOND: OptionSpec = OptionSpec::new(
    "rows-per-second",
    OptionKind::Integer { min: 1, max: i64::MAX },
    "Rows generated per second, evenly. A pipeline that cannot keep up is not made to catch up on more than a second.",
)
.default("10000");
/// The bound.
pub static NUMBER_OF_ROWS: OptionSpec = OptionSpec::new(
    "number-of-rows",
    OptionKind::Integer { min: 1, max: i64::MAX },
    "Rows generated in all, over all restarts; then the pipeline is finished. Without it the source has no end, unless a column is a sequence: the shortest sequence bounds it too.",
);
/// The seed.
pub static SEED: OptionSpec = OptionSpec::new(
    "seed",
    OptionKind::Integer { min: i64::MIN, max: i64::MAX },
    "Row n is a function of this, of n and of the definition alone, so a restart goes on with the very rows that would have followed.",
)
.default("0").ours();
/// What the clock shows at row 0.
pub static BASE_TIME_MS: OptionSpec = OptionSpec::new(
    "base-time-ms",
    OptionKind::Integer { min: 0, max: LATEST_BASE_MS },
    "The time of row 0 in milliseconds since 1970, UTC; that of row n is n / rows-per-second later. DATE, TIME and timestamps show it. Flink takes the clock, by which no row could be generated again.",
)
.default("1767225600000").ours();

/// All options, in the order in which they are documented.
pub static TABLE: OptionTable =
    OptionTable { name: "datagen", options: &[&ROWS_PER_SECOND, &NUMBER_OF_ROWS, &SEED, &BASE_TIME_MS] };

/// How a column is filled.
pub static KIND: OptionSpec = OptionSpec::new(
    "kind",
    OptionKind::Choice { values: &["random", "sequence"], any_case: false },
    "`random`: any value of the column's type, within what the other options allow. `sequence`: `start`, then one more with each row up to `end`, in a column of numbers (as numbers), texts (in digits) or bytes (8, the highest first).",
)
.default("random");
/// Least random number.
pub static MIN: OptionSpec = OptionSpec::new(
    "min",
    OptionKind::Number,
    "Least random number. Default: the least of the type; 0 for FLOAT, DOUBLE and DECIMAL, as in Flink.",
);
/// Greatest random number.
pub static MAX: OptionSpec =
    OptionSpec::new("max", OptionKind::Number, "Greatest random number. Default: the greatest of the type.");
/// How far timestamps lie back.
pub static MAX_PAST: OptionSpec = OptionSpec::new(
    "max-past",
    OptionKind::Duration { min: Duration::ZERO, max: LONGEST_PAST },
    "How far before the time of its row a random TIMESTAMP or TIMESTAMP_LTZ may lie.",
)
.default("0s");
/// Length of texts, bytes and collections.
pub static LENGTH: OptionSpec = OptionSpec::new(
    "length",
    OptionKind::Integer { min: 0, max: LONGEST },
    "Characters of a random text (hex digits), bytes of random bytes, elements of an ARRAY or MAP. Default: 100 for STRING and BYTES, n for VARCHAR(n) and VARBINARY(n), which is also the most, 3 for ARRAY and MAP. CHAR(n) and BINARY(n) have n.",
);
/// Whether lengths vary.
pub static VAR_LEN: OptionSpec = OptionSpec::new(
    "var-len",
    OptionKind::Boolean,
    "Whether the length of a random STRING, VARCHAR, BYTES or VARBINARY is random too, from 1 to `length`.",
)
.default("false");
/// First of a sequence.
pub static START: OptionSpec =
    OptionSpec::new("start", OptionKind::Number, "First number of a sequence, an integer; required there.");
/// Last of a sequence.
pub static END: OptionSpec =
    OptionSpec::new("end", OptionKind::Number, "Last number of a sequence, an integer; required there.");
/// Share of nulls.
pub static NULL_RATE: OptionSpec =
    OptionSpec::new("null-rate", OptionKind::Share, "The share of random values that are null.").default("0");

/// The options of each column, in the order in which they are documented.
pub static COLUMNS: OptionTable = OptionTable {
    name: "fields",
    options: &[&KIND, &MIN, &MAX, &MAX_PAST, &LENGTH, &VAR_LEN, &START, &END, &NULL_RATE],
};
