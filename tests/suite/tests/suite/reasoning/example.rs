//! Tests that the application runs with the configuration that it ships, `wattle.example.toml`.

use std::time::Duration;

use serde_json::json;
use wattle_kit::standin::{Entry, Fault, FaultRule, Pattern, redact};
use wattle_suite::reasoning::example;
use wattle_suite::server::TestServer;

/// The environment variables that the file names.
const VARIABLES: [(&str, &str); 3] = [
    ("DEEPSEEK_API_KEY", "a-key-for-models"),
    ("ONTOLOGY_TOKEN", "a-token-for-the-graph"),
    ("DATA_TOKEN", "a-token-for-the-data"),
];

async fn started(more: &[(&str, &str)]) -> TestServer {
    example().await.start_with(&[&VARIABLES, more].concat()).await
}

#[tokio::test]
async fn s1_56_s1_60_s1_72_a_question_is_answered_with_the_shipped_configuration() {
    let server = started(&[]).await;
    let route = &server.setup.config().model.routes["reasoning"];
    assert_eq!((route.timeout, route.retries), (Duration::from_secs(45), 2));
    let ran = server.reasoning().answer("客户张伟的订单").await;
    let result = &ran["result"];
    assert_eq!(result["data_execution"]["total"], 3, "{ran}");
    let route =
        json!({ "provider": "deepseek", "model": "deepseek-v4-flash", "has_fallback": true });
    assert_eq!(result["llm_route"], route);
    let asked = server.standin().requests();
    let with = |path: &str, secret: &str| {
        let own: Vec<&Entry> = asked.iter().filter(|it| it.path == path).collect();
        let bearer = redact(&format!("Bearer {secret}"));
        assert!(!own.is_empty(), "{path}");
        assert!(own.iter().all(|it| it.headers["authorization"] == bearer), "{path}");
    };
    with("/v1/chat/completions", VARIABLES[0].1);
    with("/mcp/graph", VARIABLES[1].1);
    with("/mcp/data", VARIABLES[2].1);
}

#[tokio::test]
async fn s1_60_a_variable_replaces_the_model_and_the_fallback_is_used() {
    let server = started(&[("REASONING_MODEL", "mine")]).await;
    let gone = Fault::Status { status: 404, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("mine"), gone));
    assert_eq!(server.reasoning().answer("设备状态分布").await["status"], "completed");
    let models: Vec<String> =
        server.reasoning_calls().into_iter().filter_map(|call| call.model).collect();
    assert_eq!(models[..2], ["mine", "deepseek-v4-pro"]);
}
