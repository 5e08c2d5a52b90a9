//! Searches the default assistants and the assistants that clients created.

use std::cmp::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::Value;
use wattle_run::engine::Engine;
use wattle_run::metadata::json_contains;

use super::MAX_PAGE_SIZE;
use crate::assistants;
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody};
use crate::page::{self, Page};
use crate::route::search::{DEFAULT_PAGE_SIZE, pagination_headers};
use crate::view;
use crate::wire::request::{AssistantCount, AssistantSearch, SortOrder};
use crate::wire::response::Assistant;
use crate::wire::schemas::AssistantPart;

/// Fields that `select` accepts.
const FIELDS: &[&str] = &[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
];

/// Lists assistants.
#[utoipa::path(post, path = "/assistants/search",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_search_assistants", tag = "agent-assistants",
    request_body = AssistantSearch,
    responses(
        (status = 200, body = Vec<AssistantPart>,
            headers(("X-Pagination-Total" = usize, description = "total number of matches"),
                ("X-Pagination-Next" = usize, description = "offset of the next page")))))]
pub(super) async fn search(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<AssistantSearch>,
) -> Result<(HeaderMap, Page), ApiError> {
    let wanted = AssistantCount {
        metadata: request.metadata,
        graph_id: request.graph_id,
        name: request.name,
    };
    let mut found = find(&engine, &caller, &wanted).await?;
    sort(&mut found, request.sort_by.as_deref(), request.sort_order.unwrap_or_default())?;
    let (total, offset) = (found.len(), request.offset.unwrap_or(0));
    let limit = page::size(request.limit, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)?;
    let mut page = Page::new(caller.response.clone());
    for assistant in found.iter().skip(offset).take(limit) {
        page.push(&view::select_fields(assistant, request.select.as_deref(), FIELDS)?)?;
    }
    Ok((pagination_headers(total, offset, page.len()), page))
}

/// Counts assistants.
#[utoipa::path(post, path = "/assistants/count",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_count_assistants", tag = "agent-assistants",
    request_body = AssistantCount,
    responses((status = 200, body = usize, content_type = "application/json")))]
pub(super) async fn count(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<AssistantCount>,
) -> Result<Json<usize>, ApiError> {
    Ok(Json(find(&engine, &caller, &request).await?.len()))
}

async fn find(
    engine: &Engine,
    caller: &Caller,
    wanted: &AssistantCount,
) -> Result<Vec<Assistant>, ApiError> {
    let mut found = assistants::list(engine, caller.tenant.as_ref()).await?;
    let name = wanted.name.as_ref().map(|name| name.to_lowercase());
    let metadata = wanted.metadata.clone().map(Value::Object);
    found.retain(|assistant| {
        let is_of_graph = wanted.graph_id.as_ref().is_none_or(|id| *id == assistant.graph_id);
        let is_named = |name: &String| assistant.name.to_lowercase().contains(name);
        let has_metadata =
            |wanted: &Value| json_contains(&Value::Object(assistant.metadata.clone()), wanted);
        is_of_graph
            && name.as_ref().is_none_or(is_named)
            && metadata.as_ref().is_none_or(has_metadata)
    });
    Ok(found)
}

/// Sorts assistants. Assistants with equal values are sorted by graph.
fn sort(found: &mut [Assistant], by: Option<&str>, order: SortOrder) -> Result<(), ApiError> {
    let compare: fn(&Assistant, &Assistant) -> Ordering = match by.unwrap_or("created_at") {
        "created_at" => |one, other| one.created_at.cmp(&other.created_at),
        "updated_at" => |one, other| one.updated_at.cmp(&other.updated_at),
        "graph_id" => |one, other| one.graph_id.cmp(&other.graph_id),
        "name" => |one, other| one.name.cmp(&other.name),
        "assistant_id" => |one, other| one.assistant_id.cmp(&other.assistant_id),
        other => {
            let text = format!(
                "`sort_by` must be assistant_id, graph_id, name, created_at or updated_at, \
                 not `{other}`"
            );
            return Err(ApiError::unprocessable(text));
        }
    };
    found.sort_by(|one, other| {
        let by = match order {
            SortOrder::Asc => compare(one, other),
            SortOrder::Desc => compare(other, one),
        };
        let by_graph =
            || (&one.graph_id, &one.assistant_id).cmp(&(&other.graph_id, &other.assistant_id));
        by.then_with(by_graph)
    });
    Ok(())
}
