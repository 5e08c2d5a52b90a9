//! Requests that override the candidate, the retries or the timeout of the route.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wattle_graph::llm::{CompletionRequest, Tries};
use wattle_model::Routes;
use wattle_run::ports::Model;
use wiremock::MockServer;

use crate::support::{
    ask, ask_city, attempts_in, bodies, caller, chat, complete, error_status, json_response,
    routes, server, table,
};

fn with(tries: Tries) -> CompletionRequest {
    CompletionRequest { tries, ..ask("hi") }
}

/// Returns a route with three candidates at one stand-in.
fn three(server: &MockServer, retries: u32) -> Routes {
    let fallbacks =
        json!([{ "provider": "first", "model": "m-2" }, { "provider": "first", "model": "m-3" }]);
    let route = json!({ "retries": retries, "fallbacks": fallbacks });
    routes(table("openai", &server.uri(), &json!({}), &route))
}

async fn models(server: &MockServer) -> Vec<Value> {
    bodies(server).await.into_iter().map(|body| body["model"].clone()).collect()
}

#[tokio::test]
async fn selected_candidate_is_the_only_one_called() {
    let server = server(vec![error_status(503)]).await;
    let routes = three(&server, 0);
    assert_eq!(routes.route(&caller(), "chat").map(|info| info.candidates), Some(3));
    let second = with(Tries { candidate: Some(1), ..Tries::default() });
    let failure = complete(&routes, &second).await.unwrap_err();
    assert_eq!(models(&server).await, ["m-2"]);
    let expected = [("first".into(), "m-2".into(), 1, "unavailable".into())];
    assert_eq!(
        attempts_in(&failure),
        expected,
        "the attempt of a single candidate is named as well"
    );
    assert!(!failure.message.contains("fallback(s)"), "{failure}");

    let fourth = with(Tries { candidate: Some(3), ..Tries::default() });
    let failure = complete(&routes, &fourth).await.unwrap_err();
    assert_eq!(failure.code, "invalid");
    for word in ["`chat`", "candidate 3", "3, counted from 0"] {
        assert!(failure.message.contains(word), "{failure}");
    }
    assert_eq!(models(&server).await.len(), 1, "no request was sent");
}

#[tokio::test]
async fn retries_of_the_request_override_the_route_and_are_counted() {
    let away = || error_status(503).insert_header("retry-after-ms", "1");
    for (route, retries, asked) in [(0, Some(2), 3), (2, Some(0), 1), (2, None, 3)] {
        let server = server(vec![away()]).await;
        let candidate = Some(0);
        let request = with(Tries { candidate, retries, ..Tries::default() });
        let failure = complete(&three(&server, route), &request).await.unwrap_err();
        assert_eq!(attempts_in(&failure)[0].2, asked, "{route} {retries:?}");
        assert_eq!(models(&server).await.len() as u64, asked);
    }
    // The retries are limited to the maximum that an operator may configure.
    let server = server(vec![away()]).await;
    let request = with(Tries { candidate: Some(0), retries: Some(u32::MAX), ..Tries::default() });
    let failure = complete(&three(&server, 0), &request).await.unwrap_err();
    assert_eq!(attempts_in(&failure)[0].2, 11);
}

#[tokio::test]
async fn completion_has_the_tries_of_each_candidate() {
    let away = || error_status(503).insert_header("retry-after-ms", "1");
    let answers = vec![away(), away(), away(), json_response(&chat("hi"))];
    let server = server(answers).await;
    let completion = complete(&three(&server, 1), &ask("hi")).await.unwrap();
    let tries: Vec<(&str, u32)> =
        completion.attempts.iter().map(|attempt| (attempt.model.as_str(), attempt.tries)).collect();
    assert_eq!(tries, [("m-1", 2), ("m-2", 2)]);
}

#[tokio::test]
async fn each_turn_of_a_document_is_sent_once_without_retries() {
    let answers = vec![json_response(&chat("{\"city\": 7}")), error_status(503)];
    let server = server(answers).await;
    let mut request = ask_city();
    request.tries = Tries { candidate: Some(0), retries: Some(0), ..Tries::default() };
    let failure = complete(&three(&server, 2), &request).await.unwrap_err();
    assert_eq!((failure.code.as_str(), attempts_in(&failure)[0].2), ("unavailable", 2));
    assert_eq!(models(&server).await.len(), 2, "the first turn and its repair");
}

#[tokio::test]
async fn timeout_of_the_request_overrides_the_route() {
    let late = || json_response(&chat("late")).set_delay(Duration::from_secs(30));
    let server = server(vec![late()]).await;
    let request = with(Tries { candidate: Some(0), timeout_ms: Some(100), ..Tries::default() });
    let begin = Instant::now();
    let failure = complete(&three(&server, 0), &request).await.unwrap_err();
    assert_eq!(failure.code, "timeout");
    assert!(failure.message.contains("100ms") && begin.elapsed() < Duration::from_secs(5));

    let none = with(Tries { timeout_ms: Some(0), ..Tries::default() });
    assert_eq!(complete(&three(&server, 0), &none).await.unwrap_err().code, "invalid");
    // The timeout is limited to the timeout of a call.
    let long = with(Tries { timeout_ms: Some(u32::MAX), ..Tries::default() });
    let quick = crate::support::server(vec![json_response(&chat("hi"))]).await;
    complete(&three(&quick, 0), &long).await.unwrap();
}
