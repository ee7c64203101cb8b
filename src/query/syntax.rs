//! What of Flink's SQL sqlparser does not read by itself: `JSON_VALUE` and its like with what may stand within them,
//! `IS JSON`, and `TRIM(BOTH FROM ...)`. Each becomes the call of a function, whose further arguments are texts.

use sqlparser::{
    ast::{
        Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, Value,
    },
    parser::{Parser, ParserError},
    tokenizer::{Span, Token, Word},
};

/// The functions that are read here.
pub(super) const READ_HERE: [&str; 3] = ["JSON_VALUE", "JSON_QUERY", "JSON_EXISTS"];

fn call(name: &str, span: Span, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_span(span, name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.into()))
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(word))
}

/// Whether these words stand next.
fn stands(parser: &Parser<'_>, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(at, word)| is_word(&parser.peek_nth_token_ref(at).token, word))
}

/// Takes these words if they stand next.
fn takes(parser: &mut Parser<'_>, words: &[&str]) -> bool {
    let there = stands(parser, words);
    if there {
        words.iter().for_each(|_| parser.advance_token());
    }
    there
}

/// What begins an expression, if it is one of those that are read here.
pub(super) fn prefix(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let next = parser.peek_token_ref();
    let span = next.span;
    if let Some(name) = READ_HERE.into_iter().find(|name| is_word(&next.token, name)) {
        parser.advance_token();
        parser.advance_token();
        return Some(match name {
            "JSON_VALUE" => json_value(parser, span),
            "JSON_QUERY" => json_query(parser, span),
            _ => json_exists(parser, span),
        });
    }
    if is_word(&next.token, "TRIM") && is_word(&parser.peek_nth_token_ref(3).token, "FROM") {
        let places = [("BOTH", "TRIM"), ("LEADING", "LTRIM"), ("TRAILING", "RTRIM")];
        let place = &parser.peek_nth_token_ref(2).token;
        let name = places.into_iter().find(|(word, _)| is_word(place, word)).map(|(_, name)| name)?;
        (0..4).for_each(|_| parser.advance_token());
        return Some(parser.parse_expr().and_then(|arg| {
            parser.expect_token(&Token::RParen)?;
            Ok(call(name, span, vec![arg]))
        }));
    }
    None
}

/// Whether `IS [NOT] DISTINCT FROM` stands next, and how many words it has.
pub(super) fn is_distinct(parser: &Parser<'_>) -> Option<usize> {
    let forms: [&[&str]; 2] = [&["IS", "DISTINCT", "FROM"], &["IS", "NOT", "DISTINCT", "FROM"]];
    forms.into_iter().find(|words| stands(parser, words)).map(<[_]>::len)
}

/// `IS [NOT] DISTINCT FROM` and `IS [NOT] JSON [VALUE | OBJECT | ARRAY | SCALAR]` behind an expression.
pub(super) fn infix(parser: &mut Parser<'_>, expression: &Expr, distinct: u8) -> Option<Result<Expr, ParserError>> {
    if let Some(words) = is_distinct(parser) {
        (0..words).for_each(|_| parser.advance_token());
        // sqlparser would take all that follows, also behind an AND.
        let right = parser.parse_subexpr(distinct).map(Box::new);
        let left = Box::new(expression.clone());
        let whole = if words == 3 { Expr::IsDistinctFrom } else { Expr::IsNotDistinctFrom };
        return Some(right.map(|right| whole(left, right)));
    }
    let span = parser.peek_token_ref().span;
    let negated = takes(parser, &["IS", "NOT", "JSON"]);
    if !negated && !takes(parser, &["IS", "JSON"]) {
        return None;
    }
    let kinds = ["VALUE", "OBJECT", "ARRAY", "SCALAR"];
    let kind = kinds.into_iter().find(|kind| takes(parser, &[kind])).unwrap_or("VALUE");
    let name = if negated { "IS NOT JSON" } else { "IS JSON" };
    Some(Ok(call(name, span, vec![expression.clone(), text(kind)])))
}

