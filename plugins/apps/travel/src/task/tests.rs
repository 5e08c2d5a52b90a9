//! Which models get which requests, and which failure is reported.

use std::cell::RefCell;
use std::rc::Rc;

use wattle_plugin::llm::{FinishReason, Request};
use wattle_plugin::prelude::{Completion, Deserialize, Failure, JsonSchema, Value, code, json};
use wattle_plugin::testing::FakeHost;

use super::{HANDBOOK_HTML, JSON_COMPILATION, Structured, run_structured_task, run_text_task};
use crate::testing::route;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Answer {
    number: u32,
}

/// Runs a task that requires an even number, with one result after the other.
fn run(
    answers: Vec<Result<Completion, Failure>>,
) -> (Result<Structured<Answer>, Failure>, Vec<Request>) {
    let answers = Rc::new(RefCell::new(answers.into_iter()));
    let host = route(FakeHost::new(), JSON_COMPILATION)
        .llm(move |_| answers.borrow_mut().next().unwrap_or_else(|| Ok(number(2))));
    let even = |answer: &Answer| match answer.number % 2 {
        0 => Vec::new(),
        _ => vec![format!("{} is odd", answer.number)],
    };
    let answer =
        host.run(|| run_structured_task(JSON_COMPILATION, "Be strict.", "Give one.", even));
    (answer, host.llm_requests())
}

fn number(number: u32) -> Completion {
    Completion::of_json(json!({ "number": number }))
}

/// Returns the model of each request.
fn asked(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.extra["candidate"].as_u64().unwrap()).collect()
}

fn wrong_shape() -> Failure {
    Failure::invalid("did not answer in the wanted shape:\n`/number` is text")
        .with_details(json!({"answer": "{}", "attempts": told("pro", 1)}))
}

fn told(model: &str, tries: u32) -> Value {
    json!([{"provider": "google", "model": model, "tries": tries}])
}

#[test]
fn s3_46_every_request_has_the_limits_of_the_task() {
    let (answer, requests) = run(vec![Ok(number(4))]);
    assert_eq!(answer.unwrap().value, Answer { number: 4 });
    let request = &requests[0];
    assert_eq!(request.route, "json_compilation_strict");
    assert_eq!(request.max_output_tokens, Some(8192));
    assert_eq!(
        (&request.extra["timeout_ms"], &request.extra["retries"]),
        (&json!(60_000), &json!(2))
    );
    assert_eq!(request.response_schema.as_ref().unwrap().name, "json_compilation_strict");
    assert_eq!(request.text(), "Be strict.\nGive one.", "nothing but the prompt");
}

#[test]
fn s3_46_the_planner_model_is_named_with_its_attempts() {
    let mut good = number(2);
    good.extra.insert("attempts".to_owned(), told("gemini-2.5-pro", 2));
    let (answer, requests) = run(vec![Ok(number(1)), Ok(good)]);
    assert_eq!(answer.unwrap().model, "google:gemini-2.5-pro (attempts=3)");
    assert_eq!(requests[1].extra["retries"], 1);
    let (answer, _) = run(vec![Ok(number(2))]);
    assert_eq!(answer.unwrap().model, "google:json_compilation_strict-0 (attempts=1)");
}

#[test]
fn s3_45_errors_are_in_the_next_prompt() {
    let (answer, requests) = run(vec![Ok(number(3)), Err(wrong_shape())]);
    assert_eq!(answer.unwrap().value.number, 2);
    assert!(requests[1].text().contains("refused for these reasons:\n- 3 is odd\n"));
    assert!(requests[2].text().contains("- `/number` is text\n"));
    assert!(!requests[2].text().contains("3 is odd"));
    assert_eq!(asked(&requests), [0, 0, 0]);
}

#[test]
fn s3_46_every_model_has_three_attempts() {
    let away = || Err(Failure::unavailable("away"));
    let (answer, requests) = run(vec![away(), Err(wrong_shape()), Ok(number(1)), away()]);
    assert_eq!(answer.unwrap().model, "fallback 1 (attempts=2)");
    assert_eq!(asked(&requests), [0, 0, 0, 1, 1]);
    assert!(requests[3].text().contains("1 is odd"), "the next model learns from the first");
}

