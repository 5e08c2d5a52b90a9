//! `POST /api/ai/asset-graph/resume`: stores the confirmed data. A double click stores it once, and
//! a table that could not be stored can be corrected and sent again.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, Serialize, Value, handler,
};
use wattle_plugin::runs::{EndedRun, OnFailure, Outcome, Resume, ResumeOutcome, Thread};
use wattle_plugin::web::{ErrorDocument, refuse, respond, status};

use crate::state::{StoreResult, TaskType};
use crate::web::document::ReviewRow;
use crate::web::{detail, expired, not_understood, reason};
use crate::{GRAPH, confirm};

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
        let resume = Resume::thread(&body.thread_id)
            .answer(body.confirmed_data.clone())
            .on_failure(OnFailure::Reopen);
        match resume.resume_once(GRAPH, |thread| without_run(thread, &body.confirmed_data))? {
            ResumeOutcome::Done(response) => Ok(response),
            ResumeOutcome::Ended(run) => written(&run),
            ResumeOutcome::Refused(failure) => refusal(&failure),
            // The run may have failed before it raised an interrupt: there is nothing to confirm.
            ResumeOutcome::NotInterrupted => Err(expired()),
            ResumeOutcome::Busy => Err(unwritten("该记录正在被处理，请稍后重试")),
        }
    })
}

/// Returns the failure for a table that was not stored.
fn unwritten(why: &str) -> Failure {
    refuse(status::INTERNAL_SERVER_ERROR, format!("数据写入失败: {why}"))
}

/// Returns the response if the table is already stored, or cannot be stored.
fn without_run(thread: &Thread, confirmed: &Value) -> Result<Option<Response>, Failure> {
    if let Some(stored) = thread.channel::<StoreResult>("storeResult")? {
        return stored_response(&stored).map(Some);
    }
    let fields = confirm::misshapen(confirmed);
    if fields.is_empty() || !thread.is_interrupted() {
        return Ok(None);
    }
    refusal(&confirm::wrong(&fields)).map(Some)
}

fn written(ended: &EndedRun) -> Result<Response, Failure> {
    match &ended.outcome {
        Outcome::Completed => {
            let stored = ended.channel::<StoreResult>("storeResult")?;
            stored_response(&stored.ok_or_else(|| {
                Failure::internal("the run ended without a `storeResult`; check `graph.toml`")
            })?)
        }
        Outcome::Failed(failure) if failure.code == confirm::VALIDATION => refusal(failure),
        Outcome::Failed(failure) => Err(unwritten(reason(failure))),
        _ => Err(unwritten("处理已中断，请重试")),
    }
}

fn stored_response(stored: &StoreResult) -> Result<Response, Failure> {
    Response::json(200, &Resumed { store_result: stored })
}

/// Responds with the invalid fields. The user can correct the table and send it again.
fn refusal(failure: &Failure) -> Result<Response, Failure> {
    let fields = detail(failure, "fields").map(Vec::deserialize).transpose()?.unwrap_or_default();
    Response::json(status::UNPROCESSABLE_ENTITY, &InvalidFields { error: reason(failure), fields })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, Value, json};
    use wattle_plugin::runs::{OnFailure, Outcome, Thread};
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
        FakeHost::new().thread(thread("interrupted", json!({}))).outcome(outcome, state)
    }

    fn post(host: &FakeHost, body: &Value) -> (u16, Value) {
        let request =
            Request::new("POST", "/api/ai/asset-graph/resume").with_body(body.to_string());
        host.respond(resume, &request)
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
    fn thread_that_stays_busy_is_an_error() {
        let host = ends(Outcome::Completed).resumes(|_| Err(Failure::new("busy", "at work")));
        let (status, answer) = post(&host, &body());
        assert_eq!(status, 500);
        assert!(answer["error"].as_str().unwrap().starts_with("数据写入失败: "));
    }
}
