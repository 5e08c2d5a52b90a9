//! The history of a thread, newest first.

use std::collections::BTreeMap;

use axum::extract::State;
use serde_json::{Map, Value};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::id::CheckpointId;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::run_walk::RunWalk;
use wattle_run::time_travel::{HistoryQuery, StateView};

use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams};
use crate::namespaces;
use crate::page::{self, Page};
use crate::query::QueryParams;
use crate::resolve::{Point, parse_point};
use crate::view;
use crate::wire::request::{Before, HistoryRequest};
use crate::wire::schemas::ThreadStatePart;

/// Default number of states in a response.
const DEFAULT_PAGE_SIZE: usize = 1;

/// Maximum number of states in a response. Each state contains the values of all channels.
const MAX_PAGE_SIZE: usize = 1_000;

/// Key of the filter and of the metadata of a state that contains its superstep.
const STEP: &str = "step";

/// Number of states in one read. All states of a read are in memory.
const READ_BATCH: usize = 16;

/// Lists the history of a thread, newest first.
#[utoipa::path(get, path = "/threads/{id}/history",
    operation_id = "agent_get_history", tag = "agent-threads",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("limit" = Option<usize>, Query, description = "maximum number of states"),
        ("before" = Option<String>, Query, description = "only states older than this checkpoint"),
        ("select" = Option<Vec<String>>, Query, description = "fields to return; `values.<channel>` is the value of one channel")),
    responses((status = 200, body = Vec<ThreadStatePart>)))]
pub(super) async fn get(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Page, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let limit = query.get_usize("limit")?.unwrap_or(DEFAULT_PAGE_SIZE).min(MAX_PAGE_SIZE);
    let request = HistoryRequest {
        before: query.get("before").map(|id| Before::Id(id.to_owned())),
        select: Some(query.list("select")),
        ..HistoryRequest::default()
    };
    list_states(&engine, &caller, &record, request, limit).await
}

/// Lists the states in the history of a thread that match a filter, newest first.
#[utoipa::path(post, path = "/threads/{id}/history",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_search_history", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = HistoryRequest,
    responses((status = 200, body = Vec<ThreadStatePart>)))]
pub(super) async fn post(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<HistoryRequest>,
) -> Result<Page, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let limit = page::size(request.limit, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)?;
    list_states(&engine, &caller, &record, request, limit).await
}

/// Lists at most `wanted` states.
async fn list_states(
    engine: &Engine,
    caller: &Caller,
    record: &ThreadRecord,
    request: HistoryRequest,
    wanted: usize,
) -> Result<Page, ApiError> {
    let before = request.before.as_ref().and_then(Before::id);
    let before = before.map(|id| parse_point(record, id)).transpose()?;
    let namespace = request.checkpoint.map(|checkpoint| checkpoint.checkpoint_ns);
    let Some(mut filter) = checkpoint_filter(record, request.metadata.unwrap_or_default()) else {
        return Ok(Page::new(caller.response.clone()));
    };
    translate_run(engine, record, &mut filter).await?;
    if record.is_unbound() || wanted == 0 {
        return Ok(Page::new(caller.response.clone()));
    }
    let mut query = HistoryQuery {
        namespace: namespaces::find(engine, record, namespace.as_deref().unwrap_or_default())
            .await?,
        before: None,
        filter,
        limit: None,
        without_states: false,
    };
    // The state before an input has the step before that of the checkpoint that the store finds.
    let has_before_input = !query.filter.contains_key(STEP);
    let fields = request.select.unwrap_or_default();
    let mut states = Page::new(caller.response.clone());
    match before {
        Some(Point::Checkpoint(id)) => {
            query.before = Some(id);
            // The state before an input follows the checkpoint that the input made.
            if has_before_input && let Some(made) = find_input(engine, record, &query, id).await? {
                let state = view::before_input(engine, record, &made).await?;
                states.push(&view::select_state_fields(&state, &fields)?)?;
            }
        }
        Some(Point::BeforeInput(made)) => query.before = Some(made),
        None => {}
    }
    while states.len() < wanted {
        query.limit = Some(READ_BATCH.min(wanted - states.len()));
        let page = engine.history(&record.id, query.clone()).await?;
        for view in &page.items {
            // The state before an input also counts towards `wanted`.
            if states.len() == wanted {
                break;
            }
            let state = view::state(engine, record, view, false).await?;
            states.push(&view::select_state_fields(&state, &fields)?)?;
            let is_input = view.source == CheckpointSource::Input;
            if is_input && has_before_input && states.len() < wanted {
                let state = view::before_input(engine, record, view).await?;
                states.push(&view::select_state_fields(&state, &fields)?)?;
            }
        }
        match page.items.last() {
            Some(oldest) if !page.is_last => query.before = Some(oldest.checkpoint),
            _ => break,
        }
    }
    Ok(states)
}

/// Returns the checkpoint `id` if it matches the query and was created by an input. Otherwise
/// returns `None`.
async fn find_input(
    engine: &Engine,
    record: &ThreadRecord,
    query: &HistoryQuery,
    id: CheckpointId,
) -> Result<Option<StateView>, ApiError> {
    let only = HistoryQuery {
        before: Some(CheckpointId(id.0.saturating_add(1))),
        limit: Some(1),
        ..query.clone()
    };
    let found = engine.history(&record.id, only).await?.items.pop();
    Ok(found.filter(|view| view.checkpoint == id && view.source == CheckpointSource::Input))
}

/// Returns the filter for checkpoints. Returns `None` if the metadata of the thread itself does not
/// match.
fn checkpoint_filter(
    record: &ThreadRecord,
    wanted: Map<String, Value>,
) -> Option<BTreeMap<String, Value>> {
    let graph_metadata = view::graph_metadata(record);
    let mut filter = BTreeMap::new();
    for (name, value) in wanted {
        match name.as_str() {
            "run_id" => drop(filter.insert("run".to_owned(), value)),
            "thread_id" if value == record.id.as_str() => {}
            "thread_id" => return None,
            name if graph_metadata.contains_key(name) => {
                if graph_metadata[name] != value {
                    return None;
                }
            }
            _ => drop(filter.insert(name, value)),
        }
    }
    Some(filter)
}

/// Replaces the run id in the filter if the thread is a copy. The states of a copy contain the run
/// ids of the original thread, but the store filters by the run ids of the copy.
async fn translate_run(
    engine: &Engine,
    record: &ThreadRecord,
    filter: &mut BTreeMap<String, Value>,
) -> Result<(), ApiError> {
    if record.origin.is_none() {
        return Ok(());
    }
    let Some(named) = filter.get_mut("run") else { return Ok(()) };
    let mut runs = RunWalk::oldest_first(engine.ports().store.as_ref(), &record.id);
    while let Some(run) = runs.next().await? {
        if *named == run.origin().as_str() {
            *named = run.id.as_str().into();
            break;
        }
    }
    Ok(())
}
