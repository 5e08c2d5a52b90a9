//! Tests of the retry loop: what a failure adds to the context, and when the loop ends.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::nl2sql::{CHAT, says, writes};
use wattle_suite::server::{Setup, TestServer};

async fn count(server: &TestServer, result: &Value, step: &str) -> usize {
    let steps = server.steps(result["session_id"].as_str().unwrap()).await;
    steps.iter().find(|(name, _)| name == step).map_or(0, |(_, count)| *count)
}

#[tokio::test]
async fn b3_s4_31_an_unknown_field_is_replaced_by_a_candidate() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("2024年的下单金额是多少").await;
    assert_eq!(result["final_status"], "success", "{result}");
    assert_eq!(result["hidden_context_retry_count"], 1);
    assert_eq!(
        result["sql_result"]["applied_field_replacements"],
        json!([{"from": "orders.order_amount", "to": "orders.total_amount"}])
    );
    let hidden = &result["hidden_context_result"];
    assert_eq!(hidden["error_type"], "unknown_column");
    assert_eq!(hidden["retry_count"], 1);
    assert_eq!(hidden["field_candidates"][0]["missing"], "orders.order_amount");
    assert_eq!(hidden["field_candidates"][0]["candidates"][0], "orders.total_amount");
    assert_eq!(server.asked_model("sql"), 2);
}

#[tokio::test]
async fn b4_s4_29_s4_30_s4_41_a_question_has_at_most_two_retries() {
    let server = Setup::nl2sql().await.start().await;
    writes(&server, "WITH x AS (SELECT no_such(orders.id) AS n FROM orders) SELECT n FROM x", 3);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "failed");
    assert_eq!(result["reason_code"], "sql_invalid_after_retry");
    assert_eq!(result["hidden_context_retry_count"], 2);
    assert_eq!(result["hidden_context_result"]["error_type"], "object_not_found");
    assert_eq!(server.asked_model("sql"), 3);
    assert_eq!(count(&server, &result, "sql_generation").await, 3);
    assert_eq!(count(&server, &result, "sql_validate").await, 3);
    assert_eq!(count(&server, &result, "hidden_context").await, 2);
    let validated = &result["sql_validate_result"];
    assert_eq!((&validated["is_valid"], &validated["rows"]), (&json!(false), &json!(0)));
    assert!(validated["error"].as_str().unwrap().contains("`no_such`"), "{validated}");
}

#[tokio::test]
async fn b5_s4_39_s4_41_three_empty_results_are_a_partial_success() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("列出2030年的订单").await;
    assert_eq!(result["final_status"], "partial_success");
    assert_eq!(result["reason_code"], "empty_result_after_retry");
    assert_eq!(result["hidden_context_retry_count"], 2);
    let hidden = &result["hidden_context_result"];
    assert_eq!(
        (&hidden["error_type"], &hidden["error"]),
        (&json!("execution_error"), &json!("empty_result"))
    );
    assert_eq!(result["sql_validate_result"]["empty_result"], true);
    assert_eq!(server.asked_model("sql"), 3);
}

