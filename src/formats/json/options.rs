//! The options of `json`, named as Flink names them.

use crate::definition::{OptionKind, OptionSpec, OptionTable, Options};

/// `json.fail-on-missing-field`
pub static FAIL_ON_MISSING_FIELD: OptionSpec = OptionSpec::new(
    "json.fail-on-missing-field",
    OptionKind::Boolean,
    "Whether a column without a field in the object is an error; otherwise it is null. An explicit null counts as \
     present. Holds inside ROW too. Not together with json.ignore-parse-errors.",
)
.default("false");

/// `json.ignore-parse-errors`
pub static IGNORE_PARSE_ERRORS: OptionSpec = OptionSpec::new(
    "json.ignore-parse-errors",
    OptionKind::Boolean,
    "Whether a field that cannot be read becomes null, and a body that is not one JSON object is dropped; both are \
     counted. Otherwise either is an error of the message. A value that is NOT NULL takes what encloses it with it: \
     the enclosing ROW, ARRAY or MAP becomes null, or the row is dropped. Of several values in one body the first is \
     kept and the drop of the rest is counted.",
)
.default("false");

/// `json.timestamp-format.standard`
pub static TIMESTAMP_FORMAT: OptionSpec = OptionSpec::new(
    "json.timestamp-format.standard",
    OptionKind::Choice { values: &["SQL", "ISO-8601"], any_case: false },
    "How timestamps are written: `2020-12-30 12:13:14.123` (SQL) or `2020-12-30T12:13:14.123` (ISO-8601); \
     TIMESTAMP_LTZ with a `Z` at the end in both.",
)
.default("SQL");

/// `json.map-null-key.mode`
pub static MAP_NULL_KEY_MODE: OptionSpec = OptionSpec::new(
    "json.map-null-key.mode",
    OptionKind::Choice { values: &["FAIL", "DROP", "LITERAL"], any_case: true },
    "What becomes of a null key of a MAP when written: FAIL refuses the row, DROP leaves the entry out, LITERAL \
     writes json.map-null-key.literal in its place. None of the formats here makes such a key.",
)
.default("FAIL");

/// `json.map-null-key.literal`
pub static MAP_NULL_KEY_LITERAL: OptionSpec = OptionSpec::new(
    "json.map-null-key.literal",
    OptionKind::Text,
    "The key written for a null key when json.map-null-key.mode is LITERAL.",
)
.default("null");

/// `json.encode.decimal-as-plain-number`
pub static DECIMAL_AS_PLAIN_NUMBER: OptionSpec = OptionSpec::new(
    "json.encode.decimal-as-plain-number",
    OptionKind::Boolean,
    "Whether decimals are written without an exponent: `0.000000027` rather than `2.7E-8`, `100` rather than `1E+2`.",
)
.default("false");

/// `json.encode.ignore-null-fields`
pub static IGNORE_NULL_FIELDS: OptionSpec = OptionSpec::new(
    "json.encode.ignore-null-fields",
    OptionKind::Boolean,
    "Whether columns and ROW fields that are null are left out when written.",
)
.default("false");

/// `json.decode.json-parser.enabled`
pub static JSON_PARSER_ENABLED: OptionSpec = OptionSpec::new(
    "json.decode.json-parser.enabled",
    OptionKind::Boolean,
    "Accepted because Flink has it; it chooses between two decoders of Flink that differ in a few results. There is \
     one decoder here, so both values mean the same.",
)
.default("true");

/// All of them.
pub static TABLE: OptionTable = OptionTable {
    name: "json",
    options: &[
        &FAIL_ON_MISSING_FIELD,
        &IGNORE_PARSE_ERRORS,
        &TIMESTAMP_FORMAT,
        &MAP_NULL_KEY_MODE,
        &MAP_NULL_KEY_LITERAL,
        &DECIMAL_AS_PLAIN_NUMBER,
        &IGNORE_NULL_FIELDS,
        &JSON_PARSER_ENABLED,
    ],
};

/// Why these options contradict each other, if they do.
pub fn check(options: &Options) -> Option<String> {
    let on = |spec: &OptionSpec| options.opt_boolean(spec).unwrap_or(false);
    (on(&FAIL_ON_MISSING_FIELD) && on(&IGNORE_PARSE_ERRORS)).then(|| {
        format!(
            "{} and {} cannot both be true: one makes a missing field an error, the other ignores errors",
            FAIL_ON_MISSING_FIELD.name, IGNORE_PARSE_ERRORS.name
        )
    })
}
