//! The statements of a script, in their order.

use sqlparser::tokenizer::Token;

use super::{
    script::{Cursor, Path, Read, Script},
    select::{Select, read_select},
    settings::Settings,
    table::{Created, Table, read_table, refusal},
};
use crate::{
    definition::{Diagnostic, Located, Report, Span},
    model::nearest,
};

/// All that a script says.
#[derive(Default)]
pub(super) struct Statements {
    pub tables: Vec<Table>,
    pub inserts: Vec<Insert>,
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
}

/// Statements that a script may hold and that say nothing about a pipeline.
const SAYS_NOTHING: [&str; 9] = ["USE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "HELP", "CLEAR", "QUIT", "EXIT"];

/// What a statement may begin with, for whoever misspelt it.
const KNOWN: [&str; 5] = ["CREATE", "INSERT", "SET", "RESET", "EXECUTE"];

/// Reads every statement; what cannot be imported is reported.
pub(super) fn read_statements(script: &Script<'_>, report: &mut Report) -> Statements {
    let mut reading = Reading { read: Statements::default(), visible: Vec::new(), settings: Settings::default() };
    for range in script.statements() {
        let mut cursor = script.cursor(range);
        if let Err(error) = reading.statement(&mut cursor, report) {
            report.push(*error);
        }
    }
    reading.read
}

struct Reading {
    read: Statements,
    visible: Vec<usize>,
    settings: Settings,
}

impl Reading {
    fn statement(&mut self, cursor: &mut Cursor<'_>, report: &mut Report) -> Read<()> {
        if !cursor.takes(&["EXECUTE", "STATEMENT", "SET", "BEGIN"]) && !cursor.takes(&["BEGIN", "STATEMENT", "SET"]) {
            cursor.takes(&["EXECUTE"]);
        }
        if cursor.peek().is_none() || (cursor.is(&["END"]) && cursor.end == cursor.next + 1) {
            return Ok(());
        }
        let place = cursor.here();
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
            cursor.takes(&["IF", "EXISTS"]);
            let path = cursor.path("the name of a table")?;
            let tables = &self.read.tables;
            self.visible.retain(|index| tables.get(*index).is_none_or(|table| !table.path.fits(&path)));
            return Ok(());
        }
        if let Some(word) = SAYS_NOTHING.into_iter().find(|word| cursor.is(&[word])) {
            report.push(Diagnostic::warning(format!("{word} says nothing about a pipeline and is left out")).at(place));
            return Ok(());
        }
        Err(Box::new(unknown(cursor, place)))
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
        let earlier = self.visible.iter().filter_map(|index| self.read.tables.get(*index));
        if let Some(earlier) = earlier.into_iter().find(|earlier| earlier.path.parts == table.path.parts) {
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
        let select = read_select(cursor, report);
        let (settings, visible) = (self.settings.clone(), self.visible.clone());
        let select = select.filter(|_| report.errors() == before);
        self.read.inserts.extend(select.map(|select| Insert { target, columns, select, settings, place, visible }));
        Ok(())
    }

    fn set(&mut self, cursor: &mut Cursor<'_>, report: &mut Report) -> Read<()> {
        if cursor.peek().is_none() {
            return Ok(());
        }
        let key = key(cursor)?;
        cursor.token(&Token::Eq)?;
        let place = cursor.here();
        let value = match cursor.string("") {
            Ok((value, _)) => Located::new(value, place),
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
            return Err(cursor.unexpected("the end of the statement"));
        }
        self.settings.set(&key, value, report);
        Ok(())
    }
}

/// A key of the configuration, in quotes or as the client takes it.
fn key(cursor: &mut Cursor<'_>) -> Read<Located<String>> {
    let place = cursor.here();
    if let Ok((key, _)) = cursor.string("") {
        return Ok(Located::new(key, place));
    }
    let first = cursor.next;
    while cursor.peek().is_some_and(|piece| piece.token != Token::Eq) {
        cursor.next += 1;
    }
    let bytes = cursor.since(first);
    if bytes.is_empty() {
        return Err(cursor.unexpected("a key such as `'execution.checkpointing.interval'`"));
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
        let visible = || insert.visible.iter().filter_map(|index| Some((*index, self.tables.get(*index)?)));
        if let Some((index, table)) = visible().find(|(_, table)| table.path.parts == path.parts) {
            return Ok((index, table));
        }
        let mut fitting = visible().filter(|(_, table)| table.path.fits(path));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => {
                let error = Diagnostic::error(format!("there are several tables `{}`", path.last())).at(place);
                Err(Box::new(error.expected("the name with its catalog and database")))
            }
            (None, _) => {
                let error = Diagnostic::error(format!("there is no table `{}`", path.last())).at(place);
                let near = nearest(path.last(), visible().map(|(_, table)| table.path.last()));
                Err(Box::new(error.expected("a table that is created before it is used").nearest(near)))
            }
        }
    }
}
