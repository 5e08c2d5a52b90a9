//! `GET /api/ai/asset-graph/threads/{threadId}`: the review of a thread, with which a reloaded page
//! continues.

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, Value, handler, runs,
};
use wattle_plugin::web::{ErrorDocument, respond};

use crate::GRAPH;
use crate::state::StoreResult;
use crate::web::document::Review;
use crate::web::expired;

/// A thread with its pending review, or with the result of the write.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ThreadView<'a> {
    thread_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Review")]
    review_payload: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StoreResult")]
    store_result: Option<&'a StoreResult>,
}

/// Responds with the pending review of a thread, or with the result of the write.
#[handler(GET, "/api/ai/asset-graph/threads/{threadId}", returns = ThreadView<'_>,
    error = ErrorDocument)]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || view(&request.param::<String>("threadId")?))
}

fn view(thread_id: &str) -> Result<Response, Failure> {
    let mut thread = runs::find(GRAPH, thread_id)?.ok_or_else(expired)?;
    if let Some(run) = thread.active_run() {
        // A page that is reloaded during the run gets the result of the run.
        runs::wait(&run)?;
        thread = runs::find(GRAPH, thread_id)?.ok_or_else(expired)?;
    }
    if let Some(stored) = thread.channel::<StoreResult>("storeResult")? {
        let store_result = Some(&stored);
        let view = ThreadView { thread_id, review_payload: None, store_result };
        return Response::json(200, &view);
    }
    match thread.interrupts.first() {
        Some(question) => {
            let review_payload = Some(&question.payload);
            let view = ThreadView { thread_id, review_payload, store_result: None };
            Response::json(200, &view)
        }
        // The run failed before it raised an interrupt.
        None => Err(expired()),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Value, json};
    use wattle_plugin::runs::{Interrupt, Thread};
    use wattle_plugin::testing::FakeHost;

    use super::show;

    fn get(host: &FakeHost) -> (u16, Value) {
        let request =
            Request::new("GET", "/api/ai/asset-graph/threads/t").with_param("threadId", "t");
        host.respond(show, &request)
    }

    #[test]
    fn pending_review_is_returned() {
        let payload = json!({"type": "unknown", "rows": [], "missingFields": [], "warnings": []});
        let mut thread = Thread::new("t", "AssetGraph", "interrupted", json!({}));
        thread.interrupts = vec![Interrupt::new("q", "present_review", payload.clone())];
        let host = FakeHost::new().thread(thread);
        assert_eq!(get(&host), (200, json!({"threadId": "t", "reviewPayload": payload})));
        assert!(host.resumed().is_empty());
    }

    #[test]
    fn stored_thread_returns_the_result_of_the_write() {
        let stored = json!({"storeResult": {"success": true, "ids": [3]}});
        let host = FakeHost::new().thread(Thread::new("t", "AssetGraph", "idle", stored));
        let body = json!({"threadId": "t", "storeResult": {"success": true, "ids": [3]}});
        assert_eq!(get(&host), (200, body));
    }

    #[test]
    fn expired_unknown_and_failed_threads_are_gone() {
        let gone = (410, json!({"error": "上次解析结果已过期，请重新输入"}));
        assert_eq!(get(&FakeHost::new()), gone);
        let failed = Thread::new("t", "AssetGraph", "error", json!({}));
        assert_eq!(get(&FakeHost::new().thread(failed)), gone);
    }
}
