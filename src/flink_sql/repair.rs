//! What web pages and word processors do to a script, undone: dashes that were `--`, and quotes that were `'`.
//!
//! Nothing is moved: whatever is put in is as long as what it replaces, so a place in the repaired text is the same
//! place in the script.

use std::ops::Range;

use super::places::Places;
use crate::definition::{Diagnostic, Report};

const EM_DASH: char = '\u{2014}';
const EN_DASH: char = '\u{2013}';
/// Quotes that were `'`.
const SINGLE: [char; 2] = ['\u{2018}', '\u{2019}'];
/// Quotes that were `"`, which Flink does not have.
const DOUBLE: [char; 2] = ['\u{201c}', '\u{201d}'];

/// The script with every comment blanked out, and quotes that were typeset put back. `None`: what is wrong hides the
/// rest, and has been reported.
pub(super) fn repair(script: &str, places: &Places<'_>, report: &mut Report) -> Option<String> {
    let mut repair = Repair { script, places, report, clean: String::with_capacity(script.len()), at: 0, quotes: None };
    let before = repair.report.errors();
    while let Some(c) = repair.rest().chars().next() {
        repair.piece(c);
    }
    if let Some(first) = repair.quotes.take() {
        let warning = Diagnostic::warning("typographic quotes are read as `'`").at(places.span(first));
        repair.report.push(warning.help("a web page or a word processor has changed them"));
    }
    (repair.report.errors() == before).then_some(repair.clean)
}

struct Repair<'a, 'b> {
    script: &'a str,
    places: &'b Places<'a>,
    report: &'b mut Report,
    clean: String,
    /// How far the script has been read, in bytes.
    at: usize,
    /// The first typographic quote.
    quotes: Option<Range<usize>>,
}

impl<'a> Repair<'a, '_> {
    fn rest(&self) -> &'a str {
        self.script.get(self.at..).unwrap_or_default()
    }

    /// Takes so many bytes as they are.
    fn keep(&mut self, length: usize) {
        self.clean.push_str(self.rest().get(..length).unwrap_or_default());
        self.at += length;
    }

    /// Takes so many bytes, and leaves blanks for them. Line breaks stay.
    fn blank(&mut self, length: usize) {
        let blanks =
            self.rest().bytes().take(length).map(|byte| if matches!(byte, b'\n' | b'\r') { byte } else { b' ' });
        self.clean.extend(blanks.map(char::from));
        self.at += length;
    }

    fn piece(&mut self, c: char) {
        let rest = self.rest();
        let line = rest.find('\n').unwrap_or(rest.len());
        match c {
            '\'' | '`' => self.quoted(c),
            EM_DASH | EN_DASH => {
                self.look_for_swallowed_code(rest.get(c.len_utf8()..line).unwrap_or_default(), c);
                self.blank(line);
            }
            '-' if rest.starts_with("--") => self.blank(line),
            '/' if rest.starts_with("/*+") => {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                let hint = self.places.span(self.at..self.at + end);
                let error = Diagnostic::error("a hint (`/*+ ... */`) cannot be imported").at(hint);
                self.report.push(error.help("write the options it gives into the table's WITH"));
                self.blank(end);
            }
            '/' if rest.starts_with("/*") => match rest.find("*/") {
                Some(end) => self.blank(end + 2),
                None => self.open("a comment"),
            },
            c if SINGLE.contains(&c) => self.typeset(c),
            c if DOUBLE.contains(&c) => {
                let error = Diagnostic::error(format!("found the typographic quote `{c}`"));
                let place = self.places.span(self.at..self.at + c.len_utf8());
                self.report.push(error.at(place).expected("`'` around texts, or a backtick around names"));
                self.blank(c.len_utf8());
            }
            c => self.keep(c.len_utf8()),
        }
    }

    /// A text or name in its quotes; two of them inside are one, which makes two stretches of it: no matter.
    fn quoted(&mut self, quote: char) {
        match self.rest().get(1..).and_then(|inner| inner.find(quote)) {
            Some(end) => self.keep(end + 2),
            None => self.open(if quote == '`' { "a name" } else { "a text" }),
        }
    }

    /// A text between quotes that were typeset. They are three bytes long each.
    fn typeset(&mut self, quote: char) {
        let start = self.at;
        let inner = self.rest().get(quote.len_utf8()..).unwrap_or_default();
        let Some(end) = inner.find(SINGLE) else { return self.open("a text") };
        self.quotes.get_or_insert(start..start + quote.len_utf8());
        let text = inner.get(..end).unwrap_or_default();
        if let Some(at) = text.find(['\'', '\n']) {
            let place = self.places.span(start + quote.len_utf8() + at..start + quote.len_utf8() + at + 1);
            let error = Diagnostic::error("a text begins with a typographic quote and does not end with one");
            self.report.push(error.at(place).expected("`'` at both ends"));
        }
        self.clean.push_str("  '");
        self.clean.push_str(text);
        self.clean.push_str("'  ");
        self.at += 2 * quote.len_utf8() + end;
    }

    fn open(&mut self, what: &str) {
        let first = self.rest().chars().next().map_or(0, char::len_utf8);
        let place = self.places.span(self.at..self.at + first);
        self.report.push(Diagnostic::error(format!("{what} that begins here is not closed")).at(place));
        self.blank(self.rest().len());
    }

    /// A page that has lost its line breaks has code behind its comments.
    fn look_for_swallowed_code(&mut self, comment: &str, dash: char) {
        let before = self.script.get(..self.at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        if swallows(comment, before.trim().is_empty()) {
            let place = self.places.span(self.at..self.at + dash.len_utf8());
            let error = Diagnostic::error(format!("the comment behind `{dash}` has swallowed the rest of its line"));
            self.report.push(error.at(place).help("put a line break after each comment, as the script once had"));
        }
    }
}

