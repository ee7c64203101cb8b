//! Puts environment variables and secrets in the place of `${...}`, in values only and after the YAML has been
//! parsed: whatever a variable holds, it stays one value.
//!
//! | written | becomes |
//! |---|---|
//! | `${NAME}` | the environment variable; an error if it is not set |
//! | `${NAME:-default}` | the same, or `default` if it is not set or empty |
//! | `${secret_values.NAME}` | the content of the file NAME in the secrets directory, without its last newline |
//! | `$$` | `$` |

use std::{
    ffi::OsString,
    fmt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    diagnostics::{Diagnostic, Report},
    located::{Node, Scalar, Span, Value},
};

/// Largest secret, in bytes.
const LARGEST_SECRET: u64 = 64 << 10;
/// What a reference to a secret begins with.
const SECRETS: &str = "secret_values.";

/// Looks up an environment variable.
type Variables = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// Where the values of `${...}` come from.
#[derive(Clone)]
pub struct Environment {
    variable: Arc<Variables>,
    secrets_dir: Option<PathBuf>,
    placeholders: bool,
    unknowns: bool,
}

/// What stands between `${` and `}`, resolved.
#[derive(Debug)]
struct Resolved {
    text: String,
    secret: bool,
    /// Whether it is a placeholder.
    unknown: bool,
}

/// Stands for what is not set: a text, a path and a URL that nobody answers at.
const PLACEHOLDER: &str = "http://placeholder.invalid";

impl Environment {
    /// The variables of this process, and a secrets directory if there is one.
    pub fn of_process(secrets_dir: Option<PathBuf>) -> Self {
        Self::new(|name| std::env::var_os(name), secrets_dir)
    }

    /// Variables from elsewhere.
    pub fn new(
        variable: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
        secrets_dir: Option<PathBuf>,
    ) -> Self {
        Self { variable: Arc::new(variable), secrets_dir, placeholders: false, unknowns: false }
    }

    /// The same, but a secret that cannot be had and a variable that is not set and has no default are no error: a
    /// placeholder stands for them. For what talks to no service. Where a placeholder is of no use, as for a number, it is
    /// told that the variable is not set.
    #[must_use]
    pub fn with_placeholders(self) -> Self {
        Self { placeholders: true, ..self }
    }

    /// The same, and an option whose value is not known is taken for valid, whatever it is: its default stands for it,
    /// or nothing. For what hands on values as they are written.
    #[must_use]
    pub fn with_unknowns(self) -> Self {
        Self { placeholders: true, unknowns: true, ..self }
    }

    fn secret(&self, name: &str) -> Result<Resolved, Box<Diagnostic>> {
        if !is_name_of_secret(name) {
            let expected = "the name of a file in the secrets directory, without a path";
            return Err(Diagnostic::error(format!("`{name}` is not the name of a secret")).expected(expected).into());
        }
        let dir = match &self.secrets_dir {
            Some(dir) => dir,
            None if self.placeholders => return Ok(Resolved { secret: true, ..Resolved::placeholder() }),
            None => {
                let message = format!("the secret `{name}` is asked for, but there is no secrets directory");
                return Err(Diagnostic::error(message).help("give one with --secrets-dir").into());
            }
        };
        let file = dir.join(name);
        let refuse =
            |why: &str| Diagnostic::error(format!("the secret `{name}` cannot be read: {}: {why}", file.display()));
        let size = std::fs::metadata(&file).map_err(|error| refuse(&error.to_string()))?.len();
        if size > LARGEST_SECRET {
            return Err(refuse("it is larger than 64 KiB").into());
        }
        let bytes = std::fs::read(&file).map_err(|error| refuse(&error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8"))?;
        let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
        Ok(Resolved { secret: true, ..Resolved::known(text) })
    }

    fn variable(&self, name: &str, default: Option<&str>) -> Result<Resolved, Box<Diagnostic>> {
        match ((self.variable)(name), default) {
            (Some(value), Some(default)) if value.is_empty() => Ok(Resolved::known(default)),
            (Some(value), _) => match value.into_string() {
                Ok(value) => Ok(Resolved::known(value)),
                Err(_) => Err(Diagnostic::error(format!("the environment variable `{name}` is not UTF-8")).into()),
            },
            (None, Some(default)) => Ok(Resolved::known(default)),
            (None, None) if self.placeholders => Ok(Resolved::placeholder()),
            (None, None) => Err(Diagnostic::error(format!("the environment variable `{name}` is not set"))
                .help(format!("set it, or write ${{{name}:-default}}; a literal `$` is written `$$`"))
                .into()),
        }
    }
}

impl Resolved {
    fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), secret: false, unknown: false }
    }

    fn placeholder() -> Self {
        Self { text: PLACEHOLDER.to_owned(), secret: false, unknown: true }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("secrets_dir", &self.secrets_dir).finish_non_exhaustive()
    }
}

