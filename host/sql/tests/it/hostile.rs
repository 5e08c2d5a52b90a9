//! Hostile statements, such as a model could be tricked into writing. No statement takes effect or
//! exceeds its limit, each failure names the reason, and the database stays usable.

use std::time::{Duration, Instant};

use futures::future::join_all;
use wattle_graph::failure::Failure;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{SqlAccess, SqlRule};
use wattle_run::hostcall::sql::Rows;
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::Sql as _;

use crate::support::{Fresh, SQLITE_FILE, SQLITE_MEMORY};

const TIMEOUT_MS: u64 = 400;

/// Upper bound of the time beyond the timeout until the connection is free, also on a busy machine.
const SLACK: Duration = Duration::from_secs(4);

const TABLES: &[&str] = &[
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, note TEXT NOT NULL)",
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    "CREATE TABLE secrets (id INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE VIEW v_orders AS SELECT id, amount FROM orders WHERE amount > 10",
    "CREATE VIEW v_secrets AS SELECT value FROM secrets",
    "INSERT INTO secrets VALUES (1, 'topsecret')",
    "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob')",
    "INSERT INTO orders
     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
     SELECT i, i, '0123456789012345678901234567890123456789' FROM n",
];

/// The dialects on which a statement is tried.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Both,
    Sqlite,
    Postgres,
}

use On::{Both, Postgres as Pg, Sqlite as Lite};

