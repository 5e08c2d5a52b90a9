//! The store of LangGraph clients: items in the long-term memory of the caller's tenant.

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wattle_api::response::Json;
use wattle_run::engine::Engine;
use wattle_run::limit::MEMORY_RESULTS;
use wattle_run::ports::memory::{
    ListNamespaces, MemoryScope, MemorySearch, PutItem, check_key, parse_filter,
};

use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody};
use crate::query::QueryParams;
use crate::route::search::DEFAULT_PAGE_SIZE;
use crate::state::AgentServer;
use crate::wire::request::{
    ItemKey, ItemPut, ItemSearch, NamespaceSearch, check_labels, split_labels,
};
use crate::wire::response::{FoundItem, Item};
use crate::wire::schemas::{FoundItems, FoundNamespaces};

/// Default number of namespaces in a response.
const DEFAULT_NAMESPACE_LIMIT: usize = 100;

pub(super) fn routes() -> OpenApiRouter<AgentServer> {
    OpenApiRouter::new()
        .routes(routes!(read, write, delete))
        .routes(routes!(search))
        .routes(routes!(namespaces))
}

fn memory_scope(caller: &Caller) -> MemoryScope {
    MemoryScope::Tenant(caller.tenant.clone())
}

/// Writes an item.
#[utoipa::path(put, path = "/store/items", operation_id = "agent_put_item", tag = "agent-store",
    request_body = ItemPut,
    responses((status = 204)))]
async fn write(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<ItemPut>,
) -> Result<StatusCode, ApiError> {
    check_labels(&request.namespace)?;
    let ttl_ms = request.ttl_ms()?;
    let item = PutItem {
        ttl_ms,
        // Like on a LangGraph server, a read restarts the expiry by default. A read with
        // `refresh_ttl` = `false` does not.
        refresh_on_read: ttl_ms.is_some(),
        namespace: request.namespace,
        key: request.key,
        value: Value::Object(request.value),
    };
    engine.put_document(&memory_scope(&caller), item).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads an item. Returns `null` if it does not exist.
#[utoipa::path(get, path = "/store/items", operation_id = "agent_get_item", tag = "agent-store",
    params(
        ("namespace" = String, Query, description = "labels of the namespace, separated by periods"),
        ("key" = String, Query, description = "key of the item"),
        ("refresh_ttl" = Option<bool>, Query, description = "`false`: the read does not restart the expiry of the item")),
    responses((status = 200, body = Option<Item>)))]
async fn read(
    State(engine): State<Engine>,
    caller: Caller,
    query: QueryParams,
) -> Result<Json<Option<Item>>, ApiError> {
    let text = |key: &str| {
        let missing = || ApiError::unprocessable(format!("the query needs `{key}`"));
        query.get(key).ok_or_else(missing)
    };
    let (namespace, key) = (split_labels(text("namespace")?), text("key")?);
    check_labels(&namespace)?;
    check_key(&namespace, key)?;
    let ports = engine.ports();
    let (memory, now_ms, memory_scope) =
        (&ports.memory, ports.clock.now_ms(), memory_scope(&caller));
    let found = if query.get_bool_opt("refresh_ttl")?.unwrap_or(true) {
        memory.get(&memory_scope, &namespace, key, now_ms).await?
    } else {
        memory.peek(&memory_scope, &namespace, key, now_ms).await?
    };
    Ok(Json(found.map(Item::from)))
}

/// Deletes an item.
#[utoipa::path(delete, path = "/store/items",
    operation_id = "agent_delete_item", tag = "agent-store",
    request_body = ItemKey,
    responses((status = 204)))]
async fn delete(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(item): JsonBody<ItemKey>,
) -> Result<StatusCode, ApiError> {
    check_labels(&item.namespace)?;
    check_key(&item.namespace, &item.key)?;
    engine.ports().memory.delete(&memory_scope(&caller), &item.namespace, &item.key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Searches items.
#[utoipa::path(post, path = "/store/items/search",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_search_items", tag = "agent-store",
    request_body = ItemSearch,
    responses((status = 200, body = FoundItems)))]
async fn search(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<ItemSearch>,
) -> Result<Json<Value>, ApiError> {
    check_labels(&request.namespace_prefix)?;
    let filter = request.filter.filter(|filter| !filter.is_null());
    let search = MemorySearch {
        prefix: request.namespace_prefix,
        filter: filter.as_ref().map(parse_filter).transpose()?.unwrap_or_default(),
        query: request.query.filter(|query| !query.trim().is_empty()),
        limit: request.limit.unwrap_or(DEFAULT_PAGE_SIZE).min(MEMORY_RESULTS),
        offset: request.offset.unwrap_or(0),
        peek: !request.refresh_ttl.unwrap_or(true),
    };
    search.check()?;
    let ports = engine.ports();
    let found = ports.memory.search(&memory_scope(&caller), &search, ports.clock.now_ms()).await?;
    let items: Vec<FoundItem> = found.into_iter().map(FoundItem::from).collect();
    Ok(Json(json!({ "items": items })))
}

/// Lists namespaces that contain items.
#[utoipa::path(post, path = "/store/namespaces",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_list_namespaces", tag = "agent-store",
    request_body = NamespaceSearch,
    responses((status = 200, body = FoundNamespaces)))]
async fn namespaces(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<NamespaceSearch>,
) -> Result<Json<Value>, ApiError> {
    let list = ListNamespaces {
        prefix: request.prefix.unwrap_or_default(),
        suffix: request.suffix.unwrap_or_default(),
        max_depth: request.max_depth,
        limit: request.limit.unwrap_or(DEFAULT_NAMESPACE_LIMIT).min(MEMORY_RESULTS),
        offset: request.offset.unwrap_or(0),
    };
    check_labels(&list.prefix)?;
    check_labels(&list.suffix)?;
    list.check()?;
    let ports = engine.ports();
    let found =
        ports.memory.namespaces(&memory_scope(&caller), &list, ports.clock.now_ms()).await?;
    Ok(Json(json!({ "namespaces": found })))
}
