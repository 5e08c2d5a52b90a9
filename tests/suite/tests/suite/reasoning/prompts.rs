//! Snapshots of the complete requests of all model calls, as the provider receives them.

use serde_json::{Value, json};
use wattle_suite::server::Setup;

/// Returns a request as text, with its instructions first.
fn shown(mut body: Value) -> String {
    let facts = body["messages"][1]["content"].as_str().unwrap();
    let facts: Value = serde_json::from_str(facts).unwrap();
    body["messages"][1]["content"] = facts;
    let instructions = body["messages"][0]["content"].take();
    let rest = serde_json::to_string_pretty(&body).unwrap();
    format!("{}\n\n---\n{rest}", instructions.as_str().unwrap())
}

/// Returns the requests that answer a question, with the names of their schemas.
async fn requests(question: &str) -> Vec<(String, Value)> {
    let server = Setup::reasoning().await.start().await;
    assert_eq!(server.reasoning().answer(question).await["status"], "completed");
    let bodies = server.reasoning_calls().into_iter().filter_map(|call| call.body);
    let name =
        |body: &Value| body["response_format"]["json_schema"]["name"].as_str().unwrap().to_owned();
    bodies.map(|body| (name(&body), body)).collect()
}

#[tokio::test]
async fn s1_21_s1_31_s1_35_s1_47_s1_49_s1_54_requests_match_their_snapshots() {
    let mut seen = Vec::new();
    for question in ["查询手机号13800138000的客户", "客户张伟的订单"] {
        for (name, body) in requests(question).await {
            assert_eq!(body["temperature"], json!(0.0), "{name}");
            assert_eq!(body["messages"].as_array().map(Vec::len), Some(2), "{name}");
            if !seen.contains(&name) {
                insta::assert_snapshot!(name.clone(), shown(body));
                seen.push(name);
            }
        }
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[tokio::test]
async fn s1_35_instructions_contain_nothing_of_users_or_services() {
    let mut instructions: Vec<Vec<String>> = Vec::new();
    for question in ["查询手机号13800138000的客户", "查询手机号13800138001的客户"] {
        let texts = requests(question).await.into_iter();
        instructions
            .push(texts.map(|(_, body)| body["messages"][0]["content"].to_string()).collect());
    }
    assert_eq!(instructions[0], instructions[1]);
}