/// Statement, failure code, and a part of the message.
#[rustfmt::skip] // One row of the table per line.
const HOSTILE: &[(On, &str, &str, &str)] = &[
    // Writes, plain and hidden.
    (Both, "DELETE FROM orders", "denied", "not one query"),
    (Both, "UPDATE orders SET amount = 0", "denied", "not one query"),
    (Both, "INSERT INTO orders VALUES (101, 1, '')", "denied", "not one query"),
    (Both, "INSERT INTO orders VALUES (101, 1, '') RETURNING id", "denied", "not one query"),
    (Both, "DROP TABLE orders", "denied", "not one query"),
    (Both, "CREATE TABLE loot AS SELECT * FROM orders", "denied", "not one query"),
    (Both, "ALTER TABLE orders RENAME TO loot", "denied", "not one query"),
    (Both, "TRUNCATE TABLE orders", "denied", "not one query"),
    (Both, "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x", "denied", "changes rows"),
    (Both, "WITH x AS (UPDATE orders SET amount = 0 RETURNING id) SELECT * FROM x", "denied", "changes rows"),
    (Both, "WITH x AS (INSERT INTO orders VALUES (101, 1, '') RETURNING id) SELECT 1", "denied", "changes rows"),
    (Both, "WITH x AS (SELECT 1) DELETE FROM orders", "denied", "changes rows"),
    (Both, "WITH x AS (SELECT 101 AS i) INSERT INTO orders SELECT i, i, '' FROM x", "denied", "changes rows"),
    (Both, "SELECT * INTO loot FROM orders", "denied", "creates a table"),
    (Both, "SELECT * FROM orders FOR UPDATE", "denied", "lock rows"),
    (Both, "SELECT * FROM (SELECT * FROM orders FOR SHARE) AS o", "denied", "lock rows"),
    (Lite, "REPLACE INTO orders VALUES (1, 0, '')", "denied", "not one query"),
    (Pg, "MERGE INTO orders o USING customers c ON o.id = c.id WHEN MATCHED THEN DELETE", "denied", "not one query"),
    // Several statements.
    (Both, "SELECT 1; DELETE FROM orders", "invalid", "more than one"),
    (Both, "SELECT 1;; DROP TABLE orders", "invalid", "more than one"),
    (Both, "SELECT 1; -- harmless\nDELETE FROM orders", "invalid", "more than one"),
    (Both, "SELECT ';'; DELETE FROM orders --'", "invalid", "more than one"),
    (Pg, "SELECT 1 --\r; DELETE FROM orders", "invalid", "more than one"),
    (Pg, "SELECT $$;$$; DELETE FROM orders", "invalid", "more than one"),
    (Pg, "SELECT E'\\''; DELETE FROM orders --'", "invalid", "more than one"),
    (Lite, "SELECT $$; DELETE FROM orders --$$", "invalid", ""),
    // Statements that plugins with read-only access are not allowed to run.
    (Both, "BEGIN", "invalid", "not available"),
    (Both, "COMMIT", "invalid", "not available"),
    (Both, "ROLLBACK", "invalid", "not available"),
    (Both, "SAVEPOINT x", "invalid", "not available"),
    (Both, "EXPLAIN SELECT * FROM secrets", "invalid", "not available"),
    (Both, "", "invalid", "empty"),
    (Lite, "ATTACH DATABASE 'other.db' AS other", "invalid", "`ATTACH` is not available"),
    (Lite, "DETACH DATABASE main", "invalid", "`DETACH` is not available"),
    (Lite, "PRAGMA query_only = 0", "invalid", "`PRAGMA` is not available"),
    (Lite, "PRAGMA writable_schema = 1", "invalid", "`PRAGMA` is not available"),
    (Lite, "VACUUM INTO 'copy.db'", "invalid", "`VACUUM` is not available"),
    (Lite, "REINDEX", "invalid", "`REINDEX` is not available"),
    (Pg, "COPY orders TO PROGRAM 'cat'", "invalid", "`COPY` is not available"),
    (Pg, "DO $$ BEGIN DELETE FROM orders; END $$", "invalid", "`DO` is not available"),
    (Pg, "SET default_transaction_read_only = off", "invalid", "`SET` is not available"),
    (Pg, "SET ROLE postgres", "invalid", "`SET` is not available"),
    (Pg, "RESET ALL", "invalid", "`RESET` is not available"),
    (Pg, "LOCK TABLE orders", "invalid", "`LOCK` is not available"),
    (Pg, "NOTIFY x, 'y'", "invalid", "`NOTIFY` is not available"),
    (Pg, "CALL p()", "invalid", "`CALL` is not available"),
    (Pg, "PREPARE p AS DELETE FROM orders", "invalid", "`PREPARE` is not available"),
    (Pg, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "denied", "not one query"),
    // Forbidden tables at every position in a query.
    (Both, "SELECT * FROM secrets", "denied", "the table `secrets` is not allowed"),
    (Both, "SELECT * FROM SECRETS", "denied", "`secrets` is not allowed"),
    (Both, "SELECT * FROM \"secrets\"", "denied", "`secrets` is not allowed"),
    (Both, "SELECT * FROM/**/secrets--", "denied", "`secrets` is not allowed"),
    (Both, "SELECT * FROM orders, secrets", "denied", "`secrets` is not allowed"),
    (Both, "SELECT * FROM orders JOIN secrets ON true", "denied", "`secrets` is not allowed"),
    (Both, "SELECT (SELECT value FROM secrets LIMIT 1)", "denied", "`secrets` is not allowed"),
    (Both, "SELECT 1 FROM orders WHERE id IN (SELECT id FROM secrets)", "denied", "`secrets` is not allowed"),
    (Both, "SELECT 1 FROM orders WHERE EXISTS (SELECT 1 FROM secrets)", "denied", "`secrets` is not allowed"),
    (Both, "SELECT id FROM orders UNION ALL SELECT id FROM secrets", "denied", "`secrets` is not allowed"),
    (Both, "SELECT id FROM orders ORDER BY (SELECT value FROM secrets)", "denied", "`secrets` is not allowed"),
    (Both, "SELECT id FROM orders LIMIT (SELECT id FROM secrets)", "denied", "`secrets` is not allowed"),
    (Both, "SELECT CASE WHEN (SELECT value FROM secrets) > 'm' THEN 1 END", "denied", "`secrets` is not allowed"),
    (Both, "SELECT sum(id) OVER (PARTITION BY (SELECT id FROM secrets)) FROM orders", "denied", "`secrets` is not allowed"),
    (Both, "SELECT max((SELECT value FROM secrets)) FROM orders", "denied", "`secrets` is not allowed"),
    (Both, "SELECT * FROM v_secrets", "denied", "`v_secrets` is not allowed"),
    (Pg, "WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", "denied", "`secrets` is not allowed"),
    (Lite, "WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", "invalid", "circular reference"),
    (Lite, "WITH secrets AS (SELECT count(*) FROM secrets) SELECT * FROM secrets", "invalid", "circular reference"),
    (Lite, "WITH a AS (WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets) SELECT * FROM a", "invalid", "circular reference"),
    (Both, "WITH orders AS (SELECT * FROM secrets) SELECT * FROM orders", "denied", "`secrets` is not allowed"),
    (Pg, "WITH a AS (SELECT * FROM secrets), secrets AS (SELECT 1) SELECT * FROM a", "denied", "`secrets` is not allowed"),
    (Lite, "WITH a AS (SELECT * FROM main.secrets), secrets AS (SELECT 1) SELECT * FROM a", "denied", "`main.secrets` is not allowed"),
    (Pg, "WITH RECURSIVE a AS (SELECT * FROM public.secrets), secrets AS (SELECT 1) SELECT * FROM a", "denied", "`public.secrets` is not allowed"),
    (Both, "SELECT * FROM (WITH secrets AS (SELECT 1) SELECT * FROM secrets) x, secrets", "denied", "`secrets` is not allowed"),
    (Both, "SELECT * FROM _wattle_migrations", "denied", "is a system object"),
    (Both, "SELECT * FROM other.secrets", "denied", "other.secrets"),
    (Lite, "SELECT * FROM main.secrets", "denied", "`main.secrets` is not allowed"),
    (Lite, "SELECT * FROM [secrets]", "denied", "`secrets` is not allowed"),
    (Lite, "SELECT * FROM `secrets`", "denied", "`secrets` is not allowed"),
    (Lite, "SELECT * FROM 'secrets'", "denied", "`secrets` is not allowed"),
    (Lite, "SELECT id IN secrets FROM orders", "invalid", ""),
    (Lite, "SELECT sql FROM sqlite_master", "denied", "`schema = true`"),
    (Lite, "SELECT sql FROM main.sqlite_schema", "denied", "`schema = true`"),
    (Lite, "SELECT * FROM pragma_database_list", "denied", "is a system object"),
    (Lite, "SELECT * FROM pragma_table_info('secrets')", "denied", "`schema = true`"),
    (Lite, "SELECT * FROM pragma_query_only(0)", "denied", "is not available"),
    (Lite, "SELECT * FROM dbstat", "denied", "is a system object"),
    (Both, "TABLE secrets", "invalid", ""),
    (Both, "WITH x AS (TABLE secrets) SELECT * FROM x", "invalid", ""),
    (Pg, "SELECT * FROM orders, LATERAL (SELECT * FROM secrets) s", "denied", "`secrets` is not allowed"),
    (Pg, "SELECT * FROM public.secrets", "denied", "`public.secrets` is not allowed"),
    (Pg, "SELECT * FROM \"Orders\"", "denied", "`Orders` is not allowed"),
    (Pg, "SELECT * FROM U&\"\\0073ecrets\"", "denied", "escapes are not available"),
    (Pg, "SELECT * FROM pg_authid", "denied", "is a system object"),
    (Pg, "SELECT * FROM pg_catalog.pg_stat_activity", "denied", "is a system object"),
    (Pg, "SELECT * FROM pg_stats", "denied", "is a system object"),
    (Pg, "SELECT * FROM information_schema.tables", "denied", "`schema = true`"),
    // Functions that read files, wait, signal other sessions, change the session, or run dynamic
    // SQL.
    (Both, "SELECT my_function(1)", "denied", "not among those known to be harmless"),
    (Lite, "SELECT load_extension('evil')", "denied", "`load_extension` is not available"),
    (Lite, "SELECT readfile('/etc/passwd')", "denied", "`readfile` is not available"),
    (Lite, "SELECT writefile('/tmp/x', 'y')", "denied", "`writefile` is not available"),
    (Lite, "SELECT * FROM fsdir('/')", "denied", "`fsdir` is not available"),
    (Lite, "SELECT fts3_tokenizer('simple')", "denied", "`fts3_tokenizer` is not available"),
    (Lite, "SELECT zeroblob(1000000000)", "denied", "`zeroblob` is not available"),
    (Lite, "SELECT hex(randomblob(500000000))", "denied", "`randomblob` is not available"),
    (Lite, "SELECT printf('%.*c', 1000000000, 'x')", "denied", "`printf`"),
    (Pg, "SELECT pg_sleep(60)", "denied", "`pg_sleep` is not available"),
    (Pg, "SELECT pg_catalog.\"pg_sleep\"(60)", "denied", "`pg_sleep` is not available"),
    (Pg, "SELECT U&\"\\0070g_sleep\"(60)", "denied", "escapes are not available"),
    (Pg, "SELECT pg_read_file('/etc/passwd')", "denied", "`pg_read_file` is not available"),
    (Pg, "SELECT * FROM pg_ls_dir('/')", "denied", "`pg_ls_dir` is not available"),
    (Pg, "SELECT lo_import('/etc/passwd')", "denied", "`lo_import` is not available"),
    (Pg, "SELECT * FROM dblink('dbname=x', 'SELECT 1') AS t (a int)", "denied", "`dblink` is not available"),
    (Pg, "SELECT set_config('statement_timeout', '0', false)", "denied", "`set_config` is not available"),
    (Pg, "SELECT current_setting('data_directory')", "denied", "`current_setting` is not available"),
    (Pg, "SELECT query_to_xml('SELECT * FROM secrets', true, true, '')", "denied", "`query_to_xml` is not available"),
    (Pg, "SELECT table_to_xml('secrets', true, true, '')", "denied", "`table_to_xml` is not available"),
    (Pg, "SELECT * FROM ts_stat('SELECT value::tsvector FROM secrets')", "denied", "`ts_stat` is not available"),
    (Pg, "SELECT nextval('s')", "denied", "`nextval` is not available"),
    (Pg, "SELECT pg_advisory_lock(1)", "denied", "`pg_advisory_lock` is not available"),
    (Pg, "SELECT pg_terminate_backend(pg_backend_pid())", "denied", "is not available"),
    (Pg, "SELECT repeat('x', 1000000000)", "denied", "`repeat`"),
    (Pg, "SELECT count(*) FROM jsonb_path_query('1', '$[0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0]')", "denied", "`jsonb_path_query`"),
    // Endless results and computations.
    (Both, "SELECT * FROM orders", "limit", "more than the 50 rows that are allowed; 50 rows were read"),
    (Both, "SELECT a.note, b.note, c.note FROM orders a, orders b, orders c LIMIT 49", "limit", "more than the 4096 bytes"),
    (Both, "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e", "timeout", "exceeded the statement timeout"),
    (Both, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "timeout", "exceeded the statement timeout"),
    // PostgreSQL computes all rows before it sends the first.
    (Lite, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", "limit", "more than the 50 rows"),
    (Pg, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", "timeout", "exceeded the statement timeout"),
    (Lite, "WITH RECURSIVE s (x) AS (SELECT 'ab' UNION ALL SELECT x || x FROM s) SELECT length(x) FROM s", "limit", "too big"),
    (Lite, "SELECT group_concat(a.note || b.note) FROM orders a, orders b, orders c, orders d", "timeout", "exceeded the statement timeout"),
    (Pg, "SELECT count(*) FROM generate_series(1, 1000000000000)", "timeout", "exceeded the statement timeout"),
];

/// Valid queries, and their number of rows.
#[rustfmt::skip] // One row of the table per line.
const HONEST: &[(On, &str, usize)] = &[
    (Both, "WITH big AS (SELECT id FROM orders WHERE amount > 95) SELECT count(*) AS n FROM big", 1),
    (Both, "WITH secrets AS (SELECT id FROM orders WHERE id < 3) SELECT id FROM secrets", 2),
    (Both, "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.id", 2),
    (Both, "SELECT id FROM v_orders WHERE amount < 13", 2),
    (Both, "SELECT round(avg(amount), 2), upper('ü'), coalesce(null, 1) FROM ORDERS", 1),
    (Both, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n", 9),
    (Both, "SELECT name FROM customers WHERE name LIKE 'A%' /* secrets; DELETE */", 1),
    (Both, "SELECT 'SELECT * FROM secrets; DROP TABLE orders' AS text", 1),
    (Both, "WITH RECURSIVE a AS (SELECT id FROM secrets), secrets AS (SELECT id FROM orders WHERE id < 3) SELECT id FROM a", 2),
    (Lite, "WITH a AS (SELECT count(*) AS n FROM secrets), secrets AS (SELECT id FROM orders WHERE id < 3) SELECT n FROM a WHERE n = 2", 1),
    (Lite, "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n", 3),
    (Lite, "SELECT o.id, e.key FROM orders o, json_each('[5, 6]') e WHERE o.id = 1", 2),
    (Lite, "SELECT e.key, t.type FROM jsonb_each('{\"a\": 1}') e, jsonb_tree('[1, 2]') t", 3),
    (Lite, "SELECT strftime('%Y', '2024-01-02'), id FROM [orders] WHERE id = 1", 1),
    (Pg, "SELECT r.a FROM json_to_recordset('[{\"a\": 1}, {\"a\": 2}]') AS r (a int, b text)", 2),
    (Pg, "SELECT r.a FROM jsonb_to_recordset('[{\"a\": 1}, {\"a\": 2}]') AS r (a int, b text)", 2),
    (Pg, "SELECT r.a, s.b FROM json_to_record('{\"a\": 1}') AS r (a int), jsonb_to_record('{}') AS s (b text)", 1),
    (Pg, "SELECT o.id, p.part FROM orders o CROSS JOIN LATERAL string_to_table(o.note, '5') AS p (part) WHERE o.id = 1", 5),
    (Pg, "SELECT to_char(DATE '2024-01-02', 'YYYY'), id FROM public.orders WHERE id = 1", 1),
];

/// The beginning of a statement, and a piece that adds a level to its tree each time that it is
/// repeated.
const NESTED: &[(&str, &str)] = &[
    ("SELECT 1", " + 1"),
    ("SELECT 1", " = 1 OR 1"),
    ("SELECT 1", " IS NULL"),
    ("SELECT 'a'", " || 'a'"),
    ("SELECT 'a'", " MATCH 'a'"),
    ("SELECT 'a'", "::text"),
    ("SELECT ", "NOT "),
    ("SELECT ", "- "),
    ("SELECT ", "("),
    ("SELECT ", "CASE "),
    ("SELECT 1 FROM ", "("),
    ("SELECT 1 FROM orders", " JOIN orders"),
    ("SELECT 1 FROM orders", " NATURAL JOIN orders"),
    ("SELECT 1", " UNION SELECT 1"),
    ("SELECT 1, 2", " EXCEPT SELECT 1, 2"),
    ("SELECT ", "(SELECT "),
    ("SELECT 1 WHERE 1 ", "IN (SELECT 1 WHERE 1 "),
];

struct Bench {
    fresh: Fresh,
    on: On,
}

impl Bench {
    async fn new(fresh: Fresh) -> Self {
        let mut transaction = fresh
            .databases
            .begin(CallerId::default(), "main", &SqlLimits::default())
            .await
            .unwrap();
        for text in TABLES {
            transaction.execute(text, &[]).await.unwrap();
        }
        transaction.commit(None).await.unwrap();
        let on = if fresh.dialect == "postgres" { Pg } else { Lite };
        Self { fresh, on }
    }

    async fn all() -> Vec<Self> {
        join_all(Fresh::all(&[SQLITE_FILE, SQLITE_MEMORY]).await.into_iter().map(Self::new)).await
    }

    fn tries(&self, on: On) -> bool {
        on == Both || on == self.on
    }

    async fn query(&self, rule: &SqlRule, text: &str) -> Result<Rows, Failure> {
        self.fresh
            .databases
            .query(CallerId::default(), "main", rule, &SqlLimits::default(), text, &[])
            .await
    }

    /// Returns the contents of the database, to detect changes.
    async fn contents(&self) -> String {
        let mut text = String::new();
        for query in [
            "SELECT count(*), sum(amount), min(note), max(note) FROM orders",
            "SELECT count(*), max(name) FROM customers",
            "SELECT count(*), max(value) FROM secrets",
            match self.on {
                Lite => "SELECT group_concat(name) FROM sqlite_master",
                _ => "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace",
            },
        ] {
            let rows = self.query(&SqlAccess::ReadWrite.into(), query).await.unwrap();
            text.push_str(&format!("{:?}\n", rows.rows));
        }
        text
    }
}

fn rule() -> SqlRule {
    SqlRule {
        tables: Some(["orders", "customers", "v_orders"].map(ToOwned::to_owned).into()),
        timeout_ms: Some(TIMEOUT_MS),
        rows: Some(50),
        bytes: Some(4096),
        ..SqlAccess::ReadOnly.into()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_34_hostile_statements_are_rejected_with_a_reason() {
    assert!(HOSTILE.len() >= 60);
    for bench in Bench::all().await {
        let before = bench.contents().await;
        for (_, text, code, reason) in HOSTILE.iter().filter(|(on, ..)| bench.tries(*on)) {
            let started = Instant::now();
            let failure = match bench.query(&rule(), text).await {
                Ok(rows) => panic!("{text}: {:?}", rows.rows),
                Err(failure) => failure,
            };
            let took = started.elapsed();
            assert!(took < Duration::from_millis(TIMEOUT_MS) + SLACK, "{text}: {took:?}");
            assert_eq!(failure.code, *code, "{text}: {failure}");
            assert!(failure.message.contains(reason), "{text}: {failure}");
            assert!(!failure.message.contains("topsecret"), "{text}: {failure}");
        }
        assert_eq!(bench.contents().await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_35_valid_queries_pass() {
    for bench in Bench::all().await {
        for (_, text, rows) in HONEST.iter().filter(|(on, ..)| bench.tries(*on)) {
            let answer = bench.query(&rule(), text).await;
            let answer = answer.unwrap_or_else(|failure| panic!("{text}: {failure}"));
            assert_eq!(answer.rows.len(), *rows, "{text}");
        }
    }
}

/// A tree that is too deep for the stack of a thread would end the process.
#[tokio::test(flavor = "multi_thread")]
async fn nested_statements_end_in_a_result_or_a_typed_failure() {
    for bench in Bench::all().await {
        for (beginning, piece) in NESTED {
            for levels in [40, 400, 5_000] {
                let text = format!("{beginning}{}", piece.repeat(levels));
                let Err(failure) = bench.query(&rule(), &text).await else {
                    assert!(levels < 5_000, "{levels} x {piece}");
                    continue;
                };
                let is_expected =
                    ["denied", "invalid", "limit", "timeout"].contains(&failure.code.as_str());
                assert!(is_expected, "{levels} x {piece}: {failure}");
                if levels == 5_000 {
                    let details = failure.details.unwrap_or_default();
                    assert_eq!(details["limit"], "sql.nesting", "{levels} x {piece}");
                }
            }
        }
        bench.query(&rule(), "SELECT count(*) FROM orders").await.unwrap();
    }
}

/// SQLite itself enforces the list of tables, in case the parser misjudges a statement. Only SQLite
/// can enforce a list for each query. On PostgreSQL, roles enforce the lists.
#[tokio::test(flavor = "multi_thread")]
async fn s4_34_sqlite_authorizer_enforces_view_rules() {
    let bench = Bench::new(Fresh::sqlite(SQLITE_FILE).await).await;
    // A granted view can read a table that is not granted.
    let mut rule = rule();
    rule.tables = Some(["v_secrets".to_owned()].into());
    assert_eq!(bench.query(&rule, "SELECT value FROM v_secrets").await.unwrap().rows.len(), 1);
    // A later view with a granted name cannot read through another view.
    let mut transaction = bench
        .fresh
        .databases
        .begin(CallerId::default(), "main", &SqlLimits::default())
        .await
        .unwrap();
    let nested = "CREATE VIEW customers_of_secrets AS SELECT value FROM v_secrets";
    transaction.execute(nested, &[]).await.unwrap();
    transaction.commit(None).await.unwrap();
    rule.tables = Some(["customers_of_secrets".to_owned()].into());
    let failure = bench.query(&rule, "SELECT value FROM customers_of_secrets").await.unwrap_err();
    assert_eq!(failure.code, "denied", "{failure}");
    assert_eq!(failure.details.unwrap()["dialect"], "sqlite");
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_40_schema_is_readable_only_where_granted() {
    for bench in Bench::all().await {
        let rule = SqlRule { schema: true, ..rule() };
        let columns = match bench.on {
            Lite => {
                "SELECT t.name, c.name, c.type FROM sqlite_master t, pragma_table_info(t.name) c
                 WHERE t.type = 'table' AND t.name = 'orders' ORDER BY c.cid"
            }
            _ => {
                "SELECT table_name, column_name, data_type FROM information_schema.columns
                 WHERE table_schema = 'public' AND table_name = 'orders' ORDER BY ordinal_position"
            }
        };
        let rows = bench.query(&rule, columns).await.unwrap().rows;
        let names: Vec<String> = rows.iter().map(|row| format!("{:?}", row[1])).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[1].contains("amount"), "{names:?}");
        for text in
            ["SELECT value FROM secrets", "SELECT * FROM pg_stats", "PRAGMA table_info(orders)"]
        {
            assert!(bench.query(&rule, text).await.is_err(), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_available_after_timeouts() {
    let endless = "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e, orders f";
    // The queries keep each connection busy until the timeout, several times in turn.
    let short = SqlRule { timeout_ms: Some(TIMEOUT_MS / 4), ..rule() };
    for bench in Bench::all().await {
        // There are more queries than connections.
        let all = (0..12).map(|_| bench.query(&short, endless));
        for answer in join_all(all).await {
            let failure = answer.unwrap_err();
            assert!(["timeout", "unavailable"].contains(&failure.code.as_str()), "{failure}");
        }
        let started = Instant::now();
        bench.query(&rule(), "SELECT count(*) FROM customers").await.unwrap();
        assert!(started.elapsed() < SLACK, "{:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_38_failures_have_the_error_code_of_the_database() {
    for bench in Bench::all().await {
        for (text, sqlite, postgres) in [
            ("SELECT missing FROM orders", "no such column", "42703"),
            ("SELECT * FROM v_orders x JOIN orders y ON x.none = y.id", "no such column", "42703"),
            ("SELECT id FROM orders GROUP BY", "invalid", "invalid"),
        ] {
            let failure = bench.query(&rule(), text).await.unwrap_err();
            let details = failure.details.clone().unwrap();
            let expected = if bench.on == Lite { sqlite } else { postgres };
            if expected == "invalid" {
                assert_eq!(details["rule"], "syntax", "{failure}");
            } else if bench.on == Lite {
                assert!(failure.message.contains(expected), "{failure}");
                assert_eq!(
                    (&details["dialect"], &details["sqlite_code"]),
                    (&"sqlite".into(), &1.into())
                );
            } else {
                assert_eq!(details["dialect"], "postgres", "{failure}");
                assert_eq!(details["sqlstate"], expected, "{failure}");
            }
        }
    }
}
