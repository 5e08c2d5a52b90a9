//! Converts the response of a guest into an HTTP response.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value};
use wattle_graph::failure::{Failure, code};
use wattle_graph::mapping::StreamProjection;
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::gate::unwind::Unwind;
use wattle_run::ports::sandbox::{GuestError, HandOff, StreamFormat, WebBody, WebResponse};
use wattle_run::tail::Until;
use wattle_run::text::Escaped;

use crate::blob_response;
use crate::native::events::{last_event_id, resolve_run};
use crate::native::tenant_scope::TenantScope;
use crate::problem::Problem;
use crate::stream::client_tail::{DisconnectPolicy, TailRequest};
use crate::stream::event_view::EventView;
use crate::stream::parts::StreamParts;
use crate::stream::{ag_ui, ai_sdk, custom, sse};

/// Headers that a guest must not set, because the HTTP server controls the framing of the
/// connection. Headers that begin with `access-control-` are also reserved.
const RESERVED_HEADERS: &[&str] =
    &["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"];

/// The parts of a request that the response depends on.
pub(super) struct RequestParts {
    pub(super) method: Method,
    /// Headers of the request, including the credentials, which the guest does not receive.
    pub(super) headers: HeaderMap,
    /// Tenant of the request.
    pub(super) tenant: Option<String>,
    /// Caller of the request.
    pub(super) caller: CallerId,
}

/// Converts the response of a guest into an HTTP response.
pub(super) async fn respond(
    parts: &StreamParts,
    app: &App,
    request: RequestParts,
    guest_response: WebResponse,
) -> Result<Response, Problem> {
    let mut response = match guest_response.body {
        WebBody::Empty => Body::empty().into_response(),
        WebBody::Bytes(bytes) => bytes.into_response(),
        WebBody::Blob(blob) => {
            let blobs = parts.engine.ports().blobs.clone();
            blob_response::respond(blobs, blob, &request.headers).await?
        }
        WebBody::HandOff(hand_off) => stream(parts, app, request, hand_off).await?,
    };
    // A blob response keeps the status 206 of a range and the status 304 ("not modified").
    if response.status() == StatusCode::OK {
        *response.status_mut() = status(guest_response.status)?;
    }
    let mut set = HeaderMap::new();
    for (name, value) in guest_response.headers {
        let (name, value) = header(&name, &value)?;
        if !RESERVED_HEADERS.contains(&name.as_str())
            && !name.as_str().starts_with("access-control-")
        {
            set.append(name, value);
        }
    }
    response.headers_mut().extend(set);
    Ok(response)
}

