//! Tests of `POST /api/chat/stream`, which reports each step as it happens.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::nl2sql::{CHAT, STREAM, Told, told};
use wattle_suite::server::{Setup, TestServer};

async fn stream(server: &TestServer, body: &Value) -> (Vec<String>, Vec<Told>) {
    let answer = server.post(STREAM, body).await;
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    let text = answer.expect(200);
    told(text.as_str().unwrap())
}

#[tokio::test]
async fn s4_02_s4_49_steps_are_reported_in_order() {
    let server = Setup::nl2sql().await.start().await;
    let body = json!({"session_id": "told", "message": "2024年的下单金额"});
    let (comments, messages) = stream(&server, &body).await;
    assert_eq!(comments[0], "nl2sql chat stream", "{comments:?}");
    let seen: Vec<(&str, &str, &str)> = messages
        .iter()
        .map(|it| {
            let text = |name: &str| it.data[name].as_str().unwrap();
            (it.event.as_str(), text("step"), text("status"))
        })
        .collect();
    let mut expected = vec![("workflow_start", "workflow", "start")];
    for step in [
        "intent_recognition",
        "task_parse",
        "sql_generation",
        "hidden_context",
        "sql_generation",
        "sql_validate",
        "result_return",
    ] {
        expected.push(("step_start", step, "start"));
        expected.push(("step_end", step, "end"));
    }
    expected.push(("workflow_end", "workflow", "end"));
    assert_eq!(seen, expected);
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message.data["seq"], json!(index + 1));
        assert_eq!(message.data["session_id"], "told");
        assert_eq!(message.data["timestamp"], "2025-01-15T10:30:45+08:00");
        assert!(!message.data["message"].as_str().unwrap().is_empty());
    }
    let last = messages.last().unwrap();
    assert_eq!(last.data["result"]["final_status"], "success");
    assert_eq!(last.data["result"]["hidden_context_retry_count"], 1);
    assert!(messages[0].data.get("result").is_none());
}

#[tokio::test]
async fn s4_49_the_end_of_a_step_has_its_result() {
    let server = Setup::nl2sql().await.start().await;
    let body = json!({"session_id": "detail", "message": "2024年的下单金额"});
    let (_, messages) = stream(&server, &body).await;
    let ends: Vec<&Value> =
        messages.iter().filter(|it| it.event == "step_end").map(|it| &it.data).collect();
    let detail = |at: usize, pointer: &str| ends[at]["detail"].pointer(pointer).unwrap().clone();
    assert_eq!(detail(0, "/intent"), "business_query");
    assert_eq!(detail(1, "/operation"), "aggregate");
    assert_eq!(detail(2, "/generation_failed"), true);
    assert_eq!(detail(3, "/error_type"), "unknown_column");
    assert_eq!(detail(3, "/retry_count"), 1);
    assert_eq!(detail(4, "/applied_field_replacements/0/to"), "orders.total_amount");
    assert!(detail(4, "/sql").as_str().unwrap().starts_with("WITH"));
    let validated = ends[5]["detail"].as_object().unwrap();
    let fields: Vec<&String> = validated.keys().collect();
    let wanted =
        ["empty_result", "error", "executed_sql", "is_valid", "rows", "zero_metric_result"];
    assert_eq!(fields, wanted, "without the rows");
    assert_eq!(ends[6].get("detail"), None, "the last message has the result");
}

#[tokio::test]
async fn s4_49_a_second_question_streams_its_own_steps_only() {
    let server = Setup::nl2sql().await.start().await;
    let body = json!({"session_id": "twice", "message": "你好"});
    stream(&server, &body).await;
    let (_, messages) = stream(&server, &body).await;
    assert_eq!(messages.len(), 6, "{messages:?}");
    assert_eq!(messages[0].data["seq"], 1);
}

#[tokio::test]
async fn s4_49_a_failure_ends_the_stream_with_an_error() {
    let server = Setup::nl2sql().await.start().await;
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("parse"), down));
    let (_, messages) = stream(&server, &json!({"message": "有多少订单"})).await;
    let last = messages.last().unwrap();
    assert_eq!((last.event.as_str(), &last.data["status"]), ("workflow_error", &json!("error")));
    assert!(!last.data["message"].as_str().unwrap().is_empty(), "{}", last.data);
    let step = &messages[messages.len() - 2];
    assert_eq!((&step.data["step"], &step.data["status"]), (&json!("task_parse"), &json!("error")));
}

#[tokio::test]
async fn s4_49_invalid_requests_are_rejected_before_the_stream() {
    let server = Setup::nl2sql().await.start().await;
    let refused = server.post(STREAM, &json!({"message": ""})).await;
    assert_eq!((refused.status, &refused.body["code"]), (400, &json!(400)));
}

#[tokio::test]
async fn s4_01_the_stream_and_the_plain_response_have_the_same_result() {
    let server = Setup::nl2sql().await.start().await;
    let question = |session: &str| json!({"session_id": session, "message": "有多少客户"});
    let (_, messages) = stream(&server, &question("a")).await;
    let mut streamed = messages.last().unwrap().data["result"].clone();
    let plain = server.post(CHAT, &question("b")).await;
    let mut plain = Answer::expect(plain, 200)["data"].clone();
    streamed["session_id"] = json!("");
    plain["session_id"] = json!("");
    assert_eq!(streamed, plain);
}
