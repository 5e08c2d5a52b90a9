//! Bounds how deep a query nests, before it is parsed.
//!
//! The parser counts only some of its recursion. It parses a chain such as `1 + 1 + 1` or `a UNION
//! b UNION c` in a loop, but the tree of the chain has a level for each operator. It recurses over
//! `a JOIN b JOIN c` without counting. Copying and dropping a tree recurse over its levels, and a
//! stack overflow ends the process.

use serde_json::json;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use wattle_graph::failure::{Failure, code};

use crate::statement::Dialect;

/// Maximum depth of nested brackets, and of the recursion that the parser counts.
pub(super) const BRACKETS: usize = 64;

/// Maximum levels of the tree of a query. SQLite accepts 256 levels of an expression and 500 parts
/// of a `UNION`. A branch of a `CASE` counts as about five levels.
const LEVELS: usize = 1_000;

/// Rejects a query whose brackets or whose tree nest too deep. The count of levels is an upper
/// bound, since only the parser knows which words are operators.
pub(super) fn check(dialect: Dialect, tokens: &[Token]) -> Result<(), Failure> {
    let (mut outer, mut current) = (Vec::new(), Level::default());
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                outer.push(current);
                current = Level::default();
                if outer.len() > BRACKETS {
                    return Err(too_deep(dialect, "nested brackets", BRACKETS));
                }
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                current = current.closed(outer.pop());
            }
            Token::Comma => current.end_item(),
            Token::Word(word) if is_set_operator(word.keyword) => current.end_arm(),
            token if is_operator(token) => current.chain += 1,
            _ => {}
        }
    }
    while let Some(level) = outer.pop() {
        current = current.closed(Some(level));
    }
    if current.depth() > LEVELS {
        return Err(too_deep(dialect, "levels of operators", LEVELS));
    }
    Ok(())
}

/// Returns the failure of a query that nests too deep.
pub(super) fn too_deep(dialect: Dialect, what: &str, allowed: usize) -> Failure {
    let message = format!(
        "the SQL query has too many {what}, {allowed} are allowed; write `IN (...)` for a chain of \
         `OR`, or split the query"
    );
    let details = json!({ "limit": "sql.nesting", "allowed": allowed, "dialect": dialect.name() });
    Failure::new(code::LIMIT, message).with_details(details)
}

/// Counts of the tokens between two brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Levels of the current item of a list. Commas separate items.
    chain: usize,
    /// Levels of the deepest item before the current item.
    deepest: usize,
    /// Number of set operators. Commas do not end a chain of set operators.
    arms: usize,
}

impl Level {
    fn depth(self) -> usize {
        self.arms + self.deepest.max(self.chain)
    }

    fn end_item(&mut self) {
        self.deepest = self.deepest.max(self.chain);
        self.chain = 0;
    }

    fn end_arm(&mut self) {
        self.end_item();
        self.arms += 1;
    }

    /// Closes the current brackets, and returns the counts of the outer brackets (`outer`). The
    /// closed brackets are an operand there: the current item of the outer brackets has one level
    /// more than its levels so far or the content of the closed brackets, whichever is deeper.
    fn closed(self, outer: Option<Self>) -> Self {
        let outer = outer.unwrap_or_default();
        Self { chain: outer.chain.max(self.depth()) + 1, ..outer }
    }
}

fn is_set_operator(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS)
}

/// Returns true if the token can add a level. A keyword that is used as a name also counts.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.keyword != Keyword::NoKeyword,
        Token::Whitespace(_)
        | Token::Period
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::Placeholder(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn is_allowed(text: &str) -> bool {
        let dialect = Dialect::Postgres;
        let tokens = Tokenizer::new(dialect.parser(), text).tokenize().unwrap();
        match check(dialect, &tokens) {
            Ok(()) => true,
            Err(failure) => {
                assert_eq!(failure.code, "limit", "{text}");
                assert_eq!(failure.details.unwrap()["limit"], "sql.nesting", "{text}");
                false
            }
        }
    }

    #[test]
    fn depth_of_nested_brackets_is_limited() {
        let nested = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
        assert!(is_allowed(&nested(BRACKETS)));
        assert!(!is_allowed(&nested(BRACKETS + 1)));
        assert!(!is_allowed(&"[".repeat(BRACKETS + 1)), "without closing brackets");
    }

    #[test]
    fn length_of_a_chain_of_operators_is_limited() {
        for link in
            [" + 1", " JOIN b", " IS NULL", "::int", " MATCH b", "[1]", " UNION SELECT 1, 2"]
        {
            assert!(!is_allowed(&format!("SELECT a{}", link.repeat(LEVELS + 1))), "{link}");
            assert!(is_allowed(&format!("SELECT a{}", link.repeat(LEVELS / 10))), "{link}");
        }
    }

    /// The first operand of a chain may be a chain in brackets.
    #[test]
    fn chains_in_brackets_count_for_the_chain_after_the_brackets() {
        let chain = " + 1".repeat(LEVELS / 2);
        assert!(is_allowed(&format!("SELECT 1 + (1{chain})")));
        assert!(!is_allowed(&format!("SELECT ((1{chain}), 1){chain}")));
        assert!(!is_allowed(&format!("SELECT 1, (2{chain}{chain} + 3")), "without an end bracket");
    }

    #[test]
    fn long_lists_of_rows_and_columns_are_allowed() {
        let rows = ", (1, 'a', b.c)".repeat(10 * LEVELS);
        assert!(is_allowed(&format!("VALUES (1, 'a', b.c){rows}")));
        let columns = ", a + b * 2 AS c".repeat(LEVELS);
        assert!(is_allowed(&format!("SELECT 1{columns} FROM t WHERE a IN (1{rows})")));
    }
}
