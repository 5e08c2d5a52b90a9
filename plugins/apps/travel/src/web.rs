//! The app's HTTP endpoints. Errors are `{"error": "..."}`.

pub(crate) mod cancel;
pub(crate) mod chat;
pub(crate) mod guide;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod stream;
#[cfg(test)]
mod testing;

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, StreamFormat, code, log, settings,
};
use wattle_plugin::runs::RunRef;
use wattle_plugin::web::HandOff;

use crate::session::Session;
use crate::session::log::AGENT;

const NOT_MODIFIED: u16 = 304;
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const TOO_LARGE: u16 = 413;
const INTERNAL: u16 = 500;
const CREATED: u16 = 201;
const NO_CONTENT: u16 = 204;

/// Setting with the time in milliseconds for which a run continues after its page disconnected.
const GRACE: &str = "disconnect_grace_ms";

/// Default of that time. A reload takes a few seconds at most.
const DEFAULT_GRACE_MS: u64 = 5_000;

/// The reason of a refused request.
#[derive(Serialize, JsonSchema)]
struct ErrorDocument {
    error: String,
}

/// The reason of an error response.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    message: String,
}

impl Refusal {
    /// Creates the refusal of an invalid request.
    fn invalid(message: impl Into<String>) -> Self {
        Self { status: BAD_REQUEST, message: message.into() }
    }

    /// Creates the refusal of a request that exceeds a limit.
    fn too_large(message: impl Into<String>) -> Self {
        Self { status: TOO_LARGE, message: message.into() }
    }

    /// Creates the refusal of a request for something that does not exist.
    fn not_found(message: impl Into<String>) -> Self {
        Self { status: NOT_FOUND, message: message.into() }
    }

    /// Creates the refusal of a request during a run.
    fn busy() -> Self {
        let message = "the session is at work; wait until it has ended, or stop it first";
        Self { status: CONFLICT, message: message.to_owned() }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        if matches!(failure.code.as_str(), code::BUSY | code::CONFLICT) {
            return Self::busy();
        }
        let status = failure.status().unwrap_or(INTERNAL);
        if status == INTERNAL {
            log::error!("a request failed: {failure}");
        }
        Self { status, message: failure.message }
    }
}

/// Converts the result of a handler to a response.
fn respond(work: impl FnOnce() -> Result<Response, Refusal>) -> Result<Response, Failure> {
    work().or_else(|Refusal { status, message }| {
        Response::json(status, &ErrorDocument { error: message })
    })
}

/// Returns the session in the path, if it belongs to the tenant, up to date.
fn find(request: &Request) -> Result<Session, Refusal> {
    let id: String = request.param("id")?;
    found(request, &id)
}

/// Returns the session with an id, if it belongs to the tenant, up to date.
fn found(request: &Request, id: &str) -> Result<Session, Refusal> {
    let session = crate::session::find(request.tenant.as_deref(), id)?
        .ok_or_else(|| Refusal::not_found(format!("there is no session `{id}`")))?;
    Ok(crate::session::sync(session)?)
}

/// Returns true if a header with entity tags has this one.
fn names(request: &Request, header: &str, tag: &str) -> bool {
    let known = request.header(header);
    known.is_some_and(|tags| tags.split(',').map(str::trim).any(|it| it == tag || it == "*"))
}

/// Returns the stream of a run. It shows the output of the agent, and the run ends when no client
/// listens.
fn stream_of(run: &RunRef) -> Result<Response, Failure> {
    let grace_ms = settings::get(GRACE)?.unwrap_or(DEFAULT_GRACE_MS);
    let hand_off = HandOff::run(&run.thread_id, &run.run_id, StreamFormat::AiSdk)
        .cancel_on_disconnect(grace_ms)
        .nodes(&[AGENT]);
    Ok(Response::hand_off_from(hand_off))
}

/// Returns the active run.
fn running(session: &Session) -> Option<RunRef> {
    let run_id = session.run_id.clone().filter(|_| session.is_running())?;
    Some(RunRef { thread_id: session.id.clone(), run_id })
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "travel", crate::WATTLE_HANDLERS);
    }
}
