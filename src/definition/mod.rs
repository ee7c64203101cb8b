//! Pipeline definitions as people write them: YAML with a position for every key and value, option tables,
//! units, substitution and secrets. Knows no connector; `connectors::resolve` types what is read here.

mod check;
mod column_options;
mod diagnostics;
mod endpoint;
mod folder;
mod loading;
mod located;
mod options;
mod pipeline;
mod primary_key;
mod query;
mod registry;
mod schema;
pub mod sections;
mod show;
mod substitute;
mod test_file;
mod units;
mod values;

pub use column_options::ColumnOptions;
pub use diagnostics::{Diagnostic, MASK, Report, Severity, Style};
pub use endpoint::{At, Endpoint, FormatDefinition, Role};
pub use folder::{Discovered, discover, discover_tests};
pub use loading::{LARGEST_FILE, Loaded, load_file, load_text};
pub use located::{Entry, Located, Node, Span, Value};
pub use options::{OptionKind, OptionSpec, OptionTable, OptionValue, Options};
pub use pipeline::{CheckpointDefinition, OnError, PipelineDefinition, RestartDefinition};
pub use registry::{
    Check, ConnectorTables, FormatTables, FormatUse, MetadataKey, MetadataType, Registry, RoleTables, no_check,
};
pub use show::Digest;
pub use substitute::Environment;
pub use test_file::{Case, Content, ExpectedReject, Input, TestFile, TestMessage, read_test};
pub use units::{
    Per, Rate, parse_boolean, parse_character, parse_duration, parse_integer, parse_size, show_duration, unescape,
};
pub use values::Refusal;
