//! The event log of a thread as server-sent events.

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::code;

use crate::native::scope::Scope;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;
use crate::stream::follow::{Follow, Until};
use crate::stream::sse;

/// Which events to stream.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventFilter {
    /// Only events after this number. The header `Last-Event-ID` goes first.
    after: Option<u64>,
    /// `idle`: the stream ends when the thread no longer runs. Without it the stream stays open.
    #[param(value_type = Option<String>)]
    until: Option<UntilWord>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UntilWord {
    Idle,
}

/// Streams the events of a thread: `id` is the number of the event, `event` its type, `data` the
/// event as JSON. A stream that broke off is taken up with `Last-Event-ID`.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/events", tag = "threads",
    params(
        ("thread" = String, Path, description = "id of the thread"),
        ("Last-Event-ID" = Option<u64>, Header, description = "number of the last event seen"),
        EventFilter),
    responses(
        (status = 200, content_type = "text/event-stream"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn stream_events(
    State(state): State<ApiState>,
    scope: Scope,
    Path(id): Path<String>,
    filter: Result<Query<EventFilter>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let record = scope.thread(&state, &id).await?;
    let after = last_event_id(&headers)?.or(filter.after).unwrap_or(0);
    let until = filter.until.map_or(Until::Stopped, |UntilWord::Idle| Until::Idle);
    Ok(sse::answer(&state, Follow { thread: record.id, run: None, after, until }))
}

/// The number of the last event that a client has seen.
///
/// # Errors
///
/// `invalid` if it is no number.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        Problem::new(code::INVALID, "the header `Last-Event-ID` must hold the number of an event")
    })
}
