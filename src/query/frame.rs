//! The frame of a query: that it is one `SELECT ... FROM source [WHERE ...]`, and nothing that rows alone cannot
//! answer.

use std::ops::Range;

use sqlparser::{
    ast::{
        Distinct, Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
        SetOperator, Spanned, Statement, TableFactor, WildcardAdditionalOptions,
    },
    parser::{Parser, ParserError},
    tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace},
};

use super::{QueryError, dialect::FlinkDialect, lower::time::PARTS, place::Places};
use crate::model::nearest;

/// The name of the one table of a query.
pub(super) const SOURCE: &str = "source";
/// The most words, texts and symbols of a query. Trees of expressions are as deep as their text is long at most, and
/// they are walked and dropped by functions that call themselves.
const MOST_TOKENS: usize = 5_000;
/// How deep parentheses and the like may stand within one another.
const MOST_NESTING: usize = 60;
/// The same as sqlparser counts it, which counts signs and NOTs too, and every CASE and subquery twice.
const MOST_CALLS: usize = 3 * MOST_NESTING;
const A_QUERY: &str = "SELECT ... FROM source [WHERE ...]";

/// What a query consists of.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) items: Vec<SelectItem>,
    /// The condition of WHERE.
    pub(super) condition: Option<Expr>,
    /// What the source is called, if not `source`.
    pub(super) alias: Option<String>,
    /// What is refused, and does not keep the rest from being looked at.
    pub(super) wrong: Vec<QueryError>,
}

/// Reads a query and refuses what is not of a frame that works over batches of rows.
pub(super) fn read(places: &mut Places<'_>, text: &str) -> Result<Frame, Vec<QueryError>> {
    let tokens = tokens(places, text).map_err(|error| vec![error])?;
    places.set_tokens(&tokens);
    let strange = tokens.iter().filter_map(|one| strange(places, text, one));
    let mut wrong: Vec<QueryError> = strange.chain(places.bad_types().iter().cloned()).collect();
    wrong.extend(places.constructs());
    let parser = Parser::new(&FlinkDialect).with_recursion_limit(MOST_CALLS);
    let statements = match parser.with_tokens_with_locations(tokens).parse_statements() {
        Ok(statements) => statements,
        Err(error) => {
            // What was strange may be why it cannot be read.
            if wrong.is_empty() {
                let open = places.open_case().map(|at| QueryError::new(at, "this CASE has no END").expected("END"));
                wrong.push(open.unwrap_or_else(|| unreadable(places, error)));
            }
            wrong.sort_by_key(|error| error.at.start);
            return Err(wrong);
        }
    };
    let mut statements = statements.into_iter();
    let (first, second) = (statements.next(), statements.next());
    if let Some(second) = second {
        let at = places.range(second.span());
        let error = QueryError::new(at, "there is more than one statement").help("a query is one SELECT");
        return Err(vec![error]);
    }
    match first {
        Some(Statement::Query(query)) => frame(places, *query, wrong),
        None => Err(vec![QueryError::new(places.whole(), "the query is empty").expected(A_QUERY)]),
        other => {
            let what = other.map(|statement| statement.to_string());
            let word = what.as_deref().and_then(|text| text.split_whitespace().next()).unwrap_or("nothing").to_owned();
            let at = places.words(&[&word]).unwrap_or_else(|| places.whole());
            let error = QueryError::new(at, format!("{word} is no query"));
            Err(vec![error.expected(A_QUERY)])
        }
    }
}

