//! Tables of accepted and rejected queries. Tests with databases are in `tests/it/hostile.rs`.

use wattle_run::grant::{SqlAccess, SqlRule};

use super::check as check_rule;
use crate::statement::Dialect;

const BOTH: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

fn check(dialect: Dialect, text: &str) -> Result<(), wattle_graph::failure::Failure> {
    check_rule(dialect, text, &SqlAccess::ReadOnly.into())
}

fn rule(schema: bool) -> SqlRule {
    let tables = ["orders", "sales.totals"].map(ToOwned::to_owned);
    SqlRule { tables: Some(tables.into()), schema, ..SqlAccess::ReadOnly.into() }
}

#[test]
fn queries_pass_in_both_dialects() {
    for text in [
        "SELECT a, count(*) FROM t WHERE b = $1 GROUP BY a ORDER BY 2 DESC LIMIT 3",
        "WITH x AS (SELECT 1 AS n) SELECT * FROM x UNION ALL SELECT 2",
        "VALUES (1), (2)",
        "SELECT (SELECT max(b) FROM u WHERE u.a = t.a), CAST('2024-01-01' AS date) FROM t;",
        "SELECT lower(name), locate FROM t",
    ] {
        for dialect in BOTH {
            assert_eq!(check(dialect, text), Ok(()), "{text}");
        }
    }
}

#[test]
fn writes_locks_and_foreign_relations_are_denied() {
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
        "SELECT U&\"\\0070g_sleep\"(10)",
        "SELECT * FROM pg_read_file('/etc/passwd')",
        "SELECT * FROM t WHERE lo_import('/etc/passwd') > 0",
        "SELECT set_config('statement_timeout', '0', false)",
        "SELECT query_to_xml('DELETE FROM t', true, true, '')",
        "SELECT * FROM pg_authid",
        "SELECT * FROM pg_toast.pg_toast_1",
        "SELECT * FROM information_schema.tables",
    ] {
        assert_eq!(check(Dialect::Postgres, text).unwrap_err().code, "denied", "{text}");
    }
    for text in [
        "PRAGMA query_only = 0",
        "ATTACH DATABASE 'x.db' AS x",
        "SELECT load_extension('x')",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM temp.t",
    ] {
        assert_eq!(check(Dialect::Sqlite, text).unwrap_err().code, "denied", "{text}");
    }
}

#[test]
fn unparsable_queries_are_invalid_and_too_deep_queries_exceed_a_limit() {
    for dialect in BOTH {
        assert_eq!(check(dialect, "SELEC 1").unwrap_err().code, "invalid");
        // The last text has fewer brackets than are allowed, but the parser recurses twice for each
        // bracket.
        for (before, after, levels) in [("(", ")", 5_000), ("(", "", 5_000), ("(SELECT ", ")", 50)]
        {
            let text = format!("SELECT {}1{}", before.repeat(levels), after.repeat(levels));
            let failure = check(dialect, &text).unwrap_err();
            assert_eq!(failure.code, "limit", "{dialect:?} {before}: {failure}");
            assert_eq!(failure.details.unwrap()["limit"], "sql.nesting", "{before}");
        }
    }
}

#[test]
fn cte_names_are_resolved_by_scope() {
    for (text, refused) in [
        ("WITH secret AS (SELECT * FROM orders) SELECT * FROM secret", None),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b, a", None),
        ("WITH RECURSIVE n AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n", None),
        ("WITH a AS (SELECT 1) SELECT (SELECT max(x) FROM a) FROM orders", None),
        ("WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a", None),
        ("WITH a AS (SELECT 1) (SELECT * FROM a) UNION (SELECT * FROM a)", None),
        ("WITH secret AS (SELECT * FROM secret) SELECT * FROM secret", Some("secret")),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", Some("b")),
        ("WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM b", Some("b")),
        ("SELECT * FROM (WITH b AS (SELECT 1) SELECT * FROM b) x, b", Some("b")),
        ("WITH a AS (SELECT 1) SELECT * FROM public.a", Some("public.a")),
        ("SELECT * FROM orders UNION SELECT * FROM (SELECT * FROM secret) s", Some("secret")),
    ] {
        assert_eq!(subject(Dialect::Postgres, text).as_deref(), refused, "{text}");
    }
}

/// On SQLite all CTEs of a list see each other. On PostgreSQL only the CTEs of a `WITH RECURSIVE`
/// do.
#[test]
fn cte_names_are_resolved_as_in_each_database() {
    for (text, postgres, sqlite) in [
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", Some("b"), None),
        ("WITH n AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n", Some("n"), None),
        ("WITH secret AS (SELECT * FROM secret) SELECT * FROM secret", Some("secret"), None),
        ("WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", None, None),
        (
            "WITH RECURSIVE a AS (WITH c AS (SELECT * FROM b) SELECT * FROM c), b AS (SELECT 1)
             SELECT * FROM a",
            None,
            None,
        ),
        (
            "WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a, (WITH b AS (SELECT * FROM c),
             c AS (SELECT 1) SELECT * FROM b) x",
            Some("c"),
            None,
        ),
        (
            "WITH RECURSIVE a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a, b",
            Some("b"),
            Some("b"),
        ),
        (
            "WITH a AS (SELECT * FROM main.b), b AS (SELECT 1) SELECT * FROM a",
            Some("main.b"),
            Some("main.b"),
        ),
    ] {
        assert_eq!(subject(Dialect::Postgres, text).as_deref(), postgres, "{text}");
        assert_eq!(subject(Dialect::Sqlite, text).as_deref(), sqlite, "{text}");
    }
}

