//! Parses a statement with the stack of a guest, which has 512 KiB.
//!
//! The parser is recursive, and a guest whose stack overflows ends in a trap. So a statement that
//! could need more stack is refused. The sizes below are upper bounds of what the component needs.

use sqlparser::ast::Query;
use sqlparser::dialect::{Dialect as Syntax, PostgreSqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use wattle_plugin::sql::Dialect;

use crate::statement::Refusal;

/// Maximum number of tokens of a statement. An operator of one token, such as `NOTNULL`, adds a
/// level to the tree, and a walk over the tree takes some 450 bytes a level. Real statements have a
/// few hundred tokens.
const TOKENS: usize = 800;

/// Stack in bytes that the parser may use. The calls around it take less than 50 KiB.
const STACK_BYTES: usize = 450 << 10;

/// Stack of a level that the parser counts: of a query, a table or an operand inside of another.
const LEVEL_BYTES: usize = 15 << 10;

/// Stack of a level that the parser does not count: of a join behind a join without a condition, or
/// of nested columns of `JSON_TABLE`.
const JOIN_BYTES: usize = 5 << 10;

/// Stack that the parser uses for a level of an operand that it copies.
const COPY_BYTES: usize = 700;

/// Operators whose left operand the parser copies.
const COPYING: [Keyword; 3] = [Keyword::GLOB, Keyword::MATCH, Keyword::REGEXP];

/// Keywords that begin a query. Neither database has queries that begin with `FROM`.
const QUERY: [Keyword; 3] = [Keyword::SELECT, Keyword::VALUES, Keyword::WITH];

/// Returns the only statement of a text, which must be a query. The first token of a statement shows
/// whether it is one, so the component needs no parser of other statements.
pub(super) fn query(text: &str, dialect: &Dialect) -> Result<Query, Refusal> {
    let tokens = tokens(text, dialect)?;
    // `Parser::parse_statement` would take one of the levels.
    let levels = levels(&tokens).saturating_sub(1);
    let mut parser = Parser::new(syntax(dialect))
        .with_recursion_limit(levels)
        .with_tokens_with_locations(tokens);
    skip_semicolons(&mut parser);
    match &parser.peek_token_ref().token {
        Token::EOF => return Err(Refusal::Empty),
        Token::LParen => {}
        Token::Word(word) if QUERY.contains(&word.keyword) => {}
        Token::Word(word) if word.keyword != Keyword::NoKeyword => {
            return Err(Refusal::NotOneQuery);
        }
        _ => {
            let next = parser.peek_token_ref();
            return parser.expected_ref("an SQL statement", next).map_err(refusal);
        }
    }
    let query = parser.parse_query().map_err(refusal)?;
    let is_delimited = skip_semicolons(&mut parser);
    let next = parser.peek_token_ref();
    if next.token == Token::EOF {
        Ok(*query)
    } else if is_delimited {
        Err(Refusal::NotOneQuery)
    } else {
        parser.expected_ref("end of statement", next).map_err(refusal)
    }
}

/// Skips semicolons. Returns true if there are any.
fn skip_semicolons(parser: &mut Parser<'_>) -> bool {
    let mut is_delimited = false;
    while parser.consume_token(&Token::SemiColon) {
        is_delimited = true;
    }
    is_delimited
}

fn refusal(error: ParserError) -> Refusal {
    match error {
        ParserError::RecursionLimitExceeded => Refusal::TooDeep,
        error => Refusal::Syntax(error.to_string()),
    }
}

/// Returns the tokens of a text, with its whitespace.
pub(super) fn tokens(text: &str, dialect: &Dialect) -> Result<Vec<TokenWithSpan>, Refusal> {
    let tokens = Tokenizer::new(syntax(dialect), text)
        .tokenize_with_location()
        .map_err(|error| Refusal::Syntax(error.to_string()))?;
    if words(&tokens) > TOKENS { Err(Refusal::TooLong) } else { Ok(tokens) }
}

fn syntax(dialect: &Dialect) -> &'static dyn Syntax {
    match dialect {
        Dialect::Postgres => &PostgreSqlDialect {},
        _ => &SQLiteDialect {},
    }
}

/// Counts the tokens without whitespace.
fn words(tokens: &[TokenWithSpan]) -> usize {
    tokens.iter().filter(|it| !matches!(it.token, Token::Whitespace(_))).count()
}