fn tokens(places: &Places<'_>, text: &str) -> Result<Vec<TokenWithSpan>, QueryError> {
    let unreadable = |error: TokenizerError| {
        let start = places.offset(error.location).unwrap_or(0);
        let at = start..text.len();
        match &*error.message {
            "Unexpected EOF while in a multi-line comment" => {
                // The tokenizer says where the text ends.
                let start = text.rfind("/*").unwrap_or(start);
                QueryError::new(start..text.len(), "this comment has no end").expected("*/")
            }
            "Unterminated string literal" => QueryError::new(at, "this text has no end")
                .expected("'")
                .help("a quote within a text is doubled: 'it''s'"),
            _ => QueryError::new(at, error.message),
        }
    };
    let tokens = Tokenizer::new(&FlinkDialect, text).tokenize_with_location().map_err(unreadable)?;
    let counted = || tokens.iter().filter(|one| !matches!(one.token, Token::Whitespace(_)));
    if let Some(one) = counted().nth(MOST_TOKENS) {
        let at = places.range(one.span).start..places.whole().end;
        return Err(QueryError::new(at, format!("the query is longer than {MOST_TOKENS} words and symbols")));
    }
    match too_deep(counted().map(|one| (&one.token, one.span))) {
        Some(at) => Err(too_deep_at(places.range(at))),
        None => Ok(tokens),
    }
}

/// Where comments stand that go to the ends of their lines.
pub(super) fn line_comments(text: &str) -> Vec<Range<usize>> {
    let tokens = Tokenizer::new(&FlinkDialect, text).tokenize_with_location().unwrap_or_default();
    let is = |one: &&TokenWithSpan| matches!(one.token, Token::Whitespace(Whitespace::SingleLineComment { .. }));
    let places = Places::new(text);
    tokens.iter().filter(is).map(|one| places.range(one.span)).collect()
}

/// What sqlparser reads and Flink does not.
fn strange(places: &Places<'_>, text: &str, one: &TokenWithSpan) -> Option<QueryError> {
    let error = |what: &str| QueryError::new(places.range(one.span), what);
    match &one.token {
        Token::Whitespace(Whitespace::MultiLineComment(hint)) if hint.starts_with('+') => {
            Some(error("hints are not supported").help("options of the source stand in its definition"))
        }
        Token::DoubleQuotedString(name) => {
            let expected = format!("'{name}' for a text, `{name}` for a name");
            Some(error("double quotes quote nothing in Flink SQL").expected(expected))
        }
        Token::DoubleEq => Some(error("there is no operator == in Flink SQL").expected("=")),
        Token::Neq => {
            let error = error("there is no operator != in Flink SQL").expected("<>");
            (text.get(error.at.clone()) == Some("!=")).then_some(error)
        }
        Token::HexStringLiteral(digits) => {
            let error = error("Flink SQL has no numbers of base 16").expected(format!("x'{digits}' for bytes"));
            text.get(error.at.clone()).is_some_and(|text| text.starts_with("0x")).then_some(error)
        }
        Token::Char(c @ ('‘' | '’' | '“' | '”')) => Some(error(&format!("{c} is no quote")).expected("'")),
        _ => None,
    }
}

fn too_deep_at(at: Range<usize>) -> QueryError {
    QueryError::new(at, format!("expressions stand more than {MOST_NESTING} deep within one another"))
}

/// The first place that is too deep within parentheses, brackets and CASEs. sqlparser counts calls of its functions, and
/// does not say where they are too many.
fn too_deep<'t>(tokens: impl Iterator<Item = (&'t Token, Span)>) -> Option<Span> {
    let mut depth = 0_usize;
    for (token, span) in tokens {
        let word = |word: &str| matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word));
        if matches!(token, Token::LParen | Token::LBracket) || word("CASE") {
            depth += 1;
        } else if matches!(token, Token::RParen | Token::RBracket) || word("END") {
            depth = depth.saturating_sub(1);
        }
        if depth > MOST_NESTING {
            return Some(span);
        }
    }
    None
}

