//! Sizes of a thread in the store.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wattle_graph::id::Namespace;
use wattle_run::engine::Engine;

use crate::error::ApiError;
use crate::extractors::{Caller, PathParams};
use crate::state::AgentServer;
use crate::view;
use crate::wire::schemas::Storage;

pub(super) fn routes() -> OpenApiRouter<AgentServer> {
    OpenApiRouter::new().routes(routes!(storage))
}

/// Returns the stored bytes of a thread, and for each channel the bytes of its newest value as
/// JSON. The log stores changes of values, so the total is not the sum of the channels.
#[utoipa::path(get, path = "/threads/{id}/storage",
    operation_id = "agent_get_storage", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    responses((status = 200, body = Storage)))]
async fn storage(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Value>, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let stored = engine.ports().store.stored_bytes(&thread.id).await?;
    let state = view::load_state(&engine, &thread, &Namespace::root(), None).await?;
    let values = state.map(|state| state.values).unwrap_or_default();
    let channels: BTreeMap<_, _> = values
        .as_object()
        .into_iter()
        .flatten()
        .map(|(channel, value)| (channel, value.to_string().len()))
        .collect();
    Ok(Json(json!({ "thread_id": thread.id, "total_bytes": stored, "channels": channels })))
}