/// Input and path.
fn beginning(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let input = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    Ok(vec![input, parser.parse_expr()?])
}

/// `JSON_VALUE(input, path, returning, empty, default of empty, error, default of error)`
fn json_value(parser: &mut Parser<'_>, span: Span) -> Result<Expr, ParserError> {
    let mut args = beginning(parser)?;
    let returning = if takes(parser, &["RETURNING"]) { parser.parse_data_type()?.to_string() } else { "STRING".into() };
    let null = || Expr::value(Value::Null);
    let (mut empty, mut error) = ((text("NULL"), null()), (text("NULL"), null()));
    loop {
        let behaviour = if takes(parser, &["NULL", "ON"]) {
            (text("NULL"), null())
        } else if takes(parser, &["ERROR", "ON"]) {
            (text("ERROR"), null())
        } else if takes(parser, &["DEFAULT"]) {
            let value = parser.parse_expr()?;
            if !takes(parser, &["ON"]) {
                return parser.expected_ref("ON EMPTY or ON ERROR", parser.peek_token_ref());
            }
            (text("DEFAULT"), value)
        } else {
            break;
        };
        if takes(parser, &["EMPTY"]) {
            empty = behaviour;
        } else if takes(parser, &["ERROR"]) {
            error = behaviour;
        } else {
            return parser.expected_ref("EMPTY or ERROR", parser.peek_token_ref());
        }
    }
    parser.expect_token(&Token::RParen)?;
    args.extend([text(&returning), empty.0, empty.1, error.0, error.1]);
    Ok(call("JSON_VALUE", span, args))
}

/// `JSON_QUERY(input, path, wrapper, empty, error)`
fn json_query(parser: &mut Parser<'_>, span: Span) -> Result<Expr, ParserError> {
    let mut args = beginning(parser)?;
    let mut wrapper = "WITHOUT";
    if takes(parser, &["WITHOUT"])
        || takes(parser, &["WITH", "CONDITIONAL"])
        || takes(parser, &["WITH", "UNCONDITIONAL"])
        || takes(parser, &["WITH"])
    {
        let before = parser.get_current_token();
        wrapper = match () {
            () if is_word(&before.token, "WITHOUT") => "WITHOUT",
            () if is_word(&before.token, "CONDITIONAL") => "CONDITIONAL",
            () => "UNCONDITIONAL",
        };
        takes(parser, &["ARRAY"]);
        if !takes(parser, &["WRAPPER"]) {
            return parser.expected_ref("WRAPPER", parser.peek_token_ref());
        }
    }
    let (mut empty, mut error) = ("NULL", "NULL");
    loop {
        let kinds: [(&[&str], &str); 4] = [
            (&["NULL", "ON"], "NULL"),
            (&["ERROR", "ON"], "ERROR"),
            (&["EMPTY", "ARRAY", "ON"], "[]"),
            (&["EMPTY", "OBJECT", "ON"], "{}"),
        ];
        let Some((_, kind)) = kinds.into_iter().find(|(words, _)| takes(parser, words)) else { break };
        if takes(parser, &["EMPTY"]) {
            empty = kind;
        } else if takes(parser, &["ERROR"]) {
            error = kind;
        } else {
            return parser.expected_ref("EMPTY or ERROR", parser.peek_token_ref());
        }
    }
    parser.expect_token(&Token::RParen)?;
    args.extend([text(wrapper), text(empty), text(error)]);
    Ok(call("JSON_QUERY", span, args))
}

/// `JSON_EXISTS(input, path, error)`
fn json_exists(parser: &mut Parser<'_>, span: Span) -> Result<Expr, ParserError> {
    let mut args = beginning(parser)?;
    let kinds = ["TRUE", "FALSE", "UNKNOWN", "ERROR"];
    let kind = kinds.into_iter().find(|kind| takes(parser, &[kind, "ON", "ERROR"])).unwrap_or("FALSE");
    parser.expect_token(&Token::RParen)?;
    args.push(text(kind));
    Ok(call("JSON_EXISTS", span, args))
}
