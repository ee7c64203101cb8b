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
    let clean = String::with_capacity(script.len());
    let mut repair = Repair {
        script,
        places,
        report,
        clean,
        at: 0,
        ended: 0,
        quotes: None,
        dash: None,
        part: Part::Other,
        hides: false,
    };
    while let Some(c) = repair.rest().chars().next() {
        repair.piece(c);
    }
    if let Some(first) = repair.quotes.take() {
        let warning = Diagnostic::warning("typographic quotes are read as `'`").at(places.span(first));
        repair.report.push(warning.help("a web page or a word processor has changed them"));
    }
    if repair.hides {
        return None;
    }
    if let Some(first) = repair.dash.take() {
        let dash = script.get(first.clone()).unwrap_or_default();
        let warning = Diagnostic::warning(format!("what follows `{dash}` on its line is read as a comment"));
        let help = "a web page or a word processor has made it of `--`; where a minus was meant, write `-`";
        repair.report.push(warning.at(places.span(first)).help(help));
    }
    Some(repair.clean)
}

struct Repair<'a, 'b> {
    script: &'a str,
    places: &'b Places<'a>,
    report: &'b mut Report,
    clean: String,
    /// How far the script has been read, in bytes.
    at: usize,
    /// Where in what is clean the last thing ends that is no blank.
    ended: usize,
    /// The first typographic quote.
    quotes: Option<Range<usize>>,
    /// The first dash that begins a comment.
    dash: Option<Range<usize>>,
    part: Part,
    /// Whether something has been reported that hides the rest.
    hides: bool,
}

impl<'a> Repair<'a, '_> {
    fn rest(&self) -> &'a str {
        self.script.get(self.at..).unwrap_or_default()
    }

    /// Takes so many bytes as they are.
    fn keep(&mut self, length: usize) {
        let kept = self.rest().get(..length).unwrap_or_default();
        self.clean.push_str(kept);
        self.at += length;
        if !kept.trim_end().is_empty() {
            self.ended = self.clean.len();
        }
    }

    /// Takes so many bytes, and leaves blanks for them. Line breaks stay.
    fn blank(&mut self, length: usize) {
        let blanks =
            self.rest().bytes().take(length).map(|byte| if matches!(byte, b'\n' | b'\r') { byte } else { b' ' });
        self.clean.extend(blanks.map(char::from));
        self.at += length;
    }

    /// Reports what makes everything behind it uncertain.
    fn hide(&mut self, error: Diagnostic) {
        self.hides = true;
        self.report.push(error);
    }

    fn piece(&mut self, c: char) {
        let rest = self.rest();
        match c {
            ';' => {
                self.part = Part::Other;
                self.keep(1);
            }
            c if is_of_word(c) => {
                let word = rest.split(|c| !is_of_word(c)).next().unwrap_or_default();
                self.part = self.part.behind(word);
                self.keep(word.len());
            }
            '\'' | '`' => self.quoted(c),
            EM_DASH | EN_DASH => self.dash(c),
            '-' if rest.starts_with("--") => self.blank(line(rest)),
            // Flink has these too. What stands behind a colon is the address that the client takes without quotes.
            '/' if rest.starts_with("//") && !self.clean.ends_with(':') => self.blank(line(rest)),
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
                self.hide(error.at(place).expected("`'` around texts, or a backtick around names"));
                self.blank(c.len_utf8());
            }
            c => self.keep(c.len_utf8()),
        }
    }

    /// A text or name in its quotes; two of them inside are one, which makes two stretches of it: no matter.
    fn quoted(&mut self, quote: char) {
        let inner = self.rest().get(1..).unwrap_or_default();
        match inner.find(quote) {
            Some(end) if quote == '`' && swallowed(inner.get(..end).unwrap_or_default()) => {
                let place = self.places.span(self.at..self.at + 1);
                let error = Diagnostic::error("a backtick is missing: what begins here is no name").at(place);
                self.hide(error.expected("a backtick at both ends of each name; what follows is looked at then"));
                self.blank(self.rest().len());
            }
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
            self.hide(error.at(place).expected("`'` at both ends"));
        }
        self.clean.push_str("  '");
        self.clean.push_str(text);
        self.clean.push('\'');
        self.ended = self.clean.len();
        self.clean.push_str("  ");
        self.at += 2 * quote.len_utf8() + end;
    }

    fn open(&mut self, what: &str) {
        let first = self.rest().chars().next().map_or(0, char::len_utf8);
        let place = self.places.span(self.at..self.at + first);
        self.hide(Diagnostic::error(format!("{what} that begins here is not closed")).at(place));
        self.blank(self.rest().len());
    }

    /// A comment that was `--`, unless it looks like something else: a page that has lost its line breaks has code
    /// behind its comments, and a dash may have been a minus.
    fn dash(&mut self, dash: char) {
        let rest = self.rest();
        let length = line(rest);
        let comment = rest.get(dash.len_utf8()..length).unwrap_or_default();
        let at = self.at..self.at + dash.len_utf8();
        let place = self.places.span(at.clone());
        let before = self.clean.rsplit('\n').next().unwrap_or_default().trim_end();
        let minus = match self.part {
            Part::Select => may_be_minus(self.clean.get(..self.ended).unwrap_or_default(), comment),
            Part::Insert | Part::Other => subtracts(before, comment),
        };
        if swallows(comment, before.trim().is_empty()) {
            let error = Diagnostic::error(format!("the comment behind `{dash}` has swallowed the rest of its line"));
            self.hide(error.at(place).help("put a line break after each comment, as the script once had"));
        } else if minus {
            let error = Diagnostic::error(format!("`{dash}` may be a minus here, or begin a comment")).at(place);
            self.hide(error.expected("`-` or `--`"));
        }
        self.dash.get_or_insert(at);
        self.blank(length);
    }
}

