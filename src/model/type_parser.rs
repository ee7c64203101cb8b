//! Reads the text of a type or column as Flink's `CREATE TABLE` does, in any case and with its aliases.

use super::{
    Column, ColumnType, Field, LogicalType, TypeError, nearest,
    type_lexer::{Token, TokenKind, tokens},
};

/// Longest CHAR, VARCHAR, BINARY and VARBINARY.
const LONGEST: u64 = i32::MAX as u64;
/// Deepest nesting of ARRAY, MAP and ROW.
const DEEPEST: u32 = 32;

/// Every word a type may begin with.
const TYPES: &[&str] = &[
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "DEC",
    "NUMERIC",
    "CHAR",
    "CHARACTER",
    "VARCHAR",
    "STRING",
    "BINARY",
    "VARBINARY",
    "BYTES",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "ARRAY",
    "MAP",
    "ROW",
];

/// What other databases and languages call a type, and what Flink calls it.
const CALLED_OTHERWISE: &[(&[&str], &str)] = &[
    (&["BOOL", "BIT"], "BOOLEAN"),
    (&["INT1", "BYTE"], "TINYINT"),
    (&["INT2", "INT16", "SHORT"], "SMALLINT"),
    (&["INT4", "INT32", "MEDIUMINT", "SERIAL"], "INT"),
    (&["INT8", "INT64", "LONG", "BIGSERIAL"], "BIGINT"),
    (&["FLOAT4", "FLOAT32", "REAL"], "FLOAT"),
    (&["FLOAT8", "FLOAT64"], "DOUBLE"),
    (&["NUMBER", "MONEY", "BIGDECIMAL"], "DECIMAL"),
    (&["TEXT", "CLOB", "LONGTEXT", "JSON", "JSONB", "UUID", "STR", "UTF8"], "STRING"),
    (&["NVARCHAR", "VARCHAR2"], "VARCHAR"),
    (&["BLOB", "BYTEA", "RAW"], "BYTES"),
    (&["DATETIME"], "TIMESTAMP"),
    (&["TIMESTAMPTZ"], "TIMESTAMP_LTZ"),
    (&["LIST"], "ARRAY"),
    (&["STRUCT", "RECORD", "OBJECT", "TUPLE"], "ROW"),
    (&["DICT", "HASH"], "MAP"),
];

impl ColumnType {
    /// Reads a type such as `DECIMAL(10, 2) NOT NULL` or ``ROW<a INT, `b c` STRING>``.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let mut parser = TypeParser::new(text)?;
        let ty = parser.column_type()?;
        parser.end("NOT NULL or the end of the type", &["NOT NULL", "NULL", "ARRAY"])?;
        Ok(ty)
    }
}

impl Column {
    /// Reads the declaration that follows a column's name: `TYPE [NOT NULL] [METADATA [FROM 'key'] [VIRTUAL]]
    /// [COMMENT 'text']`. Without FROM the metadata key is the column's name.
    pub fn parse(name: &str, text: &str) -> Result<Self, TypeError> {
        let mut parser = TypeParser::new(text)?;
        let ty = parser.column_type()?;
        let mut column = Self { name: name.to_owned(), ty, metadata: None, is_virtual: false };
        if parser.takes("METADATA") {
            let key = if parser.takes("FROM") { parser.text("a key in single quotes")? } else { name.to_owned() };
            column.metadata = Some(key);
            column.is_virtual = parser.takes("VIRTUAL");
        }
        if parser.takes("COMMENT") {
            parser.text("a comment in single quotes")?;
        }
        let (expected, words): (_, &[_]) = match (&column.metadata, column.is_virtual) {
            (None, _) => ("NOT NULL, METADATA or the end", &["NOT NULL", "NULL", "METADATA", "COMMENT", "ARRAY"]),
            (Some(_), false) => ("FROM 'key', VIRTUAL or the end", &["FROM", "VIRTUAL", "COMMENT"]),
            (Some(_), true) => ("the end", &["COMMENT"]),
        };
        parser.end(expected, words)?;
        Ok(column)
    }
}

struct TypeParser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    end: usize,
    depth: u32,
}

