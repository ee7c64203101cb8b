//! Option tables: each connector and format declares its options once. The declaration parses, checks, masks
//! secrets and documents.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use bigdecimal::BigDecimal;

use super::{
    diagnostics::MASK,
    units::{Per, Rate, show_duration},
};

/// The options of one connector or format.
#[derive(Debug)]
pub struct OptionTable {
    /// The connector's or format's name, such as `mns` or `json`.
    pub name: &'static str,
    /// Its options, in the order in which they are documented.
    pub options: &'static [&'static OptionSpec],
}

impl OptionTable {
    /// The option of this name, in its exact case.
    pub fn find(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().copied().find(|option| option.name == name)
    }
}

/// One option: its name, what it accepts, and what it means.
#[derive(Debug)]
pub struct OptionSpec {
    /// As written in a definition. A format's options carry its name as a prefix: `json.ignore-parse-errors`.
    pub name: &'static str,
    /// What it accepts.
    pub kind: OptionKind,
    /// Whether a definition without it is an error.
    pub required: bool,
    /// The value it has when absent, as a user would write it; `None` with `required: false`: no value.
    pub default: Option<&'static str>,
    /// Whether its value is masked wherever it could be shown.
    pub secret: bool,
    /// Whether Flink has no such option.
    pub ours: bool,
    /// What `queuewarden init` writes for it where there is no default; a value that is valid, or a `${VARIABLE}`.
    pub example: Option<&'static str>,
    /// The option of the same table without which it means nothing.
    pub needs: Option<&'static str>,
    /// What it means, in a sentence or two, for the documentation.
    pub doc: &'static str,
}

impl OptionSpec {
    /// An optional option without a default.
    pub const fn new(name: &'static str, kind: OptionKind, doc: &'static str) -> Self {
        Self { name, kind, required: false, default: None, secret: false, ours: false, example: None, needs: None, doc }
    }

    /// It must be given.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Its value when absent, as a user would write it.
    #[must_use]
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Its value is never shown.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// The Flink connector of this name has no such option.
    #[must_use]
    pub const fn ours(mut self) -> Self {
        self.ours = true;
        self
    }

    /// A valid value to begin with, or a `${VARIABLE}`.
    #[must_use]
    pub const fn example(mut self, value: &'static str) -> Self {
        self.example = Some(value);
        self
    }

    /// An option of the same table that must be given with it.
    #[must_use]
    pub const fn needs(mut self, name: &'static str) -> Self {
        self.needs = Some(name);
        self
    }

    /// What it means, and what else there is to say of it.
    pub fn meaning(&self) -> String {
        let needs = self.needs.map_or_else(String::new, |name| format!(" Needs `{name}`."));
        let ours = if self.ours { " Not an option of the Flink connector." } else { "" };
        let masked = if self.secret { " Never shown." } else { "" };
        format!("{}{needs}{ours}{masked}", self.doc)
    }
}

/// What an option accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Any text that is not empty.
    Text,
    /// Any text, also the empty one.
    AnyText,
    /// An absolute `http://` or `https://` URL.
    Url,
    /// A plain decimal integer in a range, both ends included.
    Integer {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// `true` or `false`, in any case.
    Boolean,
    /// A Flink duration (`10s`, `500 ms`, `2min`; a bare number is milliseconds) in a range, both ends included.
    Duration {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
    /// One of a closed set.
    Choice {
        /// What there is to choose from; the value is handed out in this spelling.
        values: &'static [&'static str],
        /// Whether any case is accepted.
        any_case: bool,
    },
    /// A file or folder; a relative one counts from the working directory of the process.
    Path,
    /// Exactly one character, after Java escapes (`\t`, `\u0001`) have been understood.
    Character,
    /// A size in bytes, as Flink writes it (`128mb`, `1 gb`; a bare number is bytes).
    Size,
    /// A decimal number, such as `-1.5` or `2e9`.
    Number,
    /// A decimal number from 0 to 1.
    Share,
    /// So many in a second, minute or hour: `500/s`, `30000/min`, `1/h`.
    Rate,
    /// Two durations above zero joined by `..`, the shorter first: `1s..60s`.
    Backoff,
    /// Nothing: the Flink connector had the option once. Holds why there is none, in words that follow "nothing:".
    Gone(&'static str),
}

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// Text, AnyText, Url, Choice
    Text(String),
    /// Integer
    Integer(i64),
    /// Boolean
    Boolean(bool),
    /// Duration
    Duration(Duration),
    /// Path
    Path(PathBuf),
    /// Character
    Character(char),
    /// Size, in bytes
    Size(u64),
    /// Number, Share
    Number(BigDecimal),
    /// Backoff
    Backoff(Duration, Duration),
    /// Rate
    Rate(Rate),
}

