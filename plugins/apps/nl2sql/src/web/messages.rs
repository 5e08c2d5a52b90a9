//! `/api/chat/sessions/{id}/messages`: what was said in a session.

use wattle_plugin::prelude::{Failure, Request, Response, handler, json};

use crate::store::{downloads, history};
use crate::web::sessions::{delete_thread, owned};
use crate::web::{answer, ok, page};

/// Lists the messages, the oldest first.
#[handler(GET, "/api/chat/sessions/{id}/messages")]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    answer(owned(request).and_then(|session_id| {
        let (offset, limit) = page(request)?;
        let (messages, total) = history::list(&session_id, offset, limit)?;
        ok(&json!({
            "session_id": session_id, "messages": messages, "total": total,
            "offset": offset, "limit": limit,
        }))
    }))
}

/// Forgets what was said. The session stays, and its next question has no history.
#[handler(DELETE, "/api/chat/sessions/{id}/messages")]
pub(crate) fn remove(request: &Request) -> Result<Response, Failure> {
    answer(owned(request).and_then(|session_id| {
        delete_thread(&session_id)?;
        history::delete(&session_id)?;
        downloads::delete(&session_id)?;
        ok(&json!({ "session_id": session_id, "deleted": true }))
    }))
}
