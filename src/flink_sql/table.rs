//! `CREATE TABLE`.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use super::script::{Cursor, Depth, Path, Piece, Read, is_key};
use crate::{
    connectors::REGISTRY,
    definition::{Diagnostic, Located, OptionSpec, OptionTable, Report, RoleTables, Span},
    model::{Column, Schema, TypeError, nearest},
};

/// A table of the script.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub path: Path,
    /// Where its name stands.
    pub place: Span,
    pub columns: Vec<TableColumn>,
    pub primary_key: Option<PrimaryKey>,
    pub options: Vec<TableOption>,
    /// Whether something in it could not be read, which has been reported: nothing more is said of it then.
    pub broken: bool,
}

/// A column, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct TableColumn {
    pub column: Column,
    pub name: Span,
    pub ty: Span,
    pub comment: Option<String>,
}

/// `PRIMARY KEY (...) NOT ENFORCED`
#[derive(Debug, Clone)]
pub(super) struct PrimaryKey {
    pub columns: Vec<Located<String>>,
    pub place: Span,
}

/// A pair of the WITH clause.
#[derive(Debug, Clone)]
pub(super) struct TableOption {
    pub key: Located<String>,
    pub value: Located<String>,
    /// The value cut at each dollar sign that is written `\0024` in a `U&'...'`, so that it begins no reference.
    pub stretches: Vec<String>,
}

impl Table {
    pub(super) fn schema(&self) -> Schema {
        Schema { columns: self.columns.iter().map(|column| column.column.clone()).collect() }
    }

    pub(super) fn option(&self, key: &str) -> Option<&TableOption> {
        self.options.iter().find(|option| option.key.value == key)
    }
}

/// A `CREATE TABLE` that has been read, and whether it may meet a table of the same name.
pub(super) struct Created {
    pub table: Table,
    pub if_not_exists: bool,
}

/// Reads what follows `CREATE [TEMPORARY] TABLE`. What cannot be imported is reported, and the rest is read on.
pub(super) fn read_table(cursor: &mut Cursor<'_>, report: &mut Report) -> Read<Created> {
    let if_not_exists = cursor.takes(&["IF", "NOT", "EXISTS"]);
    let path = cursor.path("the name of a table")?;
    let place = cursor.script.places.span(path.at.clone());
    let table = Table { path, place, columns: Vec::new(), primary_key: None, options: Vec::new(), broken: false };
    let mut reading = Reading { cursor, report, table };
    let before = reading.report.errors();
    if let Err(error) = reading.body() {
        reading.report.push(*error);
    }
    reading.check();
    let Reading { report, mut table, .. } = reading;
    table.broken = report.errors() > before;
    Ok(Created { table, if_not_exists })
}

struct Reading<'a, 's> {
    cursor: &'a mut Cursor<'s>,
    report: &'a mut Report,
    table: Table,
}

impl Reading<'_, '_> {
    fn body(&mut self) -> Read<()> {
        if self.cursor.takes_token(&Token::LParen) {
            self.elements()?;
        }
        let mut has_with = false;
        while self.cursor.peek().is_some() {
            if self.cursor.takes(&["COMMENT"]) {
                self.cursor.string("a comment in single quotes")?;
            } else if self.cursor.takes(&["WITH"]) {
                has_with = true;
                self.options()?;
            } else {
                // These have what they need from elsewhere.
                has_with |= self.cursor.is(&["LIKE"]) || self.cursor.is(&["AS"]);
                self.refuse_clause(has_with)?;
            }
        }
        if !has_with {
            let error = Diagnostic::error(format!("the table `{}` has no WITH", self.table.path.last()));
            self.report.push(error.at(self.table.place).expected("`WITH ('connector' = '...', ...)`"));
        }
        if self.table.columns.is_empty() && !self.report.has_errors() {
            let error = Diagnostic::error(format!("the table `{}` has no columns", self.table.path.last()));
            self.report.push(error.at(self.table.place));
        }
        Ok(())
    }