/// Returns the number of levels for which the stack suffices, of those that the parser counts.
fn levels(tokens: &[TokenWithSpan]) -> usize {
    let count = |keywords: &[Keyword]| {
        let is_one =
            |token: &Token| matches!(token, Token::Word(it) if keywords.contains(&it.keyword));
        tokens.iter().filter(|it| is_one(&it.token)).count()
    };
    let joins = count(&[Keyword::JOIN, Keyword::NESTED]);
    let copied = if count(&COPYING) > 0 { words(tokens) } else { 0 };
    STACK_BYTES.saturating_sub(joins * JOIN_BYTES + copied * COPY_BYTES) / LEVEL_BYTES
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::{Refusal, TOKENS, query};

    /// Returns a query on `before` written `times` times, a field, and `after` written as often.
    fn nested(before: &str, after: &str, times: usize) -> String {
        let (before, after) = (before.repeat(times), after.repeat(times));
        format!("WITH x AS (SELECT {before}id{after} FROM orders) SELECT * FROM x")
    }

    #[test]
    fn text_is_one_query() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let all = "SELECT 1|(SELECT 1)|VALUES (1)|WITH x AS (SELECT 1) SELECT * FROM x|\
                ; -- first\n ; SELECT 1 ; /* last */ ;";
            for text in all.split('|') {
                assert!(query(text, &dialect).is_ok(), "{text}");
            }
            for text in ["", "-- SELECT 1", "; /* SELECT 1 */ ;"] {
                assert_eq!(query(text, &dialect).unwrap_err(), Refusal::Empty, "{text}");
            }
            let all = "/* all */ DROP TABLE orders|CREATE TABLE|EXPLAIN SELECT 1|FROM orders|\
                SELECT 1; SELECT 2|SELECT 1; -- next\n; nothing";
            for text in all.split('|') {
                assert_eq!(query(text, &dialect).unwrap_err(), Refusal::NotOneQuery, "{text}");
            }
            for (text, token) in
                [("SELEC 1", "SELEC"), ("\"SELECT\" 1", "\"SELECT\""), (") SELECT 1", ")")]
            {
                let expected = format!(
                    "sql parser error: Expected: an SQL statement, found: {token} at Line: 1, \
                     Column: 1"
                );
                assert_eq!(query(text, &dialect).unwrap_err(), Refusal::Syntax(expected), "{text}");
            }
            for (text, token) in [
                ("SELECT 1 SELECT 2", "SELECT"),
                ("SELECT 1 ); SELECT 2", ")"),
                ("SELECT 1 END", "END"),
            ] {
                let expected = format!(
                    "sql parser error: Expected: end of statement, found: {token} at Line: 1, \
                     Column: 10"
                );
                assert_eq!(query(text, &dialect).unwrap_err(), Refusal::Syntax(expected), "{text}");
            }
        }
    }

    #[test]
    fn deep_statements_are_refused() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            for (before, after, accepted) in [
                ("ABS(", ")", 20),
                ("(", ")", 20),
                ("- ", "", 20),
                ("(SELECT ", ")", 10),
                ("id IN (SELECT ", ")", 10),
                ("(SELECT 1 FROM (SELECT ", ") AS y)", 5),
            ] {
                let parsed = |times: usize| query(&nested(before, after, times), &dialect);
                assert!(parsed(accepted).is_ok(), "{before}");
                assert_eq!(parsed(30).unwrap_err(), Refusal::TooDeep, "{before}");
            }
        }
    }

    /// The parser does not count these levels.
    #[test]
    fn joins_without_conditions_are_levels() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let parsed = |join: &str, times: usize| {
                let joins = join.repeat(times);
                let text = format!("WITH x AS (SELECT 1 FROM orders{joins}) SELECT * FROM x");
                query(&text, &dialect)
            };
            for join in [" JOIN customers ON 1 = 1", " JOIN customers", " LEFT JOIN customers"] {
                assert!(parsed(join, 30).is_ok(), "{join}");
                assert_eq!(parsed(join, 90).unwrap_err(), Refusal::TooDeep, "{join}");
            }
        }
    }

    #[test]
    fn long_operands_that_are_copied_are_levels() {
        let parsed = |levels: usize, after: &str| {
            query(
                &nested("", &format!("{}{after}", " NOTNULL".repeat(levels)), 1),
                &Dialect::Sqlite,
            )
        };
        for operator in [" GLOB 'a'", " MATCH 'a'", " REGEXP 'a'"] {
            assert!(parsed(100, operator).is_ok(), "{operator}");
            assert_eq!(parsed(700, operator).unwrap_err(), Refusal::TooDeep, "{operator}");
        }
        assert!(parsed(700, "").is_ok());
        assert_eq!(parsed(TOKENS, "").unwrap_err(), Refusal::TooLong);
    }
}
