//! The event log of a thread as server-sent events.

use std::sync::Arc;

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::code;
use wattle_graph::id::RunId;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::tail::Until;

use crate::guard::open_requests::RequestPermit;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ConfiguredModels;
use crate::stream::client_tail::TailRequest;
use crate::stream::event_view::EventView;
use crate::stream::parts::StreamParts;
use crate::stream::{ag_ui, ai_sdk, sse};

/// Selects the events to stream.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventFilter {
    /// Only events after this sequence number. The header `Last-Event-ID` takes precedence.
    after: Option<u64>,
    /// `idle`: the stream ends when the thread has no running or due run. By default the stream
    /// stays open.
    #[param(value_type = Option<String>)]
    until: Option<UntilParam>,
    /// Only events of this run.
    run: Option<String>,
    /// `ai-sdk` or `ag-ui`: streams one run from its first event to its end, in the format of these
    /// clients. `run` selects the run, by default the newest one. `after` and `until` are ignored.
    #[param(value_type = Option<String>)]
    format: Option<FormatParam>,
    /// True for outlines of the events, without requests, results and other large values. Ignored
    /// with `format`.
    outline: bool,
    /// Only events of these types, separated by commas. Ignored with `format`.
    types: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UntilParam {
    Idle,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FormatParam {
    AiSdk,
    AgUi,
}

/// Streams the events of a thread: `id` is the sequence number of the event, `event` its type,
/// `data` the event, or its outline, as JSON. `Last-Event-ID` resumes a stream after a lost
/// connection. With `format`, the stream presents one run as a conversation instead.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/events",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))), tag = "threads",
    params(
        ("thread" = String, Path, description = "id of the thread"),
        ("Last-Event-ID" = Option<u64>, Header, description = "number of the last received event"),
        EventFilter),
    responses(
        (status = 200, content_type = "text/event-stream"),
        (status = 204, description = "the thread has no run to show in `format`"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn stream_events(
    State(parts): State<StreamParts>,
    State(models): State<Arc<ConfiguredModels>>,
    scope: TenantScope,
    permit: Option<Extension<RequestPermit>>,
    Path(id): Path<String>,
    filter: Result<Query<EventFilter>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let view = EventView::new(filter.types.as_deref(), filter.outline)?.with_models(models);
    let record = scope.thread(&parts.engine, &id).await?;
    let run = filter.run.map(RunId::new).transpose();
    let run = run.map_err(|error| Problem::new(code::INVALID, error.to_string()))?;
    let filter_run = run.clone();
    let (run, before_run) = resolve_run(&parts.engine, &record, run).await?;
    let owner = RequestPermit::caller_of(permit.as_deref());
    let tail = |run, after, until| {
        let thread = record.id.clone();
        TailRequest { owner, thread, run, after, until, disconnect_policy: None }
    };
    let until = filter.until.map_or(Until::Deleted, |UntilParam::Idle| Until::Idle);
    Ok(match filter.format {
        None => {
            let after = last_event_id(&headers)?.or(filter.after).unwrap_or(0);
            sse::respond(&parts, tail(filter_run, after, until), view)
        }
        Some(_) if run.is_none() => StatusCode::NO_CONTENT.into_response(),
        Some(FormatParam::AiSdk) => {
            ai_sdk::respond(&parts, tail(run, before_run, Until::Idle), Vec::new())
        }
        Some(FormatParam::AgUi) => {
            ag_ui::respond(&parts, tail(run, before_run, Until::Idle), Vec::new())
        }
    })
}

/// Returns the run with the id, or else the newest run of the thread, and the sequence number
/// before its first event.
///
/// # Errors
///
/// `not-found` if the thread has no such run.
pub async fn resolve_run(
    engine: &Engine,
    thread: &ThreadRecord,
    named: Option<RunId>,
) -> Result<(Option<RunId>, u64), Problem> {
    let is_named = named.is_some();
    let Some(run) = named.or_else(|| thread.run.clone()) else { return Ok((None, 0)) };
    let record = engine.ports().store.run(&run).await?;
    match record.filter(|record| record.thread == thread.id) {
        Some(record) => Ok((Some(run), record.first_seq.saturating_sub(1))),
        None if is_named => {
            let hint = format!("thread `{}` has no such run", thread.id);
            Err(Problem::not_found("run", run.as_str(), &hint))
        }
        None => Ok((Some(run), 0)),
    }
}

/// Returns the sequence number in the header `Last-Event-ID`.
///
/// # Errors
///
/// `invalid` if the header is not a number.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        Problem::new(code::INVALID, "the header `Last-Event-ID` must be a sequence number")
    })
}
