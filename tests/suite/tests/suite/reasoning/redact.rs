//! Test of secrets in the audit trail.

use serde_json::json;
use wattle_kit::standin::{Fault, FaultRule};
use wattle_suite::reasoning::{deciding, rows_of};
use wattle_suite::server::Setup;

#[tokio::test]
async fn s1_66_values_with_names_of_secrets_are_neither_shown_nor_stored() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let leak = json!({ "keywords": ["客户"], "business_elements": ["客户"], "goal_actions": [],
        "intent_summary": "Authorization: Bearer hush-hush-4711 and sk-hush0123456789",
        "api_key": "hush-key", "nested": { "password": 4711, "token": ["hush-token"] } });
    let fault = Fault::Content { text: leak.to_string() };
    server.standin().fault(FaultRule::new(deciding("reasoning_intent"), fault));
    let session = app.ask("统计各区域的客户数量").await;
    app.run(&session).await;
    let trace = app.trace(&session).await;
    let answer = &rows_of(&trace, "llm_response_received")[0]["payload"]["content"];
    assert_eq!(answer["api_key"], "[redacted]", "{answer}");
    assert_eq!(answer["nested"], json!({ "password": "[redacted]", "token": "[redacted]" }));
    let summary = answer["intent_summary"].as_str().unwrap();
    assert_eq!(summary, "Authorization: Bearer [redacted] and [redacted]");
    assert!(answer["keywords"][0] == "客户", "other values are shown");
    let stored = json!(server.reasoning_rows("reasoning_trace_event").await).to_string();
    for text in [json!(trace).to_string(), stored] {
        assert!(!text.contains("hush"), "{text}");
    }
    let usage = &rows_of(&trace, "llm_response_received")[0]["payload"]["usage"];
    assert!(usage["input_tokens"].is_u64(), "token counts are not secrets: {usage}");
}