/// sqlparser says where in words at the end of its message.
fn unreadable(places: &Places<'_>, error: ParserError) -> QueryError {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        ParserError::RecursionLimitExceeded => return too_deep_at(places.whole()),
    };
    let (what, place) = match message.rsplit_once(" at Line: ") {
        Some((what, place)) => (what.to_owned(), place.split_once(", Column: ")),
        None => (message.clone(), None),
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let location = place.and_then(|(line, column)| Some(Location::new(number(line)?, number(column)?)));
    let at = match location.and_then(|location| places.offset(location)) {
        Some(start) => places.token_at(start),
        // sqlparser knows no place of the end.
        None => places.whole().end..places.whole().end,
    };
    let misspelt = misspelt(places, at.start);
    let error = match what.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: ")) {
        Some((expected, found)) => {
            let unit = (expected == "date/time field").then(|| PARTS.join(", "));
            let near = unit.is_some().then(|| nearest(found, PARTS)).flatten();
            let found = if found == "EOF" { "the query ends here".into() } else { format!("unexpected {found}") };
            QueryError::new(at, found).expected(unit.as_deref().unwrap_or(expected)).nearest(near)
        }
        None if what.starts_with("Expected an expression, found: ") => {
            let found = what.rsplit_once(": ").map_or("", |(_, found)| found);
            // It is the token behind that sqlparser knows the place of.
            let at = places.word_before(at.start, found).unwrap_or(at);
            QueryError::new(at, format!("unexpected {found}")).expected("an expression")
        }
        // What follows names the parser's own types.
        None if what.starts_with("No infix parser") => {
            let what = format!("there is no operator {} in Flink SQL", places.text(&at));
            QueryError::new(at, what)
        }
        None => QueryError::new(at, what),
    };
    match misspelt {
        Some((word, meant)) => error.help(format!("perhaps `{word}` was to be {meant}")),
        None => error,
    }
}

/// Words of a query that hold it together.
const WORDS: [&str; 15] = [
    "SELECT", "FROM", "WHERE", "BETWEEN", "LIKE", "ESCAPE", "CASE", "WHEN", "THEN", "ELSE", "END", "AND", "NOT",
    "NULL", "CAST",
];

/// The word that stands there or beside it, if it is nearly one that holds a query together, and which one that is:
/// a word that is misspelt is often taken for a name, and what follows it is found to be wrong.
fn misspelt<'p>(places: &'p Places<'_>, start: usize) -> Option<(&'p str, &'static str)> {
    places.words_around(start).find_map(|word| {
        let is_one = WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
        let near = nearest(word, WORDS).filter(|near| near.len() > 3)?;
        (!is_one).then_some((word, near))
    })
}

/// Why a construct does not work here.
const WHY: &str = "a query sees the rows of a batch one by one, and keeps nothing between batches";

fn frame(places: &Places<'_>, query: Query, mut wrong: Vec<QueryError>) -> Result<Frame, Vec<QueryError>> {
    let mut refuse = |there: bool, words: &[&str], what: &str| {
        if there {
            let at = places.words(words).unwrap_or_else(|| places.whole());
            wrong.push(QueryError::new(at, format!("{what} is not supported")).help(WHY));
        }
    };
    refuse(query.with.is_some(), &["WITH"], "WITH");
    refuse(query.order_by.is_some(), &["ORDER", "BY"], "ORDER BY");
    let limit = places.words(&["LIMIT"]).is_some();
    refuse(query.limit_clause.is_some() && limit, &["LIMIT"], "LIMIT");
    refuse(query.limit_clause.is_some() && !limit, &["OFFSET"], "OFFSET");
    refuse(query.fetch.is_some(), &["FETCH"], "FETCH");
    refuse(!query.locks.is_empty() || query.for_clause.is_some(), &["FOR"], "FOR");
    let more = query.settings.is_some() || query.format_clause.is_some() || !query.pipe_operators.is_empty();
    refuse(more, &[], "what follows the query");
    match *query.body {
        SetExpr::Select(select) => match select_frame(places, *select, &mut wrong) {
            Some(frame) if query.with.is_none() => Ok(Frame { wrong, ..frame }),
            _ => {
                wrong.sort_by_key(|error| error.at.start);
                Err(wrong)
            }
        },
        SetExpr::SetOperation { op, .. } => {
            let word = match op {
                SetOperator::Union => "UNION",
                SetOperator::Intersect => "INTERSECT",
                SetOperator::Except | SetOperator::Minus => "EXCEPT",
            };
            refuse(true, &[word], word);
            Err(wrong)
        }
        SetExpr::Query(_) => {
            let error = QueryError::new(places.whole(), "parentheses around a query are not supported");
            Err(vec![error.expected(A_QUERY)])
        }
        SetExpr::Values(_) => {
            refuse(true, &["VALUES"], "VALUES");
            Err(wrong)
        }
        _ => {
            let error = QueryError::new(places.whole(), "this is no query");
            Err(vec![error.expected(A_QUERY)])
        }
    }
}

