//! Pipeline definitions as people write them: YAML with a position for every key and value, option tables,
//! units, substitution and secrets. Knows no connector; `connectors::resolve` types what is read here.

mod diagnostics;
mod located;
mod options;
mod units;

pub use options::{OptionKind, OptionSpec, OptionTable, OptionValue, Options};
