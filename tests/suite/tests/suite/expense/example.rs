//! The shipped configuration `wattle.example.toml`, on which the application runs.

use std::time::Duration;

use serde_json::json;
use wattle_kit::standin::{Fault, FaultRule, Pattern, redact};
use wattle_suite::expense::{self, BOOKINGS, MODEL_PATH, VARIABLES};
use wattle_suite::server::{Setup, TestServer};

async fn shipped() -> Setup {
    let setup = Setup::without_models().await;
    expense::put(&setup.workspace);
    let config = expense::shipped(&setup.standin);
    setup.with(&config.to_string())
}

/// Starts a server with the environment variables that the file names, and with further ones.
async fn started(setup: Setup, more: &[(&str, &str)]) -> TestServer {
    setup.start_with(&[&VARIABLES, more].concat()).await
}

#[tokio::test]
async fn s2_26_s2_36_an_expense_is_booked_with_the_shipped_configuration() {
    let setup = shipped().await;
    let route = setup.config().model.routes["chat"].clone();
    assert_eq!((route.timeout, route.retries), (Duration::from_secs(30), 2));
    let server = started(setup, &[]).await;
    let reply = server.tell("昨天打车花了20元").await;
    assert!(reply.text.starts_with("✅ 记账成功！"), "{}", reply.text);
    assert_eq!(server.booked().len(), 1);
    let asked = server.requests_to(MODEL_PATH);
    let key = redact(&format!("Bearer {}", VARIABLES[0].1));
    assert!(asked.iter().all(|it| it.headers["authorization"] == key));
    assert!(asked.iter().all(|it| it.model.as_deref() == Some("gpt-4o-mini")));
    assert_eq!(asked[0].body.as_ref().unwrap()["temperature"], json!(0.0));
    let body = server.get(BOOKINGS).await.expect(200);
    assert_eq!(body["sums"]["consume"], 20.0);
}

#[tokio::test]
async fn shipped_variables_replace_models_and_fallbacks_work() {
    let more = &[("EXPENSE_MODEL", "expense-1"), ("EXPENSE_FALLBACK_MODEL", "expense-2")];
    let server = started(shipped().await, more).await;
    let gone = Fault::Status { status: 404, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("expense-1"), gone));
    let reply = server.tell("打车20元").await;
    assert!(reply.text.contains("✅"), "{}", reply.text);
    let asked: Vec<_> =
        server.requests_to(MODEL_PATH).into_iter().filter_map(|it| it.model).collect();
    assert_eq!(asked[..2], ["expense-1", "expense-2"]);
}
