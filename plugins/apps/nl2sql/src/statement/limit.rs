//! Limits the rows of a statement.

use std::ops::Range;

use sqlparser::ast::{Expr, LimitClause, Value};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use wattle_plugin::sql::Dialect;

use crate::statement::cut::offset;
use crate::statement::parse;

/// Limits a statement to `rows` rows, unless its limit is a whole number. `LIMIT ALL`, `FETCH FIRST
/// NULL ROWS ONLY`, any other limit and an `OFFSET` alone are no limit.
pub(crate) fn limited(sql: &str, dialect: &Dialect, rows: usize) -> String {
    let Ok(query) = parse::query(sql, dialect) else { return sql.to_owned() };
    let limit = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.as_ref(),
        Some(LimitClause::OffsetCommaLimit { limit, .. }) => Some(limit),
        None => None,
    };
    let fetch = query.fetch.as_ref();
    // `FETCH FIRST ROW ONLY` returns one row.
    let is_bound_fetch = fetch.is_some_and(|it| it.quantity.as_ref().is_none_or(is_bound));
    if is_bound_fetch || limit.is_some_and(is_bound) {
        return sql.to_owned();
    }
    // The syntax tree does not have `ALL`. Other words after a name `limit` are no limit.
    let has_clause = limit.is_some() || fetch.is_some();
    let is_limit =
        |place: &Range<usize>| has_clause || sql[place.clone()].eq_ignore_ascii_case("all");
    match place(sql, dialect).filter(is_limit) {
        Some(Range { start, end }) => format!("{}{rows}{}", &sql[..start], &sql[end..]),
        None => format!("{sql}\nLIMIT {rows}"),
    }
}

/// Returns true if a limit surely bounds the rows: it is an integer literal without a sign. The
/// value of another expression is unknown. PostgreSQL returns all rows for `NULL`, and SQLite for a
/// negative number.
fn is_bound(limit: &Expr) -> bool {
    match limit {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_bound(inner),
        Expr::Value(literal) => {
            matches!(&literal.value, Value::Number(number, _) if is_whole(number))
        }
        _ => false,
    }
}

fn is_whole(number: &str) -> bool {
    number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns the place of what follows the last `LIMIT` of the query itself, up to its `OFFSET` and
/// without an offset before a comma, or of the number of its last `FETCH`.
fn place(sql: &str, dialect: &Dialect) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let mut is_after_limit = false;
    let mut place: Option<Range<usize>> = None;
    for TokenWithSpan { token, span } in parse::tokens(sql, dialect).ok()? {
        let keyword = match &token {
            Token::Whitespace(_) => continue,
            Token::Word(word) if depth == 0 => word.keyword,
            _ => Keyword::NoKeyword,
        };
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        match keyword {
            Keyword::LIMIT | Keyword::FETCH => (is_after_limit, place) = (true, None),
            Keyword::FIRST | Keyword::NEXT => place = None,
            Keyword::OFFSET | Keyword::ROW | Keyword::ROWS => is_after_limit = false,
            _ if depth == 0 && token == Token::Comma => place = None,
            _ if is_after_limit => {
                let start = place.map_or_else(|| offset(sql, span.start), |it| it.start);
                place = Some(start..offset(sql, span.end));
            }
            _ => {}
        }
    }
    place
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
                "WITH x AS (SELECT 1 LIMIT -1) SELECT x.limit, NULL FROM x OFFSET 3",
            ] {
                assert_eq!(limited(sql, &dialect, 5), format!("{sql}\nLIMIT 5"));
            }
        }
    }

    #[test]
    fn limit_is_kept() {
        for dialect in DIALECTS {
            let all = "LIMIT 3 OFFSET 1|OFFSET 1 LIMIT 3|LIMIT (3)|LIMIT CAST(3 AS INTEGER)|\
                LIMIT 0|FETCH FIRST 3 ROWS ONLY|FETCH FIRST ROW ONLY";
            for end in all.split('|') {
                let sql = format!("WITH x AS (SELECT 1) SELECT * FROM x {end}");
                assert_eq!(limited(&sql, &dialect, 5), sql);
            }
        }
        let sql = "WITH x AS (SELECT 1) SELECT * FROM x LIMIT 1, 3";
        assert_eq!(limited(sql, &Dialect::Sqlite, 5), sql);
    }

    #[test]
    fn limit_that_may_be_all_rows_is_replaced() {
        for dialect in DIALECTS {
            for (end, limit) in [
                ("LIMIT ALL", "LIMIT 5"),
                ("limit /* 3 */ all OFFSET 2", "limit /* 3 */ 5 OFFSET 2"),
                ("OFFSET 2 LIMIT ALL -- all", "OFFSET 2 LIMIT 5 -- all"),
                ("LIMIT NULL", "LIMIT 5"),
                ("limit (null) OFFSET 2", "limit 5 OFFSET 2"),
                ("LIMIT CAST(NULL AS INTEGER)", "LIMIT 5"),
                ("LIMIT -1 OFFSET 2", "LIMIT 5 OFFSET 2"),
                ("OFFSET 2 LIMIT - /* - */ 1 -- 3", "OFFSET 2 LIMIT 5 -- 3"),
                ("FETCH FIRST NULL ROWS ONLY", "FETCH FIRST 5 ROWS ONLY"),
                ("offset 2 rows fetch next null row only", "offset 2 rows fetch next 5 row only"),
                ("LIMIT 0 - 1", "LIMIT 5"),
                ("LIMIT (4 - 5) OFFSET 2", "LIMIT 5 OFFSET 2"),
                ("LIMIT '-1'", "LIMIT 5"),
                ("LIMIT (SELECT NULL LIMIT 1) -- 3", "LIMIT 5 -- 3"),
                ("LIMIT COALESCE(NULL, -1)", "LIMIT 5"),
            ] {
                let start = "WITH x AS (SELECT '金额' AS n LIMIT ALL) SELECT * FROM x";
                let expected = format!("{start} {limit}");
                assert_eq!(limited(&format!("{start} {end}"), &dialect, 5), expected);
            }
        }
        let start = "WITH x AS (SELECT 1) SELECT * FROM x LIMIT";
        for limit in ["-1", "0 - 1"] {
            let replaced = limited(&format!("{start} 1, {limit}"), &Dialect::Sqlite, 5);
            assert_eq!(replaced, format!("{start} 1, 5"));
        }
    }
}