#[test]
fn s3_46_attempts_of_the_host_count() {
    let away = Failure::unavailable("away").with_details(json!({"attempts": told("pro", 3)}));
    let (answer, requests) = run(vec![Err(away)]);
    assert!(answer.is_ok());
    assert_eq!(asked(&requests), [0, 1]);
}

#[test]
fn s3_47_a_permanent_failure_leads_to_the_fallback_at_once() {
    let refused = Failure::invalid("no such model").with_details(json!({"status": 404}));
    let busy = Failure::unavailable("busy").with_details(json!({"retry_after_ms": 90_000}));
    for failure in [refused, busy] {
        let (answer, requests) = run(vec![Err(failure)]);
        assert!(answer.is_ok());
        assert_eq!(asked(&requests), [0, 1]);
    }
}

#[test]
fn s3_45_the_last_failure_names_the_task_the_models_and_their_errors() {
    let odd = |_| Ok(number(7));
    let (answer, requests) = run((0..6).map(odd).collect());
    assert_eq!(asked(&requests), [0, 0, 0, 1, 1, 1]);
    let failure = answer.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("task-failed", false));
    assert_eq!(
        failure.message,
        "no model could do task `json_compilation_strict`: \
         `google:json_compilation_strict-0` (attempts=3): 7 is odd | \
         `fallback 1` (attempts=3): 7 is odd"
    );
    assert_eq!(failure.details.unwrap()["models"][1]["attempts"], 3);
}

#[test]
fn cancelled_run_sends_no_further_request() {
    let (answer, requests) = run(vec![Err(Failure::new(code::CANCELLED, "stopped"))]);
    assert_eq!((answer.unwrap_err().code.as_str(), requests.len()), (code::CANCELLED, 1));
}

#[test]
fn s3_46_a_prompt_has_at_most_twelve_errors() {
    let host = route(FakeHost::new(), JSON_COMPILATION).llm(|_| Ok(number(1)));
    let many = |_: &Answer| (0..40).map(|n| format!("error {n} {}", "x".repeat(900))).collect();
    host.run(|| run_structured_task(JSON_COMPILATION, "", "", many)).unwrap_err();
    let text = host.llm_requests()[1].text();
    assert!(text.contains("- error 11 ") && !text.contains("- error 12 "));
    assert!(text.len() < 12 * 400);
}

#[test]
fn s3_45_texts_are_checked_retried_and_fall_back() {
    let cut = Completion { finish_reason: FinishReason::Length, ..Completion::of_text("<html>") };
    let answers =
        [cut, Completion::of_text(" "), Completion::of_text("no"), Completion::of_text("<html>")];
    let answers = Rc::new(RefCell::new(answers.into_iter()));
    let host = route(FakeHost::new(), HANDBOOK_HTML)
        .llm(move |_| Ok(answers.borrow_mut().next().unwrap()));
    let check = |text: &str| {
        let missing = !text.contains("<html>");
        missing.then(|| "`<html>` is missing".to_owned()).into_iter().collect()
    };
    let answer = host.run(|| run_text_task(HANDBOOK_HTML, "", "", check)).unwrap();
    assert_eq!(answer.value, "<html>");
    let requests = host.llm_requests();
    assert_eq!(asked(&requests), [0, 0, 1, 1]);
    assert!(requests[1].text().contains("cut off") && requests[2].text().contains("is empty"));
    assert!(requests[0].response_schema.is_none());
}

#[test]
fn missing_route_is_reported_with_the_task() {
    let host = FakeHost::new();
    let failure = host.run(|| run_text_task(HANDBOOK_HTML, "", "", |_| Vec::new())).unwrap_err();
    assert!(failure.message.starts_with("handbook_html_generation: "), "{}", failure.message);
}
