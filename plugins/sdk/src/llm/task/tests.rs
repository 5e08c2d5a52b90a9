//! Which candidates get which requests, and which failure is reported.

use serde_json::{Value, json};

use crate::failure::{Failure, code};
use crate::llm::{Checked, Completion, FinishReason, Request, RouteInfo, TASK_FAILED, Task};
use crate::prelude::{Deserialize, JsonSchema};
use crate::testing::FakeHost;

const TASK: Task = Task::new("plan").max_output_tokens(8_192).timeout_ms(60_000).retries(2);

#[derive(Debug, Deserialize, JsonSchema)]
struct Answer {
    number: u32,
}

/// Runs a task that requires an even number. The candidates return these results in turn, and then
/// the number 2.
fn run(results: Vec<Result<Completion, Failure>>) -> (Result<Checked<u32>, Failure>, Vec<Request>) {
    run_checked(results, |answer| match answer.number % 2 {
        0 => Ok(answer.number),
        _ => Err(vec![format!("{} is odd", answer.number)]),
    })
}

fn run_checked(
    results: Vec<Result<Completion, Failure>>,
    check: impl Fn(Answer) -> Result<u32, Vec<String>>,
) -> (Result<Checked<u32>, Failure>, Vec<Request>) {
    let host = host(results);
    let result = host.run(|| TASK.document("Be strict.", "Give one.", check));
    (result, host.llm_requests())
}

/// Returns a host with two candidates that return these results in turn, and then the number 2.
fn host(results: Vec<Result<Completion, Failure>>) -> FakeHost {
    let info = RouteInfo {
        provider: "google".to_owned(),
        model: "large".to_owned(),
        has_fallback: true,
        ..RouteInfo::default()
    };
    let mut results = results.into_iter();
    FakeHost::new()
        .route("plan", info)
        .llm(move |_| results.next().unwrap_or_else(|| Ok(number(2))))
}

fn number(number: u32) -> Completion {
    Completion::of_json(json!({ "number": number }))
}

/// Returns the candidate of each request.
fn asked(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.extra["candidate"].as_u64().unwrap()).collect()
}

/// Returns the failure of a completion that violates the schema.
fn wrong_shape() -> Failure {
    let details = json!({"answer": "{}", "attempts": tried("pro", 1)});
    Failure::invalid("did not answer in the wanted shape:\n`/number` is text").with_details(details)
}

/// Returns attempts as the host reports them.
fn tried(model: &str, tries: u32) -> Value {
    json!([{"provider": "google", "model": model, "tries": tries}])
}

#[test]
fn requests_have_the_limits_and_the_schema_of_the_task() {
    let (result, requests) = run(vec![Ok(number(4))]);
    assert_eq!(result.unwrap().value, 4);
    let request = &requests[0];
    assert_eq!((&*request.route, request.max_output_tokens), ("plan", Some(8_192)));
    let extra = json!({"timeout_ms": 60_000, "candidate": 0, "repair": false, "retries": 2});
    assert_eq!(json!(request.extra), extra);
    assert_eq!(request.response_schema.as_ref().unwrap().name, "plan");
    assert_eq!(request.text(), "Be strict.\nGive one.", "nothing but the prompt");
}

#[test]
fn tasks_can_have_a_route_a_temperature_and_a_refusal_of_their_own() {
    const OTHER: Task =
        Task::new("other").route("plan").temperature(0.5).refusal("No:\n{{reasons}}\n").retries(1);
    let host = host(Vec::new());
    let refused = |_: Answer| Err::<(), _>(vec!["never".to_owned()]);
    let failure = host.run(|| OTHER.document("", "Give one.", refused)).unwrap_err();
    assert!(failure.message.starts_with("no model could do task `other`: "), "{failure}");
    let requests = host.llm_requests();
    assert_eq!((&*requests[0].route, requests[0].temperature), ("plan", Some(0.5)));
    assert_eq!(requests[0].response_schema.as_ref().unwrap().name, OTHER.name());
    assert!(!requests[0].extra.contains_key("timeout_ms"));
    assert_eq!(requests[1].text(), "\nGive one.\n\nNo:\n- never");
}

#[test]
fn wrong_template_of_a_refusal_fails_before_the_first_request() {
    for template in ["No.", "No: {{why}}", "No: {{reasons"] {
        let host = host(vec![]);
        let result = host.run(|| {
            let task = TASK.refusal(template);
            task.document("Be strict.", "Give one.", |answer: Answer| Ok(answer.number))
        });
        assert_eq!(result.unwrap_err().code, code::INTERNAL, "{template}");
        assert!(host.llm_requests().is_empty(), "{template}");
    }
}