/// Every clause of a SELECT is looked at, and one that is there and not known here is refused.
fn select_frame(places: &Places<'_>, select: Select, wrong: &mut Vec<QueryError>) -> Option<Frame> {
    let mut refuse = |there: bool, words: &[&str], what: &str| {
        if there {
            let at = places.words(words).unwrap_or_else(|| places.whole());
            wrong.push(QueryError::new(at, format!("{what} is not supported")).help(WHY));
        }
    };
    let grouped = match &select.group_by {
        sqlparser::ast::GroupByExpr::All(_) => true,
        sqlparser::ast::GroupByExpr::Expressions(expressions, modifiers) => {
            !expressions.is_empty() || !modifiers.is_empty()
        }
    };
    let distinct = matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_)));
    refuse(distinct, &["DISTINCT"], "SELECT DISTINCT");
    refuse(select.top.is_some(), &["TOP"], "TOP");
    refuse(select.into.is_some(), &["INTO"], "SELECT INTO");
    refuse(!select.lateral_views.is_empty(), &["LATERAL", "VIEW"], "LATERAL VIEW");
    refuse(select.prewhere.is_some(), &["PREWHERE"], "PREWHERE");
    refuse(!select.connect_by.is_empty(), &["CONNECT", "BY"], "CONNECT BY");
    refuse(grouped, &["GROUP", "BY"], "GROUP BY");
    refuse(!select.cluster_by.is_empty(), &["CLUSTER", "BY"], "CLUSTER BY");
    refuse(!select.distribute_by.is_empty(), &["DISTRIBUTE", "BY"], "DISTRIBUTE BY");
    refuse(!select.sort_by.is_empty(), &["SORT", "BY"], "SORT BY");
    refuse(select.having.is_some(), &["HAVING"], "HAVING");
    refuse(!select.named_window.is_empty(), &["WINDOW"], "WINDOW");
    refuse(select.qualify.is_some(), &["QUALIFY"], "QUALIFY");
    let strange = select.select_modifiers.is_some() || select.exclude.is_some() || select.value_table_mode.is_some();
    refuse(strange, &["SELECT"], "what follows SELECT");
    let alias = source(places, &select, wrong).map_err(|error| wrong.push(error)).ok()?;
    Some(Frame { items: select.projection, condition: select.selection, alias, wrong: Vec::new() })
}

