//! Tests of harmful statements of a model: none is executed, and each has a reason.

use serde_json::json;
use sqlx::Connection as _;
use wattle_suite::asset::open_sqlite;
use wattle_suite::nl2sql::writes;
use wattle_suite::server::{Setup, TestServer};

async fn orders(server: &TestServer) -> i64 {
    let mut database = open_sqlite(&server.setup.workspace.data().join("business.db")).await;
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM orders").fetch_one(&mut database).await;
    database.close().await.unwrap();
    count.unwrap()
}

#[tokio::test]
async fn b8_s4_32_s4_34_statements_that_write_are_never_executed() {
    let server = Setup::nl2sql().await.start().await;
    let before = orders(&server).await;
    for (sql, error) in [
        ("DELETE FROM orders", "sql_generation_not_one_query"),
        ("SELECT 1", "sql_generation_not_cte"),
        (
            "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
            "sql_validate_readonly_violation",
        ),
        (
            "WITH x AS (UPDATE orders SET status = 'paid' RETURNING id) SELECT * FROM x",
            "sql_validate_readonly_violation",
        ),
        (
            "WITH x AS (SELECT orders.id FROM orders) SELECT * FROM x; DELETE FROM orders",
            "sql_generation_not_one_query",
        ),
        (
            "WITH x AS (SELECT orders.id FROM orders) SELECT * INTO copy FROM x",
            "sql_validate_readonly_violation",
        ),
        ("WITH x AS (SELECT 1) DELETE FROM orders", "sql_validate_readonly_violation"),
        ("PRAGMA query_only = 0", "sql_generation_"),
        ("ATTACH DATABASE 'x.db' AS x", "sql_generation_"),
    ] {
        writes(&server, sql, 3);
        let result = server.ask("有多少订单").await;
        let validated = &result["sql_validate_result"];
        assert_eq!(result["final_status"], "failed", "{sql}");
        assert!(validated["error"].as_str().unwrap().starts_with(error), "{sql} {validated}");
        assert_eq!(validated["executed_sql"], "", "{sql}");
        assert_eq!(orders(&server).await, before, "{sql}");
    }
}

#[tokio::test]
async fn b9_s4_31_fields_and_tables_that_are_not_allowed_fail_the_generation() {
    let server = Setup::nl2sql().await.start().await;
    for (sql, error) in [
        (
            "WITH x AS (SELECT customers.password FROM customers) SELECT * FROM x",
            "sql_generation_unknown_field: customers.password",
        ),
        (
            "WITH x AS (SELECT name FROM sqlite_master) SELECT * FROM x",
            "sql_generation_unknown_table: sqlite_master",
        ),
        (
            "WITH x AS (SELECT name FROM _wattle_migrations) SELECT * FROM x",
            "sql_generation_unknown_table: _wattle_migrations",
        ),
    ] {
        writes(&server, sql, 3);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["sql_result"]["generation_failed"], true, "{sql}");
        assert_eq!(result["sql_result"]["generation_error"], error);
        assert_eq!(result["reason_code"], "sql_invalid_after_retry");
    }
}

#[tokio::test]
async fn s4_35_a_cte_gives_no_access_to_a_table_of_its_name() {
    let server = Setup::nl2sql().await.start().await;
    for (sql, expected) in [
        (
            "WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master",
            "circular reference: sqlite_master",
        ),
        (
            "WITH a AS (SELECT * FROM main.secrets), secrets AS (SELECT 1) SELECT * FROM a",
            "sql_generation_unknown_table: main.secrets",
        ),
        (
            "WITH a AS (WITH secrets AS (SELECT 1) SELECT * FROM secrets) SELECT * FROM secrets",
            "sql_generation_unknown_table: secrets",
        ),
    ] {
        writes(&server, sql, 3);
        let result = server.ask("有多少订单").await;
        let error = result["sql_validate_result"]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{sql} {error}");
    }
    for sql in [
        "WITH secrets AS (SELECT 7 AS n) SELECT n AS n_total FROM secrets",
        "WITH a AS (SELECT n FROM secrets), secrets AS (SELECT 7 AS n) SELECT n AS n_total FROM a",
        "WITH secrets AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM secrets WHERE n < 7) \
         SELECT MAX(n) AS n_total FROM secrets",
    ] {
        writes(&server, sql, 1);
        let result = server.ask("有多少订单").await;
        let found = &result["sql_validate_result"]["result"];
        assert_eq!(found, &json!([{"n_total": 7}]), "{sql} {result}");
        assert_eq!(result["hidden_context_retry_count"], 0, "{sql}");
    }
}

