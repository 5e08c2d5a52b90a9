//! Tests of the application with both databases on PostgreSQL.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::postgres::Postgres;
use wattle_suite::nl2sql::{SESSIONS, writes};
use wattle_suite::server::{Setup, TestServer};

use crate::asset::postgres::database;

/// Starts a host on new databases.
async fn start() -> Result<(TestServer, Postgres), LeftOut> {
    let (postgres, own) = database()?;
    let postgres = tokio::task::spawn_blocking(move || {
        let business = postgres.create_database("business").unwrap();
        (postgres, business)
    });
    let (postgres, business) = postgres.await.unwrap();
    Ok((Setup::nl2sql_on(&own, &business).await.start().await, postgres))
}

fn rows(result: &Value) -> &Value {
    &result["sql_validate_result"]["result"]
}

#[tokio::test]
async fn b2_b3_b6_b11_on_postgres_questions_are_answered() {
    let (server, _postgres) = need!(start().await);
    let count = server.ask_in("pg", "有多少客户").await;
    assert_eq!(rows(&count), &json!([{"customer_count": 392}]), "{count}");
    let trend = server.ask("2024年每月的销售额").await;
    assert_eq!(rows(&trend).as_array().map(Vec::len), Some(12), "{trend}");
    assert!(rows(&trend)[0]["total_sales"].is_string(), "decimals keep every digit");
    let replaced = server.ask("2024年的下单金额").await;
    assert_eq!(replaced["hidden_context_retry_count"], 1, "{replaced}");
    assert_eq!(replaced["final_status"], "success");
    let zero = server.ask("2030年有多少订单").await;
    assert_eq!(zero["reason_code"], "zero_metric_after_retry");
    let healed = server.ask("北京市有多少订单").await;
    assert_eq!(
        (&healed["final_status"], &healed["hidden_context_retry_count"]),
        (&json!("success"), &json!(1)),
        "{healed}"
    );
    let list = server.ask("列出2024年北京的订单").await;
    let row = &rows(&list)[0];
    assert!(row["ordered_at"].as_str().unwrap().contains('T'), "ISO 8601: {row}");
    let file = server.file(list["download_url"].as_str().unwrap()).await;
    assert!(file.starts_with("\u{feff}order_no,"));
    let sessions = server.get(SESSIONS).await.expect(200);
    assert_eq!(sessions["data"]["total"], 6);
}

#[tokio::test]
async fn b4_b8_s4_38_on_postgres_errors_are_classified_and_nothing_is_written() {
    let (server, _postgres) = need!(start().await);
    for (sql, kind) in [
        ("WITH x AS (SELECT orders.id AS n FROM orders) SELECT x.missing FROM x", "unknown_column"),
        ("WITH x AS (SELECT 1 AS n) SELECT no_such(n) FROM x", "object_not_found"),
        ("WITH x AS (SELECT 1 AS n) SELECT n FROM refunds", "unknown_table"),
        ("WITH x AS (SELECT 1 AS n) SELECT n / 0 AS m FROM x", "execution_error"),
        ("WITH x AS (SELECT pg_sleep(60) AS n) SELECT n FROM x", "object_not_found"),
    ] {
        writes(&server, sql, 1);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["hidden_context_result"]["error_type"], kind, "{sql} {result}");
        assert_eq!(result["final_status"], "success", "{sql}");
    }
    for sql in [
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "WITH x AS (SELECT orders.id FROM orders) SELECT * FROM x; DELETE FROM orders",
    ] {
        writes(&server, sql, 3);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["final_status"], "failed", "{sql}");
        assert_eq!(result["sql_validate_result"]["executed_sql"], "");
    }
    let left = server.ask("有多少订单").await;
    assert!(rows(&left)[0]["order_count"].as_i64().unwrap() > 5_000, "{left}");
}

#[tokio::test]
async fn s4_31_on_postgres_quotes_and_table_functions_are_parsed() {
    let (server, _postgres) = need!(start().await);
    for (sql, expected) in [
        (
            "-- it's the days\nWITH `d` AS (SELECT `g` AS `day` FROM generate_series(1, 3) AS `g`) \
             SELECT SUM(`day`) AS `n_sum` FROM `d`",
            json!([{"n_sum": 6}]),
        ),
        (
            "/* a /* it's */ ` */ WITH s AS (SELECT u.status FROM \
             unnest(ARRAY['completed', $$it's$$, E'it\\'s']) AS u(status)) \
             SELECT o.status, COUNT(*) > 0 AS found FROM orders o JOIN s USING (status) \
             GROUP BY o.status",
            json!([{"status": "completed", "found": true}]),
        ),
        (
            "WITH x AS (SELECT e.elem ->> 'a' AS a, e.place \
             FROM (VALUES ('[{\"a\": \"b\"}]')) AS v(doc) CROSS JOIN LATERAL \
             jsonb_array_elements(v.doc::jsonb) WITH ORDINALITY AS e(elem, place)) \
             SELECT a, place FROM x",
            json!([{"a": "b", "place": 1}]),
        ),
        (
            "WITH x AS (SELECT r.a, s.part FROM json_to_recordset('[{\"a\": 1, \"b\": \"c,d\"}]') \
             AS r(a int, b text), LATERAL string_to_table(r.b, ',') WITH ORDINALITY AS s(part, n)) \
             SELECT a, part FROM x ORDER BY part",
            json!([{"a": 1, "part": "c"}, {"a": 1, "part": "d"}]),
        ),
        (
            "WITH RECURSIVE x AS (SELECT n FROM y), y AS (SELECT 7 AS n) \
             SELECT n AS n_total FROM x",
            json!([{"n_total": 7}]),
        ),
        (
            "WITH x AS (SELECT c.id, l.n FROM customers c CROSS JOIN LATERAL \
             (SELECT COUNT(*) AS n FROM orders o WHERE o.customer_id = c.id) l WHERE c.id = 0) \
             SELECT COUNT(*) + 2 AS n_more FROM x",
            json!([{"n_more": 2}]),
        ),
    ] {
        writes(&server, sql, 1);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["hidden_context_retry_count"], 0, "{sql} {result}");
        assert_eq!(rows(&result), &expected, "{sql}");
    }
    // The column keeps the name that the statement gives it.
    let sql = "WITH x AS (SELECT customer_id, stauts FROM orders) \
               SELECT COUNT(*) > 0 AS found FROM x WHERE stauts = 'completed'";
    writes(&server, sql, 2);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["hidden_context_retry_count"], 1, "{result}");
    assert_eq!(rows(&result), &json!([{"found": true}]));
    // A statement that only PostgreSQL rejects gets the same hint.
    let sql = "WITH x AS (SELECT status FROM orders) \
               SELECT COUNT(*) AS n FROM x WHERE status = \"paid\"";
    writes(&server, sql, 3);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "failed", "{result}");
    let hidden = &result["hidden_context_result"];
    assert_eq!(hidden["field_candidates"], json!([]), "{hidden}");
    assert!(hidden["hints"][1].as_str().unwrap().contains("'paid'"), "{hidden}");
}
