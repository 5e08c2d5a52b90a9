//! `/api/chat/sessions/{id}/messages`: the messages of a session, and the rows of answers.

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, Value, blob, code, handler, runs,
};
use wattle_plugin::runs::Thread;
use wattle_plugin::web::{refuse, respond, status};

use crate::state::Row;
use crate::store::history::{AnswerRows, Message};
use crate::store::{Page, downloads, history, workflow_log};
use crate::web::sessions::owned;
use crate::web::{Deleted, Envelope, ErrorEnvelope, ok, page};

/// A page of messages, the oldest first.
#[derive(Serialize, JsonSchema)]
struct MessageList {
    session_id: String,
    messages: Vec<Message>,
    /// Number of all messages.
    total: i64,
    offset: u32,
    /// Number of items to the next page, which can be smaller than the requested limit.
    limit: u32,
    pending: Option<Pending>,
}

/// Status of a question without an answer.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Pending {
    Running,
    /// Has the step that failed, and the reason.
    Failed {
        step: String,
        message: String,
    },
}

/// All rows of an answer.
#[derive(Serialize, JsonSchema)]
struct RowList {
    session_id: String,
    message_id: i64,
    #[schemars(with = "Vec<Row>")]
    rows: Vec<Value>,
}

/// Lists the messages, the oldest first.
#[handler(GET, "/api/chat/sessions/{id}/messages",
    query(offset: Option<u32>, limit: Option<u32>), returns = Envelope<MessageList>,
    error = ErrorEnvelope)]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let session_id = owned(request)?;
        let (offset, limit) = page(request)?;
        // Read before the messages, so that the list has an answer that is written in between.
        let pending = pending(&session_id)?;
        let Page { items: messages, limit, total } = history::list(&session_id, offset, limit)?;
        ok(&MessageList { session_id, messages, total, offset, limit, pending })
    })
}

/// Returns all rows of an answer, of which the list has the first ones.
#[handler(GET, "/api/chat/sessions/{id}/messages/{message}/rows", returns = Envelope<RowList>,
    error = ErrorEnvelope)]
pub(crate) fn rows(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let session_id = owned(request)?;
        let text: String = request.param("message")?;
        let missing = || refuse(status::NOT_FOUND, "消息不存在，或它的结果已经删除");
        let message = text.parse::<i64>().map_err(|_| missing())?;
        let rows = match history::rows(&session_id, message)?.ok_or_else(missing)? {
            AnswerRows::Shown(rows) => rows,
            AnswerRows::Kept(kept) => match blob::get(&kept) {
                Ok(bytes) => serde_json::from_slice(&bytes)?,
                Err(failure) if failure.code == code::NOT_FOUND => return Err(missing()),
                Err(failure) => return Err(failure),
            },
        };
        ok(&RowList { session_id, message_id: message, rows })
    })
}

/// Returns the status of a question without an answer: `running`, or `failed` with the reason. A
/// page that was loaded in the middle of a question learns from it whether to wait.
fn pending(session_id: &str) -> Result<Option<Pending>, Failure> {
    let thread = runs::thread(session_id)?;
    if thread.as_ref().is_some_and(Thread::is_running) {
        return Ok(Some(Pending::Running));
    }
    if !history::is_unanswered(session_id)? {
        return Ok(None);
    }
    let run_id = thread.and_then(|thread| thread.run_id);
    let failure = run_id.map(|run_id| workflow_log::failure(&run_id)).transpose()?.flatten();
    let (step, message) = failure.unwrap_or_default();
    Ok(Some(Pending::Failed { step, message }))
}

/// Deletes the messages. The session remains, and its next question has no history.
#[handler(DELETE, "/api/chat/sessions/{id}/messages", returns = Envelope<Deleted>,
    error = ErrorEnvelope)]
pub(crate) fn remove(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let session_id = owned(request)?;
        runs::delete_thread_if_any(&session_id)?;
        history::delete(&session_id)?;
        downloads::delete(&session_id)?;
        ok(&Deleted { session_id, deleted: true })
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Value, json, params, sql};
    use wattle_plugin::runs::Thread;

    use super::list;
    use crate::GRAPH;
    use crate::testing::business;

    /// Returns `pending` of a session whose last question has no answer. Its run `first` failed
    /// with a record, and the host cut off its run `second`.
    fn pending(newest: &str) -> Value {
        let host = business(|statement| {
            let text = &statement.text;
            let rows = if text.contains("FROM chat_session") {
                sql::Rows::new(["tenant", "admin_id"], vec![params!["", 7]])
            } else if text.contains("SELECT role") {
                sql::Rows::new(["role"], vec![params!["user"]])
            } else if text.contains("COUNT(*)") {
                sql::Rows::new(["total"], vec![params![2]])
            } else if text.contains("FROM workflow_log") {
                let is_known = statement.parameters[0] != "second".into();
                let failure = params!["intent_recognition", "model down"];
                let rows = if is_known { vec![failure] } else { Vec::new() };
                sql::Rows::new(["error_step", "error_message"], rows)
            } else {
                sql::Rows::default()
            };
            Ok(rows.into())
        });
        let thread = Thread::new("s", GRAPH, "error", json!({}));
        let host = host.thread(Thread { run_id: Some(newest.to_owned()), ..thread });
        let request = Request::new("GET", "/").with_param("id", "s").with_header("x-admin-id", "7");
        let (status, body) = host.respond(list, &request);
        assert_eq!(status, 200, "{body}");
        body["data"]["pending"].clone()
    }

    #[test]
    fn a_failed_question_has_the_failure_of_its_own_run() {
        let failed = |step: &str, message: &str| json!({"status": "failed", "step": step, "message": message});
        assert_eq!(pending("first"), failed("intent_recognition", "model down"));
        assert_eq!(pending("second"), failed("", ""));
    }
}
