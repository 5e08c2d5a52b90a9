//! `POST /api/v1/reasoning/sessions/{session_id}/cancel`: cancels a session and its run.

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, handler, runs};

use crate::session::{self, Status, status};
use crate::web::{Envelope, ErrorEnvelope, find, respond};

/// A cancelled session.
#[derive(Serialize, JsonSchema)]
struct CancelledSession {
    session_id: String,
    #[schemars(with = "Status")]
    status: &'static str,
}

/// Cancels a session in any status, together with its run. Cancelling it again has no effect.
#[handler(POST, "/api/v1/reasoning/sessions/{session_id}/cancel",
    returns = Envelope<CancelledSession>, error = ErrorEnvelope)]
pub(crate) fn cancel(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let tenant = request.tenant.as_deref();
        let (mut session, thread) = session::sync(tenant, find(request)?)?;
        if let Some(run) = thread.and_then(|thread| thread.active_run()) {
            runs::cancel_and_wait(&run)?;
            session = session::sync(tenant, session)?.0;
        }
        let turn = session::newest_turn(&session.id)?;
        if session.status != status::CANCELLED {
            session::cancel(&session, &turn)?;
        }
        Ok(CancelledSession { session_id: session.id, status: status::CANCELLED })
    })
}
