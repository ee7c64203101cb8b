//! What this layer must be told of connectors and formats, which live above it.

use super::{Diagnostic, Endpoint, OptionSpec, OptionTable};
use crate::model::{ColumnType, LogicalType};

/// Every connector and format there is.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// The connectors, in the order in which they are documented.
    pub connectors: &'static [&'static ConnectorTables],
    /// The formats, in the order in which they are documented.
    pub formats: &'static [&'static FormatTables],
}

/// One connector.
#[derive(Debug)]
pub struct ConnectorTables {
    /// The value of `connector:`.
    pub name: &'static str,
    /// What it is as a source; `None`: it cannot be one.
    pub source: Option<RoleTables>,
    /// What it is as a sink; `None`: it cannot be one.
    pub sink: Option<RoleTables>,
}

/// A connector as a source or as a sink.
#[derive(Debug)]
pub struct RoleTables {
    /// Its options; without `connector`, `format` and `schema`, which every section has.
    pub options: &'static OptionTable,
    /// Options that each column may have: `max` of a table called `fields` is written `fields.COLUMN.max`. `None`:
    /// there are none.
    pub columns: Option<&'static OptionTable>,
    /// Whether it has a format.
    pub format: FormatUse,
    /// Metadata columns it can fill (source) or takes (sink).
    pub metadata: &'static [MetadataKey],
    /// Of a source that takes a `primaryKey`: the option that says for how long a key is remembered, a duration with a
    /// default. `None`: it takes none; nor does any sink.
    pub key_window: Option<&'static OptionSpec>,
    /// Checks across options; called only when each of them is valid by itself.
    pub check: Check,
}

/// Looks at a section whose parts are valid each by itself and answers what does not fit together. The places for
/// its diagnostics come from [`Endpoint::at`].
pub type Check = fn(&Endpoint) -> Vec<Diagnostic>;

/// A [`Check`] that finds nothing.
pub const fn no_check(_: &Endpoint) -> Vec<Diagnostic> {
    Vec::new()
}

/// Whether a connector has a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatUse {
    /// It has none; `format:` is an error.
    Never,
    /// `format:` must be given; one of these.
    Required(&'static [&'static str]),
    /// `format:` may be given, one of these; the first when it is not.
    Defaulted(&'static [&'static str]),
}

impl FormatUse {
    /// The formats to choose from.
    pub const fn choices(self) -> &'static [&'static str] {
        match self {
            Self::Never => &[],
            Self::Required(choices) | Self::Defaulted(choices) => choices,
        }
    }
}

/// A metadata column of a connector.
#[derive(Debug, Clone)]
pub struct MetadataKey {
    /// Its key, as in `METADATA FROM 'key'`.
    pub name: &'static str,
    /// Its type.
    pub ty: MetadataType,
    /// Whether it may be null; as a sink takes it: whether null means that there is none.
    pub nullable: bool,
    /// What it means, for the documentation.
    pub doc: &'static str,
}

/// The type of a metadata column.
#[derive(Debug, Clone)]
pub enum MetadataType {
    /// One that is not nested.
    Plain(LogicalType),
    /// `MAP<STRING, STRING>`, which a table cannot hold as it is: its parts lie on the heap.
    TextMap,
}

impl MetadataKey {
    /// Its type.
    pub fn logical(&self) -> LogicalType {
        match &self.ty {
            MetadataType::Plain(logical) => logical.clone(),
            MetadataType::TextMap => {
                let text = || Box::new(ColumnType { logical: LogicalType::VarChar(None), nullable: true });
                LogicalType::Map(text(), text())
            }
        }
    }
}

/// One format.
#[derive(Debug)]
pub struct FormatTables {
    /// The value of `format:`, and the prefix of its options.
    pub name: &'static str,
    /// Its options, each beginning with the name and a dot.
    pub options: &'static OptionTable,
    /// Checks against the columns and across options, where it decodes.
    pub check_source: Check,
    /// Checks against the columns and across options, where it encodes.
    pub check_sink: Check,
}

impl Registry {
    /// The connector of this name.
    pub fn connector(&self, name: &str) -> Option<&'static ConnectorTables> {
        self.connectors.iter().copied().find(|connector| connector.name == name)
    }

    /// The sources that take a `primaryKey`.
    pub fn with_primary_key(&self) -> Vec<&'static str> {
        let takes =
            |connector: &&&ConnectorTables| connector.source.as_ref().is_some_and(|tables| tables.key_window.is_some());
        self.connectors.iter().filter(takes).map(|connector| connector.name).collect()
    }

    /// The format of this name.
    pub fn format(&self, name: &str) -> Option<&'static FormatTables> {
        self.formats.iter().copied().find(|format| format.name == name)
    }
}
