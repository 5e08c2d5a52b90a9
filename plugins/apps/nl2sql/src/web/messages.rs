//! `/api/chat/sessions/{id}/messages`: the messages of a session, and the rows of answers.

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, Value, blob, code, handler, runs,
};
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
    if thread.is_some_and(|thread| thread.is_running()) {
        return Ok(Some(Pending::Running));
    }
    if !history::is_unanswered(session_id)? {
        return Ok(None);
    }
    let (step, message) = workflow_log::last_failure(session_id)?.unwrap_or_default();
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
