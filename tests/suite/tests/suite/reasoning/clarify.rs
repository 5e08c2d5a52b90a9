//! Tests of questions to the user.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule};
use wattle_suite::reasoning::{deciding, rows_of, types};
use wattle_suite::server::{Setup, TestServer};

/// Makes the model return this decision.
fn decides(server: &TestServer, purpose: &str, content: &Value) {
    let fault = Fault::Content { text: content.to_string() };
    server.standin().fault(FaultRule::new(deciding(purpose), fault));
}

async fn asked(server: &TestServer, text: &str) -> Value {
    let waiting = server.reasoning().answer(text).await;
    assert_eq!(waiting["status"], "waiting_clarification", "{waiting}");
    waiting["clarification"].clone()
}

#[tokio::test]
async fn s1_19_s1_20_an_unclear_intent_leads_to_a_question() {
    let server = Setup::reasoning().await.start().await;
    let question = asked(&server, "你好").await;
    assert_eq!(question["reason"], "intent_unclear");
    assert_eq!(server.reasoning_calls().len(), 1, "the run ended after the first node");
    assert!(server.mcp_calls("graph.list_data_attributes").is_empty());
}

#[tokio::test]
async fn s1_40_s1_20_an_object_without_executable_resources_leads_to_a_question() {
    let server = Setup::reasoning().await.start().await;
    let question = asked(&server, "供应商城市").await;
    assert_eq!(question["reason"], "no_executable_resource");
    assert!(server.mcp_calls("graph.get_capability_details").is_empty());
}

#[tokio::test]
async fn s1_13_answers_without_a_question_are_rejected() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("统计各区域的客户数量").await;
    let answer = json!({ "answer": { "type": "clarification", "text": "客户" } });
    let refused = app.on(&session, "clarify", &answer).await;
    assert_eq!((refused.status, &refused.body["code"]), (400, &json!(4000)), "{refused:?}");
    app.run(&session).await;
    assert_eq!(app.on(&session, "clarify", &answer).await.status, 400);
}

#[tokio::test]
async fn s1_11_answers_have_the_type_clarification_and_a_text() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("火星天气").await;
    app.run(&session).await;
    for body in [
        json!({}),
        json!({ "answer": "客户" }),
        json!({ "answer": { "type": "other", "text": "客户" } }),
        json!({ "answer": { "type": "clarification" } }),
        json!({ "answer": { "type": "clarification", "text": " " } }),
    ] {
        assert_eq!(app.on(&session, "clarify", &body).await.status, 400, "{body}");
    }
    assert_eq!(app.session(&session).await["status"], "waiting_clarification");
}

#[tokio::test]
async fn s1_12_an_answer_is_accepted_once() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("火星天气").await;
    app.run(&session).await;
    let answer = json!({ "answer": { "type": "clarification", "text": "客户" } });
    let (one, two) =
        tokio::join!(app.on(&session, "clarify", &answer), app.on(&session, "clarify", &answer));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
    let turn = &app.session(&session).await["turn"];
    assert_eq!(turn["user_input"], "火星天气\n[clarification] 客户");
}

#[tokio::test]
async fn s1_12_s1_20_an_unclear_answer_leads_to_a_second_question() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("你好").await;
    let first = app.run(&session).await["clarification"].clone();
    let answer = |text: &str| json!({ "answer": { "type": "clarification", "text": text } });
    app.on(&session, "clarify", &answer("火星天气")).await.expect(200);
    let second = app.run(&session).await["clarification"].clone();
    assert_eq!(second["reason"], "no_attribute_match", "the workflow starts again");
    assert_ne!(second["clarification_id"], first["clarification_id"]);
    app.on(&session, "clarify", &answer("设备状态分布")).await.expect(200);
    let ran = app.run(&session).await;
    assert_eq!(ran["status"], "completed", "{ran}");
    let prompts = server.reasoning_calls();
    let last = prompts.last().unwrap().body.as_ref().unwrap().to_string();
    assert!(
        last.contains("[clarification] 火星天气") && last.contains("[clarification] 设备状态分布")
    );
    let trace = app.trace(&session).await;
    assert_eq!(rows_of(&trace, "clarification_asked").len(), 2);
    assert_eq!(rows_of(&trace, "clarification_answered").len(), 2);
    assert!(types(&trace).contains(&"session_completed"));
}

#[tokio::test]
async fn s1_33_without_an_anchor_the_user_chooses_among_the_candidates() {
    let server = Setup::reasoning().await.start().await;
    let ships = json!({ "input_ontology_codes": ["ship"], "target_ontology_codes": ["harbor"],
                        "selection_reason": "乱选" });
    decides(&server, "reasoning_anchor", &ships);
    let question = asked(&server, "订单状态分布").await;
    assert_eq!(question["reason"], "anchor_ontology_missing");
    assert!(question["question"].as_str().unwrap().contains("订单"), "{question}");
    assert!(server.mcp_calls("graph.get_ontology_details").is_empty(), "no ontology is guessed");
    assert_eq!(server.reasoning_calls().len(), 3, "the model was corrected once");
}

#[tokio::test]
async fn s1_33_s1_40_a_corrected_decision_needs_no_question() {
    let server = Setup::reasoning().await.start().await;
    for (purpose, wrong) in [
        ("reasoning_anchor", json!({ "input_ontology_codes": ["ship"] })),
        ("reasoning_inspect", json!({ "action": "execute_capability", "capability_code": "fly" })),
    ] {
        let fault = Fault::Content { text: wrong.to_string() };
        server.standin().fault(FaultRule::new(deciding(purpose), fault).times(1));
    }
    let ran = server.reasoning().answer("订单状态分布").await;
    assert_eq!(ran["status"], "completed", "{ran}");
    assert_eq!(ran["result"]["selected_task"]["code"], "order_statistics");
    assert_eq!(server.reasoning_calls().len(), 7);
}
