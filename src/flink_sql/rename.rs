//! The query of a definition as a statement of Flink.

use std::collections::BTreeSet;

use sqlparser::tokenizer::{Token, Word};

use super::{
    reserved::is_reserved,
    script::{Depth, Piece, is_text, pieces},
    select::SOURCE,
    sql,
};
use crate::model::Schema;

/// A query that reads `table` instead of `source`. A name that is a word of SQL, which Flink takes only in backticks,
/// gets them, and a dollar sign in a text that begins no reference becomes an escape where it seems to; everything else
/// stays as it was written. `written`: as the definition has it, with `$$` for a dollar sign.
pub(super) fn query_of(written: &str, table: &str, source: &Schema) -> String {
    let (query, dollars) = unescaped(written);
    // What was planned can be cut.
    let Ok(pieces) = pieces(&query) else { return query };
    let columns: BTreeSet<&str> = source.columns.iter().map(|column| column.name.as_str()).collect();
    let mut edits = Vec::new();
    let mut depth = Depth::default();
    for (index, piece) in pieces.iter().enumerate() {
        let around = Around { pieces: &pieces, index, depth };
        if around.is_source() {
            let name =
                if around.is_named_so() { format!("{} AS {SOURCE}", sql::name(table)) } else { sql::name(table) };
            edits.push((piece.at.clone(), name));
        } else if around.needs_quotes(&columns) {
            edits.push((piece.at.clone(), sql::name(piece.name().unwrap_or_default())));
        } else if is_text(&piece.token) {
            let first = dollars.partition_point(|dollar| *dollar < piece.at.start);
            let count = dollars.partition_point(|dollar| *dollar < piece.at.end) - first;
            let inside = dollars.get(first..first + count).unwrap_or_default();
            if !inside.is_empty() {
                edits.push((piece.at.clone(), with_escapes(&query, piece, inside)));
            }
        }
        depth.pass_expression(&piece.token);
    }
    let mut text = query.clone();
    for (at, new) in edits.into_iter().rev() {
        text.replace_range(at, &new);
    }
    text
}

/// A query with `$` for every `$$`, and where such a dollar sign now seems to begin a reference.
fn unescaped(written: &str) -> (String, Vec<usize>) {
    let (mut query, mut dollars, mut rest) = (String::with_capacity(written.len()), Vec::new(), written);
    while let Some(at) = rest.find("$$") {
        let (before, from) = rest.split_at(at);
        query.push_str(before);
        rest = from.get(2..).unwrap_or_default();
        if rest.starts_with('{') {
            dollars.push(query.len());
        }
        query.push('$');
    }
    query.push_str(rest);
    (query, dollars)
}

/// A text of the query as `U&'...'`, in which these dollar signs are escapes.
fn with_escapes(query: &str, piece: &Piece, dollars: &[usize]) -> String {
    let has_escapes = matches!(piece.token, Token::UnicodeStringLiteral(_));
    let start = piece.at.start + if has_escapes { "U&".len() } else { 0 };
    let mut text = String::from("U&");
    for (at, c) in query.get(start..piece.at.end).unwrap_or_default().char_indices() {
        match c {
            '$' if dollars.binary_search(&(start + at)).is_ok() => text.push_str("\\0024"),
            '\\' if !has_escapes => text.push_str("\\\\"),
            c => text.push(c),
        }
    }
    text
}

/// Words behind which an expression goes on, so that what follows them is no name for it.
const GO_ON: [&str; 28] = [
    "ALL",
    "AND",
    "AS",
    "ASYMMETRIC",
    "BETWEEN",
    "BY",
    "CASE",
    "DISTINCT",
    "ELSE",
    "ESCAPE",
    "FROM",
    "ILIKE",
    "IN",
    "INTERVAL",
    "IS",
    "JSON",
    "LIKE",
    "NOT",
    "OR",
    "OVERLAPS",
    "RLIKE",
    "SELECT",
    "SIMILAR",
    "SYMMETRIC",
    "THEN",
    "TO",
    "WHEN",
    "WHERE",
];

/// A piece with what stands around it.
struct Around<'a> {
    pieces: &'a [Piece],
    index: usize,
    depth: Depth,
}

