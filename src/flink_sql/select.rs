//! The `SELECT` of an INSERT: what it reads, and its text as the `query` of a definition.
//!
//! What only a planner can know (columns, types, functions) is the planner's to say. Here it is seen that there is one
//! table and perhaps a predicate, and whatever else there is, is named.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use super::{
    reserved::is_reserved,
    script::{Cursor, Depth, Path, Piece, Read, Script},
    table::refusal,
};
use crate::definition::Report;

/// Read, with ranges of the script's pieces.
#[derive(Debug, Clone)]
pub(super) struct Select {
    /// The table it reads.
    pub from: Path,
    /// What the table is called in it.
    pub alias: Option<String>,
    pub items: Vec<Item>,
    /// The pieces of all of it.
    pub pieces: Range<usize>,
    /// The piece `FROM`.
    pub from_piece: usize,
    /// The piece `ALL` behind SELECT, which says nothing.
    all: Option<usize>,
    /// Whether there is a predicate.
    pub has_where: bool,
}

/// A part of the select list.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Its bytes in the script.
    pub at: Range<usize>,
    pub kind: ItemKind,
    /// The name in front of the column or the star, as in `t.id`.
    pub of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// `*` or `t.*`
    Everything,
    /// A column as it is, whatever it is called afterwards. What is in front of it is the table's name, if anything.
    Column(String),
    Other,
}

/// What Flink takes for a value, also where a column has that name.
const VALUES: [&str; 18] = [
    "CURRENT_CATALOG",
    "CURRENT_DATE",
    "CURRENT_DEFAULT_TRANSFORM_GROUP",
    "CURRENT_PATH",
    "CURRENT_ROLE",
    "CURRENT_SCHEMA",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "DEFAULT",
    "FALSE",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NULL",
    "SESSION_USER",
    "SYSTEM_USER",
    "TRUE",
    "USER",
];

/// What may not stand anywhere in a query behind its own SELECT, and what it is called.
const NOWHERE: [(&str, &str); 2] = [("SELECT", "a second SELECT"), ("OVER", "a window (OVER)")];

/// What joins two SELECTs.
const SETS: [&str; 4] = ["UNION", "INTERSECT", "EXCEPT", "MINUS"];

/// What may not stand behind the table or the predicate.
const BEHIND: [(&[&str], &str); 22] = [
    (&["GROUP", "BY"], "GROUP BY"),
    (&["HAVING"], "HAVING"),
    (&["ORDER", "BY"], "ORDER BY"),
    (&["LIMIT"], "LIMIT"),
    (&["OFFSET"], "OFFSET"),
    (&["FETCH"], "FETCH"),
    (&["UNION"], "UNION"),
    (&["INTERSECT"], "INTERSECT"),
    (&["EXCEPT"], "EXCEPT"),
    (&["MINUS"], "MINUS"),
    (&["WINDOW"], "WINDOW"),
    (&["QUALIFY"], "QUALIFY"),
    (&["JOIN"], "a join"),
    (&["INNER"], "a join"),
    (&["LEFT"], "a join"),
    (&["RIGHT"], "a join"),
    (&["FULL"], "a join"),
    (&["CROSS"], "a join"),
    (&["NATURAL"], "a join"),
    (&["FOR", "SYSTEM_TIME"], "FOR SYSTEM_TIME AS OF"),
    (&["MATCH_RECOGNIZE"], "MATCH_RECOGNIZE"),
    (&["TABLESAMPLE"], "TABLESAMPLE"),
];

/// Most tables of one SELECT that are looked for where it cannot be read.
const MOST_TABLES: usize = 16;

/// The tables that a SELECT reads, as far as that can be seen where it cannot be read.
pub(super) fn tables_read(cursor: &Cursor<'_>) -> Vec<Path> {
    let (mut at, mut depth, mut paths) = (cursor.clone(), Depth::default(), Vec::new());
    while let Some(piece) = at.take().filter(|_| paths.len() < MOST_TABLES) {
        depth.pass_expression(&piece.token);
        if depth.is_zero() && (piece.is("FROM") || piece.is("JOIN")) {
            // DISTINCT FROM is an operator, whose operand is no table, and is found to be none.
            paths.extend(at.clone().path(""));
        }
    }
    paths
}

