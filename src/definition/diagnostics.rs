//! What is wrong with a definition, told as a compiler would: where, what was found, what was expected, what may
//! have been meant.
//!
//! A source line is shown with the keys and the values that are *known* to be harmless; everything else on it is
//! masked, comments too. So a secret stays hidden when its key is misspelt, given twice or in the wrong place.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::located::Span;

/// What stands in the place of something that is not shown.
pub const MASK: &str = "***";

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The definition cannot be used.
    Error,
    /// It can, but an operator should know.
    Warning,
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where; `None`: the file as a whole.
    pub span: Option<Span>,
    /// What was found.
    pub message: String,
    /// What could have stood there.
    pub expected: Option<String>,
    /// The nearest valid spelling, ready to be written.
    pub nearest: Option<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, span: None, message: plain(message.into()), expected: None, nearest: None, help: None }
    }

    /// An error. `message` says what was found; never a secret.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message)
    }

    /// A warning. `message` says what was found; never a secret.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message)
    }

    /// Where it is.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// What could have stood there.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(plain(expected.into()));
        self
    }

    /// The nearest valid spelling, if one is near.
    #[must_use]
    pub fn nearest(mut self, nearest: Option<impl Into<String>>) -> Self {
        self.nearest = nearest.map(|nearest| plain(nearest.into()));
        self
    }

    /// What to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(plain(help.into()));
        self
    }

    /// Line and column, both from 1; `None`: the file as a whole.
    pub fn place(&self) -> Option<(u32, u32)> {
        self.span.map(|span| (span.line, span.column))
    }
}

/// The message with what was expected and suggested, in one line.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

/// Most diagnostics of one file that are shown; beyond it reading on helps nobody.
const MOST_SHOWN: usize = 200;

/// How diagnostics are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// With the source line, in colour: for a terminal.
    Terminal,
    /// With the source line, without colour.
    Plain,
    /// `file:line:column: error: ...`, one line each.
    Line,
}

/// A value with something in it that stands for what is not set.
#[derive(Clone)]
struct Placeholder {
    /// The value.
    value: Range<usize>,
    /// What stands in the file for what is not set, and its name.
    place: Span,
    name: String,
}

/// One file and everything that is wrong with it.
#[derive(Clone, Default)]
pub struct Report {
    file: PathBuf,
    text: String,
    shown: Vec<Range<usize>>,
    placeholders: Vec<Placeholder>,
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// A report on a file with this text, with nothing wrong so far.
    pub fn new(file: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { file: file.into(), text: text.into(), ..Self::default() }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What stands at a span, as written.
    pub fn written(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// The place of `piece`, which stands `offset` bytes into the text of the scalar at `span`. Exact for a scalar
    /// written as it reads; where quotes or escapes are in the way the first place it can be seen at, else `span`.
    pub fn within(&self, span: Span, offset: usize, piece: &str) -> Span {
        let written = self.written(span);
        let is_at = |at: usize| written.get(at..).is_some_and(|rest| rest.starts_with(piece));
        let quote = usize::from(written.starts_with(['"', '\'']));
        let exact = offset.saturating_add(quote);
        let found = if is_at(exact) { Some(exact) } else { written.find(piece) };
        let Some(at) = found.filter(|at| !piece.is_empty() || *at == exact) else { return span };
        let before = written.get(..at).unwrap_or_default();
        let lines = before.matches('\n').count() as u32;
        let characters = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32;
        Span {
            start: span.start + at,
            end: span.start + at + piece.len(),
            line: span.line + lines,
            column: if lines == 0 { span.column + characters } else { characters + 1 },
        }
    }

    /// Adds one. An error of a value that a placeholder stands in is that of what is not set.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        // What is expected behind a part of a placeholder nobody needs to know.
        self.tell(diagnostic, |_| None);
    }

    /// The same for an error of the value of an option as a whole, so that what is expected holds for any value.
    pub(super) fn push_of_value(&mut self, diagnostic: Diagnostic) {
        self.tell(diagnostic, |expected| expected);
    }

    fn tell(&mut self, diagnostic: Diagnostic, expected: impl FnOnce(Option<String>) -> Option<String>) {
        let stands_in = |span: Span| self.placeholders.iter().find(|one| one.value.contains(&span.start));
        let found = diagnostic.span.filter(|_| diagnostic.severity == Severity::Error).and_then(stands_in);
        let Some(Placeholder { place, name, .. }) = found else { return self.diagnostics.push(diagnostic) };
        let help = "set it: nothing can stand for it here";
        let told = Diagnostic::error(format!("`{name}` is not set")).at(*place).help(help);
        self.diagnostics.push(Diagnostic { expected: expected(diagnostic.expected), ..told });
    }

    /// Says that a placeholder stands in the value at `value`, for what is called `name` and referred to at `place`.
    pub(super) fn stands_in(&mut self, value: Span, place: Span, name: String) {
        self.placeholders.push(Placeholder { value: value.range(), place, name });
    }

    /// Says that what stands at `span` may be shown.
    pub fn show(&mut self, span: Span) {
        self.shown.push(span.range());
    }

    /// Everything that is wrong, in the order of the file.
    pub fn diagnostics(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<_> = self.diagnostics.iter().collect();
        all.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        all
    }

    /// Whether anything is an error.
    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    /// Everything that is wrong as text, ending in a newline unless there is nothing.
    pub fn render(&self, style: Style) -> String {
        let renderer = match style {
            Style::Terminal => Renderer::styled(),
            Style::Plain => Renderer::plain(),
            Style::Line => return self.lines(),
        };
        let mut out = String::new();
        let all = self.diagnostics();
        // Where not all are shown, the errors are.
        let errors = self.errors();
        let mut left = (errors.min(MOST_SHOWN), MOST_SHOWN.saturating_sub(errors));
        for diagnostic in &all {
            let left = if diagnostic.severity == Severity::Error { &mut left.0 } else { &mut left.1 };
            if *left == 0 {
                continue;
            }
            *left -= 1;
            out.push_str(&self.snippet(diagnostic, &renderer));
            out.push_str("\n\n");
        }
        if let Some(more) = all.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
            out.push_str(&format!("... and {more} more in {}\n", self.file.display()));
        }
        out
    }