/// Returns the subject for which a query is rejected.
fn subject(dialect: Dialect, text: &str) -> Option<String> {
    let failure = check_rule(dialect, text, &rule(false)).err()?;
    let details = failure.details.unwrap();
    Some(details["subject"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn table_commands_are_rejected() {
    for text in ["TABLE secret", "WITH a AS (TABLE secret) SELECT 1", "SELECT 1 UNION TABLE secret"]
    {
        for dialect in BOTH {
            assert!(check_rule(dialect, text, &rule(false)).is_err(), "{text}");
        }
    }
}

#[test]
fn table_names_are_folded_as_in_each_database() {
    for (dialect, name, passes) in [
        (Dialect::Postgres, "ORDERS", true),
        (Dialect::Postgres, "\"orders\"", true),
        (Dialect::Postgres, "\"Orders\"", false),
        (Dialect::Postgres, "public.orders", true),
        (Dialect::Postgres, "Sales.Totals", true),
        (Dialect::Postgres, "other.orders", false),
        (Dialect::Postgres, "db.public.orders", false),
        (Dialect::Sqlite, "\"Orders\"", true),
        (Dialect::Sqlite, "[ORDERS]", true),
        (Dialect::Sqlite, "`orders`", true),
        (Dialect::Sqlite, "main.orders", true),
        (Dialect::Sqlite, "temp.orders", false),
        (Dialect::Sqlite, "[secret]", false),
    ] {
        let text = format!("SELECT count(*) FROM {name}");
        assert_eq!(check_rule(dialect, &text, &rule(false)).is_ok(), passes, "{dialect:?} {name}");
    }
}

#[test]
fn catalog_needs_a_schema_grant() {
    for (dialect, text, with_schema) in [
        (Dialect::Sqlite, "SELECT sql FROM sqlite_master", true),
        (Dialect::Sqlite, "SELECT name FROM pragma_table_info('orders')", true),
        (Dialect::Sqlite, "SELECT * FROM pragma_database_list()", false),
        (Dialect::Sqlite, "SELECT * FROM dbstat", false),
        (Dialect::Sqlite, "SELECT * FROM sqlite_stat1", false),
        (Dialect::Postgres, "SELECT * FROM information_schema.columns", true),
        (Dialect::Postgres, "SELECT relname FROM pg_class", true),
        (Dialect::Postgres, "SELECT * FROM pg_catalog.pg_attribute", true),
        (Dialect::Postgres, "SELECT * FROM pg_stat_activity", false),
        (Dialect::Postgres, "SELECT * FROM pg_stats", false),
        (Dialect::Postgres, "SELECT * FROM pg_catalog.pg_authid", false),
    ] {
        let failure = check_rule(dialect, text, &rule(false)).unwrap_err();
        assert_eq!(failure.code, "denied", "{text}");
        assert_eq!(check_rule(dialect, text, &rule(true)).is_ok(), with_schema, "{text}");
    }
}

#[test]
fn table_grants_restrict_functions() {
    for (dialect, known) in [
        (
            Dialect::Postgres,
            "SELECT round(avg(a), 2), date_trunc('month', b), strftime('%Y', b) FROM orders",
        ),
        (Dialect::Postgres, "SELECT * FROM json_to_recordset('[]') AS r (a int)"),
        (Dialect::Postgres, "SELECT * FROM orders o, LATERAL jsonb_to_record(o.a) AS r (a int)"),
        (Dialect::Postgres, "SELECT part FROM string_to_table('a,b', ',') AS part"),
        (Dialect::Sqlite, "SELECT a.key FROM jsonb_each('{}') a, jsonb_tree('[1]') b"),
    ] {
        assert_eq!(check_rule(dialect, known, &rule(false)), Ok(()), "{known}");
    }
    for text in [
        "SELECT my_function(1)",
        "SELECT repeat('x', 9)",
        "SELECT lib.round(1)",
        "SELECT * FROM jsonb_path_query('1', '$[0, 0]')",
    ] {
        let failure = check_rule(Dialect::Postgres, text, &rule(false)).unwrap_err();
        assert_eq!(failure.details.unwrap()["rule"], "function", "{text}");
    }
    let mut more = rule(false);
    more.functions.insert("my_function".to_owned());
    assert_eq!(check_rule(Dialect::Postgres, "SELECT my_function(1)", &more), Ok(()));
}
