//! What came out of a case against what the test says.

use std::fmt::Write;

use similar::{ChangeTag, TextDiff};

use super::expected::Row;
use crate::{definition::Case, model::Stage};

/// What the pipeline made of the messages of a case.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What the sink would get.
    pub(super) rows: Vec<Row>,
    /// What is refused, in the order of the messages.
    pub(super) rejects: Vec<Refused>,
    /// Whether a refused message fails the pipeline.
    pub(super) fails: bool,
    pub(super) ignored: u64,
    pub(super) nulled_fields: u64,
    pub(super) unread: u64,
}

/// A body or a row that is refused.
#[derive(Debug)]
pub(super) struct Refused {
    /// The number of its message, from 1.
    pub(super) message: u64,
    pub(super) stage: Stage,
    pub(super) reason: String,
}

impl Outcome {
    /// The fault that ends the pipeline; `None`: none does.
    fn error(&self) -> Option<String> {
        let Refused { message, stage, reason } = self.rejects.first().filter(|_| self.fails)?;
        let stage = stage.label();
        Some(format!("message {message} cannot be processed: {reason} (stage: {stage}, on_error: fail)"))
    }
}

/// The test and what happened, as lines; never the same.
#[derive(Debug)]
pub(super) struct Difference {
    expected: String,
    actual: String,
}

/// `None`: what came out is what the test says.
pub(super) fn compare(case: &Case, expected: &[Row], outcome: &Outcome, columns: &[String]) -> Option<Difference> {
    let mut want = shown_rows(expected, columns);
    let mut got = shown_rows(&outcome.rows, columns);
    // Only one of the two needs to be said of a message that fails the pipeline.
    let by_error = case.error.as_ref().filter(|_| outcome.fails && case.rejects.is_empty());
    if let Some(error) = &case.error {
        let actual = outcome.error();
        let found = actual.as_ref().filter(|actual| actual.contains(&error.value));
        line(&mut want, format_args!("error: {}\n", found.unwrap_or(&error.value)));
        if let Some(actual) = actual {
            line(&mut got, format_args!("error: {actual}\n"));
        }
    }
    let unmentioned = if by_error.is_some() { 1 } else { 0 };
    for (at, reject) in case.rejects.iter().enumerate() {
        let actual = outcome.rejects.get(at);
        let found = actual.filter(|found| found.message == reject.message && found.reason.contains(&reject.reason));
        let reason = found.map_or(&reject.reason, |found| &found.reason);
        line(&mut want, format_args!("reject of message {}: {reason}\n", reject.message));
    }
    for Refused { message, reason, .. } in outcome.rejects.iter().skip(unmentioned) {
        line(&mut got, format_args!("reject of message {message}: {reason}\n"));
    }
    counts(&mut want, [case.ignored, case.nulled_fields, case.unread]);
    counts(&mut got, [outcome.ignored, outcome.nulled_fields, outcome.unread]);
    (want != got).then_some(Difference { expected: want, actual: got })
}

fn shown_rows(rows: &[Row], columns: &[String]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        line(&mut text, format_args!("row {}\n", number + 1));
        for (column, value) in columns.iter().zip(row) {
            line(&mut text, format_args!("  {column}: {value}\n"));
        }
    }
    text
}

fn counts(text: &mut String, counts: [u64; 3]) {
    for (name, count) in ["ignored", "nulled_fields", "unread"].into_iter().zip(counts) {
        if count > 0 {
            line(text, format_args!("{name}: {count}\n"));
        }
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(line);
}

impl Difference {
    /// Lines that differ and those around them: `-` is what the test says, `+` what came out.
    pub(super) fn shown(&self, coloured: bool) -> String {
        const AROUND: usize = 3;
        let diff = TextDiff::from_lines(&self.expected, &self.actual);
        let mut text = String::from("        - expected, + came out\n");
        for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
            if at > 0 {
                text.push_str("        ...\n");
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let (sign, colour) = match change.tag() {
                    ChangeTag::Delete => ('-', "\x1b[31m"),
                    ChangeTag::Insert => ('+', "\x1b[32m"),
                    ChangeTag::Equal => (' ', ""),
                };
                let value = change.value().trim_end_matches('\n');
                let (colour, end) = if coloured && !colour.is_empty() { (colour, "\x1b[0m") } else { ("", "") };
                line(&mut text, format_args!("      {colour}{sign} {value}{end}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{ExpectedReject, Input, Located, Span};

    fn case(error: Option<&str>, rejects: &[(u64, &str)]) -> Case {
        let reject =
            |(message, reason): &(u64, &str)| ExpectedReject { message: *message, reason: (*reason).to_owned() };
        Case {
            name: "a".to_owned(),
            place: Span::default(),
            input: Input::Messages(Vec::new(), Span::default()),
            rows: Vec::new(),
            rejects: rejects.iter().map(reject).collect(),
            error: error.map(|error| Located::new(error.to_owned(), Span::default())),
            ignored: 0,
            nulled_fields: 0,
            unread: 0,
        }
    }

    fn rejected(fails: bool, rejects: &[(u64, &str)]) -> Outcome {
        let rejects = rejects
            .iter()
            .map(|(message, why)| Refused { message: *message, stage: Stage::Decode, reason: (*why).to_owned() })
            .collect();
        Outcome { rejects, fails, ..Outcome::default() }
    }

    #[test]
    fn the_diff_shows_only_what_differs_and_what_is_around_it() {
        let columns: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let rows =
            |b: &str| vec![["1", b, "3"].map(str::to_owned).to_vec(), ["4", "5", "6"].map(str::to_owned).to_vec()];
        let outcome = Outcome { rows: rows("2"), ..Outcome::default() };
        assert!(compare(&case(None, &[]), &rows("2"), &outcome, &columns).is_none());
        let shown = compare(&case(None, &[]), &rows("x"), &outcome, &columns).unwrap().shown(false);
        let expected = "        - expected, + came out\n        row 1\n          a: 1\n      -   b: x\n      +   b: 2\n          c: 3\n        row 2\n          a: 4\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_refused_message_that_the_test_does_not_speak_of_is_a_difference() {
        let two = [(1, "column a: bad"), (3, "column b: worse")];
        let same = |case: &Case, outcome: &Outcome| compare(case, &[], outcome, &[]).is_none();
        assert!(same(&case(None, &[(1, "bad"), (3, "worse")]), &rejected(false, &two)));
        for wrong in [&[][..], &[(1, "bad")], &[(1, "bad"), (2, "worse")], &[(1, "bad"), (3, "best")]] {
            assert!(!same(&case(None, wrong), &rejected(false, &two)), "{wrong:?}");
        }
        assert!(same(&case(Some("message 1 cannot be processed: column a"), &[]), &rejected(true, &two[..1])));
        assert!(!same(&case(Some("message 1"), &[]), &rejected(true, &two)), "the second one");
        assert!(!same(&case(Some("message 1"), &[]), &rejected(false, &two[..1])), "it is skipped, and fails nothing");
        assert!(!same(&case(Some("message 1"), &[]), &rejected(true, &[])));
    }
}
