//! `GET /api/v1/reasoning/sessions/{session_id}/trace`: the audit trail.

use wattle_plugin::prelude::{Failure, Request, Response, handler, json};

use crate::web::{Refusal, answer, find};
use crate::{audit, session};

/// Default number of rows in a response.
const LIMIT: i64 = 1_000;

/// Maximum number of rows in a response, since each row can contain a prompt.
const MAX_LIMIT: i64 = 5_000;

/// Responds with the rows of the audit trail in order, in pages by `after` and `limit`.
#[handler(GET, "/api/v1/reasoning/sessions/{session_id}/trace")]
pub(crate) fn trace(request: &Request) -> Result<Response, Failure> {
    answer(request, || {
        let after = number(request, "after")?.unwrap_or(0).max(0);
        let limit = number(request, "limit")?.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let events = audit::list(&session.id, after, limit)?;
        let next =
            (i64::try_from(events.len()) == Ok(limit)).then(|| events.last().map(|last| last.seq));
        Ok(json!({
            "session_id": session.id, "status": session.status, "events": events,
            "next_after": next.flatten(),
        }))
    })
}

fn number(request: &Request, name: &str) -> Result<Option<i64>, Refusal> {
    let read =
        |text: &str| text.parse().map_err(|_| Refusal::invalid(format!("{name} 必须是整数")));
    request.query(name).map(read).transpose()
}
