//! `GET /api/v1/reasoning/sessions/{session_id}/trace`: the audit trail.

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, handler};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::BAD_REQUEST;

use crate::audit::{self, TraceEvent};
use crate::session::{self, Status};
use crate::web::{Envelope, ErrorEnvelope, find, respond};

/// Default number of rows in a response.
const LIMIT: i64 = 1_000;

/// Maximum number of rows in a response, since each row can contain a prompt.
const MAX_LIMIT: i64 = 5_000;

/// A page of the audit trail.
#[derive(Serialize, JsonSchema)]
struct Trace {
    session_id: String,
    #[schemars(with = "Status")]
    status: String,
    events: Vec<TraceEvent>,
    /// Value of `after` for the next page; `null` on the last page.
    next_after: Option<i64>,
}

/// Responds with the rows of the audit trail in order, in pages by `after` and `limit`.
#[handler(GET, "/api/v1/reasoning/sessions/{session_id}/trace",
    query(after: Option<i64>, limit: Option<i64>), returns = Envelope<Trace>,
    error = ErrorEnvelope)]
pub(crate) fn trace(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let after = number(request, "after")?.unwrap_or(0).max(0);
        let limit = number(request, "limit")?.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let events = audit::list(&session.id, after, limit)?;
        let is_full = i64::try_from(events.len()) == Ok(limit);
        let next_after = events.last().filter(|_| is_full).map(|last| last.seq);
        Ok(Trace { session_id: session.id, status: session.status, events, next_after })
    })
}

fn number(request: &Request, name: &str) -> Result<Option<i64>, Failure> {
    request.number(name).map_err(|_| refuse(BAD_REQUEST, format!("{name} 必须是整数")))
}
