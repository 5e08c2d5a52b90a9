//! `POST /api/ai/asset-graph/resume`: stores the confirmed data. A double click stores it once, and
//! a table that could not be stored can be corrected and sent again.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, Serialize, Value, code, handler, log, runs,
};
use wattle_plugin::runs::{EndedRun, OnFailure, Outcome, RunRef};
use wattle_plugin::web::{ErrorDocument, refuse, respond, status};

use crate::confirm;
use crate::state::{StoreResult, TaskType};
use crate::web::document::ReviewRow;
use crate::web::{detail, expired, find, not_understood, reason};

/// Maximum attempts. Each attempt may wait for a run of another request, which can fail and leave
/// the thread to this request.
const ATTEMPTS: u32 = 5;

/// The answer to a review.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Confirmation {
    thread_id: String,
    #[serde(default)]
    #[schemars(!default, with = "Confirmed")]
    confirmed_data: Value,
}

/// The table that a person confirmed.
// `confirm` checks the values, so that one response can list all invalid fields.
#[expect(dead_code, reason = "only its schema is used: the answer is passed on as it is")]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Confirmed {
    rows: Vec<ReviewRow>,
    risk_category: String,
    portfolio_id: i64,
    /// Kind of the rows. It takes precedence over the kind of the input.
    #[serde(rename = "type")]
    kind: Option<TaskType>,
}

/// The response after the write.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Resumed<'a> {
    store_result: &'a StoreResult,
}

/// The reason of a rejected table, for users.
#[derive(Serialize, JsonSchema)]
struct InvalidFields<'a> {
    error: &'a str,
    /// Invalid fields, such as `rows[0].ticker`.
    fields: Vec<String>,
}

/// Resumes a thread and responds with the result of the write.
#[handler(POST, "/api/ai/asset-graph/resume", body = Confirmation, returns = Resumed<'_>,
    returns(422) = InvalidFields<'_>, error = ErrorDocument)]
pub(crate) fn resume(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let body: Confirmation = request.json().map_err(|_| not_understood())?;
        for _ in 0..ATTEMPTS {
            match step(&body)? {
                Step::Answered(response) => return Ok(response),
                Step::Again => {}
            }
        }
        Err(unwritten("该记录正在被处理，请稍后重试"))
    })
}

/// Returns the failure for a table that was not stored.
fn unwritten(why: &str) -> Failure {
    refuse(status::INTERNAL_SERVER_ERROR, format!("数据写入失败: {why}"))
}

enum Step {
    Answered(Response),
    /// Another request had a run on the thread; read the thread again.
    Again,
}

fn step(body: &Confirmation) -> Result<Step, Failure> {
    let thread = find(&body.thread_id)?.ok_or_else(expired)?;
    if let Some(stored) = thread.channel::<StoreResult>("storeResult")? {
        return stored_answer(&stored).map(Step::Answered);
    }
    match (thread.status.as_str(), thread.run_id) {
        ("running", Some(run_id)) => Ok(wait_for(&thread.thread_id, run_id)),
        ("interrupted", _) => store(body),
        // The run failed before it raised an interrupt, so there is nothing to confirm.
        _ => Err(expired()),
    }
}

fn store(body: &Confirmation) -> Result<Step, Failure> {
    let fields = confirm::misshapen(&body.confirmed_data);
    if !fields.is_empty() {
        return refusal(&confirm::wrong(&fields)).map(Step::Answered);
    }
    let resume = runs::Resume::thread(&body.thread_id)
        .answer(body.confirmed_data.clone())
        .on_failure(OnFailure::Reopen);
    match resume.resume() {
        Ok(run) => written(&runs::wait(&run)?).map(Step::Answered),
        Err(failure) => match failure.code.as_str() {
            code::BUSY => Ok(busy(&body.thread_id, &failure)),
            // Another request answered the interrupt meanwhile.
            code::CONFLICT => Ok(Step::Again),
            code::NOT_FOUND | code::EXPIRED => Err(expired()),
            code::INVALID => refusal(&failure).map(Step::Answered),
            _ => Err(failure),
        },
    }
}

/// Waits for the active run, which the failure names.
fn busy(thread_id: &str, failure: &Failure) -> Step {
    match detail(failure, "run_id").and_then(Value::as_str) {
        Some(run_id) => wait_for(thread_id, run_id.to_owned()),
        None => Step::Again,
    }
}

/// Waits for the run of another request. Its outcome does not matter, not even if the run was
/// rejected and never existed: the thread determines the next step.
fn wait_for(thread_id: &str, run_id: String) -> Step {
    if let Err(failure) = runs::wait(&RunRef { thread_id: thread_id.to_owned(), run_id }) {
        log::debug!("wait for the other run of thread `{thread_id}`: {failure}");
    }
    Step::Again
}

fn written(ended: &EndedRun) -> Result<Response, Failure> {
    match &ended.outcome {
        Outcome::Completed => {
            let stored = ended.channel::<StoreResult>("storeResult")?;
            stored_answer(&stored.ok_or_else(|| {
                Failure::internal("the run ended without a `storeResult`; check `graph.toml`")
            })?)
        }
        Outcome::Failed(failure) if failure.code == confirm::VALIDATION => refusal(failure),
        Outcome::Failed(failure) => Err(unwritten(reason(failure))),
        _ => Err(unwritten("处理已中断，请重试")),
    }
}