    /// A clause behind the columns that has no meaning here.
    fn refuse_clause(&mut self, has_with: bool) -> Read<()> {
        let refusals: [(&[&str], &str); 4] = [
            (&["PARTITIONED", "BY"], "PARTITIONED BY"),
            (&["DISTRIBUTED"], "DISTRIBUTED"),
            (&["LIKE"], "CREATE TABLE ... LIKE"),
            (&["AS"], "CREATE TABLE ... AS SELECT"),
        ];
        let Some((words, what)) = refusals.into_iter().find(|(words, _)| self.cursor.is(words)) else {
            let expected = "`WITH`, `COMMENT` or the end of the statement";
            // Behind WITH it may be the rest of a value that is not in quotes.
            let error = if has_with { Cursor::unexpected_value } else { Cursor::unexpected };
            return Err(error(self.cursor, expected));
        };
        let place = self.cursor.here();
        self.cursor.takes(words);
        self.report.push(refusal(what).at(place));
        match what {
            "PARTITIONED BY" => self.cursor.skip_parenthesis(),
            "DISTRIBUTED" => {
                while self.cursor.peek().is_some_and(|piece| !piece.is("WITH")) {
                    self.cursor.next += 1;
                }
            }
            // What follows belongs to it.
            _ => self.cursor.next = self.cursor.end,
        }
        Ok(())
    }

    /// The columns and constraints, with the parenthesis that closes them.
    fn elements(&mut self) -> Read<()> {
        loop {
            let first = self.cursor.next;
            if let Err(error) = self.element() {
                self.report.push(*error);
                self.cursor.next = first;
                self.cursor.skip_element();
            }
            if self.cursor.takes_token(&Token::RParen) {
                return Ok(());
            }
            if !self.cursor.takes_token(&Token::Comma) {
                return Err(self.cursor.unexpected("`,` or `)`"));
            }
        }
    }

    fn element(&mut self) -> Read<()> {
        let cursor = &mut *self.cursor;
        let place = cursor.here();
        if cursor.is(&["WATERMARK", "FOR"]) {
            self.refuse_element("WATERMARK FOR", place);
            return Ok(());
        }
        if cursor.is(&["CONSTRAINT"]) && cursor.ahead(2).is_some_and(|piece| piece.is("PRIMARY")) {
            cursor.next += 2;
        }
        if cursor.takes(&["PRIMARY", "KEY"]) {
            return self.primary_key(place);
        }
        for (words, what) in [(&["UNIQUE"][..], "UNIQUE"), (&["PERIOD", "FOR"], "PERIOD FOR")] {
            if cursor.is(words) && cursor.ahead(words.len()).is_some_and(|piece| piece.token == Token::LParen) {
                self.refuse_element(what, place);
                return Ok(());
            }
        }
        self.column()
    }

    fn refuse_element(&mut self, what: &str, place: Span) {
        self.report.push(refusal(what).at(place));
        self.cursor.skip_element();
    }

    fn column(&mut self) -> Read<()> {
        let piece = self.cursor.name("the name of a column")?;
        let name = piece.name().unwrap_or_default().to_owned();
        let place = self.cursor.script.places.span(piece.at.clone());
        if self.cursor.is(&["AS"]) {
            self.refuse_element(&format!("the computed column `{name}`"), place);
            return Ok(());
        }
        let first = self.cursor.next;
        self.cursor.skip_element();
        let declared = self.cursor.since(first);
        if declared.is_empty() {
            return Err(self.cursor.unexpected(format!("the type of the column `{name}`")));
        }
        let pieces = self.cursor.script.pieces.get(first..self.cursor.next).unwrap_or_default();
        let (text, comment, key) = self.declaration(pieces, declared.clone());
        let column = Column::parse(&name, &text).map_err(|error| self.type_error(&name, &error, &declared))?;
        if self.table.columns.iter().any(|other| other.column.name == name) {
            let error = Diagnostic::error(format!("the column `{name}` is declared twice"));
            self.report.push(error.at(place));
        }
        let ty = self.cursor.script.places.span(declared.start..declared.start + text.trim_end().len());
        self.table.columns.push(TableColumn { column, name: place, ty, comment });
        if let Some(key) = key {
            self.add_primary_key(PrimaryKey { columns: vec![Located::new(name, place)], place: key });
        }
        Ok(())
    }

    /// The text of a column's type, byte by byte where it stood, without an inline key; its comment; where the key is.
    fn declaration(&mut self, pieces: &[Piece], bytes: Range<usize>) -> (String, Option<String>, Option<Span>) {
        let script = self.cursor.script;
        let mut text = script.text(bytes.clone()).to_owned();
        let (mut comment, mut key, mut depth) = (None, None, Depth::default());
        for (index, piece) in pieces.iter().enumerate() {
            let next = |by: usize| pieces.get(index + by);
            if depth.is_zero() && piece.is("PRIMARY") && next(1).is_some_and(|piece| piece.is("KEY")) {
                let enforced = !(next(2).is_some_and(|piece| piece.is("NOT"))
                    && next(3).is_some_and(|piece| piece.is("ENFORCED")));
                let last = next(if enforced { 1 } else { 3 }).unwrap_or(piece);
                let place = script.places.span(piece.at.start..last.at.end);
                if enforced {
                    self.report.push(enforced_key(place));
                }
                key = Some(place);
                blank(&mut text, piece.at.start - bytes.start..last.at.end - bytes.start);
            } else if depth.is_zero() && piece.is("COMMENT") {
                comment = next(1).and_then(|piece| match &piece.token {
                    Token::SingleQuotedString(text) => Some(text.clone()),
                    _ => None,
                });
            }
            depth.pass(&piece.token);
        }
        (text, comment, key)
    }

