//! The long-term memory: the one that agents of the caller's tenant read and write.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use wattle_run::limit::MEMORY_RESULTS;
use wattle_run::ports::memory::{
    ListNamespaces, MemoryScope, PutItem, Search, check_place, parse_filter,
};

use crate::agents::Agents;
use crate::caller::{Body, Caller};
use crate::fault::Fault;
use crate::query::Query;
use crate::route::search::PAGE;
use crate::wire::request::{
    ItemPlace, ItemPut, ItemSearch, NamespaceSearch, check_labels, labels_of,
};
use crate::wire::shape::{FoundItem, Item};

/// Namespaces of an answer unless it says otherwise.
const NAMESPACES: usize = 100;

pub(super) fn routes() -> Router<Agents> {
    Router::new()
        .route("/store/items", get(read).put(write).delete(delete))
        .route("/store/items/search", post(search))
        .route("/store/namespaces", post(namespaces))
}

fn whose(caller: &Caller) -> MemoryScope {
    MemoryScope::Agents(caller.tenant.clone())
}

async fn write(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<ItemPut>,
) -> Result<StatusCode, Fault> {
    check_labels(&request.namespace)?;
    let ttl_ms = request.ttl_ms()?;
    let item = PutItem {
        ttl_ms,
        // As the reference does it unless it is told otherwise.
        refresh_on_read: ttl_ms.is_some(),
        namespace: request.namespace,
        key: request.key,
        value: Value::Object(request.value),
    };
    item.check()?;
    agents.ports().memory.put(&whose(&caller), item, agents.now_ms()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A document, or `null`.
async fn read(
    State(agents): State<Agents>,
    caller: Caller,
    query: Query,
) -> Result<Json<Option<Item>>, Fault> {
    let text = |key: &str| {
        let missing = || Fault::unprocessable(format!("the query needs `{key}`"));
        query.text(key).ok_or_else(missing)
    };
    let (namespace, key) = (labels_of(text("namespace")?), text("key")?);
    check_labels(&namespace)?;
    check_place(&namespace, key)?;
    query.flag("refresh_ttl")?;
    let (memory, now_ms) = (&agents.ports().memory, agents.now_ms());
    let found = memory.get(&whose(&caller), &namespace, key, now_ms).await?;
    Ok(Json(found.map(Item::from)))
}

async fn delete(
    State(agents): State<Agents>,
    caller: Caller,
    Body(place): Body<ItemPlace>,
) -> Result<StatusCode, Fault> {
    check_labels(&place.namespace)?;
    check_place(&place.namespace, &place.key)?;
    agents.ports().memory.delete(&whose(&caller), &place.namespace, &place.key).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn search(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<ItemSearch>,
) -> Result<Json<Value>, Fault> {
    check_labels(&request.namespace_prefix)?;
    let filter = request.filter.filter(|filter| !filter.is_null());
    let search = Search {
        prefix: request.namespace_prefix,
        filter: filter.as_ref().map(parse_filter).transpose()?.unwrap_or_default(),
        query: request.query.filter(|query| !query.trim().is_empty()),
        limit: request.limit.unwrap_or(PAGE).min(MEMORY_RESULTS),
        offset: request.offset.unwrap_or(0),
    };
    search.check()?;
    let found = agents.ports().memory.search(&whose(&caller), &search, agents.now_ms()).await?;
    let items: Vec<FoundItem> = found.into_iter().map(FoundItem::from).collect();
    Ok(Json(json!({ "items": items })))
}

async fn namespaces(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<NamespaceSearch>,
) -> Result<Json<Value>, Fault> {
    let list = ListNamespaces {
        prefix: request.prefix.unwrap_or_default(),
        suffix: request.suffix.unwrap_or_default(),
        max_depth: request.max_depth,
        limit: request.limit.unwrap_or(NAMESPACES).min(MEMORY_RESULTS),
        offset: request.offset.unwrap_or(0),
    };
    check_labels(&list.prefix)?;
    check_labels(&list.suffix)?;
    list.check()?;
    let found = agents.ports().memory.namespaces(&whose(&caller), &list, agents.now_ms()).await?;
    Ok(Json(json!({ "namespaces": found })))
}
