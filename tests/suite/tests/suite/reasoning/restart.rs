//! Tests of a host that stops during a run, or between a question and its answer.

use serde_json::{Value, json};
use wattle_kit::standin::Entry;
use wattle_suite::reasoning::{deciding, pairs, rows_of, types};
use wattle_suite::server::{Setup, TestServer};

/// The pause between two checks of a session.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Returns the session as soon as it is no longer running.
async fn settled(server: &TestServer, session: &str) -> Value {
    loop {
        let shown = server.reasoning().session(session).await;
        if shown["status"] != "running" {
            return shown;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn s1_65_a_run_continues_after_a_restart_with_a_complete_trail() {
    let server = Setup::reasoning().await.start().await;
    let session = server.reasoning().ask("查询手机号13800138000的客户").await;
    let gate = server.standin().gate(deciding("reasoning_plan"));
    let path = format!("/apps/reasoning/api/v1/reasoning/sessions/{session}/run");
    // The response is lost with the host.
    drop(tokio::spawn(server.request("POST", &path).json(&json!({})).send()));
    let plans = |it: &Entry| {
        it.body.as_ref().is_some_and(|body| body.to_string().contains("reasoning_plan"))
    };
    server.standin().wait_for_request(plans).await.unwrap();
    let server = server.restart().await;
    gate.open();
    let shown = settled(&server, &session).await;
    assert_eq!(shown["status"], "completed", "{shown}");
    let app = server.reasoning();
    let trace = app.trace(&session).await;
    pairs(&trace);
    assert!(types(&trace).contains(&"recovery_triggered"), "{:?}", types(&trace));
    let purposes: Vec<&Value> = rows_of(&trace, "llm_response_received")
        .iter()
        .map(|row| &row["payload"]["error"])
        .collect();
    assert_eq!(purposes.iter().filter(|error| error.is_object()).count(), 1, "the lost call");
    let ran = app.run(&session).await;
    assert_eq!(ran["result"]["data_execution"]["total"], 1, "the result can be read");
    assert_eq!(ran["tasks"].as_array().map(Vec::len), Some(1), "the task started once");
}

#[tokio::test]
async fn s1_20_a_question_can_be_answered_after_a_restart() {
    let server = Setup::reasoning().await.start().await;
    let session = server.reasoning().ask("火星天气").await;
    let asked = server.reasoning().run(&session).await;
    let server = server.restart().await;
    let app = server.reasoning();
    assert_eq!(app.run(&session).await, asked);
    let answer = json!({ "answer": { "type": "clarification", "text": "统计各区域的客户数量" } });
    app.on(&session, "clarify", &answer).await.expect(200);
    assert_eq!(app.run(&session).await["status"], "completed");
}