#[tokio::test]
async fn b6_s4_33_s4_41_a_count_of_zero_is_a_partial_success() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("2030年有多少订单").await;
    assert_eq!(result["final_status"], "partial_success");
    assert_eq!(result["reason_code"], "zero_metric_after_retry");
    let validated = &result["sql_validate_result"];
    assert_eq!(
        (&validated["zero_metric_result"], &validated["empty_result"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(validated["result"], json!([{"order_count": 0}]));
    assert_eq!(result["hidden_context_result"]["error"], "zero_metric_result");
    assert_eq!(server.asked_model("sql"), 3);
    let sum = server.ask("2030年的销售额").await;
    assert_eq!(sum["reason_code"], "empty_result_after_retry", "a sum over no rows is NULL");
}

#[tokio::test]
async fn b7_s4_09_s4_18_three_unusable_completions_end_without_an_exception() {
    let server = Setup::nl2sql().await.start().await;
    let rule = FaultRule::new(Pattern::model("sql"), Fault::InvalidJsonContent);
    server.standin().fault(rule);
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "failed");
    assert_eq!(result["reason_code"], "sql_invalid_after_retry");
    let failed = &result["sql_result"];
    let error = failed["generation_error"].as_str().unwrap();
    assert!(error.starts_with("sql_generation_"), "{error}");
    assert_eq!(
        failed,
        &json!({"sql": "", "entity_mappings": [], "sql_fields": [], "generation_failed": true,
                "generation_error": error})
    );
    assert_eq!(
        result["sql_validate_result"],
        json!({"is_valid": false, "error": error, "rows": 0, "result": [], "executed_sql": "",
               "empty_result": false, "zero_metric_result": false})
    );
    assert_eq!(count(&server, &result, "sql_generation").await, 3);
    assert_eq!(count(&server, &result, "sql_validate").await, 0);
    assert_eq!(count(&server, &result, "hidden_context").await, 2);
}

#[tokio::test]
async fn s4_11_s4_20_s4_37_s4_40_probes_give_the_model_real_values() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("北京市有多少订单").await;
    assert_eq!(result["final_status"], "success", "{result}");
    assert_eq!(result["hidden_context_retry_count"], 1);
    let hidden = &result["hidden_context_result"];
    let fields: Vec<&String> = hidden.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "error_type",
            "error",
            "failed_sql",
            "rewritten_query",
            "field_candidates",
            "probe_samples",
            "hints",
            "kb_summary",
            "retry_count"
        ]
    );
    let sample = &hidden["probe_samples"][0];
    assert_eq!(
        sample["probe_sql"],
        "SELECT DISTINCT customers.city AS value FROM customers \
         WHERE customers.city IS NOT NULL AND customers.is_deleted = 0 LIMIT 20"
    );
    assert_eq!(sample["values"].as_array().unwrap().len(), 12);
    assert_eq!(hidden["kb_summary"], json!({"table_count": 4, "field_count": 31}));
    assert!(hidden["failed_sql"].as_str().unwrap().contains("北京市"));
    assert!(!hidden["hints"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn s4_38_errors_of_the_database_are_classified() {
    let server = Setup::nl2sql().await.start().await;
    // Only the database can resolve these names.
    for (sql, kind) in [
        ("WITH x AS (SELECT orders.id AS n FROM orders) SELECT x.missing FROM x", "unknown_column"),
        ("WITH x AS (SELECT 1 AS n) SELECT no_such(n) FROM x", "object_not_found"),
        ("WITH x AS (SELECT 1 AS n) SELECT n FROM", "syntax_error"),
        ("WITH x AS (SELECT 1 AS n) SELECT n FROM refunds", "unknown_table"),
        (
            "WITH x AS (SELECT abs(-9223372036854775807 - 1) AS n) SELECT n FROM x",
            "execution_error",
        ),
    ] {
        writes(&server, sql, 1);
        let result = server.ask("有多少订单").await;
        assert_eq!(result["hidden_context_result"]["error_type"], kind, "{sql} {result}");
        assert_eq!(result["final_status"], "success", "the next attempt succeeds");
    }
}

#[tokio::test]
async fn s4_07_a_task_with_a_field_that_is_not_allowed_is_requested_again() {
    let server = Setup::nl2sql().await.start().await;
    let task = |field: &str| {
        json!({"intent": "business_query", "entities": [], "dimensions": [],
               "metrics": ["order_count"],
               "filters": [{"field": field, "op": "=", "value": "北京"}],
               "time_range": {"start": null, "end": null}, "operation": "aggregate",
               "confidence": 0.9})
    };
    says(&server, "parse", &task("customers.town"), 1);
    let result = server.ask("北京有多少订单").await;
    assert_eq!(result["task"]["filters"][0]["field"], "customers.city");
    assert_eq!(server.asked_model("parse"), 2);
    says(&server, "parse", &task("customers.town"), 2);
    let failed = server.post(CHAT, &json!({"message": "北京有多少订单"})).await;
    assert_eq!(failed.status, 500, "{}", failed.body);
    assert!(failed.body["message"].as_str().unwrap().contains("customers.town"));
}

#[tokio::test]
async fn s4_22_s4_43_only_intent_and_parse_failures_end_the_workflow() {
    let server = Setup::nl2sql().await.start().await;
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    for role in ["intent", "parse"] {
        server.standin().fault(FaultRule::new(Pattern::model(role), down.clone()));
        let failed = server.post(CHAT, &json!({"message": "有多少订单"})).await;
        assert_eq!(failed.status, 502, "{role} {}", failed.body);
        assert_eq!((&failed.body["code"], &failed.body["data"]), (&json!(502), &json!(null)));
        server.standin().clear_faults();
    }
    server.standin().fault(FaultRule::new(Pattern::model("sql"), down.clone()));
    let result = server.ask("有多少订单").await;
    assert_eq!(result["reason_code"], "sql_invalid_after_retry");
    server.standin().clear_faults();
    server.standin().fault(FaultRule::new(Pattern::model("summary"), down));
    let result = server.ask("有多少订单").await;
    assert_eq!(result["final_status"], "success");
    assert_eq!(result["summary"], "查询执行成功，已返回结果，共1行。");
    let chat = server.ask("你好").await;
    assert_eq!(chat["summary"], "当前问题被识别为闲聊，已跳过数据查询流程。");
}