    fn type_error(&self, column: &str, error: &TypeError, bytes: &Range<usize>) -> Box<Diagnostic> {
        let start = bytes.start + error.offset;
        let place = self.cursor.script.places.span(start..start + error.length);
        let message = format!("found {} in the type of column `{column}`", error.found);
        let diagnostic = Diagnostic::error(message).at(place).expected(error.expected.as_str());
        Box::new(diagnostic.nearest(error.nearest.as_deref()))
    }

    fn primary_key(&mut self, place: Span) -> Read<()> {
        self.cursor.token(&Token::LParen)?;
        let mut columns = Vec::new();
        loop {
            let piece = self.cursor.name("the name of a column")?;
            let name = piece.name().unwrap_or_default().to_owned();
            columns.push(Located::new(name, self.cursor.script.places.span(piece.at.clone())));
            if self.cursor.takes_token(&Token::RParen) {
                break;
            }
            self.cursor.token(&Token::Comma)?;
        }
        if !self.cursor.takes(&["NOT", "ENFORCED"]) {
            self.cursor.takes(&["ENFORCED"]);
            self.report.push(enforced_key(place));
        }
        self.add_primary_key(PrimaryKey { columns, place });
        Ok(())
    }

    fn add_primary_key(&mut self, key: PrimaryKey) {
        if self.table.primary_key.is_some() {
            self.report.push(Diagnostic::error("the table has a second primary key").at(key.place));
        }
        self.table.primary_key = Some(key);
    }

    fn options(&mut self) -> Read<()> {
        self.cursor.token(&Token::LParen)?;
        loop {
            let first = self.cursor.next;
            if let Err(error) = self.option() {
                self.report.push(*error);
                self.cursor.next = first;
                self.cursor.skip_element();
            }
            if self.cursor.takes_token(&Token::RParen) {
                return Ok(());
            }
            if !self.cursor.takes_token(&Token::Comma) {
                return Err(self.cursor.unexpected_value("`,` or `)`"));
            }
        }
    }

    fn option(&mut self) -> Read<()> {
        let expected = "an option such as `'format' = 'json'`";
        let place = self.cursor.here();
        let key = match self.cursor.string(expected) {
            Ok(key) => key,
            // Without an equals sign behind it, it may be the rest of a value that is not in quotes.
            Err(error) => {
                let is_key = self.cursor.ahead(1).is_some_and(|piece| piece.token == Token::Eq);
                return Err(if is_key { error } else { self.cursor.unexpected_value(expected) });
            }
        };
        let known = is_known(&key);
        if known {
            self.report.show(place);
        }
        if !self.cursor.takes_token(&Token::Eq) {
            return Err(self.cursor.unexpected_value("`=`"));
        }
        let value_place = self.cursor.here();
        let stretches = stretches(self.cursor);
        let value = self.cursor.string("").map_err(|_| self.cursor.unexpected_value("a value in single quotes"))?;
        if self.cursor.is(&["UESCAPE"]) {
            return Err(Box::new(refusal("UESCAPE").at(self.cursor.here())));
        }
        if !(is_key(&key) || is_of_column(&key)) || (!known && is_secret(&value)) {
            return Err(Box::new(Diagnostic::error("this is no name of an option").at(place).expected(expected)));
        }
        self.report.show(place);
        if let Some((_, instead)) = OF_DEFINITIONS.iter().find(|(name, _)| *name == key) {
            let error = Diagnostic::error(format!("`{key}` is no option of a table")).at(place);
            return Err(Box::new(error.expected(*instead)));
        }
        if let Some(earlier) = self.table.options.iter().position(|option| option.key.value == key) {
            let warning =
                Diagnostic::warning(format!("the option `{key}` is given twice; this value holds, as in Flink"));
            self.report.push(warning.at(place));
            self.table.options.remove(earlier);
        }
        let key = Located::new(key, place);
        self.table.options.push(TableOption { key, value: Located::new(value, value_place), stretches });
        Ok(())
    }