impl Around<'_> {
    fn before(&self, by: usize) -> Option<&Piece> {
        self.index.checked_sub(by).and_then(|index| self.pieces.get(index))
    }

    fn after(&self, by: usize) -> Option<&Piece> {
        self.pieces.get(self.index + by)
    }

    /// Whether it is the table's name.
    fn is_source(&self) -> bool {
        let from = self.before(1).is_some_and(|piece| piece.is("FROM"));
        let operator = self.before(2).is_some_and(|piece| piece.is("DISTINCT"));
        self.depth.is_zero() && from && !operator && self.after(0).and_then(Piece::name) == Some(SOURCE)
    }

    /// Whether columns are called by the table's name, and it has no other.
    fn is_named_so(&self) -> bool {
        let named = |pieces: &[Piece]| matches!(pieces, [name, dot] if name.name() == Some(SOURCE) && dot.token == Token::Period);
        let has_alias = self.after(1).is_some_and(|piece| piece.name().is_some() && !piece.is("WHERE"));
        !has_alias && self.pieces.windows(2).any(named)
    }

    /// Whether it names, without AS, what stands before it: a part of the select list or the table.
    fn is_alias(&self, word: &str) -> bool {
        if !self.depth.is_zero() || word.eq_ignore_ascii_case("END") {
            return false;
        }
        let table = Around { index: self.index.saturating_sub(1), ..*self };
        if table.is_source() {
            return !word.eq_ignore_ascii_case("WHERE") && !word.eq_ignore_ascii_case("AS");
        }
        let ends = self.after(1).is_some_and(|piece| piece.token == Token::Comma || piece.is("FROM"));
        // `INTERVAL '1' DAY`
        let unit = self.before(2).is_some_and(|piece| piece.is("INTERVAL"));
        let behind = self.before(1).is_some_and(|piece| match &piece.token {
            Token::Word(_) => !GO_ON.iter().any(|word| piece.is(word)),
            Token::Number(..) | Token::RParen | Token::RBracket => true,
            token => is_text(token),
        });
        ends && behind && !unit
    }

    fn needs_quotes(&self, columns: &BTreeSet<&str>) -> bool {
        let value = match self.after(0).map(|piece| &piece.token) {
            Some(Token::Word(Word { value, quote_style: None, .. })) if is_reserved(value) => value,
            _ => return false,
        };
        let is_dot = |piece: Option<&Piece>| piece.is_some_and(|piece| piece.token == Token::Period);
        if is_dot(self.before(1)) || is_dot(self.after(1)) || self.is_alias(value) {
            return true;
        }
        let after_as = self.before(1).is_some_and(|piece| piece.is("AS"));
        // What an expression is called; inside of CAST it is a type.
        if after_as {
            return self.depth.is_zero();
        }
        let a_literal =
            |piece: Option<&Piece>| piece.is_some_and(|piece| matches!(piece.token, Token::SingleQuotedString(_)));
        let called = self.after(1).is_some_and(|piece| piece.token == Token::LParen);
        let of_extract = !self.depth.is_zero() && self.after(1).is_some_and(|piece| piece.is("FROM"));
        columns.contains(value.as_str())
            && !called
            && !a_literal(self.after(1))
            && !a_literal(self.before(1))
            && !of_extract
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Column;

    #[test]
    fn the_table_takes_the_place_of_source_and_reserved_names_get_backticks() {
        let columns = ["timestamp", "id", "DATE", "DAY"].map(|name| Column::parse(name, "STRING").unwrap());
        let source = Schema { columns: columns.into() };
        for (query, expected) in [
            ("SELECT * FROM source", "SELECT * FROM `t`"),
            ("SELECT id\n  FROM `source` -- x\nWHERE id > 1", "SELECT id\n  FROM `t` -- x\nWHERE id > 1"),
            ("SELECT s.id FROM source s", "SELECT s.id FROM `t` s"),
            ("SELECT source.id FROM source", "SELECT source.id FROM `t` AS source"),
            ("SELECT timestamp FROM source", "SELECT `timestamp` FROM `t`"),
            ("SELECT CAST(id AS DATE) FROM source", "SELECT CAST(id AS DATE) FROM `t`"),
            ("SELECT DATE, DATE '2024-01-01' FROM source", "SELECT `DATE`, DATE '2024-01-01' FROM `t`"),
            ("SELECT INTERVAL '1' DAY FROM source", "SELECT INTERVAL '1' DAY FROM `t`"),
            ("SELECT EXTRACT(DAY FROM id) FROM source", "SELECT EXTRACT(DAY FROM id) FROM `t`"),
            ("SELECT id AS value FROM source", "SELECT id AS `value` FROM `t`"),
            ("SELECT id IS DISTINCT FROM source FROM source", "SELECT id IS DISTINCT FROM source FROM `t`"),
            ("SELECT ' FROM source' FROM source", "SELECT ' FROM source' FROM `t`"),
            ("SELECT r.timestamp, r.value.day FROM source", "SELECT r.`timestamp`, r.`value`.`day` FROM `t`"),
            (
                "SELECT day.id FROM source AS day WHERE day.id > 1",
                "SELECT `day`.id FROM `t` AS `day` WHERE `day`.id > 1",
            ),
            ("SELECT day.id FROM source day", "SELECT `day`.id FROM `t` `day`"),
            ("SELECT id value, id + 1 year, f(id) FROM source", "SELECT id `value`, id + 1 `year`, f(id) FROM `t`"),
            ("SELECT f(id) value, a[1] day FROM source", "SELECT f(id) `value`, a[1] `day` FROM `t`"),
            (
                "SELECT CASE WHEN id THEN 1 END, CASE WHEN id THEN 1 END value FROM source",
                "SELECT CASE WHEN id THEN 1 END, CASE WHEN id THEN 1 END `value` FROM `t`",
            ),
            (
                "SELECT id IS NULL, id IS NOT TRUE, id IS JSON VALUE, INTERVAL '1' DAY, NULL, CURRENT_DATE FROM source",
                "SELECT id IS NULL, id IS NOT TRUE, id IS JSON VALUE, INTERVAL '1' DAY, NULL, CURRENT_DATE FROM `t`",
            ),
            (
                "SELECT id + DAY, INTERVAL '1' DAY TO HOUR FROM source",
                "SELECT id + `DAY`, INTERVAL '1' DAY TO HOUR FROM `t`",
            ),
            ("SELECT '$${A}$$', '${A}', '$$' FROM source", "SELECT U&'\\0024{A}$', '${A}', '$' FROM `t`"),
            ("SELECT 'it''s\\$${A}${B}' FROM source", "SELECT U&'it''s\\\\\\0024{A}${B}' FROM `t`"),
            ("SELECT U&'\\0041$${A}' FROM source", "SELECT U&'\\0041\\0024{A}' FROM `t`"),
        ] {
            assert_eq!(query_of(query, "t", &source), expected, "{query}");
        }
    }
}
