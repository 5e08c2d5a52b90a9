//! Retries and fallbacks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wattle_graph::llm::{Part, Role};
use wattle_model::Routes;
use wiremock::{MockServer, ResponseTemplate};

use crate::support::{
    KEY, ask, ask_city, assert_no_key, attempts_in, chat, complete, error_status, json_response,
    routes, server, table,
};

async fn count(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().len()
}

fn retrying(server: &MockServer, retries: u32) -> Routes {
    routes(table("openai", &server.uri(), &json!({}), &json!({ "retries": retries })))
}

#[tokio::test]
async fn transient_errors_are_retried_after_the_requested_delay() {
    let soon = |code| error_status(code).insert_header("retry-after-ms", "20");
    for code in [408, 409, 429, 500, 503] {
        let server = server(vec![soon(code), soon(code), json_response(&chat("hi"))]).await;
        let start = Instant::now();
        let completion = complete(&retrying(&server, 2), &ask("hi")).await.unwrap();
        assert_eq!(completion.parts, [Part::Text("hi".into())], "{code}");
        assert_eq!(count(&server).await, 3, "{code}");
        assert!(start.elapsed() >= Duration::from_millis(40), "{code}");
    }
}

#[tokio::test]
async fn retry_after_in_seconds_is_obeyed() {
    let server = server(vec![
        error_status(429).insert_header("retry-after", "1"),
        json_response(&chat("hi")),
    ])
    .await;
    let start = Instant::now();
    complete(&retrying(&server, 2), &ask("hi")).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn requested_delay_above_the_maximum_fails_at_once() {
    let server = server(vec![error_status(429).insert_header("retry-after", "3600")]).await;
    let failure = complete(&retrying(&server, 2), &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("rate-limited", true));
    assert_eq!(failure.details.unwrap()["retry_after_ms"], 3_600_000);
    assert_eq!(count(&server).await, 1);
}

#[tokio::test]
async fn x_should_retry_decides_about_retries() {
    let never = server(vec![error_status(500).insert_header("x-should-retry", "false")]).await;
    let failure = complete(&retrying(&never, 2), &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", false));
    assert_eq!(count(&never).await, 1);

    let again = error_status(400)
        .insert_header("x-should-retry", "true")
        .insert_header("retry-after-ms", "1");
    let once = server(vec![again, json_response(&chat("hi"))]).await;
    complete(&retrying(&once, 2), &ask("hi")).await.unwrap();
    assert_eq!(count(&once).await, 2);
}

#[tokio::test]
async fn exhausted_quota_is_not_retried() {
    let body = json!({ "error": { "message": "pay", "code": "insufficient_quota" } });
    let server = server(vec![ResponseTemplate::new(429).set_body_json(body)]).await;
    let failure = complete(&retrying(&server, 2), &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("rate-limited", false));
    assert!(failure.message.contains("top up"), "{failure}");
    assert_eq!(count(&server).await, 1);
}

#[tokio::test]
async fn tool_call_that_the_service_cannot_read_is_retried() {
    let error = json!({ "message": "Failed to call a function.", "type": "invalid_request_error",
        "code": "tool_use_failed", "failed_generation": "<function=clock{}>" });
    let refused = ResponseTemplate::new(400)
        .set_body_json(json!({ "error": error }))
        .insert_header("retry-after-ms", "1");
    let server = server(vec![refused, json_response(&chat("hi"))]).await;
    let completion = complete(&retrying(&server, 2), &ask("hi")).await.unwrap();
    assert_eq!(completion.parts, [Part::Text("hi".into())]);
    assert_eq!(count(&server).await, 2);
}

/// Returns a route with a fallback to a second provider.
fn with_fallback(first: &MockServer, second: &MockServer) -> Routes {
    routes(fallback_table(first, second))
}

fn fallback_table(first: &MockServer, second: &MockServer) -> Value {
    let fallbacks = json!([{ "provider": "second", "model": "m-2" }]);
    let route = json!({ "fallbacks": fallbacks });
    let mut config = table("openai", &first.uri(), &json!({}), &route);
    config["providers"]["second"] =
        json!({ "kind": "openai", "base_url": second.uri(), "key_env": "SECOND_KEY" });
    config
}

#[tokio::test]
async fn fallback_is_called_when_the_first_model_is_unavailable() {
    for code in [401, 403, 404, 429, 500] {
        let first = server(vec![error_status(code)]).await;
        let second = server(vec![json_response(&chat("from the second"))]).await;
        let completion = complete(&with_fallback(&first, &second), &ask("hi")).await.unwrap();
        assert_eq!(completion.parts, [Part::Text("from the second".into())], "{code}");
        let asked: Value = second.received_requests().await.unwrap()[0].body_json().unwrap();
        assert_eq!(asked["model"], "m-2");
        let [failed, answered] = completion.attempts.as_slice() else { panic!("two were asked") };
        assert_eq!((failed.provider.as_str(), failed.model.as_str()), ("first", "m-1"));
        assert!(failed.error.is_some(), "{code}");
        assert_eq!((answered.provider.as_str(), &answered.error), ("second", &None));
    }
}

#[tokio::test]
async fn s3_47_provider_rejection_falls_back_without_retry() {
    let unknown = json!({ "error": { "message": "Model Not Exist", "code": "invalid_request" } });
    let unknown = ResponseTemplate::new(400).set_body_json(unknown);
    for answer in [
        error_status(400),
        error_status(401),
        error_status(403),
        error_status(404),
        error_status(422),
        unknown,
    ] {
        let first = server(vec![answer]).await;
        let second = server(vec![json_response(&chat("from the second"))]).await;
        let mut config = fallback_table(&first, &second);
        config["routes"]["chat"]["retries"] = json!(3);
        let completion = complete(&routes(config), &ask("hi")).await.unwrap();
        assert_eq!(completion.parts, [Part::Text("from the second".into())]);
        assert_eq!(count(&first).await, 1, "it is not retried");
        assert_eq!(completion.attempts[0].tries, 1);
        assert_no_key(completion.attempts[0].error.as_ref().unwrap());
    }
}

#[tokio::test]
async fn s3_47_invalid_request_is_not_sent() {
    let first = server(vec![json_response(&chat("hi"))]).await;
    let second = server(vec![json_response(&chat("hi"))]).await;
    let routes = with_fallback(&first, &second);
    let mut schema = ask_city();
    schema.response_schema.as_mut().unwrap().schema = json!({ "type": 7 });
    let mut role = ask("hi");
    role.messages[0].role = Role::Other("oracle".into());
    for request in [schema, role] {
        let failure = complete(&routes, &request).await.unwrap_err();
        assert_eq!(failure.code, "invalid");
    }
    assert_eq!((count(&first).await, count(&second).await), (0, 0));
}

#[tokio::test]
async fn failure_of_all_candidates_is_that_of_the_first_with_all_attempts() {
    let first = server(vec![error_status(401)]).await;
    let second = server(vec![error_status(503)]).await;
    let failure = complete(&with_fallback(&first, &second), &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true));
    assert!(failure.message.contains("`PROVIDER_KEY`"), "{failure}");
    let expected = [("first", "m-1", 1, "unavailable"), ("second", "m-2", 1, "unavailable")];
    assert_eq!(
        attempts_in(&failure),
        expected.map(|(p, m, n, c)| (p.into(), m.into(), n, c.into()))
    );
    assert_eq!(failure.details.as_ref().unwrap()["status"], 401, "the first one's details");
    assert_no_key(&failure);
    assert!(!failure.message.contains(KEY));
}