/// What of a statement is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Up to the `SELECT` of an INSERT.
    Insert,
    /// From there to the end of the statement: what is here is an expression, in which a dash may be a minus.
    Select,
    Other,
}

impl Part {
    fn behind(self, word: &str) -> Self {
        match self {
            Self::Other if word.eq_ignore_ascii_case("INSERT") => Self::Insert,
            Self::Insert if word.eq_ignore_ascii_case("SELECT") => Self::Select,
            part => part,
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Whether what stands between two backticks is a stretch of the script, because one is missing, and no name. An
/// apostrophe may be part of a name.
fn swallowed(name: &str) -> bool {
    let opens = |(at, _): (usize, &str)| {
        let before = name.get(..at).and_then(|before| before.chars().next_back());
        let after = name.get(at + 1..).and_then(|after| after.chars().next());
        !(before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric))
    };
    name.contains(['\n', '\r', ';']) || name.match_indices('\'').any(opens)
}

/// How long the first line of a text is, in bytes. A carriage return alone ends a comment in Flink too.
fn line(text: &str) -> usize {
    text.find(['\n', '\r']).unwrap_or(text.len())
}

/// Whether a dash stands where a minus could: behind a value or a name, and before a number, or before what ends the
/// statement.
fn subtracts(before: &str, comment: &str) -> bool {
    let value = before.ends_with(|c: char| c.is_alphanumeric() || "_$'`)]".contains(c));
    value && (comment.contains(';') || comment.trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

/// Words that are no operands, though they are words.
const NO_OPERANDS: [&str; 12] =
    ["SELECT", "DISTINCT", "FROM", "AS", "WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE"];

/// Words that stand behind an operand.
const BEHIND_OPERANDS: [&str; 19] = [
    "AND", "AS", "AT", "BETWEEN", "CASE", "ELSE", "END", "ESCAPE", "FROM", "IN", "IS", "LIKE", "NOT", "OR", "SIMILAR",
    "THEN", "UNION", "WHEN", "WHERE",
];

/// The same in an expression, where a dash may also stand before a name, or the number's line may be the next one.
/// `before`: all that stands before it.
fn may_be_minus(before: &str, comment: &str) -> bool {
    let comment_text = comment.trim();
    let word = before.rsplit(|c| !is_of_word(c)).next().unwrap_or_default();
    let keyword = || NO_OPERANDS.iter().any(|no| word.eq_ignore_ascii_case(no));
    let value = before.ends_with(|c: char| is_of_word(c) || "'`)]".contains(c)) && !keyword();
    let calculates = before.ends_with(|c: char| "(<>=+-*/%|".contains(c)) || (keyword() && !is_prelude(word));
    let number = comment.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if value || calculates {
        let operand = comment_text.starts_with(|c: char| is_of_word(c) || "'`(.".contains(c));
        return (comment_text.is_empty() || operand || comment.contains(';'))
            && (number || comment.contains(';') || !is_prose(comment_text));
    }
    number
}

/// Whether a word stands where a select list or a name begins, before which nothing is calculated.
fn is_prelude(word: &str) -> bool {
    ["SELECT", "DISTINCT", "FROM", "AS"].iter().any(|prelude| word.eq_ignore_ascii_case(prelude))
}

/// Whether a text begins with words as no expression does: an operand, a name for it, and another word.
fn is_prose(text: &str) -> bool {
    let is_word = |word: &&str| {
        let letters = word.trim_end_matches([',', '.', ':', '?', '!']);
        let word_of_prose = |c: char| c.is_alphabetic() || c == '-' || c == '\'';
        letters.starts_with(char::is_alphabetic)
            && letters.chars().all(word_of_prose)
            && !BEHIND_OPERANDS.iter().any(|behind| letters.eq_ignore_ascii_case(behind))
    };
    let sentence = |c: char| "\u{3001}\u{3002}\u{ff0c}\u{ff1a}\u{ff1b}".contains(c);
    text.split_whitespace().take_while(is_word).take(3).count() == 3
        || (text.contains(sentence) && text.starts_with(|c: char| c.is_alphabetic() && !c.is_ascii()))
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
            ("a -- b\rc // d\r\ne", "a     \rc     \r\ne"),
            ("a /* b\n c */ d", "a     \n      d"),
            ("'--' `/*` x", "'--' `/*` x"),
            ("'it''s -- x' y", "'it''s -- x' y"),
            ("'a \u{2014} b'", "'a \u{2014} b'"),
            ("a // it's; b\nc '//' `//` /* // */ d", "a           \nc '//' `//`          d"),
            ("SET a = http://b;\nc", "SET a = http://b;\nc"),
        ] {
            let (clean, told) = repaired(script);
            assert_eq!(clean.as_deref(), Some(expected), "{script:?}: {told}");
            assert_eq!(clean.unwrap().len(), script.len());
            assert_eq!(told, "", "{script:?}");
        }
    }

    #[test]
    fn a_dash_that_begins_a_comment_is_told_once() {
        for (script, expected) in [
            ("a, \u{2014} b\r\nc \u{2013} d", "a,      \r\nc      "),
            ("a \u{2013} it's\nc", "a         \nc"),
            ("\u{2014} 5 of them; all\nc", "                  \nc"),
            ("a; \u{2014} 5 of them; all\nc", "a;                   \nc"),
            ("INSERT SELECT a, \u{2014} id\nb", "INSERT SELECT a,       \nb"),
            ("INSERT SELECT a \u{2014} what this means (all)\n, b", "INSERT SELECT a                          \n, b"),
            ("INSERT SELECT \u{2014} id\na; b \u{2014} c\n", "INSERT SELECT       \na; b      \n"),
        ] {
            let (clean, told) = repaired(script);
            assert_eq!(clean.as_deref(), Some(expected), "{script:?}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
            assert!(
                told.contains(": warning: what follows `")
                    && told.contains("` on its line is read as a comment; a web page"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_dash_that_may_be_a_minus_is_refused() {
        for (script, place) in [
            ("SELECT a FROM s WHERE\n a > 5 \u{2013} 1 AND b = 'x'\nAND c", "2:8"),
            ("SELECT a FROM s WHERE b > f(a) \u{2013} b AND c = 'x';", "1:32"),
            ("SELECT `a` \u{2014} 1 AS a\nFROM s", "1:12"),
            ("SELECT a \u{2013} b AS a FROM s;", "1:10"),
            ("INSERT INTO p SELECT id, t \u{2014}\n id FROM g", "1:28"),
            ("INSERT INTO p SELECT a FROM g WHERE t > 3 AND id < t \u{2013} id\n AND t > 1", "1:54"),
            ("INSERT INTO p SELECT a FROM g WHERE c > 1 \u{2014} (a + b)\n AND a > 1", "1:43"),
            ("INSERT INTO p SELECT a FROM g WHERE id > \u{2013}5;", "1:42"),
            ("INSERT INTO p SELECT a FROM g WHERE id > \u{2013}5", "1:42"),
            ("INSERT INTO p SELECT a FROM g WHERE id > \u{2013} b\n AND c", "1:42"),
            ("INSERT INTO p SELECT a, \u{2013}1\n FROM g", "1:25"),
            ("INSERT INTO p SELECT a \u{2013} b total\n FROM g", "1:24"),
            ("INSERT INTO p SELECT a\n \u{2013} b\n FROM g", "2:2"),
            ("INSERT INTO p SELECT a \u{2013} `b`\n FROM g", "1:24"),
            ("INSERT INTO p SELECT a \u{2013} b AS c FROM g\n WHERE d", "1:24"),
        ] {
            let (clean, told) = repaired(script);
            assert!(clean.is_none(), "{script}");
            assert!(told.starts_with(&format!("a.sql:{place}: error: `")), "{told}");
            assert!(told.ends_with("` may be a minus here, or begin a comment; expected `-` or `--`\n"), "{told}");
        }
    }

    #[test]
    fn a_script_of_one_long_line_takes_no_longer_than_one_of_many() {
        let began = std::time::Instant::now();
        let script = format!("{}\u{2014} {}", "a 'b' / - ".repeat(80_000), "c ".repeat(80_000));
        assert!(repaired(&script).0.is_some());
        let script = format!("INSERT INTO t SELECT a {}", "\u{2014} a b c d\n".repeat(60_000));
        assert!(repaired(&script).0.is_some());
        // It was half a minute.
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
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
            ("`a\nb`", "a.sql:1:1: error: a backtick is missing: what begins here is no name"),
            ("`a, 'b' = `", "a.sql:1:1: error: a backtick is missing: what begins here is no name"),
        ] {
            let (clean, told) = repaired(script);
            assert!(clean.is_none() && told.contains(expected), "{script:?}: {told}");
        }
        let (clean, told) = repaired("x /*+ OPTIONS('a'='b') */ y");
        assert_eq!(clean.as_deref(), Some("x                         y"), "what else is wrong is told too");
        assert!(told.contains("a.sql:1:3: error: a hint (`/*+ ... */`) cannot be imported"), "{told}");
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
