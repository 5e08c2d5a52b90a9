//! Tests of statements with strings in the wrong quotes. SQLite would treat a misspelled field as a
//! string, and the application would treat a string as a misspelled field. Neither may result in a
//! number.

use std::collections::VecDeque;

use serde_json::{Value, json};
use sqlx::Connection as _;
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::asset::open_sqlite;
use wattle_suite::server::{Setup, TestServer};

const COMPLETED: &str = "WITH x AS (SELECT id FROM orders WHERE status = \"completed\") \
                         SELECT COUNT(*) AS n FROM x";

/// Makes the model write these statements, one in each attempt.
fn script(server: &TestServer, statements: &[&str]) {
    let answer = |sql: &&str| json!({ "sql": sql, "entity_mappings": [] });
    let contents: VecDeque<Value> = statements.iter().map(answer).collect();
    server.standin().fault(FaultRule::new(Pattern::model("sql"), Fault::Script { contents }));
}

async fn completed(server: &TestServer) -> i64 {
    let mut database = open_sqlite(&server.setup.workspace.data().join("business.db")).await;
    let count = "SELECT COUNT(*) FROM orders WHERE status = 'completed'";
    let count = sqlx::query_scalar(count).fetch_one(&mut database).await;
    database.close().await.unwrap();
    count.unwrap()
}

#[tokio::test]
async fn s4_31_a_string_in_the_wrong_quotes_never_becomes_a_number() {
    let server = Setup::nl2sql().await.start().await;
    for (sql, text) in [
        (COMPLETED, "completed"),
        (
            "WITH x AS (SELECT id FROM orders WHERE status IN (\"completed\", \"paid\")) \
             SELECT COUNT(*) AS n FROM x",
            "paid",
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE status LIKE \"%complete%\") \
             SELECT COUNT(*) AS n FROM x",
            "%complete%",
        ),
        (
            "WITH x AS (SELECT SUM(CASE WHEN status = \"completed\" THEN 1 ELSE 0 END) AS \
             completed FROM orders) SELECT completed AS n FROM x",
            "completed",
        ),
        (
            "WITH x AS (SELECT id, status AS completed FROM orders WHERE status = \"completed\") \
             SELECT COUNT(*) AS n FROM x",
            "completed",
        ),
        (
            "WITH v(status) AS (VALUES (\"completed\")) SELECT COUNT(*) AS n \
             FROM orders JOIN v ON v.status = orders.status",
            "completed",
        ),
        (
            "WITH x AS (SELECT status FROM orders) \
             SELECT COUNT(*) AS n FROM x WHERE status = \"completed\"",
            "completed",
        ),
        ("WITH x AS (SELECT AVG(\"total_price\") AS n FROM orders) SELECT n FROM x", "total_price"),
        ("WITH x AS (SELECT id FROM orders) SELECT COUNT(\"ids\") AS n FROM x", "ids"),
    ] {
        script(&server, &[sql, sql, sql]);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["final_status"], "failed", "{sql} {result}");
        assert_eq!(result["reason_code"], "sql_invalid_after_retry", "{sql}");
        assert_eq!(result["hidden_context_retry_count"], 2, "{sql}");
        let validated = &result["sql_validate_result"];
        let error = validated["error"].as_str().unwrap();
        assert!(error.starts_with("sql_generation_quoted_text: "), "{sql} {error}");
        assert!(error.contains("single quotes") && error.contains(&format!("'{text}'")), "{error}");
        assert_eq!((&validated["executed_sql"], &validated["rows"]), (&json!(""), &json!(0)));
        let hidden = &result["hidden_context_result"];
        assert_eq!(hidden["field_candidates"], json!([]), "{sql}");
        assert!(hidden["hints"][0].as_str().unwrap().contains("单引号"), "{hidden}");
    }
}

#[tokio::test]
async fn s4_31_the_model_repairs_a_string_in_the_wrong_quotes() {
    let server = Setup::nl2sql().await.start().await;
    let repaired = COMPLETED.replace('"', "'");
    script(&server, &[COMPLETED, &repaired]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "success", "{result}");
    assert_eq!(result["hidden_context_retry_count"], 1);
    assert_eq!(result["sql_result"]["applied_field_replacements"], json!([]));
    let expected = json!([{ "n": completed(&server).await }]);
    assert_eq!(result["sql_validate_result"]["result"], expected);
}