#[tokio::test]
async fn s4_34_extension_functions_and_endless_joins_are_stopped() {
    let server = Setup::nl2sql().await.start().await;
    writes(&server, "WITH x AS (SELECT load_extension('x') AS n) SELECT n FROM x", 3);
    let result = server.ask("有多少订单").await;
    let error = result["sql_validate_result"]["error"].as_str().unwrap();
    assert!(error.contains("load_extension"), "{error}");
    let endless = "WITH x AS (SELECT COUNT(*) AS n FROM order_items AS a, order_items AS b, \
                   order_items AS c, order_items AS d WHERE a.amount + b.amount + c.amount \
                   + d.amount < 0) SELECT n FROM x";
    writes(&server, endless, 1);
    let started = std::time::Instant::now();
    let result = server.ask("有多少订单").await;
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    assert_eq!(result["final_status"], "success", "the connection is available again: {result}");
    assert_eq!(result["hidden_context_result"]["error_type"], "execution_error");
}

/// The component has a small stack, and parses with it.
#[tokio::test]
async fn s4_31_deep_statements_are_executed_or_refused() {
    let server = Setup::nl2sql().await.start().await;
    let nested = |before: &str, after: &str, times: usize| {
        let (before, after) = (before.repeat(times), after.repeat(times));
        format!(
            "WITH x AS (SELECT {before}7{after} AS n FROM orders) SELECT MAX(n) AS n_total FROM x"
        )
    };
    for (before, after, times) in [("ABS(", ")", 20), ("(SELECT ", ")", 10)] {
        writes(&server, &nested(before, after, times), 1);
        let result = server.ask("有多少订单").await;
        let found = &result["sql_validate_result"]["result"];
        assert_eq!(found, &json!([{"n_total": 7}]), "{before} {result}");
    }
    // From one depth on, the component refuses a statement before its stack overflows, and the next
    // attempt succeeds. The depth follows from the number of levels that the parser counts.
    for (before, after, depths) in [
        ("ABS(", ")", 20..=30),
        ("(SELECT ", ")", 10..=15),
        ("(SELECT 1 FROM (SELECT ", ") AS y)", 5..=9),
    ] {
        let mut refused = Vec::new();
        for times in depths {
            writes(&server, &nested(before, after, times), 1);
            let result = server.ask("有多少订单").await;
            assert_eq!(result["final_status"], "success", "{before} {times} {result}");
            let is_refused = result["hidden_context_retry_count"] != 0;
            if is_refused {
                assert_eq!(result["hidden_context_retry_count"], 1, "{before} {times} {result}");
                let error = result["hidden_context_result"]["error"].as_str().unwrap();
                assert!(error.starts_with("sql_generation_too_deep"), "{before} {times} {error}");
            }
            refused.push(is_refused);
        }
        assert!(refused.is_sorted(), "{before} {refused:?}");
        assert_eq!((refused.first(), refused.last()), (Some(&false), Some(&true)), "{before}");
    }
    let joins = " JOIN (orders".repeat(40) + &")".repeat(40);
    for sql in [
        nested("ABS(", ")", 40),
        nested("", &format!("{} GLOB '7'", " NOTNULL".repeat(700)), 1),
        format!("WITH x AS (SELECT 1 FROM orders{joins}) SELECT * FROM x"),
    ] {
        writes(&server, &sql, 3);
        let result = server.ask("有多少订单").await;
        let error = result["sql_result"]["generation_error"].as_str().unwrap();
        assert!(error.starts_with("sql_generation_too_deep"), "{error} {sql}");
    }
}

#[tokio::test]
async fn s4_31_mysql_style_statements_are_accepted() {
    let server = Setup::nl2sql().await.start().await;
    writes(
        &server,
        "```sql\nWITH `x` AS (SELECT `o`.`id` AS `n` FROM `orders` AS `o` LIMIT 5)\n\
         SELECT COUNT(`n`) AS `order_count` FROM `x`;\n```",
        1,
    );
    let result = server.ask("有多少订单").await;
    assert_eq!(result["sql_validate_result"]["result"], json!([{"order_count": 5}]));
    assert_eq!(result["sql_result"]["sql_fields"], json!(["orders.id"]));
}

#[tokio::test]
async fn s4_34_a_query_without_a_limit_gets_one() {
    let server = Setup::nl2sql().await.start().await;
    writes(&server, "WITH x AS (SELECT orders.id AS id FROM orders) SELECT id FROM x", 1);
    let result = server.ask("列出订单").await;
    let validated = &result["sql_validate_result"];
    assert_eq!(validated["rows"], 1000);
    assert!(validated["executed_sql"].as_str().unwrap().ends_with("LIMIT 1000"));
}