/// Reads the rest of an INSERT. `None`: it cannot be imported; everything that is wrong with it has been reported.
pub(super) fn read_select(cursor: &mut Cursor<'_>, report: &mut Report) -> Option<Select> {
    let before = report.errors();
    match read(cursor, report) {
        Ok(select) => Some(select).filter(|_| report.errors() == before),
        Err(error) => {
            report.push(*error);
            None
        }
    }
}

fn read(cursor: &mut Cursor<'_>, report: &mut Report) -> Read<Select> {
    for (word, what) in
        [("VALUES", "INSERT ... VALUES"), ("WITH", "WITH (a common table expression)"), ("TABLE", "TABLE")]
    {
        if cursor.is(&[word]) {
            return Err(Box::new(refusal(what).at(cursor.here())));
        }
    }
    let first = cursor.next;
    cursor.words(&["SELECT"])?;
    for piece in first + 1..cursor.end {
        let at = Cursor { next: piece, ..cursor.clone() };
        let called =
            at.ahead(1).is_some_and(|piece| matches!(piece.token, Token::LParen | Token::Word(_) | Token::Mul));
        let found = NOWHERE.iter().find(|(word, _)| at.is(&[word]) && called);
        if found.is_some() && is_told(cursor.script.pieces.get(first..piece).unwrap_or_default()) {
            break;
        }
        found.into_iter().for_each(|(_, what)| report.push(refusal(what).at(at.here())));
    }
    if cursor.is(&["DISTINCT"]) {
        report.push(refusal("SELECT DISTINCT").at(cursor.here()));
        cursor.next += 1;
    }
    let all = cursor.next;
    let all = cursor.takes(&["ALL"]).then_some(all);
    let mut items = items(cursor)?;
    let from_piece = cursor.next;
    if !cursor.takes(&["FROM"]) {
        return Err(Box::new(refusal("a SELECT without FROM").at(cursor.here())));
    }
    let (from, alias) = from(cursor)?;
    let called = alias.as_deref().unwrap_or_else(|| from.last());
    for item in items.iter_mut().filter(|item| item.of.as_deref().is_some_and(|of| of != called)) {
        if item.kind == ItemKind::Everything {
            let everything = format!("`{}.*`", item.of.as_deref().unwrap_or_default());
            let error = refusal(&everything).at(cursor.script.places.span(item.at.clone()));
            report.push(error.expected(format!("`{called}.*`")));
        }
        // The field of a column, or nothing at all: the planner knows.
        item.kind = ItemKind::Other;
    }
    let has_where = cursor.takes(&["WHERE"]);
    rest(cursor, has_where, report)?;
    Ok(Select { from, alias, items, pieces: first..cursor.end, from_piece, all, has_where })
}

/// Whether what stands before a second SELECT is told itself.
fn is_told(before: &[Piece]) -> bool {
    let is = |piece: &Piece, words: &[&str]| words.iter().any(|word| piece.is(word));
    match before {
        [.., from, open] if open.token == Token::LParen => is(from, &["FROM", "JOIN"]),
        [.., set, quantity] if is(quantity, &["ALL", "DISTINCT"]) => is(set, &SETS),
        [.., set] => is(set, &SETS),
        [] => false,
    }
}

/// The select list; `FROM`, or the end, is next afterwards.
fn items(cursor: &mut Cursor<'_>) -> Read<Vec<Item>> {
    let (mut items, mut depth, mut first) = (Vec::new(), Depth::default(), cursor.next);
    loop {
        let piece = cursor.peek();
        // `IS DISTINCT FROM` is an operator.
        let operator = |cursor: &Cursor<'_>| {
            let before = cursor.next.checked_sub(1).and_then(|before| cursor.script.pieces.get(before));
            before.is_some_and(|piece| piece.is("DISTINCT"))
        };
        let end = piece.is_none_or(|piece| depth.is_zero() && piece.is("FROM") && !operator(cursor));
        if end || piece.is_some_and(|piece| depth.is_zero() && piece.token == Token::Comma) {
            if cursor.next == first {
                return Err(cursor.unexpected("a column or an expression"));
            }
            let (kind, of) = kind(cursor, first..cursor.next);
            items.push(Item { at: cursor.since(first), kind, of });
            if end {
                return Ok(items);
            }
            first = cursor.next + 1;
        }
        piece.iter().for_each(|piece| depth.pass_expression(&piece.token));
        cursor.next += 1;
    }
}

