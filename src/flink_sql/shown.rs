//! What of a script is shown where something is wrong beside it.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use super::{
    script::{Piece, Script, is_mark, is_text, is_whole},
    statements::{Statements, is_open, may_be_rest},
};
use crate::{
    connectors::REGISTRY,
    definition::{Report, Span},
};

/// Says what of the script may be shown: all but texts that may be secrets.
pub(super) fn show(script: &Script<'_>, statements: &Statements, report: &mut Report) {
    // A line and column are not asked for.
    let bytes = |at: &Range<usize>| Span { start: at.start, end: at.end, ..Span::default() };
    let ends = script.pieces.iter().filter(|piece| piece.token == Token::SemiColon);
    ends.for_each(|piece| report.show(bytes(&piece.at)));
    let (mut torn, mut open) = (false, false);
    for pieces in script.statements().into_iter().filter_map(|range| script.pieces.get(range)) {
        let begins = |word| pieces.first().is_some_and(|piece: &Piece| piece.is(word));
        let options = pieces.windows(2).position(|pair| match pair {
            [with, next] => next.token == Token::Eq || (with.is("WITH") && !next.is("LOCAL") && !next.is("TIME")),
            _ => false,
        });
        // Behind it a value may stand that is not in quotes.
        let end = match () {
            () if torn || (open && may_be_rest(pieces)) => 0,
            () if may_be_rest(pieces) => 1,
            () if begins("CREATE") || begins("LOAD") => options.map_or(pieces.len(), |with| with + 1),
            () if begins("SET") || begins("RESET") => 1,
            () => pieces.len(),
        };
        let (all, marks) = pieces.split_at_checked(end).unwrap_or((pieces, &[]));
        let (all, marks) =
            (all.iter().filter(|piece| !is_text(&piece.token)), marks.iter().filter(|piece| is_mark(&piece.token)));
        all.chain(marks).for_each(|piece| report.show(bytes(&piece.at)));
        torn = !is_whole(pieces);
        open = is_open(pieces, open);
    }
    for insert in &statements.inserts {
        let pieces = script.pieces.get(insert.select.pieces.clone()).unwrap_or_default();
        pieces.iter().for_each(|piece| report.show(bytes(&piece.at)));
    }
    let open = ["connector", "format"];
    for table in &statements.tables {
        let connector = table.option("connector").and_then(|option| REGISTRY.connector(&option.value.value));
        let tables = || connector.into_iter().flat_map(|found| [found.source.as_ref(), found.sink.as_ref()]).flatten();
        for option in &table.options {
            let key = option.key.value.as_str();
            let specs = tables().filter_map(|tables| tables.options.find(key)).collect::<Vec<_>>();
            let harmless = !specs.is_empty() && specs.iter().all(|spec| !spec.secret);
            if harmless || open.contains(&key) {
                report.show(option.value.span);
            }
        }
    }
}
