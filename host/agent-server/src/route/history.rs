//! The points of a thread's past, newest first.

use std::collections::BTreeMap;

use axum::extract::State;
use serde_json::{Map, Value};
use wattle_run::call::travel::HistoryQuery;
use wattle_run::ports::store::ThreadRecord;

use crate::agents::Agents;
use crate::asked::of_thread;
use crate::caller::{Body, Caller, Place};
use crate::fault::Fault;
use crate::page::Page;
use crate::query::Query;
use crate::view;
use crate::wire::id::namespace_of;
use crate::wire::outline::ThreadStatePart;
use crate::wire::request::{Before, HistoryRequest};

/// Points of an answer unless it says otherwise.
const PAGE: usize = 1;

/// Most points of one answer: each comes with its whole state.
const LARGEST_PAGE: usize = 1_000;

/// Points that are read at once, and lie in memory whole.
const READ: usize = 16;

/// Lists the points of a thread, the newest first.
#[utoipa::path(get, path = "/threads/{id}/history",
    operation_id = "agent_get_history", tag = "agent-threads",
    params(
        ("id" = String, Path, description = "the thread"),
        ("limit" = Option<usize>, Query, description = "at most so many"),
        ("before" = Option<String>, Query, description = "only older than this checkpoint"),
        ("select" = Option<Vec<String>>, Query, description = "only these fields")),
    responses((status = 200, body = Vec<ThreadStatePart>)))]
pub(super) async fn get(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<Page, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let request = HistoryRequest {
        limit: query.number("limit")?,
        before: query.text("before").map(|id| Before::Id(id.to_owned())),
        select: Some(query.list("select")),
        ..HistoryRequest::default()
    };
    read(&agents, &record, request).await
}

/// Lists those points of a thread that a document asks for.
#[utoipa::path(post, path = "/threads/{id}/history",
    operation_id = "agent_search_history", tag = "agent-threads",
    params(("id" = String, Path, description = "the thread")),
    request_body = HistoryRequest,
    responses((status = 200, body = Vec<ThreadStatePart>)))]
pub(super) async fn post(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<HistoryRequest>,
) -> Result<Page, Fault> {
    let record = caller.thread(&agents, &id).await?;
    read(&agents, &record, request).await
}

async fn read(
    agents: &Agents,
    record: &ThreadRecord,
    request: HistoryRequest,
) -> Result<Page, Fault> {
    let before = request.before.as_ref().and_then(Before::id);
    let before = before.map(|id| of_thread(record, id)).transpose()?;
    let place = request.checkpoint.map(|checkpoint| checkpoint.checkpoint_ns);
    let Some(filter) = filter(record, request.metadata.unwrap_or_default()) else {
        return Ok(Page::new());
    };
    if record.is_blank() {
        return Ok(Page::new());
    }
    let mut query = HistoryQuery {
        namespace: namespace_of(place.as_deref().unwrap_or_default()),
        before,
        filter,
        limit: None,
    };
    let fields = request.select.unwrap_or_default();
    let wanted = request.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let mut states = Page::new();
    while states.len() < wanted {
        let limit = READ.min(wanted - states.len());
        query.limit = Some(limit);
        let views = agents.engine().history(&record.id, query.clone()).await?;
        for view in &views {
            let state = view::state(agents, record, view, false).await?;
            states.push(&view::selected(&state, &fields)?)?;
        }
        match views.last() {
            Some(oldest) if views.len() == limit => query.before = Some(oldest.checkpoint),
            _ => break,
        }
    }
    Ok(states)
}

/// What the checkpoints must have; `None` if the thread itself has it otherwise.
fn filter(record: &ThreadRecord, wanted: Map<String, Value>) -> Option<BTreeMap<String, Value>> {
    let facts = view::facts(record);
    let mut filter = BTreeMap::new();
    for (name, value) in wanted {
        match name.as_str() {
            "run_id" => drop(filter.insert("run".to_owned(), value)),
            "thread_id" if value == record.id.as_str() => {}
            "thread_id" => return None,
            name if facts.contains_key(name) => {
                if facts[name] != value {
                    return None;
                }
            }
            _ => drop(filter.insert(name, value)),
        }
    }
    Some(filter)
}
