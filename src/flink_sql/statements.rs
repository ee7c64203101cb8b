//! The statements of a script, in their order.

use std::collections::HashMap;

use sqlparser::tokenizer::Token;

use super::{
    script::{Cursor, Path, Piece, Read, Script, is_key, is_text, is_whole},
    select::{Select, read_select, tables_read},
    settings::Settings,
    table::{Created, Table, read_table, refusal},
};
use crate::{
    definition::{Diagnostic, Located, Report, Role, Span},
    model::nearest,
};

/// All that a script says.
#[derive(Default)]
pub(super) struct Statements {
    pub tables: Vec<Table>,
    pub inserts: Vec<Insert>,
    /// How the INSERTs use the tables, by their place in `tables`, also those INSERTs that could not be read; `None`: both
    /// ways.
    pub roles: HashMap<usize, Option<Role>>,
    /// Whether an INSERT was there, also one that could not be read.
    pub has_insert: bool,
}

/// An INSERT, with what was set before it.
pub(super) struct Insert {
    pub target: Path,
    /// The columns it names.
    pub columns: Option<Vec<Located<String>>>,
    pub select: Select,
    pub settings: Settings,
    pub place: Span,
    /// The tables there were, by their place in [`Statements::tables`].
    visible: Vec<usize>,
    /// Where a USE before it stands, the last one.
    in_use: Option<Span>,
}

