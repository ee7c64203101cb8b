//! A registry that looks like the real one and depends on none of it.

use std::time::Duration;

use queuewarden::{
    definition::{
        At, ConnectorTables, Diagnostic, Endpoint, FormatTables, FormatUse, MetadataKey, OptionKind, OptionSpec,
        OptionTable, Registry, RoleTables, no_check,
    },
    model::LogicalType,
};

static ENDPOINT: OptionSpec = OptionSpec::new("endpoint", OptionKind::Url, "Where the service is.").required();
static REGION: OptionSpec = OptionSpec::new("region", OptionKind::Text, "Its region.").required();
static QUEUE: OptionSpec = OptionSpec::new("queueName", OptionKind::Text, "The queue.").required();
static KEY_ID: OptionSpec = OptionSpec::new("accessKeyId", OptionKind::Text, "Who.").required();
static KEY_SECRET: OptionSpec = OptionSpec::new("accessKeySecret", OptionKind::Text, "The secret.").required().secret();
static MESSAGE_TYPE: OptionSpec =
    OptionSpec::new("messageType", OptionKind::Choice { values: &["RAW", "OSS"], any_case: false }, "What bodies are.")
        .default("RAW");
static BATCH_SIZE: OptionSpec =
    OptionSpec::new("batchSize", OptionKind::Integer { min: 1, max: 16 }, "Messages a poll.").default("1");
static WAIT: OptionSpec = OptionSpec::new(
    "pollingWaitTime",
    OptionKind::Duration { min: Duration::ZERO, max: Duration::from_secs(30) },
    "How long a poll waits.",
)
.default("10s");
static RETRIES: OptionSpec =
    OptionSpec::new("deleteMaxRetries", OptionKind::Integer { min: 0, max: i64::MAX }, "Tries.").default("3");
static MNS: OptionTable = OptionTable {
    name: "mns",
    options: &[&ENDPOINT, &REGION, &QUEUE, &KEY_ID, &KEY_SECRET, &MESSAGE_TYPE, &BATCH_SIZE, &WAIT, &RETRIES],
};

static PATH: OptionSpec = OptionSpec::new("path", OptionKind::Path, "Where files go.").required();
static FILE_SIZE: OptionSpec =
    OptionSpec::new("sink.rolling-policy.file-size", OptionKind::Size, "When files roll.").default("128mb");
static FILESYSTEM: OptionTable = OptionTable { name: "filesystem", options: &[&PATH, &FILE_SIZE] };
static NOTHING: OptionTable = OptionTable { name: "blackhole", options: &[] };

static FAIL_ON_MISSING: OptionSpec =
    OptionSpec::new("json.fail-on-missing-field", OptionKind::Boolean, "Strict.").default("false");
static IGNORE: OptionSpec =
    OptionSpec::new("json.ignore-parse-errors", OptionKind::Boolean, "Lenient.").default("false");
static STANDARD: OptionSpec = OptionSpec::new(
    "json.timestamp-format.standard",
    OptionKind::Choice { values: &["SQL", "ISO-8601"], any_case: false },
    "How times are written.",
)
.default("SQL");
static JSON: OptionTable = OptionTable { name: "json", options: &[&FAIL_ON_MISSING, &IGNORE, &STANDARD] };
static DELIMITER: OptionSpec =
    OptionSpec::new("csv.field-delimiter", OptionKind::Character, "Between fields.").default(",");
static CSV: OptionTable = OptionTable { name: "csv", options: &[&DELIMITER] };

static METADATA: [MetadataKey; 3] = [
    MetadataKey { name: "message-id", logical: LogicalType::VarChar(None), nullable: false, doc: "The id." },
    MetadataKey { name: "enqueue-time", logical: LogicalType::TimestampLtz(3), nullable: false, doc: "When." },
    MetadataKey { name: "first-dequeue-time", logical: LogicalType::TimestampLtz(3), nullable: true, doc: "When." },
];

fn check_mns(end: &Endpoint) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if end.options.text(&MESSAGE_TYPE) == "OSS" && end.format.as_ref().is_some_and(|format| format.name != "json") {
        let message = "messages of the type OSS are JSON";
        found.push(Diagnostic::error(message).at(end.at(At::Format)).expected("`format: json`"));
    }
    if end.options.duration(&WAIT) < Duration::from_secs(1) {
        found.push(Diagnostic::warning("the service waits whole seconds").at(end.at(At::Option(&WAIT))));
    }
    found
}

fn check_json(end: &Endpoint) -> Vec<Diagnostic> {
    let options = end.format.as_ref().map(|format| &format.options);
    if options.is_some_and(|options| options.boolean(&FAIL_ON_MISSING) && options.boolean(&IGNORE)) {
        let message = "missing fields cannot both fail and be ignored";
        return vec![Diagnostic::error(message).at(end.at(At::Option(&FAIL_ON_MISSING)))];
    }
    Vec::new()
}

/// The registry.
pub static REGISTRY: Registry = Registry {
    connectors: &[
        &ConnectorTables {
            name: "mns",
            source: Some(RoleTables {
                options: &MNS,
                format: FormatUse::Required(&["json", "csv"]),
                metadata: &METADATA,
                check: check_mns,
            }),
            sink: None,
        },
        &ConnectorTables {
            name: "filesystem",
            source: None,
            sink: Some(RoleTables {
                options: &FILESYSTEM,
                format: FormatUse::Defaulted(&["json", "csv"]),
                metadata: &[],
                check: no_check,
            }),
        },
        &ConnectorTables {
            name: "blackhole",
            source: None,
            sink: Some(RoleTables { options: &NOTHING, format: FormatUse::Never, metadata: &[], check: no_check }),
        },
    ],
    formats: &[
        &FormatTables { name: "json", options: &JSON, check_source: check_json, check_sink: no_check },
        &FormatTables { name: "csv", options: &CSV, check_source: no_check, check_sink: no_check },
    ],
};