/// Answers the alias of the source. One table by a wrong name is taken for it all the same, so that the rest can be
/// looked at.
fn source(places: &Places<'_>, select: &Select, wrong: &mut Vec<QueryError>) -> Result<Option<String>, QueryError> {
    let [from] = &select.from[..] else {
        return Err(match select.from.get(1) {
            None => {
                let end = places.whole().end;
                QueryError::new(end..end, "the query has no FROM").expected("FROM source")
            }
            Some(second) => {
                let error =
                    QueryError::new(places.range(second.span()), "a query reads one table, and here is another");
                error.help("joins are not supported: ".to_owned() + WHY)
            }
        });
    };
    if let Some(join) = from.joins.first() {
        let at = places.words(&["JOIN"]).unwrap_or_else(|| places.range(join.span()));
        return Err(QueryError::new(at, "JOIN is not supported").help(WHY));
    }
    let refused = |what: &str| {
        let error = QueryError::new(places.range(from.span()), format!("{what} is not supported"));
        Err(error.expected("FROM source").help(WHY))
    };
    match &from.relation {
        TableFactor::Table { name, alias, args: None, version: None, sample: None, partitions, .. }
            if partitions.is_empty() =>
        {
            let called = named(places, name).map_err(|error| wrong.push(error));
            match alias {
                Some(alias) if !alias.columns.is_empty() => refused("an alias with names of columns"),
                Some(alias) => {
                    wrong.extend(quoted(places, &alias.name));
                    Ok(Some(alias.name.value.clone()))
                }
                None if called.is_err() => {
                    Ok(name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.clone()))
                }
                None => Ok(None),
            }
        }
        TableFactor::Table { sample: Some(_), .. } => refused("TABLESAMPLE"),
        TableFactor::Table { version: Some(_), .. } => refused("FOR SYSTEM_TIME AS OF"),
        TableFactor::Table { .. } | TableFactor::TableFunction { .. } | TableFactor::Function { .. } => {
            refused("a table function")
        }
        TableFactor::Derived { lateral: true, .. } => refused("LATERAL"),
        TableFactor::Derived { .. } => refused("a subquery"),
        TableFactor::UNNEST { .. } => refused("UNNEST"),
        TableFactor::MatchRecognize { .. } => refused("MATCH_RECOGNIZE"),
        TableFactor::NestedJoin { .. } => refused("JOIN"),
        _ => refused("this table"),
    }
}

/// The one table is `source`, in exactly these letters, as names are in Flink.
fn named(places: &Places<'_>, name: &ObjectName) -> Result<(), QueryError> {
    let idents: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match idents[..] {
        [one] if one.value == SOURCE => Ok(()),
        _ => {
            let error = QueryError::new(places.range(name.span()), format!("there is no table {name}"));
            let error = error.expected(SOURCE).help("a query reads the source of its pipeline, by this name");
            Err(error.nearest(nearest(&name.to_string(), [SOURCE])))
        }
    }
}

/// A name in single quotes, which sqlparser takes.
fn quoted(places: &Places<'_>, name: &Ident) -> Option<QueryError> {
    let error = || QueryError::new(places.of_text(name), "single quotes quote texts, and no names, in Flink SQL");
    (name.quote_style == Some('\'')).then(|| error().expected(format!("`{}`", name.value)))
}

/// One item of the select list.
pub(super) enum Item<'a> {
    /// `*` or `s.*`: all columns.
    All,
    /// An expression and the name given to it.
    One(&'a Expr, Option<&'a Ident>),
}

/// Sorts an item of the select list.
pub(super) fn item<'a>(places: &Places<'_>, frame: &Frame, item: &'a SelectItem) -> Result<Item<'a>, QueryError> {
    let plain = |more: &WildcardAdditionalOptions| {
        let WildcardAdditionalOptions {
            opt_ilike, opt_exclude, opt_except, opt_replace, opt_rename, opt_alias, ..
        } = more;
        let none = opt_ilike.is_none()
            && opt_exclude.is_none()
            && opt_except.is_none()
            && opt_replace.is_none()
            && opt_rename.is_none()
            && opt_alias.is_none();
        let error = || QueryError::new(places.range(item.span()), "nothing may follow * in Flink SQL");
        if none { Ok(Item::All) } else { Err(error()) }
    };
    match item {
        SelectItem::UnnamedExpr(expression) => Ok(Item::One(expression, None)),
        SelectItem::ExprWithAlias { expr, alias } => match quoted(places, alias) {
            Some(error) => Err(error),
            None => Ok(Item::One(expr, Some(alias))),
        },
        SelectItem::Wildcard(more) => plain(more),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), more) => {
            let known = frame.alias.as_deref().unwrap_or(SOURCE);
            match &name.0[..] {
                [one] if one.as_ident().is_some_and(|ident| ident.value == known) => plain(more),
                _ => {
                    let error = QueryError::new(places.range(name.span()), format!("there is no table {name}"));
                    Err(error.expected(format!("{known}.*")).nearest(nearest(&name.to_string(), [known])))
                }
            }
        }
        SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
            Err(QueryError::new(places.range(item.span()), "this is not supported in a select list"))
        }
    }
}
