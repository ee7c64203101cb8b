//! How values of these connectors' options are read that an option table cannot check by itself.

use crate::definition::{At, Diagnostic, Endpoint, OptionSpec, Span};

/// A section being read, and what has been found wrong with it.
pub(super) struct Reading<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) found: Vec<Diagnostic>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(endpoint: &'a Endpoint) -> Self {
        Self { endpoint, found: Vec::new() }
    }

    pub(super) fn text(&self, spec: &OptionSpec) -> &'a str {
        self.endpoint.options.text(spec)
    }

    pub(super) fn opt_text(&self, spec: &OptionSpec) -> Option<&'a str> {
        self.endpoint.options.opt_text(spec)
    }

    pub(super) fn place(&self, spec: &OptionSpec) -> Span {
        self.endpoint.at(At::Option(spec))
    }

    /// An integer that its option keeps within 32 bits.
    pub(super) fn count(&self, spec: &OptionSpec) -> u32 {
        u32::try_from(self.endpoint.options.integer(spec)).unwrap_or(u32::MAX)
    }

    /// Reports the value of an option, of which `part` is wrong. A value that must not be shown is not.
    pub(super) fn refuse(&mut self, spec: &OptionSpec, part: &str, expected: &str, nearest: Option<&str>) {
        let masked = self.endpoint.options.is_masked(spec);
        let message = match (masked, part.is_empty(), part == self.text(spec)) {
            (true, ..) => format!("the value of `{}` cannot be used", spec.name),
            (false, true, _) => format!("a part of `{}` is empty", spec.name),
            (false, false, true) => format!("`{}` is `{part}`", spec.name),
            (false, false, false) => format!("`{}` holds `{part}`", spec.name),
        };
        let nearest = nearest.filter(|_| !masked);
        self.found.push(Diagnostic::error(message).at(self.place(spec)).expected(expected).nearest(nearest));
    }

    /// Reports something about an option that repeats no value.
    pub(super) fn error(&mut self, spec: &OptionSpec, message: impl Into<String>, help: &str) {
        self.found.push(Diagnostic::error(message).at(self.place(spec)).help(help));
    }

    /// What was read, if nothing is wrong with it.
    pub(super) fn done<T>(self, read: T) -> Result<T, Vec<Diagnostic>> {
        let wrong = self.found.iter().any(|one| one.severity == crate::definition::Severity::Error);
        if wrong { Err(self.found) } else { Ok(read) }
    }
}
