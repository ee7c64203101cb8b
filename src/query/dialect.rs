//! What sqlparser needs to know of Flink's SQL.

use sqlparser::{
    ast::Expr,
    dialect::{Dialect, GenericDialect, Precedence},
    keywords::Keyword,
    parser::{Parser, ParserError},
};

use super::syntax;

/// Flink's dialect, which is Calcite's with the lexical rules of Java: names are case-sensitive and quoted with
/// backticks, a quote within a text is doubled, a backslash is a character like others, and double quotes quote
/// nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct FlinkDialect;

impl Dialect for FlinkDialect {
    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_' || character == '$'
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || character == '_' || character == '$'
    }

    /// `U&'\000A'`
    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    /// `INTERVAL '1' DAY`, never `INTERVAL '1 day'`.
    fn require_interval_qualifier(&self) -> bool {
        true
    }

    /// Words of which sqlparser tries a second reading, as a name, where what they begin cannot be read: within one
    /// another that would take twice as long at each level. Flink takes none of them for a name.
    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        use Keyword as K;
        matches!(word, K::CASE | K::CAST | K::TRY_CAST | K::SAFE_CAST | K::CONVERT | K::EXTRACT | K::CEIL | K::FLOOR)
            || matches!(word, K::POSITION | K::SUBSTR | K::SUBSTRING | K::OVERLAY | K::NOT | K::ARRAY)
            || GenericDialect {}.is_reserved_for_identifier(word)
    }

    /// Calcite's order where sqlparser has Postgres': what LIKE, BETWEEN and IN make is compared, and not the other way
    /// round.
    fn prec_value(&self, of: Precedence) -> u8 {
        match of {
            Precedence::Like | Precedence::Between => 25,
            other => GenericDialect {}.prec_value(other),
        }
    }

    /// IS DISTINCT FROM is a comparison like others.
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        syntax::is_distinct(parser).map(|_| Ok(self.prec_value(Precedence::Eq)))
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        syntax::prefix(parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        before: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        syntax::infix(parser, before, self.prec_value(Precedence::Eq))
    }

    /// Only so that a query with them is refused for what it has, and not as unreadable.
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    /// `GROUP BY GROUPING SETS (...)`, for the same reason.
    fn supports_group_by_expr(&self) -> bool {
        true
    }

    /// `MATCH_RECOGNIZE`, for the same reason.
    fn supports_match_recognize(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::{Token, Tokenizer};

    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        Tokenizer::new(&FlinkDialect, text).tokenize().unwrap()
    }

    #[test]
    fn texts_and_names_are_cut_as_flink_cuts_them() {
        let text = |text: &str| Token::SingleQuotedString(text.into());
        assert_eq!(tokens(r"'it''s \n'"), [text(r"it's \n")]);
        assert_eq!(tokens(r"U&'a\000Ab'"), [Token::UnicodeStringLiteral("a\nb".into())]);
        assert_eq!(tokens(r#""a""#), [Token::DoubleQuotedString("a".into())], "not a name");
        let [Token::Word(quoted), Token::Word(after)] = &tokens("`a b`STRING")[..] else { panic!() };
        assert_eq!((&*quoted.value, quoted.quote_style), ("a b", Some('`')));
        assert_eq!(after.keyword, Keyword::STRING);
        assert!(matches!(&tokens("größe_1")[..], [Token::Word(name)] if name.value == "größe_1"));
    }
}