/// Whether a comment holds code that came after it. `whole_line`: nothing stands before it, so it may be an option that
/// somebody has commented out.
fn swallows(comment: &str, whole_line: bool) -> bool {
    let words = comment.to_ascii_uppercase().split_whitespace().collect::<Vec<_>>().join(" ");
    if ["CREATE TABLE", "CREATE TEMPORARY TABLE", "INSERT INTO", "WITH ("].iter().any(|code| words.contains(code)) {
        return true;
    }
    let closed =
        || comment.matches(')').count() > comment.matches('(').count() && comment.trim_end().ends_with([')', ';']);
    let option = || words.split('\'').skip(2).step_by(2).any(|between| between.trim_start().starts_with('='));
    !whole_line && (option() || closed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Style;

    fn repaired(script: &str) -> (Option<String>, String) {
        let mut report = Report::new("a.sql", script);
        let clean = repair(script, &Places::new(script), &mut report);
        (clean, report.render(Style::Line))
    }

    #[test]
    fn comments_are_blank_and_everything_stays_where_it_was() {
        for (script, expected) in [
            ("a -- b\nc", "a     \nc"),
            ("a /* b\n c */ d", "a     \n      d"),
            ("'--' `/*` x", "'--' `/*` x"),
            ("'it''s -- x' y", "'it''s -- x' y"),
            ("a \u{2014} b\r\nc", "a      \r\nc"),
            ("a \u{2013} it's\nc", "a         \nc"),
            ("'a \u{2014} b'", "'a \u{2014} b'"),
        ] {
            let (clean, told) = repaired(script);
            assert_eq!(clean.as_deref(), Some(expected), "{script:?}: {told}");
            assert_eq!(clean.unwrap().len(), script.len());
            assert_eq!(told, "", "{script:?}");
        }
    }

    #[test]
    fn typographic_quotes_are_repaired_and_told_once() {
        let (clean, told) = repaired("\u{2018}a\u{2019} = \u{2018}b\u{2019}");
        assert_eq!(clean.as_deref(), Some("  'a'   =   'b'  "));
        assert_eq!(told.lines().count(), 1);
        assert!(told.starts_with("a.sql:1:1: warning: typographic quotes are read as `'`"), "{told}");
    }

    #[test]
    fn what_cannot_be_repaired_is_told_at_its_place() {
        for (script, expected) in [
            ("a\n 'b", "a.sql:2:2: error: a text that begins here is not closed"),
            ("`b", "a.sql:1:1: error: a name that begins here is not closed"),
            ("/* b", "a.sql:1:1: error: a comment that begins here is not closed"),
            (
                "\u{201c}b\u{201d}",
                "a.sql:1:1: error: found the typographic quote `\u{201c}`; expected `'` around texts",
            ),
            ("\u{2018}b'", "a.sql:1:1: error: a text that begins here is not closed"),
            ("\u{2018}b' = \u{2018}c\u{2019}", "a.sql:1:3: error: a text begins with a typographic quote and does not"),
            ("x /*+ OPTIONS('a'='b') */", "a.sql:1:3: error: a hint (`/*+ ... */`) cannot be imported"),
        ] {
            let (clean, told) = repaired(script);
            assert!(clean.is_none() && told.contains(expected), "{script:?}: {told}");
        }
    }

    #[test]
    fn a_comment_that_has_swallowed_code_is_told_and_one_that_has_not_is_none() {
        let after = |comment: &str| repaired(&format!("x \u{2014} {comment}\ny")).0.is_none();
        for comment in [
            "\u{8d26}\u{53f7} 'secret-id' = 'xxxx',",
            "the key) WITH ( 'connector' = 'cmq',",
            "the secret key);",
            "the source CREATE TABLE t (",
        ] {
            assert!(after(comment), "{comment}");
        }
        for comment in ["must be 'cmq'", "'a', 'b' or 'c' (any)", "one = two", "(see there)", "a \u{2014} b"] {
            assert!(!after(comment), "{comment}");
        }
        let (clean, told) = repaired("\u{2014} 'batch-size' = '16',\ny");
        assert!(clean.is_some(), "an option that somebody has commented out: {told}");
    }
}