    /// What can only be seen when the whole has been read.
    fn check(&mut self) {
        for name in self.table.primary_key.iter().flat_map(|key| &key.columns) {
            let found = self.table.columns.iter().find(|column| column.column.name == name.value);
            match found {
                None => {
                    let names = self.table.columns.iter().map(|column| column.column.name.as_str());
                    let error =
                        Diagnostic::error(format!("the primary key names `{}`, which is no column", name.value));
                    self.report.push(error.at(name.span).nearest(nearest(&name.value, names)));
                }
                Some(column) if column.column.metadata.is_some() => {
                    let error = Diagnostic::error(format!("the primary key names `{}`, which is metadata", name.value));
                    self.report.push(error.at(name.span).expected("a column that is read from the body, as in Flink"));
                }
                Some(_) => {}
            }
        }
    }
}

/// Keys of a definition that a table has in another place.
pub(super) const OF_DEFINITIONS: [(&str, &str); 2] = [
    ("schema", "the columns in parentheses in front of WITH"),
    ("primaryKey", "`PRIMARY KEY (...) NOT ENFORCED` among the columns"),
];

/// The options of every connector and format.
fn all_options() -> impl Iterator<Item = &'static OptionSpec> {
    let connectors = all_tables().map(|tables| tables.options);
    let all = connectors.chain(REGISTRY.formats.iter().map(|format| format.options));
    all.flat_map(|table| table.options.iter().copied())
}

fn all_tables() -> impl Iterator<Item = &'static RoleTables> {
    REGISTRY.connectors.iter().flat_map(|connector| [connector.source.as_ref(), connector.sink.as_ref()]).flatten()
}

fn is_known(key: &str) -> bool {
    ["connector", "format"].contains(&key) || all_options().any(|option| option.name == key)
}

/// Whether a key is that of an option of a column, whose name may be any.
fn is_of_column(key: &str) -> bool {
    let column_options = all_tables().filter_map(|tables| tables.columns);
    let named = |table: &OptionTable| key.strip_prefix(table.name).is_some_and(|rest| rest.starts_with('.'));
    !key.contains('=') && column_options.into_iter().any(named)
}

/// Whether a text is the name of an option that is a secret, or nearly.
fn is_secret(text: &str) -> bool {
    const LONGEST: usize = 64;
    let secret = || all_options().filter(|option| option.secret).map(|option| option.name);
    text.len() <= LONGEST && nearest(text, secret()).is_some()
}

/// The stretches of the text that is next between the dollar signs that are written as an escape.
fn stretches(cursor: &Cursor<'_>) -> Vec<String> {
    let Some(piece) = cursor.peek() else { return Vec::new() };
    let whole = match &piece.token {
        Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text) => text,
        _ => return Vec::new(),
    };
    let written = cursor.script.text(piece.at.clone());
    let inner = written.split_once('\'').and_then(|(_, rest)| rest.strip_suffix('\'')).unwrap_or_default();
    if !matches!(piece.token, Token::UnicodeStringLiteral(_)) || !inner.contains("\\0024") {
        return vec![whole.clone()];
    }
    let (mut cut, mut at) = (vec![String::new()], 0);
    while let Some(c) = inner.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = inner.get(at..).unwrap_or_default();
        let length = match rest.strip_prefix("\\0024") {
            Some(_) => 5,
            None if rest.starts_with("\\\\") => 2,
            None => c.len_utf8(),
        };
        match (length, cut.last_mut()) {
            (5, _) => cut.push(String::new()),
            (_, Some(last)) => last.push_str(rest.get(..length).unwrap_or_default()),
            (_, None) => {}
        }
        at += length;
    }
    let decoded = |stretch: &String| match super::script::pieces(&format!("U&'{stretch}'")).as_deref() {
        Ok([Piece { token: Token::UnicodeStringLiteral(text), .. }]) => text.clone(),
        // What could be cut as a whole can be cut in parts.
        _ => String::new(),
    };
    cut.iter().map(decoded).collect()
}

/// Says that something has no counterpart here.
pub(super) fn refusal(what: &str) -> Diagnostic {
    Diagnostic::error(format!("{what} cannot be imported"))
}

fn enforced_key(place: Span) -> Diagnostic {
    Diagnostic::error("a primary key without NOT ENFORCED, which Flink refuses")
        .at(place)
        .expected("NOT ENFORCED behind it")
}

/// Writes blanks over a stretch of a text.
fn blank(text: &mut String, bytes: Range<usize>) {
    text.replace_range(bytes.clone(), &" ".repeat(bytes.len()));
}