/// What the pieces of an item make of it, and the name in front of it.
fn kind(cursor: &Cursor<'_>, pieces: Range<usize>) -> (ItemKind, Option<String>) {
    const OTHER: (ItemKind, Option<String>) = (ItemKind::Other, None);
    let mut item = Cursor { next: pieces.start, end: pieces.end, ..cursor.clone() };
    let Ok(first) = item.name("") else {
        let star = item.peek().is_some_and(|piece| piece.token == Token::Mul) && pieces.len() == 1;
        return if star { (ItemKind::Everything, None) } else { OTHER };
    };
    let (mut column, mut of) = (first, None);
    if item.takes_token(&Token::Period) {
        of = first.name().map(str::to_owned);
        if item.takes_token(&Token::Mul) {
            return if item.peek().is_none() { (ItemKind::Everything, of) } else { OTHER };
        }
        let Ok(second) = item.name("") else { return OTHER };
        column = second;
    } else if VALUES.iter().any(|word| first.is(word)) {
        return OTHER;
    }
    item.takes(&["AS"]);
    let _alias = item.name("");
    match column.name().filter(|_| item.peek().is_none()) {
        Some(name) => (ItemKind::Column(name.to_owned()), of),
        None => OTHER,
    }
}

/// The table, and what it is called.
fn from(cursor: &mut Cursor<'_>) -> Read<(Path, Option<String>)> {
    if cursor.peek().is_some_and(|piece| piece.token == Token::LParen) {
        return Err(Box::new(refusal("a subquery").at(cursor.here())));
    }
    for (word, what) in [("TABLE", "a table function"), ("LATERAL", "LATERAL"), ("UNNEST", "UNNEST")] {
        if cursor.is(&[word]) && cursor.ahead(1).is_some_and(|piece| !piece.is("WHERE")) {
            return Err(Box::new(refusal(what).at(cursor.here())));
        }
    }
    let path = cursor.path("the name of a table")?;
    let ends = cursor.is(&["WHERE"]) || BEHIND.iter().any(|(words, _)| cursor.is(words));
    let named = cursor.takes(&["AS"]);
    let alias = match named || (!ends && cursor.peek().is_some_and(|piece| piece.name().is_some())) {
        true => cursor.name("a name for the table")?.name().map(str::to_owned),
        false => None,
    };
    Ok((path, alias))
}

/// What stands behind the table: nothing, or a predicate.
fn rest(cursor: &mut Cursor<'_>, has_where: bool, report: &mut Report) -> Read<()> {
    if has_where && cursor.peek().is_none() {
        return Err(cursor.unexpected("a predicate"));
    }
    let mut depth = Depth::default();
    while let Some(piece) = cursor.peek() {
        let called = cursor.ahead(1).is_some_and(|piece| piece.token == Token::LParen);
        // LEFT and RIGHT are functions too.
        let behind = BEHIND.iter().find(|(words, _)| cursor.is(words) && !(has_where && words.len() == 1 && called));
        if let Some((_, what)) = behind.filter(|_| depth.is_zero()) {
            report.push(refusal(what).at(cursor.here()));
            // Of a join or a UNION nothing more needs to be said.
            return Ok(());
        }
        if depth.is_zero() && piece.token == Token::Comma {
            report.push(refusal("a join (a second table)").at(cursor.here()));
            return Ok(());
        }
        if !has_where {
            return Err(cursor.unexpected("`WHERE` or the end of the statement"));
        }
        depth.pass_expression(&piece.token);
        cursor.next += 1;
    }
    Ok(())
}

/// The name that stands for the source in a query.
pub(super) const SOURCE: &str = "source";

/// A query's text, and where its bytes stand in the script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct QueryText {
    pub text: String,
    origins: Vec<Origin>,
}

/// From where in the text on bytes come from the script, and from where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    at: usize,
    script: usize,
    /// Whether they stand in the script; else they are there for what stands at that place.
    written: bool,
}

impl QueryText {
    /// Adds what stands at a place of the script.
    fn push(&mut self, text: &str, script: usize) {
        self.origins.push(Origin { at: self.text.len(), script, written: true });
        self.text.push_str(text);
    }

    /// Adds what is there for something at a place of the script.
    fn put(&mut self, text: &str, script: usize) {
        self.origins.push(Origin { at: self.text.len(), script, written: false });
        self.text.push_str(text);
    }

