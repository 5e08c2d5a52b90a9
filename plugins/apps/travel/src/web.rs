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
    Failure, JsonSchema, Request, Response, Serialize, StreamFormat, code, settings,
};
use wattle_plugin::runs::RunRef;
use wattle_plugin::web::{ErrorForm, HandOff, refuse, status};

use crate::channel::AGENT;
use crate::session::Session;

/// Setting with the time in milliseconds for which a run continues after its page disconnected.
const GRACE: &str = "disconnect_grace_ms";

/// Default of that time. A reload takes a few seconds at most.
const DEFAULT_GRACE_MS: u64 = 5_000;

/// Error of a request during a run.
const BUSY: &str = "the session is at work; wait until it has ended, or stop it first";

/// The reason of a refused request.
#[derive(Serialize, JsonSchema)]
struct ErrorDocument {
    error: String,
}

impl ErrorForm for ErrorDocument {
    fn new(_request: &Request, _status: u16, failure: Failure) -> Self {
        Self { error: if is_busy(&failure) { BUSY.to_owned() } else { failure.message } }
    }

    fn status(failure: &Failure) -> Option<u16> {
        Some(failure.status().unwrap_or(match failure.code.as_str() {
            code::BUSY | code::CONFLICT => status::CONFLICT,
            _ => status::INTERNAL_SERVER_ERROR,
        }))
    }
}

/// Returns true if the host or the app refused a request because of a run.
fn is_busy(failure: &Failure) -> bool {
    failure.code == code::BUSY && failure.status().is_none()
}

/// Returns the session in the path, if it belongs to the tenant, up to date.
fn find(request: &Request) -> Result<Session, Failure> {
    let id: String = request.param("id")?;
    found(request, &id)
}

/// Returns the session with an id, if it belongs to the tenant, up to date.
fn found(request: &Request, id: &str) -> Result<Session, Failure> {
    let none = || refuse(status::NOT_FOUND, format!("there is no session `{id}`"));
    let session = crate::session::find(request.tenant.as_deref(), id)?.ok_or_else(none)?;
    crate::session::sync(session)
}

/// Returns the stream of a run. It shows the output of the agent, and the run ends when no client
/// listens.
fn stream_of(run: &RunRef) -> Result<Response, Failure> {
    let grace_ms = settings::get(GRACE)?.unwrap_or(DEFAULT_GRACE_MS);
    let hand_off = HandOff::run(&run.thread_id, &run.run_id, StreamFormat::AiSdk)
        .cancel_on_disconnect(grace_ms)
        .nodes(&[AGENT.model_node]);
    Ok(Response::hand_off_from(hand_off))
}

/// Returns the active run.
fn running(session: &Session) -> Option<RunRef> {
    let run_id = session.run_id.clone().filter(|_| session.is_running())?;
    Some(RunRef { thread_id: session.id.clone(), run_id })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, code, json};
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::{refuse, respond};

    use super::{BUSY, ErrorDocument};

    #[test]
    fn only_active_runs_have_the_text_of_a_busy_session() {
        let request = Request::new("POST", "/x");
        for (failure, status, error) in [
            (Failure::new(code::BUSY, "a run is active"), 409, BUSY),
            (
                Failure::conflict("another graph has the thread"),
                409,
                "another graph has the thread",
            ),
            (refuse(409, "the guide has no page"), 409, "the guide has no page"),
            (refuse(412, "the state is stale"), 412, "the state is stale"),
        ] {
            let host = FakeHost::new();
            let response = host.run(|| respond::<ErrorDocument>(&request, || Err(failure)));
            let response = response.unwrap();
            let body = response.json_body().unwrap();
            assert_eq!((response.status, body), (status, json!({ "error": error })));
        }
    }

    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "travel", crate::WATTLE_HANDLERS);
    }
}
