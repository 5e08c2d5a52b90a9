//! Checks that a statement only reads, by its syntax tree alone.

use sqlparser::ast::{Query, Select, SetExpr, Statement};
use wattle_plugin::sql::Dialect;

use crate::statement::parse::query;
use crate::statement::visit::{Visitor, walk};

/// Returns true if a statement is one query in which nothing writes, locks or creates.
pub(crate) fn is_read_only(sql: &str, dialect: &Dialect) -> bool {
    query(sql, dialect).is_ok_and(|query| {
        let mut writes = Writes::default();
        walk(&query, &mut writes);
        !writes.found
    })
}

/// Whether anything in a query writes, locks or creates.
#[derive(Default)]
struct Writes {
    found: bool,
}

impl Visitor for Writes {
    fn pre_visit_statement(&mut self, _statement: &Statement) {
        self.found = true;
    }

    fn pre_visit_query(&mut self, query: &Query) {
        let writes = matches!(
            query.body.as_ref(),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        );
        self.found |= writes || !query.locks.is_empty();
    }

    fn pre_visit_select(&mut self, select: &Select) {
        self.found |= select.into.is_some();
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::is_read_only;

    #[test]
    fn queries_are_read_only() {
        for sql in [
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "SELECT 1 UNION SELECT 2",
            "WITH x AS (VALUES (1)) SELECT * FROM x",
        ] {
            assert!(is_read_only(sql, &Dialect::Sqlite), "{sql}");
            assert!(is_read_only(sql, &Dialect::Postgres), "{sql}");
        }
    }

    #[test]
    fn other_statements_are_not_read_only() {
        for sql in [
            "",
            "DELETE FROM orders",
            "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
            "WITH x AS (UPDATE orders SET id = 1 RETURNING *) SELECT * FROM x",
            "WITH x AS (INSERT INTO orders VALUES (1) RETURNING *) SELECT * FROM x",
            "WITH x AS (SELECT 1) SELECT * INTO copy FROM x",
            "WITH x AS (SELECT 1) SELECT * FROM orders FOR UPDATE",
            "WITH x AS (SELECT 1) SELECT 1; SELECT 2",
            "WITH x AS (SELECT 1) DELETE FROM orders",
            "DROP TABLE orders",
            "PRAGMA query_only = 0",
        ] {
            assert!(!is_read_only(sql, &Dialect::Postgres), "{sql}");
        }
    }
}