    /// Where a byte of the text stands in the script.
    pub(super) fn origin(&self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        let index = self.origins.partition_point(|origin| origin.at <= byte);
        let Some(origin) = index.checked_sub(1).and_then(|index| self.origins.get(index)) else { return byte };
        origin.script + if origin.written { byte - origin.at } else { 0 }
    }
}

impl Select {
    /// Its text with `source` in the place of the table. `items`: parts of the select list to take in its place, each
    /// from the script or, where there is no place, as it is.
    pub(super) fn text(&self, script: &Script<'_>, items: Option<&[Result<Range<usize>, String>]>) -> QueryText {
        let pieces = |range: Range<usize>| script.pieces.get(range).unwrap_or_default();
        let start = pieces(self.pieces.clone()).first().map_or(0, |piece| piece.at.start);
        let end = pieces(self.pieces.clone()).last().map_or(0, |piece| piece.at.end);
        let from = pieces(self.from_piece..self.from_piece + 1).first().map_or(end, |piece| piece.at.start);
        let mut text = QueryText::default();
        match items {
            None => match self.all.and_then(|all| script.pieces.get(all)) {
                None => lines(&mut text, script, start..self.from.at.start),
                Some(all) => {
                    lines(&mut text, script, start..start + "SELECT".len());
                    lines(&mut text, script, all.at.end..self.from.at.start);
                }
            },
            Some(items) => {
                text.put("SELECT ", start);
                for (number, item) in items.iter().enumerate() {
                    text.put(if number == 0 { "" } else { ", " }, start);
                    match item {
                        Ok(bytes) => lines(&mut text, script, bytes.clone()),
                        Err(written) => text.put(written, start),
                    }
                }
                text.put("\n", from);
                lines(&mut text, script, from..self.from.at.start);
            }
        }
        text.put(SOURCE, self.from.at.start);
        if self.alias.is_none() && self.is_qualified(script) {
            text.put(&format!(" AS {}", quoted(self.from.last())), self.from.at.start);
        }
        lines(&mut text, script, self.from.at.end..end);
        text
    }

    /// Whether columns are called by the name of the table, as in `t.id`.
    fn is_qualified(&self, script: &Script<'_>) -> bool {
        let pieces = script.pieces.get(self.pieces.clone()).unwrap_or_default();
        let named = |pieces: &[Piece]| {
            matches!(pieces, [name, dot] if name.name() == Some(self.from.last()) && dot.token == Token::Period)
                && pieces.first().is_some_and(|name| !self.from.at.contains(&name.at.start))
        };
        pieces.windows(2).any(named)
    }
}

/// Adds a stretch of the script without the blanks at the ends of lines and without lines that are blank; what stands
/// in texts and in names stays as it is.
fn lines(text: &mut QueryText, script: &Script<'_>, bytes: Range<usize>) {
    let written = script.text(bytes.clone());
    let mut at = bytes.start;
    for line in written.split_inclusive('\n') {
        let kept = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        let ended = line.ends_with('\n') && !script.is_inside(at + line.len() - 1);
        if !ended {
            text.push(line, at);
        } else if !kept.trim_start().is_empty() {
            text.push(kept, at);
            text.push("\n", at + kept.len());
        } else if !text.text.ends_with('\n') && !text.text.is_empty() {
            // What stands before it on the line came from elsewhere.
            text.push("\n", at + kept.len());
        }
        at += line.len();
    }
}

