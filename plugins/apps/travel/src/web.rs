//! The app's HTTP endpoints. What goes wrong is `{"error": "..."}`.

pub(crate) mod cancel;
pub(crate) mod chat;
pub(crate) mod guide;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod stream;
#[cfg(test)]
mod testing;

use wattle_plugin::prelude::{Failure, Request, Response, StreamFormat, code, json, log, settings};
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

/// Setting: how long a run goes on without a page.
const GRACE: &str = "disconnect_grace_ms";

/// Unless it is set: a reload takes a few seconds at most.
const DEFAULT_GRACE_MS: u64 = 5_000;

/// Why a request has no good answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    message: String,
}

impl Refusal {
    /// The request is wrong.
    fn invalid(message: impl Into<String>) -> Self {
        Self { status: BAD_REQUEST, message: message.into() }
    }

    /// The request is more than is kept.
    fn too_large(message: impl Into<String>) -> Self {
        Self { status: TOO_LARGE, message: message.into() }
    }

    /// There is no such thing.
    fn not_found(message: impl Into<String>) -> Self {
        Self { status: NOT_FOUND, message: message.into() }
    }

    /// Something else is under way.
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

/// Turns what a handler came to into an answer.
fn answer(work: impl FnOnce() -> Result<Response, Refusal>) -> Result<Response, Failure> {
    work()
        .or_else(|Refusal { status, message }| Response::json(status, &json!({ "error": message })))
}

/// The session that a request names, as its tenant may see it, up to date.
fn find(request: &Request) -> Result<Session, Refusal> {
    let id: String = request.param("id")?;
    found(request, &id)
}

/// The same by an id from elsewhere.
fn found(request: &Request, id: &str) -> Result<Session, Refusal> {
    let session = crate::session::find(request.tenant.as_deref(), id)?
        .ok_or_else(|| Refusal::not_found(format!("there is no session `{id}`")))?;
    Ok(crate::session::sync(session)?)
}

/// Whether a header with entity tags names this one.
fn names(request: &Request, header: &str, tag: &str) -> bool {
    let known = request.header(header);
    known.is_some_and(|tags| tags.split(',').map(str::trim).any(|it| it == tag || it == "*"))
}

/// The stream of a run. It shows what the agent says, and the run ends when nobody listens.
fn stream_of(run: &RunRef) -> Result<Response, Failure> {
    let grace_ms = settings::get(GRACE)?.unwrap_or(DEFAULT_GRACE_MS);
    let hand_off = HandOff::run(&run.thread_id, &run.run_id, StreamFormat::AiSdk)
        .cancel_on_disconnect(grace_ms)
        .nodes(&[AGENT]);
    Ok(Response::hand_off_from(hand_off))
}

/// The run that is under way.
fn running(session: &Session) -> Option<RunRef> {
    let run_id = session.run_id.clone().filter(|_| session.is_running())?;
    Some(RunRef { thread_id: session.id.clone(), run_id })
}