/// The value as a user could write it.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(value) => value.fmt(f),
            Self::Boolean(value) => value.fmt(f),
            Self::Duration(value) => f.write_str(&show_duration(*value)),
            Self::Path(path) => path.display().fmt(f),
            Self::Character(c) if c.is_control() => write!(f, "\\u{:04x}", u32::from(*c)),
            Self::Character(c) => c.fmt(f),
            Self::Size(bytes) => bytes.fmt(f),
            Self::Number(value) => f.write_str(&value.to_plain_string()),
            Self::Rate(rate) => rate.fmt(f),
            Self::Backoff(least, most) => write!(f, "{}..{}", show_duration(*least), show_duration(*most)),
        }
    }
}

/// The checked options of one connector or format: every required one is there, every default filled in.
///
/// The getters take the declaration itself, so a name cannot be misspelt; asking one of another kind or table is a
/// bug, which answers the kind's zero value in release builds and panics in tests.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<&'static str, OptionValue>,
    secrets: Vec<&'static str>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $plain:ident, $optional:ident, $variant:ident, $type:ty, $from:expr, $zero:expr;)*) => {$(
        $(#[$doc])*
        pub fn $plain(&self, spec: &OptionSpec) -> $type {
            self.$optional(spec).unwrap_or_else(|| {
                debug_assert!(false, "option {} has no value of this kind", spec.name);
                $zero
            })
        }

        /// The same for an option that may have no value.
        pub fn $optional(&self, spec: &OptionSpec) -> Option<$type> {
            match self.values.get(spec.name) {
                Some(OptionValue::$variant(value)) => Some($from(value)),
                _ => None,
            }
        }
    )*};
}

impl Options {
    /// Records a checked value.
    pub fn insert(&mut self, spec: &'static OptionSpec, value: OptionValue) {
        self.insert_from(spec, value, false);
    }

    /// Records a checked value; `from_secret`: it came from a secrets directory, so that it is masked whatever the
    /// option is.
    pub fn insert_from(&mut self, spec: &'static OptionSpec, value: OptionValue, from_secret: bool) {
        if (spec.secret || from_secret) && !self.secrets.contains(&spec.name) {
            self.secrets.push(spec.name);
        }
        self.values.insert(spec.name, value);
    }

    /// Whether the option has a value.
    pub fn has(&self, spec: &OptionSpec) -> bool {
        self.values.contains_key(spec.name)
    }

    /// Whether the option's value is masked, because of what it is or of where it came from.
    pub fn is_masked(&self, spec: &OptionSpec) -> bool {
        self.secrets.contains(&spec.name)
    }

    /// Names and values for showing, in the order of the names; secrets masked.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.values
            .iter()
            .map(|(name, value)| (*name, if self.secrets.contains(name) { MASK.to_owned() } else { value.to_string() }))
    }

    /// The same with secrets as they are, for the digest.
    pub(super) fn plain(&self) -> Vec<(&'static str, String)> {
        self.values.iter().map(|(name, value)| (*name, value.to_string())).collect()
    }

    /// Two durations, the shorter first.
    pub fn backoff(&self, spec: &OptionSpec) -> (Duration, Duration) {
        match self.values.get(spec.name) {
            Some(OptionValue::Backoff(least, most)) => (*least, *most),
            _ => {
                debug_assert!(false, "option {} has no value of this kind", spec.name);
                (Duration::ZERO, Duration::ZERO)
            }
        }
    }

    getters! {
        /// Text, a URL or a choice.
        text, opt_text, Text, &str, String::as_str, "";
        /// An integer.
        integer, opt_integer, Integer, i64, |v: &i64| *v, 0;
        /// A boolean.
        boolean, opt_boolean, Boolean, bool, |v: &bool| *v, false;
        /// A duration.
        duration, opt_duration, Duration, Duration, |v: &Duration| *v, Duration::ZERO;
        /// A character.
        character, opt_character, Character, char, |v: &char| *v, '\0';
        /// A number, exact.
        number, opt_number, Number, BigDecimal, BigDecimal::clone, BigDecimal::default();
        /// A size in bytes.
        size, opt_size, Size, u64, |v: &u64| *v, 0;
        /// A rate.
        rate, opt_rate, Rate, Rate, |v: &Rate| *v, Rate { count: 1, per: Per::Second };
        /// A path.
        path, opt_path, Path, PathBuf, PathBuf::clone, PathBuf::new();
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in &self.values {
            if self.secrets.contains(name) {
                map.entry(name, &MASK);
            } else {
                map.entry(name, value);
            }
        }
        map.finish()
    }
}
