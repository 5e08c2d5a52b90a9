//! Tests of the configuration that the application ships, of which only the addresses are replaced,
//! and of its default settings.

use std::time::Duration;

use serde_json::json;
use wattle_suite::nl2sql::{SESSIONS, example};
use wattle_suite::server::Setup;

/// 2025-01-16 01:00 in Shanghai, still the 15th in UTC.
const LATE_MS: i64 = 1_736_960_400_000;

const KEY: (&str, &str) = ("DASHSCOPE_API_KEY", "suite-model-key");

#[tokio::test]
async fn s4_51_the_shipped_configuration_uses_its_own_models() {
    let server = example().await.start_with(&[KEY]).await;
    let result = server.ask("2024年每月的销售额").await;
    assert_eq!(result["final_status"], "success", "{result}");
    assert_eq!(result["sql_validate_result"]["rows"], 12);
    assert_eq!(server.model_calls(), ["qwen-plus", "qwen-plus", "qwen3-coder-plus", "qwen-plus"]);
    let requests = server.model_requests("qwen3-coder-plus");
    let body = requests[0].body.as_ref().unwrap();
    assert_eq!(body["response_format"]["type"], "json_object", "{body}");
    assert_eq!(body["temperature"], 0.1);
    let healed = server.ask("2024年的下单金额").await;
    assert_eq!(healed["hidden_context_retry_count"], 1, "{healed}");
    assert_eq!(healed["final_status"], "success");
}

#[tokio::test]
async fn s4_51_roles_have_their_models_timeouts_and_variables() {
    let config = example().await.config();
    let routes = &config.model.routes;
    let found: Vec<(&str, &str, Duration, Option<&str>)> = ["intent", "parse", "sql", "summary"]
        .iter()
        .map(|role| {
            let route = &routes[*role];
            (*role, route.model.as_str(), route.timeout, route.model_env.as_deref())
        })
        .collect();
    let seconds = Duration::from_secs;
    assert_eq!(
        found,
        [
            ("intent", "qwen-plus", seconds(20), Some("LLM_MODEL_INTENT")),
            ("parse", "qwen-plus", seconds(25), Some("LLM_MODEL_TASK_PARSE")),
            ("sql", "qwen3-coder-plus", seconds(30), Some("LLM_MODEL_SQL_GENERATION")),
            ("summary", "qwen-plus", seconds(12), Some("LLM_MODEL_SUMMARY")),
        ]
    );
}

#[tokio::test]
async fn s4_51_a_variable_replaces_the_model_of_a_role() {
    let variables = &[KEY, ("LLM_MODEL_SQL_GENERATION", "other"), ("LLM_MODEL_INTENT", "small")];
    let server = example().await.start_with(variables).await;
    server.ask("有多少客户").await;
    assert_eq!(server.model_calls(), ["small", "qwen-plus", "other", "qwen-plus"]);
}

#[tokio::test]
async fn s4_06_today_is_a_date_in_shanghai_by_default() {
    let setup = Setup::nl2sql().await;
    let mut setup = setup.replace("time_zone = \"Asia/Shanghai\"", "time_zone = \"UTC\"");
    setup.clock = setup.clock.in_zone("UTC");
    let server = setup.start().await;
    server.clock().set_now_ms(LATE_MS);
    let result = server.ask("昨天有多少订单").await;
    let yesterday = json!({ "start": "2025-01-15", "end": "2025-01-15" });
    assert_eq!(result["task"]["time_range"], yesterday, "{result}");
    let sessions = server.get(SESSIONS).await.expect(200)["data"]["sessions"].clone();
    assert_eq!(sessions[0]["created_at"], "2025-01-16T01:00:00+08:00");
}
