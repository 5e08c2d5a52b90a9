//! `/api/chat/sessions`: an admin's sessions.

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, handler, runs};
use wattle_plugin::web::respond;

use crate::owner::Owner;
use crate::store::Page;
use crate::store::sessions::{self, Session};
use crate::web::{Deleted, Envelope, ErrorEnvelope, check_session, ok, page};

/// A page of sessions, the last used first.
#[derive(Serialize, JsonSchema)]
struct SessionList {
    sessions: Vec<Session>,
    /// Number of all sessions.
    total: i64,
    offset: u32,
    /// Number of items to the next page, which can be smaller than the requested limit.
    limit: u32,
}

/// Lists the sessions, the last used first.
#[handler(GET, "/api/chat/sessions", query(offset: Option<u32>, limit: Option<u32>),
    returns = Envelope<SessionList>, error = ErrorEnvelope)]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let owner = Owner::of_request(request)?;
        let (offset, limit) = page(request)?;
        let Page { items: sessions, limit, total } = sessions::list(&owner, offset, limit)?;
        ok(&SessionList { sessions, total, offset, limit })
    })
}

/// Deletes a session with all its data.
#[handler(DELETE, "/api/chat/sessions/{id}", returns = Envelope<Deleted>, error = ErrorEnvelope)]
pub(crate) fn remove(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let session_id = owned(request)?;
        // A session whose first question never started has no thread.
        runs::delete_thread_if_any(&session_id)?;
        sessions::delete(&session_id)?;
        ok(&Deleted { session_id, deleted: true })
    })
}

/// Returns the session in the path, if it belongs to the caller.
pub(super) fn owned(request: &Request) -> Result<String, Failure> {
    let owner = Owner::of_request(request)?;
    let session_id: String = request.param("id")?;
    check_session(&session_id)?;
    sessions::require(&session_id, &owner)?;
    Ok(session_id)
}