    fn lines(&self) -> String {
        let file = self.file.display();
        let line = |diagnostic: &&Diagnostic| {
            let word = diagnostic.severity.word();
            match diagnostic.place() {
                Some((line, column)) => format!("{file}:{line}:{column}: {word}: {diagnostic}\n"),
                None => format!("{file}: {word}: {diagnostic}\n"),
            }
        };
        self.diagnostics().iter().map(line).collect()
    }

    fn snippet(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let file = self.file.display().to_string();
        let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
        let mut place = None;
        if let Some(span) = diagnostic.span {
            let (line, marked) = self.masked_line(span);
            // What is masked before it on the line shifts the column the renderer counts.
            let shifted = line.get(..marked.start).unwrap_or_default().chars().count() + 1;
            let at = format!("{file}:{}:", span.line);
            place = Some((format!("{at}{shifted}"), format!("{at}{}", span.column)));
            let mut annotation = AnnotationKind::Primary.span(marked);
            if let Some(expected) = &diagnostic.expected {
                annotation = annotation.label(format!("expected {expected}"));
            }
            let snippet = Snippet::source(line).path(file).line_start(span.line as usize);
            group = group.element(snippet.annotation(annotation));
        } else {
            group = group.element(Origin::path(file));
            if let Some(expected) = &diagnostic.expected {
                group = group.element(Level::NOTE.message(format!("expected {expected}")));
            }
        }
        if let Some(nearest) = &diagnostic.nearest {
            group = group.element(Level::HELP.message(format!("did you mean `{nearest}`?")));
        }
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let text = renderer.render(&[group]);
        match place {
            Some((shifted, right)) if shifted != right => text.replacen(&shifted, &right, 1),
            _ => text,
        }
    }

    /// The line a span begins in, masked, and the part of it that the span covers.
    fn masked_line(&self, span: Span) -> (String, Range<usize>) {
        let start = self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let line = self.text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        let structure = leading_key(line);
        let mut visible = vec![false; line.len()];
        for range in &self.shown {
            let inside = range.start.max(start) - start..range.end.saturating_sub(start).min(line.len());
            visible.get_mut(inside).unwrap_or_default().fill(true);
        }
        for user in users_of_urls(line) {
            visible.get_mut(user).unwrap_or_default().fill(false);
        }
        let mut masked = String::with_capacity(line.len());
        let (mut from, mut to) = (None, None);
        for (at, c) in line.char_indices() {
            let place = start + at;
            if place >= span.start && from.is_none() {
                from = Some(masked.len());
            }
            if place >= span.end && to.is_none() {
                to = Some(masked.len());
            }
            let shown = visible.get(at) == Some(&true);
            if shown || at < structure || c.is_whitespace() || "{}[],:".contains(c) {
                masked.push(c);
            } else if let kept = masked.trim_end()
                && kept.ends_with(MASK)
                && (from.is_none_or(|from| from < kept.len()) && to.is_none_or(|to| to < kept.len()))
            {
                // Several words that are not shown are one.
                masked.truncate(kept.len());
            } else {
                masked.push_str(MASK);
            }
        }
        let from = from.unwrap_or(masked.len());
        let to = to.unwrap_or(masked.len()).max(from);
        (masked, from..to)
    }
}

/// What stands before the `@` of URLs: a user, and often a password.
fn users_of_urls(line: &str) -> impl Iterator<Item = Range<usize>> {
    line.match_indices("://").filter_map(|(at, colon)| {
        let start = at + colon.len();
        let rest = line.get(start..)?;
        let end = rest.find(|c: char| c.is_whitespace() || "/;,\"'".contains(c)).unwrap_or(rest.len());
        Some(start..start + rest.get(..end)?.rfind('@')?)
    })
}

/// Without the text, which may hold secrets.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("file", &self.file)
            .field("diagnostics", &self.diagnostics)
            .finish_non_exhaustive()
    }
}

/// Escapes control characters: a key or value of a file must not steer the terminal it is shown on.
fn plain(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Length of the key at the beginning of a line, if it has one; it is shown even if the file cannot be parsed.
fn leading_key(line: &str) -> usize {
    let key = |c: char| c.is_ascii_alphanumeric() || "-_. ".contains(c);
    match line.split_once(':') {
        Some((before, after)) if before.chars().all(key) && (after.is_empty() || after.starts_with(' ')) => {
            before.len()
        }
        _ => 0,
    }
}