#[tokio::test]
async fn s4_31_fields_in_double_quotes_are_parsed() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT \"status\" AS \"状态\", COUNT(*) AS \"n_count\" \
               FROM \"orders\" AS \"o\" GROUP BY \"状态\" HAVING \"n_count\" > 0) \
               SELECT \"n_count\" FROM x WHERE \"状态\" = 'completed' ORDER BY \"n_count\"";
    script(&server, &[sql]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["hidden_context_retry_count"], 0, "{result}");
    let expected = json!([{ "n_count": completed(&server).await }]);
    assert_eq!(result["sql_validate_result"]["result"], expected);
}

#[tokio::test]
async fn s4_31_aliases_can_be_compared_but_not_used_in_a_window() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT status, \
               SUM(CASE WHEN status = 'completed' THEN 1 END) AS \"已完成\", COUNT(*) AS \"订单数\" FROM orders GROUP BY status \
               HAVING \"已完成\" = \"订单数\") SELECT \"订单数\" AS n FROM x";
    script(&server, &[sql]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["hidden_context_retry_count"], 0, "{result}");
    let expected = json!([{ "n": completed(&server).await }]);
    assert_eq!(result["sql_validate_result"]["result"], expected);
    // SQLite orders by a constant string here, so every row would be first.
    let sql = "WITH x AS (SELECT status, COUNT(*) AS \"订单数\", \
               RANK() OVER w AS place FROM orders GROUP BY status \
               WINDOW w AS (ORDER BY \"订单数\" DESC)) SELECT COUNT(*) AS n FROM x WHERE place = 1";
    script(&server, &[sql, sql, sql]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "failed", "{result}");
    let error = result["sql_validate_result"]["error"].as_str().unwrap();
    assert!(error.starts_with("sql_generation_early_name: "), "{error}");
    assert!(result["hidden_context_result"]["hints"][0].as_str().unwrap().contains("别名"));
}

#[tokio::test]
async fn s4_31_a_misspelled_field_is_replaced_and_reported() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT b.id FROM orders AS a JOIN orders AS b ON a.id = b.id \
               WHERE b.stauts = 'completed') SELECT COUNT(*) AS n FROM x";
    script(&server, &[sql, sql]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "success", "{result}");
    let generated = &result["sql_result"];
    assert!(generated["sql"].as_str().unwrap().contains("b.status = 'completed'"), "{generated}");
    assert_eq!(
        generated["applied_field_replacements"],
        json!([{"from": "orders.stauts", "to": "orders.status"}])
    );
    let expected = json!([{ "n": completed(&server).await }]);
    assert_eq!(result["sql_validate_result"]["result"], expected);
    // The outer statement uses the name that the inner statement gives to the column.
    let sql = "WITH x AS (SELECT customer_id, stauts FROM orders) \
               SELECT COUNT(*) AS n FROM x WHERE stauts = 'completed'";
    script(&server, &[sql, sql]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["hidden_context_retry_count"], 1, "{result}");
    assert_eq!(result["sql_validate_result"]["result"], expected);
    // A field that is only a guess is not replaced.
    let sql = "WITH x AS (SELECT SUM(o.revenue) AS n FROM orders AS o) SELECT n FROM x";
    script(&server, &[sql, sql, sql]);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "failed", "{result}");
}

#[tokio::test]
async fn s4_31_comments_brackets_and_table_functions_are_parsed() {
    let server = Setup::nl2sql().await.start().await;
    for sql in [
        "-- it's what was asked\nWITH x AS (SELECT `id` FROM `orders` \
         WHERE `status` = 'completed') SELECT COUNT(`id`) AS `n` FROM `x`; -- \"done",
        "WITH x AS (SELECT [id] /* it's */ FROM [orders] WHERE [status] = 'completed') \
         SELECT COUNT(*) AS n FROM x --",
        "WITH s AS (SELECT value AS status FROM json_each('[\"completed\", \"none\"]')) \
         SELECT COUNT(*) AS n FROM orders AS o JOIN s ON s.status = o.status",
        "WITH s(status, place) AS (VALUES ('completed', 1), ('none', 2)) \
         SELECT COUNT(*) AS n FROM orders AS o JOIN s USING (status)",
        "WITH s AS (SELECT t.atom AS status FROM jsonb_tree('[\"completed\"]') AS t, \
         jsonb_each('[1]') AS e) SELECT COUNT(*) AS n FROM orders AS o JOIN s USING (status)",
        "WITH x AS (SELECT id FROM done), done AS (SELECT id, `status` AS `状态` FROM orders \
         WHERE `状态` = 'completed') SELECT COUNT(*) AS n FROM x",
    ] {
        script(&server, &[sql]);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["hidden_context_retry_count"], 0, "{sql} {result}");
        let expected = json!([{ "n": completed(&server).await }]);
        assert_eq!(result["sql_validate_result"]["result"], expected, "{sql}");
    }
}
