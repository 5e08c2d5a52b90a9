//! Tests of the sessions and models of tenants.

use serde_json::{Value, json};
use wattle_suite::reasoning::{SESSIONS, TENANT_LLM, data};
use wattle_suite::server::Setup;

const QUESTION: &str = "统计各区域的客户数量";

#[tokio::test]
async fn s1_17_sessions_are_visible_to_their_tenant_only() {
    let server = Setup::reasoning().await.with_tenants().start().await;
    let (acme, bolt) = (server.reasoning_of("acme"), server.reasoning_of("bolt"));
    let session = acme.ask(QUESTION).await;
    assert_eq!(acme.run(&session).await["status"], "completed");
    for (method, what) in [("GET", ""), ("GET", "/trace"), ("POST", "/run"), ("POST", "/cancel")] {
        let body = json!({});
        let path = format!("{SESSIONS}/{session}{what}");
        let refused = bolt.send(method, &path, (method == "POST").then_some(&body)).await;
        assert_eq!(refused.status, 404, "{method} {what}: {refused:?}");
    }
}

#[tokio::test]
async fn s1_17_without_tenants_there_is_a_default_tenant() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let config = json!({ "provider": "standin", "model": "own" });
    let shown = data(app.send("PUT", TENANT_LLM, Some(&config)).await);
    assert_eq!((&shown["model"], &shown["has_api_key"]), (&json!("own"), &json!(false)));
    let ran = app.answer(QUESTION).await;
    assert_eq!(ran["result"]["llm_route"]["model"], "own");
    assert_eq!(server.reasoning_rows("reasoning_session").await[0]["tenant"], "default");
}

#[tokio::test]
async fn s1_59_the_key_is_never_returned() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    assert_eq!(data(app.send("GET", TENANT_LLM, None).await), Value::Null);
    let config = json!({
        "provider": "openai", "model": "m1", "api_key": "sk-very-secret",
        "base_url": format!("{}/v1/", server.standin().base_url), "timeout_ms": 5_000,
        "enable_thinking": false, "fallback_provider": "standin", "fallback_model": "m2",
        "extra_json": {}, "status": "active",
    });
    let shown = data(app.send("PUT", TENANT_LLM, Some(&config)).await);
    assert_eq!((&shown["fallback_model"], &shown["has_api_key"]), (&json!("m2"), &json!(true)));
    let session = app.ask(QUESTION).await;
    let ran = app.run(&session).await;
    assert_eq!(
        ran["result"]["llm_route"],
        json!({ "provider": "openai", "model": "m1", "has_fallback": true })
    );
    let everything = [
        shown.to_string(),
        ran.to_string(),
        data(app.send("GET", TENANT_LLM, None).await).to_string(),
        json!(app.trace(&session).await).to_string(),
        json!(server.reasoning_rows("reasoning_trace_event").await).to_string(),
        server.get(&format!("/api/v1/threads/{session}/events?until=idle")).await.body.to_string(),
    ];
    assert!(everything.iter().all(|text| !text.contains("sk-very-secret")));
}

#[tokio::test]
async fn s1_59_invalid_documents_are_rejected_and_disabled_ones_ignored() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    for body in [
        json!([]),
        json!({}),
        json!({ "provider": "standin" }),
        json!({ "provider": "nobody", "model": "m" }),
        json!({ "provider": "standin", "model": "m", "colour": 1 }),
        json!({ "provider": "standin", "model": "m", "status": "sleeping" }),
    ] {
        let refused = app.send("PUT", TENANT_LLM, Some(&body)).await;
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!(4000)), "{body}");
    }
    let off = json!({ "provider": "standin", "model": "own", "status": "disabled" });
    data(app.send("PUT", TENANT_LLM, Some(&off)).await);
    let ran = app.answer(QUESTION).await;
    assert_eq!(ran["result"]["llm_route"]["model"], "reasoning", "the default model is used");
}

#[tokio::test]
async fn s1_59_the_model_of_a_tenant_survives_a_restart() {
    let server = Setup::reasoning().await.start().await;
    let config = json!({ "provider": "standin", "model": "own" });
    data(server.reasoning().send("PUT", TENANT_LLM, Some(&config)).await);
    let server = server.restart().await;
    let ran = server.reasoning().answer(QUESTION).await;
    assert_eq!(ran["result"]["llm_route"]["model"], "own");
}
