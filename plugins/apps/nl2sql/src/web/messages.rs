//! `/api/chat/sessions/{id}/messages`: the messages of a session, and the rows of answers.

use wattle_plugin::prelude::{Failure, Request, Response, Value, blob, code, handler, json, runs};

use crate::store::history::AnswerRows;
use crate::store::{downloads, history, workflow_log};
use crate::web::sessions::{delete_thread, owned};
use crate::web::{NOT_FOUND, answer, ok, page, refuse};

/// Status of a thread with an active run.
const RUNNING: &str = "running";

/// Lists the messages, the oldest first.
#[handler(GET, "/api/chat/sessions/{id}/messages")]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    answer(owned(request).and_then(|session_id| {
        let (offset, limit) = page(request)?;
        // Read before the messages, so that the list has an answer that is written in between.
        let pending = pending(&session_id)?;
        let (messages, total) = history::list(&session_id, offset, limit)?;
        ok(&json!({
            "session_id": session_id, "messages": messages, "total": total,
            "offset": offset, "limit": limit, "pending": pending,
        }))
    }))
}

/// Returns all rows of an answer, of which the list has the first ones.
#[handler(GET, "/api/chat/sessions/{id}/messages/{message}/rows")]
pub(crate) fn rows(request: &Request) -> Result<Response, Failure> {
    answer(owned(request).and_then(|session_id| {
        let text: String = request.param("message")?;
        let missing = || refuse(NOT_FOUND, "消息不存在，或它的结果已经删除");
        let message = text.parse::<i64>().map_err(|_| missing())?;
        let rows = match history::rows(&session_id, message)?.ok_or_else(missing)? {
            AnswerRows::Shown(rows) => rows,
            AnswerRows::Kept(kept) => match blob::get(&kept) {
                Ok(bytes) => serde_json::from_slice(&bytes)?,
                Err(failure) if failure.code == code::NOT_FOUND => return Err(missing()),
                Err(failure) => return Err(failure),
            },
        };
        ok(&json!({ "session_id": session_id, "message_id": message, "rows": rows }))
    }))
}

/// Returns the status of a question without an answer: `running`, or `failed` with the reason. A
/// page that was loaded in the middle of a question learns from it whether to wait.
fn pending(session_id: &str) -> Result<Value, Failure> {
    let thread = runs::thread(session_id)?;
    if thread.is_some_and(|thread| thread.status == RUNNING) {
        return Ok(json!({ "status": "running" }));
    }
    if !history::is_unanswered(session_id)? {
        return Ok(Value::Null);
    }
    let (step, message) = workflow_log::last_failure(session_id)?.unwrap_or_default();
    Ok(json!({ "status": "failed", "step": step, "message": message }))
}

/// Deletes the messages. The session remains, and its next question has no history.
#[handler(DELETE, "/api/chat/sessions/{id}/messages")]
pub(crate) fn remove(request: &Request) -> Result<Response, Failure> {
    answer(owned(request).and_then(|session_id| {
        delete_thread(&session_id)?;
        history::delete(&session_id)?;
        downloads::delete(&session_id)?;
        ok(&json!({ "session_id": session_id, "deleted": true }))
    }))
}
