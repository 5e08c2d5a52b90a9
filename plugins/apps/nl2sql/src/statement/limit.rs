//! Limits the rows of a statement.

use std::ops::Range;

use sqlparser::ast::LimitClause;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use wattle_plugin::sql::Dialect;

use crate::statement::cut::offset;
use crate::statement::parse;

/// Limits a statement to `rows` rows, unless it has a limit. `LIMIT ALL` and an `OFFSET` alone are
/// no limit.
pub(crate) fn limited(sql: &str, dialect: &Dialect, rows: usize) -> String {
    let Ok(query) = parse::query(sql, dialect) else { return sql.to_owned() };
    let has_limit = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.is_some(),
        Some(LimitClause::OffsetCommaLimit { .. }) => true,
        None => false,
    };
    if has_limit || query.fetch.is_some() {
        return sql.to_owned();
    }
    match limit_all(sql, dialect) {
        Some(Range { start, end }) => format!("{}{rows}{}", &sql[..start], &sql[end..]),
        None => format!("{sql}\nLIMIT {rows}"),
    }
}

/// Returns the place of `ALL` in the clause `LIMIT ALL` of the query itself, which the syntax tree
/// does not have.
fn limit_all(sql: &str, dialect: &Dialect) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let mut is_after_limit = false;
    for token in parse::tokens(sql, dialect).ok()? {
        let keyword = match &token.token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_after_limit && keyword == Keyword::ALL => {
                return Some(offset(sql, token.span.start)..offset(sql, token.span.end));
            }
            _ => {}
        }
        is_after_limit = keyword == Keyword::LIMIT;
    }
    None
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::limited;

    const DIALECTS: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

    #[test]
    fn limit_is_added_if_there_is_none() {
        for dialect in DIALECTS {
            for sql in [
                "WITH x AS (SELECT 1 LIMIT 1) SELECT * FROM x -- all",
                "WITH x AS (SELECT 1 LIMIT ALL) SELECT * FROM x",
                "WITH x AS (SELECT 1) SELECT * FROM x OFFSET 3",
            ] {
                assert_eq!(limited(sql, &dialect, 5), format!("{sql}\nLIMIT 5"));
            }
        }
    }

    #[test]
    fn limit_is_kept() {
        for dialect in DIALECTS {
            for end in ["LIMIT 3 OFFSET 1", "OFFSET 1 LIMIT 3", "FETCH FIRST 3 ROWS ONLY"] {
                let sql = format!("WITH x AS (SELECT 1) SELECT * FROM x {end}");
                assert_eq!(limited(&sql, &dialect, 5), sql);
            }
        }
        let sql = "WITH x AS (SELECT 1) SELECT * FROM x LIMIT 1, 3";
        assert_eq!(limited(sql, &Dialect::Sqlite, 5), sql);
    }

    #[test]
    fn limit_of_all_rows_is_replaced() {
        for dialect in DIALECTS {
            for (end, limit) in [
                ("LIMIT ALL", "LIMIT 5"),
                ("limit /* 3 */ all OFFSET 2", "limit /* 3 */ 5 OFFSET 2"),
                ("OFFSET 2 LIMIT ALL -- all", "OFFSET 2 LIMIT 5 -- all"),
            ] {
                let start = "WITH x AS (SELECT '金额' AS n LIMIT ALL) SELECT * FROM x";
                assert_eq!(
                    limited(&format!("{start} {end}"), &dialect, 5),
                    format!("{start} {limit}")
                );
            }
        }
    }
}