/// Substitutes in every value below `node`. What cannot be substituted is reported and becomes [`Value::Broken`].
pub(super) fn substitute(node: &mut Node, environment: &Environment, report: &mut Report) {
    match &mut node.value {
        Value::Null | Value::Broken => {}
        Value::Sequence(items) => items.iter_mut().for_each(|item| substitute(item, environment, report)),
        Value::Mapping(entries) => {
            entries.iter_mut().for_each(|entry| substitute(&mut entry.value, environment, report));
        }
        Value::Scalar(scalar) => {
            if scalar.text.contains('$') && !resolve(scalar, node.span, environment, report) {
                node.value = Value::Broken;
            }
        }
    }
}

/// Resolves one scalar; answers whether that worked.
fn resolve(scalar: &mut Scalar, span: Span, environment: &Environment, report: &mut Report) -> bool {
    let text = std::mem::take(&mut scalar.text);
    let mut rest = text.as_str();
    let mut good = true;
    let mut unknown: Option<(Span, String)> = None;
    while let Some(dollar) = rest.find('$') {
        let (before, from) = rest.split_at(dollar);
        scalar.text.push_str(before);
        let offset = text.len() - from.len();
        if let Some(after) = from.strip_prefix("$$") {
            scalar.text.push('$');
            rest = after;
        } else if let Some(inner) = from.strip_prefix("${") {
            let Some((name, after)) = inner.split_once('}') else {
                // Only the opening is marked: what follows may be anything.
                let place = report.within(span, offset, "${");
                report.push(Diagnostic::error("`${` is not closed").at(place).expected("`${NAME}`"));
                return false;
            };
            let reference = from.get(..name.len() + 3).unwrap_or_default();
            let place = report.within(span, offset, reference);
            if !name.contains(":-") {
                report.show(place);
            }
            match value_of(name, environment) {
                Ok(value) => {
                    scalar.text.push_str(&value.text);
                    scalar.secret |= value.secret;
                    scalar.substituted = true;
                    if value.unknown {
                        unknown.get_or_insert_with(|| (place, name.to_owned()));
                    }
                }
                Err(diagnostic) => {
                    report.push(diagnostic.at(place));
                    good = false;
                }
            }
            rest = after;
        } else {
            scalar.text.push('$');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    scalar.text.push_str(rest);
    if let Some((place, name)) = unknown.filter(|_| good) {
        scalar.unknown = environment.unknowns;
        report.stands_in(span, place, name);
    }
    good
}

/// Whether what stands between `${` and `}` refers to something: a secret or a variable, perhaps with a default.
pub fn is_reference(reference: &str) -> bool {
    if let Some(name) = reference.strip_prefix(SECRETS) {
        return is_name_of_secret(name);
    }
    let (name, default) = reference.split_once(":-").unwrap_or((reference, ""));
    is_name_of_variable(name) && !default.contains("${")
}

fn is_name_of_secret(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let plain = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
    plain && !name.contains(['/', '\\', '\0'])
}

fn is_name_of_variable(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The value of what stands between `${` and `}`.
fn value_of(reference: &str, environment: &Environment) -> Result<Resolved, Box<Diagnostic>> {
    if let Some(name) = reference.strip_prefix(SECRETS) {
        return environment.secret(name);
    }
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name_of_variable(name) {
        return Err(Diagnostic::error("`${...}` does not hold the name of a variable")
            .expected("`${NAME}`, `${NAME:-default}` or `${secret_values.NAME}`")
            .help("a literal `$` is written `$$`")
            .into());
    }
    if default.is_some_and(|default| default.contains("${")) {
        let message = "a default cannot hold another `${...}`";
        return Err(Diagnostic::error(message).expected("a literal default").into());
    }
    environment.variable(name, default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{diagnostics::Style, located};

    fn environment(dir: Option<&Path>) -> Environment {
        let variable = |name: &str| match name {
            "A" => Some("alpha".into()),
            "EMPTY" => Some("".into()),
            "EVIL" => Some("x\nschema: {b: ${A}}".into()),
            _ => None,
        };
        Environment::new(variable, dir.map(Path::to_owned))
    }

    fn resolved(value: &str, dir: Option<&Path>) -> Result<Scalar, String> {
        let text = format!("k:\n  a: {value}\n");
        let mut report = Report::new("a.yaml", text.clone());
        let mut node = located::read(&text, located::DEFINITION, &mut report).unwrap();
        substitute(&mut node, &environment(dir), &mut report);
        if report.has_errors() {
            return Err(report.render(Style::Line));
        }
        let Value::Mapping(entries) = node.value else { panic!() };
        let Value::Mapping(entries) = &entries[0].value.value else { panic!() };
        match &entries[0].value.value {
            Value::Scalar(scalar) => Ok(scalar.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn variables_defaults_and_escapes_are_resolved() {
        for (written, expected) in [
            ("${A}", "alpha"),
            ("x-${A}-${A}", "x-alpha-alpha"),
            ("'${A}'", "alpha"),
            ("${B:-beta}", "beta"),
            ("${EMPTY:-beta}", "beta"),
            ("${A:-beta}", "alpha"),
            ("${EMPTY}", ""),
            ("${B:-}", ""),
            ("$${A}", "${A}"),
            ("$$$${A}", "$${A}"),
            ("$$${A}", "$alpha"),
            ("5$", "5$"),
            ("$x", "$x"),
        ] {
            assert_eq!(resolved(written, None).unwrap().text, expected, "{written}");
        }
    }

    #[test]
    fn a_placeholder_stands_only_for_what_is_not_set_and_has_no_default() {
        let environment = environment(None).with_placeholders();
        for (name, value) in [("NOPE", PLACEHOLDER), ("secret_values.x", PLACEHOLDER), ("A", "alpha"), ("B:-b", "b")] {
            assert_eq!(value_of(name, &environment).unwrap().text, value, "{name}");
        }
        assert!(value_of("secret_values.x", &environment).unwrap().secret, "it is masked as any secret");
        assert!(value_of("secret_values.../x", &environment).is_err());
    }

    #[test]
    fn what_a_variable_holds_is_never_parsed_again() {
        assert_eq!(resolved("${EVIL}", None).unwrap().text, "x\nschema: {b: ${A}}");
    }

    #[test]
    fn what_cannot_be_resolved_is_told_at_its_place() {
        for (written, place, message) in [
            ("${NOPE}", "2:6", "`NOPE` is not set"),
            ("x ${NOPE}", "2:8", "`NOPE` is not set"),
            ("'x ${NOPE}'", "2:9", "`NOPE` is not set"),
            ("\"\\u0041\\u0042 ${NOPE}\"", "2:20", "`NOPE` is not set"),
            ("${A", "2:6", "is not closed"),
            ("${}", "2:6", "does not hold the name"),
            ("${a-b}", "2:6", "does not hold the name"),
            ("${B:-${A}}", "2:6", "cannot hold another"),
            ("${secret_values.x}", "2:6", "no secrets directory"),
        ] {
            let told = resolved(written, None).unwrap_err();
            assert!(told.starts_with(&format!("a.yaml:{place}: error: ")), "{written}: {told}");
            assert!(told.contains(message), "{written}: {told}");
        }
    }

    #[test]
    fn a_secret_is_the_content_of_a_file_without_its_last_newline() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [("a", "s3cret\n"), ("b", "s3cret\r\n"), ("c", "s3cret"), ("d", "s3cret\n\n")] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        for name in ["a", "b", "c"] {
            let scalar = resolved(&format!("${{secret_values.{name}}}"), Some(dir.path())).unwrap();
            assert_eq!((scalar.text.as_str(), scalar.secret), ("s3cret", true), "{name}");
        }
        assert_eq!(resolved("${secret_values.d}", Some(dir.path())).unwrap().text, "s3cret\n");
        assert!(resolved("x${secret_values.a}", Some(dir.path())).unwrap().secret);
    }

    #[test]
    fn a_secret_cannot_be_a_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "x").unwrap();
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        for name in ["../a", "./a", "/etc/passwd", "..", ".", "", "a/", "x\\a", "missing", "bytes"] {
            std::fs::write(inner.join("bytes"), [0xff]).unwrap();
            let told = resolved(&format!("'${{secret_values.{name}}}'"), Some(&inner)).unwrap_err();
            assert!(told.starts_with("a.yaml:2:7: error: "), "{name}: {told}");
        }
    }
}
