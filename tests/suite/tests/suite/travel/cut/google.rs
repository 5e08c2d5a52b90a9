//! Tests in which the models for tasks fail in each way at each task.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, google_quota};
use wattle_suite::travel::working_on;

use super::{SEARCHED, Stage, guide};

const BLOCKS: &str = "json_compilation_strict";
const SPOTS: &str = "spot_query_normalization";
const PLAN: &str = "handbook_image_query_planning";
const PAGE: &str = "handbook_html_generation";

/// The number of requests to both models together if each is called once, for a document and for
/// the page.
const ONCE: [usize; 2] = [2, 2];

/// The number of requests if each model is called as often as its policy allows.
const OFTEN: [usize; 2] = [6, 4];

/// The tasks that fail together, and the tool that they fail.
const ROUNDS: [(&[&str], &str); 3] = [
    (&[BLOCKS], "build_travel_blocks"),
    (&[SPOTS, PLAN], "search_image"),
    (&[PAGE], "generate_handbook_html"),
];

/// A fault and the number of requests that it causes.
struct Case {
    name: String,
    fault: Fault,
    asked: [usize; 2],
}

fn case(name: &str, fault: Fault, asked: [usize; 2]) -> Case {
    Case { name: name.to_owned(), fault, asked }
}

fn status(status: u16, asked: [usize; 2]) -> Case {
    let fault = Fault::Status { status, retry_after: Some("0".to_owned()), body: None };
    case(&format!("status {status}"), fault, asked)
}

/// A completion that is truncated at the maximum number of tokens.
fn cut_short() -> Fault {
    let content = json!({"role": "model", "parts": [{"text": "{\"blocks\": [{\"bl"}]});
    let candidate = json!({"content": content, "finishReason": "MAX_TOKENS", "index": 0});
    let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18});
    let body = json!({"candidates": [candidate], "usageMetadata": usage});
    Fault::Status { status: 200, retry_after: None, body: Some(body) }
}

fn order(stage: &Stage, task: &str, fault: &Fault) {
    stage.server.standin().fault(FaultRule::new(working_on(task), fault.clone()));
}

/// Returns how often the models were called for a task since the journal was cleared.
fn asked(stage: &Stage, task: &str) -> usize {
    stage.server.requests_for(task).len()
}

/// Deals cases out to the rounds. Which failures are retried does not depend on the task, and the
/// tests of the routes of models have all of them.
fn dealt(cases: impl IntoIterator<Item = Case>) -> [Vec<Case>; ROUNDS.len()] {
    let mut dealt: [Vec<Case>; ROUNDS.len()] = std::array::from_fn(|_| Vec::new());
    for (number, case) in cases.into_iter().enumerate() {
        dealt[number % ROUNDS.len()].push(case);
    }
    dealt
}

/// Makes one task after the other fail in all ways of its round, in one session.
async fn at_each_task(cases: [Vec<Case>; ROUNDS.len()]) {
    let stage = Stage::new(SEARCHED).await;
    stage.clear();
    let session = stage.server.travel().create().await;
    for ((tasks, step), cases) in ROUNDS.into_iter().zip(&cases) {
        for Case { name, fault, asked: [document, page] } in cases {
            let name = format!("{name} at {tasks:?}");
            let before: Vec<usize> = tasks.iter().map(|task| asked(&stage, task)).collect();
            for task in tasks {
                order(&stage, task, fault);
            }
            let shown = stage.fail(&session, stage.wish, Some(step), &name).await;
            let told = shown["lastError"].as_str().unwrap();
            let task = tasks[tasks.len() - 1];
            assert!(told.contains(&format!("`{task}`")), "{name}: {told}");
            let count = if task == PAGE { page } else { document };
            for (task, before) in tasks.iter().zip(before) {
                assert_eq!(asked(&stage, task) - before, *count, "{name}");
            }
            stage.server.standin().clear_faults();
        }
    }
    stage.go_on(&session, "after all of them").await;
}

#[tokio::test]
async fn s3_47_rejected_requests_are_not_repeated_and_each_task_succeeds_later() {
    let quota = case("a long quota", google_quota("3600s"), ONCE);
    let refusals = [400, 401, 403, 404].map(|it| status(it, ONCE));
    at_each_task(dealt(refusals.into_iter().chain([quota]))).await;
}

#[tokio::test]
async fn s3_46_temporary_failures_are_retried_and_each_task_succeeds_later() {
    let quota = case("a short quota", google_quota("0s"), OFTEN);
    let busy = [429, 500, 503].map(|it| status(it, OFTEN));
    at_each_task(dealt(busy.into_iter().chain([quota]))).await;
}

#[tokio::test]
async fn s3_45_unusable_completions_are_retried_and_each_task_succeeds_later() {
    let unusable = || {
        let shape = Fault::Content { text: json!({"blocks": 7}).to_string() };
        vec![
            case("a blocked prompt", Fault::Withheld { reason: None }, OFTEN),
            case("a completion that is too long", cut_short(), OFTEN),
            case("a completion of another shape", shape, OFTEN),
        ]
    };
    at_each_task(std::array::from_fn(|_| unusable())).await;
}

#[tokio::test]
async fn s3_46_a_guide_is_the_same_after_lost_connections() {
    let stage = Stage::new(SEARCHED).await;
    for fault in [Fault::Cut, Fault::Garbage] {
        stage.clear();
        for task in [BLOCKS, SPOTS, PLAN, PAGE] {
            let rule = FaultRule::new(working_on(task), fault.clone()).times(1);
            stage.server.standin().fault(rule);
        }
        let (session, said) = stage.server.travel().make(stage.wish).await;
        let outputs: Vec<Value> = stage.whole.steps.iter().map(|tool| said.output(tool)).collect();
        assert!(json!(outputs).to_string().contains("gemini-2.5-flash (attempts=2)"));
        stage.whole.check(&guide(&stage.server, &session).await, &format!("{fault:?}"));
        for task in [BLOCKS, SPOTS, PLAN, PAGE] {
            assert_eq!(asked(&stage, task), 2, "{fault:?}: {task}");
        }
    }
}