impl<'a> TypeParser<'a> {
    fn new(text: &'a str) -> Result<Self, TypeError> {
        Ok(Self { tokens: tokens(text)?, next: 0, end: text.trim_end().len(), depth: 0 })
    }

    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next)
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.tokens.get(self.next + ahead).is_some_and(|token| token.is_word(word))
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        self.next += usize::from(found);
        found
    }

    fn takes_symbol(&mut self, symbol: char) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == TokenKind::Symbol(symbol));
        self.next += usize::from(found);
        found
    }

    /// An error at the next token. `words`: what a word there may have been meant to be.
    fn unexpected(&self, expected: impl Into<String>, words: &[&str]) -> TypeError {
        let (offset, length, text) = match self.peek() {
            Some(token) => (token.offset, token.text.len(), token.text),
            None => (self.end, 0, ""),
        };
        let nearest = nearest(text, words.iter().copied()).map(str::to_owned);
        let found = if text.is_empty() { "the end".to_owned() } else { format!("`{text}`") };
        TypeError { offset, length, found, expected: expected.into(), nearest }
    }

    /// An error where a type should stand.
    fn no_type(&self) -> TypeError {
        let error = self.unexpected("a type such as STRING, BIGINT or TIMESTAMP(3)", TYPES);
        let word = self.peek().map(|token| token.text.to_uppercase()).unwrap_or_default();
        let known = CALLED_OTHERWISE.iter().find(|(names, _)| names.contains(&word.as_str()));
        let nearest = known.map(|(_, name)| (*name).to_owned()).or(error.nearest);
        TypeError { nearest, ..error }
    }

    fn word(&mut self, word: &str) -> Result<(), TypeError> {
        if self.takes(word) { Ok(()) } else { Err(self.unexpected(word, &[word])) }
    }

    fn symbol(&mut self, symbol: char) -> Result<(), TypeError> {
        if self.takes_symbol(symbol) { Ok(()) } else { Err(self.unexpected(format!("`{symbol}`"), &[])) }
    }

    fn text(&mut self, expected: &str) -> Result<String, TypeError> {
        match self.peek() {
            Some(Token { kind: TokenKind::Text(value), .. }) => {
                let value = value.clone();
                self.next += 1;
                Ok(value)
            }
            _ => Err(self.unexpected(expected, &[])),
        }
    }

    fn end(&self, expected: &str, words: &[&str]) -> Result<(), TypeError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected(expected, words)) }
    }

    fn column_type(&mut self) -> Result<ColumnType, TypeError> {
        if self.depth >= DEEPEST {
            return Err(self.unexpected(format!("at most {DEEPEST} nested types"), &[]));
        }
        self.depth += 1;
        let logical = self.logical()?;
        let mut ty = ColumnType { logical, nullable: self.nullable()? };
        // The postfix spelling of an array, `INT NOT NULL ARRAY`. Each one nests, so the bound holds here too.
        let depth = self.depth;
        while self.takes("ARRAY") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.unexpected(format!("at most {DEEPEST} nested types"), &[]));
            }
            ty = ColumnType { logical: LogicalType::Array(Box::new(ty)), nullable: self.nullable()? };
        }
        self.depth = depth - 1;
        Ok(ty)
    }

    fn nullable(&mut self) -> Result<bool, TypeError> {
        if self.takes("NOT") {
            self.word("NULL")?;
            return Ok(false);
        }
        self.takes("NULL");
        Ok(true)
    }

    fn logical(&mut self) -> Result<LogicalType, TypeError> {
        let Some(Token { kind: TokenKind::Word, text, .. }) = self.peek() else {
            return Err(self.no_type());
        };
        let word = text.to_ascii_uppercase();
        if !TYPES.contains(&word.as_str()) {
            return Err(self.no_type());
        }
        self.next += 1;
        Ok(match word.as_str() {
            "BOOLEAN" => LogicalType::Boolean,
            "TINYINT" => LogicalType::TinyInt,
            "SMALLINT" => LogicalType::SmallInt,
            "INT" | "INTEGER" => LogicalType::Int,
            "BIGINT" => LogicalType::BigInt,
            "FLOAT" => LogicalType::Float,
            "DOUBLE" => {
                self.takes("PRECISION");
                LogicalType::Double
            }
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal()?,
            "CHAR" | "CHARACTER" if !self.takes("VARYING") => LogicalType::Char(self.length()?.unwrap_or(1)),
            "CHAR" | "CHARACTER" | "VARCHAR" => LogicalType::VarChar(self.unbounded_length()?),
            "STRING" => LogicalType::VarChar(None),
            "BINARY" if !self.takes("VARYING") => LogicalType::Binary(self.length()?.unwrap_or(1)),
            "BINARY" | "VARBINARY" => LogicalType::VarBinary(self.unbounded_length()?),
            "BYTES" => LogicalType::VarBinary(None),
            "DATE" => LogicalType::Date,
            "TIME" => {
                let precision = self.precision(0)?;
                self.without_time_zone()?;
                LogicalType::Time(precision)
            }
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" => LogicalType::TimestampLtz(self.precision(6)?),
            "ARRAY" => {
                self.symbol('<')?;
                let element = self.column_type()?;
                self.symbol('>')?;
                LogicalType::Array(Box::new(element))
            }
            "MAP" => {
                self.symbol('<')?;
                let key = self.column_type()?;
                self.symbol(',')?;
                let value = self.column_type()?;
                self.symbol('>')?;
                LogicalType::Map(Box::new(key), Box::new(value))
            }
            _ => self.row()?,
        })
    }

    fn decimal(&mut self) -> Result<LogicalType, TypeError> {
        if !self.takes_symbol('(') {
            return Ok(LogicalType::Decimal(10, 0));
        }
        let precision = self.number(1, 38, "a precision of 1 to 38")?;
        let scale = if self.takes_symbol(',') {
            self.number(0, precision, &format!("a scale of 0 to {precision}"))?
        } else {
            0
        };
        self.symbol(')')?;
        // Both are at most 38.
        Ok(LogicalType::Decimal(precision as u8, scale as u8))
    }

    fn timestamp(&mut self) -> Result<LogicalType, TypeError> {
        let precision = self.precision(6)?;
        if self.takes("WITH") {
            for word in ["LOCAL", "TIME", "ZONE"] {
                self.word(word)?;
            }
            return Ok(LogicalType::TimestampLtz(precision));
        }
        self.without_time_zone()?;
        Ok(LogicalType::Timestamp(precision))
    }

    fn without_time_zone(&mut self) -> Result<(), TypeError> {
        if self.takes("WITHOUT") {
            self.word("TIME")?;
            self.word("ZONE")?;
        }
        Ok(())
    }

    fn row(&mut self) -> Result<LogicalType, TypeError> {
        let close = if self.takes_symbol('(') {
            ')'
        } else {
            self.symbol('<')?;
            '>'
        };
        let mut fields: Vec<Field> = Vec::new();
        loop {
            let at = self.next;
            let name = self.name()?;
            if fields.iter().any(|field| field.name == name) {
                self.next = at;
                return Err(self.unexpected("a name that is not yet used in this ROW", &[]));
            }
            let ty = self.column_type()?;
            if matches!(self.peek(), Some(Token { kind: TokenKind::Text(_), .. })) {
                self.next += 1;
            }
            fields.push(Field { name, ty });
            if self.takes_symbol(close) {
                return Ok(LogicalType::Row(fields));
            }
            if !self.takes_symbol(',') {
                return Err(self.unexpected(format!("`,` or `{close}`"), &[]));
            }
        }
    }

    fn name(&mut self) -> Result<String, TypeError> {
        let name = match self.peek() {
            Some(Token { kind: TokenKind::Word, text, .. }) => (*text).to_owned(),
            Some(Token { kind: TokenKind::Quoted(name), .. }) if !name.is_empty() => name.clone(),
            _ => return Err(self.unexpected("the name of a field", &[])),
        };
        self.next += 1;
        Ok(name)
    }

    fn length(&mut self) -> Result<Option<u32>, TypeError> {
        if !self.takes_symbol('(') {
            return Ok(None);
        }
        let length = self.number(1, LONGEST, "a length of 1 to 2147483647")?;
        self.symbol(')')?;
        Ok(u32::try_from(length).ok())
    }

    /// Like [`Self::length`]; the longest length is the same as none, as STRING is VARCHAR(2147483647).
    fn unbounded_length(&mut self) -> Result<Option<u32>, TypeError> {
        Ok(self.length()?.filter(|length| u64::from(*length) < LONGEST))
    }

    fn precision(&mut self, default: u8) -> Result<u8, TypeError> {
        if !self.takes_symbol('(') {
            return Ok(default);
        }
        let precision = self.number(0, 9, "a precision of 0 to 9")?;
        self.symbol(')')?;
        // At most 9.
        Ok(precision as u8)
    }

    fn number(&mut self, min: u64, max: u64, expected: &str) -> Result<u64, TypeError> {
        let value = self.peek().filter(|token| token.kind == TokenKind::Number).and_then(|t| t.text.parse().ok());
        match value {
            Some(value) if (min..=max).contains(&value) => {
                self.next += 1;
                Ok(value)
            }
            _ => Err(self.unexpected(expected, &[])),
        }
    }
}

#[cfg(test)]
#[path = "type_parser_tests.rs"]
mod tests;