/// Statements that a script may hold and that say nothing about a pipeline.
const SAYS_NOTHING: [&str; 9] = ["USE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "HELP", "CLEAR", "QUIT", "EXIT"];

/// The same, of several words.
const SAYS_NOTHING_EITHER: [&[&str]; 6] = [
    &["ADD", "JAR"],
    &["REMOVE", "JAR"],
    &["LOAD", "MODULE"],
    &["UNLOAD", "MODULE"],
    &["CREATE", "CATALOG"],
    &["CREATE", "DATABASE"],
];

/// What a statement may begin with, for whoever misspelt it.
const KNOWN: [&str; 5] = ["CREATE", "INSERT", "SET", "RESET", "EXECUTE"];

/// Reads every statement; what cannot be imported is reported.
pub(super) fn read_statements(script: &Script<'_>, report: &mut Report) -> Statements {
    let mut reading = Reading::default();
    for range in script.statements() {
        let mut cursor = script.cursor(range.clone());
        if script.lacks_semicolon(&range) {
            report.push(Diagnostic::error("`;` is missing before this").at(cursor.here()));
        }
        if let Err(error) = reading.statement(&mut cursor, report) {
            report.push(*error);
        }
        let pieces = script.pieces.get(range).unwrap_or_default();
        reading.torn = !is_whole(pieces);
        reading.open = is_open(pieces, reading.open);
    }
    if let Some(begun) = reading.set_of_statements {
        let error = Diagnostic::error("the statement set that begins here has no `END`").at(begun);
        report.push(error.expected("`END;` behind its INSERTs"));
    }
    reading.read
}

#[derive(Default)]
struct Reading {
    read: Statements,
    visible: Vec<usize>,
    settings: Settings,
    in_use: Option<Span>,
    /// Where the statement set that has not ended yet begins.
    set_of_statements: Option<Span>,
    /// Whether the statement before is not whole: what follows may be the rest of a value that is not in quotes.
    torn: bool,
    /// Whether it is a SET whose value is not in quotes, which a semicolon may have cut, or the rest of one.
    open: bool,
}

/// Whether a semicolon may have ended a statement within a value. `before`: whether that holds of the one before it.
pub(super) fn is_open(pieces: &[Piece], before: bool) -> bool {
    match pieces.first() {
        Some(first) if first.is("SET") => !pieces.last().is_some_and(|last| is_text(&last.token)) && pieces.len() > 1,
        Some(_) => before && may_be_rest(pieces),
        None => before,
    }
}

/// Whether a statement begins as none does.
pub(super) fn may_be_rest(pieces: &[Piece]) -> bool {
    let known = KNOWN.iter().chain(&SAYS_NOTHING).chain(&["DROP", "BEGIN", "END", "ADD", "REMOVE", "LOAD", "UNLOAD"]);
    pieces.first().is_some_and(|first| !known.into_iter().any(|word| first.is(word)))
}

impl Reading {
    fn statement(&mut self, cursor: &mut Cursor<'_>, report: &mut Report) -> Read<()> {
        let begun = cursor.here();
        if cursor.takes(&["EXECUTE", "STATEMENT", "SET", "BEGIN"]) || cursor.takes(&["BEGIN", "STATEMENT", "SET"]) {
            self.set_of_statements = Some(begun);
        } else {
            cursor.takes(&["EXECUTE"]);
        }
        if cursor.is(&["END"]) && cursor.end == cursor.next + 1 {
            self.set_of_statements = None;
            return Ok(());
        }
        if cursor.peek().is_none() {
            return Ok(());
        }
        let place = cursor.here();
        if let Some(words) = SAYS_NOTHING_EITHER.into_iter().find(|words| cursor.is(words)) {
            let text = format!("{} says nothing about a pipeline and is left out", words.join(" "));
            report.push(Diagnostic::warning(text).at(place));
            return Ok(());
        }
        if cursor.takes(&["CREATE"]) {
            return self.create(cursor, place, report);
        }
        if cursor.takes(&["INSERT"]) {
            self.read.has_insert = true;
            return self.insert(cursor, place, report);
        }
        if cursor.takes(&["SET"]) {
            return self.set(cursor, report);
        }
        if cursor.takes(&["RESET"]) {
            let key = if cursor.peek().is_some() { Some(key(cursor)?.value) } else { None };
            self.settings.reset(key.as_deref());
            return Ok(());
        }
        if cursor.takes(&["DROP", "TABLE"]) || cursor.takes(&["DROP", "TEMPORARY", "TABLE"]) {
            return self.drop_table(cursor);
        }
        if let Some(word) = SAYS_NOTHING.into_iter().find(|word| cursor.is(&[word])) {
            report.push(Diagnostic::warning(format!("{word} says nothing about a pipeline and is left out")).at(place));
            if word == "USE" {
                self.in_use = Some(place);
            }
            return Ok(());
        }
        if self.torn || self.open {
            return Err(Box::new(Diagnostic::error("this is the rest of a statement that is not whole").at(place)));
        }
        Err(Box::new(unknown(cursor, place)))
    }

    /// What follows `DROP TABLE`.
    fn drop_table(&mut self, cursor: &mut Cursor<'_>) -> Read<()> {
        let may_lack = cursor.takes(&["IF", "EXISTS"]);
        let path = cursor.path("the name of a table")?;
        if cursor.peek().is_some() {
            return Err(cursor.unexpected("the end of the statement"));
        }
        let place = cursor.script.places.span(path.at.clone());
        match find(&self.read.tables, &self.visible, self.in_use, &path, place) {
            Ok((found, _)) => self.visible.retain(|index| *index != found),
            Err(Missing::None(error)) if !may_lack => return Err(error),
            Err(Missing::None(_)) => {}
            Err(Missing::Several(error)) => return Err(error),
        }
        Ok(())
    }

    fn create(&mut self, cursor: &mut Cursor<'_>, place: Span, report: &mut Report) -> Read<()> {
        if cursor.takes(&["OR", "REPLACE"]) {
            report.push(refusal("CREATE OR REPLACE").at(place));
        }
        cursor.takes(&["TEMPORARY"]);
        cursor.takes(&["SYSTEM"]);
        if !cursor.takes(&["TABLE"]) {
            let what = cursor.peek().and_then(|piece| piece.name()).unwrap_or_default().to_uppercase();
            return Err(Box::new(refusal(format!("CREATE {what}").trim_end()).at(place).expected("CREATE TABLE")));
        }
        let Created { table, if_not_exists } = read_table(cursor, report)?;
        let mut earlier = self.visible.iter().filter_map(|index| self.read.tables.get(*index));
        let before_use = |earlier: &Table| self.in_use.is_some_and(|place| place.start > earlier.place.start);
        let (whole, last) = (|table: &Table| table.path.parts.len() > 2, table.path.last());
        let mut same = earlier.clone().filter(|earlier| earlier.path.last() == last);
        if let Some(other) = same.find(|other| before_use(other) && !(whole(other) && whole(&table))) {
            let text = format!("USE decides whether this is the table `{last}` of line {}", other.place.line);
            let expected = "the names of both with catalog and database";
            return Err(Box::new(Diagnostic::error(text).at(table.place).expected(expected).help(NO_USE)));
        }
        if let Some(earlier) = earlier.find(|earlier| earlier.path.parts == table.path.parts) {
            let text = format!("the table `{}` is declared in line {} already", table.path.last(), earlier.place.line);
            let found = if if_not_exists { Diagnostic::warning(text) } else { Diagnostic::error(text) };
            report.push(found.at(table.place));
            return Ok(());
        }
        self.visible.push(self.read.tables.len());
        self.read.tables.push(table);
        Ok(())
    }

    fn insert(&mut self, cursor: &mut Cursor<'_>, place: Span, report: &mut Report) -> Read<()> {
        let before = report.errors();
        if cursor.takes(&["OVERWRITE"]) {
            report.push(refusal("INSERT OVERWRITE").at(place));
        } else {
            cursor.words(&["INTO"])?;
        }
        cursor.takes(&["TABLE"]);
        let target = cursor.path("the name of a table")?;
        self.note_use(&target, Role::Sink);
        if cursor.is(&["PARTITION"]) {
            report.push(refusal("PARTITION").at(cursor.here()));
            cursor.next += 1;
            cursor.skip_parenthesis();
        }
        let mut columns = None;
        // What else is in parentheses is a query.
        if cursor.peek().is_some_and(|piece| piece.token == Token::LParen)
            && cursor.ahead(1).is_some_and(|piece| !piece.is("SELECT"))
        {
            columns = Some(names(cursor)?);
        }
        tables_read(cursor).iter().for_each(|path| self.note_use(path, Role::Source));
        let select = read_select(cursor, report);
        let (settings, visible) = (self.settings.clone(), self.visible.clone());
        let select = select.filter(|_| report.errors() == before);
        let in_use = self.in_use;
        let insert = |select| Insert { target, columns, select, settings, place, visible, in_use };
        self.read.inserts.extend(select.map(insert));
        Ok(())
    }

    fn note_use(&mut self, path: &Path, role: Role) {
        let found = find(&self.read.tables, &self.visible, self.in_use, path, Span::default());
        if let Ok((index, _)) = found {
            let known = self.read.roles.entry(index).or_insert(Some(role));
            *known = known.filter(|known| *known == role);
        }
    }

    fn set(&mut self, cursor: &mut Cursor<'_>, report: &mut Report) -> Read<()> {
        if cursor.peek().is_none() {
            return Ok(());
        }
        let key = key(cursor)?;
        if !cursor.takes_token(&Token::Eq) {
            return Err(cursor.unexpected_value("`=`"));
        }
        let place = cursor.here();
        let value = cursor.string("");
        let whole = value.is_ok() && !self.torn;
        let value = match value {
            Ok(value) => Located::new(value, place),
            // The client's own way: everything up to the semicolon.
            Err(_) if cursor.peek().is_some() => {
                let first = cursor.next;
                cursor.next = cursor.end;
                let bytes = cursor.since(first);
                let span = cursor.script.places.span(bytes.clone());
                Located::new(cursor.script.text(bytes).trim().to_owned(), span)
            }
            Err(_) => return Err(cursor.unexpected("a value")),
        };
        if cursor.peek().is_some() {
            return Err(cursor.unexpected_value("the end of the statement"));
        }
        if is_swapped(&key.value, &value.value) {
            return Err(Box::new(Diagnostic::error("this is no name of a setting").at(key.span).expected(A_KEY)));
        }
        self.settings.set(&key, value, whole, report);
        Ok(())
    }
}

/// Whether a secret and its key are the wrong way round.
fn is_swapped(key: &str, value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let of_secret =
        || ["secret", "password", "token", "accesskey", "access-key"].iter().any(|word| lower.contains(word));
    !key.contains('.') && value.contains('.') && is_key(value) && of_secret()
}

const A_KEY: &str = "a key such as `'execution.checkpointing.interval'`";

/// A key of the configuration, in quotes or as the client takes it.
fn key(cursor: &mut Cursor<'_>) -> Read<Located<String>> {
    let place = cursor.here();
    let no_key = |place| Diagnostic::error("this is no name of a setting").at(place).expected(A_KEY);
    if let Ok(key) = cursor.string("") {
        return if is_key(&key) { Ok(Located::new(key, place)) } else { Err(Box::new(no_key(place))) };
    }
    let first = cursor.next;
    while cursor.peek().is_some_and(|piece| piece.token != Token::Eq) {
        cursor.next += 1;
    }
    let bytes = cursor.since(first);
    if bytes.is_empty() {
        return Err(cursor.unexpected(A_KEY));
    }
    if !is_key(cursor.script.text(bytes.clone())) {
        return Err(Box::new(no_key(cursor.script.places.span(bytes.start..bytes.start + 1))));
    }
    Ok(Located::new(cursor.script.text(bytes.clone()).to_owned(), cursor.script.places.span(bytes)))
}

fn names(cursor: &mut Cursor<'_>) -> Read<Vec<Located<String>>> {
    cursor.token(&Token::LParen)?;
    let mut names = Vec::new();
    loop {
        let piece = cursor.name("the name of a column")?;
        let name = piece.name().unwrap_or_default().to_owned();
        names.push(Located::new(name, cursor.script.places.span(piece.at.clone())));
        if cursor.takes_token(&Token::RParen) {
            return Ok(names);
        }
        cursor.token(&Token::Comma)?;
    }
}

fn unknown(cursor: &Cursor<'_>, place: Span) -> Diagnostic {
    let word = cursor.peek().and_then(|piece| piece.name()).unwrap_or_default();
    match word.to_uppercase().as_str() {
        "SELECT" => {
            Diagnostic::error("a SELECT that is not inserted anywhere").at(place).expected("INSERT INTO ... SELECT")
        }
        "" => *cursor.unexpected("a statement"),
        upper => {
            let near = nearest(upper, KNOWN).filter(|near| *near != upper);
            refusal(upper).at(place).expected("CREATE TABLE, INSERT INTO or SET").nearest(near)
        }
    }
}

impl Statements {
    /// The table that an INSERT calls so.
    pub(super) fn find(&self, insert: &Insert, path: &Path, place: Span) -> Read<(usize, &Table)> {
        find(&self.tables, &insert.visible, insert.in_use, path, place).map_err(|missing| match missing {
            Missing::None(error) | Missing::Several(error) => error,
        })
    }
}

/// Why no table can be told.
enum Missing {
    None(Box<Diagnostic>),
    Several(Box<Diagnostic>),
}

/// What is said where it would matter.
const NO_USE: &str = "USE is not followed";

/// The table that something calls so. `in_use`: a USE before it decides what a name without a catalog means.
fn find<'a>(
    tables: &'a [Table],
    visible: &[usize],
    in_use: Option<Span>,
    path: &Path,
    place: Span,
) -> Result<(usize, &'a Table), Missing> {
    let visible = || visible.iter().filter_map(|index| Some((*index, tables.get(*index)?)));
    let decided = in_use.is_none() || path.parts.len() > 2;
    if let Some(found) = visible().find(|(_, table)| decided && table.path.parts == path.parts) {
        return Ok(found);
    }
    let mut fitting = visible().filter(|(_, table)| table.path.fits(path));
    match (fitting.next(), fitting.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => {
            let error = Diagnostic::error(format!("there are several tables `{}`", path.last())).at(place);
            let error = error.expected("the name with its catalog and database");
            Err(Missing::Several(Box::new(if decided { error } else { error.help(NO_USE) })))
        }
        (None, _) => {
            let error = Diagnostic::error(format!("there is no table `{}`", path.last())).at(place);
            let near = nearest(path.last(), visible().map(|(_, table)| table.path.last()));
            let error = error.expected("a table that is created before it is used").nearest(near);
            Err(Missing::None(Box::new(error)))
        }
    }
}
