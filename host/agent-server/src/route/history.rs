//! The points of a thread's past, newest first.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value};
use wattle_run::call::travel::HistoryQuery;
use wattle_run::ports::store::ThreadRecord;

use crate::agents::Agents;
use crate::asked::of_thread;
use crate::caller::{Body, Caller, Place};
use crate::fault::Fault;
use crate::query::Query;
use crate::view;
use crate::wire::id::namespace_of;
use crate::wire::request::{Before, HistoryRequest};

/// Points of an answer unless it says otherwise.
const PAGE: usize = 1;

/// Most points of one answer: each comes with its whole state.
const LARGEST_PAGE: usize = 1_000;

/// By the query of the address.
pub(super) async fn get(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<Json<Vec<Value>>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let request = HistoryRequest {
        limit: query.number("limit")?,
        before: query.text("before").map(|id| Before::Id(id.to_owned())),
        select: Some(query.list("select")),
        ..HistoryRequest::default()
    };
    read(&agents, &record, request).await
}

/// By a document.
pub(super) async fn post(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<HistoryRequest>,
) -> Result<Json<Vec<Value>>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    read(&agents, &record, request).await
}

async fn read(
    agents: &Agents,
    record: &ThreadRecord,
    request: HistoryRequest,
) -> Result<Json<Vec<Value>>, Fault> {
    let before = request.before.as_ref().and_then(Before::id);
    let before = before.map(|id| of_thread(record, id)).transpose()?;
    let place = request.checkpoint.map(|checkpoint| checkpoint.checkpoint_ns);
    let Some(filter) = filter(record, request.metadata.unwrap_or_default()) else {
        return Ok(Json(Vec::new()));
    };
    if record.is_blank() {
        return Ok(Json(Vec::new()));
    }
    let query = HistoryQuery {
        namespace: namespace_of(place.as_deref().unwrap_or_default()),
        before,
        filter,
        limit: Some(request.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE)),
    };
    let fields = request.select.unwrap_or_default();
    let mut states = Vec::new();
    for view in agents.engine().history(&record.id, query).await? {
        let state = view::state(agents, record, &view, false).await?;
        states.push(view::selected(&state, &fields)?);
    }
    Ok(Json(states))
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
