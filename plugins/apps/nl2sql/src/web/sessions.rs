//! `/api/chat/sessions`: an admin's sessions.

use wattle_plugin::prelude::{Failure, Request, Response, code, handler, json, runs};

use crate::owner::Owner;
use crate::store::sessions;
use crate::web::{answer, check_session, ok, page};

/// Lists the sessions, the last used first.
#[handler(GET, "/api/chat/sessions")]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    answer(Owner::of_request(request).and_then(|owner| {
        let (offset, limit) = page(request)?;
        let (sessions, total) = sessions::list(&owner, offset, limit)?;
        ok(&json!({ "sessions": sessions, "total": total, "offset": offset, "limit": limit }))
    }))
}

/// Deletes a session with all its data.
#[handler(DELETE, "/api/chat/sessions/{id}")]
pub(crate) fn remove(request: &Request) -> Result<Response, Failure> {
    answer(owned(request).and_then(|session_id| {
        delete_thread(&session_id)?;
        sessions::delete(&session_id)?;
        ok(&json!({ "session_id": session_id, "deleted": true }))
    }))
}

/// Returns the session in the path, if it belongs to the caller.
pub(super) fn owned(request: &Request) -> Result<String, Failure> {
    let owner = Owner::of_request(request)?;
    let session_id: String = request.param("id")?;
    check_session(&session_id)?;
    sessions::require(&session_id, &owner)?;
    Ok(session_id)
}

/// Deletes the thread of a session. A session whose first question never started has no thread.
pub(super) fn delete_thread(session_id: &str) -> Result<(), Failure> {
    match runs::delete_thread(session_id) {
        Err(failure) if failure.code == code::NOT_FOUND => Ok(()),
        deleted => deleted,
    }
}
