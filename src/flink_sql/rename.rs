//! The query of a definition as a statement of Flink.

use std::collections::BTreeSet;

use sqlparser::tokenizer::{Token, Word};

use super::{
    reserved::is_reserved,
    script::{Depth, Piece, pieces},
    select::SOURCE,
    sql,
};
use crate::model::Schema;

/// A query that reads `table` instead of `source`. A column whose name is a word of SQL, which Flink takes only in
/// backticks, gets them; everything else stays as it was written.
pub(super) fn query_of(query: &str, table: &str, source: &Schema) -> String {
    // What was planned can be cut.
    let Ok(pieces) = pieces(query) else { return query.to_owned() };
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
        }
        depth.pass_round(&piece.token);
    }
    let mut text = query.to_owned();
    for (at, new) in edits.into_iter().rev() {
        text.replace_range(at, &new);
    }
    text
}

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

    fn needs_quotes(&self, columns: &BTreeSet<&str>) -> bool {
        let value = match self.after(0).map(|piece| &piece.token) {
            Some(Token::Word(Word { value, quote_style: None, .. })) if is_reserved(value) => value,
            _ => return false,
        };
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
        ] {
            assert_eq!(query_of(query, "t", &source), expected, "{query}");
        }
    }
}
