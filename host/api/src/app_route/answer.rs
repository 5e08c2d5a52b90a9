//! What a guest answered, as an HTTP response.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use wattle_graph::failure::{Failure, code};
use wattle_graph::mapping::StreamMapping;
use wattle_run::app::App;
use wattle_run::gate::unwind::Unwind;
use wattle_run::ports::sandbox::{Ended, HandOff, StreamFormat, WebBody, WebResponse};

use crate::blob_body;
use crate::native::events::last_event_id;
use crate::native::scope::Scope;
use crate::problem::Problem;
use crate::state::ApiState;
use crate::stream::follow::{Follow, Until};
use crate::stream::{custom, sse};

/// Headers that a guest may not set: the framing of the connection is the host's, and so is who
/// may read answers across origins.
const HOST_HEADERS: &[&str] =
    &["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"];

/// Turns the answer of a guest into a response.
pub(super) async fn answer(
    state: &ApiState,
    app: &App,
    tenant: Option<String>,
    request: &HeaderMap,
    response: WebResponse,
) -> Result<Response, Problem> {
    let mut answer = match response.body {
        WebBody::Empty => Body::empty().into_response(),
        WebBody::Bytes(bytes) => bytes.into_response(),
        WebBody::Blob(blob) => {
            let blobs = state.engine.ports().blobs.clone();
            blob_body::answer(blobs, blob, request).await?
        }
        WebBody::HandOff(hand_off) => stream(state, app, tenant, request, hand_off).await?,
    };
    // A blob may have answered with a range or "not modified", which stands.
    if answer.status() == StatusCode::OK {
        *answer.status_mut() = status(response.status)?;
    }
    let mut set = HeaderMap::new();
    for (name, value) in response.headers {
        let (name, value) = header(&name, &value)?;
        if !HOST_HEADERS.contains(&name.as_str()) && !name.as_str().starts_with("access-control-") {
            set.append(name, value);
        }
    }
    answer.headers_mut().extend(set);
    Ok(answer)
}

fn status(number: u16) -> Result<StatusCode, Problem> {
    let status = StatusCode::from_u16(number).ok().filter(|status| !status.is_informational());
    status.ok_or_else(|| {
        broken(&format!("its handler answered with the status {number}, which HTTP does not have"))
    })
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Problem> {
    let parsed = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
    parsed.ok_or_else(|| {
        let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        broken(&format!("its handler answered with the header `{name}`, which is not valid"))
    })
}

fn broken(what: &str) -> Problem {
    Problem::new(code::INTERNAL, format!("the app is broken: {what}"))
}

async fn stream(
    state: &ApiState,
    app: &App,
    tenant: Option<String>,
    request: &HeaderMap,
    hand_off: HandOff,
) -> Result<Response, Problem> {
    let own = match &hand_off.format {
        StreamFormat::Sse => None,
        StreamFormat::AiSdk => return Err(unsupported("ai-sdk")),
        StreamFormat::AgUi => return Err(unsupported("ag-ui")),
        StreamFormat::Custom(name) => Some(own_form(app, name)?),
    };
    let record = Scope { tenant }.thread(state, hand_off.thread.as_str()).await?;
    let run = hand_off.run.or(record.run);
    let seen = last_event_id(request)?.or(hand_off.after).unwrap_or(0);
    let follow = |after| Follow { thread: record.id, run: run.clone(), after, until: Until::Idle };
    let Some(mapping) = own else { return Ok(sse::answer(state, follow(seen))) };
    let begun = match &run {
        Some(run) => state.engine.ports().store.run(run).await?.map_or(0, |run| run.first_seq),
        None => 0,
    };
    Ok(custom::answer(state, app, mapping, follow(begun.saturating_sub(1)), seen))
}

fn own_form(app: &App, name: &str) -> Result<Arc<StreamMapping>, Problem> {
    app.projections.streams.get(name).cloned().ok_or_else(|| {
        broken(&format!(
            "its handler hands over to the stream `{name}`, for which there is no \
             `streams/{name}.toml`"
        ))
    })
}

fn unsupported(format: &str) -> Problem {
    Failure::unsupported(&format!("web.hand-off: {format}")).into()
}

/// Why a handler ended without an answer. What the guest did is the server's fault in the eyes of
/// the client: always a 5xx.
pub(super) fn ended(ended: Ended) -> Problem {
    let guest =
        |failure: Failure| Problem::from(failure).with_status(StatusCode::INTERNAL_SERVER_ERROR);
    match ended {
        Ended::Failure(failure)
        | Ended::Trap(failure)
        | Ended::Limit(failure)
        | Ended::Unwound(Unwind::Divergence(failure) | Unwind::Limit(failure)) => guest(failure),
        Ended::Host(failure) | Ended::Unwound(Unwind::Log(failure)) => failure.into(),
        Ended::Unwound(Unwind::Cancelled) => {
            Problem::new(code::UNAVAILABLE, "the host stops; try again later")
        }
        Ended::Unwound(Unwind::Suspended(_)) => broken("its handler asked a question"),
    }
}