fn stored_answer(stored: &StoreResult) -> Result<Response, Failure> {
    Response::json(200, &Resumed { store_result: stored })
}

/// Responds with the invalid fields. The user can correct the table and send it again.
fn refusal(failure: &Failure) -> Result<Response, Failure> {
    let fields = detail(failure, "fields").map(Vec::deserialize).transpose()?.unwrap_or_default();
    Response::json(status::UNPROCESSABLE_ENTITY, &InvalidFields { error: reason(failure), fields })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use wattle_plugin::prelude::{Failure, Request, Value, json};
    use wattle_plugin::runs::{EndedRun, OnFailure, Outcome, Thread};
    use wattle_plugin::testing::FakeHost;

    use super::resume;

    const EXPIRED: &str = "上次解析结果已过期，请重新输入";

    fn thread(status: &str, state: Value) -> Thread {
        let mut thread = Thread::new("t", "AssetGraph", status, state);
        thread.run_id = Some("r".to_owned());
        thread
    }

    fn ends(outcome: Outcome) -> FakeHost {
        let state = json!({"storeResult": {"success": true, "ids": [11, 12]}});
        FakeHost::new().thread(thread("interrupted", json!({}))).run_ends(move |run| EndedRun {
            run: run.clone(),
            outcome: outcome.clone(),
            state: state.clone(),
        })
    }

    fn post(host: &FakeHost, body: &Value) -> (u16, Value) {
        let request =
            Request::new("POST", "/api/ai/asset-graph/resume").with_body(body.to_string());
        let response = host.run(|| resume(&request)).unwrap();
        (response.status, response.json_body().unwrap())
    }

    fn body() -> Value {
        let confirmed = json!({"rows": [{}], "riskCategory": "r", "portfolioId": 1});
        json!({"threadId": "t", "confirmedData": confirmed})
    }

    fn stored() -> Value {
        json!({"storeResult": {"success": true, "ids": [11, 12]}})
    }

    #[test]
    fn response_has_the_result_of_the_write() {
        let host = ends(Outcome::Completed);
        assert_eq!(post(&host, &body()), (200, stored()));
        let resumed = &host.resumed()[0];
        assert_eq!(resumed.answers[0], (String::new(), body()["confirmedData"].clone()));
        assert_eq!(resumed.on_failure, OnFailure::Reopen);
    }

    #[test]
    fn second_resume_of_a_stored_thread_gets_the_same_response() {
        let host = FakeHost::new().thread(thread("idle", stored()));
        assert_eq!(post(&host, &body()), (200, stored()));
        assert!(host.resumed().is_empty());
    }

    #[test]
    fn expired_or_unknown_threads_are_gone() {
        let gone = (410, json!({ "error": EXPIRED }));
        assert_eq!(post(&FakeHost::new(), &body()), gone);
        let failed = FakeHost::new().thread(thread("error", json!({})));
        assert_eq!(post(&failed, &body()), gone);
        let just_now = ends(Outcome::Completed).resumes(|_| Err(Failure::not_found("expired")));
        assert_eq!(post(&just_now, &body()), gone);
    }

    #[test]
    fn failures_have_a_message_for_the_user() {
        let details = json!({"fields": ["rows[0].ticker"], "reason": "确认数据有误"});
        let wrong = Failure::new("validation", "node: 确认数据有误").with_details(details);
        assert_eq!(
            post(&ends(Outcome::Failed(wrong)), &body()),
            (422, json!({"error": "确认数据有误", "fields": ["rows[0].ticker"]}))
        );
        let refused = Failure::new("store", "CHECK constraint failed");
        assert_eq!(
            post(&ends(Outcome::Failed(refused)), &body()),
            (500, json!({"error": "数据写入失败: CHECK constraint failed"}))
        );
    }

    #[test]
    fn malformed_bodies_are_rejected() {
        let host = ends(Outcome::Completed);
        assert_eq!(post(&host, &json!({"confirmedData": {}})).0, 400);
        let (status, answer) = post(&host, &json!({"threadId": "t"}));
        assert_eq!(status, 422);
        assert_eq!(answer["fields"], json!(["rows", "riskCategory", "portfolioId"]));
        assert!(host.resumed().is_empty());
    }

    #[test]
    fn run_of_another_request_is_awaited() {
        let waited = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&waited);
        let mut is_first = true;
        let host = FakeHost::new()
            .thread(thread("interrupted", json!({})))
            .resumes(move |_| {
                if !std::mem::take(&mut is_first) {
                    return Ok(());
                }
                Err(Failure::new("busy", "at work").with_details(json!({"run_id": "other"})))
            })
            .run_ends(move |run| {
                seen.borrow_mut().push(run.run_id.clone());
                EndedRun { run: run.clone(), outcome: Outcome::Completed, state: stored() }
            });
        assert_eq!(post(&host, &body()), (200, stored()));
        assert_eq!(*waited.borrow(), ["other", "run-1"]);
    }

    #[test]
    fn thread_that_stays_busy_is_an_error() {
        let host = ends(Outcome::Completed).resumes(|_| Err(Failure::new("busy", "at work")));
        let (status, answer) = post(&host, &body());
        assert_eq!(status, 500);
        assert!(answer["error"].as_str().unwrap().starts_with("数据写入失败: "));
        let running = FakeHost::new().thread(thread("running", json!({})));
        assert_eq!(post(&running, &body()).0, 500);
    }
}