#[test]
fn attempts_are_counted_for_each_candidate() {
    let away = || Err(Failure::unavailable("away"));
    let retried = |tries| {
        let details = json!({"attempts": tried("pro", tries)});
        Err(Failure::unavailable("away").with_details(details))
    };
    let mut good = number(2);
    good.extra.insert("attempts".to_owned(), tried("pro", 2));
    let status = Failure::invalid("no such model").with_details(json!({"status": 404}));
    let busy = Failure::unavailable("busy").with_details(json!({"retry_after_ms": 90_000}));
    let large = "google:large (attempts=1)";
    for (case, results, origin, candidates) in [
        ("the first", vec![Ok(number(2))], large, vec![0]),
        ("a refusal", vec![Ok(number(1)), Ok(good)], "google:pro (attempts=3)", vec![0, 0]),
        (
            "all causes",
            vec![away(), Err(wrong_shape()), Ok(number(1)), away()],
            "fallback 1 (attempts=2)",
            vec![0, 0, 0, 1, 1],
        ),
        ("retries of the host", vec![retried(3)], "fallback 1 (attempts=1)", vec![0, 1]),
        ("a permanent failure", vec![Err(status)], "fallback 1 (attempts=1)", vec![0, 1]),
        ("a long delay", vec![Err(busy)], "fallback 1 (attempts=1)", vec![0, 1]),
    ] {
        let (result, requests) = run(results);
        assert_eq!(result.unwrap().origin(), origin, "{case}");
        assert_eq!(asked(&requests), candidates, "{case}");
    }
    let (_, requests) = run(vec![Ok(number(1)), retried(1)]);
    let left: Vec<&Value> = requests.iter().map(|request| &request.extra["retries"]).collect();
    assert_eq!(left, [2, 1, 0]);
}

#[test]
fn reasons_of_the_last_completion_are_in_the_next_request() {
    let (result, requests) = run(vec![Ok(number(3)), Err(wrong_shape())]);
    assert_eq!(result.unwrap().value, 2);
    assert_eq!(
        requests[1].text(),
        "Be strict.\nGive one.\n\nAn earlier answer was refused for these reasons:\n- 3 is odd\n\
         Answer again, whole, with all of them corrected."
    );
    let text = requests[2].text();
    assert!(text.contains("- `/number` is text\n") && !text.contains("3 is odd"), "{text}");
    let away = || Err(Failure::unavailable("away"));
    let (_, requests) = run(vec![Ok(number(1)), away(), away()]);
    assert_eq!(asked(&requests), [0, 0, 0, 1]);
    assert!(requests[3].text().contains("1 is odd"), "the next candidate learns from the first");
}

#[test]
fn reasons_are_bounded() {
    let (result, requests) = run_checked(Vec::new(), |_| {
        Err((0..40).map(|n| format!("error {n} {}", "x".repeat(900))).collect())
    });
    let text = requests[1].text();
    assert!(text.contains("- error 11 ") && !text.contains("- error 12 "), "{text}");
    assert!(text.len() < 12 * 400);
    assert!(result.unwrap_err().message.len() < 2 * 12 * 400);
}

#[test]
fn the_failure_names_the_task_the_models_and_their_reasons() {
    let (result, requests) = run((0..6).map(|_| Ok(number(7))).collect());
    assert_eq!(asked(&requests), [0, 0, 0, 1, 1, 1]);
    let failure = result.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), (TASK_FAILED, false));
    assert_eq!(
        failure.message,
        "no model could do task `plan`: `google:large` (attempts=3): 7 is odd | \
         `fallback 1` (attempts=3): 7 is odd"
    );
    let model = |name: &str| json!({"model": name, "attempts": 3, "errors": ["7 is odd"]});
    let models = [model("google:large"), model("fallback 1")];
    assert_eq!(*failure.details.unwrap(), json!({"task": "plan", "models": models}));
}

#[test]
fn texts_are_complete_before_they_are_checked() {
    let ended = |finish_reason| Completion { finish_reason, ..Completion::of_text("<html>") };
    let host = host(vec![
        Ok(ended(FinishReason::Length)),
        Ok(ended(FinishReason::ContentFilter)),
        Ok(Completion::of_text(" ")),
        Ok(Completion::of_text("no")),
        Ok(Completion::of_text("<html>")),
    ]);
    let check = |text: String| {
        let missing = || vec!["`<html>` is missing".to_owned()];
        text.contains("<html>").then_some(text.len()).ok_or_else(missing)
    };
    assert_eq!(host.run(|| TASK.text("", "", check)).unwrap().value, 6);
    let requests = host.llm_requests();
    assert_eq!(asked(&requests), [0, 0, 0, 1, 1]);
    assert!(requests[0].response_schema.is_none());
    let reasons = ["cut off", "withheld", "is empty", "`<html>` is missing"];
    for (request, reason) in requests[1..].iter().zip(reasons) {
        assert!(request.text().contains(reason), "{reason}: {}", request.text());
    }
}

#[test]
fn cancelled_run_sends_no_further_request() {
    let (result, requests) = run(vec![Err(Failure::new(code::CANCELLED, "stopped"))]);
    assert_eq!((result.unwrap_err().code.as_str(), requests.len()), (code::CANCELLED, 1));
}

#[test]
fn missing_route_is_reported_with_the_task() {
    let failure = FakeHost::new().run(|| TASK.text("", "", Ok)).unwrap_err();
    assert!(failure.message.starts_with("plan: "), "{failure}");
}