fn status(number: u16) -> Result<StatusCode, Problem> {
    let status = StatusCode::from_u16(number).ok().filter(|status| !status.is_informational());
    status.ok_or_else(|| app_error(&format!("its handler returned the invalid status {number}")))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Problem> {
    let parsed = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
    parsed.ok_or_else(|| {
        let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        app_error(&format!("its handler returned the invalid header `{name}`"))
    })
}

fn app_error(what: &str) -> Problem {
    Problem::new(code::INTERNAL, format!("error in the app: {what}"))
}

async fn stream(
    parts: &StreamParts,
    app: &App,
    request: RequestParts,
    hand_off: HandOff,
) -> Result<Response, Problem> {
    let projection = match &hand_off.format {
        StreamFormat::Custom(name) => Some((name.clone(), custom_projection(app, name)?)),
        StreamFormat::Sse | StreamFormat::AiSdk | StreamFormat::AgUi => None,
    };
    let scope = TenantScope { tenant: request.tenant };
    let record = scope.app_thread(&parts.engine, &app.name, &hand_off.thread).await?;
    let (run, before_run) = resolve_run(&parts.engine, &record, hand_off.run).await?;
    let received = last_event_id(&request.headers)?.or(hand_off.after).unwrap_or(0);
    // A `HEAD` request does not count as a client of the run.
    let disconnect_policy = (request.method != Method::HEAD).then_some(DisconnectPolicy {
        cancel_after: hand_off.cancel_after_ms.map(Duration::from_millis),
    });
    let (owner, thread, until) = (request.caller, record.id, Until::Idle);
    let tail =
        |after| TailRequest { owner, thread, run: run.clone(), after, until, disconnect_policy };
    Ok(match (hand_off.format, projection) {
        (StreamFormat::AiSdk | StreamFormat::AgUi, _) if run.is_none() => {
            StatusCode::NO_CONTENT.into_response()
        }
        (StreamFormat::AiSdk, _) => ai_sdk::respond(parts, tail(before_run), hand_off.nodes),
        (StreamFormat::AgUi, _) => ag_ui::respond(parts, tail(before_run), hand_off.nodes),
        (_, Some((name, projection))) => {
            custom::respond(parts, app, (name.as_str(), projection), tail(before_run), received)
        }
        (_, None) => sse::respond(parts, tail(received), EventView::default()),
    })
}

fn custom_projection(app: &App, name: &str) -> Result<Arc<StreamProjection>, Problem> {
    app.projections.streams.get(name).cloned().ok_or_else(|| {
        app_error(&format!(
            "its handler returned a hand-off to stream `{name}`, but the app has no \
             file `streams/{name}.toml`"
        ))
    })
}

/// Codes of failures whose details contain output of a guest. The guest can also be a tool of
/// another plugin: a handler that calls the tool may return its failure.
const CODES_WITH_OUTPUT: [&str; 4] = [code::TRAP, code::LIMIT, code::UNAVAILABLE, code::INTERNAL];

/// Fields of the details that contain output of a guest: the text of its panic, and the end of its
/// stdout and stderr.
const QUOTED_DETAILS: [&str; 2] = ["cause", "output"];

/// Fields of the details of an uncaught exception, as the SDKs for TypeScript and Python write
/// them: its class, and the frames of its stack.
const EXCEPTION_DETAILS: [&str; 3] = ["exception", "stack", "traceback"];

/// Converts the error of a handler that ended without a response into a problem. The status is
/// always 5xx, because the client did not cause the error. The problem does not contain output of
/// the guest.
pub(super) fn problem_from_guest_error(app: &App, error: GuestError) -> Problem {
    let guest = |failure: Failure| {
        Problem::from(without_output(app, failure)).with_status(StatusCode::INTERNAL_SERVER_ERROR)
    };
    match error {
        GuestError::Failure(failure)
        | GuestError::Trap(failure)
        | GuestError::Limit(failure)
        | GuestError::Unwound(Unwind::Divergence(failure) | Unwind::Limit(failure)) => {
            guest(failure)
        }
        GuestError::Host(failure) | GuestError::Unwound(Unwind::LogLost(failure)) => {
            without_output(app, failure).into()
        }
        GuestError::Unwound(Unwind::Cancelled | Unwind::Drained) => {
            Problem::new(code::UNAVAILABLE, "the host is shutting down; try again later")
        }
        GuestError::Unwound(Unwind::Suspended(_)) => {
            app_error("its handler raised an interrupt; web handlers cannot be suspended")
        }
    }
}

/// Removes guest output from a failure, and logs the output for the operator. The message of a trap
/// and of an uncaught exception contains the cause, so the message is replaced.
fn without_output(app: &App, mut failure: Failure) -> Failure {
    if !CODES_WITH_OUTPUT.contains(&failure.code.as_str()) {
        return failure;
    }
    let mut quoted = Map::new();
    let (mut is_crash, is_internal) = (failure.code == code::TRAP, failure.code == code::INTERNAL);
    if let Some(Value::Object(details)) = &mut failure.details {
        is_crash |= is_internal && details.contains_key("exception");
        let fields =
            QUOTED_DETAILS.into_iter().chain(EXCEPTION_DETAILS.into_iter().filter(|_| is_crash));
        quoted.extend(fields.filter_map(|key| details.remove_entry(key)));
    }
    if is_crash || !quoted.is_empty() {
        let (text, quoted) = (Escaped(&failure.message), Value::Object(quoted));
        tracing::warn!(app = %app.name, details = %Escaped(&quoted), "{text}");
    }
    if is_crash {
        "error in the app: its handler crashed; see the host's log for the cause"
            .clone_into(&mut failure.message);
    }
    failure
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::id::AppName;

    use super::*;

    fn problem(failure: Failure, error: fn(Failure) -> GuestError) -> Problem {
        problem_from_guest_error(&App::empty(AppName::new("shop").unwrap()), error(failure))
    }

    #[test]
    fn stdout_stderr_and_trap_cause_are_removed_from_the_problem() {
        let details = json!({
            "trap": "unreachable",
            "cause": { "text": "no rows" },
            "output": { "stderr": "no rows" },
        });
        let failure = Failure::new(code::TRAP, "the web handler trapped: no rows");
        let failure = failure.with_details(details);
        for error in [GuestError::Trap, GuestError::Failure] {
            let problem = problem(failure.clone(), error);
            assert_eq!((problem.status, problem.code.as_str()), (500, code::TRAP));
            assert!(problem.detail.contains("its handler crashed"), "{}", problem.detail);
            assert_eq!(problem.details, Some(json!({ "trap": "unreachable" })));
        }
        let details = json!({ "limit": "guests_memory", "output": { "stdout": "no rows" } });
        let failure = Failure::new(code::UNAVAILABLE, "no memory").with_details(details);
        let problem = problem(failure, GuestError::Host);
        assert_eq!((problem.status, problem.detail.as_str()), (503, "no memory"));
        assert_eq!(problem.details, Some(json!({ "limit": "guests_memory" })));
    }

    #[test]
    fn exception_of_a_handler_is_removed_from_the_problem() {
        let details = json!({ "exception": "KeyError", "traceback": ["src/app.py:3"], "row": 1 });
        let failure = Failure::internal("KeyError: 'name' (src/app.py:3)").with_details(details);
        let problem = problem(failure, GuestError::Failure);
        assert_eq!((problem.status, problem.code.as_str()), (500, code::INTERNAL));
        assert!(problem.detail.contains("its handler crashed"), "{}", problem.detail);
        assert_eq!(problem.details, Some(json!({ "row": 1 })));
    }

    #[test]
    fn client_gets_the_failure_that_the_handler_returns() {
        let failure = Failure::new("no-stock", "no lamps").with_details(json!({ "output": 1 }));
        let problem = problem(failure, GuestError::Failure);
        assert_eq!((problem.status, problem.detail.as_str()), (500, "no lamps"));
        assert_eq!(problem.details, Some(json!({ "output": 1 })));
    }
}
