//! Tests of the files of node input and output, and of the tables of the application.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::asset::open_sqlite;
use wattle_suite::nl2sql::{CHAT, writes};
use wattle_suite::server::{Setup, TestServer};

async fn log(server: &TestServer) -> Vec<Value> {
    let mut database = open_sqlite(&server.setup.workspace.data().join("nl2sql.db")).await;
    let rows: Vec<String> = sqlx::query_scalar(
        "SELECT json_object('session_id', session_id, 'admin_id', admin_id, 'message', message,
            'final_status', final_status, 'reason_code', reason_code, 'error_step', error_step,
            'error_message', error_message, 'retry_count', retry_count, 'row_count', row_count)
         FROM workflow_log ORDER BY rowid",
    )
    .fetch_all(&mut database)
    .await
    .unwrap();
    rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
}

#[tokio::test]
async fn b10_s4_14_to_s4_21_s4_45_to_s4_47_every_execution_of_a_step_writes_a_file() {
    let server = Setup::nl2sql().await.start().await;
    server.ask_in("files", "2024年的下单金额").await;
    let files = server.node_io("files", 7).await;
    let steps: Vec<&str> =
        files.iter().map(|(_, file)| file["step_name"].as_str().unwrap()).collect();
    assert_eq!(
        steps,
        [
            "intent_recognition",
            "task_parse",
            "sql_generation",
            "hidden_context",
            "sql_generation",
            "sql_validate",
            "result_return"
        ]
    );
    for (path, file) in &files {
        let fields: Vec<&String> = file.as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            [
                "session_id",
                "admin_id",
                "step_name",
                "status",
                "error_message",
                "timestamp",
                "input",
                "output"
            ]
        );
        assert_eq!((&file["session_id"], &file["admin_id"]), (&json!("files"), &json!(1)));
        assert_eq!(file["timestamp"], "2025-01-15T10:30:45+08:00");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("20250115-10-30-45-"), "{name}");
        assert!(name.ends_with(&format!("-{}.json", file["status"].as_str().unwrap())), "{name}");
        assert_eq!(
            path.parent().unwrap().file_name().unwrap(),
            file["step_name"].as_str().unwrap()
        );
    }
    // The first generation failed, but the step has an output.
    let failed = &files[2].1;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["output"]["generation_failed"], true);
    assert_eq!(failed["error_message"], failed["output"]["generation_error"]);
    assert_eq!(failed["input"]["model_name"], "qwen3-coder-plus");
    let inputs = |index: usize| -> Vec<&String> {
        files[index].1["input"].as_object().unwrap().keys().collect()
    };
    assert_eq!(inputs(0), ["message", "history_user_messages", "threshold", "model_name"]);
    assert_eq!(inputs(1), ["intent_result"]);
    assert_eq!(
        inputs(2),
        ["rewritten_query", "parse_result", "hidden_context_result", "model_name"]
    );
    assert_eq!(
        inputs(3),
        [
            "rewritten_query",
            "parse_result",
            "sql_result",
            "sql_validate_result",
            "hidden_context_retry_count"
        ]
    );
    assert_eq!(inputs(5), ["sql_result"]);
    assert_eq!(
        inputs(6),
        [
            "message",
            "intent_result",
            "parse_result",
            "sql_result",
            "sql_validate_result",
            "hidden_context_result",
            "hidden_context_retry_count"
        ]
    );
    assert_eq!(files[3].1["input"]["hidden_context_retry_count"], 0);
    assert_eq!(files[3].1["output"]["retry_count"], 1, "the node counts the retry");
    assert_eq!(files[6].1["output"]["final_status"], "success");
}

#[tokio::test]
async fn s4_14_s4_45_a_failed_step_writes_a_file_without_output() {
    let server = Setup::nl2sql().await.start().await;
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("parse"), down));
    let body = json!({"session_id": "broken", "message": "有多少订单"});
    assert_eq!(server.post(CHAT, &body).await.status, 502);
    let files = server.node_io("broken", 2).await;
    let (path, file) = &files[1];
    assert_eq!((&file["step_name"], &file["status"]), (&json!("task_parse"), &json!("failed")));
    assert_eq!(file["output"], Value::Null);
    assert!(!file["error_message"].as_str().unwrap().is_empty());
    assert!(path.to_str().unwrap().ends_with("-failed.json"));
    let log = log(&server).await;
    assert_eq!(
        (&log[0]["final_status"], &log[0]["error_step"]),
        (&json!("error"), &json!("task_parse"))
    );
}

#[tokio::test]
async fn s4_45_a_file_contains_a_long_result_completely() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT orders.order_no AS order_no, orders.channel AS channel, \
               orders.status AS status, orders.ordered_at AS ordered_at FROM orders) \
               SELECT order_no, channel, status, ordered_at FROM x";
    writes(&server, sql, 1);
    server.ask_in("long", "列出订单").await;
    let files = server.node_io("long", 5).await;
    let rows = files[3].1["output"]["result"].as_array().map(Vec::len);
    assert_eq!(rows, Some(1000), "{}", files[3].1);
    assert_eq!(files[4].1["input"]["sql_validate_result"]["rows"], 1000);
}

#[tokio::test]
async fn s4_46_the_variable_alone_sets_the_folder() {
    let variables = &[("NODE_IO_LOG_DIR", "elsewhere/node_io")];
    let server = Setup::nl2sql().await.start_with(variables).await;
    server.ask_in("files", "你好").await;
    let data = server.setup.workspace.data();
    let files = server.node_io_in(&data.join("elsewhere/node_io"), "files", 2).await;
    assert_eq!(files[0].1["step_name"], "intent_recognition");
    assert!(!data.join("local_logs").exists(), "nothing is written to the default folder");
}

#[tokio::test]
async fn s4_50_every_question_has_a_row_in_the_log() {
    let server = Setup::nl2sql().await.start().await;
    server.ask_in("log", "有多少客户").await;
    server.ask_in("log", "2030年有多少订单").await;
    server.ask_in("log", "你好").await;
    let log = log(&server).await;
    let found: Vec<(&Value, &Value, &Value, &Value)> = log
        .iter()
        .map(|it| (&it["message"], &it["final_status"], &it["reason_code"], &it["retry_count"]))
        .collect();
    assert_eq!(
        found,
        [
            (&json!("有多少客户"), &json!("success"), &json!(null), &json!(0)),
            (
                &json!("2030年有多少订单"),
                &json!("partial_success"),
                &json!("zero_metric_after_retry"),
                &json!(2)
            ),
            (&json!("你好"), &json!("success"), &json!("intent_is_chat"), &json!(0)),
        ]
    );
}
