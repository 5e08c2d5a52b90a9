//! The shipped configuration `wattle.example.toml`, on which the application runs.

use std::time::Duration;

use wattle_kit::standin::{Fault, FaultRule, Pattern, redact};
use wattle_suite::asset::{VARIABLES, example};
use wattle_suite::server::{Setup, TestServer};

/// Starts a server with the environment variables that the file names, and with further ones.
async fn started(setup: Setup, more: &[(&str, &str)]) -> TestServer {
    setup.start_with(&[&VARIABLES, more].concat()).await
}

#[tokio::test]
async fn s0_40_s0_54_a_trade_is_stored_with_the_shipped_configuration() {
    let setup = example().await;
    let routes = setup.config().model.routes;
    for (route, seconds, retries) in [("vision", 60, 2), ("chat", 30, 2), ("light", 15, 1)] {
        let route = &routes[route];
        assert_eq!((route.timeout, route.retries), (Duration::from_secs(seconds), retries));
    }
    let server = started(setup, &[]).await;
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text("昨天买入栖岸科技 100 股 320").await;
    assert_eq!(review.rows()[0]["ticker"], "8999.HK", "{}", review.payload);
    assert_eq!(review.rows()[0]["tradedAt"], "2025-01-14");
    assert_eq!(server.model_calls(), ["gpt-4o", "gpt-4o", "gpt-4o-mini"]);
    server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    assert_eq!(server.counts().await, [1, 0, 1]);
    let asked = server.standin().requests();
    let search = asked.iter().find(|it| it.path == "/v3/reference/tickers").unwrap();
    assert_eq!(search.query["apiKey"], redact(VARIABLES[1].1));
    let key = redact(&format!("Bearer {}", VARIABLES[0].1));
    let models = asked.iter().filter(|it| it.path == "/v1/chat/completions");
    assert!(models.into_iter().all(|it| it.headers["authorization"] == key));
}

#[tokio::test]
async fn shipped_variables_replace_models_and_fallbacks_work() {
    let more = &[("ASSET_MODEL_CHAT", "chat-1"), ("ASSET_MODEL_VISION", "vision-1")];
    let server = started(example().await, more).await;
    let gone = Fault::Status { status: 404, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("chat-1"), gone));
    server.invoke_text("买入腾讯 100 股 320").await;
    assert_eq!(server.model_calls(), ["chat-1", "gpt-4o-mini", "chat-1", "gpt-4o-mini"]);
    server.standin().clear_requests();
    server.invoke_image("买入腾讯 100 股 320").await;
    assert_eq!(server.model_calls(), ["vision-1", "vision-1"]);
}