/// A name in backticks, unless it needs none.
fn quoted(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain && !is_reserved(name) { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Style;

    fn read(text: &str) -> (Script<'_>, Select) {
        let mut report = Report::new("a.sql", text);
        let script = Script::read(text, &mut report).unwrap();
        let select = read_select(&mut script.cursor(0..script.pieces.len()), &mut report);
        let told = report.render(Style::Line);
        (script, select.unwrap_or_else(|| panic!("{told}")))
    }

    #[test]
    fn a_query_keeps_its_text_and_reads_source() {
        for (text, expected) in [
            ("SELECT a FROM t WHERE b > 1", "SELECT a FROM source WHERE b > 1"),
            (
                "SELECT a -- first\n     , b /* second\n */ FROM `t`\n\nWHERE  b",
                "SELECT a\n     , b\n    FROM source\nWHERE  b",
            ),
            ("SELECT a FROM c.d.t AS x WHERE x.a > 1", "SELECT a FROM source AS x WHERE x.a > 1"),
            ("SELECT t.a FROM t WHERE t.a > 1", "SELECT t.a FROM source AS t WHERE t.a > 1"),
            ("SELECT `my t`.a FROM `my t`", "SELECT `my t`.a FROM source AS `my t`"),
            ("SELECT `where`.a FROM `where`", "SELECT `where`.a FROM source AS `where`"),
            ("SELECT ' FROM t ' FROM t", "SELECT ' FROM t ' FROM source"),
            (
                "SELECT TRIM(BOTH ' ' FROM a), a IS DISTINCT FROM b FROM t",
                "SELECT TRIM(BOTH ' ' FROM a), a IS DISTINCT FROM b FROM source",
            ),
            ("SELECT a\r\nFROM t\r\nWHERE LEFT(b, 1) = 'x'", "SELECT a\nFROM source\nWHERE LEFT(b, 1) = 'x'"),
            (
                "SELECT 'x  \n\n\t\n y ',  \n\n 'a \r\n\nb' FROM t WHERE c = '\n \n'",
                "SELECT 'x  \n\n\t\n y ',\n 'a \r\n\nb' FROM source WHERE c = '\n \n'",
            ),
            ("SELECT ALL a, b FROM t", "SELECT a, b FROM source"),
            ("SELECT ALL\n a FROM t", "SELECT\n a FROM source"),
            (
                "SELECT ARRAY[a, b], m['x, y'][1], c FROM t WHERE b[1] IN (1, 2)",
                "SELECT ARRAY[a, b], m['x, y'][1], c FROM source WHERE b[1] IN (1, 2)",
            ),
        ] {
            let (script, select) = read(text);
            assert_eq!(select.text(&script, None).text, expected, "{text}");
        }
    }

    #[test]
    fn a_place_in_a_query_is_found_in_the_script() {
        let text = "SELECT a, -- first\n\n   bad\nFROM a_long_name\nWHERE worse";
        let (script, select) = read(text);
        let query = select.text(&script, None);
        for word in ["a", "bad", "worse", "WHERE", "SELECT"] {
            let at = query.text.find(word).unwrap();
            assert_eq!(query.origin(at), text.find(word).unwrap(), "{word}: {query:?}");
        }
        assert_eq!(query.origin(query.text.find("source").unwrap()), text.find("a_long_name").unwrap());
    }

    #[test]
    fn parts_of_the_select_list_take_another_order() {
        let text = "SELECT a + 1, -- one\n f(b, c) FROM t WHERE a > 0";
        let (script, select) = read(text);
        let [first, second] = &select.items[..] else { panic!("{:?}", select.items) };
        let items = [Ok(second.at.clone()), Err("CAST(NULL AS INT)".to_owned()), Ok(first.at.clone())];
        let query = select.text(&script, Some(&items));
        assert_eq!(query.text, "SELECT f(b, c), CAST(NULL AS INT), a + 1\nFROM source WHERE a > 0");
        assert_eq!(query.origin(query.text.find("a + 1").unwrap()), text.find("a + 1").unwrap());
    }

    #[test]
    fn what_an_item_is_is_seen() {
        let kinds = |text: &str| read(text).1.items.into_iter().map(|item| item.kind).collect::<Vec<_>>();
        let column = |name: &str| ItemKind::Column(name.into());
        assert_eq!(kinds("SELECT ARRAY[a, b], c FROM t"), [ItemKind::Other, column("c")]);
        assert_eq!(kinds("SELECT CURRENT_DATE, true AS b, c.t, x.b FROM d.t AS c"), {
            [ItemKind::Other, ItemKind::Other, column("t"), ItemKind::Other]
        });
        assert_eq!(kinds("SELECT `true`, t.a, d.b FROM d.t"), [column("true"), column("a"), ItemKind::Other]);
        assert_eq!(kinds("SELECT * FROM t"), [ItemKind::Everything]);
        assert_eq!(kinds("SELECT t.* FROM t"), [ItemKind::Everything]);
        assert_eq!(kinds("SELECT a, `b c`, t.d, e AS f, g h FROM t"), ["a", "b c", "d", "e", "g"].map(column));
        assert_eq!(kinds("SELECT a + b, f(a, b), t.a.b, 1 FROM t"), [const { ItemKind::Other }; 4]);
    }
}
