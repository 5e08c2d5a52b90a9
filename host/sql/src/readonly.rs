//! What a plugin that may only read can ask: one query, and nothing in it that writes, locks,
//! waits or leaves the database. The database refuses to write as well; this check also stops
//! what a read-only transaction would let through.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Visit as _, Visitor,
};
use sqlparser::parser::Parser;
use wattle_graph::failure::{Failure, code};

use crate::statement::Dialect;

/// Depth of nested expressions and queries: the parser recurses.
const DEPTH: usize = 64;

/// Functions that read files, wait, change the session, signal others or run SQL given as text.
/// A name that ends in `*` stands for all that begin with it.
const FORBIDDEN_FUNCTIONS: &[&str] = &[
    "current_setting",
    "cursor_to_xml*",
    "database_to_xml*",
    "dblink*",
    "edit",
    "fts3_tokenizer",
    "load_extension",
    "lo_*",
    "nextval",
    "pg_advisory_*",
    "pg_cancel_backend",
    "pg_ls_*",
    "pg_notify",
    "pg_read_*",
    "pg_reload_conf",
    "pg_sleep*",
    "pg_stat_file",
    "pg_terminate_backend",
    "pg_try_advisory_*",
    "query_to_xml*",
    "readfile",
    "set_config",
    "setval",
    "writefile",
];

/// Checks that a statement only reads.
///
/// # Errors
///
/// `invalid` if it cannot be parsed, `denied` with the part that does more than read.
pub(crate) fn check(dialect: Dialect, text: &str) -> Result<(), Failure> {
    let parsed = Parser::new(dialect.parser())
        .with_recursion_limit(DEPTH)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| {
            Failure::new(code::INVALID, format!("the SQL query cannot be understood: {error}"))
        })?;
    let [Statement::Query(query)] = parsed.as_slice() else {
        return Err(denied("it is not one query"));
    };
    match query.visit(&mut OnlyReads) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(reason) => Err(denied(&reason)),
    }
}

fn denied(reason: &str) -> Failure {
    Failure::new(
        code::DENIED,
        format!(
            "this plugin may only read, and the SQL statement does more: {reason}; \
             grant `access = \"read-write\"` for the database in wattle.toml if it should"
        ),
    )
}

struct OnlyReads;

impl Visitor for OnlyReads {
    type Break = String;

    fn pre_visit_statement(&mut self, _statement: &Statement) -> ControlFlow<String> {
        ControlFlow::Break("it contains a statement that is no query".to_owned())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        if !query.locks.is_empty() {
            return ControlFlow::Break("`FOR UPDATE` and `FOR SHARE` lock rows".to_owned());
        }
        match query.body.as_ref() {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                ControlFlow::Break("a `WITH` part of it changes rows".to_owned())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        if select.into.is_some() {
            return ControlFlow::Break("`SELECT INTO` creates a table".to_owned());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<String> {
        match expression {
            Expr::Function(function) => allowed_function(&function.name),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                allowed_function(name)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn allowed_function(name: &ObjectName) -> ControlFlow<String> {
    let name = name.0.last().and_then(|part| part.as_ident());
    let name = name.map(|part| part.value.to_lowercase()).unwrap_or_default();
    let forbidden = FORBIDDEN_FUNCTIONS.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    });
    if forbidden {
        return ControlFlow::Break(format!("the function `{name}` is not available"));
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::{Dialect, check};

    #[test]
    fn queries_pass_in_both_dialects() {
        for text in [
            "SELECT a, count(*) FROM t WHERE b = $1 GROUP BY a ORDER BY 2 DESC LIMIT 3",
            "WITH x AS (SELECT 1 AS n) SELECT * FROM x UNION ALL SELECT 2",
            "VALUES (1), (2)",
            "SELECT (SELECT max(b) FROM u WHERE u.a = t.a), CAST('2024-01-01' AS date) FROM t;",
            "SELECT lower(name), locate FROM t",
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                assert_eq!(check(dialect, text), Ok(()), "{text}");
            }
        }
    }

    #[test]
    fn whatever_writes_locks_or_leaves_is_denied() {
        for text in [
            "DELETE FROM t",
            "INSERT INTO t VALUES (1) RETURNING a",
            "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x",
            "WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT 1",
            "SELECT 1; DELETE FROM t",
            "SELECT * INTO copy FROM t",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM (SELECT * FROM t FOR SHARE) AS u",
            "EXPLAIN ANALYZE DELETE FROM t",
            "COPY t TO '/tmp/x'",
            "SET default_transaction_read_only = off",
            "SELECT pg_sleep(10)",
            "SELECT pg_catalog.\"pg_sleep\"(10)",
            "SELECT * FROM pg_read_file('/etc/passwd')",
            "SELECT * FROM t WHERE lo_import('/etc/passwd') > 0",
            "SELECT set_config('statement_timeout', '0', false)",
            "SELECT query_to_xml('DELETE FROM t', true, true, '')",
        ] {
            assert_eq!(check(Dialect::Postgres, text).unwrap_err().code, "denied", "{text}");
        }
        for text in ["PRAGMA query_only = 0", "ATTACH DATABASE 'x.db' AS x"] {
            assert_eq!(check(Dialect::Sqlite, text).unwrap_err().code, "denied", "{text}");
        }
        assert_eq!(
            check(Dialect::Sqlite, "SELECT load_extension('x')").unwrap_err().code,
            "denied"
        );
    }

    #[test]
    fn nonsense_and_bottomless_nesting_are_invalid() {
        assert_eq!(check(Dialect::Sqlite, "SELEC 1").unwrap_err().code, "invalid");
        let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
        assert_eq!(check(Dialect::Postgres, &deep).unwrap_err().code, "invalid");
    }
}
